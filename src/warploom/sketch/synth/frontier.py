"""The states of one step, by which a search is parted, in cells; a heavy cell is parted again.

Every fill gives each step one state. So the states of a step part all fills, and those of a later
step that come of one of them part the fills through that one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from warploom.search.budget import BudgetSpentError
from warploom.sketch.synth.engine import Engine
from warploom.sketch.synth.rows import Rows

CELLS = 1 << 20  # of a frontier, at most: then several states are one cell
ENOUGH = 1024  # states of a frontier that are no fewer than one wants
OF_EACH = 16  # the same for each worker
PARTS = 256  # states of a heavy cell that are as many as one wants
CHOOSING_SECONDS = 1.0  # of CPU, to get from the first step to the frontier
MOST_BYTES = 1 << 29  # of its states


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """The states of one step, in cells."""

    position: int
    rows: Rows

    @property
    def cells(self) -> int:
        return min(CELLS, len(self.rows))

    def cut(self, low: int, high: int) -> Cut:
        edges = np.arange(low, high + 1) * len(self.rows) // max(1, self.cells)
        rows = self.rows.only(np.arange(edges[0], edges[-1]))
        return Cut(self.position, low, rows, tuple((edges - edges[0]).tolist()))

    @property
    def mark(self) -> str:
        """Says of which step the states are, and which they are."""
        return f"{self.position}:{self.digest()[:16]}"

    def digest(self) -> str:
        said = hashlib.sha256(self.rows.values.tobytes())
        for hole, choices in sorted(self.rows.origin.choices.items()):
            said.update(f"{hole}".encode() + choices.tobytes())
        return said.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Some cells of a frontier: cell `low + i` are the rows `starts[i]` up to the next."""

    position: int
    low: int
    rows: Rows
    starts: tuple[int, ...]

    def of(self, low: int, high: int) -> Rows:
        if (low, high) == (self.low, self.low + len(self.starts) - 1):
            return self.rows
        first, end = self.starts[low - self.low], self.starts[high - self.low]
        return self.rows.only(np.arange(first, end))


def choose(engine: Engine, position: int | None = None, workers: int = 1) -> Frontier | None:
    """The step at `position`, or the best that is reached in little time: the last one with enough
    states, or the one with the most. None: there is none that stands by itself."""
    if position is not None:
        rows = engine.all_states(position)
        if engine.stopped is not None:
            raise BudgetSpentError(engine.stopped)
        return Frontier(position, rows)
    enough = max(ENOUGH, OF_EACH * workers)
    chosen: Frontier | None = None
    for found in _reached(engine, engine.main_path(), CHOOSING_SECONDS, all_of_first=True):
        states = len(found.rows)
        if chosen is None or states >= min(enough, len(chosen.rows)) or states == 0:
            chosen = found
    return chosen


def divided(engine: Engine, position: int, rows: Rows, seconds: float) -> Frontier | None:
    """The states of a later step that come of some of this one: the first with enough of them, or
    the one with the most, if there are several. None of them: nothing comes of these states."""
    engine.only_through(position, rows)
    path = engine.main_path()
    chosen: Frontier | None = None
    for found in _reached(engine, path[path.index(position) + 1 :], seconds):
        states = len(found.rows)
        if states == 0:
            return found
        if states > max(1, 0 if chosen is None else len(chosen.rows)):
            chosen = found
        if states >= PARTS:
            break
    return chosen


def again(engine: Engine, position: int, rows: Rows, mark: str) -> Frontier | None:
    """The frontier of that mark which some states were once divided into; None: it is another."""
    engine.only_through(position, rows)
    path, later = engine.main_path(), mark.partition(":")[0]
    for step in path[path.index(position) + 1 :]:
        rows = engine.all_states(step)
        if engine.stopped is not None:
            raise BudgetSpentError(engine.stopped)
        if str(step) == later:
            found = Frontier(step, rows)
            return found if found.mark == mark else None
        engine.only_through(step, rows)
    return None


def _reached(
    engine: Engine, steps: Sequence[int], seconds: float, all_of_first: bool = False
) -> Iterator[Frontier]:
    """The states of each of these steps that stands by itself, up to where the time ends or there
    are none; each is computed from those before. The first may take all the time of the search."""
    end = time.thread_time() + seconds
    for number, step in enumerate(steps):
        rows: Rows | None = None
        if all_of_first and not number:
            rows = engine.all_states(step)
        elif (left := end - time.thread_time()) > 0:
            rows = engine.unless_longer(left, partial(engine.all_states, step))
        if engine.stopped is not None:
            raise BudgetSpentError(engine.stopped)
        if rows is None or rows.nbytes > MOST_BYTES:
            break
        if not rows.keys:
            yield Frontier(step, rows)
        if len(rows) == 0:
            break
        engine.only_through(step, rows)
    engine.budget.check()
