"""The video instructions as the manual writes them, on plain integers, one lane at a time.

Nothing of the emulator is used: an instruction is taken apart by its text here, and every number
is a Python integer of any length, so that no width is lost by accident.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "lo": operator.lt, "ls": operator.le,
    "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


def result(line: str, registers: dict[str, int]) -> int:
    """What an instruction writes, all 32 bits of it."""
    name, _, rest = line.rstrip(";").partition(" ")
    opcode, *words = name.split(".")
    operands = [word.strip() for word in rest.split(",")]
    simd = re.fullmatch(r"v([a-z]+)([24])", opcode)
    if simd:
        return _simd(simd[1], int(simd[2]), words, operands, registers)
    if opcode == "vmad":
        return _mad(words, operands, registers)
    return _scalar(opcode[1:], words, operands, registers)


def _whole(text: str, registers: dict[str, int]) -> int:
    """The 32 bits of a register or of a constant."""
    return registers[text] if text.startswith("%") else int(text, 0) & 0xFFFFFFFF


def _extended(bits: int, width: int, signed: bool) -> int:
    bits &= (1 << width) - 1
    return bits - (1 << width) if signed and bits >> width - 1 else bits


def _range(width: int, signed: bool) -> tuple[int, int]:
    return (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)


def _clamped(value: int, width: int, signed: bool) -> int:
    low, high = _range(width, signed)
    return min(max(value, low), high)


def _split(text: str) -> tuple[str, str]:
    """A register and its selector."""
    register, _, selector = text.partition(".")
    return (register, selector) if text.startswith("%") else (text, "")


def _place(selector: str) -> tuple[int, int]:
    """Lowest bit and width of a part."""
    if not selector:
        return 0, 32
    width = 8 if selector[0] == "b" else 16
    return width * int(selector[1]), width


def _part(text: str, kind: str, registers: dict[str, int]) -> int:
    register, selector = _split(text)
    low, width = _place(selector)
    return _extended(_whole(register, registers) >> low, width, kind == "s32")


def _arithmetic(name: str, a: int, b: int) -> int:
    match name:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "absdiff":
            return abs(a - b)
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "avrg":
            return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1
    raise AssertionError(name)


def _scalar(name: str, words: list[str], operands: list[str], registers: dict[str, int]) -> int:
    kinds = [word for word in words if word in ("u32", "s32")]
    target, (a_kind, b_kind) = ("u32", kinds) if name == "set" else (kinds[0], kinds[1:])
    a, b = _part(operands[1], a_kind, registers), _part(operands[2], b_kind, registers)
    if name == "set":
        compared = next(word for word in words if word in COMPARED)
        made = int(COMPARED[compared](a, b))
    elif name in ("shl", "shr"):
        amount = min(b, 32) if "clamp" in words else b & 31
        made = a << amount if name == "shl" else a >> amount
    else:
        made = _arithmetic(name, a, b)
    _, selector = _split(operands[0])
    low, width = _place(selector)
    if "sat" in words:
        made = _clamped(made, width, target == "s32")
    if len(operands) == 3:
        return made & 0xFFFFFFFF
    c = _whole(operands[3], registers)
    second = next((word for word in words if word in ("add", "min", "max")), None)
    if second is not None:
        return _arithmetic(second, made, _extended(c, 32, target == "s32")) & 0xFFFFFFFF
    mask = ((1 << width) - 1) << low
    return (made << low & mask) | (c & ~mask)


def _mad(words: list[str], operands: list[str], registers: dict[str, int]) -> int:
    kinds = [word for word in words if word in ("u32", "s32")]
    minus = [text.startswith("-%") for text in operands]
    a, b = (_part(operands[n].removeprefix("-") if minus[n] else operands[n], kinds[n], registers)
            for n in (1, 2))  # fmt: skip
    signed = "s32" in kinds[1:] or minus[1] != minus[2] or minus[3]
    c = _whole(operands[3].removeprefix("-") if minus[3] else operands[3], registers)
    product, one = a * b, 0
    if "po" in words:
        one = 1
    elif minus[1] != minus[2]:
        product, one = ~product, 1
    elif minus[3]:
        c, one = ~c & 0xFFFFFFFF, 1
    made = product + _extended(c, 32, signed) + one
    made >>= 7 if "shr7" in words else 15 if "shr15" in words else 0
    return (_clamped(made, 32, signed) if "sat" in words else made) & 0xFFFFFFFF


def _simd(
    name: str, lanes: int, words: list[str], operands: list[str], registers: dict[str, int]
) -> int:
    width = 32 // lanes
    kinds = [word for word in words if word in ("u32", "s32")]
    target, (a_kind, b_kind) = ("u32", kinds) if name == "set" else (kinds[0], kinds[1:])
    (a_name, a_places), (b_name, b_places) = _split(operands[1]), _split(operands[2])
    mask = _split(operands[0])[1]
    both = registers[a_name] | registers[b_name] << 32
    usual = ("10", "32") if lanes == 2 else ("3210", "7654")
    mask_digits = mask[1:] or usual[0]
    made = []
    for lane in range(lanes):
        a, b = (
            _extended(both >> width * int((places[1:] or plain)[-1 - lane]), width, kind == "s32")
            for places, plain, kind in ((a_places, usual[0], a_kind), (b_places, usual[1], b_kind))
        )
        if name == "set":
            value = int(COMPARED[next(word for word in words if word in COMPARED)](a, b))
        else:
            value = _arithmetic(name, a, b)
        made.append(_clamped(value, width, target == "s32") if "sat" in words else value)
    c = registers[operands[3]]
    chosen = [str(lane) in mask_digits for lane in range(lanes)]
    if "add" in words:
        return (c + sum(made[lane] for lane in range(lanes) if chosen[lane])) & 0xFFFFFFFF
    found = 0
    for lane in range(lanes):
        field = made[lane] if chosen[lane] else c >> width * lane
        found |= (field & (1 << width) - 1) << width * lane
    return found
