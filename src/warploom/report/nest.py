"""A loop nest as a picture: the loops of an implementation, its decisions, what bounds its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warploom.loopnest.bound import Reason
from warploom.loopnest.decided import Implementation, Loop, Node
from warploom.loopnest.ir import Dim, Get, Instruction, Put
from warploom.loopnest.schedule import source_of
from warploom.loopnest.show import show_instruction
from warploom.machine.times import time_words
from warploom.report import tree
from warploom.report.chart import Bar, bars, bars_html
from warploom.report.page import table
from warploom.report.picture import Figure, Part
from warploom.report.tree import Row
from warploom.search.branching.candidate import Decision

_LEVELS = {
    "BLOCK": "global", "THREAD": "thread", "DEAL": "thread", "VECTOR": "vector", "LOOP": "serial",
    "UNROLL": "serial",
}  # fmt: skip
_WORDS = {"BLOCK": "blocks", "THREAD": "threads", "DEAL": "cooperative copy", "VECTOR": "vector",
          "LOOP": "loop", "UNROLL": "unrolled"}  # fmt: skip
_CACHES = {"NO_CACHE": "not kept in caches", "CACHE_GLOBAL": "L2", "CACHE_SHARED": "L1 and L2",
           "CACHE_READ_ONLY": "read-only cache"}  # fmt: skip
# Decisions between pairs say nothing that the tree of loops does not show.
_LISTED = (
    "size",
    "dim_kind",
    "lowered",
    "mem_space",
    "cache",
    "layout",
    "padding",
    "stages",
    "spread",
)


def loop_rows(made: Implementation) -> list[Row]:
    """The control flow, outermost first."""
    return [row for node in made.nests for row in _rows(made, node, 0)]


def _rows(made: Implementation, node: Node, depth: int) -> Iterator[Row]:
    if not isinstance(node, Loop):
        cache = made.cache.get(node)
        yield Row(depth, "", "", statement_words(made, node), _CACHES.get(cache or "", ""))
        return
    kind = _LEVELS.get(node.kind, "serial")
    text = f"{_placed(made, node.dims)}, {node.size} iterations"
    yield Row(depth, kind, _WORDS.get(node.kind, node.kind.lower()), text)
    for each in node.body:
        yield from _rows(made, each, depth + 1)


def _placed(made: Implementation, dims: Sequence[Dim]) -> str:
    """The axes that a loop goes along, and by how much: `k by 16`."""
    return ", ".join(dict.fromkeys(f"{d.axis.name} by {made.stride_of(d)}" for d in dims))


def statement_words(made: Implementation, inst: Instruction) -> str:
    """What an instruction does, with names of arrays instead of its own."""
    match inst.action:
        case Put():
            return f"{_array(made, inst)} in shared memory ← register"
        case Get():
            return f"register ← {_array(made, inst)} in shared memory"
        case _:
            return show_instruction(inst)


def _array(made: Implementation, inst: Instruction) -> str:
    return next(source_of(each) for each in made.lowered if inst in (each.put, each.get))


def loops_part(made: Implementation) -> tuple[Part, Figure]:
    rows = loop_rows(made)
    caption = "The loops of the implementation, by where they run."
    note = "Point at a line to see the loops around it."
    drawn = Figure("loops", caption, tree.svg(caption, rows))
    return Part("Loops", tree.legend(rows) + tree.html(rows), note), drawn


def decisions_part(decisions: Sequence[Decision]) -> Part:
    """What was decided, choice by choice."""
    by_choice: dict[str, list[str]] = {}
    for each in decisions:
        if each.choice in _LISTED and None not in each.values:
            what = " or ".join(map(str, each.values))
            by_choice.setdefault(each.choice, []).append(f"{', '.join(each.objects)} = {what}")
    rows = [(choice, "; ".join(texts)) for choice, texts in by_choice.items()]
    return Part("Decisions", table(("choice", "decided"), rows))


def bound_part(reasons: Sequence[Reason], heading: str, name: str) -> tuple[Part, Figure]:
    """The terms of a bound: the longest is the bound itself."""
    kept = [each for each in reasons if each.nanoseconds > 0]
    rows = [Bar(each.resource, each.nanoseconds, time_words(each.nanoseconds)) for each in kept]
    caption = "No implementation that is left can be faster than the longest bar."
    drawn = Figure(name, caption, bars(caption, rows), bars_html(rows))
    listed = table(
        ("resource", "at least", "why"),
        [(each.resource, time_words(each.nanoseconds), each.why) for each in kept],
    )
    return Part(heading, drawn.html + listed), drawn
