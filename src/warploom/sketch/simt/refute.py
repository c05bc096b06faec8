"""Why a sketch without holes is wrong: which lane leaves what in which cell of an output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.sketch.code.tiling import cell_name
from warploom.sketch.simt.lower import Lowered
from warploom.sketch.simt.order import Order, Writer, lane_name
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Term, Undefined, size
from warploom.sketch.term.show import show_term
from warploom.sketch.term.verify import Verification

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
    assert verdict.cell is not None
    number = int(np.ravel_multi_index(verdict.cell, traced.goal.shape))
    term, start = evaluate(lowered.program)[-1][number], 0
    names = list(_symbols(lowered))
    for array in traced.outputs:
        own = number - start
        if own < size(array.shape):
            break
        start += size(array.shape)
    expected, found = _shown(traced.goal.values[number], names), _shown(term, names)
    if verdict.holds.endswith("on numbers"):  # equal on symbols
        expected, found = verdict.should_hold, verdict.holds
    return Refutation(
        cell_name(array.name, array.shape, own),
        order.writers[array.name][own],
        expected,
        found,
        verdict.wrong_cells,
    )


def _symbols(lowered: Lowered) -> Iterator[str]:
    for array in lowered.traced.inputs:
        for cell in range(size(array.shape)):
            yield cell_name(array.name, array.shape, cell)


def _shown(term: Term, names: list[str]) -> str:
    undefined = isinstance(term, Undefined)
    return "nothing anyone may rely on" if undefined else show_term(term, _SHOWN, names)
