"""A result without a kernel says so, and tools that look at all attributes go on."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import warploom
from warploom.errors import UnsupportedError


def test_a_layout_has_no_kernel() -> None:
    found = warploom.solve_layout("transpose:32x32:f32", "swizzle")
    assert not hasattr(found, "kernel")
    assert "layout" in dict(inspect.getmembers(found))
    with pytest.raises(UnsupportedError, match="has no kernel"):
        _ = found.kernel


def test_a_budget_prints_its_limits_alone() -> None:
    assert repr(warploom.Budget(seconds=3)) == "Budget(seconds=3, megabytes=None)"


def test_ptx_with_shuffles_prints_in_a_line_for_each_kernel() -> None:
    text = (Path(__file__).parents[2] / "examples" / "ptx" / "stencil.ptx").read_text()
    found = warploom.insert_shuffles(text, select="all")
    (kernel,) = found.kernels
    head, line = repr(found).splitlines()
    assert head == f"<PTX of {len(found.text.splitlines())} lines"
    assert line == f"  stencil: {kernel.shuffles} of {kernel.loads} loads became shuffles>"
    assert kernel.shuffles > 0
