"""Rows of warps from single lanes, and the totals made of them."""

from __future__ import annotations

import numpy as np

from warploom.machine.counters import Counters, by_warp


def test_by_warp_leaves_idle_warps_out() -> None:
    warp, lane = np.array([2, 2, 5]), np.array([1, 31, 0])
    rows, active = by_warp(warp, lane, np.array([10, 20, 30]))
    assert rows.shape == (2, 32)
    assert (rows[0, 1], rows[0, 31], rows[1, 0]) == (10, 20, 30)
    assert active.sum() == 3
    assert by_warp(warp[:0], lane[:0], lane[:0])[0].shape == (0, 32)


def test_whole_warps_are_rows_as_they_come() -> None:
    """The short way for whole warps and the way for any lanes agree, also where neighbours meet."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        there = rng.random(96) < rng.choice([0.5, 1.0])
        if rng.random() < 0.3:  # two warps that have 32 lanes together, in order
            there = np.repeat([True, False, False, True, True, True], 16)
        thread = np.flatnonzero(there)
        rows, active = by_warp(thread // 32, thread % 32, thread * 10)
        used = [w for w in range(3) if there[32 * w : 32 * w + 32].any()]
        assert (active == there.reshape(3, 32)[used]).all()
        assert (rows == np.where(active, 10 * np.arange(96).reshape(3, 32)[used], 0)).all()


def test_totals() -> None:
    counters = Counters()
    lane = np.arange(64) % 32
    warp = np.arange(64) // 32
    counters.count_global("a", warp, lane, np.arange(64) * 4, 4, write=False)
    counters.count_global("a", warp, lane, np.arange(64) * 128, 4, write=True)
    assert (counters.global_loads.requests, counters.global_loads.sectors) == (2, 8)
    assert counters.global_stores.sectors == 64
    counters.count_shared("s", warp, lane, lane * 128, 4)
    counters.count_shared("s", warp, lane, lane * 4, 4)
    assert counters.shared.conflicts == 2 * 31
