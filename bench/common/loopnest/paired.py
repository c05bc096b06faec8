"""Computations of which `pairs/` has several kernels each, with their launches, small and full.

All kernels take (a, b, c, m, n, k). The small launch is for the emulator: its blocks do as much as
those of the full one. `counted` predicts the full launch from it, as a user's report would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from warploom import ptx
from warploom.machine.record import H200
from warploom.machine.times import Prediction, predicted
from warploom.ptx.work import counted
from warploom.runtime.compile import compile_cuda

FOLDER = Path(__file__).parent / "pairs"
Sizes = tuple[int, int, int]  # m, n, k
Grid = Callable[[int, int, int], tuple[int, ...]]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Way:
    """One kernel: blocks of these threads, as many as `grid` says."""

    grid: Grid
    block: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Kernels of one computation; `lengths` are those of a, b and c."""

    file: str
    small: Sizes
    full: Sizes
    lengths: Callable[[int, int, int], tuple[int, int, int]]
    ways: Mapping[str, Way]


def lines(per: int, block: int = 256) -> Way:
    """A thread has `per` of m numbers."""
    return Way(lambda m, n, k: (-(-m // (per * block)),), (block,))


def planes(rows: bool = False, deep: bool = False) -> Way:
    """Blocks of 32 by 8 over columns and rows, or over `rows` and columns."""

    def grid(m: int, n: int, k: int) -> tuple[int, ...]:
        x, y = (m, n) if rows else (n, m)
        return (x // 32, y // 8, k) if deep else (x // 32, y // 8)

    return Way(grid, (32, 8))


def blocks(block: int = 256, of: Callable[[int, int, int], int] = lambda m, n, k: m) -> Way:
    """A block for each of m, or of as many as `of` says."""
    return Way(lambda m, n, k: (of(m, n, k),), (block,))


TILE = Way(lambda m, n, k: (n // 32, m // 32), (32, 8))
WARPS = Way(lambda m, n, k: (m // 8,), (256,))
EACH = blocks(of=lambda m, n, k: m * n // 256)
MILLIONS = 1 << 24
TABLE = (
    Group("moves", (1 << 16, 1, 1), (MILLIONS, 1, 1), lambda m, n, k: (m, m, m), {
        "axpy_plain": lines(1), "axpy_wide": lines(4), "axpy_own": lines(16),
        "axpy_apart": lines(1), "axpy_crowded": lines(1)}),
    Group("moves", (256, 256, 1), (4096, 4096, 1), lambda m, n, k: (m * n, 1, m * n), {
        "transpose_reads": planes(), "transpose_writes": planes(rows=True),
        "transpose_tile": TILE, "transpose_padded": TILE}),
    Group("moves", (1 << 14, 1, 1), (1 << 22, 1, 1), lambda m, n, k: (8 * m, m, m), {
        "field_of_structures": lines(1), "field_of_arrays": lines(1)}),
    Group("moves", (1 << 14, 1, 1), (1 << 22, 1, 1), lambda m, n, k: (8 * m, 8 * m, m), {
        "fields_of_structures": lines(1), "fields_of_arrays": lines(1), "fields_wide": lines(1),
        "fields_staged": lines(1, 128)}),
    Group("moves", (256, 4096, 1), (4096, 4096, 1), lambda m, n, k: (m, n, m * n), {
        "outer_rows": planes(), "outer_columns": planes(rows=True), "outer_thread": lines(1)}),
    Group("moves", (256, 1024, 1), (16384, 1024, 1), lambda m, n, k: (m * n, m, m * n), {
        "scaled_rows": blocks(), "scaled_thread": lines(1, 128), "scaled_each": EACH}),
    Group("folds", (256, 1024, 1), (16384, 1024, 1), lambda m, n, k: (m * n, 1, m), {
        "rows_thread": lines(1, 128), "rows_warp": WARPS, "rows_block": blocks(),
        "rows_one": blocks()}),
    Group("folds", (1024, 256, 1), (1024, 16384, 1), lambda m, n, k: (m * n, 1, n), {
        "columns_thread": blocks(of=lambda m, n, k: n // 256),
        "columns_warp": blocks(of=lambda m, n, k: n // 8),
        "columns_block": Way(lambda m, n, k: (n // 32,), (32, 32))}),
    Group("folds", (256, 4096, 1), (8192, 4096, 1), lambda m, n, k: (m * n, n, m), {
        "matvec_thread": lines(1, 128), "matvec_warp": WARPS, "matvec_wide": WARPS}),
    Group("folds", (256, 1024, 1), (16384, 1024, 1), lambda m, n, k: (m * n, 1, m * n), {
        "softmax_thread": lines(1, 128), "softmax_warp": WARPS, "softmax_block": blocks()}),
    Group("folds", (1 << 13, 1, 1), (MILLIONS, 1, 1), lambda m, n, k: (m, 1, m), {
        "scan_thread": lines(1), "scan_shared": lines(1), "scan_shuffles": lines(1),
        "scan_one": lines(1)}),
    Group("folds", (1 << 16, 1, 1), (MILLIONS, 1, 1), lambda m, n, k: (m, 1, m // 128), {
        each: lines(16) for each in ("classes_shared", "classes_own", "classes_again")}),
    Group("products", (64, 64, 512), (1024, 1024, 512),
        lambda m, n, k: (m * k, k * n, m * n), {
        "product_plain": planes(), "product_across": planes(rows=True),
        "product_tiles": Way(lambda m, n, k: (n // 16, m // 16), (16, 16)),
        "product_registers": Way(lambda m, n, k: (n // 64, m // 64), (256,))}),
    Group("products", (512, 1, 1), (1 << 16, 1, 1), lambda m, n, k: (256 * m,) * 3, {
        "small_thread": lines(1, 128), "small_block": blocks(), "small_shared": blocks()}),
    Group("products", (1024, 1, 1024), (1 << 17, 1, 1024), lambda m, n, k: (m, k, m), {
        "bodies_global": lines(1), "bodies_shared": lines(1), "bodies_divided": lines(1)}),
    Group("products", (1 << 13, 1, 1), (1 << 22, 1, 1), lambda m, n, k: (m, 1, m), {
        "horner": lines(1), "horner_four": lines(1), "powers": lines(1)}),
    Group("products", (1 << 13, 1, 1), (1 << 22, 1, 1), lambda m, n, k: (m, 1, m), {
        "rounds_straight": lines(1), "rounds_conflicts": lines(1), "rounds_global": lines(1)}),
    Group("stencils", (128, 4096, 1), (4096, 4096, 1), lambda m, n, k: (m * n, 1, m * n), {
        "five_rows": planes(), "five_columns": planes(rows=True), "five_shared": planes(),
        "five_thread": lines(1, 128), "five_small": Way(lambda m, n, k: (n // 32, m), (32,))}),
    Group("stencils", (1 << 14, 1, 1), (MILLIONS, 1, 1), lambda m, n, k: (m + 64, 1, m), {
        "window_global": lines(1), "window_shared": lines(1), "window_runs": lines(8)}),
    Group("stencils", (32, 32, 256), (256, 256, 256), lambda m, n, k: (m * n * k, 1, m * n * k), {
        "seven_columns": planes(deep=True),
        "seven_planes": Way(lambda m, n, k: (k // 32, m // 8, n), (32, 8)),
        "seven_march": planes()}),
    Group("stencils", (1 << 13, 1, 1), (1 << 22, 1, 1), lambda m, n, k: (m, 1, m), {
        "parting_lanes": lines(1), "parting_warps": lines(1)}),
    Group("stencils", (256, 256, 1), (8192, 4096, 1), lambda m, n, k: (m * n, 1, m * n // 4), {
        each: blocks(of=lambda m, n, k: m * n // 1024)
        for each in ("halved", "halved_wide", "halved_columns")}),
)  # fmt: skip


def kernels() -> Iterator[tuple[Group, str]]:
    for group in TABLE:
        for name in group.ways:
            yield group, name


def inputs(group: Group, sizes: Sizes) -> tuple[Array, Array, Array]:
    """a and b between 0 and 1; fields are the same in both orders."""
    random = np.random.default_rng(0)
    first, second, third = group.lengths(*sizes)
    a = random.random(first, np.float32)
    b = random.random(second, np.float32)
    if first == 8 * sizes[0]:
        by_field = a.reshape(-1, 8).T
        b = np.ascontiguousarray(by_field if second == first else by_field[0]).reshape(-1)
    return a, b, np.zeros(third, np.float32)


def text(file: str) -> str:
    return (FOLDER / f"{file}.cu").read_text()


@cache
def module(file: str) -> Any:
    return ptx.load(compile_cuda(text(file), "sm_90", contract=True).text, f"{file}.ptx")


def foretold(group: Group, name: str) -> tuple[Prediction, Array]:
    """The time of the full launch, and what the small one stored."""
    way, (a, b, c) = group.ways[name], inputs(group, group.small)
    grid = way.grid(*group.small)
    kernel = module(group.file).kernel(name)
    found = counted(kernel, grid, way.block, [a, b, c, *map(np.int32, group.small)])
    many = prod(way.grid(*group.full)) / prod(grid)
    more = {
        each: getattr(found.work, each) * many for each in ("touched", "fetched", "asked", "runs")
    }
    most = 4 * sum(group.lengths(*group.full))
    more["touched"] = min(more["touched"], most)
    return predicted(replace(found.work, blocks=prod(way.grid(*group.full)), **more), H200), c
