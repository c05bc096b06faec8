# ruff: noqa: E501 - programs read better with a line each
"""A load whose value is of no use to its thread is no race; one that matters anywhere is.

Thread 40 writes a word that lanes of warp 0 load; what they then do with it decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import KernelError

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 which)
{{ .reg .pred %p<9>; .reg .b32 %t, %r<30>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .local .align 4 .b8 own[4]; .shared .align 4 .b8 s[512];
ld.param.u64 %rd1, [a]; ld.param.u32 %r20, [which]; mov.u32 %t, %tid.x; mul.wide.u32 %rd2, %t, 4; add.u64 %rd2, %rd2, %rd1;
mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r21, s; setp.eq.u32 %p1, %t, 40; setp.eq.u32 %p2, %t, 3; setp.lt.u32 %p3, %t, 32; setp.eq.u32 %p4, %t, 99; setp.eq.u32 %p8, %t, 7;
{body}
ret; }}
"""
LOAD, WRITE = "@%p2 ld.global.u32 %r1, [%rd1+1024];", "@%p1 st.global.u32 [%rd1+1024], %t;"
OUT = "st.global.u32 [%rd2], "  # each thread to a word of its own

# What lane 3 does with %r1, which it loaded; whether that is of use.
USES = {
    "nothing": (False, ""),
    "arithmetic": (False, "add.u32 %r2, %r1, 1; mul.lo.u32 %r3, %r2, %r2; setp.gt.u32 %p5, %r3, 7;"),
    "a store": (True, f"{OUT}%r1;"),
    "a store of what was made of it": (True, f"add.u32 %r2, %r1, 1; xor.b32 %r3, %r2, 5; {OUT}%r3;"),
    "a store that is not done": (False, f"@%p4 {OUT}%r1;"),
    "a store by others": (False, f"@!%p2 {OUT}%r1;"),
    "an address": (True, "and.b32 %r2, %r1, 4; cvt.u64.u32 %rd3, %r2; add.u64 %rd3, %rd3, %rd2; ld.global.u32 %r3, [%rd3+2048];"),
    "a store's predicate": (True, f"setp.eq.u32 %p5, %r1, 7; @%p5 {OUT}%t;"),
    "a load's predicate": (True, "setp.eq.u32 %p5, %r1, 7; @%p5 ld.global.u32 %r3, [%rd2];"),
    "a branch around a store": (True, f"setp.eq.u32 %p5, %r1, 7; @%p5 bra E; {OUT}%t; E:"),
    "a way out": (True, "setp.eq.u32 %p5, %r1, 7; @%p5 exit;"),
    "a loop": (True, "and.b32 %r2, %r1, 3; L: sub.u32 %r2, %r2, 1; setp.gt.s32 %p5, %r2, 0; @%p5 bra L;"),
    "a branch that chooses a register": (False, "setp.eq.u32 %p5, %r1, 7; @%p5 bra E; mov.u32 %r3, 5; E:"),
    "that register, stored": (True, f"setp.eq.u32 %p5, %r1, 7; @%p5 bra E; mov.u32 %r3, 5; E: {OUT}%r3;"),
    "it, of both ways": (True, f"setp.eq.u32 %p5, %r1, 7; @%p5 bra F; mov.u32 %r3, 5; bra E; F: mov.u32 %r3, 6; E: add.u32 %r3, %r3, 1; {OUT}%r3;"),
    "it, of a branch within": (True, f"setp.eq.u32 %p5, %r1, 7; @%p5 bra E; setp.gt.u32 %p6, %t, 2; @%p6 bra E; mov.u32 %r3, 5; E: {OUT}%r3;"),
    "another register after it": (False, f"setp.eq.u32 %p5, %r1, 7; @%p5 bra E; mov.u32 %r3, 5; E: {OUT}%t;"),
    "a branch around a barrier": (True, "setp.eq.u32 %p5, %r1, 7777; @%p5 bra E; bar.sync 0; E:"),
    "a branch around a shuffle": (True, "setp.eq.u32 %p5, %r1, 7777; @%p5 bra E; shfl.sync.idx.b32 %r3, %t, 0, 31, -1; E:"),
    "a choice": (True, f"setp.lt.u32 %p5, %t, 9; selp.u32 %r3, %r1, 5, %p5; {OUT}%r3;"),
    "the other choice": (False, f"setp.lt.u32 %p5, %t, 9; selp.u32 %r3, 5, %r1, %p5; {OUT}%r3;"),
    "who chooses": (True, f"setp.eq.u32 %p5, %r1, 7; selp.u32 %r3, 5, 6, %p5; {OUT}%r3;"),
    "a predicate of arithmetic": (True, f"setp.eq.u32 %p5, %r1, 7; @%p5 mov.u32 %r3, 5; {OUT}%r3;"),
    "overwritten": (False, f"mov.u32 %r1, 4; {OUT}%r1;"),
    "overwritten by others": (True, f"@!%p2 mov.u32 %r1, 4; {OUT}%r1;"),
    "a carry": (True, f"add.cc.u32 %r2, %r1, 0xffffffff; addc.u32 %r3, 0, 0; {OUT}%r3;"),
    "bits of it": (True, f"mov.b32 %f1, %r1; add.f32 %f2, %f1, %f1; mov.b32 %r3, %f2; {OUT}%r3;"),
    "half of a pair": (True, f"mov.b64 %rd3, {{%r1, %t}}; mov.b64 {{%r2, %r3}}, %rd3; {OUT}%r2;"),
    "a shuffle to a lane that stores": (True, f"shfl.sync.idx.b32 %r3, %r1, 3, 31, -1; @%p8 {OUT}%r3;"),
    "a shuffle to lanes that do not": (False, f"shfl.sync.bfly.b32 %r3, %r1, 8, 31, -1; @%p8 {OUT}%r3;"),
    "a shuffle away": (False, f"shfl.sync.bfly.b32 %r3, %r1, 4, 31, -1; @%p2 {OUT}%r3;"),
    "two shuffles and back": (True, f"shfl.sync.bfly.b32 %r2, %r1, 4, 31, -1; shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1; @%p2 {OUT}%r3;"),
    "the lane that a shuffle asks": (True, "shfl.sync.idx.b32 %r3, %t, %r1, 31, -1;"),
    "a sum over lanes": (True, f"shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; add.u32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1; add.u32 %r3, %r1, %r2; setp.eq.u32 %p5, %t, 0; @%p5 {OUT}%r3;"),
    "a vote": (True, f"setp.eq.u32 %p5, %r1, 7; vote.sync.any.pred %p6, %p5, -1; selp.u32 %r3, 1, 2, %p6; @%p8 {OUT}%r3;"),
    "a vote that nobody asks": (False, "setp.eq.u32 %p5, %r1, 7; vote.sync.any.pred %p6, %p5, -1;"),
    "redux": (True, f"redux.sync.add.u32 %r3, %r1, -1; @%p8 {OUT}%r3;"),
    "match": (True, f"match.any.sync.b32 %r3, %r1, -1; @%p8 {OUT}%r3;"),
    "a member mask": (True, "or.b32 %r2, %r1, -1; shfl.sync.idx.b32 %r3, %t, 0, 31, %r2;"),
    "shared memory": (True, "shl.b32 %r2, %t, 2; add.u32 %r2, %r2, %r21; st.shared.u32 [%r2], %r1;"),
    "its own memory": (True, "st.local.u32 [own], %r1;"),
    "an atomic": (True, "red.global.add.u32 [%rd1+2048], %r1;"),
    "a barrier that joins": (True, "setp.eq.u32 %p5, %r1, 7; bar.red.popc.u32 %r3, 0, %p5;"),
    "a barrier's number": (True, "and.b32 %r2, %r1, 0; bar.sync %r2;"),
    "a trap": (True, "setp.eq.u32 %p5, %r1, 7777; @%p5 trap;"),
}  # fmt: skip


def run(body: str, **options: Any) -> ptx.Report:
    kernel = ptx.load(TEXT.format(body=body), "k.ptx").kernel("k")
    given: dict[str, Any] = {"races": "all", "benign": True} | options
    return kernel.launch(1, 64, [np.zeros(2048, np.uint32), np.uint32(0)], **given)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", USES)
def test_what_is_of_use(name: str) -> None:
    of_use, body = USES[name]
    orders = [f"{LOAD}\n{WRITE}\n{body}", f"{WRITE}\n{LOAD}\n{body}"]
    if "bar." not in body:  # else it orders the two
        orders = [f"@!%p3 bra W;\n{LOAD}\n{body}\nW:\n{WRITE}", *orders]
    for order in orders:
        assert bool(run(order).races) == of_use, order
        assert run(order, benign=False).races  # by the letter it is one


def test_the_first_race_ends_a_launch_if_it_is_one() -> None:
    run(f"{LOAD}\n{WRITE}", races=True)
    with pytest.raises(KernelError, match="data race"):
        run(f"{LOAD}\n{WRITE}\n{OUT}%r1;", races=True)
    with pytest.raises(KernelError, match="data race"):  # though the first one met is none
        run(f"{LOAD}\n{WRITE}\n@%p8 ld.global.u32 %r2, [%rd1+1024];\n@%p8 {OUT}%r2;", races=True)


def test_one_thread_of_many_that_load() -> None:
    """All of warp 0 load; only lane 7 makes use of it, and is the one that is named."""
    every = LOAD.replace("%p2", "%p3")
    (race,) = run(f"{every}\n{WRITE}\n@%p8 {OUT}%r1;").races
    assert {race.first.thread, race.second.thread} == {7, 40}


def test_a_use_in_another_iteration_counts() -> None:
    loop = "mov.u32 %r9, 0;\nL: {load}\nsetp.eq.u32 %p5, %r9, {when}; @%p5 {out}%r1;\nadd.u32 %r9, %r9, 1; setp.lt.u32 %p6, %r9, 4; @%p6 bra L;\n{write}"
    for when, of_use in ((2, True), (9, False)):
        body = loop.format(load=LOAD, when=when, out=OUT, write=WRITE)
        assert bool(run(body).races) == of_use


def test_memory_is_that_of_one_run() -> None:
    """However often a launch is run again, sums in place are done once; so are counters."""
    body = f"ld.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, 1; {OUT}%r2;\n{LOAD}\n{WRITE}"
    for benign in (True, False):
        data = np.zeros(2048, np.uint32)
        kernel = ptx.load(TEXT.format(body=body), "k.ptx").kernel("k")
        report = kernel.launch(
            1, 64, [data, np.uint32(0)], races="all", benign=benign, counters=True
        )
        assert bool(report.races) is not benign
        assert (data[:64] == 1).all()
        assert report.mix["add"] == 128
        assert report.global_loads.requests == 3


# -- generated ------------------------------------------------------------------------------------

LOADS = 3  # of each lane, each of a word of its own; thread 40 writes the word `which`


def made(rng: np.random.Generator) -> str:
    """Loads, then arithmetic, shuffles, branches and stores on what is there."""
    lines = ["@!%p3 bra W;"]
    lines += [f"ld.global.u32 %r{k + 4}, [%rd2+{1024 + 256 * k}];" for k in range(LOADS)]
    lines += [f"mov.u32 %r{number}, %t;" for number in range(4 + LOADS, 10)]
    for number in range(14):
        lines.append(_line(rng, number))
    for number in range(3):
        word = 512 + 128 * number
        lines.append(
            f"setp.eq.u32 %p7, %t, {rng.integers(0, 32)}; @%p7 st.global.u32 [%rd2+{word}], %r{rng.integers(4, 10)};"
        )
    return "\n".join([*lines, "W:", "setp.ne.u32 %p7, %r20, 0xffff; and.pred %p7, %p7, %p1; cvt.u64.u32 %rd3, %r20; add.u64 %rd3, %rd3, %rd1; @%p7 st.global.u32 [%rd3], 77;"])  # fmt: skip


def _line(rng: np.random.Generator, number: int) -> str:
    d, a, b = (f"%r{k}" for k in rng.integers(4, 10, 3))
    lane = int(rng.integers(0, 32))
    return str(rng.choice([
        f"add.u32 {d}, {a}, {b};", f"xor.b32 {d}, {a}, {b};", f"mov.u32 {d}, {lane};",
        f"shfl.sync.idx.b32 {d}, {a}, {lane}, 31, -1;", f"shfl.sync.bfly.b32 {d}, {a}, {1 << lane % 5}, 31, -1;",
        f"shfl.sync.up.b32 {d}, {a}, {lane % 8}, 0, -1;",
        f"setp.gt.u32 %p5, {a}, {b}; selp.u32 {d}, {b}, {lane}, %p5;",
        f"setp.gt.u32 %p5, %t, {lane}; selp.u32 {d}, {a}, {b}, %p5;",
        f"setp.gt.u32 %p5, {a}, {lane}; @%p5 add.u32 {d}, {b}, 1;",
        f"setp.gt.u32 %p5, {a}, {b}; @%p5 bra G{number}; add.u32 {d}, {d}, 3; G{number}:",
        f"setp.gt.u32 %p5, {a}, {b}; vote.sync.ballot.b32 {d}, %p5, -1;",
    ]))  # fmt: skip


def judged(seed: int, tries: int) -> tuple[int, int]:
    """How many loads of a program were taken for dead; none of those may make a difference."""
    rng = np.random.default_rng(seed)
    kernel = ptx.load(TEXT.format(body=made(rng)), "k.ptx").kernel("k")
    start = rng.integers(0, 64, 2048).astype(np.uint32)

    def result(data: np.ndarray, which: int, **options: Any) -> tuple[np.ndarray, ptx.Report]:
        memory = data.copy()
        report = kernel.launch(1, 64, [memory, np.uint32(which)], check=False, **options)
        return memory[:256], report

    plain, _ = result(start, 0xFFFF)
    dead = 0
    for _ in range(tries):
        word = 256 + 64 * int(rng.integers(LOADS)) + int(rng.integers(32))
        _, report = result(start, 4 * word, races="all", benign=True)
        if report.races:
            continue
        dead += 1
        for other in (0, 1, 77, 1 << 31):
            changed = start.copy()
            changed[word] = other
            assert np.array_equal(result(changed, 0xFFFF)[0], plain), (seed, word, other)
    return dead, tries - dead


@pytest.mark.parametrize("seeds", [range(7, 11), pytest.param(range(12), marks=pytest.mark.slow)])
def test_dead_loads_make_no_difference(seeds: range) -> None:
    dead, live = np.sum([judged(seed, 4) for seed in seeds], axis=0)
    assert min(dead, live) > len(seeds) / 2, (dead, live)
