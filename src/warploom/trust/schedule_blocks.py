"""Checks which threads the agents of a certificate of a schedule stand for: whole blocks."""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any

from warploom.trust.checked import require

_WARP = 32


def check_blocks(
    agents: list[dict[str, Any]], grid: list[int], block: list[int]
) -> None:  # fmt: skip
    """Each block has its threads, and each warp no more than it holds."""
    size = prod(block)
    threads: dict[int, int] = defaultdict(int)
    warps: dict[int, set[int]] = defaultdict(set)
    alone: dict[tuple[int, int], int] = defaultdict(int)
    for agent in agents:
        own = agent["block"]
        require(type(own) is int and 0 <= own < prod(grid), "an agent is of no block")
        threads[own] += agent["threads"]
        warps[own] |= set(agent["warps"])
        if len(set(agent["warps"])) == 1:
            alone[own, agent["warps"][0]] += agent["threads"]
    require(all(each == size for each in threads.values()), "a block has other threads")
    count = -(-size // _WARP)  # a launch may say any number: it is not counted out
    for each in warps.values():
        whole = len(each) == count and min(each) == 0 and max(each) == count - 1
        require(whole, "a block has other warps")
    require(all(each <= _WARP for each in alone.values()), "a warp has too many threads")
