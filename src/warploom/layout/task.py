"""A question to the solver, with what every way to answer it needs; and answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from warploom.errors import InternalError
from warploom.layout.access import Problem, check_problem
from warploom.layout.build import row_major
from warploom.layout.cost import Mask, Meter, Score
from warploom.layout.demand import Demands, demands_of
from warploom.layout.evaluate import Numbers, extended
from warploom.layout.frame import Frame, NoFrame, frame_of
from warploom.layout.ir import Compose, Layout
from warploom.layout.laws import simplify
from warploom.layout.whole import Chunks, Torn, chunks_of

FEW = 24  # groups of an access that are counted before all are


@dataclass(frozen=True, slots=True)
class Answer:
    """A layout as a map of row-major numbers, what it costs, and the places it leaves unused."""

    map: Layout
    score: Score
    cost: Fraction
    unused: int

    @property
    def rank(self) -> tuple[Fraction, int]:
        """Less is better."""
        return self.cost, self.unused


@dataclass(frozen=True, slots=True)
class Least:
    """No layout of the class costs less than this; `how` that is known."""

    cost: Fraction
    how: str


@dataclass(frozen=True, slots=True, eq=False)
class _Few:
    """Some groups of an access, and what they take in every layout."""

    elements: Numbers
    wanted: Mask
    least: int


class Task:
    """A problem and what is asked of it: the fewest wavefronts of the tile, each access by its
    weight. `worst`: the largest access counts, not the sum. `waste`: places may stay unused."""

    def __init__(self, problem: Problem, worst: bool = False, waste: bool = True) -> None:
        self.problem = check_problem(problem)
        self.worst, self.waste = worst, waste
        self.meter = Meter(problem)
        self._chunks = chunks_of(problem)
        self._answers: dict[Layout, Answer | None] = {}

    @property
    def torn(self) -> str | None:
        """Why no layout keeps the vectors whole, if none does."""
        return self._chunks.why if isinstance(self._chunks, Torn) else None

    @property
    def chunks(self) -> Chunks:
        if isinstance(self._chunks, Torn):
            raise InternalError("asked of vectors that cannot stay whole")
        return self._chunks

    @cached_property
    def floors(self) -> tuple[Numbers, ...]:
        """The wavefronts that each group of each access takes at least, in any layout."""
        return tuple(self.meter.least(n, self.chunks) for n in range(len(self.problem.accesses)))

    @cached_property
    def bound(self) -> Score:
        """What every layout that keeps the vectors whole costs at least."""
        counts = tuple(int(each.sum()) for each in self.floors)
        return Score(counts, tuple(access.steps for access in self.problem.accesses))

    @cached_property
    def least(self) -> Fraction:
        return self.weighted(self.bound)

    @cached_property
    def frame(self) -> Frame | NoFrame:
        return frame_of(self.problem)

    @cached_property
    def demands(self) -> Demands:
        if isinstance(self.frame, NoFrame):
            raise InternalError(f"linear layouts were asked for: {self.frame.why}")
        return demands_of(self.meter, self.floors, self.frame)

    def weighted(self, score: Score) -> Fraction:
        return score.weighted(self.meter.weights, self.worst)

    def addresses(self, layout: Layout) -> Numbers:
        """Where each element lies, by its row-major number."""
        return extended(layout, np.arange(self.problem.size, dtype=np.int64))

    def answer(self, layout: Layout, known: Answer | None = None) -> Answer | None:
        """What a map of row-major numbers costs; None if it does not do, or a few groups of lanes
        show that it is not better than what is `known`."""
        if layout not in self._answers:
            if known is not None and not self._may_be_better(layout, known):
                return None
            self._answers[layout] = self._counted(layout)
        return self._answers[layout]

    def _counted(self, layout: Layout) -> Answer | None:
        addresses = self.addresses(layout)
        unused = int(addresses.max()) + 1 - self.problem.size
        if unused and not self.waste:
            return None
        score = self.meter.score(addresses)
        return None if score is None else Answer(layout, score, self.weighted(score), unused)

    def _may_be_better(self, layout: Layout, known: Answer) -> bool:
        """Counts some groups in the layout, and of the others what they take in every layout."""
        counts = list(self.bound.wavefronts)
        for number, few in enumerate(self._some):
            found = self.meter.served(extended(layout, few.elements), few.wanted)
            counts[number] += int(found.sum()) - few.least
        least = self.weighted(replace(self.bound, wavefronts=tuple(counts)))
        return least < known.cost or (least == known.cost and known.unused > 0)

    @cached_property
    def _some(self) -> tuple[_Few, ...]:
        found = []
        for groups, floors in zip(self.meter.groups, self.floors, strict=True):
            rows = np.unique(np.linspace(0, len(floors) - 1, FEW).astype(np.int64))
            rows = rows if len(floors) else rows[:0]
            wanted = groups.wanted[rows]
            elements = np.where(wanted, groups.elements[rows], 0)
            found.append(_Few(elements, wanted, int(floors[rows].sum())))
        return tuple(found)

    def layout(self, answer: Answer) -> Layout:
        """The answer as a layout of coordinates."""
        return simplify(Compose(answer.map, row_major(*self.problem.shape)))
