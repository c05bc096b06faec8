"""Checks of a user's own kernels, for `warploom synth --emit` and `warploom kernel`."""

from __future__ import annotations

from warploom.cli.commands.shared import Form
from warploom.cli.inputs import parse_steps
from warploom.errors import CheckError, ParseError
from warploom.kernel.wide import index_named
from warploom.pipeline.subject import Layout, dtype_named
from warploom.sketch.code.where import check_layout
from warploom.sketch.simt.ir import Traced
from warploom.sketch.term.ir import Program


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
            advice="leave --index-bits out, and pass it only its part of the array",
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
