"""How true a run is to the hardware: what of its instructions was exact, approximate or left out.

Instructions that were executed come in, one sentence comes out.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.ptx.ir import Instruction, Special

EXACT = "all instructions are exact"
_CLOCKS = ("%clock", "%globaltimer")


def fidelity(executed: Iterable[Instruction], *, overlaps: bool = False) -> str:
    """`overlaps`: launches before or after this one are given, and may run beside it.

    >>> fidelity([])
    'all instructions are exact'
    """
    near: dict[str, None] = {}
    open_: dict[str, None] = {}
    for ins in executed:
        if "approx" in ins.modifiers:
            near[f"{ins.opcode}.approx"] = None
        why = None if overlaps and ins.opcode == "griddepcontrol" else _left_out(ins)
        if why is not None:
            open_[why] = None
    parts = []
    if near:
        names = ", ".join(sorted(near))
        parts.append(f"approximate: {names} (within the documented error, not bit for bit)")
    if open_:
        parts.append(f"not covered: {', '.join(sorted(open_))}")
    if not parts:
        return EXACT
    return "; ".join([*parts, "all other instructions are exact"])


def _left_out(ins: Instruction) -> str | None:
    """What of an instruction the emulator does not do, in words."""
    match ins.opcode:
        case "griddepcontrol":
            return "griddepcontrol (one launch runs at a time)"
        case "nanosleep":
            return "nanosleep (no time passes)"
    if any(_is_clock(each) for each in ins.operands):
        return "clocks (they are those of this machine)"
    return None


def _is_clock(operand: object) -> bool:
    return isinstance(operand, Special) and operand.name.startswith(_CLOCKS)
