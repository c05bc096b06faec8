"""The solver: for a class of layouts the least weighted wavefronts, or why the bound is not met.

The question is whether a layout of the class meets the bound that holds for every layout. Found: it
does. Impossible: none does, and `best` is the proved best of the class. Undecided: the search was
stopped; `best` is the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from warploom.errors import UnsupportedError
from warploom.layout import family
from warploom.layout.colour import any_layout
from warploom.layout.columns import ColumnSearch
from warploom.layout.facts import as_swizzle
from warploom.layout.form import fewest_shifts
from warploom.layout.frame import Frame
from warploom.layout.ir import Layout, Matrix
from warploom.layout.linear import matrix_of
from warploom.layout.task import Answer, Least, Task
from warploom.layout.tma import boxes
from warploom.search.budget import STOPS, Budget
from warploom.search.engine import OnProgress, Watch, gather
from warploom.search.outcome import Found, Impossible, Outcome, Undecided
from warploom.search.statistics import Statistics

# Better and better answers; the end says that there is nothing better, unless a `Least` says less.
Engine = Callable[[Task, Watch], Iterator[Answer | Least]]


@dataclass(frozen=True, slots=True)
class Solved:
    """`least`: no layout of the class costs less; `how` that is known. `best` may be there whatever
    the outcome is."""

    klass: str
    outcome: Outcome[Answer]
    best: Answer | None
    least: Fraction
    how: str
    statistics: Statistics

    @property
    def proved(self) -> bool:
        """Whether the best is the best of its class."""
        return self.best is not None and self.best.cost == self.least


def solve(
    task: Task,
    klass: str = "mixed",
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
) -> Solved:
    """The best layout of a class."""
    if klass not in CLASSES:
        raise UnsupportedError(
            f"no class of layouts is called '{klass[:40]}'",
            advice=f"known are {', '.join(CLASSES)}",
        )
    if task.problem.copies and klass != "tma":
        raise UnsupportedError(
            f"a tensor copy ({task.problem.copies[0]}) moves the tile, and can write few layouts",
            advice="ask for the class tma",
        )
    watch = Watch(budget or Budget(), on_progress)
    if task.torn is not None:
        return Solved(klass, Impossible(task.torn), None, Fraction(0), "", watch.statistics())
    if klass == "xor" and not isinstance(task.frame, Frame):
        return _no_frame(task, watch)
    gathered = gather(CLASSES[klass].engine(task, watch))
    watch.clock.lap("search")
    answers = [each for each in gathered.answers if isinstance(each, Answer)]
    known = [each for each in gathered.answers if isinstance(each, Least)]
    best = answers[-1] if answers else None
    bound = Least(task.least, "the bound for every layout")
    least = max([bound, *known], key=lambda each: each.cost)
    outcome: Outcome[Answer]
    if best is not None and best.cost == task.least:
        outcome = Found(best, True)
    elif gathered.exhausted or least.cost > task.least:
        outcome = Impossible(CLASSES[klass].exhausted)
        if best is not None and not known:
            least = Least(best.cost, CLASSES[klass].how)
    else:
        assert gathered.stopped is not None
        outcome = Undecided(gathered.stopped)
    return Solved(klass, outcome, best, least.cost, least.how, watch.statistics())


def _no_frame(task: Task, watch: Watch) -> Solved:
    assert not isinstance(task.frame, Frame)
    if task.problem.size & (task.problem.size - 1):
        raise UnsupportedError(
            f"linear layouts are of a power of two, and there are {task.problem.size} elements",
            advice="ask for the class mixed, or swizzle",
        )
    return Solved("xor", Impossible(task.frame.why), None, task.least, "", watch.statistics())


# -- the classes -----------------------------------------------------------------------------------


def _tried(task: Task, layouts: Iterable[Layout], watch: Watch) -> Iterator[Answer]:
    """Each layout that is better than those before it; the end is reached early at the bound."""
    best: Answer | None = None
    tally = watch.tally("layouts")
    for number, layout in enumerate(layouts):
        tally.visited += 1
        if number:  # the first is looked at in any case: there is always a best so far
            watch.pause("layouts")
        answer = task.answer(layout)
        if answer is not None and (best is None or answer.cost < best.cost):
            best = answer
            watch.best = float(best.cost)
            yield best
            if best.cost == task.least:
                return


def members(task: Task, klass: str) -> Iterator[Layout]:
    """The layouts of a class that is a list."""
    match klass:
        case "none":
            yield family.IDENTITY
        case "pad":
            yield from family.paddings(task.problem)
        case "swizzle":
            yield from family.swizzles(task.problem)
        case "tma":
            yield from (box.layout(task.problem) for box in boxes(task.problem))
        case _:
            yield from family.mixed(task.problem, task.waste)


def _none(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "none"), watch)


def _pad(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "pad"), watch)


def _swizzle(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "swizzle"), watch)


def _tma(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "tma"), watch)


def _xor(task: Task, watch: Watch) -> Iterator[Answer]:
    """First what is there, then all linear layouts, then one of them that is cheap to compute."""
    best: Answer | None = None
    for best in _none(task, watch):
        yield best
        if best.cost == task.least:
            return
    known = best
    for best in _linear(task, watch, known):
        yield best
    assert best is not None
    nicer = _nicer(task, watch, best)
    if nicer is not None:
        yield nicer


def _linear(task: Task, watch: Watch, known: Answer | None) -> Iterator[Answer]:
    """The least of all linear layouts: first whether one meets the bound, then the least cost."""
    demands = task.demands
    floor = ColumnSearch(demands, watch, 0, worst=task.worst).floor
    above = None if known is None else int(known.cost * demands.scale)
    limits = [floor + 1, above if above is not None else _more_than_any(task)]
    for limit in limits:
        search = ColumnSearch(demands, watch, limit, worst=task.worst)
        try:
            search.run()
        except STOPS:
            if search.best is not None:
                yield _checked(task, matrix_of(demands.frame, search.best), search.best.cost)
            raise
        if search.best is not None:
            yield _checked(task, matrix_of(demands.frame, search.best), search.best.cost)
            return


def _more_than_any(task: Task) -> int:
    return 1 + sum(d.weight * max(d.least, len(d.points)) for d in task.demands.demands)


def _checked(task: Task, matrix: Matrix, cost: int) -> Answer:
    """The layout, counted again from its addresses: the search is not trusted."""
    answer = task.answer(matrix)
    assert answer is not None, "a linear layout tears a vector"
    assert answer.cost <= Fraction(cost, task.demands.scale), "a linear layout costs more than said"
    return answer


def _nicer(task: Task, watch: Watch, best: Answer) -> Answer | None:
    """A linear layout of the same cost that takes fewer operations to compute."""
    assert isinstance(task.frame, Frame)
    cost = int(best.cost * task.demands.scale)
    matrix = fewest_shifts(task.meter, task.chunks, task.frame, cost, watch, task.worst)
    if matrix is None:
        return None
    swizzle = as_swizzle(matrix)
    answer = task.answer(matrix if swizzle is None else swizzle)
    return answer if answer is not None and answer.cost == best.cost else None


def _mixed(task: Task, watch: Watch) -> Iterator[Answer]:
    """All linear layouts where there are such, then the families for any size."""
    best: Answer | None = None
    if isinstance(task.frame, Frame):
        for best in _xor(task, watch):
            yield best
        if best is not None and best.cost == task.least:
            return
    else:
        for best in _swizzle(task, watch):
            yield best
        if best is not None and best.cost == task.least:
            return
    for answer in _tried(task, members(task, "mixed"), watch):
        if best is None or answer.cost < best.cost:
            best = answer
            yield best


def _any(task: Task, watch: Watch) -> Iterator[Answer | Least]:
    best: Answer | None = None
    for best in _mixed(task, watch):
        yield best
    if best is None or best.cost > task.least:
        yield from any_layout(task, watch, best)


@dataclass(frozen=True, slots=True)
class LayoutClass:
    """What a class holds, how it is searched, and what is known when that came to its end."""

    about: str
    engine: Engine
    how: str
    exhausted: str


CLASSES: dict[str, LayoutClass] = {
    "none": LayoutClass(
        "rows as they are", _none, "there is one", "rows as they are do not meet the bound"
    ),
    "pad": LayoutClass(
        "rows with unused places after each",
        _pad,
        "every padding was tried",
        "no padding of rows meets the bound",
    ),
    "swizzle": LayoutClass(
        "one Swizzle<B,M,S>",
        _swizzle,
        "every Swizzle<B,M,S> without gaps was tried",
        "no Swizzle<B,M,S> without gaps meets the bound",
    ),
    "xor": LayoutClass(
        "every bijective matrix over F2",
        _xor,
        "all linear layouts, by cases",
        "no linear layout meets the bound",
    ),
    "mixed": LayoutClass(
        "linear layouts, exchanges in blocks, rotations, tiles, padding",
        _mixed,
        "all linear layouts where there are such, and every one of the families",
        "no linear layout, and no exchange, rotation, tile or padding of the families meets it",
    ),
    "any": LayoutClass("every layout", _any, "", "no layout whatever meets the bound"),
    "tma": LayoutClass(
        "boxes of tensor copies, each in a mode of TMA",
        _tma,
        "every box and mode of TMA was tried",
        "no box of TMA in any of its modes meets the bound",
    ),
}
