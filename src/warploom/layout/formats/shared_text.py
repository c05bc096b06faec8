"""Shared layouts as Triton and Gluon write them: calls with their parameters, as an object prints.

Nothing that is given is run: a call is parsed, and only numbers, truths and lists are taken.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from warploom.errors import CheckError, ParseError
from warploom.layout.formats.encoding_shared import shared_layout
from warploom.layout.formats.gluon import OBJECTS, read_object
from warploom.layout.formats.linear import part_of_a_block
from warploom.layout.formats.triton import (
    from_offset_bases,
    nvmma_shared,
    padded_bases,
    padded_shared,
    swizzled_shared,
)
from warploom.layout.language.ir import Layout

MOST_NUMBER = 10**6
MOST_TEXT = 4000
_NAME = re.compile(r"\s*(\w+)\s*\(")
# What says how several blocks share a tensor: one block has none of it.
OF_BLOCKS = ("ctas_per_cga", "cta_split_num", "cta_order", "cga_layout", "block_bases")
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "SwizzledSharedLayout": ("vec", "per_phase", "max_phase", "order"),
    "NVMMASharedLayout": (
        "swizzle_byte_width", "element_bitwidth", "rank", "transposed", "fp4_padded",
    ),
    "PaddedSharedLayout": (
        "interval", "padding", "interval_padding_pairs", "offset_bases", "cga_layout", "shape",
    ),
    "SharedLinearLayout": ("offset_bases", "block_bases", "alignment"),
}  # fmt: skip
_ALSO = {"swizzled": "SwizzledSharedLayout"}


def read_call(text: str, shape: tuple[int, ...] | None, element_bytes: int) -> Layout | None:
    """A shared layout by its parameters; None if it is none.

    >>> from warploom.layout.language.show import show
    >>> show(read_call("SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8)", (8, 64), 2))
    'S<3,3,3> o (8,64):(64,1)'
    """
    found = _NAME.match(text)
    name = "" if found is None else _ALSO.get(found[1], found[1])
    if name not in _PARAMETERS:
        return None
    if shape is None:
        raise ParseError(f"{name} does not say the shape", advice="give the pattern it is for")
    given = _arguments(name, text)
    if name in OBJECTS and _is_of_attribute(given):
        return shared_layout(read_object(text), shape)
    match name:
        case "SwizzledSharedLayout":
            vec, phase, phases = (_number(name, given, each) for each in _PARAMETERS[name][:3])
            order = None if given.get("order") is None else _list(name, given["order"])
            return swizzled_shared(shape, vec, phase, phases, order)
        case "NVMMASharedLayout":
            return _nvmma(shape, given, element_bytes)
        case "PaddedSharedLayout":
            return _padded(shape, given)
        case _:
            return from_offset_bases(_bases(name, given), shape)


def _nvmma(shape: tuple[int, ...], given: dict[str, Any], element_bytes: int) -> Layout:
    name = "NVMMASharedLayout"
    width = _number(name, given, "swizzle_byte_width")
    bits = _number(name, given, "element_bitwidth", 8 * element_bytes)
    if bits != 8 * element_bytes:
        raise CheckError(f"{name} of {bits} bits, and an element has {8 * element_bytes}")
    rank = _number(name, given, "rank", len(shape))
    if rank != len(shape):
        raise CheckError(f"{name} of {rank} dimensions, and the tensor has {len(shape)}")
    return nvmma_shared(shape, width, element_bytes, transposed=bool(given.get("transposed")))


def _padded(shape: tuple[int, ...], given: dict[str, Any]) -> Layout:
    name = "PaddedSharedLayout"
    pairs = given.get("interval_padding_pairs")
    if pairs is None:
        pairs = [[_number(name, given, each) for each in ("interval", "padding")]]
    both = [_list(name, each) for each in pairs] if isinstance(pairs, list | tuple) else []
    if not both or any(len(each) != 2 or min(each) < 0 for each in both):
        raise ParseError(f"{name} with {str(pairs)[:40]}", advice="write [[32, 4], [256, 8]]")
    if tuple(_list(name, given.get("shape") or shape)) != shape:
        raise CheckError(f"{name} of {given['shape']}, and the tensor is of {list(shape)}")
    part = _part(name, given, shape)
    if not given.get("offset_bases"):
        return padded_shared(part, *(number for pair in both for number in pair))
    return padded_bases(_bases(name, given), part, both)


def _part(name: str, given: dict[str, Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """What one of several blocks has of a tile; bases of blocks count such parts."""
    blocks = [tuple(_list(name, each)) for each in given.get("cga_layout") or []]
    if any(len(base) != len(shape) or min(base) < 0 for base in blocks):
        raise CheckError(f"{name} with blocks at {str(blocks)[:40]}", advice="write [[0, 1]]")
    found = list(shape)
    for dimension in range(len(shape)):
        found[dimension] >>= max((base[dimension] for base in blocks), default=0).bit_length()
    placed = [tuple(n * size for n, size in zip(base, found, strict=True)) for base in blocks]
    return part_of_a_block(shape, placed)


# -- parameters ------------------------------------------------------------------------------------


def _arguments(name: str, text: str) -> dict[str, Any]:
    """What was given, by name; what stands in order has the names in order."""
    try:
        call = ast.parse(text.strip()[: MOST_TEXT + 1], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or len(text) > MOST_TEXT:
        raise ParseError(f"'{text[:60]}' is no call", advice=f"write {name}(…)")
    names = _PARAMETERS[name]
    if len(call.args) > len(names):
        raise ParseError(f"{name} takes {len(names)} parameters, not {len(call.args)}")
    found = dict(zip(names, (_literal(name, each) for each in call.args), strict=False))
    for keyword in call.keywords:
        key = _same_name(str(keyword.arg), names)
        if key in found or key not in (*names, *OF_BLOCKS):
            raise ParseError(
                f"'{str(keyword.arg)[:40]}' is not understood in {name}",
                advice=f"it takes {', '.join(names)}",
            )
        found[key] = _literal(name, keyword.value)
    return found


def _is_of_attribute(given: dict[str, Any]) -> bool:
    """Whether the object is what an attribute of Triton's IR alone says: blocks that share the
    tile, no swizzle, room beside elements of 4 bits."""
    several = any(given.get(each) for each in OF_BLOCKS)
    return several or given.get("swizzle_byte_width") == 0 or bool(given.get("fp4_padded"))


def _same_name(word: str, names: tuple[str, ...]) -> str:
    """perPhase is per_phase."""
    plain = {each.replace("_", ""): each for each in names}
    return plain.get(word.lower().replace("_", ""), word)


def _literal(name: str, value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise ParseError(f"a parameter of {name} is not made of numbers") from None


def _number(name: str, given: dict[str, Any], key: str, otherwise: int | None = None) -> int:
    found = given.get(key, otherwise)
    if found is None:
        raise ParseError(f"{name} needs {key}")
    if type(found) is not int or not 0 <= found <= MOST_NUMBER:
        raise ParseError(f"{key} = {str(found)[:40]} in {name}", advice="it is a whole number")
    return found


def _list(name: str, found: Any) -> list[int]:
    if not isinstance(found, list | tuple) or not all(type(each) is int for each in found):
        raise ParseError(f"{str(found)[:40]} is no list of numbers in {name}")
    return list(found)


def _bases(name: str, given: dict[str, Any]) -> list[list[int]]:
    found = given.get("offset_bases")
    if not isinstance(found, list | tuple):
        raise ParseError(f"{name} needs offset_bases", advice="[[0, 1], [0, 2], [1, 0]]")
    return [_list(name, each) for each in found]
