"""Propagation against brute force, on random spaces that use every kind of declaration."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
from tests.search import brute
from tests.search.spaces import random_space

from warploom.search.branching.candidate import Candidates, Domain
from warploom.search.branching.problem import SpaceProblem, smallest_first
from warploom.search.branching.tree import enumerate_all
from warploom.search.outcome import Found, Impossible
from warploom.search.propagate import merge
from warploom.search.propagate.propagator import Propagator
from warploom.search.propagate.state import State
from warploom.search.space.build import Space
from warploom.search.space.evaluate import Assignment, Meaning

FEW = 250  # assignments to try in the fast tests
# Tables for nearly everything, for what is narrow, for nothing.
WIDTHS = (18, 7, 0)


def found_by_search(propagator: Propagator, **options: Any) -> list[Assignment]:
    result = enumerate_all(SpaceProblem(propagator, **options))
    if isinstance(result.outcome, Impossible):
        return []
    assert isinstance(result.outcome, Found)
    assert result.outcome.complete
    return [
        propagator.assignment(batch, row)
        for batch in result.outcome.answer
        for row in range(len(batch))
    ]


Instance = tuple[str, tuple[Hashable, ...]]


def domains(propagator: Propagator, candidates: Candidates, row: int) -> dict[Instance, Domain]:
    found = {}
    for choice in propagator.space.choices:
        for instance in choice.instances:
            found[choice.name, instance] = propagator.domain(candidates, row, choice, *instance)
    return found


def holds(domain: Domain, value: object) -> bool:
    return domain.may_be_absent if value is None else value in domain.values


def check_same_solutions(space: Space) -> None:
    wanted = {brute.frozen(each) for each in brute.solutions(space)}
    for bits in WIDTHS:
        found = [brute.frozen(each) for each in found_by_search(Propagator(space, bits))]
        assert len(found) == len(set(found))
        assert set(found) == wanted


@pytest.mark.sampled(15)
@pytest.mark.parametrize("seed", range(45))
def test_search_finds_exactly_the_solutions(seed: int) -> None:
    check_same_solutions(random_space(seed, FEW))


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_search_finds_exactly_the_solutions_of_many_spaces(hundred: int) -> None:
    for seed in range(1000 + 100 * hundred, 1100 + 100 * hundred):
        check_same_solutions(random_space(seed, 400, 4 if seed % 3 else 3))


def test_search_is_right_where_tables_would_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "PACKED_WORDS", 200)
    for seed in range(10):
        check_same_solutions(random_space(200 + seed, FEW))


def test_the_order_of_branching_does_not_matter() -> None:
    for seed in range(12):
        propagator = Propagator(random_space(seed, FEW))
        first = {brute.frozen(each) for each in found_by_search(propagator)}
        other = found_by_search(propagator, branch=smallest_first)
        assert {brute.frozen(each) for each in other} == first


def random_decisions(
    propagator: Propagator, pick: random.Random, count: int
) -> list[tuple[int, int]]:
    """Positions and sets of values."""
    made = []
    for _ in range(count):
        position = pick.randrange(propagator.choices)
        width = int(propagator.layout.width[position])
        made.append((position, pick.randrange(1, 1 << width)))
    return made


def decided(propagator: Propagator, decisions: list[tuple[int, int]]) -> tuple[bool, Candidates]:
    """One after another."""
    here = propagator.root()
    for position, bits in decisions:
        alive = propagator.restrict(
            here, np.zeros(1, np.int64), np.array([position]), np.array([bits], np.uint64)
        )
        if not alive[0]:
            return False, here
    return True, here


def within(
    propagator: Propagator, assignment: Assignment, decisions: list[tuple[int, int]]
) -> bool:
    bits = {}
    for choice in propagator.space.choices:
        start = propagator.layout.choices.offset[choice]
        for at, instance in enumerate(choice.instances):
            value = assignment[choice.name, instance]
            bits[start + at] = choice.absent_bit if value is None else choice.bits([value])
    return all(bits[position] & allowed for position, allowed in decisions)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_removed_that_a_solution_has(seed: int) -> None:
    """After any decisions, every solution that fulfils them is within the domains, and the counters
    are within their ranges."""
    space = random_space(500 + seed, FEW)
    pick = random.Random(seed)
    solutions = brute.solutions(space)
    for bits in WIDTHS:
        propagator = Propagator(space, bits)
        if not solutions:
            continue
        for count in (0, 1, 2, 3):
            made = random_decisions(propagator, pick, count)
            alive, here = decided(propagator, made)
            kept = [each for each in solutions if within(propagator, each, made)]
            assert alive or not kept
            check_domains(propagator, here, kept)
            check_counters(propagator, here, pick.sample(kept, min(20, len(kept))))


def check_domains(propagator: Propagator, here: Candidates, solutions: list[Assignment]) -> None:
    for key, domain in domains(propagator, here, 0).items():
        assert all(holds(domain, value) for value in {each[key] for each in solutions})


def check_counters(propagator: Propagator, here: Candidates, solutions: list[Assignment]) -> None:
    items = list(propagator.space.numbering)
    for counter in propagator.space.counters:
        for row in propagator.layout.counters.objects[counter]:
            objects = tuple(items[number] for number in row)
            low, high = propagator.range(here, 0, counter, *objects)
            for solution in solutions:
                value = Meaning(propagator.space, solution).count(counter, objects)
                assert low <= value
                assert high is None or value <= high


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(25))
def test_decisions_commute(seed: int) -> None:
    """In any order, one by one, all at once, or in the company of other candidates."""
    propagator = Propagator(random_space(800 + seed, 5000, 4), WIDTHS[seed % 3])
    pick = random.Random(seed)
    if not len(propagator.root()):
        return
    sets = [random_decisions(propagator, pick, pick.randint(1, 5)) for _ in range(6)]
    for made in sets:
        alive, here = decided(propagator, made)
        for _ in range(2):
            pick.shuffle(made)
            again, there = decided(propagator, made)
            assert again == alive
            if alive:
                assert_equal(here, there)
    check_batch(propagator, sets)


def check_batch(propagator: Propagator, sets: list[list[tuple[int, int]]]) -> None:
    """All decisions on all candidates in one go."""
    batch = propagator.root().take(np.zeros(len(sets), np.int64))
    flat = [(row, *each) for row, made in enumerate(sets) for each in made]
    row, position, bits = (np.array(column) for column in zip(*flat, strict=True))
    alive = propagator.restrict(batch, row, position, bits.astype(np.uint64))
    for number, made in enumerate(sets):
        expected, here = decided(propagator, made)
        assert alive[number] == expected
        if expected:
            assert_equal(here, batch.take(slice(number, number + 1)))


def assert_equal(left: Candidates, right: Candidates) -> None:
    assert (left.domains == right.domains).all()
    assert (left.low == right.low).all()
    assert (left.high == right.high).all()


def test_what_a_change_touches_is_enough() -> None:
    """Running every filter again after some decisions removes nothing more."""
    for seed in range(30):
        propagator = Propagator(random_space(900 + seed, 5000, 4), WIDTHS[seed % 3])
        if not len(propagator.root()):
            continue
        alive, here = decided(propagator, random_decisions(propagator, random.Random(seed), 3))
        if alive:
            again = here.take(slice(None))
            assert propagator.fixpoint.run_all(State(again)).all()
            assert_equal(here, again)


def test_propagation_is_monotone() -> None:
    """More decisions never leave more."""
    for seed in range(15):
        propagator = Propagator(random_space(300 + seed, 5000, 4))
        pick = random.Random(seed)
        if not len(propagator.root()):
            continue
        made = random_decisions(propagator, pick, 4)
        for count in range(4):
            alive, here = decided(propagator, made[:count])
            if not alive:
                break
            again, there = decided(propagator, made[: count + 1])
            if again:
                assert ((there.domains & ~here.domains) == 0).all()
                assert (there.low >= here.low).all()
                assert (there.high <= here.high).all()


def test_narrow_tables_see_more_than_single_clauses() -> None:
    """Clauses on the same choices are looked up together; one by one they see nothing here."""
    space = Space("exclusive or")
    things = space.objects("things", "ab")
    kind = space.boolean("kind", things)
    a, b = things.each("a", "b")
    same = kind(a).eq(kind(b))
    space.require(same | kind(a).is_("TRUE"))
    space.require(same | kind(a).is_("FALSE"))
    space.require(kind(a).is_("FALSE") | kind(b).is_("FALSE"))
    together = Propagator(space)
    assert together.domain(together.root(), 0, kind, "a").values == ("FALSE",)
    apart = Propagator(space, packed_bits=0)
    assert apart.domain(apart.root(), 0, kind, "a").values == ("TRUE", "FALSE")
