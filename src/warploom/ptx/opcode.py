"""What is known of an opcode, in one record: operands, purity, effects, and every form that is run.

A form is a row of modifiers: `a|b` is a choice, `?` stands after what may be missing, `{round}` is
a named choice, and `~` stands before words that are read but change nothing we compute
(`table.WITHOUT_EFFECT` says why). After `=` come operands, after `@` control, where they differ
from the opcode's. Where the record says so the words before the type may stand in any order. The
emulator, the walk on symbols and the rewriter ask the records and nothing else; an instruction that
matches no form is not known, and never taken for one that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product


class Control(Enum):
    """Where a thread goes next."""

    NEXT = "next"
    BRANCH = "branch"  # to a label, if the predicate holds
    SWITCH = "switch"  # to one of several labels
    LEAVE = "leave"  # out of the function
    CALL = "call"  # into another function and back
    BARRIER = "barrier"  # on, once other threads of the block have come
    LANES = "lanes"  # on, once other lanes of the warp have come


class MemoryEffect(Enum):
    """What an instruction may do to memory, or to what others see of it."""

    NOTHING = "nothing"
    READS = "reads"
    WRITES = "writes"
    UPDATES = "updates"  # reads and writes at once
    MEETS = "meets"  # shows threads what the others wrote before
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class Slot:
    """One of these words, or none where the slot is optional; `x.y` stands for two modifiers."""

    words: tuple[str, ...]
    optional: bool
    silent: bool  # without effect on what we compute
    starts: dict[str, list[tuple[str, ...]]]  # the words in parts, longest first, by first part

    def taken(self, modifiers: tuple[str, ...], at: int) -> int:
        """How many of the modifiers from `at` on are one of the words."""
        for parts in self.starts.get(modifiers[at], ()) if at < len(modifiers) else ():
            if modifiers[at : at + len(parts)] == parts:
                return len(parts)
        return 0


@dataclass(frozen=True, slots=True)
class OpcodeForm:
    """Modifiers in their order, and the operands that go with them.

    Operands are letters: `d` is written (as are both of a pair `d|p`), all others are read; `[a]`
    is an address, and what ends in `?` may be missing.
    """

    slots: tuple[Slot, ...]
    operands: tuple[str, ...]
    control: Control

    def matches(self, modifiers: tuple[str, ...]) -> bool:
        at = 0
        for slot in self.slots:
            taken = slot.taken(modifiers, at)
            if not taken and not slot.optional:
                return False
            at += taken
        return at == len(modifiers)

    def matches_reordered(self, modifiers: tuple[str, ...]) -> bool:
        """Whether they are this form's words in another order, the type still at the end."""
        words, kind = modifiers[:-1], modifiers[-1:]
        return self.slots[-1].taken(kind, 0) == 1 and _fill(self.slots[:-1], words)

    def spellings(self) -> Iterator[tuple[str, ...]]:
        """Every row of modifiers that the form allows."""
        choices = [slot.words + (("",) if slot.optional else ()) for slot in self.slots]
        for words in product(*choices):
            yield tuple(part for word in words for part in word.split(".") if part)

    def takes(self, operands: int) -> bool:
        fewest = sum(not word.endswith("?") for word in self.operands)
        return fewest <= operands <= len(self.operands)


@dataclass(frozen=True, slots=True)
class Opcode:
    """What an opcode does, and the forms in which it is known to do just that."""

    name: str
    operands: tuple[str, ...]
    forms: tuple[OpcodeForm, ...]
    pure: bool  # the result follows from the operands alone
    memory: MemoryEffect
    control: Control
    reads_carry: bool
    since: str  # the targets that have it, as `targets` reads that; all where it is empty
    any_order: bool  # of the words before the type, as assemblers allow and libraries write

    def spelled(self, modifiers: tuple[str, ...]) -> tuple[OpcodeForm, ...]:
        """The forms with these modifiers; they differ in their operands."""
        found = tuple(form for form in self.forms if form.matches(modifiers))
        if found or not self.any_order:
            return found
        return tuple(form for form in self.forms if form.matches_reordered(modifiers))


def _fill(slots: tuple[Slot, ...], words: tuple[str, ...]) -> bool:
    """Whether the slots take all words, each once, whatever their order."""
    if not slots:
        return not words
    first, rest = slots[0], slots[1:]
    for parts in (parts for some in first.starts.values() for parts in some):
        if set(parts) <= set(words):
            left = tuple(word for word in words if word not in parts)
            if len(left) == len(words) - len(parts) and _fill(rest, left):
                return True
    return first.optional and _fill(rest, words)


def opcode(
    name: str, operands: str, forms: str, choices: dict[str, str], *, pure: bool = False,
    memory: MemoryEffect = MemoryEffect.NOTHING, control: Control = Control.NEXT,
    reads_carry: bool = False, any_order: bool = False, since: str = "",
) -> Opcode:  # fmt: skip
    """A record from its text, one form a line; `.` is a form without modifiers."""
    words = tuple(operands.split())
    lines = [line for line in forms.split("\n") if line.strip()]
    rows = tuple(_form(line, words, control, choices) for line in lines)
    return Opcode(name, words, rows, pure, memory, control, reads_carry, since, any_order)


def _form(
    text: str, operands: tuple[str, ...], control: Control, choices: dict[str, str]
) -> OpcodeForm:
    text, _, other_control = text.partition("@")
    text, _, other_operands = text.partition("=")
    return OpcodeForm(
        tuple(_slot(word, choices) for word in text.split() if word != "."),
        tuple(other_operands.split()) or operands,
        Control(other_control.strip()) if other_control else control,
    )


def _slot(text: str, choices: dict[str, str]) -> Slot:
    silent, optional = text.startswith("~"), text.endswith("?")
    text = text.removeprefix("~").removesuffix("?")
    text = re.sub(r"\{(\w+)\}", lambda match: choices[match[1]], text)
    words = tuple(text.split("|"))
    starts: dict[str, list[tuple[str, ...]]] = {}
    for parts in sorted((tuple(word.split(".")) for word in words), key=len, reverse=True):
        starts.setdefault(parts[0], []).append(parts)
    return Slot(words, optional, silent, starts)
