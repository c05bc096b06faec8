"""What holds a kernel back: remedies, what they would change, and that they do."""

from __future__ import annotations

import pytest
from bench.common.verdict.computations import COMPUTATIONS
from bench.common.verdict.slow import FAST, PAIRS, counts, figure, said

from warploom.machine.record import H200
from warploom.machine.times import predicted
from warploom.verdict.hindered import filled

BLOCKS = 16384


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", [n if n in ("column", "scalars") else pytest.param(n, marks=pytest.mark.slow)
             for n in PAIRS],
)  # fmt: skip
def test_the_remedy_is_told_first_and_lowers_what_is_counted(name: str) -> None:
    (slow, found), (fast, after) = counts(name), counts(name + FAST)
    first, promised = said(found)
    assert first.what == PAIRS[name].remedy
    assert figure(slow, first.figure) == first.before
    assert figure(fast, first.figure) <= 1.15 * promised < first.before
    assert first.place is not None or first.what == "few blocks at once"
    assert first.what not in {each.what for each in after.remedies}
    times = [predicted(filled(each, BLOCKS), H200).nanoseconds for each in (slow, fast)]
    assert times[1] < times[0]
    gains = [each.gain for each in found.remedies]
    assert gains == sorted(gains, reverse=True)


def test_the_work_of_a_launch_is_counted_block_by_block() -> None:
    work = counts("scalars")[0].work
    # Four warps: four loads and four stores of each, a lane's elements 16 bytes from the next's.
    assert (work.blocks, work.threads, work.requests) == (4, 128, 32)
    # What is loaded stays in L1, what is stored goes on each time.
    assert (work.lines, work.sectors) == (4 * 8 * 4, (1 + 4) * 128 * 16 / 32)
    assert (work.wavefronts, work.barriers, work.shuffles) == (0, 0, 0)
    assert work.fetched == 4 * work.sectors * 32
    column = counts("column")[0].work
    assert (column.shared_requests, column.wavefronts, column.barriers) == (64, 32 * 33, 1)


def test_a_warp_that_parts_executes_both_sides() -> None:
    slow, fast = counts("tails")[0], counts("tails" + FAST)[0]
    threads = [each.report.thread_instructions for each in (slow, fast)]
    assert abs(threads[0] / threads[1] - 1) < 0.1
    assert slow.work.longest > 1.8 * fast.work.longest


def test_room_and_waits_are_said() -> None:
    crowd, column = counts("crowd")[1], counts("column")[1]
    assert "4 blocks of 64 threads at once, limited by shared memory" in crowd.room
    assert "1 times at barriers (lines" in column.waits


def test_what_is_different_is_not_predicted() -> None:
    found = COMPUTATIONS["relu"].judged("relu_wrong", performance=True)
    assert found.verdict == "different"
    assert found.shapes[0].record()["performance"] is None
    right = COMPUTATIONS["relu"].judged("relu", performance=True, others=0)
    assert "predicted on h200" in str(right)
