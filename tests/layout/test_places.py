"""Texts that are not understood are refused at the place where that begins."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.errors import WarploomError
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.formats.given import given_layout
from warploom.layout.language.evaluate import values
from warploom.layout.language.show import show

# A text of shared memory with one thing wrong, and the line and the word that are shown.
SHARED = [
    ("gl.SwizzledSharedLayout(8, 1, eight, order=[1, 0])", 1, "eight"),
    ("tile = gl.SwizzledSharedLayout(8, 1, 8, ordre=[1, 0])", 1, "ordre=[1, 0]"),
    ("gl.PaddedSharedLayout(\n    [[32, 4]],\n    offset_bases=[0, 1])", 3, "[0, 1]"),
    ("NVMMASharedLayout(128, 16, 2, True, fp4_padded=1)", 1, "1"),
    ("NVMMASharedLayout.get_default_for([8, 64], gl.string)", 1, "gl.string"),
    ("SharedLinearLayout([[0, 1], [0, 2]]", 1, "("),
    ("T.Layout((8, 8), lambda i, j: i * 8 +* j)", 1, "*"),
    ("T.Layout((8, 8), lambda i, j: [i,\n  j ^ k])", 2, "k"),
    ("T.Layout((8, 8), lambda i, j: [i, j - 9])", 1, " j - 9"),
    ("Layout<Shape<_8,_16>, Strid<_16,_1>>", 1, "Strid"),
    ("// 8x16\nusing t = ComposedLayout<Swizzle<3,3,3>, _0, Lay<_8,_1>>;", 2, "Lay"),
    ("{'offset': [[0, 1],, [1, 0]]}", 1, ","),
    ("#ttg.swizzled_shared<{vec = 8, perPhase = 1 maxPhase = 8}>", 1, "maxPhase"),
    ("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 3}>", 1, "#ttg"),
    ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64;_1)", 1, ";"),
]
COPY = """TiledCopy
  Tiler_MN:       (_16,_64)
  TiledLayout_TV: ((_8,_16),_8):((_128,_1;_16)
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_8):(_0,_1)
"""
REGISTERS = [
    ("ttgl.BlockedLayout([1, 4], [4, 8], [n, 1], [1, 0])", 1, "[n, 1]"),
    ("SliceLayout(1, BlockedLayout([1], sizes=[4]))", 1, "sizes=[4]"),
    ("mma_a(k=two)", 1, "two"),
    ("hexagonal(3)", 1, "hexagonal"),
    ("{'lane': [[0, 1] [0, 2]]}", 1, "["),
    (COPY, 3, ";"),
    (
        COPY.replace(";", "),").replace("Tiler_MN:       (_16,_64)", "Tiler_MN:  (_16,x)"),
        2,
        "(_16,x)",
    ),
]


@pytest.mark.parametrize(("text", "line", "word"), SHARED)
def test_shared_layouts(text: str, line: int, word: str) -> None:
    with pytest.raises(WarploomError) as error:
        given_layout(text, (8, 64), 2)
    _shown(error.value, text, line, word)


@pytest.mark.parametrize(("text", "line", "word"), REGISTERS)
def test_register_layouts(text: str, line: int, word: str) -> None:
    with pytest.raises(WarploomError) as error:
        read_fragment(text, (32, 32))
    _shown(error.value, text, line, word)


def _shown(error: WarploomError, text: str, line: int, word: str) -> None:
    assert error.span is not None
    assert error.span.line == line, error
    assert text.split("\n")[line - 1][error.span.column - 1 :].startswith(word), error


def test_objects_as_programs_have_them() -> None:
    """With a module before them, a name that they are given, and made by functions."""
    for text in (
        "gl.SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])",
        "smem = ttgl.SwizzledSharedLayout(\n    8, 1, 8,  # vec, phases\n    order=[1, 0])",
        "gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)",
    ):
        assert show(given_layout(text, (64, 64), 2)) == "S<3,3,3> o (64,64):(64,1)", text
    made = "gl.PaddedSharedLayout.with_identity_for([[64, 4]], [8, 64], [1, 0])"
    whole = "PaddedSharedLayout([[64, 4]], [], [], [8, 64])"
    for text in (made, whole):  # neither needs a shape
        assert show(given_layout(text)) == "pad<64,4> o S<0,0,0> o (8,64):(64,1)".replace(
            "S<0,0,0> o ", "" if text == whole else "S<0,0,0> o "
        )
    columns = made.replace("[1, 0]", "[0, 1]")
    places = values(given_layout(columns)).reshape(64, 8).T
    assert places[1, 0] == 1
    assert places[0, 8] == 64 + 4


@pytest.mark.parametrize(
    ("shape", "element", "width"),
    [((64, 64), "float16", 128), ((64, 32), "bfloat16", 64), ((64, 32), "float8e5", 32),
     ((64, 8), "float16", 0), ((4, 64), "float16", 0), ((2, 4, 64), "int8", 64)],
)  # fmt: skip
def test_the_widest_swizzle_that_fits(shape: tuple[int, ...], element: str, width: int) -> None:
    size = {"float16": 2, "bfloat16": 2, "float8e5": 1, "int8": 1}[element]
    text = f"NVMMASharedLayout.get_default_for({list(shape)}, gl.{element})"
    rank = len(shape)
    wanted = given_layout(f"NVMMASharedLayout({width}, {8 * size}, {rank})", shape, size)
    assert np.array_equal(values(given_layout(text, None, size)), values(wanted))
