"""The default engine: sets of states pushed through the program, joined where arguments meet.

Each value of the program is a stream of batches of states. A step that reads one open value tries
its choices on each batch; a step that reads several joins them first. Nothing is enumerated that
the bounds and demands of the steps after it rule out. docs/search.md explains why no fill is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from warploom.search.budget import STOPS, Budget, BudgetSpentError, reason_of
from warploom.search.outcome import Reason
from warploom.search.statistics import Tally
from warploom.sketch.synth.bounds import Bounds, solve_bounds
from warploom.sketch.synth.choices import EXPAND_AT_ONCE
from warploom.sketch.synth.demand import Demand, Demands
from warploom.sketch.synth.expand import VALUES_AT_ONCE, Expander, prepare
from warploom.sketch.synth.join import Condition, cover_conditions, fold_conditions, pairs
from warploom.sketch.synth.problem import Given, Move, Problem, settle, source_rows
from warploom.sketch.synth.rows import Index, Origin, Pending, Rows, leaf
from warploom.sketch.synth.subterms import Ids

BATCH_BYTES = 96 << 20
FIRST_BATCH_BYTES = 1 << 16
LAST_BATCH_BYTES = 1 << 20  # after a stop
UNLIMITED = 1 << 62

# Two holes are tried as one only while all pairs of their choices can be sorted at once.
PAIRS_AT_ONCE = 1 << 20

# What there is to push what was found through the steps after it, once the search was stopped: a
# share of the time, but so many seconds at least and at most; and somewhat more memory.
CLOSING_SHARE, CLOSING_LEAST, CLOSING_MOST = 0.05, 0.1, 0.5
CLOSING_INTERRUPTED = 0.15  # seconds after Ctrl-C
CLOSING_MEMORY = 1.05
CLOSING_HASTE = 64

T = TypeVar("T")


class TooLongError(Exception):
    """Work that is given up, with all that it gave: no reason to end a search."""


def of_cpu(budget: Budget, seconds: float, error: Exception) -> Callable[[], None]:
    """Raises it after so many seconds of CPU: those of the wall say little where others work on
    the same cores."""
    end = time.thread_time() + seconds

    def check() -> None:
        if budget.on_check is not None:
            budget.on_check()
        if time.thread_time() > end:
            raise error

    return check


@dataclass(eq=False)
class Engine:
    """`states(position)` streams the states of a step that can still lead to a solution.

    A spent budget, Ctrl-C or lack of memory ends the work at hand and not the streams: what was
    found up to there still goes through the steps after it, as far as that is quickly done.
    """

    problem: Problem
    budget: Budget
    batch_bytes: int = BATCH_BYTES
    on_progress: Callable[[int, int], None] | None = None
    tallies: dict[int, Tally] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    shared: dict[int, Rows] = field(default_factory=dict)
    stopped: Reason | None = None
    _closing: Budget = field(default_factory=Budget)  # once stopped, for holes
    _tail: Budget = field(default_factory=Budget)  # and for the fixed steps after the last one
    _expanders: dict[int, Expander] = field(default_factory=dict)
    _constants: dict[int, Ids] = field(default_factory=dict)
    _given: dict[int, Rows] = field(default_factory=dict)  # by `only_through`
    _sides: dict[int, Rows] = field(default_factory=dict)  # kept from one of these to the next
    _at: int = 0

    def __post_init__(self) -> None:
        self.budget = self.budget.watched(self._report)
        self._at = self.problem.last

    def _report(self) -> None:
        if self.on_progress is not None:
            shown = self.problem.packs.get(self._at, self._at)
            self.on_progress(shown, sum(t.visited for t in self.tallies.values()))

    # -- before the search -----------------------------------------------------------------------

    def prepare(self) -> bool:
        """Computes bounds and demands. False: they already show that there is no fill."""
        with self.budget.enforced():
            return self._prepare()

    def _prepare(self) -> bool:
        problem = self.problem
        self.bounds = solve_bounds(problem, None, self.budget)
        demands: Demands | None = None
        for _ in range(2):
            if not self.bounds.feasible:
                break
            demands = Demands(problem, self.bounds)
            if not demands.tighten():
                break
            self.bounds = solve_bounds(problem, self.bounds, self.budget)
            demands = None  # the bounds have changed under it
        for position, step in problem.steps.items():
            if isinstance(step, Move) and step.is_hole:
                # Every choice was looked at once, on sets, when the bounds were computed.
                tally = self._tally(position)
                tally.options = tally.visited = step.count
                tally.prune("bounds", step.count - len(self.bounds.alive[position]))
        if self.bounds.feasible:
            self._prepare_steps(demands or Demands(problem, self.bounds))
        return self.bounds.feasible

    def _prepare_steps(self, demands: Demands) -> None:
        for position, step in self.problem.steps.items():
            if isinstance(step, Move) and self.problem.open_holes[position]:
                self._at = position
                tested = step.is_hole or len(self._open_args(step)) > 1
                demand = demands.of(position) if tested or step.bag > 1 else Demand()
                # Steps that leave nothing open are not candidates and do not count.
                tally = self._tally(position) if tested else Tally()
                self._expanders[position] = prepare(
                    self.problem,
                    self.bounds,
                    step,
                    demand,
                    demands.unread(position),
                    tally,
                    self._untested_hole_before(step),
                )
        for expander in self._expanders.values():
            self._link(expander)

    def _link(self, expander: Expander) -> None:
        """Lets the step before look ahead, if this hole is all that reads it."""
        first = expander.first
        if first.is_hole and len(first.args) == 1 and not self._is_shared(first.args[0]):
            before = self._expanders.get(first.args[0])
            if before is not None and not before.move.settles:
                before.ahead = expander

    def _untested_hole_before(self, move: Move) -> Move | None:
        """The hole that feeds this hole alone, if nothing could be checked between the two."""
        if not move.is_hole or len(move.args) != 1:
            return None
        before = self.problem.steps[move.args[0]]
        if not isinstance(before, Move) or not before.is_hole or before.settles:
            return None
        expander = self._expanders[before.position]
        if self._is_shared(before.position) or expander.choices.first is not None:
            return None
        if len(expander.choices) * len(self.bounds.alive[move.position]) > PAIRS_AT_ONCE:
            return None
        tests = len(expander.cells) or expander.demand.hits or expander.demand.covers
        return None if tests or expander.demand.count is not None else before

    def _tally(self, position: int) -> Tally:
        return self.tallies.setdefault(position, Tally())

    # -- the search ------------------------------------------------------------------------------

    def solutions(self) -> Iterator[Rows]:
        """Batches of final states, all equal to the goal. Raises at the end if it was stopped."""
        for rows in self.states(self.problem.last, self._batch()):
            step = max(1, VALUES_AT_ONCE // max(1, rows.values.shape[1]))
            parts = [
                (rows.values[start : start + step] == self.problem.goal).all(axis=1)
                for start in range(0, len(rows), step)
            ]
            right = np.flatnonzero(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
            if len(right):
                yield rows.only(right)
        if self.stopped is not None:
            raise BudgetSpentError(self.stopped)

    def _batch(self) -> int:
        """Bytes of a batch: every hole has one that comes in and one that goes out."""
        left = self.budget.megabytes_left
        if left is None:
            return self.batch_bytes
        share = left * 2**20 / (8 + 4 * len(self.tallies))
        return max(FIRST_BATCH_BYTES, min(self.batch_bytes, int(share)))

    # -- the search in parts: see split.py -------------------------------------------------------

    def main_path(self) -> list[int]:
        """Steps of which each is the first that the next one reads; the last step is the last."""
        path = [self.problem.last]
        while expander := self._expanders.get(path[-1]):
            args = self._open_args(expander.first)
            if not args:
                break
            path.append(args[0])
        return path[::-1]

    def all_states(self, position: int) -> Rows:
        """The states of a step, all at once."""
        return self._collect(self._computed(position, UNLIMITED), position)

    def only_through(self, position: int, rows: Rows) -> None:
        """From now on only fills for which a step has one of these states. What does not depend on
        that step is not computed again."""
        after = {position, *self.problem.after(position)}
        self.shared = {key: value for key, value in self.shared.items() if key not in after}
        self._sides = {key: value for key, value in self._sides.items() if key not in after}
        self._given = {position: rows}
        if self._is_shared(position):
            self.shared[position] = rows
        self.stopped = None

    def unless_longer(self, seconds: float, work: Callable[[], T]) -> T | None:
        """What work gives; None: it took more seconds of CPU, and is as if it had not begun."""
        whole, shared, sides = self.budget, dict(self.shared), dict(self._sides)
        self.budget = whole.watched(of_cpu(whole, seconds, TooLongError()))
        try:
            return work()
        except TooLongError:
            self.shared, self._sides, self.stopped = shared, sides, None
            return None
        finally:
            self.budget = whole

    def _side(self, position: int) -> Rows:
        """All states of a value that is joined with another one."""
        if not self._given:
            return self._collect(self.states(position, UNLIMITED), position)
        if position not in self._sides:
            self._sides[position] = self._collect(self.states(position, UNLIMITED), position)
        return self._sides[position]

    def states(self, position: int, limit: int) -> Iterator[Rows]:
        if not self.problem.open_holes[position]:
            yield Rows(self._constant(position), {}, leaf(1))
        elif position in self._given and not self._is_shared(position):
            yield self._given[position]
        elif self._is_shared(position):
            rows = self._shared_rows(position)
            keys = {**rows.keys, position: np.arange(len(rows))}
            yield Rows(rows.values, keys, leaf(len(rows)))
        else:
            yield from self._computed(position, limit)

    def _is_shared(self, position: int) -> bool:
        return len(self.problem.users[position]) > 1

    def _shared_rows(self, position: int) -> Rows:
        if position not in self.shared:
            self.shared[position] = self._collect(self._computed(position, UNLIMITED), position)
        return self.shared[position]

    def _collect(self, batches: Iterator[Rows], position: int) -> Rows:
        """An unlimited stream is one batch, or none. After a stop there may be more: left out."""
        for rows in batches:
            return rows
        width = self.problem.cells_of(position)
        return Rows(np.zeros((0, width), np.int32), {}, leaf(0))

    def _constant(self, position: int) -> Ids:
        """The value of a step that no hole influences: [1, cells]."""
        if position not in self._constants:
            step = self.problem.steps[position]
            if isinstance(step, Given):
                value = step.values[None, :]
            else:
                args = {arg: self._constant(arg) for arg in step.args}
                source = source_rows(step, args)
                value = settle(step, source[:, step.rows(np.arange(1))[0]])
            self._constants[position] = value
        return self._constants[position]

    def _open_args(self, move: Move) -> list[int]:
        return [arg for arg in dict.fromkeys(move.args) if self.problem.open_holes[arg]]

    def _computed(self, position: int, limit: int) -> Iterator[Rows]:
        """Where all that a shared value feeds meets again, its states are taken a few at a time."""
        source = self._met(position)
        if source is None or source in self.shared:
            yield from self._at_once(position, limit)
            return
        inside = self.problem.between(source, position)
        for rows in self._computed(source, limit):
            for part in rows.slices(limit):
                for key in inside:
                    self.shared.pop(key, None)
                    self._sides.pop(key, None)
                self.shared[source] = part
                yield from self._at_once(position, limit)
                if self.stopped is not None and self._closing.is_spent():
                    break
        self.shared.pop(source, None)

    def _met(self, position: int) -> int | None:
        """The shared value, if there is one, that a step is the first to see the whole of."""
        shared = (p for p in self.problem.steps if self._is_shared(p))
        opened = (p for p in shared if self.problem.open_holes[p])
        return next((p for p in opened if self.problem.gates.get(p) == position), None)

    def _at_once(self, position: int, limit: int) -> Iterator[Rows]:
        expander = self._expanders[position]
        args = self._open_args(expander.first)
        others = [self._side(arg) for arg in args[1:]]
        if any(len(rows) == 0 for rows in others):
            return
        single = Rows(np.zeros((1, 0), np.int32), {}, leaf(1))
        for rows in self.states(args[0], limit) if args else iter([single]):
            self._at = position
            sides = (rows, *others)
            pending = Pending(tuple(side.origin for side in sides) + self._ended(position, sides))
            work = self._tried(expander, args, sides, pending, limit)
            yield from self._until_stopped(work, self._budget_of(position))
            if self.stopped is not None:
                yield from self._leftovers(position, pending)
            del rows, sides, work  # the next batch comes about while this one would be held

    def _tried(
        self,
        expander: Expander,
        args: list[int],
        sides: tuple[Rows, ...],
        pending: Pending,
        limit: int,
    ) -> Iterator[Rows]:
        """Runs the step on all states that go together; yields whenever enough survivors have
        come together, and what is left at the end."""
        budget = self._budget_of(expander.move.position)
        if self.stopped is not None:  # time for a little of everything is better than all of one
            limit = min(limit, LAST_BATCH_BYTES)
        merge_at = self._batch()
        for keys, at, values, choices in self._survivors(expander, args, sides, budget):
            pending.add(values, keys, at, choices)
            if pending.nbytes > limit:
                yield from pending.take(budget)
            elif pending.nbytes > merge_at:
                pending.merge(budget)
                merge_at = max(merge_at, 2 * pending.nbytes)
        yield from pending.take(budget)

    def _survivors(
        self, expander: Expander, args: list[int], sides: tuple[Rows, ...], budget: Budget
    ) -> Iterator[tuple[dict[int, Index], tuple[Index, ...], Ids, dict[int, Index]]]:
        """(keys, rows of each side, values, choices) of the candidates that are left, in pieces."""
        first = expander.first
        for at in self._combinations(expander, args, sides, budget):
            together = list(zip(args, sides, at, strict=False))
            values = {arg: rows.values[i] for arg, rows, i in together}
            keys: dict[int, Index] = {}
            for side, i in zip(sides, at, strict=True):
                keys |= {key: column[i] for key, column in side.keys.items()}
            at += tuple(keys.pop(key) for key in self._ending(expander.move.position, sides))
            constants = {arg: self._constant(arg) for arg in first.args if arg not in values}
            sources = source_rows(first, values | constants)
            for found, row, choices in expander.run(sources, budget):
                yield (
                    {key: column[row] for key, column in keys.items()},
                    tuple(index[row] for index in at),
                    found,
                    choices if expander.move.is_hole else {},
                )

    def _ending(self, position: int, sides: tuple[Rows, ...]) -> list[int]:
        """The keys that nothing after this step can be joined on.

        A value that reaches the end only through this step meets nobody else, so its states need
        not be told apart any more: they become parents.
        """
        keys = dict.fromkeys(key for side in sides for key in side.keys)
        return [key for key in keys if self.problem.passes(key, position)]

    def _ended(self, position: int, sides: tuple[Rows, ...]) -> tuple[Origin, ...]:
        return tuple(self.shared[key].origin for key in self._ending(position, sides))

    # -- the end before the end ------------------------------------------------------------------

    def _budget_of(self, position: int) -> Budget:
        """Work that begins after a stop has little time left, the last steps somewhat more."""
        if self.stopped is None:
            return self.budget
        return self._closing if self._holes_from[position] else self._tail

    def _until_stopped(self, work: Iterator[T], budget: Budget) -> Iterator[T]:
        try:
            while True:
                with budget.enforced():  # only while it works, not while others use what it gave
                    found = next(work, None)
                if found is None:
                    return
                yield found
        except STOPS as stop:
            self._stop(reason_of(stop))

    def _stop(self, reason: Reason) -> None:
        if self.stopped is not None:
            self._closing.seconds = 0.0
            self._closing.end(reason)
            return
        self.stopped = reason
        self.budget.end(reason)
        seconds, megabytes = self.budget.seconds, self.budget.megabytes
        seconds = CLOSING_MOST if seconds is None else CLOSING_SHARE * seconds
        seconds = max(CLOSING_LEAST, min(CLOSING_MOST, seconds))
        if reason is Reason.INTERRUPTED:
            seconds = min(seconds, CLOSING_INTERRUPTED)
        megabytes = None if megabytes is None else CLOSING_MEMORY * megabytes
        self._closing = Budget(seconds, megabytes, haste=CLOSING_HASTE)
        self._tail = Budget(2 * seconds, megabytes, haste=CLOSING_HASTE)

    def _leftovers(self, position: int, pending: Pending) -> Iterator[Rows]:
        """What was found before the stop, in small batches, as long as there is time; at least one
        where only fixed steps follow."""
        sure = not self._holes_after(position)
        for rows in pending.slices(LAST_BATCH_BYTES):
            if not sure and self._closing.is_spent():
                return
            yield rows
            sure = False

    def _holes_after(self, position: int) -> bool:
        return any(self._holes_from[user] for user in self.problem.users[position])

    @cached_property
    def _holes_from(self) -> dict[int, bool]:
        """Whether a step, or one that depends on it, is a hole."""
        found: dict[int, bool] = {}
        for position, step in reversed(self.problem.steps.items()):
            is_hole = isinstance(step, Move) and step.is_hole
            found[position] = is_hole or any(found[user] for user in self.problem.users[position])
        return found

    # -- joins -----------------------------------------------------------------------------------

    def _combinations(
        self, expander: Expander, args: list[int], sides: tuple[Rows, ...], budget: Budget
    ) -> Iterator[tuple[Index, ...]]:
        """Rows of all sides that go together: one index array for each side, in pieces."""
        wide = expander.first.source_size
        at_once = min(EXPAND_AT_ONCE, max(1, VALUES_AT_ONCE // wide))
        at_once = budget.at_once(at_once, 16 * wide)
        if len(sides) == 1:
            for start in range(0, len(sides[0]), at_once):
                yield (np.arange(start, min(start + at_once, len(sides[0]))),)
        elif len(sides) == 2:
            conditions = self._conditions(expander, args, sides, budget)
            yield from pairs(sides[0], sides[1], conditions, at_once, budget)
        else:
            yield from self._all_combinations(sides, at_once, budget)

    def _all_combinations(
        self, sides: tuple[Rows, ...], at_once: int, budget: Budget
    ) -> Iterator[tuple[Index, ...]]:
        *head, last = sides
        if not head:
            yield (np.arange(len(last)),)
            return
        for at in self._all_combinations(tuple(head), at_once, budget):
            keys: dict[int, Index] = {}
            for rows, i in zip(head, at, strict=True):
                keys |= {key: column[i] for key, column in rows.keys.items()}
            joined = Rows(np.zeros((len(at[0]), 0), np.int32), keys, leaf(len(at[0])))
            for i, j in pairs(joined, last, [], at_once, budget):
                yield (*(index[i] for index in at), j)

    def _conditions(
        self, expander: Expander, args: list[int], sides: tuple[Rows, ...], budget: Budget
    ) -> list[Condition]:
        """Only for steps with one gather left."""
        move = expander.move
        if len(expander.choices) != 1:
            return []
        table, halves = self._two_sided(expander, args, sides)
        if move.folded and expander.out_flags is not None:
            return fold_conditions(move, table, halves, expander.out_flags, budget)
        if move.cells != move.out_cells:
            return []
        return cover_conditions(
            self.problem.domain, table, halves, expander.demand.covers, budget
        )  # fmt: skip

    def _two_sided(
        self, expander: Expander, args: list[int], sides: tuple[Rows, ...]
    ) -> tuple[Ids, tuple[Ids, Ids]]:
        """The step's table over a source in which the left value lies first, then the right one
        with the constant arguments behind it."""
        move = expander.move
        left, right = sides[0].values, sides[1].values
        constants = [a for a in dict.fromkeys(move.args) if a not in args]
        rest = [
            np.broadcast_to(self._constant(a), (len(right), self._constant(a).shape[1]))
            for a in constants
        ]
        start: dict[int, int] = {}
        end = 0
        for arg in (*args, *constants):
            start[arg] = end
            end += self.problem.cells_of(arg)
        moved = np.arange(move.source_size)
        for arg, low, high in self.problem.layout(move):
            moved[low:high] = np.arange(start[arg], start[arg] + high - low)
        moved[-2:] = (end, end + 1)
        table = moved[expander.choices.tables(np.zeros(1, np.int64))[0]].astype(np.int32)
        both = right if not rest else np.concatenate([right, *rest], axis=1)
        return table, (left, both)
