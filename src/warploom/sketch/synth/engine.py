"""The default engine: sets of states pushed through the program, joined where arguments meet.

Each value of the program is a stream of batches of states. A step that reads one open value tries
its choices on each batch; a step that reads several joins them first. Nothing is enumerated that
the bounds and demands of the steps after it rule out. docs/search.md explains why no fill is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from warploom.search.budget import Budget, BudgetSpentError
from warploom.sketch.synth.bounds import Bounds, solve_bounds
from warploom.sketch.synth.choices import EXPAND_AT_ONCE
from warploom.sketch.synth.demand import Demand, Demands
from warploom.sketch.synth.domain import Ids
from warploom.sketch.synth.expand import Expander, Tally, prepare
from warploom.sketch.synth.join import cover_conditions, fold_conditions, pairs
from warploom.sketch.synth.problem import Given, Move, Problem, settle, source_rows
from warploom.sketch.synth.rows import Index, Origin, Pending, Rows, leaf

BATCH_BYTES = 96 << 20
FIRST_BATCH_BYTES = 1 << 16


@dataclass(slots=True, eq=False)
class Engine:
    """`states(position)` streams the states of a step that can still lead to a solution."""

    problem: Problem
    budget: Budget
    batch_bytes: int = BATCH_BYTES
    on_progress: Callable[[int, int], None] | None = None
    tallies: dict[int, Tally] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    shared: dict[int, Rows] = field(default_factory=dict)
    _expanders: dict[int, Expander] = field(default_factory=dict)
    _constants: dict[int, Ids] = field(default_factory=dict)
    _stopping: bool = False

    def prepare(self) -> bool:
        """Computes bounds and demands. False: they already show that there is no fill."""
        problem = self.problem
        self.bounds = solve_bounds(problem)
        demands: Demands | None = None
        for _ in range(2):
            if not self.bounds.feasible:
                break
            demands = Demands(problem, self.bounds)
            if not demands.tighten():
                break
            self.bounds = solve_bounds(problem, self.bounds)
            demands = None  # the bounds have changed under it
        for position, step in problem.steps.items():
            if isinstance(step, Move) and step.is_hole:
                # Every choice was looked at once, on sets, when the bounds were computed.
                tally = self._tally(position)
                tally.options = tally.visited = len(step.tables)
                alive = self.bounds.alive.get(position, np.arange(len(step.tables)))
                tally.prune("bounds", len(step.tables) - len(alive))
        if self.bounds.feasible:
            self._prepare_steps(demands or Demands(problem, self.bounds))
        return self.bounds.feasible

    def _prepare_steps(self, demands: Demands) -> None:
        for position, step in self.problem.steps.items():
            if isinstance(step, Move) and self.problem.open_holes[position]:
                tested = step.is_hole or len(self._open_args(step)) > 1
                demand = demands.of(position) if tested or step.bag > 1 else Demand()
                # Steps that leave nothing open are not candidates and do not count.
                tally = self._tally(position) if tested else Tally()
                before = self._untested_hole_before(step)
                expander = prepare(self.problem, self.bounds, step, demand, tally, before)
                self._expanders[position] = expander

    def _untested_hole_before(self, move: Move) -> Move | None:
        """The hole that feeds this hole alone, if nothing could be checked between the two."""
        if not move.is_hole or len(move.args) != 1:
            return None
        before = self.problem.steps[move.args[0]]
        if not isinstance(before, Move) or not before.is_hole or before.settles:
            return None
        expander = self._expanders[before.position]
        if self._is_shared(before.position) or len(expander.holes) > 1:
            return None
        tests = len(expander.cells) or expander.demand.hits or expander.demand.covers
        return None if tests or expander.demand.count is not None else before

    def _tally(self, position: int) -> Tally:
        return self.tallies.setdefault(position, Tally())

    def solutions(self) -> Iterator[Rows]:
        """Batches of final states, all equal to the goal."""
        for rows in self.states(self.problem.last, self.batch_bytes):
            right = (rows.values == self.problem.goal).all(axis=1)
            if right.all():
                yield rows
            elif right.any():
                yield _choose(rows, np.flatnonzero(right))

    # -- streams -------------------------------------------------------------------------------

    def states(self, position: int, limit: int) -> Iterator[Rows]:
        if not self.problem.open_holes[position]:
            yield Rows(self._constant(position), {}, leaf(1))
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
            self.shared[position] = self._collect(self._computed(position, 1 << 62), position)
        return self.shared[position]

    def _collect(self, batches: Iterator[Rows], position: int) -> Rows:
        """An unlimited stream is one batch, or none."""
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
                value = settle(step, source[:, step.tables[0]])
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
            for part in _slices(rows, limit):
                for key in inside:
                    self.shared.pop(key, None)
                self.shared[source] = part
                yield from self._at_once(position, limit)
        self.shared.pop(source, None)

    def _met(self, position: int) -> int | None:
        """The shared value, if there is one, that a step is the first to see the whole of."""
        shared = (p for p in self.problem.steps if self._is_shared(p))
        opened = (p for p in shared if self.problem.open_holes[p])
        return next((p for p in opened if self.problem.gates.get(p) == position), None)

    def _at_once(self, position: int, limit: int) -> Iterator[Rows]:
        move = self.problem.steps[position]
        assert isinstance(move, Move)
        first = self.problem.steps[self._expanders[position].holes[0][0]]
        assert isinstance(first, Move)  # the step itself, or the hole tried together with it
        args = self._open_args(first)
        if len(args) <= 1:
            yield from self._from_one(first, move, args, limit)
        else:
            yield from self._from_many(first, move, args, limit)

    def _from_one(self, first: Move, move: Move, args: list[int], limit: int) -> Iterator[Rows]:
        single = Rows(np.zeros((1, 0), np.int32), {}, leaf(1))
        for rows in self.states(args[0], limit) if args else iter([single]):
            ended, keys = self._ended(move, rows.keys)
            pending = Pending((rows.origin, *self._origins(ended)))
            values = {args[0]: rows.values} if args else {}
            at = (np.arange(len(rows)), *ended.values())
            tried = self._try(first, move, values, keys, at, pending, limit)
            yield from self._finished(move, pending, tried)

    def _ended(
        self, move: Move, keys: dict[int, Index]
    ) -> tuple[dict[int, Index], dict[int, Index]]:
        """The keys that nothing after this step can be joined on, and the others.

        A value that reaches the end only through this step meets nobody else, so its states need
        not be told apart any more: they become parents.
        """
        ended = {key for key in keys if self.problem.passes(key, move.position)}
        kept = {key: column for key, column in keys.items() if key not in ended}
        return {key: keys[key] for key in keys if key in ended}, kept

    def _origins(self, ended: dict[int, Index]) -> tuple[Origin, ...]:
        return tuple(self.shared[key].origin for key in ended)

    def _from_many(self, first: Move, move: Move, args: list[int], limit: int) -> Iterator[Rows]:
        others = [self._collect(self.states(arg, 1 << 62), arg) for arg in args[1:]]
        if any(len(rows) == 0 for rows in others):
            return
        for rows in self.states(args[0], limit):
            sides = (rows, *others)
            both = {key: column for side in sides for key, column in side.keys.items()}
            ended, _ = self._ended(move, both)
            pending = Pending((*(side.origin for side in sides), *self._origins(ended)))
            tried = self._try_joined(first, move, args, sides, pending, limit)
            yield from self._finished(move, pending, tried)

    def _try_joined(
        self,
        first: Move,
        move: Move,
        args: list[int],
        sides: tuple[Rows, ...],
        pending: Pending,
        limit: int,
    ) -> Iterator[Rows]:
        for at in self._combinations(first, args, sides):
            values = {a: r.values[i] for a, r, i in zip(args, sides, at, strict=True)}
            keys: dict[int, Index] = {}
            for side, i in zip(sides, at, strict=True):
                keys |= {key: column[i] for key, column in side.keys.items()}
            ended, keys = self._ended(move, keys)
            at = (*at, *ended.values())
            yield from self._try(first, move, values, keys, at, pending, limit)

    def _finished(self, move: Move, pending: Pending, tried: Iterator[Rows]) -> Iterator[Rows]:
        """The batches, then the rest. Where only fixed steps follow, a spent budget or Ctrl-C
        still lets what was found so far through to the goal."""
        try:
            yield from tried
        except (BudgetSpentError, KeyboardInterrupt):
            if not self._holes_after(move.position):
                self._stopping = True
                yield from _rest(pending)
            raise
        yield from _rest(pending)

    def _holes_after(self, position: int) -> bool:
        steps = (self.problem.steps[user] for user in self.problem.users[position])
        return any(
            isinstance(step, Move) and (step.is_hole or self._holes_after(step.position))
            for step in steps
        )

    def _try(
        self,
        first: Move,
        move: Move,
        values: dict[int, Ids],
        keys: dict[int, Index],
        at: tuple[Index, ...],
        pending: Pending,
        limit: int,
    ) -> Iterator[Rows]:
        """Runs the step on joined states; yields whenever enough survivors have come together."""
        constants = {a: self._constant(a) for a in first.args if a not in values}
        sources = source_rows(first, values | constants)
        for found, row, choices in self._expanders[move.position].run(sources, self._pause):
            pending.add(
                found,
                {key: column[row] for key, column in keys.items()},
                tuple(index[row] for index in at),
                choices if move.is_hole else {},
            )
            if pending.nbytes > limit:
                yield from _rest(pending)

    def _pause(self, position: int) -> None:
        if self._stopping:
            return
        self.budget.check()
        if self.on_progress is not None:
            shown = self.problem.packs.get(position, position)
            self.on_progress(shown, sum(t.visited for t in self.tallies.values()))

    # -- joins ---------------------------------------------------------------------------------

    def _combinations(
        self, move: Move, args: list[int], sides: tuple[Rows, ...]
    ) -> Iterator[tuple[Index, ...]]:
        """Rows of all sides that go together: one index array for each side."""
        if len(sides) == 2:
            conditions = self._conditions(move, args, sides)
            yield from pairs(sides[0], sides[1], conditions, EXPAND_AT_ONCE)
            return
        *head, last = sides
        for at in self._combinations(move, args[:-1], tuple(head)):
            keys: dict[int, Index] = {}
            for rows, i in zip(head, at, strict=True):
                keys |= {key: column[i] for key, column in rows.keys.items()}
            joined = Rows(np.zeros((len(at[0]), 0), np.int32), keys, leaf(len(at[0])))
            for i, j in pairs(joined, last, [], EXPAND_AT_ONCE):
                yield (*(index[i] for index in at), j)
                self.budget.check()

    def _conditions(self, move: Move, args: list[int], sides: tuple[Rows, ...]) -> list:  # type: ignore[type-arg]
        """Only for steps that read two open values with one gather left."""
        expander = self._expanders[move.position]
        if expander.choices.count != 1 or args != self._open_args(move):
            return []
        table, halves = self._two_sided(move, args, sides)
        if move.folded and expander.out_flags is not None:
            return fold_conditions(move, table, halves, expander.out_flags)
        if move.cells != move.out_cells:
            return []
        return cover_conditions(self.problem.domain, table, halves, expander.demand.covers)

    def _two_sided(
        self, move: Move, args: list[int], sides: tuple[Rows, ...]
    ) -> tuple[Ids, tuple[Ids, Ids]]:
        """The step's table over a source in which the left value lies first, then the right one
        with the constant arguments behind it."""
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
        table = moved[move.tables[self._expanders[move.position].holes[0][1][0]]].astype(np.int32)
        return table, (left, np.concatenate([right, *rest], axis=1))


def _rest(pending: Pending) -> Iterator[Rows]:
    rows = pending.take()
    if rows is not None:
        yield rows


def _slices(rows: Rows, limit: int) -> Iterator[Rows]:
    """The rows in batches of about this many bytes."""
    most = max(1, limit * len(rows) // max(1, rows.values.nbytes))
    if len(rows) <= most:
        yield rows
        return
    for start in range(0, len(rows), most):
        yield _choose(rows, np.arange(start, min(start + most, len(rows))))


def _choose(rows: Rows, at: Index) -> Rows:
    pending = Pending((rows.origin,))
    pending.add(rows.values[at], {k: c[at] for k, c in rows.keys.items()}, (at,), {})
    chosen = pending.take()
    assert chosen is not None
    return chosen
