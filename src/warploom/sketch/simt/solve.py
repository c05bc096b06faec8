"""Fills a SIMT sketch: the paper's spaces in order, the fewest accumulate statements, a proof.

`solve` searches at one size; `reinstantiate` takes what it found to another and proves it there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from warploom.errors import CheckError, InternalError, located, users_line
from warploom.index.ir import Expr, Select, constants, operations, walk
from warploom.index.show import show
from warploom.pictured import Pictured
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Found, Impossible, NothingFoundError, Outcome, Reason, Undecided
from warploom.sketch.explain.numbers import agreeing_fill
from warploom.sketch.explain.show import warp_reason
from warploom.sketch.simt import fewest
from warploom.sketch.simt.accumulator import narrowed
from warploom.sketch.simt.function import SketchFunction
from warploom.sketch.simt.ir import Traced, holes_in, places
from warploom.sketch.simt.lower import Lowered, lower
from warploom.sketch.simt.order import Conflict, follow
from warploom.sketch.simt.refute import refutation, why_on_numbers
from warploom.sketch.simt.space import SPACES, HoleChoices, candidates, counterparts
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.transfer import offers
from warploom.sketch.term.gather import Sense, Setting
from warploom.sketch.term.ir import Program
from warploom.sketch.term.laws import laws_named, laws_said
from warploom.sketch.term.verify import Verification, verify

_GLANCE = 0.15  # seconds for asking whether an accumulator can be right on its own
_QUICK = 0.5  # seconds for the first fill, up to which all fills are listed to choose from
_KEPT = 64  # fills that are kept besides the best, for other sizes
# The form alone would open whole spaces at a size at which they are not searched.
_READINGS = (Sense.NATURAL, Sense.SHARE, Sense.ANY)

Times = tuple[float, float]  # wall seconds, CPU seconds


def _now() -> Times:
    return time.monotonic(), time.process_time()


def _since(start: Times) -> Times:
    wall, cpu = _now()
    return wall - start[0], cpu - start[1]


@dataclass(frozen=True, slots=True, eq=False)
class Filled(Pictured):
    """A sketch with its holes filled; `live` are the accumulate statements that stay."""

    traced: Traced
    space: int
    live: frozenset[int]
    fill: Mapping[str, Expr]
    verification: Verification
    cost: tuple[int, int]
    optimal: bool  # no fill of any space has fewer accumulate statements
    # Until the first fill with these properties was known.
    seconds: float
    cpu_seconds: float
    # Parameters by hole: of this fill, then of others that are as good at this size.
    rows: tuple[Mapping[str, Setting], ...] = field(repr=False)

    def __str__(self) -> str:
        """The fill, a line for each hole, and what was made of it."""
        width = max(map(len, self.fill), default=0)
        holes = [f"  {hole:<{width}}  {show(expr)}" for hole, expr in self.fill.items()]
        return "\n".join([f"{self.traced.name}: {self.verification}", *holes])

    @property
    def statements(self) -> int:
        """Accumulate statements whose predicate is not false."""
        return len(self.live)


@located
def solve(
    sketch: Traced | SketchFunction,
    *,
    optimum: bool = False,
    spaces: Iterable[int] = SPACES,
    laws: str | None = None,
    budget: Budget | None = None,
) -> Outcome[Filled]:
    """A fill with the fewest statements, in the first space that has one.

    Of such fills it is the cheapest if the first is found in half a second and all are listed in
    five, and within the budget; else the cheapest of those listed by then, at worst the first.
    `laws`, "flatten" or "none", says which rewrites count as equal; by default the goal says.
    With `optimum` the whole space is searched for each number of statements before a larger number
    is tried, so no fill has fewer. A spent budget is Undecided; Impossible is a proof, under the
    laws used (`term/laws.py`). A sketch without holes is checked: it is Found, or Impossible says
    which cell is wrong. One whose lanes race, for every fill that is known, is refused. A sketch
    function is taken at its own sizes.
    """
    traced = traced_of(sketch)
    if laws is not None:
        traced = replace(traced, goal=replace(traced.goal, laws=laws_named(laws)))
    if not traced.holes:
        return _checked(traced)
    search = _Search(traced, budget or Budget(), tuple(spaces))
    try:
        found = search.by_count() if optimum else search.by_space()
    except BudgetSpentError as spent:
        return Undecided(spent.reason)
    except KeyboardInterrupt:
        return Undecided(Reason.INTERRUPTED)
    return Impossible(search.why()) if found is None else _answered(found)


def _answered(found: Filled) -> Outcome[Filled]:
    """Found, if the fill is right on numbers, too; if not, none is: all that are right on symbols
    hold the same terms, so they compute the same."""
    verdict = found.verification
    if verdict:
        return Found(found, complete=False)
    if not verdict.on_numbers:
        raise InternalError(f"the search for '{found.traced.name}' gave a wrong fill: {verdict}")
    return Impossible(why_on_numbers(found.traced, verdict))


def filled_of(given: Filled | Outcome[Filled], wanted: str = "kernel") -> Filled:
    """A filled sketch, also as `solve` gives it; an error that says why if there is none, and so
    none of what is wanted of it."""
    match given:
        case Filled():
            return given
        case Found(answer=Filled() as filled):
            return filled
        case Impossible(why):
            reason = f"the sketch has no fill, so there is no {wanted}{why and ': '}{why}"
        case Undecided(stopped):
            reason = f"the sketch was not filled: {stopped.value}"
        case _:
            reason = f"a filled sketch is wanted, not a {type(given).__name__}"
    advice = "solve gives Found, with the filled sketch"
    if isinstance(given, Impossible | Undecided):
        raise NothingFoundError(reason, given, users_line(), advice)
    raise CheckError(reason, users_line(), advice)


def traced_of(given: Traced | SketchFunction) -> Traced:
    if isinstance(given, SketchFunction):
        return given.at()
    if not isinstance(given, Traced):
        raise CheckError(
            f"only warp sketches are solved, not a {type(given).__name__}",
            users_line(),
            "decorate the function with warploom.warp_sketch; a Sketch is for synthesize",
        )
    return given


def _checked(traced: Traced) -> Outcome[Filled]:
    """The verdict on a sketch that leaves nothing open."""
    started = _now()
    lowered = lower(traced, {})
    verdict = verify(lowered.program, traced.goal)
    order = follow(traced, {}, lowered.live)
    if order.conflict is not None:
        raise order.conflict.error()
    if verdict:
        return Found(filled(lowered, [{}], SPACES[0], True, _since(started)), complete=True)
    why = f"{refutation(lowered, verdict, order)}"
    if agreeing_fill(lowered.program, traced.goal, Budget()) is not None:
        why += f"; equal on the numbers tried: {laws_said(traced.goal.laws)}"
    return Impossible(why)


class _Search:
    def __init__(self, traced: Traced, budget: Budget, spaces: tuple[int, ...]) -> None:
        if not spaces or not set(spaces) <= set(SPACES):
            raise CheckError(f"spaces are among {SPACES}")
        self.traced, self.budget, self.spaces = traced, budget, spaces
        self.started = _now()
        self.statements = fewest.statements_of(traced)
        self.droppable = frozenset(itertools.chain(*self.statements.by_accumulator.values()))
        self._made: dict[int, dict[str, HoleChoices]] = {}
        self._alone: dict[tuple[int, tuple[object, ...]], bool] = {}
        self.least = self._least()

    def by_space(self) -> Filled | None:
        return self._first((s, count) for s in self._different_spaces() for count in self._counts())

    def by_count(self) -> Filled | None:
        return self._first((s, count) for count in self._counts() for s in self._different_spaces())

    def _first(self, order: Iterable[tuple[int, int]]) -> Filled | None:
        """The first (space, number of statements) with a fill."""
        refuted: set[tuple[int, int]] = set()
        for space, count in order:
            for live in self._sets(space, count):
                self.budget.check()
                lowered = self._lower(space, live)
                result = self._run(lowered.program, "first")
                if len(result.fills):
                    fewer = itertools.product(SPACES, range(self._counts()[0], count))
                    return self._filled(lowered, result, space, set(fewer) <= refuted)
            # A space contains those before it.
            refuted |= {(smaller, count) for smaller in range(1, space + 1)}
        return None

    def why(self) -> str:
        """What was ruled out and why: of the largest space, with every accumulate statement."""
        program = self._lower(max(self.spaces), self.droppable).program
        outputs = [(array.name, array.shape) for array in self.traced.outputs]
        return warp_reason(program, outputs, self.spaces, self.budget)

    def _different_spaces(self) -> Iterator[int]:
        """The spaces asked for, less those that add nothing to the one before."""
        before: list[int] = []
        for space in sorted(self.spaces):
            sizes = [len(each) for each in self._candidates(space).values()]
            if sizes != before:
                yield space
            before = sizes

    def _candidates(self, space: int) -> dict[str, HoleChoices]:
        if space not in self._made:
            holes = self.traced.holes.values()
            self._made[space] = {hole.name: candidates(hole, space) for hole in holes}
        return self._made[space]

    def _lower(self, space: int, droppable: frozenset[int]) -> Lowered:
        live = self.statements.fixed | droppable
        return lower(self.traced, self._candidates(space), live)

    def _least(self) -> dict[str, int]:
        program = self._lower(min(self.spaces), self.droppable).program
        parts = fewest.parts_of(program, self.traced)
        return fewest.least(self.statements, {acc: p.goals[0] for acc, p in parts.items()})

    def _counts(self) -> range:
        """From the least number of droppable statements to all of them."""
        return range(sum(self.least.values()), len(self.droppable) + 1)

    def _run(self, program: Program, mode: str, seconds: float | None = None) -> Result:
        budget = self.budget if seconds is None else self.budget.up_to(seconds)
        result = synthesize(program, mode=mode, budget=budget, only_symbols=True)
        if isinstance(result.outcome, Undecided) and seconds is None:
            raise BudgetSpentError(result.outcome.reason)
        return result

    def _sets(self, space: int, count: int) -> Iterator[frozenset[int]]:
        """The sets of so many droppable statements that are worth a search."""
        if count == len(self.droppable):
            yield self.droppable
            return
        spare = count - sum(self.least.values())
        options = {
            acc: self._options(space, acc, range(least, least + spare + 1))
            for acc, least in self.least.items()
        }
        yield from fewest.sets_of_size(self.statements, count, options)

    def _options(self, space: int, acc: str, sizes: range) -> dict[int, list[frozenset[int]]]:
        """For each number of statements the sets with which the accumulator alone can be right."""
        numbers = self.statements.by_accumulator[acc]
        return {
            count: [
                chosen
                for chosen in map(frozenset, itertools.combinations(numbers, count))
                if self._is_possible(space, acc, chosen)
            ]
            for count in sizes
            if count <= len(numbers)
        }

    def _is_possible(self, space: int, acc: str, chosen: frozenset[int]) -> bool:
        """False only if it is certain that these statements cannot give the accumulator's goal."""
        form = (space, fewest.canonical(self.statements, chosen))
        if form not in self._alone:
            self.budget.check()
            program = fewest.parts_of(self._lower(space, chosen).program, self.traced).get(acc)
            self._alone[form] = program is None or not isinstance(
                self._run(program, "first", _GLANCE).outcome, Impossible
            )
        return self._alone[form]

    def _filled(self, lowered: Lowered, first: Result, space: int, optimal: bool) -> Filled:
        """The cheapest of the fills that are listed, if the first came quickly and time is left to
        list others; else the first."""
        spent = _since(self.started)
        listed = first
        if first.stats.seconds < _QUICK:
            listed = self._run(lowered.program, "all", 10 * _QUICK)
        fills = best_fills(lowered, listed) or best_fills(lowered, first)
        return filled(lowered, fills, space, optimal, spent)


def best_fills(lowered: Lowered, result: Result) -> list[dict[str, int]]:
    """The fills as candidates by hole, the cheapest first."""
    prices: dict[tuple[str, int], tuple[int, frozenset[int]]] = {}

    def price(name: str, choice: int) -> tuple[int, frozenset[int]]:
        if (name, choice) not in prices:
            expr = lowered.candidates[name].expression(choice)
            # A select costs two: the comparison is counted as an operation of its own.
            selects = sum(isinstance(part, Select) for part in walk(expr))
            prices[name, choice] = operations(expr) + selects, constants(expr)
        return prices[name, choice]

    def cost(choices: dict[str, int]) -> tuple[int, int]:
        parts = [price(name, choice) for name, choice in choices.items()]
        return sum(p for p, _ in parts), len(frozenset().union(*(c for _, c in parts)))

    fills = [lowered.choices(result.fills.as_dict(n)) for n in range(len(result.fills))]
    return sorted(fills, key=cost)[:_KEPT]


def without_conflict(lowered: Lowered, fills: list[dict[str, int]]) -> list[dict[str, int]]:
    """The fills in which no lanes race; an error if they do in all of them."""
    first = _conflict(lowered, fills[0])
    if first is None:
        return fills  # others are looked at when they become the first
    traced = lowered.traced
    decided = any(holes_in(*index) for index in places(traced))
    kept = [each for each in fills[1:] if decided and _conflict(lowered, each) is None]
    if not kept:
        raise first.error()
    return kept


def _conflict(lowered: Lowered, choices: Mapping[str, int]) -> Conflict | None:
    return follow(lowered.traced, expressions(lowered, choices), lowered.live).conflict


def expressions(lowered: Lowered, choices: Mapping[str, int]) -> dict[str, Expr]:
    """The choices of a fill as index expressions."""
    return {name: lowered.candidates[name].expression(choice) for name, choice in choices.items()}


def filled(
    lowered: Lowered,
    fills: list[dict[str, int]],
    space: int,
    optimal: bool,
    spent: Times,
) -> Filled:
    """The first of these fills in which no lanes race, verified; the others go along."""
    fills = without_conflict(lowered, fills)
    best = fills[0]
    program = lowered.program
    verdict = verify(program, program.goals[0], lowered.fill(best))
    only = tuple(narrowed(lowered.traced.accumulators.values()))
    verdict = replace(verdict, not_covered=(*verdict.not_covered, *only))
    exprs = expressions(lowered, best)
    cost = sum(map(operations, exprs.values()))
    used = frozenset().union(*map(constants, exprs.values()))
    rows = tuple(
        {name: lowered.candidates[name].rows[choice] for name, choice in each.items()}
        for each in fills
    )
    return Filled(
        lowered.traced,
        space,
        lowered.live,
        exprs,
        verdict,
        (cost, len(used)),
        optimal,
        *spent,
        rows,
    )


@located
def reinstantiate(
    small: Filled | Outcome[Filled],
    large: Traced | SketchFunction,
    *,
    budget: Budget | None = None,
) -> Outcome[Filled]:
    """The same fill at another size, proved there.

    A constant of a fill may mean itself or its distance to a size: the likeliest readings are tried
    first, then all of them are offered to the search at the new size.
    """
    small, large = filled_of(small), traced_of(large)
    _check_same(small.traced, large)
    if not large.holes:
        return _checked(large)
    started, limits = _now(), budget or Budget()
    conflict: CheckError | None = None

    def read(name: str, row: Setting, reading: Sense) -> HoleChoices:
        return counterparts(small.traced.holes[name], row, large.holes[name], reading)

    for _, offered in offers(small.rows, read, _READINGS):
        if not all(map(len, offered.values())):
            continue
        lowered = lower(large, offered, small.live)
        if all(len(each) == 1 for each in offered.values()):
            fills = [dict.fromkeys(offered, 0)]
            if not verify(lowered.program, large.goal, lowered.fill(fills[0])):
                continue
        else:
            result = synthesize(lowered.program, mode="first", budget=limits, only_symbols=True)
            if isinstance(result.outcome, Undecided):
                return Undecided(result.outcome.reason)
            fills = best_fills(lowered, result)
        try:
            if fills:
                spent = _since(started)
                found = filled(lowered, fills, small.space, small.optimal, spent)
                return _answered(found)
        except CheckError as error:  # another reading may do
            conflict = conflict or error
    if conflict is not None:
        raise conflict
    return Undecided(Reason.COUNTERPART)


def _check_same(small: Traced, large: Traced) -> None:
    kinds = [[(h.name, h.kind) for h in each.holes.values()] for each in (small, large)]
    numbers = [[s.number for s in each.statements] for each in (small, large)]
    if small.name != large.name or kinds[0] != kinds[1] or numbers[0] != numbers[1]:
        raise CheckError(
            f"'{small.name}' and '{large.name}' are not one sketch at two sizes",
            advice="record both from one sketch function",
        )
