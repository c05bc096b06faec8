# ruff: noqa: E501 - programs read better with a line each
"""What compiled kernels note: the evaluator's counters, and every race that it would see."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pytest
from bench.common.ptx.programs import PROGRAMS
from tests.ptx.test_kernels import kept
from tests.ptx.test_order import racing_lines, written
from tests.tools import is_here

from warploom import ptx
from warploom.machine.counters import Counters
from warploom.ptx.fast import cores
from warploom.ptx.fast.notes import PATTERNS, Counting
from warploom.ptx.launch import Kernel

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")

# Threads of 64 do, step by step, what a table says of each: `do & 15` is what, `do >> 4` where.
TRACE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 ops, .param .u64 data, .param .u32 steps)
{ .reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<20>; .reg .b64 %rd<12>; .shared .align 16 .b8 s[256];
ld.param.u64 %rd1, [ops]; ld.param.u64 %rd2, [data]; ld.param.u32 %r1, [steps]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %ntid.x; mov.u32 %r5, %nctaid.x; mad.lo.u32 %r6, %r3, %r4, %r2; mul.lo.u32 %r7, %r4, %r5; mov.u32 %r8, 0; mov.u32 %r14, s;
LOOP: setp.ge.u32 %p1, %r8, %r1; @%p1 bra END;
mad.lo.u32 %r9, %r8, %r7, %r6; mul.wide.u32 %rd3, %r9, 4; add.u64 %rd3, %rd1, %rd3; ld.global.u32 %r10, [%rd3];
add.u32 %r8, %r8, 1; and.b32 %r11, %r10, 15; shr.u32 %r12, %r10, 4; add.u32 %r13, %r12, %r14; cvt.u64.u32 %rd4, %r12; add.u64 %rd4, %rd2, %rd4;
setp.eq.u32 %p1, %r11, 1; @%p1 ld.shared.u32 %r15, [%r13];
setp.eq.u32 %p1, %r11, 2; @%p1 st.shared.u32 [%r13], %r6;
setp.eq.u32 %p1, %r11, 3; @%p1 red.shared.add.u32 [%r13], 1;
setp.eq.u32 %p1, %r11, 4; @%p1 ld.global.u32 %r15, [%rd4];
setp.eq.u32 %p1, %r11, 5; @%p1 st.global.u32 [%rd4], %r6;
setp.eq.u32 %p1, %r11, 6; @%p1 red.global.add.u32 [%rd4], 1;
setp.eq.u32 %p1, %r11, 7; @%p1 st.shared.u8 [%r13+1], %r6;
setp.eq.u32 %p1, %r11, 8; @%p1 ld.shared.u8 %r15, [%r13+2];
setp.eq.u32 %p1, %r11, 9; @%p1 ld.global.nc.u32 %r15, [%rd4];
setp.eq.u32 %p1, %r11, 12; @%p1 cp.async.ca.shared.global [%r13], [%rd4], 4;
setp.eq.u32 %p1, %r11, 13; @%p1 cp.async.commit_group;
setp.eq.u32 %p1, %r11, 14; @%p1 cp.async.wait_group 0;
setp.eq.u32 %p1, %r11, 15; @%p1 cp.async.wait_group 1;
setp.eq.u32 %p1, %r11, 10; @%p1 bra BLOCK;
setp.eq.u32 %p1, %r11, 11; @%p1 bra WARP;
bra LOOP;
BLOCK: bar.sync 0; bra LOOP;
WARP: bar.warp.sync -1; bra LOOP;
END: ret; }
"""
BLOCKS, THREADS, STEPS = 2, 64, 12
BAR, WARP_SYNC, COPY, COMMIT, WAIT, WAIT_BUT_ONE = range(10, 16)
POOL = (0, 1, 2, 33)  # threads that do something, of each block


@cache
def traced() -> Kernel:
    return ptx.load(TRACE, "trace.ptx").kernel("k")


def trace(rng: np.random.Generator) -> np.ndarray:
    """Few threads, few words; in some traces mostly barriers, so that half of them have no race."""
    ops = np.zeros((STEPS, BLOCKS, THREADS), np.uint32)
    kinds = rng.choice(9, int(rng.integers(1, 4)), replace=False) + 1
    if rng.random() < 0.3:
        kinds = np.array([COPY, COMMIT, WAIT, rng.choice((WAIT_BUT_ONE, 1, 2, COPY))])
    often, alone = rng.random(), bool(rng.random() < 0.4)
    for step in ops:
        chance = rng.random()
        if chance < 0.5 * often:
            step[:] = BAR
        elif chance < 0.7 * often:
            block, warp = int(rng.integers(BLOCKS)), 32 * int(rng.integers(2))
            step[block, warp : warp + 32] = WARP_SYNC
        else:
            for _ in range(int(rng.integers(1, 3))):
                block = 0 if alone else int(rng.integers(BLOCKS))
                step[block, rng.choice(POOL)] = rng.choice(kinds) | int(rng.integers(3)) * 4 << 4
    return ops


def report(ops: np.ndarray, engine: str) -> ptx.Report:
    kernel = traced()
    kernel.fast._left.clear()  # each trace is as good as the first
    args = [ops.reshape(-1), np.zeros(16, np.uint32), STEPS]
    return kernel.launch(BLOCKS, THREADS, args, races="all", check=False, engine=engine)  # type: ignore[arg-type]


def check_traces(first: int, count: int) -> None:
    clean = taken = 0
    for seed in range(first, first + count):
        ops = trace(np.random.default_rng(seed))
        here = report(ops, "c")
        races = report(ops, "numpy").races if here.engine == "c" else here.races
        clean += not races
        taken += here.engine == "c"
        assert not (here.engine == "c" and races), seed
    assert count / 4 < clean < 3 * count / 4
    assert taken > 0.8 * clean  # the rest is ordered by what compiled code does not follow


def test_no_race_is_missed() -> None:
    check_traces(0, 40)


@pytest.mark.slow
def test_no_race_is_missed_in_many_traces() -> None:
    check_traces(1000, 10_000)


LOAD, STORE, SHARED_LOAD, SHARED_STORE, READ_ONLY = 4, 5, 1, 2, 9
EVERYBODY = -1


@pytest.mark.parametrize(
    "steps",
    [
        # (block, thread, what) one after the other
        [(0, 0, LOAD), (1, 0, LOAD), (1, 0, STORE)],
        [(0, 0, LOAD), (1, 0, LOAD), (0, EVERYBODY, BAR), (1, EVERYBODY, BAR), (1, 0, STORE)],
        [(0, 0, SHARED_LOAD), (0, 1, SHARED_LOAD), (0, 0, SHARED_STORE)],
        [(0, 0, SHARED_LOAD), (0, 33, SHARED_LOAD), (0, 33, SHARED_STORE)],
        [(0, 0, READ_ONLY), (0, EVERYBODY, BAR), (0, 33, STORE)],
        [(0, 0, COPY), (0, 0, COMMIT), (0, 0, SHARED_LOAD)],
        [(0, 0, COPY), (0, 0, COMMIT), (0, 0, WAIT), (0, 1, SHARED_LOAD)],
        [(0, 0, COPY), (0, 0, WAIT), (0, EVERYBODY, BAR), (0, 1, SHARED_LOAD)],
        [(0, 0, COPY), (0, 0, COMMIT), (0, EVERYBODY, BAR), (0, 0, WAIT), (0, 1, SHARED_LOAD)],
        [
            (0, 0, COPY),
            (0, 0, COMMIT),
            (0, 0, WAIT_BUT_ONE),
            (0, EVERYBODY, BAR),
            (0, 1, SHARED_LOAD),
        ],
        [(0, 0, COPY), (0, EVERYBODY, BAR), (0, 33, STORE)],
    ],
)
def test_earlier_accesses_are_not_forgotten(steps: list[tuple[int, int, int]]) -> None:
    ops = np.zeros((STEPS, BLOCKS, THREADS), np.uint32)
    for number, (block, thread, what) in enumerate(steps):
        ops[number, block, slice(None) if thread == EVERYBODY else thread] = what
    found = report(ops, "c")
    assert (found.engine, len(found.races)) == ("numpy", 1)


def test_a_copy_that_was_waited_for_is_ordered_by_a_barrier() -> None:
    ops = np.zeros((STEPS, BLOCKS, THREADS), np.uint32)
    ops[0:3, 0, 0] = COPY, COMMIT, WAIT
    ops[3] = BAR
    ops[4, 0, 33] = SHARED_LOAD
    assert report(ops, "c").engine == "c"


@pytest.mark.slow
def test_racy_kernels_are_the_evaluators() -> None:
    """Those of compiled CUDA: the same findings, whoever was asked first."""
    for kernel in written("racy", "racy_more", "racy_lib"):
        assert racing_lines(kernel, engine="c", check=False) == kernel.lines, str(kernel)


def same_counters(some: ptx.Report, other: ptx.Report) -> list[str]:
    names = [each.name for each in fields(Counters)]
    return [name for name in names if getattr(some, name) != getattr(other, name)]


def check_counters(name: str, **options: Any) -> str:
    run = next(each for each in PROGRAMS if each.name == name)
    kernel, reports = kept(run.file).kernel(run.name), []
    for engine in ("numpy", "c"):
        args = run.make()
        reports.append(kernel.launch(
            run.grid, run.block, args, shared_bytes=run.shared_bytes, engine=engine, counters=True, **options
        ))  # fmt: skip
    assert same_counters(*reports) == []
    assert reports[0].mix == reports[1].mix
    return reports[1].engine


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["histogram", "branches", "copy_async"])
def test_counters(name: str) -> None:
    assert check_counters(name) == "c"


@pytest.mark.slow
@pytest.mark.parametrize("name", [run.name for run in PROGRAMS])
def test_counters_and_races(name: str) -> None:
    check_counters(name)
    check_counters(name, races="all")


# Every iteration another pattern of addresses; the result is one for which NumPy is asked.
GATHER = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out, .param .u32 iterations)
{ .reg .pred %p; .reg .b32 %r<9>; .reg .f32 %f; .reg .b64 %a<9>;
ld.param.u64 %a0, [x]; ld.param.u64 %a1, [out]; ld.param.u32 %r0, [iterations]; mov.u32 %r1, %tid.x; mov.u32 %r2, %r1; mov.u32 %r5, 0;
LOOP: mad.lo.u32 %r2, %r2, 1664525, 1013904223; shr.u32 %r3, %r2, 20; mad.wide.u32 %a2, %r3, 4, %a0; ld.global.u32 %r4, [%a2];
add.u32 %r5, %r5, %r4; sub.u32 %r0, %r0, 1; setp.ne.u32 %p, %r0, 0; @%p bra LOOP;
mov.f32 %f, 0fC2FD0000; ex2.approx.f32 %f, %f; mad.wide.u32 %a3, %r1, 4, %a1; st.global.u32 [%a3], %r5; st.global.f32 [%a3], %f; ret; }
"""


# In each launch the table is full once, at three quarters of its places, and taken again at the end.
@cache
def gather() -> Kernel:
    return ptx.load(GATHER, "gather.ptx").kernel("k")


def gathered(engine: str, **options: Any) -> tuple[ptx.Report, np.ndarray]:
    args = [np.arange(1 << 12, dtype=np.uint32), np.zeros(32, np.uint32), PATTERNS]
    return gather().launch(1, 32, args, engine=engine, **options), args[1]  # type: ignore[arg-type, return-value]


@pytest.mark.slow
def test_more_patterns_than_the_table_has_room_for() -> None:
    (numpy, one), (compiled, other) = (gathered(each, counters=True) for each in ("numpy", "c"))
    assert compiled.engine == "c"
    assert same_counters(numpy, compiled) == []
    assert (one == other).all()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("where", ["before the table is taken", "while it is", "at a function"])
def test_ctrl_c_in_what_compiled_code_calls(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that Python raises there passes through C: it is neither lost nor are counts."""
    out = np.zeros(32, np.uint32)
    args = [np.arange(1 << 12, dtype=np.uint32), out, PATTERNS]
    if where == "at a function":
        monkeypatch.setattr(cores, "_FUNCTIONS", (interrupt,))
    else:
        monkeypatch.setattr(Counting, "take" if "before" in where else "_take", interrupt)
    with pytest.raises(KeyboardInterrupt):
        gather().launch(1, 32, args, engine="c", counters=where != "at a function")
    assert not out.any()
