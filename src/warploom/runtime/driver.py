"""The CUDA driver's own library, called through ctypes: machine code in, functions out.

A launch from Python hardly gets cheaper: one foreign call with four arguments that were made
beforehand. Nothing has to be installed for it; whoever has a GPU has this library. The contexts are
the primary ones, which PyTorch and CuPy use too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from warploom.errors import DeviceError
from warploom.kernel.pool import asked_name
from warploom.options import CUDA_LIBRARIES

# CUdevice_attribute: the two halves of the compute capability.
_MAJOR, _MINOR = 75, 76
# CUfunction_attribute: the most dynamic shared memory that a launch may ask for.
_MOST_DYNAMIC = 8
_NOT_FOUND = 500  # CUresult: a module has nothing of this name
# CUresult: the calling thread has no context, or that of another device.
_OF_ANOTHER_CONTEXT = (201, 400)

Sides: TypeAlias = tuple[int, int, int]
Launch: TypeAlias = Callable[[], object]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig, as cuLaunchKernelEx reads it."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


class Driver:
    """The library with its errors as exceptions."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the library; DeviceError with the driver's word if it fails."""
        function = getattr(self.library, name, None)
        if function is None:
            raise DeviceError(
                f"this CUDA driver has no '{name}'",
                advice="a driver for CUDA 12 or later is needed",
            )
        status = function(*arguments)
        if status:
            raise DeviceError(f"the CUDA driver refused '{name}': {self.word(status)}")

    def word(self, status: int) -> str:
        """The driver's name of an error."""
        name = ctypes.c_char_p()
        self.library.cuGetErrorName(status, ctypes.byref(name))
        return f"{(name.value or b'unknown error').decode(errors='replace')} ({status})"

    def devices(self) -> int:
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def name(self, device: int) -> str:
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, len(name), self._device(device))
        return name.value.decode(errors="replace")

    def architecture(self, device: int) -> str:
        """What the compiler calls a device: `sm_90`."""
        halves = []
        for attribute in (_MAJOR, _MINOR):
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self._device(device))
            halves.append(value.value)
        return "sm_{}{}".format(*halves)

    def _device(self, device: int) -> ctypes.c_int:
        found = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(found), device)
        return found

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Makes a device the current one of this thread, for a while."""
        context = self._contexts.get(device)
        if context is None:
            context = ctypes.c_void_p()
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device(device))
            self._contexts[device] = context
        self.call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            popped = ctypes.c_void_p()
            self.call("cuCtxPopCurrent_v2", ctypes.byref(popped))

    def load(self, code: bytes, name: str, device: int) -> Function:
        """One function of a module of machine code, on one device."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        with self.on(device):
            self.call("cuModuleLoadData", ctypes.byref(module), code)
            self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            shared = self._asked(module, name)
            if shared:
                self.call("cuFuncSetAttribute", function, _MOST_DYNAMIC, shared)
        # Made once: every launch passes it on as it is.
        made = ctypes.c_void_p.from_param(function.value)
        return Function(self, device, made, function.value or 0, shared)

    def _asked(self, module: ctypes.c_void_p, name: str) -> int:
        """The dynamic shared memory of a function, which our texts say in a constant beside it."""
        if not hasattr(self.library, "cuModuleGetGlobal_v2"):
            return 0
        place, size = ctypes.c_uint64(), ctypes.c_size_t()
        constant = asked_name(name).encode()
        status = self.library.cuModuleGetGlobal_v2(
            ctypes.byref(place), ctypes.byref(size), module, constant
        )
        if status == _NOT_FOUND:
            return 0
        if status:
            raise DeviceError(f"the CUDA driver refused a module: {self.word(status)}")
        found = ctypes.c_uint()
        self.call("cuMemcpyDtoH_v2", ctypes.byref(found), place, ctypes.c_size_t(4))
        return found.value


@dataclass(frozen=True, slots=True)
class Function:
    """A loaded function."""

    driver: Driver
    device: int
    handle: Any
    address: int = 0
    shared_bytes: int = 0

    @property
    def enqueue(self) -> Callable[..., int]:
        """The driver's launch: configuration, function, table of arguments, nothing."""
        launch: Callable[..., int] = self.driver.library.cuLaunchKernelEx
        return launch

    def again(self, status: int, config: Any, table: Any) -> None:
        """A launch that was refused, once more if its device was not the current one."""
        if status in _OF_ANOTHER_CONTEXT:
            with self.driver.on(self.device):
                status = self.enqueue(config, self.handle, table, None)
        if status:
            raise DeviceError(f"the launch failed: {self.driver.word(status)}")


class Configurations:
    """The configuration of a launch for each stream it was asked for; none is changed later, so
    that threads can share them."""

    def __init__(self, grid: Sides, block: Sides, shared_bytes: int = 0) -> None:
        self._grid, self._block, self._shared = grid, block, shared_bytes
        self.references: dict[int, Any] = {}  # a reference keeps its configuration alive

    def reference(self, stream: int) -> Any:
        """What the driver is given for a stream (the address of one, 0 for the default)."""
        config = LaunchConfig(
            (ctypes.c_uint * 3)(*self._grid),
            (ctypes.c_uint * 3)(*self._block),
            self._shared,
            stream,
        )
        return self.references.setdefault(stream, ctypes.byref(config))


class Table:
    """The arguments of a launch in memory: a cell for each, and the table of their addresses."""

    __slots__ = ("cells", "memory", "reference")

    def __init__(self, values: Sequence[int | bytes]) -> None:
        """Addresses of arrays as integers; whatever is passed by value as bytes."""
        self.cells: list[Any] = [
            ctypes.c_uint64(each)
            if isinstance(each, int)
            else (ctypes.c_ubyte * len(each)).from_buffer_copy(each)
            for each in values
        ]
        addresses = [ctypes.addressof(cell) for cell in self.cells]
        # The reference keeps its table alive, but not what the table points to.
        self.memory = (ctypes.c_void_p * len(addresses))(*addresses)
        self.reference = ctypes.byref(self.memory)


@lru_cache(maxsize=1)
def open_driver() -> Driver:
    """The driver of this machine; an error where there is none."""
    for name in CUDA_LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return Driver(library)
    raise DeviceError(
        "there is no CUDA driver on this machine",
        advice="use the device 'simulator', 'c' or 'ptx', which need no GPU",
    )
