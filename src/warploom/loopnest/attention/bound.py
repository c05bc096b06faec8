"""A lower bound on the time of attention, for all that may still be decided: what its tensor cores
and its units for exponentials have to do."""

from __future__ import annotations

import numpy as np

from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.space import AttentionSpace
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.loopnest.matrix.bound import BY_TYPE, CORES, LAUNCH
from warploom.loopnest.matrix.tiling import ROWS
from warploom.loopnest.tiled import TiledBound
from warploom.machine.rates import Rates

EXPONENTIALS = 16.0  # that a processor computes in a cycle
SIDES = ("consumers", "keys")  # what the work of a tile depends on
BUSY = 0.75  # of the rates of both, where they are overlapped


def scores(attention: Attention, queries: int, keys: int) -> float:
    """How many scores all tiles compute: those of whole blocks of keys."""
    first = np.arange(0, attention.queries, queries)
    begin, end = np.zeros_like(first), np.full_like(first, -(-attention.keys // keys))
    if attention.causal:
        seen = np.clip(first + queries + attention.shift, 0, attention.keys)
        end = np.maximum(-(-seen // keys), 1)
    if attention.window is not None:
        begin = np.maximum(first + attention.shift - attention.window + 1, 0) // keys
    return float((end - begin).sum()) * queries * keys * attention.all_heads


def tensor_time(attention: Attention, rates: Rates, queries: int, keys: int) -> float:
    """Nanoseconds of two products for each score, on all processors."""
    each = CORES * rates.tensor * BY_TYPE[attention.dtype.bytes] * rates.clock * rates.processors
    return 2 * attention.head * scores(attention, queries, keys) / each


def exponential_time(attention: Attention, rates: Rates, queries: int, keys: int) -> float:
    return scores(attention, queries, keys) / (EXPONENTIALS * rates.clock * rates.processors)


class AttentionBound(TiledBound):
    """Two products and an exponential for each score."""

    def __init__(self, space: AttentionSpace, rates: Rates) -> None:
        self.space, self.rates = space, rates
        groups, keys = (space.choices[name].values for name in SIDES)
        sizes = [[(ROWS * int(g), int(n)) for n in keys] for g in groups]
        self.tensor, self.exponential = (
            np.array([[time(space.attention, rates, *each) for each in row] for row in sizes])
            for time in (tensor_time, exponential_time)
        )
        terms = (
            (self.tensor, "tensor cores", "two products for each score, on all processors"),
            (self.exponential, "exponentials", "one for each score, on all processors"),
        )
        super().__init__(space, SIDES, terms)


def expected(attention: Attention, tiling: AttentionTiling, rates: Rates) -> float:
    """About how long a tiling takes, in nanoseconds: it ranks, and proves nothing."""
    size = tiling.queries, tiling.keys
    tensor = tensor_time(attention, rates, *size)
    exponential = exponential_time(attention, rates, *size)
    own = max(tensor, exponential) / BUSY + 0.15 * min(tensor, exponential)
    if tiling.consumers == 1:
        own = tensor + 2 * exponential
    tiles = tiling.tiles(attention)
    if attention.causal:  # rows of any length, which whole blocks balance as they end
        uneven = 1.3 if tiling.persistent and tiling.together > 1 else 1.0
        apart = 1.08 if tiling.together == 1 and not tiling.persistent else 1.0
        return LAUNCH + own * uneven * apart
    turns = np.ceil(tiles / rates.processors) * rates.processors / tiles
    between = 1.0 if tiling.persistent and tiling.resident > 1 else 1.04
    return LAUNCH + own * float(turns) * (between if tiling.persistent else 1.1)
