"""A lower bound on the time of a product of matrices, for all that may still be decided: what its
tensor cores have to do, and what has to come from L2. And about how long a tiling takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.loopnest.matrix.product import MatrixProduct
from warploom.loopnest.matrix.space import MatrixSpace
from warploom.loopnest.matrix.tiling import SUM, Tiling, line_bytes
from warploom.loopnest.matrix.warp_space import WarpSpace
from warploom.loopnest.matrix.warp_tiling import WarpTiling
from warploom.loopnest.tiled import TiledBound
from warploom.machine.rates import Rates
from warploom.machine.record import CUDA
from warploom.search.branching.candidate import Numbers

CORES = 128  # products of f32 that a processor does in a cycle
BY_TYPE = {1: 4.0, 2: 2.0, 4: 1.0}  # times as many as of tf32, by the bytes of a factor


class MatrixBound(TiledBound):
    """A processor makes one tile after another, each with all the products that it is cut into;
    each tile brings its factors from L2."""

    def __init__(self, space: MatrixSpace | WarpSpace, rates: Rates) -> None:
        self.space, self.rates = space, rates
        values = [np.array(space.choices[name].values, np.float64) for name in SIDES]
        sides = Sides(*np.meshgrid(*values, indexing="ij"))
        self.tensor = tensor_time(space.product, rates, sides)
        self.l2 = l2_time(space.product, rates, sides)
        why = "all products of all tiles, on one processor after another"
        terms = (
            (self.tensor, "tensor cores", why), (self.l2, "l2_read", "the factors of every tile")
        )  # fmt: skip
        super().__init__(space, SIDES, terms)


@dataclass(frozen=True, slots=True)
class Sides:
    """Tiles, and how blocks of a cluster lie."""

    rows: Numbers
    columns: Numbers
    cluster: Numbers
    beside: Numbers
    split: Numbers

    def tiles(self, product: MatrixProduct) -> tuple[Numbers, Numbers]:
        """How many tiles clusters have, down and across."""
        down = self.rows * np.where(self.beside, 1.0, self.cluster)
        across = self.columns * np.where(self.beside, self.cluster, 1.0)
        return np.ceil(product.rows.size / down), np.ceil(product.columns.size / across)


SIDES = ("rows", "columns", "cluster", "beside", "split")


def turns(product: MatrixProduct, rates: Rates, sides: Sides) -> Numbers:
    """How many tiles, or parts of the sums of tiles, some processor makes at least."""
    high, wide = sides.tiles(product)
    blocks = high * wide * product.batches * sides.cluster * sides.split
    found: Numbers = np.ceil(blocks / rates.processors)
    return found


def tensor_time(product: MatrixProduct, rates: Rates, sides: Sides) -> Numbers:
    each = CORES * rates.tensor * BY_TYPE[product.a.array.dtype.bytes] * rates.clock
    deep = product.over.size / sides.split
    return turns(product, rates, sides) * sides.rows * sides.columns * deep / each


def l2_time(product: MatrixProduct, rates: Rates, sides: Sides) -> Numbers:
    """Tiles beyond the end of an axis are not read: only what there is counts. What a cluster
    shares comes once."""
    high, wide = sides.tiles(product)
    bytes_ = product.a.array.dtype.bytes * product.over.size * product.batches
    read = bytes_ * (wide * product.rows.size + high * product.columns.size)
    return read / (CUDA.sector_bytes * rates.device.l2_read)


# What a tiling takes beside its bound, about, as an H200 has it.
LAUNCH = 1600.0  # nanoseconds of a kernel beside its tiles
FILLING = 600.0  # until the first stage of a block is there
BUSY = 0.88  # of the rate of tensor cores, where all else keeps up
PORT = 90.0  # bytes of a cycle that come to a processor
L2_RATE = 15000.0  # bytes of a nanosecond that come to all of them
LINE_CYCLES = 0.9  # of a copy, for each row of a box, however short
READ = 110.0  # bytes of a cycle that products read of shared memory
DELAY = 1000.0  # cycles from asking for a stage until it is there
LEAVING = 900.0  # cycles for results of a tile, where nothing else is done meanwhile
SENDING, MEETING = 25.0, 500.0  # bytes of a nanosecond from block to block; nanoseconds until then
AT_ONCE = 6.0  # the power that times of what is done at once are added in
GROUPED = 16  # processors that clusters lie inside of


def expected(product: MatrixProduct, tiling: Tiling | WarpTiling, rates: Rates) -> float:
    """About how long a tiling takes, in nanoseconds: it ranks, and proves nothing."""
    sides = Sides(*(np.array(float(getattr(tiling, name))) for name in SIDES))
    high, wide = sides.tiles(product)
    blocks = float(high * wide) * product.batches * tiling.blocks
    room = rates.processors * (GROUPED // tiling.blocks * tiling.blocks) / GROUPED
    many = np.ceil(blocks / room)
    steps = np.ceil(product.over.size / tiling.deep / tiling.split)
    step = stage_cycles(product, tiling, rates) / rates.clock
    through = CUDA.sector_bytes * rates.device.l2_read / L2_RATE
    shared = through * float(l2_time(product, rates, sides))
    leaving = many * LEAVING / rates.clock * tiling.share / 128
    if tiling.boxes:
        leaving /= 2
    elif product.step(product.columns) != 1:  # one after another
        leaving *= 2
    found: float = LAUNCH + FILLING + _together(many * (steps + 1) * step, shared) + leaving
    return found + exchange_time(tiling)


def stage_cycles(product: MatrixProduct, tiling: Tiling | WarpTiling, rates: Rates) -> float:
    """Cycles of a processor for a stage: of products, of what they read, of what comes, and of the
    wait for it where stages are few."""
    size, t = product.a.array.dtype.bytes, tiling
    deep = t.deep * size  # bytes
    tensor = t.rows * t.columns * t.deep / (CORES * rates.tensor * BY_TYPE[size]) / BUSY
    read = t.reads * deep / READ
    port = (t.rows + t.columns) * deep / PORT
    lines = sum(
        side * deep / line_bytes(side * size, factor.dense)
        for side, factor in ((t.rows, product.a), (t.columns, product.b))
    )
    return _together(tensor, read, port, lines * LINE_CYCLES, DELAY / (t.stages - 1))


def _together(*times: float) -> float:
    """The longest of what is done at once, and a little of the others."""
    return float(sum(each**AT_ONCE for each in times) ** (1 / AT_ONCE))


def exchange_time(tiling: Tiling | WarpTiling) -> float:
    """Nanoseconds until the parts of a sum are where they are added."""
    if tiling.split == 1:
        return 0.0
    sent = (tiling.split - 1) / tiling.split * tiling.rows * tiling.columns * SUM
    return MEETING + sent / SENDING
