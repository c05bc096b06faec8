"""A box of a few lines of y: rows of x come in anywhere, lines of y go out as they lie.

    x[from + p + IN(j)]   →   memory[PLACE(p) + PLACE(j)]   →   y[to + OUT(line) + 0, … + 1, …]

All axes of the box follow each other in a line of y, but for the one that counts lines. So shared
memory holds what y will hold, and is stored as it lies, up to 16 bytes at a time. Rows of x may be
short, many, and begin anywhere: their words are taken apart where the box is, element by element.
There elements become others, if they do.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.permute.convert import Conversion, Converter
from warploom.catalogue.permute.frame import Grid, Lets, OfWords, Side, arrays, at_ends, marked
from warploom.index.ir import Expr, Var, lift, maximum, minimum
from warploom.kernel.build import Builder
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cell, Kernel

LANES = 32
SIDES = tuple(sorted({n << bits for bits in range(12) for n in (1, 3)}))  # that kernels are for


@dataclass(frozen=True, slots=True)
class Box(OfWords):
    """At most `p` steps along each of at most `j` rows, elements of so many bytes, so many threads;
    at most so many lines. Shared memory has `slots` elements, a power of two.

    `wide` elements are read by one access, `out` are written by one. Digits of p and j; `grid` axes
    of blocks, of which the first counts chunks of j and the second those of p. `strided`: steps
    along p do not lie side by side in x. `to`: shared memory has elements that are converted.
    """

    bytes: int
    p: int
    j: int
    slots: int
    lines: int = 1
    threads: int = 256
    wide: int = 1
    out: int = 1
    p_digits: int = 1
    j_digits: int = 1
    grid: int = 2
    beyond: int = 0
    strided: bool = False
    streaming: tuple[bool, bool] = (False, False)
    to: Conversion | None = None

    @property
    def target(self) -> DType:
        return self.dtype if self.to is None else self.to.target

    @property
    def words(self) -> int:
        """Accesses that a row may need, wherever it begins."""
        return -(-(self.p + self.wide - 1) // self.wide)

    @property
    def across(self) -> int:
        """Threads that read side by side in a row."""
        beside = max(LANES, self.threads // _power(self.j))
        return min(_power(self.words), beside)

    @property
    def times(self) -> int:
        """Words of a row that a thread reads."""
        return -(-self.words // self.across)

    @property
    def passes(self) -> int:
        """Rows that a thread reads of."""
        return -(-self.j // (self.threads // self.across))

    @property
    def along(self) -> int:
        """Threads that write side by side in a line."""
        return max(1, self.threads // _power(self.lines))

    @property
    def written(self) -> int:
        """Words of a line that a thread may have to write: one more than fit, wherever it begins.
        A kernel for so many lines serves fewer, too, and these are longer."""
        fewest = 1 + max((side for side in SIDES if side < self.lines), default=0)
        return -(-(self.slots // fewest // self.out) // self.along) + (self.lines > 1)

    @property
    def shared_bytes(self) -> int:
        return self.slots * (self.bytes if self.to is None else self.to.target.bytes)

    @property
    def name(self) -> str:
        sides = f"{self.p}x{self.j}_{self.slots}_{self.lines}_{self.threads}"
        digits = f"{self.grid}{self.beyond}{self.p_digits}{self.j_digits}"
        ways = marked("scw", (self.strided, *self.streaming))
        how = "" if self.to is None else self.to.name
        return f"permute_box_{self.bytes}_{sides}_{digits}_{self.wide}{self.out}{ways}{how}"


def _power(count: int) -> int:
    """The least power of two that is no less."""
    return 1 << (count - 1).bit_length()


def box_kernel(box: Box) -> Kernel:
    return _BoxWriter(box).write()


class _BoxWriter:
    def __init__(self, box: Box) -> None:
        self.box = box
        what = f"Moves boxes of {box.j} rows of {box.p} elements of {box.bytes} bytes to runs of y."
        self.k = k = Builder(box.name, block=box.threads, doc=what)
        self.x, self.y, self.x_size, self.y_size = arrays(
            k, box.dtype, box.wide * box.unit, box.target
        )
        self.blocks = Grid(k, box.grid, box.beyond, box.factors)
        self.p = Side(k, "p", box.p_digits, box.factors)
        self.j = Side(k, "j", box.j_digits, box.factors)
        self.convert = None if box.to is None else Converter(k, box.to)
        self.let = Lets(k)
        for each in (*self.blocks.writes, Var("first_write")):
            k.require(each.ge(0))
        self.count, self.pitch, self.apart = (
            k.scalar(f"line_{n}") for n in ("count", "pitch", "to")
        )
        k.require(self.count.ge(1))
        for each in (self.pitch, self.apart):
            k.require(each.ge(0))

    def write(self) -> Kernel:
        k, box = self.k, self.box
        self.read, self.written, digits = self.blocks.begin()
        self.j.begin(digits[0])
        self.p.begin(digits[1])
        self.late = k.let("late", self.written % box.out) if box.out > 1 else lift(0)
        self.run = k.let("run", self.p.inside * self.j.inside // self.count)
        self.memory = k.shared("memory", box.target, box.slots * box.unit)
        self._load()
        k.barrier()
        self._store()
        return k.done()

    # -- in

    def _load(self) -> None:
        """All loads are under way before the first is used. Outside of the box its last row and
        column are loaded again, and not stored."""
        k, box = self.k, self.box
        apart = box.threads // box.across
        count = box.passes * box.times * box.wide * box.unit
        self.held = k.registers("held", box.dtype, count)
        for way in (self._fetch, self._keep):
            with k.loop("n", box.passes) as n:
                row = self.let("row", k.thread // box.across + n * apart)
                inside = minimum(row, self.j.inside - 1)  # offsets outside may have too many bits
                begin = self.let("begin", self.read + self.j.offset(inside, self.j.reads))
                lies = self.let("lies", self.late + self.j.offset(row, self.j.writes))
                with k.loop("m", box.times) as m:
                    column = self.let("column", k.thread % box.across + m * box.across)
                    at = (n * box.times + m) * box.wide * box.unit
                    way(at, _Word(row, column, begin, lies))

    def _fetch(self, n: Expr, word: _Word) -> None:
        box, wide = self.box, self.box.wide
        at: Expr
        if wide > 1:
            last = (word.begin + self.p.inside - 1) // wide
            at = minimum(word.begin // wide + word.column, last)
        else:
            inside = minimum(word.column, self.p.inside - 1)
            at = word.begin + (self.p.offset(inside, self.p.reads) if box.strided else inside)
        at = self.let("at", maximum(minimum(at, self.x_size - 1), lift(0)))
        width = wide * box.unit
        self.held[n] = self.x.at(at * width, width=width, streaming=box.streaming[0])

    def _keep(self, n: Expr, word: _Word) -> None:
        """The elements of a word, those that are in the box."""
        box, wide, unit = self.box, self.box.wide, self.box.unit
        first: Expr = word.column
        if wide > 1:
            first = self.let("first", first * wide - word.begin % wide)
        within = word.row.lt(self.j.inside)
        for i in range(wide):
            step = first + i
            asked = within.and_(step.lt(self.p.inside))
            if wide > 1:
                asked = asked.and_(step.ge(0))
            place = (word.lies + self.p.offset(step, self.p.writes)) & (box.slots - 1)
            if self.convert is None:
                self.memory.put(place * unit, self.held[n + i * unit], when=asked, width=unit)
                continue
            with self.k.when(asked):
                made = self.convert.value(self.held[n + i], self._factor(word.row, step))
                self.memory.put(place, made)

    def _factor(self, row: Expr, step: Expr) -> Expr | None:
        """Which factor an element of the box has."""
        if not self.box.factors:
            return None
        number = self.blocks.factor + self.j.offset(row, self.j.factors)
        return self.let("number", number + self.p.offset(step, self.p.factors))

    # -- out

    def _store(self) -> None:
        """Whole words of every line; then the elements at their ends, by threads of their own."""
        k, box, width = self.k, self.box, self.box.out * self.box.unit
        got = k.registers("got", box.target, width)
        line = self._line(k.thread // box.along)
        with k.loop("n", box.written) as n:
            word = self.let("word", k.thread % box.along + n * box.along)
            step = word * box.out - line.late
            place = (line.place // box.out + word) & (box.slots // box.out - 1)
            to = self.let("to_at", (line.to // box.out + word) * width)
            asked = line.inside.and_(step.ge(0)).and_((step + box.out).le(self.run))
            with k.when(asked.and_((to + width).le(self.y_size))):
                got[0] = self.memory.at(place * width, width=width)
                self.y.put(to, got[0], width=width, streaming=box.streaming[1])
        if box.out > 1:
            self._ends(got[0])

    def _line(self, number: Expr) -> _Line:
        place = self.let("line_place", self.late + number * self.pitch)
        to = self.let("line_to", self.written + minimum(number, self.count - 1) * self.apart)
        late = to % self.box.out if self.box.out > 1 else lift(0)
        return _Line(number.lt(self.count), place, to, late)

    def _ends(self, got: Cell) -> None:
        """Where a line begins or ends inside of a word."""
        k, box, beside = self.k, self.box, 2 * self.box.out
        with k.loop("n", -(-beside * box.lines // box.threads)) as n:
            number = self.let("ends", k.thread + n * box.threads)
            line = self._line(number // beside)
            end = at_ends(number % beside, box.out, line.late, self.run)
            step = self.let("end", end.step)
            to = self.let("end_to", line.to + step)
            fits = to.ge(0).and_(to.lt(self.y_size))
            with k.when(line.inside.and_(end.inside).and_(fits)):
                self.k.set(got, self.memory.at((line.place + step) & (box.slots - 1)))
                self.y.put(to, got)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of y: whether there is one, where it lies, where it goes, and how late in a word."""

    inside: Expr
    place: Expr
    to: Expr
    late: Expr


@dataclass(frozen=True, slots=True)
class _Word:
    """An access of x: its row and column, where the row begins in x, and where it lies."""

    row: Expr
    column: Expr
    begin: Expr
    lies: Expr
