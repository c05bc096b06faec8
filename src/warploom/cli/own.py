"""Options and texts of a user's own kernels, for `warploom synth --emit` and `warploom kernel`."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from warploom.errors import CheckError
from warploom.pipeline.subject import Layout, dtype_named
from warploom.sketch.code.program import check_layout
from warploom.sketch.simt.ir import Traced
from warploom.sketch.term.ir import Program


class Text(StrEnum):
    cuda = "cuda"
    opencl = "opencl"
    c = "c"


class Form(StrEnum):
    kernel = "kernel"
    function = "function"


LANES = "The length of the axis across lanes (default: the first one of most holes and folds)."
STEP = "Tiles of this input begin so far apart; 0: all read the same (default: side by side)."
FORM = "A kernel, or a function of a warp for a kernel of your own (a header)."
DTYPE = "Element type: float32, int32, uint8, … (default: float32)."


def layout_of(
    lanes: int | None,
    steps: list[str],
    dtype: str | None,
    parse: Callable[[list[str]], dict[str, int]],
) -> Layout:
    return Layout(lanes, parse(steps), dtype_named(dtype or "float32"))


def check_fits(given: Program | Traced, layout: Layout) -> None:
    """Errors in lanes and steps, before anything is searched."""
    if isinstance(given, Program):
        check_layout(given, layout.lanes, layout.steps)
    elif layout.lanes is not None or layout.steps:
        raise CheckError(
            f"the warp sketch '{given.name}' says itself what its lanes and steps are",
            advice="write k.warp(lanes) and k.input(…, step=…) in it",
        )
