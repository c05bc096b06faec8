"""The lowest versions that are allowed are written out, so that `make oldest` can try them."""

from __future__ import annotations

import platform

import pytest
from bench.release.floors import floor, floors


def test_every_requirement_has_a_floor() -> None:
    found = floors(["smt", "cp", "nvrtc", "cuda", "opencl", "cluster", "docs", "dev"])
    assert {"numpy", "rich", "z3-solver", "pytest"} <= {f.split("==")[0] for f in found}
    assert all(version[0].isdigit() for _, version in (each.split("==") for each in found))


def test_a_floor_of_a_requirement() -> None:
    assert floor("ruff>=0.6,<0.18") == "ruff==0.6"
    assert floor(f"pocl>=3.0; platform_machine == '{platform.machine()}'") == "pocl==3.0"
    assert floor("pocl>=3.0; platform_machine == 'pdp11'") is None
    with pytest.raises(ValueError, match="no lowest version"):
        floor("pytest-xdist")
