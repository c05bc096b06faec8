"""ld.global.nc and ldu: reads of memory that nobody writes while the kernel runs.

They may be answered by a cache that sees no writes of the launch, however these are ordered. That a
write comes after such a read is assumed to do no harm, or refused by the manual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.machine.memory import Region
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.skeleton import Skeleton
from warploom.ptx.ir import Instruction

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
STALE = "by this way it may not see what the launch wrote there, whatever is between"
LATER = (
    "this writes what ld.global.nc or ldu read, which is for memory that the kernel never writes"
)
UNHARMED = "what ld.global.nc or ldu have read may be written later, as it may on GPUs"


def reads_only(ins: Instruction) -> bool:
    return ins.opcode == "ldu" or (ins.opcode == "ld" and "nc" in ins.modifiers)


def read_only_of(code: Code) -> ReadOnly | None:
    """What is to be kept of a kernel; nothing if it has no such loads."""
    flows = (flow for block in code.blocks for flow in block.passages)
    return ReadOnly() if any(reads_only(flow.instruction) for flow in flows) else None


@dataclass(slots=True)
class ReadOnly:
    """Bytes of global memory that were written, and that were read by such loads, by region."""

    wrote: dict[int, Mask] = field(default_factory=dict)
    read: dict[int, Mask] = field(default_factory=dict)

    def touch(
        self, skeleton: Skeleton, span: Span, region: Region, start: Array, width: int, *,
        only: bool, writes: bool,
    ) -> None:  # fmt: skip
        """An access, and whether it is one of these loads."""
        if not (only or writes):
            return
        places = (np.asarray(start)[:, None] + np.arange(width)).reshape(-1)
        mine, other = (self.read, self.wrote) if only else (self.wrote, self.read)
        mine.setdefault(region.base, np.zeros(region.data.size, bool))[places] = True
        met = region.base in other and bool(other[region.base][places].any())
        if met and only:
            skeleton.fail_once("memory", STALE, span)
        elif met:
            skeleton.by_practice("memory", LATER, span, UNHARMED)
