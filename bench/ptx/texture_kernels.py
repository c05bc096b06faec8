"""Kernels of textures and surfaces, for a GPU and the emulator. Each is one instruction in every
thread, whose coordinates and results are in the arguments.

Names begin with what a difference would mean: `point`, `type`, `fetch`, `surface` and the like must
be equal in every bit; `linear` says how far the last bits of filtered values are apart; `open` asks
what no manual says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from bench.ptx.launches import Job

from warploom import ptx
from warploom.ptx.emulate.texture import AddressMode

THREADS = 128
COUNT = 8 * THREADS  # of a kernel
MODES: tuple[tuple[AddressMode, bool], ...] = (
    ("clamp", False),
    ("border", False),
    ("clamp", True),
    ("border", True),
    ("wrap", True),
    ("mirror", True),
)
SHAPES = ((37,), (11, 13), (5, 6, 7))
GEOMETRY = {1: "1d", 2: "2d", 3: "3d"}
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 image, .param .u64 given, .param .u64 out)
{{ .reg .b32 %t, %n, %r<20>; .reg .b64 %h, %g, %o, %l<9>; .reg .f32 %f<9>; .reg .b16 %s<9>; .reg .pred %p;
ld.param.u64 %h, [image]; ld.param.u64 %g, [given]; ld.param.u64 %o, [out]; mov.u32 %t, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %r0, %tid.x; mad.lo.u32 %t, %t, %n, %r0;
mad.wide.u32 %g, %t, 16, %g; mad.wide.u32 %o, %t, 16, %o; ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%g];
mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;
{body}
ret; }}
"""


def job(name: str, body: str, image: Any, given: np.ndarray) -> Job:
    """`given` has four words for each thread, and so has the result."""
    given = np.ascontiguousarray(given).view(np.uint32).reshape(-1, 4)
    args = [image, given, np.full((len(given), 4), 0xDEAD, np.uint32)]
    return Job(
        name, HEAD.format(name=name, body=body), name, (len(given) // THREADS,), (THREADS,), args
    )


def fetch(geometry: str, kind: str, by: str, opcode: str = "tex", count: int = 4) -> str:
    """One `tex` by the coordinates that are given; a layer comes first. So many channels are kept."""
    bank = "%f" if by == "f32" else "%r"
    x, y, z = f"{bank}1", f"{bank}2", f"{bank}3"
    places = {"1d": x, "2d": f"{x}, {y}", "3d": f"{x}, {y}, {z}, {z}", "a2d": f"%r3, {x}, {y}, {y}"}
    what = "tex.level" if opcode == "level" else opcode
    tail = f", {bank}3" if opcode == "level" else ""
    kept = "".join(f" st.global.b32 [%o+{4 * i}], %r{5 + i};" for i in range(count))
    return f"{what}.{geometry}.v4.{kind}.{by} {{%r5, %r6, %r7, %r8}}, [%h, {{{places[geometry]}}}]{tail};{kept}"


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    found = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    found.reshape(-1)[:2] = limits.min, limits.max
    return found


def anywhere(sides: tuple[int, ...], normalized: bool, seed: int) -> np.ndarray:
    """Coordinates inside and around, none at a boundary between texels or between weights."""
    rng = np.random.default_rng(seed)
    out = np.zeros((COUNT, 4))
    for axis, side in enumerate(sides):
        out[:, axis] = rng.integers(-2 * side * 256, 3 * side * 256, COUNT) / 256 + 1 / 1024
        out[:, axis] /= side if normalized else 1
    return out.astype(np.float32)


def boundaries(side: int, normalized: bool, steps: int) -> np.ndarray:
    """Coordinates of one axis at every boundary between steps of a texel, just before and after."""
    exact = np.arange(-2 * side * steps, 3 * side * steps + 1) / steps
    exact = (exact / side if normalized else exact).astype(np.float32)
    near = [np.nextafter(exact, np.float32(to)) for to in (-np.inf, np.inf)]
    each = np.concatenate([exact, *near])
    out = np.zeros((-(-each.size // THREADS) * THREADS, 4), np.float32)
    out[: each.size, 0] = each
    return out


def _way(mode: str, normalized: bool) -> str:
    return f"{mode}_{'normalized' if normalized else 'texels'}"


def sampled() -> Iterator[Job]:
    """Both filters in one to three axes, with every address mode."""
    for seed, shape in enumerate(SHAPES):
        array, geometry = numbers(shape, np.float32, seed), GEOMETRY[len(shape)]
        for mode, normalized in MODES:
            for filter_ in ("point", "linear"):
                image = ptx.texture(array, filter_, mode, normalized=normalized)
                given = anywhere(shape[::-1], normalized, seed)
                name = f"{filter_}_{geometry}_{_way(mode, normalized)}"
                yield job(name, fetch(geometry, "f32", "f32", count=1), image, given)


def rounded() -> Iterator[Job]:
    """Where one texel ends, and where one weight does."""
    body = fetch("1d", "f32", "f32", count=1)
    for side in (16, 13):
        array = numbers((side,), np.float32, side)
        for mode, normalized in MODES:
            image = ptx.texture(array, "point", mode, normalized=normalized)
            given = boundaries(side, normalized, 1)
            group = "point" if side == 16 and not normalized else "open"
            yield job(f"{group}_boundaries_{side}_{_way(mode, normalized)}", body, image, given)
    ramp = np.array([0, 1, 0, 1 << 20], np.float32)
    for normalized in (False, True):
        image = ptx.texture(ramp, "linear", normalized=normalized)
        yield job(
            f"linear_weights_{_way('clamp', normalized)}",
            body,
            image,
            boundaries(4, normalized, 512),
        )
    square = ptx.texture(np.array([[0, 1], [1 << 12, 1 << 20]], np.float32), "linear")
    given = anywhere((2, 2), False, 5)
    given[:, :2] = np.random.default_rng(6).integers(0, 2 << 10, (COUNT, 2)) / 1024
    yield job("linear_weights_2d", fetch("2d", "f32", "f32", count=1), square, given)
    odd = np.zeros((THREADS, 4), np.float32)
    odd[:9, 0] = np.nan, np.inf, -np.inf, 3e38, -3e38, -0.0, 1e-40, 2.0**31, -(2.0**31)
    for mode, normalized in MODES:
        image = ptx.texture(numbers((13,), np.float32, 8), "point", mode, normalized=normalized)
        yield job(f"open_odd_coordinates_{_way(mode, normalized)}", body, image, odd)
    special = np.array([np.inf, 1, np.nan, 2, -np.inf, -0.0, 1e-40], np.float32)
    yield job(
        "open_linear_infinite", body, ptx.texture(special, "linear"), anywhere((7,), False, 9)
    )


def typed() -> Iterator[Job]:
    """Every type and number of channels; integers as they are, and as fractions."""
    kinds = {"u": "u32", "i": "s32", "f": "f32"}
    given = anywhere((13, 11), False, 11)
    for number, dtype in enumerate(("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")):
        for channels in (1, 2, 4):
            array = numbers((11, 13, channels), dtype, number)
            image = ptx.texture(array, address="border", channels=channels)
            kind = kinds[dtype[0]]
            yield job(
                f"type_{dtype}x{channels}", fetch("2d", kind, "f32", count=channels), image, given
            )
        if dtype[1] in "12" and dtype[0] != "f":
            for filter_ in ("point", "linear"):
                image = ptx.texture(array, filter_, read="normalized", channels=4)
                name = f"{'type' if filter_ == 'point' else 'linear'}_{dtype}_fractions"
                yield job(name, fetch("2d", "f32", "f32"), image, given)
        if dtype in ("u1", "f2", "f4"):
            image = ptx.texture(array[..., :1].copy(), channels=1)
            yield job(f"open_missing_channels_{dtype}", fetch("2d", kind, "f32"), image, given)


def whole() -> Iterator[Job]:
    """Whole coordinates: tex1Dfetch in linear memory, and arrays."""
    rng = np.random.default_rng(12)
    given = rng.integers(-20, 60, (COUNT, 4)).astype(np.int32)
    for dtype, channels, kind in (
        ("f4", 1, "f32"),
        ("f4", 4, "f32"),
        ("u1", 4, "u32"),
        ("i2", 2, "s32"),
        ("f2", 2, "f32"),
    ):
        image = ptx.texture(numbers((37, channels), dtype, 13), channels=channels)
        yield job(
            f"fetch_{dtype}x{channels}", fetch("1d", kind, "s32", count=channels), image, given
        )
    image = ptx.texture(numbers((37, 4), "u1", 14), read="normalized", channels=4)
    yield job("fetch_fractions", fetch("1d", "f32", "s32"), image, given)
    given = rng.integers(-5, 18, (COUNT, 4)).astype(np.int32)
    inside = given % np.array([13, 11, 1, 1], np.int32)
    ways: list[tuple[str, np.ndarray, tuple[AddressMode, ...]]] = [
        ("whole_2d", inside, ("clamp",)),
        ("open_whole_2d", given, ("clamp", "border")),
    ]
    for name, at, modes in ways:
        for mode in modes:
            image = ptx.texture(numbers((11, 13), "f4", 15), "linear", mode)
            yield job(f"{name}_{mode}", fetch("2d", "f32", "s32", count=1), image, at)
    image = ptx.texture(numbers((5, 6, 7), "f4", 16))
    yield job(
        "whole_3d",
        fetch("3d", "f32", "s32", count=1),
        image,
        given % np.array([7, 6, 5, 1], np.int32),
    )


def others() -> Iterator[Job]:
    """Layers, levels, four neighbours, questions."""
    stack = numbers((3, 11, 13), "f4", 17)
    given = anywhere((13, 11), False, 18)
    given[:, 2] = (np.arange(COUNT) % 7 - 2).astype(np.int32).view(np.float32)
    for filter_ in ("point", "linear"):
        image = ptx.texture(stack, filter_, "border", layered=True)
        yield job(f"{filter_}_layers", fetch("a2d", "f32", "f32", count=1), image, given)
    given = anywhere((13, 11), False, 19)
    given[:, 2] = np.arange(COUNT) % 9 - 3.5
    yield job(
        "point_level",
        fetch("2d", "f32", "f32", "level", count=1),
        ptx.texture(stack[0].copy()),
        given,
    )
    four = numbers((11, 13, 4), "f4", 20)
    channels: dict[str, AddressMode] = {"r": "clamp", "g": "border", "b": "clamp", "a": "clamp"}
    for channel, mode in channels.items():
        image = ptx.texture(four, address=mode, channels=4)
        yield job(
            f"point_gather_{channel}", fetch("2d", "f32", "f32", f"tld4.{channel}"), image, given
        )
    given = boundaries(13, False, 512)
    given[:, 1] = 3.25
    yield job(
        "open_gather_boundaries",
        fetch("2d", "f32", "f32", "tld4.r"),
        ptx.texture(four, channels=4),
        given,
    )
    kept = "st.global.v2.b32 [%o], {%r5, %r6};"
    asked = np.zeros((THREADS, 4), np.uint32)
    yield job(
        "open_txq",
        f"txq.width.b32 %r5, [%h]; txq.height.b32 %r6, [%h]; {kept}",
        ptx.texture(stack[0].copy()),
        asked,
    )
    yield job(
        "open_suq",
        f"suq.width.b32 %r5, [%h]; suq.height.b32 %r6, [%h]; {kept}",
        ptx.surface(four, channels=4),
        asked,
    )


# spelling, bytes, registers, type and channels of the surface
ACCESSES = (("b8", 1, "{%s1}", "u1", 1), ("b16", 2, "{%s1}", "i2", 1), ("b32", 4, "{%r5}", "f4", 1), ("b64", 8, "{%l1}", "u4", 2),
            ("v2.b8", 2, "{%s1, %s2}", "u1", 2), ("v4.b16", 8, "{%s1, %s2, %s3, %s4}", "f2", 4), ("v2.b32", 8, "{%r5, %r6}", "i4", 2),
            ("v4.b32", 16, "{%r5, %r6, %r7, %r8}", "f4", 4))  # fmt: skip
PACKED = "mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0; mov.b32 %r8, 0; mov.b16 %s1, 0; mov.b16 %s2, 0; mov.b16 %s3, 0; mov.b16 %s4, 0; mov.b64 %l1, 0;"
KEPT = {
    "%r": "st.global.v4.b32 [%o], {%r5, %r6, %r7, %r8};",
    "%s": "st.global.v4.b16 [%o], {%s1, %s2, %s3, %s4};",
    "%l": "st.global.b64 [%o], %l1;",
}
VALUES = (
    "mad.lo.u32 %r5, %t, 2654435761, 12345; not.b32 %r6, %r5; add.u32 %r7, %r5, 77; add.u32 %r8, %r6, 99; mov.b64 %l1, {%r5, %r6}; "
    "cvt.u16.u32 %s1, %r5; cvt.u16.u32 %s2, %r6; cvt.u16.u32 %s3, %r7; cvt.u16.u32 %s4, %r8;"
)


def surfaces() -> Iterator[Job]:
    shapes = {"1d": (37,), "2d": (11, 13), "3d": (5, 6, 7)}
    places = {"1d": "%r1", "2d": "%r1, %r2", "3d": "%r1, %r2, %r3, %r3"}
    for number, (kind, width, registers, dtype, channels) in enumerate(ACCESSES):
        geometry = ("2d", "1d", "3d")[number % 3]
        shape = shapes[geometry]
        array = numbers((*shape, channels), dtype, 30 + number)
        for boundary in ("trap", "clamp", "zero"):
            rng = np.random.default_rng(40 + number)
            given = rng.integers(-20, 60, (COUNT, 4)).astype(np.int32)
            if boundary == "trap":
                given %= np.array([*shape[::-1], 1, 1, 1], np.int32)[:4]
            given[:, 0] *= width
            words = f"b.{geometry}.{kind}.{boundary}"
            load = f"{PACKED} suld.{words} {registers}, [%h, {{{places[geometry]}}}]; {KEPT[registers[1:3]]}"
            yield job(
                f"surface_load_{words.replace('.', '_')}",
                load,
                ptx.surface(array, channels=channels),
                given,
            )
            # No place is written by two threads.
            given = _once(shape[::-1], width, boundary)
            store = f"{VALUES} setp.ne.u32 %p, %r4, 0; @%p sust.{words} [%h, {{{places[geometry]}}}], {registers};"
            yield job(
                f"surface_store_{words.replace('.', '_')}",
                store,
                ptx.surface(np.zeros_like(array), channels=channels),
                given,
            )


def _once(sides: tuple[int, ...], width: int, boundary: str) -> np.ndarray:
    """Every element once, in the fourth word whether a thread stores at all.

    Where it is allowed the last column and the first row are given by coordinates outside.
    """
    total = int(np.prod(sides))
    given = np.zeros((-(-total // THREADS) * THREADS, 4), np.int32)
    number = np.arange(len(given))
    given[:, 3] = number < total
    for axis, side in enumerate(sides):
        given[:, axis], number = number % side, number // side
    if boundary != "trap":
        given[given[:, 0] == sides[0] - 1, 0] += 5
        if len(sides) > 1:
            given[given[:, 1] == 0, 1] = -3
    given[:, 0] *= width
    return given


def jobs() -> list[Job]:
    return [*sampled(), *rounded(), *typed(), *whole(), *others(), *surfaces()]
