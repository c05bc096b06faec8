"""Random texts of layouts as other tools have them: each is read, written and read again.

`FORMATS` has a maker of texts for each format. What is read again must be the same, element by
element; a damaged text must be refused at its place, or be another layout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from bench.common.layout import attributes
from bench.common.layout.spellings import random_layout

from warploom.errors import WarploomError
from warploom.layout.conversion.fragment import Fragment
from warploom.layout.formats.cute_tiled import OPERANDS
from warploom.layout.formats.descriptor import MOST, SPANS, UNIT, Descriptor, read_descriptor
from warploom.layout.formats.encoding import linear_of
from warploom.layout.formats.export import exported_to
from warploom.layout.formats.fragment_out import write_fragment
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.formats.given import given_layout
from warploom.layout.formats.gluon import write_object
from warploom.layout.formats.mlir import Attribute
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.ir import Layout
from warploom.layout.language.parse import parse
from warploom.layout.language.show import show

MOST_ELEMENTS, MOST_REGISTER_BITS = 8192, 7  # two blocks have twice as many
Random: TypeAlias = np.random.Generator
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Made:
    """A text, what reads it, what writes what was read, and its kind."""

    kind: str
    text: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def same(one: Any, two: Any) -> bool:
    if isinstance(one, Layout):
        return sizes_of(one) == sizes_of(two) and np.array_equal(values(one), values(two))
    if isinstance(one, Fragment):
        return np.array_equal(one.elements, two.elements) and one.blocks == two.blocks
    return bool(one == two)


def _some(random: Random, *choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def power(random: Random, most: int, least: int = 0) -> int:
    return 1 << int(random.integers(least, most + 1))


def shape_of(random: Random, rank: int, most: int = 4) -> Shape:
    return tuple(power(random, most) for _ in range(rank))


def invertible(random: Random, bits: int) -> list[int]:
    """Columns of a bijective matrix over F2."""
    columns = [1 << bit for bit in random.permutation(bits).tolist()]
    for _ in range(2 * bits if bits > 1 else 0):
        to, by = random.choice(bits, 2, replace=False).tolist()
        columns[to] ^= columns[by]
    return columns


def coordinates(number: int, shape: Shape) -> list[int]:
    found = []
    for size in shape:
        found.append(number % size)
        number //= size
    return found


# -- CuTe ------------------------------------------------------------------------------------------


def cute_types(random: Random) -> Made:
    """Types as compilers print them and people write them; also swizzles that count bytes, with
    `smem_ptr_flag_bits`, and negative strides."""
    modes = [(power(random, 4, 1), _some(random, 0, 1, 2, 8, 24, 64)) for _ in range(3)]
    if random.random() < 0.2:
        modes[0] = (modes[0][0], -modes[0][1])
    prefix = _some(random, "", "cute::")
    number = _some(random, "Int<{}>", "_{}", "C<{}>")

    def told(value: int) -> str:
        said = number.format(value)
        return prefix + (said if value >= 0 else said.replace("_-", "_m"))

    def tree(word: str, at: int) -> str:
        inner = [told(mode[at]) for mode in modes]
        nested = f"{prefix}{word}<{inner[1]}, {inner[2]}>"
        return f"{prefix}{word}<{inner[0]},{_some(random, '', ' ')}{nested}>"

    text = f"{prefix}Layout<{tree('Shape', 0)}, {tree('Stride', 1)}>"
    kind = "strides"
    lowest = min(step * (size - 1) for size, step in modes)
    if lowest >= 0 and random.random() < 0.6:
        kind, bits = "swizzle", int(random.integers(1, 4))
        middle = told(int(random.integers(0, 3)) * 8)
        if random.random() < 0.4:
            kind, middle = "flag", f"{prefix}smem_ptr_flag_bits<{_some(random, 8, 16, 32)}>"
        text = f"{prefix}ComposedLayout<{prefix}Swizzle<{bits},{_some(random, 4, 5)},3>, {middle}, "
        text += f"{prefix}Layout<{tree('Shape', 0)}, {tree('Stride', 1)}>>"
    if random.random() < 0.3:
        text = f"// a tile\nusing tile = {text};"
    return Made(kind, text, given_layout, lambda layout: exported_to(layout, "cute", "tile", 2))


def tiled(random: Random) -> Made:
    """TiledCopy and operands of TiledMMA as CuTe prints them."""
    if random.random() < 0.5:
        width = power(random, 3)
        across = power(random, 5)
        along = 32 * power(random, 2) // min(32, across)
        rows, columns = along * power(random, 1), across * width
        times = rows // along
        strides = f"((_{rows * width},_1),(_{rows},_{along}))"
        text = f"""TiledCopy
  Tiler_MN:       (_{rows},_{columns})
  TiledLayout_TV: ((_{across},_{along}),(_{width},_{times})):{strides}
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_{width}):(_0,_1)
  ValLayoutDst: (_1,_{width}):(_0,_1)
  ValueType:    {_some(random, 8, 16, 32)}b
"""
        return _registers(random, "TiledCopy", text, None, 32)
    warps = (power(random, 1), power(random, 1))
    deep = _some(random, 8, 16)
    half = deep // 8
    own = f"""TiledMMA
  ThrLayoutVMNK:  (_32,_{warps[0]},_{warps[1]},_1):(_1,_32,_{32 * warps[0]},_0)
  PermutationMNK: (_,_,_)
MMA_Atom
  ThrID:      _32:_1
  Shape_MNK:  (_16,_8,_{deep})
  LayoutA_TV: ((_4,_8),(_2,_2,_{half})):((_32,_1),(_16,_8,_128))
  LayoutB_TV: ((_4,_8),(_2,_{half})):((_16,_1),(_8,_64))
  LayoutC_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
"""
    operand = _some(random, *OPERANDS)
    sizes = {
        "A": (16 * warps[0], deep), "B": (8 * warps[1], deep), "C": (16 * warps[0], 8 * warps[1]),
    }[operand]  # fmt: skip
    shape = tuple(size * power(random, 1) for size in sizes)
    return _registers(random, f"{operand} of TiledMMA", f"{operand} of {own}", shape, 32)


# -- TileLang --------------------------------------------------------------------------------------


def tilelang(random: Random) -> Made:
    """Layouts of every kind, as functions of one to four coordinates; and as people write them."""
    kind = int(random.integers(5))
    rows, columns = power(random, 5, 3), power(random, 6, 4)
    match kind:
        case 0:
            text = _written(show(random_layout(random)))
        case 1:
            sizes = tuple(int(n) for n in random.integers(1, 9, int(random.integers(1, 5))))
            steps = random.permutation(len(sizes)).tolist()
            strides = [0] * len(sizes)
            unit = 1
            for mode in steps:
                strides[mode], unit = unit, unit * (sizes[mode] + int(random.integers(0, 3)))
            text = _written(f"({','.join(map(str, sizes))},):({','.join(map(str, strides))},)")
        case 2:
            bits = rows.bit_length() + columns.bit_length() - 2
            matrix = ",".join(map(str, invertible(random, bits)))
            text = _written(f"F2[{matrix}] o ({rows},{columns}):({columns},1)")
        case 3:
            part = power(random, 3, 1)
            inner = _some(random, f"pad<{columns},{part}>", f"rotate<{columns},{columns},{part},1>",
                          f"tile<{columns},{rows},{columns // 2}>")  # fmt: skip
            text = _written(f"{inner} o ({rows},{columns}):({columns},1)")
        case _:
            vector = power(random, 3)
            i, j = _some(random, ("i", "j"), ("row", "col"))
            text = _some(
                random,
                f"[{i}, {j} ^ {i} % {columns // vector} * {vector}]",
                f"({j} // {vector} ^ {i} % {columns // vector}) * {vector} + {j} % {vector} "
                f"+ {i} * {columns}",
                f"[{j} // {vector}, {i}, {j} % {vector}]",
                f"{i} * {columns + vector} + {j}",
            )
            sizes = _some(random, f"({rows}, {columns})", f"[{rows}, {columns}]")
            module = _some(random, "T.", "tilelang.layout.", "")
            text = f"{module}Layout({sizes}, lambda {i}, {j}: {text})"
    names = ("random", "strides", "matrix", "by rows", "as written")
    return Made(
        names[kind], text, given_layout, lambda found: exported_to(found, "tilelang", "t", 4)
    )


def _written(text: str) -> str:
    return exported_to(parse(text), "tilelang", "tile", 4)


# -- Triton ----------------------------------------------------------------------------------------


def offset_bases(random: Random) -> Made:
    """Bases of offsets, as JSON and as Python prints them; zeros where a bit is unused."""
    shape = shape_of(random, int(random.integers(1, 5)))
    bits = sum(size.bit_length() - 1 for size in shape)
    bases = [coordinates(number, shape) for number in invertible(random, bits)]
    gaps = int(random.integers(0, 3)) if random.random() < 0.3 and bits else 0
    for _ in range(gaps):
        bases.insert(int(random.integers(len(bases))), [0] * len(shape))
    text = str({"offset": bases})
    text = text.replace("'", '"') if random.random() < 0.5 else text

    def write(layout: Layout) -> str:
        return exported_to(layout, "triton", "t", 4)

    kind = f"{gaps} unused bits" if gaps else "whole"
    return Made(kind, text, lambda text: given_layout(text, shape), write)


def register_bases(random: Random) -> Made:
    """Bases of registers, lanes and warps in any order: elements may be held many times."""
    shape = shape_of(random, int(random.integers(1, 4)), 5)
    counts = {
        "register": int(random.integers(0, 6)), "lane": _some(random, 5, 6),
        "warp": int(random.integers(0, 4)),
    }  # fmt: skip
    if random.random() < 0.2:
        counts.pop(_some(random, "register", "warp"))
    bases = {
        name: [[int(random.integers(size)) for size in shape] for _ in range(count)]
        for name, count in counts.items()
    }
    lanes = 1 << counts["lane"]
    return _registers(random, "bases", str(bases), shape, lanes, "triton")


# -- Gluon -----------------------------------------------------------------------------------------


def gluon_shared(random: Random) -> Made:
    """Objects of shared memory, for one block and for several."""
    attribute, shape = attributes.shared_attribute(random)
    if attribute.name == "ttg.padded_shared":  # paddings are powers of two there
        said: Any = attribute.places[0]
        pairs: Any = [[each[0], power(random, 3)] for each in said]
        attribute = Attribute(attribute.name, attribute.fields, (pairs,))
    attribute, shape = _of_blocks(random, attribute, shape)
    bits = attribute.fields.get("elementBitWidth", 16)
    text = _as_in_programs(random, write_object(attribute, shape))
    size = int(bits) // 8  # type: ignore[arg-type]

    def write(layout: Layout) -> str:
        return exported_to(layout, "gluon", "tile", size)

    part = linear_of(attribute, shape).of_one_block().shape

    def read(text: str) -> Layout:
        of_part = text.startswith("tile = ") and text != made
        return given_layout(text, part if of_part else shape, size)

    made = text
    return Made(text.partition("(")[0].split(".")[-1].split(" ")[-1], text, read, write)


def gluon_registers(random: Random) -> Made:
    """Objects of registers, of NVIDIA and AMD."""
    attribute, shape = _of_blocks(random, *_that_fits(random))
    text = _as_in_programs(random, write_object(attribute, shape))
    lanes = 1 << len(linear_of(attribute, shape).bases["lane"])
    return _registers(random, text.partition("(")[0].split(".")[-1].split(" ")[-1], text, shape,
                      lanes, "gluon")  # fmt: skip


def _that_fits(random: Random) -> tuple[Attribute, Shape]:
    """A register layout of which a thread has no more registers than there are."""
    while True:
        make = _some(random, attributes.register_attribute, attributes.amd_attribute)
        attribute, shape = make(random)
        if prod(shape) <= MOST_ELEMENTS:
            linear = linear_of(attribute, shape)
            if len(linear.bases["register"]) <= MOST_REGISTER_BITS:
                return attribute, shape


def _of_blocks(random: Random, attribute: Attribute, shape: Shape) -> tuple[Attribute, Shape]:
    """The same for two blocks that share the tensor, or hold the same."""
    shared = ("ttg.swizzled_shared", "ttg.nvmma_shared", "ttg.blocked", "ttg.nvidia_mma")
    if attribute.name not in shared or random.random() < 0.7:
        return attribute, shape
    dimension = int(random.integers(len(shape)))
    base = [int(d == dimension) for d in range(len(shape))]
    whole = tuple(size * (1 + n) for size, n in zip(shape, base, strict=True))
    if random.random() < 0.2:
        base, whole = [0] * len(shape), shape
    fields = attribute.fields | {"CGALayout": [[*base]]}
    return Attribute(attribute.name, fields, attribute.places), whole


def _as_in_programs(random: Random, text: str) -> str:
    """An object as it prints, or as a program may have it."""
    if random.random() < 0.3:
        name, _, rest = text.partition("(")
        text = name + "(" + rest.replace("=[]", "=()")
    if random.random() < 0.3:
        text = text.replace(", ", ",  # as it is\n    ", 1)
    return _some(random, "", "gl.", "ttgl.", "smem = gl.", "layout = ") + text


def _registers(
    random: Random, kind: str, text: str, shape: Shape | None, lanes: int, how: str = "cute"
) -> Made:
    """Read as registers; written in the words of `how`, or of any where those are none for it."""

    def write(found: Fragment) -> str:
        try:
            return write_fragment(found, how)
        except WarploomError:
            return write_fragment(found, "triton")

    def read(text: str) -> Fragment:
        """What is written again is of the tensor that was read."""
        known = shape if shape is not None or text == made else first.shape
        return read_fragment(text, known, lanes)

    made, first = text, read_fragment(text, shape, lanes)
    return Made(kind, text, read, write)


# -- wgmma -----------------------------------------------------------------------------------------


def descriptors(random: Random) -> Made:
    """The 64 bits as a number, as CuTe prints them, and as mode and offsets."""
    leading, stride, start = (int(n) * UNIT for n in random.integers(0, MOST // UNIT, 3))
    start *= random.random() < 0.5
    found = Descriptor(_some(random, *SPANS), leading, stride, start)
    names = {"none": "INTERLEAVE", "128B": "B128", "64B": "B64", "32B": "B32"}
    printed = (
        f"GmmaDescriptor: {found.bits:#018x}\n  start_addr :  {start // UNIT:#06x}\n"
        f"  leading_off:  {leading // UNIT:#06x} ({leading // UNIT})\n"
        f"  stride_off :  {stride // UNIT:#06x} ({stride // UNIT})\n  base_offset:  0x0\n"
        f"  layout_type:  {found.bits >> 62:#x} ({names[found.mode]})\n"
    )
    forms = {
        "hexadecimal": hex(found.bits) + _some(random, "", "ull", "UL"),
        "decimal": str(found.bits), "printed": printed, "offsets": str(found),
    }  # fmt: skip
    kind = _some(random, *forms)
    made = Made(kind, forms[kind], read_descriptor, _some(random, str, lambda d: hex(d.bits)))
    if read_descriptor(made.text) != found:
        raise AssertionError(made.text)
    return made


FORMATS: dict[str, Callable[[Random], Made]] = {
    "CuTe types": cute_types,
    "TiledCopy and TiledMMA": tiled,
    "TileLang": tilelang,
    "bases of offsets": offset_bases,
    "bases of registers": register_bases,
    "Gluon's shared layouts": gluon_shared,
    "Gluon's register layouts": gluon_registers,
    "descriptors of wgmma": descriptors,
}


def round_trips(name: str, count: int, seed: int = 5) -> dict[str, int]:
    """So many texts of a format, by kind; each is read, written and read again."""
    random, seen = np.random.default_rng(seed), Counter[str]()
    for _ in range(count):
        made = FORMATS[name](random)
        first = made.read(made.text)
        written = made.write(first)
        assert same(made.read(written), first), (made.text, written)
        seen[made.kind] += 1
    return dict(sorted(seen.items()))


def damaged(name: str, count: int, seed: int = 6) -> dict[str, int]:
    """Texts with a letter changed, dropped or doubled: refused at a place, or another layout."""
    random, seen = np.random.default_rng(seed), Counter[str]()
    for _ in range(count):
        made = FORMATS[name](random)
        at = int(random.integers(len(made.text)))
        with_ = _some(random, "", made.text[at] * 2, chr(int(random.integers(32, 127))))
        text = made.text[:at] + with_ + made.text[at + 1 :]
        try:
            made.read(text)
            found = "a layout"
        except WarploomError as error:
            found = "refused" if error.span is not None else f"without a place: {text}"
        seen[found] += 1
    assert set(seen) <= {"a layout", "refused"}, seen
    return dict(seen)


def judged(name: str, count: int, spoiled: int) -> dict[str, Any]:
    """Both for one format, as a process of a farm does it."""
    kinds = round_trips(name, count)
    refused = damaged(name, spoiled)["refused"]
    return {"kinds": kinds, "different": 0, "damaged": spoiled, "refused": refused}
