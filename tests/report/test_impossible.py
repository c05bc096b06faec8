"""The page of an impossible sketch says what the explanation says."""

from __future__ import annotations

from tests.report.pages import data_of, impossible, memory_of, page_of

from warploom.sketch.explain.reason import explain
from warploom.sketch.explain.show import lines
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Apply, Symbol


def test_marked_cells_are_those_of_the_explanation() -> None:
    why = explain(impossible().program)
    html = page_of("impossible").html
    assert html.count('<b class="wrong"') == len(why.cells)
    assert page_of("impossible").lines[1:] == tuple(f"  {line}" for line in lines(why))


def test_what_reaches_a_goal_cell_is_marked_in_memory() -> None:
    """There is one hole: what can reach a cell is what some choice of it reads there."""
    data = data_of(page_of("impossible").html)
    goal, program = data["panels"][-1], impossible().program
    assert goal["kind"] == "goal"
    (hole,) = program.holes
    step = program.steps[hole]
    assert isinstance(step, Apply)
    held = [evaluate(program, [choice])[hole] for choice in range(len(step.gathers))]
    for cell in range(goal["cells"]):
        terms = [each[cell] for each in held]
        reaching = {("x", term.number) for term in terms if isinstance(term, Symbol)}
        assert memory_of(data, len(data["panels"]) - 1, cell) == reaching
        wanted = impossible().goal.values[cell]
        assert isinstance(wanted, Symbol)
        assert f"should hold {wanted.number};" in goal["told"][cell]
