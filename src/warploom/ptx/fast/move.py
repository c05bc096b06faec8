"""Moves in C."""

from __future__ import annotations

from warploom.ptx.fast.operand import NotTaken, Spell, Writer
from warploom.ptx.ir import Instruction, Operand, Vector
from warploom.ptx.types import DTYPES, type_of


def mov(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    target, source = ins.operands[:2]
    if isinstance(target, Vector):
        _in_parts(w, target, source, kind)
    elif isinstance(source, Vector):
        _of_parts(w, target, source, kind)
    else:
        w.write(target, kind, w.read(source, kind))


def _in_parts(w: Writer, target: Vector, source: Operand, kind: str) -> None:
    bits = 8 * DTYPES[kind].itemsize
    part = bits // len(target.elements)
    if isinstance(source, Vector) or bits > 64:
        raise NotTaken("a mov of vectors")
    whole = w.value(f"u{bits}", w.read(source, f"u{bits}"))
    for number, element in enumerate(target.elements):
        w.write(element, f"b{part}", f"(uint{part}_t)({whole} >> {part * number})")


def _of_parts(w: Writer, target: Operand, source: Vector, kind: str) -> None:
    bits = 8 * DTYPES[kind].itemsize
    part = bits // len(source.elements)
    if bits > 64:
        raise NotTaken("a mov of vectors")
    terms = [
        f"((uint{bits}_t){w.read(element, f'b{part}')} << {part * number})"
        for number, element in enumerate(source.elements)
    ]
    w.write(target, f"u{bits}", " | ".join(terms))


TABLE: dict[str, Spell] = {"mov": mov}
