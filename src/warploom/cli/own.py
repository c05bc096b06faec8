"""Options and texts of a user's own kernels, for `warploom synth --emit` and `warploom kernel`."""

from __future__ import annotations

from enum import StrEnum

from warploom.cli.inputs import parse_steps
from warploom.emit import BACKENDS
from warploom.errors import CheckError, ParseError
from warploom.kernel.wide import index_named
from warploom.pipeline.subject import Layout, dtype_named
from warploom.sketch.code.where import check_layout
from warploom.sketch.simt.ir import Traced
from warploom.sketch.term.ir import Program

Text = StrEnum("Text", list(BACKENDS))  # type: ignore[misc]  # the one list of languages


class Form(StrEnum):
    kernel = "kernel"
    function = "function"


LANES = "The length of the axis across lanes (default: the first one of most holes and folds)."
STEP = "Tiles of this input begin so far apart; 0: all read the same (default: side by side)."
FORM = "A kernel, or a function of a warp for a kernel of your own (a header)."
INDEX_BITS = "Indices of 32 bits, or 64 for larger arrays; the header says how large."
DTYPE = "Element type: float32, int32, uint8, … (default: float32)."


def layout_of(
    lanes: int | None,
    steps: list[str],
    dtype: str | None,
    index_bits: int,
) -> Layout:
    index = index_named(index_bits)
    return Layout(lanes, parse_steps(steps), dtype_named(dtype or "float32"), index=index)


def check_form(form: Form | None, index_bits: int) -> None:
    if form is Form.function and index_bits != 32:
        raise ParseError(
            "a device function has indices of 32 bits",
            advice="leave --index-bits out, and give it the part of an array that it is about",
        )


def check_fits(given: Program | Traced, layout: Layout) -> None:
    """Errors in lanes, steps, shapes and types, before anything is searched."""
    if isinstance(given, Program):
        check_layout(given, layout.lanes, layout.steps, layout.dtype.computed)
    elif layout.lanes is not None or layout.steps:
        raise CheckError(
            f"the warp sketch '{given.name}' says itself what its lanes and steps are",
            advice="write k.warp(lanes) and k.input(…, step=…) in it",
        )
