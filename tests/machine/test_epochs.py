"""Race detection against a list of all accesses."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.machine.epochs import Epochs

BLOCK, WARP, BLOCKS, CELLS = 4, 2, 2, 3
# One instruction: does it write; which cell each of the 8 threads touches, or None.
touches = st.lists(st.none() | st.integers(0, CELLS - 1), min_size=8, max_size=8)
steps = st.lists(st.tuples(st.booleans(), touches) | st.sampled_from(["block", "warp"]), max_size=6)


def ordered(first: tuple[int, int, int], second: tuple[int, int, int]) -> bool:
    """Whether a barrier (or the program order of one thread) stands between two accesses."""
    (t, block_epoch, warp_epoch), (u, block_later, warp_later) = first, second
    if t == u:
        return True
    if t // BLOCK != u // BLOCK:
        return False
    return block_epoch != block_later or (t // WARP == u // WARP and warp_epoch != warp_later)


@given(steps)
@settings(max_examples=200, deadline=None)
def test_against_all_pairs(program: list[object]) -> None:
    tracker = Epochs(CELLS, BLOCK, WARP)
    history: list[tuple[int, bool, tuple[int, int, int]]] = []
    block_epoch = warp_epoch = 0
    for step in program:
        if isinstance(step, str):
            warp_epoch += 1
            block_epoch += step == "block"
            continue
        writes, cells = step  # type: ignore[misc]
        now = [
            (c, writes, (t, block_epoch, warp_epoch)) for t, c in enumerate(cells) if c is not None
        ]
        history += now
        expected = any(
            cell == other and (write or wrote) and not ordered(who, whom)
            for cell, write, who in history
            for other, wrote, whom in now
        )
        threads = np.array([who[0] for _, _, who in now], np.int64)
        places = np.array([cell for cell, _, _ in now], np.int64)
        note = tracker.write if writes else tracker.read
        epochs = (np.full(len(now), block_epoch), np.full(len(now), warp_epoch))
        race = note(places, threads, *epochs)
        assert (race is not None) == expected
        if expected:
            return
