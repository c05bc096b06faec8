"""A proof as a record that `trust/schedule.py` checks by itself: skeletons, and what is claimed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from warploom.errors import UnsupportedError
from warploom.machine.proof import Proof, Reach
from warploom.ptx.emulate.skeleton import GRID, Act, Agent, Event, Recorded
from warploom.ptx.prove.flags import counted_on
from warploom.ptx.prove.order import of_registers

VERSION = 3
WARP = 32


def certificate(name: str, grid: Any, block: Any, proof: Proof, registers: int | None) -> Any:
    """The certificate of a launch; what was not proved has none."""
    if proof.reach is Reach.THIS_SCHEDULE:
        raise UnsupportedError(
            "there is no certificate of what is not proved",
            None if not proof.failed else proof.failed[0].span,
        )
    if any(e.where == GRID for r in proof.skeletons for a in r.agents for e in a.events):
        raise UnsupportedError("there is no certificate of a grid that meets (grid.sync()) yet")
    if any(counted_on(each, dict(enumerate(each.loops)))[1] for each in proof.skeletons):
        raise UnsupportedError("there is no certificate of flags that count on, as semaphores do")
    sets = any(
        of_registers(event) for each in proof.skeletons for agent in each.agents
        for event in agent.events
    )  # fmt: skip
    record = {
        "kind": "schedule", "version": VERSION, "name": name, "grid": list(grid),
        "block": list(block), "reach": proof.reach.value, "assumed": list(proof.assumed),
        "registers": registers if sets else None,
        "batches": [_batch(each) for each in proof.skeletons],
    }  # fmt: skip
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return record | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def _batch(recorded: Recorded) -> dict[str, Any]:
    """Flags and loops that look at them are told by their numbers, as mbarriers are."""
    places = sorted({event.where for agent in recorded.agents for event in agent.events
                     if event.act in (Act.COME, Act.GO) and event.where[0] == "flag"})  # fmt: skip
    flags = {flag: number for number, flag in enumerate(places)}
    spans = {loop.load: number for number, loop in enumerate(recorded.loops)}
    loops = {site: spans[span] for site, span in enumerate(recorded.sites) if span in spans}
    return {
        "first": recorded.first, "cluster": recorded.cluster,
        "mbarriers": [[e.name, e.block, e.expected, e.byte] for e in recorded.mbarriers],
        "flags": [[_named(recorded, flag), recorded.initial.get(flag, 0)] for flag in places],
        "loops": [[each.compare, each.type, int(each.holds)] for each in recorded.loops],
        "agents": [_agent(recorded, agent, flags, loops) for agent in recorded.agents],
    }  # fmt: skip


def _named(recorded: Recorded, flag: Any) -> str:
    return f"byte {flag[2]} of {recorded.regions.get(flag[1], 'global memory')}"


def _agent(
    recorded: Recorded, agent: Agent, flags: dict[Any, int], loops: dict[int, int]
) -> dict[str, Any]:
    threads = recorded.block_threads or len(agent.threads)
    warps = sorted({thread % threads // WARP for thread in agent.threads})
    # Fences of memory say something of flags alone.
    events = [
        _event(each, flags, loops) for each in agent.events if flags or each.act is not Act.ORDERS
    ]
    return {
        "block": agent.block, "threads": len(agent.threads), "warps": warps, "events": events,
    }  # fmt: skip


def _event(event: Event, flags: dict[Any, int], loops: dict[int, int]) -> list[Any]:
    """What happens, about what, in which phase, how many arrivals, how many bytes, which blocks.

    Of a wait for a flag the bytes are the number of its loop, of a write whether it adds. Of one
    who comes to a named barrier the arrivals are the threads that it is for, 0 for the whole block.
    """
    where, bytes_ = event.where, event.bytes
    if isinstance(where, tuple):
        if where[0] == "flag":
            where = ("flag", flags[where])
            bytes_ = loops.get(event.site, -1) if event.act is Act.GO else bytes_
        where = list(where)
    elif event.act in (Act.REMOTE, Act.FENCE, Act.EXIT, Act.ORDERS):
        where = None
    phase = 0 if event.act is Act.REMOTE else event.phase
    return [event.act.value, where, phase, int(event.amount), bytes_, list(event.blocks)]
