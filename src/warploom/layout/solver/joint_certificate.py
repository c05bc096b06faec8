"""The certificate of several tiles: one for each tile's layout, where each lies, and the bounds of
the other ways to do its accesses. `trust/tiles.py` checks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from warploom.layout.solver.certificate import certificate, digest, text_of
from warploom.layout.solver.choose import Chosen
from warploom.layout.solver.joint import Joint, Placed, Point
from warploom.layout.solver.solve import BY_BOUND, Solved
from warploom.search.engine import Watch

VERSION = 1


def tiles_certificate(joint: Joint, best: Placed, watch: Watch | None = None) -> dict[str, Any]:
    """The record; `least` is what no choice costs less than, whatever the layouts."""
    found: dict[str, Any] = {
        "kind": "tiles",
        "version": VERSION,
        "name": joint.tiles.name,
        "limit": joint.tiles.limit,
        "phases": list(joint.tiles.phases),
        "tiles": [
            _tile(point, offset, chosen, watch)
            for point, offset, chosen in zip(best.points, best.offsets, joint.chosen, strict=True)
        ],
        "cost": text_of(best.cost),
        "least": text_of(joint.least),
        "instructions": best.instructions,
        "bytes": best.bytes,
    }
    return found | {"digest": digest(found)}


def _tile(point: Point, offset: int, chosen: Chosen, watch: Watch | None) -> dict[str, Any]:
    tile = point.tile
    return {
        "name": tile.name,
        "way": point.way,
        "stages": tile.stages,
        "live": sorted(tile.live),
        "aligned": tile.aligned,
        "offset": offset,
        "layout": certificate(point.task, _shown(point), watch),
        "others": [
            {"way": each.way.name, "layout": certificate(each.front.task, each.front.solved, watch)}
            for each in chosen.tried
            if each.way.name != point.way and each.front.best is not None
        ],
    }


def _shown(point: Point) -> Solved:
    """What a certificate can show of a layout: no kind of it says how many places may be unused."""
    if not point.task.room:
        return point.solved
    return replace(point.solved, least=point.task.least, how=BY_BOUND)
