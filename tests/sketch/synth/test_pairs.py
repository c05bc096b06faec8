"""The reference pruner: its matrices, what it counts, and the cases its model got wrong."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bench.common.sketch.brute import all_fills
from bench.common.sketch.generate import seeded, sketch
from tests.sampled import rounds

from warploom.errors import SearchError
from warploom.search.budget import Budget
from warploom.sketch.front import load_text
from warploom.sketch.synth.flow import (
    Segment,
    copies_before,
    fixed_flow,
    packed,
    pairs_at_goal,
    pairs_before,
    segments_of,
    single_before,
)
from warploom.sketch.synth.pairs import PairsEngine
from warploom.sketch.synth.problem import Given, Problem, lower
from warploom.sketch.synth.solve import synthesize

# A fold that holds one term twice.
REPEATED = """
define pick([2]) -> [1,2] = { a = [0, 0], b = [1, 1], c = [0, 1] }
define any([2]) -> [2] = { keep = [0, 1], swap = [1, 0], first = [0, 0] }
x: [2] = [0, 1]
y: [2] = ?any(x)
z: [1,2] = fold ?pick(y)
goal: [1] = fold [[0, 0]]
"""

# A block that reads a variable from outside, twice.
BLOCK = """
define pick([2]) -> [2] = { keep = [0, 1], swap = [1, 0], first = [0, 0] }
define both([2],[2]) -> [2] = {
  left = [(0,0),(0,1)], mixed = [(0,0),(1,1)], crossed = [(1,0),(0,1)]
}
x: [2] = [0, 1]
y: [2] = {
  inner: [2] = ?pick(x)
  out: [2] = ?both(inner, x)
}
z: [2] = ?both(x, y)
goal: [2] = [1, 1]
"""

# The same symbols in a second input, which comes later.
LATER = """
define drop([2]) -> [2] = { none = [(-1,0),(-1,0)], all = [0, 1] }
define both([2],[2]) -> [2] = { left = [(0,0),(0,1)], right = [(1,0),(1,1)] }
x: [2] = [0, 1]
y: [2] = ?drop(x)
again: [2] = [0, 1]
z: [2] = ?both(y, again)
goal: [2] = [0, 1]
"""

# A fold that the input holds and that is also formed on the way.
FORMED = """
define pick([2]) -> [2] = { keep = [0, 1], first = [0, 0], zero = [0, (-1,0)] }
define select([1],[2]) -> [1] = { formed = [(0,0)], given = [(1,1)] }
x: [2,2] = fold [[0, 1], [1, 2]]
y: [2] = [0, 1]
h: [2] = ?pick(y)
f: [1,2] = fold reshape(h)
z: [1] = ?select(f, x)
goal: [1] = fold [[0, 1]]
"""


@pytest.mark.parametrize("text", [REPEATED, BLOCK, LATER, FORMED])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("fuel", [None, 1])
def test_what_the_published_tests_get_wrong(text: str, single: bool, fuel: int | None) -> None:
    program = load_text(text)
    fills = all_fills(program, program.goals[0])
    assert fills
    result = synthesize(program, engine="pairs", single=single, fuel=fuel)
    assert [tuple(row) for row in result.fills.choices.tolist()] == fills
    assert synthesize(program).fills.choices.tolist() == result.fills.choices.tolist()


def edges(problem: Problem, segment: Segment) -> list[set[tuple[int, int]]]:
    """By choice: (slot before, slot after) wherever a value may go."""
    out = []
    flow = fixed_flow(problem, segment)
    for table in segment.hole.tables:
        middle: dict[int, set[int]] = {}
        for position, start in segment.middle.starts.items():
            for cell in range(problem.cells_of(position)):
                middle[start + cell] = set()
                if position in segment.before.starts:
                    middle[start + cell].add(segment.before.starts[position] + cell)
        spans = problem.layout(segment.hole)
        for cell, place in enumerate(table.tolist()):
            slot = segment.middle.starts[segment.hole.position] + cell // segment.hole.fold
            for arg, low, high in spans:
                if low <= place < high:
                    middle[slot].add(segment.before.starts[arg] + place - low)
        out.append({(a, int(e)) for e, m in np.argwhere(flow) for a in middle[int(m)]})
    return out


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(60))
def test_matrices_say_what_can_reach_what(seed: int) -> None:
    """Backward through the segments, against all choices and all paths one by one."""
    program = sketch(seeded(seed))
    problem = lower(program, program.goals[0])
    _, segments = segments_of(problem)
    cells = len(problem.goal)
    pairs, single = pairs_at_goal(cells), np.eye(cells, dtype=np.bool_)
    known = {(t, u): {(t, u)} for t, u in product(range(cells), repeat=2)}
    for segment in reversed(segments):
        by_choice = edges(problem, segment)
        before: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for flow in by_choice:
            for (a, x), (b, y) in product(flow, repeat=2):
                before.setdefault((a, b), set()).update(known.get((x, y), set()))
        pairs = pairs_before(problem, segment, pairs, lambda: None)
        n = segment.before.slots
        expected = np.zeros((n, n, cells, cells), dtype=np.bool_)
        for (a, b), reached in before.items():
            for t, u in reached:
                expected[a, b, t, u] = True
        assert pairs.shape[:3] == (n, n, cells)
        assert np.array_equal(pairs, packed(expected.reshape(-1, cells)).reshape(pairs.shape))
        alone = np.zeros((n, cells), dtype=np.bool_)
        for flow in by_choice:
            for a, x in flow:
                alone[a] |= single[x]
        single = single_before(problem, segment, single)
        assert np.array_equal(single, alone)
        known = before


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(60))
def test_copies_are_between_the_bounds(seed: int) -> None:
    """Copies of each slot, for every fill of the holes after it."""
    program = sketch(seeded(seed))
    problem = lower(program, program.goals[0])
    _, segments = segments_of(problem)
    if len(segments) != 1:
        return
    segment = segments[0]
    ones = np.ones(len(problem.goal))
    least, most = copies_before(problem, segment, (ones, ones))
    counted = []
    for choice in range(len(segment.hole.tables)):
        copies = {p: np.zeros(problem.cells_of(p)) for p in problem.steps}
        copies[problem.last] += 1
        for step in reversed([segment.hole, *segment.fixed]):
            if not isinstance(step, Given):
                table = step.tables[choice if step is segment.hole else 0]
                for cell, place in enumerate(table.tolist()):
                    for arg, low, high in problem.layout(step):
                        if low <= place < high:
                            copies[arg][place - low] += copies[step.position][cell // step.fold]
        counted.append(np.concatenate([copies[p] for p in segment.before.starts]))
    assert np.array_equal(least, np.min(counted, axis=0))
    assert np.array_equal(most, np.max(counted, axis=0))


def test_matrices_that_do_not_fit_are_refused() -> None:
    text = "x: [600] = range(0, 600)\n" + "".join(
        f"y{i}: [30,20] = ?col_rots_no_group({'y0' if i else 'z'})\n" for i in range(2)
    )
    text = text.replace("range(0, 600)\n", "range(0, 600)\nz: [30,20] = reshape(x)\n")
    program = load_text(text + "goal: [30,20] id\n")
    with pytest.raises(SearchError, match="MiB for its matrices") as caught:
        synthesize(program, engine="pairs")
    assert "default engine" in caught.value.advice
    assert synthesize(program).fills.count == 30
    small = load_text(REPEATED)
    with pytest.raises(SearchError, match="are allowed"):
        synthesize(small, engine="pairs", budget=Budget(megabytes=1e-6))


def test_every_candidate_is_accounted_for() -> None:
    program = load_text(BLOCK)
    engine = PairsEngine(lower(program, program.goals[0]), Budget(), None)
    assert engine.prepare()
    list(engine.solutions())
    for tally in engine.tallies.values():
        assert tally.visited == tally.kept + sum(tally.pruned.values())
        assert set(tally.pruned) <= {"count", "pairs", "cache", "goal"}


def test_single_locations_and_less_fuel_prune_less() -> None:
    for seed in range(rounds(40)):
        program = sketch(seeded(seed))
        states = [
            synthesize(program, engine="pairs", fuel=fuel, single=single).stats.states
            for fuel, single in ((None, False), (2, False), (1, False), (None, True))
        ]
        assert states[0] <= states[1] <= states[2]
        assert states[0] <= states[3]
