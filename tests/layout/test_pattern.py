"""Patterns from TOML and by name: the same problems, and one located error for each mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warploom.errors import CheckError, ParseError, WarploomError
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.patterns.access import IDLE
from warploom.layout.patterns.named import USUAL, pattern
from warploom.layout.patterns.pattern import load_pattern, parse_pattern
from warploom.layout.solver.task import Task

TILE = """\
name = "tile"
shape = [64, 48]
element = "f16"

[[access]]
name = "store"
kind = "st"
steps = 12
bytes = 16
index = "(step * 32 + lane) * 8"

[[access]]
name = "load"
kind = "ldmatrix"
steps = 12
width = 8
index = ["step // 3 * 16 + lane % 16", "step % 3 * 16 + lane // 16 * 8 + element"]
weight = 2
"""


def test_a_file_is_what_its_expressions_say(tmp_path: Path) -> None:
    (tmp_path / "tile.toml").write_text(TILE)
    problem = load_pattern(tmp_path / "tile.toml")
    named = pattern("ldmatrix:64x48:f16")
    assert (problem.shape, problem.element_bytes) == (named.shape, named.element_bytes)
    for ours, theirs in zip(problem.accesses, named.accesses, strict=True):
        assert np.array_equal(ours.elements, theirs.elements)
        assert ours.kind == theirs.kind
    assert [access.weight for access in problem.accesses] == [1, 2]


def test_masks_warps_and_vectors_in_any_direction() -> None:
    problem = parse_pattern(
        'shape = [8, 32]\nbytes = 4\nmachine = "h200"\n[[access]]\nwarps = 2\nsteps = 2\n'
        'width = 4\nindex = "(warp * 4 + element) * 32 + lane"\nmask = "lane < 24 and step == 0"\n'
    )
    elements = problem.accesses[0].elements
    assert elements.shape == (4, 32, 4)
    assert elements[2, 3].tolist() == [128 + 3, 160 + 3, 192 + 3, 224 + 3]
    assert (elements[0, 24:] == IDLE).all()
    assert (elements[1] == IDLE).all()


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_an_access_that_nobody_does(size: int) -> None:
    problem = parse_pattern(
        f'shape = [8, 32]\nbytes = {size}\n[[access]]\nindex = "lane"\n'
        '[[access]]\nsteps = 2\nindex = "lane"\nmask = "lane < 0"\n'
    )
    task = Task(problem)
    assert task.bound.wavefronts == (max(1, size // 4), 0)
    found = task.meter.score(np.arange(problem.size))
    assert found is not None
    assert found.wavefronts == task.bound.wavefronts


def at(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


MISTAKES: dict[str, tuple[str, str, int]] = {
    "no access": (TILE.split("[[")[0], "no access", 2),
    "empty": (at(TILE, "[64, 48]", "[64, 0]"), "is empty", 2),
    "negative": (at(TILE, "[64, 48]", "[-64, 48]"), "is empty", 2),
    "no shape": (at(TILE, "shape = [64, 48]", ""), "needs its shape", 1),
    "element of 3 bytes": (at(TILE, 'element = "f16"', "bytes = 3"), "element of 3 bytes", 3),
    "element type": (at(TILE, "f16", "f17"), "no element type 'f17'", 3),
    "two sizes": (at(TILE, 'element = "f16"', 'element = "f16"\nbytes = 2'), "or its bytes", 4),
    "out of range": (at(TILE, "lane) * 8", "lane) * 16"), "step 6 wants element", 10),
    "coordinate": (at(TILE, "lane % 16", "lane"), "lane 16 of step 9 wants coordinate 64", 17),
    "vector not a power": (at(TILE, "width = 8", "width = 6"), "vector of 6", 16),
    "vector over the end": (at(TILE, "lane) * 8", "lane) * 8 + 1"), "wants element 3072", 10),
    "kind": (at(TILE, '"st"', '"sto"'), "no access is of kind 'sto'", 7),
    "tma": (at(TILE, '"st"', '"tma"'), "a tensor copy has no 'steps'", 8),
    "machine": (at(TILE, "element =", 'machine = "gtx"\nelement ='), "'gtx'", 3),
    "unknown key": (at(TILE, "bytes = 16", "bytes = 16\nspeed = 3"), "unknown key 'speed'", 10),
    "unknown key above": (at(TILE, "element", "elements"), "unknown key 'elements'", 3),
    "expression": (at(TILE, "(step * 32 + lane) * 8", "(step * 32 + lane * 8"), "no '\\)'", 10),
    "variable": (at(TILE, "+ lane) * 8", "+ thread) * 8"), "unknown variable 'thread'", 10),
    "division": (at(TILE, "step // 3", "step // 0"), "division by zero", 17),
    "weight": (at(TILE, "weight = 2", "weight = nan"), "weight is nan", 18),
    "weight text": (at(TILE, "weight = 2", 'weight = "2"'), "weight = '2'", 18),
    "store twice": (at(TILE, "lane) * 8", "lane // 2) * 8"), "lanes 0 and 1 of step 0 store", 10),
    "lanes": (at(TILE, "bytes = 16", "bytes = 16\nlanes = 33"), "lanes = 33", 10),
    "lanes that do not divide": (at(TILE, "bytes = 16", "bytes = 16\nlanes = 24"), "24 lanes", 10),
    "steps": (at(TILE, "steps = 12", "steps = 0"), "steps = 0", 8),
    "too many": (at(TILE, "[64, 48]", "[1000000, 1000]"), "too large", 2),
    "too many moved": (at(TILE, "steps = 12", "steps = 9999999"), "too many", 8),
    "toml": (at(TILE, "shape = [64, 48]", "shape = [64, 48"), "(?i)unclosed array", 3),
    "no index": (at(TILE, 'index = "(step * 32 + lane) * 8"', ""), "needs its index", 5),
    "coordinates": (at(TILE, '["step // 3', '["0", "step // 3'), "3 coordinates", 17),
}


MISTAKES["below zero"] = (  # of a single element it was taken for an idle lane
    'shape = [64]\nelement = "f32"\n[[access]]\nindex = "lane - 1"\n',
    "lane 0 of step 0 wants element -1",
    4,
)
MISTAKES["vectors that nobody serves"] = (
    'shape = [64]\nelement = "f32"\n[[access]]\nname = "wide"\nindex = "0"\nwidth = 64\n',
    "wide: nothing is known of how cuda serves ld of 256 bytes",
    5,
)


@pytest.mark.parametrize("name", MISTAKES)
def test_one_located_error(name: str) -> None:
    text, message, line = MISTAKES[name]
    with pytest.raises(WarploomError, match=message) as caught:
        parse_pattern(text, "mine.toml")
    span = caught.value.span
    assert span is not None
    assert (span.source.name, span.line) == ("mine.toml", line), str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    with pytest.raises(WarploomError, match="not a text"):
        load_pattern(tmp_path / "binary.toml")
    with pytest.raises(WarploomError, match="cannot read"):
        load_pattern(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("transpos:32x32", "did you mean transpose"),
        ("transpose", "does not say its sizes"),
        ("transpose:24x32", "does not divide"),
        ("transpose:32x0", "empty"),
        ("transpose:32x32:f17", "no element type 'f17'"),
        ("transpose:32x32:f32:stride=3", "no option of transpose"),
        ("transpose:32x32:f32:store=6", "no vector"),
        ("transpose:32x32@gtx", "'gtx'"),
        ("transpose:99999x99999", "too large"),
        ("ldmatrix:64x64:f16@gfx942", "ldmatrix"),
        ("rcd:64x64", "as many rows"),
        ("fft:24x24", "power of two"),
        ("stencil:34x34:f32:points=7", "5 or 9"),
        ("halo:32x32", "34 columns"),
        ("aos:64x3", "each lane"),
        ("but-two:8x32", "128 elements"),
    ],
)
def test_names_that_are_none(text: str, message: str) -> None:
    with pytest.raises(WarploomError, match=message):
        pattern(text)


SIZES = {
    "ldmatrix-trans": "32x128:f16", "ldmatrix-copied": "128x32:f16", "ldmatrix": "64x96:f16",
    "stmatrix": "16x64:f16", "mma-a": "16x64:f16", "mma-b": "64x64:f16", "mma-c": "16x64:f32",
    "mfma": "64x64:f16@gfx942", "fft": "1x256", "bitonic": "1x256", "aos": "32x6", "halo": "34x34",
    "stencil": "34x34", "histogram": "256x32", "but-two": "4x32", "every-bits": "2x64",
    "wgmma": "64x64:f16", "wgmma-copied": "64x64:f16", "wgmma-c": "64x64:f16",
}  # fmt: skip


@pytest.mark.parametrize("name", USUAL)
def test_every_name_makes_a_problem(name: str) -> None:
    problem = pattern(f"{name}:{SIZES.get(name, '32x32')}")
    assert problem.accesses
    for access in problem.accesses:
        moved = access.elements[access.elements != IDLE]
        assert len(np.unique(moved)) <= problem.size


def first_elements(index: str) -> list[int]:
    text = f'shape = [64, 32]\nelement = "f32"\n[[access]]\nsteps = 2\nindex = "{index}"\n'
    return [int(e) for e in parse_pattern(text).accesses[0].elements[:, :, 0].ravel()]


def test_a_slash_divides_as_c_does() -> None:
    """Towards zero, and what is left over has the sign of what was divided."""
    assert first_elements("lane / 4 * 32 + lane % 4") == first_elements("lane // 4 * 32 + lane % 4")
    of_c = [int((lane - 20) / 8) + 8 for lane in range(32)] * 2
    assert first_elements("(lane - 20) / 8 + 8") == of_c
    left = [(lane - 20) - int((lane - 20) / 8) * 8 + 8 for lane in range(32)] * 2
    assert first_elements("(lane - 20) % 8 + 8 + 0 / 1") == left
    down = [(lane - 20) // 8 + 8 for lane in range(32)] * 2
    assert first_elements("(lane - 20) // 8 + 8") == down


@pytest.mark.parametrize("index", ["lane / 4 + lane // 4", "lane // 4 / 2"])
def test_both_divisions_in_one_text_are_refused_where_they_stand(index: str) -> None:
    with pytest.raises(ParseError, match="beside") as caught:
        first_elements(index)
    assert caught.value.span is not None
    assert caught.value.span.line == 5
    assert caught.value.span.column == 9 + 1 + index.index("//")


def test_a_large_pattern_is_read_in_pieces_as_a_whole_would_be() -> None:
    """Steps and warps count on from piece to piece, in elements and in errors."""
    text = ('shape = [1024, 64]\nelement = "f32"\n[[access]]\nsteps = 20000\nwarps = 2\n'
            'index = "(step * 3 + warp * 5 + lane) % 65536"\n')  # fmt: skip
    found = parse_pattern(text).accesses[0].elements[:, :, 0]
    step, warp = np.arange(40000) % 20000, np.arange(40000) // 20000
    wanted = ((step * 3 + warp * 5)[:, None] + np.arange(32)) % 65536
    assert np.array_equal(found, wanted)
    with pytest.raises(CheckError, match="lane 31 of step 19999 of warp 1 wants element"):
        parse_pattern(text.replace("(step * 3 + warp * 5 + lane) % 65536",
                                   "20029 - step - lane * warp"))  # fmt: skip


def named(*uses: str, shape: str = "[64, 64]", element: str = "f16") -> str:
    return f'shape = {shape}\nelement = "{element}"\n' + "".join(
        f"[[access]]\n{use}\n" for use in uses
    )


@pytest.mark.parametrize(
    ("uses", "name"),
    [
        (('use = "rows"', 'use = "ldmatrix"'), "ldmatrix:64x64:f16"),
        (('use = "rows"\nkind = "cp.async"', 'use = "ldmatrix.trans"'), "ldmatrix-trans:64x64:f16"),
        (('use = "stmatrix"', 'use = "rows"\nkind = "ld"'), "stmatrix:64x64:f16"),
        (('use = "rows"', 'use = "mma.a"'), "mma-a:64x64:f16"),
        (('use = "rows"', 'use = "mma.b"'), "mma-b:64x64:f16"),
        (('use = "mma.c"', 'use = "rows"\nkind = "ld"'), "mma-c:64x64:f16"),
        (('use = "wgmma.c"', 'use = "rows"\nkind = "ld"'), "mma-c:64x64:f16"),
    ],
)
def test_accesses_by_name_are_those_of_the_usual_patterns(uses: tuple[str, ...], name: str) -> None:
    ours, theirs = parse_pattern(named(*uses)), pattern(name)
    for one, other in zip(ours.accesses, theirs.accesses, strict=True):
        assert np.array_equal(one.elements, other.elements)
        assert one.kind == other.kind


def test_an_access_by_name_has_a_name_and_a_weight() -> None:
    (access,) = parse_pattern(named('use = "mma.a"\nname = "A"\nweight = 3')).accesses
    assert (access.name, access.weight, access.kind) == ("A", 3.0, "ld")
    text = named('use = "mfma.a"').replace("[[access]]", 'machine = "gfx942"\n[[access]]')
    assert parse_pattern(text).accesses[0].lanes == 64


def test_the_operand_that_wgmma_reads_by_a_descriptor_has_a_name() -> None:
    ours = parse_pattern(named('use = "rows"\nkind = "cp.async"', 'use = "wgmma.b"\nrows = 64'))
    theirs = parse_pattern(named('use = "rows"\nkind = "cp.async"', 'kind = "wgmma"\nrows = 64'))
    assert [each.rows for each in ours.operands] == [each.rows for each in theirs.operands] == [64]
    assert ours.operands[0].name == "wgmma.b"
    with pytest.raises(WarploomError, match="mma is of warps of 32 lanes"):
        parse_pattern(named('use = "mma.a"').replace("[[a", 'machine = "gfx942"\n[[a'))


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ('use = "mma.d"', "no access is called"),
        ('use = "wgmma.b"\nkind = "ld"', "another kind"),
        ('use = "wgmma.b"\nwidth = 8', "has no 'width'"),
        ('use = "mma.a.trans"', "no access is called"),
        ('use = "mfma.a"', "mfma is of warps of 64 lanes, and the machine's have 32"),
        ('use = "mma.a"\nindex = "lane"', "beside 'use'"),
        ('use = "ldmatrix"\nkind = "st"', "kind"),
        ('use = "rows"\nkind = "ldmatrix"', "kind"),
        ('use = "mma.a"\nweight = true', "weight"),
        ("use = 3", "is a text"),
    ],
)
def test_bad_accesses_by_name_are_placed(use: str, why: str) -> None:
    with pytest.raises(WarploomError, match="use" if why == "is a text" else why) as caught:
        parse_pattern(named(use), "mine.toml")
    assert caught.value.span is not None
    with pytest.raises(WarploomError, match="rows of"):
        parse_pattern(named('use = "wgmma.c"', shape="[32, 64]"))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_results_of_mfma_are_where_its_layout_in_tritons_ir_has_them(element: str) -> None:
    width = "elementBitWidth = 64" if element == "f64" else "elementBitWidth = 32"
    text = ("#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [16, 16, 4], "
            f"isTransposed = false, {width}}}>")  # fmt: skip
    held = read_fragment(text, (32, 64), 64).elements[0]
    pattern_text = f'machine = "gfx942"\nshape = [32, 64]\nelement = "{element}"\n[[access]]\n'
    (access,) = parse_pattern(pattern_text + 'use = "mfma.c"\n').accesses
    assert (access.kind, access.width, access.steps) == ("st", 1, 4 * 2 * 4)
    ours = access.elements[:, :, 0].T
    assert np.array_equal(np.sort(ours, axis=1), np.sort(held, axis=1))
