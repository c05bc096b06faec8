"""A long search in pieces: done by whoever is free, kept as they are done, never twice.

The work is a line of `cells`, each of which can be done by itself. A worker is given a range of
cells and a little time; it does as many as it gets to, and what it leaves goes back to all, so that
one heavy range keeps nobody waiting. A single cell that is too heavy becomes a line of its own, of
smaller cells. A worker that is lost costs what it had at hand: that is given to another. It does
not matter which piece ends where: every cell is in one piece that is done.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from warploom.errors import DeviceError, GoneError
from warploom.search.budget import Budget

V = TypeVar("V")

SECONDS = 0.2  # for a piece: less than a 64th of any search that is worth the trouble
HANDLING = 0.01  # and so many more for each worker: one process hands out all pieces
HEAVY = 2  # a cell that takes so many times as long is divided, if that helps to end sooner
LONGEST = 30.0  # seconds at a single cell that can be divided: what a kill may cost
MORE = 2  # times as many cells are given out as there is time for, as far as is known,
SMALLEST = 8  # and no fewer than for this part of the time
FINEST = 64  # no range that is given out is more than this part of the whole
ATTEMPTS = 3  # at a range whose workers were lost
_LOOK_EVERY = 0.1  # seconds between two looks at the budget while others work

# The cells of a cell: which one it is, a mark of how it was divided, how many cells it became; and
# so for each that it is within. The whole work is ().
Line: TypeAlias = tuple[tuple[int, str, int], ...]


class Range(NamedTuple):
    """Cells `low` up to `high` of a line."""

    line: Line
    low: int
    high: int


class Pace(NamedTuple):
    """CPU seconds for a piece, and for a cell before it is divided."""

    seconds: float
    limit: float


@dataclass(frozen=True, slots=True)
class Division:
    """A cell that became a line of so many cells; `mark` says how, `value` is what they are."""

    mark: str
    cells: int
    value: Any


@dataclass(frozen=True, slots=True)
class Piece(Generic[V]):
    """Cells `low` up to `high`, and what they gave; `high` is less than was asked for if the time
    was over, and may be `low`. With `division` the cell `high` was too heavy, and is divided."""

    low: int
    high: int
    value: V
    seconds: float
    line: Line = ()
    division: Division | None = None

    @property
    def range(self) -> Range:
        return Range(self.line, self.low, self.high)

    @property
    def within(self) -> Line:
        """The line that its division made."""
        assert self.division is not None
        return (*self.line, (self.high, self.division.mark, self.division.cells))


Submit = Callable[[Range, Pace], "Future[Piece[V]]"]


class Crew(Protocol):
    """Who does the work: a `Farm` of processes, a `Cluster`."""

    @property
    def workers(self) -> int: ...
    def share(self, value: Any) -> Any: ...
    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]: ...


def in_order(futures: Sequence[Future[V]], look: Callable[[], object]) -> list[V]:
    """All results, as they were asked for; `look` is called while others work, and may raise."""
    try:
        left = set(futures)
        while left:
            look()
            left = wait(left, _LOOK_EVERY).not_done
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


class Todo:
    """Ranges that nobody has done or does, and who is given what of them."""

    def __init__(self, cells: int, ranges: Iterable[Range]) -> None:
        self._cells = cells
        self._heap: list[tuple[int, int, int, Range]] = []
        self._left: Counter[Line] = Counter()
        self._done: Counter[Line] = Counter()
        self._seconds: dict[Line, float] = {}
        self._count = 0
        for each in ranges:
            self.put(each)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def put(self, given: Range) -> None:
        """Parts of heavy cells come first, then what is largest."""
        line, low, high = given
        if high > low:
            self._count += 1
            heapq.heappush(self._heap, (-len(line), low - high, self._count, given))
            self._left[line] += high - low

    def give(self, workers: int) -> Range:
        """A part of the first range: the less is left, the smaller, so that all end together. It is
        not much more than what there is time for, and no tiny part of that."""
        line, low, high = heapq.heappop(self._heap)[-1]
        cells = line[-1][2] if line else self._cells
        share = self._left[line] // (2 * workers)
        each = self._each(line)
        if each > 0:
            seconds = self.pace(workers).seconds
            share = min(max(share, int(seconds / SMALLEST / each)), int(MORE * seconds / each))
        share = min(share, cells // FINEST)
        self._left[line] -= high - low
        to = min(high, low + max(1, share))
        self.put(Range(line, to, high))
        return Range(line, low, to)

    def take(self, given: Range, piece: Piece[Any]) -> None:
        """What a piece leaves of what was given."""
        line, _, high = given
        if piece.high > piece.low:
            self._done[line] += piece.high - piece.low
            self._seconds[line] = self._seconds.get(line, 0.0) + piece.seconds
        if piece.division is not None:
            self.put(Range(piece.within, 0, piece.division.cells))
            self.put(Range(line, piece.high + 1, high))
        else:
            self.put(Range(line, piece.high, high))

    def pace(self, workers: int) -> Pace:
        """A cell is too heavy if it takes long beside a piece, and beside the time of all."""
        seconds = max(SECONDS, HANDLING * workers)
        rest = self._left[()] * self._each(()) / (4 * workers)
        return Pace(seconds, max(HEAVY * seconds, min(rest, LONGEST)))

    def _each(self, line: Line) -> float:
        """Seconds of a cell, as far as is known."""
        return self._seconds.get(line, 0.0) / max(1, self._done[line])


def in_pieces(
    cells: int,
    submit: Submit[V],
    budget: Budget,
    *,
    workers: Callable[[], int] = lambda: 1,
    ranges: Iterable[Range] | None = None,
) -> Iterator[Piece[V]]:
    """The pieces of all cells, or of those in `ranges`, as they come. `submit` gives a range to a
    worker, of whom there may be more or fewer each time one looks. Raises what ends the budget; an
    error of a worker, too."""
    todo = Todo(cells, [Range((), 0, cells)] if ranges is None else ranges)
    running: dict[Future[Piece[V]], Range] = {}
    ended: SimpleQueue[Future[Piece[V]]] = SimpleQueue()
    lost: Counter[Range] = Counter()
    try:
        while todo or running:
            count = workers()
            # Some more than there are workers: nobody waits for us to hear of the end of a piece.
            most = count if count == 1 else count + 1 + count // 16
            while todo and len(running) < most:
                given = todo.give(count)
                future = submit(given, todo.pace(count))
                running[future] = given
                future.add_done_callback(ended.put)
            budget.check()
            for future in _those(ended):
                given = running.pop(future)
                try:
                    piece = _of_range(future.result(), given)
                except GoneError:  # nobody is left who could do it
                    raise
                except DeviceError:
                    lost[given] += 1
                    if lost[given] >= ATTEMPTS:
                        raise
                    todo.put(given)
                    continue
                todo.take(given, piece)
                yield piece
    finally:
        for future in running:
            future.cancel()


def _those(ended: SimpleQueue[Future[V]]) -> Iterator[Future[V]]:
    """All that ended by now; a little later, if there is none."""
    try:
        yield ended.get(timeout=_LOOK_EVERY)
        while True:
            yield ended.get_nowait()
    except Empty:
        return


def _of_range(piece: Any, given: Range) -> Any:
    """The piece, if it is one of the range that was asked for."""
    line, low, high = given
    fits = isinstance(piece, Piece) and piece.line == line and piece.low == low
    fits = fits and low <= piece.high <= high
    if fits and piece.division is not None:
        fits = piece.high < high and piece.division.cells > 0
    if not fits:
        raise DeviceError(f"the piece {low} to {high} was asked for, and another came back")
    return piece


def at_once(work: Callable[[Range, Pace], Piece[V]]) -> Submit[V]:
    """Work that is done here and now."""

    def submit(given: Range, pace: Pace) -> Future[Piece[V]]:
        done: Future[Piece[V]] = Future()
        done.set_result(work(given, pace))
        return done

    return submit
