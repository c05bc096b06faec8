"""Candidates checked: what `array_check.py` runs in processes of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.array import workload
from warploom.array.code.program import Candidate, compile_candidate
from warploom.array.evaluate import evaluate
from warploom.array.ir import Program
from warploom.array.loops import Plan
from warploom.array.plan import plan
from warploom.array.recipe import convolution, matmul, stencil
from warploom.index.evaluate import evaluate as number
from warploom.kernel.evaluate import run
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.machine.record import Machine, machine_named
from warploom.runtime.opencl import OpenclFunction
from warploom.runtime.view import view
from warploom.trust.mapped import check_on

SMALL = workload.Convolution(6, 6, 8, 8)
SHAPES = {
    "total": (workload.total, {"n": 37}, [(37,)]),
    "dot": (workload.dot, {"n": 30}, [(30,), (30,)]),
    "matvec": (workload.matvec, {"m": 13, "n": 10}, [(13, 10), (10,)]),
    "matmul": (lambda: matmul.mid_level(workload.matmul(), staged=True),
               {"m": 12, "n": 10, "k": 9}, [(12, 9), (9, 10)]),
    "stencil_1d": (workload.stencil_1d, {"n": 29}, [(29,), (3,)]),
    "stencil_2d": (lambda: stencil.mid_level(workload.stencil_2d()), {"n": 9, "m": 14},
                   [(9, 14), (3, 3)]),
    "convolution": (lambda: convolution.mid_level(workload.convolution()), SMALL.sizes(),
                    [(6, 6, 8), (8, 3, 3, 8)]),
}  # fmt: skip


def statically(made: Plan, machine: str, candidates: list[Candidate]) -> list[str]:
    """What is wrong with each candidate; nothing, if it is right."""
    return [_static(made, machine_named(machine), each) for each in candidates]


def _static(made: Plan, machine: Machine, candidate: Candidate) -> str:
    try:
        for kernel in compile_candidate(made, candidate).kernels:
            last = tuple(int(getattr(each, "value", 1)) - 1 for each in kernel.grid)
            for block in {(0, 0, 0), (last[0], last[1], last[2])}:
                check_on(kernel, machine, block)
    except Exception as error:  # noqa: BLE001 - whatever it is, the candidate is not right
        return f"{type(error).__name__}: {error}"
    return ""


def on_simulator(kernel: Kernel, arguments: list[Any]) -> None:
    report = run(kernel, arguments)
    assert not report.races


def on_opencl(kernel: Kernel, arguments: list[Any]) -> None:
    seen = [
        view(given, param.name) if isinstance(param, ArrayParam) else given
        for param, given in zip(kernel.params, arguments, strict=True)
    ]
    x, y, z = (int(number(each, {})) for each in kernel.grid)
    OpenclFunction(kernel)(seen, (x, y, z))


LAUNCHES: dict[str, Callable[[Kernel, list[Any]], None]] = {
    "simulator": on_simulator, "opencl": on_opencl,
}  # fmt: skip


def numerically(name: str, way: str, candidates: list[Candidate]) -> list[str]:
    make, _, shapes = SHAPES[name]
    program: Program = make()
    made, random = plan(program), np.random.default_rng(5)
    values = [random.random(shape).astype(np.float32) for shape in shapes]
    found = []
    for candidate in candidates:
        try:
            wanted = np.asarray(evaluate(program, *values, **candidate.sizes))
            got = np.asarray(compile_candidate(made, candidate)(LAUNCHES[way], *values))
            right = np.allclose(got.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
            found.append("" if right else f"other numbers: {candidate}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the candidate is not right
            found.append(f"{type(error).__name__}: {error}")
    return found
