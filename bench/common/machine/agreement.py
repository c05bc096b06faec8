"""The race detector, fed in three ways, beside one that looks at every pair of accesses."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.common.machine.feeds import direct, through_kernel, through_ptx
from bench.common.machine.traces import (
    ANY,
    KERNEL,
    NESTED,
    PTX,
    Dialect,
    Meet,
    make,
    racing,
    racing_pairs,
    surely_racing,
)


def feed_directly(seed: int) -> bool:
    """Whether the trace races; all ways to feed it agree with the plain detector."""
    trace = make(seed, ANY)
    expected = racing_pairs(trace)
    assert direct(trace, partial=True, every=True, batch=1 + seed % 2) == expected, seed
    trace = make(seed, NESTED)
    expected = racing_pairs(trace)
    assert direct(trace, partial=False, every=True, batch=1 + seed % 2) == expected, seed
    first = direct(trace, partial=False, every=False, batch=1 + seed % 2)
    assert bool(first) == bool(expected), seed
    assert first <= expected, seed
    return bool(expected)


def feed_ptx(seed: int) -> bool:
    trace = make(seed, PTX)
    found, expected = through_ptx(trace, seed, every=True), racing_pairs(trace)
    assert surely_racing(trace) <= found <= expected, seed
    if seed % 4 == 0:
        first = through_ptx(trace, seed, every=False)
        assert bool(first) == bool(found), seed
        assert first <= expected, seed
    return bool(found)


def feed_kernel(seed: int) -> bool:
    trace = make(seed, KERNEL)
    expected = racing(trace)
    said = through_kernel(trace, seed)
    assert bool(said) == bool(expected), (seed, said)
    if said:
        assert "race on" in said
        who = re.findall(r"thread (\d+) of block (\d+)", said)
        threads = {int(block) * trace.size + int(thread) for thread, block in who}
        assert threads in [{a.thread, b.thread} for a, b in expected], (seed, said)
    return bool(expected)


FEEDS: dict[str, Callable[[int], bool]] = {
    "directly": feed_directly, "ptx": feed_ptx, "kernel": feed_kernel,
}  # fmt: skip
DIALECTS = {"directly": ANY, "ptx": PTX, "kernel": KERNEL}


def differs(feed: str, seed: int, racy: list[int]) -> bool:
    """Whether a feed and the plain detector disagree; notes the seeds of traces that race."""
    try:
        if FEEDS[feed](seed):
            racy.append(seed)
    except AssertionError:
        return True
    return False


def shapes(dialect: Dialect, seeds: range) -> dict[str, dict[str, int]]:
    """How many traces have so many threads and words, and how many barriers of each kind."""
    found: dict[str, Counter[str]] = {"threads": Counter(), "words": Counter(), "meets": Counter()}
    for seed in seeds:
        trace = make(seed, dialect)
        found["threads"][str(trace.blocks * trace.size)] += 1
        found["words"][str(trace.words)] += 1
        found["meets"].update(each.kind for each in trace.events if isinstance(each, Meet))
    return {name: dict(sorted(counts.items())) for name, counts in found.items()}


def looked_at(feed: str, first: int, count: int) -> dict[str, Any]:
    """The traces of some seeds: a piece of work for another process."""
    racy: list[int] = []
    seeds = range(first, first + count)
    started = time.process_time()
    different = [seed for seed in seeds if differs(feed, seed, racy)]
    return {
        "traces": count, "racy": len(racy), "different": different,
        "seconds": time.process_time() - started, **shapes(DIALECTS[feed], seeds),
    }  # fmt: skip
