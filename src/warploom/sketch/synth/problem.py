"""A program and one goal, lowered for search: integers for terms, one source array for each step.

Steps that the last one does not need are left out; holes among them may be filled in any way. Under
the laws, a fold that a later one takes apart again is not packed: `bags.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from warploom.errors import SearchError
from warploom.search.budget import Budget
from warploom.sketch.synth.bags import Plan, plan
from warploom.sketch.synth.subterms import UNDEFINED_ID, ZERO_ID, Forms, Ids, Subterms, subterms_of
from warploom.sketch.term.gather import Moves, Sources, Table
from warploom.sketch.term.ir import Apply, Goal, Literal, Program, size
from warploom.sketch.term.laws import bag
from warploom.sketch.term.read import live_steps, read

MOST_PLACES = 1 << 27  # of a step's source, or of what it reads of it
TABLE_AT_ONCE = 1 << 22  # entries of tables that are looked at together


@dataclass(frozen=True, eq=False)
class Given:
    """An input: the same value in every fill."""

    position: int
    values: Ids


@dataclass(frozen=True, eq=False)
class Move:
    """One gather step. It reads a *source*: the arguments end to end, then undefined, then zero.

    What choice i reads for cell c is asked for by `column`, `places` and `rows`: the tables of a
    large set are never written out as a whole. `fold` cells in a row are packed into one (1: no
    fold). `bag` cells in a row are the items of one value, in no order, which a later fold packs
    (1: every cell is a value). `forms` says what either may become. With `passed`, both: the items
    of a run are bags, and a run of one item passes its bag on.
    """

    position: int
    args: tuple[int, ...]  # positions of earlier steps
    reads: Sources  # as in `GatherSet`: constants are negative, counted from the source's end
    source_size: int  # with the two constants at the end
    fold: int = 1
    forms: Forms | None = None
    bag: int = 1
    passed: Forms | None = None  # what the bags may become
    items: Ids | None = None  # [values, cells of a value]: where each value lies in the source

    @property
    def folded(self) -> bool:
        return self.forms is not None and self.bag == 1

    @property
    def builds(self) -> bool:
        """Whether it may make folds that were not there before."""
        return self.folded or self.passed is not None

    @property
    def settles(self) -> bool:
        """Whether cells are not just copied: they are packed, or put in order."""
        return self.forms is not None

    @property
    def count(self) -> int:
        """Choices."""
        return len(self.reads)

    @property
    def is_hole(self) -> bool:
        return self.count > 1

    @cached_property
    def _wide(self) -> int:
        """Cells that a value of the source has."""
        return 1 if self.items is None else int(self.items.shape[1])

    @cached_property
    def cells(self) -> int:
        """Cells before the fold."""
        return int(self.reads.shape[1]) * self._wide

    @property
    def out_cells(self) -> int:
        return self.cells // self.fold

    def column(self, cell: int, choices: npt.NDArray[np.int64]) -> Ids:
        """The place that each of some choices reads for one cell."""
        value, item = divmod(cell, self._wide)
        if isinstance(self.reads, Moves):
            read = self.reads.column(value, choices)
        else:
            read = self.reads[choices, value]
        return self._lowered(read) if self.items is None else self.items[read, item]

    def places(self, choices: npt.NDArray[np.int64], cells: npt.NDArray[np.integer]) -> Ids:
        """The place that each of some choices reads for a cell of its own."""
        if self.items is None:
            return self._lowered(self._read_at(choices, cells))
        values, items = np.divmod(cells, self._wide)
        return self.items[self._read_at(choices, values), items]

    def _read_at(self, choices: npt.NDArray[np.int64], values: npt.NDArray[np.integer]) -> Table:
        if isinstance(self.reads, Moves):
            return self.reads.at(choices, values)
        # One index into the flat array: several times as fast as two.
        read: Table = self.reads.reshape(-1)[choices * self.reads.shape[1] + values]
        return read

    def rows(self, choices: npt.NDArray[np.int64]) -> Ids:
        """The whole tables of some choices: [choices, cells]."""
        some = self.reads[choices]
        read = some.full() if isinstance(some, Moves) else some
        if self.items is None:
            return self._lowered(read)
        return self.items[read].reshape(len(read), -1)

    def _lowered(self, read: Table) -> Ids:
        # ZERO is -1 and UNDEFINED -2, which is where the two constants lie, counted from the end.
        if not (read < 0).any():
            return read
        return np.where(read < 0, read + np.int32(self.source_size), read)

    @cached_property
    def tables(self) -> Ids:
        """All of them at once, for engines that are made for small problems."""
        return self.rows(np.arange(self.count))

    def blocks(
        self,
        choices: npt.NDArray[np.int64],
        budget: Budget,
        cells: npt.NDArray[np.int64] | None = None,
    ) -> Iterator[Ids]:
        """The tables of some choices, a few at a time; with `cells`, at these."""
        width = max(self.cells, self.source_size) if cells is None else len(cells)
        step = budget.at_once(max(1, TABLE_AT_ONCE // width), 24 * width)
        for start in range(0, len(choices), step):
            budget.check()
            some = choices[start : start + step]
            yield self.rows(some) if cells is None else self.places(some[:, None], cells)

    def lines(self, weights: npt.NDArray[np.float64] | None = None) -> Lines:
        """Cells that stand for all, where they differ in nothing but which line they lie in; with
        `weights`, lines are told apart by those of their cells, too."""
        reads = self.reads
        whole = Lines(None, np.arange(self.source_size), self.source_size)
        if not isinstance(reads, Moves) or self.items is not None:
            return whole
        heads, line = np.unique(reads.kept, return_inverse=True)
        places = heads[:, None] + reads.pace * np.arange(reads.length)
        sizes = np.bincount(line.ravel())
        apart = len(np.unique(places)) == places.size and int(places.max()) < self.source_size - 2
        if not apart or (sizes != sizes[0]).any():
            return whole
        cells = np.lexsort((reads.grid, line.ravel())).reshape(len(heads), -1)
        form = reads.grid[cells].astype(np.float64)
        if weights is not None:
            form = np.concatenate([form, weights[cells]], axis=1)
        _, first, kind = np.unique(form, axis=0, return_index=True, return_inverse=True)
        count = len(first) * reads.length + 2
        number = np.empty(self.source_size, np.int64)
        number[places] = kind.reshape(-1, 1) * reads.length + np.arange(reads.length)
        number[-2:] = count - 2, count - 1
        return Lines(cells[first].reshape(-1), number, count)

    def spanning(self, choices: npt.NDArray[np.int64]) -> tuple[Move, npt.NDArray[np.int64]]:
        """As few choices as are easily found that read for each cell what these read for it."""
        if not isinstance(self.reads, Moves):
            return self, choices
        reads = self.reads if len(choices) == self.count else self.reads[choices]
        reads = reads.spanning()
        return replace(self, reads=reads), np.arange(len(reads))

    def without(
        self,
        choices: npt.NDArray[np.int64],
        cells: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
        budget: Budget,
    ) -> npt.NDArray[np.int64]:
        """Those of the choices that read none of these places for these cells, which are sorted."""
        read: Callable[[int, npt.NDArray[np.int64]], npt.NDArray[np.integer]] = self.column
        most = self.source_size
        if isinstance(self.reads, Moves) and self.items is None:
            # Cells that move alike are one: there are few grid places, and few values.
            moved = self.reads
            most = moved.length + 2
            constant = places - (self.source_size - 2)
            value, off = np.divmod(places - moved.kept[cells], moved.pace)
            there = (constant >= 0) | ((off == 0) & (value >= 0) & (value < moved.length))
            value = np.where(constant < 0, value, moved.length + constant)
            pairs = np.unique((moved.grid[cells] * most + value)[there])
            cells, places = np.divmod(pairs, most)

            def read(cell: int, some: npt.NDArray[np.int64]) -> npt.NDArray[np.integer]:
                column: npt.NDArray[np.integer] = moved.values[:, cell][some]
                return column

        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        bad = np.zeros(most, dtype=np.bool_)
        for start, end in zip(starts, [*starts[1:], len(cells)], strict=False):
            budget.check()
            bad[:] = False
            bad[places[start:end]] = True
            choices = choices[~bad[read(int(cells[start]), choices)]]
            if len(choices) == 0:
                break
        return choices

    def permutes(self, choices: npt.NDArray[np.int64], budget: Budget) -> bool:
        """Whether each of these choices reads every place of its one argument exactly once."""
        if self.cells != self.source_size - 2:
            return False
        lines = self.lines()
        for seen in lines.blocks(self, choices, budget):
            if not places_seen(seen, lines.count)[:, :-2].all():
                return False
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Some cells (None: all), and for each place the number of those that are read alike."""

    cells: npt.NDArray[np.int64] | None
    number: npt.NDArray[np.int64]
    count: int

    def blocks(
        self, move: Move, choices: npt.NDArray[np.int64], budget: Budget
    ) -> Iterator[npt.NDArray[np.int64]]:
        """What the choices read for these cells, by number, a few choices at a time."""
        for tables in move.blocks(choices, budget, self.cells):
            yield tables.astype(np.int64) if self.cells is None else self.number[tables]


def places_seen(tables: npt.NDArray[np.integer], places: int) -> npt.NDArray[np.bool_]:
    """For each table which places it reads: [tables, places]."""
    seen = np.zeros((len(tables), places), dtype=np.bool_)
    # One index array into the flat result: three times as fast as `put_along_axis`.
    at = tables.astype(np.int64)
    at += np.arange(0, len(tables) * places, places)[:, None]
    seen.reshape(-1)[at.reshape(-1)] = True
    return seen


@dataclass(frozen=True, eq=False)
class Problem:
    """`steps` by position in the program (dead ones absent). The last step must equal `goal`.

    Positions beyond the program's are of steps that pack what another one, `packs`, keeps in bags.
    """

    program: Program
    domain: Subterms
    steps: dict[int, Given | Move]
    goal: Ids
    last: int
    free_holes: tuple[int, ...]  # dead holes: any choice will do
    packs: dict[int, int] = field(default_factory=dict)

    @cached_property
    def users(self) -> dict[int, tuple[int, ...]]:
        """Positions of the steps that read each step."""
        found: dict[int, list[int]] = {position: [] for position in self.steps}
        for step in self.steps.values():
            if isinstance(step, Move):
                for arg in dict.fromkeys(step.args):
                    found[arg].append(step.position)
        return {position: tuple(users) for position, users in found.items()}

    @cached_property
    def open_holes(self) -> dict[int, frozenset[int]]:
        """The holes that each step's value depends on."""
        cones: dict[int, frozenset[int]] = {}
        for position, step in self.steps.items():
            cone: frozenset[int] = frozenset()
            if isinstance(step, Move):
                cone = cone.union(*(cones[arg] for arg in step.args))
                cone |= {position} if step.is_hole else set()
            cones[position] = cone
        return cones

    @cached_property
    def gates(self) -> dict[int, int]:
        """For each step but the last the first one that every way to the last leads through."""
        order = {position: number for number, position in enumerate(self.steps)}
        gates: dict[int, int] = {}
        for position in reversed(self.steps):
            for number, user in enumerate(self.users[position]):
                meet = gates[position] if number else user
                while meet != user:
                    if order[meet] < order[user]:
                        meet = gates[meet]
                    else:
                        user = gates[user]
                gates[position] = meet
        return gates

    def after(self, position: int) -> frozenset[int]:
        """The steps that depend on a step."""
        found, stack = set[int](), [position]
        while stack:
            later = [user for user in self.users[stack.pop()] if user not in found]
            found.update(later)
            stack += later
        return frozenset(found)

    def passes(self, position: int, gate: int) -> bool:
        """Whether every way from a step to the last one leads through another one, `gate`."""
        here: int | None = position
        while here is not None and here != gate:
            here = self.gates.get(here)
        return here is not None

    def between(self, position: int, gate: int) -> frozenset[int]:
        """The steps on the ways from one step to another that all of them lead through."""
        found, stack = set[int](), [position]
        while stack:
            later = [u for u in self.users[stack.pop()] if u != gate and u not in found]
            found.update(later)
            stack += later
        return frozenset(found)

    def cells_of(self, position: int) -> int:
        step = self.steps[position]
        return len(step.values) if isinstance(step, Given) else step.out_cells

    def layout(self, move: Move) -> list[tuple[int, int, int]]:
        """Where each argument lies in the source: (argument, first place, end)."""
        spans, start = [], 0
        for arg in move.args:
            end = start + self.cells_of(arg)
            spans.append((arg, start, end))
            start = end
        return spans


def lower(program: Program, goal: Goal) -> Problem:
    if not program.steps:
        raise SearchError("the program has no step", advice="bind at least one variable")
    last = len(program.steps) - 1
    if program.steps[last].shape != goal.shape:
        raise SearchError(
            f"the goal has shape {list(goal.shape)}, "
            f"the last step {list(program.steps[last].shape)}",
            goal.span,
        )
    reading = read(program, goal)
    domain = subterms_of(reading.goal, reading.words)
    live = live_steps(program)
    lowering = _Lowering(reading.program, domain, plan(reading.program, live, goal.laws))
    for position in sorted(live):
        lowering.add(position)
    free = tuple(hole for hole in program.holes if hole not in live)
    wanted = domain.ids_of(reading.goal.values)
    return Problem(
        reading.program, domain, lowering.steps, wanted, last, free, lowering.packs
    )  # fmt: skip


class _Lowering:
    """Steps made so far, and where the packed copies of those in bags are."""

    def __init__(self, program: Program, domain: Subterms, bags: Plan) -> None:
        self.program, self.domain, self.bags = program, domain, bags
        self.steps: dict[int, Given | Move] = {}
        self.packs: dict[int, int] = {}

    def add(self, position: int) -> None:
        step = self.program.steps[position]
        if isinstance(step, Literal):
            self.steps[position] = Given(position, self._values(position, step))
        else:
            self.steps[position] = self._move(position, step)
        if position in self.bags.also_packed:
            self._pack(position)

    def _values(self, position: int, step: Literal) -> Ids:
        """The values of an input: each in one cell, or its items in a bag."""
        width, operator = self.bags.width[position], self.bags.operator[position]
        if width == 1:
            return self.domain.ids_of(step.values)
        items = [self.domain.ids_of(bag(operator, value)) for value in step.values]
        return np.concatenate([np.sort(np.pad(i, (width - len(i), 0))) for i in items])

    def _move(self, position: int, step: Apply) -> Move:
        sources = [self._source(position, arg) for arg in step.args]
        args, widths = tuple(arg for arg, _ in sources), [width for _, width in sources]
        wide = max(widths, default=1)
        cells = [size(self.program.steps[arg].shape) for arg in step.args]
        inputs = sum(n * width for n, width in zip(cells, widths, strict=True))
        places = max(size(step.gathers.out_shape), sum(cells)) * wide
        if places > MOST_PLACES:
            raise SearchError(
                f"'{step.name}' would need {places} places under the laws",
                step.span,
                "search without laws (laws='none')",
            )
        items = None if wide == 1 else _items(cells, widths, wide, inputs)
        make = partial(Move, position, args, step.gathers.reads, inputs + 2, items=items)
        if step.fold is None:
            return make()
        forms, carried = self.domain.forms(step.operator), self.bags.operator[position]
        if not carried:
            return make(fold=step.fold * wide, forms=forms)
        if carried == step.operator:
            return make(forms=forms, bag=step.fold * wide)
        return make(fold=step.fold, forms=forms, bag=wide, passed=self.domain.forms(carried))

    def _source(self, position: int, arg: int) -> tuple[int, int]:
        """Where a step reads an argument, and how many cells a value has there."""
        if self.bags.operator[arg] in ("", self.bags.reads[position]):
            return arg, self.bags.width[arg]
        return next(copy for copy, of in self.packs.items() if of == arg), 1

    def _pack(self, position: int) -> None:
        """A packed copy of a step in bags, for those that do not take it apart."""
        made = len(self.program.steps) + len(self.packs)
        width, operator = self.bags.width[position], self.bags.operator[position]
        cells = size(self.program.steps[position].shape) * width
        table = np.arange(cells, dtype=np.int32)[None]
        forms = self.domain.forms(operator)
        self.steps[made] = Move(made, (position,), table, cells + 2, width, forms)
        self.packs[made] = position


def _items(cells: list[int], widths: list[int], wide: int, inputs: int) -> Ids:
    """Where the cells of each value lie in a source in which values have several; the last two are
    undefined and zero."""
    places = np.full((sum(cells) + 2, wide), inputs + 1, np.int32)  # zero
    places[-2, -1] = inputs  # undefined, in the last of its cells
    start = at = 0
    for n, width in zip(cells, widths, strict=True):
        moved = np.arange(n * width, dtype=np.int32).reshape(n, width) + np.int32(start)
        places[at : at + n, wide - width :] = moved
        start, at = start + n * width, at + n
    return places


def source_rows(move: Move, values: dict[int, Ids]) -> Ids:
    """The sources of a batch: `values[arg]` is [rows, cells] or, if all agree, [1, cells]."""
    (rows,) = np.broadcast_shapes(*((len(values[arg]),) for arg in move.args), (1,))
    parts = [np.broadcast_to(values[a], (rows, values[a].shape[1])) for a in move.args]
    constants = np.empty((rows, 2), dtype=np.int32)
    constants[:, 0] = UNDEFINED_ID
    constants[:, 1] = ZERO_ID
    return np.concatenate([*parts, constants], axis=1)


def pack(move: Move, cells: Ids) -> Ids:
    """The fold of a step: [rows, cells] -> [rows, out_cells]."""
    if move.passed is not None:
        return _pass(move, cells).reshape(len(cells), -1)
    if move.forms is None or move.bag > 1:
        return cells
    runs = cells.reshape(len(cells), -1, move.fold)
    return move.forms.fold(move.forms.weights[runs].sum(axis=2, dtype=np.uint64))


def _pass(move: Move, cells: Ids) -> Ids:
    """Runs of bags: what they fold to, as a bag of one, or the bag that is alone in its run."""
    assert move.forms is not None
    assert move.passed is not None
    runs = cells.reshape(len(cells), -1, move.fold, move.bag)
    items = move.passed.fold(move.passed.weights[runs].sum(axis=3, dtype=np.uint64))
    packed = np.zeros((*items.shape[:2], move.bag), np.int32)
    packed[:, :, -1] = move.forms.fold(move.forms.weights[items].sum(axis=2, dtype=np.uint64))
    alone = (items != ZERO_ID).sum(axis=2) == 1
    # The others of the run are zero, and zero is 0.
    return np.where(alone[:, :, None], runs.sum(axis=2, dtype=np.int32), packed)


def settle(move: Move, cells: Ids) -> Ids:
    """The fold of a step, and the cells of its bags in order: equal bags are equal rows."""
    if move.bag == 1 or move.passed is not None:
        return pack(move, cells)
    return np.sort(cells.reshape(len(cells), -1, move.bag), axis=2).reshape(len(cells), -1)
