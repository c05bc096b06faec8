"""tensormap.replace and tensormap.cp_fenceproxy: tensor maps that a kernel writes itself.

A map is written in shared or global memory, as plain memory is. Copies read maps by a way of their
own: what was written is seen there after a fence that releases it and one that acquires it, of the
same map (`fence.proxy.tensormap`). cp_fenceproxy copies a map to global memory and releases it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import UninitialisedError
from warploom.machine.memory import FIRST_ADDRESS, WINDOWS, Region
from warploom.machine.semantics import Kind, Scope, Semantics
from warploom.ptx.emulate import ordering
from warploom.ptx.emulate.access import SHARED, race_error, spare
from warploom.ptx.emulate.bulk import Copier, each_of, mark
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.mbarrier import shared_address
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.tensor import KINDS, MAP_BYTES, MapError, MapFields
from warploom.ptx.ir import Immediate, Instruction, Operand

Array = npt.NDArray[Any]
Edit = Callable[[MapFields, int, int], None]  # the map, the number of an axis, the new value


def _whole(name: str, most: int) -> Edit:
    def edit(fields: MapFields, _: int, value: int) -> None:
        if value > most:
            raise MapError(f"{value} is no {name} of a tensor map")
        setattr(fields, name, value)

    return edit


def _axis(name: str, most: int) -> Edit:
    def edit(fields: MapFields, axis: int, value: int) -> None:
        every = getattr(fields, name)
        if not (0 <= axis < len(every) and value <= most):
            raise MapError(f"{value} is no {name} of axis {axis} of a tensor map")
        every[axis] = value

    return edit


_EDITS: dict[str, Edit] = {
    "global_address": _whole("address", 1 << 64), "rank": _whole("rank", 4),
    "elemtype": _whole("kind", len(KINDS) - 1), "interleave_layout": _whole("interleave", 2),
    "swizzle_mode": _whole("swizzle", 3), "fill_mode": _whole("fill", 1),
    "box_dim": _axis("box", 256), "global_dim": _axis("sizes", 1 << 32),
    "global_stride": _axis("strides", 1 << 40), "element_stride": _axis("steps", 8),
}  # fmt: skip


def edits_maps(code: Code) -> bool:
    """Whether tensor maps may be written where copies read them, and fenced."""
    steps = (flow.instruction for block in code.blocks for flow in block.passages)
    return any(
        ins.opcode == "tensormap" or "tensormap::generic" in ins.modifiers for ins in steps
    )  # fmt: skip


def tensormap(ctx: Context, ins: Instruction) -> Step:
    return _replace(ctx, ins) if ins.modifiers[0] == "replace" else _copy(ctx, ins)


class _Editor(Copier):
    """Where maps lie, and who touches them."""

    def place(self, f: Frame, thread: int, address: int, near: bool) -> tuple[Region, int, Any]:
        """The region of a map, where it is there, and what races call the region."""
        key: Any
        window = WINDOWS["shared"]
        if near or window <= address < WINDOWS["local"]:
            at = self.shared(f, thread, address - window * (address >= window), MAP_BYTES)
            found, key = f.batch.shared, SHARED
        else:
            found, at = self.region(f, thread, address, MAP_BYTES)
            key = found.base
            if found.read_only:
                raise self.fail(f, f"writes to {found.name}, which is constant", thread)
        if address % MAP_BYTES:
            message = f"a tensor map at {address:#x}, which is no multiple of {MAP_BYTES}"
            raise self.fail(f, message, thread)
        return found, at, key

    def touch(
        self, f: Frame, thread: int, region: Region, at: int, key: Any, kind: Kind
    ) -> None:  # fmt: skip
        """All of a map is read, written, or both, plainly."""
        if key is SHARED:
            spare(f, self.site, np.array([thread]), np.array([at]), MAP_BYTES)
        if f.batch.skeleton is not None and key is SHARED:
            f.batch.skeleton.touch(
                self.site.span, region.data.size, np.array([at]), MAP_BYTES, reads=True,
                writes=kind is Kind.WRITE,
            )  # fmt: skip
        elif f.batch.skeleton is not None:
            f.batch.skeleton.write_far(self.site.span, region, np.array([at]), MAP_BYTES)
        races = f.batch.races
        if races is None:
            return
        size, start = region.data.size, np.arange(at, at + MAP_BYTES, 16)
        who, label = np.full(start.size, thread), self.site.span
        found = races.access(key, size, who, start, 16, Semantics(kind), label)
        if found and not races.every:
            raise race_error(f, self.site, found[0])

    def written(self, f: Frame, thread: int, region: Region, at: int) -> None:
        if region.written is not None and not region.written[at : at + MAP_BYTES].all():
            message = "reads shared memory that was never written"
            raise self.site.error(f, message, thread, UninitialisedError)


def _replace(ctx: Context, ins: Instruction) -> Step:
    """[map], the number of an axis where there are several, the new value"""
    field = next(word for word in ins.modifiers if word in _EDITS)
    edit, editor = _EDITS[field], _Editor(ctx, ins)
    near = "shared::cta" in ins.modifiers
    address = shared_address(ctx, ins.operands[0]) if near else ctx.address(ins.operands[0])
    value = ctx.read(ins.operands[-1], "b64" if "b64" in ins.modifiers else "b32")
    named = ins.operands[1] if len(ins.operands) == 3 else None
    axis = int(named.value) if isinstance(named, Immediate) else 0

    def step(f: Frame) -> None:
        for thread, there, new in zip(
            f.index.tolist(), each_of(f, address), each_of(f, value), strict=True
        ):
            region, at, key = editor.place(f, thread, there, near)
            editor.written(f, thread, region, at)
            if f.batch.skeleton is not None and key is not SHARED:
                f.batch.skeleton.read_map(editor.site.span, region, at, MAP_BYTES)
            editor.touch(f, thread, region, at, key, Kind.WRITE)
            raw = region.data[at : at + MAP_BYTES]
            try:
                fields = MapFields.of(raw)
                edit(fields, axis, new)
            except MapError as error:
                raise editor.fail(f, str(error), thread) from None
            raw[:] = fields.bytes()

    return step


def _copy(ctx: Context, ins: Instruction) -> Step:
    """[global], [shared], 128: one copy of a warp, by its first lane, and a release."""
    editor, scope = _Editor(ctx, ins), ordering.scope_of(ins)
    check_size(ctx, ins, ins.operands[2])
    to, of = ctx.address(ins.operands[0]), shared_address(ctx, ins.operands[1])

    def step(f: Frame) -> None:
        targets, sources = each_of(f, to), each_of(f, of)
        warps = f.batch.warp_of[f.index]
        for number in np.unique(warps, return_index=True)[1].tolist():
            thread = int(f.index[number])
            region, at, key = editor.place(f, thread, targets[number], near=False)
            shared, start, _ = editor.place(f, thread, sources[number], near=True)
            editor.written(f, thread, shared, start)
            editor.touch(f, thread, shared, start, SHARED, Kind.READ)
            editor.touch(f, thread, region, at, key, Kind.WRITE)
            region.data[at : at + MAP_BYTES] = shared.data[start : start + MAP_BYTES]
            mark(region, at, MAP_BYTES)
        if f.batch.races is not None:
            f.batch.races.map_fence(f.index, None, scope)

    return step


def map_fence(ctx: Context, ins: Instruction) -> Step:
    """fence.proxy.tensormap: what was written goes to those who read maps, or a map is taken."""
    scope = ordering.scope_of(ins)
    if not ins.operands:
        return _released(scope)
    check_size(ctx, ins, ins.operands[1])
    address = ctx.address(ins.operands[0])
    copier = Copier(ctx, ins)

    def step(f: Frame) -> None:
        if f.batch.races is None:
            return
        places = np.broadcast_to(f.active_part(address(f)), (f.count,))
        for place in np.unique(places).tolist():
            who = f.index[places == place]
            inside = place + WINDOWS["param"] if place < FIRST_ADDRESS["global"] else place
            region, at = copier.region(f, int(who[0]), inside, MAP_BYTES)
            if not region.read_only:
                f.batch.races.map_fence(who, (region.base, at), scope)

    return step


def _released(scope: Scope) -> Step:
    def step(f: Frame) -> None:
        if f.batch.races is not None:
            f.batch.races.map_fence(f.index, None, scope)

    return step


def check_size(ctx: Context, ins: Instruction, size: Operand) -> None:
    """As an assembler refuses other numbers than the bytes of a map."""
    if not isinstance(size, Immediate) or size.value != MAP_BYTES:
        raise ctx.fail(f"{ins.name}: the size of a tensor map is the number {MAP_BYTES}", ins)


def fence(ctx: Context, ins: Instruction) -> Step:
    of_maps = "tensormap::generic" in ins.modifiers
    return map_fence(ctx, ins) if of_maps else ordering.fence(ctx, ins)


TABLE: dict[str, Compile] = {"tensormap": tensormap, "fence": fence}
