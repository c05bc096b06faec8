"""Products of matrices by warp groups: which computations they are, the space of their tilings, and
kernels of these."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as every
from typing import Any

import numpy as np
import pytest
from tests.loopnest.after import AFTER, After

from warploom.emit.cuda import cuda
from warploom.kernel.dtype import DType, bf16, e4m3, f16, f32, i8, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, cast, maximum, tf32
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import batched_matmul, convolution, matmul
from warploom.loopnest.matrix.bound import MatrixBound, exchange_time, expected
from warploom.loopnest.matrix.kernel import kernel_of
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.matrix.space import BANDS, BOXES, NAMES, MatrixSpace
from warploom.loopnest.matrix.tiling import Tiling
from warploom.loopnest.strategies.form import NotMeantError
from warploom.loopnest.trial import agrees, some_inputs, tried_kernel
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
    after: After | bool = False,
) -> Program:
    """C = A·B, or relu(A·B + bias) + residual, or what else comes after; both factors lie as
    `majors` says."""
    nest, (m, n, k) = LoopNest("stated"), sizes
    axes = {"m": nest.axis("m", m), "n": nest.axis("n", n), "k": nest.axis("k", k)}
    outer = (nest.axis("b", batch),) if batch else ()
    first, second = ((*outer, *(axes[each] for each in side)) for side in majors.split("-"))
    A, B = nest.array("A", *first, dtype=dtype), nest.array("B", *second, dtype=dtype)
    sums, out = (f32 if dtype.is_real else i32), out or (dtype if dtype.bytes == 2 else f32)
    C = nest.array("C", *outer, axes["m"], axes["n"], dtype=out)
    a, b = A[first], B[second]
    factors = (tf32(a), tf32(b)) if dtype is f32 else (cast(a, sums), cast(b, sums))
    value: Value = nest.sum(factors[0] * factors[1], over=axes["k"])
    if callable(after):
        value = after(nest, axes["m"], axes["n"], value)
    elif after:
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
        (stated((208, 208, 208), f32, "mk-kn"), "tensor cores take f32 side by side along the sum"),
        (stated((208, 208, 208), e4m3), "tensor cores take e4m3 side by side along the sum"),
        (convolution(8, 8, 8, 8), "the sum is over more than one axis"),
    ],
)
def test_what_is_none_is_refused_with_a_reason(program: Program, why: str) -> None:
    with pytest.raises(NotMeantError, match=why):
        matrix_product(program)


def test_named_products_are_of_types() -> None:
    made = matrix_product(matmul(64, 64, 64, dtype=i8, transposed="B", activation="relu"))
    assert (made.kind, made.fold.dtype, made.out.dtype) == ("i8", i32, i32)
    assert matrix_product(stated(dtype=f32, majors="mk-nk")).kind == "tf32"
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
    assert len(found) == 108
    assert all(each.is_possible(bf16, bf16, H200.shared_bytes_most) for each in found)
    wide = (32, 48, 64, 80, 96, 128)
    ways = every((64, 128), wide, (64, 128), (2, 3), (1, 2), (1, 2), BANDS[:1], BOXES, (0, 1))
    for way in ways:
        made = Tiling(*way)
        fits = made.is_possible(bf16, bf16, H200.shared_bytes_most)
        beyond = made.deep == 128 and made.stages > 2
        beyond |= (
            made.columns == 128 or max(made.columns * made.across, made.rows * made.down) > 128
        )
        assert (made in found) == (fits and not beyond), made


def test_propagation_leaves_what_some_tiling_has() -> None:
    space = space_of((136, 72, 136), majors="km-kn")
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
    space = space_of((136, 72, 136), majors="km-kn")
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


def test_the_sum_is_split_where_tiles_are_fewer_than_processors() -> None:
    """Each block fills all of its stages, and all run at once."""
    few = {each for each in space_of((256, 128, 4096)).rows if each.split > 1}
    assert {each.split for each in few} == {2, 3, 4, 5, 6, 8}
    for each in few:
        tiles = -(-256 // each.rows) * -(-128 // each.columns)
        assert tiles * each.split <= 132
        assert each.cluster == 1
        assert each.boxes == each.ping_pong == 0
        assert 4096 // each.deep // each.split >= each.stages
    assert all(each.split == 1 for each in space_of((4096, 4096, 64)).rows)


def test_the_model_splits_a_sum_that_is_long_beside_its_tiles() -> None:
    def best(*sizes: int) -> Tiling:
        own = space_of(sizes)  # type: ignore[arg-type]
        return min(own.rows, key=lambda each: expected(own.product, each, H200.rates))

    assert best(128, 128, 16384).split > 1
    assert best(4096, 4096, 4096).split == 1
    longer = replace(USUAL, split=4)
    assert exchange_time(USUAL) == 0 < exchange_time(replace(USUAL, split=2))
    assert exchange_time(longer) < exchange_time(replace(longer, columns=128))


def test_rows_in_shared_memory_are_as_long_as_tiles_allow() -> None:
    kernel = kernel_of(matrix_product(stated((72, 104, 72))), replace(USUAL, columns=96), H200)
    assert {each.name: (each.box, each.swizzle) for each in kernel.maps} == {
        "a_map": ((64, 64), 128), "b_map": ((64, 32), 64),
    }  # fmt: skip


# -- kernels ---------------------------------------------------------------------------------------

KERNELS: dict[str, tuple[Program, Tiling, dict[str, int]]] = {
    "tf32, bias and more": (
        stated(dtype=f32, majors="mk-nk", after=True), replace(USUAL, deep=32), {"m": 136},
    ),
    "i8": (stated((200, 264, 208), i8, "mk-nk"), replace(USUAL, deep=128), {"k": 208}),
    "turned, boxes of rows": (
        stated((88, 72, 136)), replace(USUAL, columns=80, boxes=1), {"m": 88, "n": 64},
    ),
    "batch, a cluster beside": (
        stated(dtype=f16, batch=2), replace(USUAL, rows=128, consumers=2, cluster=2, beside=1),
        {"n": 136},
    ),
    "split in three, parts of unequal size, narrow rows": (
        stated((M, N, 296)), replace(USUAL, columns=80, split=3), {"n": 80, "k": 296},
    ),
    "split in two, integers": (
        stated((72, 72, 400), i8, "mk-nk"), replace(USUAL, deep=128, split=2), {"k": 400},
    ),
    "split in two, bias and more": (
        stated(after=True), replace(USUAL, split=2), {"k": 200},
    ),
    "bias and more, a cluster below, boxes": (
        stated(majors="km-kn", after=True), replace(USUAL, cluster=2, boxes=1), {"m": 136},
    ),
    "ping-pong": (
        stated((2120, 2120, 72)), replace(USUAL, consumers=2, ping_pong=1, boxes=1), {"m": 136},
    ),
}  # fmt: skip

QUICK = ("i8", "turned, boxes of rows", "split in three, parts of unequal size, narrow rows")


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in KERNELS],
)
def test_compiled_it_gives_the_same_bits_under_every_schedule(name: str) -> None:
    program, tiling, longer = KERNELS[name]
    check_same(program, tiling, longer, name.startswith("turned"))


@needs_compiler
def test_a_box_may_end_inside_of_sixteen_bytes() -> None:
    check_same(stated(after=True), replace(USUAL, boxes=1), {"m": 8, "n": 5})


def check_same(
    program: Program, tiling: Tiling, longer: dict[str, int], turned: bool = False
) -> None:
    own = matrix_product(program, turned)
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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("out", [bf16, f32])
@pytest.mark.parametrize("name", AFTER)
def test_what_comes_after_the_sum_is_right(name: str, out: DType) -> None:
    """Straight from registers or through boxes, in both directions of tiles."""
    program = stated((136, 104, 72), after=AFTER[name], out=out)
    for turned in (False, True):
        tiling = replace(USUAL, boxes=1 if out is bf16 and not turned else 0)
        kernel = kernel_of(matrix_product(program, turned), tiling, H200)
        assert not tried_kernel(program, kernel, {a: a.size for a in program.axes}).wrong


def scaled(dtype: DType, over_the_sum: bool = False) -> Program:
    """Factors with scales: of a row, of a column, and a number."""
    nest = LoopNest("scaled")
    m, n, k = (nest.axis(name, size) for name, size in zip("mnk", (72, 40, 96), strict=True))
    A, B = nest.array("A", m, k, dtype=dtype), nest.array("B", n, k, dtype=dtype)
    down, across = nest.array("down", k if over_the_sum else m), nest.array("across", n, dtype=bf16)
    a = cast(A[m, k], f32) * down[k if over_the_sum else m]
    b = cast(across[n], f32) * cast(B[n, k], f32)
    total = nest.sum(a * (b * nest.parameter("alpha")), over=k)
    nest.array("C", m, n, dtype=f16)[m, n] = cast(total + down[0], f16)
    return nest.done()


@pytest.mark.parametrize("dtype", [bf16, e4m3])
def test_what_does_not_differ_along_the_sum_scales_it(dtype: DType) -> None:
    program = scaled(dtype)
    made = matrix_product(program)
    assert len(made.scales) == 3
    kernel = kernel_of(made, replace(USUAL, deep=128 // dtype.bytes), H200)
    assert not tried_kernel(program, kernel, {a: a.size for a in program.axes}).wrong


def test_scales_along_the_sum_are_refused() -> None:
    with pytest.raises(NotMeantError, match="no sum of products of two converted loads"):
        matrix_product(scaled(bf16, over_the_sum=True))


@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", AFTER)
def test_compiled_what_comes_after_gives_the_same(name: str) -> None:
    program = stated((72, 72, 72), after=AFTER[name])
    kernel = kernel_of(matrix_product(program), USUAL, H200)
    arrays, numbers = some_inputs(program, np.random.default_rng(0))
    evaluated, emulated = ([arrays[each.name].copy() for each in program.arrays] for _ in range(2))
    run(kernel, [*evaluated, *numbers.values()])
    function = EmulatedFunction(kernel)
    blocks = int(kernel.grid[0].value)  # type: ignore[union-attr]
    given = function.packed([*emulated, *numbers.values()])
    assert not function.launch(blocks, given, races=True).races
    for array, left, right in zip(program.arrays, evaluated, emulated, strict=True):
        if name == "gelu":  # erff is not that of NumPy to the last bit
            assert agrees(program, array.name, right, left).all()
        else:
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
