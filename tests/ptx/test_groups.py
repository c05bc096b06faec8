"""Cooperative groups: grids that meet, tiles of several warps, and the memory that they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom.errors import DeadlockError, DeviceError, KernelError
from warploom.machine.memory import per_owner
from warploom.machine.report import Report
from warploom.ptx import load
from warploom.ptx.emulate.driver import begin_reserved

PTX = (Path(__file__).parent / "groups" / "groups.ptx").read_text()
MODULE = load(PTX, "groups.ptx")


def launched(
    name: str, grid: int = 1, block: int = 256, **options: Any
) -> tuple[Report, np.ndarray, np.ndarray]:
    a = np.arange(grid * block, dtype=np.int32) * 7 % 1000
    b = np.zeros_like(a)
    options = {"races": "all", "seconds": 60, **options}
    report = MODULE.kernel(name).launch(grid, block, [a, b], **options)
    return report, a, b


@pytest.mark.parametrize("schedule", [None, 1, 2])
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (3, 64), (7, 33)])
def test_a_grid_meets(grid: int, block: int, schedule: int | None) -> None:
    """Whoever runs first, and no race: the workspace has a barrier that releases and acquires."""
    report, a, b = launched("mirrored", grid, block, schedule=schedule)
    assert np.array_equal(b, a[::-1])
    assert report.races == []


def test_a_grid_meets_again_and_again() -> None:
    grid, block = 4, 32
    start = np.arange(grid * block, dtype=np.int32) * 7 % 1000
    report, a, b = launched("steps", grid, block)
    assert np.array_equal(a, np.roll(start, -4) + 4)
    assert np.array_equal(b, np.roll(start, -3) + 3)
    assert report.races == []


def test_a_second_launch_meets_too() -> None:
    for _ in range(2):
        _, a, b = launched("mirrored", 2, 32)
        assert np.array_equal(b, a[::-1])


def test_a_grid_that_does_not_meet_races() -> None:
    report, _, b = launched("mirrored_without_sync", 3, 64, benign=False)
    assert report.races
    assert (b >= 0).all()  # the group is valid, as after a cooperative launch


def test_a_block_that_leaves_is_a_deadlock_at_once() -> None:
    with pytest.raises(DeadlockError):
        launched("one_block_leaves", 3, 64)


def test_more_blocks_than_run_at_once_are_refused_as_a_driver_refuses_them() -> None:
    """An H200 has 132 multiprocessors with 2048 threads, 32 blocks and 228 KB each."""
    a = np.zeros(1, np.int32)
    for grid, block, shared in ((4225, 32, 0), (265, 1024, 0), (133, 32, 120_000)):
        with pytest.raises(DeviceError, match="a grid that meets has"):
            MODULE.kernel("mirrored").launch(grid, block, [a, a], shared_bytes=shared)


@pytest.mark.parametrize("schedule", [None, 3])
def test_tiles_of_several_warps(schedule: int | None) -> None:
    thread = np.arange(256)
    wanted = {
        "pairs_of_warps": lambda a: a[thread ^ 63] + thread // 64,
        "broadcast": lambda a: np.repeat(a[40::64], 64),
        "dynamic_too": lambda a: a[thread ^ 32],
    }
    for name, of in wanted.items():
        dynamic = 1024 if name == "dynamic_too" else 0
        report, a, b = launched(name, schedule=schedule, shared_bytes=dynamic)
        assert np.array_equal(b, of(a)), name
        assert report.races == [], name


@pytest.mark.parametrize(("model", "races"), [("practice", False), ("ptx", True)])
def test_sums_of_tiles_are_right_and_the_library_orders_lanes_by_a_shuffle_alone(
    model: str, races: bool
) -> None:
    """The last warp's first lane acquires what the others wrote, and tells its warp by a shuffle,
    which orders no memory by the manual: docs/without-gpu.md says so."""
    report, a, b = launched("sums_of_tiles", benign=True, model=model)
    assert np.array_equal(b, np.repeat((a + 1).reshape(-1, 128).sum(1), 128))
    assert bool(report.races) is races
    assert not any(race.breaks for race in report.races)
    assert all(race.region == "shared memory" for race in report.races)
    assert all(race.offset < 1024 for race in report.races)  # the system's, none of the user's


def test_a_tile_orders_its_own_threads_alone() -> None:
    assert launched("pairs_without_sync", check=False)[0].races


def test_what_is_kept_for_the_system_is_no_memory_of_the_block() -> None:
    """A block has its bytes behind it, with the same bounds as without."""
    with pytest.raises(KernelError, match="out-of-bounds"):
        launched("dynamic_too", shared_bytes=1020)
    most = 232_448
    with pytest.raises(DeviceError, match="a block has at most"):
        launched("dynamic_too", shared_bytes=most + 1)
    assert launched("dynamic_too", shared_bytes=most)[0].races == []


def test_what_the_system_left_there_is_not_zero() -> None:
    """So a group that does not initialise its barrier is not taken for right."""
    shared = per_owner("shared memory", 2, 32, 2048, marked=True)
    begin_reserved(shared, 2, 1024)
    assert shared.written is not None
    rows, marks = shared.data.reshape(2, -1), shared.written.reshape(2, -1)
    assert (rows[:, :1024] != 0).all()
    assert not rows[:, 1024:].any()
    assert marks[:, :1024].all()
    assert not marks[:, 1024:].any()
