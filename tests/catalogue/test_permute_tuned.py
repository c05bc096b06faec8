"""Measured launches of permutations: which are tried, which is taken, what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom
from warploom.catalogue.permute import tuned
from warploom.catalogue.permute.launch import Part
from warploom.catalogue.permute.problem import Movement, movement
from warploom.catalogue.permute.rule import parts, places
from warploom.catalogue.permute.tuned import Tried, shortlist, tuned_parts
from warploom.errors import CheckError, DeviceError
from warploom.runtime.rig import Built
from warploom.search.storage.store import Store

EACH = (640, 480)


def transposed(dtype: int = 4) -> Movement:
    rows, columns = EACH
    return movement(dtype, (columns, rows), (1, columns), (rows, 1))


class Bench:
    """A GPU on which one kernel is fast, and others are slow."""

    device, arch = "none", "sm_90"

    def __init__(self, fast: str) -> None:
        self.fast, self.seen = fast, 0

    def measure(self, given: Tried, samples: int) -> Sequence[float]:
        self.seen += 1
        return [1e-6 if given.part.spec.name == self.fast else 1e-5] * samples


def uncompiled(arch: str, part: Part) -> Tried:  # noqa: ARG001
    return Tried(part, Built(None))  # type: ignore[arg-type]


@pytest.mark.sampled(1)
def test_the_fastest_is_taken_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned, "prepared", uncompiled)
    moved, store = transposed(), Store(tmp_path / "store.db")
    several = list(shortlist(*places(moved)))
    (rule,) = parts(moved)
    assert several[0].spec == rule.spec
    assert len({type(each.spec) for each in several}) > 2
    wanted = several[-1]
    bench = Bench(wanted.spec.name)
    (found,) = tuned_parts(moved, (0, 0), bench, 300.0, store)  # of a busy machine
    assert (found.spec, found.scalars) == (wanted.spec, wanted.scalars)
    assert bench.seen >= len(several)
    again = Bench("")
    (found,) = tuned_parts(moved, (0, 0), again, 30.0, store)
    assert found.spec == wanted.spec
    assert again.seen == 0
    (other,) = tuned_parts(transposed(2), (0, 0), again, 30.0, store)  # another movement
    assert again.seen > 0
    assert other.spec.bytes == 2


def test_several_launches_are_those_of_the_rule() -> None:
    """A copy whose end is no whole word of 16 bytes has two."""
    moved = movement(4, (1003,), (1,), (1,))
    bench = Bench("")
    found = tuned_parts(moved, (0, 0), bench, 1.0, None)
    assert [each.spec for each in found] == [each.spec for each in parts(moved)]
    assert len(found) == 2
    assert bench.seen == 0


@pytest.mark.parametrize("tune", ["yes", 0, -1.0, float("inf")])
def test_what_is_no_time_is_refused(tune: Any) -> None:
    with pytest.raises(CheckError, match="tune is True, False or seconds"):
        warploom.permute(np.zeros((2, 3)), (1, 0), tune=tune)


def test_host_memory_is_not_tuned() -> None:
    ways: tuple[dict[str, Any], ...] = ({}, {"dtype": "float32"})
    for how in ways:
        with pytest.raises(DeviceError, match="tuned on a GPU, but 'x' is in host memory"):
            warploom.permute(np.zeros((2, 3)), (1, 0), tune=True, **how)
