"""Values that nobody gave, in the fast engine: kernels at random, as the evaluator has them.

A kernel reads registers that nobody wrote, shared memory of which a part was written and lanes that
are not there, mixes them with values and chooses; some results depend on what is none, most do not.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.tools import is_here

from warploom import ptx
from warploom.errors import WarploomError
from warploom.ptx.emulate.asked import EngineName

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")

THREADS = 40  # the second warp is not full
NUMBERS, TRUTHS = 8, 4  # registers; the last two and the last one are not written at first


def step(chance: random.Random) -> str:
    def number() -> str:
        return f"%r{chance.randrange(NUMBERS)}"

    def truth() -> str:
        return f"%p{chance.randrange(TRUTHS)}"

    guard = chance.choice(["", "", "", "@%p0 ", f"@!{truth()} "])
    sort = chance.choice(
        ["add", "selp", "and", "setp", "shfl", "vote", "load", "store", "mov", "xor"]
    )
    match sort:
        case "add" | "xor":
            word = "add.u32" if sort == "add" else "xor.b32"
            return f"{guard}{word} {number()}, {number()}, {number()};"
        case "mov":
            return f"{guard}mov.b32 {number()}, {chance.choice([number(), '7'])};"
        case "selp":
            return f"selp.b32 {number()}, {number()}, {number()}, {truth()};"
        case "and":
            word = chance.choice(["and", "or"])
            return f"{word}.pred {truth()}, {truth()}, {truth()};"
        case "setp":
            word = chance.choice(["", ".and", ".or"])
            more = f", {truth()}" if word else ""
            return f"setp.lt{word}.u32 {truth()}, {number()}, {number()}{more};"
        case "shfl":
            far = chance.randrange(1, 17)
            return f"shfl.sync.down.b32 {number()}|{truth()}, {number()}, {far}, 31, -1;"
        case "vote":
            return f"vote.sync.ballot.b32 {number()}, {truth()}, -1;"
        case "load":
            guard = chance.choice(["", "@%p0 "])
            return f"{guard}ld.shared.u32 {number()}, [%a+{4 * chance.randrange(8)}];"
        case _:
            return f"st.shared.u32 [%a+{4 * chance.randrange(8)}], {number()};"


def kernel_text(seed: int) -> str:
    chance = random.Random(seed)
    steps = "\n".join(step(chance) for _ in range(14))
    shown = chance.randrange(NUMBERS)
    jump = chance.choice(["", f"@%p{chance.randrange(TRUTHS)} bra END;"])
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
.reg .pred %p<{TRUTHS + 1}>; .reg .b32 %r<{NUMBERS}>; .reg .b32 %t; .reg .b32 %a;
.reg .b64 %o, %w;
.shared .align 8 .b32 room[64];
mov.u32 %t, %tid.x;
mov.u32 %a, room;
mad.lo.u32 %a, %t, 4, %a;
setp.lt.u32 %p0, %t, {chance.randrange(20, 40)};
setp.gt.u32 %p1, %t, 4;
setp.eq.u32 %p2, %t, %t;
@%p0 st.shared.u32 [%a], %t;
bar.sync 0;
mov.u32 %r0, %t; mov.u32 %r1, 3; add.u32 %r2, %t, 5; mov.u32 %r3, 9; mov.u32 %r4, 1; mov.u32 %r5, 2;
{steps}
{jump}
selp.b32 %r1, %r{shown}, %r0, %p{chance.randrange(2)};
ld.param.u64 %o, [out];
mul.wide.u32 %w, %t, 4;
add.u64 %o, %o, %w;
@%p0 st.global.u32 [%o], %r1;
END:
ret;
}}
"""


def outcome(seed: int, engine: EngineName) -> tuple[str, bytes, str]:
    out = np.zeros(THREADS, np.uint32)
    try:
        report = ptx.load(kernel_text(seed)).kernel("k").launch(2, THREADS, [out], engine=engine)
    except WarploomError as error:
        return error.message, b"", ""
    return "", out.tobytes(), report.engine


def judged(seeds: range) -> tuple[int, int, int]:
    """How many were right, found wrong, and run as C."""
    right = wrong = taken = 0
    for seed in seeds:
        said, bits, _ = outcome(seed, "numpy")
        also, same, engine = outcome(seed, "c")
        assert (said, bits) == (also, same), f"seed {seed}\n{kernel_text(seed)}"
        right, wrong, taken = right + (not said), wrong + bool(said), taken + (engine == "c")
    return right, wrong, taken


def test_kernels_at_random() -> None:
    right, wrong, taken = judged(range(8))
    assert wrong >= 1
    assert taken >= 3
    assert taken == right


@pytest.mark.slow
def test_more_kernels_at_random() -> None:
    right, wrong, taken = judged(range(8, 308))
    assert wrong >= 50
    assert taken == right
