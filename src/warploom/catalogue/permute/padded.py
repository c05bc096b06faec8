"""A tensor with a frame around, or windows of one: y in the order of its memory, x where there is
any.

    y[i0, i1, …] = x[v0, v1, …]   where that is in x, else the value
    v0 = i0 - before0             or   i0·step0 + j0·apart0 - before0   where y has windows

A block has a run of y. Where it begins is divided into steps of the axes once; a thread adds its
own steps and carries them over, by a product where an axis may begin again several times, by a
comparison where it is longer than the run. Steps are found once for a word of y that is in one row,
and most words are wholly inside of x. Where rows are short, most warps have a word of two rows: all
words are made alike then, each element from the one row or the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.permute.frame import OfWords, arrays, marked
from warploom.index.ir import Expr, lift, select
from warploom.kernel.build import Builder, RegisterArray
from warploom.kernel.ir import Kernel

THREADS = 256


@dataclass(frozen=True, slots=True)
class Frame:
    """An axis of y: its size; x has the coordinates from `low` to below `high`, so many elements
    apart. A step of y is `step` of a coordinate. Axes of y may add up to one: those of the same
    `window`, whose bounds are the same."""

    size: int
    low: int
    high: int
    read: int
    step: int = 1
    window: int = 0

    @property
    def whole(self) -> bool:
        return (self.low, self.high) == (0, self.size) and not self.window


@dataclass(frozen=True, slots=True)
class Padded(OfWords):
    """Elements of so many bytes, `out` written by one access, `times` of these by a thread. For
    each axis, the innermost first: the number of its coordinate, 0 where all its steps are in x;
    and whether the axis is longer than a run. `even`: rows are made of whole words. `windows`:
    steps of an axis are several of its coordinate. `close`: neighbours in a row are so in x."""

    bytes: int
    out: int
    framed: tuple[int, ...]
    long: tuple[bool, ...]
    times: int = 4
    even: bool = False
    windows: bool = False
    close: bool = True
    beyond: int = 0

    @property
    def count(self) -> int:
        """Elements of a run."""
        return THREADS * self.times * self.out

    @property
    def shared_bytes(self) -> int:
        return 0

    @property
    def name(self) -> str:
        axes = "".join(f"{'l' * n}{f}" for f, n in zip(self.framed, self.long, strict=True))
        ways = marked("ews", (self.even, self.windows, not self.close))
        return f"permute_padded_{self.bytes}_{self.out}_{self.times}_{axes}{ways}"


def padded_kernel(spec: Padded) -> Kernel:
    return _PaddedWriter(spec).write()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an element is: its step along the first axis, that axis' coordinate if it has a frame,
    its place in x, whether all other coordinates are inside, and in which row of its run it is."""

    own: Expr
    value: Expr | None
    at: Expr
    beside: Expr
    row: Expr


class _PaddedWriter:
    def __init__(self, spec: Padded) -> None:
        self.spec = spec
        what = f"Copies into a frame, {spec.count} elements of {spec.bytes} bytes in each block."
        self.k = k = Builder(spec.name, block=THREADS, doc=what)
        self.x, self.y, self.x_size, self.y_size = arrays(k, spec.dtype, spec.unit)
        self.blocks = k.scalar("count0")
        k.require(self.blocks.ge(1))
        k.grid(self.blocks)
        axes, numbers = range(len(spec.framed)), sorted(set(spec.framed) - {0})
        self.sizes = [k.scalar(f"size{i}") for i in axes]
        self.steps = [k.scalar(f"step{i}") if spec.windows else lift(1) for i in axes]
        self.reads = [k.scalar(f"read{i}") for i in axes]
        self.lows = {c: k.scalar(f"low{c}") for c in numbers}
        self.extents = {c: k.scalar(f"extent{c}") for c in numbers}
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
        held = k.registers("held", spec.dtype, spec.times * width)
        with k.loop("n", spec.times) as n:
            word = k.let("word", (n * THREADS + k.thread) * spec.out)
            self._load(held, n * width, word)
        with k.loop("n", spec.times) as n:
            own = (n * THREADS + k.thread) * spec.out
            to = k.let("to", (self.begin + own) * spec.unit)
            fits = (to + width).le(self.y_size)
            self.y.put(to, held[n * width], when=fits, width=width, streaming=True)
            self._ends(held, n, to, fits)
        return k.done()

    # -- in

    def _load(self, held: RegisterArray, where: Expr, word: Expr) -> None:
        """A word of y: of one row, wholly inside or not, or of several rows."""
        k, spec = self.k, self.spec
        place = self._place(word, 0)
        if spec.out == 1:
            self._get(held, where, place.at, self._inside(place, 0))
        elif spec.even:
            self._row(held, where, place)
        elif spec.close and not spec.long[0] and len(spec.framed) > 1:
            self._either_row(held, where, place)
        else:
            with k.when((place.own + spec.out).le(self.sizes[0])):
                self._row(held, where, place)
            with k.otherwise():
                self._two_rows(held, where, word, place)

    def _row(self, held: RegisterArray, where: Expr, place: _Place) -> None:
        k, out = self.k, self.spec.out
        if not self.spec.close:
            for i in range(out):
                one = self._further(place, lift(i))
                self._get(held, where + i, one.at, self._inside(one, 0))
            return
        whole = place.beside.and_(place.at.ge(0)).and_((place.at + out).le(self.x_size))
        if place.value is not None:
            extent = self.extents[self.spec.framed[0]]
            whole = whole.and_(place.value.ge(0)).and_((place.value + out).le(extent))
        with k.when(whole):
            for i in range(out):
                held[where + i] = self.x.at(place.at + i)
        with k.otherwise():
            for i in range(out):
                self._get(held, where + i, place.at + i, self._inside(place, i))

    def _either_row(self, held: RegisterArray, where: Expr, place: _Place) -> None:
        """Each element is of this row or of the next, without a branch."""
        k, out = self.k, self.spec.out
        left = k.let("left_in_row", self.sizes[0] - place.own)
        after = self._place(place.row + 1, 1, row=True)
        here = k.let("here", select(place.beside, place.at, lift(-out)))  # -out is in no case in x
        there = k.let("there", select(after.beside, after.at - left, lift(-out)))
        for i in range(out):
            is_here = left.gt(i)
            at = k.let(f"either{i}", select(is_here, here, there) + i)
            inside = at.ge(0).and_(at.lt(self.x_size))
            if place.value is not None and after.value is not None:
                values = select(is_here, place.value, after.value - left)
                value = k.let(f"middle{i}", values + i)
                extent = self.extents[self.spec.framed[0]]
                inside = value.ge(0).and_(value.lt(extent)).and_(inside)
            self._get(held, where + i, at, inside)

    def _two_rows(self, held: RegisterArray, where: Expr, word: Expr, place: _Place) -> None:
        """The end of a row and the beginning of the next one, which is found once."""
        k = self.k
        left = k.let("left_in_row", self.sizes[0] - place.own)
        other = self._place(word + left, 1)
        beside = [k.let(f"beside{n}", select(each.beside, lift(1), lift(0)))
                  for n, each in enumerate((place, other))]  # fmt: skip
        for i in range(self.spec.out):
            is_here, here = left.gt(i), self._further(place, lift(i))
            there, value = self._further(other, i - left), None
            at = k.let(f"further{i}", select(is_here, here.at, there.at))
            if here.value is not None and there.value is not None:
                value = k.let(f"middle{i}", select(is_here, here.value, there.value))
            inside = select(is_here, *beside).ne(0)
            found = _Place(place.own, value, at, inside, place.row)
            self._get(held, where + i, at, self._inside(found, 0))

    def _further(self, place: _Place, steps: Expr) -> _Place:
        """So many steps further in the same row."""
        at = place.at + steps * self.steps[0] * self.reads[0]
        value = None if place.value is None else place.value + steps * self.steps[0]
        return _Place(place.own, value, at, place.beside, place.row)

    def _inside(self, place: _Place, i: int) -> Expr:
        """Whether the i-th element of a row is in x."""
        inside = place.beside
        if place.value is not None:
            value = place.value + i
            extent = self.extents[self.spec.framed[0]]
            inside = inside.and_(value.ge(0)).and_(value.lt(extent))
        return inside.and_((place.at + i).ge(0)).and_((place.at + i).lt(self.x_size))

    def _get(self, held: RegisterArray, where: Expr, at: Expr, inside: Expr) -> None:
        k, unit = self.k, self.spec.unit
        if unit == 1:
            held[where] = self.x.at(at, when=inside, otherwise=self.values[0])
            return
        for i in range(unit):
            held[where + i] = self.values[i]
        with k.when(inside):
            held[where] = self.x.at(at * unit, width=unit)

    # -- out

    def _ends(self, held: RegisterArray, n: Expr, to: Expr, fits: Expr) -> None:
        """The last elements of y, which are less than a word."""
        k, spec = self.k, self.spec
        if spec.out == 1:
            return
        with k.when(fits.not_()):
            for i in range(spec.out - 1):
                self.y.put(to + i, held[n * spec.out + i], when=(to + i).lt(self.y_size))

    # -- steps

    def _begin(self) -> None:
        """The step along each axis at which the block's run begins."""
        k = self.k
        rest: Expr = self.begin
        self.starts: list[Expr] = []
        for i, size in enumerate(self.sizes[:-1]):
            self.starts.append(k.let(f"start{i}", rest % size))
            rest = k.let(f"left{i}", rest // size)
        self.starts.append(rest)

    def _place(self, step: Expr, number: int, row: bool = False) -> _Place:
        """Where an element of the run is; or the first one of a row of it."""
        k, spec = self.k, self.spec
        at: Expr = self.first
        sums: dict[int, Expr] = {}
        carried, last, first, rows = step, len(self.sizes) - 1, step, step
        for i, size in enumerate(self.sizes):
            if i == 0 and row:
                own: Expr = lift(0)
            else:
                own = k.let(f"own{i}_{number}", self.starts[i] + carried)
                if i < last:
                    carried = k.let(f"times{i}_{number}", self._times(own, i))
                    own = k.let(f"rest{i}_{number}", own - carried * size)
            if i == 0:
                first, rows = own, carried
            coordinate = spec.framed[i]
            if coordinate:
                known = sums.get(coordinate, lift(0) - self.lows.get(coordinate, lift(0)))
                sums[coordinate] = known + own * self.steps[i]
            else:
                at = at + own * self.reads[i]
        value, beside = None, lift(1).eq(1)
        for coordinate, total in sums.items():
            inner = k.let(f"inner{coordinate}_{number}", total)
            at = at + inner * self.reads[spec.framed.index(coordinate)]
            if coordinate == spec.framed[0]:
                value = inner
                continue
            beside = beside.and_(inner.ge(0)).and_(inner.lt(self.extents[coordinate]))
        return _Place(first, value, k.let(f"at{number}", at), beside, rows)

    def _times(self, own: Expr, i: int) -> Expr:
        """How often an axis begins again before a step."""
        if self.spec.long[i]:
            return select(own.ge(self.sizes[i]), lift(1), lift(0))
        over, shift = self.overs[i]
        return (own * over) >> (shift & 31)
