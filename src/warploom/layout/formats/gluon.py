"""Gluon's layout objects as they print ↔ attributes of Triton's IR.

    BlockedLayout(size_per_thread=[1, 4], …)  ↔  #ttg.blocked<{sizePerThread = [1, 4], …}>

Nothing that is given is run: a call is parsed, and only numbers, truths, lists and calls of known
names are taken from it.
"""

from __future__ import annotations

import ast
from typing import Any

from warploom.errors import ParseError
from warploom.layout.formats.mlir import Attribute, Value

MOST_TEXT = 20_000
MOST_DEEP = 8
MOST_NUMBER = 1 << 30

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
    try:
        call = ast.parse(text.strip()[: MOST_TEXT + 1], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or len(text) > MOST_TEXT:
        raise ParseError(f"'{text[:60]}' is no layout object", advice="write BlockedLayout(…)")
    return object_of(call)


def object_of(call: ast.Call, depth: int = 0) -> Attribute:
    """The attribute that a call stands for."""
    name = _ALSO.get(_name(call.func), _name(call.func))
    if name not in OBJECTS:
        raise ParseError(
            f"no layout object is called '{name[:40]}'", advice=f"known are {', '.join(OBJECTS)}"
        )
    if depth > MOST_DEEP:
        raise ParseError(f"layout objects are at most {MOST_DEEP} deep")
    attribute, fields = OBJECTS[name]
    if len(call.args) > len(fields):
        raise ParseError(f"{name} takes {len(fields)} arguments, not {len(call.args)}")
    given = dict(zip(fields, call.args, strict=False))
    known = fields | (_EARLIER if "cga_layout" in fields else {})
    for keyword in call.keywords:
        if keyword.arg not in known or keyword.arg in given:
            said = f"'{str(keyword.arg)[:40]}' in {name}"
            raise ParseError(said, advice=f"it takes {', '.join(fields)}")
        given[keyword.arg] = keyword.value
    found = {known[key]: _value(key, value, name, depth) for key, value in given.items()}
    return Attribute(attribute, _restated(attribute, found))


def _name(function: ast.expr) -> str:
    """`ttgl.BlockedLayout` is `BlockedLayout`."""
    match function:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ""


def _value(key: str, value: ast.expr, name: str, depth: int) -> Any:
    if isinstance(value, ast.Call):
        return object_of(value, depth + 1)
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
        raise ParseError(f"{key} of {name} is not made of numbers") from None
    return _plain(found, f"{key} of {name}")


def _plain(found: object, what: str, depth: int = 0) -> Any:
    """Lists of numbers, as attributes have them."""
    match found:
        case None:
            return None
        case bool() | int() if abs(found) <= MOST_NUMBER:
            return found
        case list() | tuple() if depth < MOST_DEEP:
            return [_plain(each, what, depth + 1) for each in found]
    raise ParseError(f"{what} is {str(found)[:40]}", advice="numbers, truths and lists of them")


def _restated(attribute: str, found: dict[str, Any]) -> dict[str, Value]:
    """Fields that the attribute has in another form; those that say nothing are left out."""
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
                raise ParseError("the version of an NVMMADistributedLayout is [major, minor]")
            return {"versionMajor": version[0], "versionMinor": version[1], **kept}
        case "ttg.amd_wmma":
            bases = {"register": kept.pop("register", []), "warp": kept.pop("warp", [])}
            return {**kept, "ctaLayout": bases}
        case "ttg.linear":
            kept.pop("shape", None)
        case "ttg.dot_op" if kept.get("kWidth") == 0:
            kept.pop("kWidth")
    return kept


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
    shown = [f"{key}={_shown(said[field], shape)}" for key, field in fields.items()]
    return f"{name}({', '.join(shown)})"


def _stated(attribute: Attribute, shape: tuple[int, ...]) -> dict[str, Any]:
    """All fields of the object, with what is said where the attribute says nothing."""
    fields: dict[str, Any] = dict(attribute.fields)
    rank = len(shape)
    usual: dict[str, Any] = {
        "CGALayout": [], "rank": rank, "shape": list(shape), "transposed": False,
        "fp4Padded": False, "alignment": 16, "kWidth": 0, "isTransposed": False,
        "isTranspose": False, "elementBitWidth": 32, "tilesPerWarp": [1] * rank,
        "register": [], "lane": [], "warp": [], "block": [], "instrShape": [16, 16, 16],
    }  # fmt: skip
    if attribute.name == "ttg.nvidia_mma":
        fields["version"] = [fields.get("versionMajor", 2), fields.get("versionMinor", 0)]
    if attribute.name == "ttg.amd_wmma":
        named = fields.get("ctaLayout")
        fields |= named if isinstance(named, dict) else {}
    return usual | fields


def _shown(value: Any, shape: tuple[int, ...]) -> str:
    """A parent is of a tensor with one dimension more where a slice is taken of it."""
    if isinstance(value, Attribute):
        return write_object(value, shape)
    return str(value)
