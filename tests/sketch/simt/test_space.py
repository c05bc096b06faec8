"""What may fill a hole: values, expressions and the paper's formula agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.sketch.simt.ir import Hole, HoleKind
from warploom.sketch.simt.space import candidates, counterparts
from warploom.sketch.term.gather import Sense


@st.composite
def holes(draw: st.DrawFn) -> Hole:
    kinds: tuple[HoleKind, ...] = ("swizzle", "partition", "condition", "bits")
    kind = draw(st.sampled_from(kinds))
    extents = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=2)))
    names = ("lane", "i")[: len(extents)]
    size = 2 if kind == "condition" else draw(st.integers(1, 3))
    if kind == "swizzle":
        size = draw(st.integers(extents[0], 8))
    if kind == "bits":
        size = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n >= extents[0]]))
    return Hole("h", kind, size, names, extents, (extents[0],))


@examples(60)
@given(holes(), st.integers(1, 3), st.data())
def test_expressions_have_the_listed_values(hole: Hole, space: int, data: st.DataObject) -> None:
    found = candidates(hole, space)
    choice = data.draw(st.integers(0, len(found) - 1))
    grid = np.indices(hole.extents).reshape(len(hole.extents), -1)
    env = dict(zip(hole.variables, grid, strict=True))
    value = np.broadcast_to(np.asarray(evaluate(found.expression(choice), env)), grid.shape[1])
    assert value.tolist() == found.values[choice].tolist()
    assert len(np.unique(found.values, axis=0)) == len(found)
    assert found.values.max() < hole.size


@examples(30)
@given(holes())
def test_each_space_contains_the_one_before(hole: Hole) -> None:
    sets = [{tuple(v) for v in candidates(hole, s).values.tolist()} for s in (1, 2, 3)]
    assert sets[0] <= sets[1] <= sets[2]


def published(i: int, k: int, group: int, cf: int, c: int, cr: int, dr: int, wrap: bool) -> int:
    """Equations 2 to 7 of the paper, word for word."""
    common = math.gcd(cf, group)

    def rotate(size: int, x: int) -> int:
        return (x + k * cr + k // dr + c) % size

    def fan(x: int) -> int:
        return (x * cf + x // (group // common)) % group

    inner = fan(i % group)
    if wrap:
        inner = inner // common * common + rotate(common, inner % common)
    else:
        inner = rotate(group, inner)
    return i // group * group + inner


@pytest.mark.parametrize(("size", "second"), [(6, 4), (8, 2), (4, 4)])
def test_space_3_holds_every_function_of_the_papers_template(size: int, second: int) -> None:
    hole = Hole("h", "swizzle", size, ("lane", "i"), (size, second))
    known = {tuple(v) for v in candidates(hole, 3).values.tolist()}
    cells = [(i, k) for i in range(size) for k in range(second)]
    for group in (g for g in range(1, size + 1) if size % g == 0):
        for dr in (d for d in range(1, second + 1) if second % d == 0):
            for cf in range(1, group):
                for cr, c, wrap in itertools.product((0, 1, group - 1), (0, 1), (False, True)):
                    values = [published(i, k, group, cf, c, cr, dr, wrap) for i, k in cells]
                    assert tuple(values) in known, (group, dr, cf, cr, c, wrap)


def test_space_1_has_only_permutations_and_broadcasts_of_the_index() -> None:
    hole = Hole("h", "swizzle", 8, ("lane", "i"), (8, 3))
    for values in candidates(hole, 1).values.reshape(-1, 8, 3):
        for k in range(3):
            assert len(set(values[:, k].tolist())) in (1, 8)


@examples(60)
@given(holes(), st.data())
def test_a_choice_lifted_to_its_own_size_is_itself(hole: Hole, data: st.DataObject) -> None:
    found = candidates(hole, 3)
    choice = data.draw(st.integers(0, len(found) - 1))
    row = found.rows[choice]
    offered = counterparts(hole, row, hole, Sense.ANY)
    assert found.values[choice].tolist() in offered.values.tolist()
    for reading in (Sense.NATURAL, Sense.SHARE):
        alone = counterparts(hole, row, hole, reading)
        assert alone.values.tolist() == [found.values[choice].tolist()]


def test_the_last_lane_stays_the_last_lane() -> None:
    small = Hole("h", "swizzle", 4, ("lane",), (4,))
    large = Hole("h", "swizzle", 32, ("lane",), (32,))
    found = candidates(small, 1)
    backwards = [v.tolist() for v in found.values].index([3, 2, 1, 0])
    for reading in (Sense.NATURAL, Sense.ANY):
        offered = counterparts(small, found.rows[backwards], large, reading)
        assert list(range(31, -1, -1)) in offered.values.tolist()


def test_no_counterpart_leaves_the_size() -> None:
    """Groups of two do not divide nine lanes: read as they are, the last lane would be beyond."""
    small = Hole("h", "swizzle", 8, ("lane",), (8,))
    large = Hole("h", "swizzle", 9, ("lane",), (9,))
    found = candidates(small, 3)
    for row in found.rows:
        for reading in (Sense.NATURAL, Sense.SHARE, Sense.ANY):
            offered = counterparts(small, row, large, reading)
            assert offered.values.max(initial=0) < 9


def test_wrong_spaces_and_too_many_choices_are_refused() -> None:
    with pytest.raises(CheckError, match="no space 4"):
        candidates(Hole("h", "condition", 2, ("lane",), (4,), (4,)), 4)
    with pytest.raises(CheckError, match="too many"):
        candidates(Hole("h", "swizzle", 256, ("lane", "i"), (256, 256)), 1)
    with pytest.raises(CheckError, match="too many"):
        candidates(Hole("h", "partition", 6, ("lane", "i"), (32, 32), (32,)), 2)
