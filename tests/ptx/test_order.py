"""Races in compiled CUDA kernels: each is found with both its source lines, and no other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from warploom import ptx
from warploom.ptx.emulate.launch import LoadedModule
from warploom.ptx.source import SourceMap

HERE = Path(__file__).parent / "order"


@dataclass
class Written:
    """A kernel as its source has it: how many threads a block has, and which lines race."""

    threads: int = 64
    lines: set[int] = field(default_factory=set)


def written(name: str) -> dict[str, Written]:
    found: dict[str, Written] = {}
    current = Written()
    for number, line in enumerate((HERE / f"{name}.cu").read_text().split("\n"), 1):
        head = re.match(r"K\((\w+)\)", line)
        if head:
            current = found[head[1]] = Written()
            threads = re.search(r"// block (\d+)", line)
            current.threads = int(threads[1]) if threads else 64
        if line.endswith("//!"):
            current.lines.add(number)
    return found


@lru_cache
def module(name: str) -> tuple[LoadedModule, SourceMap]:
    loaded = ptx.load((HERE / f"{name}.ptx").read_text(), f"{name}.ptx")
    return loaded, SourceMap(loaded.module)


def racing_lines(name: str, kernel: str, threads: int, **options) -> set[int]:
    loaded, places = module(name)
    a, b = (np.arange(4096) * 37 % 64).astype(np.int32), np.zeros(4096, np.int32)
    report = loaded.kernel(kernel).launch(2, threads, [a, b, 64], races="all", **options)
    lines = set()
    for race in report.races:
        for side in (race.first, race.second):
            place = places.at(side.label)
            assert place is not None
            outer = place.frames[-1]  # not in a header
            assert outer.file == f"{name}.cu"
            lines.add(outer.line)
    return lines


@pytest.mark.parametrize(("kernel", "as_written"), written("racy").items())
def test_every_race_is_found(kernel: str, as_written: Written) -> None:
    assert as_written.lines
    assert racing_lines("racy", kernel, as_written.threads, check=False) == as_written.lines


@pytest.mark.parametrize(("kernel", "as_written"), written("correct").items())
def test_no_false_alarm(kernel: str, as_written: Written) -> None:
    assert not as_written.lines
    assert not racing_lines("correct", kernel, as_written.threads)


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "as_written"), written("correct").items())
def test_no_false_alarm_whoever_runs_first(kernel: str, as_written: Written) -> None:
    for seed in range(5):
        assert not racing_lines("correct", kernel, as_written.threads, schedule=seed)


def test_there_are_enough() -> None:
    assert len(written("racy")) >= 60
    assert len(written("correct")) >= 60


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
    place = places.at(race.first.label)
    assert place is not None
    assert [frame.file for frame in place.frames] == ["common.cuh", "racy.cu"]
    assert "inlined at racy.cu:" in place.words
    assert race.first.words == "write under way"
