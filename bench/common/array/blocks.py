"""Which blocks to try for a convolution, and in which order: by the time model.

What the kernels of some blocks do follows from their sizes, so none has to be lowered for it. The
model only orders candidates; what is fast is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, prod

import numpy as np
import numpy.typing as npt
from bench.common.array.blocked import LANES, Blocks

from warploom.array.workload import Convolution
from warploom.kernel.check import REGISTER_BYTES
from warploom.kernel.work import AT_ONCE
from warploom.machine.record import CUDA, Machine, timed
from warploom.machine.times import predicted
from warploom.machine.work import Work, stacked

SIDES = (32, 64, 96, 128, 256)
DEPTHS = (8, 16, 32, 64, 128)
HELD = (4, 8, 16)
MOST_PARTS = 18
SLICES = (1, 2, 4, 8)
THREADS = (64, 512)
ADDRESSES = 40  # registers for indices and what waits
ADDING = 256  # threads of a group that adds up parts


def candidates(layer: Convolution, machine: Machine, memory: int | None = None) -> list[Blocks]:
    """All blocks that a machine has room for, the most promising first; `memory` is how many bytes
    may lie between kernels."""
    found = [
        each for each in _fitting(layer, machine)
        if memory is None or temporary_bytes(layer, each) <= memory
    ]  # fmt: skip
    order: list[int] = np.argsort(seconds(layer, found, machine), kind="stable").tolist()
    return [found[at] for at in order]


def _fitting(layer: Convolution, machine: Machine) -> Iterator[Blocks]:
    pixels, products = layer.rows * layer.columns, _products(layer)
    deep = layer.channels % LANES == 0
    depths = DEPTHS if deep else _divisors(products)
    lanes = LANES if deep else 1
    for bm, bn, bk, rm, rn in product(SIDES, SIDES, depths, HELD, HELD):
        if (bm % (rm * LANES) and bm % rm) or bn % rn:
            continue
        if (deep and layer.channels % bk) or bm > 2 * pixels or bn > layer.kernels:
            continue
        for parts in _divisors(products // bk):
            if parts > MOST_PARTS:
                break
            for slices in SLICES:
                blocks = Blocks(bm, bn, bk, rm, rn, parts, lanes, slices)
                if _fits(blocks, machine):
                    yield blocks


def _fits(blocks: Blocks, machine: Machine) -> bool:
    across, threads = blocks.threads[0], _threads(blocks)
    if not THREADS[0] <= threads <= min(THREADS[1], machine.block_threads):
        return False
    if threads % machine.lanes or blocks.shared_bytes > machine.shared_bytes:
        return False
    if blocks.bk % blocks.slices or blocks.bm % blocks.slices:
        return False
    line = across * blocks.lanes * blocks.slices
    if any(side * blocks.bk % line for side in (blocks.bm, blocks.bn)):
        return False
    return registers(blocks) <= min(machine.thread_registers, machine.block_registers // threads)


def _threads(blocks: Blocks) -> int:
    return prod(blocks.threads) * blocks.slices


def temporary_bytes(layer: Convolution, blocks: Blocks) -> int:
    """Sums of parts that a second kernel adds up."""
    parts = blocks.parts if blocks.parts > 1 else 0
    return REGISTER_BYTES * parts * layer.rows * layer.columns * layer.kernels


def registers(blocks: Blocks) -> int:
    """Estimated registers per thread."""
    fetched = ceil((blocks.bm + blocks.bn) * blocks.bk / _threads(blocks))
    return blocks.rm * blocks.rn + blocks.rm + blocks.rn + fetched + ADDRESSES


def seconds(
    layer: Convolution, blocks: Sequence[Blocks], machine: Machine
) -> npt.NDArray[np.float64]:
    """About how long a convolution takes, in each of some blocks."""
    own = timed(machine)
    took = predicted(stacked([work(layer, each) for each in blocks]), own).nanoseconds
    adding = predicted(stacked([_adding(layer, each) for each in blocks]), own).nanoseconds
    several = np.array([each.parts > 1 for each in blocks])
    found: npt.NDArray[np.float64] = (took + np.where(several, adding, 0.0)) * 1e-9
    return found


def work(layer: Convolution, blocks: Blocks) -> Work:
    """What the kernel of these blocks does: counts of one group."""
    threads, products = _threads(blocks), _products(layer)
    warps = threads / CUDA.lanes
    pixels = layer.rows * layer.columns
    groups = ceil(pixels / blocks.bm) * ceil(layer.kernels / blocks.bn) * blocks.parts
    iterations = products // (blocks.bk * blocks.parts)
    steps = iterations * blocks.bk / blocks.slices
    tiles = iterations * (blocks.bm + blocks.bn) * blocks.bk / threads  # numbers of a thread
    held = blocks.rm * blocks.rn
    reads = (blocks.rm + blocks.rn) / LANES * steps
    requests = warps * (tiles / blocks.lanes + held / LANES)
    summed = 2 * blocks.slices * blocks.bm * blocks.bn / CUDA.lanes if blocks.slices > 1 else 0.0
    # A row of four numbers for each thread: neighbours of one row share a line.
    lines = requests * (CUDA.lanes / 2 / blocks.near if blocks.lanes == LANES else 1.0)
    bytes_ = REGISTER_BYTES * (tiles * threads + blocks.bm * blocks.bn)
    image = layer.height * layer.width * layer.channels
    every = image + products * layer.kernels + pixels * layer.kernels * blocks.parts
    return Work(
        blocks=groups,
        threads=threads,
        registers=held + blocks.rm + blocks.rn + tiles / iterations,
        shared_bytes=blocks.shared_bytes,
        arithmetic=2 * warps * held * steps,
        moves=warps * held,
        iterations=warps * steps,
        barriers=2 * iterations,
        longest=2 * held * steps + requests / warps + reads + tiles + steps,
        requests=requests,
        lines=lines,
        sectors=bytes_ / CUDA.sector_bytes,
        shared_requests=warps * (reads + tiles),
        wavefronts=warps * (2 * reads + tiles * blocks.near) + summed,
        global_rounds=iterations + 1,
        shared_rounds=steps / AT_ONCE,
        touched=REGISTER_BYTES * every,
        fetched=bytes_ * groups,
    )


def _adding(layer: Convolution, blocks: Blocks) -> Work:
    """What the second kernel does, which adds up the parts of each sum."""
    sums = layer.rows * layer.columns * layer.kernels
    warps = ADDING / CUDA.lanes
    bytes_ = REGISTER_BYTES * ADDING * (blocks.parts + 1)
    return Work(
        blocks=ceil(sums / ADDING),
        threads=ADDING,
        registers=2,
        shared_bytes=0,
        arithmetic=warps * blocks.parts,
        longest=2 * blocks.parts + 1,
        requests=warps * (blocks.parts + 1),
        lines=warps * (blocks.parts + 1),
        sectors=bytes_ / CUDA.sector_bytes,
        global_rounds=1,
        touched=REGISTER_BYTES * sums * (blocks.parts + 1),
        fetched=REGISTER_BYTES * sums * (blocks.parts + 1),
    )


def _products(layer: Convolution) -> int:
    return layer.kernel_height * layer.kernel_width * layer.channels


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
