"""Descriptors of wgmma: what they read, as the emulator has it and as CuTe prints it."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.errors import WarploomError
from warploom.layout.formats.descriptor import (
    MAJORS,
    SPANS,
    Descriptor,
    Major,
    operand_layout,
    places,
    read_descriptor,
    reading_of,
)
from warploom.layout.formats.given import given_layout
from warploom.layout.language.evaluate import values
from warploom.layout.language.ir import Compose, Layout, Swizzle, Tile
from warploom.ptx.emulate.warpgroup import offsets

PRINTED = """GmmaDescriptor: 0x4000004000010000
  start_addr :  0x0000
  leading_off:  0x0001 (1)
  stride_off :  0x0040 (64)
  base_offset:  0x0
  layout_type:  0x1 (B128)
"""


def random_descriptor(draw: np.random.Generator) -> Descriptor:
    leading, stride, start = (int(n) * 16 for n in draw.integers(0, 1 << 10, 3))
    return Descriptor(str(draw.choice(list(SPANS))), leading, stride, start)


def test_places_are_those_that_the_emulator_reads() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        descriptor, size = random_descriptor(draw), int(draw.choice([1, 2, 4]))
        for major in MAJORS:
            rows, depth = int(draw.choice([8, 64, 256])), 32 // size
            seen = offsets(descriptor.bits, np.arange(rows), depth, size, major == "mn")
            assert np.array_equal(places(descriptor, rows, depth, size, major), seen)


def test_texts_round_trip() -> None:
    draw = np.random.default_rng(1)
    for _ in range(200):
        descriptor = random_descriptor(draw)
        assert read_descriptor(str(descriptor)) == descriptor
        assert read_descriptor(hex(descriptor.bits)) == descriptor
        assert read_descriptor(f"{descriptor.bits}ull") == descriptor
    assert read_descriptor(PRINTED) == Descriptor("128B", 16, 1024)


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize("mode", SPANS)
def test_layouts_are_the_places(mode: str, major: Major) -> None:
    """CuTe's canonical layouts, element by element."""
    for size in (1, 2, 4) if major == "k" else (2,):
        depth, descriptor = 32 // size, Descriptor(mode, 4096, 1024)
        for rows in (8, 64, 256):
            found = values(operand_layout(descriptor, (rows, depth), size, major))
            seen = places(descriptor, rows, depth, size, major)
            assert np.array_equal(found.reshape(depth, rows).T * size, seen), (rows, size)


def tiled(rows: int, columns: int, height: int, span: int, size: int) -> Layout:
    """Blocks of swizzled rows, one after another."""
    bits, width = (span // 16).bit_length() - 1, span // size
    tile = Tile(columns, height, width)
    return Compose(Swizzle(bits, 5 - size.bit_length(), 3), tile) if bits else tile


@pytest.mark.parametrize("major", MAJORS)
def test_a_tile_in_blocks_is_read_by_descriptors(major: Major) -> None:
    from warploom.layout.language.evaluate import extended

    seen = 0
    for span in (16, 32, 64, 128):
        for shape, rows in (((64, 128), 64), ((128, 64), 128), ((256, 64), 64)):
            sides = shape if major == "k" else shape[::-1]
            for height in (8, 64, sides[0]):
                layout = tiled(*sides, height, span, 2)
                addresses = extended(layout, np.arange(sides[0] * sides[1]))
                found = reading_of(addresses, sides, 2, rows, major)
                if found is None:
                    assert height not in (8, sides[0]), (span, sides, height)
                    continue
                seen += 1
                table = addresses.reshape(sides) * 2
                tile = table if major == "k" else table.T
                for (i, j), start in np.ndenumerate(np.array(found.starts)):
                    one = Descriptor(
                        found.descriptor.mode, found.descriptor.leading, found.descriptor.stride,
                        int(start),
                    )  # fmt: skip
                    wanted = tile[i * rows : (i + 1) * rows, j * 16 : (j + 1) * 16]
                    got = offsets(one.bits, np.arange(rows), 16, 2, major == "mn")
                    assert np.array_equal(got, wanted)
    assert seen > 25


def test_rows_as_they_are_have_no_descriptor() -> None:
    assert reading_of(np.arange(64 * 64), (64, 64), 2, 64, "k") is None
    assert reading_of(np.arange(64 * 48), (64, 48), 1, 64, "k") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wgmma<96B,16,1024>", "is no descriptor"),
        ("wgmma<128B,17,1024>", "leading of a descriptor: 17 bytes"),
        ("0x0002000000000000", "base offset"),
        ("99999999999999999999", "64 bits"),
        ("0800", "is no descriptor"),
        ("GmmaDescriptor: 0x0", "is no descriptor"),
        ("hello", "is no descriptor"),
        ("0x4000404000010000", "bits that wgmma's have not: 46"),
        ("0x4010004000018000", "bits that wgmma's have not: 15, 52"),
        (PRINTED.replace("(64)", "(64) and more"), "is no field"),
        (PRINTED.replace("stride_off", "stride"), "is no field"),
        (PRINTED + "  start_addr :  0x0001\n", "is no field"),
        (PRINTED.replace("  stride_off :  0x0040 (64)\n", ""), "stride_off should be there"),
        (PRINTED.replace("0x0040", "0x0041"), "and its fields differ"),
        (PRINTED.replace("B128", "B64"), "and its fields differ"),
    ],
)
def test_bad_descriptors(text: str, said: str) -> None:
    with pytest.raises(WarploomError, match=said):
        read_descriptor(text)


@pytest.mark.parametrize(
    ("text", "shape", "size", "said"),
    [
        ("wgmma<128B,16,1024>", (64, 64), None, "counts bytes"),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, elementBitWidth = 16}>", (64, 64), 4,
         "of 16 bits, and an element has 32"),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)", (8, 64), 4, "elements of 16 bits"),
        ("S<3,3,3> o (8,64):(64,1)", (16, 64), 2, "the layout is of 8×64 elements"),
        ("T.Layout((8, 64), lambda i, j: (i, j))", (64, 8), None, "of 8×64 elements"),
    ],
)  # fmt: skip
def test_a_text_and_its_tensor_agree(
    text: str, shape: tuple[int, ...], size: int | None, said: str
) -> None:
    with pytest.raises(WarploomError, match=said):
        given_layout(text, shape, size)


def test_what_one_descriptor_cannot_read() -> None:
    for descriptor, shape, size, major, said in (
        (Descriptor("64B", 16, 512), (64, 64), 2, "k", "another start"),
        (Descriptor("128B", 16, 512), (64, 64), 1, "mn", "16 bits"),
        (Descriptor("128B", 16, 512), (60, 64), 2, "k", "whole pieces"),
        (Descriptor("128B", 16, 512), (60, 64, 2), 2, "k", "of a matrix"),
    ):
        with pytest.raises(WarploomError, match=said):
            operand_layout(descriptor, shape, size, major)  # type: ignore[arg-type]
