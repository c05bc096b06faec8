"""Shared layouts as Triton and Gluon write them: calls with their parameters, as an object prints.

Nothing that is given is run: a call is parsed, and only numbers, truths and lists are taken.
"""

from __future__ import annotations

import ast
import re

from warploom.errors import CheckError, spelled
from warploom.layout.formats.encoding_shared import shared_layout
from warploom.layout.formats.gluon import object_of
from warploom.layout.formats.linear import part_by_units, part_of_a_block
from warploom.layout.formats.mlir import Attribute, Value
from warploom.layout.formats.python_call import Call, called, parse_call
from warploom.layout.formats.triton import (
    ATOM_ROWS,
    from_offset_bases,
    nvmma_shared,
    padded_bases,
    padded_shared,
    swizzled_shared,
)
from warploom.layout.language.ir import Layout

MOST_NUMBER = 10**6
# What says how several blocks share a tensor: one block has none of it.
OF_BLOCKS = ("ctas_per_cga", "cta_split_num", "cta_order", "cga_layout", "block_bases")
_PADDED, _NVMMA = "PaddedSharedLayout", "NVMMASharedLayout"
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "SwizzledSharedLayout": ("vec", "per_phase", "max_phase", "order", "cga_layout"),
    _NVMMA: (
        "swizzle_byte_width", "element_bitwidth", "rank", "transposed", "fp4_padded", "cga_layout",
    ),
    f"{_NVMMA}.get_default_for": (
        "block_shape", "dtype", "transposed", "fp4_padded", "cga_layout",
    ),
    _PADDED: ("interval_padding_pairs", "offset_bases", "cga_layout", "shape"),
    f"{_PADDED}.with_identity_for": ("interval_padding_pairs", "shape", "order", "cga_layout"),
    "SharedLinearLayout": ("offset_bases", "block_bases", "alignment"),
}  # fmt: skip
_ONE_PAIR = ("interval", "padding")  # a PaddedSharedLayout of one pair, for short
_ALSO = {"swizzled": "SwizzledSharedLayout"}
_MODES = (128, 64, 32)


def read_call(text: str, shape: tuple[int, ...] | None, element_bytes: int | None) -> Layout | None:
    """A shared layout by its parameters; None if it is none. Some say the shape themselves.

    >>> from warploom.layout.language.show import show
    >>> show(read_call("SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8)", (8, 64), 2))
    'S<3,3,3> o (8,64):(64,1)'
    """
    name = _ALSO.get(called(text), called(text))
    if name not in _PARAMETERS:
        return None
    given = _Given(parse_call(text, "call", f"write {name}(…)"), name)
    shape = shape or given.own_shape()
    if shape is None:
        given.call.fail(
            f"{name} does not say the shape",
            advice=f"give {spelled('--shape 64x64', 'shape=(64, 64)')}",
        )
    if name in (f"{_NVMMA}.get_default_for", f"{_PADDED}.with_identity_for"):
        return _made(given, shape, element_bytes)
    if given.is_of_attribute():
        if name == _NVMMA and "element_bitwidth" in given.nodes:
            bits = given.number("element_bitwidth")
            _check_bits(given, "element_bitwidth", bits, element_bytes)
        return shared_layout(object_of(given.call), shape)
    match name:
        case "SwizzledSharedLayout":
            vec, phase, phases = (given.number(each) for each in _PARAMETERS[name][:3])
            return swizzled_shared(shape, vec, phase, phases, given.numbers("order"))
        case "NVMMASharedLayout":
            return _nvmma(shape, given, element_bytes)
        case "PaddedSharedLayout":
            return _padded(shape, given)
        case _:
            return from_offset_bases(given.lists("offset_bases"), shape)


class _Given:
    """What a call was given, by the names of its parameters."""

    def __init__(self, call: Call, name: str) -> None:
        self.call, self.name = call, name
        order = _PARAMETERS[name]
        also = {each: each for each in OF_BLOCKS}
        if name == _PADDED:
            also |= {each: each for each in _ONE_PAIR}
            if call.node.args and not isinstance(call.node.args[0], ast.List | ast.Tuple):
                order = (*_ONE_PAIR, *order[1:])
        self.nodes = call.arguments(order, also)

    def own_shape(self) -> tuple[int, ...] | None:
        """The shape that the object says itself."""
        said = self.numbers("shape") or self.numbers("block_shape")
        if said is None and self.name == "SharedLinearLayout":
            bases = [*self.lists("offset_bases"), *self.lists("block_bases", [])]
            if len({len(base) for base in bases}) == 1:
                said = [1 << max(each).bit_length() for each in zip(*bases, strict=True)]
        return None if said is None else tuple(said)

    def is_of_attribute(self) -> bool:
        """Whether the object is what an attribute of Triton's IR alone says: blocks that share the
        tile, no swizzle, room beside elements of 4 bits."""
        if self.name == _PADDED:
            return False
        several = any(self._said(each) for each in OF_BLOCKS)
        plain = "swizzle_byte_width" in self.nodes and self.number("swizzle_byte_width") == 0
        return several or plain or self.truth("fp4_padded")

    def _said(self, key: str) -> object:
        return self.call.value(self.nodes[key], key) if key in self.nodes else None

    def number(self, key: str, otherwise: int | None = None) -> int:
        if key not in self.nodes:
            if otherwise is None:
                self.call.fail(f"{self.name} needs {key}")
            return otherwise
        return self.call.number(self.nodes[key], key, MOST_NUMBER)

    def truth(self, key: str) -> bool:
        return key in self.nodes and self.call.truth(self.nodes[key], key)

    def numbers(self, key: str) -> list[int] | None:
        """None, where nothing is given, or None."""
        return None if self._said(key) is None else self.call.numbers(self.nodes[key], key)

    def lists(self, key: str, otherwise: list[list[int]] | None = None) -> list[list[int]]:
        if self._said(key) is None:
            if otherwise is None:
                advice = "[[0, 1], [0, 2], [1, 0]]"
                self.call.fail(f"{self.name} needs {key}", advice=advice)
            return otherwise
        return self.call.lists(self.nodes[key], key)


def _nvmma(shape: tuple[int, ...], given: _Given, element_bytes: int | None) -> Layout:
    width = given.number("swizzle_byte_width")
    bits = given.number("element_bitwidth", 8 * (element_bytes or 4))
    _check_bits(given, "element_bitwidth", bits, element_bytes)
    rank = given.number("rank", len(shape))
    if rank != len(shape):
        raise CheckError(f"{_NVMMA} of {rank} dimensions, and the tensor has {len(shape)}")
    return nvmma_shared(shape, width, bits // 8, transposed=given.truth("transposed"))


def _check_bits(given: _Given, key: str, bits: int, element_bytes: int | None) -> None:
    if bits % 8 or not bits or bits != 8 * (element_bytes or bits // 8):
        said = f"{_NVMMA} of {bits} bits, and an element has {8 * (element_bytes or 4)}"
        raise CheckError(said, given.call.span(given.nodes.get(key)))


def _padded(shape: tuple[int, ...], given: _Given) -> Layout:
    if "interval" in given.nodes:
        pairs = [[given.number(each) for each in _ONE_PAIR]]
    else:
        pairs = given.lists("interval_padding_pairs")
    if not pairs or any(len(each) != 2 or min(each) < 0 for each in pairs):
        node = given.nodes.get("interval_padding_pairs")
        given.call.fail(f"{_PADDED} with {str(pairs)[:40]}", node, "write [[32, 4], [256, 8]]")
    said = tuple(given.numbers("shape") or shape)
    if said != shape:
        given.call.fail(
            f"{_PADDED} of {list(said)}, and the tensor is of {list(shape)}", given.nodes["shape"]
        )
    part, _ = part_by_units(shape, given.lists("cga_layout", []))
    placed = given.lists("block_bases", [])  # of earlier objects, which count elements
    if placed:
        part = part_of_a_block(shape, [tuple(base) for base in placed])
    bases = given.lists("offset_bases", [])
    if not bases:
        return padded_shared(part, *(number for pair in pairs for number in pair))
    return padded_bases(bases, part, pairs)


def _made(given: _Given, shape: tuple[int, ...], element_bytes: int | None) -> Layout:
    """What a function of Gluon makes: elements in an order, with padding; or the widest swizzle
    that a row, and eight rows, have room for."""
    call, said = given.call, given.own_shape()
    if said != shape:
        call.fail(f"{given.name} of {said}, and the tensor is of {shape}")
    found = given.lists("cga_layout", [])
    blocks = _value(found)
    if given.name.startswith(_PADDED):
        order = given.numbers("order") or [*range(len(shape))][::-1]
        padded: dict[str, Value] = {"order": [*order], "shape": [*shape], "CGALayout": blocks}
        pairs = _value(given.lists("interval_padding_pairs"))
        return shared_layout(Attribute("ttg.padded_shared", padded, (pairs,)), shape)
    if "dtype" not in given.nodes:
        call.fail(f"{given.name} needs dtype")
    bits = _bits_of(call, given.nodes["dtype"])
    _check_bits(given, "dtype", bits, element_bytes)
    turned, wide = given.truth("transposed"), given.truth("fp4_padded")
    part, _ = part_by_units(shape, found)
    sizes = (*part[1:], part[0]) if turned else part
    row, rows = sizes[-1] * (2 if wide else 1) * bits // 8, 1
    for size in sizes[:-1]:
        rows *= size
    fits = [mode for mode in _MODES if row >= mode and row % mode == 0]
    width = fits[0] if fits and len(shape) > 1 and rows >= ATOM_ROWS else 0
    return shared_layout(
        Attribute("ttg.nvmma_shared", {
            "swizzlingByteWidth": width, "transposed": turned, "elementBitWidth": bits,
            "fp4Padded": wide, "CGALayout": blocks,
        }), shape,
    )  # fmt: skip


def _value(lists: list[list[int]]) -> Value:
    return [[*each] for each in lists]


def _bits_of(call: Call, node: ast.expr) -> int:
    """The bits of `gl.float16`, and of `float8e5`, which has them in front."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    found = re.fullmatch(r"[a-z]+?(8|16|32|64)(?:e\d\w*)?", str(name))
    if found is None:
        call.fail("dtype is no type of elements", node, "gl.float16, gl.int8, gl.float8e5 or so")
    return int(found[1])
