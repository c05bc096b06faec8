"""A lower bound on the time of attention, for all that may still be decided: what its tensor cores
and its units for exponentials have to do."""

from __future__ import annotations

from functools import partial

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
HIDDEN = 0.6  # of what takes less, tensor cores or exponentials, is not under the other
SLOWER = 1.13  # than at the highest clock
CROWDED = 1.2  # where conditions on keys want registers that scores have
BETWEEN = 450  # cycles of a block of keys in which warp groups wait


def scores(attention: Attention, queries: int, keys: int) -> float:
    """How many scores all tiles compute: those of whole blocks of keys."""
    made = 0
    for first in range(0, attention.queries, queries):
        begin, end = attention.blocks(first, first + queries - 1, keys)
        made += end - begin
    return float(made) * queries * keys * attention.all_heads


def packed_scores(attention: Attention, keys: int) -> float:
    """The same where all queries of heads that share keys are one tile."""
    begin, end = attention.blocks(0, attention.queries - 1, keys)
    rows = -(-attention.queries * attention.groups // ROWS) * ROWS
    return float(end - begin) * rows * keys * attention.all_heads / attention.groups


def memory_time(attention: Attention, rates: Rates, kept: int = 0) -> float:
    """Nanoseconds in which keys and values come once, and so do queries and results; but so many
    bytes, which an earlier launch may have left in L2."""
    begin, end = attention.blocks(0, attention.queries - 1, 1)
    rows = 2 * (end - begin) / attention.groups + 2 * attention.queries
    bytes_ = rows * attention.all_heads * attention.head * attention.dtype.bytes
    return max(0.0, bytes_ - kept) / rates.device.dram


def tensor_time(attention: Attention, rates: Rates, some: float) -> float:
    """Nanoseconds of two products for each of some scores, on all processors."""
    each = CORES * rates.tensor * BY_TYPE[attention.dtype.bytes] * rates.clock * rates.processors
    return 2 * attention.head * some / each


def exponential_time(_: Attention, rates: Rates, some: float) -> float:
    return some / (EXPONENTIALS * rates.clock * rates.processors)


class AttentionBound(TiledBound):
    """Two products and an exponential for each score; all arrays once."""

    def __init__(self, space: AttentionSpace, rates: Rates) -> None:
        self.space, self.rates = space, rates
        groups, keys = (space.choices[name].values for name in SIDES)
        own, packed = space.attention, 1 in space.choices["packed"].values
        some = np.array([
            [packed_scores(own, int(n)) if packed else scores(own, ROWS * int(g), int(n))
             for n in keys] for g in groups
        ])  # fmt: skip
        self.tensor, self.exponential = (
            np.vectorize(partial(time, own, rates), otypes=[np.float64])(some)
            for time in (tensor_time, exponential_time)
        )
        self.memory = np.full(some.shape, memory_time(own, rates, rates.l2_bytes))
        terms = (
            (self.tensor, "tensor cores", "two products for each score, on all processors"),
            (self.exponential, "exponentials", "one for each score, on all processors"),
            (self.memory, "dram", "keys and values once, queries and results"),
        )
        super().__init__(space, SIDES, terms)


def expected(attention: Attention, tiling: AttentionTiling, rates: Rates) -> float:
    """About how long a tiling takes, in nanoseconds: it ranks, and proves nothing. Factors are
    those of `bench/results/kernel_attention_device.json`."""
    if tiling.packed:
        return packed_expected(attention, tiling, rates)
    some = scores(attention, tiling.queries, tiling.keys)
    tensor = tensor_time(attention, rates, some)
    exponential = exponential_time(attention, rates, some) * functions(attention)
    waits = waiting_time(tiling, rates, some)
    own = (max(tensor, exponential) + HIDDEN * min(tensor, exponential) + waits) * SLOWER
    if tiling.consumers == 1:
        own = (tensor + 2 * exponential + waits) * SLOWER
    tiles = tiling.tiles(attention)
    if attention.causal:  # rows of any length, which whole blocks balance as they end
        own *= CROWDED if tiling.keys > 128 else 1.0
        if tiling.together > 1:
            return LAUNCH + own * (1.35 if tiling.persistent else 1.0)
        return LAUNCH + own * (1.09 if tiling.persistent and tiling.resident == 1 else 1.08)
    turns = np.ceil(tiles / rates.processors) * rates.processors / tiles
    between = 1.0 if tiling.persistent and tiling.resident > 1 else 1.04
    return LAUNCH + own * float(turns) * (between if tiling.persistent else 1.1)


def functions(attention: Attention) -> float:
    """How many exponentials and roots are computed for each score."""
    return 1.0 if attention.map is None else 1.0 + attention.map.functions


def waiting_time(tiling: AttentionTiling, rates: Rates, some: float) -> float:
    """What blocks of keys take beside their scores."""
    blocks = some / (tiling.queries * tiling.keys)
    return blocks * BETWEEN / (rates.clock * rates.processors)


FLIGHT = 50_000  # bytes that have to be under way to a processor, or memory waits
REACHED = 0.92  # of the rate of memory, by copies


def packed_expected(attention: Attention, tiling: AttentionTiling, rates: Rates) -> float:
    """About how long keys and values take to come, or to be computed with where that is longer;
    and what puts splits together."""
    some = packed_scores(attention, tiling.keys)
    exponential = exponential_time(attention, rates, some) * functions(attention)
    own = tensor_time(attention, rates, some) + 2 * exponential
    own += 2 * waiting_time(tiling, rates, some)
    each = tiling.shared_bytes(attention)
    beside = 1 if tiling.persistent else max(1, rates.processor_shared // each)
    each_stage = 2 * tiling.keys * attention.head * attention.dtype.bytes
    held = (tiling.stages - 1) * each_stage * beside  # one is being computed with
    memory = memory_time(attention, rates) / REACHED / min(1.0, held / FLIGHT)
    room = rates.processors * beside
    tiles = tiling.tiles(attention)
    turns = float(np.ceil(tiles / room)) * room / tiles
    filling = 1.0 if tiling.persistent else 1.03
    time = LAUNCH + max(memory * filling, own / beside) * turns
    if tiling.splits == 1:
        return time
    parts = tiling.splits * attention.queries * attention.all_heads * (attention.head + 1) * 4
    return time + LAUNCH + 2 * parts / rates.device.dram
