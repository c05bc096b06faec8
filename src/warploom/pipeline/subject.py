"""What can be compiled: sketches of both kinds, or what their search gave, become tiled kernels.

A sketch is filled first, by the best fill; a fill that comes along is taken. Either way it is
verified once more, and the kernel is run on the simulator before it goes out.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from warploom.errors import CheckError, one_of
from warploom.kernel.dtype import DType
from warploom.pipeline.warp_result import WarpResult
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, NothingFoundError, Outcome, Undecided
from warploom.sketch.build import Sketch
from warploom.sketch.code.program import tiled_program
from warploom.sketch.code.tiling import Layout as Layout
from warploom.sketch.code.tiling import Tiled
from warploom.sketch.code.where import check_layout
from warploom.sketch.simt.code import tiled_sketch
from warploom.sketch.simt.function import SketchFunction
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.solve import Filled, solve
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Program

Subject: TypeAlias = (
    Program
    | Sketch
    | Result
    | SketchFunction
    | Traced
    | Filled
    | Outcome[Filled]
    | WarpResult
    | Tiled
)


def dtype_named(name: DType | str | np.dtype[Any] | type) -> DType:
    if isinstance(name, DType):
        return name
    known = [each.value for each in DType]
    if isinstance(name, np.dtype) or (isinstance(name, type) and issubclass(name, np.generic)):
        name = np.dtype(name).name  # NumPy's own names are ours
    if not isinstance(name, str) or name not in known:
        complex_ones = "complex numbers are pairs: arrays of them are taken as (…, 2) floats; "
        raise CheckError(
            f"kernels have no element type {name!r:.40}",
            advice=(complex_ones if "complex" in str(name) else "") + one_of(str(name), known),
        )
    return DType(name)


def tiled(
    subject: Subject, layout: Layout | None = None, *, goal: int = 0, budget: Budget | None = None
) -> Tiled:
    """The kernel of a subject, with what it does to large arrays."""
    layout = layout or Layout()
    if goal != 0 and not isinstance(subject, Sketch | Program):
        raise CheckError(
            f"a {type(subject).__name__} has no goal {goal!r:.40} to choose",
            advice="goals are chosen when a Sketch or a program is searched",
        )
    match subject:
        case Tiled():
            return subject
        case Sketch():
            return tiled(subject.program(), layout, goal=goal, budget=budget)
        case Program():
            check_layout(subject, layout.lanes, layout.steps, layout.dtype.computed)
            found = synthesize(subject, goal, mode="best", budget=budget)
            return _of_result(found, layout)
        case Result():
            return _of_result(subject, layout)
        case SketchFunction():
            return tiled(subject.at(), layout, budget=budget)
        case Traced():
            _check_warp_layout(layout)
            return tiled(solve(subject, budget=budget), layout)
        case WarpResult():
            return tiled(subject.outcome, layout)
        case Filled() | Found() | Impossible() | Undecided():
            _check_warp_layout(layout)
            return tiled_sketch(
                subject,
                layout.dtype,
                layout.warps,
                function=layout.function,
                index=layout.index,
            )
    raise CheckError(
        f"a {type(subject).__name__} cannot be compiled",
        advice="give Sketch.from_file(path), or Sketch.from_text of a text"
        if isinstance(subject, str | PurePath)
        else "give a Sketch, a program, a warp sketch, or what its search gave",
    )


def _of_result(result: Result, layout: Layout) -> Tiled:
    if not len(result.fills):
        raise NothingFoundError(
            _unfilled(f"'{result.program.name}'", result.outcome),
            result.outcome,
            advice="`warploom synth … --suggest` tries other functions for its holes"
            if isinstance(result.outcome, Impossible)
            else "",
        )
    number = next(n for n, each in enumerate(result.program.goals) if each is result.goal)
    return tiled_program(result.program, result.fills.as_dict(0), number, layout)


def _unfilled(name: str, outcome: Outcome[Any]) -> str:
    if isinstance(outcome, Impossible):
        return f"{name} has no fill, so there is no kernel" + (
            f": {outcome.why}" if outcome.why else ""
        )
    reason = outcome.reason.value if isinstance(outcome, Undecided) else "nothing was listed"
    return f"{name} was not filled: {reason}"


def _check_warp_layout(layout: Layout) -> None:
    if layout.lanes is not None or layout.steps:
        raise CheckError(
            "a warp sketch says itself what its lanes and steps are",
            advice="write k.warp(lanes) and k.input(…, step=…) in it",
        )
