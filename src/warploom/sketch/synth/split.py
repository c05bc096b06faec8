"""The default search in pieces, on one core or many, resumed from a store: the same fills.

Every fill gives each step one state. So the states of one step, the *frontier*, part all fills: a
piece is the search with some of them, nothing is found twice and nothing is lost. The frontier is a
step that is reached in little time and has many states (`choose`). Its states are sent to whoever
does a piece, who needs the program besides, once.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
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
from warploom.search.workers.farm import Farm, shared
from warploom.search.workers.pieces import Crew, Piece, Submit, at_once, in_pieces
from warploom.sketch.synth.cost import Prices
from warploom.sketch.synth.derivations import Derivations, derivations
from warploom.sketch.synth.engine import Engine
from warploom.sketch.synth.fills import LIST_AT_MOST
from warploom.sketch.synth.parts import (
    Answer,
    Collected,
    copied,
    read,
    since,
    together,
    written,
)
from warploom.sketch.synth.problem import Given, Problem, lower
from warploom.sketch.synth.rows import Rows
from warploom.sketch.term.gather import Moves
from warploom.sketch.term.ir import Apply, Fold, Program

CELLS = 2048  # of a frontier, at most
ENOUGH = 1024  # states of a frontier that are no fewer than one wants
CHOOSING_SECONDS = 1.0  # of CPU, to get from the first step to the frontier
MOST_BYTES = 1 << 29  # of its states
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


# -- the frontier ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """The states of one step, in cells."""

    position: int
    rows: Rows

    @property
    def cells(self) -> int:
        return min(CELLS, len(self.rows))

    def starts(self, low: int, high: int) -> list[int]:
        """Where each of these cells begins among their rows, and where the last one ends."""
        edges = np.arange(low, high + 1) * len(self.rows) // max(1, self.cells)
        return [int(edge) for edge in edges - edges[0]]

    def part(self, low: int, high: int) -> Rows:
        first, end = (at * len(self.rows) // max(1, self.cells) for at in (low, high))
        return self.rows.only(np.arange(first, end))

    def digest(self) -> str:
        said = hashlib.sha256(self.rows.values.tobytes())
        for hole, choices in sorted(self.rows.origin.choices.items()):
            said.update(f"{hole}".encode() + choices.tobytes())
        return said.hexdigest()


def choose(engine: Engine, position: int | None = None) -> Frontier | None:
    """The step at `position`, or the best that is reached in little time: the last one with enough
    states, or the one with the most. None: there is none that stands by itself."""
    whole = engine.budget
    if position is not None:
        rows = engine.all_states(position)
        if engine.stopped is not None:
            raise BudgetSpentError(engine.stopped)
        return Frontier(position, rows)
    chosen: Frontier | None = None
    little = whole.watched(_of_cpu(whole, CHOOSING_SECONDS))
    try:
        for number, step in enumerate(engine.main_path()):
            engine.budget = little if number else whole
            rows = engine.all_states(step)
            if engine.stopped is not None or rows.nbytes > MOST_BYTES:
                break
            found = Frontier(step, rows)
            if not rows.keys and (
                chosen is None or len(rows) >= min(ENOUGH, len(chosen.rows)) or len(rows) == 0
            ):
                chosen = found
            if len(rows) == 0:
                break
            engine.only_through(step, rows)
    finally:
        engine.budget = whole
    if engine.stopped is not None and engine.stopped is not Reason.SECONDS:
        raise BudgetSpentError(engine.stopped)
    whole.check()
    engine.stopped = None
    return chosen


def _of_cpu(budget: Budget, seconds: float) -> Callable[[], None]:
    """Ends a budget after so many seconds of CPU: those of the wall say little where others work
    on the same cores."""
    end = time.process_time() + seconds

    def check() -> None:
        if budget.on_check is not None:
            budget.on_check()
        if time.process_time() > end:
            raise BudgetSpentError(Reason.SECONDS)

    return check


# -- a piece ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """All that a piece is part of, but the program and the states."""

    digest: str  # of the problem
    goal: int
    mode: str
    position: int
    megabytes: float | None


def solved(engine: Engine, order: Order, rows: Rows) -> Answer:
    """All fills through some states of the frontier."""
    before = copied(engine.tallies)
    engine.only_through(order.position, rows)
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
    if order.mode == "best" and count > len(first):
        prices = Prices(engine.problem.program)
        least = found.cheapest(lambda hole, choice: prices.of({hole: choice})[0])
        cheap = least.first(LIST_AT_MOST, Budget())
    return Answer(count, first, cheap, since(before, engine.tallies), stopped)


_ready = threading.local()  # of this thread: an engine, what it is ready for, how fast it was


def in_time(
    solve: Callable[[int, int], Answer], low: int, high: int, seconds: float
) -> Piece[Answer]:
    """As many cells as there is CPU time for, one at least; as many at once as the last piece lets
    hope for, as many states together take less than a few at a time."""
    began = time.thread_time()
    answers: list[Answer] = []
    at = low
    pace: float = getattr(_ready, "pace", 1.0)  # cells in a second
    while at < high:
        left = seconds - (time.thread_time() - began)
        to = min(high, at + max(1, int(pace * left / 2)))
        started = time.thread_time()
        answers.append(solve(at, to))
        if answers[-1].stopped is not None:
            break
        pace = (to - at) / max(time.thread_time() - started, 1e-4)
        at = to
        if time.thread_time() - began >= 0.8 * seconds:
            break
    _ready.pace = pace
    return Piece(low, at, together(answers), time.thread_time() - began)


def elsewhere(
    program: Any, order: Order, rows: Rows, starts: Sequence[int], low: int, seconds: float
) -> Piece[Answer]:
    """A piece, in a process that may have seen the program before. Cell `low + i` are the rows
    `starts[i]` up to the next."""
    engine = ready(program, order)

    def solve(at: int, to: int) -> Answer:
        some = rows.only(np.arange(starts[at - low], starts[to - low]))
        return solved(engine, order, some)

    return in_time(solve, low, low + len(starts) - 1, seconds)


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
    engine.budget = whole.watched(_of_cpu(whole, seconds))
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
    _parted: int = 0  # cells

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
        frontier = choose(self.engine, position)
        if frontier is None:
            return False
        self.tallies = copied(self.engine.tallies)
        cells = frontier.cells
        states = "" if store is None else frontier.digest()
        keys = [self._key(states, cells, cell) for cell in range(cells)]
        kept = [] if store is None else read(store, keys, self._limits())
        if store is not None and not kept:
            store.put(self._key("begun"), {"position": frontier.position})
        for piece in kept:
            self._take(piece, cells)
        done = [(piece.low, piece.high) for piece in kept]
        todo = in_pieces(
            cells,
            self._submit(frontier, program),
            self.engine.budget,
            workers=self._workers,
            done=done,
        )
        for piece in todo:
            if store is not None and piece.value.stopped is None:
                store.put(keys[piece.low], written(piece))
            self._take(piece, cells)
            if piece.value.stopped is not None:
                raise BudgetSpentError(piece.value.stopped)
        if store is not None and len(self.answers) > 1:
            store.put(keys[0], written(Piece(0, cells, together(self.answers), 0.0)))
            store.drop(keys[1:])
        return True

    def _limits(self) -> list[int]:
        """How many choices each hole has."""
        steps = self.engine.problem.program.steps
        return [
            len(step.gathers) for step in steps if isinstance(step, Apply) and step.gathers.is_hole
        ]

    def _take(self, piece: Piece[Answer], cells: int) -> None:
        self.answers.append(piece.value)
        add_tallies(self.tallies, piece.value.tallies)
        self._parted += piece.high - piece.low
        if self.parting.on_piece is not None:
            self.parting.on_piece(piece)
        if self.report is not None:
            of_all = f"{100 * self._parted // cells} % of all, {self._workers()} at work"
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
            crew.submit(get_ready, program, self._order(-1))
        return program

    def _order(self, position: int) -> Order:
        megabytes = self.engine.budget.megabytes
        return Order(self.digest, self.goal, self.mode, position, megabytes)

    def _submit(self, frontier: Frontier, program: Any) -> Submit[Answer]:
        engine, crew = self.engine, self.parting.crew
        order = self._order(frontier.position)

        def here(low: int, high: int, seconds: float) -> Piece[Answer]:
            return in_time(
                lambda at, to: solved(engine, order, frontier.part(at, to)), low, high, seconds
            )

        if crew is None:
            return at_once(here)

        def there(low: int, high: int, seconds: float) -> Future[Piece[Answer]]:
            rows, starts = frontier.part(low, high), frontier.starts(low, high)
            found: Future[Piece[Answer]] = crew.submit(
                elsewhere, program, order, rows, starts, low, seconds
            )
            return found

        return there
