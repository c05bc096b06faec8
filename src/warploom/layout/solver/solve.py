"""The solver: for a class of layouts the fewest wavefronts, or why the bound is not met.

What is minimised are all wavefronts of the tile: of every request of every access, an access by its
weight. The question is whether a layout of the class meets the bound that holds for every layout.
Found: it does. Impossible: none does, and `best` is the proved best of the class. Undecided: the
search was stopped; `best` is the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from warploom.errors import InternalError, UnsupportedError
from warploom.layout.formats.operand import tiles_in_blocks
from warploom.layout.formats.tma import boxes
from warploom.layout.language import family
from warploom.layout.language.facts import as_swizzle
from warploom.layout.language.ir import Layout
from warploom.layout.solver.colour import any_layout
from warploom.layout.solver.columns import Choice, ColumnSearch
from warploom.layout.solver.form import fewest_shifts
from warploom.layout.solver.frame import Frame, NoFrame
from warploom.layout.solver.linear import matrix_of
from warploom.layout.solver.task import Answer, Least, Promise, Task
from warploom.search.budget import STOPS, Budget, governing_budget, reason_of
from warploom.search.engine import Gathered, OnProgress, Watch, gather
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided
from warploom.search.statistics import Statistics

BY_BOUND = "the bound for every layout"
QUICK = 4000  # cases of the short search for a linear layout that meets the bound
BATCH = 16  # layouts of a family that are compared before some are counted; then more and more
MOST_NODES = 100_000  # of the longer one, where other searches come after it

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
    begun: bool = True  # whether any of the class was looked at

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
    if task.problem.operands and klass != "wgmma":
        raise UnsupportedError(
            f"wgmma reads the tile by a descriptor ({task.problem.operands[0].name})",
            advice="ask for the class wgmma",
        )
    if klass == "wgmma" and not task.problem.operands:
        raise UnsupportedError(
            "the class wgmma is of tiles that wgmma reads",
            advice='write kind = "wgmma" for an access of the pattern',
        )
    if task.problem.copies and klass not in ("tma", "wgmma"):
        raise UnsupportedError(
            f"a tensor copy ({task.problem.copies[0]}) moves the tile, and can write few layouts",
            advice="ask for the class tma",
        )
    watch = Watch(budget or governing_budget(), on_progress)
    if task.torn is not None:
        return Solved(klass, Impossible(task.torn), None, Fraction(0), "", watch.statistics())
    with watch.budget.governing():
        try:
            bound = Least(task.least, BY_BOUND)
            if klass == "xor" and not isinstance(task.frame, Frame):
                return _no_frame(task, task.frame, watch)
        except STOPS as stop:
            return not_begun(klass, reason_of(stop))
        gathered = gather(CLASSES[klass].engine(task, watch))
    watch.clock.lap("search")
    return _solved(klass, bound, gathered, watch)


def not_begun(klass: str, reason: Reason, least: Fraction = Fraction(0)) -> Solved:
    """What is known of a class of which nothing was looked at."""
    how = BY_BOUND if least else ""
    return Solved(klass, Undecided(reason), None, least, how, Watch().statistics(), begun=False)


def _solved(klass: str, bound: Least, gathered: Gathered[Answer | Least], watch: Watch) -> Solved:
    """The outcome of what an engine gave."""
    answers = [each for each in gathered.answers if isinstance(each, Answer)]
    known = [each for each in gathered.answers if isinstance(each, Least)]
    best = min(reversed(answers), key=lambda each: each.rank, default=None)
    least = max([bound, *known], key=lambda each: each.cost)
    outcome: Outcome[Answer]
    if best is not None and best.cost < least.cost:
        raise InternalError(f"a layout costs {best.cost}, and nothing less than {least.cost} does")
    if best is not None and best.cost == bound.cost:
        outcome = Found(best, True)
    elif gathered.exhausted or least.cost > bound.cost:
        outcome = Impossible(CLASSES[klass].exhausted)
        if best is not None and not known:
            least = Least(best.cost, CLASSES[klass].how)
    else:
        outcome = Undecided(gathered.stopped or Reason.SOLVER)
    return Solved(klass, outcome, best, least.cost, least.how, watch.statistics())


def _no_frame(task: Task, frame: NoFrame, watch: Watch) -> Solved:
    if task.problem.size & (task.problem.size - 1):
        raise UnsupportedError(
            f"linear layouts are of a power of two, and there are {task.problem.size} elements",
            advice="ask for the class mixed, or swizzle",
        )
    return Solved("xor", Impossible(frame.why), None, task.least, "", watch.statistics())


# -- the classes -----------------------------------------------------------------------------------


def _tried(
    task: Task, layouts: Iterable[Layout], watch: Watch, best: Answer | None = None
) -> Iterator[Answer]:
    """Each layout that is better than those before it. Of every batch those that promise most are
    counted first, and none that promises nothing. A family has those with more unused places later,
    so that the first of it that meets the bound ends it."""
    if _is_perfect(task, best):
        return
    source, tally = iter(layouts), watch.tally("layouts")
    if best is None:  # the very first is looked at in any case
        for best in filter(None, map(task.answer, islice(source, 1))):
            yield best
    size = BATCH
    while batch := list(islice(source, size)):
        if _is_perfect(task, best):
            return
        tally.visited, size = tally.visited + len(batch), 4 * size
        for promise, layout in _promised(task, watch, batch):
            if not promise.may_beat(best):
                continue
            watch.pause("layouts")
            answer = task.answer(layout, best)
            if answer is not None and (best is None or answer.rank < best.rank):
                best, watch.best = answer, float(answer.cost)
                yield best
                if best.cost == task.least:
                    return


def _promised(task: Task, watch: Watch, batch: list[Layout]) -> list[tuple[Promise, Layout]]:
    """Layouts with what each promises, by what it costs about and then in their order."""
    found = []
    for layout, promise in zip(batch, task.promises(batch), strict=True):
        watch.pause("layouts")
        found.append((promise, layout))
    return sorted(found, key=lambda pair: pair[0].about)


def _is_perfect(task: Task, best: Answer | None) -> bool:
    """Whether the bound is met, and no place stays unused."""
    return best is not None and best.rank == (task.least, 0)


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
        case "wgmma":
            yield from (each.layout(task.problem) for each in tiles_in_blocks(task.problem))
        case _:
            raise InternalError(f"the class {klass} is no list")


def _none(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "none"), watch)


def _pad(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "pad"), watch)


def _swizzle(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "swizzle"), watch)


def _tma(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "tma"), watch)


def _wgmma(task: Task, watch: Watch) -> Iterator[Answer]:
    return _tried(task, members(task, "wgmma"), watch)


def _xor(task: Task, watch: Watch) -> Iterator[Answer]:
    """First what is cheap to try, then all linear layouts, then one of them that is cheap to
    compute."""
    best: Answer | None = None
    for best in _swizzle(task, watch):
        yield best
    if _is_perfect(task, best):
        return
    known = best
    for best in _linear(task, watch, known):
        yield best
    if best is not None:
        yield from _nicer(task, watch, best)


def _meeting(task: Task, watch: Watch) -> Iterator[Answer]:
    """A linear layout that meets the bound, if a short search finds one; the most pleasant last."""
    floor = ColumnSearch(task.demands, watch, 0, worst=task.worst).floor
    for best in _below(task, watch, floor + 1, QUICK):
        yield best
        yield from _nicer(task, watch, best)


def _linear(
    task: Task, watch: Watch, known: Answer | None, most_nodes: int | None = None
) -> Iterator[Answer]:
    """The least of all linear layouts that cost less than what is known: first whether one meets
    the bound, then the least cost. `most_nodes`: of each search, which may give up."""
    floor = ColumnSearch(task.demands, watch, 0, worst=task.worst).floor
    above = _more_than_any(task) if known is None else int(known.cost * task.demands.scale)
    for limit in (floor + 1, above):
        found = False
        for best in _below(task, watch, limit, most_nodes):
            found = True
            yield best
        if found:
            return


def _below(task: Task, watch: Watch, limit: int, most_nodes: int | None) -> Iterator[Answer]:
    """The linear layout of the least (scaled) cost below a limit, or the best that was found of
    those when the search was stopped."""
    search = ColumnSearch(task.demands, watch, limit, worst=task.worst, most_nodes=most_nodes)
    try:
        search.run()
    except STOPS:
        if search.best is not None:
            yield _checked(task, search.best)
        raise
    if search.best is not None:
        yield _checked(task, search.best)


def _more_than_any(task: Task) -> int:
    return 1 + sum(d.weight * max(d.least, len(d.points)) for d in task.demands.demands)


def _checked(task: Task, choice: Choice) -> Answer:
    """The layout, counted again from its addresses: the search is not trusted. That is done to the
    end, as what was found would be lost else."""
    with Budget().governing():
        answer = task.answer(matrix_of(task.demands.frame, choice))
    if answer is None:
        raise InternalError("a linear layout tears a vector")
    if answer.cost > Fraction(choice.cost, task.demands.scale):
        raise InternalError("a linear layout costs more than the search said")
    return answer


def _nicer(task: Task, watch: Watch, best: Answer) -> Iterator[Answer]:
    """A linear layout of the same cost that takes fewer operations to compute."""
    if not isinstance(task.frame, Frame):
        return
    cost = int(best.cost * task.demands.scale)
    matrix = fewest_shifts(task.meter, task.floors, task.frame, cost, watch, task.worst)
    swizzle = None if matrix is None else as_swizzle(matrix)
    answer = None if matrix is None else task.answer(matrix if swizzle is None else swizzle)
    if answer is not None and answer.cost == best.cost and not answer.unused:
        yield answer


def _mixed(task: Task, watch: Watch, most_nodes: int | None = None) -> Iterator[Answer]:
    """From cheap to expensive; the best so far is the limit of what comes after it: a swizzle, a
    padding; a short search for a linear layout that meets the bound; the families for any size;
    last all linear layouts that are better. Where a padding meets the bound, what leaves no place
    unused is still looked for, but for the last. `most_nodes`: of the last search."""
    best: Answer | None = None
    linear = isinstance(task.frame, Frame)
    for best in _tried(task, _simple(task), watch):
        yield best
    if linear and not _is_perfect(task, best):
        for best in _meeting(task, watch):
            yield best
    known = best
    for best in _tried(task, family.dense(task.problem), watch, known):
        yield best
    if best is not None and best.cost == task.least:
        return
    known = best
    for best in _tried(task, family.spaced(task.problem) if task.waste else (), watch, known):
        yield best
    if linear and (best is None or best.cost > task.least):
        for better in _linear(task, watch, best, most_nodes):
            yield better
            yield from _nicer(task, watch, better)


def _simple(task: Task) -> Iterator[Layout]:
    """What is tried at once: rows as they are, one swizzle, padding."""
    yield from members(task, "swizzle")
    if task.waste:
        yield from members(task, "pad")


def _any(task: Task, watch: Watch) -> Iterator[Answer | Least]:
    """The search over linear layouts may give up: they do not decide this class."""
    best: Answer | None = None
    for best in _mixed(task, watch, MOST_NODES):
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
        "rows as they are", _none, "it is the only one", "rows as they are do not meet the bound"
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
    "wgmma": LayoutClass(
        "blocks of swizzled rows that wgmma reads by descriptors",
        _wgmma,
        "every mode and height of blocks was tried",
        "no blocks that wgmma reads meet the bound",
    ),
}
