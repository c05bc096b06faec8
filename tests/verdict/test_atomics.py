"""Sums of floats by atomics are followed; what depends on who comes first is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.verdict.answer import Judged
from warploom.verdict.judged import judge

KERNELS = ptx.load((Path(__file__).parent / "atomics.ptx").read_text(), "atomics.ptx")
SIZE = 77


def sums(name: str, bins: int = 1) -> Judged:
    def reference(x: Any, w: Any) -> Any:
        product = x * w
        return np.stack([product[first::bins].sum() for first in range(bins)])

    args = {"x": "f32[n]", "w": "f32[n]", "y": f"f32[{bins}]=out:zeros", "n": "i32=n"}
    kernel = KERNELS.kernel(name)
    return judge(
        kernel, reference, args, grid="(n+31)//32", shape={"n": SIZE}, seed=5, others=0
    ).shapes[0]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "bins", "roundings"),
    [("dot", 1, SIZE), ("hist", 7, SIZE // 7), ("in_shared", 1, 32 + 2)],
)
def test_sums_by_atomics_are_equal(name: str, bins: int, roundings: int) -> None:
    """A product, and one addition after the other."""
    found = sums(name, bins)
    assert found.verdict == "equal", found.lines()
    assert found.precision[0].roundings == roundings


@pytest.mark.parametrize("name", ["lost", "twice"])
def test_wrong_sums_are_different(name: str) -> None:
    assert sums(name).verdict == "different"


@pytest.mark.parametrize("name", ["uses_old", "looks", "put_first"])
def test_who_comes_first_is_not_known_of_sums(name: str) -> None:
    assert sums(name).verdict == "unknown"


@pytest.mark.parametrize(("name", "left"), [("first_swap", 1), ("last_swap", 31), ("two_kinds", 6)])
def test_what_the_order_leaves_is_not_known(name: str, left: int) -> None:
    """`left` is what the launch here leaves."""
    args = {"x": "f32[32]", "y": "i32[1]=out:zeros"}
    found = judge(KERNELS.kernel(name), lambda: np.array([left]), args, seed=5, others=0)
    assert found.verdict == "unknown"
    reasons = [each.message for each in found.shapes[0].reasons]
    assert any("who came first" in each or "may be last" in each for each in reasons)
