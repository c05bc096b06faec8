"""A proof as a record that `trust/schedule.py` checks by itself: skeletons, and what is claimed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from warploom.errors import UnsupportedError
from warploom.machine.proof import Proof, Reach
from warploom.ptx.emulate.skeleton import Act, Agent, Event, Recorded

VERSION = 1


def certificate(name: str, grid: Any, block: Any, proof: Proof, registers: int | None) -> Any:
    """The certificate of a launch; what was not proved has none."""
    if proof.reach is Reach.THIS_SCHEDULE:
        raise UnsupportedError(
            "there is no certificate of what is not proved",
            None if not proof.failed else proof.failed[0].span,
        )
    record = {
        "kind": "schedule", "version": VERSION, "name": name, "grid": list(grid),
        "block": list(block), "reach": proof.reach.value, "assumed": list(proof.assumed),
        "registers": registers, "batches": [_batch(each) for each in proof.skeletons],
    }  # fmt: skip
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return record | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def _batch(recorded: Recorded) -> dict[str, Any]:
    return {
        "mbarriers": [[each.name, each.block, each.expected] for each in recorded.mbarriers],
        "agents": [_agent(each) for each in recorded.agents],
    }


def _agent(agent: Agent) -> dict[str, Any]:
    # Fences of memory say something of flags alone.
    events = [_event(each) for each in agent.events if each.act is not Act.ORDERS]
    return {"block": agent.block, "threads": len(agent.threads), "events": events}


def _event(event: Event) -> list[Any]:
    """What happens, about what, in which phase, how many arrivals, how many bytes, which blocks."""
    where = event.where
    if event.act is Act.INVAL:
        message = "a certificate of mbarriers that are made invalid is not written"
        raise UnsupportedError(message, None, "the proof itself covers them")
    if isinstance(where, tuple):
        if where[0] == "flag":
            message = "a certificate of flags in global memory is not written"
            raise UnsupportedError(message, None, "the proof itself covers them")
        where = list(where)
    elif event.act in (Act.REMOTE, Act.FENCE, Act.EXIT):
        where = None
    phase = 0 if event.act is Act.REMOTE else event.phase
    return [event.act.value, where, phase, event.amount, event.bytes, list(event.blocks)]
