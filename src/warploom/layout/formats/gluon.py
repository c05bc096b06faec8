"""Gluon's layout objects as they print ↔ attributes of Triton's IR.

    BlockedLayout(size_per_thread=[1, 4], …)  ↔  #ttg.blocked<{sizePerThread = [1, 4], …}>

Nothing that is given is run: a call is parsed, and only numbers, truths, lists and calls of known
names are taken from it.
"""

from __future__ import annotations

import ast
from typing import Any

from warploom.errors import ParseError
from warploom.layout.formats.encoding_amd import wmma_warps
from warploom.layout.formats.encoding_shared import ALIGNMENT, shared_linear_of
from warploom.layout.formats.linear import blocks_of, part_by_units, part_of_a_block
from warploom.layout.formats.mlir import Attribute, Value
from warploom.layout.formats.python_call import MOST_DEEP, Call, parse_call

# Each object, the attribute that it is, and its fields in order with those of the attribute; what
# has no counterpart there is named after itself.
OBJECTS: dict[str, tuple[str, dict[str, str]]] = {
    "BlockedLayout": ("ttg.blocked", {
        "size_per_thread": "sizePerThread", "threads_per_warp": "threadsPerWarp",
        "warps_per_cta": "warpsPerCTA", "order": "order", "cga_layout": "CGALayout",
    }),
    "SliceLayout": ("ttg.slice", {"dim": "dim", "parent": "parent"}),
    "DotOperandLayout": ("ttg.dot_op", {
        "operand_index": "opIdx", "parent": "parent", "k_width": "kWidth",
    }),
    "NVMMADistributedLayout": ("ttg.nvidia_mma", {
        "version": "version", "warps_per_cta": "warpsPerCTA", "instr_shape": "instrShape",
        "cga_layout": "CGALayout",
    }),
    "DistributedLinearLayout": ("ttg.linear", {
        "reg_bases": "register", "lane_bases": "lane", "warp_bases": "warp",
        "block_bases": "block", "shape": "shape",
    }),
    "AMDMFMALayout": ("ttg.amd_mfma", {
        "version": "version", "instr_shape": "instrShape", "transposed": "isTransposed",
        "warps_per_cta": "warpsPerCTA", "element_bitwidth": "elementBitWidth",
        "tiles_per_warp": "tilesPerWarp", "cga_layout": "CGALayout",
    }),
    "AMDWMMALayout": ("ttg.amd_wmma", {
        "version": "version", "transposed": "isTranspose", "warp_bases": "warp",
        "reg_bases": "register", "instr_shape": "instrShape", "cga_layout": "CGALayout",
        "rank": "rank",
    }),
    "SwizzledSharedLayout": ("ttg.swizzled_shared", {
        "vec": "vec", "per_phase": "perPhase", "max_phase": "maxPhase", "order": "order",
        "cga_layout": "CGALayout",
    }),
    "NVMMASharedLayout": ("ttg.nvmma_shared", {
        "swizzle_byte_width": "swizzlingByteWidth", "element_bitwidth": "elementBitWidth",
        "rank": "rank", "transposed": "transposed", "fp4_padded": "fp4Padded",
        "cga_layout": "CGALayout",
    }),
    "PaddedSharedLayout": ("ttg.padded_shared", {
        "interval_padding_pairs": "pairs", "offset_bases": "offset", "cga_layout": "block",
        "shape": "shape",
    }),
    "SharedLinearLayout": ("ttg.shared_linear", {
        "offset_bases": "offset", "block_bases": "block", "alignment": "alignment",
    }),
}  # fmt: skip
# What earlier objects say of blocks in place of `cga_layout`.
_EARLIER = {
    "ctas_per_cga": "CTAsPerCGA", "cta_split_num": "CTASplitNum", "cta_order": "CTAOrder",
}  # fmt: skip
_ALSO = {"blocked": "BlockedLayout", "swizzled": "SwizzledSharedLayout"}
_NAMED = {attribute: (name, fields) for name, (attribute, fields) in OBJECTS.items()}


def read_object(text: str) -> Attribute:
    """
    >>> str(read_object("SliceLayout(dim=0, parent=BlockedLayout([1, 4]))"))
    '#ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4]}>}>'
    """
    return object_of(parse_call(text, "layout object", "write BlockedLayout(…)"))


def object_of(call: Call, depth: int = 0) -> Attribute:
    """The attribute that a call stands for."""
    name = _ALSO.get(call.name, call.name)
    if name not in OBJECTS:
        advice = f"known are {', '.join(OBJECTS)}"
        call.fail(f"no layout object is called '{name[:40]}'", call.node.func, advice)
    if depth > MOST_DEEP:
        call.fail(f"layout objects are at most {MOST_DEEP} deep")
    attribute, fields = OBJECTS[name]
    earlier = _EARLIER if "cga_layout" in fields else {}
    given = call.arguments(tuple(fields), {each: each for each in earlier})
    known = fields | earlier
    found = {known[key]: _value(call, key, value, depth) for key, value in given.items()}
    return _restated(call, attribute, found)


def _value(call: Call, key: str, value: ast.expr, depth: int) -> Any:
    if isinstance(value, ast.Call):
        return object_of(call.inside(value), depth + 1)
    return call.value(value, key)


def _restated(call: Call, attribute: str, found: dict[str, Any]) -> Attribute:
    """The attribute, whose fields may have another form; those that say nothing are left out."""
    empty = ("CGALayout", "rank", "shape", "tilesPerWarp", "elementBitWidth", "alignment")
    kept = {
        key: value
        for key, value in found.items()
        if value is not None and not (key in empty and value == [])
    }
    kept.pop("rank", None)
    match attribute:
        case "ttg.nvidia_mma":
            version = kept.pop("version", [2, 0])
            if not isinstance(version, list) or len(version) != 2:
                call.fail("the version of an NVMMADistributedLayout is [major, minor]")
            kept = {"versionMajor": version[0], "versionMinor": version[1], **kept}
        case "ttg.amd_wmma":
            bases = {"register": kept.pop("register", []), "warp": kept.pop("warp", [])}
            kept["ctaLayout"] = bases
        case "ttg.linear":
            kept.pop("shape", None)
        case "ttg.dot_op" if kept.get("kWidth") == 0:
            kept.pop("kWidth")
        case "ttg.padded_shared":
            return _padded(call, kept)
    return Attribute(attribute, kept)


def _padded(call: Call, fields: dict[str, Any]) -> Attribute:
    """Intervals with their padding stand by place in the attribute, and bases of blocks count
    elements there."""
    pairs, shape, blocks = (fields.get(key) for key in ("pairs", "shape", "block"))
    if not isinstance(pairs, list) or not pairs:
        call.fail("a PaddedSharedLayout without pairs", advice="write [[32, 4], [256, 8]]")
    if not isinstance(shape, list):
        call.fail("a PaddedSharedLayout without shape", advice="it has the shape of the tensor")
    kept: dict[str, Value] = {"offset": fields.get("offset") or []}
    if not kept["offset"]:
        kept = {"order": [*range(len(shape))][::-1], "shape": shape}
        return Attribute(
            "ttg.padded_shared", kept | ({"CGALayout": blocks} if blocks else {}), (pairs,)
        )
    if blocks:
        _, placed = part_by_units(tuple(shape), blocks)
        kept["block"] = [list(base) for base in placed]
    return Attribute("ttg.padded_shared", kept, (pairs,))


# -- written ---------------------------------------------------------------------------------------


def write_object(attribute: Attribute, shape: tuple[int, ...]) -> str:
    """The object as Gluon prints it; `shape` is that of the tensor, which some objects say.

    >>> write_object(read_object("SwizzledSharedLayout(8, 1, 8, [1, 0])"), (64, 64))
    'SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0], cga_layout=[])'
    """
    if attribute.name not in _NAMED:
        raise ParseError(
            f"Gluon has no object for #{attribute.name[:40]}",
            advice=f"it has {', '.join(_NAMED)}",
        )
    name, fields = _NAMED[attribute.name]
    said = _stated(attribute, shape)
    missing = [field for field in fields.values() if field not in said]
    if missing:
        raise attribute.wrong(missing[0], f"what {name} needs")
    shown = [f"{key}={_shown(said[field], shape, said)}" for key, field in fields.items()]
    return f"{name}({', '.join(shown)})"


def _stated(attribute: Attribute, shape: tuple[int, ...]) -> dict[str, Any]:
    """All fields of the object, with what is said where the attribute says nothing."""
    fields: dict[str, Any] = dict(attribute.fields)
    rank = len(shape)
    usual: dict[str, Any] = {
        "rank": rank, "shape": list(shape), "transposed": False, "order": [*range(rank)][::-1],
        "fp4Padded": False, "alignment": ALIGNMENT, "kWidth": 0, "isTransposed": False,
        "isTranspose": False, "elementBitWidth": 32, "tilesPerWarp": [1] * rank,
        "register": [], "lane": [], "warp": [], "block": [], "instrShape": [16, 16, 16],
    }  # fmt: skip
    match attribute.name:
        case "ttg.nvidia_mma":
            fields["version"] = [fields.get("versionMajor", 2), fields.get("versionMinor", 0)]
        case "ttg.amd_wmma":
            fields["isTranspose"] = attribute.truth("isTranspose") or attribute.truth(
                "isTransposed"
            )
            tiles, warps = wmma_warps(attribute, rank)
            fields |= {"register": tiles, "warp": warps}
        case "ttg.nvmma_shared" if "elementBitWidth" not in fields:
            raise attribute.wrong("elementBitWidth", "the bits of an element")
        case "ttg.padded_shared":
            linear = shared_linear_of(attribute, shape)
            part = part_of_a_block(shape, linear.bases.get("block", ()))
            fields = {
                "pairs": attribute.places[0] if attribute.places else [],
                "offset": [list(base) for base in linear.bases["offset"]],
                "block": [
                    [n // size for n, size in zip(base, part, strict=True)]
                    for base in linear.bases.get("block", ())
                ],
            }
    if attribute.name not in ("ttg.linear", "ttg.shared_linear", "ttg.padded_shared"):
        fields["CGALayout"] = blocks_of(attribute, rank)
    return usual | fields


def _shown(value: Any, shape: tuple[int, ...], fields: dict[str, Any]) -> str:
    """A parent is of a tensor with one dimension more where a slice is taken of it."""
    if not isinstance(value, Attribute):
        return str(value)
    if "dim" in fields:
        dimension = min(int(fields["dim"]), len(shape))
        every = [base for key in ("register", "lane", "warp", "block") for base in value.bases(key)]
        spanned = max((base[dimension] for base in every if dimension < len(base)), default=0)
        shape = (*shape[:dimension], 1 << spanned.bit_length(), *shape[dimension:])
    return write_object(value, shape)
