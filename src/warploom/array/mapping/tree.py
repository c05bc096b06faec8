"""What mapping asks of a kernel: its concrete maps, how they nest, and who touches which memory.

In comes a stage of a plan, out goes a tree of maps with the buffers that they share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from warploom.array.language.ir import Param
from warploom.array.language.op import ANY, Level, SpaceName
from warploom.array.mapping.vector import is_consecutive
from warploom.array.plan.loops import Loop, Node, Plan, Site, reads_of, sites
from warploom.array.plan.view import Part, Path
from warploom.index.ir import Expr, Var

Chain = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MapNode:
    """A concrete map. `writes` and `reads` are the memories of its result and of its argument.

    `perfect`: it is all that its parent does, on that one's element, so that the two can be one
    loop. `folds` are the sizes of the sequential loops between it and its parent. `consecutive`:
    its iterations access neighbouring numbers, so that several can be one access.
    """

    number: int
    parent: int | None
    size: Expr
    writes: frozenset[SpaceName]
    reads: frozenset[SpaceName]
    perfect: bool
    folds: tuple[Expr, ...] = ()
    level: Level = ANY
    consecutive: bool = False

    def uses(self, space: SpaceName) -> bool:
        return space in self.writes or space in self.reads


@dataclass(frozen=True, slots=True)
class Shared:
    """A buffer that one kernel writes and reads: the maps around its declaration, around each
    write and around each read. `along` are the maps that index each of its dimensions; none where
    an access indexes it by anything else."""

    name: str
    space: SpaceName
    scope: Chain
    writes: tuple[Chain, ...]
    reads: tuple[Chain, ...]
    along: tuple[Chain, ...] = ()

    @property
    def accesses(self) -> tuple[Chain, ...]:
        return (*self.writes, *self.reads)


@dataclass(frozen=True)
class MapTree:
    """`stores` are the chains of maps around each write to memory that several threads see."""

    maps: tuple[MapNode, ...]
    buffers: tuple[Shared, ...] = ()
    stores: tuple[Chain, ...] = ()

    @cached_property
    def outer(self) -> dict[int, Chain]:
        """The maps around each map, the outermost first."""
        found: dict[int, Chain] = {}
        for each in self.maps:
            around = () if each.parent is None else (*found[each.parent], each.parent)
            found[each.number] = around
        return found

    @cached_property
    def nested(self) -> dict[int, Chain]:
        """The maps inside each map."""
        return {
            each.number: tuple(n for n, around in self.outer.items() if each.number in around)
            for each in self.maps
        }

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """From a root to each leaf."""
        return tuple(
            (*self.outer[number], number) for number, inside in self.nested.items() if not inside
        )

    @cached_property
    def nests(self) -> tuple[Chain, ...]:
        """Perfect nests of more than one map, as large as they are, the outermost map first."""
        inner = {each.parent: each.number for each in self.maps if each.perfect}
        starts = [n for n in inner if n is not None and not self.node(n).perfect]
        found = []
        for start in starts:
            nest = [start]
            while nest[-1] in inner:
                nest.append(inner[nest[-1]])
            found.append(tuple(nest))
        return tuple(found)

    def node(self, number: int) -> MapNode:
        return self._by_number[number]

    @cached_property
    def _by_number(self) -> dict[int, MapNode]:
        return {each.number: each for each in self.maps}


def map_trees(plan: Plan) -> tuple[MapTree, ...]:
    """The tree of each stage."""
    return tuple(map_tree(plan, at) for at in range(len(plan.stages)))


def map_tree(plan: Plan, stage: int) -> MapTree:
    body = plan.stages[stage].body
    spaces = {each.memory: each.space for each in plan.buffers}
    found = list(sites(body))
    stores = [site.chain for site in found if spaces[site.write.memory] != "private"]
    return MapTree(
        tuple(_nodes(plan, body, None, ())),
        tuple(_shared(plan, stage)),
        tuple(dict.fromkeys(stores)),
    )


def _nodes(
    plan: Plan, body: tuple[Node, ...], parent: int | None, folds: tuple[Expr, ...]
) -> Iterator[MapNode]:
    for node in body:
        if not isinstance(node, Loop) or node.lanes:
            continue
        if node.map is None:
            yield from _nodes(plan, node.body, parent, (*folds, node.size))
            continue
        facts = node.map
        yield MapNode(
            facts.number,
            parent,
            node.size,
            facts.writes,
            facts.reads,
            facts.perfect,
            folds,
            facts.level,
            is_consecutive(plan, node),
        )
        yield from _nodes(plan, node.body, facts.number, ())


def _shared(plan: Plan, stage: int) -> Iterator[Shared]:
    found = list(sites(plan.stages[stage].body))
    for buffer in plan.buffers:
        if buffer.role != "temporary" or buffer.stage != stage:
            continue
        writes = [site.chain for site in found if site.write.memory is buffer.memory]
        reads = [
            site.chain
            for site in found
            if any(read.memory is buffer.memory for read in reads_of(site.write.value))
        ]
        if writes and reads:
            yield Shared(
                buffer.memory.name,
                buffer.space,
                buffer.chain,
                tuple(dict.fromkeys(writes)),
                tuple(dict.fromkeys(reads)),
                tuple(_along(buffer.memory, found)),
            )


def _along(memory: Param, found: list[Site]) -> Iterator[Chain]:
    """The maps along each dimension; none of one that is not indexed by maps alone."""
    paths: list[tuple[Path, dict[str, int]]] = []
    for site in found:
        maps = {each.counter: each.map.number for each in site.loops if each.map is not None}
        own = [site.write.path] if site.write.memory is memory else []
        own += [read.path for read in reads_of(site.write.value) if read.memory is memory]
        paths += [(path, maps) for path in own]
    parts = {tuple(each for each in path if isinstance(each, Part)) for path, _ in paths}
    if len(parts) > 1:
        return
    for steps in zip(*(path for path, _ in paths), strict=True):
        if isinstance(steps[0], Part):
            continue
        names = [step.name if isinstance(step, Var) else "" for step in steps]
        by_maps = all(name in maps for name, (_, maps) in zip(names, paths, strict=True))
        numbers = (maps[name] for name, (_, maps) in zip(names, paths, strict=True) if by_maps)
        yield tuple(dict.fromkeys(numbers))
