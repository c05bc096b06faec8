"""What each instruction asks of memory: as an H200 was seen to count, and as one counts by hand."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from tests.machine.test_serving import measured

from warploom import ptx
from warploom.machine.report import UncountedError
from warploom.ptx.launch import Kernel
from warploom.ptx.traffic import TrafficRow, live_registers, traffic_rows

HEAD = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{ .reg .pred %p<9>; .reg .b32 %r<40>; .reg .f32 %f<9>; .reg .b64 %d<20>;
.shared .align 16 .b8 s[32768]; .local .align 16 .b8 own[64];
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b];
mul.wide.u32 %d2, %r0, 4; mul.wide.u32 %d3, %r0, 128;
add.u64 %d4, %d0, %d2; add.u64 %d5, %d0, %d3; cvt.u32.u64 %r30, %d2; cvt.u32.u64 %r31, %d3;
"""
ASKED = {
    "ld.b32": "ld.shared.b32 %r9, [%r1];",
    "ld.u16": "ld.shared.u16 %r9, [%r1];",
    "ld.u8": "ld.shared.u8 %r9, [%r1];",
    "ld.v2.b32": "ld.shared.v2.b32 {%r9, %r10}, [%r1];",
    "ld.v4.b32": "ld.shared.v4.b32 {%r9, %r10, %r11, %r12}, [%r1];",
    "st.b32": "st.shared.b32 [%r1], %r2;",
    "st.u16": "st.shared.u16 [%r1], %r2;",
    "st.u8": "st.shared.u8 [%r1], %r2;",
    "st.v2.b32": "st.shared.v2.b32 [%r1], {%r2, %r2};",
    "st.v4.b32": "st.shared.v4.b32 [%r1], {%r2, %r2, %r2, %r2};",
    "red.add.u32": "red.shared.add.u32 [%r1], 1;",
}
COUNTED = [row for row in measured() if not row[0].startswith("cp.async")]


def kernel(body: str) -> Kernel:
    return ptx.load(f"{HEAD}{body}\nret; }}\n", "k.ptx").kernel("k")


def rows(body: str, threads: int = 32) -> list[TrafficRow]:
    made = kernel(body)
    data = np.zeros(8192, np.uint32)
    done = made.launch(1, threads, [data, data.copy()], counters=True, check=False)
    return [row for row in traffic_rows(made, done) if row.requests]


@lru_cache
def asking(name: str) -> Kernel:
    """A kernel whose lanes ask for the addresses that it is given; -1 is a lane that does not."""
    if name.startswith(("ldmatrix", "stmatrix")):
        count = int(next(word[1:] for word in name.split(".") if word in ("x1", "x2", "x4")))
        held = "{" + ", ".join(f"%r{9 + at}" for at in range(count)) + "}"
        kind = f"sync.aligned.m8n8.x{count}{'.trans' if 'trans' in name else ''}.shared.b16"
        load = name.startswith("ld")
        body = f"ldmatrix.{kind} {held}, [%r1];" if load else f"stmatrix.{kind} [%r1], {held};"
        zeros = "".join(f"mov.u32 %r{9 + at}, 0; " for at in range(count))
        return kernel(f"ld.global.b32 %r1, [%d4];\n{zeros}\n{body}")
    return kernel(
        f"mov.u32 %r2, 0;\nld.global.b32 %r1, [%d4]; setp.eq.u32 %p1, %r1, 0xffffffff;\n"
        f"@%p1 bra DONE;\n{ASKED[name]}\nDONE:"
    )


def wavefronts(name: str, asked: list[int]) -> int | None:
    made = asking(name)
    data = np.array(asked, np.int64).astype(np.uint32)
    done = made.launch(1, 32, [data, data], counters=True, check=False)
    (found,) = [row for row in traffic_rows(made, done) if row.space == "shared"]
    return found.wavefronts


def test_every_measured_pattern_is_run() -> None:
    assert len(COUNTED) == 360


@pytest.mark.parametrize("name", sorted({row[0] for row in COUNTED}))
def test_as_an_h200_was_seen_to_count(name: str) -> None:
    """Of every pattern but cp.async, whose wavefronts a profiler counts in its own way."""
    wrong = []
    for _, _, seen, asked in [row for row in COUNTED if row[0] == name]:
        given = [max(address, 0) for address in asked] if "matrix" in name else asked
        if wavefronts(name, given) != seen:
            wrong.append(asked)
    assert wrong == []


@pytest.mark.parametrize(
    ("body", "space", "sectors", "passes"),
    [
        ("ld.global.b32 %r1, [%d4];", "global", (4, 4), (None, None)),
        ("ld.global.b32 %r1, [%d5];", "global", (32, 4), (None, None)),
        ("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d5];", "global", (32, 16), (None, None)),
        ("st.global.b32 [%d0], %r0;", "global", (1, 1), (None, None)),
        ("red.global.add.u32 [%d5], 1;", "global", (32, 4), (None, None)),
        ("ld.b32 %r1, [%d5];", "global", (32, 4), (None, None)),
        ("ld.local.b32 %r1, [own];", "local", (4, 4), (None, None)),
        ("st.local.v2.b32 [own], {%r0, %r0};", "local", (8, 8), (None, None)),
        ("st.shared.b32 [%r30], %r0;", "shared", (None, None), (1, 1)),
        ("st.shared.b32 [%r31], %r0;", "shared", (None, None), (32, 1)),
        ("atom.shared.add.u32 %r1, [%r31], 1;", "shared", (None, None), (32, 1)),
    ],
)
def test_by_hand(body: str, space: str, sectors: object, passes: object) -> None:
    (row,) = rows(body)
    assert (row.space, row.requests, row.lanes) == (space, 1, 32)
    assert (row.sectors, row.least_sectors) == sectors
    assert (row.wavefronts, row.least_wavefronts) == passes


def test_requests_and_lanes_of_warps() -> None:
    """Forty threads are two warps; those that part ask apart."""
    (row,) = rows("ld.global.b32 %r1, [%d4];", 40)
    assert (row.requests, row.lanes, row.sectors) == (2, 40, 5)
    branch, first, second = rows(
        "setp.lt.u32 %p1, %r0, 8;\n@%p1 bra ONE;\nst.global.b32 [%d4], %r0;\nbra DONE;\n"
        "ONE:\nst.global.b32 [%d4], %r0;\nDONE:"
    )
    assert (branch.what, branch.requests, branch.divergent) == ("branches", 1, 1)
    assert (first.lanes, first.sectors, second.lanes, second.sectors) == (24, 3, 8, 1)


def test_copies_read_one_memory_and_write_another() -> None:
    past, through = (
        rows(
            "mul.wide.u32 %d6, %r0, 16; add.u64 %d6, %d0, %d6; shl.b32 %r1, %r0, 4;\n"
            f"cp.async.{way}.shared.global [%r1], [%d6], 16;\ncp.async.wait_all;"
        )
        for way in ("cg", "ca")
    )
    assert [(row.what, row.space, row.sectors, row.wavefronts) for row in past] == [
        ("reads", "global", 16, None), ("writes", "shared", None, None),
    ]  # fmt: skip
    assert through[1].wavefronts == 4
    assert "whatever the addresses" in past[1].note
    assert "3 wavefronts more" in through[1].note


def test_registers_that_hold_values_at_once() -> None:
    """Two addresses of 64 bits and a number, at the widest place."""
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{ .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<3>;
ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.global.b32 %r0, [%d0]; st.global.b32 [%d1], %r0; ret; }
"""  # noqa: E501
    assert live_registers(ptx.load(text).kernel()) == 4


def test_a_figure_that_nobody_asked_for_is_absent() -> None:
    text = HEAD + "st.global.u32 [%d4], %r0; ret; }"
    x = np.zeros(64, np.uint32)
    for counters in (False, True):
        report = ptx.load(text).kernel("k").launch(1, 32, [x, x], counters=counters)
        assert hasattr(report, "bank_conflicts") == counters
        if not counters:
            with pytest.raises(UncountedError, match="'sectors' was not counted") as error:
                _ = report.sectors
            assert "counters=True" in error.value.advice
        with pytest.raises(AttributeError, match="no 'sector'"):
            _ = report.sector
    assert report.sectors > 0
