"""Candidates checked: what `array_check.py` runs in processes of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from bench.common.trust.mapped import check_on
from bench.harness import attempted

from warploom.array import workload
from warploom.array.code.program import Candidate, compile_candidate
from warploom.array.code.spread import Spread
from warploom.array.joint.axes import Axis, axes_of
from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Program
from warploom.array.plan.loops import Plan
from warploom.array.plan.plan import plan
from warploom.array.recipe import convolution, matmul, stencil
from warploom.index.evaluate import evaluate as number
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.machine.record import machine_named
from warploom.runtime.opencl import OpenclFunction
from warploom.runtime.view import view

Shapes = list[tuple[int, ...]]
CONV4_2 = workload.VGG_16["conv4_2"].sizes()
LITTLE = workload.Convolution(4, 4, 4, 4)


@cache
def _convolution() -> Program:
    return convolution.mid_level(workload.convolution())


# Sizes that no power of two divides, beside those that the tiles of a recipe have to divide.
SHAPES: dict[str, tuple[Callable[[], Program], dict[str, int], Shapes]] = {
    "total": (workload.total, {"n": 37}, [(37,)]),
    "dot": (workload.dot, {"n": 30}, [(30,), (30,)]),
    "matvec": (workload.matvec, {"m": 13, "n": 10}, [(13, 10), (10,)]),
    "matmul": (lambda: matmul.mid_level(workload.matmul(), staged=True),
               {"m": 12, "n": 10, "k": 9}, [(12, 9), (9, 10)]),
    "stencil_1d": (workload.stencil_1d, {"n": 29}, [(29,), (3,)]),
    "stencil_2d": (lambda: stencil.mid_level(workload.stencil_2d()), {"n": 9, "m": 14},
                   [(9, 14), (3, 3)]),
    "convolution": (_convolution, LITTLE.sizes(), [(4, 4, 4), (4, 3, 3, 4)]),
}  # fmt: skip


@cache
def planned(name: str) -> tuple[Program, Plan]:
    """Once for each process: all candidates of a workload share it."""
    program = SHAPES[name][0]()
    return program, plan(program)


def _said(check: Callable[[Candidate], str], candidates: list[Candidate]) -> list[str]:
    """What is wrong with each candidate; nothing, if it is right."""
    found = []
    gc.disable()  # what is made for one candidate has few cycles, and is gone after it
    for candidate in candidates:
        said, failed = attempted(check, candidate)
        found.append(failed or said or "")
    gc.enable()
    return found


def statically(machine: str, candidates: list[Candidate]) -> list[str]:
    """At full size: kernels are made and looked at, not run."""
    _, made = planned("convolution")

    def check(candidate: Candidate) -> str:
        for kernel in compile_candidate(made, candidate).kernels:
            check_on(kernel, machine_named(machine))
        return ""

    return _said(check, candidates)


def on_simulator(kernel: Kernel, arguments: list[Any]) -> None:
    report = run(kernel, arguments)
    assert not report.races, report.races[0]


def on_opencl(kernel: Kernel, arguments: list[Any], optimise: bool = True) -> None:
    seen = [
        view(given, param.name) if isinstance(param, ArrayParam) else given
        for param, given in zip(kernel.params, arguments, strict=True)
    ]
    x, y, z = (int(number(each, {})) for each in kernel.grid)
    OpenclFunction(kernel, optimise=optimise)(seen, (x, y, z))


LAUNCHES: dict[str, Callable[[Kernel, list[Any]], None]] = {
    "simulator": on_simulator, "opencl": on_opencl,
    "opencl, not optimised": partial(on_opencl, optimise=False),
}  # fmt: skip


@cache
def _wanted(name: str) -> tuple[list[Any], Any]:
    """Inputs of both signs, and what the program as it was written computes of them on NumPy."""
    plain = workload.convolution() if name == "convolution" else SHAPES[name][0]()
    random = np.random.default_rng(5)
    values = [random.standard_normal(shape).astype(np.float32) for shape in SHAPES[name][2]]
    sizes = dict(SHAPES[name][1])
    for axis in axes_of(plain, sizes):  # any tiles: they do not change what is computed
        sizes |= {each: int(value) for each, value in zip(axis.names, axis.rows[0], strict=True)}
    return values, np.asarray(evaluate(plain, *values, **sizes))


def numerically(name: str, way: str, candidates: list[Candidate]) -> list[str]:
    _, made = planned(name)

    def check(candidate: Candidate) -> str:
        values, wanted = _wanted(name)
        got = np.asarray(compile_candidate(made, candidate)(LAUNCHES[way], *values))
        right = np.allclose(got.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
        return "" if right else f"other numbers: {candidate}"

    return _said(check, candidates)


# -- a mapping of the large convolution, at small sizes --------------------------------------------

MOST_THREADS = 4  # in each dimension


@cache
def _little_axes() -> tuple[Axis, ...]:
    return axes_of(_convolution(), LITTLE.sizes())


def in_little(candidate: Candidate) -> Candidate:
    """The same mapping of a small layer, with the tiles that are most like those of the large."""
    sizes = LITTLE.sizes()
    for axis in _little_axes():
        large = np.array([candidate.sizes[name] for name in axis.names])
        row = axis.rows[np.abs(np.log(axis.rows) - np.log(large)).sum(1).argmin()]
        sizes |= {name: int(value) for name, value in zip(axis.names, row, strict=True)}
    spreads = []
    for spread in candidate.spreads:
        x, y, z = (min(side, MOST_THREADS) for side in spread.group)
        spreads.append(Spread(spread.runs, (x, y, z), spread.lanes))
    return Candidate(sizes, tuple(spreads))


def in_little_numerically(candidates: list[Candidate]) -> list[str]:
    return numerically("convolution", "simulator", [in_little(each) for each in candidates])
