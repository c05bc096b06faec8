"""wgmma.fence: registers of products that were touched since the last one.

Between an access of a register and a product that has it as sum or left matrix a fence must stand;
so must one before the first product. Sums of products of one shape that follow each other need none
between them, nor does a left matrix of several products. By the manual a register copy is an access
like any other, and so is a constant that is set right after a fence: compilers move zeros there. By
practice the assembler undoes such, or waits for them, which is then assumed.

First it is worked out, over all ways through the code, where a product may come upon such a
register. Only there is it looked at while the kernel runs, so that most kernels pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

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
from warploom.ptx.ir import Immediate, Instruction, Register, Vector
from warploom.ptx.known import keys_of

Array = npt.NDArray[Any]
Bits = int  # a set of slots; of uses, one such set for each role
COPIES = (
    "register copies and constants between wgmma.fence and a product are undone by the assembler, "
    "or waited for"
)
_NEVER = -1  # no fence has been passed; else 1 + the number of a use
_KEPT = "registers of products"  # by frame, slot, and whether copied, who touched it
_FENCED = -1  # in place of a slot: who has passed a fence
# What was done to a register since a fence; a sum has the shape of its product.
_PLAIN, _COPY, _LEFT = "an access", "a copy", "a left matrix"


class _Use(NamedTuple):
    """An instruction that touches registers of products, and as what."""

    span: Span
    role: str


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
        self.left: dict[int, Bits] = {}
        self.shapes: dict[int, str] = {}
        self.constants: dict[int, int] = {}  # the slots that are set
        for block in code.blocks:
            for passage in block.passages:
                self._note(passage.instruction)
            self.constants |= _constants(block)
        self.width = max(code.slots.values(), default=0) + 1
        self.roles = [_PLAIN, _COPY, _LEFT, *sorted(set(self.shapes.values()))]
        self.of_interest = self._copied()
        self.suspect = self._suspects()
        self.uses: list[_Use] = []

    def _note(self, ins: Instruction) -> None:
        if ins.opcode == "wgmma" and ins.modifiers[0] == "mma_async":
            self.sums[ins.start] = self._slots(ins.operands[0])
            left = ins.operands[1]
            self.left[ins.start] = self._slots(left)
            self.shapes[ins.start] = next(w for w in ins.modifiers if w.startswith("m64n"))

    def _slots(self, operand: Any) -> Bits:
        elements = operand.elements if isinstance(operand, Vector) else ()
        keys = [k for r in elements if isinstance(r, Register) for k in keys_of(r)]
        return _bits(self.code.slots[key] for key in keys if key in self.code.slots)

    def _copied(self) -> Bits:
        """Registers of products, and those that are copied to or from them."""
        found = 0
        for each in (*self.sums.values(), *self.left.values()):
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

    def _as(self, role: str, slots: Bits) -> Bits:
        """Slots that were used in a role."""
        return slots << self.roles.index(role) * self.width

    def _in_any(self, slots: Bits) -> Bits:
        return _union(self._as(role, slots) for role in self.roles)

    def _but(self, role: str, slots: Bits) -> Bits:
        return _union(self._as(each, slots) for each in self.roles if each != role)

    def _suspects(self) -> Bits:
        """Registers that some product may come upon without a fence."""
        blocks = self.code.blocks
        entry: list[Bits] = [0] * len(blocks)
        entry[self.code.entry] = self._as(_PLAIN, self.of_interest)
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
        every = (1 << self.width) - 1
        return _union(suspect >> n * self.width & every for n in range(len(self.roles)))

    def _through(self, block: CodeBlock, used: Bits) -> tuple[Bits, Bits]:
        """What is used at the end of a block; what of it products came upon."""
        suspect = 0
        for passage in block.passages:
            ins = passage.instruction
            if ins.start in self.sums:
                sums, left = self.sums[ins.start], self.left[ins.start]
                shape = self.shapes[ins.start]
                suspect |= used & (self._but(shape, sums) | self._but(_LEFT, left))
                used |= self._as(_LEFT, left)
                used = used & ~self._in_any(sums) | self._as(shape, sums)
            elif _is_fence(ins):
                used &= 0 if ins.predicate is None else -1
            elif (to := self.constants.get(ins.start)) is not None:
                kept = used & ~self._in_any(1 << to) if ins.predicate is None else used
                used = kept | self._as(_COPY, 1 << to)
            elif (copy := _copy_of(passage)) is not None:
                used = self._copy(ins, used, *copy)
            else:
                used |= self._as(_PLAIN, self._accessed(passage))
        return used & self._in_any(self.of_interest), suspect

    def _copy(self, ins: Instruction, used: Bits, to: int, of: int) -> Bits:
        """A register was used as that was of which it is a copy; both are touched by copying."""
        kept = used & ~self._in_any(1 << to) if ins.predicate is None else used
        same = _union(
            self._as(role, 1 << to) for role in self.roles if used & self._as(role, 1 << of)
        )
        return kept | same | self._as(_COPY, 1 << to | 1 << of)

    def _accessed(self, passage: PoisonTransfer) -> Bits:
        return _bits((*passage.reads, *passage.writes)) & self.of_interest

    # -- while it runs ----------------------------------------------------------------------------

    def step(self, passage: PoisonTransfer, step: Step) -> Step:
        """A step that also notes what it touches, or looks who touched its registers."""
        ins = passage.instruction
        if not self.suspect:
            return step
        if ins.start in self.sums:
            return self._product(ins, step)
        if _is_fence(ins):
            return _after(passage, step, _fence)
        if ins.start in self.constants:
            return self._constant(ins, passage, step)
        copy = _copy_of(passage)
        if copy is None:
            slots = _numbers(self._accessed(passage))
            number = self._use(ins, _PLAIN) if slots else 0
            return _after(passage, step, lambda f, who: _touch(f, slots, who, number))
        to, of = copy
        if not self.of_interest >> to & 1:
            return step
        number = self._use(ins, _COPY)

        def copied(f: Frame, who: Array) -> None:
            _kept(f, to)[who] = _kept(f, of)[who]
            for slot in copy:
                _kept(f, slot, copied=True)[who] = number

        return _after(passage, step, copied)

    def _constant(self, ins: Instruction, passage: PoisonTransfer, step: Step) -> Step:
        to = self.constants[ins.start]
        if not self.of_interest >> to & 1:
            return step
        number = self._use(ins, _COPY)

        def set_(f: Frame, who: Array) -> None:
            by = _kept(f, to)
            by[who] = np.minimum(by[who], 0)  # a fence that was never passed is still missing
            _kept(f, to, copied=True)[who] = number

        return _after(passage, step, set_)

    def _use(self, ins: Instruction, role: str) -> int:
        self.uses.append(_Use(self.code.module.span(ins), role))
        return len(self.uses)

    def _product(self, ins: Instruction, step: Step) -> Step:
        span, shape = self.code.module.span(ins), self.shapes[ins.start]
        site = Site(span, ins.name, "shared", 16, False, Semantics(Kind.READ))
        sums, left = (_numbers(of[ins.start] & self.suspect) for of in (self.sums, self.left))
        wanted = [(slot, shape) for slot in sums] + [(slot, _LEFT) for slot in left]
        numbers = {role: self._use(ins, role) for role in (shape, _LEFT)}

        def both(f: Frame) -> None:
            races = f.batch.races
            if races is not None:
                race = next(self._races(f, wanted, span), None)
                if race is not None and races.add(race) and not races.every:
                    raise race_error(f, site, race)
                for slot, role in reversed(wanted):
                    _touch(f, [slot], f.index, numbers[role])
            step(f)

        return both

    def _races(self, f: Frame, wanted: list[tuple[int, str]], span: Span) -> Iterator[Race]:
        """Registers of a product that somebody used in another way, and no fence since: copies,
        which the manual alone forbids, last."""
        for slot, role in wanted:
            fine = [0, *(n for n, use in enumerate(self.uses, 1) if use.role == role)]
            yield from self._race(f, slot, ~np.isin(_kept(f, slot)[f.index], fine), span)
        for slot, _ in wanted:
            bad = _kept(f, slot, copied=True)[f.index] > 0
            if f.batch.races is not None and f.batch.races.strict:
                yield from self._race(f, slot, bad, span, copied=True)
            elif bad.any() and f.batch.skeleton is not None:
                f.batch.skeleton.practice.add(COPIES)

    def _race(
        self, f: Frame, slot: int, bad: Array, span: Span, *, copied: bool = False
    ) -> Iterator[Race]:  # fmt: skip
        if not bad.any():
            return
        at = int(bad.argmax())
        by = int(_kept(f, slot, copied=copied)[f.index[at]])
        block, inside = divmod(int(f.index[at]), f.batch.block_size)
        who = (f.batch.first_block + block, inside)
        label = span if by == _NEVER else self.uses[by - 1].span
        sides = Side(Kind.WRITE, *who, label), Side(Kind.READ, *who, span)
        name = next(key for key, number in self.code.slots.items() if number == slot)
        cause, place = Cause.REGISTER, f"register {name}"
        yield Race("registers", slot, *sides, False, cause, not copied, place)


def _union(every: Iterable[Bits]) -> Bits:
    found = 0
    for each in every:
        found |= each
    return found


def _bits(slots: Iterable[int]) -> Bits:
    return _union(1 << slot for slot in slots)


def _numbers(bits: Bits) -> list[int]:
    return [at for at in range(bits.bit_length()) if bits >> at & 1]


def _is_fence(ins: Instruction) -> bool:
    return ins.opcode == "wgmma" and ins.modifiers[0] == "fence"


def _constants(block: CodeBlock) -> dict[int, int]:
    """Registers that are set to constants after a fence, no product between: by instruction."""
    found: dict[int, int] = {}
    fresh = False
    for passage in block.passages:
        ins = passage.instruction
        if ins.opcode == "wgmma":
            fresh = _is_fence(ins)
        elif fresh and ins.opcode == "mov" and isinstance(ins.operands[-1], Immediate):
            for slot in passage.writes:
                found[ins.start] = slot
    return found


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


def _kept(f: Frame, slot: int, *, copied: bool = False) -> Array:
    """By thread, who touched a register last; nobody since a fence, where there was one."""
    every = f.batch.special_state.setdefault(_KEPT, {})
    found: Array | None = every.get((id(f), slot, copied))
    if found is None:
        never = 0 if copied else _NEVER
        fenced = every.get((id(f), _FENCED, False))
        found = np.full(f.n, never, np.int32) if fenced is None else np.where(fenced, 0, never)
        every[id(f), slot, copied] = found
    return found


def _touch(f: Frame, slots: list[int], who: Array, number: int) -> None:
    for slot in slots:
        _kept(f, slot)[who] = number
        _kept(f, slot, copied=True)[who] = 0


def _fence(f: Frame, who: Array) -> None:
    every = f.batch.special_state.setdefault(_KEPT, {})
    fenced = every.setdefault((id(f), _FENCED, False), np.zeros(f.n, bool))
    fenced[who] = True
    for (frame, slot, _), by in every.items():
        if frame == id(f) and slot != _FENCED:
            by[who] = 0
