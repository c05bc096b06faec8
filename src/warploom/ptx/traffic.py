"""What a launch asked of memory, instruction by instruction, in lines of the source.

Comes in: a kernel and the report of a launch with counters. Goes out: a row for each memory
instruction and each branch. What a profiler would count is said as it counts it: requests of warps,
sectors of 32 bytes, wavefronts through the banks of shared memory; what it does not count says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warploom.machine.tally import Requested
from warploom.ptx import flow
from warploom.ptx.emulate.compile import uses
from warploom.ptx.ir import Component, Function, Instruction
from warploom.ptx.known import control_of, keys_of, record_of, registers, space_of
from warploom.ptx.launch import Kernel, LoadedModule, Report
from warploom.ptx.opcode import Control, MemoryEffect
from warploom.ptx.patience import timed
from warploom.ptx.types import DTYPES

WORD = 4  # bytes of a register of the machine
_WHAT = {
    MemoryEffect.READS: "reads", MemoryEffect.WRITES: "writes", MemoryEffect.UPDATES: "updates",
}  # fmt: skip
_ASYNCHRONOUS = "by the asynchronous way: not among the requests that a profiler counts"
_COPY = {
    "cg": "past the first cache: a profiler shows 3 wavefronts a request, whatever the addresses",
    "ca": "a profiler shows 3 wavefronts more a request",
}


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """One instruction and one memory; `file` and `line` are the source's, where it is known.

    `what` is reads, writes, updates, copies or branches; of a branch `requests` are warps, of what
    the asynchronous way does they are threads that ask for it. Sectors and
    wavefronts are None where they do not apply, or nobody knows what they would be.
    """

    file: str
    line: int
    column: int
    inlined: str
    text: str
    ptx_line: int
    instruction: str
    what: str
    space: str
    requests: int
    lanes: int
    sectors: int | None = None
    least_sectors: int | None = None
    wavefronts: int | None = None
    least_wavefronts: int | None = None
    divergent: int | None = None
    note: str = ""

    @property
    def lanes_each(self) -> float:
        return self.lanes / self.requests if self.requests else 0.0

    @property
    def waste(self) -> int:
        """Sectors and wavefronts that another arrangement would not need."""
        more = (self.sectors or 0) - (self.least_sectors or 0)
        return more + (self.wavefronts or 0) - (self.least_wavefronts or 0)

    def as_record(self) -> dict[str, Any]:
        return asdict(self)


def traffic_rows(kernel: Kernel, report: Report) -> list[TrafficRow]:
    """Rows in the order of the source; instructions that no thread came to have no requests."""
    owner = kernel.owner
    functions = [f for f in owner.module.functions if f.kind == "func" and f.body is not None]
    steps = [step for f in (kernel.function, *functions) for step in f.instructions()]
    seen: dict[Hashable, list[tuple[str, Requested]]] = {}
    for (label, space), told in report.tallies.memory.items():
        seen.setdefault(label, []).append((space, told))
    rows = [row for step in timed(steps) for row in _rows(owner, step, report, seen)]
    return sorted(rows, key=lambda row: (row.file, row.line, row.ptx_line))


def _rows(
    owner: LoadedModule, step: Instruction, report: Report,
    memory: dict[Hashable, list[tuple[str, Requested]]],
) -> Iterator[TrafficRow]:  # fmt: skip
    span = owner.module.span(step)
    tallies = report.tallies
    if step.predicate is not None and control_of(step) is Control.BRANCH:
        seen = tallies.branches.get(span)
        warps, divergent = (0, 0) if seen is None else (seen.warps, seen.divergent)
        yield TrafficRow(
            *_place(owner, step), "branches", "", warps, 0, divergent=divergent
        )  # fmt: skip
        return
    effect = _effect(step)
    if effect is None or space_of(step) == "param":
        return
    found = memory.get(span, [])
    for space, told in found or [(space_of(step), Requested())]:
        if space == "param":  # a generic address of a parameter
            continue
        sectors = bool(found) and space in ("global", "local")
        passes = bool(found) and space == "shared" and not _past(step)
        yield TrafficRow(
            *_place(owner, step), _what(step, space, effect), space, told.requests, told.lanes,
            sectors=told.sectors if sectors else None,
            least_sectors=told.least_sectors if sectors else None,
            wavefronts=told.wavefronts if passes else None,
            least_wavefronts=told.least_wavefronts if passes else None,
            note=_note(step, space),
        )  # fmt: skip


def _effect(step: Instruction) -> str | None:
    """reads, writes or updates, of an instruction that moves data."""
    record = record_of(step)
    if record is None:
        return None
    if step.opcode == "cp":
        moves = not {"commit_group", "wait_group", "wait_all", "arrive"} & set(step.modifiers)
        return "copies" if moves else None
    if step.opcode == "wgmma" and "mma_async" not in step.modifiers:
        return None
    return _WHAT.get(record.memory)


def _what(step: Instruction, space: str, effect: str) -> str:
    """A copy reads one memory and writes another."""
    if step.opcode != "cp" or space not in ("shared", "global"):
        return effect
    return "writes" if space == "shared" else "reads"


def _past(step: Instruction) -> bool:
    return step.opcode == "cp" and "cg" in step.modifiers


def _note(step: Instruction, space: str) -> str:
    if "bulk" in step.modifiers or step.opcode == "wgmma":
        return _ASYNCHRONOUS
    if step.opcode == "cp" and space == "shared":
        return next((note for word, note in _COPY.items() if word in step.modifiers), "")
    return ""


def _place(
    owner: LoadedModule, step: Instruction
) -> tuple[str, int, int, str, str, int, str]:  # fmt: skip
    span = owner.module.span(step)
    guard = (
        "" if step.predicate is None else f"@{'!' if step.negated else ''}{step.predicate.name} "
    )
    name = guard + step.name
    place = owner.places.at(span)
    if place is None:
        text = span.source.line(span.line).strip()
        return Path(span.source.name).name, span.line, span.column, "", text, span.line, name
    outer = place.frames[-1]  # where the kernel itself stands, not a header that it uses
    shown = outer.span()
    text = shown.source.line(outer.line).strip() if shown is not None else ""
    inlined = place.words if len(place.frames) > 1 else ""
    return Path(outer.file).name, outer.line, outer.column, inlined, text, span.line, name


def live_registers(kernel: Kernel) -> int:
    """The most registers of 32 bits that hold what is still read, at any place of the PTX.

    An assembler may need more (addresses, pairs that must be even) or fewer (what it computes
    again).
    """
    module = kernel.owner.module
    graph = flow.build(module, kernel.function)
    sizes = _sizes(kernel.function)
    live = flow.live_sets(graph, uses)
    most = 0
    for block in timed(graph.blocks):
        now = {key for after in block.successors for key in live[after]}
        held = sum(sizes.get(key, 0) for key in now)
        most = max(most, held)
        for step in timed(reversed(graph.instructions(block))):
            read, written = uses(step)
            held -= sum(sizes.get(key, 0) for key in written & now)
            now -= written
            held += sum(sizes.get(key, 0) for key in read - now)
            now |= read
            most = max(most, held)
    return most


def _sizes(function: Function) -> dict[str, int]:
    """How many registers of 32 bits each key takes; predicates have a file of their own."""
    found: dict[str, int] = {}
    for step in function.instructions():
        for each in registers(step.operands):
            kind = (each.register if isinstance(each, Component) else each).type
            size = DTYPES[kind].itemsize if kind in DTYPES else WORD
            words = 0 if kind == "pred" else -(-size // WORD)
            found |= dict.fromkeys(keys_of(each), words)
    return found
