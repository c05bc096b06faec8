"""TiledCopy and TiledMMA as CuTe prints them, read as fragments and as accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.errors import WarploomError
from warploom.layout.formats.cute_tiled import read_tiled
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.patterns.pattern import parse_pattern

COPY = """TiledCopy
  Tiler_MN:       (_16,_64)
  TiledLayout_TV: ((_8,_16),_8):((_128,_1),_16)
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_8):(_0,_1)
  ValLayoutDst: (_1,_8):(_0,_1)
  ValLayoutRef: (_1,_8):(_0,_1)
  ValueType:    16b
"""
MMA = """TiledMMA
  ThrLayoutVMNK:  (_32,_2,_2,_1):(_1,_32,_64,_0)
  PermutationMNK: (_,_,_)
MMA_Atom
  ThrID:      _32:_1
  Shape_MNK:  (_16,_8,_16)
  LayoutA_TV: ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))
  LayoutB_TV: ((_4,_8),(_2,_2)):((_16,_1),(_8,_64))
  LayoutC_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
"""


def test_a_copy_moves_rows_in_vectors() -> None:
    found = read_fragment(COPY)
    assert found.shape == (16, 64)
    # Thread t has the eight columns from 8 · (t mod 8) of row t / 8.
    assert found.elements[0, 9].tolist() == list(range(64 + 8, 64 + 16))
    assert sorted(found.elements.ravel().tolist()) == list(range(1024))
    assert read_tiled(COPY).width == 8


def test_operands_are_those_of_mma() -> None:
    one = MMA.replace("(_32,_2,_2,_1):(_1,_32,_64,_0)", "(_32,_1,_1,_1):(_1,_0,_0,_0)")
    for operand, name, shape in (("A", "mma_a(2)", (16, 16)), ("C", "mma_c()", (16, 8))):
        ours = read_fragment(f"{operand} of {one}").elements
        theirs = read_fragment(name, shape).elements
        assert np.array_equal(np.sort(ours, axis=2), np.sort(theirs, axis=2))
    b = read_tiled(one, "B").fragment()  # n × k: ours has k × n
    theirs = read_fragment("mma_b(2)", (16, 8)).elements
    k, n = theirs // 8, theirs % 8
    assert np.array_equal(np.sort(b.elements, axis=2), np.sort(n * 16 + k, axis=2))


def test_several_warps_share_a_tile() -> None:
    c = read_fragment(f"C of {MMA}")
    assert (c.shape, c.warps) == ((32, 16), 4)
    assert sorted(c.elements.ravel().tolist()) == list(range(512))
    a = read_fragment(f"A of {MMA}", (64, 32))  # repeated; warps along N hold the same
    assert np.array_equal(a.elements[0], a.elements[2])
    assert sorted(set(a.elements.ravel().tolist())) == list(range(2048))


def test_a_pattern_file_takes_them() -> None:
    text = f'''shape = [64, 64]
element = "f16"
[[access]]
tiled = """{COPY}"""
kind = "cp.async"
[[access]]
tiled = """{MMA}"""
operand = "A"
width = 2
'''
    copy, load = parse_pattern(text).accesses
    assert (copy.kind, copy.width, copy.steps) == ("cp.async", 8, 16)
    assert (load.kind, load.width, load.steps) == ("ld", 2, 4 * 4 * 2 * 4)
    assert sorted(copy.elements.ravel().tolist()) == list(range(4096))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (MMA, "which operand"),
        ("A of " + COPY, "no operands"),
        (COPY.replace("_1:_0", "_32:_1"), "several threads"),
        (COPY.replace("Tiler_MN:", "Tiler:"), "missing"),
        (COPY.replace("(_16,_64)", "(_16,_8)"), "does not fit"),
        (COPY.replace("((_8,_16),_8):((_128,_1),_16)", "(_8,"), "should stand"),
        ("A of " + MMA.replace("(_,_,_)", "(_2:_2,_,_)"), "no order of 2 rows or columns"),
        ("A of " + MMA.replace("(_,_,_)", "(_,_)"), "a tuple of 3"),
        ("A of " + MMA.replace("(_,_,_)", "(_,_,(_2,)"), "should stand|tuple of 3"),
        (COPY.replace("(_16,_64)", "((_4,_4):(_1,_8),_64)"), "no order of 16"),
        ("A of " + MMA.replace("LayoutA_TV", "Layout_TV"), "missing"),
        ("A of " + MMA.replace("(_16,_8,_16)", "(_16,_8)"), "three sizes"),
        ("TiledCopy" * 5000, "no TiledCopy"),
    ],
)
def test_bad_texts_end_in_one_error(text: str, why: str) -> None:
    with pytest.raises(WarploomError, match=why):
        read_fragment(text)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(WarploomError, match="multiples"):
        read_fragment(COPY, (24, 64))


PYTHON_COPY = """tiled_copy_A: Tiled Copy
  Tiler MN:        (16:1,64:1)
  TV Layout tiled: ((8,16),8):((128,1),16)
Copy Atom
  ThrID:           1:0
  TV Layout Src:   (1,8):(0,1)
  TV Layout Dst:   (1,8):(0,1)
  Value type:      f16
"""
PYTHON_MMA = """Tiled MMA
  Thr Layout VMNK: (32,2,2,1):(1,32,64,0)
  Permutation MNK: (_,_,_)
MMA Atom
  ThrID:           32:1
  Shape MNK:       (16,8,16)
  TV Layout A:     ((4,8),(2,2,2)):((32,1),(16,8,128))
  TV Layout B:     ((4,8),(2,2)):((16,1),(8,64))
  TV Layout C:     ((4,8),(2,2)):((32,1),(16,8))
"""


def test_what_the_python_of_cute_prints() -> None:
    assert np.array_equal(read_fragment(PYTHON_COPY).elements, read_fragment(COPY).elements)
    for operand in "ABC":
        ours = read_fragment(f"{operand} of {PYTHON_MMA}")
        assert np.array_equal(ours.elements, read_fragment(f"{operand} of {MMA}").elements)


@pytest.mark.parametrize("mark", ["//", "#"])
def test_texts_stand_in_comments(mark: str) -> None:
    commented = "".join(f"    {mark} {line}  // as printed\n" for line in COPY.splitlines())
    assert np.array_equal(read_fragment(commented).elements, read_fragment(COPY).elements)


@pytest.mark.parametrize(
    ("permutation", "meant"),
    [
        ("_32", lambda n: n),
        ("(_8,_2,_2):(_1,_16,_8)", lambda n: n % 8 + n // 8 % 2 * 16 + n // 16 * 8),
        ("(2,4,4):(1,8,2)", lambda n: n % 2 + n // 2 % 4 * 8 + n // 8 * 2),
    ],
)
def test_a_permutation_says_which_columns_a_warp_has(permutation: str, meant: Any) -> None:
    """Each thread's values of B, computed by hand: of atoms 8 apart along n by warp, then again."""
    found = read_tiled(MMA.replace("(_,_,_)", f"(_,{permutation},_)"), "B").fragment((64, 16))
    assert read_tiled(MMA.replace("(_,_,_)", f"(_,{permutation},_)"), "B").fragment().shape[0] == 32
    for warp, lane in np.ndindex(4, 32):
        n = [lane // 4 + 8 * (warp // 2) + 16 * again for again in range(4)]
        n = [meant(each % 32) + each // 32 * 32 for each in n]
        k = [lane % 4 * 2 + half + 8 * further for half in (0, 1) for further in (0, 1)]
        wanted = sorted(row * 16 + column for row in n for column in k)
        assert sorted(found.elements[warp, lane].tolist()) == wanted


def test_a_tiler_may_name_rows_in_another_order() -> None:
    """As make_tiled_copy_C_atom has it."""
    order = "((_8,_2):(_1,_8),_64)"
    same = read_fragment(COPY.replace("(_16,_64)", order))
    assert np.array_equal(same.elements, read_fragment(COPY).elements)
    turned = read_fragment(COPY.replace("(_16,_64)", "((_2,_8):(_8,_1),_64)"))
    row, plain = turned.elements // 64, read_fragment(COPY).elements // 64
    assert np.array_equal(row, plain % 2 * 8 + plain // 2)
