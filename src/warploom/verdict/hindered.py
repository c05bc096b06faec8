"""What holds a kernel back: its time by the time model, what limits it, and what would help.

A launch is counted (`ptx/work.py`), and the time model (`machine/times.py`) asked once for it as it
is, and once for each remedy with what the remedy would change. Nothing is measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span, UnsupportedError
from warploom.machine.coalesce import SECTOR_BYTES
from warploom.machine.record import CUDA, H200, Machine
from warploom.machine.tally import Request
from warploom.machine.times import Prediction, predicted, rooms
from warploom.machine.work import Work
from warploom.ptx import flow
from warploom.ptx.launch import Kernel
from warploom.ptx.shuffle.plan import plan
from warploom.ptx.symbolic.walk import read
from warploom.ptx.work import Counted, lines_of
from warploom.verdict.shared_tile import served

Array = npt.NDArray[Any]
FULL = 128  # blocks of each processor: a launch that fills the machine is predicted
SCATTERED = 1.5  # times as many sectors as bytes need
USED = 0.6  # of the bytes of sectors: below, the rest is thrown away
IDLE = 0.1  # of the lanes
LEAST = 0.003  # of the time: what gains less is not told
SECONDS = 3.0  # for a layout
VECTORS = (4, 2)
WIDEST = 16


@dataclass(frozen=True, slots=True)
class Remedy:
    """`before` and `after` count `figure` for one block; `gain` is in nanoseconds of the launch
    that is predicted. `pattern` is the text of a file that `how` reads."""

    what: str
    message: str
    how: str
    figure: str
    before: float
    after: float
    gain: float
    place: Span | None = None
    pattern: str = ""

    def record(self) -> dict[str, Any]:
        line = {} if self.place is None else {
            "file": self.place.source.name, "line": self.place.line
        }  # fmt: skip
        return {
            "what": self.what, "message": self.message, "how": self.how, **line,
            "figure": self.figure, "before": self.before, "after": self.after,
            "gain_ns": self.gain, "pattern": self.pattern,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hindered:
    """The launch that is predicted has so many `blocks`: it fills the machine."""

    machine: str
    blocks: int
    predicted: Prediction
    room: str  # how many blocks a processor has at once, and what limits that
    waits: str  # what a block waits for
    remedies: tuple[Remedy, ...]

    def lines(self) -> Iterator[str]:
        total = float(self.predicted.nanoseconds)
        yield (
            f"predicted on {self.machine}: {total / 1000:.1f} µs for {self.blocks} such blocks, "
            f"limited by {self.predicted.limit}"
        )
        yield self.room
        yield self.waits
        for number, each in enumerate(self.remedies, 1):
            at = "" if each.place is None else f" ({each.place.source.name}:{each.place.line})"
            yield f"{number}. {each.what}{at}: {each.message}"
            yield (
                f"   {each.before:.4g} {each.figure} of a block would be {each.after:.4g}, "
                f"and the time {(total - each.gain) / 1000:.1f} µs: {each.how}"
            )

    def record(self) -> dict[str, Any]:
        return {
            "machine": self.machine, "blocks": self.blocks,
            "predicted_ns": float(self.predicted.nanoseconds), "limit": self.predicted.limit,
            "room": self.room, "waits": self.waits,
            "remedies": [each.record() for each in self.remedies],
        }  # fmt: skip


def hindered(kernel: Kernel, found: Counted, machine: Machine = H200) -> Hindered:
    return _Looked(kernel, found, machine).all()


class _Looked:
    def __init__(self, kernel: Kernel, found: Counted, machine: Machine) -> None:
        self.kernel, self.found, self.machine = kernel, found, machine
        self.blocks = max(found.blocks, FULL * int(machine.rates.processors))
        self.work = filled(found, self.blocks)
        self.predicted = predicted(self.work, machine)
        # Remedies change what a block does, not how many there are to be given out.
        self.given = machine.but(times=replace(machine.times, block=0.0))

    def all(self) -> Hindered:
        narrow, joined = self._narrow()
        remedies = [
            *self._conflicts(), *self._scattered(joined), *narrow, *self._room(), *self._parted(),
            *self._barriers(), *self._shuffled(),
        ]  # fmt: skip
        enough = LEAST * float(self.predicted.nanoseconds)
        helping = sorted((e for e in remedies if e.gain > enough), key=lambda e: -e.gain)
        return Hindered(
            self.machine.name, self.blocks, self.predicted, self._at_once(), self._waits(),
            tuple(helping),
        )  # fmt: skip

    def _at_once(self) -> str:
        found = {name: int(each) for name, each in rooms(self.work, self.machine).items()}
        least = min(found, key=lambda name: found[name])
        return (
            f"a processor has {max(1, found[least])} blocks of {self.work.threads} threads at "
            f"once, limited by {least}; {self.work.registers} registers hold values at a time"
        )

    def _waits(self) -> str:
        work, steps = self.work, self.kernel.function.instructions()
        barriers = [step for step in steps if step.opcode in ("bar", "barrier")]
        places = [self._line(self.kernel.owner.module.span(step)) for step in barriers]
        lines = sorted({each.line for each in places if each is not None})
        at = f" (lines {', '.join(map(str, lines))})" if lines else ""
        return (
            f"a block waits {work.global_rounds:.4g} times for global memory, "
            f"{work.shared_rounds:.4g} times for shared memory and {work.barriers:.4g} times at "
            f"barriers{at}"
        )

    def _remedy(
        self, what: str, message: str, how: str, figure: str, work: Work, label: Hashable = None,
        pattern: str = "",
    ) -> Remedy:  # fmt: skip
        field = {"lines of the cache": "lines", "requests": "requests"}.get(figure, "")
        name = field or {"wavefronts": "wavefronts", "sectors": "sectors",
                         "bytes of shared memory": "shared_bytes", "barriers": "barriers",
                         "instructions": "arithmetic"}[figure]  # fmt: skip
        before, after = (float(getattr(each, name)) for each in (self.work, work))
        now, then = (predicted(each, self.given).nanoseconds for each in (self.work, work))
        gain = float(now - then)
        place = self._line(label if isinstance(label, Span) else None)
        return Remedy(what, message, how, figure, before, after, gain, place, pattern)

    def _line(self, span: Span | None) -> Span | None:
        place = None if span is None else self.kernel.owner.places.at(span)
        return (place.span() if place else None) or span

    def _of(self, space: str) -> list[Request]:
        return [each for each in self.found.requests if each.space == space]

    # -- shared memory ----------------------------------------------------------------------------

    def _conflicts(self) -> Iterator[Remedy]:
        told = self.found.report.tallies.memory.items()
        lost = {
            label: each.wavefronts - each.least_wavefronts
            for (label, space), each in told
            if space == "shared" and each.wavefronts > each.least_wavefronts
        }
        requests = self._of("shared")
        better = served(requests, SECONDS) if lost and requests else None
        if better is None:
            return
        worst = max(better.saved, key=lambda label: better.saved[label])
        work = replace(self.work, wavefronts=self.work.wavefronts - sum(better.saved.values()))
        yield self._remedy(
            "bank conflicts", f"the layout {better.layout} of what is in shared memory",
            "warploom layout solve PATTERN.toml", "wavefronts", work, worst,
            better.pattern,
        )  # fmt: skip

    def _room(self) -> Iterator[Remedy]:
        """Shared memory that is asked for and not used."""
        places = [
            (each.rows[each.active][:, None] + np.arange(each.width)).reshape(-1)
            for each in self._of("shared")
        ]
        used = int(np.unique(np.concatenate(places)).size) if places else 0
        asked = int(self.work.shared_bytes)
        if used < asked:
            yield self._remedy(
                "few blocks at once", f"of {asked} bytes of shared memory {used} are used",
                "declare what is used", "bytes of shared memory",
                replace(self.work, shared_bytes=used),
            )  # fmt: skip

    # -- global memory ----------------------------------------------------------------------------

    def _scattered(self, joined: set[Hashable]) -> Iterator[Remedy]:
        """Lanes whose elements are not side by side; those that become vectors are left out."""
        found: dict[tuple[bool, bool], list[_Scattered]] = defaultdict(list)
        for label, requests in by_label(self._of("global")).items():
            seen = None if label in joined else self._spread(label, requests)
            if seen is not None:
                found[seen.thrown > 0, requests[0].write].append(seen)
        for (thrown, _), all_ in found.items():
            yield self._packed(all_) if thrown else self._beside(all_)

    def _spread(self, label: Hashable, requests: list[Request]) -> _Scattered | None:
        least = sum(-(-int(e.active.sum()) * e.width // SECTOR_BYTES) for e in requests)
        sectors = sum(_each(e, SECTOR_BYTES) for e in requests)
        if sectors < SCATTERED * least:
            return None
        lines = sum(map(lines_of, requests)) - sum(
            -(-int(count) * each.width // CUDA.line_bytes)
            for each in requests
            for count in each.active.sum(axis=1)
        )
        spread = np.unique(np.concatenate([_bytes(each) for each in requests]))
        held = np.unique(spread // SECTOR_BYTES)
        everything = np.unique(np.concatenate([_bytes(each) for each in self._of("global")]))
        used = int(np.isin(everything // SECTOR_BYTES, held).sum())
        thrown = held.size - -(-spread.size // SECTOR_BYTES)
        return _Scattered(
            label, sectors, len(_rows(requests)), lines,
            thrown if used < USED * held.size * SECTOR_BYTES else 0, requests[0].write,
        )  # fmt: skip

    def _packed(self, seen: list[_Scattered]) -> Remedy:
        fewer, lines = sum(each.thrown for each in seen), sum(each.lines for each in seen)
        share = 1 - fewer / self.work.sectors
        return self._remedy(
            "sectors that are not used",
            f"most bytes of the sectors that {_instructions(seen)} are unused",
            "put what is read together side by side: "
            "warploom.permute(x.reshape(-1, FIELDS), (1, 0))",
            "sectors",
            replace(
                self.work, sectors=self.work.sectors - fewer, lines=self.work.lines - lines,
                asked=self.work.asked * share,
                touched=self.work.touched * share, fetched=self.work.fetched * share,
            ), seen[0].label,
        )  # fmt: skip

    def _beside(self, seen: list[_Scattered]) -> Remedy:
        sectors = sum(each.sectors for each in seen) / sum(each.requests for each in seen)
        return self._remedy(
            "lanes that are far apart",
            f"{sectors:.0f} sectors for each request that {_instructions(seen)}",
            "give neighbouring lanes neighbouring elements, by a tile in shared memory: "
            "warploom layout solve transpose:32x32:f32",
            "lines of the cache",
            replace(self.work, lines=self.work.lines - sum(each.lines for each in seen)),
            seen[0].label,
        )  # fmt: skip

    def _narrow(self) -> tuple[list[Remedy], set[Hashable]]:
        """Neighbouring elements of a lane that one instruction could move; and all that move so."""
        graph = flow.build(self.kernel.owner.module, self.kernel.function)
        asked = by_label(self._of("global"))
        found: dict[tuple[bool, int], list[_Vector]] = defaultdict(list)
        for block in graph.blocks:
            spans = [self.kernel.owner.module.span(step) for step in graph.instructions(block)]
            for each in _vectors([(span, asked[span]) for span in spans if span in asked]):
                found[each.first[0].write, each.count].append(each)
        joined = {
            label for all_ in found.values() for e in all_ for label in e.labels if e.is_dense
        }  # fmt: skip
        return [self._vector(all_) for all_ in found.values()], joined

    def _vector(self, seen: list[_Vector]) -> Remedy:
        fewer = sum(len(_rows(each)) for one in seen for each in one.others)
        now = sum(sum(map(lines_of, e)) for one in seen for e in (one.first, *one.others))
        then = sum(
            _each(replace(each, width=one.count * each.width), CUDA.line_bytes)
            for one in seen
            for each in one.first
        )
        work = replace(
            self.work, requests=self.work.requests - fewer, lines=self.work.lines - now + then,
            longest=self.work.longest - fewer / self.found.warps,
            asked=self.work.asked * (1 - (now - then) / max(1.0, self.work.lines)),
        )  # fmt: skip
        count, first = seen[0].count, seen[0].first[0]
        return self._remedy(
            "narrow accesses",
            f"{count} neighbouring elements of a lane are {'written' if first.write else 'read'} "
            "one by one",
            f"move {count * first.width} bytes at once, as a vector of {count}", "requests", work,
            seen[0].labels[0],
        )  # fmt: skip

    # -- lanes and barriers -----------------------------------------------------------------------

    def _parted(self) -> Iterator[Remedy]:
        report = self.found.report
        parted = {e: s for e, s in report.tallies.branches.items() if s.divergent}
        if not parted:
            return
        threads = report.thread_instructions / CUDA.lanes / self.found.blocks
        all_ = float(self.work.longest * self.found.warps)
        if threads > (1 - IDLE) * all_:
            return
        worst = max(parted, key=lambda label: parted[label].divergent)
        seen = parted[worst]
        share = threads / all_
        yield self._remedy(
            "divergent lanes", f"{1 - share:.0%} of the lanes wait for others of their warp; "
            f"{seen.divergent} of {seen.warps} warps diverge here",
            "give each side of the branch warps of its own", "instructions",
            replace(
                self.work, arithmetic=self.work.arithmetic * share,
                special=self.work.special * share, longest=self.work.longest * share,
            ), worst,
        )  # fmt: skip

    def _barriers(self) -> Iterator[Remedy]:
        if self.work.threads <= CUDA.lanes and self.work.barriers:
            yield self._remedy(
                "barriers of one warp", "the block has one warp", "__syncwarp()", "barriers",
                replace(self.work, barriers=0.0),
            )  # fmt: skip

    def _shuffled(self) -> Iterator[Remedy]:
        """Loads of what another lane of the warp has loaded, by proof."""
        module = self.kernel.owner.module
        try:
            reading = read(module, self.kernel.function)
            found = plan(reading, self.machine, pays_only=False, limit=CUDA.lanes - 1)
        except UnsupportedError:
            return
        asked = by_label([*self.found.requests])
        spans = [module.span(reading.flow.code[each.target.at]) for each in found.shuffles]
        known = [span for span in spans if span in asked]
        if not known:
            return
        requests = [each for span in known for each in asked[span]]
        outside = [each for each in requests if each.space == "global"]
        count, all_ = len(_rows(outside)) if outside else 0, len(_rows(requests))
        yield self._remedy(
            "loads of what a neighbour has", f"{len(known)} loads could be shuffles",
            "warploom ptx shuffle KERNEL.ptx", "requests",
            replace(
                self.work, requests=self.work.requests - count,
                lines=self.work.lines - sum(map(lines_of, outside)),
                shared_requests=self.work.shared_requests - (all_ - count),
                shuffles=self.work.shuffles + all_,
            ), known[0],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Scattered:
    """An instruction: sectors and requests of a block, lines more than its bytes need, and sectors
    that nobody uses."""

    label: Hashable
    sectors: int
    requests: int
    lines: int
    thrown: int
    write: bool


@dataclass(frozen=True, slots=True)
class _Vector:
    """Instructions that move neighbouring elements of a lane."""

    labels: tuple[Hashable, ...]
    first: list[Request]
    others: list[list[Request]]
    count: int

    @property
    def is_dense(self) -> bool:
        """Whether the vectors of neighbouring lanes lie side by side."""
        apart = np.diff(_rows(self.first), axis=1)
        return bool((apart == self.count * self.first[0].width).all())


def _instructions(seen: list[_Scattered]) -> str:
    verb = "writes" if seen[0].write else "reads"
    return f"an instruction {verb}" if len(seen) == 1 else f"{len(seen)} instructions {verb[:-1]}"


def _vectors(listed: list[tuple[Span, list[Request]]]) -> Iterator[_Vector]:
    left = list(listed)
    while left:
        label, first = left.pop(0)
        for count in VECTORS:
            group = [_after(first, left, n) for n in range(1, count)]
            if count * first[0].width > WIDEST or None in group or not _aligned(first, count):
                continue
            others = [left[n] for n in group if n is not None]
            labels = (label, *(each for each, _ in others))
            yield _Vector(labels, first, [each for _, each in others], count)
            left = [each for each in left if each[0] not in labels]
            break


def filled(found: Counted, blocks: int) -> Work:
    """The work of a launch of so many blocks like those that were counted."""
    many = blocks / found.blocks
    return replace(
        found.work, blocks=blocks, touched=found.work.touched * many,
        fetched=found.work.fetched * many,
    )  # fmt: skip


def by_label(requests: list[Request]) -> dict[Hashable, list[Request]]:
    found: dict[Hashable, list[Request]] = defaultdict(list)
    for each in requests:
        found[each.label].append(each)
    return found


def _rows(requests: list[Request]) -> Array:
    return np.concatenate([each.rows for each in requests])


def _bytes(each: Request) -> Array:
    """Bytes that a request touches."""
    starts = each.rows[each.active]
    return np.asarray((starts[:, None] + np.arange(each.width)).reshape(-1))


def _each(each: Request, unit: int) -> int:
    """Units of memory that a request takes, each warp's for itself."""
    total = 0
    for row, active in zip(each.rows, each.active, strict=True):
        ends = row[active][:, None] + np.array([0, each.width - 1])
        total += int(np.unique(ends // unit).size)
    return total


def _after(first: list[Request], listed: Any, number: int) -> int | None:
    """Which of the listed moves the nth element behind that of the first, in all its requests."""
    for at, (_, each) in enumerate(listed):
        if len(each) == len(first) and all(
            y.write == x.write and y.width == x.width and y.rows.shape == x.rows.shape
            and (y.active == x.active).all()
            and (y.rows - x.rows == number * x.width)[x.active].all()
            for x, y in zip(first, each, strict=True)
        ):  # fmt: skip
            return at
    return None


def _aligned(first: list[Request], count: int) -> bool:
    return not any((each.rows[each.active] % (count * each.width)).any() for each in first)
