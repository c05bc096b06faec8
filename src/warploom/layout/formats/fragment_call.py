"""Register layouts as calls: Gluon's objects, and names for those of matrix units.

    mma_a(2)     operand A of mma, two neighbours along k      wgmma_a(2), wgmma_c(n)
    mfma_c(32)   the result of MFMA with 32×32 elements        mfma_a(k), mfma_b(k)
    wmma_c(2)    the result of WMMA of version 2 (RDNA4)       wmma_a(k), wmma_b(k)

A call is parsed, never run.
"""

from __future__ import annotations

import ast
from typing import Any

from warploom.errors import ParseError, spelled
from warploom.layout.conversion.fragment import Fragment, blocked, mma_operand, mma_result
from warploom.layout.formats.fragment_bases import from_attribute, from_bases
from warploom.layout.formats.gluon import OBJECTS, object_of
from warploom.layout.formats.mlir import Attribute
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


def read_call(text: str, shape: tuple[int, ...] | None) -> Fragment:
    """The fragment that a call names."""
    call = _call(text)
    name = _ALSO.get(_name(call), _name(call))
    if name in OBJECTS and name not in _PARAMETERS:
        return _of_object(object_of(call), shape, text.strip())
    if name not in _PARAMETERS:
        raise unknown(name)
    given = _arguments(call, name)
    if name == "DistributedLinearLayout":
        return _linear(given)
    if shape is None:
        raise shapeless(_name(call))
    match name:
        case "BlockedLayout":
            if _lists_of_blocks(call):
                return _of_object(object_of(call), shape, text.strip())
            lists = [_numbers(given, names[0]) for names in _PARAMETERS[name]]
            return blocked(shape, *lists)
        case "mma_c":
            return mma_result(shape, _numbers(given, "warps", [1, 1]))
        case "mma_a" | "mma_b":
            width = _number(given, "k", 2)
            return mma_operand(shape, int(name == "mma_b"), width, _numbers(given, "warps", [1, 1]))
    return from_attribute(_unit(name, given, shape), shape, text.strip())


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


def _unit(name: str, given: dict[str, Any], shape: tuple[int, ...]) -> Attribute:
    """The attribute that a name stands for."""
    unit, _, operand = name.partition("_")
    parent = _result(unit, given, shape)
    if operand == "c":
        return parent
    width = _number(given, "k", {"wgmma": 2, "mfma": 4, "wmma": 8}[unit])
    which = "ab".index(operand)
    return Attribute("ttg.dot_op", {"opIdx": which, "parent": parent, "kWidth": width})


def _result(unit: str, given: dict[str, Any], shape: tuple[int, ...]) -> Attribute:
    if unit == "wgmma":
        warps = _numbers(given, "warps", [4, 1])
        columns = _number(given, "n", min(256, shape[-1]))
        return Attribute("ttg.nvidia_mma", {
            "versionMajor": 3, "versionMinor": 0, "warpsPerCTA": list(warps),
            "instrShape": [16, columns, 16],
        })  # fmt: skip
    warps = _numbers(given, "warps", [1, 1])
    turned = _truth(given, "transposed")
    if unit == "mfma":
        side = _number(given, "side", 32)
        depth = {32: 8, 16: 16}.get(side)
        if depth is None:
            raise ParseError(f"MFMA of {side}×{side} elements", advice="side is 16 or 32")
        return Attribute("ttg.amd_mfma", {
            "version": 3, "warpsPerCTA": list(warps), "instrShape": [side, side, depth],
            "isTransposed": turned,
        })  # fmt: skip
    version = _number(given, "version", 2)
    return Attribute("ttg.amd_wmma", {
        "version": version, "isTranspose": turned, "warpsPerCTA": list(warps),
        "instrShape": [16, 16, 16],
    })  # fmt: skip


# -- calls -----------------------------------------------------------------------------------------


def _call(text: str) -> ast.Call:
    try:
        found = ast.parse(text.strip().replace("-", "_"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, ast.Call):
        raise ParseError(f"'{text[:60]}' is no register layout", advice=_ADVICE)
    return found


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ""


def shapeless(name: str) -> ParseError:
    """What does not say the shape of the tensor."""
    advice = f"give {spelled('--shape 32x32', 'shape=(32, 32)')}"
    return ParseError(f"{name} does not say the shape", advice=advice)


def unknown(name: str) -> ParseError:
    return ParseError(f"no register layout is called '{name[:40]}'", advice=_ADVICE)


def _lists_of_blocks(call: ast.Call) -> bool:
    """Whether the object says how several blocks share the tensor."""
    given = {str(each.arg): each.value for each in call.keywords}
    return any(_literal(given, key, []) for key in OF_BLOCKS if key in given)


def _linear(given: dict[str, Any]) -> Fragment:
    names = {"register": "reg", "lane": "lane", "warp": "warp", "block": "block"}
    bases = {name: _lists(given, f"{short}_bases") for name, short in names.items()}
    return from_bases(bases, tuple(_numbers(given, "shape")), "bases")


def _arguments(call: ast.Call, name: str) -> dict[str, Any]:
    """What was given, under the first name of each parameter."""
    parameters = _PARAMETERS[name]
    if len(call.args) > len(parameters):
        raise ParseError(f"{name} takes {len(parameters)} arguments, not {len(call.args)}")
    found: dict[str, Any] = {
        names[0]: value for names, value in zip(parameters, call.args, strict=False)
    }
    for keyword in call.keywords:
        names = next((n for n in parameters if keyword.arg in n), None)
        if names is None and keyword.arg in OF_BLOCKS:
            continue  # of one block it is empty; of several the whole object is read elsewhere
        if names is None or names[0] in found:
            listed = ", ".join(n[-1] for n in parameters)
            raise ParseError(f"'{keyword.arg}' in {name}", advice=f"it takes {listed}")
        found[names[0]] = keyword.value
    return found


def _literal(given: dict[str, Any], name: str, otherwise: object) -> object:
    if name not in given:
        if otherwise is None:
            raise ParseError(f"{name} is missing", advice=_ADVICE)
        return otherwise
    try:
        return ast.literal_eval(given[name])
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise ParseError(f"{name} is not made of numbers") from None


def _number(given: dict[str, Any], name: str, otherwise: int | None = None) -> int:
    found = _literal(given, name, otherwise)
    if type(found) is not int:
        raise ParseError(f"{name} is a number")
    return found


def _truth(given: dict[str, Any], name: str) -> bool:
    found = _literal(given, name, False)
    if type(found) is not bool:
        raise ParseError(f"{name} is True or False")
    return found


def _numbers(given: dict[str, Any], name: str, otherwise: list[int] | None = None) -> list[int]:
    found = _literal(given, name, otherwise)
    if not isinstance(found, list | tuple) or not all(type(each) is int for each in found):
        raise ParseError(f"{name} is a list of numbers")
    if any(abs(each) > 1 << 20 for each in found):
        raise ParseError(f"{name} has a number that is too large")
    return list(found)


def _lists(given: dict[str, Any], name: str) -> list[list[int]]:
    found = _literal(given, name, [])
    right = isinstance(found, list) and all(
        isinstance(base, list | tuple) and all(type(n) is int for n in base) for base in found
    )
    if not right:
        raise ParseError(f"{name} are lists of coordinates")
    assert isinstance(found, list)
    return [list(base) for base in found]
