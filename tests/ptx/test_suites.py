"""Kernels of the kinds that Indigo and ScoR have: all that is wrong is found, nothing else is."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom.errors import KernelError, UninitialisedError
from warploom.ptx import load
from warploom.ptx.launch import LoadedModule

HERE = Path(__file__).parent / "suites"
VERTICES = 100


def written(verdict: str) -> list[tuple[str, str]]:
    """The kernels of both files with a verdict, each as its file and its name."""
    found = []
    for file in ("graphs", "scopes"):
        text = (HERE / f"{file}.cu").read_text()
        named = re.findall(r"^K\((\w+)\).*// (right|race|bounds)$", text, re.MULTILINE)
        assert len(named) == len(re.findall(r"^K\(", text, re.MULTILINE))  # each says what it is
        found += [(file, name) for name, said in named if said == verdict]
    return found


@lru_cache
def module(file: str) -> LoadedModule:
    return load((HERE / f"{file}.ptx").read_text(), f"{file}.ptx")


def graph() -> list[Any]:
    """A ring of vertices, some with more neighbours; no kernel is right by an empty one."""
    r = np.random.default_rng(3)
    edges = {(v, (v + 1) % VERTICES) for v in range(VERTICES)}
    edges |= {tuple(each) for each in r.integers(0, VERTICES, (150, 2)).tolist()}
    both = sorted({(a, b) for x, y in edges if x != y for a, b in ((x, y), (y, x))})
    begins = np.searchsorted([a for a, _ in both], np.arange(VERTICES + 1)).astype(np.int32)
    to = np.array([b for _, b in both], np.int32)
    value = r.integers(0, 50, VERTICES, dtype=np.int32)
    return [begins, to, VERTICES, value, np.zeros_like(value), np.zeros(VERTICES + 1, np.int32)]


def launched(file: str, name: str, **options: Any) -> list[Any]:
    args = graph()
    if name.startswith(("joined_", "shortened")):
        args[4] = np.maximum(np.arange(VERTICES, dtype=np.int32) - 1, 0)
        if name.startswith("joined_"):
            args[4] = np.arange(VERTICES, dtype=np.int32)
    if file == "scopes":
        args = [(np.arange(4096) * 37 % 64).astype(np.int32), np.zeros(4096, np.int32)]
    report = module(file).kernel(name).launch(2, 64, args, races="all", seconds=60, **options)
    return report.races


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("file", "name"), written("race"))
def test_every_race_is_found(file: str, name: str) -> None:
    assert launched(file, name)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("file", "name"), written("right"))
def test_no_false_alarm(file: str, name: str) -> None:
    assert launched(file, name) == []


@pytest.mark.slow
@pytest.mark.parametrize(("file", "name"), written("right") + written("race"))
def test_the_verdict_does_not_depend_on_who_runs_first(file: str, name: str) -> None:
    wrong = (file, name) in written("race")
    for seed in range(3):
        try:
            found = bool(launched(file, name, schedule=seed))
        except UninitialisedError:  # who comes too early reads what nobody has written yet
            found = True
        assert found == wrong


@pytest.mark.parametrize(("file", "name"), written("bounds"))
def test_every_bound_is_found(file: str, name: str) -> None:
    with pytest.raises(KernelError, match="out-of-bounds"):
        launched(file, name)


def test_there_are_enough() -> None:
    """As many as docs/without-gpu.md says."""
    wrong, right = len(written("race") + written("bounds")), len(written("right"))
    assert wrong >= 50
    assert right >= 30
    page = (Path(__file__).parents[2] / "docs" / "without-gpu.md").read_text()
    assert f"has {wrong + right} kernels" in page
    assert f"all {wrong} that are wrong are found, and none of the {right} others" in page
