"""Texts of others: CuTe's five spellings, Triton's bases and parameters, TMA's modes."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.layout.spellings import round_trips

from warploom.errors import CheckError, ParseError, WarploomError
from warploom.layout.formats.cute import SPELLINGS, read_cute, write_cute
from warploom.layout.formats.given import given_layout
from warploom.layout.formats.tma import MODES, mode_of
from warploom.layout.formats.triton import (
    from_offset_bases,
    nvmma_shared,
    offset_bases,
    padded_shared,
    read_bases,
    swizzled_shared,
)
from warploom.layout.language.build import row_major, swizzled
from warploom.layout.language.evaluate import evaluate, values
from warploom.layout.language.ir import Compose, Matrix, Strided, Swizzle
from warploom.layout.language.recast import to_bytes, to_elements
from warploom.layout.language.show import show

# One layout of 16-bit elements in all spellings; units as each of them counts.
SPELLED = {
    "dsl": "S<3,3,3> o 0 o (8,64):(64,1)",
    "c++": "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
    "pycute": "SW_3_3_3 o 0 o (8, 64):(64, 1)",
    "tensor-layouts": "(Swizzle(3, 3, 3)) o ((8, 64) : (64, 1))",
    "tilelang": "Sw<3,4,3> o 0 o (8,128):(128,1)",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_one_layout_in_five_spellings(spelling: str) -> None:
    layout = swizzled(8, 64, bits=3, base=3, shift=3)
    assert write_cute(layout, spelling, 2) == SPELLED[spelling]
    assert read_cute(SPELLED[spelling], 2) is layout
    assert given_layout(SPELLED[spelling], element_bytes=2) is layout


@pytest.mark.parametrize(
    "text",
    [
        "Sw<3,4,3>_smem_ptr[16b](0x7f8800000400) o (_8,_64):(_64,_1)",
        "Sw<3,4,3>_smem_ptr[16b](SMEM_ADDR_A) o (_8,_64):(_64,_1)",
        "smem_ptr[16b](0x7f8800000400) o Sw<3,3,3> o _0 o (_8,_64):(_64,_1)",
        "ptr[16b](0x758500000400) o Sw<3,3,3> o _0 o (_8,_64):(_64,_1)",
        "(Sw<3,4,3> o smem_ptr[16b](unset)) o (_8,_64):(_64,_1)",
        "cute::ComposedLayout<cute::Swizzle<3,4,3>, cute::smem_ptr_flag_bits<16>, "
        "cute::Layout<cute::tuple<cute::C<8>,cute::C<64>>,cute::tuple<cute::C<64>,cute::C<1>>>>{}",
    ],
)
def test_tensors_as_they_print(text: str) -> None:
    """A swizzle that is part of the pointer counts bytes; one of the layout counts elements."""
    assert show(given_layout(text)) == "S<3,3,3> o (8,64):(64,1)"


def test_without_a_swizzle() -> None:
    layout = Strided((4, (2, 8)), (16, (1, 2)))
    assert write_cute(layout, "c++") == "(_4,(_2,_8)):(_16,(_1,_2))"
    for spelling in SPELLINGS:
        assert np.array_equal(
            values(read_cute(write_cute(layout, spelling, 4), 4)), values(layout)
        ), spelling


def test_texts_round_trip() -> None:
    round_trips(100)


@pytest.mark.slow
def test_ten_thousand_texts_round_trip() -> None:
    round_trips(10_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends where a layout"),
        ("S<3,3,3>", "map of every number|no domain|layout"),
        ("S<3,3> o 0 o (8,64):(64,1)", "3 numbers, not 2"),
        ("Sx<3,3,3> o 0 o (8,64):(64,1)", "no part of a layout"),
        ("Sw<3,4,3> o smem_ptr[6b](unset) o (_8,_64):(_64,_1)", "6 bits"),
        ("Sw<3,4,3>_smem_ptr[8b](0) o ptr[8b](0) o (_8,_64):(_64,_1)", "a second pointer"),
        ("Sw<3,0,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", "parts of elements"),
        ("(8,64):(64,1) o", "ends where a layout"),
        ("(Swizzle(3, 3, 3)) o ((8, 64) : (64, 1)", "'\\)' should stand"),
        ("Sw<3,4,3> o 0 o (8,128):(128,1)", "count bytes"),
        ("(" * 60 + "S<1,1,1> o 8:1" + ")" * 60, "deep"),
        ("S<1,1,1> o " * 150 + "8:1", "one after another"),
        ("(S<1,1,1> o S<1,1,1>) o " * 60 + "8:1", "one after another"),
        ("smem_ptr[16b](0x0)", "no layout"),
    ],
)
def test_bad_texts_are_one_error(text: str, message: str) -> None:
    with pytest.raises(WarploomError, match=message):
        values(read_cute(text))


def test_what_cute_has_no_word_for() -> None:
    with pytest.raises(CheckError, match="CuTe cannot express"):
        write_cute(Compose(Matrix((1, 2, 7, 8), 0), row_major(4, 4)))
    with pytest.raises(WarploomError, match="no spelling"):
        write_cute(row_major(2, 2), "cutlass")


def test_units() -> None:
    layout = swizzled(8, 64, bits=3, base=3, shift=3)
    in_bytes = to_bytes(layout, 2)
    assert to_elements(in_bytes, 2) is layout
    table = values(in_bytes).reshape(128, 8).T  # [row, byte of the row]
    assert np.array_equal(table[:, ::2] // 2, values(layout).reshape(64, 8).T)
    assert np.array_equal(table[:, 1::2], table[:, ::2] + 1)
    with pytest.raises(CheckError, match="no mode of stride 1"):
        to_bytes(Strided(8, 2), 2)
    with pytest.raises(CheckError, match="whole elements"):
        to_elements(Strided((3, 8), (9, 1)), 2)


# -- Triton ----------------------------------------------------------------------------------------


def test_swizzled_shared_layouts_are_their_formula() -> None:
    for vec, per_phase, max_phase in [(8, 1, 8), (4, 2, 4), (8, 4, 2), (1, 1, 32), (8, 1, 1)]:
        layout = swizzled_shared((16, 64), vec, per_phase, max_phase)
        row, column = np.arange(16)[:, None], np.arange(64)[None]
        wanted = row * 64 + (column ^ vec * (row // per_phase % max_phase))
        assert np.array_equal(values(layout).reshape(64, 16).T, wanted)


@pytest.mark.parametrize("shape", [(4, 4, 64), (4, 16, 64), (2, 1, 64), (3, 24, 64), (1, 6, 64)])
def test_matrices_one_after_another_are_swizzled_alike(shape: tuple[int, int, int]) -> None:
    for vec, per_phase, max_phase in [(8, 1, 8), (4, 2, 4), (8, 4, 2), (1, 1, 8)]:
        layout = swizzled_shared(shape, vec, per_phase, max_phase)
        number, row, column = np.indices(shape)
        wanted = (number * shape[1] + row) * 64 + (column ^ vec * (row // per_phase % max_phase))
        assert np.array_equal(values(layout).reshape(shape[::-1]).T, wanted)
    with pytest.raises(CheckError, match="2 matrices of 12 rows"):
        swizzled_shared((2, 12, 64), 8, 1, 8)


def test_columns_that_lie_together_are_swizzled_as_rows_are() -> None:
    rows = values(given_layout("SwizzledSharedLayout(8, 1, 8, [1, 0])", (16, 64), 2))
    columns = values(given_layout("SwizzledSharedLayout(8, 1, 8, [0, 1])", (64, 16), 2))
    assert np.array_equal(rows.reshape(64, 16).T, columns.reshape(16, 64))
    same = given_layout("NVMMASharedLayout(128, 16, 2, transposed=True)", (64, 16), 2)
    assert np.array_equal(values(same), columns)


def test_the_matrix_units_layouts() -> None:
    assert show(nvmma_shared((8, 64), 128, 2)) == "S<3,3,3> o (8,64):(64,1)"
    assert show(nvmma_shared((8, 32), 64, 2)) == "S<2,3,3> o (8,32):(32,1)"
    assert show(nvmma_shared((8, 16), 32, 2)) == "S<1,3,3> o (8,16):(16,1)"
    assert show(padded_shared((8, 16), 16, 4)) == "pad<16,4> o (8,16):(16,1)"


def nvmma_bases(
    shape: tuple[int, ...], width: int, element_bytes: int, transposed: bool
) -> list[list[int]]:
    """Triton's definition: which coordinates lie at the powers of two of an offset. An atom of
    eight swizzled rows; rows of a box, at most 256 along an axis; then boxes, the first axis
    first."""
    columns, vector = width // element_bytes, 16 // element_bytes
    per_phase, phases = {128: (1, 8), 64: (2, 4), 32: (4, 2)}[width]
    together = 0 if transposed else len(shape) - 1
    sides = [min(size, 256) for size in shape]
    sides[together] = columns
    others = [axis for axis in range(len(shape)) if axis != together]
    found = [(0, 1 << bit) for bit in range(columns.bit_length() - 1)]
    rows = int(np.prod([sides[axis] for axis in others]))
    found += [
        (row, vector * (row // per_phase % phases) if row < 8 else 0)
        for row in (1 << bit for bit in range(rows.bit_length() - 1))
    ]
    bases = []
    for row, column in found:
        each = [0] * len(shape)
        each[together] = column
        for axis in others[::-1]:
            row, each[axis] = divmod(row, sides[axis])
        bases.append(each)
    for axis, (size, side) in enumerate(zip(shape, sides, strict=True)):
        bases += [
            [side << bit if other == axis else 0 for other in range(len(shape))]
            for bit in range((size // side).bit_length() - 1)
        ]
    return bases


@pytest.mark.sampled(4)
@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_tiles_wider_than_an_atom_lie_in_blocks(width: int, element_bytes: int) -> None:
    columns = width // element_bytes
    for rows, blocks in ((8, 1), (8, 2), (64, 4), (512, 2)):
        for transposed in (False, True):
            shape = (columns * blocks, rows) if transposed else (rows, columns * blocks)
            text = f"NVMMASharedLayout({width}, {8 * element_bytes}, 2, transposed={transposed})"
            found = offset_bases(given_layout(text, shape, element_bytes))["offset"]
            assert found == nvmma_bases(shape, width, element_bytes, transposed), shape
    for deep in ((2, 8, columns * 2), (1, 512, columns * 2)):
        found = offset_bases(nvmma_shared(deep, width, element_bytes))["offset"]
        assert found == nvmma_bases(deep, width, element_bytes, False), deep


@pytest.mark.parametrize(
    ("shape", "message"),
    [((64, 96), "a row has 192 bytes"), ((4, 128), "do not fill"), ((12, 128), "do not fill")],
)
def test_blocks_that_an_atom_does_not_fill_are_refused(
    shape: tuple[int, int], message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        nvmma_shared(shape, 128, 2)


def test_offset_bases() -> None:
    bases = offset_bases(nvmma_shared((8, 64), 128, 2))
    assert bases["offset"] == [
        [0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32],
    ]  # fmt: skip
    layout = from_offset_bases(bases["offset"], (8, 64))
    assert show(layout) == "S<3,3,3> o (8,64):(64,1)"
    rows = [int(evaluate(Swizzle(3, 3, 3), np.array([64 << bit]))[0]) for bit in range(3)]
    assert rows == [72, 144, 288]
    random = np.random.default_rng(2)
    for _ in range(20):
        while True:
            columns = tuple(int(c) for c in random.integers(1, 64, 6))
            layout = Compose(Matrix(columns, 0), row_major(4, 16))
            if len(np.unique(values(layout))) == 64:
                break
        again = from_offset_bases(offset_bases(layout)["offset"], (4, 16))
        assert np.array_equal(values(again), values(layout))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwizzledSharedLayout(vec=8, per_phase=1)", "needs max_phase"),
        ("SwizzledSharedLayout(8, 1, 8, order=[0, 0])", "the order"),
        ("SwizzledSharedLayout(8, 1, 8, order=5)", "a list of numbers"),
        ("SwizzledSharedLayout(8, 1, 8, [1, 0], 5, 5)", "takes 5 arguments"),
        ("SwizzledSharedLayout(8, 1, True)", "max_phase of .* is True"),
        ("SwizzledSharedLayout(8, 1, eight)", "not made of numbers"),
        ("SwizzledSharedLayout(8, 1", "is no call"),
        ("SwizzledSharedLayout(8, 1, 8, vec=8)", "given twice"),
        ("SwizzledSharedLayout(8, 1, 8, [1, 0], cga_layout=[[3, 0]])", "blocks at"),
        ("PaddedSharedLayout([[32, 4]], cga_layout=[[1]])", "blocks at"),
        ("PaddedSharedLayout(interval_padding_pairs=[[32, 4]], cga_layout=[[1]])", "blocks at"),
        ("NVMMASharedLayout(128, element_bitwidth=32, rank=2)", "of 32 bits"),
        ("NVMMASharedLayout(128, element_bitwidth=16, rank=3)", "of 3 dimensions"),
        ("NVMMASharedLayout(128, 8, 2, fp4_padded=True, rank=9)", "in NVMMA"),
        ("NVMMASharedLayout(128, 16, 2, transposed=True)", "a row has 16 bytes"),
        ("PaddedSharedLayout([[32, 4], [48]])", "<layout>:1:20: .*with"),
        ("PaddedSharedLayout(interval_padding_pairs=[[32, 4], [32, 8]])", "each once"),
        ("PaddedSharedLayout(interval_padding_pairs=[[32, 4, 1]])", "with"),
        ("PaddedSharedLayout(interval_padding_pairs=[[32, 4], [48, 8]])", "power of two"),
        ("PaddedSharedLayout(64, 4, shape=[8, 32])", "the tensor is of"),
        ("SharedLinearLayout(alignment=16)", "needs offset_bases"),
        ("SharedLinearLayout([[0, 1]])", "9 bases are needed"),
        ("SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, ctas=2)", "not understood"),
        ("SwizzledSharedLayout(vec=3, per_phase=1, max_phase=8)", "power of two"),
        ("SwizzledSharedLayout(vec=8, per_phase=1, max_phase=16)", "a row has 64"),
        ("NVMMASharedLayout(swizzle_byte_width=256)", "there are 32, 64 and 128"),
        ('{"lane": [[0, 1]]}', "those of 'offset'"),
        ('{"offset": [[0, 1]]}', "9 bases are needed"),
        ('{"offset": 3}', "lists of coordinates"),
        ('{"offset": [[0, 1]', "JSON"),
    ],
)
def test_bad_parameters_are_one_error(text: str, message: str) -> None:
    with pytest.raises(WarploomError, match=message):
        given_layout(text, (8, 64), 2)


def test_parameters_are_read() -> None:
    for text in (
        "SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])",
        "SwizzledSharedLayout(8, 1, 8)",
        "swizzled(8,1,8)",
        "SwizzledSharedLayout(vec=8, perPhase=1, maxPhase=8)",
        "SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0], cga_layout=())",
        "NVMMASharedLayout(swizzle_byte_width=128)",
        "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2, transposed=False,"
        " fp4_padded=False, ctas_per_cga=None, cta_split_num=None, cta_order=None)",
        "SharedLinearLayout(offset_bases=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8],"
        " [2, 16], [4, 32]], block_bases=[], alignment=16)",
    ):
        assert show(given_layout(text, (8, 64), 2)) == "S<3,3,3> o (8,64):(64,1)"
    with pytest.raises(ParseError, match="does not say the shape"):
        given_layout("swizzled(8,1,8)")
    gaps = "PaddedSharedLayout(interval_padding_pairs=[[64, 4]], offset_bases={}, shape=[8, 64])"
    for bases in ([], offset_bases(row_major(8, 64))["offset"]):
        found = given_layout(gaps.format(bases), (8, 64), 2)
        assert np.array_equal(values(found), values(padded_shared((8, 64), 64, 4)))
    assert read_bases("{'lane': [[0, 1]]}") == {"lane": [[0, 1]]}


# -- TMA -------------------------------------------------------------------------------------------


def test_modes_are_their_masks() -> None:
    byte = np.arange(4096)
    wanted = {
        "none": byte,
        "32B": byte ^ (byte >> 3 & 0x10),
        "64B": byte ^ (byte >> 3 & 0x30),
        "128B": byte ^ (byte >> 3 & 0x70),
        "128B, 32-byte atoms": byte ^ (byte >> 2 & 0x60),
    }
    for mode in MODES:
        assert np.array_equal(evaluate(mode.swizzle, byte), wanted[mode.name])


@pytest.mark.parametrize(
    ("columns", "swizzle", "name"),
    [
        (64, Swizzle(3, 3, 3), "128B"),
        (32, Swizzle(2, 3, 3), "64B"),
        (16, Swizzle(1, 3, 3), "32B"),
        (64, Swizzle(2, 4, 2), "128B, 32-byte atoms"),
        (48, Swizzle(0, 0, 0), "none"),
        (16, Swizzle(2, 3, 3), None),  # rows shorter than the swizzle leave room after them
        (32, Swizzle(3, 3, 3), None),
        (32, Swizzle(2, 4, 2), None),
        (20, Swizzle(0, 0, 0), None),  # 40 bytes
        (512, Swizzle(0, 0, 0), None),  # no box is that wide
        (128, Swizzle(3, 3, 3), None),  # a row is longer than the mode allows
        (64, Swizzle(3, 3, 4), None),
    ],
)
def test_is_a_layout_one_of_the_modes(columns: int, swizzle: Swizzle, name: str | None) -> None:
    found = mode_of(evaluate(swizzle, np.arange(16 * columns)), columns, 2)
    assert (found.name if found else None) == name
