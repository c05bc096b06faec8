"""mma.sync: registers of a warp as matrices, multiplied as the machine of the target does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import SynchronisationError
from warploom.machine import fused as arithmetic
from warploom.ptx.emulate import fragment
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Arithmetic, Frame
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.ir import Instruction, Module, Operand, Vector
from warploom.ptx.types import U32

Array = npt.NDArray[Any]
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
        "f64": 64}  # fmt: skip
TOGETHER = 1 << 19  # products of elements that are worked out at once
Multiply = Callable[[Array, Array, Array], Array]
Product = Callable[[Array, Array, Array, Arithmetic | None], Array]  # of registers, for each warp


def machine_of(module: Module) -> int:
    """80 for a module whose target is sm_80."""
    found = re.match(r"sm_(\d+)", module.target[0] if module.target else "")
    return int(found[1]) if found else 90


def vector(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def failing(ctx: Context, ins: Instruction) -> Callable[[Frame, str, int], SynchronisationError]:
    span = ctx.module.span(ins)
    return lambda f, message, thread: SynchronisationError(
        f"{ins.name}: {message}; {f.batch.where(thread)}", span
    )


def multiplier(
    machine: int, kinds: tuple[str, str], result: str, depth: int, sat: bool
) -> Multiply:
    """How a·b + c is computed; the last axis of a and b is k, and c is of the result's type."""
    a, b = kinds
    if result == "s32":
        return lambda x, y, c: arithmetic.whole(signed(x, a), signed(y, b), c, sat)
    if result == "f64":
        return arithmetic.doubles_by_fma
    if a in ("e4m3", "e5m2") and machine >= 90:
        return lambda x, y, c: arithmetic.small_by_halves(x, y, kinds, c, result)
    return Fused(kinds, result, arithmetic.rule_for(machine, a, depth))


@dataclass(frozen=True, slots=True)
class Fused:
    """Sums of products of floats by a machine's rule."""

    kinds: tuple[str, str]
    result: str
    rule: arithmetic.Rule

    def __call__(self, x: Array, y: Array, c: Array) -> Array:
        a, b = (arithmetic.terms(bits, kind) for bits, kind in zip((x, y), self.kinds, strict=True))
        return arithmetic.fused(a, b, c, self.result, self.rule)


def signed(codes: Array, kind: str) -> Array:
    """Codes of four or eight bits as integers."""
    wide = codes.astype(np.int64)
    half = 1 << BITS[kind] - 1
    return wide if kind[0] == "u" else (wide ^ half) - half


def as_result(raw: Array, result: str) -> Array:
    """Words of 32 or 64 bits, by warp, lane and register, as values of the result's type."""
    if result == "f16":
        return np.ascontiguousarray(raw.astype(U32)).view(np.float16)
    dtype = {"f32": np.float32, "s32": np.int32, "f64": np.float64}[result]
    return np.ascontiguousarray(raw).view(dtype)


def multiply(
    a: Array, b: Array, c: Array, by: Multiply, compiled: Arithmetic | None = None
) -> Array:
    """Matrices a (row, k), b (column, k), c (row, column), some warps at a time; by compiled code,
    where there is some."""
    if compiled is not None and isinstance(by, Fused):
        made = compiled.fused(a, b, c, by.kinds, by.result, by.rule)
        if made is not None:
            return made
    count, rows, columns = c.shape
    step = max(1, TOGETHER // (rows * columns * a.shape[-1]))
    parts = [
        by(a[i : i + step, :, None, :], b[i : i + step, None, :, :], c[i : i + step])
        for i in range(0, count, step)
    ]
    return np.concatenate(parts)


def mma(ctx: Context, ins: Instruction) -> Step:
    words = ins.modifiers
    shape = re.match(r"m(\d+)n(\d+)k(\d+)", next(w for w in words if re.match(r"m\d+n", w)))
    assert shape is not None
    rows, depth = int(shape[1]), int(shape[3])
    kinds, result = (words[-3], words[-2]), words[-4]
    bits = BITS[kinds[0]]
    machine = machine_of(ctx.module)
    if (rows, depth) == (8, 4) and result != "f64":
        return _quads(ctx, ins, result, machine)
    packed = max(1, 32 // bits)
    places = (
        fragment.left(rows, depth, packed), fragment.right(depth, packed),
        fragment.result(rows, 8),
    )  # fmt: skip
    by = multiplier(machine, kinds, result, depth, "satfinite" in words)

    def product(a: Array, b: Array, c: Array, compiled: Arithmetic | None) -> Array:
        x, y, z = (fragment.elements(v, p) for v, p in zip((a, b, c), places, strict=True))
        return multiply(x, y, z, by, compiled)

    return by_warps(ctx, ins, bits, result, product, places[2])


def _quads(ctx: Context, ins: Instruction, result: str, machine: int) -> Step:
    """m8n8k4 of halves: four products of eight lanes each."""
    by_row = [word == "row" for word in ins.modifiers if word in ("row", "col")]
    places = (
        fragment.quads("a", by_row[0]), fragment.quads("b", by_row[1]),
        fragment.quads("c16" if result == "f16" else "c32", True),
    )  # fmt: skip
    rule = arithmetic.rule_for(machine, "f16", 4)

    def product(a: Array, b: Array, c: Array, _: Arithmetic | None) -> Array:
        x, y, z = (fragment.elements(v, p) for v, p in zip((a, b, c), places, strict=True))
        x, y = x[:, :, :, None, :], y[:, :, None, :, :]
        if machine >= 80:  # they have no such instruction; ptxas expands it
            return arithmetic.quads_by_fma(x, y, z, result)
        left, right = arithmetic.terms(x, "f16"), arithmetic.terms(y, "f16")
        return arithmetic.fused(left, right, z, result, rule)

    return by_warps(ctx, ins, 16, result, product, places[2])


def by_warps(
    ctx: Context, ins: Instruction, bits: int, result: str,
    product: Product, places: fragment.Places,
) -> Step:  # fmt: skip
    word = "b64" if result == "f64" else "b32"
    operands = [vector(operand) for operand in ins.operands]
    stores = [ctx.write(each, word) for each in operands[0]]
    a, b, c = ([ctx.read(each, word) for each in operand] for operand in operands[1:4])
    fail = failing(ctx, ins)

    def step(f: Frame) -> None:
        threads = fragment.warps_of(f, fail)
        left, right = (
            fragment.gathered(f, [read(f) for read in each], threads, bits) for each in (a, b)
        )
        if result == "f64":
            left, right = as_result(left, result), as_result(right, result)
        before = as_result(fragment.gathered(f, [read(f) for read in c], threads, 64), result)
        made = product(left, right, before, f.batch.arithmetic)
        write_warps(
            f, threads, stores, fragment.scattered(made, places, 64 if word == "b64" else 32)
        )

    return step


def write_warps(f: Frame, threads: Array, stores: list[Any], values: list[Array]) -> None:
    """Registers of whole warps; the running threads are those, in order."""
    order = np.argsort(threads.reshape(-1), kind="stable")
    for store, value in zip(stores, values, strict=True):
        store(f, f.spread(np.ascontiguousarray(value).reshape(-1)[order]))


TABLE: dict[str, Compile] = {"mma": mma}
