"""A plan with sizes, and how its maps run, as schedules: one for each stage.

    seq, folds → loops          l0 … l2 → threads of a block, in iterations      w0 … w2 → blocks
    fused → one loop            g0 … g2 → threads of all blocks              vector → wide accesses

Where a size is no multiple of the threads, the last iteration is not for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warploom.array.code.spread import BLOCKS, THREADS, Spread, dimension_of, iterations_of
from warploom.array.code.storage import (
    Place,
    Storage,
    accesses_of,
    flat,
    indices_of,
    maps_of,
    names_of,
)
from warploom.array.language.ir import Param
from warploom.array.mapping.constraint import FUSED, GLOBAL, GROUP, LANE, LOCAL, VECTOR, WARP
from warploom.array.plan.loops import Loop, Node, Plan, Read, Write, sites
from warploom.array.plan.numbered import loop_size
from warploom.array.plan.view import Path
from warploom.index.ir import Const, Expr, Var, minimum
from warploom.kernel import ir
from warploom.kernel.bounds import index_type
from warploom.kernel.traverse import map_value
from warploom.schedule import ir as made_of
from warploom.schedule.context import all_of, simpler


def schedule_of(plan: Plan, stage: int, spread: Spread) -> made_of.Schedule:
    """The schedule of a stage."""
    return _Scheduling(plan, stage, spread).schedule()


class _Scheduling:
    def __init__(self, plan: Plan, stage: int, spread: Spread) -> None:
        self.plan, self.stage, self.spread = plan, stage, spread
        self.body = plan.stages[stage].body
        self.storage = Storage(plan, stage, spread, names_of(plan))
        self.grid = self._grid()

    def schedule(self) -> made_of.Schedule:
        places = self._places()
        several = len(self.plan.stages) > 1
        return made_of.Schedule(
            self.plan.program.name + (f"_{self.stage}" if several else ""),
            tuple(self._params(places)),
            tuple(made_of.Buffer(p.name, p.dtype, p.kind, _size(p)) for p in places),
            self.spread.group,
            self.grid,
            self._nodes(self.body),
            index=index_type(each.elements for each in places if each.kind == "global"),
            lanes=self.spread.lanes,
        )

    def _places(self) -> list[Place]:
        """Every array, register and number that is touched, in the order of the buffers."""
        found = {
            place.name: place for site in sites(self.body)
            for place in (self.storage.of(m, path) for m, path in accesses_of(site.write))
        }  # fmt: skip
        order = list(self.storage.names.values())
        return [found[name] for name in sorted(found, key=order.index)]

    def _params(self, places: list[Place]) -> Iterator[ir.Param]:
        written = {self.storage.of(s.write.memory, s.write.path).name for s in sites(self.body)}
        for each in places:
            if each.kind == "global":
                const = each.name not in written
                yield ir.ArrayParam(each.name, each.dtype, Const(each.elements), const)
        for each in places:
            if each.kind == "number":
                yield ir.ScalarParam(each.name, each.dtype)

    def _grid(self) -> tuple[int, int, int]:
        sides = [1, 1, 1]
        for number, loop in maps_of(self.plan, self.stage).items():
            run = self.spread.runs[number]
            if run in GROUP or run in GLOBAL:
                at = dimension_of(run)
                size = self._joined_size(loop)
                per = self.spread.group[at] if run in GLOBAL else 1
                sides[at] = max(sides[at], iterations_of(size, per))
        return (sides[0], sides[1], sides[2])

    # -- loops -------------------------------------------------------------------------------------

    def _run(self, loop: Loop) -> str:
        return "seq" if loop.map is None else self.spread.runs[loop.map.number]

    def _joined(self, loop: Loop) -> list[Loop]:
        """The loop and those that are fused with it, the outermost first."""
        found = [loop]
        while True:
            inner = found[-1].body[0] if len(found[-1].body) == 1 else None
            if not isinstance(inner, Loop) or self._run(inner) != FUSED:
                return found
            found.append(inner)

    def _joined_size(self, loop: Loop) -> int:
        size = 1
        for each in self._joined(loop):
            size *= loop_size(each)
        return size

    def _nodes(self, nodes: Iterable[Node]) -> tuple[made_of.Node, ...]:
        return tuple(self._write(n) if isinstance(n, Write) else self._loop(n) for n in nodes)

    def _loop(self, loop: Loop) -> made_of.Node:
        run, joined, size = self._run(loop), self._joined(loop), self._joined_size(loop)
        if run == VECTOR:
            return made_of.Loop(loop.counter, size, self._nodes(loop.body), "vector")
        counter = loop.counter if len(joined) == 1 else f"{loop.counter}_all"
        body = self._nodes(joined[-1].body)
        if len(joined) > 1:
            body = self._parted(joined, counter, size, run, body)
        if run in self.spread.sides:
            return self._by_threads(counter, size, run, body)
        if run in GROUP:
            side = dimension_of(run)
            if self.grid[side] > size:
                body = (made_of.Only(Var(counter).lt(size), body),)
            return made_of.Indexed(counter, size, Var(BLOCKS[side]), body)
        if run in GLOBAL:
            side = dimension_of(run)
            own = Var(BLOCKS[side]) * self.spread.group[side] + Var(THREADS[side])
            where = Var(counter).lt(size) if self._threads_along(run) > size else None
            return made_of.Indexed(counter, size, own, body, where)
        return made_of.Loop(counter, size, body, "short")

    def _by_threads(
        self, counter: str, size: int, run: str, body: tuple[made_of.Node, ...]
    ) -> made_of.Loop:
        """Iterations that all threads take together."""
        threads = self.spread.threads_of(run)
        iterations = iterations_of(size, threads)
        own = Var(_iteration(counter)) * threads + self._thread(run)
        where = Var(counter).lt(size) if iterations * threads > size else None
        each = made_of.Indexed(counter, size, own, body, where)
        return made_of.Loop(_iteration(counter), iterations, (each,), "short")

    def _threads_along(self, run: str) -> int:
        if run in self.spread.sides:
            return self.spread.threads_of(run)
        if run in GLOBAL:
            side = dimension_of(run)
            return self.grid[side] * self.spread.group[side]
        return 1

    def _parted(
        self,
        joined: list[Loop],
        counter: str,
        size: int,
        run: str,
        body: tuple[made_of.Node, ...],
    ) -> tuple[made_of.Node, ...]:
        """The counters of loops that became one; those of idle threads stay inside, too: of a
        quotient a condition would show little."""
        along = self._threads_along(run)
        idle = iterations_of(size, along) * along > size
        whole: Expr = minimum(Var(counter), size - 1) if idle else Var(counter)
        for each in reversed(joined):
            count = loop_size(each)
            part = whole if each is joined[0] else whole % count
            body = (made_of.Indexed(each.counter, count, part, body),)
            whole = whole // count
        return body

    # -- places ------------------------------------------------------------------------------------

    def _thread(self, run: str) -> Expr:
        """The number of a thread among those that a map within a group runs on."""
        if run == LANE:
            return Var(THREADS[0]) % self.spread.lanes
        if run == WARP:
            return Var(THREADS[0]) // self.spread.lanes
        return Var(THREADS[LOCAL.index(run)])

    def _cell(self, memory: Param, path: Path) -> ir.Cell:
        place = self.storage.of(memory, path)
        if place.kind == "number" or (place.kind == "registers" and place.elements == 1):
            return ir.Cell(place.name, None, place.dtype)
        indices = [
            Var(_iteration(each.name)) if spread and isinstance(each, Var) else each
            for each, spread in zip(indices_of(path), place.spread or (False,) * 9, strict=False)
        ]
        copies = [
            self._thread(name) if name in self.spread.sides else Var(name)
            for name, _ in place.copies
        ]
        dims = (*(count for _, count in place.copies), *place.dims)
        return ir.Cell(place.name, simpler(flat([*copies, *indices], dims), {}), place.dtype)

    # -- values ------------------------------------------------------------------------------------

    def _write(self, write: Write) -> made_of.Write:
        target = self._cell(write.memory, write.path)
        return made_of.Write(target, self._value(write.value), all_of(write.conditions))

    def _value(self, value: ir.Value) -> ir.Value:
        def found(each: ir.Value) -> ir.Value:
            return self._cell(each.memory, each.path) if isinstance(each, Read) else each

        return map_value(value, lambda expr: expr, found)


def _iteration(counter: str) -> str:
    return f"{counter}_iteration"


def _size(place: Place) -> int | None:
    return None if place.kind == "registers" and place.elements == 1 else place.elements
