"""Races in compiled CUDA kernels: each is found with both its source lines, and no other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import of

from warploom import ptx
from warploom.errors import Span, WarploomError
from warploom.ptx.findings import race_fault
from warploom.ptx.launch import LoadedModule
from warploom.ptx.source import SourceMap

HERE = Path(__file__).parent / "order"
RACY = ("racy", "racy_more", "racy_lib", "racy_sm90", "racy_sm90_lib")
CORRECT = ("correct", "correct_more", "correct_lib", "correct_sm90", "correct_sm90_lib")


@dataclass
class Written:
    """A kernel as its source has it: its launch, which lines race, and what is said otherwise."""

    file: str
    name: str
    blocks: int = 2
    threads: int = 64
    cluster: int = 1
    error: str = ""
    lines: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.file}-{self.name}"


def written(*names: str) -> list[Written]:
    return [kernel for name in names for kernel in written_in(name)]


@lru_cache
def written_in(name: str) -> list[Written]:
    found: list[Written] = []
    for number, line in enumerate((HERE / f"{name}.cu").read_text().split("\n"), 1):
        head = re.match(r"K\((\w+)\)", line)
        if head:
            said = re.search(r"// ((?:\w+ \d+ ?)*)(?:error: (.*))?$", line)
            numbers = dict(re.findall(r"(\w+) (\d+)", said[1] if said else ""))
            grid, block, cluster = (
                int(numbers.get(word, usual))
                for word, usual in (("grid", 2), ("block", 64), ("cluster", 1))
            )
            error = (said and said[2]) or ""
            found.append(Written(name, head[1], grid, block, cluster, error))
        if line.endswith("//!"):
            found[-1].lines.add(number)
    return found


@lru_cache
def module(name: str) -> tuple[LoadedModule, SourceMap]:
    loaded = ptx.load((HERE / f"{name}.ptx").read_text(), f"{name}.ptx")
    return loaded, SourceMap(loaded.module)


def racing_lines(kernel: Written, **options: Any) -> set[int]:
    loaded, places = module(kernel.file)
    a, b = (np.arange(4096) * 37 % 64).astype(np.int32), np.zeros(4096, np.int32)
    report = loaded.kernel(kernel.name).launch(
        kernel.blocks, kernel.threads, [a, b, 64], races="all", cluster=kernel.cluster,
        shared_bytes=512, **options,
    )  # fmt: skip
    lines = set()
    for race in report.races:
        for side in (race.first, race.second):
            place = places.at(of(Span, side.label))
            assert place is not None
            outer = place.frames[-1]  # not in a header
            assert outer.file == f"{kernel.file}.cu"
            lines.add(outer.line)
    return lines


@pytest.mark.sampled(20)
@pytest.mark.parametrize("kernel", written(*RACY), ids=str)
def test_every_race_is_found(kernel: Written) -> None:
    assert kernel.lines
    assert racing_lines(kernel, check=False) == kernel.lines


SOME_RACY = [
    pytest.param(kernel, id=str(kernel), marks=[] if number % 5 == 0 else pytest.mark.slow)
    for number, kernel in enumerate(written(*RACY))
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("kernel", SOME_RACY)
def test_what_makes_a_difference_is_found_though_the_rest_is_left_out(kernel: Written) -> None:
    """None of these loads is dead, and no value differs by rounding alone."""
    found = []
    for benign in (False, True):
        a, b = (np.arange(4096) * 37 % 64).astype(np.int32), np.zeros(4096, np.int32)
        report = module(kernel.file)[0].kernel(kernel.name).launch(
            kernel.blocks, kernel.threads, [a, b, 64], races="all", cluster=kernel.cluster,
            shared_bytes=512, check=False, benign=benign,
        )  # fmt: skip
        found.append({race.pair for race in report.races if not race.same_value})
    assert found[0] == found[1]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("kernel", written(*CORRECT), ids=str)
def test_no_false_alarm(kernel: Written) -> None:
    assert not kernel.lines
    assert not racing_lines(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", written(*CORRECT), ids=str)
def test_no_false_alarm_whoever_runs_first(kernel: Written) -> None:
    for seed in range(5):
        assert not racing_lines(kernel, schedule=seed)


@pytest.mark.parametrize("kernel", written("wrong"), ids=str)
def test_what_is_wrong_is_said(kernel: Written) -> None:
    assert kernel.error
    with pytest.raises(WarploomError, match=kernel.error):
        racing_lines(kernel)


def test_there_are_enough() -> None:
    """As many as docs/ptx.md says."""
    racy, correct = len(written(*RACY)), len(written(*CORRECT))
    assert min(racy, correct) >= 120
    said = (Path(__file__).parents[2] / "docs" / "ptx.md").read_text()
    assert f"`tests/ptx/order` {racy + correct} kernels" in said


def test_writes_of_one_value_are_told_apart() -> None:
    """A flag that many set to 1 is marked, and left out on demand; a race of values is neither."""
    loaded, _ = module("racy")
    for kernel, same in (("found_flag", True), ("all_write_one_cell", False)):
        a, b = np.zeros(4096, np.int32), np.zeros(4096, np.int32)
        (race,) = loaded.kernel(kernel).launch(2, 64, [a, b, 64], races="all").races
        assert race.same_value is same
        left = loaded.kernel(kernel).launch(2, 64, [a, b, 64], races="all", benign=True).races
        assert bool(left) is not same


def test_inlined_code_knows_where() -> None:
    loaded, places = module("racy")
    (race,) = (
        loaded.kernel("async_not_waited")
        .launch(1, 64, [*np.zeros((2, 4096), np.int32), 0], races="all", check=False)
        .races
    )
    place = places.at(of(Span, race.first.label))
    assert place is not None
    assert [frame.file for frame in place.frames] == ["common.cuh", "racy.cu"]
    assert "inlined at racy.cu:" in place.words
    assert race.first.words == "asynchronous write"


def test_both_sides_are_named_where_they_were_inlined() -> None:
    loaded, _ = module("racy_more")
    kernel = loaded.kernel("helpers_of_helpers")
    report = kernel.launch(1, 64, [*np.zeros((2, 4096), np.int32), 0], races="all")
    (race,) = report.races
    first, second = sorted(next(k for k in written("racy_more") if k.name == kernel.name).lines)
    said = race_fault(loaded, race).message
    assert f"inlined at racy_more.cu:{first} by block" in said
    assert re.search(rf"\(inlined at racy_more\.cu:\d+, inlined at racy_more\.cu:{second}\)", said)
