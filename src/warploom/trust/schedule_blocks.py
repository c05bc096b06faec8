"""Checks which threads the agents of a certificate of a schedule stand for: whole blocks."""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any

from warploom.trust.checked import require

_WARP = 32


def check_blocks(agents: list[dict[str, Any]], block: list[int]) -> int:
    """Each block has its threads, and each warp no more than it holds; how many blocks there are,
    which are numbered from 0."""
    require(all(type(side) is int and side > 0 for side in block), "a block has no threads")
    size = prod(block)
    threads: dict[int, int] = defaultdict(int)
    warps: dict[int, set[int]] = defaultdict(set)
    alone: dict[tuple[int, int], int] = defaultdict(int)
    for agent in agents:
        own = agent["block"]
        require(type(own) is int and own >= 0, "an agent is of no block")
        require(agent["warps"] == sorted(set(agent["warps"])), "an agent is of a warp twice")
        require(len(agent["warps"]) <= agent["threads"], "an agent is of more warps than threads")
        threads[own] += agent["threads"]
        warps[own] |= set(agent["warps"])
        if len(set(agent["warps"])) == 1:
            alone[own, agent["warps"][0]] += agent["threads"]
    require(sorted(threads) == list(range(len(threads))), "an agent is of no block of its batch")
    require(all(each == size for each in threads.values()), "a block has other threads")
    count = -(-size // _WARP)  # a launch may say any number: it is not counted out
    for each in warps.values():
        whole = len(each) == count and min(each) == 0 and max(each) == count - 1
        require(whole, "a block has other warps")
    require(all(each <= _WARP for each in alone.values()), "a warp has too many threads")
    return len(threads)
