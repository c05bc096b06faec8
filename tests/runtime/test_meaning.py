"""One meaning on every target, as docs/kernels.md says: what C leaves open is not left open."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bench.common.kernel.random_kernels import APPROXIMATE, INTEGERS, equal, numbers
from tests.tools import require

from warploom import runtime
from warploom.kernel.build import Builder, cast, ceil_div, choose, fma
from warploom.kernel.dtype import DType, f32, f64, i32, i64, u64
from warploom.kernel.ir import Cell, Kernel, Number, Operation, Value

DEVICES = ("c", "ptx", "opencl")
FLOATS = (f32, f64)
Make = Callable[[Cell, Cell, Cell], Value]


def of_three(dtype: DType, values: dict[str, tuple[DType, Make]]) -> Kernel:
    """Every value of a[i], b[i], c[i], each to an output of its own."""
    k = Builder("meaning", block=64)
    n = k.scalar("n")
    inputs = [k.array(name, dtype, n, const=True) for name in "abc"]
    outputs = {name: k.array(name, kind, n) for name, (kind, _) in values.items()}
    k.grid(ceil_div(n, 64))
    i = k.let("i", k.block_x * 64 + k.thread)
    cells = [k.register(f"r{name}", dtype) for name in "abc"]
    for array, cell in zip(inputs, cells, strict=True):
        k.set(cell, array.at(i, when=i.lt(n)))
    for name, (_, make) in values.items():
        outputs[name].put(i, make(*cells), when=i.lt(n))
    return k.done()


@cache
def triples(dtype: DType, size: int = 400) -> tuple[npt.NDArray[Any], ...]:
    random = np.random.default_rng(5)
    return tuple(numbers(dtype, size, random) for _ in range(3))


def agree(kernel: Kernel, dtype: DType, device: Any, ulps: int = 0) -> dict[str, Any]:
    """Runs a kernel on a device and the evaluator; the outputs, which are the same."""
    require(device)
    given = triples(dtype)
    results = []
    for each in ("simulator", device):
        outputs = [np.zeros(given[0].size, p.dtype.numpy) for p in kernel.arrays if not p.const]
        runtime.load(kernel, each)(*given, *outputs)
        results.append(outputs)
    names = [p for p in kernel.arrays if not p.const]
    for param, wanted, got in zip(names, *results, strict=True):
        assert equal(param.name, param.dtype, got, wanted, ulps), f"{param.name} on {device}"
    return {param.name: each for param, each in zip(names, results[0], strict=True)}


@pytest.mark.parametrize("device", DEVICES)
def test_floats_to_integers_take_the_nearest_there_is(device: Any) -> None:
    for dtype in FLOATS if device != "opencl" else (f32,):
        values: dict[str, tuple[DType, Make]] = {
            f"to_{kind!r}": (kind, lambda a, b, c, kind=kind: cast(kind, a))  # type: ignore[misc]
            for kind in INTEGERS
        }
        found = agree(of_three(dtype, values), dtype, device)
        a = triples(dtype)[0]
        for kind in INTEGERS:
            limits = np.iinfo(kind.numpy)
            got = found[f"to_{kind!r}"]
            assert np.all(got[np.isnan(a)] == 0)
            assert np.all(got[a == np.inf] == limits.max)
            assert np.all(got[a == -np.inf] == limits.min)


@pytest.mark.sampled(1, each="device")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [i64, u64])
def test_long_integers_to_floats_round_once(device: Any, dtype: DType) -> None:
    """Midway between two floats, and a little more than a double holds."""
    require(device)
    k = Builder("long", block=64)
    x, y = k.array("x", dtype, 64, const=True), k.array("y", f32, 64)
    v = k.register("v", dtype)
    k.set(v, x[k.thread])
    y[k.thread] = cast(f32, v)
    top = 63 if dtype is i64 else 64
    near = [(1 << e) + (1 << e - 24) + more for e in range(32, top) for more in (-1, 0, 1)]
    given = np.array([*near[:31], *near[-32:], 5], dtype.numpy)
    if dtype is i64:
        given[::2] = -given[::2]
    results = np.zeros((2, 64), np.float32)
    for result, each in zip(results, ("simulator", device), strict=True):
        runtime.load(k.done(), each)(given, result)
    assert np.array_equal(*results)
    assert results[0].tolist() == [float(_nearest(int(each))) for each in given]


def _nearest(number: int) -> Fraction:
    """The nearest number of 24 digits, the even one of two."""
    size = abs(number)
    unit = Fraction(2) ** max(size.bit_length() - 24, 0)
    return round(size / unit) * unit * (-1 if number < 0 else 1)


@pytest.mark.sampled(1, each="device")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic_rounds_once_for_each_operation(device: Any, dtype: DType) -> None:
    other = f64 if dtype is f32 else f32
    values: dict[str, tuple[DType, Make]] = {
        "separate": (dtype, lambda a, b, c: a * b + c),
        "minus": (dtype, lambda a, b, c: c - a * b),
        "fused": (dtype, lambda a, b, c: fma(a, b, c)),
        "quotient": (dtype, lambda a, b, c: a / b),
        "root": (dtype, lambda a, b, c: Operation("sqrt", (a,))),
        "least": (dtype, lambda a, b, c: a.min(b)),
        "greatest": (dtype, lambda a, b, c: a.max(b)),
        "size": (dtype, lambda a, b, c: abs(a)),
        "chosen": (dtype, lambda a, b, c: choose(a.lt(b), a, choose(a.ne(b), c, b))),
        "across": (other, lambda a, b, c: cast(other, a)),
        "below": (dtype, lambda a, b, c: 0.0 - abs(a)),
        "literal": (dtype, lambda a, b, c: a.min(-0.0) + b.max(float("nan"))),
        "leading": (dtype, lambda a, b, c: Operation("tf32", (a,))),
    }
    found = agree(of_three(dtype, values), dtype, device)
    assert not np.array_equal(found["separate"], found["fused"], equal_nan=True)


def test_zeros_and_nan_in_extremes() -> None:
    values = np.array([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    a, b = (each.reshape(-1) for each in np.meshgrid(values, values))
    kernel = of_three(f32, {"least": (f32, lambda a, b, c: a.min(b)),
                            "greatest": (f32, lambda a, b, c: a.max(b))})  # fmt: skip
    for device in ("simulator", "c", "ptx"):
        require(device)
        low, high = runtime.load(kernel, device)(a.copy(), b.copy(), b.copy())
        for x, y, least, greatest in zip(a, b, low, high, strict=True):
            both = sorted([e for e in (x, y) if not np.isnan(e)], key=lambda e: (e, ~np.signbit(e)))
            if both:
                assert least.tobytes() == both[0].tobytes()
                assert greatest.tobytes() == both[-1].tobytes()
            else:
                assert np.isnan(least)


def integer_values(dtype: DType) -> dict[str, tuple[DType, Make]]:
    bits = dtype.bytes * 8
    return {
        "total": (dtype, lambda a, b, c: a + b - c),
        "product": (dtype, lambda a, b, c: fma(a, b, c) * a),
        "negative": (dtype, lambda a, b, c: -a),
        "magnitude": (dtype, lambda a, b, c: abs(a)),
        "quotient": (dtype, lambda a, b, c: choose(b.ne(0), a / b, c)),
        "third": (dtype, lambda a, b, c: a / 3 + b / (c & 7).max(1)),
        "left": (dtype, lambda a, b, c: a << (b & (bits - 1))),
        "right": (dtype, lambda a, b, c: a >> (b & (bits - 1))),
        "bits": (dtype, lambda a, b, c: (a & b) | (~c ^ a)),
        "least": (dtype, lambda a, b, c: a.min(b).max(c)),
        "float_": (f32, lambda a, b, c: cast(f32, a)),
        "double_": (f64, lambda a, b, c: cast(f64, a)),
        "below": (f64, lambda a, b, c: 0.0 - cast(f64, a)),  # +0.0, not -0.0, of 0
        "other": (i64 if dtype is not i64 else i32, lambda a, b, c: cast(i64 if dtype is not i64
                                                                        else i32, a)),
    }  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("device", ["c", "ptx"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_and_never_trap(device: Any, dtype: DType) -> None:
    agree(of_three(dtype, integer_values(dtype)), dtype, device)


@pytest.mark.parametrize("dtype", [i32, DType.U8])
def test_integers_wrap_in_opencl(dtype: DType) -> None:
    agree(of_three(dtype, integer_values(dtype)), dtype, "opencl")


# The distances that docs/kernels.md allows, in units in the last place, half a unit of the
# evaluator's own included.
ULPS = {"c": 3, "ptx": 3, "opencl": 6}


@pytest.mark.sampled(1, each="device")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_and_its_like_are_close(device: Any, dtype: DType) -> None:
    if device == "opencl" and dtype is f64:
        pytest.skip("left to the full run, as it is slow to compile")
    values: dict[str, tuple[DType, Make]] = {
        f"approximate_{op}": (dtype, lambda a, b, c, op=op: Operation(op, (a,)))  # type: ignore[misc]
        for op in APPROXIMATE
    }
    agree(of_three(dtype, values), dtype, device, ULPS[device])


@pytest.mark.sampled(1, each="device")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_constants(dtype: DType, device: Any) -> None:
    """Which compilers work out themselves: PoCL 3 stored nothing for exp, exp2, tanh of a NaN."""
    constants = {"nan": np.nan, "inf": np.inf, "minus": -2.5, "zero": -0.0}
    values: dict[str, tuple[DType, Make]] = {
        f"approximate_{op}_{name}": (
            dtype,
            lambda a, b, c, op=op, number=number: Operation(op, (Number(number, dtype),)),  # type: ignore[misc]
        )
        for op in APPROXIMATE
        for name, number in constants.items()
    }
    agree(of_three(dtype, values), dtype, device, ULPS[device])


def test_contraction_is_asked_for() -> None:
    """Compilers may fuse if they are told they may; then the result is that of fma."""
    kernel = of_three(f32, {"separate": (f32, lambda a, b, c: a * b + c)})
    random = np.random.default_rng(1)
    given = [random.standard_normal(300).astype(np.float32) for _ in range(3)]
    plain = runtime.load(kernel, "simulator")(*given)
    exact = (given[0].astype(np.float64) * given[1] + given[2]).astype(np.float32)
    for device in ("c", "ptx"):
        require(device)
        assert np.array_equal(runtime.load(kernel, device)(*given), plain)
    fused = runtime.load(kernel, "ptx", contract=True)(*given)
    assert not np.array_equal(fused, plain)
    assert np.array_equal(fused, exact)
