"""What a block asked of one shared array → a pattern for `layout solve`, and the layout that serves
it in the fewest wavefronts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import WarploomError
from warploom.index.table import affine
from warploom.layout.language.evaluate import evaluate
from warploom.layout.language.show import show
from warploom.layout.patterns.access import Access, Problem, check_problem
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.machine.banks import bank_use
from warploom.machine.record import CUDA
from warploom.machine.tally import Request
from warploom.search.budget import Budget

Array = npt.NDArray[Any]
ELEMENTS = {1: "u8", 2: "f16", 4: "f32", 8: "f64", 16: "f128"}
ROW_BYTES = CUDA.lanes * CUDA.bank_bytes
MOST_ROWS = 64  # different requests of an instruction that make a pattern


@dataclass(frozen=True, slots=True)
class Served:
    """`saved`: wavefronts of a block by instruction; `pattern`: the text of a TOML file."""

    layout: str
    saved: dict[Hashable, int]
    pattern: str


def served(requests: list[Request], seconds: float) -> Served | None:
    """None where the requests make no pattern, or no layout is better."""
    unit = min(each.width for each in requests)
    size = max(int(each.rows[each.active].max()) + each.width for each in requests)
    rows = -(-size // ROW_BYTES)
    tables = _tables(requests)
    if unit not in ELEMENTS or unit == 16 or tables is None:
        return None
    accesses, parts = [], [f'shape = [{rows}, {ROW_BYTES // unit}]\nelement = "{ELEMENTS[unit]}"\n']
    for number, (first, table) in enumerate(tables):
        wide, kind = first.width // unit, "st" if first.write else "ld"
        name, index = f"{kind} {number + 1}", _index(table // unit)
        elements = (table // unit)[:, :, None] + np.arange(wide)
        accesses.append(Access(name, elements, "st" if first.write else "ld"))
        parts.append(
            f'\n[[access]]\nname = "{name}"\nkind = "{kind}"\nsteps = {len(table)}\n'
            f'width = {wide}\nindex = "{index}"\n'
        )
    try:
        problem = check_problem(
            Problem("tile", (rows, ROW_BYTES // unit), unit, tuple(accesses))
        )  # fmt: skip
        found = solve(Task(problem), "mixed", Budget(seconds=seconds)).best
    except WarploomError:  # no tile of theirs
        return None
    if found is None:
        return None
    saved = _saved(requests, found.map, unit)
    return Served(show(found.map), saved, "".join(parts)) if sum(saved.values()) > 0 else None


def _tables(requests: list[Request]) -> list[tuple[Request, Array]] | None:
    """By instruction its different requests, of warps whose lanes all took part, as tables that are
    sums of multiples of step and lane."""
    rows: dict[Hashable, tuple[Request, list[Array]]] = {}
    for each in requests:
        whole = each.rows[each.active.all(axis=1)]
        rows.setdefault(each.label, (each, []))[1].append(whole)
    tables = []
    for first, parts in rows.values():
        distinct = np.unique(np.concatenate(parts), axis=0)
        if len(distinct) > MOST_ROWS:
            return None
        pieces = _pieces(distinct)
        if pieces is None:
            return None
        tables += [(first, each) for each in pieces]
    return tables or None


def _pieces(table: Array) -> list[Array] | None:
    """Runs of rows that are each such a sum, as long as they are."""
    pieces, start = [], 0
    for end in range(1, len(table) + 1):
        if affine(table[start:end]) is None:
            if end - start == 1:
                return None
            pieces.append(table[start : end - 1])
            start = end - 1
    return [*pieces, table[start:]] if len(table) else []


def _index(table: Array) -> str:
    """An element of each step and lane, as an expression."""
    (by_step, by_lane), start = affine(table) or ([0, 0], 0)
    parts = [f"{name} * {by}" for name, by in (("step", by_step), ("lane", by_lane)) if by]
    return " + ".join([*parts, *([str(start)] if start or not parts else [])])


def _saved(requests: list[Request], layout: Any, unit: int) -> dict[Hashable, int]:
    """Wavefronts that each instruction of the block needs no more."""
    found: dict[Hashable, int] = {}
    for each in requests:
        load = not each.write
        now = bank_use(each.rows, each.width, each.active, load=load).wavefronts
        numbers = np.where(each.active, each.rows // unit, 0)
        moved = np.asarray(evaluate(layout, numbers.reshape(-1))).reshape(numbers.shape) * unit
        after = bank_use(moved, each.width, each.active, load=load).wavefronts
        found[each.label] = found.get(each.label, 0) + now - after
    return found
