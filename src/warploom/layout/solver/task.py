"""A question to the solver, with what every way to answer it needs; and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby, islice
from typing import Any

import numpy as np

from warploom.errors import InternalError
from warploom.layout.language.build import row_major
from warploom.layout.language.evaluate import Numbers, distinct, extended
from warploom.layout.language.ir import Compose, Layout, Matrix, Shift, Swizzle
from warploom.layout.language.laws import simplify
from warploom.layout.patterns.access import Problem, check_problem
from warploom.layout.solver.demand import Demands, demands_of, translated
from warploom.layout.solver.frame import Frame, NoFrame, frame_of
from warploom.layout.wavefronts.cost import Groups, Mask, Meter, Score
from warploom.layout.wavefronts.lower_bound import Chunks, Torn, chunks_of

FEW = 24  # groups of an access that are counted before all are
NARROW = 1 << 16  # elements whose places fit in 32 bits in every family, which is faster
TOGETHER, MOST_TOGETHER = 32, 1 << 18  # layouts, and their elements, that one call counts


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


@dataclass(frozen=True, slots=True)
class Promise:
    """What a layout costs at least, and about."""

    least: Fraction
    about: Fraction

    def may_beat(self, known: Answer | None) -> bool:
        return known is None or (self.least, 0) < known.rank


@dataclass(frozen=True, slots=True, eq=False)
class _Few:
    """Some groups of an access, how often each is there, and what they take in every layout."""

    elements: Numbers
    wanted: Mask
    times: Numbers
    least: int


def _few(rows: int, groups: Groups, floors: Numbers) -> _Few:
    chosen = distinct(np.linspace(0, max(0, len(floors) - 1), rows).astype(np.int64))
    chosen = chosen[: len(floors)]
    wanted = groups.wanted[chosen]
    elements = np.where(wanted, groups.elements[chosen], 0)
    return _Few(elements, wanted, np.ones_like(chosen), int(floors[chosen].sum()))


def _but_for_translations(groups: Groups, floors: Numbers) -> _Few:
    counted = translated(groups.elements, floors)
    width = groups.elements.shape[1] + 1  # the last is what a group takes at least
    rows = np.frombuffer(b"".join(counted), dtype=np.int64).reshape(-1, width)
    elements, times = rows[:, :-1], np.array([*counted.values()], dtype=np.int64)
    return _Few(elements, np.ones(elements.shape, bool), times, int(floors.sum()))


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some groups of every access as one array, which one call counts: `access` says of each row
    whose it is. `shares`: of each access what they take at least, what all of its groups take at
    least, how many groups there are, and how many these stand for."""

    elements: Numbers
    wanted: Mask
    times: Numbers
    access: Numbers
    shares: tuple[tuple[int, int, int, int], ...]


def _sample(some: Sequence[_Few], floors: Sequence[Numbers], size: int) -> _Sample:
    number = np.int32 if size <= NARROW else np.int64
    wide = max(few.elements.shape[1] for few in some)
    shares = [
        (few.least, int(each.sum()), len(each), max(1, int(few.times.sum())))
        for few, each in zip(some, floors, strict=True)
    ]
    return _Sample(
        np.concatenate([_widened(few.elements, wide) for few in some]).astype(number),
        np.concatenate([_widened(few.wanted, wide) for few in some]),
        np.concatenate([few.times for few in some]),
        np.repeat(np.arange(len(some)), [len(few.times) for few in some]),
        tuple(shares),
    )


def _widened(rows: Any, wide: int) -> Any:
    """Rows of so many columns; those that are added are zero, so that nobody wants them."""
    return np.pad(rows, ((0, 0), (0, wide - rows.shape[1])))


def is_linear(layout: Layout) -> bool:
    """Whether it is one over F2, as it stands."""
    return isinstance(layout, Swizzle | Matrix) or layout == Shift(0)


class Task:
    """A problem and what is asked of it: the fewest wavefronts of the tile, each access by its
    weight. `worst`: the largest access counts, not the sum. `waste`: places may stay unused, at
    most `room` of them where that is said."""

    def __init__(
        self, problem: Problem, worst: bool = False, waste: bool = True, room: int | None = None
    ) -> None:
        self.problem = check_problem(problem)
        self.worst, self.waste = worst, waste and room != 0
        self.room = room if self.waste else 0
        self.meter = Meter(problem)
        self._chunks = chunks_of(problem)
        self._answers: dict[Layout, Answer | None] = {}
        self._samples: dict[int, _Sample] = {}
        self._promised: dict[tuple[Layout, int], Promise] = {}

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
        """What a map of row-major numbers costs; None if it does not do, or if a part of all groups
        shows that it is not better than what is `known`."""
        if layout not in self._answers:
            rows = 8 * FEW
            while known is not None and 2 * rows < max(map(len, self.floors)):
                if not self.promise(layout, rows).may_beat(known):
                    return None
                rows *= 4
            self._answers[layout] = self._counted(layout)
        return self._answers[layout]

    def _counted(self, layout: Layout) -> Answer | None:
        addresses = self.addresses(layout)
        unused = int(addresses.max()) + 1 - self.problem.size
        if self.room is not None and unused > self.room:
            return None
        score = self.meter.score(addresses)
        return None if score is None else Answer(layout, score, self.weighted(score), unused)

    def promise(self, layout: Layout, rows: int = FEW) -> Promise:
        """Counts so many groups of each access; the others take at least what they take in every
        layout, and about as much more as these."""
        return next(self.promises([layout], rows))

    def promises(self, layouts: Iterable[Layout], rows: int = FEW) -> Iterator[Promise]:
        """What each of them promises; several are counted in one call, and each once."""
        for linear, some in groupby(layouts, is_linear):
            sample = self._translations if linear else self._some(rows)
            together = max(1, min(TOGETHER, MOST_TOGETHER // sample.elements.size))
            while several := [(layout, 0 if linear else rows) for layout in islice(some, together)]:
                new = [key for key in several if key not in self._promised]
                if new:
                    found = self._promises(sample, [layout for layout, _ in new])
                    self._promised.update(zip(new, found, strict=True))
                yield from (self._promised[key] for key in several)

    def _promises(self, some: _Sample, layouts: list[Layout]) -> Iterator[Promise]:
        places = np.concatenate([extended(layout, some.elements) for layout in layouts])
        found = self.meter.served(places, np.concatenate([some.wanted] * len(layouts)))
        weighed = found.reshape(len(layouts), -1) * some.times
        steps = self.bound.steps
        for row in weighed:
            taken = np.bincount(some.access, row, minlength=len(some.shares)).tolist()
            least, about = [], []
            for count, (few_least, whole, groups, times) in zip(taken, some.shares, strict=True):
                more = int(count) - few_least
                least.append(whole + more)
                about.append(whole + more * groups // times)
            yield Promise(*(self.weighted(Score(tuple(c), steps)) for c in (least, about)))

    @cached_property
    def _translations(self) -> _Sample:
        """The groups but for translations: those take as much in every linear layout, so that what
        these promise is what all cost."""
        some = [*map(_but_for_translations, self.meter.groups, self.floors)]
        return _sample(some, self.floors, self.problem.size)

    def _some(self, rows: int) -> _Sample:
        """So many groups of each access, from the first to the last."""
        if rows not in self._samples:
            some = [*map(partial(_few, rows), self.meter.groups, self.floors)]
            self._samples[rows] = _sample(some, self.floors, self.problem.size)
        return self._samples[rows]

    def layout(self, answer: Answer) -> Layout:
        """The answer as a layout of coordinates."""
        return simplify(Compose(answer.map, row_major(*self.problem.shape)))
