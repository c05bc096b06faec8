"""Fragments as people write them: Triton's bases and layout objects, names, CuTe's TV layouts.

    >>> read_fragment("(32,5):(5,1)").elements[0, 1].tolist()
    [5, 6, 7, 8, 9]

Nothing that is given is run: a call is parsed, and only numbers, lists and calls of known names are
taken from it.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from warploom.errors import CheckError, ParseError, spelled
from warploom.layout.conversion.fragment import (
    LANES,
    Fragment,
    blocked,
    check_fragment,
    mma_operand,
    mma_result,
)
from warploom.layout.formats.cute_tiled import is_tiled, read_tiled
from warploom.layout.formats.encoding import linear_of
from warploom.layout.formats.given import given_layout
from warploom.layout.formats.mlir import Attribute, read_attribute
from warploom.layout.formats.shared_text import OF_BLOCKS
from warploom.layout.formats.triton import Bases, read_bases
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.expression import sizes_of

MOST_TEXT = 4000
_ADVICE = (
    'write {"register": [[0, 1]], "lane": …}, blocked([1, 4], [8, 4], [1, 1], [1, 0]), '
    "mma_a(2), mma_b(2), mma_c(), or a layout of threads and values as CuTe has it, (32,4):(4,1)"
)


def read_fragment(text: str, shape: tuple[int, ...] | None = None) -> Fragment:
    """A fragment in any text that we read."""
    if is_tiled(text):
        return read_tiled(text).fragment(shape)
    if len(text) > MOST_TEXT:
        raise ParseError(f"a text of {len(text)} letters is no fragment")
    if text.lstrip().startswith("{"):
        return from_bases(read_bases(text), shape, text)
    if text.lstrip().startswith("#"):
        if shape is None:
            raise _shapeless("an attribute")
        return from_attribute(read_attribute(text.strip()), shape, text.strip())
    if text.strip().isidentifier():
        raise _unknown(text.strip())
    if "(" in text and text.lstrip()[0].isalpha() and ":" not in text:
        call = _call(text)
        return _named(call, shape)
    return from_threads_and_values(text, shape)


def from_attribute(
    attribute: Attribute, shape: tuple[int, ...], name: str | None = None
) -> Fragment:
    """A register layout of Triton's IR.

    >>> text = "#ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [1, 1], instrShape = [16, 8]}>"
    >>> from_attribute(read_attribute(text), (16, 8)).elements[0, 1].tolist()
    [2, 3, 66, 67]
    """
    return from_bases(linear_of(attribute, shape).lists(), shape, name or str(attribute))


def from_bases(bases: Bases, shape: tuple[int, ...] | None, name: str = "bases") -> Fragment:
    """Triton's linear layout: what each bit of register, lane and warp adds, by exclusive or."""
    known = ("register", "lane", "warp", "block")
    strange = [each for each in bases if each not in known]
    if strange:
        raise CheckError(f"bases of '{strange[0][:20]}'", advice=f"known are {', '.join(known)}")
    if any(any(base) for base in bases.get("block", [])):
        raise CheckError("bases of several blocks", advice="a conversion is within one block")
    given = [base for each in known for base in bases.get(each, [])]
    if not given or len({len(base) for base in given}) != 1:
        raise CheckError("bases are of one number of coordinates, and there is at least one")
    rank = len(given[0])
    if min(min(base, default=0) for base in given) < 0:
        raise CheckError("a base has a coordinate below 0")
    spanned = [int(np.bitwise_or.reduce([base[d] for base in given])) for d in range(rank)]
    if shape is None:
        shape = tuple(1 << number.bit_length() for number in spanned)
    if len(shape) != rank:
        raise CheckError(f"bases of {rank} coordinates, and a tensor of {len(shape)}")
    if len(bases.get("lane", [])) != LANES.bit_length() - 1:
        raise CheckError(f"{len(bases.get('lane', []))} bases of lanes", advice="a warp has five")
    if len(bases.get("warp", [])) > 5 or len(bases.get("register", [])) > 8:
        raise CheckError("more bases than registers or warps may have")
    parts = [[_spread(bases.get(each, []), d) for each in known[2::-1]] for d in range(rank)]
    element, inside = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)
    for size, (warp, lane, register) in zip(shape, parts, strict=True):
        place = warp[:, None, None] ^ lane[:, None] ^ register
        inside = inside & (place < size)
        element = element * size + place
    if not inside.all():
        raise CheckError(f"bases go outside {'×'.join(map(str, shape))}")
    return check_fragment(Fragment(name, shape, element))


def _spread(bases: list[list[int]], dimension: int) -> Numbers:
    found = np.zeros(1, dtype=np.int64)
    for base in bases:
        found = np.concatenate([found, found ^ base[dimension]])
    return found


def from_threads_and_values(text: str, shape: tuple[int, ...] | None) -> Fragment:
    """CuTe's TV layout: (threads, values) → the number of an element.

    With a shape, a number stands for coordinates with the first fastest, as CuTe has it.
    """
    layout = given_layout(text)
    sizes = sizes_of(layout)
    if len(sizes) != 2 or sizes[0] % LANES:
        raise CheckError(
            f"'{text[:60]}' has sizes {sizes}",
            advice=f"a layout of threads and values has two, the first a multiple of {LANES}",
        )
    numbers = values(layout).reshape(sizes[::-1]).T  # [thread, value]
    if shape is None:
        shape = (int(numbers.max()) + 1,)
    if int(numbers.max()) >= math.prod(shape):
        raise CheckError(f"'{text[:60]}' names element {int(numbers.max())} of {math.prod(shape)}")
    order = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    elements = order.T.ravel()[numbers]
    return check_fragment(Fragment(text, shape, elements.reshape(-1, LANES, sizes[1])))


# -- calls -----------------------------------------------------------------------------------------


def _call(text: str) -> ast.Call:
    try:
        found = ast.parse(text.strip().replace("-", "_"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Name):
        raise ParseError(f"'{text[:60]}' is no register layout", advice=_ADVICE)
    return found


# Each name with its parameters, in order, under the names that Gluon gives them and ours.
_PARAMETERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "BlockedLayout": (
        ("size_per_thread", "size"), ("threads_per_warp", "lanes"), ("warps_per_cta", "warps"),
        ("order",),
    ),
    "NVMMADistributedLayout": (("version",), ("warps_per_cta", "warps"), ("instr_shape",)),
    "DotOperandLayout": (("operand_index",), ("parent",), ("k_width", "k")),
    "DistributedLinearLayout": (
        ("reg_bases",), ("lane_bases",), ("warp_bases",), ("block_bases",), ("shape",),
    ),
    "mma_c": (("warps",),),
    "mma_a": (("k",), ("warps",)),
    "mma_b": (("k",), ("warps",)),
}  # fmt: skip
_ALSO = {"blocked": "BlockedLayout"}


def _named(call: ast.Call, shape: tuple[int, ...] | None) -> Fragment:
    name = _ALSO.get(_name(call), _name(call))
    given = _arguments(call, name)
    if name == "DistributedLinearLayout":
        return _linear(given)
    if shape is None:
        raise _shapeless(_name(call))
    match name:
        case "BlockedLayout":
            lists = [_numbers(given, names[0]) for names in _PARAMETERS[name]]
            return blocked(shape, *lists)
        case "NVMMADistributedLayout":
            return mma_result(shape, _mma_warps(given))
        case "mma_c":
            return mma_result(shape, _numbers(given, "warps", [1, 1]))
        case "DotOperandLayout":
            parent = given.get("parent")
            if not isinstance(parent, ast.Call) or _name(parent) != "NVMMADistributedLayout":
                raise ParseError("a DotOperandLayout of something else than mma")
            warps = _mma_warps(_arguments(parent, _name(parent)))
            return mma_operand(
                shape, _number(given, "operand_index"), _number(given, "k_width"), warps
            )
        case _:
            which = 0 if name == "mma_a" else 1
            return mma_operand(
                shape, which, _number(given, "k", 2), _numbers(given, "warps", [1, 1])
            )


def _shapeless(name: str) -> ParseError:
    advice = f"give {spelled('--shape 32x32', 'shape=(32, 32)')}"
    return ParseError(f"{name} does not say the shape", advice=advice)


def _linear(given: dict[str, Any]) -> Fragment:
    bases = {
        name: _lists(given, f"{short}_bases")
        for name, short in (
            ("register", "reg"), ("lane", "lane"), ("warp", "warp"), ("block", "block")
        )
    }  # fmt: skip
    return from_bases(bases, tuple(_numbers(given, "shape")), "bases")


def _mma_warps(given: dict[str, Any]) -> list[int]:
    if _numbers(given, "version", [2, 0])[0] != 2 or _numbers(given, "instr_shape", [16, 8]) != [
        16, 8,
    ]:  # fmt: skip
        raise ParseError("mma layouts are of version 2, of 16×8", advice="wgmma: write its bases")
    return _numbers(given, "warps_per_cta")


def _name(call: ast.Call) -> str:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in _PARAMETERS and name not in _ALSO:
        raise _unknown(name)
    return name


def _unknown(name: str) -> ParseError:
    return ParseError(f"no register layout is called '{name[:40]}'", advice=_ADVICE)


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
        if (
            names is None
            and keyword.arg in OF_BLOCKS
            and not _literal({keyword.arg: keyword.value}, keyword.arg, None)
        ):
            continue  # a layout of one block prints what it does not have
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
