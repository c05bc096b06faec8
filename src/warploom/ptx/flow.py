"""Control flow of a function: its instructions in a graph of blocks.

One graph serves all: the emulator runs its blocks in `loop_order` and asks which registers are live
where; the walk on symbols asks who dominates whom (`dominance`). They differ only in where they
want blocks to be cut. Labels belong to the scope they stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from warploom.errors import CheckError, UnsupportedError
from warploom.ptx import ir
from warploom.ptx.known import control_of
from warploom.ptx.opcode import Control
from warploom.ptx.patience import look, timed

MOST_LIVE = 1 << 34  # registers times blocks: two gigabytes of bits
JUMPS = frozenset({Control.BRANCH, Control.SWITCH, Control.LEAVE})
# After these lanes may go different ways, or some may be gone.
PARTS_LANES = JUMPS | {Control.CALL}


@dataclass(frozen=True, slots=True)
class Edge:
    """From block to block; `predicate` is None where the way is not conditional."""

    source: int
    target: int
    predicate: ir.Register | None
    when: bool
    exact: bool = True  # False for one of many targets of an indirect branch


@dataclass(slots=True)
class Block:
    """Instructions `start` up to `stop`; only the last may leave it.

    Of the edges out of a branch the one that is taken comes first, then the one that follows.
    """

    start: int
    stop: int
    into: list[Edge] = field(default_factory=list)
    out: list[Edge] = field(default_factory=list)

    @property
    def successors(self) -> list[int]:
        return [edge.target for edge in self.out]


@dataclass(frozen=True, slots=True)
class Graph:
    """Blocks in text order; the last is empty: whoever gets there leaves the function."""

    code: tuple[ir.Instruction, ...]
    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]  # instruction to block

    def instructions(self, block: Block) -> tuple[ir.Instruction, ...]:
        return self.code[block.start : block.stop]


def build(
    module: ir.Module, function: ir.Function, after: frozenset[Control] = JUMPS,
    before: frozenset[Control] = frozenset(), cut: Callable[[ir.Instruction], bool] | None = None,
) -> Graph:  # fmt: skip
    """Blocks end after and begin before instructions of the given kinds, and at labels; where there
    is a `cut`, also before instructions for which it holds.

    A branch to an unknown label is a `CheckError`.
    """
    reader = _Reader(module)
    reader.read(function.body or (), [])
    code = reader.code
    cuts = {0, *reader.labels, len(code)}
    after |= JUMPS
    controls = [control_of(step) for step in timed(code)]
    cuts |= {at + 1 for at, control in enumerate(controls) if control in after}
    cuts |= {at for at, control in enumerate(controls) if control in before}
    if cut is not None:
        cuts |= {at for at, step in enumerate(timed(code)) if cut(step)}
    starts = sorted(cuts)
    blocks = [Block(a, b) for a, b in zip(starts, [*starts[1:], len(code)], strict=True)]
    number_at = {start: number for number, start in enumerate(starts)}
    for number, block in enumerate(timed(blocks)):
        for edge in reader.edges(number, block, number_at):
            block.out.append(edge)
            blocks[edge.target].into.append(edge)
    block_of = tuple(number for number, b in enumerate(blocks) for _ in range(b.start, b.stop))
    return Graph(tuple(code), tuple(blocks), block_of)


class _Reader:
    """Opens the scopes of a body: instructions in a row, and where each branch goes."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.code: list[ir.Instruction] = []
        self.labels: set[int] = set()
        # What a branch can see, by branch: labels and lists of labels, scope by scope.
        self.tables: dict[int, list[dict[str, int | tuple[str, ...]]]] = {}

    def read(
        self, body: Sequence[ir.Statement], around: list[dict[str, int | tuple[str, ...]]]
    ) -> None:
        labels: dict[str, int | tuple[str, ...]] = {}
        tables = [*around, labels]
        for statement in timed(body):
            match statement:
                case ir.Scope(inner):
                    self.read(inner, tables)
                case ir.Label(name):
                    labels[name] = len(self.code)
                    self.labels.add(len(self.code))
                case ir.Directive("branchtargets", words, label):
                    labels[label] = tuple(w for w in words if w not in (",", ";"))
                case ir.Instruction():
                    if control_of(statement) in JUMPS:
                        self.tables[len(self.code)] = tables
                    self.code.append(statement)
                case _:
                    pass

    def edges(self, number: int, block: Block, number_at: dict[int, int]) -> list[Edge]:
        last = self.code[block.stop - 1] if block.stop > block.start else None
        control = Control.NEXT if last is None else control_of(last)
        if last is None or control not in JUMPS:
            follows = block.stop < len(self.code) or block.start < block.stop
            return [Edge(number, number + 1, None, True)] if follows else []
        found = []
        if control is not Control.LEAVE:
            found = [
                Edge(number, number_at[at], last.predicate, not last.negated,
                     control is Control.BRANCH)
                for at in self._targets(block.stop - 1, last, control)
            ]  # fmt: skip
        if last.predicate is not None:
            found.append(Edge(number, number + 1, last.predicate, last.negated))
        return found

    def _targets(self, at: int, last: ir.Instruction, control: Control) -> list[int]:
        names = last.operands[-1:]
        if control is Control.SWITCH and names:
            words = self._find(names[0], last, at)
            names = tuple(ir.Symbol(word) for word in words) if isinstance(words, tuple) else ()
        if not names:
            raise CheckError("a branch without a target", self.module.span(last))
        places = [self._find(name, last, at) for name in names]
        return [place for place in places if isinstance(place, int)]

    def _find(self, name: ir.Operand, last: ir.Instruction, at: int) -> int | tuple[str, ...]:
        text = name.name if isinstance(name, ir.Symbol | ir.Register) else "?"
        for table in reversed(self.tables[at]):
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
    before: list[list[int]] = [[] for _ in successors]
    for node, after in enumerate(timed(successors)):
        for target in after:
            before[target].append(node)
    # Parts still to be ordered, last first; a part is its nodes in text order.
    work: list[tuple[list[int], frozenset[int] | None]] = [(list(range(len(successors))), None)]
    while work:
        nodes, headers = work.pop()
        if len(nodes) == 1:
            order.append(nodes[0])
            continue
        kept = set(nodes) - (headers or frozenset())
        inner = {n: [s for s in successors[n] if s in kept] for n in timed(nodes)}
        parts = _components(nodes, inner.__getitem__)
        # Parts come sinks first, and the work list is taken from its end.
        work += [(part, frozenset({_entry(part, before)})) for part in timed(parts)]
    rank = [0] * len(successors)
    for place, node in enumerate(order):
        rank[node] = place
    return rank


def _entry(part: list[int], before: Sequence[Sequence[int]]) -> int:
    """The first node in text order that is entered from before the part, else the first of all."""
    first = part[0]
    return next((node for node in part if any(n < first for n in before[node])), first)


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
            look()
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
    graph: Graph,
    uses: Callable[[ir.Instruction], tuple[frozenset[str], frozenset[str]]],
) -> list[frozenset[str]]:
    """Keys of the registers each block may read before writing them.

    `uses` gives (read, surely written) of an instruction.
    """
    found = live_sets(graph, uses)
    return [found[number] for number in range(len(found))]


@dataclass(frozen=True, slots=True)
class LiveSets:
    """What `live_in` gives, each set a number with a bit for each key: thousands of blocks may
    each have thousands of registers that are live."""

    keys: tuple[str, ...]
    masks: list[int]

    def __len__(self) -> int:
        return len(self.masks)

    def __getitem__(self, number: int) -> frozenset[str]:
        digits = bin(self.masks[number])[:1:-1]
        return frozenset(key for key, bit in zip(self.keys, digits, strict=False) if bit == "1")


def live_sets(
    graph: Graph,
    uses: Callable[[ir.Instruction], tuple[frozenset[str], frozenset[str]]],
) -> LiveSets:
    reads, writes = _exposed(graph, uses)
    # Only what some block reads before it writes it can be live at the start of any.
    keys = tuple(dict.fromkeys(key for read in reads for key in read))
    if len(keys) * len(reads) > MOST_LIVE:
        raise UnsupportedError(f"{len(keys)} registers that live over {len(reads)} blocks of code")
    bit = {key: 1 << number for number, key in enumerate(keys)}
    needed = [sum(bit[key] for key in read) for read in timed(reads)]
    passed = [~sum(bit[key] for key in written if key in bit) for written in timed(writes)]
    live = list(needed)
    work = list(range(len(graph.blocks)))
    while work:
        look()
        number = work.pop()
        block = graph.blocks[number]
        coming = 0
        for after in block.successors:
            coming |= live[after]
        fresh = needed[number] | (coming & passed[number])
        if fresh != live[number]:
            live[number] = fresh
            work += [edge.source for edge in block.into]
    return LiveSets(keys, live)


def _exposed(
    graph: Graph,
    uses: Callable[[ir.Instruction], tuple[frozenset[str], frozenset[str]]],
) -> tuple[list[set[str]], list[set[str]]]:
    """For each block: what it reads before it writes it, and what it certainly writes."""
    reads: list[set[str]] = []
    writes: list[set[str]] = []
    for block in graph.blocks:
        read: set[str] = set()
        written: set[str] = set()
        for instruction in timed(graph.instructions(block)):
            used, defined = uses(instruction)
            read |= used - written
            written |= defined
        reads.append(read)
        writes.append(written)
    return reads, writes
