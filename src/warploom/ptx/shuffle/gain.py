"""What a shuffle saves: one warp that loads and one that shuffles, by the time model.

Both are alone on a processor, and L1 has what they load. So what counts is what a thread waits for,
and the issue slots beside it; a warp among many others may win less.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from warploom.machine.record import Machine
from warploom.machine.times import alone
from warploom.machine.work import Work
from warploom.ptx.symbolic.distance import Distance
from warploom.ptx.symbolic.memory import Access
from warploom.ptx.symbolic.operand import width_of

WORD_BYTES = 4
TESTS_OF_ITERATIONS = 2  # in a loop: whether all lanes are in the same iteration, see `write`
OF_A_TEST = 4  # instructions: what is compared, the comparison, and its part in two predicates


def gain_of(machine: Machine, load: Access, distance: Distance, *, in_loop: bool) -> float:
    """Cycles that a warp wins (or loses, if negative) where a load takes its value from a lane."""
    words = sum((width_of(register.type) + 31) // 32 for register in load.into)
    tests = distance.tests + (TESTS_OF_ITERATIONS if in_loop and distance.lanes else 0)
    return cycles_won(machine, distance.lanes, words, tests, load.space)


@lru_cache(maxsize=1 << 10)
def cycles_won(
    machine: Machine, lanes: int, words: int, tests: int, space: str = "global"
) -> float:
    """Counts for `words` 32-bit words from `lanes` away, behind `tests` more conditions."""
    loaded = _loaded(machine, words, machine.lanes, space)
    return float(
        alone(loaded, machine) - alone(_without(machine, lanes, words, tests, space), machine)
    )


def _without(machine: Machine, lanes: int, words: int, tests: int, space: str) -> Work:
    """At a distance of 0 the load becomes a move, or stays behind a predicate; otherwise lanes at
    the end of the warp load as before."""
    tested = OF_A_TEST * tests
    if not lanes and not tests:
        return replace(_idle(machine), moves=words)
    if not lanes:
        stays = _loaded(machine, words, machine.lanes, space)
        return replace(stays, arithmetic=tested, longest=tested)
    edge = abs(lanes) / machine.lanes
    stays = _loaded(machine, words, abs(lanes), space)
    return replace(
        stays, arithmetic=tested, shuffles=words, longest=OF_A_TEST * (tests + words - 1),
        cached_rounds=edge * stays.cached_rounds, shared_rounds=edge * stays.shared_rounds,
        shuffle_rounds=1, edges=1,
    )  # fmt: skip


def _idle(machine: Machine) -> Work:
    return Work(blocks=1, threads=machine.lanes, registers=0, shared_bytes=0)


def _loaded(machine: Machine, words: int, lanes: int, space: str) -> Work:
    """Lanes that load neighbouring words."""
    size = WORD_BYTES * words * lanes
    if space == "shared":
        wavefronts = math.ceil(words * lanes / machine.lanes)
        return replace(_idle(machine), shared_requests=1, wavefronts=wavefronts, shared_rounds=1)
    return replace(
        _idle(machine), requests=1, sectors=math.ceil(size / machine.sector_bytes),
        lines=math.ceil(size / machine.line_bytes), cached_rounds=1,
    )  # fmt: skip
