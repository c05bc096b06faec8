"""What a kernel says: printf, and the message of an assertion that failed.

The compiler calls `vprintf(format, values)`: both are addresses, the values lie in the thread's
local memory one after the other, each at a multiple of its size.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.memory import WINDOWS
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.passing import give_result, passed
from warploom.ptx.emulate.product import failing
from warploom.ptx.ir import Instruction, Operand

Array = npt.NDArray[Any]
LONGEST = 1 << 12  # bytes of one string
MOST_LINES = 1 << 16
_PART = re.compile(r"%(%|[-+ #0]*\d*(?:\.\d+)?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcsp]))")


def read_bytes(f: Frame, thread: int, address: int, size: int) -> bytes:
    """Bytes at a generic address, as many as there are."""
    for space, region in (("local", f.batch.local), ("shared", f.batch.shared)):
        if address >= WINDOWS[space] and address - WINDOWS[space] < region.size:
            start = address - WINDOWS[space]
            own = 0 if region.origin is None else int(region.origin[thread])
            end = min(start + size, region.size)
            return region.data[own + start : own + end].tobytes()
    found = f.batch.memory.bytes_from(address)
    if found is None:
        return b""
    held, start, left = found
    return held.data[start : start + min(size, left)].tobytes()


def read_string(f: Frame, thread: int, address: int) -> str:
    raw = read_bytes(f, thread, address, LONGEST)
    return raw.split(b"\0")[0].decode("utf-8", "replace")


def formatted(f: Frame, thread: int, text: str, values: int) -> str:
    """The text with its values, which begin at an address."""
    place = values

    def take(kind: str) -> Any:
        nonlocal place
        size = struct.calcsize(kind)
        place = -(-place // size) * size
        raw = read_bytes(f, thread, place, size).ljust(size, b"\0")
        place += size
        return struct.unpack("<" + kind, raw)[0]

    def part(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        length, kind = match[2] or "", match[3]
        plain = "%" + match[1].replace(length, "") if length else match[0]
        wide = length in ("l", "ll", "z", "j", "t")
        if kind in "di":
            return str(plain % take("q" if wide else "i"))
        if kind in "ouxX":
            return str(plain.replace("u", "d") % take("Q" if wide else "I"))
        if kind == "c":
            return plain % chr(take("i") & 0x7F)
        if kind == "s":
            return plain % read_string(f, thread, take("Q"))
        if kind == "p":
            return f"{take('Q'):#x}"
        return str(plain.replace("a", "g").replace("A", "G") % take("d"))

    return _PART.sub(part, text)


def vprintf(
    ctx: Context, ins: Instruction, name: str, results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> Step:  # fmt: skip
    text, value = passed(ctx, ins, name, arguments, "QQ")
    give = give_result(ctx, ins, name, results, 4)

    def step(f: Frame) -> None:
        every = zip(f.index.tolist(), text(f).tolist(), value(f).tolist(), strict=True)
        for thread, format_, values in every:
            if len(f.batch.output) < MOST_LINES:
                said = formatted(f, thread, read_string(f, thread, format_), values)
                f.batch.output.append(said)
        give(f, np.zeros(f.count, np.uint32))

    return step


def assertion(
    ctx: Context, ins: Instruction, name: str, _: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> Step:  # fmt: skip
    """__assertfail(message, file, line, function, size of a character)"""
    fail = failing(ctx, ins)
    values = passed(ctx, ins, name, arguments, "QQIQQ")

    def step(f: Frame) -> None:
        thread = int(f.index[0])
        message, file, line, function = (int(value(f)[0]) for value in values[:4])
        said, where, around = (read_string(f, thread, each) for each in (message, file, function))
        raise fail(f, f"assertion `{said}` failed at {where}:{line}: {around}", thread)

    return step
