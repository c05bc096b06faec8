"""A deadlock in words: who waits where, for what, what has come, and what usually goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeadlockError, Span
from warploom.machine.memory import WINDOWS
from warploom.ptx.demangle import demangled, local_name
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.frame import Batch, Frame
from warploom.ptx.emulate.mbarrier import Refused
from warploom.ptx.ir import Address, Instruction, Register, Symbol
from warploom.ptx.known import space_of
from warploom.ptx.opcode import MemoryEffect
from warploom.ptx.table import OPCODES

Mask = npt.NDArray[np.bool_]
MOST_GROUPS = 12  # that are told one by one
_NOTHING = "nothing: this loop has no way out"
_REGISTERS = "setmaxnreg.inc waits until other warps of the block have given enough back"
_LOOKS = (MemoryEffect.READS, MemoryEffect.UPDATES)


@dataclass(slots=True)
class Group:
    """Threads that wait for the same thing at the same place; `cause` is why it may never come."""

    threads: list[int]
    span: Span | None
    awaited: str
    cause: str = ""
    sure: bool = False  # the cause is seen, not only likely


def deadlock(
    code: Code, frame: Frame, spins: dict[int, Mask], barriers: list[tuple[Instruction, Mask]]
) -> DeadlockError:
    """The verdict; `spins` are who goes round at which places, `barriers` who waits at which."""
    groups = [*_at_mbarriers(frame, spins), *_at_flags(code, frame, spins)]
    for instruction, mask in barriers:
        span = code.module.span(instruction)
        who = np.flatnonzero(mask & frame.batch.alive).tolist()
        asks = instruction.opcode == "setmaxnreg"
        whom, cause = ("registers", _REGISTERS) if asks else ("the others", "")
        groups.append(Group(who, span, f"{whom}, at {instruction.name}", cause, asks))
    groups = [each for each in groups if each.threads]
    if any(each.cause == _REGISTERS for each in groups):  # why others wait may be that these do
        for each in groups:
            each.cause = each.cause if each.cause == _REGISTERS else ""
    groups.sort(key=lambda each: not (each.sure and each.cause))
    lines = [_told(frame, each) for each in groups[:MOST_GROUPS]]
    if len(groups) > MOST_GROUPS:
        lines.append(f"and {len(groups) - MOST_GROUPS} more groups of threads")
    later = (
        prod(frame.batch.grid) - frame.batch.first_block - frame.batch.blocks // frame.batch.twins
    )
    if later:
        lines.append(f"{later} blocks of the grid have not begun: no more than these run at once")
    first = groups[0]
    causes = [each.cause for each in groups if each.cause and each.sure == first.sure]
    name = demangled(code.name)
    head = f"deadlock: no thread of kernel '{name}' can go on any more, and no copy is under way"
    if all(each.awaited == _NOTHING for each in groups):
        head = f"kernel '{name}' does not end: no thread can leave its loop"
    return DeadlockError("\n  ".join([head, *lines]), first.span, "; ".join(dict.fromkeys(causes)))


def _told(frame: Frame, group: Group) -> str:
    batch, others = frame.batch, len(group.threads) - 1
    more = f" and {others} other{'s' * (others > 1)}" if others else ""
    where = "" if group.span is None else f" at {batch.line_of(group.span)}"
    verb = "wait" if others else "waits"
    return f"{batch.where(group.threads[0])}{more} {verb}{where} for {group.awaited}"


def _at_mbarriers(frame: Frame, spins: dict[int, Mask]) -> Iterator[Group]:
    """Those that ask an mbarrier; blocks in which all is the same are one group."""
    batch = frame.batch
    places = {id(barrier): place for place, barrier in batch.mbarriers.items()}
    groups: dict[Any, Group] = {}
    known: dict[int, tuple[str, ...]] = {}
    running = np.logical_or.reduce(list(spins.values()))
    for thread, asked in sorted((batch.refused or {}).items()):
        if not running[thread]:
            continue
        if id(asked) not in known:
            name = shared_name(frame.batch, places.get(id(asked.barrier), 0) * 8, 8)
            known[id(asked)] = (name, _state(frame, asked), *_cause(asked, name))
        name, state, cause, sure = known[id(asked)]
        group = groups.setdefault(
            (name, state, asked.site.span),
            Group([], asked.site.span, f"{name}, {state}", cause, bool(sure)),
        )
        group.threads.append(thread)
    yield from groups.values()


def _state(frame: Frame, asked: Refused) -> str:
    barrier = asked.barrier
    parity = f" (parity {asked.token})" if asked.by_parity else ""
    came = barrier.expected - barrier.pending
    said = f"phase {barrier.phase}{parity}: {came} of {barrier.expected} arrivals came"
    said += _who(frame, " from", barrier.came)
    if not barrier.came:
        said += _who(frame, "; in the phase before they came from", barrier.before)
    if barrier.awaited or barrier.bytes:
        said += f", {barrier.awaited - barrier.bytes} of {barrier.awaited} expected bytes came"
    return said


def _who(frame: Frame, before: str, threads: list[int]) -> str:
    """Threads by their numbers in the block, where they are few."""
    if not threads:
        return ""
    numbers = sorted({each % frame.batch.block_size for each in threads})
    shown = ", ".join(map(str, numbers[:4])) + (", …" if len(numbers) > 4 else "")
    return f"{before} thread{'s' * (len(numbers) > 1)} {shown}"


def _cause(asked: Refused, name: str) -> tuple[str, str]:
    """Why a phase may never be complete, and a word where that is sure."""
    barrier = asked.barrier
    if barrier.bytes > 0 and not barrier.pending:
        return f"{name}: expect_tx names {barrier.bytes} bytes more than its copies bring", "sure"
    if barrier.bytes < 0:
        return f"{name}: its copies bring {-barrier.bytes} bytes more than expect_tx names", "sure"
    if barrier.came:
        count = barrier.expected
        return f"{name} is initialised for {count} arrivals, and fewer threads arrive", "sure"
    if barrier.phase == 0 and asked.by_parity:
        parity = 1 - asked.token
        return f"{name} is new: a first wait that shall pass at once asks for parity {parity}", ""
    return f"those that should arrive at {name} wait themselves, or have ended", ""


def _at_flags(code: Code, frame: Frame, spins: dict[int, Mask]) -> Iterator[Group]:
    """Those that go round and ask no mbarrier: the loads and atomics on their way."""
    left = np.logical_or.reduce(list(spins.values()))
    left[list(frame.batch.refused or {})] = False
    for rank, mask in sorted(spins.items()):
        looks = [each.instruction for each in code.blocks[rank].passages]
        looks = [each for each in looks if _looks(each)]
        who = np.flatnonzero(mask & left).tolist()
        if looks and who:
            left &= ~mask
            yield _flag(code, frame, looks[0], who)
    for rank, mask in sorted(spins.items()):
        who = np.flatnonzero(mask & left).tolist()
        if who:
            left &= ~mask
            block = code.blocks[rank]
            flow = (*block.passages, block.leaving, None)[0]
            span = None if flow is None else code.module.span(flow.instruction)
            yield Group(who, span, _NOTHING)


def _looks(ins: Instruction) -> bool:
    known = OPCODES.get(ins.opcode)
    return known is not None and known.memory in _LOOKS and space_of(ins) != "param"


def _flag(code: Code, frame: Frame, ins: Instruction, who: list[int]) -> Group:
    place = _place(code, frame, ins, who[0])
    return Group(
        who, code.module.span(ins), f"{place} to change ({ins.name})",
        "nothing that still runs writes there",
    )  # fmt: skip


def _place(code: Code, frame: Frame, ins: Instruction, thread: int) -> str:
    operand = next((each for each in ins.operands if isinstance(each, Address)), None)
    if operand is None:
        return "memory"
    if isinstance(operand.base, Symbol):
        return f"'{demangled(operand.base.name)}'"
    slot = code.slots.get(operand.base.key) if isinstance(operand.base, Register) else None
    if slot is None or not isinstance(operand.offset, int):
        return "memory"
    value = frame.regs[slot]
    address = int(value[thread if value.size > 1 else 0]) + operand.offset
    if space_of(ins) == "shared" or WINDOWS["shared"] <= address < WINDOWS["shared"] + (1 << 24):
        return shared_name(frame.batch, address % (1 << 24), 4)
    found = frame.batch.memory.bytes_from(address)
    return "memory" if found is None else f"byte {found[1]} of {found[0].name}"


def shared_name(batch: Batch, byte: int, size: int) -> str:
    """A place of a block's shared memory, by the variable and the element that it is in."""
    byte %= max(1, batch.shared.data.size // batch.blocks)
    name, inside = shared_variable(batch.variables, byte)
    element, rest = divmod(inside, size)
    if not name:
        return f"byte {byte} of shared memory"
    return f"{name}[{element}]" if not rest else f"byte {inside} of {name}"


def shared_variable(variables: Mapping[str, int], byte: int) -> tuple[str, int]:
    """The variable that a byte of a block's shared memory is in, and where in it; "" of none."""
    before = [(at, name) for name, at in variables.items() if at <= byte]
    if not before:
        return "", byte
    at, name = max(before)
    return local_name(name), byte - at


def shared_words(variables: Mapping[str, int], byte: int) -> str:
    """A byte of a block's shared memory, as one says it."""
    name, inside = shared_variable(variables, byte)
    return f"byte {inside} of shared array '{name}'" if name else f"byte {byte} of shared memory"
