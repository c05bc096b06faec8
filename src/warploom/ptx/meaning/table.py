"""All meanings by opcode."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.meaning import bits, compare, convert, integer, video
from warploom.ptx.meaning.shape import Meaning, Operands, Result

MEANINGS: dict[str, Meaning] = {
    **integer.TABLE.meanings,
    **bits.TABLE.meanings,
    **compare.TABLE.meanings,
    **convert.TABLE.meanings,
    **video.TABLE.meanings,
}


@dataclass(frozen=True, slots=True)
class Elementwise:
    """What an instruction reads, as which types, and what it writes."""

    sources: tuple[tuple[Operand | str, str], ...]
    results: tuple[Result, ...]


def meaning_of(ins: Instruction) -> Elementwise:
    """The meaning of an instruction of the table; ValueError where its operands have none."""
    reading = Operands(ins)
    results = MEANINGS[ins.opcode](reading)
    return Elementwise(tuple(reading.sources), tuple(results))
