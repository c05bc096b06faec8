"""Launching on an NVIDIA GPU: cuda.core where it is installed, CuPy elsewhere.

This is the only module that imports cuda.core, and it does so when a kernel is first launched.
Both ways get the same things: machine code, a function name, addresses and packed scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.errors import DeviceError, UnsupportedError, missing_extra
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.runtime.compile import compile_cuda
from warploom.runtime.view import View

Grid = tuple[int, int, int]
# An address (Python int), a NumPy scalar, or the bytes of a constant array.
Packed = int | np.generic | np.ndarray[Any, np.dtype[Any]]


Launch = Callable[[], object]


class Launcher(Protocol):
    """A loaded function; `bind` prepares a launch that costs little to repeat."""

    def bind(self, grid: Grid, block: Grid, arguments: Sequence[Packed], stream: int) -> Launch: ...


@dataclass(slots=True)
class _Core:
    """A function loaded by cuda.core."""

    core: Any
    function: Any

    def bind(self, grid: Grid, block: Grid, arguments: Sequence[Packed], stream: int) -> Launch:
        if any(isinstance(each, np.ndarray) for each in arguments):
            return self._bind_with_structures(grid, block, arguments, stream)
        config = self.core.LaunchConfig(grid=grid, block=block)
        if stream:
            target = self.core.Stream.from_handle(stream)
        else:
            target = self.core.Device().default_stream
        return partial(self.core.launch, target, config, self.function, *arguments)

    def _bind_with_structures(
        self, grid: Grid, block: Grid, arguments: Sequence[Packed], stream: int
    ) -> Launch:
        # cuda.core passes no structures by value, the driver's own call does: it takes the
        # addresses of all arguments.
        driver = import_module("cuda.bindings.driver")
        held = [np.uint64(each) if isinstance(each, int) else each for each in arguments]
        storage = [np.ascontiguousarray(each) for each in held]
        addresses = np.array([each.ctypes.data for each in storage], dtype=np.uint64)
        handle = getattr(self.function, "handle", None) or self.function._handle
        function, target = driver.CUfunction(int(handle)), driver.CUstream(stream)

        def launch() -> None:
            assert len(storage) == len(addresses)  # what the addresses point to stays alive
            where = addresses.ctypes.data
            status, *_ = driver.cuLaunchKernel(function, *grid, *block, 0, target, where, 0)
            if int(status):
                raise DeviceError(f"the launch failed: {status}")

        return launch


@dataclass(slots=True)
class _CupyFunction:
    """A function loaded by CuPy."""

    cupy: Any
    function: Any

    def bind(self, grid: Grid, block: Grid, arguments: Sequence[Packed], stream: int) -> Launch:
        target = self.cupy.cuda.ExternalStream(stream) if stream else self.cupy.cuda.Stream.null
        return partial(self.function, grid, block, tuple(arguments), stream=target)


class GpuFunction:
    """A kernel compiled for the GPU of this machine; launches do not wait for the result."""

    def __init__(self, kernel: Kernel, device: int = 0, contract: bool = False) -> None:
        self.kernel = kernel
        self.text = cuda(kernel)
        self.name = function_name(kernel, "cuda")
        self.device = device
        self.contract = contract
        self._launcher: Launcher | None = None

    def bind(
        self, arguments: Sequence[View | int | float], grid: Grid, stream: Any = None
    ) -> Launch:
        """A launch with these arguments: one per parameter, in order, already checked."""
        if self._launcher is None:
            self._launcher = load_function(
                self.text, self.name, self.device, contract=self.contract
            )
        packed = [
            _pack(param, given) for param, given in zip(self.kernel.params, arguments, strict=True)
        ]
        handle = stream_handle(stream, arguments)
        return self._launcher.bind(grid, self.kernel.block, packed, handle)


def _pack(param: Any, given: View | int | float) -> Packed:
    if isinstance(given, View):
        if isinstance(param, ArrayParam) and param.space == "constant":
            assert given.host is not None
            values = np.ascontiguousarray(given.host).reshape(-1)
            structure = np.dtype([("at", param.dtype.numpy, (values.size,))])
            return values.view(structure)[0:1].reshape(())
        return given.pointer
    number: np.generic = param.dtype.numpy.type(given)
    return number


def load_function(text: str, name: str, device: int = 0, *, contract: bool = True) -> Launcher:
    """Compiles CUDA C++ for the GPU of this machine and loads one function of it."""
    core = _cuda_core()
    if core is not None:
        gpu = core.Device(device)
        gpu.set_current()
        major, minor = gpu.compute_capability
        code = compile_cuda(text, f"sm_{major}{minor}", kind="cubin", contract=contract).code
        return _Core(core, core.ObjectCode.from_cubin(code).get_kernel(name))
    cupy = _cupy()
    if cupy is not None:
        arch = f"sm_{cupy.cuda.Device(device).compute_capability}"
        module = cupy.cuda.function.Module()
        module.load(compile_cuda(text, arch, kind="cubin", contract=contract).code)
        return _CupyFunction(cupy, module.get_function(name))
    raise missing_extra("cuda-core", "cuda")


def gpu_name() -> str | None:
    """The name of the first GPU, or None where there is none (or nothing to reach it with)."""
    try:
        driver = import_module("cuda.bindings.driver")
        status, *_ = driver.cuInit(0)
    except (ImportError, RuntimeError):  # no bindings, or no driver for them to load
        return _gpu_name_from_cupy()
    if int(status) or int(driver.cuDeviceGetCount()[1]) == 0:
        return None
    _, name = driver.cuDeviceGetName(128, driver.cuDeviceGet(0)[1])
    return str(name.split(b"\0")[0].decode(errors="replace"))


def _gpu_name_from_cupy() -> str | None:
    cupy = _cupy()
    if cupy is None:
        return None
    try:
        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except cupy.cuda.runtime.CUDARuntimeError:
        return None


def _cuda_core() -> Any:
    for name in ("cuda.core", "cuda.core.experimental"):
        try:
            module = import_module(name)
        except (ImportError, RuntimeError):  # not installed, or no driver to load
            continue
        if hasattr(module, "ObjectCode") and hasattr(module, "launch"):
            return module
    return None


def _cupy() -> Any:
    try:
        return import_module("cupy")
    except ImportError:
        return None


def stream_handle(stream: Any, arguments: Sequence[View | int | float]) -> int:
    """The address of a stream: the given one, or the current one of the arrays' library."""
    if isinstance(stream, int):
        return stream
    if stream is not None:
        return _handle_of(stream)
    for each in arguments:
        if isinstance(each, View) and each.where == "gpu":
            library = type(each.owner).__module__.partition(".")[0]
            if library == "torch":
                return int(import_module("torch").cuda.current_stream().cuda_stream)
            if library == "cupy":
                return int(import_module("cupy").cuda.get_current_stream().ptr)
    return 0


def _handle_of(stream: Any) -> int:
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise UnsupportedError(
        f"a {type(stream).__name__} is no CUDA stream",
        advice="give a stream of PyTorch, CuPy or cuda.core, or its address",
    )
