"""Instructions on textures and surfaces: tex, tld4, txq; suld, sust, suq.

Coordinates and values here have one element for each active thread. A texture is read by the way
for data that nobody writes: whoever writes it in the same launch races.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.machine.semantics import Kind, Semantics
from warploom.ptx.emulate.access import Site, places
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.memory import elements_of, put
from warploom.ptx.emulate.product import vector
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.texture import Image, image_at
from warploom.ptx.ir import Address, Instruction, Operand, Register
from warploom.ptx.types import DTYPES, UNSIGNED, type_of

Array = npt.NDArray[Any]
_AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
_BOUNDARIES = ("trap", "clamp", "zero")
_SIDES = ("width", "height", "depth")
FRACTION = 256  # weights of linear filtering have eight bits behind the point
_FAR = float(1 << 30)  # beyond every texture
_SMALLEST = float(np.finfo(np.float32).tiny)  # what is less is taken for zero


@dataclass(slots=True)
class _Handle:
    """An instruction that uses a handle: what it needs of it, and how its mistakes are told."""

    ctx: Context
    ins: Instruction
    surface: bool
    fetch: Fetch
    axes: int = 0  # 0: any
    layered: bool = False
    sites: dict[tuple[int, bool], Site] = field(default_factory=dict)

    def error(self, f: Frame, message: str, thread: int) -> DeviceError:
        span = self.ctx.module.span(self.ins)
        return DeviceError(f"{self.ins.name}: {message}; {f.batch.where(thread)}", span)

    def images(self, f: Frame) -> Iterator[Image]:
        """What the active threads' handles stand for; of each only its threads are active."""
        values = f.active_part(self.fetch(f))
        found = np.unique(values).tolist()
        if len(found) == 1:
            yield self._image(f, found[0])
            return
        for value in found:
            with f.narrowed(self.fetch(f) == np.uint64(value)):
                yield self._image(f, value)

    def _image(self, f: Frame, value: int) -> Image:
        thread = int(f.index[0])
        image = image_at(f.batch.memory, value)
        wanted = "surface" if self.surface else "texture"
        if image is None:
            raise self.error(f, f"{value:#x} is no handle of a {wanted}{_whose(f, value)}", thread)
        if image.is_surface != self.surface:
            raise self.error(
                f, f"a {wanted} is needed, and the handle is of the other kind", thread
            )
        if self.axes and (len(image.sides), image.layers > 0) != (self.axes, self.layered):
            has = f"{'a' if image.layers else ''}{len(image.sides)}d"
            raise self.error(f, f"a {wanted} of {has} is given", thread)
        if f.batch.counters is not None:
            warps = np.unique(f.batch.warp_of[f.index]).size
            label = self.ctx.module.span(self.ins)
            f.batch.counters.tallies.asked(label, wanted, int(warps), f.count)
        return image

    def site(self, width: int, kind: Kind) -> Site:
        """How memory is touched, so many bytes at a time."""
        found = self.sites.get((width, kind.writes))
        if found is None:
            semantics = Semantics(kind, constant=not self.surface)
            span = self.ctx.module.span(self.ins)
            found = Site(span, self.ins.name, "global", width, True, semantics, tallied=False)
            self.sites[width, kind.writes] = found
        return found


def _whose(f: Frame, value: int) -> str:
    region = f.batch.memory.find(value)
    if region is None or not region.base <= value < region.base + max(1, region.size):
        return ""
    return f"; it is an address within {region.name}"


def _handle(ctx: Context, ins: Instruction, operand: Operand, surface: bool) -> _Handle:
    if not isinstance(operand, Address) or operand.offset or not isinstance(operand.base, Register):
        raise ctx.unknown(f"{ins.name} by other than a handle in a register")
    if len(operand.more) > 1:
        raise ctx.unknown(f"{ins.name} with a sampler of its own")
    word = next((word for word in ins.modifiers if word in _AXES), "")
    return _Handle(
        ctx, ins, surface, ctx.read(operand.base, "u64"), _AXES.get(word, 0), word.startswith("a")
    )


def _coordinates(ctx: Context, ins: Instruction, operand: Operand, kind: str) -> list[Fetch]:
    """The coordinates in `[handle, {…}]`: the layer, or zero, then one for each axis. A fourth
    beside three is for the form alone."""
    assert isinstance(operand, Address)
    word = next(word for word in ins.modifiers if word in _AXES)
    layered, axes = word.startswith("a"), _AXES[word]
    given = vector(operand.more[0]) if len(operand.more) == 1 else ()
    needed = axes + layered
    if len(given) != (4 if needed == 3 else needed):
        raise ctx.fail(f"{ins.name} and the number of its coordinates do not fit", ins)
    layer: list[Fetch] = [ctx.read(given[0], "u32")] if layered else [_zero]
    return layer + [ctx.read(each, kind) for each in given[layered : layered + axes]]


def _zero(_: Frame) -> Array:
    return np.zeros(1, np.uint32)


def _each(f: Frame, fetch: Fetch) -> Array:
    return np.broadcast_to(f.active_part(fetch(f)), (f.count,))


# -- textures -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Corner:
    """One of the texels that an axis's coordinate lies between."""

    index: Array
    inside: Array
    weight: Array


def tex(ctx: Context, ins: Instruction) -> Step:
    kind, by = (word for word in ins.modifiers if word in DTYPES)
    handle = _handle(ctx, ins, ins.operands[1], surface=False)
    fetches = _coordinates(ctx, ins, ins.operands[1], by)
    stores = [ctx.write(each, kind) for each in _four(ctx, ins)]

    def step(f: Frame) -> None:
        for image in handle.images(f):
            _readable(f, handle, image, kind)
            layer, *axes = (_each(f, fetch) for fetch in fetches)
            corners = [_corners(image, x, side) for x, side in zip(axes, image.sides, strict=True)]
            values = _sum(f, handle, image, _layer(image, layer), corners)
            for store, value in zip(stores, _filled(values, kind), strict=True):
                store(f, f.spread(value))

    return step


def tld4(ctx: Context, ins: Instruction) -> Step:
    """One channel of the four texels that linear filtering would weigh, from the lower left."""
    kind, by = (word for word in ins.modifiers if word in DTYPES)
    channel = "rgba".index(ins.modifiers[0])
    handle = _handle(ctx, ins, ins.operands[1], surface=False)
    fetches = _coordinates(ctx, ins, ins.operands[1], by)
    stores = [ctx.write(each, kind) for each in _four(ctx, ins)]

    def step(f: Frame) -> None:
        for image in handle.images(f):
            _readable(f, handle, image, kind)
            layer, x, y = (_each(f, fetch) for fetch in fetches)
            filtered = replace(image, linear=True)
            (left, right), (low, high) = (
                _corners(filtered, at, side, weighs=False)
                for at, side in zip((x, y), image.sides, strict=True)
            )
            around = ((left, high), (right, high), (right, low), (left, low))
            for store, corner in zip(stores, around, strict=True):
                values = _texels(f, handle, image, _layer(image, layer), corner)
                store(f, f.spread(_filled(values, kind)[channel]))

    return step


def _four(ctx: Context, ins: Instruction) -> tuple[Operand, ...]:
    found = vector(ins.operands[0])
    if len(found) != 4:
        raise ctx.fail(f"{ins.name} gives four values", ins)
    return found


def _readable(f: Frame, handle: _Handle, image: Image, kind: str) -> None:
    floating = image.dtype.kind == "f" or image.fractions
    if floating != (kind == "f32"):
        what = "fractions" if image.fractions else str(image.dtype)
        message = f"a texture of {what} is read as .{kind}"
        raise handle.error(f, message, int(f.index[0]))


def _layer(image: Image, layer: Array) -> Array:
    return np.minimum(layer.view(np.uint32).astype(np.int64), max(0, image.layers - 1))


def _corners(image: Image, x: Array, side: int, weighs: bool = True) -> list[_Corner]:
    """The texels of one axis that count, and how much each of them does.

    `weighs`: they are for a sum, not wanted themselves.
    """
    one = np.full(x.shape, FRACTION)
    if x.dtype.kind != "f":  # whole coordinates are neither filtered nor moved inside
        at = x.astype(np.int64)
        return [_Corner(np.clip(at, 0, side - 1), (at >= 0) & (at < side), one)]
    place = np.where(np.abs(x) < _SMALLEST, 0.0, x.astype(np.float64))
    place = np.nan_to_num(place, nan=0.0, posinf=_FAR, neginf=-_FAR)
    place = np.clip(place * (side if image.normalized else 1), -_FAR, _FAR)
    if not image.linear:
        return [_Corner(*_addressed(np.floor(place).astype(np.int64), side, image.mode), one)]
    fixed = np.floor((place - 0.5) * FRACTION + 0.5).astype(np.int64)
    if (
        image.mode == "clamp" and weighs
    ):  # the coordinate is, not the texel: nothing is left to weigh
        fixed = np.clip(fixed, 0, (side - 1) * FRACTION)
    first, weight = fixed >> 8, fixed & FRACTION - 1
    return [
        _Corner(*_addressed(first, side, image.mode), FRACTION - weight),
        _Corner(*_addressed(first + 1, side, image.mode), weight),
    ]


def _addressed(at: Array, side: int, mode: str) -> tuple[Array, Array]:
    """Which texel an index means, and whether it is one at all."""
    inside = np.ones(at.shape, bool)
    if mode == "wrap":
        return at % side, inside
    if mode == "mirror":
        phase = at % (2 * side)
        return np.minimum(phase, 2 * side - 1 - phase), inside
    if mode == "border":
        inside = (at >= 0) & (at < side)
    return np.clip(at, 0, side - 1), inside


def _sum(
    f: Frame, handle: _Handle, image: Image, layer: Array, axes: list[list[_Corner]]
) -> list[Array]:
    """The channels of what lies at the coordinates; summed in doubles and rounded once."""
    corners = list(product((0, 1), repeat=len(axes)))
    if len(axes[0]) == 1:
        return _texels(f, handle, image, layer, tuple(each[0] for each in axes))
    weights = _weights([each[1].weight for each in axes])
    total = [np.zeros(f.count) for _ in range(image.channels)]
    for corner in corners:
        weight = weights[corner]
        chosen = tuple(each[upper] for each, upper in zip(axes, corner, strict=True))
        values = _texels(f, handle, image, layer, chosen, weight != 0)
        for channel, value in enumerate(values):
            total[channel] += np.where(weight != 0, weight * value.astype(np.float64), 0.0)
    return [_rounded(value / FRACTION) for value in total]


def _weights(upper: list[Array]) -> dict[tuple[int, ...], Array]:
    """The weights of all corners, in parts of `FRACTION`, of those of each axis's upper one.

    Depth, width and height part them in this order. A half goes to the upper corner where all
    axes before have theirs, else to the lower one.
    """
    order = [2, 0, 1] if len(upper) == 3 else list(range(len(upper)))
    found: dict[tuple[int, ...], Array] = {(): np.full(upper[0].shape, FRACTION)}
    for axis in order:
        parted: dict[tuple[int, ...], Array] = {}
        for corner, weight in found.items():
            half = FRACTION // 2 if all(corner) else FRACTION // 2 - 1
            above = (weight * upper[axis] + half) // FRACTION
            parted[*corner, 1], parted[*corner, 0] = above, weight - above
        found = parted
    places = [order.index(axis) for axis in range(len(upper))]
    return {tuple(corner[at] for at in places): weight for corner, weight in found.items()}


def _rounded(total: Array) -> Array:
    """To a single: halves away from zero, what is subnormal to zero."""
    bits = np.ascontiguousarray(total).view(np.uint64)
    away = ((bits + np.uint64(1 << 28)) & ~np.uint64((1 << 29) - 1)).view(np.float64)
    kept = np.where(np.isfinite(total), away, total)
    return np.where(np.abs(kept) < _SMALLEST, 0.0, kept)


def _texels(
    f: Frame, handle: _Handle, image: Image, layer: Array, corner: tuple[_Corner, ...],
    needed: Array | None = None,
) -> list[Array]:  # fmt: skip
    """The channels of one texel for each thread; zeros outside, and where it is not needed."""
    address, stride, inside = image.base(layer), image.texel, np.ones(f.count, bool)
    for each, side in zip(corner, image.sides, strict=True):
        address = address + each.index * stride
        stride *= side
        inside = inside & each.inside
    if needed is not None:
        inside = inside & needed
    raw = _loaded(f, handle, address, inside, image.dtype, image.channels)
    return [_as_fraction(value) if image.fractions else value for value in raw]


def _loaded(
    f: Frame, handle: _Handle, address: Array, inside: Array, dtype: np.dtype[Any], count: int
) -> list[Array]:
    """So many values for each thread that is inside; zeros for the others."""
    out = np.zeros((f.count, count), dtype)
    where = np.flatnonzero(inside)
    site = handle.site(dtype.itemsize * count, Kind.READ)
    with f.narrowed(f.spread(inside)) as some:
        if some:
            for region, chosen, index in places(f, site, address[where].astype(np.uint64)):
                size = region.data.size // site.width * site.width
                out[where[chosen]] = region.data[:size].view(dtype).reshape(-1, count)[index]
    return list(out.T)


def _as_fraction(value: Array) -> Array:
    """The value as a fraction of the largest of its type; the smallest signed one is -1 too."""
    most = np.iinfo(value.dtype).max
    return np.maximum(value / np.float64(most), -1.0)


def _filled(values: list[Array], kind: str) -> list[Array]:
    """Four channels in the type of the registers; those that are not there are 0."""
    dtype = DTYPES[kind]
    whole = np.dtype(np.int64)
    out = [
        value.astype(dtype) if kind == "f32" else value.astype(whole).astype(np.uint32).view(dtype)
        for value in values
    ]
    shape = values[0].shape
    return out + [np.zeros(shape, dtype)] * (4 - len(out))


# -- surfaces -------------------------------------------------------------------------------------


def suld(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    elements = elements_of(ctx, ins, ins.operands[0])
    stores = [ctx.write(each, kind) for each in elements]
    dtype = UNSIGNED[DTYPES[kind].itemsize]
    found = _placer(ctx, ins, ins.operands[1], dtype.itemsize * len(elements))

    def step(f: Frame) -> None:
        for handle, address, inside in found(f):
            values = _loaded(f, handle, address, inside, dtype, len(stores))
            for store, value in zip(stores, values, strict=True):
                store(f, f.spread(np.ascontiguousarray(value).view(DTYPES[kind])))

    return step


def sust(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    elements = elements_of(ctx, ins, ins.operands[1])
    values = [ctx.read(each, kind) for each in elements]
    dtype = DTYPES[kind]
    width = dtype.itemsize * len(elements)
    found = _placer(ctx, ins, ins.operands[0], width)

    def step(f: Frame) -> None:
        for handle, address, inside in found(f):
            where = np.flatnonzero(inside)
            stored = [_each(f, value)[where] for value in values]
            with f.narrowed(f.spread(inside)) as some:
                if some:
                    site = handle.site(width, Kind.WRITE)
                    put(f, site, address[where].astype(np.uint64), stored, dtype)

    return step


Placed = Iterator[tuple[_Handle, Array, Array]]


def _placer(
    ctx: Context, ins: Instruction, operand: Operand, width: int
) -> Callable[[Frame], Placed]:
    """For each surface the addresses of its threads' accesses, and which of them are made."""
    handle = _handle(ctx, ins, operand, surface=True)
    fetches = _coordinates(ctx, ins, operand, "s32")
    boundary = next(word for word in ins.modifiers if word in _BOUNDARIES)

    def find(f: Frame) -> Placed:
        for image in handle.images(f):
            if width > image.texel:
                message = f"{width} bytes at once, of a surface whose elements have {image.texel}"
                raise handle.error(f, message, int(f.index[0]))
            layer, x, *others = (_each(f, fetch).astype(np.int64) for fetch in fetches)
            _aligned(f, handle, x, width)
            steps = [(x, image.row - width, 1)]
            stride = image.row
            for at, side in zip(others, image.sides[1:], strict=True):
                steps.append((at, side - 1, stride))
                stride *= side
            steps.append((layer, max(0, image.layers - 1), stride))
            inside = np.all([(at >= 0) & (at <= most) for at, most, _ in steps], axis=0)
            if boundary == "trap" and not inside.all():
                raise _beyond(f, handle, image, [at for at, _, _ in steps], inside)
            address = np.full(f.count, image.address, np.int64)
            for at, most, by in steps:
                address += np.clip(at, 0, most) * by
            yield handle, address, inside if boundary == "zero" else np.ones(f.count, bool)

    return find


def _aligned(f: Frame, handle: _Handle, x: Array, width: int) -> None:
    crooked = x % width != 0
    if crooked.any():
        at = int(crooked.argmax())
        message = f"x is a byte, and {int(x[at])} is no multiple of the {width} that are accessed"
        raise handle.error(f, message, int(f.index[at]))


def _beyond(
    f: Frame, handle: _Handle, image: Image, given: list[Array], inside: Array
) -> DeviceError:
    at = int((~inside).argmax())
    shown = ", ".join(str(int(each[at])) for each in given[: None if image.layers else -1])
    size = f"{image.row} bytes" + "".join(f" by {side}" for side in image.sides[1:])
    size += f" in {image.layers} layers" if image.layers else ""
    return handle.error(
        f, f"out-of-bounds access at ({shown}) of a surface of {size}", int(f.index[at])
    )


# -- questions ------------------------------------------------------------------------------------


def query(ctx: Context, ins: Instruction) -> Step:
    """txq and suq: a side, the number of layers, or whether coordinates are normalised."""
    handle = _handle(ctx, ins, ins.operands[1], surface=ins.opcode == "suq")
    store = ctx.write(ins.operands[0], "b32")
    word = ins.modifiers[0]

    def step(f: Frame) -> None:
        for image in handle.images(f):
            value = _answer(image, word)
            if value is None:
                raise handle.error(f, f"this one has no {word}", int(f.index[0]))
            store(f, np.array([value], np.uint32))

    return step


def _answer(image: Image, word: str) -> int | None:
    if word == "array_size":
        return image.layers or None
    if word == "normalized_coords":
        return int(image.normalized)
    axis = _SIDES.index(word)
    return image.sides[axis] if axis < len(image.sides) else None


TABLE: dict[str, Compile] = {
    "tex": tex, "tld4": tld4, "txq": query, "suld": suld, "sust": sust, "suq": query,
}  # fmt: skip
