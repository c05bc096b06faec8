"""The race detector against a plain one that keeps every access."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.machine.race import RaceDetector

BLOCKS, SIZE, BYTES = 2, 64, 32


class Plain:
    """Every access of the current epoch, compared pair by pair."""

    def __init__(self) -> None:
        self.epoch = [0] * BLOCKS
        self.warp_epoch = [0] * (BLOCKS * 2)
        self.seen: list[tuple] = []

    def access(self, thread: int, start: int, width: int, write: bool) -> bool:
        block, warp = thread // SIZE, thread // 32
        race = False
        for other, place, size, wrote, epoch, warp_epoch in self.seen:
            if other // SIZE != block or epoch != self.epoch[block] or other == thread:
                continue
            ordered = other // 32 == warp and warp_epoch != self.warp_epoch[warp]
            overlap = place < start + width and start < place + size
            race |= overlap and (write or wrote) and not ordered
        self.seen.append((thread, start, width, write, self.epoch[block], self.warp_epoch[warp]))
        return race


ACCESS = st.tuples(
    st.integers(0, BLOCKS * SIZE - 1),
    st.integers(0, BYTES // 4 - 1),
    st.sampled_from([1, 4]),
    st.booleans(),
)
EVENT = st.one_of(
    ACCESS,
    st.tuples(st.just("block"), st.integers(0, 1)),
    st.tuples(st.just("warp"), st.integers(0, 3)),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(EVENT, max_size=12))
def test_agrees_with_the_plain_detector(events: list[tuple]) -> None:
    plain, detector = Plain(), RaceDetector()
    detector.start(BLOCKS, SIZE)
    for event in events:
        if event[0] == "block":
            plain.epoch[event[1]] += 1
            detector.pass_barrier(np.array([event[1]]))
        elif event[0] == "warp":
            plain.warp_epoch[event[1]] += 1
            detector.pass_warp_barrier(np.array([event[1] * 32]))
        else:
            thread, word, width, write = event
            word += thread // SIZE * (BYTES // 4)  # blocks do not share locations
            want = plain.access(thread, 4 * word, width, write)
            got = detector.record(
                0, 2 * BYTES, np.array([thread]), np.array([4 * word]), width, write
            )
            assert (got is not None) == want
            if want:
                return


def test_many_threads_in_one_access() -> None:
    detector = RaceDetector()
    detector.start(1, 64)
    threads = np.arange(64)
    assert detector.record(0, 256, threads, threads * 4, 4, True) is None
    race = detector.record(0, 256, threads, (threads ^ 32) * 4, 4, False)
    assert race is not None
    assert (race.position, race.other, race.earlier) == (0, 32, "write")
    detector.pass_barrier(np.array([0]))
    assert detector.record(0, 256, threads, (threads ^ 32) * 4, 4, False) is None
    detector.start(1, 64)  # the next batch starts anew
    assert detector.record(0, 256, threads, threads * 4, 4, True) is None
