"""Runs a kernel as compiled C, or leaves it to the evaluator.

Writable memory is copied before a launch. If anything happens that the text does not plainly allow
(an access out of bounds, a read of what nobody wrote, lanes that do not meet), memory is put back
and the caller runs the evaluator, which finds the same and says it in full.
"""

from __future__ import annotations

import ctypes
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError, LimitError
from warploom.machine.memory import Memory, Region
from warploom.machine.record import CUDA
from warploom.machine.report import Report
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.ptx.emulate.arguments import parameter_offsets
from warploom.ptx.fast.operand import NotTaken
from warploom.ptx.fast.text import CText, spell
from warploom.ptx.ir import Function, Module

Triple = tuple[int, int, int]
EngineName: TypeAlias = Literal["auto", "numpy", "c"]
WORTH_IT = 1 << 16  # threads of a launch for which a second of compiling is repaid

# No reordering and no contraction of floats: the evaluator's meaning, bit for bit.
FLAGS = (
    "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native", "-std=gnu11",
    "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-fno-strict-aliasing", "-fPIC", "-shared", "-w",
    *(["-mprefer-vector-width=512"] if platform.machine() in ("x86_64", "AMD64") else []),
)  # fmt: skip
LARGE = 200  # instructions; beyond, -O2 takes a compiler four times as long as -O1 and a gigabyte
COMPILE_SECONDS = 60.0  # after which a kernel is left to the evaluator
# Instructions of warps between two looks at the clock and at Ctrl-C: as many as take a moment,
# which are many additions and few atomic sums.
FIRST_SLICE, SMALLEST_SLICE, LARGEST_SLICE = 200_000, 2_000, 50_000_000
MOMENT = 0.1  # seconds
ALIGNMENT = 256
_DONE, _AGAIN, _FAULT = 0, 2, 3
_KINDS = {"global": 1, "const": 2, "param": 4}
_READ_ONLY = 8


class _PassedRegion(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64), ("size", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("kind", ctypes.c_uint64),
    ]  # fmt: skip


_Asked = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.c_double)
_FUNCTIONS = (np.exp2, np.log2, np.tanh, np.sin, np.cos)


def _value(which: int, x: float) -> float:
    """NumPy's value of a function, asked for where the C library's may round to another single."""
    with np.errstate(all="ignore"):
        return float(_FUNCTIONS[which](np.array([x]))[0])


_ask = _Asked(_value)


class _Passed(ctypes.Structure):
    _fields_ = [
        ("regions", ctypes.c_uint64), ("region", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in
          ("shared_size", "local_size", "local_stride", "check")),
        *((name, ctypes.c_void_p) for name in
          ("shared", "marks", "local", "params", "symbols", "executed")),
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
        *((name, ctypes.c_uint64) for name in
          ("threads", "warps", "dynamic_shared", "next", "running")),
        ("fuel", ctypes.c_int64), ("warp", ctypes.c_void_p), ("ask", _Asked),
        ("missing", ctypes.c_uint64),
    ]  # fmt: skip


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


class FastKernel:
    """A kernel that is compiled once it is worth it; `why_not` says what keeps it from that."""

    def __init__(self, module: Module, function: Function, shared: dict[str, int]) -> None:
        self._module, self._function, self._shared = module, function, shared
        self._engine: Engine | None = None
        self._watch = False
        self.why_not = ""

    def is_worth_it(self, grid: Triple, block: Triple, engine: EngineName) -> bool:
        if self.why_not or engine == "numpy":
            return False
        return engine == "c" or self._engine is not None or prod(grid) * prod(block) >= WORTH_IT

    @property
    def text(self) -> CText | None:
        """What runs, once it was compiled."""
        return None if self._engine is None else self._engine.text

    def judged(self, locals_: dict[str, int]) -> str:
        """What keeps the kernel from being compiled, found without compiling it; or nothing."""
        try:
            if not self.why_not:
                self._spell(locals_)
        except NotTaken as error:
            self.why_not = error.message
        return self.why_not

    def run(self, job: Job, report: Report, locals_: dict[str, int]) -> bool:
        """Whether the launch was done; else nothing has changed.

        One that meets values which nobody gave is run again by a text that watches them, and so
        are those that come after it.
        """
        executed = None
        for _ in range(2):
            if self._engine is None:
                try:
                    self._engine = Engine(self._spell(locals_), _budget(job.deadline))
                except (NotTaken, DeviceError) as error:
                    self.why_not = error.message
                    return False
            executed = self._engine.run(job)
            if executed is not None or not self._engine.missing or self._watch:
                break
            self._watch, self._engine = True, None
        if executed is None or self._engine is None:
            return False
        mix: Counter[str] = Counter()
        for names, times in zip(self._engine.text.blocks, executed, strict=True):
            for name in names if times else ():
                mix[name] += times
        report.mix, report.engine = dict(mix), "c"
        return True

    def _spell(self, locals_: dict[str, int]) -> CText:
        parameters = self._function.parameters
        offsets, _ = parameter_offsets(parameters)
        places = {p.name: offset for p, offset in zip(parameters, offsets, strict=True)}
        return spell(self._module, self._function, self._shared, places, locals_, self._watch)


class Engine:
    """A compiled kernel."""

    def __init__(self, text: CText, seconds: float) -> None:
        self.text = text
        self.missing = False  # the last run met a value that nobody gave
        level = "-O2" if sum(map(len, text.blocks)) <= LARGE else "-O1"
        code = kept_library(text.source, (level, *FLAGS), cache_folder(), seconds)
        library = load_library(code)
        self._launch = library.launch
        self._launch.restype = ctypes.c_int
        library.warp_bytes.restype = ctypes.c_uint64
        self._warp_bytes = int(library.warp_bytes())

    def run(self, job: Job) -> list[int] | None:
        """Thread executions of each block; None where the evaluator must run it instead."""
        written = [region for region in job.memory.regions if not region.read_only]
        before = [region.data.copy() for region in written]
        try:
            executed = self._run(job)
        except BaseException:
            _restore(written, before)
            raise
        if executed is None:
            _restore(written, before)
        return executed

    def _run(self, job: Job) -> list[int] | None:
        threads = prod(job.block)
        warps = -(-threads // CUDA.lanes)
        regions = (_PassedRegion * len(job.memory.regions))(*map(_passed, job.memory.regions))
        symbols = np.array([job.symbols[name] for name in self.text.symbols] or [0], np.uint64)
        executed = np.zeros(len(self.text.blocks), np.uint64)
        stride = -(-job.local // 16) * 16
        rooms = [
            _room(job.shared), _room(job.shared), _room(warps * CUDA.lanes * stride),
            _room(warps * self._warp_bytes),
        ]  # fmt: skip
        shared, marks, local, state = (room.ctypes.data for room in rooms)
        parameters = next(r for r in job.memory.regions if r.space == "param")
        launch = _Passed(
            len(regions), ctypes.addressof(regions), job.shared, job.local, stride, job.check,
            shared, marks, local, parameters.data.ctypes.data, symbols.ctypes.data,
            executed.ctypes.data, job.grid, job.block, threads, warps, job.dynamic_shared,
            warp=state, ask=_ask,
        )  # fmt: skip
        slice_ = FIRST_SLICE
        while True:
            launch.fuel, started = slice_, time.monotonic()
            status = self._launch(ctypes.byref(launch))
            took = max(time.monotonic() - started, 1e-6)
            slice_ = int(min(max(slice_ * MOMENT / took, SMALLEST_SLICE), LARGEST_SLICE))
            if status != _AGAIN:
                self.missing = bool(launch.missing)
                return executed.tolist() if status == _DONE else None
            if job.deadline is not None and time.monotonic() > job.deadline:
                raise LimitError(f"kernel '{self.text.name}' did not end in the time it was given")


def _budget(deadline: float | None) -> float:
    """Seconds for a compiler: half of what a launch has, so that the evaluator is left the rest."""
    if deadline is None:
        return COMPILE_SECONDS
    return max(0.0, min(COMPILE_SECONDS, (deadline - time.monotonic()) / 2))


def _passed(region: Region) -> _PassedRegion:
    kind = _KINDS[region.space] | (_READ_ONLY if region.read_only else 0)
    return _PassedRegion(region.base, region.size, region.data.ctypes.data, kind)


def _room(size: int) -> npt.NDArray[Any]:
    """Zeroed bytes at an address that suits every vector."""
    raw = np.zeros(size + 2 * ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size + 1]


def _restore(regions: Sequence[Region], before: Sequence[npt.NDArray[np.uint8]]) -> None:
    for region, data in zip(regions, before, strict=True):
        region.data[:] = data
