"""Which accumulate statements may stay: sets of them in order of size, each tried only once.

A statement whose predicate is a hole may be dropped (its predicate is then `false`). How many each
accumulator needs at least follows from the goal: an output made of p products needs ⌈p / n⌉
statements in loops of n iterations. Sets that differ only by names of equal values are one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from warploom.sketch import holes as gathers
from warploom.sketch.simt import ir
from warploom.sketch.term.ir import Apply, Constant, Fold, Goal, Program, Term, Zero, size
from warploom.sketch.term.operator import WORD, is_function


@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """`by_accumulator` lists the droppable statements; `fixed` can never be dropped.

    `outer` has the operators of the accumulators that add up inputs, not what others added up.
    """

    fixed: frozenset[int]
    by_accumulator: Mapping[str, tuple[int, ...]]
    outer: Mapping[str, str]
    iterations: Mapping[int, int]
    names: Mapping[int, tuple[str, tuple[str, ...]]]
    swaps: tuple[Mapping[str, str], ...]


def statements_of(traced: ir.Traced) -> Statements:
    droppable = defaultdict(list)
    fixed = set()
    for stmt in traced.statements:
        if ir.holes_in(stmt.predicate):
            droppable[stmt.accumulator].append(stmt.number)
        else:
            fixed.add(stmt.number)
    return Statements(
        frozenset(fixed),
        {acc: tuple(numbers) for acc, numbers in droppable.items()},
        {a.name: a.outer for a in traced.accumulators.values() if a.name not in _nested(traced)},
        dict(_iterations(traced, traced.body, {})),
        {s.number: (s.accumulator, s.items) for s in traced.statements},
        tuple(_swaps(traced)),
    )


def _iterations(
    traced: ir.Traced, body: tuple[ir.Stmt, ...], loops: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    """How often each statement runs for one value of its accumulator."""
    for stmt in body:
        if isinstance(stmt, ir.Loop):
            yield from _iterations(traced, stmt.body, {**loops, stmt.var: stmt.count})
        elif isinstance(stmt, ir.Accumulate):
            outside = traced.accumulators[stmt.accumulator].loops
            yield stmt.number, math.prod(n for v, n in loops.items() if v not in outside)


def least(statements: Statements, goals: Mapping[str, Goal]) -> dict[str, int]:
    """How many droppable statements each accumulator needs at least."""
    result = {}
    for acc, numbers in statements.by_accumulator.items():
        values = goals[acc].values if acc in goals and acc in statements.outer else ()
        items = max((_items(value, statements.outer[acc]) for value in values), default=0)
        always = [n for n in statements.fixed if statements.names[n][0] == acc]
        rest = items - sum(statements.iterations[n] for n in always)
        most = max(statements.iterations[n] for n in numbers)
        result[acc] = max(0, -(-rest // most))
    return result


def _items(value: Term, operator: str) -> int:
    """How many items an accumulator has to add for this value, what it starts with aside."""
    if isinstance(value, Fold) and is_function(value.operator):
        (value,) = value.items
    if isinstance(value, Fold) and value.operator in (operator, WORD):
        return sum(not isinstance(item, Constant) for item in value.items)
    return 0 if isinstance(value, Zero) else 1


def _nested(traced: ir.Traced) -> frozenset[str]:
    """The accumulators that may add what another one has added up."""
    added, arrays, found = set[str](), set[str](), set[str]()
    for _ in range(2):  # a loop may read at its start what it writes at its end
        for stmt in ir.walk(traced.body):
            match stmt:
                case ir.Finish(made, _):
                    added.add(made)
                case ir.Exchange(made, value, _) if value in added:
                    added.add(made)
                case ir.Read(made, array, _) if array in arrays:
                    added.add(made)
                case ir.Write(array, _, value) if value in added:
                    arrays.add(array)
                case ir.Accumulate(_, accumulator, items, _) if not added.isdisjoint(items):
                    found.add(accumulator)
    return frozenset(found)


def sets_of_size(
    statements: Statements, count: int, options: Mapping[str, Mapping[int, list[frozenset[int]]]]
) -> Iterator[frozenset[int]]:
    """All sets of `count` droppable statements made of `options[accumulator][how many]`."""
    accumulators = tuple(statements.by_accumulator)
    seen = set()
    for sizes in itertools.product(*(options[acc] for acc in accumulators)):
        if sum(sizes) != count:
            continue
        parts = (options[acc][n] for acc, n in zip(accumulators, sizes, strict=True))
        for chosen in itertools.product(*parts):
            live = frozenset().union(*chosen)
            key = canonical(statements, live)
            if key not in seen:
                seen.add(key)
                yield live


def canonical(statements: Statements, live: frozenset[int]) -> tuple[object, ...]:
    """A key, equal for sets that differ only by the names of interchangeable values."""
    named = [statements.names[number] for number in live]
    forms = (
        tuple(sorted((acc, tuple(swap.get(v, v) for v in items)) for acc, items in named))
        for swap in statements.swaps
    )
    return min(forms)


def _swaps(traced: ir.Traced) -> Iterator[dict[str, str]]:
    """The renamings of values under which the sketch stays as it is."""
    classes = defaultdict(list)
    for value, shape in _shapes(traced).items():
        classes[shape].append(value)
    groups = [values for values in classes.values() if 1 < len(values) <= 4]
    wanted = sorted((s.accumulator, s.items) for s in traced.statements)
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        pairs = itertools.chain(
            *(zip(g, o, strict=True) for g, o in zip(groups, orders, strict=True))
        )
        swap = dict(pairs)
        renamed = sorted((a, tuple(swap.get(v, v) for v in items)) for a, items in wanted)
        if renamed == wanted:
            yield swap


def _shapes(traced: ir.Traced) -> dict[str, object]:
    """How the items of accumulators are computed, with the names of holes left out."""
    made = {
        s.target: s
        for s in ir.walk(traced.body)
        if isinstance(s, (ir.Read, ir.Exchange, ir.Finish))
    }
    uses: dict[str, int] = defaultdict(int)
    for made_by in made.values():
        if isinstance(made_by, ir.Exchange):
            uses[made_by.value] += 1

    def shape(value: str) -> object:
        stmt = made[value]
        match stmt:
            case ir.Read(_, array, index):
                return ("read", array, *map(opened, index))
            case ir.Exchange(_, offered, lanes):
                # A value offered twice ties the two exchanges together.
                source = offered if uses[offered] > 1 else shape(offered)
                return ("exchange", source, *map(opened, lanes))
            case ir.Finish(_, accumulator):
                return accumulator

    def opened(expr: object) -> object:
        names = ir.holes_in(expr)  # type: ignore[arg-type]
        found = [traced.holes[name] for name in names]
        kinds = tuple((h.kind, h.size, h.variables, h.constants) for h in found)
        return kinds if kinds and expr is found[0].var else (kinds, expr)

    items = {item for stmt in traced.statements for item in stmt.items}
    return {item: shape(item) for item in sorted(items)}


# -- one accumulator alone


def parts_of(program: Program, traced: ir.Traced) -> dict[str, Program]:
    """For each accumulator that the last step reads: the program that computes it alone."""
    last = program.steps[-1]
    if not isinstance(last, Apply) or last.fold is not None or last.gathers.is_hole:
        return {}
    table = last.gathers.table(0)
    parts, start = {}, 0
    for arg in last.args:
        end = start + size(program.steps[arg].shape)
        name = program.steps[arg].name.removesuffix(".final")
        cells = np.flatnonzero((table >= start) & (table < end))
        if name in traced.accumulators and len(cells):
            parts[name] = _only(program, last, arg, cells, table[cells] - start)
        start = end
    return parts


def _only(program: Program, last: Apply, arg: int, cells: np.ndarray, table: np.ndarray) -> Program:
    rows = table.astype(np.int32).reshape(1, -1)
    shape = (len(cells),)
    known = gathers.custom("gather", (program.steps[arg].shape,), shape, ("gather",), rows)
    step = replace(last, shape=shape, args=(arg,), gathers=known)
    values = program.goals[0].values
    goal = Goal(shape, tuple(values[cell] for cell in cells.tolist()), laws=program.goals[0].laws)
    return replace(program, steps=(*program.steps[:-1], step), goals=(goal,))
