"""Runs a kernel as compiled C, or leaves it to the evaluator.

Writable memory is copied before a launch. If anything happens that the text does not plainly allow
(an access out of bounds, a read of what nobody wrote, lanes that do not meet), memory is put back
and the caller runs the evaluator, which finds the same and says it in full. If blocks that ran on
several cores came to the same words, memory is put back and one core runs them in order. So it is
where races are looked for and two accesses may be one (`notes.py`).
"""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from warploom.errors import AbsentError, DeviceError
from warploom.machine.memory import Region
from warploom.machine.report import Report
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.ptx.emulate.arguments import parameter_offsets
from warploom.ptx.emulate.asked import EngineName
from warploom.ptx.emulate.code import Code
from warploom.ptx.fast.build import FLAGS
from warploom.ptx.fast.cores import Compiled, Job, Ran, Status, run
from warploom.ptx.fast.notes import NO_NOTES, Notes
from warploom.ptx.fast.operand import NotTaken
from warploom.ptx.fast.pieces import Joint, Pieces
from warploom.ptx.fast.text import CText, spell
from warploom.ptx.ir import Function, Module

MANY_THREADS = 1 << 16  # of a launch that is compiled before any of it is run
MUCH_WORK = 1 << 29  # of the evaluator (`emulate/work.py`): it takes about as long as a compiler
NOTED = 4  # times as long it takes where races are looked for, or counters are kept

LARGE = 200  # instructions; beyond, -O2 takes a compiler four times as long as -O1 and a gigabyte
COMPILE_SECONDS = 60.0  # after which a kernel is left to the evaluator


def much_work(notes: Notes) -> int:
    """What the evaluator does of a launch before it is left to a compiler."""
    return MUCH_WORK // NOTED if notes else MUCH_WORK


class FastKernel:
    """A kernel that is compiled once it is worth it; `why_not` says what keeps it from that."""

    def __init__(self, module: Module, function: Function, shared: dict[str, int]) -> None:
        self._module, self._function, self._shared = module, function, shared
        self._engines: dict[Notes, Engine] = {}
        self._left: dict[Notes, str] = {}  # why launches that note so much are left alone
        self._watch = False
        self._pieces: Pieces | None = None
        self._joint: Joint | None = None
        self._no_pieces = False  # there are none, or the compiler has failed
        self.why_not = ""

    def is_open(self, engine: EngineName, notes: Notes) -> bool:
        """Whether nothing is known yet that leaves such launches to the evaluator."""
        return not self.why_not and notes not in self._left and engine != "numpy"

    def is_worth_it(self, threads: int, engine: EngineName, notes: Notes) -> bool:
        """Whether a launch of so many threads is compiled before any of it is run."""
        return engine == "c" or notes in self._engines or threads >= MANY_THREADS

    @property
    def text(self) -> CText | None:
        """What runs, once it was compiled."""
        return next((engine.text for engine in self._engines.values()), None)

    def judged(self, locals_: dict[str, int]) -> str:
        """What keeps the kernel from being compiled, found without compiling it; or nothing."""
        try:
            if not self.why_not:
                self._spell(locals_, NO_NOTES)
        except NotTaken as error:
            self.why_not = error.message
        return self.why_not

    def run(
        self, job: Job, report: Report, locals_: dict[str, int], notes: Notes,
        slice_: float | None = None,
    ) -> bool:  # fmt: skip
        """Whether the launch was done; else nothing has changed.

        `slice_` are seconds that it may run, the compiler's not among them: a `LimitError` beyond.
        One that meets uninitialised values is run again by a text that watches them, and so
        are those that come after it. One in which there may be a race is the evaluator's.
        """
        ran = None
        for _ in range(2):
            engine = self._compiled(job, locals_, notes)
            if engine is None:
                return False
            until = None if slice_ is None else time.monotonic() + slice_
            ran = engine.run(job if until is None else replace(job, deadline=until))
            if ran.status is Status.DONE or not ran.missing or self._watch:
                break
            self._watch, self._engines = True, {}
        if ran is None or engine is None or ran.status is not Status.DONE:
            if ran is not None and ran.suspect:
                self._left[notes] = "accesses that may race"
            return False
        if ran.counters is not None:
            ran.counters.onto(report)
        mix: Counter[str] = Counter()
        for names, times in zip(engine.text.blocks, ran.executed, strict=True):
            for name in names if times else ():
                mix[name] += times
        report.mix, report.engine, report.cores = dict(mix), "c", ran.cores
        return True

    # -- in pieces --------------------------------------------------------------------------------

    def has_pieces(self, code: Code) -> bool:
        """Whether something of the kernel can be compiled, found without compiling it."""
        if self._pieces is None and not self._no_pieces:
            self._pieces = Pieces.of(code, self._function, self._shared)
            self._no_pieces = self._pieces.is_empty
        return not self._no_pieces

    def gains_by_pieces(self, code: Code) -> bool:
        """Whether that repays a launch that begins again."""
        return self.has_pieces(code) and self._pieces is not None and self._pieces.has_products

    def in_pieces(self, code: Code, deadline: float | None) -> Joint | None:
        """The kernel with compiled pieces; None where there are none."""
        if self._joint is None and self.has_pieces(code):
            assert self._pieces is not None
            try:
                self._joint = self._pieces.compiled(_budget(deadline))
            except (DeviceError, AbsentError):
                self._no_pieces = True
        return self._joint

    def _compiled(self, job: Job, locals_: dict[str, int], notes: Notes) -> Engine | None:
        found = self._engines.get(notes)
        if found is None:
            try:
                found = Engine(self._spell(locals_, notes), _budget(job.deadline))
            except (NotTaken, DeviceError, AbsentError) as error:
                if notes:
                    self._left[notes] = error.message
                else:
                    self.why_not = error.message
                return None
            self._engines[notes] = found
        return found

    def _spell(self, locals_: dict[str, int], notes: Notes) -> CText:
        parameters = self._function.parameters
        offsets, _ = parameter_offsets(parameters)
        places = {p.name: offset for p, offset in zip(parameters, offsets, strict=True)}
        return spell(
            self._module, self._function, self._shared, places, locals_, self._watch, notes
        )


class Engine:
    """A compiled kernel."""

    def __init__(self, text: CText, seconds: float) -> None:
        self.text = text
        self._in_order = False  # blocks of an earlier launch came to the same words
        level = "-O2" if sum(map(len, text.blocks)) <= LARGE else "-O1"
        code = kept_library(text.source, (level, *FLAGS), cache_folder(), seconds)
        library = load_library(code)
        library.launch.restype = library.clash.restype = library.still.restype = ctypes.c_int
        sizes = library.warp_bytes, library.cell_bytes, library.copies_bytes
        for each in sizes:
            each.restype = ctypes.c_uint64
        warp, cell, copies = (int(each()) for each in sizes)
        self._code = Compiled(
            text.name, library.launch, library.clash, warp, text.symbols, len(text.blocks),
            text.noted, cell, copies, library.still, text.places,
        )  # fmt: skip

    def run(self, job: Job) -> Ran:
        """Runs a launch; where it does not end with `DONE`, memory is as it was."""
        written = [region for region in job.memory.regions if not region.read_only]
        before = [region.data.copy() for region in written]
        try:
            ran = run(self._code, replace(job, cores=1) if self._in_order else job)
            if ran.status is Status.CLASH:
                self._in_order = True
                _restore(written, before)
                ran = run(self._code, replace(job, cores=1))
        except BaseException:
            _restore(written, before)
            raise
        if ran.status is not Status.DONE:
            _restore(written, before)
        return ran


def _budget(deadline: float | None) -> float:
    """Seconds for a compiler: half of what a launch has, so that the evaluator is left the rest."""
    if deadline is None:
        return COMPILE_SECONDS
    return max(0.0, min(COMPILE_SECONDS, (deadline - time.monotonic()) / 2))


def _restore(regions: Sequence[Region], before: Sequence[npt.NDArray[np.uint8]]) -> None:
    for region, data in zip(regions, before, strict=True):
        region.data[:] = data
