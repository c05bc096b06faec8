"""The ways to cut attention up and move it, as one declared space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product as every
from typing import Any

from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.tiling import STEP, AttentionTiling
from warploom.loopnest.matrix.tiling import ROWS
from warploom.loopnest.tiled import TiledSpace
from warploom.machine.record import Machine
from warploom.search.branching.candidate import Candidates

NAMES = tuple(each.name for each in fields(AttentionTiling))
KEYS = (32, 48, 64, 80, 96, 112, 128, 160, 176, 192)
STAGES, TOGETHER = (2, 3), (1, 8, 16)
# Where queries are few: keys at once, stages, and how many blocks there are at most beside those
# that processors run at once.
FEW_ROWS = 2 * ROWS  # that have keys in common
FEW, DEEP, PLENTY = (32, 64, 96, 128), (2, 3, 4, 6), 16


class AttentionSpace(TiledSpace):
    """The order of decisions is that of the fields of `AttentionTiling`."""

    def __init__(self, attention: Attention, machine: Machine, packed: bool = False) -> None:
        self.attention, self.machine = attention, machine
        some = (packed_possible if packed else possible)(attention, machine)
        rows = [tuple(int(getattr(each, name)) for name in NAMES) for each in some]
        values = {name: [row[at] for row in rows] for at, name in enumerate(NAMES)}
        super().__init__("attention", "attention", values, NAMES, rows)

    def tiling(self, candidates: Candidates, row: int = 0) -> AttentionTiling:
        """The tiling of a candidate of which all is decided."""
        found: dict[str, Any] = dict(self.decided(candidates, row))
        for name in ("persistent", "ahead", "turns", "packed"):
            found[name] = bool(found[name])
        return AttentionTiling(**found)


def possible(attention: Attention, machine: Machine) -> Iterator[AttentionTiling]:
    """All that has room; nothing is longer than what there is of it."""
    groups = [each for each in (1, 2, 3) if each == 1 or (each - 1) * ROWS < attention.queries]
    keys = [each for each in KEYS if each < attention.keys + STEP] or KEYS[:1]
    together = TOGETHER if attention.causal else TOGETHER[:1]
    flags = (False, True)
    for g, n, s, h, p, r, a, t in every(
        groups, keys, STAGES, together, flags, (1, 2), flags, flags
    ):
        made = AttentionTiling(g, n, s, h, p, r, a, t)
        waits = p and made.tiles(attention) <= machine.multiprocessors
        if (r > 1 and not p) or waits or (h > 1 and h > attention.all_heads):
            continue
        if made.is_possible(attention, machine.shared_bytes_most):
            yield made


def packed_possible(attention: Attention, machine: Machine) -> Iterator[AttentionTiling]:
    """The same where queries of heads that share keys are one tile, and keys may be split."""
    keys = [each for each in FEW if each < attention.keys + STEP] or FEW[:1]
    flags = (False, True)
    most = PLENTY * machine.multiprocessors
    consumers = -(-attention.queries * attention.groups // ROWS)
    for n, s, p, a, e in every(keys, DEEP, flags, flags, range(12)):
        made = AttentionTiling(consumers, n, s, 1, p, 1, a, False, True, 2**e)
        tiles = made.tiles(attention)
        waits = p and tiles <= machine.multiprocessors
        if waits or (made.splits > 1 and tiles > most):
            continue
        if made.is_possible(attention, machine.shared_bytes_most):
            yield made
