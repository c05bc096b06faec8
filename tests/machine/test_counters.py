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
