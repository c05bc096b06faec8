"""Few fields side by side, and each field in a plane of its own: small elements, in words.

    x[from + f·plane + e]   →   y[to + e·fields + f]      (or back)

A thread has a word of every plane, puts the elements together anew in registers, and the block goes
through shared memory once, so that both sides are read and written word beside word. Elements that
become others on the way do so one by one, and are as many as make a word on the narrower side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from warploom.catalogue.permute.convert import Conversion, Converter
from warploom.catalogue.permute.frame import Grid, OfWords, Placed, Side, inside, placed
from warploom.index.ir import Expr, lift
from warploom.kernel.build import Builder, RegisterArray, pick_bytes
from warploom.kernel.dtype import DType, u32
from warploom.kernel.ir import Kernel, Value

LANES = 32
MOST_FIELDS = 16


@dataclass(frozen=True, slots=True)
class Planes(OfWords):
    """So many fields of so many bytes, `times` words of every plane for each thread; `back`: from
    planes to fields side by side. The grid's first axis counts chunks along a plane. `to`: elements
    are converted in registers."""

    bytes: int
    fields: int
    back: bool
    threads: int
    times: int
    grid: int = 2
    beyond: int = 0
    to: Conversion | None = None

    @property
    def written_bytes(self) -> int:
        return self.bytes if self.to is None else self.to.target.bytes

    @property
    def group(self) -> int:
        """Elements of every field that a thread has at once."""
        return 4 // min(self.bytes, self.written_bytes)

    @property
    def across(self) -> int:
        """Words of these side by side."""
        return self.fields * self.group * self._beside // 4

    @property
    def _beside(self) -> int:
        """Bytes of an element where fields lie side by side."""
        return self.written_bytes if self.back else self.bytes

    @property
    def units(self) -> tuple[int, int]:
        """Elements of an access, of x and of y."""
        word = 4 // self._beside
        return (self.group, word) if self.back else (word, self.group)

    @property
    def types(self) -> tuple[DType, DType]:
        """What memory has: words, or the elements that are converted."""
        return (u32, u32) if self.to is None else (self.to.source, self.to.target)

    @property
    def rows(self) -> int:
        """Words of each plane in a block."""
        return self.threads * self.times

    @property
    def name(self) -> str:
        way = "together" if self.back else "apart"
        how = "" if self.to is None else self.to.name
        sides = f"{self.bytes}_{self.fields}_{self.times}_{self.grid}{self.beyond}"
        return f"permute_{way}_{sides}{how}"


@lru_cache(maxsize=64)
def planes_layout(rows: int, fields: int, back: bool) -> Placed:
    """Words as they lie side by side, taken in order; and `fields` in a row by each thread."""
    linear = np.arange(rows * fields).reshape(-1, LANES)
    row = np.arange(rows).reshape(-1, LANES)
    own = np.concatenate([row * fields + f for f in range(fields)])
    stored, loaded = (own, linear) if back else (linear, own)
    return placed(rows, fields, 4, stored[:, :, None], loaded[:, :, None])


def planes_kernel(spec: Planes) -> Kernel:
    return _PlanesWriter(spec).write()


class _PlanesWriter:
    def __init__(self, spec: Planes) -> None:
        self.spec = spec
        self.layout = planes_layout(LANES, spec.across, spec.back)
        ways = "become structures" if spec.back else "are taken out of structures"
        what = f"{spec.fields} planes of elements of {spec.bytes} bytes {ways}."
        self.k = k = Builder(spec.name, block=spec.threads, doc=f"{what}\n{self.layout.says}")
        self.source, self.target = spec.types
        # What an access has, and a word in shared memory: machine words, or elements.
        self.of_x, self.of_y = (1, 1) if spec.to is None else spec.units
        self.per = self.of_y if spec.back else self.of_x
        self.x_size, self.y_size = k.scalar("x_size"), k.scalar("y_size")
        self.x = k.array("x", self.source, self.x_size * self.of_x, const=True)
        self.y = k.array("y", self.target, self.y_size * self.of_y)
        self.blocks = Grid(k, spec.grid, spec.beyond, spec.factors)
        self.e = Side(k, "q", 1)
        self.plane = k.scalar("plane")
        self.further = k.scalar("field_factor") if spec.factors else None
        self.convert = None if spec.to is None else Converter(k, spec.to)

    def write(self) -> Kernel:
        k, spec = self.k, self.spec
        self.read, self.written, digits = self.blocks.begin()
        self.e.begin(digits[0])
        kind = self.target if spec.back else self.source
        slots = self.layout.slots * (spec.rows // LANES)
        self.memory = k.shared("memory", kind, slots * self.per)
        beside = spec.fields * self.of_x if spec.back else spec.across * self.per
        self.held = k.registers("held", self.source, spec.times * beside)
        if spec.back:
            self._load_planes()
            self._own_stored()
            k.barrier()
            self._linear_stored()
        else:
            self._linear_loaded()
            k.barrier()
            self._own_loaded()
        return k.done()

    def _place(self, row: Expr, word: Expr | int) -> Expr:
        """Each warp's rows lie as the solver says, one warp's after the other's."""
        found = self.layout.at(row % LANES, lift(word)) + row // LANES * self.layout.slots
        return found * self.per if self.per > 1 else found

    # -- planes

    def _load_planes(self) -> None:
        k, spec, of = self.k, self.spec, self.of_x
        with k.loop("n", spec.times) as n, k.loop("f", spec.fields) as f:
            row = k.let("row", n * spec.threads + k.thread)
            at = k.let("at", self.read + f * self.plane + row)
            wanted = row.lt(self.e.inside).and_(inside(at, self.x_size))
            self.held[(n * spec.fields + f) * of] = self.x.at(
                at * of, when=wanted, width=of, streaming=True
            )

    def _store_plane(self, row: Expr, f: int, held: Value) -> None:
        k, of = self.k, self.of_y
        at = k.let(f"at{f}", self.written + f * self.plane + row)
        wanted = row.lt(self.e.inside).and_(inside(at, self.y_size))
        self.y.put(at * of, held, when=wanted, width=of, streaming=True)

    # -- each thread's structures, and shared memory

    def _own_stored(self) -> None:
        """Words of structures from those of planes."""
        k, spec = self.k, self.spec
        made = k.registers("made", self.target, self.per)
        with k.loop("n", spec.times) as n:
            row = k.let("row", n * spec.threads + k.thread)
            for word in range(spec.across):
                if self.convert is None:
                    made[0] = self._together(self.held, n * spec.fields, word)
                for i in range(self.per if self.convert else 0):
                    step, f = divmod(word * self.per + i, spec.fields)
                    given = self.held[(n * spec.fields + f) * self.of_x + step]
                    made[i] = self._converted(given, f)
                self.memory.put(self._place(row, word), made[0], width=self.per)

    def _own_loaded(self) -> None:
        """Words of planes from those of structures."""
        k, spec = self.k, self.spec
        got = k.registers("got", self.source, spec.across * self.per)
        made = k.registers("made", self.target, self.of_y)
        with k.loop("n", spec.times) as n:
            row = k.let("row", n * spec.threads + k.thread)
            for word in range(spec.across):
                got[word * self.per] = self.memory.at(self._place(row, word), width=self.per)
            for f in range(spec.fields):
                if self.convert is None:
                    made[0] = self._apart(got, f)
                for i in range(self.of_y if self.convert else 0):
                    made[i] = self._converted(got[i * spec.fields + f], f)
                self._store_plane(row, f, made[0])

    def _converted(self, given: Value, field: int) -> Value:
        assert self.convert is not None
        number: Expr | None = None
        if self.further is not None:
            number = self.blocks.factor + field * self.further
        return self.convert.value(given, number)

    def _together(self, held: RegisterArray, first: Expr, word: int) -> Value:
        """A word of structures from words of planes: element i of it is field (i + …) % fields."""
        spec = self.spec
        numbers = [word * spec.group + i for i in range(spec.group)]
        return self._picked([(held[first + n % spec.fields], n // spec.fields) for n in numbers])

    def _apart(self, got: RegisterArray, field: int) -> Value:
        """A word of a plane from words of structures."""
        spec = self.spec
        numbers = [e * spec.fields + field for e in range(spec.group)]
        return self._picked([(got[n // spec.group], n % spec.group) for n in numbers])

    def _picked(self, elements: list[tuple[Value, int]]) -> Value:
        """Elements of words, side by side in one word."""
        if len(elements) == 1:
            return elements[0][0]
        if len(elements) == 2:
            (one, i), (other, j) = elements
            return pick_bytes(one, other, 0x10 + 0x22 * i | (0x54 + 0x22 * j) << 8)
        pairs = [
            pick_bytes(one, other, i | (4 + j) << 4)
            for (one, i), (other, j) in (elements[:2], elements[2:])
        ]
        return pick_bytes(pairs[0], pairs[1], 0x5410)

    # -- the structures' words in order

    def _linear_loaded(self) -> None:
        k, spec = self.k, self.spec
        for store in (False, True):
            with k.loop("n", spec.times * spec.across) as n:
                word, held = k.let("word", n * spec.threads + k.thread), self.held[n * self.per]
                if store:
                    self.memory.put(self._shared(word), held, width=self.per)
                    continue
                at = k.let("at", self.read + word)
                wanted = word.lt(self.e.inside * spec.across).and_(inside(at, self.x_size))
                loaded = self.x.at(at * self.per, when=wanted, width=self.per, streaming=True)
                k.set(held, loaded)

    def _linear_stored(self) -> None:
        k, spec = self.k, self.spec
        got = k.registers("got", self.target, self.per)
        with k.loop("n", spec.times * spec.across) as n:
            word = k.let("word", n * spec.threads + k.thread)
            at = k.let("at", self.written + word)
            wanted = word.lt(self.e.inside * spec.across).and_(inside(at, self.y_size))
            got[0] = self.memory.at(self._shared(word), width=self.per)
            self.y.put(at * self.per, got[0], when=wanted, width=self.per, streaming=True)

    def _shared(self, word: Expr) -> Expr:
        return self._place(word // self.spec.across, word % self.spec.across)
