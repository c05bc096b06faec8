"""Matrices of 8 × 8 halves between shared memory and registers: ldmatrix, stmatrix, movmatrix.

Lane 8j + r gives the address of row r of matrix j. What a lane then holds of it is at row g = l
>> 2, columns 2t and 2t + 1, t = l & 3; transposed, at rows 2t and 2t + 1 of column g.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.machine.semantics import Kind
from warploom.ptx.emulate.access import Site, count_rows, load
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.fragment import warps_of
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.memory import by_space, put
from warploom.ptx.emulate.product import failing, vector
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.types import U16, U32

Array = npt.NDArray[Any]
ROW_BYTES = 16


def _parts(f: Frame, address: Array, number: int, transposed: bool) -> list[tuple[Array, int]]:
    """Where each thread finds its part of a matrix: addresses, and how many bytes lie there."""
    batch = f.batch
    g, t = batch.lane >> 2, batch.lane & 3
    wide = f.widen(address)
    if not transposed:
        return [(wide[batch.warp_base + 8 * number + g] + (4 * t).astype(wide.dtype), 4)]
    return [
        (wide[batch.warp_base + 8 * number + 2 * t + half] + (2 * g).astype(wide.dtype), 2)
        for half in (0, 1)
    ]


def _narrowed(f: Frame, wide: Array) -> Array:
    return wide[f.index] if f.compact else wide


def _check(f: Frame, site: Site, address: Array, count: int) -> None:
    """Every address of a row is a multiple of sixteen."""
    wide = f.widen(address)
    bad = (wide % ROW_BYTES != 0) & (f.batch.lane < 8 * count) & f.full_mask()
    if bad.any():
        raise site.error(f, "the address of a row is no multiple of 16", int(bad.argmax()))


# What is done with one matrix: a frame, sites by width, the addresses of rows, its number.
EachMatrix: TypeAlias = Callable[[Frame, dict[int, Site], Array, int], None]


def _by_matrix(
    ctx: Context, ins: Instruction, place: Operand, count: int, kind: Kind, each: EachMatrix
) -> Step:
    """So many matrices, one after another, at the rows that `place` gives."""
    fail = failing(ctx, ins)

    def make(site: Site, address: Fetch) -> Step:
        sites = {width: replace(site, width=width, tallied=False) for width in (2, 4)}

        def step(f: Frame) -> None:
            warps_of(f, fail)
            where = address(f)
            _check(f, site, where, count)
            count_rows(f, site, where, 8 * count)
            for number in range(count):
                each(f, sites, where, number)

        return step

    return by_space(ctx, ins, place, 4, kind, make)


def ldmatrix(ctx: Context, ins: Instruction) -> Step:
    stores = [ctx.write(each, "b32") for each in vector(ins.operands[0])]
    transposed = "trans" in ins.modifiers

    def each(f: Frame, sites: dict[int, Site], where: Array, number: int) -> None:
        halves = [
            load(f, sites[width], _narrowed(f, place), U32 if width == 4 else U16, 1)[0]
            for place, width in _parts(f, where, number, transposed)
        ]
        stores[number](f, halves[0] if not transposed else _pair(*halves))

    return _by_matrix(ctx, ins, ins.operands[1], len(stores), Kind.READ, each)


def _pair(low: Array, high: Array) -> Array:
    both: Array = low.astype(U32) | high.astype(U32) << np.uint32(16)
    return both


def stmatrix(ctx: Context, ins: Instruction) -> Step:
    values = [ctx.read(each, "b32") for each in vector(ins.operands[1])]
    transposed = "trans" in ins.modifiers

    def each(f: Frame, sites: dict[int, Site], where: Array, number: int) -> None:
        word = f.widen(values[number](f))[f.index]
        halves = [(word & np.uint32(0xFFFF)).astype(U16), (word >> np.uint32(16)).astype(U16)]
        pieces = halves if transposed else [word]
        parts = _parts(f, where, number, transposed)
        for (place, width), piece in zip(parts, pieces, strict=True):
            put(f, sites[width], place[f.index], [piece], piece.dtype)

    return _by_matrix(ctx, ins, ins.operands[0], len(values), Kind.WRITE, each)


def movmatrix(ctx: Context, ins: Instruction) -> Step:
    """A matrix transposed within the warp: what is at row i, column j goes to row j, column i."""
    store, value = ctx.write(ins.operands[0], "b32"), ctx.read(ins.operands[1], "b32")
    fail = failing(ctx, ins)

    def step(f: Frame) -> None:
        warps_of(f, fail)
        batch = f.batch
        g, t = batch.lane >> 2, batch.lane & 3
        word = f.widen(value(f))
        odd = (g & 1).astype(np.uint32) << np.uint32(4)
        low, high = (
            (word[batch.warp_base + 4 * (2 * t + half) + (g >> 1)] >> odd) & np.uint32(0xFFFF)
            for half in (0, 1)
        )
        store(f, _narrowed(f, _pair(low, high)))

    return step


TABLE: dict[str, Compile] = {"ldmatrix": ldmatrix, "stmatrix": stmatrix, "movmatrix": movmatrix}
