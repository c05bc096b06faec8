"""Implementations that experts write are in the space: decisions as `--fix` takes them reach each.

Each is a nest with tiles of its own and decisions; what these leave open is drawn, and what is
drawn has the form that was meant and is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.loopnest.test_strategies import row_sum, softmax

from warploom.errors import CheckError
from warploom.kernel.ir import Kernel, Shared, Shuffle, walk
from warploom.kernel.pool import launched_bytes
from warploom.loopnest.build import LoopNest
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, add_parts, matmul, matvec
from warploom.loopnest.lower import lower
from warploom.loopnest.strategies.known import variants_of
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline.exploring import explored
from warploom.pipeline.nest import Nest
from warploom.search.branching.descent import weighted_descents


@dataclass(frozen=True)
class Reached:
    kernel: Kernel
    wrong: str
    kinds: dict[str, str]


def reached(program: Program, fixes: tuple[str, ...], seed: int = 0) -> Reached:
    nest = Nest(program, H200.rates, everything(H200), fixes)
    drawn = weighted_descents(nest.problem, 4, np.random.default_rng(seed))
    row = int(np.flatnonzero(drawn.arrived)[0])
    leaf = drawn.leaves.take(slice(row, row + 1))
    made = nest.implementation(leaf)
    kinds = {str(dim): kind for dim, kind in made.kind.items()}
    return Reached(lower(made), nest.tried(leaf).wrong, kinds)


def by_strategy(program: Program, name: str, *more: str) -> Reached:
    found, refused = variants_of(program, free=True)
    one = next((each for each in found if each.strategy == name), None)
    assert one is not None, refused
    return reached(one.program, (*one.fixes, *more))


def tiled_matmul() -> Program:
    nest = LoopNest("matmul")
    i, j = nest.axis("m", 256, (16,), (8,)), nest.axis("n", 256, (16,), (8,))
    k = nest.axis("k", 64, (32,))
    A, B, C = nest.array("A", i, k), nest.array("B", k, j), nest.array("C", i, j)
    C[i, j] = nest.sum(A[i, k] * B[k, j], over=k)
    return nest.done()


@pytest.mark.slow
def test_a_register_tiled_matmul_with_two_stages_beyond_what_may_be_declared() -> None:
    """128×128×32: each of 16×16 threads has 8×8 sums, and 64 KB of factors are in flight."""
    found, _ = variants_of(tiled_matmul(), free=False)
    made = reached(found[0].program, (*found[0].fixes, "stages=2", "padding=0"))
    assert made.wrong == ""
    assert made.kernel.block == (256, 1, 1)
    assert launched_bytes(made.kernel) == 2 * (128 + 128) * 32 * 4
    assert [made.kinds[f"sum_1.{tile}"] for tile in ("m1", "m2")] == ["THREAD", "UNROLL"]


@pytest.mark.slow
def test_a_machine_without_opting_in_has_no_room_for_it() -> None:
    found, _ = variants_of(tiled_matmul(), free=False)
    own = H200.but(shared_bytes_most=49152)
    with pytest.raises(CheckError, match="more shared memory than the 49152 bytes"):
        Nest(found[0].program, H200.rates, everything(own), (*found[0].fixes, "stages=2"))


@pytest.mark.slow
def test_a_warp_per_row_matvec() -> None:
    made = by_strategy(matvec(16, 256, cut=Cut(tail=True)), "warp-per-row")
    assert made.wrong == ""
    lanes = [kind for name, kind in made.kinds.items() if "lane" in name]
    assert "THREAD" in lanes


def test_a_tree_reduction_by_shuffles() -> None:
    """The fold itself is over threads: they meet by shuffles, halving each time."""
    nest = LoopNest("row_sum")
    i, j = nest.axis("m", 6), nest.axis("n", 512, (128,))
    A, y = nest.array("A", i, j), nest.array("y", i)
    y[i] = nest.sum(A[i, j], over=j)
    made = reached(nest.done(), ("dim_kind(m0)=BLOCK", "dim_kind(sum_1.n1)=THREAD"))
    assert made.wrong == ""
    shuffles = [each for each in walk(made.kernel.body) if isinstance(each, Shuffle)]
    assert len(shuffles) >= 5
    assert any(isinstance(each, Shared) for each in made.kernel.body)  # across four warps


def test_a_two_pass_softmax() -> None:
    made = by_strategy(softmax(8, 500), "row-per-block")
    assert made.wrong == ""
    assert any(isinstance(each, Shuffle) for each in walk(made.kernel.body))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [(8, 8, 1100), (12, 20, 1031)], ids=str)
def test_split_k_in_a_block(size: tuple[int, int, int]) -> None:
    made = by_strategy(matmul(*size, cut=Cut(tail=True)), "split-k")
    assert made.wrong == ""
    assert any(isinstance(each, Shuffle) for each in walk(made.kernel.body))


@pytest.mark.slow
def test_split_k_by_two_kernels() -> None:
    """The parts of a sum beside each other in blocks, and a kernel that adds them in one order."""
    first = matmul(8, 8, 96, splits=4, tiles=((4,), (4,), (8,)))
    fixes = tuple(f"dim_kind({axis}0)=BLOCK" for axis in "mz")
    parts, added = reached(first, fixes), reached(add_parts(4, 8, 8, tiles=((4,), (4,))), ())
    assert (parts.wrong, added.wrong) == ("", "")
    assert [each.name for each in added.kernel.params] == ["P", "C"]


@pytest.mark.slow
def test_split_k_is_found_where_results_are_few() -> None:
    found = explored(
        "matmul", {"m": 16, "n": 16, "k": 8192}, evaluations=1, model=True, store=False
    )
    assert found.strategy == "split-k 1"
    assert found.trial is not None
    assert found.trial.wrong == ""


@pytest.mark.parametrize("size", [(1024, 1024, 8192), (64, 64, 512)], ids=str)
def test_split_k_is_not_meant_elsewhere(size: tuple[int, int, int]) -> None:
    assert "split-k" in variants_of(matmul(*size, cut=Cut(tail=True)), free=True)[1]


@pytest.mark.slow
def test_a_strategy_that_was_asked_for_is_what_is_found_or_refused() -> None:
    program = row_sum(64, 512)
    found = explored(program, strategy="warp-per-row", evaluations=1, model=True, store=False)
    assert found.strategy == "warp-per-row 1"
    with pytest.raises(CheckError, match="'warp-per-row' has nothing that fits your decisions"):
        explored(program, strategy="warp-per-row", fix=["dim_kind(m0)=LOOP"], model=True,
                 evaluations=1, store=False)  # fmt: skip


def test_arguments_are_in_the_order_of_declaration() -> None:
    nest = LoopNest("ordered")
    i = nest.axis("n", 32)
    z, beta, x = nest.array("z", i), nest.parameter("beta"), nest.array("x", i)
    alpha = nest.parameter("alpha")
    z[i] = alpha * x[i] + beta
    kernel = explored(nest, evaluations=1, model=True, store=False).kernel
    assert [each.name for each in kernel.params] == ["z", "x", "beta", "alpha"]
