"""Several tiles at once: a way to do the accesses and a layout for each, within one memory.

Tiles meet in nothing but the memory that they share. So each tile gives its points: what it costs
at each number of bytes, for every way to do its accesses. The best choice of one point for each
tile that fits is found by trying all of them, the cheapest first. What counts are the wavefronts of
all tiles, then the instructions, then the bytes.

A tile's points begin with its best of all. Only where the best of all tiles do not fit together,
each is solved again with less and less room for unused places, until none is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations

from warploom.layout.language.ir import Layout
from warploom.layout.patterns.tiles import ALIGNED, KernelTile, Tiles
from warploom.layout.solver.choose import Chosen, Tried, best_way
from warploom.layout.solver.front import usual_class
from warploom.layout.solver.solve import Solved, solve
from warploom.layout.solver.task import Answer, Task
from warploom.search.budget import STOPS, Budget, governing_budget, reason_of
from warploom.search.engine import OnProgress
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One choice for a tile: the way, its layout, and what that takes. `solved` says what is known
    of the layout among those with no more unused places than `task` has room for."""

    tile: KernelTile
    way: str
    task: Task
    solved: Solved
    answer: Answer

    @property
    def cost(self) -> Fraction:
        return self.answer.cost

    @property
    def instructions(self) -> int:
        return sum(access.steps for access in self.task.problem.accesses)

    @property
    def bytes(self) -> int:
        return self.tile.bytes_with(self.answer.unused)

    @property
    def rank(self) -> tuple[Fraction, int, int]:
        return self.cost, self.instructions, self.bytes

    @property
    def layout(self) -> Layout:
        return self.task.layout(self.answer)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A choice for every tile, with the first byte of each."""

    points: tuple[Point, ...]
    offsets: tuple[int, ...]

    @property
    def cost(self) -> Fraction:
        return sum((point.cost for point in self.points), Fraction(0))

    @property
    def instructions(self) -> int:
        return sum(point.instructions for point in self.points)

    @property
    def bytes(self) -> int:
        """The last byte that any tile takes, and one."""
        ends = (o + p.bytes for o, p in zip(self.offsets, self.points, strict=True))
        return max(ends)


@dataclass(frozen=True, eq=False)
class Joint:
    """What is known of all tiles together. `chosen`: each by itself, with every way that was tried;
    `points`: those that were compared, where the best of each did not fit together."""

    tiles: Tiles
    chosen: tuple[Chosen, ...]
    points: tuple[tuple[Point, ...], ...]
    outcome: Outcome[Placed]
    best: Placed | None

    @cached_property
    def least(self) -> Fraction:
        """What no choice costs less than: each tile's bound in its best way."""
        return sum((min(t.least for t in each.tried) for each in self.chosen), Fraction(0))

    @property
    def needed(self) -> tuple[int, ...]:
        """Bytes of each phase that any choice takes, as all tiles are there without waste."""
        return bytes_of_phases(self.tiles, [tile.bytes_with(0) for tile in self.tiles.tiles])


def bytes_of_phases(tiles: Tiles, sizes: Sequence[int]) -> tuple[int, ...]:
    """What the tiles of each phase take at least: all but the last in memory are rounded up."""
    found = []
    for phase in range(len(tiles.phases)):
        mine = [s for t, s in zip(tiles.tiles, sizes, strict=True) if phase in t.live]
        rounded = [-(-size // ALIGNED) * ALIGNED for size in mine]
        spared = [more - size for size, more in zip(mine, rounded, strict=True)]
        found.append(sum(rounded) - max(spared, default=0))
    return tuple(found)


def solve_tiles(
    tiles: Tiles,
    klass: str | None = None,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
) -> Joint:
    """The best choice for all tiles. Raises BudgetSpentError if nothing was tried in time."""
    limit = budget or governing_budget()
    with limit.governing():
        chosen = tuple(
            best_way(
                tile.problem, tiles.vary, klass or usual_class(tile.problem),
                budget=limit, on_progress=on_progress,
            )
            for tile in tiles.tiles
        )  # fmt: skip
        firsts = tuple(tuple(_first(t, e)) for t, e in zip(tiles.tiles, chosen, strict=True))
        refused = _refused(tiles, chosen)
        if refused is not None:
            return Joint(tiles, chosen, firsts, refused, None)
        best = _best(tiles, firsts)
        stopped: Reason | None = None
        points = firsts
        if best is None or best.cost > sum(min(p.cost for p in each) for each in firsts):
            points, stopped = _all_points(tiles, chosen, limit)
            best = _best(tiles, points)
    joint = Joint(tiles, chosen, points, Undecided(Reason.SOLVER), best)
    return Joint(tiles, chosen, points, _outcome(joint, stopped), best)


def _refused(tiles: Tiles, chosen: Sequence[Chosen]) -> Outcome[Placed] | None:
    """Why there is nothing to choose from: a tile without a layout, or not enough memory."""
    for tile, each in zip(tiles.tiles, chosen, strict=True):
        if each.best.front.best is None:
            outcome = each.best.front.asked.outcome
            if isinstance(outcome, Impossible) and not each.open and not each.left:
                return Impossible(f"tile {tile.name}: {outcome.why}")
            stopped = outcome.reason if isinstance(outcome, Undecided) else Reason.SOLVER
            return Undecided(stopped)
    needed = bytes_of_phases(tiles, [tile.bytes_with(0) for tile in tiles.tiles])
    for phase, size in zip(tiles.phases, needed, strict=True):
        if size > tiles.limit:
            there = f"{tiles.limit} bytes of shared memory"
            return Impossible(
                f"the tiles of phase '{phase}' take {size} bytes, and there are {there}"
            )
    return None


def _outcome(joint: Joint, stopped: Reason | None) -> Outcome[Placed]:
    """Found: every tile meets the bound of its best way. Impossible: all points are known to be the
    best of their class, so that nothing of it costs less than the best of them."""
    best = joint.best
    if best is not None and best.cost == joint.least:
        return Found(best, True)
    if stopped is not None:
        return Undecided(stopped)
    whole = all(not each.open and not each.left for each in joint.chosen)
    known = all(_is_known(p.solved) for each in joint.points for p in each)
    if not whole or not known:
        return Undecided(Reason.SOLVER)
    if best is None:
        return Impossible("no choice for all tiles fits into shared memory side by side")
    return Impossible("no choice of the class that fits into shared memory meets the bound")


def _is_known(solved: Solved) -> bool:
    return solved.proved or isinstance(solved.outcome, Found)


# -- the points of a tile --------------------------------------------------------------------------


def _first(tile: KernelTile, chosen: Chosen) -> Iterator[Point]:
    """The best of every way, as it was found."""
    for tried in chosen.tried:
        found = tried.front.best
        if found is not None:
            yield Point(tile, tried.way.name, tried.front.task, tried.front.solved, found)


def _all_points(
    tiles: Tiles, chosen: Sequence[Chosen], budget: Budget
) -> tuple[tuple[tuple[Point, ...], ...], Reason | None]:
    """Every point of every tile that no other beats; why the search for them ended early."""
    found: list[tuple[Point, ...]] = []
    stopped: Reason | None = None
    for tile, each in zip(tiles.tiles, chosen, strict=True):
        points: list[Point] = []
        for tried in each.tried:
            try:
                points.extend(_with_less_room(tile, tried, budget))  # as far as it comes
            except STOPS as stop:
                stopped = reason_of(stop)
        found.append(_unbeaten(points))
    return tuple(found), stopped


def _with_less_room(tile: KernelTile, tried: Tried, budget: Budget) -> Iterator[Point]:
    """The best of a way, then the best with fewer unused places than that, until none is left."""
    first = next(_first(tile, Chosen((tried,))), None)
    if first is None:
        return
    yield first
    room, klass = first.answer.unused - 1, tried.front.asked.klass
    while room >= 0:
        budget.check()
        task = Task(tried.way.problem, room=room)
        solved = solve(task, klass, budget)
        if solved.best is None:
            return
        yield Point(tile, tried.way.name, task, solved, solved.best)
        room = solved.best.unused - 1


def _unbeaten(points: Sequence[Point]) -> tuple[Point, ...]:
    """Points of which no other is at least as good in everything; of equal ones the first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: p.rank):
        if not any(_beats(other, point) for other in kept):
            kept.append(point)
    return tuple(kept)


def _beats(one: Point, other: Point) -> bool:
    return (
        one.cost <= other.cost
        and one.instructions <= other.instructions
        and one.bytes <= other.bytes
    )


# -- one point for each ----------------------------------------------------------------------------


def _best(tiles: Tiles, points: Sequence[Sequence[Point]]) -> Placed | None:
    """The cheapest choice that fits: all are tried, but for those that cost more than the best."""
    listed = [sorted(each, key=lambda p: p.rank) for each in points]
    if not all(listed):
        return None
    least = [min(p.rank[:2] for p in each) for each in listed]
    best: Placed | None = None

    def visit(taken: list[Point], cost: Fraction, instructions: int) -> None:
        nonlocal best
        governing_budget().check()
        number = len(taken)
        rest = least[number:]
        bound = (cost + sum(c for c, _ in rest), instructions + sum(i for _, i in rest))
        if best is not None and bound > (best.cost, best.instructions):
            return
        if number == len(listed):
            offsets = place(tiles, [p.bytes for p in taken])
            made = None if offsets is None else Placed(tuple(taken), offsets)
            if made is not None and (best is None or _rank(made) < _rank(best)):
                best = made
            return
        for point in listed[number]:
            visit([*taken, point], cost + point.cost, instructions + point.instructions)

    visit([], Fraction(0), 0)
    return best


def _rank(placed: Placed) -> tuple[Fraction, int, int]:
    return placed.cost, placed.instructions, placed.bytes


def place(tiles: Tiles, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The first byte of each tile, so that those of one phase do not meet; None if they do not fit.

    Where there is an arrangement at all, pushing every tile down in the order of their first bytes
    gives one of these: each lies as low as those before it let it. So all orders are tried.
    """
    if max(bytes_of_phases(tiles, sizes)) > tiles.limit:
        return None
    numbers = range(len(sizes))
    best: tuple[int, tuple[int, ...]] | None = None
    lower = max(bytes_of_phases(tiles, sizes))
    for order in permutations(numbers):
        offsets = _lowest(tiles, sizes, order)
        end = max(offsets[n] + sizes[n] for n in numbers)
        if best is None or end < best[0]:
            best = end, offsets
        if end == lower:
            break
    assert best is not None, "there is at least one tile"
    return best[1] if best[0] <= tiles.limit else None


def _lowest(tiles: Tiles, sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    offsets = [0] * len(sizes)
    done: list[int] = []
    for number in order:
        tile = tiles.tiles[number]
        near = [n for n in done if tiles.tiles[n].live & tile.live]
        start = 0
        for other in sorted(near, key=lambda n: offsets[n]):
            if start + sizes[number] <= offsets[other]:
                break
            end = max(start, offsets[other] + sizes[other])
            start = -(-end // tile.aligned) * tile.aligned
        offsets[number] = start
        done.append(number)
    return tuple(offsets)
