"""Checks what the events of every run are like, in a certificate that one run stands for all
schedules: who goes on from a barrier came to it, and an mbarrier has a place of its own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from warploom.trust.checked import require

_BY_ALL = ("warp", "barrier", "cluster")
_COMPILED = "the kernel is compiled for "
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
        if act in ("come", "go") and where[0] in _BY_ALL:
            key, mine = (where, phase), came[node[1]]
            require(act == "go" or key not in mine, f"{where}: a thread comes twice at once")
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


def check_registers(registers: Any, assumed: list[Any], *, used: bool) -> None:
    """What a thread begins with is what the certificate says that it stands on."""
    said = [each for each in assumed if str(each).startswith(_COMPILED)]
    known = used and registers is not None
    meant = [f"{_COMPILED}{registers} registers of a thread"] if known else []
    require(said == meant, "it does not say for which registers the kernel is compiled")
