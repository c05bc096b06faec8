"""Why two accesses race, in words: what is missing, what to write, and where the manual says it.

One cause is one finding. It is decided by what the race detector saw (`machine/judges.py:Cause`)
and, of what ends later, by the instruction that began it.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.machine.judges import Cause
from warploom.machine.race import Race
from warploom.ptx.ir import Instruction

NO_GPU = "the manual forbids it, though it seldom shows on GPUs"


@dataclass(frozen=True, slots=True)
class Missing:
    """`kind` heads the finding; `what` is missing; `remedy` is what to write; `manual` is the
    section of the PTX manual."""

    kind: str
    what: str
    remedy: str
    manual: str


_ORDER = Missing(
    "data race", "nothing orders them", "", "Memory Consistency Model: Causality order"
)  # fmt: skip
_PROXY = Missing(
    "missing fence", "fence.proxy.async is missing between them",
    "put fence.proxy.async behind the writes, before the barrier that the copying thread passes; "
    "in CUDA C++ it is cuda::ptx::fence_proxy_async", "Async proxy",
)  # fmt: skip
_PROXY_READ = Missing(
    "missing fence", "fence.proxy.async is missing between them",
    "put fence.proxy.async behind the reads, before the barrier that the copying thread passes; "
    "in CUDA C++ it is cuda::ptx::fence_proxy_async", "Async proxy",
)  # fmt: skip
_MAP = Missing(
    "missing fence", "fences of tensor maps are missing between them",
    "release the map with tensormap.cp_fenceproxy or fence.proxy.tensormap::generic.release, and "
    "acquire it with fence.proxy.tensormap::generic.acquire at its address, before the copy",
    "tensormap.cp_fenceproxy",
)  # fmt: skip
_INIT = Missing(
    "missing fence", "no fence tells of the mbarrier's initialisation",
    "put fence.mbarrier_init.release.cluster behind mbarrier.init, before the barrier that those "
    "pass who use it; between blocks that is a barrier of the cluster", "membar, fence",
)  # fmt: skip
_REGISTER = Missing(
    "missing fence", "wgmma.fence is missing before the product",
    "all four warps execute wgmma.fence.sync.aligned behind the last access of the registers, "
    "before the first product; in CUTLASS it is warpgroup_arrive()", "wgmma.fence",
)  # fmt: skip
_SCOPE = Missing(
    "scope too small", "they are of two blocks, but an mbarrier orders them in the scope of one",
    "arrive with mbarrier.arrive.release.cluster, and wait with .acquire.cluster; "
    "without these words the scope is .cta", "mbarrier.arrive",
)  # fmt: skip
_GRID = Missing(
    "missing wait", "griddepcontrol.wait is missing before the second",
    "call griddepcontrol.wait in each thread before it touches what the launch before reads or "
    "writes; in CUDA C++ it is cudaGridDependencySynchronize()", "griddepcontrol",
)  # fmt: skip


def missing(race: Race, begun: Instruction | None) -> Missing:
    """What is missing between two accesses; `begun` is the instruction of the first, if known."""
    match race.cause:
        case Cause.PROXY:
            return _PROXY if race.first.kind.writes else _PROXY_READ
        case Cause.MAP:
            return _MAP
        case Cause.INIT:
            return _INIT
        case Cause.REGISTER:
            return _REGISTER
        case Cause.SCOPE:
            return _SCOPE
        case Cause.GRID:
            return _GRID
        case Cause.WAIT:
            return _wait(race, begun)
        case Cause.ORDER:
            return _ORDER


def _wait(race: Race, begun: Instruction | None) -> Missing:
    """Nobody waited for what the first began."""
    if begun is None:
        return Missing("missing wait", "nobody waited for the first", "", "")
    words, opcode = frozenset(begun.modifiers), begun.opcode
    if opcode == "wgmma":
        what, manual = "wgmma.wait_group is missing between them", "wgmma.wait_group"
        remedy = "commit the products with wgmma.commit_group, and wait with wgmma.wait_group"
    elif "bulk" in words and not any(each.startswith("mbarrier") for each in words):
        reads = not race.first.kind.writes
        name = f"cp.async.bulk.wait_group{'.read' * reads}"
        what, manual = f"{name} is missing between them", "cp.async.bulk.wait_group"
        remedy = (
            "in the thread that began the copy: cp.async.bulk.commit_group, then "
            f"{name}, and behind it a barrier for the others; nobody else can wait for it"
        )
    elif opcode == "cp" and "bulk" not in words:
        what, manual = "cp.async.wait_group is missing between them", "cp.async.wait_group"
        remedy = (
            "in the thread that began the copy: cp.async.commit_group, then cp.async.wait_group, "
            "and behind it a barrier for the others"
        )
    else:
        what, manual = "nobody waits for the mbarrier's phase between them", "mbarrier.try_wait"
        remedy = (
            "wait in a loop with mbarrier.try_wait for the phase that the copy completes, or pass "
            "a barrier behind a thread that has waited"
        )
    return Missing("missing wait", what, remedy, manual)
