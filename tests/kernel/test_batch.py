"""A kernel for several of what it is about computes each as it did."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.errors import CheckError, DeviceError
from warploom.kernel.batch import batched
from warploom.kernel.build import Builder
from warploom.kernel.dtype import f32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel


def scaled() -> Kernel:
    """Rows of pairs by a weight, with wide accesses, in a plane of blocks."""
    k = Builder("scaled", block=32)
    n = k.scalar("n")
    x, w = k.array("x", f32, n * 2, const=True), k.constant("w", f32, 2)
    y = k.array("y", f32, n * 2)
    k.grid((n + 31) // 32, 1)
    i, v = k.let("i", k.block_x * 32 + k.lane), k.registers("v", f32, 2)
    with k.when(i.lt(n)):
        k.set(v[0], x.at(i * 2, width=2))
        with k.loop("j", 2) as j:
            v[j] = v[j] * w[j]
        y.put(i * 2, v[0], width=2)
    return k.done()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_of_a_batch_is_computed_as_by_itself(count: int) -> None:
    one, many = scaled(), batched(scaled(), "images")
    x = np.random.default_rng(0).normal(size=(count, 45, 2)).astype(np.float32)
    w = np.array([2, 3], np.float32)
    wanted, found = np.zeros_like(x), np.zeros_like(x)
    for part, out in zip(x, wanted, strict=True):
        run(one, [45, part, w, out])
    run(many, [count, 45, x, w, found])
    assert (found == wanted).all()


def test_what_cannot_be_a_batch_is_refused() -> None:
    many = batched(scaled(), "images")
    with pytest.raises(CheckError, match="a third axis already"):
        batched(many, "others")
    with pytest.raises(CheckError, match="or a 'n'"):
        batched(scaled(), "n")
    with pytest.raises(DeviceError):
        run(
            many,
            [2, 45, np.zeros(90, np.float32), np.zeros(2, np.float32), np.zeros(90, np.float32)],
        )
