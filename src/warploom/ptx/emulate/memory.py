"""Instructions that move data: mov, ld, st, cvta, isspacep, cp.async, prefetch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.memory import WINDOWS, Region, mark_stored
from warploom.machine.semantics import Kind, Semantics
from warploom.machine.shadows import Writing
from warploom.ptx.emulate import poison as undefined
from warploom.ptx.emulate.access import Site, load, places
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.ordering import (
    copy_groups,
    fence,
    is_volatile,
    order_of,
    semantics_of,
)
from warploom.ptx.emulate.read_only import reads_only
from warploom.ptx.emulate.shape import Compile, parts
from warploom.ptx.ir import Address, Immediate, Instruction, Operand, Symbol, Vector
from warploom.ptx.known import is_predicate, registers_moved, space_of
from warploom.ptx.types import DTYPES, UNSIGNED, type_of

Array = npt.NDArray[Any]

_LINE = 128  # bytes that a discard takes
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def place_of(ctx: Context, ins: Instruction, operand: Operand) -> str:
    """The space of an access; parameters of calls lie in local memory."""
    named = space_of(ins)
    if named != "param":
        return named
    base = operand.base if isinstance(operand, Address) else operand
    in_frame = isinstance(base, Symbol) and base.name in ctx.locals
    return "local" if in_frame or ctx.function.kind == "func" else "param"


def make_site(ctx: Context, ins: Instruction, space: str, width: int, kind: Kind) -> Site:
    counted = space in ("global", "generic")
    kind_of_one = type_of(ins)
    size = DTYPES[kind_of_one].itemsize if kind_of_one else width
    semantics = semantics_of(ins, kind, size)
    far = space == "shared" and ("shared::cluster" in ins.modifiers or space_of(ins) == "generic")
    span = ctx.module.span(ins)
    weak = Semantics(kind) if is_volatile(ins) and kind is not Kind.ATOMIC else None
    only = reads_only(ins)
    return Site(span, ins.name, space, width, counted, semantics, order_of(ins), far, weak, only)


def by_space(
    ctx: Context, ins: Instruction, operand: Operand, width: int, kind: Kind,
    make: Callable[[Site, Fetch], Step],
) -> Step:  # fmt: skip
    """A step for the space written in the instruction, or one that looks at generic addresses."""
    address = ctx.address(operand)
    space = place_of(ctx, ins, operand)
    if space in ("const", "param"):
        address = _moved(address, WINDOWS[space])
    if space != "generic":
        return make(make_site(ctx, ins, space, width, kind), address)
    flat = make(make_site(ctx, ins, "generic", width, kind), address)
    shared, local = (
        make(make_site(ctx, ins, name, width, kind), _moved(address, -WINDOWS[name]))
        for name in ("shared", "local")
    )

    def step(f: Frame) -> None:
        value = address(f)
        if int(value.max()) < WINDOWS["shared"]:
            flat(f)
            return
        kinds = (value >= np.uint64(WINDOWS["shared"])).astype(np.int8)
        kinds += value >= np.uint64(WINDOWS["local"])
        seen = np.unique(f.active_part(kinds)).tolist()
        for kind in seen:
            one = (flat, shared, local)[kind]
            if len(seen) == 1:
                one(f)
                continue
            with f.narrowed(kinds == kind) as any_active:
                if any_active:
                    one(f)

    return step


def _moved(fetch: Fetch, distance: int) -> Fetch:
    offset = np.uint64(distance % (1 << 64))
    return lambda f: fetch(f) + offset


# -- ld and st ----------------------------------------------------------------------------------


def elements_of(ctx: Context, ins: Instruction, operand: Operand) -> tuple[Operand, ...]:
    """The registers of an access, as many as its modifiers say."""
    found = registers_moved(operand)
    if len(found) != next((_VECTORS[m] for m in ins.modifiers if m in _VECTORS), 1):
        raise ctx.fail(f"{ins.name} and the number of its registers do not fit", ins)
    return found


def ld(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    targets = elements_of(ctx, ins, ins.operands[0])
    stores = [ctx.write(element, kind) for element in targets]
    slots = [undefined.slots_of(ctx, (element,)) for element in targets]
    dtype, count = DTYPES[kind], len(stores)

    def make(site: Site, address: Fetch) -> Step:
        shown = site.space in undefined.SHOWN

        def step(f: Frame) -> None:
            unwritten: list[Array] = []
            fill(f, load(f, site, address(f), dtype, count, unwritten if shown else None))
            if unwritten or f.undefined:
                undefined.loaded(f, slots, unwritten, site)

        return step

    def fill(f: Frame, values: list[Array]) -> None:
        for store, value in zip(stores, values, strict=True):
            store(f, value)

    return by_space(ctx, ins, ins.operands[1], dtype.itemsize * count, Kind.READ, make)


def st(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    given = elements_of(ctx, ins, ins.operands[1])
    values = [ctx.read(element, kind) for element in given]
    slots = [undefined.slots_of(ctx, (element,)) for element in given]
    dtype, count = DTYPES[kind], len(values)

    def make(site: Site, address: Fetch) -> Step:
        def step(f: Frame) -> None:
            where = np.broadcast_to(f.active_part(address(f)), (f.count,))
            parts_ = [np.broadcast_to(f.active_part(v(f)), (f.count,)) for v in values]
            missing = None
            if f.undefined and _shows(f, site):
                missing = [undefined.causes(f, each) for each in slots]
            put(f, site, where, parts_, dtype, missing)

        return step

    return by_space(ctx, ins, ins.operands[0], dtype.itemsize * count, Kind.WRITE, make)


def _shows(f: Frame, site: Site) -> bool:
    """Whether memory knows what was stored, or it is an error to store what is no value."""
    marked = site.space != "local" or f.batch.local.written is not None
    return marked and site.space in undefined.SHOWN


def put(
    f: Frame, site: Site, address: Array, values: list[Array], dtype: Any,
    missing: list[Array | None] | None = None,
) -> None:  # fmt: skip
    """Stores for the active threads, in their order: the last one wins.

    What is no value may lie in shared memory, where it is as if nobody had stored it; `missing`
    has, of each part, the causes.
    """

    def store(region: Region, chosen: Any, index: Array) -> None:
        for part, value in enumerate(values):
            at = index if len(values) == 1 else index * len(values) + part
            region.view(dtype)[at] = value[chosen]
            mark_stored(region, at, dtype)
            causes = None if missing is None else missing[part]
            if causes is not None:
                undefined.kept(site, f, f.index[chosen], region, at, dtype, causes[chosen])

    def watched(region: Region, chosen: Any, index: Array) -> Writing:
        return Writing(
            lambda: _holds(region, index, values, chosen, dtype),
            lambda: store(region, chosen, index),
            lambda at: b"".join(value[chosen][at].tobytes() for value in values),
            lambda: np.concatenate([_bytes(value[chosen]) for value in values], axis=1),
        )

    for found in places(f, site, address, None if f.batch.races is None else watched):
        if f.batch.skeleton is not None and f.batch.skeleton.loops and site.counted:
            region, chosen, index = found
            f.batch.skeleton.write(
                site.span, f.index[chosen], region, index * site.width, values[0][chosen],
                width=site.width, adds=False, plain=site.kind is Kind.WRITE or len(values) > 1,
                releases=site.releases,
            )  # fmt: skip
        store(*found)


def _bytes(values: Array) -> Array:
    """A row of bytes for each value."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(values.size, -1)


def _holds(region: Region, index: Array, values: list[Array], chosen: Any, dtype: Any) -> Array:
    """Whether memory has each thread's values, bit for bit."""
    same = np.ones(index.size, bool)
    for part, value in enumerate(values):
        at = index if len(values) == 1 else index * len(values) + part
        old, new = _bytes(region.view(dtype)[at]), _bytes(value[chosen])
        same &= (old == new).all(axis=1)
    return same


# -- mov and addresses ----------------------------------------------------------------------------


def mov(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    target, source = ins.operands[0], ins.operands[1]
    if isinstance(target, Vector):
        return _unpack(ctx, ins, target, source, kind)
    if isinstance(source, Vector):
        return _pack(ctx, target, source, kind)
    store, (a,) = parts(ctx, ins, kind, kind)
    return lambda f: store(f, a(f))


def _unpack(ctx: Context, ins: Instruction, target: Vector, source: Operand, kind: str) -> Step:
    count = len(target.elements)
    size, rest = divmod(DTYPES[kind].itemsize, count)
    if rest or size not in UNSIGNED:
        raise ctx.unknown(ins.name)
    if isinstance(source, Vector):
        raise ctx.unknown(ins.name)
    part = f"b{8 * size}"
    stores = [ctx.write(element, part) for element in target.elements]
    value = ctx.read(source, kind)

    def step(f: Frame) -> None:
        columns = np.ascontiguousarray(value(f)).view(DTYPES[part]).reshape(-1, count)
        for column, store in enumerate(stores):
            store(f, np.ascontiguousarray(columns[:, column]))

    return step


def _pack(ctx: Context, target: Operand, source: Vector, kind: str) -> Step:
    count = len(source.elements)
    size, rest = divmod(DTYPES[kind].itemsize, count)
    if rest or size not in UNSIGNED:
        raise ctx.unknown("this mov")
    part = f"b{8 * size}"
    values = [ctx.read(element, part) for element in source.elements]
    store = ctx.write(target, kind)

    def step(f: Frame) -> None:
        columns = np.broadcast_arrays(*[v(f) for v in values])
        packed = np.ascontiguousarray(np.stack(columns, axis=1))
        store(f, packed.view(DTYPES[kind]).reshape(-1))

    return step


def cvta(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    space = space_of(ins)
    if space == "param" and ctx.function.kind == "func":
        space = "local"
    window = DTYPES[kind].type(WINDOWS[space] & ((1 << 8 * DTYPES[kind].itemsize) - 1))
    store, (a,) = parts(ctx, ins, kind, kind)
    if not window:
        return lambda f: store(f, a(f))
    if "to" in ins.modifiers:
        return lambda f: store(f, a(f) - window)
    return lambda f: store(f, a(f) + window)


def isspacep(ctx: Context, ins: Instruction) -> Step:
    space = space_of(ins)
    store = ctx.write(ins.operands[0], "pred")
    a = ctx.read(ins.operands[1], "u64")

    # The parameters of a kernel lie in the global window.
    spaces = ("global", "param") if space == "global" else (space,)

    def step(f: Frame) -> None:
        value = a(f)
        inside = np.zeros(value.shape, bool)
        for name in spaces:
            ends = [start for start in WINDOWS.values() if start > WINDOWS[name]]
            above = value >= np.uint64(WINDOWS[name])
            inside |= above & (value < np.uint64(min(ends))) if ends else above
        store(f, inside)

    return step


# -- copies -------------------------------------------------------------------------------------


def cp(ctx: Context, ins: Instruction) -> Step:
    """cp.async as a copy that is done at once; races know that it ends when it is waited for."""
    if any(m in ins.modifiers for m in ("commit_group", "wait_group", "wait_all")):
        return copy_groups(ctx, ins)
    size = ins.operands[2]
    plain = ins.operands[:-1] if "L2::cache_hint" in ins.modifiers else ins.operands
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise ctx.unknown(ins.name)
    width = size.value
    target, source = ctx.address(ins.operands[0]), ctx.address(ins.operands[1])
    kept = _kept(ctx, plain[3], width) if len(plain) > 3 else None
    from_ = make_site(ctx, ins, "global", width, Kind.READ)
    to = make_site(ctx, ins, "shared", width, Kind.WRITE)
    for site in (from_, to):
        site.semantics = replace(site.semantics, under_way=True)

    def step(f: Frame) -> None:
        rows = _copied(f, from_, source, width, None if kept is None else f.widen(kept(f)))
        packed = np.ascontiguousarray(rows).view(UNSIGNED[width]).reshape(-1)
        where = np.broadcast_to(f.active_part(target(f)), (f.count,))
        put(f, to, where, [packed], UNSIGNED[width])

    return step


def _kept(ctx: Context, operand: Operand, width: int) -> Fetch:
    """How many bytes of a source are copied: a number, or none where a predicate ignores it."""
    if not is_predicate(operand):
        return ctx.read(operand, "u32")
    ignored = ctx.read(operand, "pred")
    return lambda f: np.where(ignored(f), np.uint32(0), np.uint32(width))


def _copied(f: Frame, site: Site, source: Fetch, width: int, size: Array | None) -> Array:
    """The bytes of each active thread's source; those from its size on are zero, and not read."""

    def read(of: Site, at: int, count: int) -> Array:
        values = load(f, of, source(f) + np.uint64(at), np.dtype(np.uint8), count)
        return np.stack([np.broadcast_to(f.active_part(v), (f.count,)) for v in values], axis=1)

    if size is None:
        return read(site, 0, width)
    beyond = (size > width) & f.full_mask()
    if beyond.any():
        thread = int(beyond.argmax())
        raise site.error(f, f"{int(size[thread])} bytes of a copy that has {width}", thread)
    out = np.zeros((f.n, width), np.uint8)
    with f.narrowed(size >= width) as some:
        if some:
            out[f.index] = read(site, 0, width)
    byte = replace(site, width=1)
    rest = (f.widen(source(f)) % np.uint64(width) != 0) & (size > 0) & (size < width)
    if (rest & f.full_mask()).any():
        raise site.error(
            f, f"misaligned access of {width} bytes", int((rest & f.full_mask()).argmax())
        )
    for at in range(int(size.max(initial=0, where=size < width))):
        with f.narrowed((size > at) & (size < width)) as some:
            if some:
                out[f.index, at] = read(byte, at, 1)[:, 0]
    rows: Array = out[f.index]
    return rows


def nothing(_: Context, __: Instruction) -> Step:
    return lambda _: None


def discard(ctx: Context, ins: Instruction) -> Step:
    """What lies there holds no value from now on: a write of anything, and so of what was there."""

    def make(site: Site, address: Fetch) -> Step:
        site = replace(site, tallied=False)

        def step(f: Frame) -> None:
            where = np.broadcast_to(f.active_part(address(f)), (f.count,))
            for _ in places(f, site, where):
                pass

        return step

    return by_space(ctx, ins, ins.operands[0], _LINE, Kind.WRITE, make)


def griddepcontrol(ctx: Context, ins: Instruction) -> Step:
    """.wait: the launches before have ended; .launch_dependents orders nothing."""
    if "wait" not in ins.modifiers:
        return nothing(ctx, ins)

    def step(f: Frame) -> None:
        if f.batch.races is not None:
            f.batch.races.wait_for_launches(f.index)

    return step


def policy(ctx: Context, ins: Instruction) -> Step:
    """createpolicy: a number that only hints to caches take."""
    store = ctx.write(ins.operands[0], "b64")
    return lambda f: store(f, np.ones(1, np.uint64))


TABLE: dict[str, Compile] = {
    "mov": mov, "ld": ld, "ldu": ld, "st": st, "cvta": cvta, "isspacep": isspacep,
    "prefetch": nothing, "prefetchu": nothing, "membar": fence, "fence": fence,
    "discard": discard, "applypriority": nothing, "nanosleep": nothing,
    "pmevent": nothing, "createpolicy": policy, "griddepcontrol": griddepcontrol,
}  # fmt: skip
