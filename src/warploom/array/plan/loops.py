"""What an expression becomes before anything is decided: loops, buffers, and writes of numbers.

A *plan* has a loop for every concrete map and for every fold, in the order in which they would run
one after another, and a buffer for everything that is written. Values are those of kernels. Where
its maps run, and how large symbolic sizes are, is left open: `mapping/` and `joint/` decide that.
Indices are not simplified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from warploom.array.language.ir import Param, Program
from warploom.array.language.op import Level, SpaceName
from warploom.array.plan.view import Guard, Path
from warploom.index.ir import Expr
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cell, Choose, Compare, Number, Value, dtype_of, walk_value

# -- numbers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read(Cell):
    """An element of a buffer, as a leaf of the values of kernels; where an element stands under a
    guard, the value chooses between it and the guard's number."""

    memory: Param
    path: Path


def read(memory: Param, path: Path, dtype: DType) -> Read:
    return Read(memory.name, None, dtype, memory, path)


def guarded(guards: tuple[Guard, ...], value: Value) -> Value:
    """The value where all guards hold; the first that fails gives its number."""
    for guard in reversed(guards):
        value = Choose(guard.condition, value, Number(guard.value, dtype_of(value)))
    return value


def reads_of(value: Value) -> list[Read]:
    return [each for each in walk_value(value) if isinstance(each, Read)]


def guards_of(value: Value) -> list[Expr]:
    """The conditions over indices that decide what a value is."""
    chosen = (each for each in walk_value(value) if isinstance(each, Choose))
    return [each.condition for each in chosen if not isinstance(each.condition, Compare)]


# -- statements ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Write:
    """`memory[path] = value`, where all conditions hold."""

    memory: Param
    path: Path
    conditions: tuple[Expr, ...]
    value: Value


@dataclass(frozen=True, slots=True)
class MapFacts:
    """What mapping asks of a concrete map. `writes` and `reads` are the memories of its result and
    of its argument; `perfect`: it is all that the map around it does, on that one's element."""

    number: int
    level: Level
    writes: frozenset[SpaceName]
    reads: frozenset[SpaceName]
    perfect: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """A counter from 0 to before `size`: a map, a fold (`map` is None), or lanes of a vector."""

    counter: str
    size: Expr
    body: tuple[Node, ...]
    map: MapFacts | None = None
    lanes: bool = False


Node: TypeAlias = Loop | Write


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory. One that is neither input nor output belongs to a stage, and is made anew in every
    iteration of the maps of `chain`."""

    memory: Param
    space: SpaceName
    chain: tuple[int, ...] = ()
    role: str = "temporary"
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """What one kernel does."""

    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    program: Program
    buffers: tuple[Buffer, ...]
    stages: tuple[Stage, ...]
    output: Param

    def buffer(self, memory: Param) -> Buffer:
        return next(each for each in self.buffers if each.memory is memory)


@dataclass(frozen=True, slots=True)
class Site:
    """A statement with the loops around it, the outermost first."""

    loops: tuple[Loop, ...]
    write: Write

    @property
    def chain(self) -> tuple[int, ...]:
        """The maps around it."""
        return tuple(loop.map.number for loop in self.loops if loop.map is not None)


def sites(body: tuple[Node, ...], around: tuple[Loop, ...] = ()) -> Iterator[Site]:
    """Every write, in program order."""
    for node in body:
        if isinstance(node, Write):
            yield Site(around, node)
        else:
            yield from sites(node.body, (*around, node))


def loops_in(body: tuple[Node, ...]) -> Iterator[Loop]:
    """Every loop, each before those inside it."""
    for node in body:
        if isinstance(node, Loop):
            yield node
            yield from loops_in(node.body)


def without_unread(stages: list[Stage], output: Param) -> list[Stage]:
    """The stages without writes that nobody reads, and without loops that then do nothing."""
    while True:
        wanted = {output} | {
            read.memory
            for stage in stages
            for site in sites(stage.body)
            for read in reads_of(site.write.value)
        }
        made = [Stage(tuple(_wanted(stage.body, wanted))) for stage in stages]
        if made == stages:
            return [stage for stage in made if stage.body]
        stages = made


def _wanted(body: tuple[Node, ...], wanted: set[Param]) -> Iterator[Node]:
    for node in body:
        if isinstance(node, Write):
            if node.memory in wanted:
                yield node
            continue
        inside = tuple(_wanted(node.body, wanted))
        if inside:
            yield replace(node, body=inside)
