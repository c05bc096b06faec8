"""Checks that a certificate of a schedule says what it stands on: what its events need, and what
they cannot show by themselves.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from warploom.trust.checked import require
from warploom.trust.schedule_flags import Batch, Node

OWN_COPIES = "copies see the mbarriers of their own block without a fence, as they do on GPUs"
_CONVERGED = (
    "lanes of a warp that part ways meet again before an instruction that is .aligned or has .sync"
)
_TOGETHER = "a product of a warpgroup is complete only when all four of its warps have come to it"
_RESIDENT = "all blocks of the launch run at once, so that who waits for a flag keeps nobody away"
_OUTLIVES = (
    "a cp.async under way when its block ends does no harm, of which the manual says nothing"
)
_NOT_MET = "setmaxnreg needs no meeting of the warpgroup since the one before, as it does on GPUs"
_COMPILED = "the kernel is compiled for "
_POOLLESS = "nobody waits for registers, as no bound of the kernel says how many there are"
_BEGIN = "flags that are waited for hold at the start what they do here: "
_MOST_SHOWN = 4  # flags of which one sentence says what they hold
_WARPGROUP = 4  # warps


def check_assumed(
    batch: Batch, flags: list[Any], assumed: list[Any], registers: int | None
) -> None:
    """Each sentence that the events of a batch need is there, with their numbers."""
    kinds = {where[0] for act, where, *_ in batch.rows.values() if act in ("come", "go")}
    used = "registers" in kinds
    needed = {
        _CONVERGED: bool(kinds & {"warp", "wgmma"}), _TOGETHER: "wgmma" in kinds,
        _RESIDENT: "flag" in kinds, _POOLLESS: used and registers is None,
        _OUTLIVES: _outlives(batch), _NOT_MET: used and _sets_unmet(batch),
    }  # fmt: skip
    for told, really in needed.items():
        require(not really or told in assumed, f"it does not say: {told}")
    said = [each for each in assumed if str(each).startswith(_COMPILED)]
    meant = [f"{_COMPILED}{registers} registers of a thread"]
    meant = meant if used and registers is not None else []
    require(said == meant, "it does not say for which registers the kernel is compiled")
    begins = [each for each in assumed if str(each).startswith(_BEGIN)]
    require(begins == _begin(batch, flags), "it does not say what its flags hold at the start")


def _outlives(batch: Batch) -> bool:
    """Whether an arrival may come after its block has ended, as it does when copies are done."""
    ends: dict[int, list[Node]] = defaultdict(list)
    for node, (act, *_) in batch.rows.items():
        if act == "exit":
            ends[batch.block(node)].append(node)
    return any(
        not any(batch.reached_after(end, ("p", where, phase)) for end in ends[batch.block(node)])
        for node, (act, where, phase, *_) in batch.rows.items() if act == "later"
    )  # fmt: skip


def _sets_unmet(batch: Batch) -> bool:
    """Whether warps of a warpgroup may not have met since it set its registers before."""
    sets: dict[int, list[Node]] = defaultdict(list)
    for node, (act, where, *_) in batch.rows.items():
        if act in ("come", "go") and where[0] == "registers":
            sets[node[1]].append(node)
    groups = {
        a: {(batch.agents[a]["block"], warp // _WARPGROUP) for warp in batch.agents[a]["warps"]}
        for a in sets
    }
    return any(
        groups[a] & groups[b] and not batch.done_by_all(after, before)
        for a, mine in sets.items() for b, theirs in sets.items()
        for before, after in zip(mine, theirs[1:], strict=False)
    )  # fmt: skip


def _begin(batch: Batch, flags: list[Any]) -> list[str]:
    """What is said of the flags that are waited for: what each holds, and in which memory."""
    waited = {where[1] for act, where, *_ in batch.rows.values()
              if act == "go" and where[0] == "flag"}  # fmt: skip
    held = {f"{flags[each][1]} in {flags[each][0].partition(' of ')[2]}": 0
            for each in sorted(waited)}  # fmt: skip
    shown = [*held][:_MOST_SHOWN] + ["…"] * (len(held) > _MOST_SHOWN)
    return [_BEGIN + ", ".join(shown)] if held else []
