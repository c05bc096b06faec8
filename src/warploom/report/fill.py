"""The picture of a fill: panels of what every step holds, the code of each step, its traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from warploom.emit import emit
from warploom.errors import WarploomError, spelled
from warploom.report.code import NOBODY, STORED, steps_of_lines
from warploom.report.grid import Grid, columns_of_text, rules, side_by_side
from warploom.report.page import listing
from warploom.report.panel import Flow, Ints, Panel, flow_of
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.report.search import fills_part
from warploom.report.theme import SHADES, shade_of
from warploom.report.traffic import (
    HEAT_NOTE,
    Stream,
    heat_html,
    heat_map,
    stream_fact,
    stream_words,
    streams_of,
)
from warploom.search.outcome import Verdict
from warploom.sketch.code.program import tiled_program
from warploom.sketch.code.tiling import Layout, Tiled
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.show import show_index
from warploom.sketch.term.ir import Apply, Goal, Program, size
from warploom.sketch.term.verify import Verification, Verifier

MOST_REGISTERS = 64  # of a lane: above that a kernel is long, and takes long to write
WIDTH = 100  # letters of a terminal
_ROWS = (0, 1, 2, 3)

MOVES = {
    "stays": "in place",
    "lane": "from the same {row}",
    "across": "from another {row}",
    "folds": "folded",
    "memory": "from memory or to it",
    "none": "zero or constant",
}


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A fill that was evaluated and verified again, and the kernel that was made of it."""

    program: Program
    fill: Mapping[int, int]
    flow: Flow
    verification: Verification
    tiled: Tiled | None
    without: str  # why there is no kernel
    by_step: bool = True  # whether its registers are named by steps of the program

    @property
    def streams(self) -> list[Stream]:
        return [] if self.tiled is None else streams_of(self.tiled)


def shown(result: Result, number: int = 0, code: bool | None = None) -> Shown:
    """Fill `number` of a result; `code` as in `shown_fill`."""
    return shown_fill(result.program, result.goal, result.fills.as_dict(number), code)


def shown_fill(
    program: Program, goal: Goal, fill: Mapping[int, int], code: bool | None = None
) -> Shown:
    """`code`: with a kernel or without; by default with one, where that is quick."""
    verifier = Verifier(program, goal)
    verification = verifier.verify(fill)
    tiled, without = _kernel(program, goal, fill, code)
    return Shown(
        verifier.program, fill, flow_of(verifier.program, fill), verification, tiled, without
    )


def _kernel(
    program: Program, goal: Goal, fill: Mapping[int, int], code: bool | None
) -> tuple[Tiled | None, str]:
    if code is False:
        return None, "no code was asked for"
    steps = [step for step in program.steps if isinstance(step, Apply)]
    most = max((size(step.gathers.out_shape[1:]) for step in steps), default=0)
    if code is None and most > MOST_REGISTERS:
        asked = spelled("--code", "code=True")
        return (
            None,
            f"a step has {most} registers in a lane; {asked} writes the kernel all the same",
        )
    number = next(n for n, each in enumerate(program.goals) if each is goal)
    try:
        return tiled_program(program, fill, number, Layout()), ""
    except WarploomError as error:
        return None, error.message


def picture(result: Result, number: int = 0, code: bool | None = None) -> Picture:
    """The picture of one fill of a result."""
    facts = (
        Fact("fills", _fills(result)),
        Fact("states looked at", f"{result.stats.states:,}".replace(",", " ")),
    )
    made = shown(result, number, code)
    return drawn(made, result.program.name, facts, (fills_part(result.stats),))


def drawn(
    made: Shown, name: str, facts: tuple[Fact, ...] = (), more: tuple[Part, ...] = ()
) -> Picture:
    """The picture of a fill that was evaluated; with further facts, and parts at the end."""
    grids = [grid_of(made.flow, panel) for panel in made.flow.panels]
    lines, owners = _code(made)
    streams = made.streams
    heats = [heat_map(stream) for stream in streams]
    parts = [*_formulas(made), Part("", _stage(made, grids, lines, owners))]
    figures = [Figure("steps", _caption(made), side_by_side(_caption(made), grids))]
    if heats:
        parts.append(Part("Memory", heat_html(heats), HEAT_NOTE))
        figures.append(Figure("memory", HEAT_NOTE, side_by_side("Requests to memory", heats)))
    return Picture(
        "Fill of a sketch",
        name,
        (*_facts(made, streams), *facts),
        (*parts, *more),
        tuple(figures),
        tuple(_text(name, made, grids, streams)),
        _data(made),
        ("flow.css", "flow.js"),
        rules([*grids, *heats]),
    )


def _formulas(made: Shown) -> list[Part]:
    """The index expression of each hole: what was searched for stands first."""
    listed = []
    for panel in made.flow.panels:
        step = None if panel.step is None else made.program.steps[panel.step]
        if isinstance(step, Apply) and step.gathers.is_hole:
            listed.append((_about(made, panel, ())[2], ""))
    note = "x0, x1, … are the indices of an element of what a step makes."
    return [Part("What was found", listing(listed), note)] if listed else []


def _caption(made: Shown) -> str:
    return (
        f"What every {made.flow.row} holds after each step: the number is the element of memory "
        "that the value comes from, and so is the colour."
    )


# -- cells -----------------------------------------------------------------------------------------


def grid_of(flow: Flow, panel: Panel) -> Grid:
    rows = tuple(panel.row_name(row) for row in range(panel.rows))
    heads = tuple(map(str, range(panel.columns)))
    return Grid(
        _short_title(panel),
        panel.detail or _size_words(flow, panel),
        panel.columns,
        rows,
        heads,
        tuple("none" if tone < 0 else f"k{_shade(tone)}" for tone in panel.tones),
        panel.texts,
        (),
        *_axes(flow, panel),
    )


def _axes(flow: Flow, panel: Panel) -> tuple[str, str]:
    """What columns and rows are."""
    return ("registers", f"{flow.row}s") if panel.kind == "registers" else ("elements", "")


def _shade(tone: float) -> int:
    return shade_of(round(tone * 1000), 1001) if tone < 1 else SHADES - 1


def _short_title(panel: Panel) -> str:
    words = {"memory": "memory {}", "output": "stored {}"}
    return words.get(panel.kind, "{}").format(panel.name)


def _size_words(flow: Flow, panel: Panel) -> str:
    if panel.kind == "registers":
        return f"{panel.rows} {flow.row}s × {panel.columns} registers"
    return f"{panel.cells} elements"


# -- what the page's script reads ----------------------------------------------------------------


def _data(made: Shown) -> dict[str, Any]:
    return {
        "row": made.flow.row,
        "panels": [_panel_data(made, panel) for panel in made.flow.panels],
    }


def _panel_data(made: Shown, panel: Panel) -> dict[str, Any]:
    moves = [made.flow.movement(panel, cell) for cell in range(panel.cells)]
    title, says, index = _about(made, panel, moves)
    return {
        "name": panel.name,
        "kind": panel.kind,
        "columns": panel.columns,
        "cells": panel.cells,
        "rows": [panel.row_name(row) for row in range(panel.rows)],
        "sources": list(panel.sources),
        "reads": _compact(made.flow.reads_of(panel)),
        "moves": "".join(move[0] for move in moves),
        "title": title,
        "says": says,
        "index": index,
    }


def _compact(reads: Sequence[Ints]) -> list[int] | list[list[int]]:
    """One number for each cell, where that says it."""
    single = all(len(row) == 1 for row in reads)
    return [int(row[0]) for row in reads] if single else [row.tolist() for row in reads]


def _about(made: Shown, panel: Panel, moves: Sequence[str]) -> tuple[str, str, str]:
    """A heading, a sentence and the index expression of a panel."""
    if panel.step is None:
        what = "in memory, before anything is loaded" if panel.kind == "memory" else panel.detail
        return _short_title(panel), f"{panel.cells} elements {what}", ""
    step = made.program.steps[panel.step]
    counts = Counter(moves)
    row = made.flow.row
    listed = ", ".join(
        f"{count} {MOVES[move].format(row=row)}" for move, count in counts.most_common()
    )
    says = f"{panel.detail}; {_size_words(made.flow, panel)}: {listed}."
    if not isinstance(step, Apply):
        return panel.name, says, ""
    choice = made.fill.get(panel.step, 0)
    sources = [made.program.steps[arg].name for arg in step.args]
    index = f"{step.name} = {show_index(step.gathers.expression(choice), sources)}"
    words = f"{step.gathers.describe(choice)}; " if step.gathers.is_hole else ""
    return panel.name, f"{words}{says}", index


# -- code ------------------------------------------------------------------------------------------


def _code(made: Shown) -> tuple[list[str], list[int | str | None]]:
    if made.tiled is None:
        return [], []
    lines = emit(made.tiled.kernel, "cuda").splitlines()
    if not made.by_step:
        return lines, [NOBODY] * len(lines)
    return lines, steps_of_lines(lines, made.tiled.tiling.outputs[0].name)


def _stage(
    made: Shown, grids: Sequence[Grid], lines: Sequence[str], owners: Sequence[int | str | None]
) -> str:
    places: dict[int | str | None, int] = {STORED: len(grids) - 1}
    places |= {panel.step: n for n, panel in enumerate(made.flow.panels) if panel.step is not None}
    before = next((n for n, line in enumerate(lines) if not line.startswith("//")), 0)
    marked = [
        (text, f' data-p="{places[owner]}"' if owner in places else "")
        for text, owner in zip(lines[before:], owners[before:], strict=True)
    ]
    code = (
        listing(marked, "code", before)
        if lines
        else f'<div class="box"><p class="soft">No code: {escape(made.without)}.</p></div>'
    )
    panels = "".join(grid.html() for grid in grids)
    kinds = [kind for kind in MOVES if kind in _moves_of(made)]
    legend = "".join(
        f'<span><i class="{kind}"></i>{escape(MOVES[kind].format(row=made.flow.row))}</span>'
        for kind in kinds
    )
    ramp = "".join(f'<i class="k{n}"></i>' for n in range(0, SHADES, 3))
    return _STAGE.format(panels=panels, code=code, legend=legend, ramp=ramp, row=made.flow.row)


def _moves_of(made: Shown) -> set[str]:
    return {
        made.flow.movement(panel, cell) for panel in made.flow.panels for cell in range(panel.cells)
    }


_STAGE = """<div class="controls">
<div class="group"><button id="before" type="button" aria-label="previous step">◀</button>
<button id="play" type="button" aria-pressed="false">Play</button>
<button id="after" type="button" aria-label="next step">▶</button></div>
<label class="group">Step <input id="step" type="range" min="0" value="0"></label>
<span id="now" class="now" aria-live="polite"></span>
<div class="group" role="group" aria-label="colours"><button type="button" data-mode="memory"
 aria-pressed="true">Where it comes from</button><button type="button" data-mode="moves"
 aria-pressed="false">How it moves</button></div></div>
<p class="legend" data-mode="memory"><span>first element of memory {ramp} last</span></p>
<p class="legend" data-mode="moves" hidden>{legend}</p>
<div class="split"><div class="flow">{panels}<svg class="wires" aria-hidden="true"></svg></div>
<aside class="side"><div class="box" id="trace" aria-live="polite"><h3>Trace a value</h3>
<p class="soft">Point at a cell, or focus one with <kbd>Tab</kbd> and the arrow keys: its value is
followed back to memory and on to the output. <kbd>PageUp</kbd> and <kbd>PageDown</kbd> change the
step, <kbd>Esc</kbd> lets go.</p></div>
<div class="box" id="about"><h3></h3><p></p><p><code></code></p></div>
{code}</aside></div>
"""


# -- figures and text ----------------------------------------------------------------------------


def _facts(made: Shown, streams: Sequence[Stream]) -> tuple[Fact, ...]:
    verdict = made.verification.verdict
    tone = {Verdict.PROVED: "good", Verdict.REFUTED: "bad"}.get(verdict, "")
    registers = [panel for panel in made.flow.panels if panel.kind == "registers"]
    moved = sum(
        made.flow.movement(panel, cell) == "across"
        for panel in registers
        for cell in range(panel.cells)
    )
    facts = [Fact("verdict", verdict.value, tone)]
    if registers:
        widest = max(panel.columns for panel in registers)
        facts.append(Fact("size", f"{registers[0].rows} {made.flow.row}s × {widest} registers"))
    facts.append(Fact(f"moves between {made.flow.row}s", str(moved)))
    facts += [Fact(stream.title, stream_fact(stream)) for stream in streams[:3]]
    return tuple(facts)


def _fills(result: Result) -> str:
    count = str(result.fills.count)
    return f"{count}, all there are" if result.complete else count


def _text(name: str, made: Shown, grids: Sequence[Grid], streams: Sequence[Stream]) -> list[str]:
    """A few rows of every panel, and the counts."""
    head = f"{name}: {made.verification}"
    inner = [
        grid
        for grid, panel in zip(grids, made.flow.panels, strict=True)
        if panel.kind == "registers"
    ]
    lines = [head]
    if inner:
        rows = [row for row in _ROWS if row < len(inner[0].rows)]
        body = columns_of_text(inner, rows, WIDTH - 12)
        names = ["", *(f"{made.flow.row} {inner[0].rows[row]}" for row in rows)]
        lines += [f"  {name:<10} {line}".rstrip() for name, line in zip(names, body, strict=True)]
        left = len(inner[0].rows) - len(rows)
        lines += [f"  … {left} more {made.flow.row}s"] if left > 0 else []
    for panel in made.flow.panels:
        if panel.step is not None and panel.step in made.fill:
            moves = [made.flow.movement(panel, cell) for cell in range(panel.cells)]
            lines.append(f"  {_about(made, panel, moves)[2]}")
    lines += [f"  {stream.title}: {stream_words(stream)}" for stream in streams]
    if made.tiled is None:
        lines.append(f"  no code: {made.without}")
    return lines
