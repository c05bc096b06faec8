"""A run of y, element by element from wherever they are in x.

    y[to + 0], y[to + 1], …   ←   x[from + IN(0)], x[from + IN(1)], …

Nothing is exchanged, so no shared memory is used. It serves where neighbours of y are mostly
neighbours of x: rows that stay whole, with what changes at their ends. A block has a window of the
run, which begins at a multiple of `align` elements of y; where runs are short, it has several, and
some of its threads for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.permute.convert import Conversion, Converter
from warploom.catalogue.permute.frame import Grid, OfWords, Side, arrays, at_ends, marked
from warploom.index.ir import Expr, lift, maximum, minimum, select
from warploom.kernel.build import Builder
from warploom.kernel.ir import Kernel


@dataclass(frozen=True, slots=True)
class Gather(OfWords):
    """`times` words of `out` elements for each of so many threads, elements of so many bytes;
    digits of the run; `grid` axes of blocks, of which the first counts windows. `strided`: steps of
    the run do not lie side by side in y. `rows`: runs of a block, each wholly in a window; the
    grid's second axis counts so many at once. `to`: elements are converted before they are written.
    """

    bytes: int
    times: int
    threads: int = 256
    align: int = 1
    out: int = 1
    digits: int = 1
    grid: int = 2
    beyond: int = 0
    strided: bool = False
    streaming: tuple[bool, bool] = (False, False)
    rows: int = 1
    to: Conversion | None = None

    @property
    def across(self) -> int:
        """Threads of a window."""
        return self.threads // self.rows

    @property
    def count(self) -> int:
        """Elements of a window."""
        return self.times * self.across * self.out

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def name(self) -> str:
        sides = f"{self.times}_{self.threads}_{self.grid}{self.beyond}{self.digits}"
        ways = marked("scw", (self.strided, *self.streaming))
        ways += f"_{self.rows}rows" if self.rows > 1 else ""
        how = "" if self.to is None else self.to.name
        return f"permute_gather_{self.bytes}_{sides}_{self.align}_{self.out}{ways}{how}"


def gather_kernel(spec: Gather) -> Kernel:
    count = spec.count * spec.rows
    what = f"Copies {count} elements of {spec.bytes} bytes in each block, in order of y."
    doc = f"{what}\nNothing is exchanged between threads."
    k = Builder(spec.name, block=spec.threads, doc=doc)
    GatherWriter(spec, k).write()
    return k.done()


class GatherWriter:
    def __init__(self, spec: Gather, k: Builder) -> None:
        self.spec, self.k = spec, k
        written = None if spec.to is None else spec.to.target
        self.x, self.y, self.x_size, self.y_size = arrays(k, spec.dtype, spec.unit, written)
        self.blocks = Grid(k, spec.grid, spec.beyond, spec.factors)
        self.q = Side(k, "q", spec.digits, spec.factors)
        self.lead = k.scalar("q_lead")
        self.stop: Expr = lift(0)
        if spec.rows > 1:
            self.row_count = k.scalar("row_count")
            ways = ("read", "write", "factor") if spec.factors else ("read", "write")
            self.row = {way: k.scalar(f"row_{way}") for way in ways}
        self.convert = None if spec.to is None else Converter(k, spec.to)
        if spec.out > 1 and spec.digits == 1:
            k.require(self.q.reads[0].ge(0))
            k.require(self.x_size.gt((spec.out - 1) * self.q.reads[0]))
        if not spec.strided:
            rows = (self.row["write"],) if spec.rows > 1 else ()
            for each in (*self.blocks.writes, self.blocks.first_write, *rows):
                k.require(each.ge(0))

    def write(self) -> None:
        k, spec = self.k, self.spec
        self.read, self.written, digits = self.blocks.begin()
        self.thread: Expr = k.thread
        self.first = k.let("first", digits[0] * self.q.chunk)
        is_there = self._row(digits[1]) if spec.rows > 1 else None
        self._window((digits[0] + 1).eq(self.blocks.counts[0]))
        if is_there is not None:  # a window without steps
            self.stop = k.let("until", select(is_there, self.stop, lift(0)))
        self.held = k.registers("held", spec.dtype, spec.times * spec.out * spec.unit)
        if spec.to is not None:
            self.made = k.registers("made", spec.to.target, spec.out)
        with k.loop("n", spec.times) as n:
            step = k.let("step", (self.thread + n * spec.across) * spec.out - self.late)
            self._word(n * spec.out, step)
        with k.loop("n", spec.times) as n:
            self._store(n)
        if spec.out > 1:
            self._ends()

    def _row(self, digit: Expr) -> Expr:
        """Finds the run that a thread has, and whether it is there; if not, it reads the last."""
        k, spec = self.k, self.spec
        self.thread = k.let("along", k.thread % spec.across)
        own, left = k.thread // spec.across, self.row_count - digit * spec.rows
        row = k.let("row", maximum(minimum(own, left - 1), lift(0)))
        self.read = k.let("row_from", self.read + row * self.row["read"])
        self.written = k.let("row_to", self.written + row * self.row["write"])
        if spec.factors:
            self.blocks.factor = k.let("row_first", self.blocks.factor + row * self.row["factor"])
        return own.lt(left)

    def _window(self, is_last: Expr) -> None:
        """Where the window begins and ends: steps from the beginning of the block's chunk."""
        k, align = self.k, self.spec.align
        left = k.let("left", self.q.count - self.first)
        self.most = k.let("most", minimum(left, self.q.chunk) - 1)
        self.even: Expr
        self.late: Expr
        if align == 1:
            self.even, self.late = self.written, lift(0)
            self.stop = k.let("stop", minimum(left, self.q.chunk))
            return
        bits = align.bit_length() - 1
        self.even = k.let("even", self.written >> bits << bits)
        self.late = k.let("late", self.written & (align - 1))
        follows = self.q.chunk - ((self.written + self.q.chunk) & (align - 1))
        self.stop = k.let("stop", select(is_last, left, minimum(left, follows)))

    def _word(self, where: Expr, step: Expr) -> None:
        """What a word of y is made of. Words that are whole are inside of x, if they are one run
        there."""
        k, spec = self.k, self.spec
        if spec.digits > 1 or spec.out == 1:
            for i in range(spec.out):
                self._load((where + i) * spec.unit, step + i, f"at{i}")
            return
        begin = self.read + step * self.q.reads[0]
        last = self.x_size - 1 - (spec.out - 1) * self.q.reads[0]
        at = k.let("at", maximum(minimum(begin, last), lift(0)))
        for i in range(spec.out):
            streaming = spec.streaming[0]
            self.held[where + i] = self.x.at(at + i * self.q.reads[0], streaming=streaming)

    def _load(self, where: Expr, step: Expr, name: str) -> None:
        """An element of x. Where a step is outside, some other one is loaded and never used, which
        costs less than a condition."""
        k, unit = self.k, self.spec.unit
        step = minimum(step, self.most)  # far outside, offsets would have too many bits
        begin = k.let(name, self.read + self.q.offset(step + self.lead, self.q.reads))
        at = maximum(minimum(begin, self.x_size - 1), lift(0)) * unit
        self.held[where] = self.x.at(at, width=unit, streaming=self.spec.streaming[0])

    def _store(self, n: Expr) -> None:
        k, spec = self.k, self.spec
        out, width = spec.out, spec.out * spec.unit
        word = self.thread + n * spec.across
        step = word * out - self.late
        to: Expr
        if spec.strided:
            inside = minimum(step, self.most)
            to = self.written + self.q.offset(inside + self.lead, self.q.writes)
        else:
            to = self.even + word * out
        to = k.let("to_at", to * spec.unit)
        wanted = (step + out).le(self.stop)
        if spec.align > 1:
            wanted = step.ge(lift(0) - self.first).and_(wanted)
        wanted = wanted.and_((to + width).le(self.y_size))
        if spec.strided:
            wanted = wanted.and_(to.ge(0))
        streaming = spec.streaming[1]
        for i in range(out if self.convert else 0):
            self._convert(i, n * out + i, step + i)
        moved = self.made[0] if self.convert else self.held[n * width]
        self.y.put(to, moved, when=wanted, width=width, streaming=streaming)

    def _convert(self, i: int, where: Expr | int, step: Expr) -> None:
        """An element of a word of y."""
        number: Expr | None = None
        if self.spec.factors:
            inside = maximum(minimum(step, self.most), lift(0) - self.lead)
            number = self.blocks.factor + self.q.offset(inside + self.lead, self.q.factors)
            number = self.k.let(f"number{i}", number)
        assert self.convert is not None
        self.made[i] = self.convert.value(self.held[where], number)

    def _ends(self) -> None:
        """One element for each of a few threads."""
        k, out = self.k, self.spec.out
        end = at_ends(self.thread, out, self.late, self.stop, self.first.eq(0))
        step = k.let("end", end.step)
        to = k.let("end_to", self.written + step)
        fits = to.ge(0).and_(to.lt(self.y_size))
        with k.when(self.thread.lt(2 * out).and_(end.inside).and_(fits)):
            self._load(lift(0), step, "end_at")
            if self.convert is not None:
                self._convert(0, 0, step)
            self.y.put(to, self.made[0] if self.convert else self.held[0])
