"""Products of packed weights: which computations they are, however they are written; the space of
their tilings, its bound, and kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loopnest.after import AFTER, After, by_column, by_row, gelu, residual
from tests.sampled import examples

from warploom import runtime
from warploom.emit.cuda import cuda
from warploom.kernel import ir
from warploom.kernel.dtype import DType, bf16, f16, f32, i8, i32, u8, u32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, Tensor, cast
from warploom.loopnest.computation import Computation
from warploom.loopnest.decided import Implementation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Axis, Program
from warploom.loopnest.kernels import Integers, matmul
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.strategies.form import NotMeantError
from warploom.loopnest.target import everything
from warploom.loopnest.trial import agrees, shifted, some_inputs, tried, tried_kernel
from warploom.loopnest.weights.bound import WeightBound, expected
from warploom.loopnest.weights.field import Field, field_of
from warploom.loopnest.weights.kernel import kernel_of
from warploom.loopnest.weights.product import weight_product
from warploom.loopnest.weights.space import NAMES, WeightSpace, possible
from warploom.loopnest.weights.tiling import WeightTiling
from warploom.machine.proof import Reach
from warploom.machine.record import H200
from warploom.runtime.compile import can_compile
from warploom.runtime.emulated import EmulatedFunction
from warploom.search.branching.candidate import Decision
from warploom.search.branching.descent import descents
from warploom.search.branching.problem import SpaceProblem

needs_compiler = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
Weight = Callable[[LoopNest, Axis, Axis], Value]
USUAL = WeightTiling(rows=16, wide=2, beside=2, parts=2, cluster=1, ahead=1)


# -- ways to write a weight ------------------------------------------------------------------------


def words(
    nest: LoopNest, j: Axis, k: Axis, dtype: DType = u32, bits: int = 4
) -> tuple[Value, Value]:
    """A word, and by how much its field is shifted."""
    each = 8 * dtype.bytes // bits
    held = nest.array("W", j, k.size // each, dtype=dtype)
    return held[j, k // each], bits * nest.index(k % each, dtype)


def unsigned(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast(cast((word >> by) & 15, i32) - 8, f32)


def less_later(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast((word >> by) & 15, f32) - 7.0


def of_bytes(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k, u8)
    return cast(cast(word >> by & 15, i32) - 3, f32)


def signed(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k, i32)
    return cast((word << (28 - by)) >> 28, f32)


def masked(nest: LoopNest, j: Axis, k: Axis) -> Value:
    """As PyTorch has words: with a sign, which the mask takes off."""
    word, by = words(nest, j, k, i32)
    return cast(((word >> by) & 15) - 8, f32)


def turned(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast(cast(((word >> by) & 15) ^ 8, i32) - 8, f32)


def eight_bits(nest: LoopNest, j: Axis, k: Axis) -> Value:
    return cast(nest.array("W", j, k, dtype=i8)[j, k], f32)


def bytes_of_words(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k, u32, 8)
    return cast(word >> by & 255, f32) - 128.0


WAYS: dict[str, tuple[Weight, tuple[int, int, bool]]] = {
    "unsigned": (unsigned, (4, 8, False)),
    "less later": (less_later, (4, 7, False)),
    "of bytes": (of_bytes, (4, 3, False)),
    "signed": (signed, (4, 0, True)),
    "masked": (masked, (4, 8, False)),
    "turned": (turned, (4, 0, True)),
    "eight bits": (eight_bits, (8, 0, True)),
    "bytes of words": (bytes_of_words, (8, 128, False)),
}


def stated(
    weight: Weight = unsigned,
    sizes: tuple[int, int, int] = (13, 40, 192),
    group: int | None = 64,
    scales: str = "nk",
    dtype: DType = bf16,
    after: After | None = None,
    out: DType | None = None,
    tiles: tuple[tuple[int, ...], ...] = ((), (), ()),
) -> Program:
    nest = LoopNest("stated")
    i, j, over = (
        nest.axis(name, size, *own, tail=bool(own))
        for name, size, own in zip("mnk", sizes, tiles, strict=True)
    )
    k = over.size
    A = nest.array("A", i, over, dtype=dtype)
    value = cast(A[i, over], f32) * weight(nest, j, over)
    if group is not None:
        shape: dict[str, tuple[Tensor, Any]] = {}
        if scales == "nk":
            shape["S"] = nest.array("S", j, k // group, dtype=dtype), (j, over // group)
        else:
            shape["S"] = nest.array("S", k // group, j), (over // group, j)
        array, place = shape["S"]
        scale: Value = array[place]
        value = value * (scale if scales == "kn" else cast(scale, f32))
    total: Value = nest.sum(value, over=over)
    if after is not None:
        total = after(nest, i, j, total)
    out = out or dtype
    nest.array("C", i, j, dtype=out)[i, j] = total if out is f32 else cast(total, out)
    return nest.done()


# -- what is recognised ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", WAYS)
def test_weights_are_known_however_they_are_written(name: str) -> None:
    weight, (bits, zero, sign) = WAYS[name]
    made = weight_product(stated(weight))
    assert (made.weights.bits, made.weights.zero, made.weights.signed) == (bits, zero, sign)
    assert made.scales is not None
    assert (made.scales.group, made.scales.step) == (64, 1)
    assert (made.rows.name, made.columns.name, made.kind) == ("m", "n", "bf16")
    assert made.eights == 2


@pytest.mark.parametrize(
    ("group", "scales", "eights", "step"),
    [(32, "nk", 1, 1), (128, "kn", 4, 40), (256, "nk", 4, 0), (None, "nk", 4, None)],
)
def test_a_lane_loads_no_more_than_a_group_has(
    group: int | None, scales: str, eights: int, step: int | None
) -> None:
    made = weight_product(stated(sizes=(13, 40, 256), group=group, scales=scales))
    assert made.eights == eights
    assert (None if made.scales is None else made.scales.step) == step


def wrapped(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast(cast(((word >> by) & 15) - 8, i32), f32)


def wrong_order(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast((word >> (28 - by)) & 15, f32)


def three_bits(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast((word >> by) & 7, f32)


def rounded(nest: LoopNest, j: Axis, k: Axis) -> Value:
    return cast(cast(unsigned(nest, j, k), bf16), f32)


def by_place(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast((word >> by) & 15, f32) - cast(nest.index(k), f32)


def multiplied(nest: LoopNest, j: Axis, k: Axis) -> Value:
    word, by = words(nest, j, k)
    return cast(((word >> by) & 15) * 2, f32)


def without_end(nest: LoopNest, j: Axis, k: Axis) -> Value:
    return unsigned(nest, j, k) - float("inf")


def floats(nest: LoopNest, j: Axis, k: Axis) -> Value:
    return cast(nest.array("W", j, k, dtype=bf16)[j, k], f32)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (stated(wrapped), "-8 to 7 in u32"),
        (stated(wrong_order), "not 4 bits each, the lowest first"),
        (stated(three_bits), "not 4 bits each"),
        (stated(rounded), "no field of its word|otherwise than by shifts"),
        (stated(by_place), "otherwise than by its place|bits each"),
        (stated(multiplied), "otherwise than by shifts and masks"),
        (stated(without_end), "a number beside it is of data"),
        (stated(floats), "no sum of a number times a weight of integers"),
        (stated(sizes=(13, 40, 160), group=16), "groups of 16 have one scale"),
        (stated(eight_bits, (13, 40, 188), None), "rows of 'A' do not begin"),
        (matmul(16, 16, 64),
         "no sum of a number times a weight"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_with_a_reason(program: Program, why: str) -> None:
    with pytest.raises(NotMeantError, match=why):
        weight_product(program)


@pytest.mark.parametrize("weights", ["int4", "int8"])
def test_the_known_product_is_one(weights: Integers) -> None:
    made = weight_product(matmul(16, 64, 256, weights=weights, group=128, dtype=bf16))
    assert made.weights.bits == int(weights[3:])
    assert made.deep == 128 // (made.weights.bits // 4)


# -- fields: by what operators do ------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["&", "<<", ">>", "^", "+", "-"]), st.integers(0, 300)),
    min_size=1, max_size=4,
)  # fmt: skip


@examples(300)
@given(STEPS, st.sampled_from([u32, i32, u8, i8]), st.integers(0, 2**32 - 1))
def test_fields_are_what_operators_leave(
    steps: list[tuple[Any, int]], dtype: DType, drawn: int
) -> None:
    """The field that is found has the value that Python's integers have, in range of the type."""
    nest = LoopNest("field")
    j = nest.axis("n", 4)
    loaded = nest.array("W", j, dtype=dtype)[j]
    bits = 8 * dtype.bytes
    number = drawn % (1 << bits)
    number -= (1 << bits) if dtype.is_signed and number >> (bits - 1) else 0
    value: Value = loaded
    for op, by in steps:
        amount = by % bits if op in ("<<", ">>") else by
        if not dtype.has(amount):
            return
        value = ir.Operation(op, (value, ir.Number(amount, dtype)))
        match op:
            case "&":
                number &= amount
            case "<<":
                number = int(np.array(number << amount, object) % (1 << bits))
                number -= (1 << bits) if dtype.is_signed and number >> (bits - 1) else 0
            case ">>":
                number >>= amount
            case "^":
                number ^= amount
            case _:
                number += amount if op == "+" else -amount
    try:
        found = field_of(value, loaded, lambda _: 0)
    except NotMeantError:
        return
    assert _in(found, drawn % (1 << bits)) == number
    low, high = found.range
    assert low <= number <= high


def _in(found: Field, word: int) -> int:
    own = word >> found.low & (1 << found.bits) - 1
    if found.signed and own >> (found.bits - 1):
        own -= 1 << found.bits
    return (own << found.up) + found.more


# -- the space and its bound -----------------------------------------------------------------------


def test_the_space_has_what_is_possible_and_the_bound_is_below_all() -> None:
    space = WeightSpace(weight_product(matmul(16, 512, 1024, weights="int4", dtype=bf16)), H200)
    listed = list(possible(space.product, H200))
    bound = WeightBound(space, H200.rates)
    whole = float(bound(space.propagator.root())[0])
    least = []
    assert len(listed) > 40
    for each in listed[::7]:
        here = space.propagator.root(
            [Decision(name, ("product",), (getattr(each, name),)) for name in NAMES]
        )
        assert space.tiling(here) == each
        least.append(float(bound(here)[0]))
        assert whole <= least[-1] < expected(space.product, each, H200.rates)
    assert whole == min(float(bound(space.propagator.root(
        [Decision(n, ("product",), (getattr(each, n),)) for n in ("rows", "wide", "beside")]
    ))[0]) for each in listed)  # fmt: skip


def test_nothing_is_longer_than_what_there_is_of_it() -> None:
    found = list(possible(weight_product(matmul(16, 64, 256, weights="int4", dtype=bf16)), H200))
    assert {each.rows for each in found} == {16}
    assert max(each.columns for each in found) < 64 + 64
    assert not any(each.cluster > 1 and each.span(128) * each.cluster > 512 for each in found)


@pytest.mark.parametrize("weights", ["int4", "int8"])
def test_kernels_of_the_largest_tilings_are_well_formed(weights: Integers) -> None:
    product = weight_product(matmul(64, 4096, 4096, weights=weights, dtype=bf16))
    listed = list(possible(product, H200))
    for name in ("ahead", "wide", "cluster", "rows"):
        most = max(getattr(each, name) for each in listed)
        some = [each for each in listed if getattr(each, name) == most]
        kernel_of(product, max(some, key=lambda e: e.wide * e.ahead * e.rows * e.cluster), H200)


# -- in the space of loops -------------------------------------------------------------------------


@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WAYS)
def test_loops_have_them_as_well_on_every_device(name: str) -> None:
    """Drawn implementations are what the evaluator says, and the same as C and as PTX."""
    written = stated(WAYS[name][0], (3, 6, 16), 8, tiles=((2,), (2,), (4,)))
    program = program_of(Computation.of(written), published=False)
    space = NestSpace(program, everything(H200))
    problem = SpaceProblem(space.propagator, (), space.branch)
    found = descents(problem, 4, np.random.default_rng(3))
    arrays, _ = some_inputs(program, np.random.default_rng(0))
    for row in np.flatnonzero(found.arrived)[:1]:
        made = Implementation(space, found.leaves, int(row))
        assert not tried(made).wrong
        kernel = lower(made)
        results = []
        for device in ("simulator", "c", "ptx"):
            given = [arrays[each.name].copy() for each in program.arrays]
            runtime.load(kernel, device)(*given)
            results.append(given[-1].view(np.uint8))
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])


# -- kernels ---------------------------------------------------------------------------------------


def test_words_of_trials_have_any_bits() -> None:
    program = stated()
    arrays, _ = some_inputs(program, np.random.default_rng(0))
    assert [each.name for each in shifted(program)] == ["W"]
    assert (arrays["W"] >> np.uint32(28) > 0).any()


@st.composite
def cases(draw: Any) -> tuple[Program, WeightTiling]:
    """Any way to write a weight, ragged sizes, and a tiling that has room."""
    weight, _ = WAYS[draw(st.sampled_from(sorted(WAYS)))]
    group = draw(st.sampled_from([None, 32, 64, 128]))
    k = (group or 8) * draw(st.integers(1, 5 if group else 40))
    sizes = draw(st.integers(1, 35)), draw(st.integers(1, 70)), k
    scales = draw(st.sampled_from(["nk", "kn"]))
    program = stated(weight, sizes, group, scales, draw(st.sampled_from([bf16, f16])))
    listed = list(possible(weight_product(program), H200))
    return program, draw(st.sampled_from(listed))


def check_right(program: Program, tiling: WeightTiling) -> None:
    kernel = kernel_of(weight_product(program), tiling, H200)
    trial = tried_kernel(program, kernel, {axis: axis.size for axis in program.axes})
    assert not trial.wrong, (tiling, trial)


@examples(40)
@given(cases())
def test_what_is_drawn_is_right(case: tuple[Program, WeightTiling]) -> None:
    check_right(*case)


RUNS: dict[str, tuple[dict[str, Any], WeightTiling]] = {
    "int4, a cluster": ({}, replace(USUAL, cluster=2)),
    "int8, bias and gelu": ({"weight": eight_bits, "after": gelu}, replace(USUAL, ahead=2)),
    "bytes, more rows, residual": (
        {"weight": of_bytes, "sizes": (33, 40, 128), "after": residual},
        replace(USUAL, rows=32, wide=4),
    ),
    "f16, by rows, f32": (
        {"weight": signed, "dtype": f16, "after": by_row, "out": f32}, replace(USUAL, parts=4),
    ),
    "no group, by columns": (
        {"group": None, "after": by_column, "out": f16}, replace(USUAL, cluster=4, wide=1),
    ),
}  # fmt: skip


def by_row_and_column(nest: LoopNest, j: Axis, k: Axis) -> Value:
    """The weight with a scale of its column, and one of the row of the first factor."""
    rows = nest.array("rows", nest._axes[0])
    columns = nest.array("columns", j, dtype=f16)
    return cast(columns[j], f32) * unsigned(nest, j, k) * rows[nest._axes[0]]


def test_what_does_not_differ_along_the_sum_scales_it() -> None:
    for group in (None, 64):
        program = stated(by_row_and_column, group=group)
        assert len(weight_product(program).others) == 2
        check_right(program, USUAL)


@pytest.mark.parametrize("name", AFTER)
def test_what_comes_after_the_sum_is_right(name: str) -> None:
    for out in (bf16, f32):
        check_right(stated(after=AFTER[name], out=out), replace(USUAL, cluster=2))


@needs_compiler
@pytest.mark.parametrize(
    "name", [next(iter(RUNS)), *(pytest.param(n, marks=pytest.mark.slow) for n in list(RUNS)[1:])]
)
def test_compiled_it_gives_the_same_under_every_schedule(name: str) -> None:
    how, tiling = RUNS[name]
    program = stated(**how)
    kernel = kernel_of(weight_product(program), tiling, H200)
    arrays, numbers = some_inputs(program, np.random.default_rng(0))
    evaluated, emulated = ([arrays[each.name].copy() for each in program.arrays] for _ in range(2))
    run(kernel, [*evaluated, *numbers.values()])
    function = EmulatedFunction(kernel)
    x, y, z = (int(each.value) for each in kernel.grid)  # type: ignore[union-attr]
    given = function.packed([*emulated, *numbers.values()])
    report = function.launch((x, y, z), given, races=True, prove=True)
    assert report.proof is not None
    # erff decides by what it is given which of two polynomials it is.
    reach = Reach.THIS_DATA if how.get("after") is gelu else Reach.ALL_DATA
    assert report.proof.reach is reach
    for array, left, right in zip(program.arrays, evaluated, emulated, strict=True):
        if reach is Reach.THIS_DATA:  # nor is it that of NumPy to the last bit
            assert agrees(program, array.name, right, left).all()
        else:
            np.testing.assert_array_equal(left.view(np.uint8), right.view(np.uint8))


def test_weights_are_asked_for_before_the_first_barrier() -> None:
    """Of arrays that are read alone ptxas moves loads behind it, and lanes then wait for each."""
    program = matmul(16, 512, 2048, weights="int4", dtype=bf16)
    text = cuda(kernel_of(weight_product(program), replace(USUAL, wide=4, ahead=2), H200))
    assert "const int* W" in text
    assert "const unsigned short* __restrict__ A" in text
    loads = [at for at, line in enumerate(text.splitlines()) if "(&W[" in line]
    waits = [at for at, line in enumerate(text.splitlines()) if "cp.async.wait_group" in line]
    assert len(loads) == 8
    assert max(loads) < min(waits)


@pytest.mark.parametrize("field", ["zero", "signed"])
def test_a_kernel_that_is_wrong_is_found(field: str) -> None:
    """One that takes another number off, or takes the highest bit for a sign."""
    program = stated()
    made = weight_product(program)
    other = replace(made.weights, zero=7) if field == "zero" else replace(
        made.weights, signed=True, zero=0)  # fmt: skip
    kernel = kernel_of(replace(made, weights=other), USUAL, H200)
    assert "should be" in tried_kernel(program, kernel, {a: a.size for a in program.axes}).wrong
