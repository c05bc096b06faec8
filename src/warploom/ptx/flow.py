"""Control flow of a function body: basic blocks, an order to run them in, and live registers.

The order puts every loop in one piece and before what follows the loop, so that a scheduler that
always runs the earliest waiting block lets threads meet again at the first possible place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from warploom.errors import CheckError
from warploom.ptx.ir import (
    Directive,
    Function,
    Instruction,
    Label,
    Module,
    Operand,
    Register,
    Scope,
    Statement,
    Symbol,
)

LEAVING = ("ret", "exit", "trap")
BRANCHES = ("bra", "brx", *LEAVING)
BARRIERS = ("bar", "barrier")


@dataclass(slots=True)
class Block:
    """Instructions that run one after the other; `successors` are numbers of blocks.

    For a conditional branch the taken block comes first, then the one that follows.
    """

    instructions: list[Instruction] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Graph:
    """Blocks in text order; `rank[b]` is the place of block b in the running order."""

    blocks: list[Block]
    rank: list[int]


def build(module: Module, function: Function) -> Graph:
    """The blocks of a body; branches to unknown labels are a `CheckError`."""
    builder = _Builder(module)
    builder.split(function.body or ())
    builder.connect()
    return Graph(builder.blocks, loop_order([b.successors for b in builder.blocks]))


class _Builder:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.blocks = [Block()]
        self.branches: list[tuple[int, list[dict[str, int]]]] = []
        self.lists: dict[str, tuple[str, ...]] = {}

    def split(self, body: Sequence[Statement]) -> None:
        """Cuts the body into blocks; each scope has its own labels and sees those around it."""
        self._walk(body, [])
        if self.blocks[-1].instructions or self._targeted(len(self.blocks) - 1):
            self.blocks.append(Block())  # running off the end leaves the function

    def _targeted(self, number: int) -> bool:
        return any(number in table.values() for _, tables in self.branches for table in tables)

    def _walk(self, body: Sequence[Statement], around: list[dict[str, int]]) -> None:
        labels: dict[str, int] = {}
        tables = [*around, labels]
        for statement in body:
            match statement:
                case Scope(inner):
                    self._walk(inner, tables)
                case Label(name):
                    self._start_block()
                    labels[name] = len(self.blocks) - 1
                case Directive("branchtargets", words, label):
                    self.lists[label] = tuple(w for w in words if w != ",")
                case Instruction():
                    self._add(statement, tables)
                case _:
                    pass

    def _start_block(self) -> None:
        if self.blocks[-1].instructions:
            self.blocks.append(Block())

    def _add(self, instruction: Instruction, tables: list[dict[str, int]]) -> None:
        if instruction.opcode in BARRIERS and "warp" not in instruction.modifiers:
            self._start_block()
            self.blocks[-1].instructions.append(instruction)
            self.blocks.append(Block())
            return
        self.blocks[-1].instructions.append(instruction)
        if instruction.opcode in BRANCHES:
            self.branches.append((len(self.blocks) - 1, tables))
            self.blocks.append(Block())

    def connect(self) -> None:
        ends = dict(self.branches)
        for number, block in enumerate(self.blocks):
            last = block.instructions[-1] if block.instructions else None
            follow = [number + 1] if number + 1 < len(self.blocks) else []
            if last is None or number not in ends:
                block.successors = follow
                continue
            targets = self._targets(last, ends[number])
            always = last.predicate is None
            block.successors = targets if always else targets + follow

    def _targets(self, last: Instruction, tables: list[dict[str, int]]) -> list[int]:
        if last.opcode in LEAVING:
            return []
        names = last.operands[-1:]
        if last.opcode == "brx":
            listed = names[0] if names else None
            words = self.lists.get(listed.name, ()) if isinstance(listed, Symbol) else ()
            names = tuple(Symbol(word) for word in words)
        if not names:
            raise CheckError("a branch without a target", self.module.span(last))
        return [self._find(name, last, tables) for name in names]

    def _find(self, name: Operand, last: Instruction, tables: list[dict[str, int]]) -> int:
        text = name.name if isinstance(name, Symbol | Register) else "?"
        for table in reversed(tables):
            if text in table:
                return table[text]
        raise CheckError(f"no label '{text}' in this function", self.module.span(last))


# -- order ------------------------------------------------------------------------------------


def loop_order(successors: Sequence[Sequence[int]]) -> list[int]:
    """A rank per node: loops (nested too) contiguous, everything else topological.

    Strongly connected parts are ordered topologically; inside one, the edges back to its entry
    are removed and the part is ordered again.
    """
    order: list[int] = []
    # Parts still to be ordered, last first; a part is its nodes in text order.
    work: list[tuple[list[int], frozenset[int] | None]] = [(list(range(len(successors))), None)]
    while work:
        nodes, headers = work.pop()
        if len(nodes) == 1:
            order.append(nodes[0])
            continue
        kept = set(nodes) - (headers or frozenset())
        inner = {n: [s for s in successors[n] if s in kept] for n in nodes}
        parts = _components(nodes, inner.__getitem__)
        # Parts come sinks first, and the work list is taken from its end.
        work += [(part, frozenset({_entry(part, successors)})) for part in parts]
    rank = [0] * len(successors)
    for place, node in enumerate(order):
        rank[node] = place
    return rank


def _entry(part: list[int], successors: Sequence[Sequence[int]]) -> int:
    """The first node in text order that is entered from before it, else the first of all."""
    if len(part) == 1:
        return part[0]
    inside = set(part)
    outer = [s for n in range(min(part)) for s in successors[n] if s in inside]
    return min(outer) if outer else min(part)


def _components(nodes: Iterable[int], follow: Callable[[int], list[int]]) -> list[list[int]]:
    """Strongly connected parts (Tarjan, without recursion), each after the parts it leads to."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    parts: list[list[int]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(follow(root)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            advanced = False
            for after in rest:
                if after not in index:
                    index[after] = low[after] = len(index)
                    stack.append(after)
                    on_stack.add(after)
                    work.append((after, iter(follow(after))))
                    advanced = True
                    break
                if after in on_stack:
                    low[node] = min(low[node], index[after])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                part: list[int] = []
                while not part or part[-1] != node:
                    part.append(stack.pop())
                    on_stack.discard(part[-1])
                parts.append(sorted(part))
    return parts


def live_in(
    blocks: Sequence[Block],
    uses: Callable[[Instruction], tuple[frozenset[str], frozenset[str]]],
) -> list[frozenset[str]]:
    """Keys of the registers each block may read before writing them.

    `uses` gives (read, surely written) of an instruction.
    """
    reads: list[set[str]] = []
    writes: list[set[str]] = []
    for block in blocks:
        read: set[str] = set()
        written: set[str] = set()
        for instruction in block.instructions:
            used, defined = uses(instruction)
            read |= used - written
            written |= defined
        reads.append(read)
        writes.append(written)
    live = [frozenset(read) for read in reads]
    before: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for after in block.successors:
            before[after].append(number)
    work = list(range(len(blocks)))
    while work:
        number = work.pop()
        coming = {key for after in blocks[number].successors for key in live[after]}
        fresh = frozenset(reads[number] | (coming - writes[number]))
        if fresh != live[number]:
            live[number] = fresh
            work += before[number]
    return live
