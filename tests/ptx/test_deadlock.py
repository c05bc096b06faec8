# ruff: noqa: E501 - programs read better with a line each
"""A launch in which no thread can go on ends at once, and says who waits where, and for what."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeadlockError, LimitError
from warploom.ptx import launch as launch_module
from warploom.ptx.demangle import local_name

HEAD = """.version 8.0
.target sm_90
.address_size 64
"""
KERNEL = """.visible .entry k(.param .u64 a)
{ .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
.shared .align 8 .b64 full[4]; .shared .align 16 .b32 tile[64];
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0;
"""
INIT = "@%p1 bra I; mbarrier.init.shared.b64 [full+8], 2; I: bar.sync 0;\n"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [full+8], 0; @!%p2 bra W;\n"
ARRIVE = "mbarrier.arrive.shared.b64 %rd2, [full+8];\n"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 %rd2, [full+8], 64;\n"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], {}, [full+8];\n"
SPIN = "L: ld.volatile.global.u32 %r2, [%rd1+8]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L;\n"


def launch(body: str, blocks: int = 1, before: str = "", **options: Any) -> ptx.Report:
    text = f"{HEAD}{before}{KERNEL}{body}ret; }}\n"
    options = {"seconds": 60, **options}
    array = options.pop("array", np.zeros(64, np.uint32))
    return ptx.load(text, "k.ptx").kernel("k").launch(blocks, 64, [array], **options)


CASES = {
    "nobody arrives": (
        INIT + WAIT,
        ["64|63 others", r"full\[1\], phase 0 \(parity 0\): 0 of 2 arrivals came", "asks for parity 1"],
    ),
    "one arrival is missing": (
        INIT + "@%p1 bra J;\n" + ARRIVE + "J:" + WAIT,
        [r"1 of 2 arrivals came from thread 0", "is initialised for 2 arrivals, and fewer threads"],
    ),
    "more bytes are expected than come": (
        INIT + "@%p1 bra J;\n" + EXPECT + ARRIVE + COPY.format(48) + "J:" + WAIT,
        ["48 of 64 expected bytes came", "expect_tx names 16 bytes more than its copies bring"],
    ),
    "more bytes come than are expected": (
        INIT + "@%p1 bra J;\n" + EXPECT + ARRIVE + COPY.format(80) + "J:" + WAIT,
        ["its copies bring 16 bytes more than expect_tx names"],
    ),
    "a flag that nobody sets": (
        SPIN, [r"63 others wait at line 8 for byte 8 of argument 0 \('a'\) to change"],
    ),
    "a lock that its holder does not give back": (
        "L: atom.global.cas.b32 %r2, [%rd1], 0, 1; setp.ne.u32 %p3, %r2, 0; @%p3 bra L;\n",
        [r"thread \(1,0,0\) and 62 others wait at line 8", "atom.global.cas"],
    ),
    "some at a barrier of the block, some at an mbarrier": (
        INIT + "setp.lt.u32 %p4, %r1, 32; @%p4 bra Z;\n" + WAIT + "Z: bar.sync 1;\n",
        [r"thread \(32,0,0\) and 31 others wait at line 10 for full\[1\]",
         r"thread \(0,0,0\) and 31 others wait at line 11 for the others, at bar.sync"],
    ),
    "a loop without a way out": ("L: bra L;\n", ["does not end: no thread can leave its loop"]),
    "a loop without a way out behind one that counts": (
        "mov.u32 %r2, 0;\nS: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 300; @%p3 bra S;\n"
        "L: bra L;\n",
        [r"63 others wait at line 10 for nothing: this loop has no way out"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"races": True}, {"schedule": 3}], ids=str)
@pytest.mark.parametrize(("body", "said"), CASES.values(), ids=list(CASES))
def test_a_deadlock_is_said_at_once(body: str, said: list[str], options: dict[str, Any]) -> None:
    started = time.process_time()
    if "atom" in body and options.get("schedule"):
        said = said[1:]  # who is the first depends on chance
    with pytest.raises(DeadlockError) as error:
        launch(body, **options)
    for each in said:
        assert re.search(each, f"{error.value.message} {error.value.advice}"), error.value
    assert error.value.span is not None
    assert time.process_time() - started < 20


def test_blocks_that_wait_alike_are_one_group() -> None:
    with pytest.raises(DeadlockError) as error:
        launch(INIT + WAIT, blocks=3)
    assert "thread (0,0,0) and 191 others wait" in error.value.message
    assert error.value.message.count("\n") == 1


def test_compiled_code_is_looked_at_by_the_evaluator() -> None:
    with pytest.raises(DeadlockError, match="for byte 8 of argument 0"):
        launch(SPIN, blocks=64, engine="c")


def test_what_comes_late_is_waited_for() -> None:
    """Bytes land while everybody looks at memory, not at the mbarrier that counts them."""
    copied = INIT + "@%p1 bra J;\n" + EXPECT + ARRIVE + COPY.format(64)
    look = "J: mbarrier.test_wait.parity.shared.b64 %p2, [full+8], 0; @!%p2 bra J;\n"
    launch(copied + look, array=np.ones(64, np.uint32))


@pytest.mark.parametrize("word", ["%clock64", "%globaltimer"])
def test_a_loop_that_looks_at_the_clock_ends_by_itself(word: str) -> None:
    wait = f"L: mov.u64 %rd4, {word}; sub.u64 %rd5, %rd4, %rd3; setp.lt.u64 %p3, %rd5, 3000; @%p3 bra L;\n"
    launch(f"mov.u64 %rd3, {word};\n{wait}")


def test_a_long_computation_is_no_deadlock() -> None:
    """One thread counts for long, without an effect, while the others look at what it will write."""
    count = "@%p1 bra L; mov.u32 %r3, 0; C: add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 5000; @%p4 bra C;\nst.volatile.global.u32 [%rd1+8], 1;\n"
    out = np.zeros(64, np.uint32)
    launch(count + SPIN, array=out, engine="numpy")
    assert out[2] == 1


def test_who_waits_in_a_call_may_be_helped_from_outside() -> None:
    """The evaluator runs a call to its end: those outside of it may still write, so time decides."""
    function = ".func f(.param .u64 a) { .reg .pred %p3; .reg .b32 %r2; .reg .b64 %rd1; ld.param.u64 %rd1, [a];\n"
    function += SPIN + "ret; }\n"
    call = "{ .param .u64 p; st.param.u64 [p], %rd1; call f, (p); }\n"
    with pytest.raises(DeadlockError):
        launch(call, before=function)
    with pytest.raises(LimitError):
        launch(
            "@!%p1 bra J;\n" + call + "J: st.volatile.global.u32 [%rd1+8], 0;\n",
            before=function,
            seconds=1,
        )


@pytest.mark.parametrize(
    ("name", "plain"),
    [("_ZZ4gemmE4full", "full"), ("_ZZ4gemmE4full_0", "full"), ("_ZZN2ns1kIfEEvPT_E5empty__12_", "empty"),
     ("full", "full"), ("_ZZ4gemmE40full", "_ZZ4gemmE40full")],
)  # fmt: skip
def test_names_of_variables(name: str, plain: str) -> None:
    assert local_name(name) == plain


def test_compiled_code_that_waits_gets_all_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first slice, then a look by the evaluator, then the whole launch: compiled all the time."""
    monkeypatch.setattr(launch_module, "FIRST_SLICE", 0.0)
    monkeypatch.setattr(launch_module, "LOOKED_AT", 0.0)
    count = "mov.u32 %r3, 0; L: ld.volatile.global.u32 %r2, [%rd1+8]; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 9000; @%p3 bra L;\n"
    out = np.zeros(64, np.uint32)
    report = launch(
        count
        + "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; setp.gt.u32 %p4, %r1, 4;\n@%p4 st.global.u32 [%rd4], %r3;\n",
        array=out,
        engine="c",
    )
    assert report.engine in ("c", "numpy")
    assert out.tolist() == [0] * 5 + [9000] * 59
