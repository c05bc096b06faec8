"""The stages that random warp sketches are made of: each recorded, and modelled in plain Python.

A model moves lists of input elements from lane to lane and knows nothing of terms.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from warploom.index.ir import Expr
from warploom.sketch.simt.trace import ArrayHandle, Tracer

Place: TypeAlias = tuple[str, tuple[int, ...]]  # an element of an input's tile
Item: TypeAlias = tuple[Place, ...]  # a product of elements
Cell: TypeAlias = tuple[Item, ...] | None  # a sum (or …) of items; None: nobody may rely on it
Cells: TypeAlias = list[list[Cell]]  # by lane and register

INIT = {"max": -np.inf, "min": np.inf, "&": -1}


def holds(index: Any, comparison: str, other: Any) -> Any:
    """A comparison that reads the same on expressions and on numbers."""
    if isinstance(index, Expr):
        return {"<": index.lt, ">=": index.ge}[comparison](other)
    return index < other if comparison == "<" else index >= other


@dataclass(frozen=True)
class Moved:
    """Lane l takes what lane `source(l)` holds, or combines it with its own where `when` holds."""

    kind: str
    by: int
    combined: bool = False
    when: str = "always"  # always, above (by lanes below there are some), below
    hole: str = ""

    def source(self, lane: Any, lanes: int) -> Any:
        match self.kind:
            case "rotate":
                return (lane + self.by) % lanes
            case "xor":
                return lane ^ self.by % lanes
            case "reverse":
                return lanes - 1 - lane
            case "up":
                return lane - self.by
            case _:
                return lane // 4 * 4 + (lane + self.by) % 4

    def holds(self, lane: Any) -> Any:
        if self.when == "always":
            return True
        return holds(lane, ">=" if self.when == "above" else "<", self.by)

    def record(self, k: Tracer, r: ArrayHandle, lane: Expr, lanes: int, by: str) -> ArrayHandle:
        result = k.registers(r.shape)
        source = self._hole(k, lane, lanes) if self.hole else self.source(lane, lanes)
        for i in k.loop(r.shape[0]):
            value = k.shuffle(r[i], source)
            if self.combined:
                total = k.accumulator(by, init=INIT.get(by))
                total.add(r[i])
                total.add(value, when=self.holds(lane))
                value = total.value()
            result[i] = value
        return result

    def _hole(self, k: Tracer, lane: Expr, lanes: int) -> Expr:
        return k.swizzle(lane, lanes) if self.hole == "swizzle" else k.bits(lane, lanes)

    def model(self, cells: Cells) -> Cells:
        lanes = len(cells)
        return [
            [self._cell(cells, lane, i, self.source(lane, lanes)) for i in range(len(cells[0]))]
            for lane in range(lanes)
        ]

    def _cell(self, cells: Cells, lane: int, i: int, source: int) -> Cell:
        taken = cells[source][i] if 0 <= source < len(cells) else None
        if not self.combined:
            return taken
        return merged([cells[lane][i], taken] if self.holds(lane) else [cells[lane][i]])


@dataclass(frozen=True)
class Turned:
    """Register i takes register (i + m·lane) mod n."""

    by: int

    def record(self, k: Tracer, r: ArrayHandle, lane: Expr, lanes: int, by: str) -> ArrayHandle:
        count = r.shape[0]
        return k.permute(r, lambda i: (i + lane * self.by) % count)

    def model(self, cells: Cells) -> Cells:
        count = len(cells[0])
        return [
            [row[(i + lane * self.by) % count] for i in range(count)]
            for lane, row in enumerate(cells)
        ]


@dataclass(frozen=True)
class Shared:
    """Through shared memory: stored by rows or columns, read elsewhere; barriers in between."""

    stored: str
    read: str
    shift: int
    pad: int
    barriers: str = "bb"
    reused: bool = False
    hole: bool = False

    def place(self, how: str, lane: Any, i: Any, lanes: int, count: int) -> Any:
        match how:
            case "rows":
                return i * (lanes + self.pad) + lane
            case "columns":
                return lane * (count + self.pad) + i
            case "rotated":
                return i * (lanes + self.pad) + (lane + i + self.shift) % lanes
            case _:  # beside: some lanes outside
                return i * (lanes + self.pad) + lane - self.shift

    def cells(self, lanes: int, count: int) -> int:
        return lanes * count + self.pad * max(lanes, count)

    def record(self, k: Tracer, r: ArrayHandle, lane: Expr, lanes: int, by: str) -> ArrayHandle:
        count = r.shape[0]
        s = k.shared(k._fresh("s"), self.cells(lanes, count))
        for _ in range(2 if self.reused else 1):
            for i in k.loop(count):
                s[self.place(self.stored, lane, i, lanes, count)] = r[i]
            if "b" in self.barriers[:1]:
                k.barrier()
            result = k.registers(r.shape)
            for i in k.loop(count):
                place = self.place(self.read, lane, i, lanes, count)
                if self.hole:
                    place = i * (lanes + self.pad) + k.swizzle(lane, lanes, i)
                result[i] = s[place]
            if "b" in self.barriers[1:]:
                k.barrier()
        return result

    def model(self, cells: Cells) -> Cells:
        lanes, count = len(cells), len(cells[0])
        every = list(itertools.product(range(lanes), range(count)))
        memory: dict[int, Cell] = {}
        for lane, i in every:
            memory[self.place(self.stored, lane, i, lanes, count)] = cells[lane][i]
        inside = range(self.cells(lanes, count))
        read = {(n, i): self.place(self.read, n, i, lanes, count) for n, i in every}
        return [
            [memory.get(p) if (p := read[n, i]) in inside else None for i in range(count)]
            for n in range(lanes)
        ]


@dataclass(frozen=True)
class Reduced:
    """All registers of a lane become one; some may be left out, each may have a weight."""

    when: str
    weighted: bool
    doubled: bool = False
    off: int = 0
    hole: bool = False

    def holds(self, lane: Any, i: Any) -> Any:
        if self.when == "always":
            return True
        return holds(lane + self.off, "<" if self.when == "below" else ">=", i + 1)

    def record(self, k: Tracer, r: ArrayHandle, lane: Expr, lanes: int, by: str) -> ArrayHandle:
        count, result = r.shape[0], k.registers(1)
        ending: dict[str, Any] = {}
        if self.doubled:
            ending = {"finalize": "doubled", "finish": lambda value: value * 2}
        total = k.accumulator(by, "*" if self.weighted else None, init=INIT.get(by), **ending)
        w = k.constant("w", count) if self.weighted else None
        for i in k.loop(count):
            items = (r[i],) if w is None else (r[i], w[i])
            total.add(*items, when=k.condition(lane, i) if self.hole else self.holds(lane, i))
        result[0] = total.value()
        return result

    def model(self, cells: Cells) -> Cells:
        return [
            [merged([self._item(c, i) for i, c in enumerate(row) if self.holds(lane, i)])]
            for lane, row in enumerate(cells)
        ]

    def _item(self, cell: Cell, i: int) -> Cell:
        if not self.weighted or cell is None:
            return cell
        return tuple((*item, ("w", (i,))) for item in cell)


Stage: TypeAlias = Moved | Turned | Shared | Reduced


def merged(cells: list[Cell]) -> Cell:
    if any(cell is None for cell in cells):
        return None
    return tuple(item for cell in cells for item in cell or ())
