"""A long search in pieces: done by whoever is free, kept as they are done, never twice.

The work is a line of `cells`, each of which can be done by itself. A worker is given a range of
cells and a little time; it does as many as it gets to, and what it leaves goes back to all, so that
one heavy range keeps nobody waiting. A worker that is lost costs what it had at hand: that is given
to another. It does not matter which piece ends where: every cell is in one piece that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from warploom.errors import DeviceError, GoneError
from warploom.search.budget import Budget

V = TypeVar("V")

SECONDS = 0.2  # for a piece: less than a 64th of any search that is worth the trouble
FINEST = 64  # no range that is given out is more than this part of the whole
ATTEMPTS = 3  # at a range whose workers were lost
_LOOK_EVERY = 0.1  # seconds between two looks at the budget while others work

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece(Generic[V]):
    """Cells `low` up to `high`, and what they gave; `high` is less than was asked for if the time
    was over, and may be `low`."""

    low: int
    high: int
    value: V
    seconds: float


Submit = Callable[[int, int, float], "Future[Piece[V]]"]


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


def in_pieces(
    cells: int,
    submit: Submit[V],
    budget: Budget,
    *,
    workers: Callable[[], int] = lambda: 1,
    done: Iterable[Range] = (),
) -> Iterator[Piece[V]]:
    """The pieces of all cells that are not yet done, as they come. `submit` gives a range and
    seconds to a worker, of whom there may be more or fewer each time one looks. Raises what ends
    the budget; an error of a worker, too."""
    todo = gaps(cells, done)
    running: dict[Future[Piece[V]], Range] = {}
    lost: dict[Range, int] = {}
    try:
        while todo or running:
            count = workers()
            # One more than there are workers: nobody waits for us to hear of the end of a piece.
            while todo and len(running) < (count if count == 1 else count + 1):
                given = _given(todo, cells, count)
                running[submit(*given, SECONDS)] = given
            budget.check()
            ended, _ = wait(running, _LOOK_EVERY, FIRST_COMPLETED)
            for future in ended:
                low, high = running.pop(future)
                try:
                    piece = _of_range(future.result(), low, high)
                except GoneError:  # nobody is left who could do it
                    raise
                except DeviceError:
                    lost[low, high] = lost.get((low, high), 0) + 1
                    if lost[low, high] >= ATTEMPTS:
                        raise
                    todo.append((low, high))
                    continue
                if piece.high < high:
                    todo.append((piece.high, high))
                yield piece
    finally:
        for future in running:
            future.cancel()


def _of_range(piece: Any, low: int, high: int) -> Any:
    """The piece, if it is one of the range that was asked for."""
    if not isinstance(piece, Piece) or piece.low != low or not low <= piece.high <= high:
        raise DeviceError(f"the piece {low} to {high} was asked for, and another came back")
    return piece


def gaps(cells: int, done: Iterable[Range]) -> list[Range]:
    """The ranges that lie between those that are done.

    >>> gaps(10, [(2, 4), (4, 7)])
    [(0, 2), (7, 10)]
    """
    found, at = [], 0
    for low, high in [*sorted(done), (cells, cells)]:
        if low > at:
            found.append((at, low))
        at = max(at, high)
    return found


def disjoint(pieces: Iterable[Piece[V]]) -> list[Piece[V]]:
    """Pieces that do not overlap, out of some that do, as two runs at once may leave them."""
    kept: list[Piece[V]] = []
    for piece in sorted(pieces, key=lambda each: (each.low, -each.high)):
        if piece.high > piece.low and (not kept or piece.low >= kept[-1].high):
            kept.append(piece)
    return kept


def _given(todo: list[Range], cells: int, workers: int) -> Range:
    """A part of the largest range: the less is left, the smaller, so that all end together."""
    left = sum(high - low for low, high in todo)
    at = max(range(len(todo)), key=lambda each: todo[each][1] - todo[each][0])
    low, high = todo.pop(at)
    share = max(1, min(cells // FINEST, left // (2 * workers)))
    if high - low > share:
        todo.append((low + share, high))
    return low, min(high, low + share)


def at_once(work: Callable[[int, int, float], Piece[V]]) -> Submit[V]:
    """Work that is done here and now."""

    def submit(low: int, high: int, seconds: float) -> Future[Piece[V]]:
        done: Future[Piece[V]] = Future()
        done.set_result(work(low, high, seconds))
        return done

    return submit
