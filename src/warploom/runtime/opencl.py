"""Running OpenCL C text through pyopencl. This is the only module that imports it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from warploom.emit.language import calling_text
from warploom.emit.opencl import opencl
from warploom.emit.spell import function_name
from warploom.errors import AbsentError, DeviceError, missing_extra
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.options import keep_caches_private
from warploom.process import find_program
from warploom.runtime.view import View

Grid = tuple[int, int, int]


def pyopencl() -> Any:
    keep_caches_private()
    try:
        return import_module("pyopencl")
    except ImportError:
        raise missing_extra("pyopencl", "opencl") from None


def first_device() -> Any:
    """The device that kernels run on."""
    cl = pyopencl()
    try:
        found = next(each for one in cl.get_platforms() for each in one.get_devices())
    except (StopIteration, cl.Error):
        raise AbsentError(
            "there is no OpenCL device",
            advice="pip install pocl-binary-distribution, or apt-get install pocl-opencl-icd",
        ) from None
    # PoCL calls a linker, and ends this process (SIGABRT) where there is none.
    if "Portable Computing Language" in found.platform.name and find_program("ld") is None:
        raise AbsentError(
            "PoCL, the OpenCL device here, needs the linker 'ld', which is not there",
            advice="install binutils, or gcc or clang with it",
        )
    return found


class OpenclFunction:
    """A kernel built for the first OpenCL device; arrays in host memory go there and back."""

    def __init__(
        self,
        kernel: Kernel,
        contract: bool = False,
        calls: bool = False,
        optimise: bool = True,
    ) -> None:
        cl = pyopencl()
        self.kernel = kernel
        device = first_device()
        self.subgroups = has_subgroup_shuffles(device)
        self.text = (
            calling_text(kernel, "opencl")
            if calls
            else opencl(kernel, subgroups=self.subgroups, contract=contract)
        )
        options = [*build_options(device), *([] if optimise else ["-cl-opt-disable"])]
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)
        try:
            # A cache may keep what the compiler said of the same text under other options.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                program = cl.Program(self._context, self.text).build(options=options)
        except cl.Error as error:
            raise DeviceError(f"the OpenCL text does not build:\n{error}") from None
        self._function = cl.Kernel(program, function_name(kernel, "opencl"))

    def __call__(self, arguments: Sequence[View | int | float], grid: Grid) -> None:
        """Arguments in the order of the parameters, already checked; waits for the result."""
        cl = pyopencl()
        flags = cl.mem_flags
        packed: list[Any] = []
        outputs: list[tuple[np.ndarray[Any, np.dtype[Any]], Any]] = []
        buffers: dict[tuple[int, int], Any] = {}  # an array that is given twice is one buffer
        for param, given in zip(self.kernel.params, arguments, strict=True):
            if isinstance(given, View) and isinstance(param, ArrayParam):
                assert given.host is not None
                span = given.pointer, given.end
                buffer = buffers.get(span)
                if buffer is None:
                    buffer = buffers[span] = cl.Buffer(
                        self._context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=given.host
                    )
                packed.append(buffer)
                if not param.const:
                    outputs.append((given.host, buffer))
            else:
                packed.append(param.dtype.numpy.type(given))
        self._function.set_args(*packed)
        size = tuple(g * b for g, b in zip(grid, self.kernel.block, strict=True))
        try:
            cl.enqueue_nd_range_kernel(self._queue, self._function, size, self.kernel.block)
            for host, buffer in outputs:
                cl.enqueue_copy(self._queue, host, buffer)
            self._queue.finish()
        except cl.Error as error:
            raise DeviceError(f"the OpenCL launch failed: {error}") from None


def build_options(device: Any) -> list[str]:
    """Divisions and roots rounded correctly, where the device can."""
    options = ["-cl-std=CL1.2", "-w"]
    if device.single_fp_config & pyopencl().device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    return options


def has_subgroup_shuffles(device: Any) -> bool:
    """Whether lanes of a sub-group can exchange values directly, with 32 lanes in a sub-group."""
    if "cl_khr_subgroup_shuffle" not in device.extensions:
        return False
    # Without a fixed size of 32 the lanes of a kernel are not those of a sub-group.
    return bool("NVIDIA" in device.vendor)
