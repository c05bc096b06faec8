"""Few fields side by side, taken apart into planes that begin anywhere.

    x[from + e·fields + f]   →   y[to + f·plane + e]

A block reads a run of x as it lies, goes through shared memory once, and writes a window of every
plane. Each plane's window begins `late` steps before the block's chunk, at a multiple of `align`
elements of y, so that words are whole wherever planes begin; elements are taken from shared memory
one by one, and converted where they become others.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.permute.convert import Conversion, Converter
from warploom.catalogue.permute.frame import Grid, OfWords, Side, arrays, at_ends
from warploom.index.ir import Expr, lift, maximum, minimum, select
from warploom.kernel.build import Builder
from warploom.kernel.ir import Kernel

SECTOR = 32


@dataclass(frozen=True, slots=True)
class Fields(OfWords):
    """So many fields of so many bytes, `times` words of every plane for each of so many threads.
    The grid's first axis counts chunks along a plane. `to`: elements are converted."""

    bytes: int
    fields: int
    times: int
    threads: int = 256
    grid: int = 2
    beyond: int = 0
    to: Conversion | None = None

    @property
    def written_bytes(self) -> int:
        return self.bytes if self.to is None else self.to.target.bytes

    @property
    def wide(self) -> int:
        """Elements that are read by one access."""
        return max(1, 4 // self.bytes)

    @property
    def out(self) -> int:
        """Elements that are written by one access."""
        return max(1, min(4, 8 // self.written_bytes))

    @property
    def align(self) -> int:
        return max(self.out, SECTOR // self.written_bytes)

    @property
    def chunk(self) -> int:
        """Elements of a plane in a block."""
        return self.threads * self.times * self.out

    @property
    def words(self) -> int:
        """Accesses that a block's run of x may need, wherever it begins."""
        run = (self.chunk + self.align - 1) * self.fields
        return -(-(run + self.wide - 1) // self.wide)

    @property
    def loads(self) -> int:
        return -(-self.words // self.threads)

    @property
    def shared_bytes(self) -> int:
        return self.loads * self.threads * self.wide * self.bytes

    @property
    def name(self) -> str:
        how = "" if self.to is None else self.to.name
        sides = f"{self.bytes}_{self.fields}_{self.times}_{self.grid}{self.beyond}"
        return f"permute_fields_{sides}{how}"


def fields_kernel(spec: Fields) -> Kernel:
    return _FieldsWriter(spec).write()


class _FieldsWriter:
    def __init__(self, spec: Fields) -> None:
        self.spec = spec
        what = f"Takes {spec.fields} fields of {spec.bytes} bytes apart, {spec.chunk} in a block."
        self.k = k = Builder(spec.name, block=spec.threads, doc=what)
        written = None if spec.to is None else spec.to.target
        self.x, self.y, self.x_size, self.y_size = arrays(k, spec.dtype, spec.wide, written)
        self.blocks = Grid(k, spec.grid, spec.beyond, spec.factors)
        self.e = Side(k, "q", 1)
        self.plane = k.scalar("plane")
        self.further = k.scalar("field_factor") if spec.factors else None
        self.convert = None if spec.to is None else Converter(k, spec.to)
        for each in (*self.blocks.writes, self.blocks.first_write, self.plane):
            k.require(each.ge(0))

    def write(self) -> Kernel:
        k, spec = self.k, self.spec
        self.read, self.written, digits = self.blocks.begin()
        self.first = k.let("first", digits[0] * spec.chunk)
        self.left = k.let("left", self.e.count - self.first)
        self.is_last = (digits[0] + 1).eq(self.blocks.counts[0])
        count = spec.loads * spec.threads * spec.wide
        self.memory = k.shared("memory", spec.dtype, count)
        self._load()
        k.barrier()
        self.made = k.registers("made", self.y.dtype, spec.out)
        self.got = k.registers("got", spec.dtype, spec.out)
        for f in range(spec.fields):
            self._plane(f)
        return k.done()

    def _load(self) -> None:
        """The run of x, as it lies; words outside of it are others', and never used."""
        k, spec = self.k, self.spec
        begin = k.let("begin", self.read - (spec.align - 1) * spec.fields)
        steps = minimum(self.left, lift(spec.chunk)) + (spec.align - 1)
        bits = spec.wide.bit_length() - 1
        last = k.let("last", (begin + steps * spec.fields - 1) >> bits)
        self.late = k.let("late_x", begin & (spec.wide - 1))
        held = k.registers("held", spec.dtype, spec.loads * spec.wide)
        with k.loop("n", spec.loads) as n:
            word: Expr = (begin >> bits) + (n * spec.threads + k.thread)
            word = maximum(minimum(word, minimum(last, self.x_size - 1)), lift(0))
            at = k.let("at", word) * spec.wide
            held[n * spec.wide] = self.x.at(at, width=spec.wide, streaming=True)
        with k.loop("n", spec.loads) as n:
            place = (n * spec.threads + k.thread) * spec.wide
            self.memory.put(place, held[n * spec.wide], width=spec.wide)

    def _plane(self, f: int) -> None:
        """The window of a plane: whole words, and what is left at its ends."""
        k, spec, out, align = self.k, self.spec, self.spec.out, self.spec.align
        begin = k.let(f"to{f}", self.written + f * self.plane)
        late = k.let(f"late{f}", begin & (align - 1))
        follows = minimum(self.left, spec.chunk - late)
        stop = k.let(f"stop{f}", select(self.is_last, self.left, follows))
        even = begin - late
        with k.loop("n", spec.times) as n:
            word = n * spec.threads + k.thread
            step = k.let("step", word * out - late)
            to = k.let("word_to", even + word * out)
            wanted = step.ge(lift(0) - self.first).and_((step + out).le(stop))
            with k.when(wanted.and_(to.ge(0)).and_((to + out).le(self.y_size))):
                for i in range(out):
                    self._get(i, step + i, f)
                self.y.put(to, self.made[0], width=out, streaming=True)
        if out == 1:
            return
        end = at_ends(k.thread, out, late, stop, self.first.eq(0))
        step = k.let(f"end{f}", end.step)
        to = k.let(f"end_to{f}", begin + step)
        with k.when(k.thread.lt(2 * out).and_(end.inside).and_(to.ge(0)).and_(to.lt(self.y_size))):
            inside = minimum(step, lift(spec.chunk - 1))
            self._get(0, maximum(inside, lift(1 - align)), f)
            self.y.put(to, self.made[0])

    def _get(self, i: int, step: Expr, f: int) -> None:
        """An element of a plane, so many steps after the block's chunk begins."""
        spec = self.spec
        place = (step + (spec.align - 1)) * spec.fields + (self.late + f)
        if self.convert is None:
            self.made[i] = self.memory.at(place)
            return
        self.got[i] = self.memory.at(place)
        number = None if self.further is None else self.blocks.factor + f * self.further
        self.made[i] = self.convert.value(self.got[i], number)
