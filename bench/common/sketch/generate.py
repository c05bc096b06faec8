"""Random small sketches. `Pick` is where the randomness comes from: hypothesis or a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from bench.common.sketch.tables import table_set

from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import (
    UNDEFINED,
    ZERO,
    Apply,
    GatherSet,
    Goal,
    Literal,
    Program,
    Step,
    Symbol,
    Table,
    Term,
    Undefined,
    Zero,
    fold_of,
    size,
)

Pick: TypeAlias = Callable[[int], int]  # a number below the given one

MAX_FILLS = 1500
MAX_CELLS = 16


def seeded(seed: int) -> Pick:
    rng = np.random.default_rng(seed)
    return lambda n: int(rng.integers(n))


def gather_set(tables: Table, arg_cells: tuple[int, ...], cells: int) -> GatherSet:
    names = [f"c{i}" for i in range(len(tables))]
    shapes = tuple((n,) for n in arg_cells)
    return table_set("table", (), shapes, (cells,), names, tables)


def distinct(tables: list[list[int]]) -> Table:
    """Without repetitions, in order of first appearance."""
    return np.array(list(dict.fromkeys(tuple(row) for row in tables)), dtype=np.int32)


def sketch(pick: Pick, scale: int = 1) -> Program:
    """One to two inputs, up to six steps of which up to three are holes, and one goal.

    With a larger `scale`, sets of values no longer fit one machine word.
    """
    steps: list[Step] = []
    symbols = 1 + pick(8 * scale)
    steps += [_literal(pick, f"x{number}", symbols, scale) for number in range(1 + pick(2))]
    (_anything, _swizzles, _branches, _either)[pick(4)](pick, steps, scale)
    closed = Program("random", tuple(steps), ())
    return Program("random", tuple(steps), (_goal(pick, closed),))


def _literal(pick: Pick, name: str, symbols: int, scale: int) -> Literal:
    cells = 1 + pick(8 * scale)
    values: list[Term] = []
    fresh = pick(3) > 0
    folds = pick(4) == 0  # of the kind that later steps form, too
    for cell in range(cells):
        symbol = Symbol(cell if fresh else pick(symbols))
        if pick(24 * scale) == 0:
            values.append(Undefined())
        elif folds and pick(2):
            more = [Symbol(pick(symbols)) for _ in range(pick(3))]
            values.append(fold_of([symbol, *more]))
        else:
            values.append(symbol)
    return Literal(name, (cells,), tuple(values))


def _room(steps: list[Step]) -> int:
    fills = 1
    for step in steps:
        fills *= len(step.gathers) if isinstance(step, Apply) else 1
    return MAX_FILLS // fills


def _holes(steps: list[Step]) -> int:
    return sum(isinstance(step, Apply) and step.gathers.is_hole for step in steps)


def _add(steps: list[Step], args: tuple[int, ...], tables: Table, fold: int | None) -> None:
    cells = tables.shape[1]
    arg_cells = tuple(size(steps[arg].shape) for arg in args)
    out = cells if fold is None else cells // fold
    gathers = gather_set(tables, arg_cells, cells)
    steps.append(Apply(f"v{len(steps)}", (out,), args, gathers, fold))


def _options(pick: Pick, steps: list[Step], most: int) -> int:
    if _holes(steps) >= 3:
        return 1
    return min(1 + pick(most), max(1, _room(steps)))


def _anything(pick: Pick, steps: list[Step], scale: int) -> None:
    for _ in range(1 + pick(6)):
        if pick(8) == 0:
            steps.append(_literal(pick, f"y{len(steps)}", 8 * scale, scale))
        # Mostly the newest value, so that chains come about; now and then an old one, twice.
        args = tuple(
            len(steps) - 1 if pick(2) else pick(len(steps)) for _ in range(1 + (pick(5) + 1) // 3)
        )
        places = sum(size(steps[arg].shape) for arg in args)
        fold = 1 + pick(3) if pick(3) == 0 else None
        out = 1 + pick(6 * scale)
        cells = min(MAX_CELLS * scale, out * (fold or 1)) // (fold or 1) * (fold or 1)
        style = pick(5)
        rows = [
            _row(pick, style, places, cells) for _ in range(_options(pick, steps, 9))
        ]  # fmt: skip
        _add(steps, args, distinct(rows), fold)


def _row(pick: Pick, style: int, places: int, cells: int) -> list[int]:
    straight = [cell % places for cell in range(cells)]
    if style == 0:  # anything
        return [_place(pick, places) for _ in range(cells)]
    if style == 1:  # keep or drop
        return [place if pick(3) else ZERO for place in straight]
    if style == 2:  # a rotation
        by = pick(places)
        return [(place + by) % places for place in straight]
    if style == 3:  # a permutation, of the start
        order = list(range(places))
        for at in range(places - 1):
            other = at + pick(places - at)
            order[at], order[other] = order[other], order[at]
        return [order[place] for place in straight]
    changed = list(straight)  # nearly a copy
    for _ in range(1 + pick(2)):
        changed[pick(cells)] = _place(pick, places)
    return changed


def _place(pick: Pick, places: int) -> int:
    kind = pick(12 + places)  # rarer in large arrays, which one such place may spoil
    return ZERO if kind == 0 else UNDEFINED if kind == 1 else pick(places)


def _swizzles(pick: Pick, steps: list[Step], scale: int) -> None:
    """Rows and columns of a small matrix moved about, then perhaps summed."""
    height, width = 1 + pick(4 * scale), 1 + pick(4)
    here = pick(len(steps))
    places = size(steps[here].shape)
    cells = height * width
    _add(steps, (here,), np.arange(cells, dtype=np.int32)[None] % places, None)
    here = len(steps) - 1
    for _ in range(1 + pick(3)):
        along = pick(2)
        rows = [
            _moved(pick, height, width, along) for _ in range(_options(pick, steps, 12))
        ]  # fmt: skip
        other = pick(len(steps)) if pick(4) == 0 else here
        if size(steps[other].shape) == cells and pick(2):
            here = other
        _add(steps, (here,), distinct(rows), None)
        here = len(steps) - 1
    if pick(3) == 0 and size(steps[0].shape) == cells:
        both = np.arange(2 * cells, dtype=np.int32).reshape(2, cells).T.reshape(1, -1)
        _add(steps, (here, 0 if pick(2) else here), both, 2 if pick(2) else None)
        here = len(steps) - 1
    if pick(2):
        left = size(steps[here].shape)
        keep = [
            [c if pick(4) else ZERO for c in range(left)]
            for _ in range(_options(pick, steps, 4))
        ]  # fmt: skip
        _add(steps, (here,), distinct(keep), width if left % width == 0 else 1)


def _branches(pick: Pick, steps: list[Step], scale: int) -> None:
    """Values moved apart from each other, then brought together: products, then perhaps sums."""
    out = 1 + pick(4 * scale)
    first = pick(len(steps))
    branches: list[int] = []
    for _ in range(2 + pick(4) // 3):
        # Sometimes from the branch before, so that it is used twice.
        here = branches[-1] if branches and pick(3) == 0 else pick(first + 1 + pick(2)) % len(steps)
        for _ in range(1 + pick(4) // 3):
            rows = [
                _row(pick, pick(5), size(steps[here].shape), out)
                for _ in range(_options(pick, steps, 7))
            ]
            _add(steps, (here,), distinct(rows), None)
            here = len(steps) - 1
        branches.append(here)
    if pick(6) == 0:
        branches.append(branches[pick(len(branches))])
    several = len(branches)
    table = np.arange(several * out).reshape(several, out).T.reshape(-1).tolist()
    rows = [table]
    for _ in range(_options(pick, steps, 4) - 1 if pick(3) == 0 else 0):
        rows.append(_row(pick, pick(5), several * out, several * out))
    _add(steps, tuple(branches), distinct(rows), several if pick(3) else None)
    if pick(2):
        here = len(steps) - 1
        left = size(steps[here].shape)
        rows = [_row(pick, pick(5), left, left) for _ in range(_options(pick, steps, 6))]
        fold = [1, left, 2][pick(3)]
        _add(steps, (here,), distinct(rows), fold if left % fold == 0 and pick(4) else None)


def _either(pick: Pick, steps: list[Step], scale: int) -> None:
    """Folds that the input holds already and that are also formed on the way: either will do."""
    base = [Symbol(number) for number in range(1 + pick(3 * scale))]
    some = [
        fold_of([base[pick(len(base))] for _ in range(1 + pick(2))]) for _ in range(1 + pick(3))
    ]
    steps.append(Literal("base", (len(base) + len(some),), (*base, *some)))
    fold = 1 + pick(2)
    cells = fold * (1 + pick(3))
    here = len(steps) - 1
    rows = [_row(pick, 0, len(base) + len(some), cells) for _ in range(_options(pick, steps, 12))]
    _add(steps, (here,), distinct(rows), None)
    _add(steps, (here + 1,), np.arange(cells, dtype=np.int32)[None], fold)
    both = (here + 2, here + 1) if pick(3) else (here + 2, here)
    places = sum(size(steps[arg].shape) for arg in both)
    rows = [_row(pick, 0, places, 1 + cells // 2) for _ in range(_options(pick, steps, 12))]
    out = min(len(row) for row in rows)
    _add(
        steps,
        both,
        distinct([row[:out] for row in rows]),
        fold if out % fold == 0 and pick(2) else None,
    )


def _moved(pick: Pick, height: int, width: int, along: int) -> list[int]:
    grid = np.arange(height * width).reshape(height, width)
    rows = grid if along else grid.T
    out = []
    kind = pick(3)
    shift, scale = pick(len(rows[0])), pick(3)
    for number, row in enumerate(rows):
        by = shift + scale * number if kind else pick(len(row))
        moved = np.roll(row, by)
        out.append(moved[::-1] if kind == 2 and number % 2 else moved)
    table = np.stack(out)
    return [int(place) for place in (table if along else table.T).ravel()]


def _goal(pick: Pick, program: Program) -> Goal:
    """What some fill gives, or nearly that."""
    fill = [pick(len(_gathers(program, hole))) for hole in program.holes]
    values = evaluate(program, fill)
    cells = list(values[-1])
    terms = [t for step in values for t in step if not isinstance(t, Undefined)] or [Zero()]
    if pick(3) == 0:
        cells[pick(len(cells))] = terms[pick(len(terms))]
    if pick(12) == 0:
        cells[pick(len(cells))] = fold_of([terms[pick(len(terms))], terms[pick(len(terms))]])
    wanted = [terms[pick(len(terms))] if isinstance(c, Undefined) else c for c in cells]
    return Goal(program.steps[-1].shape, tuple(wanted))


def _gathers(program: Program, hole: int) -> GatherSet:
    step = program.steps[hole]
    assert isinstance(step, Apply)
    return step.gathers
