"""Elementwise instructions in C: their meanings as the text of a loop over lanes."""

from __future__ import annotations

from warploom.machine.value.text import is_scalar, texts
from warploom.ptx.fast.operand import NotTaken, Spell, Writer, alone
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.meaning.shape import Unsupported
from warploom.ptx.meaning.table import MEANINGS, Elementwise, meaning_of


def spell(w: Writer, ins: Instruction) -> None:
    """Every operand is read, and every result computed, before the first one is written."""
    try:
        meaning = meaning_of(ins)
    except (Unsupported, ValueError) as error:  # the evaluator says so when a thread comes there
        raise NotTaken(f"{ins.name}: {error}") from error
    values = [result.value for result in meaning.results]
    if is_scalar(values):
        alone(lambda w, _: _spell(w, meaning))(w, ins)
    else:
        _spell(w, meaning)


def _spell(w: Writer, meaning: Elementwise) -> None:
    operands = [w.value(kind, _read(w, operand, kind)) for operand, kind in meaning.sources]
    made = texts([result.value for result in meaning.results], operands, w.value)
    if len(made) > 1:
        made = [w.value(r.kind, text) for r, text in zip(meaning.results, made, strict=True)]
    for result, text in zip(meaning.results, made, strict=True):
        if isinstance(result.target, str):
            w.set_carry(text)
        else:
            w.write(result.target, result.kind, text)


def _read(w: Writer, operand: Operand | str, kind: str) -> str:
    return w.carry() if isinstance(operand, str) else w.read(operand, kind)


TABLE: dict[str, Spell] = dict.fromkeys(MEANINGS, spell)
