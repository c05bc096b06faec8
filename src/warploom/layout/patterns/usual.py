"""The patterns that people meet, by parameters: transpositions and blocks of a tensor.

Each function takes sizes and gives the accesses of one warp, as those of `operands.py` (matrix
units) and `strides.py` do. `named.py` gives them names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from warploom.errors import CheckError
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE, Access, AccessKind, Problem
from warploom.layout.wavefronts.cost import Mask
from warploom.machine.record import NVIDIA
from warploom.machine.serving import Serving

Index = Callable[[Numbers, Numbers], "Numbers | int"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """What the functions below are about."""

    rows: int
    columns: int
    bytes: int = 4  # of `packed` elements
    serving: Serving = NVIDIA
    options: dict[str, int] = field(default_factory=dict)
    packed: int = 1

    def within(self, size: int, what: str) -> int:
        """How many elements are in so many bytes."""
        return self.divided(size * self.packed, self.bytes, what)

    @property
    def size(self) -> int:
        return self.rows * self.columns

    @property
    def lanes(self) -> int:
        return self.serving.lanes

    def option(self, name: str, otherwise: int) -> int:
        return self.options.get(name, otherwise)

    def vector(self, name: str, otherwise: int) -> int:
        """An option that says how many bytes a lane moves, in elements."""
        width = self.option(name, otherwise)
        if width % self.bytes or width < self.bytes:
            raise CheckError(f"{name}={width} bytes is no vector of elements of {self.bytes}")
        return width * self.packed // self.bytes

    def access(
        self,
        name: str,
        kind: AccessKind,
        steps: int,
        index: Index,
        width: int = 1,
        active: Callable[[Numbers], Mask] | None = None,
    ) -> Access:
        """`index(step, lane)` is the first element; a vector goes on along the row."""
        step = np.arange(steps, dtype=np.int64)[:, None]
        lane = np.arange(self.lanes, dtype=np.int64)[None]
        first = np.broadcast_to(index(step, lane), (steps, self.lanes))
        elements = first[:, :, None] + np.arange(width)
        if active is not None:
            elements = np.where(
                np.broadcast_to(active(lane), first.shape)[:, :, None], elements, IDLE
            )
        return Access(name, elements, kind)

    def linear(self, name: str, kind: AccessKind, width: int) -> Access:
        """All elements in order, lane after lane."""
        step = self.lanes * width
        fits = f"a multiple of {step} elements"
        steps = self.divided(self.size, step, "elements in steps of a warp", fits)
        return self.access(
            name, kind, steps, lambda s, lane: (self.lanes * s + lane) * width, width
        )  # fmt: skip

    def divided(self, whole: int, part: int, what: str, fits: str = "") -> int:
        """How often a part fits; `fits` says which sizes would, where it does not."""
        if part < 1 or whole % part or not whole:
            raise CheckError(
                f"this pattern needs {what}: {part} does not divide {whole}",
                advice=(fits and f"{fits} would do; ")
                + "accesses of any size are written in a FILE.toml",
            )
        return whole // part

    def by_columns(self, name: str, kind: AccessKind, width: int) -> Access:
        """Lanes go down the rows, and on to the next columns where there are fewer rows."""
        high = min(self.rows, self.lanes)
        dividing = [str(each) for each in range(1, self.lanes) if self.lanes % each == 0]
        fits = f"{', '.join(dividing)} rows or a multiple of {self.lanes}"
        across = self.divided(self.lanes, high, "rows that a warp can go down", fits)
        down = self.divided(self.rows, high, "rows that a warp can go down", fits)
        wide = across * width
        fits = f"a multiple of {wide} columns"
        steps = down * self.divided(self.columns, wide, "columns for each step", fits)

        def index(s: Numbers, lane: Numbers) -> Numbers:
            row = lane % high + high * (s % down)
            return row * self.columns + (s // down * across + lane // high) * width

        return self.access(name, kind, steps, index, width)


Accesses = Sequence[Access]


def transpose(t: Tensor) -> Accesses:
    """Rows stored, columns loaded; `store` and `load` are bytes of a lane."""
    store, load = t.vector("store", t.bytes), t.vector("load", t.bytes)
    return [t.linear("store rows", "st", store), t.by_columns("load columns", "ld", load)]


def columns(t: Tensor) -> Accesses:
    """Columns stored, rows loaded."""
    store, load = t.vector("store", t.bytes), t.vector("load", t.bytes)
    return [t.by_columns("store columns", "st", store), t.linear("load rows", "ld", load)]


def rcd(t: Tensor) -> Accesses:
    """Rows, columns and the diagonals column = row ^ step."""
    rows = t.divided(t.rows, t.lanes, "as many rows as lanes")
    if rows != 1 or t.columns != t.lanes:
        raise CheckError("diagonals are of a tensor with as many rows and columns as lanes")
    return [
        t.linear("rows", "ld", 1),
        t.by_columns("columns", "ld", 1),
        t.access("diagonals", "ld", t.rows, lambda s, lane: lane * t.columns + (lane ^ s)),
    ]


def blocks(t: Tensor) -> Accesses:
    """Blocks of every shape that a warp can have, from one row to one column."""
    found = []
    high = 1
    while high <= t.lanes:
        wide = t.lanes // high
        found.append(_block(t, high, wide))
        high *= 2
    order = [0, len(found) - 1, *range(1, len(found) - 1)]
    return [found[place] for place in order]


def _block(t: Tensor, high: int, wide: int) -> Access:
    down = t.divided(t.rows, high, f"blocks of {high}×{wide}")
    across = t.divided(t.columns, wide, f"blocks of {high}×{wide}")

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = s // across * high + lane // wide
        return row * t.columns + s % across * wide + lane % wide

    return t.access(f"{high}x{wide}", "ld", down * across, index)


def problem_of(name: str, tensor: Tensor, accesses: Accesses, flat: bool = False) -> Problem:
    shape = (tensor.size,) if flat else (tensor.rows, tensor.columns)
    accesses = tuple(accesses)
    return Problem(name, shape, tensor.bytes, accesses, tensor.serving, packed=tensor.packed)
