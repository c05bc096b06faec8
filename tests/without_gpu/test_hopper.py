"""Hopper kernels of Triton and Gluon, kept as PTX: right, and nothing is found in them."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.without_gpu.hopper import NAMES, kept, problem, product

from warploom import ptx
from warploom.machine.report import Report

# Blocks where programs go through tiles; two tiles each.
PROGRAMS = {"triton_roles": 1, "gluon_ring": 1}


def run(name: str, m: int, n: int, k: int) -> Report:
    one = kept(name)
    given = problem(m, n, k)
    grid = one.grid(m, n, PROGRAMS.get(name))
    report = ptx.load(one.text, name).kernel().launch(
        grid, one.record["threads"], one.args(given, grid), shared_bytes=one.record["shared"],
        cluster=one.record["cluster"], races="all", benign=True,
    )  # fmt: skip
    np.testing.assert_array_equal(given["c"], product(given))
    return report


@pytest.mark.parametrize("name", ["triton_hosted", "triton_described", "triton_twofold"])
def test_a_tile(name: str) -> None:
    rows, columns, inner = kept(name).tile
    assert not run(name, rows, columns, inner).races


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_tiles(name: str) -> None:
    """Two tiles of five steps each, more than the ring has places."""
    rows, columns, inner = kept(name).tile
    assert not run(name, rows, 2 * columns, 5 * inner).races


def test_roles_of_warps() -> None:
    assert not run("gluon_ring", 64, 128, 64).races
