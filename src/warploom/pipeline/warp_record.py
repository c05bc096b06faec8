"""A filled warp sketch as plain data, for its certificate: the tile, and the program with its holes
filled, without the accumulate statements that it does not need."""

from __future__ import annotations

from typing import Any, assert_never

from warploom.index.show import show
from warploom.sketch.simt.ir import (
    Accumulate,
    Exchange,
    Finish,
    Loop,
    Read,
    Stmt,
    Sync,
    Write,
    closed,
    prune,
)
from warploom.sketch.simt.solve import Filled

Json = dict[str, Any]


def warp_record(found: Filled) -> Json:
    """What `trust/warp.py` runs again."""
    traced = found.traced
    body = closed(prune(traced, found.live), found.fill)
    return {
        "lanes": [list(axis) for axis in traced.lanes],
        "arrays": [
            {
                "name": array.name,
                "space": array.space,
                "shape": list(array.shape),
                "step": list(array.step),
            }
            for array in traced.arrays.values()
        ],
        "accumulators": {
            made.name: {
                "outer": made.outer,
                "inner": made.inner,
                "init": made.first[0].value if made.first else None,
                "only": [each.value for each in made.types],
                "finish": made.finalize,
            }
            for made in traced.accumulators.values()
        },
        "fill": {hole: show(expr) for hole, expr in found.fill.items()},
        "program": _body(body),
    }


def _body(body: tuple[Stmt, ...]) -> list[Json]:
    return [_statement(stmt) for stmt in body]


def _statement(stmt: Stmt) -> Json:
    match stmt:
        case Loop(var, count, inner):
            return {"for": var, "count": count, "body": _body(inner)}
        case Read(target, array, index):
            return {"set": target, "array": array, "index": [*map(show, index)]}
        case Exchange(target, value, lanes):
            return {"set": target, "value": value, "lane": [*map(show, lanes)]}
        case Write(array, index, value):
            return {"array": array, "index": [*map(show, index)], "value": value}
        case Accumulate(_, accumulator, items, predicate):
            return {"accumulate": accumulator, "items": [*items], "if": show(predicate)}
        case Finish(target, accumulator):
            return {"set": target, "finish": accumulator}
        case Sync():
            return {"sync": True}
        case _:
            assert_never(stmt)
