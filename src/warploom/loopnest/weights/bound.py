"""A lower bound on the time of a product of packed weights, for all that may still be decided: what
comes from L2, and what its tensor cores do."""

from __future__ import annotations

import math

import numpy as np

from warploom.loopnest.matrix.bound import BY_TYPE, CORES
from warploom.loopnest.tiled import TiledBound
from warploom.loopnest.weights.product import WeightProduct
from warploom.loopnest.weights.space import WeightSpace
from warploom.loopnest.weights.tiling import COLUMNS, LANES, WeightTiling
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


LAUNCH = 2000.0  # nanoseconds of a kernel beside its tiles
WAITS = 900.0  # until the first bytes are there, and for what threads add up in shared memory
MEETS = 500.0  # where blocks of a cluster meet
L2_RATE, OWN_RATE = 7000.0, 115.0  # bytes of a nanosecond, of all and of one processor
UNPACKED, BESIDE = 2.0, 8.0  # instructions of a lane for a weight, and for a unit of the first


def expected(product: WeightProduct, tiling: WeightTiling, rates: Rates) -> float:
    """About how long a tiling takes, in nanoseconds: it ranks, and proves nothing."""
    across = math.ceil(product.columns.size / tiling.columns)
    down = math.ceil(product.rows.size / tiling.rows)
    blocks = across * down * tiling.cluster
    read = weight_bytes(product) * down + first_bytes(product) * across
    resident = max(1, min(
        2048 // (LANES * tiling.warps), 227_000 // tiling.shared_bytes(product.deep),
        65_536 // (LANES * tiling.warps * tiling.registers(product.deep, product.weights.bits)),
    ))  # fmt: skip
    waves = math.ceil(blocks / rates.processors)
    together = min(waves, resident)
    memory = max(read / L2_RATE, read / blocks * waves / OWN_RATE)
    span = tiling.span(product.deep)
    turns = math.ceil(product.over.size / (span * tiling.cluster))
    padded = turns * span * tiling.cluster / product.over.size
    weights = product.columns.size * product.over.size * down * padded / LANES
    units = product.over.size * tiling.rows / 8 * across * down * tiling.beside / LANES
    work = weights * (0.5 * UNPACKED * 8 / product.weights.bits * 0.5 + 0.1 * tiling.rows / 16)
    issued = (work + units * BESIDE) / (4 * rates.clock * rates.processors)
    uneven = waves * rates.processors / blocks if blocks > rates.processors else 1.0
    busy = min(1.0, blocks / rates.processors)
    rounds = turns * math.ceil(waves / together)
    adds = tiling.parts * tiling.rows * tiling.columns / (LANES * tiling.warps) * 4
    own = max(memory, issued / busy * uneven) + 0.5 * min(memory, issued / busy)
    waited = WAITS * (1 + 0.5 * (rounds - 1)) + adds + (MEETS if tiling.cluster > 1 else 0)
    return LAUNCH + waited + own
