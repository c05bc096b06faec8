"""Who dominates whom in a graph of blocks, and the loops in it.

Comes in: a kernel. Goes out: a `Flow`, or an `UnsupportedError` where the structure cannot be known
(a loop with two entries) or is larger than anybody writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.errors import CheckError, UnsupportedError
from warploom.ptx.flow import PARTS_LANES, Block, Edge, Graph, build
from warploom.ptx.ir import Function, Module

MOST_BLOCKS = 20_000
MOST_NESTED = 500_000  # blocks of all loops together, each counted in every loop around it
DEEPEST_LOOP = 64


@dataclass(frozen=True, slots=True)
class Loop:
    header: int
    body: frozenset[int]
    latches: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Flow(Graph):
    order: tuple[int, ...]  # reachable blocks, each after its forward predecessors
    dominator: dict[int, int]  # immediate dominator of each reachable block but the first
    reign: dict[int, tuple[int, int]]  # interval of each block in the dominator tree
    loops: dict[int, Loop]  # by header
    around: dict[int, tuple[int, ...]]  # headers of the loops around a block, outermost first

    def dominates(self, first: int, second: int) -> bool:
        """Whether every path to block `second` goes through block `first`."""
        if first not in self.reign or second not in self.reign:
            return False
        low, high = self.reign[first]
        return low <= self.reign[second][0] < high

    def before(self, first: int, second: int) -> bool:
        """Whether instruction `first` ran on every path to instruction `second`."""
        a, b = self.block_of[first], self.block_of[second]
        return first < second if a == b else self.dominates(a, b)


def analyse(module: Module, function: Function) -> Flow:
    try:
        graph = build(module, function, after=PARTS_LANES)
    except CheckError as error:
        raise UnsupportedError(error.message, error.span) from error
    blocks = graph.blocks
    if len(blocks) > MOST_BLOCKS:
        raise UnsupportedError(f"{function.name} has more than {MOST_BLOCKS} blocks")
    order = _order(blocks)
    dominator = _dominators(blocks, order)
    reign = _reign(order, dominator)
    flow = Flow(graph.code, blocks, graph.block_of, tuple(order), dominator, reign, {}, {})
    _find_loops(flow, module, function)
    return flow


def _order(blocks: Sequence[Block]) -> list[int]:
    """Reverse postorder from the entry, without recursion."""
    seen, done = {0}, []
    stack = [(0, iter(blocks[0].out))]
    while stack:
        number, rest = stack[-1]
        edge = next(rest, None)
        if edge is None:
            done.append(number)
            stack.pop()
        elif edge.target not in seen:
            seen.add(edge.target)
            stack.append((edge.target, iter(blocks[edge.target].out)))
    return done[::-1]


def _dominators(blocks: Sequence[Block], order: list[int]) -> dict[int, int]:
    place = {number: i for i, number in enumerate(order)}
    found = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for number in order[1:]:
            sources = [e.source for e in blocks[number].into if e.source in found]
            new = sources[0]
            for other in sources[1:]:
                new = _meet(new, other, found, place)
            if found.get(number) != new:
                found[number] = new
                changed = True
    del found[order[0]]
    return found


def _meet(a: int, b: int, found: dict[int, int], place: dict[int, int]) -> int:
    while a != b:
        while place[a] > place[b]:
            a = found[a]
        while place[b] > place[a]:
            b = found[b]
    return a


def _reign(order: list[int], dominator: dict[int, int]) -> dict[int, tuple[int, int]]:
    children: dict[int, list[int]] = {number: [] for number in order}
    for number, parent in dominator.items():
        children[parent].append(number)
    reign: dict[int, tuple[int, int]] = {}
    begin: dict[int, int] = {}
    clock = 0
    stack = [(order[0], False)]
    while stack:
        number, finished = stack.pop()
        if finished:
            reign[number] = (begin[number], clock)
            continue
        begin[number] = clock
        clock += 1
        stack.append((number, True))
        stack += [(child, False) for child in children[number]]
    return reign


def _find_loops(flow: Flow, module: Module, function: Function) -> None:
    place = {number: i for i, number in enumerate(flow.order)}
    latches: dict[int, list[Edge]] = {}
    for number in flow.order:
        for edge in flow.blocks[number].out:
            if place[edge.target] > place[number]:
                continue
            if not flow.dominates(edge.target, number):
                raise UnsupportedError("a loop with two entries", module.text.span(function.start))
            latches.setdefault(edge.target, []).append(edge)
    total = 0
    for header in flow.order:
        if header in latches:
            body = _body(flow, header, latches[header])
            flow.loops[header] = Loop(header, body, tuple(latches[header]))
            total += len(body)
            if total > MOST_NESTED:
                break
    around: dict[int, list[int]] = {number: [] for number in flow.order}
    for header, loop in flow.loops.items():  # outer headers come first in the order
        for number in loop.body:
            around[number].append(header)
    if total > MOST_NESTED or max(map(len, around.values())) > DEEPEST_LOOP:
        raise UnsupportedError("too many loops in loops", module.text.span(function.start))
    flow.around.update({number: tuple(headers) for number, headers in around.items()})


def _body(flow: Flow, header: int, latches: list[Edge]) -> frozenset[int]:
    body = {header}
    stack = [edge.source for edge in latches]
    while stack:
        number = stack.pop()
        if number not in body:
            body.add(number)
            stack += [e.source for e in flow.blocks[number].into if e.source in flow.reign]
    return frozenset(body)
