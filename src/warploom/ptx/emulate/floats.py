"""Floating-point arithmetic: f16, bf16, f32, f64 and packed pairs, with modes, .ftz and .sat.

Instructions marked approximate are computed in double and rounded, which is at least as exact as
the hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine import rounding as r
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.shape import Compile, mixed, pairwise, parts
from warploom.ptx.ir import Instruction
from warploom.ptx.types import DTYPES, F16, F32, rounding_of, type_of, types_of

Array = npt.NDArray[Any]
Function = Callable[..., Array]
_SMALLEST = 2.0**-126
_PER_REVOLUTION = np.float32(
    np.uint32(0x3E22F983).view(np.float32)
)  # 1 / 2π, as the assembler writes it


def wrap(ins: Instruction, kind: str, fn: Function) -> Function:
    """A function on plain values with flushing, saturation and the hardware's NaN around it."""
    ftz = "ftz" in ins.modifiers
    sat = "sat" in ins.modifiers
    clean = {"f32": r.clean_single, "f16": r.clean_half}.get(scalar_kind(kind))
    flush = r.flush_bf16 if scalar_kind(kind) == "bf16" else r.flush

    def wrapped(*values: Array) -> Array:
        if ftz:
            values = tuple(flush(v) for v in values)
        out = fn(*values)
        if ftz:
            out = flush(out)
        if sat:
            out = r.saturate(out)
        return clean(out) if clean else out

    return wrapped


def with_nan(kind: str, fn: Function) -> Function:
    """NumPy says of two doubles that are NaNs which one is left by how it computes: here the first.

    Not of neg, abs, min and max, which do not compute.
    """
    return fn if kind != "f64" else lambda *values: r.first_nan(fn(*values), *values)


def compile_float(ctx: Context, ins: Instruction, kind: str, count: int, fn: Function) -> Step:
    """One result and `count` sources of one floating type, packed pairs unpacked."""
    wrapped = wrap(ins, kind, fn)
    if kind.endswith("x2"):
        wrapped = pairwise(wrapped, DTYPES[scalar_kind(kind)])
    store, fetches = parts(ctx, ins, kind, *[kind] * count)
    if count == 1:
        (a,) = fetches
        return lambda f: store(f, wrapped(a(f)))
    if count == 2:
        a, b = fetches
        return lambda f: store(f, wrapped(a(f), b(f)))
    a, b, c = fetches
    return lambda f: store(f, wrapped(a(f), b(f), c(f)))


def scalar_kind(kind: str) -> str:
    return kind.removesuffix("x2")


# -- add, sub, mul, fma -----------------------------------------------------------------------


def sum_function(kind: str, mode: str, minus: bool) -> Function:
    def prepare(b: Array) -> Array:
        return -b if minus else b

    match scalar_kind(kind):
        case "f32" if mode != "rn":
            return lambda a, b: r.sum_single(a, prepare(b), mode)
        case "f64" if mode != "rn":
            return lambda a, b: r.sum_double(a, prepare(b), mode)
        case "bf16":
            sign = -1.0 if minus else 1.0
            return lambda a, b: r.double_to_bf16(r.odd_sum(_bf16_double(a), sign * _bf16_double(b)))
        case _:
            return np.subtract if minus else np.add


def _bf16_double(bits: Array) -> Array:
    return r.bf16_to_single(bits).astype(np.float64)


def product_function(kind: str, mode: str) -> Function:
    match scalar_kind(kind):
        case "f32" if mode != "rn":
            return lambda a, b: r.narrow(a.astype(np.float64) * b.astype(np.float64), F32, mode)
        case "f64" if mode != "rn":
            return lambda a, b: r.product_double(a, b, mode)
        case "bf16":
            return lambda a, b: r.double_to_bf16(_bf16_double(a) * _bf16_double(b))
        case _:
            return np.multiply


def fma_function(kind: str, mode: str) -> Function:
    match scalar_kind(kind):
        case "f32":
            return lambda a, b, c: r.fma_single(a, b, c, mode)
        case "f64":
            return lambda a, b, c: r.fma_double(a, b, c, mode)
        case "bf16":
            return lambda a, b, c: r.double_to_bf16(
                r.fma_narrow(_bf16_double(a), _bf16_double(b), _bf16_double(c))
            )
        case _:
            return lambda a, b, c: r.fma_narrow(
                a.astype(np.float64), b.astype(np.float64), c.astype(np.float64)
            ).astype(F16)


def add(ctx: Context, ins: Instruction) -> Step:
    kind = types_of(ins)[0]
    fn = sum_function(kind, rounding_of(ins), ins.opcode == "sub")
    if len(types_of(ins)) > 1:
        return _with_halves(ctx, ins, fn, 1)
    return compile_float(ctx, ins, kind, 2, with_nan(kind, fn))


def _with_halves(ctx: Context, ins: Instruction, fn: Function, halves: int) -> Step:
    """The first operands are halves, which are singles too; the rest is arithmetic on singles."""
    kind, half = types_of(ins)
    wrapped = wrap(ins, kind, fn)
    store, fetches = parts(ctx, ins, kind, *[half] * halves, kind)

    def step(f: Frame) -> None:
        values = [fetch(f) for fetch in fetches]
        store(f, wrapped(*[_single(v, half) for v in values[:halves]], *values[halves:]))

    return step


def _single(value: Array, half: str) -> Array:
    return r.bf16_to_single(value) if half == "bf16" else value.astype(F32)


def mul(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    fn = product_function(kind, rounding_of(ins))
    return compile_float(ctx, ins, kind, 2, with_nan(kind, fn))


def fma(ctx: Context, ins: Instruction) -> Step:
    kind = types_of(ins)[0]
    fused = fma_function(kind, rounding_of(ins))
    if ins.start in ctx.unfused:
        product, total = product_function(kind, "rn"), sum_function(kind, rounding_of(ins), False)
        fused = lambda a, b, c: total(product(a, b), c)  # noqa: E731
    if len(types_of(ins)) > 1:
        return _with_halves(ctx, ins, fused, 2)
    if "relu" in ins.modifiers:
        inner = fused
        fused = lambda a, b, c: _relu(inner(a, b, c), kind)  # noqa: E731
    return compile_float(ctx, ins, kind, 3, with_nan(kind, fused))


def _relu(x: Array, kind: str) -> Array:
    if scalar_kind(kind) == "bf16":
        value = r.bf16_to_single(x)
        return np.where((value > 0) | np.isnan(value), x, np.uint16(0))
    return np.where((x > 0) | np.isnan(x), x, x.dtype.type(0))


# -- division and roots -----------------------------------------------------------------------


def div(ctx: Context, ins: Instruction) -> Step:
    kind, mode = type_of(ins), rounding_of(ins)
    if kind == "f32":
        if "approx" in ins.modifiers:
            return compile_float(ctx, ins, kind, 2, _approximate(_quotient))
        return compile_float(ctx, ins, kind, 2, lambda a, b: r.divide_single(a, b, mode))
    fn = with_nan(kind, lambda a, b: r.divide_double(a, b, mode))
    return compile_float(ctx, ins, kind, 2, fn)


def _quotient(a: Array, b: Array) -> Array:
    """a times 1 / b, which is flushed to zero where it is too small for a normal single."""
    reciprocal = 1.0 / b
    lost = (np.abs(reciprocal) < _SMALLEST) & (reciprocal != 0)
    return np.where(lost, a * np.copysign(0.0, b), a / b)


def rcp(ctx: Context, ins: Instruction) -> Step:
    kind, mode = type_of(ins), rounding_of(ins)
    if kind == "f32":
        return compile_float(ctx, ins, kind, 1, lambda a: r.divide_single(np.ones_like(a), a, mode))
    if "approx" in ins.modifiers:
        return compile_float(ctx, ins, kind, 1, lambda a: _upper_half(1.0 / _upper_half(a)))
    fn = with_nan(kind, lambda a: r.divide_double(np.ones_like(a), a, mode))
    return compile_float(ctx, ins, kind, 1, fn)


def _upper_half(x: Array) -> Array:
    """The approximate f64 instructions work on the upper 32 bits only."""
    return (x.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


def sqrt(ctx: Context, ins: Instruction) -> Step:
    kind, mode = type_of(ins), rounding_of(ins)
    if kind == "f32":
        return compile_float(ctx, ins, kind, 1, lambda a: r.root_single(a, mode))
    return compile_float(ctx, ins, kind, 1, with_nan(kind, lambda a: r.root_double(a, mode)))


def _approximate(fn: Function) -> Function:
    """Computed in double, rounded to the type of the operands."""

    def approximated(*values: Array) -> Array:
        out = fn(*[v.astype(np.float64) for v in values])
        return out.astype(values[0].dtype)

    return approximated


def _revolutions(x: Array) -> Array:
    """sin and cos reduce their argument to revolutions, in single precision and rounded towards
    zero.

    What is left of a whole number of revolutions is exact; revolutions too few for a normal single
    are none.
    """
    revolutions = r.narrow(x * np.float64(_PER_REVOLUTION), F32, "rz").astype(np.float64)
    return r.flush(revolutions.astype(F32)).astype(np.float64)


def _sine(x: Array) -> Array:
    revolutions = _revolutions(x)
    return np.where(revolutions == 0, revolutions, np.sin(2 * np.pi * np.fmod(revolutions, 1.0)))


_FUNCTIONS: dict[str, Function] = {
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sin": _sine,
    "cos": lambda x: np.cos(2 * np.pi * np.fmod(_revolutions(x), 1.0)),
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


def elementary(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    fn = _FUNCTIONS[ins.opcode]
    if kind == "f64" and "ftz" in ins.modifiers:
        return compile_float(ctx, ins, kind, 1, lambda a: _upper_half(fn(_upper_half(a))))
    if kind == "f64":  # rsqrt alone; a program of the assembler's, within a unit in the last place
        return compile_float(ctx, ins, kind, 1, fn)
    if scalar_kind(kind) == "bf16":
        return compile_float(ctx, ins, kind, 1, lambda a: r.double_to_bf16(fn(_bf16_double(a))))
    return compile_float(ctx, ins, kind, 1, _approximate(fn))


# -- minima, signs, tests -----------------------------------------------------------------------


def extremum(ctx: Context, ins: Instruction) -> Step:
    """min and max: a NaN loses unless .NaN is given, and −0 is less than +0."""
    kind = type_of(ins)
    count = 3 if len(ins.operands) > 3 else 2
    least = ins.opcode == "min"
    keep_nan = "NaN" in ins.modifiers
    flip, magnitude = "xorsign" in ins.modifiers, "abs" in ins.modifiers

    def fn(*values: Array) -> Array:
        signs = values
        if magnitude:
            values = tuple(np.abs(v) for v in values)
        out = values[0]
        for value in values[1:]:
            out = r.extreme(out, value, least, keep_nan)
        if flip:
            sign = np.signbit(signs[0]) ^ np.signbit(signs[1])
            out = np.where(sign, -np.abs(out), np.abs(out))
        return out

    if scalar_kind(kind) == "bf16":
        plain = fn
        fn = lambda *v: r.single_to_bf16(plain(*map(r.bf16_to_single, v)))  # noqa: E731
    return compile_float(ctx, ins, kind, count, fn)


def neg(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    sign = np.uint16(0x8000)
    if scalar_kind(kind) == "bf16":
        # An H200 makes its one NaN of every NaN here, but keeps the bits in abs.
        return compile_float(
            ctx, ins, kind, 1, lambda a: np.where((a & ~sign) > 0x7F80, r.NAN16, a ^ sign)
        )
    return compile_float(ctx, ins, kind, 1, np.negative)


def _clean_bf16(magnitude: Array) -> Array:
    return np.where(magnitude > 0x7F80, np.uint16(0x7FFF), magnitude)


def absolute(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    if kind == "bf16x2":  # of pairs every NaN becomes the one
        return compile_float(ctx, ins, kind, 1, lambda a: _clean_bf16(a & np.uint16(0x7FFF)))
    if kind == "bf16":
        return compile_float(ctx, ins, kind, 1, lambda a: a & np.uint16(0x7FFF))
    return compile_float(ctx, ins, kind, 1, np.abs)


def copysign(ctx: Context, ins: Instruction) -> Step:
    """copysign d, a, b: b with the sign of a."""
    kind = type_of(ins)
    store, (a, b) = parts(ctx, ins, kind, kind, kind)
    return lambda f: store(f, np.copysign(b(f), a(f)))


def testp(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    least = np.finfo(DTYPES[kind]).smallest_normal
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= least) | (a == 0)),
        "subnormal": lambda a: (np.abs(a) < least) & (a != 0),
    }
    name = next(m for m in ins.modifiers if m in tests)
    return mixed(ctx, ins, "pred", (kind,), tests[name])


TABLE: dict[str, Compile] = {
    "add": add, "sub": add, "mul": mul, "mad": fma, "fma": fma, "div": div, "rcp": rcp,
    "sqrt": sqrt, "rsqrt": elementary, "sin": elementary, "cos": elementary, "lg2": elementary,
    "ex2": elementary, "tanh": elementary, "min": extremum, "max": extremum, "neg": neg,
    "abs": absolute, "copysign": copysign, "testp": testp,
}  # fmt: skip
