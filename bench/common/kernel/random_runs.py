"""Random kernels on every target against the evaluator, and kernels with an index out of range."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from random import Random
from typing import Any

import numpy as np
from bench.common.kernel.random_kernels import arguments, equal, packed, random_kernel

from warploom import runtime
from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Const
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, For, If, Kernel, Load, Shared, Stmt, Store, walk
from warploom.kernel.wide import with_index

# How many are compiled as one: compilers of whole programs are slow to start, that of OpenCL is
# slow on large kernels.
TOGETHER = {"c": 40, "ptx": 20, "opencl": 1, "cuda": 20}
# The largest distance from the evaluator that docs/kernels.md allows `exp` and its like, in units
# in the last place; the evaluator itself may be half a unit off.
MOST_ULPS = {"simulator": 0, "c": 3, "ptx": 3, "opencl": 6, "cuda": 3}
MOVES = (1, -1, 1, -1, 3, 1000, -(10**6), 10**7)  # of an index, so that it leaves its array


def differences(seeds: Iterable[int], device: Any, index: DType = DType.I32) -> list[str]:
    """Where a target disagrees with the evaluator on the kernels of some seeds, as one kernel. The
    target may compute its indices in another type."""
    chosen = list(seeds)
    kernels = [random_kernel(seed) for seed in chosen]
    for kernel in kernels:
        check(kernel)
    kernel = packed(kernels)
    given = arguments(kernel, chosen[0])
    wanted = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
    run(kernel, wanted)
    _run_on(device, with_index(kernel, index), given)
    return [
        f"{device}: {param.name} of seeds {chosen[0]}…{chosen[-1]}"
        for param, got, want in zip(kernel.params, given, wanted, strict=True)
        if isinstance(param, ArrayParam)
        and not equal(param.name, param.dtype, got, want, MOST_ULPS[device])
    ]


def _run_on(device: Any, kernel: Kernel, given: list[Any]) -> None:
    """Runs a kernel with arrays in host memory, wherever it runs."""
    if device != "cuda":
        runtime.load(kernel, device)(*given)
        return
    cupy = import_module("cupy")  # a machine with a GPU has it
    there = [
        cupy.asarray(each) if isinstance(param, ArrayParam) and param.space == "global" else each
        for param, each in zip(kernel.params, given, strict=True)
    ]
    runtime.load(kernel, "cuda")(*there)
    for host, moved in zip(given, there, strict=True):
        if isinstance(moved, cupy.ndarray):
            host[:] = cupy.asnumpy(moved)


# -- one index out of range -----------------------------------------------------------------------


def broken_kernel(seed: int) -> Kernel:
    """The kernel of a seed with one access moved out of its array, in some thread at least."""
    random, kernel = Random(seed), random_kernel(seed)
    sizes: dict[str, int] = {
        each.name: each.size.value for each in kernel.arrays if isinstance(each.size, Const)
    }
    sizes |= {each.name: each.size for each in kernel.body if isinstance(each, Shared)}
    count = sum(isinstance(each, Load | Store) for each in walk(kernel.body))
    for which in random.sample(range(count), count):
        by = random.choice(MOVES)
        unit = random.choice([sizes, {}])  # the size of the array, or one element
        body = _moved(kernel.body, iter(range(count)), which, by, unit)
        broken = replace(kernel, body=body)
        if _leaves(broken, seed):
            return broken
    raise AssertionError(f"no thread gets to any access of kernel {seed}")


def _leaves(kernel: Kernel, seed: int) -> bool:
    """Whether the evaluator, which checks every index, finds one outside."""
    try:
        run(kernel, arguments(kernel, seed))
    except DeviceError as error:
        return "elements, but is used" in error.message
    return False


def _moved(
    body: tuple[Stmt, ...], numbers: Iterator[int], which: int, by: int, sizes: dict[str, int]
) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Load() | Store():
                if next(numbers) == which:
                    stmt = replace(stmt, index=stmt.index + by * sizes.get(stmt.array, 1))
            case For():
                stmt = replace(stmt, body=_moved(stmt.body, numbers, which, by, sizes))
            case If(_, then, otherwise):
                then = _moved(then, numbers, which, by, sizes)
                stmt = replace(
                    stmt, then=then, otherwise=_moved(otherwise, numbers, which, by, sizes)
                )
            case _:
                pass
        result.append(stmt)
    return tuple(result)


def fate(seed: int) -> str:
    """What becomes of a broken kernel: every target begins with `check`."""
    try:
        check(broken_kernel(seed))
    except CheckError as error:
        shown = "elements, but thread" in error.message
        return "refused with a thread that leaves" if shown else "refused, not shown to stay inside"
    return "accepted"


# -- the whole run --------------------------------------------------------------------------------


def looked_at(device: str, first: int, count: int) -> dict[str, Any]:
    """What becomes of some seeds on one target, or of their broken kernels."""
    start, seeds = sum(os.times()[:4]), range(first, first + count)
    found: dict[str, Any] = {"kernels": count}
    if device == "broken":
        found["fates"] = dict(Counter(fate(seed) for seed in seeds))
    else:
        found["disagreements"] = differences(seeds, device)
    return found | {"seconds": sum(os.times()[:4]) - start}
