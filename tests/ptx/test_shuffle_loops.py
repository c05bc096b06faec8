# ruff: noqa: E501 - programs read better with a line each
"""Loops side by side, in each other and after each other, with iterations that depend on the lane:
kernels compute the same with shuffles as without, however their lanes part and meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.sampled import rounds

from warploom.ptx.shuffle import Launch, check, confirm, rewrite
from warploom.ptx.symbolic.smt import Guarded, judge
from warploom.search.outcome import Verdict

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 A, .param .u64 OUT, .param .u32 N)
{{ .reg .pred %p<80>; .reg .b32 %r<200>; .reg .b64 %rd<100>;
ld.param.u64 %rd1, [A]; add.s64 %rd1, %rd1, 64; ld.param.u64 %rd2, [OUT]; ld.param.u32 %r1, [N]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 4; mov.u32 %r3, 0;
{setup}
{body}
add.s64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r3; ret; }}
"""
WORDS = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, np.uint32)
ADJACENT = """and.b32 %r4, %r2, 3; mov.u32 %r5, 0; mov.u32 %r6, 0; add.s64 %rd4, %rd1, %rd3;
ONE: add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r4; @%p1 bra ONE;
TWO: ld.global.u32 %r7, [%rd4]; ld.global.u32 %r8, [%rd4+4]; mad.lo.u32 %r3, %r3, 3, %r7; xor.b32 %r3, %r3, %r8;
add.s64 %rd4, %rd4, 256; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 6; @%p2 bra TWO;"""


@dataclass
class Program:
    """A random kernel; `loops` counts them, `adjacent` those that begin where another ends."""

    rng: np.random.Generator
    setup: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    loops: int = 0
    adjacent: int = 0
    next: int = 10

    def pick(self, *options: str) -> str:
        return options[int(self.rng.integers(len(options)))]

    def number(self, bank: str = "r") -> str:
        self.next += 1
        return f"%{bank}{self.next}"

    def loads(self, place: str) -> None:
        """Two or three neighbouring loads, and something that depends on all of them in order."""
        for _ in range(int(self.rng.integers(2, 4))):
            value = self.number()
            self.lines.append(
                f"ld.global.u32 {value}, [{place}+{4 * int(self.rng.integers(-2, 3))}];"
            )
            self.lines.append(f"mad.lo.u32 %r3, %r3, 5, {value};")

    def loop(self, depth: int) -> None:
        label, iteration, most, leaves = (
            f"L{self.loops}",
            self.number(),
            self.number(),
            f"%p{self.loops + 1}",
        )
        self.loops += 1
        iterations = self.pick("lane", "lane", "fixed", "given")
        self.setup.append(f"mov.u32 {iteration}, 0;")
        self.setup.append({
            "lane": f"and.b32 {most}, %r2, {self.pick('1', '1', '3')}; add.u32 {most}, {most}, 1;",
            "fixed": f"mov.u32 {most}, {int(self.rng.integers(1, 4))};", "given": f"mov.u32 {most}, %r1;",
        }[iterations])  # fmt: skip
        place = f"%rd{10 + self.loops}"
        self.setup.append(
            f"add.s64 {place}, %rd1, %rd3; add.s64 {place}, {place}, {256 * int(self.rng.integers(0, 8))};"
        )
        if depth and self.rng.random() < 0.5:
            self.lines.append(f"mov.u32 {iteration}, 0;")  # entered again: it starts anew
        self.lines.append(f"{label}:")
        if self.rng.random() < 0.85:
            self.loads(place)
        if self.rng.random() < 0.7:
            self.lines.append(f"add.s64 {place}, {place}, {4 * int(self.rng.integers(1, 70))};")
        if depth < 2 and self.rng.random() < 0.25:
            self.body(depth + 1)
        self.lines.append(
            f"add.u32 {iteration}, {iteration}, 1; setp.lt.u32 {leaves}, {iteration}, {most}; @{leaves} bra {label};"
        )

    def body(self, depth: int) -> None:
        for number in range(int(self.rng.integers(2 if depth == 0 else 1, 4 - (depth > 0)))):
            if number and self.rng.random() < 0.7:
                self.adjacent += 1
            elif number:
                self.lines.append("add.u32 %r3, %r3, 77;")
            self.loop(depth)

    def text(self) -> str:
        self.body(0)
        return HEAD.format(setup="\n".join(self.setup), body="\n".join(self.lines))


def launches(rng: np.random.Generator) -> dict[str, Sequence[Launch]]:
    threads = int(rng.choice([32, 32, 40]))
    args = (WORDS, np.zeros(64, np.uint32), int(rng.integers(1, 4)))
    return {"k": [Launch((1, 1, 1), (threads, 1, 1), args)]}


def agree(first: int, count: int, schedules: int) -> tuple[int, int, int]:
    """Kernels with adjacent loops, kernels that were changed, and shuffles."""
    adjacent = changed = shuffles = 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        program = Program(rng)
        text = program.text()
        done = rewrite(text, select="all", variant=("corner", "predicated")[seed % 2])
        assert not done.kernels[0].refusal
        report = check(text, done.text, launches=launches(rng), seed=seed, schedules=schedules)
        assert report.agrees, (seed, report)
        adjacent += program.adjacent > 0
        changed += done.kernels[0].shuffles > 0
        shuffles += done.kernels[0].shuffles
    return adjacent, changed, shuffles


def agree_and_are_not_dull(first: int, count: int) -> None:
    adjacent, changed, shuffles = agree(first, count, schedules=1)
    assert adjacent > 0.6 * count
    assert changed > 0.9 * count
    assert shuffles > 2.5 * count


@pytest.mark.slow
def test_some_kernels_with_loops() -> None:
    agree_and_are_not_dull(0, rounds(60))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_three_hundred_kernels_with_loops(part: int) -> None:
    agree_and_are_not_dull(100 * part, 100)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_thousand_kernels_with_loops(part: int) -> None:
    agree(1000 + 500 * part, 500, schedules=2)


def test_adjacent_loops_by_many_schedules() -> None:
    text = HEAD.format(setup="", body=ADJACENT)
    done = rewrite(text, select="all")
    assert done.kernels[0].shuffles == 1
    report = check(text, done.text, launches=launches(np.random.default_rng(1)), schedules=40)
    assert report.agrees, report


OLD = """activemask.b32 %r91; setp.eq.s32 %p71, %r91, -1; {jump}
{loop} activemask.b32 %r92; setp.eq.s32 %p72, %r92, -1; and.pred %p72, %p72, %p71; mov.u32 %r93, %laneid; setp.eq.u32 %p73, %r93, 31;
not.pred %p72, %p72; or.pred %p73, %p73, %p72;"""


def test_what_used_to_be_written_is_found_out() -> None:
    """The test at the entry alone, in an iteration of the first loop: schedules show it, Z3 refuses it."""
    text = HEAD.format(setup="", body=ADJACENT)
    first = "@%p1 bra ONE;"
    old = text.replace(first, OLD.format(jump=first, loop="TWO:")).replace(
        "\nTWO: ld.global", "\nld.global"
    )
    old = old.replace(
        "ld.global.u32 %r8, [%rd4+4];",
        "shfl.sync.down.b32 %r8, %r7, 1, 31, %r92; @%p73 ld.global.u32 %r8, [%rd4+4];",
    )
    given = launches(np.random.default_rng(1))
    assert check(
        text, old, launches=given, schedules=0
    ).agrees  # lanes that meet early do not show it
    assert check(text, old, launches=given, schedules=60).mismatch is not None


@pytest.mark.parametrize("guarded", Guarded)
def test_z3_asks_for_a_test_at_every_visit(guarded: Guarded) -> None:
    pytest.importorskip("z3")
    done = rewrite(HEAD.format(setup="", body=ADJACENT), select="all")
    plan = done.kernels[0].plan
    assert plan is not None
    (shuffle,) = plan.shuffles
    verdict = judge(plan.reading, shuffle.source, shuffle.target, shuffle.distance, guarded)
    assert verdict is (Verdict.PROVED if guarded is Guarded.EVERY_VISIT else Verdict.REFUTED)
    assert confirm(done) == {"k": [Verdict.PROVED]}


def test_labels_of_one_name_in_two_scopes() -> None:
    loop = "{{ .reg .pred p; .reg .b32 x; mov.u32 %r5, 0; add.s64 %rd4, %rd1, %rd3;\nAGAIN: ld.global.u32 x, [%rd4]; ld.global.u32 %r8, [%rd4+4]; mad.lo.u32 %r3, %r3, 3, x; xor.b32 %r3, %r3, %r8;\nadd.s64 %rd4, %rd4, {step}; add.u32 %r5, %r5, 1; setp.lt.u32 p, %r5, 4; @p bra AGAIN; }}\n"
    switch = "{{ LIST: .branchtargets A, B; and.b32 %r6, %r2, 1; brx.idx %r6, LIST;\nA: add.u32 %r3, %r3, {a}; bra C;\nB: add.u32 %r3, %r3, {b};\nC: }}\n"
    body = (
        loop.format(step=128)
        + switch.format(a=1, b=2)
        + loop.format(step=64)
        + switch.format(a=5, b=9)
    )
    text = HEAD.format(setup="", body=body)
    done = rewrite(text, select="all")
    assert done.kernels[0].refusal == ""
    assert done.kernels[0].shuffles == 2
    assert check(text, done.text, launches=launches(np.random.default_rng(3)), schedules=10).agrees
