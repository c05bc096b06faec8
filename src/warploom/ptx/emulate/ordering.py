"""What instructions say of the order of memory, for races: how strong they are, in which scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.flag import Order
from warploom.machine.proxy import Fenced
from warploom.machine.semantics import Kind, Scope, Semantics
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.skeleton import ACQUIRES, RELEASES, Act, Event
from warploom.ptx.ir import Address, Immediate, Instruction, Operand, Register
from warploom.ptx.known import STRONG, space_of

Array = npt.NDArray[Any]

_SCOPES = {
    "cta": Scope.BLOCK, "cluster": Scope.CLUSTER, "gpu": Scope.GRID, "gl": Scope.GRID,
    "sys": Scope.GRID,
}  # fmt: skip
_STRONG_KINDS = {Kind.READ: Kind.STRONG_READ, Kind.WRITE: Kind.STRONG_WRITE}
_FAR = ("global", "generic")
_ACQUIRES = frozenset({"acquire", "acq_rel", "sc"})
_RELEASES = frozenset({"release", "acq_rel", "sc"})
_FLAGGED = frozenset({"acquire", "release", "acq_rel", "sc"})


def scope_of(ins: Instruction) -> Scope:
    """That of the whole grid where none is written."""
    return next((_SCOPES[word] for word in ins.modifiers if word in _SCOPES), Scope.GRID)


def semantics_of(ins: Instruction, kind: Kind, size: int) -> Semantics:
    """How an instruction touches memory, whose scalars have so many bytes."""
    if kind is not Kind.ATOMIC:
        if not STRONG & set(ins.modifiers):
            return Semantics(kind, constant="nc" in ins.modifiers)
        kind = _STRONG_KINDS[kind]
    return Semantics(kind, scope_of(ins), size)


def is_volatile(ins: Instruction) -> bool:
    """Strong by that word alone."""
    return STRONG & set(ins.modifiers) == {"volatile"}


def order_of(ins: Instruction) -> Order:
    words = set(ins.modifiers)
    return Order(bool(words & _ACQUIRES), bool(words & _RELEASES), ins.opcode != "red")


def uses_flags(ins: Instruction) -> bool:
    """Whether an instruction may order memory other than by barriers of the block."""
    if ins.opcode in ("membar", "fence") or ins.opcode in ("mbarrier", "wgmma"):
        return True
    if ins.opcode in ("tensormap", "griddepcontrol"):
        return True
    if ins.opcode == "mapa" or (ins.opcode == "barrier" and "cluster" in ins.modifiers):
        return True
    later = (ins.opcode == "cp" and "bulk" in ins.modifiers) or (
        ins.opcode in ("st", "red") and "async" in ins.modifiers
    )
    return later or bool(_FLAGGED & set(ins.modifiers))


def acquires(ins: Instruction) -> bool:
    """Whether an instruction acquires what another thread released, or may complete that."""
    fence = ins.opcode == "fence" and "proxy" not in ins.modifiers
    return (fence or ins.opcode in ("ld", "atom")) and bool(_ACQUIRES & set(ins.modifiers))


def follows_looks(steps: Sequence[Instruction]) -> bool:
    """Whether a place that is looked at is touched plainly too: a look that sees a write orders it,
    as where who counts last sets a counter back. Both are so far from the same register or name."""
    made: dict[str, Instruction | None] = {}  # of a register: what sets it, if that is one alone
    for ins in steps:
        if ins.operands and isinstance(ins.operands[0], Register):
            key = ins.operands[0].key
            made[key] = None if key in made else ins
    looked, plain = set(), set()
    for ins in steps:
        found = {_root(each, made) for each in ins.operands if isinstance(each, Address)}
        if looks_at_flags(ins):
            looked |= found
        elif ins.opcode in ("ld", "st"):
            plain |= found
    return bool(looked & plain)


def _root(address: Address, made: dict[str, Instruction | None]) -> tuple[Operand, int]:
    """Where an address begins, and how far from there it is: copies and constant steps undone."""
    base, offset = address.base, address.offset
    for _ in made:
        ins = made.get(base.key) if isinstance(base, Register) else None
        if ins is None or ins.predicate is not None:
            break
        match ins.opcode, ins.operands[1:]:
            case (("mov" | "cvta"), (source,)):
                base = source
            case "add", (source, Immediate(value=step)):
                base, offset = source, offset + step
            case _:
                break
    return base, offset


def looks_at_flags(ins: Instruction) -> bool:
    """Whether an instruction reads what others may write at the same time."""
    return ins.opcode in ("atom", "mbarrier") or (
        ins.opcode == "ld" and bool(STRONG & set(ins.modifiers))
    )


def may_look_far(ins: Instruction) -> bool:
    """Whether an instruction reads what other blocks may write at the same time."""
    return looks_at_flags(ins) and ins.opcode != "mbarrier" and space_of(ins) in _FAR


def fence(ctx: Context, ins: Instruction) -> Step:
    """fence and membar; without a word for it a fence is acq_rel."""
    if "proxy" in ins.modifiers:
        return _proxy_fence(ctx, ins) if "async" in ins.modifiers else _nothing
    if "mbarrier_init" in ins.modifiers:
        return _noted(ctx, ins, _init_fence)
    scope, order = scope_of(ins), order_of(ins)
    if ins.opcode == "membar" or not (order.acquires or order.releases):
        order = Order(acquires=True, releases=True)
    # membar is another name for fence.sc.
    order = replace(order, sequential=ins.opcode == "membar" or "sc" in ins.modifiers)
    ways = ACQUIRES * order.acquires | RELEASES * order.releases

    def step(f: Frame) -> None:
        if f.batch.races is not None:
            f.batch.races.fence(f.index, scope, order)
        if f.batch.skeleton is not None:
            f.batch.skeleton.fence(f.index, scope, ways)

    return step


def _noted(ctx: Context, ins: Instruction, step: Step) -> Step:
    """For the skeleton: copies see what was initialised; `amount` tells a fence made for that."""
    span = ctx.module.span(ins)
    amount = int("mbarrier_init" in ins.modifiers)

    def noted(f: Frame) -> None:
        if f.batch.skeleton is not None:
            site = f.batch.skeleton.site(span)
            f.batch.skeleton.note_once(f.index, Event(Act.FENCE, amount=amount, site=site))
        step(f)

    return noted


def _nothing(_: Frame) -> None:
    return


def _init_fence(f: Frame) -> None:
    if f.batch.races is not None:
        f.batch.races.init_fence(f.index)


def _proxy_fence(ctx: Context, ins: Instruction) -> Step:
    """Between the plain way and that of copies: in the state space that is written, or in all."""
    words = set(ins.modifiers)
    memory = next((each for each in Fenced if each.value in words), Fenced.ALL)

    def step(f: Frame) -> None:
        if f.batch.races is not None:
            f.batch.races.proxy_fence(f.index, memory)

    # Mbarriers lie in the shared memory of their block.
    return step if memory is Fenced.GLOBAL else _noted(ctx, ins, step)


def copy_groups(ctx: Context, ins: Instruction) -> Step:
    """cp.async.commit_group, wait_group N, wait_all: values are there at once, an order is not."""
    closes = "wait_group" not in ins.modifiers
    waits = "commit_group" not in ins.modifiers
    newest: Fetch | None = ctx.read(ins.operands[0], "u32") if ins.operands else None
    if ins.operands and not isinstance(ins.operands[0], Immediate):
        raise ctx.unknown(f"{ins.name} with a number that is not written out")

    def step(f: Frame) -> None:
        if f.batch.races is None:
            return
        copies = f.batch.copies
        if closes:
            copies.group[f.index] += 1
        if waits:
            number = np.zeros(1, np.int64) if newest is None else newest(f).astype(np.int64)
            copies.wait(f.batch.races, f.index, number)

    return step
