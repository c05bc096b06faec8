"""A tile through shared memory by accesses of 16 bytes, where all rows begin at a multiple of them.

    x[from + p + IN(q)]   →   memory[q / group, p]   →   y[to + OUT(p) + q]

A tile is made of words. A word has `group` elements along q for elements smaller than a word, put
together from as many rows when they are loaded. All loads of a thread come before its stores: what
is under way decides the speed. Blocks that follow each other write side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from warploom.catalogue.permute.frame import WORDS, Grid, Placed, Side, arrays, kept, placed
from warploom.index.ir import Expr
from warploom.kernel.build import Builder, RegisterArray, pick_bytes
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel, Value

LANES = 32
CHUNK = 16  # bytes of an access


@dataclass(frozen=True, slots=True)
class Vectors:
    """`p` × `q` elements of so many bytes for so many threads; `beside` lanes store words of one
    column; `whole`: 16 bytes that were loaded go to shared memory as they are."""

    bytes: int
    p: int
    q: int
    threads: int
    beside: int
    whole: bool = False
    grid: int = 2
    beyond: int = 0
    streaming: tuple[bool, bool] = (True, True)

    @property
    def word(self) -> int:
        return max(4, self.bytes)

    @property
    def group(self) -> int:
        """Elements of a word, along q."""
        return self.word // self.bytes

    @property
    def wide(self) -> int:
        """Elements of an access."""
        return CHUNK // self.bytes

    @property
    def words(self) -> int:
        """Words of an access."""
        return CHUNK // self.word

    @property
    def tall(self) -> int:
        """Rows of words."""
        return self.q // self.group

    @property
    def across(self) -> int:
        """Accesses side by side in a row that is read."""
        return self.p // self.wide

    @property
    def down(self) -> int:
        """Accesses side by side in a row that is written."""
        return self.q // self.wide

    @property
    def dtype(self) -> DType:
        return WORDS[self.word]

    @property
    def fits(self) -> bool:
        loads, stores = self.tall * self.across, self.p * self.down
        even = loads % self.threads == 0 and stores % self.threads == 0
        apart = self.down % self.beside == 0 and self.p % (LANES // self.beside) == 0
        return even and apart and loads >= self.threads <= stores

    @property
    def name(self) -> str:
        sides = f"{self.p}x{self.q}_{self.threads}_{self.beside}_{self.grid}{self.beyond}"
        way = "_whole" if self.whole else ""
        return f"permute_vector_{self.bytes}_{sides}{way}{kept(self.streaming)}"


@lru_cache(maxsize=64)
def vector_layout(tile: Vectors) -> Placed:
    """What the solver says of the very accesses that the kernel has."""
    columns = tile.p
    k = np.arange(tile.tall * tile.across).reshape(-1, LANES)
    row, column = k // tile.across, k % tile.across * tile.wide
    stored = (row * columns + column)[:, :, None] + np.arange(tile.wide)
    if not tile.whole:
        stored = stored.transpose(0, 2, 1).reshape(-1, LANES, 1)
    k = np.arange(tile.p * tile.down).reshape(-1, LANES)
    q, c = _store_at(tile, k)
    words = np.arange(tile.words)
    loaded = (q * tile.words)[:, None] + words[:, None]
    loaded = (loaded * columns + c[:, None]).reshape(-1, LANES, 1)
    return placed(tile.tall, columns, tile.word, stored, loaded)


def _store_at(tile: Vectors, k: Any) -> tuple[Any, Any]:
    """Access along q and column of the k-th store: `beside` lanes along q, the others across."""
    beyond, folds = LANES // tile.beside, tile.down // tile.beside
    q = k % tile.beside + k // LANES % folds * tile.beside
    c = k // tile.beside % beyond + k // (LANES * folds) * beyond
    return q, c


def vector_kernel(tile: Vectors) -> Kernel:
    return _VectorWriter(tile).write()


class _VectorWriter:
    def __init__(self, tile: Vectors) -> None:
        self.tile = tile
        self.layout = vector_layout(tile)
        what = f"Moves tiles of {tile.p} × {tile.q} elements of {tile.bytes} bytes, 16 at a time."
        self.k = k = Builder(tile.name, block=tile.threads, doc=f"{what}\n{self.layout.says}")
        self.x, self.y, self.x_size, self.y_size = arrays(k, tile.dtype)
        self.blocks = Grid(k, tile.grid, tile.beyond)
        self.p, self.q = Side(k, "p", 1), Side(k, "q", 1)

    def write(self) -> Kernel:
        k, tile = self.k, self.tile
        self.read, self.written, digits = self.blocks.begin()
        self.q.begin(digits[0])
        self.p.begin(digits[1])
        self.memory = k.shared("memory", tile.dtype, self.layout.slots)
        self._load()
        k.barrier()
        self._store()
        return k.done()

    def _load(self) -> None:
        k, tile = self.k, self.tile
        times = tile.tall * tile.across // tile.threads
        held = k.registers("held", tile.dtype, times * tile.group * tile.words)
        with k.loop("n", times) as n, k.loop("g", tile.group) as g:
            number = n * tile.threads + k.thread
            column = k.let("column", number % tile.across)
            row = k.let("row", number // tile.across * tile.group + g)
            at = k.let("at", (self.read + column + row * self.q.reads[0]) * tile.words)
            fits = at.ge(0).and_((at + tile.words).le(self.x_size))
            wanted = (column * tile.wide).lt(self.p.inside).and_(row.lt(self.q.inside)).and_(fits)
            held[(n * tile.group + g) * tile.words] = self.x.at(
                at, when=wanted, width=tile.words, streaming=tile.streaming[0]
            )
        with k.loop("n", times) as n:
            number = n * tile.threads + k.thread
            column = k.let("column", number % tile.across * tile.wide)
            row = k.let("row", number // tile.across)
            if tile.whole:
                self.memory.put(self.layout.at(row, column), held[n * 4], width=4)
            for c in range(0 if tile.whole else tile.wide):
                self.memory.put(self.layout.at(row, column + c), self._gathered(held, n, c))

    def _gathered(self, held: RegisterArray, n: Expr, c: int) -> Value:
        """Word c of a column, from `group` rows of 16 bytes."""
        tile, first = self.tile, n * self.tile.group * self.tile.words

        def part(g: int) -> Value:
            return held[first + g * tile.words + c // tile.group]

        if tile.group == 1:
            return part(0)
        if tile.group == 2:
            return pick_bytes(part(0), part(1), 0x7632 if c % 2 else 0x5410)
        one = c % 4 | (c % 4 + 4) << 4
        low, high = pick_bytes(part(0), part(1), one), pick_bytes(part(2), part(3), one)
        return pick_bytes(low, high, 0x5410)

    def _store(self) -> None:
        k, tile = self.k, self.tile
        got = k.registers("got", tile.dtype, tile.words)
        with k.loop("n", tile.p * tile.down // tile.threads) as n:
            along, across = _store_at(tile, n * tile.threads + k.thread)
            q, c = k.let("along", along), k.let("across", across)
            for i in range(tile.words):
                got[i] = self.memory.at(self.layout.at(q * tile.words + i, c))
            at = k.let("at", (self.written + q + c * self.p.writes[0]) * tile.words)
            fits = at.ge(0).and_((at + tile.words).le(self.y_size))
            wanted = (q * tile.wide).lt(self.q.inside).and_(c.lt(self.p.inside)).and_(fits)
            self.y.put(at, got[0], when=wanted, width=tile.words, streaming=tile.streaming[1])
