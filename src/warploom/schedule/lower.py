"""A schedule becomes a kernel.

    loop, unrolled → for          vector → one wide access        copy → rounds of all threads
    indexed by a thread or block → its index, which may be named

All threads of a block run all statements, and iterations of every loop are the same for all, so
barriers may stand anywhere: they are put in where threads meet in a shared array, and nowhere else.
Where there is nothing for a thread to do, it touches no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from warploom.errors import CheckError, InternalError
from warploom.index.ir import Const, Expr, Var, variables
from warploom.kernel.allocate import allocate
from warploom.kernel.check import check
from warploom.kernel.guard import predicate_accesses
from warploom.kernel.ir import (
    BUILT_IN,
    Assign,
    Barrier,
    For,
    If,
    Kernel,
    Let,
    Load,
    Named,
    Registers,
    Shared,
    Shuffle,
    Stmt,
    Store,
    TensorProduct,
    Value,
    bodies,
    walk,
)
from warploom.kernel.laws import distribute
from warploom.kernel.synchronise import synchronise
from warploom.schedule.combine import Combiner
from warploom.schedule.context import FALSE, TRUE, Bounds, Context
from warploom.schedule.copy import Copier
from warploom.schedule.ir import (
    Combine,
    Either,
    Indexed,
    Loop,
    Node,
    Only,
    Prefix,
    Product,
    Schedule,
    Write,
    cells_of,
    inside,
    writes,
)
from warploom.schedule.pipeline import Pipeline
from warploom.schedule.prefix import Prefixer
from warploom.schedule.product import multiplied
from warploom.schedule.value import Buffers, Writer
from warploom.schedule.whole import whole_tile

UNROLLED = 1024  # statements that a loop may become by choice
# That a processor has room for, said to compilers. Unless they are told, they save registers for
# more, and wait for each load before the next. Where threads meet again and again, other blocks do
# something meanwhile: then compilers choose.
LEAST_BLOCKS = 1


def lower(schedule: Schedule) -> Kernel:
    """The kernel of a schedule, synchronised, its shared arrays placed, checked."""
    return finished(raw(schedule))


def finished(unsynchronised: Kernel) -> Kernel:
    """With the barriers that it lacks, its shared arrays placed, checked."""
    kernel = allocate(synchronise(unsynchronised))
    if not _meets_again(kernel):
        kernel = replace(kernel, min_blocks=LEAST_BLOCKS)
    try:
        check(kernel)
    except CheckError:
        kernel = _inside(kernel)
        check(kernel)
    return kernel


def _meets_again(kernel: Kernel) -> bool:
    """Whether there is a barrier in a loop."""
    loops = (each for each in walk(kernel.body) if isinstance(each, For))
    return any(isinstance(each, Barrier) for loop in loops for each in walk(loop.body))


def _inside(kernel: Kernel) -> Kernel:
    """What is not shown to stay inside of the kernel alone gets a condition; with one more of these
    there may be something else that is not shown in the time there is."""
    for _ in range(3):
        before, kernel = kernel, predicate_accesses(kernel)
        if kernel == before:
            break
    return kernel


def raw(schedule: Schedule) -> Kernel:
    """Without barriers."""
    return distribute(Lowering(schedule).kernel())


class Lowering:
    """Statements of the nodes of a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.writer = Writer(Buffers(schedule.buffers))
        self.copier = Copier(self.writer, schedule.threads)
        self.pipeline = Pipeline(self.copier, self._nodes, self._counter)
        self.combiner = Combiner(self.writer, schedule.levels, schedule.lanes, self._counter)
        self.prefixer = Prefixer(self.writer, schedule.levels, schedule.lanes, self._counter)
        self.unrolled = _indexing_registers(schedule, self.writer.memory)
        self.taken = {each.name for each in schedule.buffers} | set(BUILT_IN)
        self.taken |= {name for name, _, _ in schedule.names}

    def kernel(self) -> Kernel:
        made = self.schedule
        sizes = {"thread": made.threads} | {name: size for name, size, _ in made.names}
        for side, threads, blocks in zip("xyz", made.block, made.grid, strict=True):
            sizes |= {f"thread_{side}": threads, f"block_{side}": blocks}
        bounds = {name: (0, size - 1) for name, size in sizes.items()}
        named = [Let(name, index) for name, _, index in made.names]
        body = (*named, *self._nodes(made.body, self.context(bounds)))
        known = {
            each.name: Registers(each.name, each.dtype, each.size)
            for each in made.buffers if each.space == "registers"
        }  # fmt: skip
        declared = _declared(body, known | self.writer.registers)
        grid = [Const(side) for side in made.grid]
        return Kernel(
            made.name,
            made.params,
            made.block,
            (grid[0], grid[1], grid[2]),
            (*self._shared(), *self.combiner.shared, *self.prefixer.shared, *declared),
            warp_size=made.lanes,
            index=made.index,
            shared_most=made.shared_most,
        )

    def context(self, bounds: Bounds) -> Context:
        """Where the first statements stand."""
        return Context(bounds=bounds)

    def _shared(self) -> Iterator[Shared]:
        for each in self.schedule.buffers:
            if each.space == "shared":
                assert each.size is not None
                for stage in range(self.pipeline.several.get(each.name, 1)):
                    name = self.writer.memory.name(each.name, stage)
                    yield Shared(name, each.dtype, each.size)

    def _counter(self, name: str) -> str:
        """A name that nothing else has."""
        found, number = name, 1
        while found in self.taken:
            number += 1
            found = f"{name}_{number}"
        self.taken.add(found)
        return found

    # -- nodes -------------------------------------------------------------------------------------

    def _nodes(self, nodes: Iterable[Node], at: Context) -> list[Stmt]:
        return [stmt for node in nodes for stmt in self._node(node, at)]

    def _node(self, node: Node, at: Context) -> list[Stmt]:
        match node:
            case Write():
                return self.writer.written(node, at)
            case Indexed():
                return self._indexed(node, at)
            case Only(condition, body):
                known = at.expr(condition)
                if known is FALSE:
                    return []
                made = self._nodes(body, at)
                return made if known is TRUE else [If(known, tuple(made))]
            case Either():
                return self._either(node, at)
            case Loop():
                return self._loop(node, at)
            case Product():
                return list(multiplied(node, self.writer, at))
            case Combine():
                return list(self.combiner.combined(node, at))
            case Prefix():
                return list(self.prefixer.prefixed(node, at))
            case _:
                assert_never(node)

    def _either(self, node: Either, at: Context) -> list[Stmt]:
        known = at.condition(node.condition)
        if known in (TRUE, FALSE):
            return self._nodes(node.then if known is TRUE else node.otherwise, at)
        then, otherwise = (tuple(self._nodes(each, at)) for each in (node.then, node.otherwise))
        return [If(known, then, otherwise)]

    def _indexed(self, node: Indexed, at: Context) -> list[Stmt]:
        index, made, name = at.expr(node.index), list[Stmt](), ""
        if not isinstance(index, Var | Const):
            name = self._counter(node.counter)
            made.append(Let(name, index))
            index = Var(name)
        inner = at.at({node.counter: index})
        if node.where is not None:  # nothing is known of the name as long as that may fail
            inner = inner.guarded(inner.condition(node.where))
        inner = inner.below(name, node.size) if name else inner
        return [*made, *self._apart(node.body, inner)]

    def _apart(self, nodes: tuple[Node, ...], at: Context) -> list[Stmt]:
        """Whole tiles without conditions, and others."""
        asked = None if at.holds else whole_tile(nodes, self.writer.memory)
        if asked is None:
            return self._nodes(nodes, at)
        known = at.condition(asked.condition)
        if known is FALSE:
            return self._nodes(nodes, at)
        then = self._nodes(nodes, replace(at, holds=asked.holds))
        if known is TRUE or weight(then) > UNROLLED:
            return then if known is TRUE else self._nodes(nodes, at)
        rest = self._nodes(nodes, at) if asked.rest else []
        return [If(known, tuple(then), tuple(rest))]

    def _loop(self, loop: Loop, at: Context) -> list[Stmt]:
        if loop.kind == "copy":
            return self.copier.copied(self.copier.copy_of(loop), self._counter("round"), at)
        if loop.kind == "vector":
            return self._vector(loop, at)
        if loop.size == 1:
            return self._nodes(loop.body, at.at({loop.counter: Const(0)}))
        ahead = self.pipeline.ahead(loop) if loop.kind == "loop" else []
        if ahead:
            return self.pipeline.statements(loop, ahead, at)
        return self._for(loop, at)

    def _for(self, loop: Loop, at: Context) -> list[Stmt]:
        name, iterations = self._counter(loop.counter), loop.size
        inner = at.below(name, iterations).at({loop.counter: Var(name)})
        made = self._nodes(loop.body, inner)
        short = loop.kind == "short" and weight(made) * iterations <= UNROLLED
        unroll = loop.kind == "unrolled" or short or loop.counter in self.unrolled
        return [For(name, Const(0), Const(iterations), tuple(made), unroll=unroll)]

    def _vector(self, loop: Loop, at: Context) -> list[Stmt]:
        """Several iterations in one access, if they access neighbours."""
        found = [each for each in loop.body if isinstance(each, Write)]
        if len(found) < len(loop.body):
            raise InternalError(f"a wide access has more in it than writes: {loop.counter}")
        width = min(self.writer.width(each, loop.counter, loop.size) for each in found)
        if width == 1:
            return self._loop(replace(loop, kind="short"), at)
        iterations = loop.size // width

        def made(first: Expr, here: Context) -> list[Stmt]:
            return [s for each in found
                    for s in self.writer.wide(each, loop.counter, first, width, here)]  # fmt: skip

        if iterations == 1:
            return made(Const(0), at)
        name = self._counter(loop.counter)
        inner = at.below(name, iterations)
        body = tuple(made(Var(name) * width, inner))
        return [For(name, Const(0), Const(iterations), body, unroll=True)]


def _indexing_registers(schedule: Schedule, memory: Buffers) -> frozenset[str]:
    """Counters that index registers: their loops are unrolled."""
    found: set[str] = set()
    for write in writes(schedule.body):
        for cell in (write.target, *cells_of(write.value)):
            if cell.index is not None and not memory.is_memory(cell):
                found |= variables(cell.index)
    made_of = [node for node in inside(schedule.body) if isinstance(node, Indexed)]
    while more := {name for each in made_of if each.counter in found
                   for name in variables(each.index)} - found:  # fmt: skip
        found |= more
    return frozenset(found)


def weight(stmts: Iterable[Stmt]) -> int:
    """How many statements there are once loops are unrolled; many if there is one that is not."""
    total = 0
    for stmt in stmts:
        inside = sum(weight(body) for body in bodies(stmt))
        if isinstance(stmt, For):
            inside = inside * len(stmt.counts or ()) if stmt.unroll else UNROLLED + 1
        total += 1 + inside
    return total


# -- registers -------------------------------------------------------------------------------------


def _declared(body: tuple[Stmt, ...], known: dict[str, Registers]) -> tuple[Stmt, ...]:
    """Each register declared in the list of statements in which all its uses are."""
    used = [_names_in(stmt) & known.keys() for stmt in body]
    holders: dict[str, list[int]] = {}
    for at, names in enumerate(used):
        for name in names:
            holders.setdefault(name, []).append(at)
    inner = {name for name, (first, *more) in holders.items() if not more and bodies(body[first])}
    own = [known[name] for name in known if name in holders and name not in inner]
    first = {each.name: holders[each.name][0] for each in own}
    below = {name: known[name] for name in known if name in inner}
    made: list[Stmt] = []
    for at, stmt in enumerate(body):
        made += [each for each in own if first[each.name] == at]
        match stmt:
            case For():
                made.append(replace(stmt, body=_declared(stmt.body, below)))
            case If(condition, then, otherwise):
                # What both sides use is declared in neither.
                made.append(If(condition, _declared(then, below), _declared(otherwise, below)))
            case _:
                made.append(stmt)
    return tuple(made)


def _names_in(stmt: Stmt) -> set[str]:
    found: set[str] = set()
    stack: list[Stmt] = [stmt]
    while stack:
        each = stack.pop()
        for body in bodies(each):
            stack += body
        for value in _values(each):
            found |= {cell.name for cell in cells_of(value)}
    return found


def _values(stmt: Stmt) -> list[Value]:
    match stmt:
        case Named(_, value):
            return [value]
        case Assign(target, value):
            return [target, value]
        case Load(target, _, _, _, otherwise):
            return [target] if otherwise is None else [target, otherwise]
        case Store(_, _, value):
            return [value]
        case Shuffle(target, value):
            return [target, value]
        case TensorProduct(target, a, b):
            return [target, a, b]
        case _:
            return []
