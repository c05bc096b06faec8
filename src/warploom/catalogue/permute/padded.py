"""A tensor with a frame around: y in the order of its memory, x where there is any.

    y[i0, i1, …] = x[i0 - before0, i1 - before1, …]   where that is in x, else the value

A block has a run of y. Where it begins is divided into steps of the axes once; a thread adds its
own steps and carries them over, by a product where an axis may begin again several times, by a
comparison where it is longer than the run.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.permute.frame import OfWords, arrays
from warploom.index.ir import Expr, lift, select
from warploom.kernel.build import Builder, RegisterArray
from warploom.kernel.ir import Kernel

THREADS = 256
TIMES = 4  # words of a thread


@dataclass(frozen=True, slots=True)
class Frame:
    """An axis of y: its size; x has the steps from `low` to below `high`, so many elements
    apart."""

    size: int
    low: int
    high: int
    read: int

    @property
    def whole(self) -> bool:
        return (self.low, self.high) == (0, self.size)


@dataclass(frozen=True, slots=True)
class Padded(OfWords):
    """Elements of so many bytes, `out` written by one access. For each axis, the innermost first:
    whether x ends before y does, and whether the axis is longer than a run."""

    bytes: int
    out: int
    framed: tuple[bool, ...]
    long: tuple[bool, ...]
    beyond: int = 0

    @property
    def count(self) -> int:
        """Elements of a run."""
        return THREADS * TIMES * self.out

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def name(self) -> str:
        axes = "".join("pfPF"[f + 2 * n] for f, n in zip(self.framed, self.long, strict=True))
        return f"permute_padded_{self.bytes}_{self.out}_{axes}"


def padded_kernel(spec: Padded) -> Kernel:
    return _PaddedWriter(spec).write()


class _PaddedWriter:
    def __init__(self, spec: Padded) -> None:
        self.spec = spec
        what = f"Copies into a frame, {spec.count} elements of {spec.bytes} bytes in each block."
        self.k = k = Builder(spec.name, block=THREADS, doc=what)
        self.x, self.y, self.x_size, self.y_size = arrays(k, spec.dtype, spec.unit)
        self.blocks = k.scalar("count0")
        k.require(self.blocks.ge(1))
        k.grid(self.blocks)
        axes = range(len(spec.framed))
        self.sizes = [k.scalar(f"size{i}") for i in axes]
        self.lows = [k.scalar(f"low{i}") for i in axes]
        self.highs = [k.scalar(f"high{i}") for i in axes]
        self.reads = [k.scalar(f"read{i}") for i in axes]
        self.overs = [(k.scalar(f"over{i}"), k.scalar(f"shift{i}")) for i in axes]
        self.first = k.scalar("first_read")
        self.values = [k.number(f"value{i}", spec.dtype) for i in range(spec.unit)]
        for each in self.sizes:
            k.require(each.ge(1))

    def write(self) -> Kernel:
        k, spec = self.k, self.spec
        self.begin = k.let("begin", k.block_x * spec.count)
        self._begin()
        width = spec.out * spec.unit
        held = k.registers("held", spec.dtype, TIMES * width)
        with k.loop("n", TIMES) as n:
            word = k.let("word", (n * THREADS + k.thread) * spec.out)
            for i in range(spec.out):
                self._load(held, (n * spec.out + i) * spec.unit, *self._place(word + i, i))
        with k.loop("n", TIMES) as n:
            own = (n * THREADS + k.thread) * spec.out
            to = k.let("to", (self.begin + own) * spec.unit)
            fits = (to + width).le(self.y_size)
            self.y.put(to, held[n * width], when=fits, width=width, streaming=True)
            self._ends(held, n, to, fits)
        return k.done()

    def _load(self, held: RegisterArray, where: Expr, at: Expr, inside: Expr) -> None:
        k, unit = self.k, self.spec.unit
        if unit == 1:
            held[where] = self.x.at(at, when=inside, otherwise=self.values[0])
            return
        for i in range(unit):
            held[where + i] = self.values[i]
        with k.when(inside):
            held[where] = self.x.at(at * unit, width=unit)

    def _ends(self, held: RegisterArray, n: Expr, to: Expr, fits: Expr) -> None:
        """The last elements of y, which are less than a word."""
        k, spec = self.k, self.spec
        if spec.out == 1:
            return
        with k.when(fits.not_()):
            for i in range(spec.out - 1):
                self.y.put(to + i, held[n * spec.out + i], when=(to + i).lt(self.y_size))

    def _begin(self) -> None:
        """The step along each axis at which the block's run begins."""
        k = self.k
        rest: Expr = self.begin
        self.starts: list[Expr] = []
        for i, size in enumerate(self.sizes[:-1]):
            self.starts.append(k.let(f"start{i}", rest % size))
            rest = k.let(f"left{i}", rest // size)
        self.starts.append(rest)

    def _place(self, step: Expr, number: int) -> tuple[Expr, Expr]:
        """Where an element of the run is in x, and whether it is there."""
        k, spec = self.k, self.spec
        at: Expr = self.first
        carried, inside = step, lift(1).eq(1)
        own: Expr
        last = len(self.sizes) - 1
        for i, size in enumerate(self.sizes):
            own = k.let(f"own{i}_{number}", self.starts[i] + carried)
            if i < last:
                over, shift = self.overs[i]
                times = (
                    select(own.ge(size), lift(1), lift(0)) if spec.long[i]
                    else (own * over) >> (shift & 31)
                )  # fmt: skip
                carried = k.let(f"times{i}_{number}", times)
                own = own - carried * size
            if spec.framed[i]:
                inside = inside.and_(own.ge(self.lows[i])).and_(own.lt(self.highs[i]))
                own = own - self.lows[i]
            at = at + own * self.reads[i]
        at = k.let(f"at{number}", at)
        return at, inside.and_(at.ge(0)).and_(at.lt(self.x_size))
