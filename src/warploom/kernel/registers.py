"""Registers are indexed by constants once loops are unrolled, and set before they are read.

A loop is looked at iteration by iteration only as far as its iterations name different registers:
an iteration that names the same ones as an earlier iteration finds at least as many of them set,
and sets nothing new. A loop that may have no iteration sets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, variables
from warploom.index.show import show
from warploom.kernel import ir
from warploom.kernel.scope import Place, Scopes, Site
from warploom.kernel.tensor import HELD, held
from warploom.kernel.traverse import target_of, values_of

MOST_ITERATIONS = 1 << 16  # of all unrolled loops around one index

Element = tuple[int, int]  # a declaration and an element of it
Iterations = Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The values of an expression for all iterations of the unrolled loops that it depends on."""

    iterations: tuple[str, ...]
    values: npt.NDArray[np.int64]

    def at(self, iterations: Iterations) -> int:
        return int(self.values[tuple([iterations[name] for name in self.iterations])])

    def by_iteration(self, iteration: str, outer: Iterations) -> npt.NDArray[np.int64]:
        """One row for each iteration of a loop, those of loops outside it given."""
        fixed = tuple([outer.get(name, slice(None)) for name in self.iterations])
        left = [name for name in self.iterations if name not in outer]
        rows = np.moveaxis(self.values[fixed], left.index(iteration), 0)
        return rows.reshape(len(rows), -1)


@dataclass(frozen=True, slots=True, eq=False)
class _RegisterUse:
    """Registers that a statement names: `width` neighbours, the first one by table."""

    cell: ir.Cell
    declaration: int
    table: _Table | None
    width: int

    def places(self, iterations: Iterations) -> list[Element]:
        first = 0 if self.table is None else self.table.at(iterations)
        return [(self.declaration, first + i) for i in range(self.width)]


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A statement as far as registers go; `tables` are those that decide what it does."""

    site: Site
    reads: tuple[_RegisterUse, ...] = ()
    writes: tuple[_RegisterUse, ...] = ()
    declared: tuple[int, int, bool] | None = None
    condition: _Table | None = None
    bodies: tuple[tuple[_Step, ...], ...] = ()

    def tables(self) -> Iterator[_Table]:
        yield from (each.table for each in (*self.reads, *self.writes) if each.table is not None)
        if self.condition is not None:
            yield self.condition
        for body in self.bodies:
            for step in body:
                yield from step.tables()


def check_registers(scopes: Scopes, runs: Callable[[Site], bool]) -> None:
    """Raises CheckError for the first register misused; `runs` says if a loop surely has an
    iteration."""
    steps = _Resolver().body(scopes.body, {})
    _Follower(runs).body(steps, {}, set())


class _Resolver:
    """Finds the declaration of every register that is named, and the values of its index."""

    def __init__(self) -> None:
        self.declared: list[ir.Registers] = []
        self.known: dict[Expr, _Table] = {}

    def body(self, sites: tuple[Site, ...], outer: Mapping[str, int]) -> tuple[_Step, ...]:
        scope = dict(outer)
        return tuple([self._step(site, scope) for site in sites])

    def _step(self, site: Site, scope: dict[str, int]) -> _Step:
        match site.stmt:
            case ir.Registers(name, _, size, initial) as declaration:
                scope[name] = len(self.declared)
                self.declared.append(declaration)
                return _Step(site, declared=(scope[name], size or 1, initial is not None))
            case ir.For() | ir.If() | ir.Ring() | ir.PingPong():
                bodies = tuple([self.body(each, scope) for each in site.bodies])
                writes = tuple(self._zeroed(site.stmt, scope))
                return _Step(site, writes=writes, condition=self._condition(site), bodies=bodies)
            case _:
                return _Step(
                    site, tuple(self._reads(site, scope)), tuple(self._writes(site, scope))
                )

    def _zeroed(self, stmt: ir.Stmt, scope: Mapping[str, int]) -> Iterator[_RegisterUse]:
        """What a ring sets to zero before it begins."""
        for name in stmt.sums if isinstance(stmt, ir.Ring) else ():
            declared = self.declared[scope[name]]
            cell = ir.Cell(name, None, declared.dtype)
            yield _RegisterUse(cell, scope[name], None, declared.size or 1)

    def _reads(self, site: Site, scope: Mapping[str, int]) -> Iterator[_RegisterUse]:
        if isinstance(site.stmt, HELD):
            for cell, width in held(site.stmt):
                yield self._use(cell, site, scope, width)
            return
        wide = isinstance(site.stmt, ir.Store)
        for value in values_of(site.stmt):
            for part in ir.walk_value(value):
                if isinstance(part, ir.Cell) and part.name in scope:
                    yield self._use(part, site, scope, _width(site.stmt) if wide else 1)

    def _writes(self, site: Site, scope: Mapping[str, int]) -> Iterator[_RegisterUse]:
        target = target_of(site.stmt)
        if target is not None:
            yield self._use(target, site, scope, _width(site.stmt))

    def _use(self, cell: ir.Cell, site: Site, scope: Mapping[str, int], width: int) -> _RegisterUse:
        number = scope[cell.name]
        if cell.index is None:
            return _RegisterUse(cell, number, None, width)
        table = self._table(cell, site.place)
        _check_bounds(cell, table, width, self.declared[number].size or 1, site.place)
        return _RegisterUse(cell, number, table, width)

    def _table(self, cell: ir.Cell, place: Place) -> _Table:
        assert cell.index is not None
        index = place.expr(cell.index)
        if not variables(index) <= place.unrolled:
            raise _unknown_index(cell, place)
        return self._values(index, place)

    def _condition(self, site: Site) -> _Table | None:
        """A condition that is a constant once loops are unrolled."""
        if not isinstance(site.stmt, ir.If):
            return None
        known = site.place.expr(site.stmt.condition)
        return self._values(known, site.place) if variables(known) <= site.place.unrolled else None

    def _values(self, expr: Expr, place: Place) -> _Table:
        if expr not in self.known:
            names = variables(expr)
            around = {
                c.iteration: c.iterations or 0 for c in place.counters if c.iteration in names
            }
            if np.prod([float(each) for each in around.values()]) > MOST_ITERATIONS:
                raise CheckError(
                    f"more than {MOST_ITERATIONS} registers are named by "
                    f"{show(expr).replace('#', '_')}",
                    advice="use smaller loops around register arrays",
                )
            axes = np.ix_(*[np.arange(each) for each in around.values()])
            value: Any = evaluate(expr, dict(zip(around, axes, strict=True)))
            self.known[expr] = _Table(
                tuple(around), np.broadcast_to(value, tuple(around.values())).astype(np.int64)
            )
        return self.known[expr]


def _width(stmt: ir.Stmt) -> int:
    match stmt:
        case ir.TensorProduct() | ir.WarpgroupProduct():
            return next(iter(held(stmt)))[1]
        case ir.LoadMatrix():
            return stmt.own * stmt.count
        case ir.ClusterSum():
            return stmt.registers
        case ir.Unpack() | ir.Interleave():
            return stmt.count
    return stmt.width if isinstance(stmt, ir.Load | ir.Store) else 1


def _unknown_index(cell: ir.Cell, place: Place) -> CheckError:
    assert cell.index is not None
    known = {
        name for name in variables(cell.index) if variables(place.names.get(name, cell.index))
        <= place.unrolled and name in place.names
    }  # fmt: skip
    unknown = sorted(variables(cell.index) - known)
    return CheckError(
        f"the register array '{cell.name}' is indexed by '{unknown[0]}', "
        "which is not known after unrolling",
        advice="use warploom.kernel.laws.distribute or warploom.kernel.lower.permute",
    )


def _check_bounds(cell: ir.Cell, table: _Table, width: int, size: int, place: Place) -> None:
    """Every index lies inside, but where a condition on the same iterations keeps it from being
    used."""
    wrong = (table.values < 0) | (table.values + width > size)
    if not wrong.any():
        return
    axes = np.ix_(*[np.arange(each) for each in table.values.shape])
    env: dict[str, Any] = dict(zip(table.iterations, axes, strict=True))
    for guard in place.guards:
        if variables(guard) <= env.keys():
            wrong = wrong & (np.asarray(evaluate(guard, env)) != 0)
    if wrong.any():
        first = int(table.values[wrong].flat[0])
        raise CheckError(f"'{cell.name}' has {size} registers, but [{first}] is used")


class _Follower:
    """Follows the program; `ready` are the registers that hold something on every path."""

    def __init__(self, runs: Callable[[Site], bool]) -> None:
        self.runs = runs

    def body(self, steps: tuple[_Step, ...], iterations: Iterations, ready: set[Element]) -> None:
        for step in steps:
            if step.declared is not None:
                number, size, filled = step.declared
                places = [(number, i) for i in range(size)]
                (ready.update if filled else ready.difference_update)(places)
            elif isinstance(step.site.stmt, ir.For | ir.Ring):
                ready.update(place for use in step.writes for place in use.places(iterations))
                self._loop(step, iterations, ready)
            elif isinstance(step.site.stmt, ir.If):
                self._branches(step, iterations, ready)
            elif isinstance(step.site.stmt, ir.PingPong):
                self.body(step.bodies[0], iterations, set(ready))
            else:
                self._step(step, iterations, ready)

    def _step(self, step: _Step, iterations: Iterations, ready: set[Element]) -> None:
        for use in step.reads:
            for place in use.places(iterations):
                if place not in ready:
                    where = use.cell.name + ("" if use.table is None else f"[{place[1]}]")
                    raise CheckError(
                        f"the register '{where}' is read before it is set on every path",
                        advice="give it an initial value",
                    )
        for use in step.writes:
            ready.update(use.places(iterations))

    def _branches(self, step: _Step, iterations: Iterations, ready: set[Element]) -> None:
        then, otherwise = step.bodies
        if step.condition is not None:
            self.body(then if step.condition.at(iterations) else otherwise, iterations, ready)
            return
        after_then, after_otherwise = set(ready), set(ready)
        self.body(then, iterations, after_then)
        self.body(otherwise, iterations, after_otherwise)
        ready |= after_then & after_otherwise

    def _loop(self, step: _Step, iterations: Iterations, ready: set[Element]) -> None:
        (inner,) = step.bodies
        if not inner:
            return
        counter = inner[0].site.place.counters[-1]
        # What a loop sets that may not run is forgotten again.
        inside = ready if counter.iterations or self.runs(step.site) else set(ready)
        for iteration in _distinct_iterations(inner, counter.iteration, iterations):
            self.body(inner, {**iterations, counter.iteration: iteration}, inside)


def _distinct_iterations(steps: tuple[_Step, ...], iteration: str, outer: Iterations) -> list[int]:
    """The first of all iterations in which the same registers are named."""
    tables = {
        id(table): table.by_iteration(iteration, outer)
        for step in steps
        for table in step.tables()
        if iteration in table.iterations
    }
    if not tables:
        return [0]
    _, first = np.unique(np.concatenate([*tables.values()], axis=1), axis=0, return_index=True)
    return [int(each) for each in np.sort(first)]
