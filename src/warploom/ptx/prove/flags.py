"""Flags in global memory: loops that look at one until a comparison holds, and stays so.

A loop of this kind orders what was done before every write of its flag before what follows the
loop, in every schedule, if it needs all of the writes: one store, or sums of which the last alone
makes the comparison hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from warploom.machine.semantics import Scope
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.skeleton import (
    ACQUIRES,
    RELEASES,
    Act,
    Agent,
    Event,
    FlagLoop,
    Recorded,
)
from warploom.ptx.ir import Immediate, Instruction, Operand, Register, Vector
from warploom.ptx.known import STRONG, space_of
from warploom.ptx.prove.chains import CHAIN, Chain, Holds, chain_of, check_chain, rewritten
from warploom.ptx.prove.conditions import Conditions, Failed
from warploom.ptx.prove.grids import GridLoops, check_grids
from warploom.ptx.prove.order import Place
from warploom.ptx.prove.spins import Spins, is_quiet, read_keys, stale, written_keys

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b, "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}  # fmt: skip
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "lo": "hi", "hi": "lo", "ls": "hs",
            "hs": "ls"}  # fmt: skip
_NOT = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "lo": "hs",
        "hs": "lo", "hi": "ls", "ls": "hi"}  # fmt: skip
_GROWS = frozenset({"eq", "ge", "gt", "hs", "hi"})  # true of the whole of a sum
_HALF = 1 << 31


def looks(ins: Instruction) -> bool:
    """Whether an instruction looks at a place that others may write meanwhile."""
    strong = bool(STRONG & set(ins.modifiers))
    return ins.opcode == "ld" and strong and space_of(ins) in ("global", "generic")


@dataclass(frozen=True, slots=True)
class _Peek:
    """A look in a block, and the loop that is left out if it passes: its look, and its blocks."""

    rank: int
    first: Instruction
    load: Instruction
    path: tuple[int, ...]


@dataclass(slots=True)
class FlagLoops:
    """The loops of a kernel that look at flags, by identity of the block that leaves them."""

    code: Code
    spins: Spins
    found: dict[int, FlagLoop] = field(default_factory=dict)
    loads: set[int] = field(default_factory=set)  # where they stand
    peeks: list[_Peek] = field(default_factory=list)
    ends: dict[int, tuple[Instruction, FlagLoop, int]] = field(
        default_factory=dict
    )  # by last block

    def __post_init__(self) -> None:
        for rank in range(len(self.code.blocks)):
            self._look(rank)
        for rank in range(len(self.code.blocks)):
            if id(self.code.blocks[rank]) not in self.found:
                self._peek(rank)
        of_grids = GridLoops(self.code)
        self.found |= of_grids.found
        self.loads |= of_grids.steps

    def _compared(self, rank: int) -> tuple[Instruction, bool] | None:
        """The comparison that the branch at the end of a block follows, and whether the branch is
        taken where it holds."""
        block = self.code.blocks[rank]
        branch = block.leaving
        if branch is None or block.leaves or len(block.successors) != 2 or block.switch is not None:
            return None
        predicate = branch.instruction.predicate
        made = None if predicate is None else self._made(predicate, rank)
        if made is None or made.opcode != "setp" or len(made.operands) != 3:
            return None
        return made, not branch.instruction.negated

    def _look(self, rank: int) -> None:
        compared = self._compared(rank)
        if compared is None:
            return
        block = self.code.blocks[rank]
        for again in (0, 1):
            loop = self._loop(rank, block.successors[again], compared[0])
            if loop is not None:
                # The first successor is where the branch goes that is taken.
                taken = again == 1
                load, found = loop
                found = replace(found, taken=taken, holds=taken == compared[1])
                self.found[id(block)] = found
                self.ends[rank] = load, found, block.successors[1 - again]

    def _peek(self, rank: int) -> None:
        """A first look, behind which a loop that asks the same is left out."""
        compared, flows = self._compared(rank), self.code.blocks[rank].passages
        loads = [number for number, flow in enumerate(flows) if looks(flow.instruction)]
        if compared is None or len(loads) != 1:
            return
        mine = flows[loads[0]].instruction
        if not all(is_quiet(flow) for flow in flows[loads[0] + 1 :]):
            return
        behind = [flow.instruction for flow in flows[loads[0] + 1 :]]
        for last, (load, loop, out) in self.ends.items():
            for yes in (0, 1):
                successors = self.code.blocks[rank].successors
                if successors[yes] != out:
                    continue
                path = self.spins.path(last, successors[1 - yes], looks)
                asked = self._asked([mine, *behind], compared[0])
                if path is None or asked is None or block_leaves(self.code, path, last):
                    continue
                inside = [ins for each in path for ins in self.spins.instructions(each)]
                # The first successor is where the branch goes that is taken.
                found = replace(asked, taken=yes == 0, holds=(yes == 0) == compared[1])
                between = {key for ins in (*behind, *inside) for key in written_keys(ins)}
                if self._same(found, loop, mine, load) and not between & self._needed(mine, found):
                    self.found[id(self.code.blocks[rank])] = found
                    self.loads.add(mine.start)
                    self.peeks.append(_Peek(rank, mine, load, tuple(path)))

    def _needed(self, load: Instruction, loop: FlagLoop) -> set[str]:
        """What a look reads: its address, and the number that it is compared with."""
        slots = {slot: key for key, slot in self.code.slots.items()}
        number = {slots[loop.slot]} if loop.slot >= 0 else set()
        return number | set(read_keys(load))

    def _same(
        self, peek: FlagLoop, loop: FlagLoop, mine: Instruction, load: Instruction
    ) -> bool:  # fmt: skip
        """Whether two looks are at one place, in one way, and pass at the same numbers."""
        alike = (mine.modifiers, mine.operands[1:]) == (load.modifiers, load.operands[1:])
        left = [each.compare if each.holds else _NOT[each.compare] for each in (peek, loop)]
        rest = [(each.type, each.number, each.slot) for each in (peek, loop)]
        return alike and mine.predicate is None and left[0] == left[1] and rest[0] == rest[1]

    def tell(self, spins: Spins) -> None:
        """Whether somebody came late is told by what such loops write, and by what is made of a
        first look, but for the number that is seen at last."""
        for peek in self.peeks:
            if peek.rank in spins.ran:
                again = set(written_keys(peek.load))
                spins.left_out(peek.path, peek.rank, peek.first, again)

    def _made(self, operand: Operand, rank: int) -> Instruction | None:
        if not isinstance(operand, Register):
            return None
        at = self.spins.definition(operand.key, (rank, None))
        if at is None or at[1] is None:
            return None
        made = self.code.blocks[at[0]].passages[at[1]].instruction
        to = made.operands[0]  # of two predicates the second is the opposite
        return made if isinstance(to, Register) and to.key == operand.key else None

    def _loop(
        self, rank: int, again: int, made: Instruction
    ) -> tuple[Instruction, FlagLoop] | None:
        """The look of a loop, and what it waits for."""
        path = self.spins.path(rank, again, looks)
        if path is None or block_leaves(self.code, path, rank):
            return None
        inside = [ins for each in path for ins in self.spins.instructions(each)]
        loads = [ins for ins in inside if looks(ins)]
        found = self._asked(inside, made)
        if found is None:
            return None
        before = inside[: inside.index(loads[0])]
        asked = next(each for each in path if loads[0] in self.spins.instructions(each))
        own = list(self.spins.instructions(asked))
        if stale(inside) or any(written_keys(i) for i in before if i not in own):
            return None  # what a round leaves behind tells how many there were
        self.loads.add(loads[0].start)
        return loads[0], found

    def _asked(self, inside: list[Instruction], made: Instruction) -> FlagLoop | None:
        """What the one look among some instructions is compared with."""
        loads = [ins for ins in inside if looks(ins)]
        every = [key for ins in inside for key in written_keys(ins)]
        written = set(every)
        if len(loads) != 1 or made.modifiers[-1] not in _TYPES or made not in inside:
            return None
        value = written_keys(loads[0])
        once = all(every.count(key) == 1 for key in (*value, *written_keys(made)))
        plain = made.predicate is None and loads[0].predicate is None
        if not once or not plain or inside.index(made) < inside.index(loads[0]):
            return None  # something else than what the look saw may be compared
        if isinstance(loads[0].operands[0], Vector):
            return None  # of several words, of which any may be compared
        sides = [isinstance(each, Register) and each.key in value for each in made.operands[1:]]
        if sides.count(True) != 1:
            return None
        other = made.operands[1 + sides.index(False)]
        compare = made.modifiers[0]
        if sides[1]:
            compare = _SWAPPED.get(compare, compare)
        number, slot = None, -1
        if isinstance(other, Immediate):
            number = int(other.value)
        elif isinstance(other, Register) and other.key not in written:
            slot = self.code.slots[other.key]
        else:
            return None
        span = self.code.module.span(loads[0])
        return FlagLoop(span, compare, made.modifiers[-1], number, slot, holds=True, taken=True)


_TYPES = frozenset({"u32", "s32", "b32"})


def block_leaves(code: Code, path: list[int], rank: int) -> bool:
    """Whether a loop has another way out than its last branch."""
    return any(len(code.blocks[each].successors) != 1 for each in path if each != rank)


# -- what the run says of them ---------------------------------------------------------------------


def counted_on(
    recorded: Recorded, loops: dict[int, FlagLoop]
) -> tuple[Recorded, list[Chain]]:  # fmt: skip
    """The run with the flags that only count on as chains, and these."""
    if not recorded.complete:
        return recorded, []
    unmet = dict.fromkeys(flag for flag, _ in _unmet(recorded, loops))
    found = [chain_of(recorded, flag, _lets) for flag in unmet if flag not in recorded.plain]
    return rewritten(recorded, [each for each in found if each and len(each.held) > 2])


def check_flags(
    recorded: Recorded, loops: dict[int, FlagLoop], chains: Sequence[Chain] = ()
) -> Iterator[Failed]:  # fmt: skip
    """flags: what waits for the grid, for flags, and for such as count on."""
    yield from check_grids(recorded)
    for _, failed in _unmet(recorded, loops):
        yield failed
    for chain in chains:
        yield from check_chain(recorded, chain)
        agents = [recorded.agents[a] for a, _ in chain.state]
        least = _among({recorded.first + agent.block for agent in agents}, recorded.cluster)
        for (a, at), state in chain.state.items():
            if state:
                yield from _ordered(recorded.agents[a], at, least)


def _unmet(
    recorded: Recorded, loops: dict[int, FlagLoop]
) -> Iterator[tuple[Any, Failed]]:  # fmt: skip
    """Every flag that is waited for needs all of its writes, in every order: those that do not.

    What is written when all who wait have passed, in every order, sets a flag back.
    """
    by_span = {loop.load: loop for loop in loops.values()}
    writes: dict[Any, list[tuple[Event, int]]] = {}
    waits: dict[Any, dict[Event, list[Place]]] = {}
    blocks: dict[Any, set[int]] = {}
    back: list[tuple[Event, Place]] = []
    for a, agent, k, event in _of_flags(recorded):
        blocks.setdefault(event.where, set()).add(recorded.first + agent.block)
        if event.act is Act.COME:
            writes.setdefault(event.where, []).append((event, len(agent.threads)))
            back += [(event, (a, k))] if event.phase else []
        else:
            waits.setdefault(event.where, {}).setdefault(event, []).append((a, k))
    early = _too_early(recorded, waits, back)
    for flag, events in waits.items():
        needed = [each for each in writes.get(flag, []) if not each[0].phase or flag in early]
        for event in events:
            loop = by_span.get(recorded.sites[event.site])
            known = loop is not None and loop.compare in _COMPARE
            message = "this loop is not understood" if loop is None or not known else _needs_all(
                loop, event.amount, recorded.initial[flag], needed
            )  # fmt: skip
            if flag in recorded.plain:
                message = "the flag is also written by plain stores, or by other atomics"
            if message:
                yield flag, Failed("flags", message, event.site)
    for flag, event in early.items():
        message = "the flag may be written again before all who wait for it have passed"
        yield flag, Failed("flags", message, event.site)
    for _, agent, at, event in _of_flags(recorded):
        if event.where in waits and (not event.phase or event.where in early):
            for failed in _ordered(agent, at, _among(blocks[event.where], recorded.cluster)):
                yield event.where, failed


def _of_flags(recorded: Recorded) -> Iterator[tuple[int, Agent, int, Event]]:
    for number, agent in enumerate(recorded.agents):
        for at, event in enumerate(agent.events):
            if event.act in (Act.COME, Act.GO) and event.where[0] == "flag":
                yield number, agent, at, event


def _among(blocks: set[int], cluster: int) -> Scope:
    """The least scope that these blocks are in together."""
    if len(blocks) == 1:
        return Scope.BLOCK
    return Scope.CLUSTER if len({each // cluster for each in blocks}) == 1 else Scope.GRID


def _may_be_between(each: Event, event: Event) -> bool:
    """What is done at other flags may be; to set a flag back, with phase 1, is done at one."""
    of_flag = each.act in (Act.COME, Act.GO) and each.where[0] in ("flag", CHAIN)
    return of_flag and (each.act is event.act or each.phase > 0)


def _ordered(agent: Agent, at: int, least: Scope) -> Iterator[Failed]:
    """Whether a release stands right before a write of a flag, an acquire right after a loop that
    looks at one: what was done, or is done, at other flags alone may stand between."""
    event = agent.events[at]
    writes = event.act is Act.COME
    way, beside = (RELEASES, agent.events[:at][::-1]) if writes else (
        ACQUIRES, agent.events[at + 1 :]
    )  # fmt: skip
    for each in beside:
        if each.act is Act.ORDERS:
            if each.bytes & way and each.amount >= least:
                return
        elif not _may_be_between(each, event):
            break
    what = "no release stands right before this write of a flag" if writes else (
        "no acquire stands right after this loop that looks at a flag"
    )  # fmt: skip
    yield Failed("flags", f"{what}, or its scope is too small", event.site)


def _too_early(
    recorded: Recorded, waits: dict[Any, dict[Event, list[Place]]], back: list[tuple[Event, Place]]
) -> dict[Any, Event]:
    """By flag, a write that sets it back while somebody may still wait for it."""
    order = Conditions(recorded).order if back else None
    if order is None or order.cycle is not None:
        return {}
    return {
        event.where: event for event, place in back
        if not all(
            order.before_all(wait, place) for places in waits[event.where].values()
            for wait in places
        )
    }  # fmt: skip


def _lets(loop: FlagLoop, number: int) -> Holds:
    """Which values of a flag let a wait pass."""
    if loop.compare not in _COMPARE:
        return lambda _: False
    compare = _COMPARE[loop.compare if loop.holds else _NOT[loop.compare]]
    signed = loop.type == "s32"
    return lambda value: compare(_read(value, signed), _read(number, signed))


def _needs_all(loop: FlagLoop, number: int, initial: int, writes: list[tuple[Event, int]]) -> str:
    """What is wrong with a wait; nothing where it needs all writes of its flag."""
    holds = _lets(loop, number)
    if holds(initial):
        return "the flag lets it pass before anybody has written it"
    stores = [(event, count) for event, count in writes if not event.bytes]
    if stores:
        (event, count) = stores[0]
        if len(writes) > 1 or count > 1:
            return "the flag is written more than once, and who is last is not known"
        return "" if holds(event.amount) else "what is stored to the flag does not end this loop"
    amounts = [_read(event.amount, signed=True) for event, _ in writes]
    compare = loop.compare if loop.holds else _NOT[loop.compare]
    total = _read(initial, loop.type == "s32") + sum(
        amount * count for amount, (_, count) in zip(amounts, writes, strict=True)
    )
    if any(amount <= 0 for amount in amounts) or not 0 <= total < _HALF:
        return "the flag does not only grow"
    if not holds(total):
        return "what is added to the flag does not end this loop"
    single = len(writes) == 1 and writes[0][1] == 1
    if not single and (compare not in _GROWS or any(holds(total - each) for each in amounts)):
        return "the flag may let it pass before all have added to it"
    return ""


def _read(value: int, signed: bool) -> int:
    value %= 1 << 32
    return value - (1 << 32) if signed and value >= _HALF else value
