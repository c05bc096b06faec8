"""The default search in pieces, on one core or many, resumed from a store: the same fills.

The states of one step, the *frontier* (`frontier.py`), part all fills: a piece is the search with
some of them, nothing is found twice and nothing is lost. The states are sent to whoever does a
piece, who needs the program besides, once. A state that takes long is parted again.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from warploom.errors import SearchError
from warploom.search.budget import STOPS, Budget, BudgetSpentError, reason_of
from warploom.search.engine import gather
from warploom.search.outcome import Reason
from warploom.search.statistics import Clock, Tally, add_tallies
from warploom.search.storage import row
from warploom.search.storage.store import Key, Store
from warploom.search.workers.cover import Cover
from warploom.search.workers.farm import Farm, shared
from warploom.search.workers.pieces import (
    Crew,
    Division,
    Line,
    Pace,
    Piece,
    Range,
    Submit,
    at_once,
    in_pieces,
)
from warploom.sketch.synth.cost import Prices
from warploom.sketch.synth.derivations import Derivations, derivations
from warploom.sketch.synth.engine import Engine, of_cpu
from warploom.sketch.synth.fills import LIST_AT_MOST
from warploom.sketch.synth.frontier import Cut, Frontier, again, choose, divided
from warploom.sketch.synth.parts import (
    Answer,
    Collected,
    Keeper,
    copied,
    grouped,
    since,
    together,
)
from warploom.sketch.synth.problem import Given, Problem, lower
from warploom.sketch.synth.rows import Rows
from warploom.sketch.term.gather import Moves
from warploom.sketch.term.ir import Apply, Fold, Program

MOST_ANSWERS = 256  # of pieces that are held one by one
FEWER = 8  # times as few cells at once, after so many took too long
PATIENCE = 2.0  # seconds of CPU of a search before it is parted
SOONER = 0.5  # the same where others wait for their part
KIND = "search"

OnPieces = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Parting:
    """How a search is parted: where pieces are kept, and who does them (None: this process)."""

    store: Store | None = None
    crew: Crew | None = None
    patience: float | None = None  # seconds of CPU before it is parted
    on_piece: Callable[[Piece[Answer]], None] | None = None

    @property
    def after(self) -> float:
        if self.patience is not None:
            return self.patience
        return PATIENCE if self.crew is None else SOONER


# -- a piece ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """All that a piece is part of, but the program and the states."""

    digest: str  # of the problem
    goal: int
    mode: str
    megabytes: float | None


_ready = threading.local()  # of this thread: an engine, what it is ready for, how fast it was


@dataclass(slots=True, eq=False)
class PartSolver:
    """The search with some states of a frontier."""

    engine: Engine
    mode: str
    cut: Cut

    def __post_init__(self) -> None:
        at = (id(self.engine), self.cut.position)
        if getattr(_ready, "at", None) != at:  # what all cells need is not the work of the first
            self._answer(self.cut.rows.only(np.zeros(0, np.int64)))
            _ready.at = at

    def solved(self, low: int, high: int, limit: float | None) -> Answer | None:
        """All fills through these cells; None: it took more seconds of CPU than the limit."""
        rows = self.cut.of(low, high)
        if limit is None:
            return self._answer(rows)
        return self.engine.unless_longer(limit, lambda: self._answer(rows))

    def _answer(self, rows: Rows) -> Answer:
        engine = self.engine
        before = copied(engine.tallies)
        engine.only_through(self.cut.position, rows)
        finals: list[Rows] = []
        stopped = None
        try:
            finals.extend(engine.solutions())
        except BudgetSpentError as stop:
            stopped = stop.reason
        found = derivations(engine.problem, finals, engine.shared)
        count = found.count()
        first = found.first(LIST_AT_MOST, Budget())
        cheap = None
        if self.mode == "best" and count > len(first):
            prices = Prices(engine.problem.program)
            least = found.cheapest(lambda hole, choice: prices.of({hole: choice})[0])
            cheap = least.first(LIST_AT_MOST, Budget())
        return Answer(count, first, cheap, since(before, engine.tallies), stopped)

    def divided(self, cell: int, seconds: float) -> tuple[Answer, Frontier | None]:
        """A heavy cell as the states of a later step, if there are several; and what was counted
        while they were looked for."""
        before = copied(self.engine.tallies)
        found = divided(self.engine, self.cut.position, self.cut.of(cell, cell + 1), seconds)
        return self.nothing(since(before, self.engine.tallies)), found

    def nothing(self, tallies: dict[int, Tally]) -> Answer:
        holes = len(self.engine.problem.program.holes)
        return Answer(0, np.zeros((0, holes), np.int64), None, tallies)


def in_time(solver: PartSolver, given: Range, pace: Pace) -> Piece[Answer]:
    """As many cells as there is CPU time for, one at least or a part of one."""
    stint = Stint(solver, given, pace)
    while stint.goes_on:
        stint.step()
    _ready.speed = stint.speed
    value = together(stint.answers, solver.mode == "best")
    return Piece(given.low, stint.at, value, stint.seconds, given.line, stint.division)


class Stint:
    """The cells of a piece: as many at once as the last ones let hope for, as many states together
    take less than a few at a time. A cell that takes long is divided, and ends the piece."""

    def __init__(self, solver: PartSolver, given: Range, pace: Pace) -> None:
        self._solver, self._pace, self._given = solver, pace, given
        self._began = time.thread_time()
        self._most, self._limit = given.high - given.low, pace.limit
        self._alone = False  # the next cell is heavy, and cannot be divided
        self._stopped = False
        self.at = given.low
        self.speed: float = getattr(_ready, "speed", 1.0)  # cells in a second
        self.answers: list[Answer] = []
        self.division: Division | None = None

    @property
    def seconds(self) -> float:
        return time.thread_time() - self._began

    @property
    def goes_on(self) -> bool:
        over = self.at > self._given.low and self.seconds >= 0.8 * self._pace.seconds
        whole = self.at == self._given.high
        return not (over or whole or self._stopped or self.division is not None)

    def step(self) -> None:
        hoped = int(self.speed * (self._pace.seconds - self.seconds) / 2)
        count = 1 if self._alone else max(1, min(self._most, hoped, self._given.high - self.at))
        started = time.thread_time()
        limit = None if self._alone else self._limit
        answer = self._solver.solved(self.at, self.at + count, limit)
        if answer is not None:
            self.answers.append(answer)
            self._stopped = answer.stopped is not None
            self.at += 0 if self._stopped else count
            self._alone = False
            self.speed = count / max(time.thread_time() - started, 1e-4)
        elif count > 1:
            self._most = max(1, count // FEWER)  # one of them is heavy, or all are
        else:
            self._divide()

    def _divide(self) -> None:
        answer, found = self._solver.divided(self.at, self._limit)
        self.answers.append(answer)
        if found is None:
            self._alone = True
        elif found.cells:
            self.division = Division(found.mark, found.cells, found)
        else:
            self.at += 1  # nothing comes of it


def elsewhere(program: Any, order: Order, cut: Cut, given: Range, pace: Pace) -> Piece[Answer]:
    """A piece, in a process that may have seen the program before."""
    return in_time(PartSolver(ready(program, order), order.mode, cut), given, pace)


def ready(program: Any, order: Order) -> Engine:
    """The engine of this thread for pieces of a search, made when it is first asked for."""
    wanted = (order.digest, order.goal, order.megabytes)
    if getattr(_ready, "order", None) != wanted:
        _ready.engine, _ready.order = _prepared(shared(program), order), wanted
    engine: Engine = _ready.engine
    return engine


def get_ready(program: Any, order: Order) -> None:
    """While the frontier is looked for elsewhere."""
    ready(program, order)


def _prepared(program: Program, order: Order) -> Engine:
    problem = lower(program, program.goals[order.goal])
    if problem_digest(problem) != order.digest:
        raise SearchError("a worker reads the sketch in another way than this process")
    engine = Engine(problem, Budget(None, order.megabytes))
    engine.prepare()
    return engine


def problem_digest(problem: Problem) -> str:
    """SHA-256 of what decides the fills: the values that there are, and what each step reads."""
    said = hashlib.sha256(problem.goal.tobytes())
    domain = problem.domain
    for term, items, count in zip(domain.terms, domain.items, domain.item_count, strict=True):
        own = (term.operator, items[:count].tolist()) if isinstance(term, Fold) else term
        said.update(repr(own).encode())
    said.update(repr((domain.words, domain.laws)).encode())
    for position, step in problem.steps.items():
        if isinstance(step, Given):
            said.update(step.values.tobytes())
            continue
        what = (position, step.args, step.source_size, step.fold, step.bag, step.count, step.cells)
        said.update(repr(what).encode())
        if isinstance(step.reads, Moves):
            said.update(repr((step.reads.axes, step.reads.length, step.reads.pace)).encode())
            said.update(np.ascontiguousarray(step.reads.values).tobytes())
            said.update(np.ascontiguousarray(step.reads.kept).tobytes())
        else:
            said.update(np.ascontiguousarray(step.reads).tobytes())
    return said.hexdigest()


# -- all pieces ------------------------------------------------------------------------------------


class Searched(NamedTuple):
    """What a search gives, in pieces or as a whole."""

    found: Derivations | Collected
    tallies: dict[int, Tally]
    exhausted: bool
    stopped: Reason | None


def search_in_pieces(
    engine: Engine,
    program: Program,
    goal: int,
    mode: str,
    parting: Parting,
    clock: Clock,
    report: OnPieces | None,
) -> Searched:
    """All fills: as a whole if that is soon done and was not begun before, otherwise in pieces."""
    split = Split(engine, program, goal, mode, parting, report)
    try:
        feasible = engine.prepare()
        clock.lap("prepare")
        if not feasible:
            return Searched(split.found, engine.tallies, True, None)
        begun = split.begun()
        if begun is None and (searched := _soon(engine, parting.after)) is not None:
            return searched
        if split.run(begun):
            return Searched(split.found, split.tallies, True, None)
    except STOPS as stop:
        if isinstance(parting.crew, Farm):
            parting.crew.abandon()  # it would work on while what was found is listed and proved
        return Searched(split.found, split.tallies or engine.tallies, False, reason_of(stop))
    return _as_whole(engine)  # it cannot be parted


def _soon(engine: Engine, seconds: float) -> Searched | None:
    """The whole search, unless it takes longer than that; then nothing of it is left."""
    tallies = copied(engine.tallies)
    whole = engine.budget
    engine.budget = whole.watched(of_cpu(whole, seconds, BudgetSpentError(Reason.SECONDS)))
    searched = _as_whole(engine)
    engine.budget = whole
    if searched.stopped is not Reason.SECONDS:
        return searched
    try:
        whole.check()
    except BudgetSpentError as stop:
        return searched._replace(stopped=stop.reason)  # it may be Ctrl-C, seen after our seconds
    engine.stopped = None
    engine.shared.clear()
    for place, tally in engine.tallies.items():  # which the steps hold, too
        before = tallies.get(place, Tally())
        tally.visited, tally.kept, tally.pruned = before.visited, before.kept, before.pruned
    return None


def _as_whole(engine: Engine) -> Searched:
    finals = gather(engine.solutions())
    found = derivations(engine.problem, finals.answers, engine.shared)
    return Searched(found, engine.tallies, finals.exhausted, finals.stopped)


@dataclass(slots=True, eq=False)
class Split:
    """A search that is done in pieces: what is kept of it, what is found so far."""

    engine: Engine
    program: Program
    goal: int
    mode: str
    parting: Parting
    report: OnPieces | None = None
    digest: str = ""
    answers: list[Answer] = field(default_factory=list)
    tallies: dict[int, Tally] = field(default_factory=dict)
    _parted: int = 0  # cells of the first line
    _cells: int = 0  # of it
    _frontiers: dict[Line, Frontier] = field(default_factory=dict)
    _open: Counter[Line] = field(default_factory=Counter)  # cells of other lines, not yet done
    _most: int = MOST_ANSWERS

    def __post_init__(self) -> None:
        self.digest = problem_digest(self.engine.problem)

    @property
    def found(self) -> Collected:
        return Collected(self.engine.problem.program.holes, self.answers)

    def begun(self) -> int | None:
        """The frontier of an earlier run of the same search."""
        if self.parting.store is None:
            return None
        return self.parting.store.get(self._key("begun"), self._position)

    def _position(self, kept: Any) -> int:
        """That of a step at which the search can be parted."""
        (position,) = row.entries(kept, "position")
        if row.whole(position, 0) not in self.engine.main_path():
            raise row.RowError(f"parts the search at step {position}, which is none")
        return int(position)

    def run(self, position: int | None) -> bool:
        """Fills `answers`, as far as the budget goes. False: it cannot be parted."""
        crew, store = self.parting.crew, self.parting.store
        program = None if crew is None else self._sent(crew)
        frontier = choose(self.engine, position, self._workers())
        if frontier is None:
            return False
        self.tallies = copied(self.engine.tallies)
        self._frontiers[()] = frontier
        self._cells = cells = frontier.cells
        keeper = None
        ranges: list[Range] | None = None
        if store is not None:
            states = frontier.digest()
            keeper = Keeper(
                store, lambda number: self._key(states, cells, number), self.mode == "best"
            )
            ranges = self._resumed(keeper)
            if not self.answers:
                store.put(self._key("begun"), {"position": frontier.position})
        try:
            self._do(in_pieces(
                cells, self._submit(program), self.engine.budget,
                workers=self._workers, ranges=ranges,
            ), keeper)  # fmt: skip
        finally:
            if keeper is not None:
                keeper.flush()
        if keeper is not None:
            keeper.finish(cells, self.answers)
        return True

    def _do(self, pieces: Iterator[Piece[Answer]], keeper: Keeper | None) -> None:
        for piece in pieces:
            if keeper is not None and piece.value.stopped is None:
                keeper.add(piece)
            self._take(piece)
            if piece.value.stopped is not None:
                raise BudgetSpentError(piece.value.stopped)

    def _resumed(self, keeper: Keeper) -> list[Range]:
        """Takes what was kept; what is left to do. Cells that are divided are divided again, as
        they were; what was kept of those that are not the same is left out."""
        batches, wrong = keeper.read(self._cells, self._limits()), set[Line]()
        while True:
            cover = Cover(self._cells)
            taken = [each for each in batches
                     if wrong.isdisjoint(each.lines) and cover.add(each.ranges)]  # fmt: skip
            left = list(cover.left())
            lost = next((each.line for each in left if not self._has_frontier(each.line)), None)
            if lost is None:
                break
            wrong.add(lost)
        for line, low, high in left:
            self._open[line] += high - low
        for batch in taken:
            self._hold(batch.value)
            for line, low, high in batch.ranges:
                self._tell(Piece(low, high, batch.value, batch.seconds, line))
        return left

    def _has_frontier(self, line: Line) -> bool:
        """Whether the cells of a line are known, or can be found again."""
        if line in self._frontiers:
            return True
        outer, (cell, mark, cells) = line[:-1], line[-1]
        if not self._has_frontier(outer):
            return False
        cut = self._frontiers[outer].cut(cell, cell + 1)
        found = again(self.engine, cut.position, cut.rows, mark)
        if found is None or found.cells != cells:
            return False
        self._frontiers[line] = found
        return True

    def _limits(self) -> list[int]:
        """How many choices each hole has."""
        steps = self.engine.problem.program.steps
        return [
            len(step.gathers) for step in steps if isinstance(step, Apply) and step.gathers.is_hole
        ]

    def _take(self, piece: Piece[Answer]) -> None:
        self._hold(piece.value)
        line = piece.line
        if line:
            self._open[line] -= piece.high - piece.low + (piece.division is not None)
            if not self._open[line]:  # nobody asks for any of its cells again
                del self._frontiers[line], self._open[line]
        if piece.division is not None:
            self._frontiers[piece.within] = piece.division.value
            self._open[piece.within] = piece.division.cells
        self._tell(piece)

    def _hold(self, answer: Answer) -> None:
        self.answers.append(answer)
        if len(self.answers) >= self._most:
            self.answers[:] = grouped(self.answers, self.mode == "best")
            self._most = 2 * len(self.answers) + MOST_ANSWERS
        add_tallies(self.tallies, answer.tallies)

    def _tell(self, piece: Piece[Answer]) -> None:
        if not piece.line:
            self._parted += piece.high - piece.low + (piece.division is not None)
        if self.parting.on_piece is not None:
            self.parting.on_piece(piece)
        if self.report is not None:
            of_all = f"{100 * self._parted // self._cells} % of all, {self._workers()} at work"
            self.report(of_all, sum(each.visited for each in self.tallies.values()))

    def _workers(self) -> int:
        return 1 if self.parting.crew is None else self.parting.crew.workers

    def _key(self, *what: object) -> Key:
        content = {"problem": self.digest, "goal": self.goal, "mode": self.mode, "at": what}
        name = self.engine.problem.program.name
        return Key(KIND, content, "", f"{name}: a search in pieces")

    def _sent(self, crew: Crew) -> Any:
        """The program, of which every worker prepares the search while we look for a frontier."""
        program = crew.share(self.program)
        for _ in range(crew.workers):
            crew.submit(get_ready, program, self._order())
        return program

    def _order(self) -> Order:
        return Order(self.digest, self.goal, self.mode, self.engine.budget.megabytes)

    def _submit(self, program: Any) -> Submit[Answer]:
        engine, crew, order = self.engine, self.parting.crew, self._order()

        def here(given: Range, pace: Pace) -> Piece[Answer]:
            cut = self._frontiers[given.line].cut(given.low, given.high)
            return in_time(PartSolver(engine, order.mode, cut), given, pace)

        if crew is None:
            return at_once(here)

        def there(given: Range, pace: Pace) -> Future[Piece[Answer]]:
            cut = self._frontiers[given.line].cut(given.low, given.high)
            found: Future[Piece[Answer]] = crew.submit(elsewhere, program, order, cut, given, pace)
            return found

        return there
