# ruff: noqa: E501 - tables read better with a line each
"""Textures and surfaces: kernels that nvcc compiled, against the guide's rules written out again."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError, UnsupportedError, WarploomError
from warploom.ptx.launch import Kernel
from warploom.ptx.traffic import traffic_rows

GOLDEN = Path(__file__).parent / "golden" / "nvcc" / "texture.ptx"
MODES = ("clamp", "border", "wrap", "mirror")


@lru_cache
def kernel(name: str) -> Kernel:
    return ptx.load(GOLDEN.read_text(), "texture.ptx").kernel(name)


def run(name: str, *args: Any, blocks: Any = None, **options: Any) -> ptx.Report:
    count = args[-1]
    return kernel(name).launch(blocks or -(-count // 64), 64, list(args), **options)


# -- the rules, one texel after another -----------------------------------------------------------


def at_index(i: int, side: int, mode: str) -> int | None:
    if mode == "wrap":
        return i % side
    if mode == "mirror":
        iterations, i = divmod(i, side)
        return side - 1 - i if iterations % 2 else i
    if mode == "border":
        return i if 0 <= i < side else None
    return min(max(i, 0), side - 1)


def parts(
    x: float, side: int, mode: str, normalized: bool, linear: bool
) -> tuple[list[int | None], int]:
    """The texels along one axis, and how much of 256 the second of them weighs."""
    x = float(x) * side if normalized else float(x)
    if not linear:
        return [at_index(floor(x), side, mode)], 0
    fixed = floor((x - 0.5) * 256 + 0.5)
    if mode == "clamp":
        fixed = min(max(fixed, 0), 256 * side - 256)
    return [at_index(fixed // 256 + n, side, mode) for n in (0, 1)], fixed % 256


def weight_of(upper: list[int], corner: tuple[int, ...]) -> int:
    """Of 256, as an H200 shares it out: by z, then by x, then by y, each time in whole parts."""
    share, first = 256, True
    for axis in (2, 0, 1) if len(upper) == 3 else range(len(upper)):
        exact = Fraction(share * upper[axis], 256)
        above = floor(exact + Fraction(1, 2)) if first else ceil(exact - Fraction(1, 2))
        share = above if corner[axis] else share - above
        first = first and bool(corner[axis])
    return share


def single(value: float) -> np.float32:
    """The nearest single, halves away from zero."""
    near = np.float32(value)
    for other in (np.nextafter(near, np.float32(np.inf)), np.nextafter(near, -np.float32(np.inf))):
        tie = abs(Fraction(value) - Fraction(float(near))) == abs(
            Fraction(value) - Fraction(float(other))
        )
        near = other if tie and abs(other) > abs(near) else near
    return near


def looked_up(
    array: np.ndarray,
    point: Any,
    mode: str = "clamp",
    normalized: bool = False,
    linear: bool = False,
) -> Any:
    """`point` goes x, y, z; the array's axes z, y, x."""
    shape = array.shape[: len(point)][::-1]
    axes = [parts(x, side, mode, normalized, linear) for x, side in zip(point, shape, strict=True)]
    if not linear:
        at = tuple(indices[0] for indices, _ in reversed(axes))
        return (
            np.zeros_like(array[0, 0] if array.ndim > len(point) else array.ravel()[0])
            if None in at
            else array[at]
        )
    total: Any = 0.0
    for corner in product((0, 1), repeat=len(axes)):
        at = tuple(indices[n] for (indices, _), n in zip(axes, corner, strict=True))[::-1]
        weight = weight_of([upper for _, upper in axes], corner)
        total = total + (0.0 if None in at else weight * np.asarray(array[at], np.float64))
    return np.vectorize(single)(total / 256)


def points(count: int, sides: tuple[int, ...], normalized: bool, pad: int = 0) -> np.ndarray:
    """Coordinates around an array of these sides, the innermost first, and on every boundary."""
    rng = np.random.default_rng(len(sides) + count)
    out = np.stack([rng.uniform(-1.7 * side - 2, 2.7 * side + 2, count) for side in sides], axis=1)
    out[: count // 4] = np.round(out[: count // 4])
    out[count // 4 : count // 2] = np.round(out[count // 4 : count // 2]) + 0.5
    if normalized:
        out /= sides
    return np.pad(out, ((0, 0), (0, pad))).astype(np.float32)


IMAGE = np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(
    ("mode", "normalized"), [("clamp", False), ("border", False), *((mode, True) for mode in MODES)]
)
def test_address_modes(mode: Any, normalized: bool, linear: bool) -> None:
    volume = np.random.default_rng(4).standard_normal((3, 4, 6)).astype(np.float32)
    count = 130
    for name, array, pad in (("one", IMAGE[2], 0), ("two", IMAGE, 0), ("three", volume, 1)):
        given = points(count, array.shape[::-1], normalized, pad)
        out = np.full(count, np.nan, np.float32)
        made = ptx.texture(array, "linear" if linear else "point", mode, normalized=normalized)
        run(name, made, out, given, count)
        wanted = [
            looked_up(array, row[: array.ndim].tolist(), mode, normalized, linear) for row in given
        ]
        np.testing.assert_array_equal(out, np.array(wanted).astype(np.float32))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_whole_coordinates_are_not_filtered(kind: Any) -> None:
    """tex1Dfetch: what lies outside is zero, whatever the address mode."""
    array = (np.arange(37) + 1).astype(kind)
    for made in (
        ptx.texture(array),
        ptx.texture(array, "linear", "border"),
        ptx.texture(array, address="wrap", normalized=True),
    ):
        out = np.full(70, 9, np.float32)
        run("fetch", made, out, -16, 70)
        np.testing.assert_array_equal(
            out, [array[i - 16] if 0 <= i - 16 < 37 else 0 for i in range(70)]
        )


def test_integers_come_as_they_are() -> None:
    rng = np.random.default_rng(5)
    given = points(99, (7, 5), False)
    for name, kind, channels in (("bytes", np.uint8, 4), ("shorts", np.int16, 2)):
        limits = np.iinfo(kind)
        array = rng.integers(limits.min, limits.max, (5, 7, channels), kind, endpoint=True)
        out = np.zeros((99, channels), kind)
        run(name, ptx.texture(array, address="border", channels=channels), out, given, 99)
        wanted = [
            np.broadcast_to(looked_up(array, row.tolist(), "border"), channels) for row in given
        ]
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int16])
def test_integers_as_fractions(kind: Any, linear: bool) -> None:
    limits = np.iinfo(kind)
    array = np.random.default_rng(6).integers(
        limits.min, limits.max, (5, 7, 4), kind, endpoint=True
    )
    array[0, 0] = limits.min, limits.min + 1, 0, limits.max
    given = points(150, (7, 5), False)
    out = np.zeros((150, 4), np.float32)
    run(
        "fours",
        ptx.texture(array, "linear" if linear else "point", read="normalized", channels=4),
        out,
        given,
        150,
    )
    fractions = np.maximum(array / float(limits.max), -1)
    np.testing.assert_array_equal(
        out,
        np.array([looked_up(fractions, row.tolist(), linear=linear) for row in given], np.float32),
    )
    assert linear or {-1.0 if limits.min else 0.0, 1.0} <= set(out.ravel().tolist())


def test_layers() -> None:
    """Their number has no sign: what is beyond is the last; and it is never filtered."""
    stack = np.random.default_rng(7).standard_normal((3, 5, 7)).astype(np.float32)
    given = points(120, (7, 5), False, 2)
    given[:, 2] = np.arange(120) % 7 - 2
    out = np.zeros(120, np.float32)
    run("layered", ptx.texture(stack, "linear", layered=True), out, given, 120)
    layer = np.where(given[:, 2] < 0, 2, np.minimum(given[:, 2], 2)).astype(int)
    wanted = [
        looked_up(stack[z], row[:2].tolist(), linear=True)
        for z, row in zip(layer, given, strict=True)
    ]
    np.testing.assert_array_equal(out, np.array(wanted, np.float32))
    run("rows", ptx.texture(IMAGE, layered=True), out, given[:, [0, 2]].copy(), 120)
    layer = np.where(given[:, 2] < 0, 4, np.minimum(given[:, 2], 4)).astype(int)
    np.testing.assert_array_equal(
        out, [looked_up(IMAGE[z], [row[0]]) for z, row in zip(layer, given, strict=True)]
    )


def test_a_level_is_the_only_one() -> None:
    given = points(64, (7, 5), False, 2)
    given[:, 2] = np.arange(64) - 9.5
    out = np.zeros(64, np.float32)
    run("level", ptx.texture(IMAGE), out, given, 64)
    np.testing.assert_array_equal(out, [looked_up(IMAGE, row[:2].tolist()) for row in given])


@pytest.mark.parametrize("mode", ["border", "clamp"])
def test_four_neighbours(mode: Any) -> None:
    """Of the coordinate as it is: beside an edge two of them are one."""
    array = np.random.default_rng(8).standard_normal((5, 7, 2)).astype(np.float32)
    given = points(80, (7, 5), False)
    out = np.zeros((80, 4), np.float32)
    run("gather", ptx.texture(array, address=mode, channels=2), out, given, 80)
    for row, found in zip(given.tolist(), out, strict=True):
        xs, ys = (
            [at_index(floor((x - 0.5) * 256 + 0.5) // 256 + n, side, mode) for n in (0, 1)]
            for x, side in zip(row, (7, 5), strict=True)
        )
        wanted = [
            0 if None in (x, y) else array[y, x, 1]
            for x, y in ((xs[0], ys[1]), (xs[1], ys[1]), (xs[1], ys[0]), (xs[0], ys[0]))
        ]
        np.testing.assert_array_equal(found, wanted)


def test_threads_with_different_handles() -> None:
    given = points(90, (7, 5), False)
    out = np.zeros(90, np.float32)
    run(
        "either",
        ptx.texture(IMAGE),
        ptx.texture(-IMAGE[:3, :4].copy(), address="border"),
        out,
        given,
        90,
    )
    wanted = [
        looked_up(IMAGE, row.tolist())
        if i % 3
        else looked_up(-IMAGE[:3, :4], row.tolist(), "border")
        for i, row in enumerate(given)
    ]
    np.testing.assert_array_equal(out, wanted)


def test_odd_coordinates() -> None:
    given = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, -0.0, 6.9999995, 1e-30], np.float32)
    out = np.zeros(8, np.float32)
    run("one", ptx.texture(IMAGE[0].copy()), out, given, 8)
    np.testing.assert_array_equal(out, IMAGE[0, [0, 6, 0, 6, 0, 0, 6, 0]])


# -- surfaces -------------------------------------------------------------------------------------


def test_a_surface_is_read_and_written() -> None:
    made = np.zeros_like(IMAGE)
    kernel("negate").launch((1, 5), 32, [ptx.surface(IMAGE), ptx.surface(made), 7], races=True)
    np.testing.assert_array_equal(made, -IMAGE)


def test_what_lies_outside_a_surface() -> None:
    rng = np.random.default_rng(9)
    pixels = rng.integers(0, 256, (5, 7, 4), np.uint8)
    out = np.zeros((9, 14, 4), np.uint8)
    run("clamped", ptx.surface(pixels, channels=4), out, 14, blocks=(1, 9))
    np.testing.assert_array_equal(out, np.pad(pixels, ((2, 2), (3, 4), (0, 0)), "edge"))
    shorts = rng.integers(-9, 9, (5, 7), np.int16)
    seen = np.full((9, 14), 99, np.int16)
    run("zeroed", ptx.surface(shorts), seen, 14, blocks=(1, 9))
    np.testing.assert_array_equal(seen, np.pad(shorts, ((2, 2), (3, 4))))
    given = rng.standard_normal((9, 14, 4)).astype(np.float32)
    kept = np.zeros((5, 7, 4), np.float32)
    run("dropped", ptx.surface(kept, channels=4), given, 14, blocks=(1, 9), races=True)
    np.testing.assert_array_equal(kept, given[2:7, 3:10])
    line = np.zeros(6, np.int32)
    run("edges", ptx.surface(line), 12)
    np.testing.assert_array_equal(line, [7, 9, 9, 9, 9, 9])


def test_solids_and_layers_of_surfaces() -> None:
    given = np.random.default_rng(10).integers(-9, 9, (3, 4, 5, 2), np.int32)
    made = np.zeros_like(given)
    kernel("solid").launch(
        (4, 3), 8, [ptx.surface(made, channels=2), ptx.surface(given, channels=2, layered=True), 5]
    )
    np.testing.assert_array_equal(made.view(np.int64), given.view(np.int64) + 1)


QUESTIONS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 t, .param .u64 s, .param .u64 out)
{ .reg .b32 %r<9>; .reg .b64 %l<9>;
ld.param.u64 %l1, [t]; ld.param.u64 %l2, [s]; ld.param.u64 %l3, [out];
txq.width.b32 %r1, [%l1]; txq.height.b32 %r2, [%l1]; txq.normalized_coords.b32 %r3, [%l1];
suq.width.b32 %r4, [%l2]; suq.height.b32 %r5, [%l2]; suq.LAST.b32 %r6, [%l2];
st.global.v4.b32 [%l3], {%r1, %r2, %r3, %r4}; st.global.v2.b32 [%l3+16], {%r5, %r6}; ret; }
"""


def test_questions() -> None:
    given, out = np.zeros((3, 4, 5, 2), np.int32), np.zeros(6, np.uint32)
    for last, layered, wanted in (("depth", False, 3), ("array_size", True, 3)):
        made = ptx.surface(given, channels=2, layered=layered)
        image = ptx.texture(IMAGE, normalized=True)
        ptx.load(QUESTIONS.replace("LAST", last), "k.ptx").kernel().launch(1, 1, [image, made, out])
        assert out.tolist() == [7, 5, 1, 5, 4, wanted]
    with pytest.raises(DeviceError, match="this one has no depth"):
        ptx.load(QUESTIONS.replace("LAST", "depth"), "k.ptx").kernel().launch(
            1, 1, [ptx.texture(IMAGE), ptx.surface(IMAGE), out]
        )


# -- what goes wrong ------------------------------------------------------------------------------


def test_races_know_textures_and_surfaces() -> None:
    """A texture is read by the way for data that nobody else writes in the same launch."""
    line = np.zeros(7, np.float32)
    with pytest.raises(DeviceError, match="data race"):
        kernel("both").launch(1, 7, [ptx.texture(line), ptx.surface(line), 7], races=True)
    kernel("both").launch(1, 7, [ptx.texture(line.copy()), ptx.surface(line), 7], races=True)
    np.testing.assert_array_equal(line, np.ones(7))
    with pytest.raises(DeviceError, match="data race"):  # by a pointer
        run("one", ptx.texture(line), line, np.zeros(7, np.float32), 7, races=True)
    with pytest.raises(DeviceError, match="data race"):  # two blocks write one place
        kernel("edges").launch(2, 6, [ptx.surface(np.zeros(6, np.int32)), 12], races=True)


XY, OUT = np.zeros((64, 2), np.float32), np.zeros(64, np.float32)
WRONG: list[tuple[str, list[Any], str]] = [
    ("two", [IMAGE, OUT, XY, 9], "0x7f0000000000 is no handle of a texture; it is an address within argument 0"),
    ("two", [0, OUT, XY, 9], "0x0 is no handle of a texture"),
    ("two", [ptx.surface(IMAGE), OUT, XY, 9], "a texture is needed, and the handle is of the other kind"),
    ("negate", [ptx.texture(IMAGE), ptx.surface(IMAGE), 7], "a surface is needed"),
    ("two", [ptx.texture(IMAGE[0].copy()), OUT, XY, 9], "a texture of 1d"),
    ("two", [ptx.texture(IMAGE, layered=True), OUT, XY, 9], "a texture of a1d"),
    ("two", [ptx.texture(IMAGE.astype(np.int32)), OUT, XY, 9], "a texture of int32 is read as .f32"),
    ("bytes", [ptx.texture(IMAGE), OUT, XY, 9], "a texture of float32 is read as .u32"),
    ("negate", [ptx.surface(IMAGE), ptx.surface(IMAGE[:, :5].copy()), 7], r"out-of-bounds access at \(20, 0\) of a surface of 20 bytes by 5; block \(0,0,0\), thread \(5,0,0\)"),
    ("negate", [ptx.surface(IMAGE[:3].copy()), ptx.surface(IMAGE), 7], r"at \(0, 3\) of a surface of 28 bytes by 3"),
    ("clamped", [ptx.surface(IMAGE.astype(np.int16)), OUT, 9], "4 bytes at once, of a surface whose elements have 2"),
    ("two", [ptx.texture(IMAGE), ptx.texture(IMAGE), XY, 9], "it lies in argument 1 .*, which is a handle and no memory"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "message"), WRONG)
def test_mistakes_are_told_where_they_are(name: str, args: list[Any], message: str) -> None:
    with pytest.raises(DeviceError, match=message) as caught:
        kernel(name).launch((1, 5), 32, args)
    assert caught.value.span is not None


def test_a_handle_has_64_bits() -> None:
    with pytest.raises(DeviceError, match="no handle of 64 bits"):
        run("two", ptx.texture(IMAGE), OUT, XY, ptx.texture(IMAGE), blocks=1)


def test_misaligned_bytes_of_a_surface() -> None:
    text = QUESTIONS.replace(
        "suq.LAST.b32 %r6, [%l2];", "mov.u32 %r7, 6; suld.b.2d.b32.clamp {%r6}, [%l2, {%r7, %r7}];"
    )
    with pytest.raises(
        DeviceError, match="x is a byte, and 6 is no multiple of the 4 that are accessed"
    ):
        ptx.load(text, "k.ptx").kernel().launch(
            1, 1, [ptx.texture(IMAGE), ptx.surface(IMAGE), np.zeros(6, np.uint32)]
        )


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: ptx.texture([1.0]), "not of a list"), (lambda: ptx.texture(IMAGE.astype(np.float64)), "type float64"),  # type: ignore[arg-type]
    (lambda: ptx.texture(IMAGE.astype(">f4")), "type >f4"), (lambda: ptx.texture(IMAGE[:, ::2]), "not contiguous"),
    (lambda: ptx.texture(np.zeros((2, 2, 2, 2), np.float32)), "an array of 4 axes"),
    (lambda: ptx.texture(np.zeros((2, 2, 2, 2), np.float32), layered=True), "an array of 3 axes"),
    (lambda: ptx.texture(np.float32(1)), "not of a float32"), (lambda: ptx.texture(np.zeros((), np.float32)), "an array of 0 axes"),  # type: ignore[arg-type]
    (lambda: ptx.texture(IMAGE, channels=3), "1, 2 or 4 channels"), (lambda: ptx.texture(IMAGE, channels=4), "does not hold 4 channels"),
    (lambda: ptx.texture(np.zeros((0, 4), np.float32)), "a side of 0"), (lambda: ptx.texture(np.zeros((1, 1, 16385), np.uint8)), "a side of 16385"),
    (lambda: ptx.surface(np.zeros((2049, 1), np.uint8), layered=True), "2049 layers"),
    (lambda: ptx.texture(IMAGE, "cubic"), "no filter 'cubic'"), (lambda: ptx.texture(IMAGE, address="repeat"), "no address mode 'repeat'"),  # type: ignore[arg-type]
    (lambda: ptx.texture(IMAGE, read="raw"), "no way to read 'raw'"), (lambda: ptx.texture(IMAGE, address="wrap"), "needs normalized=True"),  # type: ignore[arg-type]
    (lambda: ptx.texture(IMAGE, read="normalized"), "cannot be read as fractions"),
    (lambda: ptx.texture(IMAGE.astype(np.int32), read="normalized"), "cannot be read as fractions"),
    (lambda: ptx.texture(IMAGE.astype(np.uint8), "linear"), "cannot be filtered"), (lambda: ptx.surface("x"), "not of a str"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_no_texture_is_made_of(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(WarploomError, match=message):
        make()


def test_a_surface_of_what_may_not_be_written() -> None:
    frozen = np.zeros_like(IMAGE)
    frozen.setflags(write=False)
    with pytest.raises(DeviceError, match="stores to constant memory"):
        kernel("negate").launch((1, 5), 32, [ptx.surface(IMAGE), ptx.surface(frozen), 7])


@pytest.mark.parametrize(
    "line",
    ["tex.grad.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%l1,{%f5,%f6}], {%f1,%f2}, {%f3,%f4};", "tex.2d.v2.f16x2.f32 {%r1,%r2}, [%l1,{%f5,%f6}];",
     "sust.p.1d.b32.trap [%l1,{%r2}], {%r1};", "sured.b.add.1d.u32.trap [%l1,{%r2}], %r1;", "istypep.texref %p1, %l1;",
     "tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [image,{%f5,%f6}];", "tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%l1,%l2,{%f5,%f6}];"],
)  # fmt: skip
def test_what_is_not_run_is_refused(line: str) -> None:
    text = (".version 8.0\n.target sm_80\n.address_size 64\n.global .texref image;\n.visible .entry k()\n"
            "{ .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>; mov.b64 %l1, 0; mov.b64 %l2, 0; mov.f32 %f5, 0f00000000; mov.f32 %f6, 0f00000000;\n" + line + "\nret; }\n")  # fmt: skip
    with pytest.raises(UnsupportedError, match="does not know") as caught:
        ptx.load(text, "k.ptx").kernel().launch(1, 1, [])
    assert caught.value.span is not None


def test_cubes_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"tex\.cube"):
        run("cube", ptx.texture(IMAGE), OUT, np.zeros((9, 4), np.float32), 9)


def test_the_fast_engine_leaves_them_to_the_evaluator() -> None:
    assert "tex.2d" in kernel("two").why_not_fast()
    assert "suld.b.2d" in kernel("negate").why_not_fast()


PLAIN = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 t, .param .u64 out)
{ .reg .b32 %r<9>; .reg .b64 %l<9>; mov.u32 %r1, 5; ld.param.u64 %l1, [t]; ld.param.u64 %l2, [out]; BODY st.global.u32 [%l2], %r1; ret; }
"""


@pytest.mark.parametrize("engine", ["c", "numpy"])
def test_a_handle_is_no_address(engine: Any) -> None:
    """One that nobody uses is no reason to leave a kernel to the evaluator."""
    out = np.zeros(1, np.uint32)
    plain = ptx.load(PLAIN.replace("BODY", ""), "k.ptx").kernel()
    plain.launch(1, 1, [ptx.texture(IMAGE), out], engine=engine)
    assert (plain.why_not_fast(), out[0]) == ("", 5)
    loading = ptx.load(PLAIN.replace("BODY", "ld.global.u32 %r1, [%l1];"), "k.ptx").kernel()
    with pytest.raises(DeviceError, match="which is a handle and no memory"):
        loading.launch(1, 1, [ptx.texture(IMAGE), out], engine=engine)


def test_a_report_counts_them() -> None:
    report = run("two", ptx.texture(IMAGE), OUT, XY, 50, counters=True)
    (row,) = [
        row for row in traffic_rows(kernel("two"), report) if row.instruction.startswith("tex")
    ]
    assert (row.what, row.space, row.requests, row.lanes, row.sectors) == (
        "reads",
        "texture",
        2,
        50,
        None,
    )
