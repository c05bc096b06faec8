"""Products of matrices by warps: right on the simulator, the same bits on the emulator for machines
old and new, what ptxas makes of them, and where they are meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.loopnest.test_matrix import stated
from tests.pipeline.test_matrix_nest import drawn

from warploom.emit.cuda import cuda
from warploom.errors import DeviceError
from warploom.kernel import ir
from warploom.kernel.dtype import e4m3, f16, i8
from warploom.kernel.evaluate import run
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.matrix.warp_kernel import warp_kernel_of
from warploom.loopnest.matrix.warp_tiling import WarpTiling
from warploom.loopnest.strategies.form import NotMeantError, Room
from warploom.loopnest.strategies.warps import variants
from warploom.loopnest.target import everything
from warploom.loopnest.trial import Sample
from warploom.machine.proof import Reach
from warploom.machine.record import H200
from warploom.pipeline.exploring import explored
from warploom.pipeline.warp_nest import WarpNest
from warploom.runtime.compile import can_compile, compile_cuda
from warploom.runtime.emulated import EmulatedFunction

needs_compiler = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
OLDER = H200.but(
    warp_group_products=False, tensor_copies=False, shared_bytes_most=166912, multiprocessors=108
)
SMALL = WarpTiling(64, 64, 32, 3, 2, 2, 1)
CASES: dict[str, tuple[dict[str, Any], WarpTiling, str]] = {
    "more after the sum": ({"after": True, "majors": "mk-nk"}, SMALL, "sm_80"),
    "both dense along results": (
        {"majors": "km-kn", "dtype": f16}, WarpTiling(64, 64, 64, 2, 1, 2, 1), "sm_80"
    ),
    "batch, four stages": (
        {"batch": 2, "sizes": (40, 24, 136)}, WarpTiling(32, 64, 32, 4, 1, 2, 2), "sm_100"
    ),
    "i8": (
        {"sizes": (40, 30, 144), "dtype": i8, "majors": "mk-nk"},
        WarpTiling(32, 32, 64, 3, 1, 2, 1), "sm_80",
    ),
    "few rows": ({"sizes": (5, 72, 72)}, WarpTiling(16, 64, 64, 2, 1, 2, 1), "sm_100"),
}  # fmt: skip


@needs_compiler
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_the_emulator_gives_the_same_bits_under_every_schedule(name: str) -> None:
    how, tiling, arch = CASES[name]
    program = stated(**({"sizes": (72, 88, 104)} | how))
    kernel = warp_kernel_of(matrix_product(program), tiling, OLDER)
    sample = Sample.of(program, {axis: axis.size for axis in program.axes})
    meant, given = sample.given(), sample.given()
    assert not run(kernel, [*meant.values()], machine=int(arch[3:])).races
    assert not sample.wrong(meant)
    function = EmulatedFunction(kernel, arch)
    assert all(word in function.ptx for word in ("mma.sync", "ldmatrix", "cp.async", arch))
    grid = int(kernel.grid[0].value)  # type: ignore[union-attr]
    report = function.launch(grid, function.packed([*given.values()]), races=True, prove=True)
    assert report.proof is not None
    # Sums of integers may share a register with a counter, as both begin at zero.
    assert report.proof.reach in (Reach.ALL_DATA, Reach.THIS_DATA if name == "i8" else None)
    for each, right in meant.items():
        np.testing.assert_array_equal(given[each].view(np.uint8), right.view(np.uint8))


@needs_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_ptxas_takes_them_without_spills(arch: str) -> None:
    tiling = WarpTiling(128, 128, 32, 4, 2, 2, 8)
    text = cuda(warp_kernel_of(matrix_product(stated((512, 512, 512))), tiling, OLDER))
    options = ("--ptxas-options=-v",)
    made = compile_cuda(text, arch, kind="cubin", contract=False, options=options)
    assert " 0 bytes spill stores" in made.log


def test_what_is_drawn_is_right() -> None:
    nest = WarpNest(stated((72, 136, 72), f16, "km-nk"), OLDER.rates, everything(OLDER))
    (leaf,) = drawn(nest, 1, seed=2)
    assert nest.tried(leaf).wrong == ""


def test_the_order_of_a_stage_is_seen() -> None:
    """A kernel that waits for one group fewer reads what is not there yet."""
    program = stated((72, 88, 104))
    kernel = warp_kernel_of(matrix_product(program), SMALL, OLDER)
    sample = Sample.of(program, {axis: axis.size for axis in program.axes})
    with pytest.raises(DeviceError, match="'a_tile' is read where nothing was stored"):
        run(later(kernel), [*sample.given().values()])


def later(kernel: ir.Kernel) -> ir.Kernel:
    def of(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        made: list[ir.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ir.For):
                stmt = replace(stmt, body=of(stmt.body))
            if isinstance(stmt, ir.Barrier) and stmt.waits == 1:
                stmt = replace(stmt, waits=2)
            made.append(stmt)
        return tuple(made)

    return replace(kernel, body=of(kernel.body))


def test_it_is_explored_on_machines_without_warp_groups(tmp_path: Path) -> None:
    file = tmp_path / "older.toml"
    file.write_text(
        'like = "h200"\nshared_bytes_most = 166912\nmultiprocessors = 108\n'
        "warp_group_products = false\ntensor_copies = false\n"
    )
    found = explored(
        "matmul", {"m": 72, "n": 72, "k": 64}, type="bf16", machine=str(file), model=True,
        store=False, evaluations=1, strategy="warp-tile",
    )  # fmt: skip
    assert "warps with mma.sync (bf16)" in str(found)
    assert "ldmatrix" in found.text()


@pytest.mark.parametrize(
    ("room", "how", "why"),
    [
        (Room(warp_groups=True, copies=True), {}, "products by warp groups, which are faster"),
        (Room(), {}, "no asynchronous copies"),
        (Room(copies=True), {"dtype": e4m3, "majors": "mk-nk", "sizes": (64, 64, 64)}, "bf16, f16"),
    ],
)
def test_where_it_is_not_meant(room: Room, how: dict[str, Any], why: str) -> None:
    with pytest.raises(NotMeantError, match=why):
        variants(stated(**how), True, room)
