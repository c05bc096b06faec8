"""Kernels that are too deep or too large get an error, at once, and those just within run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.tools import require

from warploom import runtime
from warploom.errors import CheckError, EmitError
from warploom.index.ir import Const
from warploom.kernel.build import Builder
from warploom.kernel.check import check
from warploom.kernel.dtype import f32
from warploom.kernel.extent import MOST_DEEP, MOST_NESTED
from warploom.kernel.ir import If, Kernel, Value


def summed(terms: int, doubled: bool = False, right: bool = False) -> Kernel:
    """y = v + v + …; doubled: the sum so far with itself."""
    k = Builder("summed", block=32)
    y, v = k.array("y", f32, 32), k.register("v", f32, 1.0)
    total: Value = v
    for _ in range(terms):
        total = v + total if right else total + (total if doubled else v)
    y[k.thread] = total
    return k.raw()


def nested(depth: int) -> Kernel:
    k = Builder("nested", block=32)
    y, v = k.array("y", f32, 32), k.register("v", f32, 1.0)
    with ExitStack() as inside:
        for i in range(depth):
            inside.enter_context(k.when(k.thread.lt(64 + i)))
        y[k.thread] = v
    return k.raw()


def crowded(arrays: int, threads: int = 32, barrier: bool = False) -> Kernel:
    """Every element is set in a loop, so that no compiler keeps the arrays in registers."""
    k = Builder("crowded", block=threads)
    y = k.array("y", f32, threads)
    total = k.register("total", f32, 0.0)
    rows = [k.registers(f"r{i}", f32, 250) for i in range(arrays)]
    with k.loop("i", 250) as i:
        for row in rows:
            row[i] = total + 1.0
    if barrier:
        k.barrier()
    for row in rows:
        k.set(total, total + row[len(row) - 1])
    y[k.thread] = total
    return k.raw()


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: summed(MOST_DEEP), f"a value is more than {MOST_DEEP} deep"),
        (lambda: summed(100_000), f"a value is more than {MOST_DEEP} deep"),
        (lambda: summed(60, doubled=True), "a value is more than 16384 operations"),
        (lambda: nested(MOST_NESTED + 1), f"more than {MOST_NESTED} loops and conditions"),
        (lambda: nested(500), f"more than {MOST_NESTED} loops and conditions"),
        (lambda: crowded(600), "the registers in sight take 525004 bytes"),
    ],
    ids=["deep", "deeper", "large", "nested", "more nested", "crowded"],
)
def test_refused(write: Callable[[], Kernel], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        write()


def test_kernels_from_elsewhere_are_checked_too() -> None:
    deep = summed(1)
    for _ in range(500):
        deep = replace(deep, body=(If(Const(1), deep.body),))
    with pytest.raises(CheckError, match="loops and conditions"):
        check(deep)


@pytest.mark.parametrize("device", ["simulator", "c", "ptx", "opencl"])
def test_just_within(device: Any) -> None:
    require(device)
    within = [summed(MOST_DEEP - 1, right=True), summed(MOST_DEEP - 1), nested(MOST_NESTED)]
    for kernel in within[:1] if device == "opencl" else within:  # its compiler is slow
        out = np.zeros(32, np.float32)
        runtime.load(kernel, device)(out)
        assert out.tolist() == [MOST_DEEP if kernel.name == "summed" else 1.0] * 32


@pytest.mark.slow
def test_many_registers_do_not_use_up_a_stack() -> None:
    require("c")
    out = np.zeros(32, np.float32)
    runtime.load(crowded(500), "c", isolate=True)(out)
    assert out.tolist() == [500.0] * 32
    with pytest.raises(EmitError, match="outlive a barrier take 204804096 bytes"):
        runtime.load(crowded(200, 1024, barrier=True), "c")(np.zeros(1024, np.float32))
