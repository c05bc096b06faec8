"""Control flow of one kernel: its instructions in a graph of blocks, who dominates whom, loops.

Comes in: a `Function`. Goes out: a `Flow`, or an `UnsupportedError` where the graph cannot be
known (an indirect branch without targets, a loop with two entries).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.errors import UnsupportedError
from warploom.ptx.ir import Directive, Function, Instruction, Label, Module, Register, Symbol

MOST_BLOCKS = 20_000
MOST_NESTED = 500_000  # blocks of all loops together, each counted in every loop around it
DEEPEST_LOOP = 64
LEAVES = frozenset({"ret", "exit", "trap"})
SPLITS = frozenset({"bra", "brx", "call", *LEAVES})  # lanes may part after one of these


@dataclass(frozen=True, slots=True)
class Edge:
    """From block to block; `predicate` is None where the branch is not conditional."""

    source: int
    target: int
    predicate: Register | None
    when: bool
    exact: bool = True  # False for one of many targets of an indirect branch


@dataclass(slots=True)
class Block:
    """Instructions `start` up to `stop`; only the last may leave it."""

    start: int
    stop: int
    into: list[Edge] = field(default_factory=list)
    out: list[Edge] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Loop:
    header: int
    body: frozenset[int]
    latches: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    code: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]  # instruction to block
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


def build(module: Module, function: Function) -> Flow:
    code, labels, targets = _read(module, function)
    blocks, block_of = _cut(code, labels)
    if len(blocks) > MOST_BLOCKS:
        raise UnsupportedError(f"{function.name} has more than {MOST_BLOCKS} blocks")
    entry_of = {name: _block_at(at, block_of, blocks) for name, at in labels.items()}
    for number, block in enumerate(blocks):
        for edge in _edges(module, number, block, code, entry_of, targets, len(blocks)):
            block.out.append(edge)
            blocks[edge.target].into.append(edge)
    order = _order(blocks)
    dominator = _dominators(blocks, order)
    reign = _reign(order, dominator)
    flow = Flow(tuple(code), tuple(blocks), tuple(block_of), tuple(order), dominator, reign, {}, {})
    _find_loops(flow, module, function)
    return flow


def _read(
    module: Module, function: Function
) -> tuple[list[Instruction], dict[str, int], dict[str, tuple[str, ...]]]:
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    targets: dict[str, tuple[str, ...]] = {}
    for statement in function.flat():
        if isinstance(statement, Instruction):
            code.append(statement)
        elif isinstance(statement, Label):
            if statement.name in labels:
                raise UnsupportedError(
                    f"two labels are called {statement.name}", module.span(statement)
                )
            labels[statement.name] = len(code)
        elif isinstance(statement, Directive) and statement.label:
            targets[statement.label] = statement.words
    return code, labels, targets


def _cut(code: list[Instruction], labels: dict[str, int]) -> tuple[list[Block], list[int]]:
    starts = {0, *labels.values()}
    starts |= {at + 1 for at, step in enumerate(code) if step.opcode in SPLITS}
    cuts = sorted(at for at in starts if at < len(code))
    blocks = [
        Block(a, b) for a, b in zip(cuts, [*cuts[1:], len(code)], strict=True)
    ] or [Block(0, 0)]  # fmt: skip
    block_of = [number for number, b in enumerate(blocks) for _ in range(b.start, b.stop)]
    return blocks, block_of


def _block_at(at: int, block_of: list[int], blocks: list[Block]) -> int:
    """The block that starts at an instruction; one past the last stands for the end."""
    return block_of[at] if at < len(block_of) else len(blocks)


def _edges(
    module: Module, number: int, block: Block, code: list[Instruction],
    entry_of: dict[str, int], targets: dict[str, tuple[str, ...]], end: int,
) -> list[Edge]:  # fmt: skip
    last = code[block.stop - 1] if block.stop > block.start else None
    fall = number + 1
    if last is None or last.opcode not in SPLITS or last.opcode == "call":
        found = [Edge(number, fall, None, True)]
    elif last.opcode in LEAVES:
        found = [Edge(number, fall, last.predicate, last.negated)] if last.predicate else []
    else:
        found = [
            Edge(number, target, last.predicate, not last.negated, last.opcode == "bra")
            for target in _targets(module, last, entry_of, targets)
        ]
        if last.predicate is not None:
            found.append(Edge(number, fall, last.predicate, last.negated))
    return [edge for edge in found if edge.target < end]


def _targets(
    module: Module, branch: Instruction, entry_of: dict[str, int],
    targets: dict[str, tuple[str, ...]],
) -> list[int]:  # fmt: skip
    last = branch.operands[-1] if branch.operands else None
    if not isinstance(last, Symbol):
        raise UnsupportedError("a branch whose target is not a label", module.span(branch))
    names: tuple[str, ...] = (last.name,)
    if branch.opcode == "brx":
        names = tuple(word for word in targets.get(last.name, ()) if word not in (",", ";"))
    if not names or any(name not in entry_of for name in names):
        raise UnsupportedError("a branch whose targets are not known", module.span(branch))
    return [entry_of[name] for name in names]


def _order(blocks: list[Block]) -> list[int]:
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


def _dominators(blocks: list[Block], order: list[int]) -> dict[int, int]:
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
