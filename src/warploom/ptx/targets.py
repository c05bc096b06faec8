"""Which targets have an instruction: assemblers refuse it under any other.

What an opcode needs stands in its record (`table`), as the number of a target: `90`, `90+` where
only targets with features of their own have it (sm_90a, sm_100f, …), or `90a` for that one alone.
What single words need stands here.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.errors import DeviceError
from warploom.ptx import ir
from warploom.ptx.table import OPCODES
from warploom.ptx.types import size_of, type_of

_WIDEST = 16  # bytes of a load or store, before sm_100
_WORDS = {
    **dict.fromkeys(("bulk", "cluster", "shared::cluster", "multicast::cluster"), "90"),
    **dict.fromkeys(("expect_tx", "complete_tx", "try_wait", "tensormap::generic"), "90"),
    "f32x2": "100",
    "replace": "90+",
}


def refuse_absent(module: ir.Module, function: ir.Function) -> None:
    """A function is of instructions that its module's target has."""
    name = next((each for each in module.target if each.startswith("sm_")), "")
    if not name:
        return
    for ins in function.instructions():
        lacks = next((need for need in _needs(ins) if not _has(name, need)), None)
        if lacks is not None:
            message = f"{ins.name} is of {_said(lacks)}, and the kernel's target is {name}"
            raise DeviceError(message, module.span(ins), "assemblers refuse it")


def _needs(ins: ir.Instruction) -> Iterator[str]:
    record = OPCODES.get(ins.opcode)
    if record is not None and record.since:
        yield record.since
    for word in ins.modifiers:
        if word in _WORDS:
            yield _WORDS[word]
    if "async" in ins.modifiers and ins.opcode != "cp":  # stores, reductions and a fence
        yield "90"
    if ins.opcode == "redux" and type_of(ins) == "f32":
        yield "100+"
    if ins.opcode in ("ld", "st") and _bytes(ins) > _WIDEST:
        yield "100"


def _bytes(ins: ir.Instruction) -> int:
    """What one thread moves."""
    kind = type_of(ins)
    count = next((int(word[1:]) for word in ins.modifiers if word in ("v2", "v4", "v8")), 1)
    return count * size_of(kind) if kind else 0


def _has(target: str, need: str) -> bool:
    number = int(target[3:].rstrip("af"))
    if need[-1] == "a":
        return target == f"sm_{need}"
    special = target[-1] in "af" or need[-1] != "+"
    return special and number >= int(need.rstrip("+"))


def _said(need: str) -> str:
    if need[-1] == "a":
        return f"sm_{need}"
    return f"sm_{need[:-1]}a and other targets of one machine" if need[-1] == "+" else (
        f"sm_{need} and later"
    )  # fmt: skip
