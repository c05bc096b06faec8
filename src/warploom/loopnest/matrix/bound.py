"""A lower bound on the time of a product of matrices, for all that may still be decided: what its
tensor cores have to do, and what has to come from L2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.loopnest.matrix.product import MatrixProduct
from warploom.loopnest.matrix.space import MatrixSpace
from warploom.loopnest.matrix.tiling import Tiling
from warploom.loopnest.matrix.warp_space import WarpSpace
from warploom.loopnest.matrix.warp_tiling import WarpTiling
from warploom.loopnest.tiled import TiledBound
from warploom.machine.rates import Rates
from warploom.machine.record import CUDA
from warploom.search.branching.candidate import Numbers

CORES = 128  # products of f32 that a processor does in a cycle
BY_TYPE = {1: 4.0, 2: 2.0}  # times as many as of tf32, by the bytes of a factor


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

    def tiles(self, product: MatrixProduct) -> tuple[Numbers, Numbers]:
        """How many tiles clusters have, down and across."""
        down = self.rows * np.where(self.beside, 1.0, self.cluster)
        across = self.columns * np.where(self.beside, self.cluster, 1.0)
        return np.ceil(product.rows.size / down), np.ceil(product.columns.size / across)


SIDES = ("rows", "columns", "cluster", "beside")


def turns(product: MatrixProduct, rates: Rates, sides: Sides) -> Numbers:
    """How many tiles some processor makes at least."""
    high, wide = sides.tiles(product)
    found: Numbers = np.ceil(high * wide * product.batches * sides.cluster / rates.processors)
    return found


def tensor_time(product: MatrixProduct, rates: Rates, sides: Sides) -> Numbers:
    each = CORES * rates.tensor * BY_TYPE[product.a.array.dtype.bytes] * rates.clock
    return turns(product, rates, sides) * sides.rows * sides.columns * product.over.size / each


def l2_time(product: MatrixProduct, rates: Rates, sides: Sides) -> Numbers:
    """Tiles beyond the end of an axis are not read: only what there is counts. What a cluster
    shares comes once."""
    high, wide = sides.tiles(product)
    bytes_ = product.a.array.dtype.bytes * product.over.size * product.batches
    read = bytes_ * (wide * product.rows.size + high * product.columns.size)
    return read / (CUDA.sector_bytes * rates.device.l2_read)


LAUNCH = 2500.0  # nanoseconds of a kernel beside its tiles
FILLING = 700.0  # until the first stage of a block is there
BUSY = 0.82  # of the rate of tensor cores, where all else keeps up
LEAVING = 900.0  # cycles for results of a tile, where nothing else is done meanwhile
L2_RATE = 5500.0  # bytes of a nanosecond


def expected(product: MatrixProduct, tiling: Tiling | WarpTiling, rates: Rates) -> float:
    """About how long a tiling takes, in nanoseconds: it ranks, and proves nothing."""
    sides = Sides(*(np.array(float(getattr(tiling, name))) for name in SIDES))
    tensor = float(tensor_time(product, rates, sides)) / BUSY
    narrow = max(1.0, 1.6 * 64 / tiling.columns)  # factors of few columns come too slowly
    through = CUDA.sector_bytes * rates.device.l2_read / L2_RATE
    shared = through * float(l2_time(product, rates, sides))
    many = float(turns(product, rates, sides))
    leaving = many * LEAVING / rates.clock * tiling.sums / 128
    if tiling.boxes:
        leaving /= 2
    deep = 1.0 + 0.3 / tiling.stages
    return LAUNCH + FILLING + max(tensor * narrow * deep, shared) + leaving
