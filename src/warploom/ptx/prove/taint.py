"""Which values depend on loaded data or on who came first, and what is decided by them.

Comes in: the code of a kernel that ran, and which instruction wrote what its loads of shared memory
saw. Goes out: the branches, predicates, addresses and operands of barriers that depend on such
values. Where there are none, all launches of this shape do the same steps at the same addresses.
Registers are looked at without regard to the order of instructions, and only code that ran is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import IntFlag

from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.poison import PoisonTransfer
from warploom.ptx.emulate.skeleton import NOWHERE
from warploom.ptx.ir import Address, Instruction, Operand, Vector
from warploom.ptx.known import (
    COMMUTES,
    STRONG,
    keys_of,
    registers,
    space_of,
    split_operands,
    varies,
)
from warploom.ptx.prove.spins import Spins, is_wait, read_keys, written_keys
from warploom.ptx.types import is_float, type_of


class Taint(IntFlag):
    NONE = 0
    DATA = 1  # bytes that the kernel was given
    ORDER = 2  # who came first, time, place
    TOKEN = 4  # the state of an mbarrier, which only a wait may take


_LOADS = frozenset({"ld", "ldu"})
_PICTURES = frozenset({"tex", "tld4", "suld", "txq", "suq"})
_STORES = frozenset({"st", "stmatrix"})
_ATOMICS = frozenset({"atom", "red"})
_CARRY = frozenset({"mov", "selp", "shfl"})


@dataclass(frozen=True, slots=True)
class Dependence:
    """An instruction that decides something by a value, and the instruction that it comes from."""

    taint: Taint
    instruction: Instruction
    what: str
    source: Instruction | None


@dataclass(slots=True)
class TaintFlow:
    """`seen`: by a load of shared memory, where the instructions stand that wrote what it saw.

    Which of several strong stores stays is asked of the run (`machine/last`), not here.
    """

    code: Code
    spins: Spins
    seen: Mapping[int, frozenset[int]]
    # What looks in loops that wait for all writes of a flag, or for the grid, and adds for that.
    flags: frozenset[int] = frozenset()
    # By what reads a tensor map in memory: where those stand that wrote it, or nowhere.
    maps: Mapping[int, frozenset[int]] = field(default_factory=dict)
    of: dict[str, Taint] = field(default_factory=dict)
    source: dict[tuple[str, Taint], Instruction] = field(default_factory=dict)
    cells: dict[str, Taint] = field(default_factory=dict)  # of local and of global memory
    written: dict[int, Taint] = field(default_factory=dict)  # to shared memory, by instruction
    flows: list[PoisonTransfer] = field(default_factory=list)
    mixed: bool = False  # atomics of several kinds, which do not commute with each other
    barriers: set[int] = field(default_factory=set)  # where steps on mbarriers stand
    met: Taint = Taint.NONE  # what threads bring to barriers that reduce

    def __post_init__(self) -> None:
        blocks = [self.code.blocks[rank] for rank in sorted(self.spins.ran)]
        self.flows = [flow for block in blocks for flow in block.passages]
        self.flows += [block.coming for block in blocks if block.coming is not None]
        steps = [flow.instruction for flow in self.flows]
        self.barriers = {ins.start for ins in steps if ins.opcode == "mbarrier"}
        kinds = {(COMMUTES & set(ins.modifiers), type_of(ins)) for ins in steps
                 if ins.opcode in _ATOMICS and _commutes(ins)}  # fmt: skip
        self.mixed = len(kinds) > 1
        for key, ins in self.spins.carried.items():
            self._mark(key, Taint.ORDER, ins)
        while sum(self._pass(flow.instruction) for flow in self.flows):
            pass

    # -- from operands to results ---------------------------------------------------------------

    def taint(self, keys: list[str]) -> Taint:
        found = Taint.NONE
        for key in keys:
            found |= self.of.get(key, Taint.NONE)
        return found

    def of_operands(self, *operands: Operand) -> Taint:
        found = self.taint([key for each in registers(operands) for key in keys_of(each)])
        return found | (Taint.ORDER if varies(operands) else Taint.NONE)

    def _pass(self, ins: Instruction) -> bool:
        """One instruction; whether anything is new."""
        met = self.met
        made = self._made(ins)
        changed = self._store(ins) or self.met != met
        for key in written_keys(ins):
            changed |= self._mark(key, made, ins)
        return changed

    def _mark(self, key: str, taint: Taint, ins: Instruction) -> bool:
        before = self.of.get(key, Taint.NONE)
        for each in Taint:
            if each & taint & ~before:
                self.source[key, each] = self._origin(ins, each) or ins
        self.of[key] = before | taint
        return self.of[key] != before

    def _origin(self, ins: Instruction, taint: Taint) -> Instruction | None:
        """The first instruction on the way, as it is told."""
        found = (self.source.get((key, taint)) for key in read_keys(ins))
        return next((each for each in found if each is not None), None)

    def _made(self, ins: Instruction) -> Taint:
        """What the results of an instruction depend on."""
        _, read = split_operands(ins)
        guard = self.of.get(ins.predicate.key, Taint.NONE) if ins.predicate else Taint.NONE
        if ins.opcode in _LOADS or ins.opcode == "ldmatrix":
            return guard | self._loaded(ins)
        if ins.opcode == "wmma":
            return guard | Taint.DATA | self.of_operands(*read) | self._loaded(ins)
        if ins.opcode == "wgmma":  # with its sums, and whether these are kept
            return guard | Taint.DATA | self.of_operands(*ins.operands) | self._in_shared()
        if ins.opcode in _PICTURES:
            return guard | Taint.DATA | self.cells.get("global", Taint.NONE)
        if ins.opcode == "atom":  # of a grid that meets, only whether its bit turns is asked
            return Taint.NONE if ins.start in self.flags else Taint.DATA | Taint.ORDER
        if ins.opcode == "mbarrier":
            return guard | self._told(ins)
        if ins.opcode == "activemask" or _needs_convergence(ins):
            return Taint.ORDER
        if ins.opcode == "elect":
            return guard | self.of_operands(*read)
        if _reduces(ins):  # others may have come to the same barrier at another place
            self.met |= guard | self.of_operands(*read) | self.taint(read_keys(ins))
            return self.met
        made = guard | self.of_operands(*read) | self.taint(read_keys(ins)) | self._own(ins)
        # What is reckoned with the state of an mbarrier is none that an arrival gave.
        return made | Taint.ORDER if made & Taint.TOKEN and ins.opcode not in _CARRY else made

    def _own(self, ins: Instruction) -> Taint:
        """What is not followed further."""
        return Taint.ORDER if ins.opcode in ("call", "alloca", "stacksave") else Taint.NONE

    def _told(self, ins: Instruction) -> Taint:
        if is_wait(ins):
            return Taint.NONE if ins.start in self.spins.asked else Taint.ORDER
        return Taint.ORDER if ins.modifiers[0] == "pending_count" else Taint.TOKEN

    def _loaded(self, ins: Instruction) -> Taint:
        space = space_of(ins)
        if space == "param" or ins.start in self.flags:
            return Taint.NONE
        if space == "local":
            return self.cells.get("local", Taint.NONE)
        strong = Taint.ORDER if STRONG & set(ins.modifiers) else Taint.NONE
        found = self._held(ins)
        if space == "generic":  # it may be any memory
            found |= self.cells.get("local", Taint.NONE)
        if space != "shared":
            found |= Taint.DATA | self.cells.get("global", Taint.NONE)
        elif ins.start not in self.seen and not (ins.opcode == "ld" and ins.predicate):
            found |= Taint.DATA | Taint.ORDER  # one that a predicate kept from all was never done
        return found | strong

    # -- what is stored -------------------------------------------------------------------------

    def _store(self, ins: Instruction) -> bool:
        """What an instruction leaves in memory; whether anything is new."""
        if ins.opcode in _STORES:
            guard = self.of.get(ins.predicate.key, Taint.NONE) if ins.predicate else Taint.NONE
            value = guard | self.of_operands(*ins.operands[1:])
        elif ins.opcode in _ATOMICS and _commutes(ins) and not self.mixed:
            # One that ends later has its mbarrier last, of which it reckons with nothing.
            adds = ins.operands[1:2] if "async" in ins.modifiers else ins.operands[-1:]
            value = Taint.DATA | self.of_operands(*adds) | self._held(ins, self.barriers)
        elif ins.opcode in _ATOMICS or ins.opcode == "mbarrier":
            value = Taint.DATA | Taint.ORDER
        elif ins.opcode == "wmma":
            value = Taint.DATA | self.of_operands(*ins.operands[1:])
        elif ins.opcode == "tensormap":  # all of a map is made of what it was, and what is put in
            guard = self.of.get(ins.predicate.key, Taint.NONE) if ins.predicate else Taint.NONE
            value = guard | self.of_operands(*ins.operands[1:]) | self.of_map(ins)
        elif ins.opcode == "cp":
            inside = "shared::cta" in ins.modifiers and "shared::cluster" in ins.modifiers
            value = Taint.DATA | self.cells.get("global", Taint.NONE)
            # Who comes last decides what several reductions leave.
            value |= Taint.ORDER if inside or "reduce" in ins.modifiers else Taint.NONE
            value |= self._copied_out(ins)
        else:
            return False
        before = self.written.get(ins.start, Taint.NONE)
        self.written[ins.start] = before | value
        space = space_of(ins)
        cell = "local" if space == "local" else "global"
        kept = self.cells.get(cell, Taint.NONE)
        if ins.opcode == "cp":
            out = self._copied_out(ins) | (value if "reduce" in ins.modifiers else Taint.NONE)
            self.cells["global"] = self.cells.get("global", Taint.NONE) | out
        if space != "shared" and ins.opcode not in ("mbarrier", "cp"):
            self.cells[cell] = kept | value
            if space == "generic":  # it may be either
                self.cells["local"] = self.cells.get("local", Taint.NONE) | value
        return self.written[ins.start] != before or self.cells.get(cell, Taint.NONE) != kept

    def _held(self, ins: Instruction, but: Set[int] = frozenset()) -> Taint:
        """What the shared memory depends on that an instruction sees, but what these wrote."""
        found = Taint.NONE
        for writer in self.seen.get(ins.start, frozenset()) - but:
            found |= self.written.get(writer, Taint.ORDER)
        return found

    def of_map(self, ins: Instruction) -> Taint:
        """What the tensor maps depend on that an instruction reads in memory."""
        writers = self.maps.get(ins.start, frozenset())
        if ins.opcode == "tensormap":  # it may lie in shared memory
            writers |= self.seen.get(ins.start, frozenset())
        found = Taint.DATA if NOWHERE in writers else Taint.NONE
        for writer in writers - {NOWHERE}:
            found |= self.written.get(writer, Taint.ORDER)
        return found

    def _copied_out(self, ins: Instruction) -> Taint:
        """What a bulk copy takes from shared memory: any of what was written there."""
        if "bulk" not in ins.modifiers or "shared::cta" not in ins.modifiers:
            return Taint.NONE
        return self._in_shared()

    def _in_shared(self) -> Taint:
        """What anything in shared memory may depend on, but for mbarriers."""
        found = Taint.NONE
        for start, taint in self.written.items():
            found |= taint if start not in self.barriers else Taint.NONE
        return found

    # -- what is decided --------------------------------------------------------------------------

    def decided(self) -> Iterator[Dependence]:
        """Everything that is decided by data or by who came first."""
        for flow in self.flows:
            yield from self._decided_by(flow)
        for rank in sorted(self.spins.ran):
            leaving = self.code.blocks[rank].leaving
            if leaving is not None and rank not in self.spins.idle:
                yield from self._uses(leaving.instruction, read_keys(leaving.instruction), "branch")

    def stored(self, stores: Iterable[Instruction]) -> Iterator[Dependence]:
        """What the values of these stores depend on."""
        for ins in stores:
            keys = [key for each in registers(ins.operands[1:]) for key in keys_of(each)]
            yield from self._uses(ins, keys, "value")

    def _decided_by(self, flow: PoisonTransfer) -> Iterator[Dependence]:
        ins = flow.instruction
        if self.flags and ins.opcode in ("st", "red", "atom") and _may_set(ins):
            value = ins.operands[2 if ins.opcode == "atom" else 1 :]
            keys = [key for each in registers(value) for key in keys_of(each)]
            yield from self._uses(ins, keys, "flag")
        if ins.opcode == "cp" and "tensor" in ins.modifiers:
            for each in Taint:
                if each & self.of_map(ins):
                    yield Dependence(each, ins, "map", ins)
        if ins.predicate is not None and _acts(flow):
            yield from self._uses(ins, [ins.predicate.key], "predicate")
        for what, operands, allowed in _deciding(flow):
            keys = [key for each in registers(operands) for key in keys_of(each)]
            yield from self._uses(ins, keys, what, allowed)
            if varies(operands):
                yield Dependence(Taint.ORDER, ins, what, ins)

    def _uses(
        self, ins: Instruction, keys: list[str], what: str, allowed: Taint = Taint.NONE
    ) -> Iterator[Dependence]:
        for key in keys:
            for each in Taint:
                if each & self.of.get(key, Taint.NONE) & ~allowed:
                    taint = Taint.ORDER if each is Taint.TOKEN else each
                    yield Dependence(taint, ins, what, self.source.get((key, each)))


def _commutes(ins: Instruction) -> bool:
    """Whether atomics leave the same value, whoever comes first: what a float holds does not."""
    return bool(COMMUTES & set(ins.modifiers)) and not is_float(type_of(ins))


def _may_set(ins: Instruction) -> bool:
    """Whether an instruction may set a flag in global memory."""
    far = space_of(ins) in ("global", "generic")
    return far and (ins.opcode != "st" or bool(STRONG & set(ins.modifiers)))


def _reduces(ins: Instruction) -> bool:
    return ins.opcode in ("bar", "barrier") and "red" in ins.modifiers


def _acts(flow: PoisonTransfer) -> bool:
    """Whether it matters to others that an instruction is done: it has an effect, or is done by
    several lanes together."""
    if flow.instruction.opcode == "nanosleep":
        return False
    return not flow.plain or flow.across or flow.instruction.opcode in ("shfl", "brkpt")


def _needs_convergence(ins: Instruction) -> bool:
    """Lanes that happen to be together: without .sync nobody says which those are."""
    return ins.opcode in ("shfl", "vote") and "sync" not in ins.modifiers


Deciding = tuple[str, tuple[Operand, ...], Taint]


def _deciding(flow: PoisonTransfer) -> Iterator[Deciding]:
    """The operands of an instruction that decide where it goes or whom it waits for."""
    ins = flow.instruction
    operands = ins.operands
    addresses = tuple(each for each in operands if isinstance(each, Address))
    if ins.opcode in ("shfl", "vote", "match", "redux", "elect"):
        yield "lanes", operands[1 if ins.opcode == "elect" else 2 :], Taint.NONE
        return
    if (flow.plain and not addresses) or ins.opcode == "nanosleep":
        return
    if ins.opcode == "wgmma":
        plain = tuple(each for each in operands[1:] if not isinstance(each, Vector))
        descriptors = plain[: 2 if not isinstance(operands[1], Vector) else 1] if plain else ()
        yield "descriptor", descriptors, Taint.NONE
    elif ins.opcode in ("ld", "ldu", "st", "stmatrix", "ldmatrix", "wmma", *_ATOMICS, *_PICTURES):
        yield "address", addresses, Taint.NONE
    elif is_wait(ins):
        yield "address", operands[1:2], Taint.NONE
        yield "wait", operands[2:], Taint.NONE if "parity" in ins.modifiers else Taint.TOKEN
    elif ins.opcode == "mbarrier" and ins.modifiers[0] == "pending_count":
        return
    elif _reduces(ins):
        yield "operand", operands[1:-1], Taint.NONE
    else:
        _, read = split_operands(ins)
        yield "operand", read, Taint.NONE
