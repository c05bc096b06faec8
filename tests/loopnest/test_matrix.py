"""Products of matrices by warp groups: which computations they are, the space of their tilings, and
kernels of these."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as every
from typing import Any

import numpy as np
import pytest

from warploom.emit.cuda import cuda
from warploom.kernel.dtype import DType, bf16, e4m3, f16, f32, i8, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, cast, maximum
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import batched_matmul, convolution, matmul
from warploom.loopnest.matrix.bound import MatrixBound
from warploom.loopnest.matrix.kernel import kernel_of
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.matrix.space import BANDS, BOXES, NAMES, MatrixSpace
from warploom.loopnest.matrix.tiling import Tiling
from warploom.loopnest.strategies.form import NotMeantError
from warploom.loopnest.trial import some_inputs, tried_kernel
from warploom.machine.proof import Reach
from warploom.machine.record import H200
from warploom.pipeline.matrix_nest import shortened
from warploom.runtime.compile import can_compile
from warploom.runtime.emulated import EmulatedFunction
from warploom.search.branching.candidate import Decision

needs_compiler = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
M, N, K = 200, 264, 200
USUAL = Tiling(64, 64, 64, 2, 1, 1, 1, 0)


def stated(
    sizes: tuple[int, int, int] = (M, N, K),
    dtype: DType = bf16,
    majors: str = "mk-kn",
    out: DType | None = None,
    batch: int = 0,
    after: bool = False,
) -> Program:
    """C = A·B, or relu(A·B + bias) + residual; both factors lie as `majors` says."""
    nest, (m, n, k) = LoopNest("stated"), sizes
    axes = {"m": nest.axis("m", m), "n": nest.axis("n", n), "k": nest.axis("k", k)}
    outer = (nest.axis("b", batch),) if batch else ()
    first, second = ((*outer, *(axes[each] for each in side)) for side in majors.split("-"))
    A, B = nest.array("A", *first, dtype=dtype), nest.array("B", *second, dtype=dtype)
    sums, out = (f32 if dtype.is_real else i32), out or (dtype if dtype.bytes == 2 else f32)
    C = nest.array("C", *outer, axes["m"], axes["n"], dtype=out)
    value: Value = nest.sum(cast(A[first], sums) * cast(B[second], sums), over=axes["k"])
    if after:
        bias, residual = nest.array("bias", axes["n"]), nest.array("residual", axes["m"], axes["n"])
        value = maximum(value + bias[axes["n"]], 0) + residual[(axes["m"], axes["n"])]
    C[(*outer, axes["m"], axes["n"])] = value if out is sums else cast(value, out)
    return nest.done()


# -- what is recognised ----------------------------------------------------------------------------


def test_rows_and_columns_are_found_wherever_they_stand() -> None:
    made = matrix_product(stated(batch=3))
    named = (made.rows.name, made.columns.name, made.over.name, made.batch and made.batch.name)
    assert named == ("m", "n", "k", "b")
    assert (made.a.array.name, made.a.dense, made.b.dense, made.kind) == ("A", "k", "mn", "bf16")
    turned = matrix_product(stated(), turned=True)
    assert (turned.rows.name, turned.a.array.name, turned.a.dense) == ("n", "B", "mn")
    dense = matrix_product(stated(majors="km-nk"))
    assert (dense.a.dense, dense.b.dense) == ("mn", "k")
    assert matrix_product(stated((64, 64, 64), e4m3, "mk-nk")).kind == "e4m3"


def mixed() -> Program:
    nest = LoopNest("mixed")
    m, n, k = (nest.axis(name, 64) for name in "mnk")
    A, B = nest.array("A", m, k, dtype=bf16), nest.array("B", n, k, dtype=f16)
    nest.array("C", m, n)[m, n] = nest.sum(cast(A[m, k], f32) * cast(B[n, k], f32), over=k)
    return nest.done()


def guarded() -> Program:
    nest = LoopNest("guarded")
    m, n, k = (nest.axis(name, 64) for name in "mnk")
    A, B = nest.array("A", m, k, dtype=bf16), nest.array("B", n, k, dtype=bf16)
    loaded = A.at((m, k), where=k.expr.le(m.expr))
    nest.array("C", m, n)[m, n] = nest.sum(cast(loaded, f32) * cast(B[n, k], f32), over=k)
    return nest.done()


def two_folds() -> Program:
    nest = LoopNest("two_folds")
    m, n, k = (nest.axis(name, 64) for name in "mnk")
    A, B = nest.array("A", m, k, dtype=bf16), nest.array("B", n, k, dtype=bf16)
    total = nest.sum(cast(A[m, k], f32) * cast(B[n, k], f32), over=k)
    nest.array("C", m, n)[m, n] = total + nest.sum(cast(A[m, k], f32), over=k)
    return nest.done()


def of_indices() -> Program:
    nest = LoopNest("of_indices")
    m, n, k = (nest.axis(name, 64) for name in "mnk")
    A, B = nest.array("A", m, k, dtype=bf16), nest.array("B", n, k, dtype=bf16)
    total = nest.sum(cast(A[m, k], f32) * cast(B[n, k], f32), over=k)
    nest.array("C", m, n)[m, n] = total + cast(nest.index(m), f32)
    return nest.done()


def apart() -> Program:
    """Neighbours of A lie two elements from each other."""
    nest = LoopNest("apart")
    m, n, k = (nest.axis(name, 64) for name in "mnk")
    A = nest.array("A", m, k, dtype=bf16, strides=[128, 2])
    B = nest.array("B", n, k, dtype=bf16)
    nest.array("C", m, n)[m, n] = nest.sum(cast(A[m, k], f32) * cast(B[n, k], f32), over=k)
    return nest.done()


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (mixed(), "two converted loads of one type"),
        (matmul(64, 64, 64), "two converted loads of one type of bf16, f16, e4m3, e5m2, i8, u8"),
        (guarded(), "'A' is loaded where a condition holds"),
        (two_folds(), "no single sum of products, stored once"),
        (of_indices(), "what comes after the sum is of indices"),
        (apart(), "neighbours in 'A' are not side by side"),
        (stated((64, 60, 64)), "rows of 'B' do not begin at multiples of 16 bytes"),
        (stated((64, 64, 68)), "rows of 'A' do not begin at multiples of 16 bytes"),
        (stated((208, 208, 208), e4m3), "tensor cores take e4m3 side by side along the sum"),
        (convolution(8, 8, 8, 8), "two converted loads of one type"),
    ],
)
def test_what_is_none_is_refused_with_a_reason(program: Program, why: str) -> None:
    with pytest.raises(NotMeantError, match=why):
        matrix_product(program)


def test_named_products_are_of_types() -> None:
    made = matrix_product(matmul(64, 64, 64, dtype=i8, transposed="B", activation="relu"))
    assert (made.kind, made.fold.dtype, made.out.dtype) == ("i8", i32, i32)
    batched = matrix_product(batched_matmul(2, 64, 64, 64, dtype=f16))
    assert (batched.batches, batched.out.dtype) == (2, f16)


# -- the space -------------------------------------------------------------------------------------


def space_of(sizes: tuple[int, int, int], **how: Any) -> MatrixSpace:
    return MatrixSpace(matrix_product(stated(sizes, **how)), H200)


def tilings(space: MatrixSpace) -> set[Tiling]:
    """All that a space has, decided one after another."""
    found, here = set(), [space.propagator.root()]
    while here:
        candidate = here.pop()
        if space.branch(candidate)[0] < 0:
            found.add(space.tiling(candidate))
            continue
        name = next(n for n in NAMES if space.values(candidate, n)[0].sum() > 1)
        kept = space.values(candidate, name)[0]
        left = np.array(space.choices[name].values)[kept]
        here += [decided(space, known(space, candidate) | {name: int(each)}) for each in left]
    return found


def known(space: MatrixSpace, candidate: Any) -> dict[str, int]:
    values = {name: space.values(candidate, name)[0] for name in NAMES}
    return {n: int(space.choices[n].values[int(np.argmax(own))])
            for n, own in values.items() if own.sum() == 1}  # fmt: skip


def decided(space: MatrixSpace, values: dict[str, int]) -> Any:
    return space.propagator.root(
        [Decision(name, ("product",), (value,)) for name, value in values.items()]
    )


def test_the_space_has_all_that_is_possible_and_nothing_else() -> None:
    """What has room and is not there is longer than what there is of it, or has no turns."""
    space = space_of((72, 72, 72))
    found = tilings(space)
    assert len(found) == 42
    assert all(each.is_possible(bf16, bf16, H200.shared_bytes_most) for each in found)
    ways = every((64, 128), (64, 128), (64, 128), (2, 3), (1, 2), (1, 2), BANDS[:1], BOXES, (0, 1))
    for way in ways:
        made = Tiling(*way)
        fits = made.is_possible(bf16, bf16, H200.shared_bytes_most)
        beyond = made.deep == 128 and made.stages > 2
        beyond |= (
            made.columns == 128 or max(made.columns * made.across, made.rows * made.down) > 128
        )
        assert (made in found) == (fits and not beyond), made


def test_propagation_leaves_what_some_tiling_has() -> None:
    space = space_of((200, 264, 136), majors="km-kn")
    found = [vars_of(each) for each in tilings(space)]
    random = np.random.default_rng(0)
    for _ in range(20):
        some = found[int(random.integers(len(found)))]
        taken = {
            n: some[n] for n in random.choice(NAMES, int(random.integers(1, 4)), replace=False)
        }
        left = decided(space, taken)
        rows = [each for each in found if all(each[n] == v for n, v in taken.items())]
        for name in NAMES:
            values = np.array(space.choices[name].values)[space.values(left, name)[0]]
            assert set(values) == {each[name] for each in rows}, (taken, name)


def vars_of(tiling: Tiling) -> dict[str, int]:
    return {name: getattr(tiling, name) for name in NAMES}


def test_what_is_decided_is_bounded_by_no_less_than_what_is_open() -> None:
    space = space_of((200, 264, 136), majors="km-kn")
    bound = MatrixBound(space, H200.rates)
    whole = float(bound(space.propagator.root())[0])
    random, found = np.random.default_rng(1), sorted(tilings(space), key=str)
    for at in random.choice(len(found), 40, replace=False):
        values, least = vars_of(found[int(at)]), whole
        for count in range(1, len(NAMES) + 1):
            some = decided(space, dict(list(values.items())[:count]))
            now = float(bound(some)[0])
            assert now >= least > 0
            least = now
    assert min(float(bound(decided(space, vars_of(each)))[0]) for each in found) == whole


def test_tiles_that_take_turns_need_more_tiles_than_processors() -> None:
    few, many = (space_of((size, size, 64)).choices["ping_pong"].values for size in (512, 4096))
    assert (tuple(few), tuple(many)) == ((0,), (0, 1))


# -- kernels ---------------------------------------------------------------------------------------

KERNELS: dict[str, tuple[Program, Tiling, dict[str, int]]] = {
    "i8": (stated((200, 264, 208), i8, "mk-nk"), replace(USUAL, deep=128), {"k": 208}),
    "batch, a cluster beside": (
        stated(dtype=f16, batch=2), replace(USUAL, rows=128, consumers=2, cluster=2, beside=1),
        {"n": 136},
    ),
    "bias and more, a cluster below, boxes": (
        stated(majors="km-kn", after=True), replace(USUAL, cluster=2, boxes=1), {"m": 136},
    ),
    "ping-pong": (
        stated((2120, 2120, 72)), replace(USUAL, consumers=2, ping_pong=1, boxes=1), {"m": 136},
    ),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [*list(KERNELS)[:2], *(pytest.param(n, marks=pytest.mark.slow) for n in list(KERNELS)[2:])],
)
def test_compiled_it_gives_the_same_bits_under_every_schedule(name: str) -> None:
    program, tiling, longer = KERNELS[name]
    check_same(program, tiling, longer)


@needs_compiler
def test_a_box_may_end_inside_of_sixteen_bytes() -> None:
    check_same(stated(after=True), replace(USUAL, boxes=1), {"m": 8, "n": 5})


def check_same(program: Program, tiling: Tiling, longer: dict[str, int]) -> None:
    own = matrix_product(program)
    sizes = {each: longer.get(each.name, 72) for each in (own.rows, own.columns, own.over)}
    kernel = kernel_of(own, tiling, H200, sizes)
    arrays, _ = some_inputs(program, np.random.default_rng(0), sizes)
    evaluated, emulated = ([arrays[each.name].copy() for each in program.arrays] for _ in range(2))
    run(kernel, evaluated)
    function = EmulatedFunction(kernel)
    blocks = int(kernel.grid[0].value)  # type: ignore[union-attr]
    report = function.launch(blocks, function.packed(emulated), races=True, prove=True)
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
    for left, right in zip(evaluated, emulated, strict=True):
        np.testing.assert_array_equal(left.view(np.uint8), right.view(np.uint8))


def test_a_kernel_that_is_wrong_is_found() -> None:
    """Rows that another tile has are none of this one."""
    program = stated((72, 72, 72))
    own = matrix_product(program)
    kernel = kernel_of(own, USUAL, H200)
    sizes = {axis: axis.size for axis in program.axes}
    assert not tried_kernel(program, kernel, sizes).wrong
    short = replace(kernel, grid=(kernel.grid[0] - 1, *kernel.grid[1:]))
    assert "should be" in tried_kernel(program, short, sizes).wrong


def test_conversions_of_sums_stay_behind_the_wait_for_them() -> None:
    """ptxas moves them above it where nothing but the registers of the wait is in their way."""
    text = cuda(kernel_of(matrix_product(stated(majors="mk-nk")), replace(USUAL, columns=16), H200))
    (at,) = [n for n, line in enumerate(text.splitlines()) if "wait_group.sync.aligned 0" in line]
    assert "wgmma.wait_group.sync.aligned 0; pmevent 0;" in text.splitlines()[at]
    assert all(f'"+f"(sums[{each}])' in text.splitlines()[at + 1] for each in range(8))


def test_axes_are_cut_short_to_two_tiles_for_a_trial() -> None:
    made = matrix_product(stated((2120, 2120, 2120), batch=5))
    sizes = shortened(made, USUAL)
    assert {axis.name: size for axis, size in sizes.items()} == {
        "m": 64 + 2120 % 64, "n": 64 + 2120 % 64, "k": 3 * 64 + 2120 % 64, "b": 2,
    }  # fmt: skip
