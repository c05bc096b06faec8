# ruff: noqa: E501 - programs read better with a line each
"""Where threads wait for each other: what can never be complete is found, what is legal goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import of

from warploom import ptx
from warploom.errors import DeviceError
from warploom.machine.proof import Proof, Reach
from warploom.ptx.prove.certificate import certificate
from warploom.trust.schedule import check_schedule

TEXT = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{{ .reg .pred %p<6>; .reg .b32 %t, %w, %l, %m, %n, %u, %v, %r<6>; .reg .b64 %rd<3>; .shared .align 4 .b8 d[512];
mov.u32 %t, %tid.x; mov.u32 %l, %laneid; shr.u32 %w, %t, 5; ld.param.u64 %rd1, [a]; mul.wide.u32 %rd2, %t, 4; add.s64 %rd1, %rd1, %rd2;
ld.param.u32 %n, [n]; mov.u32 %v, 5; setp.lt.u32 %p1, %l, 16;
{body}
st.global.u32 [%rd1], %v;
E: ret; }}
"""


def run(body: str, threads: int = 64, n: int = 0, **options: Any) -> list[int]:
    out = np.zeros(threads, np.uint32)
    kernel = ptx.load(TEXT.format(body=body), "k.ptx").kernel("k")
    kernel.launch(1, threads, [out, n], **options)
    return out.tolist()


def refused(body: str, message: str, threads: int = 64, n: int = 0, **options: Any) -> None:
    with pytest.raises(DeviceError, match=message) as caught:
        run(body, threads, n, **options)
    assert caught.value.span is not None
    assert "block (0,0,0), thread (" in caught.value.message


# -- barriers of a block ----------------------------------------------------------------------


@pytest.mark.parametrize("races", [False, True])
@pytest.mark.parametrize(
    ("barrier", "message"),
    [
        ("bar.sync 1, 128;", "barrier 1 is never complete: it is for 128 threads, and only 64 come"),
        ("barrier.sync 3, 96;", "for 96 threads, and only 64 come"),
        ("bar.red.popc.u32 %v, 1, 128, %p1;", "for 128 threads"),
        ("mov.u32 %r1, 128; bar.sync 2, %r1;", "for 128 threads"),
        ("bar.sync %n;", "no barrier 17"),
        ("bar.sync 1, %n;", "17 threads, which is no multiple of 32"),
        ("bar.arrive 1, %w;", "for 0 threads"),
        ("setp.eq.u32 %p2, %w, 0; @%p2 bar.sync 1, 64; @!%p2 bar.sync 1, 96;", "for 96 threads, at which other threads wait for 64"),
        ("setp.eq.u32 %p2, %w, 0; @%p2 bar.sync 1; @!%p2 bar.sync 1, 32;", "other threads wait for all threads"),
        ("setp.eq.u32 %p2, %w, 0; @%p2 bar.sync 1, 64; @%p2 bra J; bar.red.popc.u32 %v, 1, 64, %p1;\nJ:", "a reduction at a barrier"),
        ("@%p1 bar.sync 1; @!%p1 bar.sync 1;", "lanes of one warp"),
        ("setp.eq.u32 %p2, %w, 0; @%p2 bar.sync 1, 64; @!%p2 bar.sync 2, 64;", "barrier 1 is never complete.* only 32 come"),
        ("setp.eq.u32 %p2, %w, 0; @%p2 bra E; bar.sync 1, 64;", "only 32 come"),  # who left does not count
        ("@%p1 bra J; bar.sync 1, 32;\nJ:", "not all|only 0 come"),  # a warp comes as a whole
    ],
)  # fmt: skip
def test_barriers_that_cannot_be(barrier: str, message: str, races: bool) -> None:
    refused(barrier, message, n=17, races=races)


@pytest.mark.parametrize(
    ("barrier", "message"),
    [("bar.sync 16;", "no barrier 16"), ("bar.sync 1, 33;", "no multiple of 32"), ("bar.arrive 1, 0;", "for 0 threads"),
     ("barrier.red.or.pred %p2, 17, %p1;", "no barrier 17")],
)  # fmt: skip
def test_what_the_assembler_refuses(barrier: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message) as caught:
        run(barrier)
    assert caught.value.span is not None


SPECIALISED = """setp.eq.u32 %p2, %w, 2; @%p2 bra OTHER;
st.shared.u32 [d], 1; bar.sync 1, 64; bra J;
OTHER: st.shared.u32 [d+4], 2;
J:"""


@pytest.mark.parametrize(
    ("body", "threads"),
    [
        ("bar.sync 0;", 64),
        ("bar.sync 1, 0;", 64),  # the assembler reads it as one for all
        ("bar.sync 1, 64;", 48),  # a warp counts as 32 whatever it holds
        ("bar.sync 15, 32;", 64),  # each warp for itself
        ("setp.eq.u32 %p2, %w, 2; @%p2 bra OTHER;\nbar.sync 1, 64; bra J;\nOTHER: add.u32 %v, %v, 0;\nJ:", 96),
        ("setp.eq.u32 %p2, %w, 0; @%p2 bra A;\nbar.sync 1, 64; bra J;\nA: bar.arrive 1, 64;\nJ:", 64),
        ("setp.ge.u32 %p2, %t, 40; @%p2 bra E; bar.sync 0;", 40),
        ("setp.eq.u32 %p2, %w, 0; @%p2 barrier.sync 1; @!%p2 barrier.sync 1;", 64),
        ("@%p1 barrier.sync 1; @!%p1 barrier.sync 1;", 64),  # not aligned
        ("bar.arrive 1, 64;", 32),  # nobody waits
        ("bar.sync 1, 64; bar.sync 1, 64; bar.sync 1, 64;", 64),
    ],
)  # fmt: skip
@pytest.mark.parametrize("races", [False, True])
def test_legal_barriers(body: str, threads: int, races: bool) -> None:
    assert run(body, threads, races=races) == [5] * threads


def test_reductions_join_all_that_came() -> None:
    """From two places in the code, and for one part of the block only."""
    body = ("setp.eq.u32 %p3, %w, 2; @%p3 bra J; setp.eq.u32 %p2, %w, 0; @%p2 bra A;\nbarrier.red.popc.u32 %v, 1, 64, %p1; bra J;\n"
            "A: setp.lt.u32 %p1, %l, 4; barrier.red.popc.u32 %v, 1, 64, %p1;\nJ:")  # fmt: skip
    assert run(body, 96) == [20] * 64 + [5] * 32
    body = body.replace(
        "red.popc.u32 %v, 1, 64, %p1;", "red.and.pred %p4, 1, 64, %p1; selp.u32 %v, 1, 0, %p4;"
    )
    assert run(body, 96) == [0] * 64 + [5] * 32
    assert run(body.replace("red.and", "red.or"), 96) == [1] * 64 + [5] * 32
    assert run("bar.red.popc.u32 %v, 0, %p1;", 40) == [24] * 40


# -- lanes of a warp --------------------------------------------------------------------------

COLLECTIVES = {
    "shfl": "shfl.sync.idx.b32 %v, %v, 0, 31, {};",
    "any": "vote.sync.any.pred %p4, %p1, {};",
    "ballot": "vote.sync.ballot.b32 %u, %p1, {};",
    "match": "match.any.sync.b32 %u, %v, {};",
    "redux": "redux.sync.add.u32 %u, %v, {};",
    "elect": "elect.sync %u|%p4, {};",
    "barrier": "bar.warp.sync {};",
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_masks_must_name_who_executes(name: str) -> None:
    text = COLLECTIVES[name]
    refused(text.format("0xffff"), "does not name the lane that executes it.*thread .16,0,0.")
    refused("shl.b32 %m, 2, %l;" + text.format("%m"), "does not name the lane")
    assert run(text.format("-1"), 48) == [5] * 48
    assert run(text.format("0xffff"), 16) == [5] * 16
    # Each half by itself, with a mask of its own.
    assert run("selp.b32 %m, 0xffff, 0xffff0000, %p1; @%p1 bra A; mov.u32 %r1, 16;\nA:" +
               text.format("%m").replace(" 0, 31", " %l, 31")) == [5] * 64  # fmt: skip


@pytest.mark.parametrize("name", COLLECTIVES)
def test_lanes_that_are_named_must_come(name: str) -> None:
    text = COLLECTIVES[name].format("-1")
    skipped = f"@!%p1 bra J;\n{text}\nJ: add.u32 %v, %v, 0; bar.sync 0;"
    refused(skipped, "names lane 16, which does not come here|not all threads")
    if name != "barrier":
        refused(f"@!%p1 bra J;\n{text}\nJ: add.u32 %v, %v, 0;", "names lane 16.* is past it")
        refused(f"@%p1 {text}\nadd.u32 %v, %v, 0;\nbra K;\nK:", "names lane 16")
        refused(
            f"@%p1 bra A;\n{text}\nbra J;\nA: {text}\nJ:", "names lane"
        )  # not the same instruction
    assert run(f"@!%p1 bra E;\n{text}") == ([5] * 16 + [0] * 16) * 2  # who left is not waited for
    later = f"@!%p1 bra O;\n{text} bra J;\nO: st.global.u32 [%rd1], 3; ret;\nJ:"
    assert run(later) == ([5] * 16 + [3] * 16) * 2
    iterations = f"setp.lt.u32 %p2, %l, 7; selp.u32 %r1, 3, 1, %p2;\nL: sub.u32 %r1, %r1, 1; setp.ne.u32 %p2, %r1, 0; {text}\n@%p2 bra L;\nadd.u32 %v, %v, 0;"
    refused(iterations, "names lane")


def test_lanes_of_different_masks_do_not_meet() -> None:
    refused(
        "setp.eq.u32 %p2, %l, 0; selp.b32 %m, -1, 0xfffffffe, %p2; redux.sync.add.u32 %u, %v, %m;",
        "names lane 1",
    )
    refused(
        "setp.eq.u32 %p2, %l, 0; selp.b32 %m, -1, 0xfffffffe, %p2; bar.warp.sync %m;",
        "names lane 1",
    )


# -- values that nobody gave ------------------------------------------------------------------

INACTIVE = "@!%p1 bra E;\nshfl.sync.down.b32 %u, %v, 8, 31, 0xffff;"  # lanes 8 to 15 read 16 to 23


@pytest.mark.parametrize(
    ("use", "what"),
    [
        ("mov.u32 %v, %u;", "what is stored by st.global.u32"),
        ("add.u32 %v, %u, 1; sub.u32 %v, %v, 1;", "what is stored by"),
        ("setp.eq.u32 %p2, %u, 5; @%p2 bra E;", "the predicate of bra"),
        ("cvt.u64.u32 %rd2, %u; add.s64 %rd1, %rd1, %rd2;", "an address of st.global.u32"),
        ("and.b32 %u, %u, 0; ld.shared.u32 %v, [%u];", "an address of ld.shared.u32"),
        ("setp.eq.u32 %p2, %u, 5; selp.u32 %v, 1, 2, %p2;", "what is stored by"),
        ("setp.eq.u32 %p2, %u, 5; @%p2 mov.u32 %v, 1;", "what is stored by"),
        ("setp.eq.u32 %p2, %u, 5; @%p2 st.global.u32 [%rd1], 3;", "the predicate of st.global"),
        ("shfl.sync.bfly.b32 %v, %u, 8, 31, 0xffff;", "what is stored by"),
        ("vote.sync.ballot.b32 %v, %p1, 0xffff; redux.sync.add.u32 %v, %u, 0xffff;", "what is stored by"),
        ("atom.shared.add.u32 %v, [d], %u;", "what is stored by atom"),
        ("bar.warp.sync %u;", "an operand of bar.warp.sync"),
    ],
)  # fmt: skip
def test_values_of_lanes_that_are_not_there(use: str, what: str) -> None:
    refused(
        f"{INACTIVE}\n{use}",
        f"%[a-z0-9]+ is {what}.*holds no value: shfl.sync.down.b32 .line 9. reads from a lane that gives none",
    )
    unwritten = "{ .reg .b32 %u; .reg .pred %q;\n" + use + "\nst.global.u32 [%rd1], %v; }"
    refused(
        f"@!%p1 bra E;\n{unwritten}",
        f"%[a-z0-9@]+ is {what}.*holds no value: nobody wrote %u",
        check=True,
    )
    assert len(run(f"{INACTIVE}\nmov.u32 %v, %u;", check=False)) == 64


@pytest.mark.parametrize(
    "use",
    [
        "",  # computed and never used
        "st.shared.u32 [d], %u;",  # and stored where nobody reads it
        "setp.gt.u32 %p2, %l, 99; setp.eq.and.u32 %p2, %u, 5, %p2; @%p2 bra E;",
        "setp.eq.u32 %p2, %u, 5; and.pred %p2, %p2, 0; @%p2 bra E;",
        "add.u32 %u, %u, 1;",
        "setp.lt.u32 %p2, %l, 8; selp.u32 %v, %u, 5, %p2;",
        "setp.ge.u32 %p2, %l, 8; @%p2 mov.u32 %u, 5; mov.u32 %v, %u;",
        "setp.lt.u32 %p2, %l, 8; @%p2 mov.u32 %v, %u;",
        "shfl.sync.idx.b32 %v, %u, 3, 31, 0xffff;",
        "setp.ge.u32 %p2, %l, 8; @%p2 bra J;\nmov.u32 %v, %u;\nJ:",
        "{ .local .align 4 .b8 own[4]; st.local.u32 [own], %u; }",
    ],
)
def test_values_that_are_not_used_raise_nothing(use: str) -> None:
    assert run(f"{INACTIVE}\n{use}") == ([5] * 16 + [0] * 16) * 2


def test_predicated_definitions_are_definitions() -> None:
    body = "{ .reg .b32 %q; @%p1 mov.u32 %q, 5; @!%p1 add.u32 %q, %l, 0; mov.u32 %v, %q; }"
    assert run(body, 32) == [5] * 16 + list(range(16, 32))
    missing = "{ .reg .b32 %q; @%p1 mov.u32 %q, 5; mov.u32 %v, %q; st.global.u32 [%rd1], %q; }"
    refused(missing, "holds no value: nobody wrote %q.*thread .16,0,0.")


def test_a_carry_that_nobody_set() -> None:
    refused("addc.u32 %v, %l, 1;", "holds no value: nobody wrote %cc")


@pytest.mark.parametrize("threads", [64, 40])
@pytest.mark.parametrize("first", [0, 1])
def test_a_number_of_all_threads_says_what_no_number_says(threads: int, first: int) -> None:
    """What a warp wrote before one of the two is there for the other behind the other."""
    body = f"""setp.eq.u32 %p2, %w, {first}; @%p2 bra B; mov.u32 %r1, 7;
    setp.eq.u32 %p3, %l, 0; @%p3 st.shared.u32 [d], %r1; bar.sync 1, 64; bra J;
    B: bar.sync 1; ld.shared.u32 %v, [d];
    J:"""
    out = np.zeros(threads, np.uint32)
    text = TEXT.format(body=body).replace(
        "st.shared.u32 [d], 7", "mov.u32 %r1, 7; st.shared.u32 [d], %r1"
    )
    kernel = ptx.load(text, "k.ptx").kernel("k")
    report = kernel.launch(1, threads, [out, 0], races=True, prove=True)
    warp = np.arange(threads) // 32
    assert out.tolist() == np.where(warp == first, 7, 5).tolist()
    proof = of(Proof, report.proof)
    assert proof.reach is Reach.ALL_DATA, proof.failed
    check_schedule(certificate("k", (1, 1, 1), (threads, 1, 1), proof, None))


def test_but_not_where_some_have_left() -> None:
    body = "setp.eq.u32 %p2, %w, 2; @%p2 bra E; setp.eq.u32 %p2, %w, 0; @%p2 bar.sync 1; @!%p2 bar.sync 1, 96;"
    refused(body, "for 96 threads", threads=96)
