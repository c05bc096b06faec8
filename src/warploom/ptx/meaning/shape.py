"""An instruction's meaning: which operands it reads as which types, and the values of its results.

A file of this folder has a `Table`. An instruction is a row of it, how it is written, above the
function that says what it means: a function of `Operands`, which hands them out as machine values,
and gives one `Result` for each destination. Interpreters (`emulate/elementwise.py`,
`fast/elementwise.py`, the symbolic emulator) fetch the operands and compute the values in their
own way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from warploom.machine.value.ir import Value, arg, const, joined
from warploom.ptx.choices import CHOICES
from warploom.ptx.ir import Immediate, Instruction, Operand, Spelling
from warploom.ptx.opcode import Opcode, opcode
from warploom.ptx.types import DTYPES, is_float, type_of

CARRY = "%cc"  # the carry flag, which no operand names


class Unsupported(Exception):  # noqa: N818 - what is not known is said of the instruction
    """The instruction is well formed, but its meaning is not known; the message says why."""


class Result(NamedTuple):
    """A destination, the PTX type that is written there, and the value."""

    target: Operand | str
    kind: str
    value: Value


@dataclass(slots=True)
class Operands:
    """The operands that a meaning has asked for, in order."""

    ins: Instruction
    sources: list[tuple[Operand | str, str]] = field(default_factory=list)

    def has(self, word: str) -> bool:
        return word in self.ins.modifiers

    def kind(self, place: int = -1) -> str:
        """The type among the modifiers (the last one, or counted from the front)."""
        return type_of(self.ins, place)

    def read(self, operand: Operand | str, kind: str) -> Value:
        """An operand as a value of a PTX type; a whole number is a constant."""
        type_ = value_type(kind)
        if (
            isinstance(operand, Immediate)
            and operand.spelling is Spelling.INTEGER
            and not is_float(kind)
        ):
            number = int(operand.value != 0) if kind == "pred" else operand.value
            return const(type_, number)
        self.sources.append((operand, kind))
        return arg(len(self.sources) - 1, type_)

    def operands(self, *kinds: str) -> list[Value]:
        """The operands after the first, as values of these types."""
        return [
            self.read(operand, kind)
            for operand, kind in zip(self.ins.operands[1:], kinds, strict=False)
        ]

    def result(self, kind: str, value: Value) -> list[Result]:
        """The one destination."""
        return [Result(self.ins.operands[0], kind, value.bits(value_type(kind)))]


Meaning: TypeAlias = Callable[[Operands], list[Result]]


@dataclass(slots=True)
class Table:
    """The instructions of a file: the records of their opcodes, and their meanings by opcode."""

    opcodes: list[Opcode] = field(default_factory=list)
    meanings: dict[str, Meaning] = field(default_factory=dict)

    def row(
        self, names: str, operands: str, forms: str, *, reads_carry: bool = False
    ) -> Callable[[Meaning], Meaning]:
        """Enters the function below it as the meaning of some opcodes, which are written with these
        operands in these forms (`opcode.py`). Of several rows the lowest comes first."""

        def entered(meaning: Meaning) -> Meaning:
            for name in names.split():
                record = opcode(name, operands, forms, CHOICES, reads_carry=reads_carry)
                self.opcodes.append(replace(record, pure=not reads_carry))
                self.meanings[name] = meaning
            return meaning

        return entered


def value_type(kind: str) -> str:
    """The type of machine values that holds a PTX type; formats without one are held as bits."""
    if kind in ("pred", "f32", "f64") or (kind[0] in "su" and kind[1:].isdigit()):
        return kind
    return f"u{8 * DTYPES[kind].itemsize}"


def pairwise(kind: str, fn: Callable[..., Value], *words: Value) -> Value:
    """A function on the two halves of words, side by side."""
    return joined([fn(*[word.field(low, kind) for word in words]) for low in (0, 16)])
