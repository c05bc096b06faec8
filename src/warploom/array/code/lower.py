"""A plan with sizes, and how its maps run → kernels.

    seq, folds → for           l0 … l2 → threads of a block, in iterations      w0 … w2 → blocks
    fused → one loop           g0 … g2 → threads of all blocks             vector → wide accesses

All threads of a block take the same iterations of every loop; where a size is no multiple of the
threads, accesses in the last iteration have a condition, and barriers never do. Barriers are put
in, and shared arrays placed, by the kernel's own passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from warploom.array.code.context import Context
from warploom.array.code.indexing import Indexing
from warploom.array.code.spread import BLOCKS, THREADS, Spread, dimension_of, iterations_of
from warploom.array.code.storage import (
    Place,
    Storage,
    accesses_of,
    indices_of,
    maps_of,
    names_of,
)
from warploom.array.code.value import ValueBuilder
from warploom.array.code.wide import width_of
from warploom.array.mapping.constraint import FUSED, GLOBAL, GROUP, VECTOR
from warploom.array.plan.loops import Loop, Node, Plan, Write, sites
from warploom.array.plan.numbered import loop_size
from warploom.index.ir import Const, Expr, Var, minimum, variables
from warploom.kernel.allocate import allocate
from warploom.kernel.bounds import index_type
from warploom.kernel.check import check
from warploom.kernel.guard import predicate_accesses
from warploom.kernel.ir import (
    ArrayParam,
    For,
    If,
    Kernel,
    Let,
    Param,
    Registers,
    ScalarParam,
    Shared,
    Stmt,
    bodies,
)
from warploom.kernel.laws import distribute
from warploom.kernel.synchronise import synchronise

UNROLLED = 1024  # statements that a loop may become by choice


def lower(plan: Plan, stage: int, spread: Spread) -> Kernel:
    """The kernel of a stage, synchronised, its shared arrays placed, checked."""
    kernel = allocate(synchronise(raw(plan, stage, spread)))
    kernel = _inside(kernel)
    check(kernel)
    return kernel


def _inside(kernel: Kernel) -> Kernel:
    """What the views say stays inside, but is not shown of the kernel alone, gets a condition; with
    one more of these there may be something else that is not shown in the time there is."""
    for _ in range(3):
        before, kernel = kernel, predicate_accesses(kernel)
        if kernel == before:
            break
    return kernel


def raw(plan: Plan, stage: int, spread: Spread) -> Kernel:
    """Without barriers."""
    return distribute(_Lowering(plan, stage, spread).kernel())


class _Lowering:
    def __init__(self, plan: Plan, stage: int, spread: Spread) -> None:
        self.plan, self.stage, self.spread = plan, stage, spread
        self.body = plan.stages[stage].body
        self.storage = Storage(plan, stage, spread, names_of(plan))
        self.indexing = Indexing(self.storage)
        self.values = ValueBuilder(self.indexing)
        self.declared: set[str] = set()
        self.grid = self._grid()
        self.unrolled = self._unrolled()

    # -- the whole ---------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        bounds = dict(zip(THREADS, self.spread.group, strict=True))
        bounds |= dict(zip(BLOCKS, self.grid, strict=True))
        start = Context(ranges={name: (0, size - 1) for name, size in bounds.items()})
        body = self._nodes(self.body, start)
        places = self._places()
        shared: list[Stmt] = [
            Shared(each.name, each.dtype, each.elements) for each in places if each.kind == "shared"
        ]
        several = len(self.plan.stages) > 1
        sides = [Const(side) for side in self.grid]
        return Kernel(
            self.plan.program.name + (f"_{self.stage}" if several else ""),
            tuple(self._params(places)),
            self.spread.group,
            (sides[0], sides[1], sides[2]),
            (*shared, *body),
            warp_size=self.spread.lanes,
            index=index_type(each.elements for each in places if each.kind == "global"),
        )

    def _places(self) -> list[Place]:
        """Every array, register and number that is touched, in the order of the buffers."""
        found = {
            place.name: place for site in sites(self.body) for place in self._touched(site.write)
        }
        order = list(self.storage.names.values())
        return [found[name] for name in sorted(found, key=order.index)]

    def _touched(self, write: Write) -> list[Place]:
        return [self.storage.of(memory, path) for memory, path in accesses_of(write)]

    def _params(self, places: list[Place]) -> Iterator[Param]:
        written = {self.storage.of(s.write.memory, s.write.path).name for s in sites(self.body)}
        for each in places:
            if each.kind == "global":
                const = each.name not in written
                yield ArrayParam(each.name, each.dtype, Const(each.elements), const)
        for each in places:
            if each.kind == "number":
                yield ScalarParam(each.name, each.dtype)

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

    def _nodes(self, nodes: Iterable[Node], at: Context) -> list[Stmt]:
        nodes = tuple(nodes)
        made: list[Stmt] = [*self._registers(nodes)]
        for node in nodes:
            made += (
                self.values.written(node, at) if isinstance(node, Write) else self._loop(node, at)
            )
        return made

    def _loop(self, loop: Loop, at: Context) -> list[Stmt]:
        run = self._run(loop)
        if run == VECTOR:
            width = width_of(self.indexing, loop)
            if width > 1:
                return self._wide(loop, width, at)
        joined = self._joined(loop)
        size = self._joined_size(loop)
        counter = loop.counter if len(joined) == 1 else f"{loop.counter}_all"
        inner, lets = at, list[Stmt]()
        iterations, index = self._iterations(run, counter, size)
        inner = inner.with_counter(counter, index, size)
        if not isinstance(index, Var | Const):
            lets.append(Let(counter, index))
            inner = inner.with_counter(counter, Var(counter), size)
        inner = inner.with_iteration(
            counter, Var(f"{counter}_iteration") if iterations > 1 else Const(0)
        )
        if len(joined) > 1:  # their counters are quotients, of which a guard would show little
            whole = inner.counters[counter]
            if iterations * self._threads_along(run) > size:  # idle threads stay inside, too
                whole = minimum(whole, size - 1)
            inner = self._parted(joined, whole, inner, lets)
        return self._around(loop, run, (counter, size, iterations), joined[-1].body, inner, lets)

    def _iterations(self, run: str, counter: str, size: int) -> tuple[int, Expr]:
        """How many iterations each thread takes, and what the counter is in one."""
        iteration = Var(f"{counter}_iteration")
        if run in self.spread.sides:
            threads = self.spread.threads_of(run)
            iterations = iterations_of(size, threads)
            thread = self.indexing.thread(run)
            return iterations, thread if iterations == 1 else iteration * threads + thread
        if run in GROUP:
            return 1, Var(BLOCKS[dimension_of(run)])
        if run in GLOBAL and self._threads_along(run) == 1:
            return 1, Const(0)  # the only thread needs no counter
        if run in GLOBAL:
            side = dimension_of(run)
            return 1, Var(BLOCKS[side]) * self.spread.group[side] + Var(THREADS[side])
        return size, Var(counter) if size > 1 else Const(0)

    def _parted(
        self, joined: list[Loop], whole: Expr, at: Context, lets: list[Stmt]
    ) -> Context:  # fmt: skip
        """The counters of loops that became one."""
        for each in reversed(joined):
            size = loop_size(each)
            part: Expr = Const(0) if size == 1 else whole % size if each is not joined[0] else whole
            whole = whole // size if size > 1 else whole
            if isinstance(part, Const | Var):
                at = at.with_counter(each.counter, part, size)
            else:
                lets.append(Let(each.counter, part))
                at = at.with_counter(each.counter, Var(each.counter), size)
        return at

    def _around(
        self,
        loop: Loop,
        run: str,
        counted: tuple[str, int, int],
        body: tuple[Node, ...],
        inner: Context,
        lets: list[Stmt],
    ) -> list[Stmt]:
        """The loop, or the condition, around what one iteration does."""
        counter, size, iterations = counted
        index = inner.counters[counter]
        if run in GROUP:
            made = [*lets, *self._nodes(body, inner)]
            partial = self.grid[dimension_of(run)] > size
            return [If(index.lt(size), tuple(made))] if partial else made
        threads = self._threads_along(run)
        if iterations * threads > size:
            inner = inner.guarded(index.lt(size))
        made = [*lets, *self._nodes(body, inner)]
        if iterations == 1:
            return made
        name = f"{counter}_iteration" if run in self.spread.sides else counter
        unroll = loop.counter in self.unrolled or _weight(made) * iterations <= UNROLLED
        return [For(name, Const(0), Const(iterations), tuple(made), unroll=unroll)]

    def _threads_along(self, run: str) -> int:
        if run in self.spread.sides:
            return self.spread.threads_of(run)
        if run in GLOBAL:
            side = dimension_of(run)
            return self.grid[side] * self.spread.group[side]
        return 1

    def _wide(self, loop: Loop, width: int, at: Context) -> list[Stmt]:
        """A loop over neighbours, several in one access."""
        iterations = loop_size(loop) // width
        first: Expr = Var(loop.counter) * width if iterations > 1 else Const(0)
        write = loop.body[0]
        assert isinstance(write, Write)
        ranges = {**at.ranges, loop.counter: (0, iterations - 1)}
        inner = replace(at, ranges=ranges)
        made = self.values.wide(write, loop.counter, first, width, inner)
        if iterations == 1:
            return made
        unroll = loop.counter in self.unrolled
        return [For(loop.counter, Const(0), Const(iterations), tuple(made), unroll=unroll)]

    # -- registers ---------------------------------------------------------------------------------

    def _registers(self, nodes: tuple[Node, ...]) -> Iterator[Stmt]:
        """Declarations of what is used in this list of statements, and not in one loop alone."""
        used = [self._names_in(node) for node in nodes]
        for name, place in {k: v for own in used for k, v in own.items()}.items():
            holders = [node for node, own in zip(nodes, used, strict=True) if name in own]
            here = len(holders) > 1 or isinstance(holders[0], Write)
            if here and name not in self.declared:
                self.declared.add(name)
                size = place.elements if place.elements > 1 else None
                yield Registers(name, place.dtype, size)

    def _names_in(self, node: Node) -> dict[str, Place]:
        return {
            place.name: place
            for site in sites((node,))
            for place in self._touched(site.write)
            if place.kind == "registers"
        }

    def _unrolled(self) -> frozenset[str]:
        """Counters that index registers: their loops are unrolled."""
        found: set[str] = set()
        for site in sites(self.body):
            for memory, path in accesses_of(site.write):
                if self.storage.of(memory, path).kind == "registers":
                    found |= {name for each in indices_of(path) for name in variables(each)}
        for loop in maps_of(self.plan, self.stage).values():
            if any(each.counter in found for each in self._joined(loop)):
                found.add(loop.counter)
        return frozenset(found)


def _weight(stmts: Iterable[Stmt]) -> int:
    """How many statements there are once loops are unrolled; many if there is one that is not."""
    total = 0
    for stmt in stmts:
        inside = sum(_weight(body) for body in bodies(stmt))
        if isinstance(stmt, For):
            inside = inside * len(stmt.counts or ()) if stmt.unroll else UNROLLED + 1
        total += 1 + inside
    return total
