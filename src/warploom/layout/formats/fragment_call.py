"""Register layouts as calls: Gluon's objects, and names for those of matrix units.

    mma_a(2)     operand A of mma, two neighbours along k      wgmma_a(2), wgmma_c(n)
    mfma_c(32)   the result of MFMA with 32×32 elements        mfma_a(k), mfma_b(k)
    wmma_c(2)    the result of WMMA of version 2 (RDNA4)       wmma_a(k), wmma_b(k)

A call is parsed, never run.
"""

from __future__ import annotations

import ast
import re

from warploom.errors import ParseError, spelled
from warploom.layout.conversion.fragment import Fragment, blocked, mma_operand, mma_result
from warploom.layout.formats.encoding import REGISTERS
from warploom.layout.formats.fragment_bases import from_attribute, from_bases
from warploom.layout.formats.gluon import OBJECTS, object_of
from warploom.layout.formats.mlir import Attribute
from warploom.layout.formats.python_call import Call, called, parse_call
from warploom.layout.formats.shared_text import OF_BLOCKS

_ADVICE = (
    'write {"register": [[0, 1]], "lane": …}, blocked([1, 4], [8, 4], [1, 1], [1, 0]), '
    "mma_a(2), mma_b(2), mma_c(), or a layout of threads and values as CuTe has it, (32,4):(4,1)"
)

# Each name with its parameters, in order, under the names that Gluon gives them and ours.
_PARAMETERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "BlockedLayout": (
        ("size_per_thread", "size"), ("threads_per_warp", "lanes"), ("warps_per_cta", "warps"),
        ("order",),
    ),
    "DistributedLinearLayout": (
        ("reg_bases",), ("lane_bases",), ("warp_bases",), ("block_bases",), ("shape",),
    ),
    "mma_c": (("warps",),),
    "mma_a": (("k",), ("warps",)),
    "mma_b": (("k",), ("warps",)),
    "wgmma_c": (("n",), ("warps",)),
    "wgmma_a": (("k",), ("warps",)),
    "mfma_c": (("side",), ("transposed",), ("warps",)),
    "mfma_a": (("k",), ("side",), ("transposed",), ("warps",)),
    "mfma_b": (("k",), ("side",), ("transposed",), ("warps",)),
    "wmma_c": (("version",), ("transposed",), ("warps",)),
    "wmma_a": (("k",), ("version",), ("transposed",), ("warps",)),
    "wmma_b": (("k",), ("version",), ("transposed",), ("warps",)),
}  # fmt: skip
_ALSO = {"blocked": "BlockedLayout"}
_DASHED = re.compile(r"\s*(?:mma|wgmma|mfma|wmma)-[abc]\b")  # mma-a, as patterns are called


def is_call(text: str) -> bool:
    return ":" not in text and bool(called(_undashed(text)))


def names_registers(text: str) -> bool:
    """Whether a text calls what is known here."""
    name = called(_undashed(text))
    name = _ALSO.get(name, name)
    return is_call(text) and (
        name in _PARAMETERS or (name in OBJECTS and OBJECTS[name][0] in REGISTERS)
    )


def read_call(text: str, shape: tuple[int, ...] | None) -> Fragment:
    """The fragment that a call names."""
    call = parse_call(_undashed(text), "register layout", _ADVICE)
    name = _ALSO.get(call.name, call.name)
    if name in OBJECTS and name not in _PARAMETERS:
        return _of_object(object_of(call), shape, call.text)
    if name not in _PARAMETERS:
        raise unknown(name, call)
    parameters = _PARAMETERS[name]
    aliases = {each: names[0] for names in parameters for each in names[1:]}
    # Of one block these are empty; of several the whole object is read elsewhere.
    aliases |= {each: each for each in OF_BLOCKS}
    given = Given(call, call.arguments([names[0] for names in parameters], aliases))
    if name == "DistributedLinearLayout":
        return _linear(given)
    if shape is None:
        raise shapeless(call.name)
    match name:
        case "BlockedLayout":
            if any(
                call.value(given.nodes[each], each) for each in OF_BLOCKS if each in given.nodes
            ):
                return _of_object(object_of(call), shape, call.text)
            lists = [given.numbers(names[0]) for names in parameters]
            return blocked(shape, *lists)
        case "mma_c":
            return mma_result(shape, given.numbers("warps", [1, 1]))
        case "mma_a" | "mma_b":
            width = given.number("k", 2)
            return mma_operand(shape, int(name == "mma_b"), width, given.numbers("warps", [1, 1]))
    return from_attribute(_unit(name, given, shape), shape, call.text)


def _undashed(text: str) -> str:
    return _DASHED.sub(lambda found: found[0].replace("-", "_"), text, count=1)


def _of_object(attribute: Attribute, shape: tuple[int, ...] | None, text: str) -> Fragment:
    """An object of Gluon; of mma also for sizes that are no powers of two."""
    if shape is None:
        raise shapeless(text.partition("(")[0])
    if any(size & (size - 1) for size in shape):
        found = _of_any_size(attribute, shape)
        if found is not None:
            return found
    return from_attribute(attribute, shape, text)


def _of_any_size(attribute: Attribute, shape: tuple[int, ...]) -> Fragment | None:
    operand = attribute.name == "ttg.dot_op"
    parent = attribute.parent() if operand else attribute
    if parent.name != "ttg.nvidia_mma" or parent.number("versionMajor") != 2:
        return None
    if parent.numbers("instrShape") not in ([16, 8], [16, 8, 16]) or len(shape) != 2:
        return None
    warps = parent.numbers("warpsPerCTA")
    if not operand:
        return mma_result(shape, warps)
    return mma_operand(shape, attribute.number("opIdx"), attribute.number("kWidth", 2), warps)


# -- results and operands of matrix units by name --------------------------------------------------


def _unit(name: str, given: Given, shape: tuple[int, ...]) -> Attribute:
    """The attribute that a name stands for."""
    unit, _, operand = name.partition("_")
    parent = _result(unit, given, shape)
    if operand == "c":
        return parent
    width = given.number("k", {"wgmma": 2, "mfma": 4, "wmma": 8}[unit])
    which = "ab".index(operand)
    return Attribute("ttg.dot_op", {"opIdx": which, "parent": parent, "kWidth": width})


def _result(unit: str, given: Given, shape: tuple[int, ...]) -> Attribute:
    if unit == "wgmma":
        warps = given.numbers("warps", [4, 1])
        columns = given.number("n", min(256, shape[-1]))
        return Attribute("ttg.nvidia_mma", {
            "versionMajor": 3, "versionMinor": 0, "warpsPerCTA": list(warps),
            "instrShape": [16, columns, 16],
        })  # fmt: skip
    warps = given.numbers("warps", [1, 1])
    turned = given.truth("transposed")
    if unit == "mfma":
        side = given.number("side", 32)
        depth = {32: 8, 16: 16}.get(side)
        if depth is None:
            raise ParseError(f"MFMA of {side}×{side} elements", advice="side is 16 or 32")
        return Attribute("ttg.amd_mfma", {
            "version": 3, "warpsPerCTA": list(warps), "instrShape": [side, side, depth],
            "isTransposed": turned,
        })  # fmt: skip
    version = given.number("version", 2)
    return Attribute("ttg.amd_wmma", {
        "version": version, "isTranspose": turned, "warpsPerCTA": list(warps),
        "instrShape": [16, 16, 16],
    })  # fmt: skip


# -- calls -----------------------------------------------------------------------------------------


class Given:
    """What a call was given, under the first name of each parameter."""

    def __init__(self, call: Call, nodes: dict[str, ast.expr]) -> None:
        self.call, self.nodes = call, nodes

    def _node(self, name: str) -> ast.expr:
        if name not in self.nodes:
            self.call.fail(f"{name} is missing in {self.call.name}", advice=_ADVICE)
        return self.nodes[name]

    def number(self, name: str, otherwise: int) -> int:
        if name not in self.nodes:
            return otherwise
        return self.call.number(self.nodes[name], name)

    def truth(self, name: str) -> bool:
        return name in self.nodes and self.call.truth(self.nodes[name], name)

    def numbers(self, name: str, otherwise: list[int] | None = None) -> list[int]:
        if name not in self.nodes and otherwise is not None:
            return otherwise
        return self.call.numbers(self._node(name), name)

    def lists(self, name: str) -> list[list[int]]:
        """None of them where nothing, or None, is given."""
        node = self.nodes.get(name)
        if node is None or self.call.value(node, name) is None:
            return []
        return self.call.lists(node, name)


def shapeless(name: str) -> ParseError:
    """What does not say the shape of the tensor."""
    advice = f"give {spelled('--shape 32x32', 'shape=(32, 32)')}"
    return ParseError(f"{name} does not say the shape", advice=advice)


def unknown(name: str, call: Call | None = None) -> ParseError:
    where = None if call is None else call.span(call.node.func)
    return ParseError(f"no register layout is called '{name[:40]}'", where, _ADVICE)


def _linear(given: Given) -> Fragment:
    names = {"register": "reg", "lane": "lane", "warp": "warp", "block": "block"}
    bases = {name: given.lists(f"{short}_bases") for name, short in names.items()}
    return from_bases(bases, tuple(given.numbers("shape")), "bases")
