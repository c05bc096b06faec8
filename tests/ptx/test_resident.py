# ruff: noqa: E501 - programs read better with a line each
"""Blocks that wait for each other: all that a GPU runs at once are there to be waited for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeadlockError
from warploom.ptx.emulate import trial

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
MEET = """
{ .reg .pred %q; .reg .b32 %n, %g; mov.u32 %g, %nctaid.x; fence.acq_rel.gpu; atom.global.add.u32 %n, [%c], 1;
WAIT: LOOK setp.lt.u32 %q, %n, %g; @%q bra WAIT; fence.acq_rel.gpu; }
"""
# Every block writes, all meet, every block reads what the next one wrote.
KERNEL = """.visible .entry k(.param .u64 count, .param .u64 data, .param .u64 out)
{ .reg .pred %p; .reg .b32 %t, %b, %d, %i, %j, %s, %v; .reg .b64 %c, %x, %o, %l;
ld.param.u64 %c, [count]; ld.param.u64 %x, [data]; ld.param.u64 %o, [out];
mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mov.u32 %s, %nctaid.x; mul.lo.u32 %s, %s, %d;
mad.lo.u32 %i, %b, %d, %t; mad.wide.u32 %l, %i, 4, %x; st.global.u32 [%l], %i; bar.sync 0;
setp.ne.u32 %p, %t, 0; @%p bra OVER; MEET
OVER: bar.sync 0; add.u32 %j, %i, %d; rem.u32 %j, %j, %s; mad.wide.u32 %l, %j, 4, %x; ld.global.u32 %v, [%l];
mad.wide.u32 %l, %i, 4, %o; st.global.u32 [%l], %v; ret; }
"""
LOOKS = {
    "atomics": "atom.global.add.u32 %n, [%c], 0;",
    "volatile loads": "ld.volatile.global.u32 %n, [%c];",
    "generic addresses": "ld.acquire.gpu.u32 %n, [%c];",
}
CALLED = """.func meet(.param .u64 count)
{ .reg .b64 %c; ld.param.u64 %c, [count]; MEET
ret; }
"""


def text(look: str, called: bool = False) -> str:
    meet = MEET.replace("LOOK", look)
    if not called:
        return HEAD + KERNEL.replace("MEET", meet)
    call = "{ .param .u64 p; st.param.u64 [p], %c; call meet, (p); }"
    return HEAD + CALLED.replace("MEET", meet) + KERNEL.replace("MEET", call)


def run(source: str, blocks: int, **options: Any) -> np.ndarray:
    n = blocks * 32
    out = np.zeros(n, np.uint32)
    arguments = [np.zeros(1, np.uint32), np.zeros(n, np.uint32), out]
    options = {"seconds": 20, **options}
    report = ptx.load(source, "k.ptx").kernel("k").launch(blocks, 32, arguments, **options)
    assert report.engine == "numpy"
    return out


@pytest.mark.parametrize("races", [False, True])
@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_barrier_of_the_grid(
    look: str, called: bool, races: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of several batches: the first ones waited for what had not begun."""
    monkeypatch.setattr(trial, "BATCH_THREADS", 64)
    out = run(text(look, called), 12, races=races)
    assert out.tolist() == np.roll(np.arange(12 * 32), -32).tolist()


def test_who_has_not_begun_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "RESIDENT_THREADS", 64)
    with pytest.raises(DeadlockError, match=r"\n  10 blocks of the grid have not begun"):
        run(text(LOOKS["atomics"]), 12)


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        ("L: atom.global.add.u32 %r, [%l], 1; setp.lt.u32 %p, %r, 3; @%p bra L;", True),
        ("atom.global.add.u32 %r, [%l], 1; L: add.u32 %r, %r, 1; setp.lt.u32 %p, %r, 3; @%p bra L;", False),
        ("L: add.u32 %r, %r, 1; setp.lt.u32 %p, %r, 3; @%p bra L; atom.global.add.u32 %r, [%l], 1;", False),
        ("L: atom.shared.add.u32 %r, [s], 1; setp.lt.u32 %p, %r, 3; @%p bra L;", False),
        ("L: ld.global.u32 %r, [%l]; setp.lt.u32 %p, %r, 3; @%p bra L;", False),
        ("L: red.global.add.u32 [%l], 1; setp.lt.u32 %p, %r, 3; @%p bra L;", False),
        ("L: add.u32 %r, %r, 1; M: atom.global.add.u32 %r, [%l], 1; setp.lt.u32 %p, %r, 3; @%p bra M; @!%p bra L;", True),
    ],
)  # fmt: skip
def test_which_kernels_may_wait(body: str, waits: bool) -> None:
    """Others run in batches that fit the caches."""
    source = f"{HEAD}.visible .entry k(.param .u64 x) {{ .shared .u32 s; .reg .pred %p; .reg .b32 %r; .reg .b64 %l; mov.u32 %r, 0; ld.param.u64 %l, [x]; {body} ret; }}"
    kernel = ptx.load(source).kernel("k")
    found = kernel._lookup("k")
    assert found is not None
    assert found[1].may_wait_for_blocks == waits
