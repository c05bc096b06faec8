"""wgmma.fence: registers of products that were touched since the last one.

Between an access of a register and a product that has it as sum or left matrix a fence must stand;
so must one before the first product. Sums of products that follow each other need none between
them. A register copy counts as no access: compilers write some, which the assembler undoes.

First it is worked out, over all ways through the code, where a product may come upon such a
register. Only there is it looked at while the kernel runs, so that most kernels pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.machine.judges import Cause
from warploom.machine.race import Race, Side
from warploom.machine.semantics import Kind, Semantics
from warploom.ptx.emulate.access import Site, race_error
from warploom.ptx.emulate.code import Code, CodeBlock
from warploom.ptx.emulate.context import Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.poison import PoisonTransfer
from warploom.ptx.ir import Instruction, Register, Vector
from warploom.ptx.known import keys_of

Array = npt.NDArray[Any]
Bits = int  # a set of slots
_NEVER = -1  # no fence has been passed; else 1 + the number of an instruction that touched it
_KEPT = "registers of products"  # by frame and slot, who touched it
_FENCED = -1  # in place of a slot: who has passed a fence


def watch_products(code: Code) -> None:
    """Steps of a function that has products look after their registers, where that is needed."""
    if not any("wgmma" in block.names for block in code.blocks):
        return
    watched = _Watched(code)
    code.watches_products = bool(watched.suspect)
    for block in code.blocks:
        for at, passage in enumerate(block.passages):
            block.steps[at] = watched.step(passage, block.steps[at])


class _Watched:
    """What is to be looked at in one function."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.sums: dict[int, Bits] = {}  # by place of an instruction
        self.all: dict[int, Bits] = {}  # with its left matrix
        for block in code.blocks:
            for passage in block.passages:
                self._note(passage.instruction)
        self.of_interest = self._copied()
        self.suspect = self._suspects()
        self.labels: list[Span] = []

    def _note(self, ins: Instruction) -> None:
        if ins.opcode == "wgmma" and ins.modifiers[0] == "mma_async":
            self.sums[ins.start] = self._slots(ins.operands[0])
            left = self._slots(ins.operands[1]) if isinstance(ins.operands[1], Vector) else 0
            self.all[ins.start] = self.sums[ins.start] | left

    def _slots(self, operand: Any) -> Bits:
        keys = [k for r in operand.elements if isinstance(r, Register) for k in keys_of(r)]
        return _bits(self.code.slots[key] for key in keys if key in self.code.slots)

    def _copied(self) -> Bits:
        """Registers of products, and those that are copied to or from them."""
        found = 0
        for each in self.all.values():
            found |= each
        copies = [
            (1 << copy[0], 1 << copy[1])
            for block in self.code.blocks for passage in block.passages
            if (copy := _copy_of(passage)) is not None
        ]  # fmt: skip
        size = -1
        while size != found.bit_count():
            size = found.bit_count()
            for to, of in copies:
                if found & (to | of):
                    found |= to | of
        return found

    # -- over all ways through the code ---------------------------------------------------------

    def _suspects(self) -> Bits:
        """Registers that some product may come upon without a fence."""
        blocks = self.code.blocks
        entry: list[Bits] = [0] * len(blocks)
        entry[self.code.entry] = self.of_interest
        work, suspect, seen = [self.code.entry], 0, {self.code.entry}
        while work:
            rank = work.pop()
            after, found = self._through(blocks[rank], entry[rank])
            suspect |= found
            for following in blocks[rank].successors:
                if after & ~entry[following] or following not in seen:
                    entry[following] |= after
                    seen.add(following)
                    work.append(following)
        return suspect

    def _through(self, block: CodeBlock, touched: Bits) -> tuple[Bits, Bits]:
        """What is touched at the end of a block; what of it products came upon."""
        suspect = 0
        for passage in block.passages:
            ins = passage.instruction
            if ins.start in self.all:
                suspect |= touched & self.all[ins.start]
                touched &= ~self.sums[ins.start]
            elif _is_fence(ins):
                touched &= 0 if ins.predicate is None else -1
            elif (copy := _copy_of(passage)) is not None:
                to, of = (1 << slot for slot in copy)
                kept = touched & ~to if ins.predicate is None else touched
                touched = kept | (to if touched & of or not self.of_interest & of else 0)
            else:
                touched |= self._accessed(passage)
        return touched & self.of_interest, suspect

    def _accessed(self, passage: PoisonTransfer) -> Bits:
        return _bits((*passage.reads, *passage.writes)) & self.of_interest

    # -- while it runs ----------------------------------------------------------------------------

    def step(self, passage: PoisonTransfer, step: Step) -> Step:
        """A step that also notes what it touches, or looks who touched its registers."""
        ins = passage.instruction
        if not self.suspect:
            return step
        if ins.start in self.all:
            return self._product(ins, step)
        if _is_fence(ins):
            return _after(passage, step, _fence)
        copy = _copy_of(passage)
        if copy is None:
            slots = _numbers(self._accessed(passage))
            number = self._label(ins) if slots else 0
            return _after(passage, step, lambda f, who: _touch(f, slots, who, number))
        to, of = copy
        if not self.of_interest >> to & 1:
            return step

        def copied(f: Frame, who: Array) -> None:
            _kept(f, to)[who] = _kept(f, of)[who]

        return _after(passage, step, copied)

    def _label(self, ins: Instruction) -> int:
        self.labels.append(self.code.module.span(ins))
        return len(self.labels)

    def _product(self, ins: Instruction, step: Step) -> Step:
        span = self.code.module.span(ins)
        site = Site(span, ins.name, "shared", 16, False, Semantics(Kind.READ))
        slots, sums = _numbers(self.all[ins.start] & self.suspect), _numbers(self.sums[ins.start])

        def both(f: Frame) -> None:
            races = f.batch.races
            if races is not None:
                race = self._race(f, slots, span)
                if race is not None and races.add(race) and not races.every:
                    raise race_error(f, site, race)
                _touch(f, sums, f.index, 0)
            step(f)

        return both

    def _race(self, f: Frame, slots: list[int], span: Span) -> Race | None:
        """A register that somebody touched, of these, and no fence since."""
        for slot in slots:
            by = _kept(f, slot)[f.index]
            if by.any():
                at = int((by != 0).argmax())
                block, inside = divmod(int(f.index[at]), f.batch.block_size)
                who = (f.batch.first_block + block, inside)
                label = span if by[at] == _NEVER else self.labels[by[at] - 1]
                sides = Side(Kind.WRITE, *who, label), Side(Kind.READ, *who, span)
                name = next(key for key, number in self.code.slots.items() if number == slot)
                cause, place = Cause.REGISTER, f"register {name}"
                return Race("registers", slot, *sides, False, cause, True, place)
        return None


def _bits(slots: Iterable[int]) -> Bits:
    found = 0
    for slot in slots:
        found |= 1 << slot
    return found


def _numbers(bits: Bits) -> list[int]:
    return [at for at in range(bits.bit_length()) if bits >> at & 1]


def _is_fence(ins: Instruction) -> bool:
    return ins.opcode == "wgmma" and ins.modifiers[0] == "fence"


def _copy_of(passage: PoisonTransfer) -> tuple[int, int] | None:
    """To which register from which an instruction copies, if that is all it does."""
    ins = passage.instruction
    plain = ins.opcode == "mov" and len(ins.operands) == 2
    if plain and all(isinstance(each, Register) for each in ins.operands):
        return (passage.writes[0], passage.reads[0]) if passage.reads and passage.writes else None
    return None


def _after(passage: PoisonTransfer, step: Step, then: Callable[[Frame, Array], None]) -> Step:
    """A step, and what is noted of the threads that did it."""
    guard = passage.guard

    def both(f: Frame) -> None:
        if f.batch.races is None:
            step(f)
            return
        who: Array = f.index
        if guard is not None:
            who = who[np.broadcast_to(f.active_part(guard(f)), who.shape)]
        step(f)
        then(f, who)

    return both


def _kept(f: Frame, slot: int) -> Array:
    """By thread, who touched a register last; nobody since a fence, where there was one."""
    every = f.batch.special_state.setdefault(_KEPT, {})
    found: Array | None = every.get((id(f), slot))
    if found is None:
        fenced = every.get((id(f), _FENCED))
        found = np.full(f.n, _NEVER, np.int32) if fenced is None else np.where(fenced, 0, _NEVER)
        every[id(f), slot] = found
    return found


def _touch(f: Frame, slots: list[int], who: Array, number: int) -> None:
    for slot in slots:
        _kept(f, slot)[who] = number


def _fence(f: Frame, who: Array) -> None:
    every = f.batch.special_state.setdefault(_KEPT, {})
    fenced = every.setdefault((id(f), _FENCED), np.zeros(f.n, bool))
    fenced[who] = True
    for (frame, slot), by in every.items():
        if frame == id(f) and slot != _FENCED:
            by[who] = 0
