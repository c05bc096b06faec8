"""A loop nest explored by many: descents, walks and texts are done by whoever is free.

In come a nest and a crew (processes, a cluster), each of whom makes the nest once; out go the same
descents, walks and texts as from one process, whoever did which of them.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from warploom.pipeline.nest import Nest
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.timed_nest import Written, written_of
from warploom.search.branching.candidate import Bits, Candidates, joined
from warploom.search.branching.descent import Descents, descended
from warploom.search.branching.estimate import Walks
from warploom.search.branching.explore import below
from warploom.search.engine import Watch
from warploom.search.statistics import Tally, add_tallies
from warploom.search.workers.farm import shared
from warploom.search.workers.pieces import Crew, in_order

T = TypeVar("T")

FINER = 2  # parts for each worker, so that nobody waits long for the slowest


class HelpedNest:
    """The crew of a nest; what it takes part in is asked of it in parts."""

    def __init__(self, nest: Nest, crew: Crew, look: Callable[[], object] = lambda: None) -> None:
        packed = pickle.dumps(nest.recipe)
        self._crew, self._look = crew, look
        self._digest = hashlib.sha256(packed).hexdigest()
        self._recipe = crew.share(nest.recipe)

    def descend(self, here: Candidates, seed: Bits, cost: float, watch: Watch) -> Descents:
        parts = self._parts(len(here))
        done = self._asked(_descended, [(here.take(rows), seed[rows], cost) for rows in parts],
                           lambda: watch.pause("descend"))  # fmt: skip
        for each in done:
            add_tallies(watch.tallies, each.tallies)
            watch.found += int(np.count_nonzero(each.found.arrived))
        return _together([each.found for each in done])

    def walks(self, asked: Sequence[tuple[Any, ...]]) -> list[Walks]:
        return self._asked(_walked, asked, self._look)

    def written(self, candidates: Candidates) -> list[Written | None]:
        parts = self._parts(len(candidates))
        done = self._asked(_written, [(candidates.take(rows),) for rows in parts], self._look)
        return [each for part in done for each in part]

    def _parts(self, count: int) -> list[Any]:
        most = max(1, min(count, FINER * self._crew.workers))
        return np.array_split(np.arange(count), most)

    def _asked(
        self,
        function: Callable[..., T],
        asked: Sequence[tuple[Any, ...]],
        look: Callable[[], object],
    ) -> list[T]:
        sent = [self._crew.submit(function, self._recipe, self._digest, *each) for each in asked]
        return in_order(sent, look)


@dataclass(frozen=True, slots=True)
class _Done:
    found: Descents
    tallies: dict[str, Tally]


def _together(parts: Sequence[Descents]) -> Descents:
    return Descents(
        joined([each.leaves for each in parts]),
        np.concatenate([each.arrived for each in parts]),
        np.concatenate([each.decisions for each in parts]),
    )


# -- over there ------------------------------------------------------------------------------------

_ready = threading.local()  # the nest of this worker


def _nest(recipe: Any, digest: str) -> Nest:
    if getattr(_ready, "digest", None) != digest:
        _ready.nest, _ready.digest = nest_by(shared(recipe)), digest
    found: Nest = _ready.nest
    return found


def _descended(recipe: Any, digest: str, here: Candidates, seed: Bits, cost: float) -> _Done:
    nest, watch = _nest(recipe, digest), Watch()
    weigh = below(nest.problem, cost, watch)
    return _Done(descended(nest.problem, here, seed, weigh, watch), watch.tallies)


def _walked(recipe: Any, digest: str, *asked: Any) -> Walks:
    return _nest(recipe, digest).walks(*asked)


def _written(recipe: Any, digest: str, candidates: Candidates) -> list[Written | None]:
    nest = _nest(recipe, digest)
    return [written_of(nest, candidates, row) for row in range(len(candidates))]
