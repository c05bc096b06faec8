"""Checks what the events of every run are like, in a certificate that one run stands for all
schedules: who goes on from a barrier came to it, and an mbarrier has a place of its own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from warploom.trust.checked import require

# By kind of group: how many numbers it has.
_GROUPS = {"warp": 2, "barrier": 2, "cluster": 1, "wgmma": 1, "flag": 1, "registers": 1}
_BARRIERS = 16
_WARP, _WARPGROUP = 32, 4
_AMOUNTS = range(24, 257, 8)  # registers of a thread
_SIZE = 8  # bytes of an mbarrier
Node = tuple[Any, ...]


def check_shape(
    rows: dict[Node, list[Any]], agents: list[dict[str, Any]], mbarriers: list[list[Any]]
) -> None:
    """`mbarriers`: name, block, arrivals, and where each lies in the shared memory of its block."""
    came: dict[int, set[Any]] = defaultdict(set)  # by agent
    ended: set[int] = set()
    for node, (act, where, phase, _, bytes_, _) in rows.items():
        own = agents[node[1]]
        if act in ("come", "go") and where[0] == "wgmma":
            key, mine = (where, phase), came[node[1]]
            require(act == "come" or key in mine, f"{where}: a thread goes on that did not come")
            mine.add(key)
        require(act != "copy" or bytes_ > 0, "a copy of no bytes is no part of a phase")
        if act == "init":
            require(mbarriers[where][1] == own["block"], "an mbarrier is of another block")
        if act == "inval":
            ended.add(where)
    places: dict[tuple[int, int], int] = {}
    for number, (name, block, _, byte) in enumerate(mbarriers):
        require(byte % _SIZE == 0 and byte >= 0, f"{name} lies at no place for an mbarrier")
        before = places.setdefault((block, byte), number)
        require(before == number or before in ended, f"{name} lies where another one does")
        places[block, byte] = number


def check_groups(rows: dict[Node, list[Any]], agents: list[dict[str, Any]], size: int) -> None:
    """Who comes somewhere is of the block, warp or warpgroup that meets there; `size`: threads of
    a block. All warps of a warpgroup come to its products."""
    per_block = -(-size // (_WARP * _WARPGROUP))
    multiply: dict[tuple[Any, int], set[int]] = defaultdict(set)
    for node, (act, where, phase, amount, _, _) in rows.items():
        if act not in ("come", "go"):
            continue
        own, (kind, *numbers) = agents[node[1]], where
        require(len(numbers) == _GROUPS.get(kind), f"there is no such group: {where!r:.60}")
        require(all(type(n) is int and n >= 0 for n in numbers), f"{where!r:.60} has no number")
        if kind in ("barrier", "registers"):
            require(numbers[0] == own["block"], f"{where}: it is of another block")
        if kind == "barrier":
            require(numbers[1] < _BARRIERS, f"{where}: there are {_BARRIERS} barriers")
        if kind == "registers":
            require(amount in _AMOUNTS, "no thread has so many registers")
        if kind == "wgmma":
            block, group = divmod(numbers[0], per_block)
            there = {(own["block"], warp // _WARPGROUP) for warp in own["warps"]}
            require(there == {(block, group)}, f"{where}: it is of another warpgroup")
            multiply[where, phase] |= set(own["warps"]) if act == "come" else set()
    for (where, _), warps in multiply.items():
        require(len(warps) == _WARPGROUP, f"{where}: warps are missing at a product")
