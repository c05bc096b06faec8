"""`Propagator`: a space ready to be searched.

Comes in: a space, and decisions on its choices. Goes out: candidates whose domains hold nothing
that the constraints, looked at one after another, rule out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from warploom.errors import CheckError
from warploom.search.branching.candidate import (
    Bits,
    Candidates,
    Decision,
    Domain,
    Flags,
    Index,
    domain_of,
)
from warploom.search.propagate.compile import Compiler
from warploom.search.propagate.fixpoint import Fixpoint
from warploom.search.propagate.merge import PACKED_BITS
from warploom.search.propagate.state import State
from warploom.search.space.build import Space
from warploom.search.space.evaluate import Assignment
from warploom.search.space.ground import HUGE, inverted
from warploom.search.space.ir import Choice, Counter, Objects, Value


class Propagator:
    """`choices` is the number of instances of choices; candidates have a column more."""

    def __init__(self, space: Space, packed_bits: int = PACKED_BITS) -> None:
        compiler = Compiler(space, packed_bits)
        self.space = space
        self.layout = compiler.layout
        self.choices = self.layout.choices.count
        self.counters = self.layout.counters.count
        groups = compiler.groups()
        self.fixpoint = Fixpoint(groups, self.choices + self.counters + 2)
        self._root = self._start(compiler.sorter.start)
        state = State(self._root)
        empty = bool((self._root.domains == 0).any()) or not compiler.sorter.feasible
        self._feasible = not empty and bool(self.fixpoint.run_all(state)[0])
        if self._feasible:
            _check_comparable(space, self._root, compiler.compared)
        self._by_name = {choice.name: choice for choice in space.choices}
        self._labels = {str(item): item for item in space.numbering}

    def _start(self, start: Bits) -> Candidates:
        low = np.zeros((1, self.counters + 1))
        high = np.full((1, self.counters + 1), HUGE)
        low[0, -1] = high[0, -1] = 1
        return Candidates(start[None].copy(), low, high)

    # -- candidates --------------------------------------------------------------------------------

    def root(self, decisions: Iterable[Decision] = ()) -> Candidates:
        """The whole space, as one candidate, after some decisions; none if it is impossible."""
        if not self._feasible:
            return self._root.take(np.zeros(0, np.int64))
        root = self._root.take(np.zeros(1, np.int64))
        placed = [self.place(decision) for decision in decisions]
        if not placed:
            return root
        position = np.array([p for p, _ in placed], np.int64)
        allowed = np.array([bits for _, bits in placed], np.uint64)
        return root.take(self.restrict(root, np.zeros(len(placed), np.int64), position, allowed))

    def restrict(self, candidates: Candidates, row: Index, position: Index, allowed: Bits) -> Flags:
        """Keeps, in place, the allowed values of some instances, and removes everywhere what that
        rules out. Says which candidates are still alive; the domains of the others mean nothing."""
        state = State(candidates)
        if len(row):
            state.restrict(row, position, allowed)
            self.fixpoint.run(state)
        return state.alive

    def conflict(self, decisions: Sequence[Decision]) -> tuple[Decision, ...]:
        """Decisions that cannot be taken together although any fewer of them could be, as far as
        propagation sees; none if all can be taken."""
        needed = list(decisions)
        if len(self.root(needed)):
            return ()
        for decision in decisions:
            fewer = [other for other in needed if other is not decision]
            if not len(self.root(fewer)):
                needed = fewer
        return tuple(needed)

    def columns(self, declared: Choice | Counter) -> slice:
        """Where the instances of a choice lie in `Candidates.domains`, in the order of its
        `instances`; those of a counter in `low` and `high`."""
        places = self.layout.choices if isinstance(declared, Choice) else self.layout.counters
        start = places.offset[declared]
        return slice(start, start + len(places.objects[declared]))

    # -- by name -----------------------------------------------------------------------------------

    def position(self, choice: Choice, objects: Objects) -> tuple[int, bool]:
        """Where an instance lies, and whether its objects are exchanged there."""
        numbers = self._numbers(choice.name, objects, choice.arity)
        place, exchanged = self.layout.choices.find(choice, numbers)
        return int(place[0]), bool(exchanged[0])

    def _numbers(self, name: str, objects: Objects, arity: int) -> Index:
        if len(objects) != arity or any(item not in self.space.numbering for item in objects):
            raise CheckError(f"'{name}' is not made for ({', '.join(map(str, objects))})")
        return self.layout.numbers([objects], arity)

    def place(self, decision: Decision) -> tuple[int, int]:
        """A decision as a position and a set of values."""
        choice = self._by_name.get(decision.choice)
        if choice is None:
            raise CheckError(
                f"there is no choice '{decision.choice}'",
                advice=f"the choices are {', '.join(self._by_name)}",
            )
        unknown = [label for label in decision.objects if label not in self._labels]
        if unknown:
            raise CheckError(f"there is no object '{unknown[0]}'")
        objects = tuple(self._labels[label] for label in decision.objects)
        position, exchanged = self.position(choice, objects)
        return position, _directed(choice, choice.bits(decision.values), exchanged)

    def domain(
        self, candidates: Candidates, row: int, choice: Choice, *objects: Hashable
    ) -> Domain:
        """What an instance may still be in one of the candidates."""
        position, exchanged = self.position(choice, objects)
        bits = int(candidates.domains[row, position])
        return domain_of(choice, _directed(choice, bits, exchanged))

    def range(
        self, candidates: Candidates, row: int, counter: Counter, *objects: Hashable
    ) -> tuple[int, int | None]:
        """What a counter may still be; None is no limit."""
        numbers = self._numbers(counter.name, objects, len(counter.per))
        place = int(self.layout.counters.find(counter, numbers)[0][0])
        low, high = candidates.low[row, place], candidates.high[row, place]
        return int(low), None if high >= HUGE else int(high)

    def is_decided(self, candidates: Candidates) -> Flags:
        """Candidates with one value for every choice: such a candidate is a solution."""
        domains = candidates.domains
        found: Flags = ((domains & (domains - np.uint64(1))) == 0).all(axis=1)
        return found

    def assignment(self, candidates: Candidates, row: int) -> Assignment:
        """The values of a decided candidate, by choice and objects."""
        found: dict[tuple[str, Objects], Value | None] = {}
        for choice in self.space.choices:
            start = self.layout.choices.offset[choice]
            for at, instance in enumerate(choice.instances):
                domain = domain_of(choice, int(candidates.domains[row, start + at]))
                if not domain.is_decided:
                    raise CheckError(f"{choice.name}{instance} is not decided")
                found[choice.name, instance] = domain.values[0] if domain.values else None
        return found


def _check_comparable(
    space: Space, root: Candidates, compared: list[tuple[Index, Index]]
) -> None:  # fmt: skip
    """Beyond HUGE all numbers look equal."""
    high = root.high[0]
    if any(((high[left] >= HUGE) & (high[right] >= HUGE)).any() for left, right in compared):
        raise CheckError(
            f"counters of '{space.name}' are compared that may both exceed 2**52",
            advice="require a limit on one of them",
        )


def _directed(choice: Choice, bits: int, exchanged: bool) -> int:
    if not exchanged:
        return bits
    return int(inverted(choice, np.array([bits], np.uint64))[0])
