"""How values flow through a program with holes, computed backward from the goal.

A program is cut into segments: one hole and the fixed steps after it. The state at the end of a
segment is the row of all live values, laid end to end in *lanes*. For each such place this module
computes

*pairs*   bits [slot, slot, goal cell, goal cell]: some choices bring the two slots to the two cells
          at once;
*single*  flags [slot, goal cell]: some choices bring the slot to the cell;
*copies*  how many copies of each slot reach the goal, at least and at most;
*universe* the terms that no later step can bring in: they must still come from the live slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from warploom.sketch.synth.problem import Given, Move, Problem, pack, source_rows
from warploom.sketch.synth.subterms import (
    UNDEFINED_ID,
    ZERO_ID,
    Bits,
    Forms,
    Ids,
    Subterms,
)

Flags = npt.NDArray[np.bool_]
Amounts = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

MARKS_AT_ONCE = 1 << 22
WORDS_AT_ONCE = 1 << 20
TABLES_AT_ONCE = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Where each live value starts in the row of all live values."""

    starts: dict[int, int]
    slots: int


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A hole and the fixed steps up to the next hole, with what is live around them.

    `later` holds the steps after the segment.
    """

    hole: Move
    fixed: tuple[Given | Move, ...]
    later: tuple[Given | Move, ...]
    before: Lanes
    middle: Lanes  # just after the hole
    after: Lanes


def segments_of(problem: Problem) -> tuple[tuple[Given | Move, ...], list[Segment]]:
    """The fixed steps before the first hole, and the segments."""
    steps = list(problem.steps.values())
    holes = [n for n, step in enumerate(steps) if isinstance(step, Move) and step.is_hole]
    found = []
    for at, end in pairwise([*holes, len(steps)]):
        hole = steps[at]
        assert isinstance(hole, Move)
        lanes = [_live(problem, steps, n) for n in (at, at + 1, end)]
        found.append(Segment(hole, tuple(steps[at + 1 : end]), tuple(steps[end:]), *lanes))
    return tuple(steps[: holes[0]] if holes else steps), found


def _live(problem: Problem, steps: list[Given | Move], done: int) -> Lanes:
    """The values of the first `done` steps that a later one, or the goal, reads."""
    later = {step.position for step in steps[done:]}
    starts, slots = {}, 0
    for step in steps[:done]:
        if step.position == problem.last or not later.isdisjoint(problem.users[step.position]):
            starts[step.position] = slots
            slots += problem.cells_of(step.position)
    return Lanes(starts, slots)


def run_fixed(steps: tuple[Given | Move, ...], values: dict[int, Ids]) -> None:
    """Adds the values of fixed steps: [rows, cells], one row where all states agree."""
    for step in steps:
        if isinstance(step, Given):
            values[step.position] = step.values[None, :]
        else:
            source = source_rows(step, values)
            values[step.position] = pack(step, source[:, step.tables[0]])


def split(problem: Problem, lanes: Lanes, row: Ids) -> dict[int, Ids]:
    """A state as values: [1, cells] each."""
    return {p: row[None, s : s + problem.cells_of(p)] for p, s in lanes.starts.items()}


def join(lanes: Lanes, values: dict[int, Ids], rows: int) -> Ids:
    """Values as states: [rows, slots]."""
    parts = [np.broadcast_to(values[p], (rows, values[p].shape[1])) for p in lanes.starts]
    return np.concatenate(parts, axis=1)


# -- what flows where --------------------------------------------------------------------------


def fixed_flow(problem: Problem, segment: Segment) -> Flags:
    """[slots after, slots just after the hole]: which slots the fixed steps read for each slot."""
    middle = segment.middle
    reads: dict[int, Flags] = {}
    for position, start in middle.starts.items():
        reads[position] = np.eye(
            problem.cells_of(position), middle.slots, start, dtype=np.bool_
        )  # fmt: skip
    for step in segment.fixed:
        cells = problem.cells_of(step.position)
        if isinstance(step, Given):
            reads[step.position] = np.zeros((cells, middle.slots), dtype=np.bool_)
        else:
            constants = np.zeros((2, middle.slots), dtype=np.bool_)
            source = np.concatenate([*(reads[arg] for arg in step.args), constants])
            runs = source[step.tables[0]].reshape(cells, step.fold, middle.slots)
            reads[step.position] = runs.any(axis=1)
    empty = np.zeros((0, middle.slots), dtype=np.bool_)
    return np.concatenate([empty, *(reads[position] for position in segment.after.starts)])


def slots_read(problem: Problem, segment: Segment) -> Index:
    """For each place of the hole's source its slot; `before.slots` stands for the constants."""
    parts = [
        np.arange(end - start) + segment.before.starts[arg]
        for arg, start, end in problem.layout(segment.hole)
    ]
    return np.concatenate([*parts, np.full(2, segment.before.slots)]).astype(np.int64)


def kept_slots(problem: Problem, segment: Segment) -> tuple[Index, Index]:
    """Slots that live on past the hole: where they were and where they are."""
    kept = [p for p in segment.before.starts if p in segment.middle.starts]
    spans = [np.arange(problem.cells_of(p)) for p in kept]
    none = np.zeros(0, dtype=np.int64)
    was = [segment.before.starts[p] + span for p, span in zip(kept, spans, strict=True)]
    now = [segment.middle.starts[p] + span for p, span in zip(kept, spans, strict=True)]
    return np.concatenate([none, *was]), np.concatenate([none, *now])


def hole_cells(segment: Segment) -> Index:
    """The slot that each inner cell of the hole ends up in."""
    start = segment.middle.starts[segment.hole.position]
    return start + np.arange(segment.hole.cells) // segment.hole.fold


# -- single locations --------------------------------------------------------------------------


def single_before(problem: Problem, segment: Segment, after: Flags) -> Flags:
    """Reachability [slots before, goal cells], from that after the segment."""
    flow = fixed_flow(problem, segment).astype(np.float32)
    middle = (flow.T @ after.astype(np.float32)) > 0
    out = np.zeros((segment.before.slots + 1, after.shape[1]), dtype=np.bool_)
    was, now = kept_slots(problem, segment)
    out[was] = middle[now]
    slots, cells = slots_read(problem, segment), hole_cells(segment)
    for cell in range(segment.hole.cells):
        out[np.unique(slots[segment.hole.tables[:, cell]])] |= middle[cells[cell]]
    return out[:-1]


# -- pairs -------------------------------------------------------------------------------------


def packed(flags: Flags) -> Bits:
    """Rows of flags as rows of words."""
    octets = np.packbits(flags, axis=1, bitorder="little")
    padded = np.zeros((len(flags), -(-octets.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(np.uint64)


def pairs_at_goal(cells: int) -> Bits:
    """Each pair of goal cells reaches itself only: [cells, cells, cells, words]."""
    ones = packed(np.eye(cells, dtype=np.bool_))
    out = np.zeros((cells, cells, cells, ones.shape[1]), dtype=np.uint64)
    for cell in range(cells):
        out[cell, :, cell] = ones
    return out


def pairs_before(
    problem: Problem, segment: Segment, after: Bits, pause: Callable[[], None]
) -> Bits:
    """Pair reachability [slot, slot, goal cell, words] before the segment, from that after it."""
    middle = after
    if segment.fixed:
        flow = fixed_flow(problem, segment)
        middle = _pull(_pull(after, flow).swapaxes(0, 1), flow).swapaxes(0, 1)
    n = segment.before.slots
    out = np.zeros((n + 1, n + 1, *after.shape[2:]), dtype=np.uint64)
    was, now = kept_slots(problem, segment)
    out[was[:, None], was] = middle[now[:, None], now]
    _one_moves(problem, segment, middle, out)
    slots, cells = slots_read(problem, segment), hole_cells(segment)
    read = slots[segment.hole.tables]
    for cell in range(segment.hole.cells):
        pause()
        _both_move(read, cells, cell, middle[cells[cell]], out)
    return out[:-1, :-1]


def _pull(after: Bits, flow: Flags) -> Bits:
    """Unites the rows (first axis) that each column of `flow` leads to."""
    out = np.zeros((flow.shape[1], *after.shape[1:]), dtype=np.uint64)
    for slot in range(flow.shape[1]):
        out[slot] = np.bitwise_or.reduce(after[flow[:, slot]], axis=0)
    return out


def _one_moves(problem: Problem, segment: Segment, middle: Bits, out: Bits) -> None:
    """Pairs of a slot that the hole reads and one that lives on."""
    was, now = kept_slots(problem, segment)
    if len(was) == 0:
        return
    slots, cells = slots_read(problem, segment), hole_cells(segment)
    for cell in range(segment.hole.cells):
        read = np.unique(slots[segment.hole.tables[:, cell]])
        out[read[:, None], was] |= middle[cells[cell], now]
        out[was[:, None], read] |= middle[now, cells[cell]][:, None]


def _both_move(read: Index, cells: Index, cell: int, middle: Bits, out: Bits) -> None:
    """Pairs of slots that one choice brings to `cell` and to another cell of the hole.

    `read[k, c]` is the slot that choice k reads for cell c; `middle` what `cell` and each slot
    reach together.
    """
    n = len(out)
    first, code = np.unique(read[:, cell], return_inverse=True)
    code = code.ravel()
    step = max(1, MARKS_AT_ONCE // (len(first) * n))
    for start in range(0, read.shape[1], step):
        part = read[:, start : start + step]
        width = part.shape[1]
        mark = np.zeros((len(first), n, width), dtype=np.bool_)
        mark[code[:, None], part, np.arange(width)] = True
        for pair, other in _runs(np.flatnonzero(mark), width, middle[0].size):
            starts = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]]))
            rows = middle[cells[start + other]].reshape(len(other), -1)
            joined = np.bitwise_or.reduceat(rows, starts, axis=0)
            one, two = np.divmod(pair[starts], n)
            out[first[one], two] |= joined.reshape(-1, *middle.shape[1:])


def _runs(marked: Index, width: int, words: int) -> Iterator[tuple[Index, Index]]:
    """The marks in chunks that fit the memory: (pair of slots, other cell)."""
    step = max(1, WORDS_AT_ONCE // max(1, words))
    for start in range(0, len(marked), step):
        pair, other = np.divmod(marked[start : start + step], width)
        yield pair, other


# -- copies ------------------------------------------------------------------------------------


def copies_before(
    problem: Problem,
    segment: Segment,
    after: tuple[Amounts, Amounts],
    pause: Callable[[], None] = lambda: None,
) -> tuple[Amounts, Amounts]:
    """Least and most copies that reach the goal, from those after the segment."""
    least, most = (_copies_through_fixed(problem, segment, amounts) for amounts in after)
    was, now = kept_slots(problem, segment)
    slots, cells = slots_read(problem, segment), hole_cells(segment)
    n = segment.before.slots + 1
    low, high = np.full(n, np.inf), np.zeros(n)
    for number, table in enumerate(segment.hole.tables):
        if number % TABLES_AT_ONCE == 0:
            pause()
        read = slots[table]
        low = np.minimum(low, np.bincount(read, weights=least[cells], minlength=n))
        high = np.maximum(high, np.bincount(read, weights=most[cells], minlength=n))
    low[was] += least[now]
    high[was] += most[now]
    return low[:-1], high[:-1]


def _copies_through_fixed(problem: Problem, segment: Segment, amounts: Amounts) -> Amounts:
    """Like `fixed_flow`, but counting how often each slot is read."""
    copies = {
        step.position: np.zeros(problem.cells_of(step.position)) for step in segment.fixed
    } | {position: np.zeros(problem.cells_of(position)) for position in segment.middle.starts}
    for position, start in segment.after.starts.items():
        copies[position] += amounts[start : start + problem.cells_of(position)]
    for step in reversed(segment.fixed):
        if isinstance(step, Move):
            inner = np.repeat(copies[step.position], step.fold)
            source = np.bincount(step.tables[0], weights=inner, minlength=step.source_size)
            for arg, start, end in problem.layout(step):
                copies[arg] += source[start:end]
    return np.concatenate([np.zeros(0), *(copies[p] for p in segment.middle.starts)])


# -- universes ---------------------------------------------------------------------------------


def universe(problem: Problem, later: tuple[Given | Move, ...]) -> Index:
    """Terms of the goal that neither a later input holds nor a later fold may form."""
    domain = problem.domain
    may = _may_hold(problem)
    brought = domain.bits_of([ZERO_ID, UNDEFINED_ID])
    for step in later:
        if isinstance(step, Given):
            brought |= np.bitwise_or.reduce(domain.contains[step.values], axis=0)
        elif step.builds:
            brought |= may[step.position] & domain.fold_bits
    return np.flatnonzero(~domain.unpack(brought))


def _may_hold(problem: Problem) -> dict[int, Bits]:
    """The values that some cell of each step may hold, places disregarded."""
    domain = problem.domain
    may: dict[int, Bits] = {}
    for step in problem.steps.values():
        if isinstance(step, Given):
            may[step.position] = domain.bits_of(step.values)
            continue
        held = domain.bits_of([ZERO_ID, UNDEFINED_ID])
        for arg in step.args:
            held |= may[arg]
        if step.forms is not None and step.builds:
            alone = np.zeros_like(held)
            if step.passed is not None:
                alone, held = held, held | _formed(domain, step.passed, held)
            held = alone | _formed(domain, step.forms, held)
        may[step.position] = held
    return may


def _formed(domain: Subterms, forms: Forms, held: Bits) -> Bits:
    """What may be made of these values."""
    made = (forms.count >= 0) & ((forms.members & ~held) == 0).all(axis=1)
    return domain.bits_of([ZERO_ID, UNDEFINED_ID, *np.flatnonzero(made)])
