"""Atomics, locks and waiting loops as the libraries that come with CUDA write them."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ptx.test_opcodes import refused_by_ptxas

from warploom import ptx
from warploom.errors import UnsupportedError
from warploom.machine.clock import Vector
from warploom.ptx.known import spelled

KERNEL = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
  .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<4>;
  .shared .align 8 .b8 tile[64];
  ld.param.u64 %rd1, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
{body}
  ret;
}}
"""


def launched(
    body: str, grid: int = 1, block: int = 32, **options: Any
) -> tuple[ptx.Report, np.ndarray]:
    out = np.zeros(64, np.uint32)
    kernel = ptx.load(KERNEL.format(body=body), "k.ptx").kernel("k")
    return kernel.launch(grid, block, [out], **options), out


# -- words in the order of libcu++ ---------------------------------------------------------------

REORDERED = [
    ("atom", ("add", "acquire", "gpu", "global"), "u32"),
    ("atom", ("exch", "release", "sys"), "b32"),
    ("atom", ("add", "noftz", "relaxed", "gpu"), "f16x2"),
    ("red", ("or", "release", "cta"), "b32"),
    ("ld", ("global", "acquire", "gpu"), "u32"),
    ("st", ("shared", "release", "cta"), "u32"),
]


@pytest.mark.parametrize(("opcode", "words", "kind"), REORDERED)
def test_the_words_before_the_type_stand_in_any_order(
    opcode: str, words: tuple[str, ...], kind: str
) -> None:
    for order in permutations(words):
        assert spelled(opcode, (*order, kind)), (opcode, order)
    for wrong in ((*words, words[0], kind), (*words, "sometimes", kind), (kind, *words), words):
        assert not spelled(opcode, wrong), (opcode, wrong)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
def test_the_assembler_takes_them_in_any_order_too(tmp_path: Path) -> None:
    operands = {"atom": "%r0, [%l8], %r1", "red": "[%l8], %r1", "ld": "%r0, [%l8]",
                "st": "[tile], %r1"}  # fmt: skip
    texts = [
        f"{'.'.join((opcode, *order, kind))} {operands[opcode]};"
        for opcode, words, kind in REORDERED
        for order in permutations(words)
    ]
    assert refused_by_ptxas(texts, "sm_90a", tmp_path) == set()


def test_an_atomic_in_another_order_does_the_same() -> None:
    body = """
  atom.add.acq_rel.gpu.u32 %r2, [%rd1], %r0;
  red.max.relaxed.gpu.u32 [%rd1+4], %r2;"""
    _, out = launched(body)
    assert out[:2].tolist() == [31 * 32 // 2, 30 * 31 // 2]


LOCK = """
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra END;
TAKE:
  atom.cas.acquire.{scope}.b32 %r2, [%rd1], 0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra TAKE;
  ld.global.u32 %r3, [%rd1+4];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd1+4], %r3;
  atom.exch.release.{scope}.b32 %r4, [%rd1], 0;
END:
"""


@pytest.mark.parametrize(("scope", "racing"), [("gpu", False), ("cta", True)])
def test_a_lock_orders_what_its_scope_holds(scope: str, racing: bool) -> None:
    """One of a block's scope does not order two blocks."""
    report, out = launched(LOCK.format(scope=scope), grid=2, races="all")
    assert bool(report.races) == racing
    assert out[1] == 2


# -- what only a driver gives --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["%reserved_smem_offset_0", "%envreg0"])
def test_memory_of_the_driver_is_refused_and_no_fault_of_the_kernel(name: str) -> None:
    """But for grids that meet and tiles of several warps (`test_groups.py`)."""
    with pytest.raises(UnsupportedError, match=f"{name}, which a driver sets"):
        launched(f"  mov.u32 %r2, {name};\n  st.shared.u32 [%r2], %r0;")


# -- loops that wait -----------------------------------------------------------------------------

WAITING = """
  mov.u32 %r2, tile;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra MET;
  st.shared.u32 [tile], 0;
MET:
  bar.sync 0;
  setp.ge.u32 %p1, %r0, 32;
  @%p1 bra WORK;
LOOK:
  ld.volatile.shared.u32 %r3, [tile];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra LOOK;
  bra END;
WORK:
  mov.u32 %r4, 0;
ITERATION:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 60;
  @%p3 bra ITERATION;
  st.volatile.shared.u32 [tile], 1;
END:
"""


def test_who_is_waited_for_runs_until_he_comes() -> None:
    """Sixty iterations of a loop before the flag is set: not sixty times the patience of who
    waits."""
    report, _ = launched(WAITING, block=64)
    looks = report.mix["ld"] // 32
    assert 8 < looks < 60


def test_who_waits_at_a_flag_of_the_block_asks_for_no_clocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that touch a barrier in shared memory are of one block: nothing has to be worked out."""
    asked: list[int] = []
    unordered = Vector.unordered

    def counted(*args: Any) -> Any:
        asked.append(args[1].size)
        return unordered(*args)

    monkeypatch.setattr(Vector, "unordered", counted)
    body = """
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra MET;
  mbarrier.init.shared.b64 [tile], 64;
MET:
  bar.sync 0;
  mbarrier.arrive.shared.b64 %rd2, [tile];
LOOK:
  mbarrier.try_wait.shared.b64 %p1, [tile], %rd2;
  @!%p1 bra LOOK;
"""
    report, _ = launched(body, block=64, races="all")
    assert not report.races
    assert sum(asked) <= 4 * 64  # of the arrivals and the looks, with the one that made it


def test_threads_in_line_for_a_swap_come_one_after_the_other() -> None:
    """Each swaps if it finds the thread before it, at one place, and at each of eight places."""
    body = """
  atom.global.cas.b32 %r2, [%rd1], %r0, 7;
  add.u32 %r3, %r0, 1;
  atom.global.cas.b32 %r4, [%rd1+4], %r0, %r3;
  and.b32 %r5, %r0, 7;
  shr.u32 %r6, %r0, 3;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd2, %rd1, %rd2;
  add.u32 %r3, %r6, 1;
  atom.global.cas.b32 %r7, [%rd2+32], %r6, %r3;
  mul.wide.u32 %rd2, %r0, 4;
  add.u64 %rd2, %rd1, %rd2;
  setp.ge.u32 %p0, %r0, 32;
  @!%p0 st.global.u32 [%rd2+128], %r4;
"""
    _, out = launched(body, block=64)
    assert out[:2].tolist() == [7, 64]
    assert out[8:16].tolist() == [8] * 8
    assert out[32:].tolist() == list(range(32))
