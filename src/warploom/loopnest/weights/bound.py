"""A lower bound on the time of a product of packed weights, for all that may still be decided: what
comes from L2, and what its tensor cores do."""

from __future__ import annotations

import math

import numpy as np

from warploom.loopnest.matrix.bound import BY_TYPE, CORES
from warploom.loopnest.tiled import TiledBound
from warploom.loopnest.weights.product import WeightProduct
from warploom.loopnest.weights.space import WeightSpace
from warploom.loopnest.weights.tiling import COLUMNS, LANES, ROWS, WeightTiling
from warploom.machine.rates import Rates
from warploom.machine.record import CUDA
from warploom.search.branching.candidate import Numbers

SIDES = ("rows", "wide", "beside")


class WeightBound(TiledBound):
    """Weights come once at least; the first factor comes to every block of columns."""

    def __init__(self, space: WeightSpace, rates: Rates) -> None:
        self.space, self.rates = space, rates
        values = [np.array(space.choices[name].values, np.float64) for name in SIDES]
        rows, wide, beside = np.meshgrid(*values, indexing="ij")
        product = space.product
        across = np.ceil(product.columns.size / (COLUMNS * wide * beside))
        read = weight_bytes(product) + across * first_bytes(product)
        l2: Numbers = read / (CUDA.sector_bytes * rates.device.l2_read)
        whole = np.ceil(product.rows.size / rows) * rows
        each = CORES * rates.tensor * BY_TYPE[2] * rates.clock * rates.processors
        tensor: Numbers = whole * product.columns.size * product.over.size / each
        terms = (
            (l2, "l2_read", "weights, and the first factor for each block of columns"),
            (tensor, "tensor cores", "all products, of whole rows of tiles"),
        )
        super().__init__(space, SIDES, terms)


def weight_bytes(product: WeightProduct) -> float:
    """Bytes of all weights and scales."""
    columns, scales = product.columns.size, product.scales
    found = columns * product.over.size * product.weights.bits / 8
    if scales is not None:
        found += columns * math.ceil(product.over.size / scales.group) * scales.array.dtype.bytes
    return float(found)


def first_bytes(product: WeightProduct) -> float:
    return float(product.rows.size * product.over.size * product.a.dtype.bytes)


# Of 49 tilings measured on an H200, whose kernels asked for less at once: within 1.2 µs of each.
LAUNCH = 3300.0  # nanoseconds of a kernel beside its tiles, until the first bytes are there
WAITS = 420.0  # of each turn, and of each wave of blocks
FIRST_RATE, OWN_RATE = 4000.0, 53.0  # bytes of a nanosecond: what all read, what one processor does
UNPACKED = 15.0  # cycles of a scheduler for 32 bits of weights of a warp, mostly of half its rate
MEETS, LOST = 300.0, 4  # nanoseconds where blocks of a cluster meet; processors it does not fill


def expected(product: WeightProduct, tiling: WeightTiling, rates: Rates) -> float:
    """About how long a tiling takes, in nanoseconds: it ranks, and proves nothing."""
    across = math.ceil(product.columns.size / tiling.columns)
    down = math.ceil(product.rows.size / tiling.rows)
    blocks = across * down * tiling.cluster
    threads, registers = LANES * tiling.warps, tiling.registers(product.deep, product.weights.bits)
    resident = max(1, min(
        2048 // threads, 227_000 // tiling.shared_bytes(product.deep),
        65_536 // (threads * registers),
    ))  # fmt: skip
    filled = rates.processors - LOST * max(0, tiling.cluster - 2)
    waves = math.ceil(blocks / (filled * resident))
    span = tiling.span(product.deep)
    turns = math.ceil(product.over.size / (span * tiling.cluster))
    each = math.ceil(blocks / rates.processors)  # blocks of the processor with most of them
    words = turns * span * tiling.columns * product.weights.bits / 32  # of a block
    own = each * (4 * words + turns * span * tiling.rows * product.a.dtype.bytes)
    tall = tiling.rows / ROWS
    steps = UNPACKED + 32 / product.weights.bits * (tall - 1) / 2
    issued = each * words / LANES * steps / (4 * rates.clock)
    read = first_bytes(product) * across / FIRST_RATE
    meets = MEETS if tiling.cluster > 1 else 0.0
    return LAUNCH + WAITS * turns * waves + read + own / OWN_RATE + issued + meets
