"""Which blocks to try for a convolution, and in which order: by a model of a GPU's time.

The model counts what the slowest of a kernel's parts takes: products, accesses of local memory, and
waiting for memory where a multiprocessor has too few groups to do something else meanwhile. It only
orders candidates; what is fast is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil, prod

from warploom.array.recipe.blocked import LANES, Blocks
from warploom.array.workload import Convolution
from warploom.kernel.check import REGISTER_BYTES
from warploom.machine.rates import Rates
from warploom.machine.record import CUDA, Machine

SIDES = (32, 64, 96, 128, 256)
DEPTHS = (8, 16, 32, 64, 128)
HELD = (4, 8, 16)
MOST_PARTS = 18
SLICES = (1, 2, 4, 8)
THREADS = (64, 512)
ADDRESSES = 40  # registers for indices and what waits
WAITING = 900.0  # cycles from a fetch to the barrier behind it
ITERATION = 60.0  # instructions of a warp in an iteration that are neither products nor accesses
SHARE = 0.35  # of the peak of L2 that such accesses reach
SECOND_KERNEL = 2.5e-6  # seconds, inside a graph


def candidates(
    layer: Convolution, machine: Machine, rates: Rates, memory: int | None = None
) -> list[Blocks]:
    """All blocks that a machine has room for, the most promising first; `memory` is how many bytes
    may lie between kernels."""
    found = [
        each for each in _fitting(layer, machine)
        if memory is None or temporary_bytes(layer, each) <= memory
    ]  # fmt: skip
    return sorted(found, key=lambda blocks: seconds(layer, blocks, rates))


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


def seconds(layer: Convolution, blocks: Blocks, rates: Rates) -> float:
    """About how long a convolution takes."""
    threads = _threads(blocks)
    pixels, products = layer.rows * layer.columns, _products(layer)
    groups = ceil(pixels / blocks.bm) * ceil(layer.kernels / blocks.bn) * blocks.parts
    resident = min(
        rates.processor_blocks,
        rates.processor_threads // threads,
        rates.processor_shared // (blocks.shared_bytes + 1024),
        rates.processor_registers // (registers(blocks) * threads),
    )
    together = max(1, min(resident, ceil(groups / rates.processors)))
    warps = threads / CUDA.lanes
    arithmetic = blocks.rm * blocks.rn + (blocks.rm + blocks.rn) / LANES
    steps = blocks.bk / blocks.slices
    issued = warps * (arithmetic * steps + ITERATION) / 4
    read = warps * (blocks.rm + blocks.rn) / LANES * 2 * steps
    tiles = (blocks.bm + blocks.bn) * blocks.bk
    busy = max(issued, read + tiles / CUDA.lanes * blocks.near)
    iteration = max(together * busy, busy + WAITING)
    iterations = products // (blocks.bk * blocks.parts)
    rounds = ceil(groups / (rates.processors * together))
    reached = rates.device.l2_read * CUDA.sector_bytes * SHARE
    fetched = groups * iterations * tiles * REGISTER_BYTES / reached
    summed = 2 * blocks.slices * blocks.bm * blocks.bn / CUDA.lanes if blocks.slices > 1 else 0.0
    first = (
        max(rates.nanoseconds(rounds * (iterations * iteration + together * summed)), fetched)
        * 1e-9
    )
    stored = pixels * layer.kernels * REGISTER_BYTES
    if blocks.parts == 1:
        return first
    return first + stored * (2 * blocks.parts + 1) / (rates.device.dram * 1e9) + SECOND_KERNEL


def _products(layer: Convolution) -> int:
    return layer.kernel_height * layer.kernel_width * layer.channels


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
