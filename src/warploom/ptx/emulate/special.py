"""Special registers as arrays over the threads of a batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.driver import GIVEN, driver_word
from warploom.ptx.emulate.frame import WARP, Batch, Frame, Triple

Array = npt.NDArray[Any]

_AXES = {"x": 0, "y": 1, "z": 2}


def special_fetch(name: str) -> Callable[[Frame], Array]:
    """Reads a special register; values that never change are made once per batch."""
    if name.startswith(("%clock", "%globaltimer")):
        return lambda _: _clock(name)

    def fetch(f: Frame) -> Array:
        value = f.batch.special.get(name)
        if value is None:
            value = f.batch.special[name] = _make(name, f.batch)
            value.setflags(write=False)
        return value[f.index] if f.compact and value.size != 1 else value

    return fetch


def _clock(name: str) -> Array:
    now = time.perf_counter_ns()
    if name in ("%clock_hi", "%globaltimer_hi"):
        return np.array([now >> 32], np.uint32)
    if name in ("%clock", "%globaltimer_lo"):
        return np.array([now & 0xFFFFFFFF], np.uint32)
    return np.array([now], np.uint64)


def _make(name: str, batch: Batch) -> Array:
    base, _, axis = name.partition(".")
    if axis:
        return _axis(base, _AXES[axis], batch)
    if base.startswith("%lanemask_"):
        return _lane_mask(base.removeprefix("%lanemask_"), batch)
    if base.endswith("ctarank"):
        rank = (batch.block_of % batch.cluster_size).astype(np.uint32)
        return rank if base == "%cluster_ctarank" else np.array([batch.cluster_size], np.uint32)
    inside = np.arange(batch.threads, dtype=np.uint32) % batch.block_size
    match base:
        case "%laneid":
            return inside % np.uint32(WARP)
        case "%warpid":
            return inside // np.uint32(WARP)
        case "%nwarpid":
            return np.array([-(-batch.block_size // WARP)], np.uint32)
        case "%dynamic_smem_size":
            return np.array([batch.dynamic_shared], np.uint32)
        case "%total_smem_size" | "%aggr_smem_size":
            return np.array([batch.shared.size - batch.reserved], np.uint32)
        case _ if base in GIVEN:
            return np.array([driver_word(base, batch)], np.uint32)
        case "%nsmid":
            return np.array([1], np.uint32)
        case "%is_explicit_cluster":
            return np.array([batch.cluster_size > 1])
        case _:
            wide = base in ("%gridid", "%current_graph_exec")
            return np.array([0], np.uint64 if wide else np.uint32)


def _axis(base: str, axis: int, batch: Batch) -> Array:
    match base:
        case "%ntid":
            return np.array([batch.block[axis]], np.uint32)
        case "%nctaid":
            return np.array([batch.grid[axis]], np.uint32)
        case "%nclusterid":
            return np.array([batch.grid[axis] // batch.cluster[axis]], np.uint32)
        case "%tid":
            inside = np.arange(batch.threads, dtype=np.uint32) % np.uint32(batch.block_size)
            return _digit(inside, batch.block, axis)
        case "%ctaid" | "%clusterid":
            number = batch.numbers(np.arange(batch.blocks))
            value = _digit(number, batch.grid, axis)  # of each block
            if base == "%clusterid":
                value = value // np.uint32(batch.cluster[axis])
            same = value.size == 1 or bool((value == value[0]).all())
            return value[:1].copy() if same else value.take(batch.block_of)
        case "%cluster_nctaid":
            return np.array([batch.cluster[axis]], np.uint32)
        case "%cluster_ctaid":
            rank = (batch.block_of % batch.cluster_size).astype(np.uint32)
            return _digit(rank, batch.cluster, axis)
        case _:
            return np.array([0], np.uint32)


def _digit(number: Array, sizes: Triple, axis: int) -> Array:
    if sizes[axis] == 1:
        return np.array([0], np.uint32)
    # A grid may have more blocks than 32 bits can count.
    return (number // prod(sizes[:axis]) % sizes[axis]).astype(np.uint32)


def _lane_mask(relation: str, batch: Batch) -> Array:
    lane = batch.lane.astype(np.uint64)
    bit = np.uint64(1) << lane
    masks = {
        "eq": bit,
        "lt": bit - np.uint64(1),
        "le": bit * np.uint64(2) - np.uint64(1),
        "ge": ~(bit - np.uint64(1)),
        "gt": ~(bit * np.uint64(2) - np.uint64(1)),
    }
    return (masks[relation] & np.uint64(0xFFFFFFFF)).astype(np.uint32)
