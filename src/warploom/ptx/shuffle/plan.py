"""Which loads become shuffles: finds what can, chooses what should, and says why.

Comes in: a `Reading`, a limit on the lane distance, and the machine whose times decide what pays.
Goes out: a `Plan`: the shuffles to write, and for every load that differs between lanes a
`Candidate` that says what was decided. No shuffle takes its value from a load that is itself
replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from warploom.machine.record import Machine
from warploom.ptx.shuffle.gain import gain_of
from warploom.ptx.symbolic.distance import Distance, Shape, decide, shape_of
from warploom.ptx.symbolic.memory import Access, accesses, survivors
from warploom.ptx.symbolic.operand import roots, width_of
from warploom.ptx.symbolic.walk import Reading
from warploom.search.outcome import Verdict

MOST_TRIES = 8  # proofs per load before the rest of its sources are left alone
MOST_LOADS = 20_000
MOST_TWISTED = 64  # loads of one outline whose addresses are written out for every lane


@dataclass(frozen=True, slots=True)
class Shuffle:
    """`target` takes its value from `source`, `distance.lanes` lanes away."""

    target: Access
    source: Access
    distance: Distance

    @property
    def lanes(self) -> int:
        return self.distance.lanes

    @property
    def proof(self) -> str:
        """The obligation in words; `symbolic.smt.judge` proves it again."""
        text = f"the source's address {self.lanes} lanes further is this address"
        for margin in self.distance.margins:
            text += f", where {margin.register.name} is {margin.room} or more from wrapping"
        if self.distance.compare is not None:
            text += f", where the own addresses lie {self.distance.compare} bytes apart"
        return text


@dataclass(frozen=True, slots=True)
class Candidate:
    """What became of one load. Lines count from 1; `gain` is in cycles of the machine asked."""

    line: int
    load: str
    taken: bool
    why: str
    lanes: int | None = None
    source_line: int | None = None
    gain: float | None = None
    proof: str = ""  # what was proved, and what is tested at run time


@dataclass(frozen=True, slots=True)
class Plan:
    reading: Reading
    loads: int
    shuffles: tuple[Shuffle, ...]
    candidates: tuple[Candidate, ...]


def plan(reading: Reading, machine: Machine, *, pays_only: bool, limit: int) -> Plan:
    loads = [load for load in accesses(reading) if load.space in ("global", "shared", "generic")]
    finder = _Finder(reading, loads[:MOST_LOADS], limit)
    chosen: list[Shuffle] = []
    candidates = []
    counted = 0
    for number, load in enumerate(finder.loads):
        if load.address is not None and reading.pool.uniform(load.address):
            continue
        counted += 1
        shuffle, why = finder.best(number)
        gain = None
        taken = shuffle is not None
        if shuffle is not None:
            in_loop = bool(reading.flow.around[load.block])
            gain = gain_of(machine, load, shuffle.distance, in_loop=in_loop)
            taken = gain > 0 or not pays_only
            why = _why(machine, gain, taken)
        if shuffle is not None and taken:
            chosen.append(shuffle)
            finder.shuffled |= 1 << number
        candidates.append(_candidate(reading, load, shuffle, taken, why, gain))
    return Plan(reading, counted, tuple(chosen), tuple(candidates))


def _why(machine: Machine, gain: float, taken: bool) -> str:
    if gain > 0:
        return f"pays: {gain:.1f} cycles won by the times of {machine.times.name}"
    if taken:
        return f"asked for, though {-gain:.1f} cycles are lost by the times of {machine.times.name}"
    return f"no gain, kept: {-gain:.1f} cycles would be lost by the times of {machine.times.name}"


def _candidate(
    reading: Reading, load: Access, shuffle: Shuffle | None, taken: bool, why: str,
    gain: float | None,
) -> Candidate:  # fmt: skip
    step = reading.flow.code[load.at]
    line = reading.module.span(step).line
    text = " ".join(reading.module.source_of(step).split())
    if shuffle is None:
        return Candidate(line, text, False, why)
    source = reading.module.span(reading.flow.code[shuffle.source.at]).line
    return Candidate(line, text, taken, why, shuffle.lanes, source, gain, shuffle.proof)


class _Finder:
    """Loads grouped by the shape of their address, so that no far pair is ever compared."""

    def __init__(self, reading: Reading, loads: list[Access], limit: int) -> None:
        self.reading = reading
        self.loads = loads
        self.limit = limit
        self.alive = survivors(reading, loads)
        self.shapes: list[Shape | None] = [shape_of(reading, load) for load in loads]
        self.shuffled = 0  # loads that are replaced, as bits
        self.groups: dict[object, int] = defaultdict(int)  # loads by kind, shape and place, as bits
        self.moved: dict[object, list[tuple[int, int]]] = defaultdict(list)
        twisted: dict[object, list[int]] = defaultdict(list)
        for number, load in enumerate(loads):
            shape = self.shapes[number]
            if load.refusal or shape is None:
                continue
            self.groups[self._kind(load), shape.key, shape.place] |= 1 << number
            if self._is_irregular(load, shape):
                twisted[self._kind(load), _outline(reading, load)].append(number)
        for numbers in twisted.values():
            if len(numbers) > 1:
                self._note_moved(numbers)

    def _kind(self, load: Access) -> tuple[object, ...]:
        return (load.kind, tuple(width_of(register.type) for register in load.into))

    def _is_irregular(self, load: Access, shape: Shape) -> bool:
        form, pool = load.address, self.reading.pool
        return not shape.stride and form is not None and pool.known(form) and pool.moves(form)

    def _note_moved(self, numbers: list[int]) -> None:
        """Addresses that are no plain sum are found by what they are in each other lane."""
        for number in numbers[:MOST_TWISTED]:
            load = self.loads[number]
            assert load.address is not None
            for lanes in range(-self.limit, self.limit + 1):
                if lanes:
                    form = self.reading.pool.moved(load.address, lanes)
                    self.moved[self._kind(load), form].append((number, lanes))

    def best(self, number: int) -> tuple[Shuffle | None, str]:
        """The proved source with the smallest distance, or why there is none."""
        load = self.loads[number]
        if load.refusal:
            return None, load.refusal
        if load.base is not None and any(r.key == load.base.key for r in load.into):
            return None, "the load overwrites its own address"
        near = self.near(number)
        if not near:
            return None, f"no other load lies a constant {self.limit} lanes away or less"
        held = [bits & self.alive[number] for bits in near]
        if not any(held):
            return None, "a source may be overwritten, or did not run on every path"
        free = [bits & ~self.shuffled for bits in held]
        if not any(free):
            return None, "its sources are shuffled themselves"
        reason = ""
        for other in islice(_each(free), MOST_TRIES):
            distance = self.decide(other, number)
            if distance.verdict is Verdict.PROVED:
                return Shuffle(load, self.loads[other], distance), ""
            reason = reason or distance.reason
        return None, reason

    def near(self, number: int) -> list[int]:
        """Other loads within the limit as bits, nearest first; not proved, nor known to hold."""
        load, shape = self.loads[number], self.shapes[number]
        assert shape is not None
        kind = self._kind(load)
        found: dict[int, int] = defaultdict(int)
        for lanes in range(-self.limit, self.limit + 1) if shape.stride else (0,):
            place = shape.place - lanes * shape.stride
            found[abs(lanes)] |= self.groups.get((kind, shape.key, place), 0)
        for other, lanes in self.moved.get((kind, load.address), ()):
            found[abs(lanes)] |= 1 << other
        own = ~(1 << number)
        return [found[distance] & own for distance in sorted(found) if found[distance] & own]

    def decide(self, source: int, target: int) -> Distance:
        distance = decide(self.reading, self.loads[source], self.loads[target], self.limit)
        if distance.verdict is not Verdict.PROVED or distance.lanes == 0:
            return distance
        if self.loads[source].space == "generic" and not self.is_common(self.loads[source]):
            return Distance(Verdict.UNKNOWN, reason="it may read memory of the lane's own")
        # Another lane's value is of use only if that lane is in the same iteration of every loop.
        around = self.reading.flow.around[self.loads[target].block]
        if any(header in self.reading.parted for header in around):
            return Distance(
                Verdict.UNKNOWN, reason="lanes may be in different iterations of the loop"
            )
        return distance

    def is_common(self, load: Access) -> bool:
        """A pointer that came with the kernel's parameters points to no lane's local memory."""
        pool = self.reading.pool
        assert load.address is not None
        found = roots(pool, load.address)
        return bool(found) and all(pool.atoms[index].op == "param.64" for index in found)


def _each(masks: Iterable[int]) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first, mask after mask."""
    for mask in masks:
        bits = mask
        while bits:
            yield (bits & -bits).bit_length() - 1
            bits &= bits - 1


def _outline(reading: Reading, load: Access) -> object:
    """What stays the same in an address when it moves to another lane."""
    assert load.address is not None
    pool = reading.pool
    terms = [
        (coefficient, tuple(sorted(pool.atoms[index].op for index in monomial)))
        for monomial, coefficient in load.address.without_constant.terms.items()
    ]
    return (load.address.width, tuple(sorted(terms)))
