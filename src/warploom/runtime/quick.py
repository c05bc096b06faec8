"""Kernels of one computation timed in quick succession, each dropped as soon as it is seen to be
slower than the best.

In comes machine code with its grid; out go nanoseconds. The first launch is checked: some elements
by what is right, all others by what the first right kernel left. One launch more is a first look.
Only what may be the best is launched many times in a CUDA graph (PyTorch), or in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from warploom.errors import DeviceError
from warploom.kernel.descriptor import view_of
from warploom.kernel.dtype import DType, decoded
from warploom.kernel.ir import MapParam
from warploom.runtime.driver import Launch, Sides, open_driver
from warploom.runtime.gpu import Loaded
from warploom.runtime.measure import clock, gpu_library
from warploom.runtime.rig import on_gpu, on_host
from warploom.runtime.tensor import encoder

SLOWER = 1.5  # times the best at a first look: no more samples
LAUNCHES = 50  # in a graph, at most
ENOUGH = 5e5  # nanoseconds of launches in a graph
REPEATS = 3
APART = 2e-4  # what two right kernels may differ by, of the largest result
UNWRITTEN = 0xFF  # in every byte of memory between kernels
LAUNCH = 2e4  # nanoseconds that a launch may take beside the kernel, as long as none was measured


@dataclass(frozen=True, slots=True)
class MapOf:
    """A tensor map that comes after the arguments: of an array of so many elements."""

    map: MapParam
    dtype: DType
    elements: int

    def encoded(self, address: int) -> np.ndarray[Any, Any]:
        whole = np.broadcast_to(np.zeros(1, self.dtype.storage), self.elements)
        made = encoder(view_of(self.map, whole, {}), self.map.box, self.map.swizzle)
        return np.frombuffer(made(address), np.uint8)


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel as it is launched; `arguments` are the names of what it takes, in order."""

    name: str
    grid: Sides
    block: Sides
    code: bytes
    arguments: tuple[str, ...]
    maps: tuple[MapOf, ...] = ()


class Runs(Protocol):
    """Kernels one after the other: see `pipeline/drawn.py`."""

    @property
    def name(self) -> str: ...
    @property
    def launches(self) -> tuple[Launched, ...]: ...
    @property
    def between(self) -> tuple[tuple[str, str, int], ...]: ...


class Quick(Protocol):
    """Where kernels are timed."""

    device: str
    arch: str

    def time(self, made: Any, best: float, /) -> tuple[float, bool]:
        """Nanoseconds, and whether more than a first look was taken; an error where it is wrong."""
        ...

    def again(self, made: Sequence[Any], rounds: int, /) -> list[float]:
        """The median of some rounds, in which all are timed side by side."""
        ...


# Which elements of an array are compared, where they are and what they should be.
Wanted = Mapping[str, tuple[Any, Any]]
Agrees = Callable[[str, Any, Any], Any]


@dataclass(slots=True, eq=False)
class QuickGpu:
    """A GPU by its number. `arrays` and `numbers` are all arguments, by their names; `wanted` says
    what is right of those that are stored."""

    arrays: Mapping[str, Any]
    numbers: Mapping[str, Any]
    wanted: Wanted
    agrees: Agrees
    dtypes: Mapping[str, DType] = field(default_factory=dict)  # of arrays of codes
    apart: float = APART
    gpu: int = 0
    device: str = ""
    arch: str = ""
    overhead: float = LAUNCH
    _own: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    _first: dict[str, Any] = field(default_factory=dict)  # what the first right kernel left
    _held: dict[str, Any] = field(default_factory=dict)
    _before: dict[str, Any] = field(default_factory=dict)
    _places: dict[str, Any] = field(default_factory=dict)
    _timer: Any = None

    def __post_init__(self) -> None:
        driver, self._timer = open_driver(), clock()
        self.arch = driver.architecture(self.gpu)
        self.device = f"{driver.name(self.gpu)} {self.arch}"
        self._held = {name: on_gpu(_signed(each), self.gpu) for name, each in self.arrays.items()}
        for name, (where, _) in self.wanted.items():
            self._places[name] = on_gpu(np.ascontiguousarray(where, np.int64), self.gpu)
            self._before[name] = self._copied(self._held[name])

    # -- launches ----------------------------------------------------------------------------------

    def _bound(self, made: Runs) -> Callable[[], Launch]:
        """A function that gives a launch of all kernels on the stream of the moment."""
        driver, own = open_driver(), self._between(made)
        given = {name: _address(each) for name, each in (*self._held.items(), *own.items())}
        given |= self.numbers
        each_kernel = [
            (Loaded(driver.load(each.code, each.name, self.gpu)), each) for each in made.launches
        ]

        def bind() -> Launch:
            bound = [
                function.bind(each.grid, each.block, _arguments(each, given), _stream())
                for function, each in each_kernel
            ]
            return bound[0] if len(bound) == 1 else partial(_one_by_one, bound)

        return bind

    def _between(self, made: Runs) -> Mapping[str, Any]:
        """Memory for what kernels have for themselves: one piece for all that are alike. What is in
        it before is no number."""
        for each in made.between:
            if each not in self._own:
                _, dtype, count = each
                there = np.full(count * np.dtype(dtype).itemsize, UNWRITTEN, np.uint8).view(dtype)
                self._own[each] = on_gpu(there, self.gpu)
        return {each[0]: self._own[each] for each in made.between}

    def time(self, made: Runs, best: float) -> tuple[float, bool]:
        try:
            return self._looked_at(made, best)
        except RuntimeError as error:  # PyTorch says so where a launch before has failed
            raise DeviceError(f"'{made.name}' failed on this GPU: {error!s:.200}") from None

    def _looked_at(self, made: Runs, best: float) -> tuple[float, bool]:
        make = self._bound(made)
        launch = make()
        first = self._checked(made, launch)
        if first > 3 * best + 10 * self.overhead:
            return first, False
        once = self._once(launch)
        if once > SLOWER * best + self.overhead:
            return once, False
        found = self._timed(make, once)
        if found < best:
            self.overhead = max(2e3, once - found)
        return found, True

    def again(self, made: Sequence[Runs], rounds: int) -> list[float]:
        makes = [self._bound(each) for each in made]
        once = [self._once(make()) for make in makes]
        times = [
            [self._timed(m, o) for m, o in zip(makes, once, strict=True)] for _ in range(rounds)
        ]
        return [float(each) for each in np.median(np.array(times), axis=0)]

    # -- whether it is right -----------------------------------------------------------------------

    def _checked(self, made: Runs, launch: Launch) -> float:
        """Nanoseconds of the first launch, whose result is compared."""
        for name in self.wanted:
            self._held[name][...] = self._before[name]
        taken = self._once(launch)
        for name, (_, right) in self.wanted.items():
            got = on_host(self._held[name][self._places[name]]).view(self.arrays[name].dtype)
            if not self.agrees(name, got, right).all() or not self._as_first(name, right):
                raise DeviceError(f"'{made.name}' computes a wrong {name} on this GPU")
        for name in self.wanted:
            self._first.setdefault(name, self._copied(self._held[name]))
        return taken

    def _as_first(self, name: str, right: Any) -> bool:
        """All that it stored beside what the first kernel did, as far apart as sums may be."""
        if name not in self._first:
            return True
        dtype = self.dtypes.get(name)
        got, first = self._held[name], self._first[name]
        if dtype is not None:
            got, first = _floats(got, dtype), _floats(first, dtype)
            right = decoded(right, dtype)
        near = self.apart * (float(np.abs(right[np.isfinite(right)]).max(initial=0.0)) + 1.0)
        part, least = dtype.rounding if dtype is not None else (0.0, 0.0)
        same = (got == first) | (abs(got - first) <= near + 2 * (least + part * abs(first)))
        return bool((same | ((got != got) & (first != first))).all())

    def _copied(self, value: Any) -> Any:
        return value.clone() if hasattr(value, "clone") else value.copy()

    # -- times -------------------------------------------------------------------------------------

    def _once(self, launch: Launch) -> float:
        self._timer.start()
        launch()
        return float(self._timer.stop()) * 1e9

    def _timed(self, make: Callable[[], Launch], once: float) -> float:
        """The median of some replays of many launches."""
        count = max(1, min(LAUNCHES, int(ENOUGH / max(once - self.overhead, 2e3))))
        replay = replayed(make, count)
        replay()
        return float(np.median([self._once(replay) for _ in range(REPEATS)])) / count


def replayed(make: Callable[[], Launch], count: int) -> Launch:
    """So many launches at a time; PyTorch has graphs, which take no time between them."""
    library, module = gpu_library()
    if library != "torch":
        plain = make()

        def in_a_loop() -> None:
            for _ in range(count):
                plain()

        return in_a_loop
    graph, stream = module.cuda.CUDAGraph(), module.cuda.Stream()
    module.cuda.synchronize()
    with module.cuda.stream(stream):  # `torch.cuda.graph` would also collect Python's garbage
        graph.capture_begin()
        try:
            launch = make()
            for _ in range(count):
                launch()
        finally:
            graph.capture_end()
    replay: Launch = graph.replay
    return replay


def _arguments(each: Launched, given: Mapping[str, Any]) -> list[Any]:
    maps = [made.encoded(given[made.map.array]) for made in each.maps]
    return [*(given[name] for name in each.arguments), *maps]


def _one_by_one(launches: Sequence[Launch]) -> None:
    for each in launches:
        each()


def _signed(array: Any) -> Any:
    """The same bits in a type that PyTorch can index: it can do little with long unsigned ones."""
    long = array.dtype.kind == "u" and array.dtype.itemsize > 1
    return array.view(f"int{8 * array.dtype.itemsize}") if long else array


def _floats(held: Any, dtype: DType) -> Any:
    """Codes in memory of a GPU as single precision."""
    library, module = gpu_library()
    if library == "torch":
        return held.view(getattr(module, dtype.value)).float()
    every = np.arange(1 << 8 * dtype.bytes, dtype=dtype.storage)
    return module.asarray(decoded(every, dtype))[held.view(str(dtype.storage))]


def _address(value: Any) -> int:
    return int(value.data_ptr() if hasattr(value, "data_ptr") else value.data.ptr)


def _stream() -> int:
    library, module = gpu_library()
    if library == "torch":
        return int(module.cuda.current_stream().cuda_stream)
    return int(module.cuda.get_current_stream().ptr)
