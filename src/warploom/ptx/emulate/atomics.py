"""atom and red: applied in the order of the threads, also where several meet at one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import UninitialisedError
from warploom.machine import rounding as r
from warploom.machine.memory import Region, mark_stored, unstored
from warploom.machine.semantics import Kind
from warploom.ptx.emulate.access import Site, places, watch
from warploom.ptx.emulate.context import Context, Fetch, Step, Store
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.memory import by_space, elements_of
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.ir import Instruction
from warploom.ptx.types import DTYPES, F16, is_float, type_of

Array = npt.NDArray[Any]
Function = Callable[..., Array]

# Operations whose running result NumPy can accumulate in order.
_ACCUMULATED: dict[str, np.ufunc] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
# Numbers of at least this size are whole multiples of the smallest normal one, and so are sums.
_NEVER_SUBNORMAL = np.float32(2.0**-102)
OPERATIONS = (*_ACCUMULATED, "exch", "cas", "inc", "dec")


def one_by_one(name: str, kind: str) -> Function:
    """(old, b, c) → new, for the operations that depend on the order."""
    if name == "cas":
        return _swap
    two = _two_operands(name, kind)
    return lambda old, b, _: two(old, b)


def _swap(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


def _two_operands(name: str, kind: str) -> Function:
    if name in ("min", "max") and is_float(kind):
        least = name == "min"
        if kind == "bf16":
            return lambda old, b: r.single_to_bf16(
                r.extreme(r.bf16_to_single(old), r.bf16_to_single(b), least, keep_nan=False)
            )
        return lambda old, b: r.extreme(old, b, least, keep_nan=False)
    if kind.startswith("bf16"):
        return lambda old, b: r.single_to_bf16(r.bf16_to_single(old) + r.bf16_to_single(b))
    functions: dict[str, Function] = {
        "inc": lambda old, b: np.where(old >= b, 0, old + old.dtype.type(1)).astype(old.dtype),
        "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
        "exch": lambda _, b: b,
    }
    return functions[name] if name in functions else _ACCUMULATED[name]


def compile_atomic(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    name = next(m for m in ins.modifiers if m in OPERATIONS)
    if kind in ("b16", "b32", "b64"):
        kind = f"u{kind[1:]}"
    place = 1 if ins.opcode == "atom" else 0
    elements = elements_of(ctx, ins, ins.operands[place + 1])
    values = [ctx.read(element, kind) for element in elements]
    swap = ctx.read(ins.operands[place + 2], kind) if name == "cas" else None
    stores: list[Store | None] = [None] * len(values)
    if ins.opcode == "atom":
        stores = [ctx.write(each, kind) for each in elements_of(ctx, ins, ins.operands[0])]
    return by_space(
        ctx, ins, ins.operands[place], DTYPES[kind].itemsize * len(values), Kind.ATOMIC,
        lambda site, address: _step(name, kind, values, swap, stores, site, address),
    )  # fmt: skip


def _step(
    name: str, kind: str, values: list[Fetch], swap: Fetch | None, stores: list[Store | None],
    site: Site, address: Fetch,
) -> Step:  # fmt: skip
    """One atomic on scalars; a vector is one atomic per element."""
    count = len(values)
    flushes = name == "add" and kind == "f32" and site.space != "shared"
    apply = _flushing_sum if flushes else _applier(name, kind)

    def step(f: Frame) -> None:
        where = np.broadcast_to(f.active_part(address(f)), (f.count,))
        if f.batch.counters is not None:
            f.batch.counters.atomics += f.count
        found = list(places(f, site, where, unseen=swap is not None))
        # All are read before one is written: a register may be among both.
        given = [np.broadcast_to(f.active_part(value(f)), (f.count,)) for value in values]
        for part, (b, store) in enumerate(zip(given, stores, strict=True)):
            c = b if swap is None else np.broadcast_to(f.active_part(swap(f)), (f.count,))
            old = np.zeros(f.count, DTYPES[kind])
            for region, chosen, index in found:
                memory = region.view(DTYPES[kind])
                at = index * count + part
                if region.written is not None and name == "exch":
                    mark_stored(region, at, DTYPES[kind])
                elif region.written is not None and f.batch.check:
                    bad = unstored(region, at, DTYPES[kind])
                    _require_stored(f, site, region, f.index[chosen], bad)
                if f.batch.skeleton is not None and f.batch.skeleton.loops and site.counted:
                    adds = name == "add" and not is_float(kind) and count == 1
                    f.batch.skeleton.write(
                        site.span, f.index[chosen], region, index * site.width, b[chosen],
                        width=site.width, adds=adds, plain=not adds, releases=site.releases,
                    )  # fmt: skip
                before = None if f.batch.refused is None else memory[at].tobytes()
                old[chosen] = apply(memory, at, b[chosen], c[chosen], store is not None)
                f.batch.swapped |= before is not None and memory[at].tobytes() != before
                if swap is not None:
                    failed = old[chosen] != b[chosen]
                    watch(f, site, region, index, packed=True, chosen=chosen, failed=failed)
                if name == "add" and kind == "f32":  # which makes one NaN of all
                    memory[at] = r.clean_single(memory[at])
            if store is not None:
                store(f, f.spread(old))

    return step


def _require_stored(f: Frame, site: Site, region: Region, threads: Array, bad: Array) -> None:
    if bad.any():
        thread = int(threads[int(bad.argmax())])
        memory = "memory of the device heap" if region.parts is not None else region.name
        message = f"atomic on {memory} that was never written"
        raise site.error(f, message, thread, UninitialisedError)


def _applier(name: str, kind: str) -> Callable[[Array, Array, Array, Array, bool], Array]:
    fn = one_by_one(name, kind)
    if kind.endswith("x2"):
        from_half = F16 if kind == "f16x2" else np.dtype(np.uint16)
        single = one_by_one(name, kind.removesuffix("x2"))

        def fn(old: Array, b: Array, c: Array) -> Array:
            halves = [np.ascontiguousarray(x).view(from_half) for x in (old, b, c)]
            return np.ascontiguousarray(single(*halves)).view(np.uint32)

    ordered = name == "add" or not is_float(kind)
    ufunc = _ACCUMULATED.get(name) if ordered and not kind.endswith(("x2", "bf16")) else None

    def apply(memory: Array, at: Array, b: Array, c: Array, returns: bool) -> Array:
        if ufunc is not None and not returns:
            ufunc.at(memory, at, b)
            return np.zeros(1, memory.dtype)
        return _in_order(memory, at, b, c, fn, ufunc)

    return apply


def _flushing_sum(memory: Array, at: Array, b: Array, c: Array, returns: bool) -> Array:
    """Sums of singles in global memory: subnormal numbers are zeros, coming in and going out."""
    sizes = np.abs(np.concatenate((memory[at], b)))
    sizes = sizes[sizes != 0]
    if not (sizes < _NEVER_SUBNORMAL).any():
        if not returns:
            np.add.at(memory, at, b)
            return np.zeros(1, memory.dtype)
        return _in_order(memory, at, b, c, _sum, np.add)
    return _in_order(memory, at, b, c, lambda x, y, _: r.flush(r.flush(x) + r.flush(y)), None)


def _sum(old: Array, b: Array, _: Array) -> Array:
    total: Array = old + b
    return total


def _in_order(
    memory: Array, at: Array, b: Array, c: Array, fn: Function, ufunc: np.ufunc | None
) -> Array:
    """Old values per thread; threads that share a place are taken one after the other."""
    order = np.argsort(at, kind="stable")
    sorted_at = at[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_at[1:] != sorted_at[:-1])))
    lengths = np.diff(np.append(starts, at.size))
    old = np.zeros(at.size, memory.dtype)
    longest = int(lengths.max())
    if ufunc is not None and longest > 4 and starts.size < 4 * longest:
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            place = sorted_at[start]
            chain = np.concatenate((memory[place : place + 1], b[order[start : start + length]]))
            running = ufunc.accumulate(chain)
            old[order[start : start + length]] = running[:-1]
            memory[place] = running[-1]
        return old
    if fn is _swap and longest > 4:  # a lock, with threads that stand in line for it
        old[order] = _swap_in_line(memory, at[order], b[order], c[order])
        return old
    for iteration in range(longest):
        mine = order[starts[lengths > iteration] + iteration]
        before = memory[at[mine]]
        old[mine] = before
        memory[at[mine]] = fn(before, b[mine], c[mine])
    return old


def _swap_in_line(memory: Array, at: Array, expected: Array, new: Array) -> list[int]:
    """Old values of swaps, one after the other, on whole numbers: arrays of one are far slower."""
    now = {place: int(memory[place]) for place in set(at.tolist())}
    old = []
    for place, wanted, value in zip(at.tolist(), expected.tolist(), new.tolist(), strict=True):
        old.append(now[place])
        if now[place] == wanted:
            now[place] = value
    memory[list(now)] = list(now.values())
    return old


TABLE: dict[str, Compile] = {"atom": compile_atomic, "red": compile_atomic}
