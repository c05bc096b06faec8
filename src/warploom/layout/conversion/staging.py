"""Conversions through shared memory: how wide the accesses are, and the solved layout between them.

A thread stores its registers in vectors, and loads those that it wants; what two neighbouring
registers hold must be neighbours in memory for that. Every pair of widths is a problem for the
solver, as are ldmatrix and stmatrix, which move words of several lanes as one vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import combinations

import numpy as np

from warploom.layout.conversion.fragment import LANES, Fragment
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.ir import Layout
from warploom.layout.patterns.access import IDLE, Access, AccessKind, Problem
from warploom.layout.solver.solve import Solved, solve
from warploom.layout.solver.task import Answer, Task
from warploom.machine.record import NVIDIA
from warploom.machine.serving import Serving
from warploom.search.budget import Budget

WIDTHS = (4, 2, 1)  # that kernels have
WIDER = (16, 8)  # that the text for matrices has as well, of elements smaller than a word
CHUNK_BYTES = 16
_LOOKED_AT = 8  # vectors of a side, before all of them are looked at
MATRIX_ROWS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side's instructions. `registers[step]` are those of a thread that a step moves;
    `elements[warp, step, lane, i]` are what lies at the address that a lane gives."""

    kind: AccessKind
    registers: tuple[tuple[int, ...], ...]
    elements: Numbers = field(repr=False)
    copies: tuple[tuple[int, int], ...] = ()  # a register, and the loaded one that it repeats

    @property
    def steps(self) -> int:
        return len(self.registers)

    @property
    def name(self) -> str:
        width = len(self.registers[0])
        if "matrix" in self.kind:
            first, *rest = self.kind.split(".")
            words = int((self.elements[0, 0, :, 0] != IDLE).sum()) // MATRIX_ROWS
            return ".".join([first, f"x{words}", *rest])
        return self.kind if width == 1 else f"{self.kind}.v{width}"


@dataclass(frozen=True, slots=True, eq=False)
class Staging:
    """A way through shared memory: who stores, who loads, and where elements lie."""

    store: Side
    load: Side
    task: Task = field(repr=False)
    solved: Solved = field(repr=False)
    answer: Answer

    @property
    def layout(self) -> Layout:
        return self.task.layout(self.answer)

    @property
    def addresses(self) -> Numbers:
        """Where each element lies."""
        return self.task.addresses(self.answer.map)

    @property
    def slots(self) -> int:
        """Elements of shared memory."""
        return int(self.addresses.max()) + 1

    @property
    def wavefronts(self) -> int:
        return sum(self.answer.score.wavefronts)

    @property
    def instructions(self) -> int:
        return self.store.steps + self.load.steps

    @property
    def within_warps(self) -> bool:
        """Whether every warp loads only what it stored itself: warps need not wait for others."""
        return all(
            np.isin(wanted, np.append(stored, IDLE)).all()
            for wanted, stored in zip(self.load.elements, self.store.elements, strict=True)
        )


def best_stagings(
    source: Fragment,
    target: Fragment,
    element_bytes: int,
    budget: Budget | None = None,
    *,
    matrices: bool = False,
    serving: Serving = NVIDIA,
) -> list[Staging]:
    """The ways with the fewest wavefronts, of those the ones with the fewest instructions: by
    vectors of registers, or with ldmatrix, stmatrix or both. Of equal kinds on both sides one.

    Ways are tried from the least that each can cost upwards, so that the first that costs no more
    than the next one's least is the best. If the budget ends that, the best so far.
    """
    if matrices and not serving.has_matrices:
        return []
    source = stored_once(source)
    ways = _Ways(source, element_bytes, serving)
    loads = list(_loads(target, source, element_bytes, matrices))
    for store in map(_busy, sides(source, target, "st", element_bytes, matrices)):
        for load in loads:
            if matrices == ("matrix" in store.kind + load.kind):
                ways.add(store, load)
    best: dict[tuple[str, str], Staging] = {}
    least_rank: tuple[int, int] | None = None
    for least, instructions, store, load, task in ways.upwards():
        if least_rank is not None and least_rank < (least, instructions):
            break
        if least_rank is not None and (store.kind, load.kind) in best:
            continue
        if budget is not None and budget.is_spent():
            return list(best.values()) or ways.single_elements(budget)
        solved = solve(task, "mixed", budget)
        if solved.best is None:
            continue
        found = Staging(store, load, task, solved, solved.best)
        if least_rank is None or _rank(found) < least_rank:
            best, least_rank = {}, _rank(found)
        if _rank(found) == least_rank:
            best[store.kind, load.kind] = found
    return list(best.values())


class _Ways:
    """Stores and loads in pairs, from the least that each pair can cost upwards. What the two cost
    at least together is counted only for pairs whose sum by themselves comes first."""

    def __init__(self, source: Fragment, element_bytes: int, serving: Serving) -> None:
        self._source, self._element_bytes, self._serving = source, element_bytes, serving
        self._alone: dict[Side, Task] = {}
        # Pairs of one least: those whose least together is not known yet, then as they were added.
        self._waiting: list[tuple[int, int, bool, int]] = []
        self._pairs: list[tuple[Side, Side]] = []
        self._tasks: dict[int, Task] = {}

    def add(self, store: Side, load: Side) -> None:
        both = self._by_itself(store), self._by_itself(load)
        if any(task.torn is not None for task in both) or _seen_torn(*both):
            return
        least = sum(sum(task.bound.wavefronts) for task in both)
        heappush(self._waiting, (least, store.steps + load.steps, False, len(self._pairs)))
        self._pairs.append((store, load))

    def upwards(self) -> Iterator[tuple[int, int, Side, Side, Task]]:
        while self._waiting:
            least, instructions, counted, number = heappop(self._waiting)
            store, load = self._pairs[number]
            if counted:
                yield least, instructions, store, load, self._tasks.pop(number)
                continue
            task = self._task(store, load)
            if task.torn is None:
                self._tasks[number] = task
                together = max(least, sum(task.bound.wavefronts))
                heappush(self._waiting, (together, instructions, True, number))

    def single_elements(self, budget: Budget | None) -> list[Staging]:
        """The way that does in any layout, if it is one of these."""
        for store, load in self._pairs:
            if store.elements.shape[-1] == load.elements.shape[-1] == 1:
                task = self._task(store, load)
                solved = solve(task, "mixed", budget)
                if solved.best is not None:
                    return [Staging(store, load, task, solved, solved.best)]
        return []

    def _by_itself(self, side: Side) -> Task:
        if side not in self._alone:
            self._alone[side] = self._task(side)
        return self._alone[side]

    def _task(self, *of: Side) -> Task:
        accesses = tuple(
            Access(side.name, side.elements.reshape(-1, *side.elements.shape[2:]), side.kind)
            for side in of
        )
        shape, size = self._source.shape, self._element_bytes
        return Task(Problem("conversion", shape, size, accesses, self._serving))


def _rank(way: Staging) -> tuple[int, int]:
    return way.wavefronts, way.instructions


def _seen_torn(*sides: Task) -> bool:
    """Whether some vectors of the wider side show that no layout keeps those of both whole: one of
    the narrower side lies only partly in one of the wider, or in another order."""
    narrow, wide = sorted(sides, key=lambda task: task.problem.accesses[0].width)
    width = narrow.problem.accesses[0].width
    elements = wide.problem.accesses[0].elements
    vectors = elements[elements[:, :, 0] != IDLE]
    some = vectors[:: -(-len(vectors) // _LOOKED_AT) or 1]
    some = some.reshape(-1, width)
    chunks = narrow.chunks
    alone = (chunks.length[some] == 1).all(axis=1)
    inside = (chunks.first[some] == some[:, :1]).all(axis=1)
    inside &= (chunks.place[some] == np.arange(width)).all(axis=1)
    return not bool((alone | inside).all())


def stored_once(fragment: Fragment) -> Fragment:
    """The fragment with every element held once, by its first holder."""
    flat = fragment.elements.ravel()
    _, first = np.unique(flat, return_index=True)
    kept = np.full_like(flat, IDLE)
    kept[first] = flat[first]
    return Fragment(fragment.name, fragment.shape, kept.reshape(fragment.elements.shape))


def _loads(
    target: Fragment, source: Fragment, element_bytes: int, matrices: bool
) -> Iterator[Side]:
    """Ways to load what a thread holds; a register that repeats another in all threads is copied,
    not loaded again."""
    columns = target.elements.reshape(-1, target.registers).T
    _, first, which = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    own = np.sort(first)  # the registers that are loaded, in their order
    repeats = [(r, int(first[w])) for r, w in enumerate(which.ravel()) if int(first[w]) != r]
    yield from sides(target, source, "ld", element_bytes, matrices)
    if not repeats:
        return
    fewer = replace(target, elements=np.ascontiguousarray(target.elements[:, :, own]))
    for side in sides(fewer, source, "ld", element_bytes, matrices):
        named = tuple(tuple(int(own[r]) for r in step) for step in side.registers)
        yield replace(side, registers=named, copies=tuple(repeats))


def _busy(side: Side) -> Side:
    """Without the steps in which no lane does anything."""
    busy = np.flatnonzero((side.elements[..., 0] != IDLE).any(axis=(0, 2)))
    if len(busy) == side.steps:
        return side
    registers = tuple(side.registers[step] for step in busy)
    return replace(side, registers=registers, elements=side.elements[:, busy])


def sides(
    fragment: Fragment,
    other: Fragment,
    way: AccessKind,
    element_bytes: int,
    matrices: bool,
) -> Iterator[Side]:
    """Every way in which a fragment may be stored or loaded that looks promising: vectors of its
    registers, and matrices. The other side says which registers go well together."""
    if matrices:
        yield from matrix_sides(fragment, way, element_bytes)
    for groups in _groupings(fragment, other, element_bytes, matrices):
        vectors = fragment.elements[:, :, np.array(groups)]
        idle = vectors == IDLE
        if (idle.any(axis=3) & ~idle.all(axis=3)).any():
            continue  # a vector of which a lane has only a part
        yield Side(way, groups, vectors.transpose(0, 2, 1, 3))


def _groupings(
    fragment: Fragment, other: Fragment, element_bytes: int, matrices: bool
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Registers in groups: neighbours; those that a thread of the other side holds together too;
    those that a matrix of the other side takes together."""
    count, found = fragment.registers, dict[tuple[tuple[int, ...], ...], None]()
    known = (*WIDER, *WIDTHS) if matrices else WIDTHS
    widths = [w for w in known if w * element_bytes <= CHUNK_BYTES and count % w == 0]
    for width in widths:
        found[tuple(tuple(range(s, s + width)) for s in range(0, count, width))] = None
    if count & (count - 1) == 0:
        bits = _common_bits(fragment, other)
        for width in widths[:-1]:
            for chosen in combinations(bits, width.bit_length() - 1):
                found[_by_bits(count, chosen)] = None
    if matrices:
        for side in matrix_sides(other, "ld", element_bytes):
            chunks = side.elements.reshape(-1, side.elements.shape[-1])
            groups = _taken_together(fragment, chunks[chunks[:, 0] != IDLE])
            if groups is not None and len(groups[0]) in widths:
                found[groups] = None
    yield from found


def _common_bits(fragment: Fragment, other: Fragment) -> list[int]:
    """The bits of a register's number that move to an element that the other side holds in the same
    thread, too; the same order on both sides, as it is that of how far they move."""
    moves = {}
    for bit in range(fragment.registers.bit_length() - 1):
        moves[int(fragment.elements[0, 0, 1 << bit] - fragment.elements[0, 0, 0])] = bit
    there = {
        int(other.elements[0, 0, register] - other.elements[0, 0, 0])
        for register in range(1, other.registers)
    }
    return [bit for move, bit in sorted(moves.items()) if move in there]


def _by_bits(count: int, bits: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    inside = [0]
    for bit in bits:
        inside += [number | 1 << bit for number in inside]
    mask = sum(1 << bit for bit in bits)
    starts = [number for number in range(count) if not number & mask]
    return tuple(tuple(start | each for each in inside) for start in starts)


def _taken_together(fragment: Fragment, chunks: Numbers) -> tuple[tuple[int, ...], ...] | None:
    """The registers of each thread that make up whole chunks, if they are the same in all."""
    register = {element: r for r, element in enumerate(fragment.elements[0, 0].tolist())}
    groups = [
        tuple(register[element] for element in chunk)
        for chunk in chunks.tolist()
        if all(element in register for element in chunk)
    ]
    if sorted(r for group in groups for r in group) != list(range(fragment.registers)):
        return None
    known = {tuple(chunk) for chunk in chunks.tolist()}
    held = fragment.elements[:, :, np.array(groups)].reshape(-1, chunks.shape[1])
    return tuple(groups) if {tuple(each) for each in held.tolist()} <= known else None


def matrix_sides(fragment: Fragment, way: AccessKind, element_bytes: int) -> Iterator[Side]:
    """ldmatrix and stmatrix: a row of 16 bytes is a word of each of four lanes, and lane 8j + i
    gives the address of row i of the j-th matrix, which is the j-th word of every thread. With
    .trans, of elements of two bytes, a row is one element of each of eight lanes."""
    parts = 4 // element_bytes if element_bytes <= 4 else 0
    if not parts or fragment.registers % parts or (fragment.elements == IDLE).any():
        return
    words = fragment.registers // parts
    beside = next(count for count in (4, 2, 1) if words % count == 0)
    held = fragment.elements.reshape(fragment.warps, LANES, words, parts)
    kind: AccessKind = "ldmatrix" if way == "ld" else "stmatrix"
    # [warp, word, row, elements of the row]
    rows = held.transpose(0, 2, 1, 3).reshape(fragment.warps, words, MATRIX_ROWS, 4 * parts)
    yield _matrix_side(kind, rows, parts, beside)
    if parts == 2:
        # Lane 4c + i // 2 has element c of row i in its half i % 2.
        split = held.transpose(0, 2, 1, 3).reshape(fragment.warps, words, MATRIX_ROWS, 4, 2)
        turned = split.transpose(0, 1, 3, 4, 2).reshape(fragment.warps, words, MATRIX_ROWS, 8)
        trans: AccessKind = "ldmatrix.trans" if way == "ld" else "stmatrix.trans"
        yield _matrix_side(trans, turned, parts, beside)


def _matrix_side(kind: AccessKind, rows: Numbers, parts: int, beside: int) -> Side:
    warps, words, _, width = rows.shape
    steps = words // beside
    given = rows.reshape(warps, steps, beside * MATRIX_ROWS, width)
    elements = np.full((warps, steps, LANES, width), IDLE)
    elements[:, :, : beside * MATRIX_ROWS] = given
    step = beside * parts
    registers = tuple(tuple(range(s * step, (s + 1) * step)) for s in range(steps))
    return Side(kind, registers, elements)


def through(way: Staging, target: Fragment) -> Numbers:
    """What the target's registers hold after the way: loads give what lies at their addresses."""
    places, slots = way.addresses, way.slots
    memory = np.full(slots, IDLE)
    for elements in way.store.elements.reshape(-1, way.store.elements.shape[-1]):
        if elements[0] != IDLE:
            memory[places[elements[0]] + np.arange(len(elements))] = elements
    found = np.full_like(target.elements, IDLE)
    for warp, step in np.ndindex(way.load.elements.shape[:2]):
        wanted = way.load.elements[warp, step]
        first = np.where(wanted[:, 0] == IDLE, 0, places[wanted[:, 0]])
        row = memory[np.minimum(first[:, None] + np.arange(wanted.shape[1]), slots - 1)]
        row = np.where(wanted[:, :1] == IDLE, IDLE, row)
        registers = list(way.load.registers[step])
        found[warp][:, registers] = _received(way.load.kind, row, len(registers))
    for register, loaded in way.load.copies:
        found[:, :, register] = found[:, :, loaded]
    return found


def _received(kind: AccessKind, rows: Numbers, count: int) -> Numbers:
    """[lane, element] at the addresses that lanes gave → [lane, register]."""
    if "matrix" not in kind:
        return rows
    width = rows.shape[1]
    parts = width // 4
    matrices = rows[: count // parts * MATRIX_ROWS].reshape(-1, MATRIX_ROWS, width)
    if kind.endswith(".trans"):
        each = matrices.transpose(0, 2, 1).reshape(-1, LANES, 2)  # [matrix, 4c + i // 2, i % 2]
    else:
        each = matrices.reshape(-1, LANES, parts)
    return each.transpose(1, 0, 2).reshape(LANES, count)
