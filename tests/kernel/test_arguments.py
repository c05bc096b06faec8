"""Arguments that do not fit are refused with one sentence that says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from warploom.errors import DeviceError
from warploom.index.ir import Expr, Var
from warploom.kernel.arguments import Described, bind, check_indices
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.dtype import DType, f32, f64, i32, u8
from warploom.kernel.ir import Kernel


def kernel(size: Expr | None = None) -> Kernel:
    k = Builder("k", block=64)
    n = k.scalar("n")
    k.array("x", f32, n + 2, const=True)
    k.array("y", f32, n * 2 if size is None else size)
    k.require(n.ne(13))
    k.grid(ceil_div(n, 64))
    k.let("i", k.block_x * 64 + k.thread)
    return k.done()


def arrays(x: int, y: int) -> list[Any]:
    return [Described(x, f32), Described(y, f32)]


def test_scalars_are_inferred() -> None:
    binding = bind(kernel(), arrays(102, 200))
    assert binding.scalars == {"n": 100}
    assert binding.grid == (2, 1, 1)
    assert bind(kernel(), [100, *arrays(102, 200)]).scalars == {"n": 100}
    assert bind(kernel(), arrays(102, 200), {"n": 100}).scalars == {"n": 100}


@pytest.mark.parametrize(
    ("size", "actual", "n"),
    [(Var("n") * 3 - 1, 29, 10), (4 + 2 * Var("n"), 24, 10), (Var("n") * Var("n"), 100, 10)],
)
def test_inference_from_other_sizes(size: Expr, actual: int, n: int) -> None:
    assert bind(kernel(size), arrays(12, actual)).scalars == {"n": n}


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ([], {}, r"takes \(n, x, y\), but 0 arguments"),
        (arrays(102, 201), {}, r"'y' has 201 elements, but the kernel needs n \* 2 = 200"),
        ([99, *arrays(102, 200)], {}, r"'x' has 102 elements, but the kernel needs n \+ 2 = 101"),
        ([Described(102, f64), Described(200, f32)], {}, "'x' holds float64, but .* float32"),
        ([Described(102, i32), Described(200, f32)], {}, "'x' holds int32"),
        ([Described(0, f32), Described(0, f32)], {}, "'x' is empty"),
        ([Described(102, f32, contiguous=False), *arrays(0, 200)[1:]], {}, "'x' is not contiguous"),
        ([*arrays(102, 0)[:1], Described(200, f32, writable=False)], {}, "'y' is written, but"),
        ([1.5, *arrays(102, 200)], {}, "'n' must be an int32"),
        ([2**31, *arrays(102, 200)], {}, "'n' must be an int32"),
        ([Described(1, f32), *arrays(102, 200)], {}, "'n' must be a number"),
        ([100, 100, Described(200, f32)], {}, "'x' must be an array"),
        (arrays(102, 200), {"m": 3}, "no scalar parameter 'm'"),
        (arrays(15, 26), {}, "'k' requires n != 13 with n = 13"),
        (arrays(2, 200), {}, "'y' has 200"),
    ],
)
def test_refused(arguments: list[Any], named: dict[str, int], message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        bind(kernel(), arguments, named)


@pytest.mark.parametrize(
    ("dtype", "value", "good"),
    [
        (f32, 3, True), (f32, 1e40, False), (f32, -(10**39), False), (f32, 10**400, False),
        (f32, float("inf"), True), (f32, float("nan"), True), (f32, 1e-50, True),
        (f64, 1e40, True), (f64, 10**400, False), (i32, float("nan"), False), (i32, 2.0, False),
        (i32, float("inf"), False), (u8, 255, True), (u8, 256, False), (u8, -1, False),
    ],
)  # fmt: skip
def test_a_scalar_is_a_number_of_its_type(dtype: DType, value: float, good: bool) -> None:
    k = Builder("k", block=32)
    number, y = k.number("number", dtype), k.array("y", dtype, 32)
    y[k.thread] = number
    given: list[Any] = [value, Described(32, dtype)]
    if good:
        bind(k.done(), given)
    else:
        with pytest.raises(DeviceError, match=f"'number' must be an {dtype.value}, not"):
            bind(k.done(), given)


def test_a_scalar_that_does_not_follow() -> None:
    k = Builder("k", block=32)
    m, n = k.scalar("m"), k.scalar("n")
    k.array("y", f32, m * n)
    with pytest.raises(DeviceError, match="'m' is not given and does not follow"):
        bind(k.done(), [Described(6, f32)])
    assert bind(k.done(), [Described(6, f32)], {"m": 2}).scalars == {"m": 2, "n": 3}


def test_an_empty_grid() -> None:
    k = Builder("k", block=32)
    n = k.scalar("n")
    k.array("y", f32, n)
    k.grid(n // 32)
    with pytest.raises(DeviceError, match="grid of 0 × 1 × 1"):
        bind(k.done(), [Described(5, f32)])


def test_indices_beyond_32_bits() -> None:
    k = Builder("wide", block=32)
    n = k.scalar("n")
    y = k.array("y", f32, n)
    k.grid(ceil_div(n, 32))
    i = k.let("i", k.block_x * 32 + k.thread)
    v = k.register("v", f32, 0.0)
    y.put(i, v, when=i.lt(n))
    built = k.done()
    check_indices(built, bind(built, [Described(2**31 - 64, f32)]))
    with pytest.raises(DeviceError, match=r"n \+ 31 overflows 32 bits"):
        check_indices(built, bind(built, [Described(2**31 - 1, f32)]))


def test_an_index_within_a_loop_beyond_32_bits() -> None:
    k = Builder("wide", block=32)
    n = k.scalar("n")
    k.array("y", f32, n)
    k.grid(ceil_div(n, 1024))
    with k.when(k.block_x.ge(0)), k.loop("j", 33) as j:
        k.let("i", (k.block_x * 1024 + k.thread) * j % n)
    built = k.done()
    check_indices(built, bind(built, [Described(2**25, f32)]))
    with pytest.raises(DeviceError, match=r"\* j overflows 32 bits"):
        check_indices(built, bind(built, [Described(2**26 + 1, f32)]))
