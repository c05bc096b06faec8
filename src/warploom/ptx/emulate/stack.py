"""alloca, stacksave, stackrestore: local memory that a thread takes as it runs.

A kernel whose module asks for it has a stack at the beginning of each thread's local memory, as
large as CUDA's unless a program asks for more; what a function took is free when it returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.semantics import Kind, Semantics
from warploom.ptx.emulate.access import Site
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Batch, Frame
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.warp import narrow_to_running
from warploom.ptx.ir import Immediate, Instruction, Module
from warploom.ptx.types import DTYPES, type_of

Array = npt.NDArray[Any]
STACK = 1024  # bytes of a thread: cudaLimitStackSize without a call that changes it
_ALIGNMENT = 8  # where an instruction names none
_STATE = "stack"


def has_stack(module: Module) -> bool:
    return any(
        ins.opcode in TABLE for function in module.functions for ins in function.instructions()
    )


def tops(batch: Batch) -> Array:
    """How much of its stack each thread has taken."""
    found: Array = batch.special_state.setdefault(_STATE, np.zeros(batch.threads, np.int64))
    return found


def taken(batch: Batch) -> Array | None:
    """A copy of `tops` that a call restores when it returns; None if nothing was allocated."""
    return tops(batch).copy() if _STATE in batch.special_state else None


def give_back(f: Frame, before: Array | None) -> None:
    if _STATE in f.batch.special_state:
        tops(f.batch)[f.index] = 0 if before is None else before[f.index]


def _site(ctx: Context, ins: Instruction) -> Site:
    return Site(ctx.module.span(ins), ins.name, "local", 1, False, Semantics(Kind.WRITE))


def _store(ctx: Context, ins: Instruction) -> Any:
    kind = type_of(ins)
    store = ctx.write(ins.operands[0], kind)

    def put(f: Frame, values: Array) -> None:
        wide = np.zeros(f.n, DTYPES[kind])
        wide[f.index] = values
        store(f, narrow_to_running(f, wide))

    return put


def alloca(ctx: Context, ins: Instruction) -> Step:
    """d, size, alignment: where in local memory the bytes are that nobody else has."""
    kind, put, site = type_of(ins), _store(ctx, ins), _site(ctx, ins)
    size, align = ctx.read(ins.operands[1], kind), _ALIGNMENT
    if len(ins.operands) > 2:
        given = ins.operands[2]
        if not isinstance(given, Immediate) or given.value < 1 or given.value & (given.value - 1):
            raise ctx.fail("the alignment of alloca is a power of two", ins)
        align = given.value

    def step(f: Frame) -> None:
        top = tops(f.batch)
        asked = np.broadcast_to(f.active_part(size(f)), (f.count,))
        starts = -(-top[f.index] // align) * align
        ends = starts + np.minimum(asked, 1 << 40).astype(np.int64)
        bad = np.flatnonzero(ends > STACK)
        if bad.size:
            first = int(bad[0])
            left = max(0, STACK - int(starts[first]))
            message = f"alloca of {asked[first]} bytes, {left} of {STACK} are left on the stack"
            raise site.error(f, message, int(f.index[first]))
        top[f.index] = ends
        put(f, starts)

    return step


def stacksave(ctx: Context, ins: Instruction) -> Step:
    put = _store(ctx, ins)
    return lambda f: put(f, tops(f.batch)[f.index])


def stackrestore(ctx: Context, ins: Instruction) -> Step:
    """Frees all that was taken since the number was saved."""
    saved, site = ctx.read(ins.operands[0], type_of(ins)), _site(ctx, ins)

    def step(f: Frame) -> None:
        top = tops(f.batch)
        values = np.broadcast_to(f.active_part(saved(f)), (f.count,))
        bad = np.flatnonzero(values.astype(np.uint64) > top[f.index].astype(np.uint64))
        if bad.size:
            message = f"{values[bad[0]]:#x} is no place that stacksave gave"
            raise site.error(f, message, int(f.index[bad[0]]))
        top[f.index] = values.astype(np.int64)

    return step


TABLE: dict[str, Compile] = {
    "alloca": alloca, "stacksave": stacksave, "stackrestore": stackrestore,
}  # fmt: skip
