"""Why a sketch is wrong: which lane leaves what in which cell of an output, if it has no holes; or
which functions compute other numbers than the goal's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.errors import InternalError
from warploom.sketch.code.tiling import Array, cell_name
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.lower import Lowered
from warploom.sketch.simt.order import Order, Writer, lane_name
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Term, Undefined, Zero, size
from warploom.sketch.term.read import place_text
from warploom.sketch.term.show import show_term
from warploom.sketch.term.verify import WRONG_ON_NUMBERS, Verification

_SHOWN = 200  # characters of a term


@dataclass(frozen=True, slots=True)
class Refutation:
    """`cell` of an output is wrong; `writer` is who wrote it, None if nobody did."""

    cell: str
    writer: Writer | None
    expected: str
    found: str
    wrong_cells: int

    def __str__(self) -> str:
        if self.writer is None:
            who = "no lane writes it"
        else:
            line = f" (line {self.writer.span.line})" if self.writer.span else ""
            lane = lane_name(self.writer.lane)
            who = f"lane {lane} writes register '{self.writer.register}' to it{line}"
        return (
            f"{self.cell} should hold {self.expected} but holds {self.found}: {who}; "
            f"{self.wrong_cells} cells are wrong"
        )


def refutation(lowered: Lowered, verdict: Verification, order: Order) -> Refutation:
    """The first wrong cell of a refuted sketch that has no holes."""
    traced = lowered.traced
    number, array, own = _output_cell(traced, verdict)
    term = evaluate(lowered.program)[-1][number]
    names = list(_symbols(lowered))
    expected, found = _shown(traced.goal.values[number], names), _shown(term, names)
    if verdict.on_numbers:  # equal on symbols
        expected, found = verdict.should_hold, verdict.holds
    return Refutation(
        cell_name(array.name, array.shape, own),
        order.writers[array.name][own],
        expected,
        found,
        verdict.wrong_cells,
    )


def why_on_numbers(traced: Traced, verdict: Verification) -> str:
    """Why no fill is right although some are on symbols: functions compute other numbers, whatever
    the fill."""
    _, array, own = _output_cell(traced, verdict)
    cell = cell_name(array.name, array.shape, own)
    named = [
        f"finish '{each.finalize}'{place_text(each.span)}"
        for each in traced.accumulators.values()
        if each.finish is not None
    ]
    said = f"the specification{place_text(traced.goal.span)}"
    who = f"{' and '.join(named)} and {said} differ" if named else f"{said} is another there"
    return (
        f"{WRONG_ON_NUMBERS}: {who}, {cell} should hold "
        f"{verdict.should_hold} but holds {verdict.holds}"
    )


def _output_cell(traced: Traced, verdict: Verification) -> tuple[int, Array, int]:
    """The wrong cell: its number in the goal, its output, its number there."""
    assert verdict.cell is not None
    number = int(np.ravel_multi_index(verdict.cell, traced.goal.shape))
    start = 0
    for array in traced.outputs:
        own = number - start
        if own < size(array.shape):
            return number, array, own
        start += size(array.shape)
    raise InternalError(f"cell {number} is in no output")


def _symbols(lowered: Lowered) -> Iterator[str]:
    for array in lowered.traced.inputs:
        for cell in range(size(array.shape)):
            yield cell_name(array.name, array.shape, cell)


def _shown(term: Term, names: list[str]) -> str:
    match term:
        case Undefined():
            return "nothing anyone may rely on"
        case Zero():
            return "0"
        case _:
            return show_term(term, _SHOWN, names)
