"""The blocks of a launch on the cores of this machine, by compiled C.

One core runs the blocks in order. Several take them in order, each the next ones that nobody has,
and each notes which words of writable memory it read and wrote. Where no word that one core wrote
was touched by another, every word was in the hands of one core, which came to it in order: the
result is that of the order. Where one was, the launch clashes, and its result is thrown away.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import LimitError, Span
from warploom.machine.counters import Counters
from warploom.machine.memory import Memory, Region
from warploom.machine.record import CUDA
from warploom.machine.serving import Serving
from warploom.ptx.emulate.frame import thread_name
from warploom.ptx.fast.notes import Counting, Noted
from warploom.search.budget import BudgetSpentError, governing_budget
from warploom.search.outcome import Reason

Triple = tuple[int, int, int]
# Instructions of warps between two looks at the clock and at Ctrl-C: as many as take a moment,
# which are many additions and few atomic sums. Launches that end within the first stay on one core.
FIRST_SLICE, SMALLEST_SLICE, LARGEST_SLICE = 200_000, 2_000, 50_000_000
MOMENT = 0.1  # seconds
SHARES = 16  # for each core: blocks differ in how long they take
MOST_BYTES = 1 << 28  # of what cores have beside the memory of the launch, all together
FIRST_LOOK = 0.5  # seconds, after which a launch on several cores is looked at for clashes; doubled
MOST_SHADOW = 1 << 30  # bytes that remember who came to which cell of memory
WORD = 4  # bytes
ALIGNMENT = 256
_KINDS = {"global": 1, "const": 2, "param": 4, "texture": 0}  # 0: out of reach
_READ_ONLY = 8


class Status(IntEnum):
    """How a slice of time, or a launch, ended."""

    DONE = 0
    AGAIN = 2
    FAULT = 3
    CLASH = 4


class _PassedRegion(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64), ("size", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("kind", ctypes.c_uint64), ("touched", ctypes.c_void_p),
        ("shadow", ctypes.c_void_p),
    ]  # fmt: skip


_Asked = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_double, ctypes.POINTER(ctypes.c_double))
_FUNCTIONS = (np.exp2, np.log2, np.tanh, np.sin, np.cos)


def _value(which: int, x: float, answer: Any) -> None:
    """NumPy's value of a function, asked for where the C library's may round to another single."""
    with np.errstate(all="ignore"):
        value = float(_FUNCTIONS[which](np.array([x]))[0])
    answer[0], answer[1] = value, 1.0


_ask = _Asked(_value)


_Full = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))


class _Passed(ctypes.Structure):
    _fields_ = [
        ("regions", ctypes.c_uint64), ("region", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in
          ("shared_size", "local_size", "local_stride", "check")),
        *((name, ctypes.c_void_p) for name in
          ("shared", "marks", "local", "params", "symbols", "executed")),
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
        *((name, ctypes.c_uint64) for name in ("threads", "warps", "dynamic_shared")),
        ("taken", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("chunk", "next", "stop", "running", "ready")),
        ("fuel", ctypes.c_int64), ("warp", ctypes.c_void_p), ("ask", _Asked),
        ("lost", ctypes.c_uint64), ("missing", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in
          ("patterns", "shared_shadow", "copies", "latest", "branched")),
        *((name, ctypes.c_uint64) for name in ("different", "barriers", "shuffles", "updates")),
        ("full", _Full),
        *((name, ctypes.c_uint64) for name in ("stamp", "first_stamp", "suspect")),
    ]  # fmt: skip


def bare_launch() -> ctypes.Structure:
    """A launch for compiled code that only computes."""
    return _Passed(ask=_ask)


@dataclass(frozen=True, slots=True)
class Job:
    """One launch: its shape, its memory, and the addresses that the text asks for."""

    grid: Triple
    block: Triple
    memory: Memory
    symbols: dict[str, int]
    shared: int  # bytes of a block, dynamic ones included
    dynamic_shared: int
    local: int  # bytes of a thread
    check: bool
    deadline: float | None
    serving: Serving
    cores: int | None = None  # at most; None: as many as there are


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled kernel: what it is called, its functions, and what a launch of it must bring."""

    name: str
    launch: Callable[..., int]
    clash: Callable[..., int]
    warp_bytes: int
    symbols: tuple[str, ...]
    blocks: int  # of its text
    noted: Noted
    cell_bytes: int  # of what remembers who came to a cell of memory, where races are looked for
    copies_bytes: int  # … and of what a thread has copied
    still: Callable[..., int]
    places: tuple[Span | None, ...]  # where each part of the text begins


@dataclass(frozen=True, slots=True)
class Ran:
    """How a launch ended, on how many cores, and how often threads came to each part of the text.

    `missing`: somebody met an uninitialised value; `suspect`: what may be a race.
    """

    status: Status
    executed: list[int]
    missing: bool
    cores: int
    suspect: bool = False
    counters: Counters | None = None


class Core:
    """What a core has for itself: a block's registers, its shared and its local memory."""

    def __init__(self, code: Compiled, job: Job, taken: npt.NDArray[np.uint64], chunk: int) -> None:
        threads = prod(job.block)
        warps = -(-threads // CUDA.lanes)
        stride = -(-job.local // 16) * 16
        symbols = np.array([job.symbols[name] for name in code.symbols] or [0], np.uint64)
        rooms = [
            _room(job.shared), _room(job.shared), _room(warps * CUDA.lanes * stride),
            _room(warps * code.warp_bytes),
        ]  # fmt: skip
        shared, marks, local, state = (room.ctypes.data for room in rooms)
        parameters = next(r for r in job.memory.regions if r.space == "param")
        self.regions = (_PassedRegion * len(job.memory.regions))(*map(_passed, job.memory.regions))
        self.executed = np.zeros(code.blocks, np.uint64)
        self.passed = _Passed(
            len(self.regions), ctypes.addressof(self.regions), job.shared, job.local, stride,
            job.check, shared, marks, local, parameters.data.ctypes.data, symbols.ctypes.data,
            self.executed.ctypes.data, job.grid, job.block, threads, warps, job.dynamic_shared,
            taken.ctypes.data, chunk, warp=state, ask=_ask,
        )  # fmt: skip
        self._kept = (rooms, symbols, taken, parameters)
        self.counting: Counting | None = None
        self._take_notes(code, job)
        self._launch = code.launch
        self._slice = FIRST_SLICE

    def _take_notes(self, code: Compiled, job: Job) -> None:
        if code.noted.notes.counts:
            self.counting = counting = Counting(code.noted, job.memory.regions, job.serving)
            self.passed.patterns = counting.table.ctypes.data
            self.passed.latest = counting.latest.ctypes.data
            self.passed.branched = counting.branched.ctypes.data
            self.passed.full = _Full(counting.take)
        if code.noted.notes.races:
            self._shadows = _shadows(code, job)
            self.passed.shared_shadow = self._shadows[-2].ctypes.data
            self.passed.copies = self._shadows[-1].ctypes.data
            written = [r for r in self.regions if not r.kind & _READ_ONLY]
            for region, shadow in zip(written, self._shadows, strict=False):
                region.shadow = shadow.ctypes.data

    def counted(self, counters: Counters) -> None:
        if self.counting is not None:
            passed = self.passed
            self.counting.into(counters, passed.barriers, passed.shuffles, passed.updates)

    @property
    def bytes(self) -> int:
        return sum(room.size for room in self._kept[0])

    def step(self) -> Status:
        """Goes on for a moment.

        Ctrl-C while compiled code runs is raised where Python runs next. Where that is what the
        code calls, it goes no further than there, and no answer comes: so it is raised here.
        """
        self.passed.fuel, started = self._slice, time.monotonic()
        status = Status(self._launch(ctypes.byref(self.passed)))
        if self.passed.lost:
            broke = None if self.counting is None else self.counting.broke
            raise broke or KeyboardInterrupt
        took = max(time.monotonic() - started, 1e-6)
        wanted = self._slice * MOMENT / took
        self._slice = int(min(max(wanted, SMALLEST_SLICE), LARGEST_SLICE))
        return status


def run(code: Compiled, job: Job) -> Ran:
    """Runs a launch; memory is as it came only if that ends with `DONE`."""
    if code.noted.notes:
        return _noted(code, job)
    blocks = prod(job.grid)
    cores = job.cores or _there_are()
    taken = np.zeros(1, np.uint64)
    chunk = max(1, blocks // (SHARES * cores))
    crew = [Core(code, job, taken, chunk)]
    status = crew[0].step()
    if status is Status.AGAIN:
        left = -(-(blocks - int(taken[0])) // chunk)
        words = sum(_words(region) for region in _writable(job))
        room = MOST_BYTES // (words + crew[0].bytes)
        cores = min(cores, left + 1, room) if _apart(job.memory.regions) else 1
        crew += [Core(code, job, taken, chunk) for _ in range(cores - 1)]
        status = _go_on(code, job, crew)
    return Ran(
        status,
        np.sum([core.executed for core in crew], axis=0).tolist(),
        any(core.passed.missing for core in crew),
        len(crew),
    )


def _noted(code: Compiled, job: Job) -> Ran:
    """A launch whose accesses are noted: on one core."""
    if _shadow_bytes(code, job) > MOST_SHADOW:
        return Ran(Status.FAULT, [], False, 1)
    core = Core(code, job, np.zeros(1, np.uint64), prod(job.grid))
    status = core.step()
    if status is Status.AGAIN:
        status = _go_on(code, job, [core])
    counters = Counters(serving=job.serving)
    if status is Status.DONE:
        core.counted(counters)
    passed = core.passed
    return Ran(
        status, core.executed.tolist(), bool(passed.missing), 1, bool(passed.suspect), counters
    )


def _shadow_sizes(code: Compiled, job: Job) -> list[int]:
    """Bytes of shadow memory: for each region that may be written, for shared memory, and for which
    copies each thread has waited for."""
    sizes = [*(region.size for region in _writable(job)), job.shared]
    cells = [(size // code.noted.unit + 1) * code.cell_bytes for size in sizes]
    return [*cells, (prod(job.block) + 1) * code.copies_bytes]


def _shadow_bytes(code: Compiled, job: Job) -> int:
    return sum(_shadow_sizes(code, job)) if code.noted.notes.races else 0


def _shadows(code: Compiled, job: Job) -> list[npt.NDArray[Any]]:
    return [np.zeros(size, np.uint8) for size in _shadow_sizes(code, job)]


def _go_on(code: Compiled, job: Job, crew: Sequence[Core]) -> Status:
    try:
        return _Crew(code, job, crew).run() if len(crew) > 1 else _alone(job, crew[0])
    except (_OutOfTime, BudgetSpentError):
        if not _is_over(job):
            raise  # the time of a caller, not of the launch
        governing_budget().end(Reason.SECONDS)
        raise _too_long(code, job, crew) from None


def _alone(job: Job, core: Core) -> Status:
    status = Status.AGAIN
    while status is Status.AGAIN:
        _check_time(job)
        status = core.step()
    return status


class _Crew:
    """Cores that share a launch out. The first has begun: what it did came before all others."""

    def __init__(self, code: Compiled, job: Job, cores: Sequence[Core]) -> None:
        self._code, self._job, self._cores = code, job, cores
        self._stop = threading.Event()
        self._maps: list[list[npt.NDArray[np.uint8]]] = []  # of each region, of each core
        for number, region in enumerate(job.memory.regions):
            if not region.read_only:
                maps = [np.zeros(_words(region), np.uint8) for _ in cores]
                for core, touched in zip(cores, maps, strict=True):
                    core.regions[number].touched = touched.ctypes.data
                self._maps.append(maps)

    def run(self) -> Status:
        started, look = time.monotonic(), FIRST_LOOK
        going: list[Future[Status]] = []
        with ThreadPoolExecutor(len(self._cores)) as pool:
            try:
                going.extend(pool.submit(self._work, core) for core in self._cores)
                while wait(going, MOMENT).not_done:
                    _check_time(self._job)
                    # What was read too early may be why it does not end.
                    if time.monotonic() - started > look:
                        if self._clash():
                            return Status.CLASH
                        look *= 2
            except RuntimeError:  # no more threads are to be had: one core does it
                return Status.CLASH
            finally:
                self._stop.set()
                _all_stopped(going)
        ended = {each.result() for each in going}
        if self._clash():
            return Status.CLASH
        return Status.FAULT if Status.FAULT in ended else Status.DONE

    def _work(self, core: Core) -> Status:
        status = Status.AGAIN
        while status is Status.AGAIN and not self._stop.is_set():
            status = core.step()
        if status is Status.FAULT:
            self._stop.set()
        return status

    def _clash(self) -> bool:
        for maps in self._maps:
            places = (ctypes.c_void_p * len(maps))(*(each.ctypes.data for each in maps))
            many, words = ctypes.c_uint64(len(maps)), ctypes.c_uint64(maps[0].size)
            if self._code.clash(places, many, words):
                return True
        return False


def _all_stopped(going: Sequence[Future[Status]]) -> None:
    """Waits for cores that were told to stop, whatever interrupts that: memory is put back next,
    and nobody may still write there."""
    interrupted: BaseException | None = None
    while True:
        try:
            wait(going)
            break
        except BaseException as error:  # noqa: BLE001 - raised again
            interrupted = error
    if interrupted is not None:
        raise interrupted


def _is_over(job: Job) -> bool:
    return job.deadline is not None and time.monotonic() > job.deadline


def _check_time(job: Job) -> None:
    if _is_over(job):
        raise _OutOfTime


class _OutOfTime(Exception):  # noqa: N818 - no error yet: who is still running is not known
    """The time is over; raised again as an error once all cores have stopped."""


def _too_long(code: Compiled, job: Job, crew: Sequence[Core]) -> LimitError:
    """Says who is still running, and where."""
    message = f"kernel '{code.name}' did not end in the time it was given"
    place = (ctypes.c_uint64 * 3)()
    for core in crew:
        if code.still(ctypes.byref(core.passed), place):
            block, thread, part = place
            who = thread_name(block * prod(job.block) + thread, job.grid, job.block)
            return LimitError(
                f"{message}: {who} is still here", code.places[part],
                "give it more seconds, unless this is a loop that waits for what never comes",
            )  # fmt: skip
    return LimitError(message)


def _there_are() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _writable(job: Job) -> list[Region]:
    return [region for region in job.memory.regions if not region.read_only]


def _words(region: Region) -> int:
    return region.size // WORD + 1


def _apart(regions: Sequence[Region]) -> bool:
    """Whether no bytes have two addresses: a variable of the module may be an argument, too."""
    places = sorted((region.data.ctypes.data, region.size) for region in regions if region.size)
    return all(start + size <= after for (start, size), (after, _) in pairwise(places))


def _passed(region: Region) -> _PassedRegion:
    kind = _KINDS[region.space] | (_READ_ONLY if region.read_only else 0)
    return _PassedRegion(region.base, region.size, region.data.ctypes.data, kind)


def _room(size: int) -> npt.NDArray[Any]:
    """Zeroed bytes at an address that suits every vector."""
    raw = np.zeros(size + 2 * ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size + 1]
