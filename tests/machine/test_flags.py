# ruff: noqa: E501 - programs read better with a line each
"""Flags, fences and scopes: the detector against the definitions written down, directly and as PTX."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bench.common.narrowed import of
from tests.machine.flags import GRID, Act, FlagTrace, flag_races, make_flags
from tests.sampled import rounds

from warploom import ptx
from warploom.errors import Span
from warploom.machine import flag, shadow
from warploom.machine.flag import Order
from warploom.machine.race import RaceDetector
from warploom.machine.semantics import Kind, Scope, Semantics

Pairs = set[frozenset[int]]
KINDS = {"read": Kind.READ, "write": Kind.WRITE, "strong read": Kind.STRONG_READ,
         "strong write": Kind.STRONG_WRITE, "atomic": Kind.ATOMIC, "reduction": Kind.ATOMIC}  # fmt: skip


def directly(trace: FlagTrace, *, strict: bool = False) -> Pairs:
    detector = RaceDetector(
        trace.blocks, trace.size, 32, len(trace.acts), flags=True, every=True, strict=strict
    )  # fmt: skip
    detector.start(0, trace.blocks)
    for number, act in enumerate(trace.acts):
        scope = Scope.GRID if act.scope == GRID else Scope.BLOCK
        order = Order(act.acquires, act.releases, act.kind != "reduction", act.sequential)
        threads = np.array([act.thread])
        if act.kind == "barrier":
            detector.block_barrier(np.array([trace.block(act)]))
        elif act.kind == "fence":
            detector.fence(threads, scope, order)
        else:
            kind = KINDS[act.kind]
            semantics = Semantics(kind, scope, 4) if kind.strong else Semantics(kind)
            place = np.array([4 * act.word])
            detector.access("words", 16, threads, place, 4, semantics, number, order=order)
    return {
        frozenset({of(int, race.first.label), of(int, race.second.label)})
        for race in detector.races
    }


TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{{ .reg .pred %p; .reg .b32 %me, %t, %n, %c, %r; .reg .b64 %a;
mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %me, %c, %n, %t; ld.param.u64 %a, [a]; mov.u32 %r, 1;
{body}
ret; }}
"""
FIRST_LINE = 7


def _line(trace: FlagTrace, act: Act) -> str:
    if act.kind == "barrier":
        return f"setp.eq.u32 %p, %c, {trace.block(act)}; @%p barrier.sync 0;"
    sem = {(0, 0): "relaxed", (1, 0): "acquire", (0, 1): "release", (1, 1): "acq_rel"}[
        act.acquires, act.releases
    ]
    sem = "sc" if act.sequential else sem
    word = f"{sem}.{act.scope}"
    place = f"[%a+{4 * act.word}]"
    text = {
        "read": f"ld.global.u32 %r, {place};", "write": f"st.global.u32 {place}, %r;",
        "strong read": f"ld.{word}.global.u32 %r, {place};",
        "strong write": f"st.{word}.global.u32 {place}, %r;",
        "atomic": f"atom.{word}.global.add.u32 %r, {place}, 1;",
        "reduction": f"red.{word}.global.add.u32 {place}, 1;",
        "fence": f"fence.{word};",
    }[act.kind]  # fmt: skip
    return f"setp.eq.u32 %p, %me, {act.thread}; @%p {text}"


def through_ptx(trace: FlagTrace) -> Pairs:
    body = "\n".join(_line(trace, act) for act in trace.acts)
    kernel = ptx.load(TEXT.format(body=body), "flags.ptx").kernel("k")
    report = kernel.launch(trace.blocks, trace.size, [np.zeros(4, np.uint32)], races="all")
    return {
        frozenset(of(Span, each.label).line - FIRST_LINE for each in (race.first, race.second))
        for race in report.races
    }


def _racy(feed: Callable[[FlagTrace], Pairs], seeds: range) -> int:
    racy = 0
    for seed in seeds:
        trace = make_flags(seed)
        expected = flag_races(trace)
        assert feed(trace) == expected, seed
        racy += bool(expected)
    return racy


@pytest.mark.parametrize(("feed", "count"), [(directly, 250), (through_ptx, 30)])
def test_agrees_with_the_definitions(feed: Callable[[FlagTrace], Pairs], count: int) -> None:
    count = rounds(count)
    assert 0.3 * count < _racy(feed, range(count)) < 0.95 * count


@pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_agrees_where_chains_are_added_up_and_lists_are_long(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((flag, "ADDED_UP"), (shadow, "STEPS"), (shadow, "AT_ONCE")):
        monkeypatch.setattr(module, name, 1)
    assert _racy(directly, range(800, 800 + count))


def test_by_the_manual_only_fences_that_are_sc_tell_of_others() -> None:
    differ = 0
    for seed in range(rounds(1500)):
        trace = make_flags(seed)
        assert directly(trace, strict=True) == flag_races(trace, strict=True), seed
        differ += flag_races(trace, strict=True) != flag_races(trace)
    assert differ > 5


def test_flags_matter_in_the_traces() -> None:
    """Some traces would race without what their flags order."""
    changed = 0
    for seed in range(400):
        trace = make_flags(seed)
        plain = tuple(
            Act(a.kind, a.thread, a.word, a.scope, False, False) for a in trace.acts
        )  # fmt: skip
        changed += flag_races(trace) != flag_races(FlagTrace(trace.blocks, trace.size, plain))
    assert changed > 60


@pytest.mark.slow
@pytest.mark.parametrize("feed", [directly, through_ptx])
def test_agrees_on_many_more(feed: Callable[[FlagTrace], Pairs]) -> None:
    _racy(feed, range(100_000 if feed is directly else 10_000))


def test_a_barrier_of_one_block_leaves_what_others_announced() -> None:
    """What came by way of a flag is told at a barrier, though another block's is complete first."""
    detector = RaceDetector(2, 2, 32, 4, flags=True, every=True)
    detector.start(0, 2)
    one, other, flag_ = np.array([0]), np.array([1]), np.array([0])
    word = Semantics(Kind.STRONG_WRITE, Scope.GRID, 4)
    look = Semantics(Kind.STRONG_READ, Scope.GRID, 4)
    detector.access("data", 64, np.array([3]), np.array([32]), 4, Kind.WRITE, 0)
    detector.access("data", 64, np.array([3]), flag_, 4, word, 1, order=Order(releases=True))
    detector.access("data", 64, one, flag_, 4, look, 2, order=Order(acquires=True))
    clocks = detector.vector
    board = clocks.new_clock(2)
    clocks.release(one, board, np.array([0]))
    board.wipe(np.array([1]))
    clocks.acquire(other, board, np.array([0]))
    assert not detector.access("data", 64, other, np.array([32]), 4, Kind.READ, 3)
