"""Traces with flags: strong accesses and fences in scopes; a plain detector that judges them.

The plain one writes the definitions down: what a read reads, chains of atomics, every release and
every acquire pattern, who is within whose scope. It shares nothing with `warploom.machine`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bench.common.machine.traces import closure

BLOCK, GRID = "cta", "gpu"
KINDS = ("read", "write", "strong read", "strong write", "atomic", "reduction", "fence", "barrier")
WEIGHTS = (3, 3, 4, 4, 2, 1, 4, 1)


@dataclass(frozen=True)
class Act:
    """What one thread does; at a barrier, its whole block."""

    kind: str
    thread: int
    word: int
    scope: str
    acquires: bool
    releases: bool

    @property
    def strong(self) -> bool:
        return self.kind in ("strong read", "strong write", "atomic", "reduction")

    @property
    def writes(self) -> bool:
        return self.kind in ("write", "strong write", "atomic", "reduction")

    @property
    def touches(self) -> bool:
        return self.kind not in ("fence", "barrier")

    @property
    def sequential(self) -> bool:
        """Whether a fence is `sc`: here all are that acquire and release."""
        return self.kind == "fence" and self.acquires and self.releases


@dataclass(frozen=True)
class FlagTrace:
    blocks: int
    size: int
    acts: tuple[Act, ...]

    def block(self, act: Act) -> int:
        return act.thread // self.size


def make_flags(seed: int) -> FlagTrace:
    """Messages from thread to thread, more or less right, among anything else."""
    rng = random.Random(seed)
    blocks, size = rng.choice(((1, 2), (1, 3), (2, 1), (2, 1), (2, 2)))
    threads = blocks * size
    acts = [_message(rng, threads, size) for _ in range(rng.randint(1, 2))]
    acts.append([_any(rng, rng.randrange(threads)) for _ in range(rng.randint(0, 4))])
    mixed: list[Act] = []
    while any(acts):
        mixed.append(rng.choice([each for each in acts if each]).pop(0))
    return FlagTrace(blocks, size, tuple(mixed))


def _message(rng: random.Random, threads: int, size: int) -> list[Act]:
    writer, reader = rng.sample(range(threads), 2)
    data, flag = rng.choice((2, 3)), rng.choice((0, 1))
    scopes = rng.choice(((GRID,), (GRID,), (BLOCK, GRID)))
    meets = (
        rng.random() < 0.3
    )  # the writer's fence is before a barrier, and so is the reader's look
    counts, waits = (writer, reader)
    if meets:
        block = writer // size * size, reader // size * size
        counts, waits = (first + rng.randrange(size) for first in block)
    steps = [
        (rng.choice(("write", "write", "read")), writer, data, False, False),
        ("fence", writer, 0, rng.random() < 0.5, True),
        *[("barrier", writer, 0, False, False)] * meets,
        (rng.choice(("strong write", "atomic", "reduction")), counts, flag, False, True),
        ("atomic", rng.randrange(threads), flag, False, False),
        (rng.choice(("strong read", "strong read", "atomic")), waits, flag, True, False),
        *[("barrier", reader, 0, False, False)] * meets,
        ("fence", reader, 0, True, rng.random() < 0.5),
        (rng.choice(("read", "write")), reader, data, False, False),
    ]
    out = []
    for kind, thread, word, acquires, releases in steps:
        other = thread not in (writer, reader, counts, waits)
        if (kind == "fence" or other) and rng.random() < (0.2 if meets else 0.5):
            continue
        orders = kind == "fence" or rng.random() < 0.5
        out.append(
            Act(kind, thread, word, rng.choice(scopes), acquires and orders, releases and orders)
        )
    return out


def _any(rng: random.Random, thread: int) -> Act:
    kind = rng.choices(KINDS, WEIGHTS)[0]
    sem = rng.choice(("", "acquire", "release", "both"))
    acquires = kind in ("strong read", "atomic", "fence") and sem in ("acquire", "both")
    releasing = ("strong write", "atomic", "reduction", "fence")
    releases = kind in releasing and sem in ("release", "both")
    if kind == "fence" and not (acquires or releases):
        acquires = releases = True
    weak = kind in ("read", "write")  # most often at data, and strong ones at flags
    word = rng.choice((0, 2, 2, 3, 3) if weak else (0, 0, 0, 1, 2))
    return Act(kind, thread, word, rng.choice((BLOCK, GRID, GRID)), acquires, releases)


@dataclass(frozen=True)
class _Definitions:
    trace: FlagTrace

    def included(self, a: Act, b: Act) -> bool:
        """Each within the other's scope."""
        return self.trace.block(a) == self.trace.block(b) or a.scope == b.scope == GRID

    def source(self, number: int) -> int | None:
        """The write that a strong read sees, if the two are morally strong."""
        acts = self.trace.acts
        for before in range(number - 1, -1, -1):
            if acts[before].writes and acts[before].word == acts[number].word:
                good = acts[before].strong and self.included(acts[before], acts[number])
                return before if good else None
        return None

    def observed(self, number: int) -> list[int]:
        """The writes that precede a read in observation order."""
        out = []
        found = self.source(number)
        while found is not None:
            out.append(found)
            atomic = self.trace.acts[found].kind in ("atomic", "reduction")
            found = self.source(found) if atomic else None
        return out

    def pattern(self, number: int, other: range, word: str) -> list[int]:
        """The fences, and the accesses of the same place, that make a pattern of an access."""
        acts = self.trace.acts
        mine = acts[number]
        return [
            i
            for i in (*other, number)
            if acts[i].thread == mine.thread and getattr(acts[i], word)
            if acts[i].kind == "fence" or acts[i].word == mine.word
        ]

    def synchronised(self, read: int) -> list[tuple[int, int]]:
        """First operations of release patterns, last ones of acquire patterns."""
        acts = self.trace.acts
        return [
            (x, y)
            for write in self.observed(read)
            for x in self.pattern(write, range(write), "releases")
            for y in self.pattern(read, range(read + 1, len(acts)), "acquires")
            if self.included(acts[x], acts[y]) and acts[x].thread != acts[y].thread
        ]

    def cumulative(self, before: list[int], *, strict: bool) -> list[tuple[int, int]]:
        """Fences of the GPU's scope of which one is before a strong write, and the other after a
        read that sees it; by the manual both are `sc`, by practice one may be of a pattern, whose
        acquire is of the GPU's scope, too."""
        acts = self.trace.acts
        fences = [i for i, act in enumerate(acts) if act.kind == "fence" and act.scope == GRID]
        fences = [i for i in fences if acts[i].sequential or not strict]
        found = []
        for read in (i for i, act in enumerate(acts) if act.kind in ("strong read", "atomic")):
            after = [y for y in fences if acts[y].acquires and before[2 * y] >> 2 * read + 1 & 1]
            if not strict:
                own = self.pattern(read, range(read + 1, len(acts)), "acquires")
                after += [y for y in own if acts[y].scope == GRID]
            for write in self.observed(read):
                first = [x for x in fences if acts[x].releases]
                first = [x for x in first if before[2 * write] >> 2 * x + 1 & 1]
                first += [] if strict else self.pattern(write, range(write), "releases")
                found += [(x, y) for x in first for y in after if self.included(acts[x], acts[y])]
        return found

    def conflict(self, a: Act, b: Act) -> bool:
        meet = a.touches and b.touches and a.word == b.word and a.thread != b.thread
        allowed = a.strong and b.strong and self.included(a, b)
        return meet and (a.writes or b.writes) and not allowed


def flag_races(trace: FlagTrace, *, strict: bool = False) -> set[frozenset[int]]:
    """Every two acts, by number, that race; `strict`: by the manual alone."""
    rules, acts = _Definitions(trace), trace.acts
    edges = _program_order(trace)
    for read, act in enumerate(acts):
        if act.kind in ("strong read", "atomic"):
            edges += [(2 * x + 1, 2 * y) for x, y in rules.synchronised(read)]
    before = closure(2 * len(acts), edges)
    while more := [
        (2 * x + 1, 2 * y) for x, y in rules.cumulative(before, strict=strict)
        if not before[2 * y] >> 2 * x + 1 & 1
    ]:  # fmt: skip
        edges += more
        before = closure(2 * len(acts), edges)
    seen_by: dict[int, list[int]] = {}  # of a write: the reads it precedes in observation order
    for read, act in enumerate(acts):
        if act.kind in ("strong read", "atomic", "reduction"):
            for write in rules.observed(read):
                seen_by.setdefault(write, []).append(read)
    return {
        frozenset({i, j})
        for j in range(len(acts))
        for i in range(j)
        if rules.conflict(acts[i], acts[j]) and not before[2 * j] >> 2 * i & 1
        if not any(before[2 * j] >> 2 * read & 1 for read in seen_by.get(i, ()))
    }


def _program_order(trace: FlagTrace) -> list[tuple[int, int]]:
    """Every act is two steps, before and after; a barrier is one of its whole block."""
    edges = [(2 * i, 2 * i + 1) for i in range(len(trace.acts))]
    last: dict[int, int] = {}
    for number, act in enumerate(trace.acts):
        block = trace.block(act)
        who = range(block * trace.size, (block + 1) * trace.size)
        for thread in who if act.kind == "barrier" else (act.thread,):
            if thread in last:
                edges.append((2 * last[thread] + 1, 2 * number))
            last[thread] = number
    return edges
