"""Traces of a few threads on a few words, and a plain detector that judges them.

The plain one shares nothing with `warploom.machine`: it writes down which event comes before which,
closes that relation, and looks at every pair of accesses.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

READ, WRITE, ATOMIC = "read", "write", "atomic"


@dataclass(frozen=True)
class Touch:
    """Threads that access memory with one instruction, each `width` bytes at its own place."""

    kind: str
    threads: tuple[int, ...]
    places: tuple[int, ...]  # bytes
    width: int
    label: int


@dataclass(frozen=True)
class Meet:
    """A barrier: what `arrive` did before it is ordered before what `wait` does after it."""

    kind: str  # block, warp, lanes, some
    arrive: tuple[int, ...]
    wait: tuple[int, ...]


Event = Touch | Meet


@dataclass(frozen=True)
class Trace:
    """Threads are numbered through the launch: `size` a block, `lanes` a warp."""

    blocks: int
    size: int
    lanes: int
    words: int
    events: tuple[Event, ...]


@dataclass(frozen=True)
class One:
    """What one thread did at one step; `step` numbers the steps of all threads."""

    step: int
    thread: int
    touch: Touch
    place: int


def ordered(trace: Trace) -> tuple[list[One], list[int]]:
    """All accesses, and for each step the steps that barriers and threads order before it."""
    edges: list[tuple[int, int]] = []
    last: dict[int, int] = {}  # the latest step of each thread
    accesses: list[One] = []
    steps = 0

    def step(thread: int) -> int:
        nonlocal steps
        if thread in last:
            edges.append((last[thread], steps))
        last[thread] = steps
        steps += 1
        return steps - 1

    for event in trace.events:
        if isinstance(event, Touch):
            for thread, place in zip(event.threads, event.places, strict=True):
                accesses.append(One(step(thread), thread, event, place))
        else:
            arrivals = [step(thread) for thread in event.arrive]
            passes = [step(thread) for thread in event.wait]
            edges += [(before, after) for before in arrivals for after in passes]
    return accesses, closure(steps, edges)


def racing(trace: Trace) -> list[tuple[One, One]]:
    """Every two accesses that race."""
    accesses, before = ordered(trace)
    return [
        (a, b)
        for i, b in enumerate(accesses)
        for a in accesses[:i]
        if conflict(a, b) and not before[b.step] >> a.step & 1 and not before[a.step] >> b.step & 1
    ]


def surely_racing(trace: Trace) -> set[frozenset[int]]:
    """The labels of those that race however the atomics come.

    What an atomic wrote is ordered before an access if another atomic that may have seen it is
    (PTX: observation order): which of them came first is not a matter of the trace.
    """
    accesses, before = ordered(trace)
    atomics = [one for one in accesses if one.touch.kind == ATOMIC]

    def may_be_seen(wrote: One, other: One) -> bool:
        return wrote.touch.kind == ATOMIC and any(
            sees is not wrote
            and (sees.place, sees.touch.width) == (wrote.place, wrote.touch.width)
            and before[other.step] >> sees.step & 1
            and not before[wrote.step] >> sees.step & 1
            for sees in atomics
        )

    return {
        frozenset({a.touch.label, b.touch.label})
        for a, b in racing(trace)
        if not may_be_seen(a, b) and not may_be_seen(b, a)
    }


def closure(steps: int, edges: list[tuple[int, int]]) -> list[int]:
    """For each step the set of all steps that lead to it, as bits; edges go to later steps."""
    before = [0] * steps
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        before[target] |= before[source] | 1 << source
    return before


def conflict(a: One, b: One) -> bool:
    """Different threads, a common byte, one writes, not both atomic (and of one size)."""
    overlap = a.place < b.place + b.touch.width and b.place < a.place + a.touch.width
    kinds = {a.touch.kind, b.touch.kind}
    strong = kinds == {ATOMIC} and a.touch.width == b.touch.width
    return a.thread != b.thread and overlap and kinds != {READ} and not strong


def racing_pairs(trace: Trace) -> set[frozenset[int]]:
    """The labels of every two accesses that race."""
    return {frozenset({a.touch.label, b.touch.label}) for a, b in racing(trace)}


# -- making them up ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    """What a way to feed the detector can say."""

    meets: tuple[str, ...] = ("block", "warp", "lanes", "some")
    kinds: tuple[str, ...] = (READ, WRITE, ATOMIC)
    lanes: tuple[int, ...] = (1, 2, 2, 3)
    widths: tuple[int, ...] = (1, 2, 8)  # beside 4
    whole_warps: bool = False  # "some" threads are some warps
    loops: bool = True  # an instruction may come again


ANY = Dialect()
NESTED = Dialect(meets=("block", "warp"))
PTX = Dialect(whole_warps=True, loops=False)
KERNEL = Dialect(("block", "warp"), (READ, WRITE), (1, 2, 2, 4), (8,), loops=False)


def make(seed: int, dialect: Dialect = ANY, most_threads: int = 5, most_events: int = 9) -> Trace:
    """A trace of 2 to 5 threads on 1 to 3 words."""
    rng = random.Random(seed)
    lanes = rng.choice(dialect.lanes)
    count = rng.randint(2, most_threads)
    blocks = rng.choice((1, 1, 2)) if count >= 4 else 1
    maker = _Maker(rng, dialect, blocks, count // blocks, lanes, rng.randint(1, 3))
    events = tuple(maker.event(number) for number in range(rng.randint(2, most_events)))
    return Trace(blocks, count // blocks, lanes, maker.words, events)


@dataclass
class _Maker:
    rng: random.Random
    dialect: Dialect
    blocks: int
    size: int
    lanes: int
    words: int
    kinds: dict[int, str] = field(default_factory=dict)  # of each label

    def event(self, number: int) -> Event:
        return self.meet() if self.rng.random() < 0.35 else self.touch(number)

    def touch(self, number: int) -> Touch:
        rng = self.rng
        # A label may stand at two places of the trace: an instruction in a loop.
        again = self.dialect.loops and rng.random() < 0.2
        label = rng.randrange(number + 1) if again else number
        kind = self.kinds.setdefault(label, rng.choice(self.dialect.kinds))
        total = self.blocks * self.size
        several = rng.randint(1, total) if rng.random() < 0.3 else 1
        threads = tuple(sorted(rng.sample(range(total), several)))
        width = rng.choice(self.dialect.widths) if rng.random() < 0.2 else 4
        if (width == 8 and self.words == 1) or (width < 4 and kind == ATOMIC):
            width = 4
        places = tuple(width * rng.randrange(4 * self.words // width) for _ in threads)
        return Touch(kind, threads, places, width, label)

    def meet(self) -> Meet:
        rng = self.rng
        kind = rng.choice(self.dialect.meets)
        first = rng.randrange(self.blocks) * self.size
        inside = tuple(range(first, first + self.size))
        if kind == "block":
            return Meet(kind, inside, inside)
        warps = [
            tuple(t for t in inside if (t - first) // self.lanes == warp)
            for warp in range(-(-self.size // self.lanes))
        ]
        row = rng.choice(warps)
        if kind == "warp":
            return Meet(kind, row, row)
        if kind == "lanes":
            some = tuple(sorted(rng.sample(row, rng.randint(1, len(row)))))
            return Meet(kind, some, some)
        groups = warps if self.dialect.whole_warps else [(thread,) for thread in inside]
        come = rng.sample(groups, rng.randint(1, len(groups)))
        wait = come if rng.random() < 0.5 else [group for group in come if rng.random() < 0.6]
        return Meet(kind, _flat(come), _flat(wait))


def _flat(groups: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted(thread for group in groups for thread in group))
