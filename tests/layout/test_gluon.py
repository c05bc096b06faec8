"""Gluon's layout objects: read as attributes, written again, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.errors import WarploomError
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.formats.given import given_layout
from warploom.layout.formats.gluon import read_object, write_object
from warploom.layout.language.evaluate import values
from warploom.layout.language.show import show

MFMA = "AMDMFMALayout(version=3, instr_shape=[32, 32, 8], transposed=True, warps_per_cta=[2, 2])"
WMMA = "AMDWMMALayout(version=2, transposed=False, warp_bases=[[0, 1], [1, 0]])"
MMA = "NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])"

# An object, the attribute of Triton's IR that says the same, and the shape of a tensor.
SAME = [
    (MFMA, "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], "
     "isTransposed = true}>", (64, 64)),
    (WMMA, "#ttg.amd_wmma<{version = 2, isTranspose = false, "
     "ctaLayout = {warp = [[0, 1], [1, 0]]}}>", (64, 64)),
    (MMA, "#ttg.nvidia_mma<{versionMajor = 3, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>",
     (64, 128)),
    (f"ttgl.SliceLayout(dim=1, parent={MMA})", "#ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{"
     "versionMajor = 3, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>}>", (64,)),
    (f"DotOperandLayout(0, {MFMA}, 4)", "#ttg.dot_op<{opIdx = 0, kWidth = 4, parent = "
     "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], "
     "isTransposed = true}>}>", (64, 64)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "attribute", "shape"), SAME)
def test_an_object_is_its_attribute(text: str, attribute: str, shape: tuple[int, ...]) -> None:
    one, two = read_fragment(text, shape), read_fragment(attribute, shape)
    assert np.array_equal(one.elements, two.elements)
    read = read_object(text)
    again = read_object(write_object(read, shape))
    assert write_object(again, shape) == write_object(read, shape)


def test_matrix_units_by_name() -> None:
    for name, text, shape in (
        ("mfma_c(32, True, [2, 2])", MFMA, (64, 64)),
        ("mfma_a(4, 32, True, [2, 2])", f"DotOperandLayout(0, {MFMA}, 4)", (64, 64)),
        ("wgmma_c(64)", MMA, (64, 128)),
        ("wgmma_a(2)", f"DotOperandLayout(0, {MMA}, 2)", (64, 64)),
    ):
        one, two = read_fragment(name, shape), read_fragment(text, shape)
        assert np.array_equal(one.elements, two.elements), name


def test_blocks_of_a_cluster_have_parts_of_a_tensor() -> None:
    """Each block has half of the columns; the second one's begin where the first one's end."""
    whole = "BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 1]])"
    found = read_fragment(whole, (32, 64))
    alone = read_fragment("BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])", (32, 32))
    assert (found.shape, found.blocks) == ((32, 32), ((0, 32),))
    assert np.array_equal(found.elements, alone.elements)
    copied = read_fragment(whole.replace("[0, 1]]", "[0, 0]]"), (32, 64))
    assert (copied.shape, copied.blocks) == ((32, 64), ())


def test_tiles_of_several_blocks() -> None:
    for text, shape, alone in (
        ("NVMMASharedLayout(128, 16, 2, cga_layout=[[1, 0]])", (128, 64), "S<3,3,3> o (64,64)"),
        ("SwizzledSharedLayout(8, 1, 8, [1, 0], cga_layout=[[0, 1]])", (64, 128), "S<3,3,3>"),
        ("PaddedSharedLayout(interval_padding_pairs=[[64, 4]], cga_layout=[[0, 1]])", (64, 128),
         "pad<64,4> o (64,64)"),
    ):  # fmt: skip
        assert show(given_layout(text, shape, 2)).startswith(alone), text


def test_room_beside_elements_of_four_bits() -> None:
    """Pairs of 4-bit elements lie in the first half of every 16 bytes, as TMA unpacks them."""
    found = values(given_layout("NVMMASharedLayout(128, 8, 2, fp4_padded=True)", (32, 64), 1))
    places = found.reshape(64, 32).T
    assert places[0, :16].tolist() == [*range(8), *range(16, 24)]
    assert (places % 16 < 8).all()
    assert len(np.unique(found)) == 32 * 64
    plain = given_layout("NVMMASharedLayout(0, 16, 2)", (64, 64), 2)
    assert values(plain).reshape(64, 64).T[3, 5] == 3 * 64 + 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hexagonal([1])", "no layout object"),
        ("BlockedLayout([1", "is no layout object"),
        ("BlockedLayout([1], [32], [1], [0], [], 7)", "takes 5 arguments"),
        ("BlockedLayout(size=[1])", "'size' in BlockedLayout"),
        ("BlockedLayout(size_per_thread=x)", "not made of numbers"),
        ("BlockedLayout(size_per_thread=__import__('os'))", "no layout object"),
        ("BlockedLayout(size_per_thread='a')", "numbers, truths"),
        ("NVMMADistributedLayout(version=2)", "is .major, minor."),
        ("SliceLayout(0, " * 12 + "BlockedLayout([1])" + ")" * 12, "deep"),
        ("BlockedLayout(size_per_thread=[9999999999])", "numbers, truths"),
    ],
)
def test_bad_objects_end_in_one_error(text: str, said: str) -> None:
    with pytest.raises(WarploomError, match=said):
        read_object(text)
