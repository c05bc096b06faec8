"""Timing on a GPU: device events, warm-up, buffers rotated beyond the cache, medians.

In come functions that each launch the same work on their own buffers (`Callable.prepare` makes
them); out go times. PyTorch or CuPy provides the events, whichever is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import median, quantiles
from typing import Any, Literal, Protocol

from warploom.errors import DeviceError, UnsupportedError

Library = Literal["auto", "torch", "cupy"]
# Twice the level-2 cache of the largest GPU at hand (H200: 50 MB) and some room.
BEYOND_CACHE = 128 << 20
MIN_SAMPLE_S = 2e-4
MAX_PASSES = 1000


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per launch, one number for each sample."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def spread(self) -> float:
        """The middle half of the samples, relative to the median."""
        if len(self.samples) < 2:
            return 0.0
        low, _, high = quantiles(self.samples, n=4)
        return (high - low) / self.median if self.median else 0.0

    def rate(self, amount: float) -> float:
        """Bytes (or operations) per second, for a launch that moves `amount` of them."""
        return amount / self.median


class Clock(Protocol):
    """Measures what the device does between two calls."""

    def start(self) -> None: ...

    def stop(self) -> float:
        """Waits for the device; seconds since `start`."""
        ...

    def wait(self) -> None: ...


class _Torch:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._from, self._to = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def start(self) -> None:
        self._from.record()

    def stop(self) -> float:
        self._to.record()
        self._to.synchronize()
        return float(self._from.elapsed_time(self._to)) / 1e3

    def wait(self) -> None:
        self._torch.cuda.synchronize()


class _Cupy:
    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._from, self._to = cupy.cuda.Event(), cupy.cuda.Event()

    def start(self) -> None:
        self._from.record()

    def stop(self) -> float:
        self._to.record()
        self._to.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(self._from, self._to)) / 1e3

    def wait(self) -> None:
        self._cupy.cuda.Device().synchronize()


def clock(library: Library = "auto") -> Clock:
    """Events of PyTorch or CuPy on the current stream."""
    name, module = gpu_library(library)
    return _Torch(module) if name == "torch" else _Cupy(module)


def gpu_library(library: Library = "auto") -> tuple[str, Any]:
    """The array library to measure with; an error if there is none, or no GPU."""
    for name in ("torch", "cupy") if library == "auto" else (library,):
        try:
            module = import_module(name)
        except ImportError:
            continue
        if not module.cuda.is_available():
            raise DeviceError("there is no GPU to measure on")
        return name, module
    wanted = "PyTorch or CuPy" if library == "auto" else library
    raise UnsupportedError(f"measuring needs {wanted}, which is not installed")


def measure(
    launches: Sequence[Callable[[], object]],
    *,
    samples: int = 25,
    warmup: int = 3,
    timer: Clock | None = None,
) -> Timing:
    """Seconds per launch. Each sample passes over all launches, often enough to be measurable.

    Launches should work on different buffers that together exceed the cache: see `rotation`.
    """
    if not launches or samples < 1:
        raise DeviceError("nothing to measure")
    timer = timer or clock()
    for _ in range(max(1, warmup)):
        _pass(launches, 1)
    timer.wait()
    passes = _passes(launches, timer)
    times = []
    for _ in range(samples):
        timer.start()
        _pass(launches, passes)
        times.append(timer.stop() / (passes * len(launches)))
    return Timing(tuple(times))


def _passes(launches: Sequence[Callable[[], object]], timer: Clock) -> int:
    """How often to go round so that a sample is long against the resolution of events."""
    timer.start()
    _pass(launches, 1)
    once = max(timer.stop(), 1e-9)
    return min(MAX_PASSES, max(1, round(MIN_SAMPLE_S / once + 0.5)))


def _pass(launches: Sequence[Callable[[], object]], times: int) -> None:
    for _ in range(times):
        for launch in launches:
            launch()


def rotation(bytes_per_launch: int, beyond: int = BEYOND_CACHE) -> int:
    """How many sets of buffers it takes to exceed the cache.

    >>> rotation(1 << 20), rotation(1 << 30)
    (128, 1)
    """
    if bytes_per_launch < 1:
        raise DeviceError("a launch that moves nothing needs no buffers")
    return max(1, -(-beyond // bytes_per_launch))


def copy_ceiling(
    bytes_moved: int, *, library: Library = "auto", samples: int = 25
) -> tuple[float, Timing]:
    """The bandwidth of a device-to-device copy that moves so many bytes (half read, half written).

    Measured with the same clock, rotation and medians as kernels, so that the two compare.
    """
    name, module = gpu_library(library)
    size = max(1, bytes_moved // 2)
    launches = []
    for _ in range(rotation(2 * size)):
        if name == "torch":
            source, target = (
                module.empty(size, dtype=module.uint8, device="cuda") for _ in range(2)
            )
            launches.append(_bound(target.copy_, source))
        else:
            source, target = (module.empty(size, dtype="uint8") for _ in range(2))
            launches.append(_bound(module.copyto, target, source))
    timing = measure(launches, samples=samples, timer=clock(library))
    return timing.rate(2 * size), timing


def _bound(function: Callable[..., object], *arguments: Any) -> Callable[[], object]:
    return lambda: function(*arguments)
