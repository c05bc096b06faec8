"""The race detector, however it is fed, against one that looks at every pair of accesses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench.common.machine.agreement import FEEDS
from bench.common.machine.feeds import direct, through_ptx
from bench.common.machine.traces import ANY, NESTED, PTX, make, racing_pairs, surely_racing

from warploom.errors import InternalError, UnsupportedError
from warploom.machine import shadow
from warploom.machine.race import RaceDetector
from warploom.machine.semantics import Kind


@pytest.mark.parametrize("feed", FEEDS)
def test_agrees_with_every_pair(feed: str) -> None:
    racy = sum(FEEDS[feed](seed) for seed in range(SAMPLE[feed]))
    assert 0.3 * SAMPLE[feed] < racy < 0.8 * SAMPLE[feed]  # both answers are asked for


# A few of them; bench/machine/races.py runs many more.
SAMPLE = {"directly": 100, "ptx": 25, "kernel": 50}


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 25), marks=pytest.mark.slow)])
@pytest.mark.parametrize("smallest", [1, 1 << 10])
def test_longer_traces_of_more_threads(
    smallest: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists are tidied up again and again, and every place of `Latest` is taken."""
    monkeypatch.setattr(shadow, "SMALLEST", smallest)
    monkeypatch.setattr(shadow, "STEPS", smallest)  # long lists are picked out, in small parts
    monkeypatch.setattr(shadow, "AT_ONCE", 3)
    wide = (1, 2, 3, 4, 8)
    for seed in seeds:
        trace = make(seed, replace(ANY, lanes=wide), 16, 40)
        assert direct(trace, partial=True, every=True, batch=1) == racing_pairs(trace), seed
        trace = make(seed, replace(NESTED, lanes=wide), 16, 40)
        expected = racing_pairs(trace)
        assert direct(trace, partial=False, every=True) == expected, seed
        assert bool(direct(trace, partial=False, every=False)) == bool(expected), seed


def test_larger_kernels() -> None:
    for seed in range(16):
        trace = make(seed, replace(PTX, lanes=(2, 4, 8)), 16, 14)
        found = through_ptx(trace, seed, every=True)
        assert surely_racing(trace) <= found <= racing_pairs(trace), seed


@pytest.mark.parametrize("seed", [380, 454, 1671, 3365])
def test_atomics_of_other_sizes_do_not_see_each_other(seed: int) -> None:
    trace = make(seed, PTX)
    assert surely_racing(trace) <= through_ptx(trace, seed, every=True) <= racing_pairs(trace)


def test_what_a_race_says() -> None:
    detector = RaceDetector(2, 64, 32, 4)
    detector.start(0, 2)
    threads = np.arange(128)
    places = threads * 4
    assert detector.access("x", 512, threads, places, 4, Kind.WRITE, "store") == []
    (race,) = detector.access("x", 512, threads, places ^ 128, 4, Kind.READ, "load")
    assert (race.region, race.offset) == ("x", 128)
    assert (race.first.kind, race.first.block, race.first.thread) == (Kind.WRITE, 0, 32)
    assert (race.second.kind, race.second.block, race.second.thread) == (Kind.READ, 0, 0)
    assert (race.first.label, race.second.label) == ("store", "load")
    assert detector.access("x", 512, threads, places ^ 128, 4, Kind.READ, "load") == []  # known
    detector.block_barrier(np.array([1]))
    detector.forget("x")
    assert detector.access("x", 512, threads, places ^ 256, 4, Kind.READ, "load") == []
    assert detector.races == [race]


def test_an_access_of_bytes_divides_words() -> None:
    detector = RaceDetector(1, 4, 4, 4)
    detector.start(0, 1)
    first, second = np.array([0]), np.array([1])
    assert detector.access("x", 16, first, np.array([0]), 16, Kind.WRITE) == []
    (race,) = detector.access("x", 16, second, np.array([5]), 1, Kind.READ)
    assert race.offset == 5
    assert detector.access("x", 16, first, np.array([6]), 1, Kind.WRITE, "own") == []


def test_places_need_not_be_multiples_of_the_width() -> None:
    """Rows of an odd number of elements, each read two at a time."""
    for odd, races in ((4, 1), (8, 0)):
        detector = RaceDetector(1, 4, 4, 4)
        detector.start(0, 1)
        detector.access("x", 32, np.array([0]), np.array([odd]), 8, Kind.WRITE, "first")
        assert (
            len(detector.access("x", 32, np.array([1]), np.array([0]), 8, Kind.READ, "second"))
            == races
        )
        assert detector.access("x", 32, np.array([2]), np.array([24]), 8, Kind.WRITE, "third") == []


def test_partial_barriers_must_be_announced() -> None:
    detector = RaceDetector(1, 4, 4, 4)
    detector.start(0, 1)
    with pytest.raises(InternalError):
        detector.vector.meet(np.arange(2), np.zeros(2, int))


def test_more_barriers_than_there_are_stamps() -> None:
    detector = RaceDetector(2**31 - 1, 1024, 32, 1 << 20)  # 41 and 20 of 63 bits
    detector.start(0, 1)
    detector.block_barrier(np.array([0]))
    detector.block_barrier(np.array([0]))
    with pytest.raises(UnsupportedError, match="so many barriers"):
        detector.block_barrier(np.array([0]))
