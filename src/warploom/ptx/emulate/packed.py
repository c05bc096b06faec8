"""Words put together from parts of which some are no values: `mov.b64 %rd1, {%r1, %r2}`.

Compilers pack a number beside a register that nobody wrote, and then take the number out again. So
a frame keeps, for a packed word, the cause of each of its parts (see `poison.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import Context
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.ir import Instruction, Operand, Vector
from warploom.ptx.known import keys_of, registers
from warploom.ptx.types import is_float, size_of

Array = npt.NDArray[Any]
Bits: TypeAlias = tuple[int, int]  # the first one, and the one after the last
Causes: TypeAlias = tuple[tuple[Bits, Array], ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """What an instruction packs into a word, or takes out of one: by slots of registers."""

    word: int
    packs: tuple[tuple[Bits, tuple[int, ...]], ...] = ()
    takes: dict[int, Bits] = field(default_factory=dict)


def parts_of(ctx: Context, ins: Instruction) -> Parts | None:
    """The parts that an instruction packs or takes out; None if words stay whole."""
    if ins.opcode == "mov":
        target, source = ins.operands
        if isinstance(source, Vector) and len(word := _slots(ctx, target)) == 1:
            return Parts(word[0], tuple(_elements(ctx, ins, source)))
        if isinstance(target, Vector) and len(word := _slots(ctx, source)) == 1:
            elements = _elements(ctx, ins, target)
            return Parts(word[0], takes={slot: bits for bits, own in elements for slot in own})
    if ins.opcode == "cvt" and len(ins.modifiers) == 2 and not any(map(is_float, ins.modifiers)):
        to, of = (8 * size_of(kind) for kind in ins.modifiers)
        slots = [_slots(ctx, each) for each in ins.operands]
        if to < of and [*map(len, slots)] == [1, 1]:
            return Parts(slots[1][0], takes={slots[0][0]: (0, to)})
    return None


def _elements(ctx: Context, ins: Instruction, vector: Vector) -> list[tuple[Bits, tuple[int, ...]]]:
    each = 8 * size_of(ins.modifiers[-1]) // len(vector.elements)
    return [
        ((at * each, (at + 1) * each), _slots(ctx, element))
        for at, element in enumerate(vector.elements)
    ]


def _slots(ctx: Context, operand: Operand) -> tuple[int, ...]:
    keys = (key for register in registers((operand,)) for key in keys_of(register))
    return tuple(ctx.slots[key] for key in keys if key in ctx.slots)


def packed(f: Frame, parts: Parts, active: Array) -> Causes | None:
    """Before a word is packed: why each of its parts will be no value. None if all are."""
    none = np.zeros(1, np.int32)
    if not any(slot in f.undefined for _, own in parts.packs for slot in own):
        return None
    old = f.undefined.get(parts.word, none)
    return tuple(
        (bits, np.where(active, max_of([f.undefined.get(each, none) for each in own]), old))
        for bits, own in parts.packs
    )


def taken(f: Frame, parts: Parts) -> dict[int, Array]:
    """Why parts that are taken out of a packed word are no values, by slot."""
    causes = f.packed.get(parts.word)
    if causes is None:
        return {}
    return {
        slot: max_of([cause for bits, cause in causes if bits[0] < end and first < bits[1]])
        for slot, (first, end) in parts.takes.items()
    }


def max_of(causes: list[Array]) -> Array:
    """One of the causes for each thread, 0 where there is none."""
    found: Array = np.zeros(1, np.int32)
    for each in causes:
        found = np.maximum(found, each)
    return found
