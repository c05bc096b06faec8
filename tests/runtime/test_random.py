"""Random values, indices and control flow: the texts compute what the evaluator computes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.tools import require

from warploom import runtime
from warploom.index.ir import Binary, Const, Expr, Unary, select
from warploom.kernel.build import Builder, cast, choose, fma, from_index
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel, Operation, Value

THREADS, OUTPUTS = 64, 24
INFIX = ("+", "-", "*", "//", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "and", "or")


def random_index(random: Random, leaves: list[Expr], depth: int) -> Expr:
    """Divisors are not zero and shifts small, so that every value is defined."""
    if depth == 0 or random.random() < 0.15:
        return random.choice([*leaves, Const(random.randint(-9, 9))])
    left = random_index(random, leaves, depth - 1)
    match random.randrange(6):
        case 0:
            return Unary(random.choice(["-", "not"]), left)
        case 1:
            return select(left, *(random_index(random, leaves, depth - 1) for _ in range(2)))
        case 2:
            return Binary(random.choice(["<<", ">>"]), left % 128, Const(random.randint(0, 3)))
    op = random.choice(INFIX)
    right = random_index(random, leaves, depth - 1)
    if op == "*":
        left, right = left % 100 - 50, right % 100 - 50
    if op in ("//", "%"):
        right = Const(random.choice([-7, -4, -1, 1, 2, 3, 8, 32]))
    return Binary(op, left, right)


def random_value(random: Random, leaves: list[Value], index: list[Expr], depth: int) -> Value:
    first = random.choice(leaves)
    dtype = first.dtype  # type: ignore[union-attr]
    if depth == 0:
        return first
    parts = [random_value(random, leaves, index, depth - 1) for _ in range(3)]
    match random.randrange(8):
        case 0:
            return choose(random_index(random, index, 2), parts[0], parts[1])
        case 1:
            return cast(dtype, from_index(random_index(random, index, 2) % 100, dtype))
        case 2:
            return fma(*parts)
        case 3:
            return -parts[0]
        case 4 if not dtype.is_float:
            return parts[0] << (parts[1] & 7)
        case 5 if not dtype.is_float:
            return ~parts[0] / ((parts[1] & 15) + 1)
    ops = ["+", "-", "*", "min", "max"] + ([] if dtype.is_float else ["&", "|", "^"])
    return Operation(random.choice(ops), (parts[0], parts[1]))  # type: ignore[arg-type]


def random_kernel(seed: int, dtype: DType) -> Kernel:
    random = Random(seed)
    k = Builder("random_values", block=THREADS)
    n = k.scalar("n")
    x = k.array("x", dtype, THREADS, const=True)
    y = k.array("y", dtype, THREADS * OUTPUTS)
    z = k.array("z", DType.I32, THREADS * OUTPUTS)
    r, v = k.registers("r", dtype, 3), k.register("v", dtype)
    with k.loop("j", 3) as j:
        r[j] = x[(k.thread + j * 5) % THREADS]
    leaves: list[Value] = [r[0], r[1], r[2], v]
    index: list[Expr] = [k.thread, k.lane, k.warp, n]
    k.set(v, r[0])
    for i in range(OUTPUTS):
        if random.random() < 0.3:
            k.set(v, k.shuffle(random.choice(leaves), random_index(random, index, 2)))
        if random.random() < 0.3:
            with k.when(random_index(random, index, 2)):
                k.set(v, random_value(random, leaves, index, 2))
        y[i * THREADS + k.thread] = random_value(random, leaves, index, 3)
        z[i * THREADS + k.thread] = from_index(random_index(random, index, 4))
    return k.done()


@pytest.mark.parametrize("device", ["c", "opencl", "ptx"])
@pytest.mark.parametrize("dtype", list(DType), ids=lambda each: each.value)
def test_random_kernels(device: Any, dtype: DType) -> None:
    require(device)
    kernel = random_kernel(len(dtype.value), dtype)
    x = np.random.default_rng(1).integers(0, 100, THREADS).astype(dtype.numpy)
    results = []
    for each in ("simulator", device):
        y, z = np.zeros(THREADS * OUTPUTS, dtype.numpy), np.zeros(THREADS * OUTPUTS, np.int32)
        runtime.load(kernel, each)(-3, x, y, z)
        results.append((y, z))
    assert np.array_equal(results[0][1], results[1][1])
    if dtype.is_float:
        np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5)
    else:
        assert np.array_equal(results[0][0], results[1][0])
