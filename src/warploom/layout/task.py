"""A question to the solver, with what every way to answer it needs; and answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from warploom.layout.access import Problem, check_problem
from warploom.layout.build import row_major
from warploom.layout.cost import Meter, Score
from warploom.layout.demand import Demands, demands_of
from warploom.layout.evaluate import Numbers, extended
from warploom.layout.frame import Frame, NoFrame, frame_of
from warploom.layout.ir import Compose, Layout
from warploom.layout.laws import simplify
from warploom.layout.whole import Chunks, Torn, chunks_of


@dataclass(frozen=True, slots=True)
class Answer:
    """A layout as a map of row-major numbers, with what it costs."""

    map: Layout
    score: Score
    cost: Fraction


@dataclass(frozen=True, slots=True)
class Least:
    """No layout of the class costs less than this; `how` that is known."""

    cost: Fraction
    how: str


class Task:
    """A problem and what is asked of it. `worst`: the largest weighted access counts, not the sum.
    `waste`: places may stay unused."""

    def __init__(self, problem: Problem, worst: bool = False, waste: bool = True) -> None:
        self.problem = check_problem(problem)
        self.worst, self.waste = worst, waste
        self.meter = Meter(problem)
        self._chunks = chunks_of(problem)

    @property
    def torn(self) -> str | None:
        """Why no layout keeps the vectors whole, if none does."""
        return self._chunks.why if isinstance(self._chunks, Torn) else None

    @property
    def chunks(self) -> Chunks:
        assert isinstance(self._chunks, Chunks), "asked of vectors that cannot stay whole"
        return self._chunks

    @cached_property
    def bound(self) -> Score:
        """What every layout costs at least."""
        return self.meter.bound(self.chunks)

    @cached_property
    def least(self) -> Fraction:
        return self.weighted(self.bound)

    @cached_property
    def frame(self) -> Frame | NoFrame:
        return frame_of(self.problem)

    @cached_property
    def demands(self) -> Demands:
        assert isinstance(self.frame, Frame)
        return demands_of(self.meter, self.chunks, self.frame)

    def weighted(self, score: Score) -> Fraction:
        return score.weighted(self.meter.weights, self.worst)

    def addresses(self, layout: Layout) -> Numbers:
        """Where each element lies, by its row-major number."""
        return extended(layout, np.arange(self.problem.size, dtype=np.int64))

    def answer(self, layout: Layout) -> Answer | None:
        """What a map of row-major numbers costs; None if it does not do."""
        addresses = self.addresses(layout)
        if not self.waste and int(addresses.max()) >= self.problem.size:
            return None
        score = self.meter.score(addresses)
        return None if score is None else Answer(layout, score, self.weighted(score))

    def layout(self, answer: Answer) -> Layout:
        """The answer as a layout of coordinates."""
        return simplify(Compose(answer.map, row_major(*self.problem.shape)))
