"""Checks that each event of a certificate of a schedule is written in the one way there is.

A number that an event has no use for is 0: else two texts would say the same, and one that was
changed would hold.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from warploom.trust.checked import require

Node = tuple[Any, ...]
_PARTS = ("phase", "amount", "bytes", "blocks")
# By kind of event, and of group where there is one: the parts that may be other than 0.
_USED: dict[str, frozenset[str]] = {
    "init": frozenset({"amount"}), "arrive": frozenset({"phase", "amount", "bytes"}),
    "expect": frozenset({"phase", "bytes"}), "copy": frozenset({"phase", "bytes", "blocks"}),
    "later": frozenset({"phase", "amount"}), "wait": frozenset({"phase"}),
    "token": frozenset({"phase"}), "remote": frozenset({"blocks"}), "inval": frozenset(),
    "fence": frozenset({"amount"}), "exit": frozenset(),
    "orders": frozenset({"amount", "bytes"}), "come": frozenset({"phase"}),
    "go": frozenset({"phase"}), "come barrier": frozenset({"phase", "amount"}),
    "come flag": frozenset({"phase", "amount", "bytes"}),
    "go flag": frozenset({"amount", "bytes"}), "come registers": frozenset({"amount"}),
    "go registers": frozenset({"amount"}),
}  # fmt: skip
_NOWHERE = ("remote", "fence", "exit", "orders")
_BITS = {"come flag": ("phase", "bytes"), "fence": ("amount",)}  # which are 0 or 1
_WAYS = range(1, 4)  # of an order: acquire, release, both; and so many scopes
_AT_ONCE = ("warp", "barrier")  # who waits there does nothing else meanwhile
_MEET = (*_AT_ONCE, "cluster")


def check_rows(
    rows: dict[Node, list[Any]], mbarriers: list[tuple[str, int, int]], blocks: int
) -> None:
    """`mbarriers`: name, block, arrivals; `blocks`: how many there are in the batch."""
    inits: dict[int, int] = defaultdict(int)
    for row in rows.values():
        act, where, _, amount, _, there = row
        name = f"{act} {where[0]}" if act in ("come", "go") else act
        parts = dict(zip(_PARTS, row[2:], strict=True))
        for part, value in parts.items():
            used = part in _USED.get(name, _USED[act])
            require(used or not value, f"{name}: it has no {part}")
        for part in _BITS.get(name, ()):
            require(parts[part] in (0, 1), f"{name}: {part} is 0 or 1")
        require(act not in _NOWHERE or where is None, f"{act}: it is about nothing")
        ordered = act != "orders" or (amount in _WAYS and parts["bytes"] in _WAYS)
        require(ordered, "there is no such order of memory")
        known = len({*there}) == len(there) and all(0 <= each < blocks for each in there)
        require(known, f"{act}: there is no such block")
        require(act != "remote" or len(there) == 1, "remote: it reaches one block")
        mine = act != "copy" or mbarriers[where][1] in there
        require(mine, "copy: it does not reach the block of its mbarrier")
        if act == "init":
            inits[where] += 1
            require(
                amount == mbarriers[where][2] > 0, "an mbarrier is initialised for another count"
            )
    once = all(inits[number] == 1 for number in range(len(mbarriers)))
    require(once, "an mbarrier is not initialised once")


def check_waits(rows: dict[Node, list[Any]]) -> None:
    """Who goes on from barriers came there, just before where nothing can be done between, and
    once; who comes to a barrier for the whole block, or with lanes, waits there."""
    waits: list[Any] = []
    came: dict[int, set[Any]] = defaultdict(set)  # by agent
    for node, (act, where, phase, amount, *_) in rows.items():
        passes, mine = [act, where, phase] == ["go", *waits[:2]], came[node[1]]
        require(not waits or not waits[2] or passes, f"{waits and waits[0]}: who comes waits there")
        if act in ("come", "go") and where[0] in _MEET:
            key = (act, where, phase)
            require(key not in mine, f"{where}: a thread comes, or goes on, twice at once")
            there = act == "come" or ("come", where, phase) in mine
            require(there, f"{where}: a thread goes on that did not come")
            at_once = act == "come" or where[0] not in _AT_ONCE or passes
            require(at_once, f"{where}: who goes on did something else before")
            mine.add(key)
        met = act == "come" and where[0] in _AT_ONCE
        waits = [where, phase, not amount] if met else []
