"""Other families of gathers that would do: tried in place of a hole, and of all holes like it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.errors import CheckError, SearchError
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Found, Undecided, Verdict
from warploom.sketch import holes
from warploom.sketch.synth.free import with_gathers
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.gather import GatherSet
from warploom.sketch.term.ir import Apply, Program

SECONDS = 20.0  # by default, for all together
_EACH = 2.0  # seconds for one of them
_MOST = 4096, 1024  # choices of a family that is tried in one hole, in several at once


@dataclass(frozen=True, slots=True)
class Change:
    """A hole, and the function that would take the place of its own."""

    hole: str
    function: str
    instead_of: str

    def __str__(self) -> str:
        return f"{self.function} instead of {self.instead_of} for '{self.hole}'"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """With these changes the sketch has a fill, which was proved."""

    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return f"{' and '.join(map(str, self.changes))}: has a fill, proved"


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What would do, and whether everything was tried to its end."""

    found: tuple[Suggestion, ...]
    tried: int
    complete: bool


def suggest(program: Program, goal: int = 0, *, budget: Budget | None = None) -> Suggestions:
    """For a sketch without a fill: all holes at once, those of one function, each on its own."""
    limits = budget or Budget(SECONDS)
    found: list[Suggestion] = []
    tried, complete = 0, True
    try:
        for positions in _groups(program):
            for made in _families(program, positions, limits):
                tried += 1
                answer = _would_do(with_gathers(program, made), goal, limits)
                complete &= answer is not None
                if answer:
                    say = _suggestion(program, _fewest(program, made, goal, limits))
                    found += [say] if say not in found else []
    except (BudgetSpentError, MemoryError):
        complete = False
    return Suggestions(tuple(found), tried, complete)


def _fewest(
    program: Program, made: dict[int, GatherSet], goal: int, budget: Budget
) -> dict[int, GatherSet]:
    """Only the holes that need another family: each is tried as it was."""
    for hole in list(made) if len(made) > 1 else ():
        fewer = {other: gathers for other, gathers in made.items() if other != hole}
        if fewer and _would_do(with_gathers(program, fewer), goal, budget):
            made = fewer
    return made


def _groups(program: Program) -> Iterator[tuple[int, ...]]:
    """The few large groups first; then one hole after another."""
    alike: dict[str, list[int]] = {}
    for hole in program.holes:
        alike.setdefault(_gathers(program, hole).function, []).append(hole)
    if len(alike) > 1:
        yield program.holes
    yield from (tuple(group) for group in alike.values() if len(group) > 1)
    yield from ((hole,) for hole in program.holes)


def _gathers(program: Program, hole: int) -> GatherSet:
    step = program.steps[hole]
    assert isinstance(step, Apply)
    return step.gathers


def _families(
    program: Program, positions: tuple[int, ...], budget: Budget
) -> Iterator[dict[int, GatherSet]]:
    """Every built-in set that fits the shapes of these holes; rows and columns each their own."""
    if len({_gathers(program, p).function for p in positions}) > 1:
        names = [(f"row_{kind}", f"col_{kind}") for kind in ("linear", "bits", "xforms", "rots")]
    else:
        names = [(name, name) for name in holes.known()]
    for row, column in names:
        made: dict[int, GatherSet] = {}
        for position in positions:
            own = _gathers(program, position)
            function = column if own.function.startswith("col_") else row
            budget.check()
            with budget.governing():
                built = _built(function, own, _MOST[len(positions) > 1])
            if built is not None:
                made[position] = built
        if len(made) == len(positions):
            yield made


def _built(function: str, own: GatherSet, most: int) -> GatherSet | None:
    """The set at the shapes of another, with its options if it takes them; None if it does not fit,
    is no hole, or the same, or too large a set to try."""
    if function == own.function:
        return None
    for options in dict.fromkeys((own.options, ())):
        try:
            made = holes.build(function, dict(options), own.arg_shapes, own.out_shape)
        except CheckError:
            continue
        return made if 1 < len(made) <= max(most, len(own)) else None
    return None


def _would_do(program: Program, goal: int, budget: Budget) -> bool | None:
    """Whether there is a fill; None: not known."""
    try:
        result = synthesize(
            program, goal, mode="first", budget=budget.up_to(_EACH), only_symbols=True
        )
    except (CheckError, SearchError):
        return False
    except MemoryError:
        return None
    if isinstance(result.outcome, Undecided):
        return None
    return isinstance(result.outcome, Found) and result.verdict is Verdict.PROVED


def _suggestion(program: Program, made: dict[int, GatherSet]) -> Suggestion:
    return Suggestion(
        tuple(
            Change(program.steps[hole].name, gathers.function, _gathers(program, hole).function)
            for hole, gathers in sorted(made.items())
        )
    )
