"""The ways to cut attention up and move it, as one declared space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product as every
from typing import Any

import numpy as np

from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.tiling import STEP, Tiling
from warploom.loopnest.matrix.tiling import ROWS
from warploom.machine.record import Machine
from warploom.search.branching.candidate import Candidates, Flags
from warploom.search.branching.problem import Branch, in_order
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space

NAMES = tuple(each.name for each in fields(Tiling))
KEYS = (32, 48, 64, 80, 96, 112, 128, 160, 176, 192)
STAGES, TOGETHER = (2, 3), (1, 8, 16)
ATTENTION = "attention"  # the one object that all choices are of


class AttentionSpace:
    """`branch` says what is decided next; the order is that of the fields of `Tiling`."""

    def __init__(self, attention: Attention, machine: Machine) -> None:
        self.attention, self.machine = attention, machine
        self.space = Space("attention")
        own = self.space.objects("attentions", [ATTENTION])
        rows = [
            [int(getattr(each, name)) for name in NAMES] for each in possible(attention, machine)
        ]
        self.choices = {
            name: self.space.integer(name, own, values=sorted({row[at] for row in rows}) or [0])
            for at, name in enumerate(NAMES)
        }
        (one,) = own.each("a")
        shared = [self.choices[name](one) for name in NAMES]
        self.space.table(shared, [tuple(row) for row in rows], "what has room")
        self.propagator = Propagator(self.space)
        self.branch: Branch = in_order(self.propagator)

    def tiling(self, candidates: Candidates, row: int = 0) -> Tiling:
        """Returns the tiling of a candidate of which all is decided."""
        found: dict[str, Any] = {}
        for name, choice in self.choices.items():
            at = int(np.argmax(self.values(candidates, name)[row]))
            found[name] = int(choice.values[at])
        for name in ("persistent", "ahead", "turns"):
            found[name] = bool(found[name])
        return Tiling(**found)

    def values(self, candidates: Candidates, name: str) -> Flags:
        """[candidates, values]: which values a choice may still have."""
        choice = self.choices[name]
        domains = candidates.domains[:, self.propagator.columns(choice).start]
        bits = np.uint64(1) << np.arange(len(choice.values), dtype=np.uint64)
        found: Flags = (domains[:, None] & bits) != 0
        return found


def possible(attention: Attention, machine: Machine) -> Iterator[Tiling]:
    """All that has room; nothing is longer than what there is of it."""
    groups = [each for each in (1, 2, 3) if each == 1 or (each - 1) * ROWS < attention.queries]
    keys = [each for each in KEYS if each < attention.keys + STEP] or KEYS[:1]
    together = TOGETHER if attention.causal else TOGETHER[:1]
    flags = (False, True)
    for g, n, s, h, p, r, a, t in every(
        groups, keys, STAGES, together, flags, (1, 2), flags, flags
    ):
        made = Tiling(g, n, s, h, p, r, a, t)
        waits = p and made.tiles(attention) <= machine.multiprocessors
        if (r > 1 and not p) or waits or (h > 1 and h > attention.all_heads):
            continue
        if made.is_possible(attention, machine.shared_bytes_most):
            yield made
