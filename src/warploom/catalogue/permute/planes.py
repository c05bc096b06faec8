"""Few fields side by side, and each field in a plane of its own: small elements, in words.

    x[from + f·plane + e]   →   y[to + e·fields + f]      (or back)

A thread has a word of every plane, puts the elements together anew in registers, and the block goes
through shared memory once, so that both sides are read and written word beside word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from warploom.catalogue.permute.frame import Grid, Placed, Side, arrays, inside, placed
from warploom.index.ir import Expr, lift
from warploom.kernel.build import Builder, RegisterArray, pick_bytes
from warploom.kernel.dtype import u32
from warploom.kernel.ir import Kernel, Value

LANES = 32
MOST_FIELDS = 16


@dataclass(frozen=True, slots=True)
class Planes:
    """So many fields of so many bytes, `times` words of every plane for each thread; `back`: from
    planes to fields side by side. The grid's first axis counts chunks along a plane."""

    bytes: int
    fields: int
    back: bool
    threads: int
    times: int
    grid: int = 2
    beyond: int = 0

    @property
    def group(self) -> int:
        return 4 // self.bytes

    @property
    def rows(self) -> int:
        """Words of each plane in a block."""
        return self.threads * self.times

    @property
    def name(self) -> str:
        way = "together" if self.back else "apart"
        return f"permute_{way}_{self.bytes}_{self.fields}_{self.times}_{self.grid}{self.beyond}"


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
        self.layout = planes_layout(LANES, spec.fields, spec.back)
        ways = "become structures" if spec.back else "are taken out of structures"
        what = f"{spec.fields} planes of elements of {spec.bytes} bytes {ways}."
        self.k = k = Builder(spec.name, block=spec.threads, doc=f"{what}\n{self.layout.says}")
        self.x, self.y, self.x_size, self.y_size = arrays(k, u32)
        self.blocks = Grid(k, spec.grid, spec.beyond)
        self.e = Side(k, "q", 1)
        self.plane = k.scalar("plane")

    def write(self) -> Kernel:
        k, spec = self.k, self.spec
        self.read, self.written, digits = self.blocks.begin()
        self.e.begin(digits[0])
        self.memory = k.shared("memory", u32, self.layout.slots * (spec.rows // LANES))
        self.held = k.registers("held", u32, spec.times * spec.fields)
        if spec.back:
            self._planes(load=True)
            self._own(load=False)
            k.barrier()
            self._linear(load=False)
        else:
            self._linear(load=True)
            k.barrier()
            self._own(load=True)
            self._planes(load=False)
        return k.done()

    def _place(self, row: Expr, field: Expr | int) -> Expr:
        """Each warp's rows lie as the solver says, one warp's after the other's."""
        return self.layout.at(row % LANES, lift(field)) + row // LANES * self.layout.slots

    def _planes(self, load: bool) -> None:
        k, spec = self.k, self.spec
        with k.loop("n", spec.times) as n, k.loop("f", spec.fields) as f:
            row = k.let("row", n * spec.threads + k.thread)
            begin = self.read if load else self.written
            at = k.let("at", begin + f * self.plane + row)
            size = self.x_size if load else self.y_size
            wanted = row.lt(self.e.inside).and_(inside(at, size))
            if load:
                self.held[n * spec.fields + f] = self.x.at(at, when=wanted, streaming=True)
            else:
                self.y.put(at, self.held[n * spec.fields + f], when=wanted, streaming=True)

    def _own(self, load: bool) -> None:
        """Each thread's words of the structures, to or from shared memory."""
        k, spec = self.k, self.spec
        got = k.registers("got", u32, spec.fields)
        with k.loop("n", spec.times) as n:
            row = k.let("row", n * spec.threads + k.thread)
            for f in range(spec.fields):
                if load:
                    got[f] = self.memory.at(self._place(row, f))
                else:
                    value = self._together(self.held, n * spec.fields, f)
                    self.memory.put(self._place(row, f), value)
            if load:
                for f in range(spec.fields):
                    self.held[n * spec.fields + f] = self._apart(got, f)

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

    def _linear(self, load: bool) -> None:
        """The structures' words in order, from or to global memory."""
        k, spec = self.k, self.spec
        times = spec.times * spec.fields
        begin = self.read if load else self.written
        moved = self.held if load else k.registers("out", u32, 1)
        with k.loop("n", times) as n:
            word = k.let("word", n * spec.threads + k.thread)
            at = k.let("at", begin + word)
            size = self.x_size if load else self.y_size
            wanted = word.lt(self.e.inside * spec.fields).and_(inside(at, size))
            place = self._place(word // spec.fields, word % spec.fields)
            if load:
                moved[n] = self.x.at(at, when=wanted, streaming=True)
            else:
                moved[0] = self.memory.at(place)
                self.y.put(at, moved[0], when=wanted, streaming=True)
        if load:
            with k.loop("n", times) as n:
                word = k.let("word", n * spec.threads + k.thread)
                place = self._place(word // spec.fields, word % spec.fields)
                self.memory.put(place, moved[n])
