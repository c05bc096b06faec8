"""What a kernel says: printf, and the message of an assertion that failed.

The compiler calls `vprintf(format, values)`: both are addresses, the values lie in the thread's
local memory one after the other, each at a multiple of its size.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.memory import WINDOWS
from warploom.ptx.emulate import conversion
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.passing import give_result, passed
from warploom.ptx.emulate.product import failing
from warploom.ptx.ir import Instruction, Operand

Array = npt.NDArray[Any]
LONGEST = 1 << 12  # bytes of one string
MOST_LINES = 1 << 16


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


class _Values:
    """The values of a call, one after the other in the memory of a thread."""

    def __init__(self, f: Frame, thread: int, place: int) -> None:
        self._frame, self._thread, self._place = f, thread, place
        self.taken = 0

    def take(self, kind: str) -> Any:
        size = struct.calcsize(kind)
        place = -(-self._place // size) * size
        raw = read_bytes(self._frame, self._thread, place, size).ljust(size, b"\0")
        self._place, self.taken = place + size, self.taken + 1
        return struct.unpack("<" + kind, raw)[0]

    def text(self) -> str:
        address = self.take("Q")
        return read_string(self._frame, self._thread, address) if address else "(null)"


def formatted(f: Frame, thread: int, text: str, values: int) -> tuple[str, int]:
    """The text with its values, which begin at an address; and how many it took."""
    given = _Values(f, thread, values)
    return conversion.filled(text, given), given.taken


def vprintf(
    ctx: Context, ins: Instruction, name: str, results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> Step:  # fmt: skip
    text, value = passed(ctx, ins, name, arguments, "QQ")
    give = give_result(ctx, ins, name, results, 4)

    def step(f: Frame) -> None:
        taken = []
        every = zip(f.index.tolist(), text(f).tolist(), value(f).tolist(), strict=True)
        for thread, format_, values in every:
            if not format_:
                taken.append(-1)
                continue
            said, count = formatted(f, thread, read_string(f, thread, format_), values)
            taken.append(count)
            if len(f.batch.output) < MOST_LINES:
                f.batch.output.append(said)
            elif len(f.batch.output) == MOST_LINES:
                f.batch.output.append(f"… and more: {MOST_LINES} calls of printf are kept\n")
        give(f, np.array(taken, np.int32))

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
