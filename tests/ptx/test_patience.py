# ruff: noqa: E501 - programs read better with a line each
"""A time limit holds while PTX is read and made ready: every stage looks at the clock as it goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.cli.calls import called

from warploom import emulate, ptx
from warploom.errors import LimitError, UnsupportedError
from warploom.ptx import flow, patience
from warploom.ptx.emulate.compile import uses
from warploom.ptx.traffic import live_registers, traffic_rows
from warploom.search.budget import BudgetSpentError
from warploom.search.outcome import Reason

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
N = 300


def kernel(body: str, before: str = "") -> str:
    return f"""{HEAD}{before}
.visible .entry k(.param .u64 out)
{{ .reg .pred %p; .reg .b32 %s; .reg .b32 %r<{N + 1}>; .reg .b64 %l; mov.u32 %s, 0;
{body}
ld.param.u64 %l, [out]; st.global.u32 [%l], %s; ret; }}
"""


def rows(row: str) -> str:
    return "\n".join(row.replace("#", str(n)) for n in range(N))


# For each: a text with N of something, and the stages that must ask as often as that.
TEXTS = {
    "instructions": (kernel(rows("add.u32 %s, %s, #;")), "read kernel ready rows"),
    "blocks": (kernel(rows("L#: setp.eq.u32 %p, %s, 77; @%p bra E; add.u32 %s, %s, 0;") + "\nE:"),
               "read kernel ready rows"),
    "loops": (kernel(rows("L#: add.u32 %s, %s, 1; setp.lt.u32 %p, %s, #; @%p bra L#;")),
              "read kernel ready rows"),
    "labels": (kernel(rows("L#:")), "read kernel ready"),
    "registers": (kernel(rows("mov.u32 %r#, #;") + rows("add.u32 %s, %s, %r#; setp.eq.u32 %p, %s, 1; @%p bra E;")
                         + "\nE:"), "read kernel ready rows"),
    "locations": (kernel(rows(".loc 1 1 1"), '.file 1 "nowhere.cu"'), "read kernel ready"),
    "local variables": (kernel(rows(".local .u32 v#; st.local.u32 [v#], 1;")), "read kernel ready"),
    "variables": (kernel("", rows(".global .u32 v# = #;")), "read ready"),
    "initial values": (kernel("", f".global .u32 v[{N}] = {{{rows('#,').strip(',')}}};"), "read"),
    "addresses": (kernel("", f".global .u32 w; .global .u64 v[{N}] = {{{rows('w,').strip(',')}}};"), "read"),
    "functions": (kernel("", rows(".func f#() { ret; }")), "read kernel"),
    "braces": (kernel(rows("{ add.u32 %s, %s, 1; }")), "read kernel ready"),
}  # fmt: skip


T = TypeVar("T")


class Clock:
    """Time that passes by being looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks, self.end = 0, 1 << 60
        monkeypatch.setattr(patience, "EVERY", 1)
        monkeypatch.setattr(patience, "_left", 0)  # what other tests have left to count
        monkeypatch.setattr(patience, "governing_budget", lambda: self)

    def check(self) -> None:
        self.looks += 1
        if self.looks > self.end:
            raise BudgetSpentError(Reason.SECONDS)

    def count(self, action: Callable[[], T]) -> tuple[T, int]:
        before = self.looks
        return action(), self.looks - before


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TEXTS)
def test_every_stage_looks_at_the_clock(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, stages = TEXTS[name]
    clock, out = Clock(monkeypatch), np.zeros(2, np.uint32)
    seen: dict[str, int] = {}
    module, seen["read"] = clock.count(lambda: ptx.load(text, "k.ptx"))
    chosen, seen["kernel"] = clock.count(lambda: module.kernel())
    report, seen["ready"] = clock.count(lambda: chosen.launch(1, 1, [out], counters=True))
    _, seen["rows"] = clock.count(lambda: (traffic_rows(chosen, report), live_registers(chosen)))
    for stage in stages.split():
        assert seen[stage] >= N, stage


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TEXTS)
def test_the_looks_do_not_grow_faster_than_the_text(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stages whose work grew with the square of the text: where loops begin, what is live."""
    clock, out = Clock(monkeypatch), np.zeros(2, np.uint32)
    ptx.load(TEXTS[name][0], "k.ptx").kernel().launch(1, 1, [out], counters=True)
    assert clock.looks < 100 * N


class Counted(list[list[int]]):
    """How often somebody looks up where a block leads."""

    asked = 0

    def __getitem__(self, index: Any) -> Any:
        self.asked += 1
        return super().__getitem__(index)


def test_loops_in_a_row_are_ordered_in_one_go() -> None:
    """Where one begins was looked for in all that stands before it."""
    pairs = 500
    successors = Counted()
    for first in range(0, 2 * pairs, 2):
        successors += [[first + 1], [first, first + 2]]
    successors.append([])
    assert flow.loop_order(successors) == list(range(2 * pairs + 1))
    assert successors.asked < 10 * pairs


class Cut(str):
    """A text that counts how often it is cut into lines."""

    __slots__ = ()
    times = 0

    def split(self, *words: Any) -> list[str]:
        type(self).times += 1
        return super().split(*words)


def test_a_text_is_cut_into_lines_once() -> None:
    """For each row of a report it was, which took hours for long ones."""
    text = Cut(kernel(f"ld.param.u64 %l, [out]; {rows('st.global.u32 [%l], #;')}"))
    chosen = ptx.load(text, "k.ptx").kernel()
    report = chosen.launch(1, 1, [np.zeros(2, np.uint32)], counters=True)
    Cut.times = 0
    found = traffic_rows(chosen, report)
    assert len(found) > N
    assert found[7].text.endswith("7;")
    assert Cut.times <= 1


@pytest.mark.parametrize("after", [0, 1, 50, 500, 1000, 2500])
def test_wherever_it_is_noticed_it_is_one_error(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, out = Clock(monkeypatch), np.zeros(2, np.uint32)
    clock.end = after

    def everything() -> None:
        with patience.within(None, "nothing"):  # without a limit nobody is in a hurry
            pass
        with patience.within(1e18, "reading the PTX"):
            chosen = ptx.load(TEXTS["blocks"][0], "k.ptx").kernel()
        chosen.launch(1, 1, [out], seconds=1e9, races=True)

    with pytest.raises(LimitError, match="took longer than the time that was given"):
        everything()
    clock.end = 1 << 60  # nothing is left half done
    everything()


@pytest.mark.parametrize("command", ["run", "report"])
def test_no_time_at_all(command: str, tmp_path: Path) -> None:
    file, out = tmp_path / "k.ptx", tmp_path / "out.json"
    file.write_text(TEXTS["blocks"][0])
    words = [
        "ptx",
        command,
        str(file),
        "--arg",
        "u32[2]=zeros",
        "--seconds",
        "0",
        "--json",
        str(out),
    ]
    result = called(words)
    assert result.exit_code == 3, result.output
    (record,) = json.loads(out.read_text())
    assert record["status"] == 3
    (found,) = record["findings"]
    assert found["kind"] == "limit"
    assert found["message"].startswith("reading the PTX took longer")


def test_emulate_has_no_more_patience() -> None:
    with pytest.raises(LimitError, match="reading the PTX took longer"):
        emulate(TEXTS["blocks"][0], seconds=0)


@pytest.mark.parametrize("count", [15, pytest.param(60, marks=pytest.mark.slow)])
def test_live_registers_as_they_are_defined(count: int) -> None:
    """By the definition: a way from the block to a read, with no write on it."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        lines = []
        for n in range(12):
            a, b, c = rng.integers(0, 6, 3)
            guard = "@%p " if rng.random() < 0.2 else ""
            lines.append(f"L{n}: {guard}add.u32 %r{a}, %r{b}, %r{c}; setp.eq.u32 %p, %r{c}, 1;")
            lines.append(f"@%p bra L{rng.integers(0, 12)};")
        module = ptx.parse(kernel("\n".join(lines)))
        function = module.function("k")
        assert function is not None
        graph = flow.build(module, function)
        for start, found in enumerate(flow.live_in(graph, uses)):
            assert found == _live_by_walking(graph, start)


def _live_by_walking(graph: flow.Graph, start: int) -> set[str]:
    keys = {key for step in graph.code for key in uses(step)[0]}
    return {key for key in keys if _is_read(graph, start, key)}


def _is_read(graph: flow.Graph, start: int, key: str) -> bool:
    seen, work = {start}, [start]
    while work:
        block = graph.blocks[work.pop()]
        for step in graph.instructions(block):
            read, written = uses(step)
            if key in read:
                return True
            if key in written:
                break
        else:
            fresh = set(block.successors) - seen
            seen |= fresh
            work += fresh
    return False


def test_too_much_that_lives_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MOST_LIVE", N)
    chosen = ptx.load(TEXTS["registers"][0], "k.ptx").kernel()
    with pytest.raises(UnsupportedError, match="registers that live over"):
        chosen.launch(1, 1, [np.zeros(2, np.uint32)])


def test_few_sets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes that part at every block, with nothing kept: the same answer."""
    out = np.zeros(32, np.uint32)
    body = (
        rows("mov.u32 %r#, %tid.x;")
        + rows("L#: add.u32 %s, %s, %r#; setp.eq.u32 %p, %r#, 9; @%p bra E;")
        + "\nE:"
    )
    text = kernel(body).replace(
        "ld.param.u64 %l, [out];", "ld.param.u64 %l, [out]; mad.wide.u32 %l, %r0, 4, %l;"
    )
    for most in (1 << 24, 0):
        monkeypatch.setattr("warploom.ptx.emulate.schedule.MOST_KEPT", most)
        ptx.load(text).kernel().launch(1, 32, [out], engine="numpy")
        assert out.tolist() == [9 if lane == 9 else N * lane for lane in range(32)]
        out[:] = 0
