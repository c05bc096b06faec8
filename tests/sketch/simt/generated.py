"""Random warp sketches with what they must compute, by a model of their own in plain Python.

A sketch is a chain of stages: registers are loaded from tiles, moved between lanes and through
shared memory, combined, and stored. The model moves lists of input elements the same way, one lane
after the other, and knows nothing of terms; the specification is what it ends with. Some sketches
are spoiled on purpose after that: those must not be called proved unless they are right.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from bench.common.narrowed import of
from tests.sketch.simt.stages import (
    INIT,
    Cell,
    Cells,
    Moved,
    Reduced,
    Shared,
    Stage,
    Turned,
    holds,
)

from warploom.index.ir import Expr
from warploom.kernel.dtype import DType, f32, i32
from warploom.sketch.simt.function import SketchFunction, sketch
from warploom.sketch.simt.trace import ArrayHandle, Tracer
from warploom.sketch.term import spec

Numbers: TypeAlias = npt.NDArray[Any]

OPERATORS: dict[DType, tuple[str, ...]] = {
    i32: ("+", "+", "*", "^", "|", "&"),
    f32: ("+", "+", "*", "max", "min"),
}
SPELLED: dict[str, Callable[[Any], Any]] = {
    "+": spec.total, "*": spec.product, "max": spec.maximum, "min": spec.minimum,
    "^": spec.bit_xor, "|": spec.bit_or, "&": spec.bit_and,
}  # fmt: skip
UFUNCS: dict[str, np.ufunc] = {
    "+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum,
    "^": np.bitwise_xor, "|": np.bitwise_or, "&": np.bitwise_and,
}  # fmt: skip


@dataclass(frozen=True)
class Tiled:
    """A global array: the shape of its tile, and how far apart tiles are (none: a constant)."""

    shape: tuple[int, ...]
    step: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A sketch, and what each cell of each output must hold."""

    made: SketchFunction
    dtype: DType
    warps: int
    operator: str
    inputs: dict[str, Tiled]
    outputs: dict[str, tuple[Tiled, list[Cell]]]
    doubled: bool  # the last accumulator is finished by doubling
    right: bool  # what is recorded, with the holes that were meant, gives what is wanted
    words: str


def generated(seed: int) -> Case:
    random = Random(seed)
    return _window(random) if random.random() < 0.2 else _chain(random)


# -- chains --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ends:
    """How registers are loaded and stored: lane·a + i·b + c."""

    load: tuple[int, int, int]
    store: tuple[int, int, int]
    tile: int  # of the input
    step: int
    out: int  # tile of the output
    rows: bool = False  # the output has an axis for registers
    second: bool = False  # another output, backwards


def _chain(random: Random) -> Case:
    lanes, count = random.choice((4, 8, 8, 16, 32)), random.choice((1, 1, 2, 3))
    dtype = random.choice((i32, f32))
    by = random.choice(OPERATORS[dtype])
    stages: list[Stage] = []
    registers, plain = count, True
    for _ in range(random.choice((0, 1, 1, 2, 2, 3))):
        stage = _stage(random, lanes, registers, plain and by == "+")
        stages.append(stage)
        plain = plain and not isinstance(stage, Reduced) and not getattr(stage, "combined", False)
        registers = 1 if isinstance(stage, Reduced) else registers
    doubled = isinstance(stages[-1], Reduced) and random.random() < 0.3 if stages else False
    if doubled:
        stages[-1] = replace(of(Reduced, stages[-1]), doubled=True)
    ends = _ends(random, lanes, count, registers)
    spoiled, spoils = _spoiled(random, stages, ends)
    words = f"{lanes} lanes, {by} of {dtype!r}: {ends} {stages}{spoils}"
    return _case(random, lanes, count, by, dtype, (stages, ends), spoiled, doubled, words)


def _stage(random: Random, lanes: int, count: int, plain: bool) -> Stage:
    kinds = ["moved", "combined", "combined", "shared", "shared"]
    kinds += ["turned", "reduced", "reduced"] if count > 1 else []
    match random.choice(kinds):
        case "moved":
            kind = random.choice(("rotate", "xor", "reverse", "group"))
            hole = {"rotate": "swizzle", "xor": "bits"}.get(kind, "")
            hole = hole if random.random() < 0.7 and lanes <= 16 else ""
            return Moved(kind, random.randrange(1, lanes), hole=hole)
        case "combined":
            kind = random.choice(("rotate", "xor", "up", "up"))
            when = "above" if kind == "up" else random.choice(("always", "always", "below"))
            hole = {"rotate": "swizzle", "xor": "bits"}.get(kind, "")
            hole = hole if random.random() < 0.4 and lanes <= 8 else ""
            return Moved(kind, 1 << random.randrange(3), True, when, hole)
        case "shared":
            pair = random.choice(
                (("rows", "columns"), ("columns", "rows"), ("rows", "rotated"), ("beside", "rows"))
            )
            pad = (
                random.choice((0, 0, 1)) if pair in (("rows", "rotated"), ("beside", "rows")) else 0
            )
            open_ = pair[1] == "rotated" and random.random() < 0.5 and lanes <= 16
            reused = not open_ and random.random() < 0.3
            return Shared(*pair, random.randrange(3), pad, reused=reused, hole=open_)
        case "turned":
            return Turned(random.randrange(1, 3))
        case _:
            when = random.choice(("always", "always", "above", "below"))
            open_ = lanes <= 16 and random.random() < 0.3
            return Reduced(when, plain and random.random() < 0.4, hole=open_)


def _ends(random: Random, lanes: int, count: int, registers: int) -> Ends:
    load = random.choice(((1, lanes, 0), (count, 1, 0), (1, 1, 0), (1, 1, -1), (2, 1, 1)))
    reach = [lane * load[0] + i * load[1] + load[2] for lane in range(lanes) for i in range(count)]
    rows = random.random() < 0.25
    wide, shift = random.choice(((True, 0), (True, 0), (False, 0), (True, 2)))
    store = (1, lanes, -shift) if wide or rows else (registers, 1, -shift)
    out = lanes if rows else lanes * registers
    out = max(1, out - random.choice((0, 0, 0, 1, 2)) - shift)
    tile = max(reach) + 1
    step = random.choice((out, out, tile, max(out * 2, tile)))
    return Ends(load, store, tile, step, out, rows, random.random() < 0.15)


def _spoiled(
    random: Random, stages: list[Stage], ends: Ends
) -> tuple[tuple[list[Stage], Ends], str]:
    """What is recorded: the same, or one thing changed."""
    if random.random() < 0.6:
        return (stages, ends), ""
    changed = list(stages)
    options: list[Callable[[], Ends]] = [
        lambda: replace(ends, tile=max(1, ends.tile - 1)),
        lambda: replace(ends, load=(*ends.load[:2], ends.load[2] + 1)),
        lambda: replace(ends, store=(*ends.store[:2], ends.store[2] - 1)),
    ]
    at = random.randrange(len(stages)) if stages else 0
    stage = stages[at] if stages else None

    def swap(other: Stage) -> Callable[[], Ends]:
        def change() -> Ends:
            changed[at] = other
            return ends

        return change

    match stage:
        case Shared():
            options = [swap(replace(stage, barriers=b)) for b in ("-b", "b-", "--")]
            options.append(swap(replace(stage, shift=stage.shift + 1)))
        case Moved(hole=""):
            options = [swap(replace(stage, by=stage.by + 1)), swap(replace(stage, when="below"))]
        case Reduced():
            options.append(swap(replace(stage, off=1)))
        case _:
            pass
    recorded = random.choice(options)()
    return (changed, recorded), f" spoiled: {recorded} {changed}"


def _case(
    random: Random,
    lanes: int,
    count: int,
    by: str,
    dtype: DType,
    meant: tuple[list[Stage], Ends],
    recorded: tuple[list[Stage], Ends],
    doubled: bool,
    words: str,
) -> Case:
    ends = meant[1]
    tile = {"x": Tiled((recorded[1].tile,), (recorded[1].step,))}
    if any(isinstance(stage, Reduced) and stage.weighted for stage in recorded[0]):
        tile["w"] = Tiled((count,), ())
    wanted = _outputs(*meant, lanes, count)
    outputs = {name: [_existing(c, tile) for c in each] for name, each in wanted.items()}
    found = _outputs(*recorded, lanes, count)
    registers = 1 if any(isinstance(stage, Reduced) for stage in meant[0]) else count
    shape = (registers, ends.out) if ends.rows else (ends.out,)

    @sketch
    def chain(k: Tracer) -> None:
        stages, ends = recorded
        lane = k.warp(lanes)
        x = k.input("x", ends.tile, step=ends.step)
        handles = [k.output(name, shape) for name in outputs]
        r = k.registers(count)
        a, b, c = ends.load
        for i in k.loop(count):
            r[i] = x[lane * a + i * b + c]
        for stage in stages:
            r = stage.record(k, r, lane, lanes, by)
        a, b, c = ends.store
        for number, y in enumerate(handles):
            own = lanes - 1 - lane if number else lane
            for i in k.loop(registers):
                if ends.rows:
                    y[i, own * a + c] = r[i]
                else:
                    y[own * a + i * b + c] = r[i]

    right = all(
        _same(*pair) for name in wanted for pair in zip(outputs[name], found[name], strict=True)
    )
    tiled = {name: (Tiled(shape, shape), each) for name, each in outputs.items()}
    case = Case(chain, dtype, random.randrange(1, 5), by, tile, tiled, doubled, right, words)
    chain.specification(_specification(case))
    return case


def _same(one: Cell, other: Cell) -> bool:
    return one is not None and other is not None and sorted(one) == sorted(other)


def _outputs(stages: list[Stage], ends: Ends, lanes: int, count: int) -> dict[str, list[Cell]]:
    """What each output cell holds at the end."""
    cells: Cells = [[_loaded(ends, lane, i) for i in range(count)] for lane in range(lanes)]
    for stage in stages:
        cells = stage.model(cells)
    shape = (len(cells[0]), ends.out) if ends.rows else (ends.out,)
    outputs = {"y": _stored(ends, cells, shape)}
    if ends.second:
        outputs["z"] = _stored(ends, cells[::-1], shape)
    return outputs


def _loaded(ends: Ends, lane: int, i: int) -> Cell:
    place = lane * ends.load[0] + i * ends.load[1] + ends.load[2]
    return (((("x", (place,)),)),) if 0 <= place < ends.tile else None


def _stored(ends: Ends, cells: Cells, shape: tuple[int, ...]) -> list[Cell]:
    result = np.empty(shape, object)
    a, b, c = ends.store
    for lane, row in enumerate(cells):
        for i, cell in enumerate(row):
            place = (i, lane * a + c) if ends.rows else (lane * a + i * b + c,)
            if all(0 <= p < n for p, n in zip(place, shape, strict=True)):
                result[place] = cell
    return result.reshape(-1).tolist()


# -- windows of two axes -------------------------------------------------------------------------


def _window(random: Random) -> Case:
    rows, columns = random.choice(((2, 4), (4, 4), (4, 8)))
    taps = random.randrange(1, 4), random.randrange(1, 4)
    dtype = random.choice((i32, f32))
    by = random.choice(OPERATORS[dtype])
    cut, shared = random.randrange(2), random.random() < 0.5
    above = random.choice((0, 0, 1))  # windows that begin a row before the tile
    low = random.random() < 0.3  # only the lower triangle of a window
    halo = random.choice((0, 0, 0, 1))  # that is missing
    tile = rows + taps[0] - 1 - above, columns + taps[1] - 1
    out = rows, columns - cut
    tile = tile[0], max(1, tile[1] - halo)
    steps = (rows, out[1])
    words = f"{rows} × {columns} lanes, {by} of {dtype!r}, taps {taps}, out {out}, tile {tile}"

    def used(row: Any, i: Any, j: Any) -> Any:
        first = holds(row + i, ">=", above)
        if not low:
            return first
        second = holds(i, ">=", j)
        return first.and_(second) if isinstance(first, Expr) else first and second

    def cell(row: int, column: int) -> Cell:
        window = itertools.product(range(taps[0]), range(taps[1]))
        return tuple(
            ((("x", (row + i - above, column + j)),)) for i, j in window if used(row, i, j)
        )

    @sketch
    def window(k: Tracer) -> None:
        row, column = k.warp(rows, columns)
        x, y = k.input("x", tile, step=steps), k.output("y", out)
        source: ArrayHandle = x
        if shared:
            rounds = tuple(-(-n // m) for n, m in zip(tile, (rows, columns), strict=True))
            source = k.shared("s", tile)
            k.copy(x, source, rounds=rounds)
        total = k.accumulator(by, init=INIT.get(by))
        for i in k.loop(taps[0]):
            for j in k.loop(taps[1], "j"):
                total.add(source[row + i - above, column + j], when=used(row, i, j))
        y[row, column] = total.value()

    inside = {"x": Tiled(tile, steps)}
    wanted = [cell(row, column) for row in range(out[0]) for column in range(out[1])]
    cells = [_existing(each, inside) for each in wanted]
    outputs = {"y": (Tiled(out, out), cells)}
    right = None not in cells
    case = Case(window, dtype, random.randrange(1, 4), by, inside, outputs, False, right, words)
    window.specification(_specification(case))
    return case


def _existing(cell: Cell, inputs: dict[str, Tiled]) -> Cell:
    """The cell, if all it needs is in the tiles that the sketch declares."""
    for name, place in (factor for item in cell or () for factor in item):
        if not all(0 <= p < n for p, n in zip(place, inputs[name].shape, strict=True)):
            return None
    return cell


# -- what they must compute ----------------------------------------------------------------------


def _specification(case: Case) -> Callable[..., Any]:
    """Of the sketch's arrays; a cell that nobody may rely on is asked to hold the first element."""

    def wanted(*arrays: Any) -> Any:
        given = dict(zip(case.inputs, arrays, strict=True))
        results = [
            np.array([_symbolic(case, each, given) for each in cells], object).reshape(tiled.shape)
            for tiled, cells in case.outputs.values()
        ]
        return results[0] if len(results) == 1 else results

    return wanted


def _symbolic(case: Case, cell: Cell, given: dict[str, Any]) -> Any:
    if cell is None:
        return given["x"].reshape(-1)[0]
    items = [_product([given[name][place] for name, place in item]) for item in cell]
    result = SPELLED[case.operator](items)
    return spec.finalized("doubled", result, lambda value: value * 2) if case.doubled else result


def _product(factors: list[Any]) -> Any:
    return factors[0] if len(factors) == 1 else spec.product(factors)


def numbers(case: Case, random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    """Numbers with which every result is exact."""
    if case.dtype is i32:
        return random.integers(-(1 << 31), 1 << 31, shape).astype(np.int32)
    return random.integers(1, 3, shape).astype(np.float32)


def places(case: Case, output: str, shape: tuple[int, ...]) -> Iterator[tuple[Any, Any, Cell]]:
    """Each element of a whole output: where it is, in which tile, and what it is made of."""
    tiled, cells = case.outputs[output]
    for where in np.ndindex(shape):
        tile = tuple(w // n for w, n in zip(where, tiled.shape, strict=True))
        inner = tuple(w % n for w, n in zip(where, tiled.shape, strict=True))
        yield where, tile, cells[int(np.ravel_multi_index(inner, tiled.shape))]


def absolute(case: Case, tile: tuple[int, ...], name: str, place: tuple[int, ...]) -> Any:
    """Where an element of a tile lies in the whole input: the last axes go together."""
    steps = case.inputs[name].step
    if not steps:
        return place
    own = tile[-len(steps) :]
    return tuple(t * s + p for t, s, p in zip(own, steps, place, strict=True))


def least(case: Case, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs that hold just what these outputs need."""
    needed = {name: np.ones(len(tiled.shape), int) for name, tiled in case.inputs.items()}
    for output, shape in shapes.items():
        for _, tile, cell in places(case, output, shape):
            for name, place in (factor for item in cell or () for factor in item):
                end = np.array(absolute(case, tile, name, place)) + 1
                needed[name] = np.maximum(needed[name], end)
    constant = {name: t.shape for name, t in case.inputs.items() if not t.step}
    return {name: tuple(map(int, each)) for name, each in needed.items()} | constant


def reference(case: Case, arrays: dict[str, Numbers], output: str, shape: Any) -> Numbers:
    """The whole output, element by element, in plain NumPy."""
    result = np.empty(shape, case.dtype.numpy)
    for where, tile, cell in places(case, output, shape):
        assert cell is not None
        items = [
            np.multiply.reduce(
                [arrays[name][absolute(case, tile, name, place)] for name, place in item]
            ).astype(case.dtype.numpy)
            for item in cell
        ]
        ufunc = UFUNCS[case.operator]
        value = ufunc.reduce(np.array(items, case.dtype.numpy), dtype=case.dtype.numpy)
        result[where] = value * np.array(2, case.dtype.numpy) if case.doubled else value
    return result
