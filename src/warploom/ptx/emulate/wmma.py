"""wmma: matrices that a warp loads, multiplies and stores without saying which lane holds what.

Only that is defined of a fragment, so its elements lie here in the order of the matrix: lane l has
as many of them as its share is, one after the other. Where a fragment has more room than that, its
registers repeat. Products are those of mma, and on sm_90 tf32 goes in steps of four, as an H200
was seen to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.semantics import Kind
from warploom.ptx.emulate import fragment
from warploom.ptx.emulate.access import Site, load
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import WARP, Arithmetic, Frame
from warploom.ptx.emulate.memory import by_space, put
from warploom.ptx.emulate.product import (
    by_warps,
    failing,
    machine_of,
    multiplier,
    multiply,
    vector,
)
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.ir import Instruction

Array = npt.NDArray[Any]
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "s8": 8, "u8": 8, "f64": 64}
TF32_STEP = 4


def shape_of(ins: Instruction) -> tuple[int, int, int]:
    for word in ins.modifiers:
        found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word)
        if found:
            return int(found[1]), int(found[2]), int(found[3])
    raise ValueError("no shape")


def sides_of(ins: Instruction) -> tuple[int, int]:
    """Rows and columns of the matrix that is loaded or stored."""
    m, n, k = shape_of(ins)
    return {"a": (m, k), "b": (k, n)}.get(ins.modifiers[1], (m, n))


def _moved(
    ctx: Context, ins: Instruction, at: int, move: Callable[[Frame, Site, list[Array]], None]
) -> Step:
    """`move` gets, for each of a lane's elements, the address that all threads have it at."""
    rows, columns = sides_of(ins)
    by_row = "row" in ins.modifiers
    bits = BITS[ins.modifiers[-1]]
    share = rows * columns // WARP
    stride: Fetch | None = ctx.read(ins.operands[2], "u32") if len(ins.operands) > 2 else None
    fail = failing(ctx, ins)

    def make(site: Site, address: Fetch) -> Step:
        def step(f: Frame) -> None:
            threads = fragment.warps_of(f, fail)
            base = f.widen(address(f)).astype(np.uint64)
            apart = (base[threads] != base[threads[:, :1]]).any(axis=1)
            if apart.any():
                raise fail(f, "lanes give different addresses", int(threads[apart][0, 0]))
            given = columns if by_row else rows
            far = np.full(f.n, given) if stride is None else f.widen(stride(f)).astype(np.int64)
            places = []
            for number in range(share):
                row, column = np.divmod(f.batch.lane * share + number, columns)
                line, inside = (row, column) if by_row else (column, row)
                offset = (line * far + inside) * (bits // 8)
                places.append(base + offset.astype(np.uint64))
            move(f, site, places)

        return step

    kind = Kind.READ if ins.modifiers[0] == "load" else Kind.WRITE
    return by_space(ctx, ins, ins.operands[at], bits // 8, kind, make)


def _load(ctx: Context, ins: Instruction) -> Step:
    bits = BITS[ins.modifiers[-1]]
    word = "b64" if bits == 64 else "b32"
    stores = [ctx.write(each, word) for each in vector(ins.operands[0])]
    dtype = np.dtype(f"u{bits // 8}")

    def move(f: Frame, site: Site, places: list[Array]) -> None:
        found = [
            f.widen(load(f, site, place[f.index] if f.compact else place, dtype, 1)[0])
            for place in places
        ]
        whole = np.ascontiguousarray(np.stack(found, axis=1))
        words = whole.view(np.uint64 if bits == 64 else np.uint32)
        for number, store in enumerate(stores):
            value = words[:, number % words.shape[1]]
            store(f, value[f.index] if f.compact else np.ascontiguousarray(value))

    return _moved(ctx, ins, 1, move)


def _store(ctx: Context, ins: Instruction) -> Step:
    bits = BITS[ins.modifiers[-1]]
    word = "b64" if bits == 64 else "b32"
    values = [ctx.read(each, word) for each in vector(ins.operands[1])]
    dtype = np.dtype(f"u{bits // 8}")

    def move(f: Frame, site: Site, places: list[Array]) -> None:
        words = np.stack([f.widen(value(f)) for value in values], axis=1)
        each = np.ascontiguousarray(words).view(dtype)
        for number, place in enumerate(places):
            put(f, site, place[f.index], [each[f.index, number]], dtype)

    return _moved(ctx, ins, 0, move)


def _mma(ctx: Context, ins: Instruction) -> Step:
    m, n, k = shape_of(ins)
    kinds = [word for word in ins.modifiers if word in BITS]
    result, kind = kinds[0], kinds[1] if len(kinds) == 4 else "f16"
    bits = BITS[kind]
    depth = TF32_STEP if kind == "tf32" else k
    by = multiplier(
        machine_of(ctx.module), (kind, kind), result, depth, "satfinite" in ins.modifiers
    )
    right = in_order(k, n)
    places = (in_order(m, k), (right[0].T, right[1].T), in_order(m, n))

    def product(a: Array, b: Array, c: Array, compiled: Arithmetic | None) -> Array:
        x, y, z = (fragment.elements(v, p) for v, p in zip((a, b, c), places, strict=True))
        return multiply(x, y, z, by, compiled)

    return by_warps(ctx, ins, bits, result, product, places[2])


def in_order(rows: int, columns: int) -> fragment.Places:
    """For each element: the lane that holds it, and its number there."""
    lane, number = np.divmod(np.arange(rows * columns), rows * columns // WARP)
    return lane.reshape(rows, columns), number.reshape(rows, columns)


def wmma(ctx: Context, ins: Instruction) -> Step:
    return {"load": _load, "store": _store, "mma": _mma}[ins.modifiers[0]](ctx, ins)


TABLE: dict[str, Compile] = {"wmma": wmma}
