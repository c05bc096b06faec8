"""Schedules that hold warps back: faults that the order of the code does not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError, KernelError
from warploom.machine.proof import Reach
from warploom.machine.report import Report
from warploom.ptx.emulate.hold import Hold, parse_holds, text_of

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"

# The leading block arrives at an mbarrier of the other one, which computes a little and ends.
EXIT = (
    HEAD
    + """
.visible .entry k(.param .u64 p) .explicitcluster .reqnctapercluster 2, 1, 1
{
  .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %q<4>;
  .shared .align 8 .b64 bar;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, bar;
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %q1, %r3, 0;
  @!%q1 mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  setp.ne.u32 %q2, %r1, 0;
  @%q2 bra COMPUTE;
  @%q1 bra END;
  mov.u32 %r4, 1;
  mapa.shared::cluster.u32 %r5, %r2, %r4;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
  bra END;
COMPUTE:
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %q3, %r3, 100;
  @%q3 bra COMPUTE;
END:
  BEFORE_THE_END
  ret;
}
"""
)
TOGETHER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"

# Two warps add to a counter by a load and a store, each of them strong: no race, one is lost.
LOST = (
    HEAD
    + """
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %q<4>;
  ld.param.u64 %d1, [p];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  setp.ne.u32 %q1, %r2, 0;
  @%q1 bra END;
  ld.relaxed.gpu.global.u32 %r3, [%d1];
  add.u32 %r3, %r3, 1;
  st.relaxed.gpu.global.u32 [%d1], %r3;
END:
  ret;
}
"""
)

# Warp 0 opens a gate once; warp 1 closes it where it finds it closed, and then opens it. A warp
# that comes between waits for ever.
GATE = (
    HEAD
    + """
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %q<4>;
  ld.param.u64 %d1, [p];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  setp.ne.u32 %q1, %r2, 0;
  @%q1 bra END;
  setp.ge.u32 %q2, %r1, 32;
  @%q2 bra SECOND;
  atom.global.exch.b32 %r3, [%d1], 1;
  bra END;
SECOND:
  atom.global.add.u32 %r4, [%d1], 0;
  setp.eq.u32 %q3, %r4, 1;
  @%q3 bra END;
  atom.global.exch.b32 %r3, [%d1], 0;
WAIT:
  ld.relaxed.gpu.global.u32 %r5, [%d1];
  setp.eq.u32 %q3, %r5, 0;
  @%q3 bra WAIT;
END:
  ret;
}
"""
)


def launch(text: str, counter: Any, **options: Any) -> Report:
    grid, block = (2, 32) if "cluster" in text else (1, 64)
    kernel = ptx.load(text).kernel()
    return kernel.launch(grid, block, [counter], races=True, seconds=30.0, **options)


def zero() -> Any:
    return np.zeros(1, np.int32)


def fails(text: str, match: str) -> None:
    """A fault that exploring finds, and that its schedule shows again."""
    with pytest.raises(KernelError, match=match) as caught:
        launch(text, zero(), explore=20.0)
    schedule = caught.value.message.rpartition("under the schedule ")[2].strip("'")
    assert f"schedule='{schedule}' runs it again" in caught.value.advice
    with pytest.raises(KernelError, match=match):
        launch(text, zero(), schedule=schedule)


def test_a_block_that_ends_before_it_is_told() -> None:
    text = EXIT.replace("BEFORE_THE_END", "")
    launch(text, zero())  # the order of the code does not show it
    fails(text, "shared memory of block 1, which has ended")


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is() -> None:
    report = launch(EXIT.replace("BEFORE_THE_END", TOGETHER), zero(), explore=20.0)
    assert report.explored is not None
    assert (report.explored.single, report.explored.differs) == (report.explored.singles, "")
    assert report.explored.several > 0


def test_results_that_differ_are_named_and_memory_is_as_the_launch_left_it() -> None:
    counter = zero()
    report = launch(LOST, counter, explore=1.0)
    first = int(counter[0])
    assert report.explored is not None
    differs = report.explored.differs
    assert differs
    other = zero()
    launch(LOST, other, schedule=differs)
    assert {first, int(other[0])} == {1, 2}


def test_a_gate_that_closes_behind() -> None:
    """Warp 1 finds the gate closed only where warp 0 is late, and then has an event more."""
    fails(GATE, "deadlock: no thread")


def test_a_proof_leaves_nothing_to_explore() -> None:
    report = launch(EXIT.replace("BEFORE_THE_END", TOGETHER), zero(), prove=True, explore=20.0)
    assert report.proof is not None
    assert report.proof.reach is not Reach.THIS_SCHEDULE
    assert report.explored is None


def test_schedules_as_text() -> None:
    assert parse_holds("0:1@5, 3:0@17") == (Hold(0, 1, 5), Hold(3, 0, 17))
    assert text_of(parse_holds("0:1@5,3:0@17")) == "0:1@5,3:0@17"
    assert parse_holds("") == ()


@pytest.mark.parametrize("text", ["0:1", "a:1@2", "0:1@5;", "0:1@-1", "0:0@1," * 20 + "0:0@1"])
def test_texts_that_are_no_schedule(text: str) -> None:
    with pytest.raises(DeviceError, match="is no schedule"):
        launch(LOST, zero(), schedule=text)


@pytest.mark.parametrize("seconds", [0, -1, True, "1", float("nan")])
def test_a_budget_is_a_number(seconds: Any) -> None:
    with pytest.raises(DeviceError, match="explore="):
        launch(LOST, zero(), explore=seconds)
