"""Layouts in the words of Triton and Gluon, and register layouts in all: read again, the same."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.emit.index_function import exported
from warploom.errors import WarploomError
from warploom.layout.formats.encoding import linear_of
from warploom.layout.formats.fragment_out import FRAGMENT_SPELLINGS, bases_of, write_fragment
from warploom.layout.formats.fragment_text import is_registers, read_fragment
from warploom.layout.formats.given import given_layout
from warploom.layout.formats.gluon import read_object, write_object
from warploom.layout.formats.mlir import read_attribute
from warploom.layout.formats.shared_attribute import attributes_of
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.parse import parse

# A layout, and the attributes that say it.
SAID = [
    ("S<3,3,3> o (64,64):(64,1)", "swizzled_shared nvmma_shared shared_linear"),
    ("S<2,3,3> o (64,32):(32,1)", "swizzled_shared nvmma_shared shared_linear"),
    ("(64,64):(1,64)", "swizzled_shared nvmma_shared shared_linear"),
    ("S<3,3,3> o (64,(64,2)):(64,(1,4096))", "nvmma_shared shared_linear"),
    ("S<2,0,5> o (32,32):(32,1)", "swizzled_shared shared_linear"),
    ("S<1,0,4> o (4,4,16):(64,16,1)", "swizzled_shared shared_linear"),
    ("F2[1,2,4,8,17,32,64,130] o (16,16):(16,1)", "shared_linear"),
    ("(64,64):(68,1)", "padded_shared"),
    ("pad<272,8> o pad<64,4> o (8,64):(64,1)", "padded_shared"),
    ("pad<64,4> o S<3,3,3> o (16,64):(64,1)", "padded_shared"),
    ("64:1", "swizzled_shared shared_linear"),
    ("(8,2,4):(1,16,32)", "padded_shared shared_linear"),  # a bit that no element has
]


@pytest.mark.parametrize(("text", "names"), SAID)
def test_attributes_and_objects(text: str, names: str) -> None:
    layout = parse(text)
    shape = sizes_of(layout)
    found = attributes_of(layout, 2)
    assert " ".join(each.name.removeprefix("ttg.") for each in found) == names
    for each in found:
        for again in (str(each), write_object(each, shape)):
            assert np.array_equal(values(given_layout(again, shape, 2)), values(layout)), again
    for how in ("ttgir", "gluon"):  # the whole text, with a name and comments
        whole = exported(layout, how, "mine", 2)
        assert np.array_equal(values(given_layout(whole, shape, 2)), values(layout)), whole


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(48,32):(32,1)", "powers of two"),
        ("shift<3> o (4,4):(4,1)", "is at 0"),
        ("(4,4):(1,1)", "at one place"),
        ("(64,64):(70,1)", "with padding"),  # paddings are powers of two there, and 6 is none
        ("rotate<32,32,1,1> o (32,32):(32,1)", "linear over bits"),
    ],
)
def test_what_has_no_attribute(text: str, why: str) -> None:
    with pytest.raises(WarploomError, match=why):
        attributes_of(parse(text), 2)


def test_what_an_alignment_says_stands_after_the_bases() -> None:
    text = "#ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = []}, alignment = 64>"
    assert str(read_attribute(text)) == text
    assert write_object(read_attribute(text), (2, 2)).endswith("alignment=64)")


OBJECTS = [
    # The parent of a slice has one dimension more, also in what it says of sizes.
    ("SliceLayout(1, AMDMFMALayout(3, [32, 32, 8], True, [2, 2]))", "tiles_per_warp=[1, 1]", (64,)),
    ("SliceLayout(1, DistributedLinearLayout([[0, 1]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], "
     "[], [], [32, 2]))", "shape=[32, 2]", (32,)),
    ("BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], ctas_per_cga=[1, 2], cta_split_num=[1, 2], "
     "cta_order=[1, 0])", "cga_layout=[[0, 1]]", (32, 64)),
    ("DotOperandLayout(1, NVMMADistributedLayout([2, 0], [2, 2], [16, 8]), 2)",
     "operand_index=1", (32, 64)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "word", "shape"), OBJECTS)
def test_objects_say_all_that_was_read(text: str, word: str, shape: tuple[int, ...]) -> None:
    attribute = read_object(text)
    again = write_object(attribute, shape)
    assert word in again
    assert linear_of(read_object(again), shape) == linear_of(attribute, shape)


def test_warps_of_wmma_are_written() -> None:
    text = "#ttg.amd_wmma<{version = 2, isTranspose = false, warpsPerCTA = [2, 2]}>"
    again = write_object(read_attribute(text), (64, 64))
    assert "warp_bases=[[0, 1], [1, 0]]" in again
    wanted = linear_of(read_attribute(text), (64, 64))
    assert linear_of(read_object(again), (64, 64)) == wanted


def test_an_object_that_lacks_a_field_is_refused() -> None:
    with pytest.raises(WarploomError, match="vec of #ttg"):
        write_object(read_attribute("#ttg.swizzled_shared<{order = [1, 0]}>"), (8, 8))


COPY = """TiledCopy
  Tiler_MN:       (_16,_64)
  TiledLayout_TV: ((_8,_16),_8):((_128,_1),_16)
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_8):(_0,_1)
"""
REGISTERS = [
    ("mma_a(2)", (32, 32), 32), ("mfma_c(32)", (64, 64), 64), ("wgmma_c(64)", (64, 128), 32),
    ("SliceLayout(0, BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]))", (64,), 32), (COPY, None, 32),
    ('{"register": [[0, 1]], "lane": [[0, 2], [1, 0], [2, 3], [4, 0], [8, 0]]}', (16, 4), 32),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape", "lanes"), REGISTERS)
def test_register_layouts(text: str, shape: tuple[int, ...] | None, lanes: int) -> None:
    assert is_registers(text)
    found, said = read_fragment(text, shape), 0
    for how in FRAGMENT_SPELLINGS:
        try:
            again = read_fragment(write_fragment(found, how), found.shape, lanes)
        except WarploomError:
            assert (how, "[2, 3]" in text) == ("cute", True)  # exclusive or is no sum
            continue
        assert np.array_equal(again.elements, found.elements), how
        said += 1
    assert said >= 3


def test_blocks_are_written_and_sizes_that_are_no_powers_are_not() -> None:
    text = "BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 1], [0, 0]])"
    found = read_fragment(text, (32, 64))
    for how in ("triton", "ttgir", "gluon"):
        again = read_fragment(write_fragment(found, how), (32, 64))
        assert np.array_equal(again.elements, found.elements)
        assert again.blocks == found.blocks
    with pytest.raises(WarploomError, match="several blocks"):
        write_fragment(found, "cute")
    five = read_fragment("(32,5):(5,1)")
    assert write_fragment(five, "cute") == "(_32,_5):(_5,_1)"
    with pytest.raises(WarploomError, match="powers of two"):
        bases_of(five)
    with pytest.raises(WarploomError, match="not written as 'cuda'"):
        write_fragment(five, "cuda")


def test_what_is_a_layout_of_registers() -> None:
    for text in ("#mine = #ttg.blocked<{order = [0]}>", "gl.SliceLayout(0, x)", "mma-a(2)"):
        assert is_registers(text)
    for text in ("#ttg.swizzled_shared<{vec = 1}>", '{"offset": [[0, 1]]}', "(32,4):(4,1)",
                 "gl.SwizzledSharedLayout(8, 1, 8)", "S<1,1,1> o 8:1"):  # fmt: skip
        assert not is_registers(text)
