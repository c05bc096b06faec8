"""What spaces of tilings share: choices of one object, and a bound by tables of times.

Products of matrices and attention are cut up by a few numbers each. Which go together is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from warploom.loopnest.bound import Reason
from warploom.search.branching.candidate import Candidates, Flags, Numbers
from warploom.search.branching.problem import Branch, in_order
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space


class TiledSpace:
    """All choices are `of` one object. `values` are those of each, `rows` those of `listed` choices
    that go together.
    `branch` says what is decided next: choices in their order."""

    def __init__(
        self,
        name: str,
        of: str,
        values: Mapping[str, Iterable[int]],
        listed: Sequence[str],
        rows: Iterable[Sequence[int]],
    ) -> None:
        self.space, self.of = Space(name), of
        own = self.space.objects("tilings", [of])
        self.choices = {
            each: self.space.integer(each, own, values=sorted(set(some)) or [0])
            for each, some in values.items()
        }
        (one,) = own.each("t")
        self.space.table([self.choices[each](one) for each in listed], rows, "what has room")
        self.propagator = Propagator(self.space)
        self.branch: Branch = in_order(self.propagator)

    def decided(self, candidates: Candidates, row: int) -> dict[str, int]:
        """The values of a candidate of which all is decided."""
        return {
            name: int(choice.values[int(np.argmax(self.values(candidates, name)[row]))])
            for name, choice in self.choices.items()
        }

    def values(self, candidates: Candidates, name: str) -> Flags:
        """[candidates, values]: which values a choice may still have."""
        choice = self.choices[name]
        domains = candidates.domains[:, self.propagator.columns(choice).start]
        bits = np.uint64(1) << np.arange(len(choice.values), dtype=np.uint64)
        found: Flags = (domains[:, None] & bits) != 0
        return found


class TiledBound:
    """Called with candidates it gives nanoseconds: the greatest of some terms, each a table of
    times by the values of a few choices, with a resource and a reason."""

    def __init__(
        self, space: TiledSpace, sides: Sequence[str], terms: Sequence[tuple[Numbers, str, str]]
    ) -> None:
        self.tilings, self.sides, self.terms = space, tuple(sides), tuple(terms)
        self.least = np.maximum.reduce([times for times, _, _ in self.terms])

    def __call__(self, candidates: Candidates) -> Numbers:
        return self._least_of(self.least, candidates)

    def explain(self, candidates: Candidates) -> list[Reason]:
        found = [Reason(float(self._least_of(times, candidates)[0]), resource, why)
                 for times, resource, why in self.terms]  # fmt: skip
        return sorted(found, key=lambda each: -each.nanoseconds)

    def _least_of(self, times: Numbers, candidates: Candidates) -> Numbers:
        """The least of all values that are left."""
        left = np.ones((len(candidates), *([1] * len(self.sides))), np.bool_)
        for at, name in enumerate(self.sides):
            values = self.tilings.values(candidates, name)
            shape = [values.shape[1] if each == at else 1 for each in range(len(self.sides))]
            left = left & values.reshape(len(candidates), *shape)
        axes = tuple(range(1, 1 + len(self.sides)))
        found: Numbers = np.where(left, times[None], np.inf).min(axis=axes, initial=np.inf)
        return found
