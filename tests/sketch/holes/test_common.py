"""Equal rows are found exactly, even when the fingerprints are useless."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.sketch.holes import common
from warploom.sketch.term.gather import strides


def by_dictionary(rows: np.ndarray) -> tuple[list[int], list[int]]:
    seen: dict[bytes, int] = {}
    first: list[int] = []
    group: list[int] = []
    for number, row in enumerate(rows):
        if row.tobytes() not in seen:
            seen[row.tobytes()] = len(first)
            first.append(number)
        group.append(seen[row.tobytes()])
    return first, group


@examples(80)
@given(
    count=st.integers(1, 60),
    width=st.integers(1, 20),
    kind=st.sampled_from(["u1", "i2", "i4", "?", "i8"]),
    seed=st.integers(0, 1000),
)
def test_distinct(count: int, width: int, kind: str, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 2, (count, width)).astype(kind)
    rows = rows * (np.arange(width) < 3 + seed % 3).astype(kind)  # so that some are equal
    first, group = common.distinct(rows)
    assert (first.tolist(), group.tolist()) == by_dictionary(rows)


def test_colliding_fingerprints_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(3).integers(0, 3, (200, 3)).astype(np.int32)
    monkeypatch.setattr(common, "_fingerprints", lambda words: words[:, 0] & np.uint64(1))
    first, group = common.distinct(rows)
    assert (first.tolist(), group.tolist()) == by_dictionary(rows)


def test_strides() -> None:
    assert strides((2, 3, 4)) == (12, 4, 1)
