"""Small problems with known answers, declared as spaces: against brute force that knows nothing of
spaces."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from bench.common.narrowed import answer

from warploom.search.branching.bound import minimise
from warploom.search.branching.candidate import Candidates, decision
from warploom.search.branching.problem import SpaceProblem, smallest_first
from warploom.search.branching.tree import count_all, enumerate_all
from warploom.search.outcome import Found, Impossible
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space, amount
from warploom.search.space.ir import Choice, implies, some


def count(space: Space) -> int:
    outcome = count_all(SpaceProblem(Propagator(space))).outcome
    if isinstance(outcome, Impossible):
        return 0
    assert isinstance(outcome, Found)
    assert outcome.complete
    return outcome.answer


# -- queens ----------------------------------------------------------------------------------------


def queens(size: int) -> tuple[Space, Choice]:
    """A column for each row; the numbers of rows are known."""
    space = Space("queens")
    rows = space.objects("rows", range(size))
    column = space.integer("column", rows, values=range(size))
    for distance in range(1, size):
        pairs = [(low, low + distance) for low in range(size - distance)]
        low, high = space.relation(f"rows {distance} apart", pairs).row("low", "high")
        apart = [
            (left, right)
            for left in range(size)
            for right in range(size)
            if left != right and abs(left - right) != distance
        ]
        space.table([column(low), column(high)], apart)
    return space, column


def brute_queens(size: int) -> int:
    def attacked(order: tuple[int, ...]) -> bool:
        return any(abs(order[a] - order[b]) == b - a for a, b in combinations(range(size), 2))

    return sum(not attacked(order) for order in permutations(range(size)))


@pytest.mark.parametrize("size", range(1, 8))
def test_queens(size: int) -> None:
    assert count(queens(size)[0]) == brute_queens(size)


def test_ninety_two_ways_for_eight_queens_in_any_order_of_branching() -> None:
    propagator = Propagator(queens(8)[0])
    for branch in (None, smallest_first):
        result = count_all(SpaceProblem(propagator, branch=branch))
        assert result.outcome == Found(92, complete=True)
    assert answer(count_all(SpaceProblem(Propagator(queens(8)[0], packed_bits=0))).outcome) == 92


def test_a_queen_in_the_corner() -> None:
    space, column = queens(6)
    propagator = Propagator(space)
    problem = SpaceProblem(propagator, (decision(column, (0,), 0),))
    assert count_all(problem).outcome == Impossible()
    assert not propagator.domain(propagator.root(problem.decisions), 0, column, 1).is_decided


# -- graph colouring -------------------------------------------------------------------------------


def colouring(nodes: int, edges: list[tuple[int, int]], colours: int) -> Space:
    space = Space("colouring")
    things = space.objects("nodes", range(nodes))
    joined = space.relation("joined", edges, arity=2)
    colour = space.choice("colour", things, values=[f"c{n}" for n in range(colours)])
    a, b = joined.row("a", "b")
    space.require(colour(a).ne(colour(b)))
    return space


@pytest.mark.parametrize("seed", range(8))
def test_colourings(seed: int) -> None:
    random = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(6), 2) if random.random() < 0.4]
    for colours in (2, 3):
        right = sum(
            all(chosen[a] != chosen[b] for a, b in pairs)
            for chosen in product(range(colours), repeat=6)
        )
        assert count(colouring(6, pairs, colours)) == right


def test_four_nodes_joined_to_each_other_need_four_colours() -> None:
    everyone = list(combinations(range(4), 2))
    assert count(colouring(4, everyone, 3)) == 0
    assert count(colouring(4, everyone, 4)) == math.factorial(4)


# -- register allocation ---------------------------------------------------------------------------


class Allocation:
    """Values live over intervals of a straight-line program. Each is in a register of a bank, or
    spilled to memory, whose traffic is limited; a bank has so many registers at each point."""

    SPANS = ((0, 4), (1, 3), (2, 6), (3, 5), (5, 8), (6, 8))
    USES = (2, 1, 3, 1, 2, 1)
    WIDE = (False, True, False, False, True, False)  # two registers each

    def __init__(self, registers: int, traffic: int) -> None:
        self.registers, self.traffic = registers, traffic
        count = len(self.SPANS)
        space = self.space = Space("registers")
        values = space.objects("values", [f"v{n}" for n in range(count)])
        points = space.objects("points", [f"p{n}" for n in range(9)])
        live = space.relation(
            "live",
            [(f"v{v}", f"p{p}") for v, (a, b) in enumerate(self.SPANS) for p in range(a, b)],
        )
        width = space.number("width", {f"v{v}": 1 + wide for v, wide in enumerate(self.WIDE)})
        uses = space.number("uses", {f"v{v}": n for v, n in enumerate(self.USES)})
        self.place = space.choice("place", values, values="LEFT RIGHT MEMORY")
        v, p = values.one("v"), points.one("p")
        self.pressure = {
            bank: space.total(
                f"pressure {bank}",
                amount(width(v), live(v, p) & self.place(v).is_(bank)),
                per=p,
            )
            for bank in ("LEFT", "RIGHT")
        }
        self.spilled = space.total("traffic", amount(uses(v), self.place(v).is_("MEMORY")))
        for pressure in self.pressure.values():
            space.require(pressure(p) <= registers)
        space.require(self.spilled() <= traffic)

    def fits(self, chosen: tuple[str, ...]) -> bool:
        for bank, point in product(("LEFT", "RIGHT"), range(9)):
            used = 0
            for place, (a, b), wide in zip(chosen, self.SPANS, self.WIDE, strict=True):
                used += (1 + wide) * (place == bank and a <= point < b)
            if used > self.registers:
                return False
        return self.spills(chosen) <= self.traffic

    def spills(self, chosen: tuple[str, ...]) -> int:
        return sum(u for place, u in zip(chosen, self.USES, strict=True) if place == "MEMORY")

    def all(self) -> list[tuple[str, ...]]:
        every = product(("LEFT", "RIGHT", "MEMORY"), repeat=len(self.SPANS))
        return [chosen for chosen in every if self.fits(chosen)]


@pytest.mark.parametrize(("registers", "traffic"), [(1, 4), (1, 6), (2, 3), (2, 10), (3, 0)])
def test_register_allocations(registers: int, traffic: int) -> None:
    allocation = Allocation(registers, traffic)
    assert count(allocation.space) == len(allocation.all())


@pytest.mark.parametrize(("registers", "traffic"), [(1, 10), (2, 10), (2, 2)])
def test_the_cheapest_allocation(registers: int, traffic: int) -> None:
    """The counter's lower end is a bound on the cost of every completion."""
    allocation = Allocation(registers, traffic)
    propagator = Propagator(allocation.space)
    column = propagator.columns(allocation.spilled).start

    def least(candidates: Candidates) -> np.ndarray:
        return candidates.low[:, column]

    result = minimise(SpaceProblem(propagator, bound=least, cost=least))
    blind = minimise(SpaceProblem(propagator, cost=least))
    costs = [allocation.spills(chosen) for chosen in allocation.all()]
    for each in (result, blind):
        assert isinstance(each.outcome, Found)
        assert each.outcome.complete
        assert each.outcome.answer.cost == min(costs)
    assert result.statistics.states <= blind.statistics.states
    assert blind.statistics.pruned.get("bound", 0) == 0


def test_no_allocation_is_impossible_for_branch_and_bound_too() -> None:
    allocation = Allocation(0, 3)
    propagator = Propagator(allocation.space)
    problem = SpaceProblem(propagator, cost=lambda candidates: np.zeros(len(candidates)))
    assert minimise(problem).outcome == Impossible()


# -- products and divisors -------------------------------------------------------------------------


SIZES = (2, 3, 4, 6, 8, 12)


def tilings(total: int, tiles: int, parts: tuple[int, ...] = SIZES) -> tuple[Space, Choice, Choice]:
    """Tiles of a dimension whose product divides it."""
    space = Space("tiles")
    dims = space.objects("dims", ["d"])
    pieces = space.objects("tiles", [f"t{n}" for n in range(tiles)])
    size = space.integer("size", pieces, values=parts)
    divisors = [n for n in range(1, total + 1) if total % n == 0]
    factor = space.integer("tiling_factor", dims, values=divisors, derived=True)
    space.equal_product(factor(dims.one("d")), size(pieces.one("t")))
    return space, size, factor


@pytest.mark.parametrize(("total", "tiles"), [(48, 2), (36, 3), (35, 2), (24, 1), (7, 1)])
def test_products_that_divide(total: int, tiles: int) -> None:
    right = [c for c in product(SIZES, repeat=tiles) if total % math.prod(c) == 0]
    space, size, factor = tilings(total, tiles)
    assert count(space) == len(right)
    propagator = Propagator(space)
    root = propagator.root()
    if not right:
        assert not len(root)
        return
    # One table knows everything: only what is in a solution is left.
    assert set(propagator.domain(root, 0, factor, "d").values) == {math.prod(c) for c in right}
    assert set(propagator.domain(root, 0, size, "t0").values) == {c[0] for c in right}


def test_a_range_would_accept_what_does_not_divide() -> None:
    """A counter only knows between what its product lies; 10 and 27 are products, none between."""
    space = Space("range")
    pieces = space.objects("tiles", "abc")
    size = space.integer("size", pieces, values=[1, 3, 10])
    t = pieces.one("t")
    whole = space.product("whole", amount(size(t)))
    space.require(whole() >= 11)
    space.require(whole() <= 26)
    propagator = Propagator(space)
    assert len(propagator.root()) == 1
    assert count(space) == 0  # but the search does find out


# -- a rule of mappings ----------------------------------------------------------------------------


def test_every_chain_uses_what_any_chain_uses() -> None:
    """Maps in chains, each sequential or on one of two levels: a level that is used is used once in
    every chain."""
    chains = {"A": ("m0", "m1", "m2"), "B": ("m0", "m3"), "C": ("m0", "m1", "m4")}
    maps = sorted({m for chain in chains.values() for m in chain})
    levels = ("ONE", "TWO")
    space = Space("mapping")
    objects = space.objects("maps", maps)
    names = space.objects("chains", chains)
    member = space.relation("in chain", [(m, c) for c, chain in chains.items() for m in chain])
    code = space.choice("code", objects, values=["SEQUENTIAL", *levels])
    m, n, c = objects.one("m"), objects.one("n"), names.one("c")
    for level in levels:
        space.require(
            implies(code(m).is_(level), some(n, member(n, c) & code(n).is_(level)) | member(m, c))
        )
        once = member(m, c) & member(n, c) & code(m).is_(level)
        space.require(implies(once, code(n).is_not(level)))

    def right(chosen: dict[str, str]) -> bool:
        for level in levels:
            uses = [sum(chosen[m] == level for m in chain) for chain in chains.values()]
            if any(uses) and set(uses) != {1}:
                return False
        return True

    every = product(("SEQUENTIAL", *levels), repeat=len(maps))
    expected = sum(right(dict(zip(maps, chosen, strict=True))) for chosen in every)
    assert count(space) == expected
    assert enumerate_all(SpaceProblem(Propagator(space))).statistics.states < 3 ** len(maps)
