"""Flags that count on, as semaphores do: block after block waits for its number."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from bench.common.ptx.agreement import broken
from bench.common.ptx.phases import LOOPS, Case, Op, explore, schedule
from tests.ptx.test_prove_ends import conditions

from warploom.errors import UnsupportedError
from warploom.machine.proof import Proof, Reach
from warploom.ptx import load
from warploom.ptx.emulate.asked import Model
from warploom.ptx.prove.certificate import certificate
from warploom.ptx.prove.flags import counted_on

BLOCKS, THREADS = 4, 64
# Block after block adds to the same sums; the last sets the flag back.
KERNEL = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 sums, .param .u64 flag)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
ld.param.u64 %rd1, [sums];
ld.param.u64 %rd2, [flag];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd3, %rd1, %rd3;
setp.ne.u32 %p1, %r1, 0;
add.u32 %r3, %r2, 1;
setp.eq.u32 %p2, %r3, 4;
selp.b32 %r4, 0, %r3, %p2;
mov.u32 %r5, %r2;
@%p1 bra MINE;
ASK:
LOOK
MINE:
bar.sync 0;
ld.global.u32 %r7, [%rd3];
add.u32 %r7, %r7, %r1;
st.global.u32 [%rd3], %r7;
bar.sync 0;
@%p1 bra DONE;
NEXT
DONE:
ret;
}
"""
LOOK = "ld.acquire.gpu.global.u32 %r6, [%rd2];\nsetp.ne.u32 %p3, %r6, %r5;\n@%p3 bra ASK;"
NEXT = "st.release.gpu.global.u32 [%rd2], %r4;"
ADD = "red.release.gpu.global.add.u32 [%rd2], 1;"
LEAST = LOOK.replace("setp.ne", "setp.lt")


def proved(look: str, following: str, first: int = 0, model: Model = "practice") -> Proof:
    text = KERNEL.replace("LOOK", look).replace("NEXT", following)
    given = [np.zeros(THREADS, np.uint32), np.array([first], np.uint32)]
    report = load(text, "k.ptx").kernel("k").launch(
        BLOCKS, THREADS, given, races="all", prove=True, model=model
    )  # fmt: skip
    assert report.proof is not None
    return report.proof


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    ("look", "following"),
    [
        (LOOK, NEXT), (LOOK, ADD), (LEAST, ADD), (LOOK, NEXT.replace("%r4", "%r3")),
        (LOOK.replace("acquire", "relaxed") + "\nfence.acq_rel.gpu;", "fence.acq_rel.gpu;\n" + ADD),
    ],
)  # fmt: skip
def test_blocks_take_turns(look: str, following: str, model: Model) -> None:
    proof = proved(look, following, model=model)
    assert proof.reach is Reach.ALL_DATA
    (held,) = [each for each in proof.assumed if "hold at the start" in each]
    assert held.endswith("0 in argument 1 ('flag')")


@pytest.mark.parametrize(
    ("look", "following"),
    [
        (LOOK.replace("acquire", "relaxed"), NEXT), (LOOK, NEXT.replace("release", "relaxed")),
        (LOOK.replace("gpu", "cta"), NEXT), (LOOK, NEXT.replace("gpu", "cta")),
        (LOOK.replace("setp.ne.u32 %p3, %r6, %r5", "setp.eq.u32 %p3, %r6, 99"), NEXT),  # at once
        (LOOK.replace("setp.ne.u32 %p3, %r6, %r5", "setp.gt.u32 %p3, %r6, %r5"), ADD),
    ],
)  # fmt: skip
def test_turns_that_are_not_kept(look: str, following: str) -> None:
    assert conditions(proved(look, following)) & {"flags", "races"}


def test_a_number_that_comes_twice_lets_the_wrong_one_pass() -> None:
    """Blocks 1 and 3 wait for one number: who is first is not known."""
    body = LOOK.replace("ld.acquire", "and.b32 %r5, %r2, 1;\nld.acquire", 1)
    text = body.replace("and.b32 %r5, %r2, 1;\n", "")
    half = "and.b32 %r4, %r3, 1;\n" + NEXT
    kernel = KERNEL.replace("mov.u32 %r5, %r2;", "and.b32 %r5, %r2, 1;")
    kernel = kernel.replace("LOOK", text).replace("NEXT", half)
    given = [np.zeros(THREADS, np.uint32), np.zeros(1, np.uint32)]
    report = load(kernel, "k.ptx").kernel("k").launch(
        BLOCKS, THREADS, given, races="all", prove=True
    )  # fmt: skip
    assert report.proof is not None
    assert "flags" in conditions(report.proof)


def test_there_is_no_certificate_yet() -> None:
    with pytest.raises(UnsupportedError, match="flags that count on"):
        certificate("k", (BLOCKS, 1, 1), (THREADS, 1, 1), proved(LOOK, NEXT), None)


def turn(r: Random, at: int) -> list[Op]:
    """A thread waits for its number and writes the next, now and then another one."""
    ops = []
    if at or r.random() < 0.7:
        number = at if r.random() < 0.9 else r.randrange(4)
        ops.append(Op(r.choice(("equal", "equal", "look")), 0, number))
    if r.random() < 0.93:
        number = at + 1 if r.random() < 0.9 else r.choice((0, 1, 2, at))
        ops.append(r.choice((Op("set", 0, number), Op("add", 0, 1))))
    if r.random() < 0.1:
        ops.append(Op("equal", 0, r.randrange(4)))
    return ops


@pytest.mark.slow
def test_turns_against_all_schedules() -> None:
    """Of small programs, right and wrong ones, none is accepted that may go another way."""
    r, accepted, refused = Random(3), 0, 0
    for _ in range(1500):
        threads = r.choice((2, 2, 3, 3, 4))
        rounds = r.choice((1, 1, 2)) if threads < 4 else 1
        program = tuple(
            tuple(op for k in range(rounds) for op in turn(r, k * threads + i))
            for i in range(threads)
        )
        case = Case(program, (), (), (r.choice((0, 0, 0, 0, 1)),))
        run = schedule(case, r)
        if run is None or not counted_on(replace(run[1], loops=tuple(LOOPS.values())), LOOPS)[1]:
            continue
        good = not broken(run[1])
        accepted, refused = accepted + good, refused + (not good)
        if good:
            assert explore(case, run[0]) in ("same", "too many"), case
    assert accepted > 200
    assert refused > 10
