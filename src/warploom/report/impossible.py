"""The picture of an impossible sketch: the goal cells that cannot be right, and what reaches them.

The goal is drawn as a grid beside memory: pointing at a goal cell lights what can get there in any
fill (`sketch/explain/reach.py`), which is at most that.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from warploom.report.fill import grid_of
from warploom.report.grid import Grid, rules, side_by_side
from warploom.report.page import table
from warploom.report.panel import Panel, goal_flow
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.report.search import fills_part
from warploom.search.budget import Budget
from warploom.sketch.explain.reach import Reach, Reached
from warploom.sketch.explain.reason import CellReason, Explanation, explain
from warploom.sketch.explain.show import lines
from warploom.sketch.synth.result import Result
from warploom.sketch.term.ir import Goal, Literal, Program, Symbol, Term, leaves_of
from warploom.sketch.term.limits import show_shape
from warploom.sketch.term.read import read
from warploom.sketch.term.show import show_term

_WIDEST = 120  # letters of a list of terms
SECONDS = 3.0


def picture(result: Result, why: Explanation | None = None) -> Picture:
    """The picture of a result that is impossible; `why`, if it is known already."""
    number = next(n for n, each in enumerate(result.program.goals) if each is result.goal)
    reason = explain(result.program, number, budget=Budget(SECONDS)) if why is None else why
    return _Reasons(result.program, result.goal, reason, result).picture()


class _Reasons:
    def __init__(self, program: Program, goal: Goal, why: Explanation, result: Result) -> None:
        self.program, self.why, self.result = program, why, result
        self.goal = read(program, goal).goal
        self.reach = Reach(program, self.goal)
        self.wrong = {each.number: each for each in why.cells}
        self.reached = [self.reach.of(cell, with_items=False) for cell in range(self._cells)]
        self.flow = goal_flow(program, self.goal, [self._reaching(each) for each in self.reached])

    @property
    def _cells(self) -> int:
        return len(self.goal.values)

    def _reaching(self, reached: Reached) -> list[int]:
        """The symbols that can reach a cell, in it or inside what it holds."""
        found = {
            leaf.number for leaf in leaves_of(list(reached.values)) if isinstance(leaf, Symbol)
        }
        return sorted(found)

    def picture(self) -> Picture:
        grids = [self._grid(panel) for panel in self.flow.panels]
        told = list(lines(self.why))
        caption = "Cells of the goal that cannot be right are marked; beside it, memory."
        return Picture(
            "Impossible sketch",
            self.result.program.name,
            self._facts(),
            (
                Part("Why there is no fill", _paragraphs(told)),
                Part("The goal, and what can reach it", _stage(grids), _NOTE),
                Part("The steps", table(("step", "what it is", "choices", ""), self._steps())),
                fills_part(self.result.stats),
            ),
            (Figure("goal", caption, side_by_side(caption, grids)),),
            (f"{self.result.program.name}: impossible", *(f"  {line}" for line in told)),
            self._data(),
            ("flow.css", "flow.js"),
            rules(grids),
        )

    def _grid(self, panel: Panel) -> Grid:
        grid = grid_of(self.flow, panel)
        if panel.kind != "goal":
            return grid
        kinds = ["wrong" if cell in self.wrong else kind for cell, kind in enumerate(grid.kinds)]
        title, count = f"goal {show_shape(self.goal.shape)}", len(self.wrong)
        word = "cell" if count == 1 else "cells"
        return Grid(
            title, f"{count} {word} marked", grid.columns, grid.rows, grid.heads, tuple(kinds),
            grid.texts, (), grid.across, grid.down,
        )  # fmt: skip

    def _facts(self) -> tuple[Fact, ...]:
        joint = " and " if self.why.blame.kind == "several" else " or "
        blamed = joint.join(hole.name for hole in self.why.blamed) or "no single hole"
        first = self.why.cells[0]
        place = ", ".join(map(str, first.cell))
        return (
            Fact("outcome", "impossible", "bad"),
            Fact("fills ruled out", f"{self.why.space:,}".replace(",", " ")),
            Fact("goal cell", f"({place}) should hold {show_term(first.wanted, 40)}"),
            Fact("blocked by", blamed),
            Fact("states looked at", f"{self.result.stats.states:,}".replace(",", " ")),
        )

    def _steps(self) -> list[tuple[str, str, int, str]]:
        blamed = {hole.name for hole in self.why.blamed}
        rows = []
        for step in self.program.steps:
            note = "a gather of any kind here would do" if step.name in blamed else ""
            if isinstance(step, Literal):
                rows.append((step.name, f"input {show_shape(step.shape)}", 1, note))
            else:
                hole = "hole " if step.gathers.is_hole else ""
                what = f"{hole}{step.gathers.function} {show_shape(step.shape)}"
                rows.append((step.name, what, len(step.gathers), note))
        return rows

    def _data(self) -> dict[str, Any]:
        panels = [self._panel_data(panel) for panel in self.flow.panels]
        return {"row": self.flow.row, "panels": panels}

    def _panel_data(self, panel: Panel) -> dict[str, Any]:
        goal = panel.kind == "goal"
        return {
            "name": panel.name,
            "kind": panel.kind,
            "columns": panel.columns,
            "cells": panel.cells,
            "rows": [panel.row_name(row) for row in range(panel.rows)],
            "sources": list(panel.sources),
            "reads": [row.tolist() for row in self.flow.reads_of(panel)],
            "told": [self._told(cell) for cell in range(panel.cells)] if goal else None,
        }

    def _told(self, cell: int) -> str:
        wanted = self.goal.values[cell]
        values = self.reached[cell].values
        others = ", and values that are nowhere in the goal" if self.reached[cell].others else ""
        listed = _terms(values) or "nothing"
        text = f"should hold {show_term(wanted, 60)}; what can reach it: {listed}{others}"
        if cell in self.wrong:
            reason = self.wrong[cell]
            alone = "; its value cannot get there in any fill" if reason.is_unreachable else ""
            text += alone + _missing(reason)
        return text


_NOTE = (
    "Numbers are elements of memory, or how many items a fold has. Point at a cell of the goal, or "
    "focus one: what can reach it, whatever fills the holes, is marked in memory."
)


def _missing(reason: CellReason) -> str:
    lost = reason.reached.missing(reason.wanted)
    return f"; {_terms(lost)} cannot become part of that fold" if lost else ""


def _terms(terms: Sequence[Term]) -> str:
    text = ", ".join(show_term(term, 40) for term in terms[:24])
    cut = text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
    return cut + (f" ({len(terms)} values)" if len(terms) > 6 else "")


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f'<p class="why">{escape(text)}</p>\n' for text in texts)


def _stage(grids: Sequence[Grid]) -> str:
    panels = "".join(grid.html() for grid in grids)
    wide = sum(grid.panel_width + 30 for grid in grids)
    return (
        f'<div class="split close" style="--wide:{wide:.0f}px"><div class="flow">{panels}'
        '<svg class="wires" aria-hidden="true"></svg></div>'
        '<aside class="side"><div class="box" id="trace" aria-live="polite">'
        '<h3>What can reach a cell</h3><p class="soft">Point at a cell of the goal, or focus one '
        "with <kbd>Tab</kbd> and the arrow keys.</p></div></aside></div>"
    )
