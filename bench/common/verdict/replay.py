"""What a judge said of a kernel, shown again by a launch."""

from __future__ import annotations

import numpy as np
from bench.common.verdict.computations import Computation

from warploom.errors import KernelError
from warploom.verdict.answer import Judgement
from warploom.verdict.argument import said
from warploom.verdict.case import Case, case_of
from warploom.verdict.floats import Launches, unwritten


def case(computation: Computation) -> Case:
    listed = [said(name, text) for name, text in computation.args.items()]
    c = computation
    return case_of(listed, dict(c.shape), c.grid, c.block, None, str(c.shared), 7)


def shows(computation: Computation, name: str, found: Judgement) -> bool:
    """Whether a launch on the inputs of the counterexample gives what it says; where there is none,
    whether a launch with all checks is at fault again."""
    launch, kernel = case(computation), computation.kernels.kernel(name)
    launches = Launches(kernel, None)
    example = found.counterexample
    try:
        if example is None:
            return _is_at_fault(launch, launches)
        if any(each.what == "state" for each in found.shapes[0].reasons):
            launch.fill(np.random.default_rng(found.seed), "normal")
            launches.run(launch)
        for each in launch.named.values():
            if each.name in example.arrays:
                each.memory[...] = example.arrays[each.name]
            elif each.is_scalar and example.launch is not None:
                each.put(np.array([example.launch["args"][launch.launches[0].args.index(each)]]))
        launches.run(launch, keep=True)
        output = launch.named[example.output]
        value = float(output.numbers().reshape(output.shape)[example.index])
    finally:
        launches.restore()
    same = value == example.kernel or (np.isnan(value) and np.isnan(example.kernel))
    return bool(same and example.kernel != example.reference)


def _is_at_fault(launch: Case, launches: Launches) -> bool:
    launch.fill(np.random.default_rng(99), "normal")
    before = {each.name: each.memory.copy() for each in launch.kept}
    try:
        (report,) = launches.run(launch, prove=True)
    except KernelError:
        return True
    written = any(launch.named[n].memory.tobytes() != b.tobytes() for n, b in before.items())
    return bool(report.races or unwritten(launch, launches.marks) or written)
