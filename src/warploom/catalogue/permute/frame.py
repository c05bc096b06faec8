"""What the kernels of a permutation have in common: arrays, blocks counted out over axes, tiles.

Blocks are numbered along the axes of the grid, the first one fastest. The two axes of a tile that
are cut into chunks are among them: `p`, along which x is read, and `q`, along which y is written.
Sizes and strides are scalars, so that one kernel serves all shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warploom.catalogue.permute.convert import Conversion
from warploom.errors import ensure
from warploom.index.ir import Expr, Var, lift, minimum, select, substitute
from warploom.index.laws import simplify
from warploom.kernel.build import Array, Builder
from warploom.kernel.dtype import DType, u8, u16, u32, u64
from warploom.layout.formats.code import cheapest
from warploom.layout.language.expression import names_of
from warploom.layout.language.ir import Pad
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.solver.front import front_of
from warploom.layout.solver.task import Task

WORDS: dict[int, DType] = {1: u8, 2: u16, 4: u32, 8: u64}
MOST_STEPS = 1 << 14  # that are divided by multiplying: no product is beyond 2³⁰


class OfWords:
    """A kernel of elements of so many `bytes`, as machine words."""

    __slots__ = ()
    bytes: int
    to: Conversion | None = None

    @property
    def unit(self) -> int:
        """Machine words of an element: two for one of 16 bytes."""
        return 2 if self.bytes == 16 else 1

    @property
    def dtype(self) -> DType:
        return WORDS[self.bytes // self.unit] if self.to is None else self.to.source

    @property
    def factors(self) -> bool:
        """Whether steps have factors of their own."""
        return self.to is not None and self.to.several > 0


def marked(marks: str, there: Sequence[bool]) -> str:
    """What a name says of a kernel's ways."""
    found = "".join(mark for mark, each in zip(marks, there, strict=True) if each)
    return f"_{found}" if found else ""


def reciprocal(size: int, steps: int = MOST_STEPS) -> tuple[int, int]:
    """The number whose product with p, shifted so far, is p // size for all p below `steps`.

    With 2ˢ ≥ steps · size, ⌈2ˢ / size⌉ · size is at most size - 1 beyond 2ˢ, so that p // size is
    missed by less than the part of a step that is left.

    >>> factor, shift = reciprocal(35, 1000)
    >>> all(p * factor >> shift == p // 35 for p in range(1000))
    True
    """
    shift = (steps * size - 1).bit_length()
    return -(-(1 << shift) // size), shift


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the words of a tile lie in shared memory: the solver's answer."""

    place: Expr
    slots: int
    says: str

    def at(self, row: Expr, column: Expr) -> Expr:
        """The place of a word; row and column are single names or small expressions."""
        return simplify(substitute(self.place, {"row": row, "column": column}))


def placed(rows: int, columns: int, word: int, stored: np.ndarray, loaded: np.ndarray) -> Placed:
    """The layout with the fewest wavefronts for these accesses (requests × lanes × words)."""
    accesses = (Access("store", stored, "st"), Access("load", loaded, "ld"))
    task = Task(Problem("permute", (rows, columns), word, accesses))
    best = front_of(task, "mixed").best
    assert best is not None
    ensure(names_of(2) == ("row", "column"), "coordinates of a tile are rows and columns")
    layout = task.layout(best)
    slots = int(task.addresses(best.map).max()) + 1
    says = f"{rows} × {columns} words of {word} bytes at {show(layout)}"
    told = f"shared memory: {says}; wavefronts of stores and loads {best.score}"
    return Placed(cheapest(layout, False).result, slots, told)


def pitched(
    shape: tuple[int, int], bytes: int, stored: np.ndarray, loaded: np.ndarray, pitch: int
) -> str:
    """What rows so far apart cost these accesses, beside the least that any layout takes."""
    accesses = (Access("store", stored, "st"), Access("load", loaded, "ld"))
    task = Task(Problem("permute", shape, bytes, accesses))
    answer = task.answer(Pad(shape[1], pitch - shape[1]))
    told = f"shared memory: rows {pitch} apart"
    if answer is None:
        return f"{told}, so that words lie as they do in x"
    known = "which no layout betters"
    if answer.cost != task.least:
        known = f"where no layout takes under {int(task.least)}"
    return f"{told}, {int(answer.cost)} wavefronts of stores and loads, {known}"


class Lets:
    """Names for expressions, each of its own: a name that is asked for again gets a number."""

    def __init__(self, k: Builder) -> None:
        self.k = k
        self.numbers: Counter[str] = Counter()

    def __call__(self, name: str, expr: Expr) -> Var:
        self.numbers[name] += 1
        return self.k.let(f"{name}{self.numbers[name]}", expr)


class Side:
    """One axis of a tile: its digits, the chunk of this block and how much of it is inside.

    Step i of a chunk is at `i·s₀ + (i // n₀)·s₁ + …`, so the stride of a digit is what it adds
    when the digits before it begin again (`added`).
    """

    def __init__(self, k: Builder, name: str, digits: int, factors: bool = False) -> None:
        self.k, self.name, self.digits, self.carried = k, name, digits, 0
        self.count = k.scalar(f"{name}_count")
        self.chunk = k.scalar(f"{name}_chunk")
        self.overs = [
            (k.scalar(f"{name}_over{i}"), k.scalar(f"{name}_shift{i}")) for i in range(digits - 1)
        ]
        self.reads = [k.scalar(f"{name}_read{i}") for i in range(digits)]
        self.writes = [k.scalar(f"{name}_write{i}") for i in range(digits)]
        self.factors = [k.scalar(f"{name}_factor{i}") for i in range(digits) if factors]

    def begin(self, digit: Expr) -> None:
        """The block's chunk: how many steps of it there are."""
        left = self.count - digit * self.chunk
        self.inside = self.k.let(f"{self.name}_inside", minimum(self.chunk, left))

    def carries(self, at: Expr) -> list[Expr]:
        """How often each digit has begun again before a step."""
        found: list[Expr] = []
        for over, shift in self.overs:
            self.carried += 1
            at = self.k.let(f"{self.name}_rest{self.carried}", (at * over) >> (shift & 31))
            found.append(at)
        return found

    def offset(self, at: Expr, strides: Sequence[Expr]) -> Expr:
        """The offset of a step."""
        total = at * strides[0]
        for carried, stride in zip(self.carries(at), strides[1:], strict=True):
            total = total + carried * stride
        return total


def added(sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
    """What each digit adds to the offset beyond the digits before it.

    >>> added([35, 100], [1, 50])  # step 35 is at 50, and 35 · 1 of it is counted already
    [1, 15]
    """
    before = zip(sizes, strides, strict=False)
    return [strides[0], *(s - n * t for s, (n, t) in zip(strides[1:], before, strict=False))]


class Grid:
    """The axes that blocks are counted out over: the two that are cut first, then others. The
    machine counts the first ones together, and up to two `beyond` them by themselves."""

    def __init__(self, k: Builder, axes: int, beyond: int = 0, factors: bool = False) -> None:
        self.k = k
        self.counts = [k.scalar(f"count{i}") for i in range(axes)]
        self.reads = [k.scalar(f"read{i}") for i in range(axes)]
        self.writes = [k.scalar(f"write{i}") for i in range(axes)]
        self.factors = [k.scalar(f"factor{i}") for i in range(axes) if factors]
        self.first_read, self.first_write = k.scalar("first_read"), k.scalar("first_write")
        for each in self.counts:
            k.require(each.ge(1))
        self.beyond = beyond
        blocks: Expr = self.counts[0] if axes > beyond else lift(1)
        for each in self.counts[1 : axes - beyond]:
            blocks = blocks * each
        k.grid(blocks, *self.counts[axes - beyond :])

    def begin(self) -> tuple[Expr, Expr, list[Expr]]:
        """Where the block begins to read and to write, and its digit along every axis."""
        k = self.k
        read: Expr = self.first_read
        write: Expr = self.first_write
        digits = self._digits()
        for i, digit in enumerate(digits):
            read, write = read + digit * self.reads[i], write + digit * self.writes[i]
        if self.factors:
            factor: Expr = k.scalar("first_factor")
            for digit, step in zip(digits, self.factors, strict=True):
                factor = factor + digit * step
            self.factor = k.let("factor", factor)
        return k.let("from", read), k.let("to", write), digits

    def _digits(self) -> list[Expr]:
        k, rest, digits = self.k, self.k.block_x, []
        together = len(self.counts) - self.beyond
        for i, count in enumerate(self.counts[:together]):
            if i + 1 == together:
                digits.append(rest)
                break
            left = k.let(f"rest{i}", rest // count)
            digits.append(k.let(f"digit{i}", rest % count))
            rest = left
        return [*digits, *(k.block_y, k.block_z)[: self.beyond]]


def kept(streaming: tuple[bool, bool]) -> str:
    """What a name has of loads and stores that caches may keep."""
    return {(True, True): "", (True, False): "_y", (False, True): "_x", (False, False): "_xy"}[
        streaming
    ]


def inside(at: Expr, size: Expr) -> Expr:
    return at.ge(0).and_(at.lt(size))


def arrays(
    k: Builder, dtype: DType, wide: int = 1, written: DType | None = None
) -> tuple[Array, Array, Expr, Expr]:
    """x and y with the sizes of the memory that they span, that of x in accesses of so many."""
    x_size, y_size = k.scalar("x_size"), k.scalar("y_size")
    x = k.array("x", dtype, x_size * wide if wide > 1 else x_size, const=True)
    return x, k.array("y", written or dtype, y_size), x_size, y_size


def at_ends(at: Expr, out: int, late: Expr, stop: Expr, is_first: Expr | None = None) -> Ends:
    """Where a run begins or ends inside of a word of `out` elements, one for each of `2·out`
    threads: the steps before its first whole word, and those after its last one."""
    head: Expr = minimum((lift(0) - late) % out, stop)
    if is_first is not None:
        head = select(is_first, head, lift(0))
    behind = at - out
    tail = (late + stop) % out
    step = select(at.lt(out), at, stop - tail + behind)
    inside = select(at.lt(out), step.lt(head), behind.lt(tail).and_(step.ge(head)))
    return Ends(step, inside.ne(0))


@dataclass(frozen=True, slots=True)
class Ends:
    """A step at the end of a run, and whether there is one."""

    step: Expr
    inside: Expr
