"""Which loads each value comes from, lane by lane, and which loads were of no use to anybody.

Comes in: a launch that is run once more because a plain load may race. Goes out: for each load the
threads whose value reached something that others, or the rest of the kernel, can see: a store, an
address, a branch, a barrier, an atomic, a call, or an instruction of which nothing better is known.
A load that is of no use in a thread (a *dead* load) is no race there: whatever it read, the launch
is the same. Threads that repeat the work of others make such loads, as Triton's do.

A frame keeps, for the registers that hold loaded values, by load a word per thread: bit l says that
the value depends on what lane l of the same warp loaded there. Nothing is followed through memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.ptx.emulate.code import Sides
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.lanes import names_lane, per_warp
from warploom.ptx.emulate.poison import PoisonTransfer

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Words = dict[Span, Array]  # by load: the lanes of the warp that a value depends on
Reader = tuple[Span, int]  # a load, and a thread counted through the grid


class AllOfUse(Exception):  # noqa: N818 - ends a run early, and never leaves `excuse`
    """The loads that were asked about are all of use."""


class Origins:
    """What one launch did with its loads; ends it once all `asked` of them were of use."""

    def __init__(self, threads: int, asked: Iterable[Reader]) -> None:
        self._threads = threads
        self._asked = set(asked)
        self._used: dict[Span, Mask] = {}

    @property
    def dead(self) -> dict[Span, Mask]:
        """By load: the threads, counted through the grid, to which it was of no use."""
        return {load: ~used for load, used in self._used.items()}

    def begin(self, load: Span) -> None:
        self._used.setdefault(load, np.zeros(self._threads, bool))

    def use(self, f: Frame, words: Words, mask: Mask) -> None:
        """Values of these origins are of use to the threads of the mask."""
        first = f.batch.first_block * f.batch.block_size
        for load, lanes in _where(mask, words).items():
            seen = per_warp(f.batch, np.bitwise_or, lanes)
            self._used[load][first : first + f.n] |= names_lane(f.batch, seen)
        if words and self._asked:
            self._asked = {(load, who) for load, who in self._asked if not self._seen(load, who)}
            if not self._asked:
                raise AllOfUse

    def _seen(self, load: Span, who: int) -> bool:
        return load in self._used and bool(self._used[load][who])


def followed(f: Frame, flow: PoisonTransfer, run: Callable[[], None], span: Span) -> None:
    """Runs a step, and says where its results come from."""
    origins = f.batch.origins
    here = active = f.full_mask()
    if flow.guard is not None:
        active = here & f.widen(flow.guard(f))
    words: Words = {}
    if flow.plain:
        words = _sources(f, flow, active)
    else:
        sums = flow.writes if flow.instruction.opcode == "wgmma" else ()  # they are added to
        origins.use(f, _joined(f, (*flow.reads, *sums)), active)
    guard = {} if flow.guard_slot is None else f.origins.get(flow.guard_slot, {})
    if guard and (flow.across or not flow.plain):
        origins.use(f, guard, here)
    run()
    if flow.loads:
        origins.begin(span)
        words = {span: np.uint32(1) << f.batch.lane.astype(np.uint32)}
    for slot in flow.writes if not flow.shuffles else ():
        _note(f, slot, active, words)
        if guard and slot != flow.guard_slot:  # whether it was written depends on the guard
            _note(f, slot, here, _either(f.origins.get(slot, {}), guard))


def left(f: Frame, flow: PoisonTransfer | None, sides: Sides | None = None) -> None:
    """A branch or a barrier, at which all that it reads is of use.

    But where a branch decides no more than which registers are written until its ways meet again
    (`sides`), as in a logarithm, these registers are what depends on it.
    """
    if flow is None or not f.origins:
        return
    slots = flow.reads if flow.guard_slot is None else (*flow.reads, flow.guard_slot)
    words = _where(f.full_mask(), _joined(f, slots))
    if sides is None:
        f.batch.origins.use(f, words, f.full_mask())
    elif words:
        f.joins.setdefault(sides.join, []).append((sides.slots, words))


def came(f: Frame, rank: int) -> None:
    """Threads come to a block, at which the ways of branches may meet again."""
    if rank not in f.joins:
        return
    here, waiting = f.full_mask(), []
    for slots, words in f.joins.pop(rank):
        for slot in slots:
            known = f.origins.get(slot, {})
            _note(f, slot, here, _either(known, words))
        rest = {load: lanes for load, lanes in _where(~here, words).items() if lanes.any()}
        if rest:
            waiting.append((slots, rest))
    if waiting:
        f.joins[rank] = waiting


def shuffled(
    f: Frame, to: int | None, of: int | None, others: tuple[int, ...], source: Array
) -> None:
    """A shuffle: each thread has what its `source` had; which that is depends on the `others`."""
    here = f.full_mask()
    f.batch.origins.use(f, _joined(f, others), here)
    words = {} if of is None else f.origins.get(of, {})
    if to is not None:
        _note(f, to, here, {load: lanes[source] for load, lanes in words.items()})


def _sources(f: Frame, flow: PoisonTransfer, active: Mask) -> Words:
    """What the result of a step without effects depends on."""
    words = _joined(f, flow.reads)
    if flow.choice is not None:
        first, second = (
            f.origins.get(slot, {}) for slot in (flow.choice.first, flow.choice.second)
        )
        if first or second:
            holds = f.widen(flow.choice.holds(f))
            words = _either(words, _where(holds, first))
            words = _either(words, _where(~holds, second))
    if flow.across and words:
        words = {
            load: per_warp(f.batch, np.bitwise_or, lanes)
            for load, lanes in _where(active, words).items()
        }
    return words


def _where(chosen: Mask, words: Words) -> Words:
    return {load: np.where(chosen, lanes, np.uint32(0)) for load, lanes in words.items()}


def _joined(f: Frame, slots: Iterable[int]) -> Words:
    out: Words = {}
    for slot in slots:
        found = f.origins.get(slot)
        if found:
            out = _either(out, found)
    return out


def _either(one: Words, other: Words) -> Words:
    if not one or not other:
        return one or other
    return one | {
        load: lanes | one[load] if load in one else lanes for load, lanes in other.items()
    }


def _note(f: Frame, slot: int, active: Mask, words: Words) -> None:
    """The active threads wrote a register: it depends on these loads, and on no others."""
    old = f.origins.get(slot, {})
    fresh: Words = {}
    for load in {**old, **words}:
        before, now = (each.get(load, np.uint32(0)) for each in (old, words))
        lanes = np.where(active, now, before)
        if lanes.any():
            fresh[load] = lanes
    if fresh:
        f.origins[slot] = fresh
    else:
        f.origins.pop(slot, None)
