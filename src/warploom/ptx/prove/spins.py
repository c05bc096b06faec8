"""Loops that wait: an mbarrier is asked until its answer is yes, and nothing else is done.

Comes in: the blocks of a kernel that ran. Goes out: the waits that are asked in such a loop, and
the registers that such a loop may have changed depending on how often it went round. What decides
within a loop only how long to sleep, as a clock does in libcu++, decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from warploom.ptx.emulate.code import Code, CodeBlock
from warploom.ptx.emulate.context import CARRY
from warploom.ptx.emulate.mbarrier import scope_at
from warploom.ptx.emulate.poison import PoisonTransfer
from warploom.ptx.ir import (
    Component,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Spelling,
)
from warploom.ptx.known import keys_of, record_of, registers, split_operands
from warploom.ptx.prove.ways import LONGEST, Ways, ways
from warploom.ptx.types import is_signed, size_of, types_of

ASKS = frozenset({"test_wait", "try_wait"})
Position = tuple[int, int | None]  # a block and an instruction of it; its end, if that is None


def is_wait(ins: Instruction) -> bool:
    return ins.opcode == "mbarrier" and ins.modifiers[0] in ASKS


def _asks_alike(one: Instruction, other: Instruction) -> bool:
    """Whether two waits ask for one phase in one way: what a yes orders is in the scope that is
    written, and nothing after a relaxed one."""
    said = [
        (scope_at(ins), {"relaxed", "parity"} & set(ins.modifiers), ins.operands[1:])
        for ins in (one, other)
    ]
    return said[0] == said[1]


def written_keys(ins: Instruction) -> list[str]:
    written, _ = split_operands(ins)
    carry = [CARRY] if "cc" in ins.modifiers else []
    return [key for register in registers(written) for key in keys_of(register)] + carry


def read_keys(ins: Instruction) -> list[str]:
    _, read = split_operands(ins)
    keys = [key for register in registers(read) for key in keys_of(register)]
    record = record_of(ins)
    keys += [CARRY] if record is not None and record.reads_carry else []
    return keys + ([] if ins.predicate is None else [ins.predicate.key])


def stale(loop: Sequence[Instruction]) -> list[Instruction]:
    """Those of a loop that read what the round before left, and what is made of that."""
    written = {key for ins in loop for key in written_keys(ins)}
    fresh: set[str] = set()
    found: list[Instruction] = []
    for ins in loop:
        # What a predicate keeps from being written stays as it was.
        kept = [] if ins.predicate is None or is_wait(ins) else written_keys(ins)
        if any(key in written and key not in fresh for key in (*read_keys(ins), *kept)):
            found.append(ins)
        elif ins.predicate is None:
            fresh |= set(written_keys(ins))
    return found


@dataclass(slots=True)
class Spins:
    """`asked` are the waits that are in a loop of their own; `carried` are registers that count
    how often such a loop went round."""

    code: Code
    asked: set[int] = field(default_factory=set)  # by where they stand
    carried: dict[str, Instruction] = field(default_factory=dict)
    into: dict[int, list[int]] = field(default_factory=dict)  # by block, those that come before
    loops: dict[int, tuple[int, int]] = field(default_factory=dict)  # by last block: wait, way out
    idle: set[int] = field(default_factory=set)  # blocks from which all ways only lead to a wait
    ran: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ran = {rank for rank, times in enumerate(self.code.executed) if times}
        for rank, block in enumerate(self.code.blocks):
            for after in block.successors:
                self.into.setdefault(after, []).append(rank)
        for rank in range(len(self.code.blocks)):  # also what would run after a no
            self._look(rank)
        for rank in sorted(self.ran):
            if self._quiet_after_wait(rank):
                self._peek(rank)

    def _quiet_after_wait(self, rank: int) -> bool:
        """Whether a block with one wait does nothing after it: a yes may be known sooner, else."""
        flows = self.code.blocks[rank].passages
        asks = [number for number, flow in enumerate(flows) if is_wait(flow.instruction)]
        return len(asks) == 1 and all(is_quiet(flow) for flow in flows[asks[0] + 1 :])

    def instructions(self, rank: int) -> Iterator[Instruction]:
        for flow in self.code.blocks[rank].passages:
            yield flow.instruction

    def _look(self, rank: int) -> None:
        """Whether the branch at the end of a block leaves a loop that waits."""
        found = self._answer(rank)
        if found is None:
            return
        start, again, out = found
        loop = self._waiting(again, rank)
        if loop is None or out in loop.blocks:
            return
        asks = [each for each in loop.blocks for i in self.instructions(each) if is_wait(i)]
        if len(asks) != 1 or asks[0] not in loop.certain or self._wait(asks[0]).start != start:
            return
        after = loop.from_on(asks[0])
        round_ = [ins for each in after for ins in self.instructions(each)]
        if any(map(is_wait, stale(round_))):
            return  # another round may ask for something else
        self.asked.add(start)
        self.loops[rank] = (start, out)
        self.idle |= set(loop.blocks)
        for ins in stale(round_):
            for key in written_keys(ins):
                self.carried.setdefault(key, ins)
        self._skip([each for each in loop.blocks if each not in after], set())

    def _wait(self, rank: int) -> Instruction:
        return next(ins for ins in self.instructions(rank) if is_wait(ins))

    def _waiting(self, first: int, last: int) -> Ways | None:
        """The ways from one block to another, on which nothing is done but to ask."""

        def quiet(block: CodeBlock) -> bool:
            return all(is_quiet(flow) or is_wait(flow.instruction) for flow in block.passages)

        return ways(self.code.blocks, first, last, quiet)

    def _skip(self, path: Iterable[int], but: set[str]) -> None:
        """Blocks that run only where the answer was no: what they write tells how often it was."""
        for each in path:
            for ins in self.instructions(each):
                for key in set(written_keys(ins)) - but:
                    self.carried.setdefault(key, ins)

    def _peek(self, rank: int) -> None:
        """Whether the branch at the end of a block leaves out a loop that asks the same again."""
        found = self._answer(rank)
        if found is None or found[0] in self.asked:
            return
        first, no, yes = found
        for last, (second, out) in self.loops.items():
            path = self._waiting(no, last)
            if path is None or out != yes:
                continue
            order = list(self.instructions(rank))
            at = next((n for n, ins in enumerate(order) if ins.start == first), None)
            if at is None:
                return  # it is asked in a block before this one
            mine, inside = order[at], [i for each in path.blocks for i in self.instructions(each)]
            waits = [ins for ins in inside if is_wait(ins)]
            # The place and the parity that the loop asks for are to be those of the first question.
            between = {key for ins in (*order[at + 1 :], *inside) for key in written_keys(ins)}
            alike = [ins.start for ins in waits] == [second] and _asks_alike(mine, waits[0])
            if alike and not between & set(read_keys(mine)):
                self.asked.add(first)
                self.left_out(path.blocks, rank, mine, set(written_keys(waits[0])))

    def left_out(
        self, path: Sequence[int], rank: int, first: Instruction, again: set[str]
    ) -> None:  # fmt: skip
        """Who comes late leaves out the blocks of a loop, as its first question had a yes."""
        self.idle |= {*path, rank}
        self._skip(path, again)
        self._tell_early(rank, first, again)

    def _tell_early(self, rank: int, wait: Instruction, again: set[str]) -> None:
        """Whether somebody came late is told by what is made of an early answer and read elsewhere
        than by its branch; not by what the loop writes, too, where the answer is always yes."""
        order = list(self.instructions(rank))
        after = order[order.index(wait) + 1 :]
        made = dict.fromkeys(written_keys(wait), wait)
        for ins in after:
            if made.keys() & set(read_keys(ins)):
                made |= dict.fromkeys(written_keys(ins), ins)
        read = {key for ins in order[: order.index(wait)] for key in read_keys(ins)}
        for other in self.ran - {rank}:
            leaving = self.code.blocks[other].leaving
            there = [*self.instructions(other), *([leaving.instruction] if leaving else [])]
            read |= {key for ins in there for key in read_keys(ins)}
        for key in (made.keys() & read) - again:
            self.carried.setdefault(key, made[key])

    def _answer(self, rank: int) -> tuple[int, int, int] | None:
        """The wait in a block whose answer its branch follows, and where a no and a yes lead."""
        block = self.code.blocks[rank]
        branch = block.leaving
        if branch is None or block.leaves or block.switch is not None or len(block.successors) != 2:
            return None
        predicate = branch.instruction.predicate
        sources: set[int] = set()
        end = (rank, None)
        sides = [
            None if predicate is None else self._value(predicate, "pred", answer, sources, end)
            for answer in (False, True)
        ]
        if len(sources) != 1 or None in sides or sides[0] == sides[1]:
            return None
        taken_on_no = bool(sides[0]) != branch.instruction.negated
        no, yes = block.successors if taken_on_no else block.successors[::-1]
        (start,) = sources
        return start, no, yes

    def path(self, rank: int, again: int, asks: Callable[[Instruction], bool]) -> list[int] | None:
        """The blocks of a straight way from one to another, on which nothing is done but to ask."""
        path: list[int] = []
        at = again
        while len(path) < LONGEST:
            block = self.code.blocks[at]
            quiet = all(is_quiet(flow) or asks(flow.instruction) for flow in block.passages)
            if not quiet or block.barrier is not None:
                return None
            path.append(at)
            if at == rank:
                return path
            if len(block.successors) != 1 or block.leaves:
                return None
            at = block.successors[0]
        return None

    # -- what a branch does if the answer is yes, or no -----------------------------------------

    def _value(
        self, operand: Operand, kind: str, answer: bool, sources: set[int], at: Position
    ) -> int | None:
        """The bits of an operand of a type as it is read at a place, if that is a constant or made
        of an answer."""
        match operand:
            case Immediate(value=value, spelling=Spelling.INTEGER):
                return value % (1 << _bits(kind))
            case Negated(inner) if kind == "pred":
                found = self._value(inner, kind, answer, sources, at)
                return None if found is None else 1 - found
            case Register() | Component():
                keys, holds = keys_of(operand), _bits(_declared(operand))
                made = self.definition(keys[0], at) if len(keys) == 1 else None
                if made is None or holds < _bits(kind):
                    return None
                found = self._made(keys[0], answer, sources, made)
                return None if found is None else found % (1 << _bits(kind))
            case _:
                return None

    def definition(self, key: str, at: Position) -> Position | None:
        """Where a register was written that is read at a place, if there is one way there."""
        rank, before = at
        for _ in range(LONGEST):
            passages = self.code.blocks[rank].passages
            for number in reversed(range(len(passages) if before is None else before)):
                if key in written_keys(passages[number].instruction):
                    return rank, number
            into = self.into.get(rank, [])
            if len(into) != 1:
                return None
            rank, before = into[0], None
        return None

    def _made(self, key: str, answer: bool, sources: set[int], at: Position) -> int | None:
        """The bits of a register that an instruction makes of an answer, where they are known."""
        rank, number = at
        assert number is not None
        ins = self.code.blocks[rank].passages[number].instruction
        to = ins.operands[0]
        if ins.predicate is not None:
            return None
        if is_wait(ins):
            sources.add(ins.start)
            return int(answer)
        second = isinstance(to, Pair) and ins.opcode == "setp" and key in _keys(to.second)
        to = (to.second if second else to.first) if isinstance(to, Pair) else to
        if not isinstance(to, Register | Component) or keys_of(to) != [key]:
            return None
        kinds = _kinds(ins)
        if kinds is None or len(kinds) != len(ins.operands) - 1:
            return None
        values = [
            self._value(each, kind, answer, sources, at)
            for each, kind in zip(ins.operands[1:], kinds, strict=True)
        ]
        found = _folded(ins, kinds, values)
        if found is None or ins.opcode == "setp":
            return None if found is None else found ^ second
        return _kept(found, types_of(ins)[0], _declared(to))


def is_quiet(flow: PoisonTransfer) -> bool:
    """Whether an instruction changes nothing but registers."""
    return (flow.plain and not flow.across) or flow.instruction.opcode == "nanosleep"


# -- bits ------------------------------------------------------------------------------------------


def _keys(operand: Operand) -> list[str]:
    return [key for each in registers((operand,)) for key in keys_of(each)]


def _declared(register: Register | Component) -> str:
    return register.register.type if isinstance(register, Component) else register.type


def _bits(kind: str) -> int:
    return 1 if kind == "pred" else 8 * size_of(kind)


def _kinds(ins: Instruction) -> list[str] | None:
    """The types by which the operands are read that a result is made of; None where that is not
    followed, as of floats."""
    kinds = types_of(ins)
    words = [word for word in ins.modifiers if word not in kinds]
    if any(each != "pred" and (each[0] not in "bsu" or not each[1:].isdigit()) for each in kinds):
        return None
    match ins.opcode, kinds, words:
        case "cvt", [_, source], []:
            return [source]
        case (("mov" | "not"), [kind], []):
            return [kind]
        case "selp", [kind], []:
            return [kind, kind, "pred"]
        case (("and" | "xor"), [kind], []):
            return [kind, kind]
        case "setp", [kind], ["eq" | "ne"]:
            return [kind, kind]
        case _:
            return None


def _folded(ins: Instruction, kinds: list[str], values: list[int | None]) -> int | None:
    """What an instruction makes of the bits of its operands; None where that is not known."""
    if ins.opcode == "selp":
        yes, no, holds = values
        return None if holds is None else yes if holds else no
    known = [each for each in values if each is not None]
    match ins.opcode, known:
        case "mov", [value]:
            return value
        case "cvt", [value]:
            return _kept(value, kinds[0], "b64")
        case "not", [value]:
            return value ^ ((1 << _bits(kinds[0])) - 1)
        case "xor", [a, b]:
            return a ^ b
        case "and", [a, b]:
            return a & b
        case "setp", [a, b]:
            return int((a == b) == ("eq" in ins.modifiers))
        case _:
            return None


def _kept(value: int, kind: str, register: str) -> int:
    """The bits of a register to which a value of a type is written: a wider one is filled by sign
    or zero."""
    bits = _bits(kind)
    value %= 1 << bits
    if is_signed(kind) and value >> (bits - 1):
        value -= 1 << bits
    return value % (1 << _bits(register))
