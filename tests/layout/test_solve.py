"""The solver: the fifty problems as published, what is impossible, and how it ends."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from bench.common.layout.brute import small_machine
from bench.common.layout.published import FEWER_IN_ALL, PUBLISHED, numbers, total

from warploom.errors import UnsupportedError
from warploom.layout.language import family
from warploom.layout.language.evaluate import evaluate, extended
from warploom.layout.language.ir import Matrix, Swizzle
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.patterns.named import FIFTY, pattern
from warploom.layout.solver.solve import CLASSES, solve
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.cost import Meter
from warploom.layout.wavefronts.quality import address_registers
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided


def test_the_fifty_are_all_there() -> None:
    assert list(PUBLISHED) == list(FIFTY)
    assert len(FIFTY) == 50


# Every sixth in `make test`, all of them in `make accept`.
SOME = {*FIFTY[::6], "blocks:32x32"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in FIFTY]
)
def test_bounds_and_optima_are_the_published_ones(name: str) -> None:
    none, pad, swizzle, best, bound, registers = PUBLISHED[name]
    task = Task(pattern(name))
    assert [float(x) for x in task.bound.per_request] == pytest.approx(numbers(bound))
    for klass, wanted in (("none", none), ("pad", pad), ("swizzle", swizzle), ("mixed", best)):
        solved = solve(task, klass)
        assert solved.best is not None
        assert solved.proved
        if wanted != "-":
            meant = FEWER_IN_ALL.get((name, klass), wanted)
            assert float(solved.best.cost) == pytest.approx(total(task, meant), rel=1e-3), klass
    found = solve(task, "mixed")
    assert isinstance(found.outcome, Found)  # it meets the bound: no layout of any kind is better
    if registers != "-":
        _registers(task, registers)


def _registers(task: Task, text: str) -> None:
    """Address registers of the published swizzle; a ? where an access is not linear."""
    counts, _, three = text.partition("@")
    swizzle = Swizzle(*(int(word) for word in three.strip("<>").split(",")))
    addresses = extended(swizzle, np.arange(task.problem.size))
    for access, count in zip(task.problem.accesses, counts.split("/"), strict=True):
        assert count in ("?", str(address_registers(access, addresses)))


def test_blocks_of_every_shape() -> None:
    task = Task(pattern("blocks:32x32"))
    for klass in ("pad", "swizzle"):
        assert isinstance(solve(task, klass).outcome, Impossible)
    solved = solve(task, "xor")
    assert isinstance(solved.outcome, Found)
    assert str(solved.best and solved.best.score) == "1/1/1/1/1/1"
    reverse = [int(f"{row:05b}"[::-1], 2) for row in range(32)]
    element = np.arange(1024)
    addresses = element // 32 * 32 + (element % 32 ^ np.array(reverse)[element // 32])
    assert str(task.meter.score(addresses)) == "1/1/1/1/1/1"


@pytest.mark.parametrize("columns", [48, 80, 96])
def test_head_dimensions_without_waste(columns: int) -> None:
    task = Task(pattern(f"ldmatrix:64x{columns}:f16"), waste=False)
    solved = solve(task, "mixed")
    assert isinstance(solved.outcome, Found)
    assert str(solved.outcome.answer.score) == "4/4"
    assert sorted(task.addresses(solved.outcome.answer.map)) == list(range(64 * columns))


# -- impossible ------------------------------------------------------------------------------------


def test_all_but_two_bits() -> None:
    task = Task(pattern("but-two:4x32"))
    solved = solve(task, "xor")
    assert isinstance(solved.outcome, Impossible)
    assert solved.best is not None
    assert sorted(solved.best.score.per_request) == [1, 1, 1, 1, 1, 2]
    anything = solve(task, "any")
    assert isinstance(anything.outcome, Impossible)
    assert anything.least > task.least
    assert anything.how == "by counting"


@pytest.mark.parametrize("cheap", range(6))
def test_weights_say_which_access_pays(cheap: int) -> None:
    problem = pattern("but-two:4x32")
    accesses = tuple(
        Access(a.name, a.elements, a.kind, 1.0 if number == cheap else 2.0)
        for number, a in enumerate(problem.accesses)
    )
    task = Task(Problem("weighted", problem.shape, 4, accesses))
    solved = solve(task, "xor")
    assert solved.best is not None
    assert solved.best.score.per_request[cheap] == 2
    assert solved.best.cost == 12 * 4  # each takes four steps


def test_the_worst_access_counts() -> None:
    task = Task(pattern("but-two:4x32"), worst=True)
    solved = solve(task, "xor")
    assert solved.best is not None
    assert solved.best.cost == 2 * 4
    assert isinstance(solved.outcome, Impossible)


def test_vectors_that_no_layout_keeps_whole() -> None:
    rows = np.arange(64).reshape(1, 32, 2)
    columns = rows + 1
    columns[0, 31] = [63, 0]
    accesses = (Access("even", rows, "ld"), Access("odd", columns, "ld"))
    task = Task(Problem("torn", (64,), 4, accesses))
    for klass in set(CLASSES) - {"wgmma"}:
        solved = solve(task, klass)
        assert isinstance(solved.outcome, Impossible)
        assert "no layout keeps all vectors whole: odd" in solved.outcome.why
        assert solved.best is None


def test_vectors_along_columns_are_kept_whole_too() -> None:
    """A vector of four rows: rows as they are tear it, a linear layout does not."""
    element = np.arange(16)[None, :, None] + np.arange(4)[None, None] * 16
    lanes = np.concatenate([element, element + 64], axis=1)
    task = Task(Problem("down", (8, 16), 4, (Access("down", lanes, "st"),)))
    assert solve(task, "none").best is None
    solved = solve(task, "xor")
    assert isinstance(solved.outcome, Found)
    assert isinstance(solved.outcome.answer.map, Matrix)


def test_sizes_that_are_no_powers_of_two_have_no_linear_layout() -> None:
    with pytest.raises(UnsupportedError, match="96 elements"):
        solve(Task(pattern("aos:32x3:f32")), "xor")
    with pytest.raises(UnsupportedError, match="no class"):
        solve(Task(pattern("aos:32x3:f32")), "best")


# -- budgets ---------------------------------------------------------------------------------------


def test_a_spent_budget_is_undecided_and_keeps_what_was_found() -> None:
    task = Task(pattern("stencil:34x34:f32:points=9"), waste=False)
    solved = solve(task, "mixed", Budget(seconds=0.05))
    if isinstance(solved.outcome, Undecided):
        assert solved.outcome.reason is Reason.SECONDS
        assert solved.least == task.least
    solved = solve(task, "mixed", Budget(seconds=0))
    assert isinstance(solved.outcome, Undecided)
    assert solved.best is not None
    assert solved.best.cost > solved.least  # rows as they are: there is always a best so far


def test_a_bound_of_places_holds_for_every_layout_of_a_small_problem() -> None:
    """All layouts of eight words in four banks that keep pairs whole: none beats the bound."""
    machine = small_machine(4, 4)
    pairs = Access("pairs", np.arange(8).reshape(1, 4, 2), "st")
    odd = Access("odd", np.array([1, 3, 5, 7]).reshape(1, 4, 1), "ld")
    problem = Problem("small", (8,), 4, (pairs, odd), machine)
    task = Task(problem)
    meter = Meter(problem)
    least = None
    for order in permutations(range(4)):
        addresses = np.array([2 * order[e // 2] + e % 2 for e in range(8)])
        score = meter.score(addresses)
        assert score is not None
        cost = score.weighted(problem.weights)
        least = cost if least is None else min(least, cost)
    assert least == task.least == Fraction(4)


def test_answers_print_as_layouts() -> None:
    task = Task(pattern("ldmatrix:64x64:f16"))
    solved = solve(task, "swizzle")
    assert solved.best is not None
    assert show(task.layout(solved.best)) == "S<3,3,3> o (64,64):(64,1)"


@pytest.mark.sampled(15)
@pytest.mark.parametrize("size", [*range(1, 41), 48, 96, 160])
def test_every_swizzle_without_gaps_is_there(size: int) -> None:
    """Also those that take bits above a size's last power of two: 34 by 34 has only such ones."""
    numbers = np.arange(size)
    problem = Problem("one", (size,), 4, (Access("one", numbers[:1].reshape(1, 1, 1)),))
    ours = [evaluate(each, numbers).tolist() for each in family.swizzles(problem)]
    every = []
    for bits, base, shift in product(range(1, 5), range(9), range(1, 9)):
        for by in (shift, -shift) if shift >= bits else ():
            found = evaluate(Swizzle(bits, base, by), numbers)
            every += [found.tolist()] if found.max() < size else []
    assert {*map(tuple, ours)} == {tuple(numbers), *map(tuple, every)}


def test_a_swizzle_of_34_by_34_is_found() -> None:
    task = Task(pattern("halo:34x34:f32"))
    solved = solve(task, "swizzle")
    assert isinstance(solved.outcome, Found)
    assert solved.best is not None
    assert sorted(task.addresses(solved.best.map)) == list(range(34 * 34))
