"""The one rig that tries a kernel and times it: on its first launch its result is looked at.

In comes what was prepared, a kernel with its machine code say; out go seconds, sample by sample. A
rig of a kind makes the arguments and says what is right; an error of ours drops a candidate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from warploom.errors import DeviceError
from warploom.kernel.ir import Kernel
from warploom.runtime.callable import load
from warploom.runtime.compile import arch_of, compile_cuda
from warploom.runtime.driver import Launch, open_driver
from warploom.runtime.measure import clock, gpu_library, measure
from warploom.search.workers.far import Far, Measuring

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel with its machine code; without any it is compiled when it is loaded."""

    kernel: Kernel
    code: bytes = b""


def built(kernel: Kernel, text: str, arch: str) -> Built:
    """The kernel compiled, which may be done in a process of its own."""
    made = compile_cuda(text, arch_of(kernel, arch), kind="cubin", contract=False)
    return Built(kernel, made.code)


class Bench(Protocol[P_contra]):
    """Where what was prepared is measured: a rig here, or that of a worker."""

    device: str
    arch: str

    def measure(self, prepared: P_contra, samples: int, /) -> Sequence[float]: ...


class Rig(ABC, Generic[P]):
    """A device, and launches of what was measured last."""

    def __init__(self, device: str, arch: str = "") -> None:
        self.device, self.arch = device, arch
        self._last: tuple[P, Sequence[Launch]] | None = None

    @abstractmethod
    def launches(self, prepared: P) -> Sequence[Launch]:
        """Launches on different memory, after the first gave the right result."""

    def measure(self, prepared: P, samples: int) -> Sequence[float]:
        """Seconds of one launch."""
        if self._last is None or self._last[0] is not prepared:
            self._last = None  # its memory is given back first
            self._last = prepared, self.launches(prepared)
        return self.timed(self._last[1], samples)

    def timed(self, launches: Sequence[Launch], samples: int) -> Sequence[float]:
        return measure(launches, samples=samples, timer=clock()).samples


class GpuRig(Rig[P]):
    """A GPU by its number."""

    def __init__(self, gpu: int = 0) -> None:
        driver, self.gpu = open_driver(), gpu
        arch = driver.architecture(gpu)
        super().__init__(f"{driver.name(gpu)} {arch}", arch)

    def tried(
        self, built: Built, sets: Sequence[list[Any]], right: Callable[[list[Any]], bool]
    ) -> list[Launch]:
        """Launches on each set of arguments, after the first gave what is right."""
        function = load(built.kernel, "cuda")
        if built.code:
            function.adopt(built.code, self.gpu)
        function(*sets[0])
        if not right([on_host(each) for each in sets[0]]):
            raise DeviceError(f"'{built.kernel.name}' computes a wrong result on this GPU")
        return [function.prepare(*each) for each in sets]


class FarRig(Far):
    """The rig of a worker: `make` with its arguments makes it there."""

    def __init__(self, crew: Measuring, make: Callable[..., object], /, *args: Any) -> None:
        super().__init__(crew, make, *args)
        self.device, self.arch = self.told("device", "arch")


def on_gpu(value: Any, gpu: int = 0) -> Any:
    """An array of PyTorch or CuPy with the numbers of one of NumPy; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    library, module = gpu_library()
    if library == "torch":
        return module.from_numpy(value).cuda(gpu)
    with module.cuda.Device(gpu):
        return module.asarray(value)


def on_host(value: Any) -> Any:
    """An array of PyTorch or CuPy as one of NumPy; anything else as it is."""
    if hasattr(value, "cpu"):
        return value.cpu().numpy()
    return value.get() if hasattr(value, "get") else value
