"""A good implementation of a loop nest at once: a few of each strategy, compared by the time model.

Nothing is measured, and little is drawn, so that a call of a new size waits for a second or two.
`explored` looks further.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import zip_longest

import numpy as np

from warploom.errors import WarploomError
from warploom.loopnest.build import LoopNest
from warploom.loopnest.strategies.form import Variant
from warploom.pipeline.drawn import Asked, leaves_of
from warploom.pipeline.exploring import explored, nest_of
from warploom.pipeline.nest import Explored, Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.strategic import strategies_of
from warploom.search.branching.bound import Best
from warploom.search.branching.candidate import Candidates
from warploom.search.outcome import Found
from warploom.search.statistics import Clock, Stopwatch

VARIANTS, DRAWN = 2, 4


def first(given: LoopNest, machine: str = "h200") -> Explored:
    """The best of some draws of the likeliest strategies, by its predicted time."""
    nest = nest_of(given, machine=machine)
    clock, watch = Clock(), Stopwatch()
    best: tuple[float, Nest, Candidates, Variant] | None = None
    tried = 0
    for variant in _in_turn(strategies_of(nest, None, "default", free=False).variants):
        own = _nest_of(variant, nest)
        if own is None:
            continue
        drawn = leaves_of(own, Asked(DRAWN, (0, tried)))
        for row in np.flatnonzero(drawn.arrived):
            leaf = drawn.leaves.take(slice(int(row), int(row) + 1))
            time = own.outlined_time(leaf) if own.has_times else own.least_of(leaf)
            if best is None or time < best[0]:
                best = time, own, leaf, variant
        tried += 1
        if tried == VARIANTS and best is not None:
            break
    if best is None or math.isinf(best[0]):
        return explored(given, machine=machine, evaluations=DRAWN, model=True, store=False)
    time, own, leaf, variant = best
    clock.lap("search")
    return Explored(
        Found(Best(leaf, time), complete=False), leaf, time, own.least(), tried * DRAWN, None,
        watch.statistics({}, clock), own, strategy=variant.strategy, predicted=own.has_times,
    )  # fmt: skip


def _in_turn(variants: Iterable[Variant]) -> list[Variant]:
    """The first of each strategy, then the second of each."""
    of: dict[str, list[Variant]] = {}
    for each in variants:
        of.setdefault(each.strategy, []).append(each)
    return [each for some in zip_longest(*of.values()) for each in some if each is not None]


def _nest_of(variant: Variant, nest: Nest) -> Nest | None:
    try:
        return nest_by(recipe_of(variant, nest))
    except WarploomError:
        return None
