"""Parameters of calls to functions that the emulator has itself: read and given back as bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import Context
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.ir import Instruction, Operand, Symbol

Array = npt.NDArray[Any]


def _place(ctx: Context, ins: Instruction, operand: Operand) -> int:
    """Where in the frame's local memory a parameter of a call lies."""
    if not isinstance(operand, Symbol) or operand.name not in ctx.locals:
        raise ctx.fail("this call passes something that is no .param variable", ins)
    return ctx.locals[operand.name]


def passed(
    ctx: Context, ins: Instruction, name: str, operands: tuple[Operand, ...], sizes: str
) -> list[Callable[[Frame], Array]]:
    """The parameters, for the active threads; `sizes` has Q for eight bytes, I for four."""
    if len(operands) != len(sizes) or not sizes:
        raise ctx.fail(f"the call does not fit the parameters of '{name}'", ins)
    places = [_place(ctx, ins, operand) for operand in operands]
    widths = [struct.calcsize(size) for size in sizes]
    if any(place + width > ctx.local_size for place, width in zip(places, widths, strict=True)):
        raise ctx.fail(f"the call does not fit the parameters of '{name}'", ins)
    return [_reader(place, width) for place, width in zip(places, widths, strict=True)]


def _reader(place: int, width: int) -> Callable[[Frame], Array]:
    def read(f: Frame) -> Array:
        at = f.local_base + place
        data = f.batch.local.data.reshape(f.n, -1)[f.index, at : at + width]
        return np.ascontiguousarray(data).view(f"<u{width}").reshape(-1)

    return read


def give_result(
    ctx: Context, ins: Instruction, name: str, results: tuple[Operand, ...], width: int
) -> Callable[[Frame, Array], None]:
    """How the result goes back to the active threads; one that nobody asked for goes nowhere."""
    if len(results) > 1:
        raise ctx.fail(f"the call does not fit the results of '{name}'", ins)
    places = [_place(ctx, ins, operand) for operand in results]
    if any(place + width > ctx.local_size for place in places):
        raise ctx.fail(f"the call does not fit the results of '{name}'", ins)

    def give(f: Frame, values: Array) -> None:
        for place in places:
            at = f.local_base + place
            raw = np.ascontiguousarray(values).view(np.uint8).reshape(f.count, width)
            local = f.batch.local
            local.data.reshape(f.n, -1)[f.index, at : at + width] = raw
            if local.written is not None:
                local.written.reshape(f.n, -1)[f.index, at : at + width] = 1

    return give
