"""How fast a kernel of the catalogue is on this machine's GPU, beside a copy of as many bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from warploom.catalogue.entry import Case, Entry, Parameter, Parameters, Size
from warploom.errors import CheckError
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.runtime.driver import Launch
from warploom.runtime.gpu import machine_of
from warploom.runtime.measure import Timing, copy_ceiling, gpu_library, rotation
from warploom.runtime.rig import Built, GpuRig, on_gpu

TIMED_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds per launch, the bytes it must move, and the bandwidth of a copy of as many."""

    size: dict[str, int]
    settings: dict[str, Parameter]
    seconds: float
    spread: float
    bytes: int
    ceiling: float

    @property
    def fraction(self) -> float:
        """The achieved fraction of the copy's bandwidth."""
        return self.bytes / self.seconds / self.ceiling


def time_on_gpu(
    entry: Entry, settings: dict[str, Parameter], size: Size | None = None, samples: int = 25
) -> Timed:
    """Runs on random inputs, checks the result, then measures; an error where there is no GPU.

    What is left open is decided for the size and the GPU."""
    gpu_library()  # without a GPU nothing else needs to be done first
    chosen = named_size(entry, settings, size) if size else timed_size(entry, settings)
    decided = entry.settings(settings, chosen, machine_of(0))
    kernel = entry.kernel(**decided)
    bench = GpuBench(entry, settings, chosen)
    timing = Timing(tuple(bench.measure(Built(kernel), samples)))
    moved = bytes_of(bench.case(kernel))
    ceiling, _ = copy_ceiling(moved, samples=samples)
    return Timed(chosen, decided, timing.median, timing.spread, moved, ceiling)


class GpuBench(GpuRig[Built]):
    """Random inputs of one size on the GPU, and as many copies as exceed its cache: what kernels of
    one entry are checked and timed on."""

    def __init__(self, entry: Entry, given: Parameters, size: Size, gpu: int = 0) -> None:
        super().__init__(gpu)
        self.entry, self.settings, self.size = entry, given, size
        self.machine = machine_of(gpu)
        self._cases: dict[tuple[str, ...], Case] = {}
        self._sets: dict[tuple[str, ...], list[list[Any]]] = {}

    def case(self, kernel: Kernel) -> Case:
        """One for all kernels that take the same; they compute the same."""
        names = tuple(param.name for param in kernel.params)
        if names not in self._cases:
            self._cases[names] = self.entry.case(kernel, self.size, 0, **self.settings)
        return self._cases[names]

    def launches(self, prepared: Built) -> list[Launch]:
        kernel, case = prepared.kernel, self.case(prepared.kernel)
        names = tuple(param.name for param in kernel.params)
        sets = self._sets.setdefault(names, [])
        # What an earlier kernel stored must not be taken for this one's.
        count = 1 if sets else min(16, rotation(bytes_of(case)))
        sets[:count] = [arguments_on_gpu(kernel, case, self.gpu) for _ in range(count)]
        return self.tried(prepared, sets, partial(self.entry.agrees, kernel, case))


def timed_size(entry: Entry, settings: dict[str, Parameter]) -> dict[str, int]:
    """The largest of the entry's sizes, grown in all directions to a few hundred megabytes."""
    kernel = entry.kernel(**settings)
    largest = max(entry.sizes(**entry.settings(settings)), key=lambda s: math.prod(s.values()))
    small = bytes_of(entry.case(kernel, largest, 0, **settings))
    growth = max(1.0, TIMED_BYTES / small) ** (1 / len(largest))
    return {name: int(value * growth) // 32 * 32 or value for name, value in largest.items()}


def named_size(entry: Entry, settings: dict[str, Parameter], size: Size) -> dict[str, int]:
    """A size by exactly the names that the entry's own sizes have."""
    names = set(entry.sizes(**entry.settings(settings))[0])
    empty = next((name for name, value in size.items() if value < 1), None)
    if empty is not None:
        raise CheckError(f"{empty}={size[empty]} leaves '{entry.name}' nothing to do")
    if set(size) != names:
        raise CheckError(
            f"'{entry.name}' needs more sizes than {' and '.join(size)}",
            advice="give " + ", ".join(f"{name}=…" for name in sorted(names)),
        )
    return dict(size)


def scalars_of(
    entry: Entry, settings: dict[str, Parameter], size: Size, kernel: Kernel
) -> dict[str, int]:
    """The whole numbers that a kernel is launched with for a size."""
    wanted = [each for each in kernel.params if not isinstance(each, ArrayParam)]
    names = [each.name for each in wanted if not each.dtype.is_float]
    if set(names) <= set(size):
        return {name: size[name] for name in names}
    case = entry.case(kernel, size, 0, **settings)
    given = zip(kernel.params, case.arguments, strict=True)
    return {param.name: int(value) for param, value in given if param.name in names}


def bytes_of(case: Case) -> int:
    return sum(each.nbytes for each in case.arguments if isinstance(each, np.ndarray))


def arguments_on_gpu(kernel: Kernel, case: Case, gpu: int = 0) -> list[Any]:
    """Fresh arguments as arrays of PyTorch or CuPy; what is passed by value stays here."""
    by_value = [isinstance(p, ArrayParam) and p.space == "constant" for p in kernel.params]
    fresh = zip(by_value, case.fresh(), strict=True)
    return [each if stays else on_gpu(each, gpu) for stays, each in fresh]
