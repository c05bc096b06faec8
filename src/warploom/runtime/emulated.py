"""The compiler's own PTX, run on the emulator: what a GPU would execute, without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warploom.emit.cuda import cuda
from warploom.emit.language import calling_text
from warploom.emit.spell import function_name
from warploom.kernel.descriptor import view_of
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.kernel.pool import launched_bytes
from warploom.ptx import Report, tensor_map
from warploom.ptx import load as load_ptx
from warploom.runtime.compile import DEFAULT_ARCH, arch_of, compile_cuda

Grid = tuple[int, int, int]


class EmulatedFunction:
    """A kernel compiled to PTX and loaded into the emulator."""

    def __init__(
        self,
        kernel: Kernel,
        arch: str = DEFAULT_ARCH,
        contract: bool = False,
        calls: bool = False,
    ) -> None:
        self.kernel = kernel
        self.text = calling_text(kernel, "cuda") if calls else cuda(kernel)
        self.ptx = compile_cuda(self.text, arch_of(kernel, arch), contract=contract).text
        self._function = load_ptx(self.ptx).kernel(function_name(kernel, "cuda"))

    def __call__(self, arguments: Sequence[Any], grid: Grid) -> Report:
        """NumPy arrays and numbers in the order of the parameters, already checked."""
        return self.launch(grid, self.packed(arguments))

    def launch(self, grid: Grid | int, packed: Sequence[Any], **how: Any) -> Report:
        """With the options of the emulator, as `prove=True`."""
        asked = launched_bytes(self.kernel)
        return self._function.launch(grid, self.kernel.launched, packed, shared_bytes=asked, **how)

    def packed(self, arguments: Sequence[Any]) -> list[Any]:
        """What the emulator is given for each parameter, maps last."""
        named = {
            param.name: _pack(param, given)
            for param, given in zip(self.kernel.params, arguments, strict=True)
        }
        index = self.kernel.index
        scalars = {e.name: int(named[e.name]) for e in self.kernel.scalars if e.dtype is index}
        maps = [
            tensor_map(view_of(each, named[each.array], scalars), each.box, each.swizzle)
            for each in self.kernel.maps
        ]
        return [*named.values(), *maps]


def _pack(param: Any, given: Any) -> Any:
    if not isinstance(param, ArrayParam):
        return param.dtype.numpy.type(given)
    if param.space == "constant":
        return np.ascontiguousarray(given).tobytes()
    return given
