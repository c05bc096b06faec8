"""More sketches of a user's own, in all shapes: strides, halos, several inputs and outputs, planes,
parts of a warp, shared memory, every element type. Each with what it does, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom import Sketch, spec, warp_sketch
from warploom.kernel.dtype import coded, decoded
from warploom.pipeline.compiled import Compiled
from warploom.sketch.simt.trace import Tracer

Shape = int | tuple[int, ...]

LENGTHS = (7, 33, 131, 256)


@dataclass(frozen=True)
class Variation:
    """`shapes(n)` are those of the inputs for about n elements, `expected(n, …)` the outputs."""

    name: str
    subject: Any
    shapes: Callable[[int], list[Shape]]
    expected: Callable[..., list[Any]]
    options: dict[str, Any] = field(default_factory=dict)


def whole(n: int, tile: int) -> int:
    """As many as whole tiles have."""
    return -(-n // tile) * tile


def _exchanged(s: Sketch, value: Any) -> Any:
    for function in ("row_linear", "col_linear", "row_linear"):
        value = s.hole(function, value)
    return value


def sums(lanes: int, registers: int, dtype: str = "float32") -> Variation:
    s = Sketch("sums")
    loaded = s.apply("load_rep", s.input("x", lanes * registers), shape=(lanes, registers))
    s.sum("identity", _exchanged(s, loaded))
    s.goal(lambda x: x.reshape(lanes, registers).sum(axis=1))
    return Variation(
        f"sums of {registers} {dtype}, {lanes} lanes",
        s,
        lambda n: [registers * n],
        lambda n, x: [x.reshape(n, registers).sum(axis=1, dtype=x.dtype)],
        {"dtype": dtype},
    )


def norms() -> Variation:
    s = Sketch("squares of complex numbers")
    moved = _exchanged(s, s.apply("load_rep", s.input("x", 32), shape=(16, 2)))
    s.sum("identity", s.product("stack", moved, moved))
    s.goal(lambda x: (x.reshape(16, 2) * x.reshape(16, 2)).sum(axis=1))

    def square(n: int, x: Any) -> list[Any]:
        return [(x.reshape(n, 2) ** 2).sum(axis=1)]

    return Variation("squares of complex numbers", s, lambda n: [2 * n], square)


def weighted() -> Variation:
    s = Sketch("structures by weights")
    x, w = s.input("x", 48), s.input("w", 3, step=0)
    moved = _exchanged(s, s.apply("load_rep", x, shape=(16, 3)))
    s.sum("identity", s.product("stack", moved, s.apply("broadcast", w, shape=(16, 3))))
    s.goal(lambda x, w: [sum(x[3 * i + j] * w[j] for j in range(3)) for i in range(16)])
    return Variation(
        "structures by weights",
        s,
        lambda n: [3 * n, 3],
        lambda n, x, w: [(x.reshape(n, 3) * w).sum(axis=1)],
    )


def parities() -> Variation:
    s = Sketch("parities")
    s.fold(
        "identity",
        _exchanged(s, s.apply("load_rep", s.input("x", 64), shape=(16, 4))),
        operator="^",
    )
    s.goal(lambda x: np.bitwise_xor.reduce(x.reshape(16, 4), axis=1))
    return Variation(
        "parities of four",
        s,
        lambda n: [4 * n],
        lambda n, x: [np.bitwise_xor.reduce(x.reshape(n, 4), axis=1)],
        {"dtype": "uint32"},
    )


def interleaved() -> Variation:
    s = Sketch("three planes interleaved")
    planes = [s.input(name, 16) for name in "abc"]
    s.apply("transpose", _exchanged(s, s.apply("stack", *planes)), shape=(3, 16))
    s.goal(lambda a, b, c: np.stack([a, b, c], axis=-1).reshape(3, 16))
    return Variation(
        "three planes interleaved",
        s,
        lambda n: [n, n, n],
        lambda n, *planes: [np.stack(planes, axis=-1).reshape(3 * n)],
        {"dtype": "uint8"},
    )


def exclusive(lanes: int = 16) -> Variation:
    s, lane = Sketch("running sums before each"), np.arange(lanes)
    back = {str(d): np.where(lane < d, -1, lane - d) for d in (1, 2, 3, 4, 8)}
    value = s.choices(back, s.input("x", lanes))
    for _ in range(4):
        value = s.sum("stack", value, s.choices(back, value))
    s.goal(lambda x: [spec.total(x[:i]) for i in range(lanes)])

    def expected(n: int, x: Any) -> list[Any]:
        rows = x.reshape(-1, lanes)
        return [(np.cumsum(rows, axis=1) - rows).reshape(-1)[:n]]

    return Variation("exclusive scan", s, lambda n: [whole(n, lanes)], expected, {"dtype": "int64"})


@warp_sketch
def strided(k: Tracer, lanes: int = 16) -> None:
    """Four weighted taps at every third place."""
    lane = k.warp(lanes)
    x, w = k.input("x", 3 * lanes + 1, step=3 * lanes), k.constant("w", 4)
    y, total = k.output("y", lanes), k.accumulator("+", "*")
    for i in k.loop(4):
        total.add(x[lane * 3 + i], w[i])
    y[lane] = total.value()


@strided.specification
def _strided(x: Any, w: Any, lanes: int) -> Any:
    return [spec.total([x[3 * i + j] * w[j] for j in range(4)]) for i in range(lanes)]


@warp_sketch
def largest(k: Tracer, rows: int = 4, columns: int = 8) -> None:
    """The largest of 3 × 3 neighbours, of tiles in a plane."""
    r, c = k.warp(rows, columns)
    x = k.input("x", (rows + 2, columns + 2), step=(rows, columns))
    y, most = k.output("y", (rows, columns)), k.accumulator("max")
    for i in k.loop(3):
        for j in k.loop(3):
            most.add(x[r + i, c + j])
    y[r, c] = most.value()


@largest.specification
def _largest(x: Any, rows: int, columns: int) -> Any:
    return [
        [spec.maximum(x[i : i + 3, j : j + 3].reshape(-1)) for j in range(columns)]
        for i in range(rows)
    ]


@warp_sketch
def turned(k: Tracer, n: int = 4) -> None:
    """Every 4 × 4 tile of a plane is transposed where it stands."""
    r, c = k.warp(n, n)
    x, y = k.input("x", (n, n)), k.output("y", (n, n))
    y[r, c] = k.shuffle(x[r, c], (c, r))


@turned.specification
def _turned(x: Any, n: int) -> Any:
    del n
    return x.T


@warp_sketch
def crossed(k: Tracer, lanes: int = 32) -> None:
    """The lesser of two inputs, the second from a lane that is a hole."""
    lane = k.warp(lanes)
    a, b, y = k.input("a", lanes), k.input("b", lanes), k.output("y", lanes)
    least = k.accumulator("min")
    least.add(a[lane])
    least.add(k.shuffle(b[lane], k.bits(lane, lanes)))
    y[lane] = least.value()


@crossed.specification
def _crossed(a: Any, b: Any, lanes: int) -> Any:
    return [spec.minimum([a[i], b[i ^ 5]]) for i in range(lanes)]


@warp_sketch
def records(k: Tracer, lanes: int = 32) -> None:
    """Of records of five numbers three are added up, two become planes."""
    lane = k.warp(lanes)
    x = k.input("x", 5 * lanes)
    t, u, v = (k.output(name, lanes) for name in "tuv")
    loaded = k.load(x, rounds=5)
    before = k.permute(loaded, lambda i: k.swizzle(i, 5, lane))
    moved = k.registers(5)
    for i in k.loop(5):
        moved[i] = k.shuffle(before[i], k.swizzle(lane, lanes, i))
    own = k.permute(moved, lambda i: k.swizzle(i, 5, lane))
    total = k.accumulator("+")
    for i in k.loop(3):
        total.add(own[i])
    t[lane], u[lane], v[lane] = total.value(), own[3], own[4]


@records.specification
def _records(x: Any, lanes: int) -> Any:
    rows = x.reshape(lanes, 5)
    return rows[:, :3].sum(axis=1), rows[:, 3], rows[:, 4]


@warp_sketch
def through_shared(k: Tracer, lanes: int = 64) -> None:
    """Reversed through shared memory, by 64 lanes."""
    lane = k.warp(lanes)
    x, y, s = k.input("x", lanes), k.output("y", lanes), k.shared("s", lanes)
    s[lane] = x[lane]
    k.barrier()
    y[lane] = s[lanes - 1 - lane]


@through_shared.specification
def _through_shared(x: Any, lanes: int) -> Any:
    del lanes
    return x[::-1]


def _plane(n: int) -> Shape:
    return n // 3 + 3, n + 2


def _tiles_turned(x: Any) -> Any:
    rows, columns = x.shape
    tiles = x.reshape(rows // 4, 4, columns // 4, 4)
    return tiles.transpose(0, 3, 2, 1).reshape(rows, columns)


def _windows(x: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3)).max(axis=(2, 3))


def _crossing(n: int, a: Any, b: Any) -> list[Any]:
    i = np.arange(n)
    return [np.minimum(a[:n], b[i // 32 * 32 + (i % 32 ^ 5)])]


def _of_records(n: int, x: Any) -> list[Any]:
    rows = x.reshape(n, 5)
    return [rows[:, :3].sum(axis=1), rows[:, 3], rows[:, 4]]


TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float64")


def variations() -> Iterator[Variation]:
    yield Variation(
        "strided taps with weights",
        strided,
        lambda n: [3 * n + 1, 4],
        lambda n, x, w: [np.array([(x[3 * i : 3 * i + 4] * w).sum() for i in range(n)], x.dtype)],
    )
    yield Variation(
        "largest neighbours", largest, lambda n: [_plane(n)], lambda n, x: [_windows(x)]
    )
    yield Variation(
        "tiles transposed", turned, lambda n: [(8, 4 * n)], lambda n, x: [_tiles_turned(x)]
    )
    yield Variation("two inputs crossed", crossed, lambda n: [n, whole(n, 32)], _crossing)
    yield Variation("records, summed and split", records, lambda n: [5 * n], _of_records)
    yield Variation(
        "reversed by 16 lanes",
        through_shared.at(lanes=16),
        lambda n: [whole(n, 16)],
        lambda n, x: [x.reshape(-1, 16)[:, ::-1].reshape(-1)[:n]],
    )
    yield from (norms(), weighted(), parities(), exclusive(), interleaved())
    yield from (sums(lanes, 3) for lanes in (1, 2, 5, 8, 12, 24, 32))
    yield from (sums(8, 4, dtype) for dtype in TYPES)
    yield from (sums(16, 2, dtype) for dtype in ("float16", "bfloat16"))


def run(
    variation: Variation,
    made: Compiled,
    n: int,
    seed: int,
    move: Callable[[Any], Any] = lambda array: array,
) -> list[bool]:
    """Whole numbers, so that sums are exact, small enough for every type; `move` takes arrays to
    where the kernel runs, `get` brings outputs back, where they have it."""
    dtype = made.tiled.dtype
    draw = np.random.default_rng(seed)
    numbers = [draw.integers(0, 9, shape) for shape in variation.shapes(n)]
    kind = np.float32 if dtype.is_code else dtype.numpy
    wanted = variation.expected(n, *(each.astype(kind) for each in numbers))
    given: list[Any] = [each.astype(kind) for each in numbers]
    outputs: list[Any] = [np.full(each.shape, 99, kind) for each in wanted]
    if dtype.is_code:
        given, outputs = ([coded(each, dtype) for each in some] for some in (given, outputs))
    there = [move(each) for each in outputs]
    by_value = {each.name for each in made.kernel.arrays if each.space == "constant"}
    pairs = zip(given, made.tiled.tiling.inputs, strict=True)
    moved = [each if array.name in by_value else move(each) for each, array in pairs]
    made(*moved, *there)
    outputs = [each.get() if hasattr(each, "get") else each for each in there]
    if dtype.is_code:
        outputs = [decoded(each, dtype) for each in outputs]
    return [np.array_equal(got, want) for got, want in zip(outputs, wanted, strict=True)]
