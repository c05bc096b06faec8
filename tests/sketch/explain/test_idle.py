"""Holes that the goal does not depend on are told, with their places; others are not."""

from __future__ import annotations

from itertools import product

from bench.common.sketch.generate import seeded, sketch

from warploom.sketch.explain.idle import idle_holes
from warploom.sketch.front import load_text
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Apply, Program

UNREAD = """x: [4] = range(0, 4)
u: [4] = ?rots{main=0,second=0,out=0}(x)
y: [4] = ?rots{main=0,second=0,out=0}(x)
goal: [4] id
"""
CUT_OFF = """define right([4], [4]) -> [4] = [(1, 0), (1, 1), (1, 2), (1, 3)]
x: [4] = range(0, 4)
y: [4] = ?rots{main=0,second=0,out=0}(x)
z: [4] = right(y, x)
goal: [4] id
"""


def test_a_hole_that_nobody_reads() -> None:
    (remark,) = idle_holes(load_text(UNREAD, "s.swflow"))
    assert remark.message == "the goal does not depend on hole 'u': its 5 choices all give the same"
    assert remark.span is not None
    assert (remark.span.source.name, remark.span.line, remark.span.column) == ("s.swflow", 2, 1)


def test_a_hole_whose_cells_nobody_reads() -> None:
    (remark,) = idle_holes(load_text(CUT_OFF))
    assert "'y'" in remark.message
    assert idle_holes(load_text(CUT_OFF.replace("(1, 3)]", "(0, 0)]"))) == ()


def test_by_trying_every_choice() -> None:
    """Where a hole is called idle, the last step is the same whatever fills it."""
    seen = 0
    for seed in range(300):
        program = sketch(seeded(seed))
        idle = {remark.message.split("'")[1] for remark in idle_holes(program)}
        for hole in program.holes:
            if program.steps[hole].name in idle:
                seen += 1
                assert shows(program, hole) is False
    assert seen >= 20


def shows(program: Program, hole: int) -> bool:
    """Whether the choice of a hole can be seen in the last step, in any fill."""
    options = [range(choices(program, h)) if h != hole else range(1) for h in program.holes]
    at = program.holes.index(hole)
    for fill in product(*options):
        ends = {
            evaluate(program, [*fill[:at], choice, *fill[at + 1 :]])[-1]
            for choice in range(choices(program, hole))
        }
        if len(ends) > 1:
            return True
    return False


def choices(program: Program, hole: int) -> int:
    step = program.steps[hole]
    assert isinstance(step, Apply)
    return len(step.gathers)
