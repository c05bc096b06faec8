"""How attention is cut up without a search: what was measured to be fast, or the model's first."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from warploom.errors import DeviceError
from warploom.loopnest.attention.bound import expected
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.space import FEW_ROWS, packed_possible, possible
from warploom.loopnest.attention.tiling import AttentionTiling as Cut
from warploom.machine.record import Machine

# The fastest on an H200 of `bench/results/kernel_attention_device.json`, by the size of a head and
# whether it is causal; of many queries.
WINNERS = {
    (64, False): Cut(3, 128, 2, 1, True, 2),
    (64, True): Cut(3, 128, 2, 8, False, 1),
    (128, False): Cut(2, 160, 2, 1, True, 2),
    (128, True): Cut(3, 96, 2, 8, False, 1),
}
MANY = 1024  # queries
FEW = 16  # of which all keys are read for little work


def tilings(attention: Attention, machine: Machine) -> list[Cut]:
    """All that are possible, what is expected to be fast first."""
    return list(_ranked(replace(attention, map=None), attention.map is not None, machine))


@lru_cache(maxsize=256)
def _ranked(attention: Attention, is_mapped: bool, machine: Machine) -> tuple[Cut, ...]:
    rows = attention.queries * attention.groups
    packed = rows <= FEW_ROWS and attention.queries <= FEW
    found = list((packed_possible if packed else possible)(attention, machine))
    if not found:
        raise DeviceError(
            f"no kernel of attention has room on '{machine.name}'", advice="take smaller heads"
        )
    found.sort(key=lambda each: (expected(attention, each, machine.rates), each.ahead, each.turns))
    if not packed and not is_mapped and attention.queries >= MANY:
        winner = WINNERS.get((attention.head, attention.causal))
        if winner in found:
            found.remove(winner)
            found.insert(0, winner)
    return tuple(found)
