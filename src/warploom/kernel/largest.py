"""How large the arrays of a kernel may be, before an index leaves its type.

Launches in which some expression may leave it are refused; so the largest length is looked for with
the very test that refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from warploom.errors import DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import Binding, check_indices
from warploom.kernel.bounds import index_limits
from warploom.kernel.ir import Kernel
from warploom.machine.record import CUDA


def largest(kernel: Kernel, scalars: Callable[[int], Mapping[str, int]]) -> int:
    """The largest length whose scalars the kernel can be launched with; 0 if there is none."""
    low, high = 0, index_limits(kernel).high
    while low < high:  # low is allowed, all above high are not
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _is_allowed(kernel, scalars(middle)) else (low, middle - 1)
    return low


def _is_allowed(kernel: Kernel, scalars: Mapping[str, int]) -> bool:
    if max(scalars.values(), default=0) > index_limits(kernel).high:
        return False
    x, y, z = (int(evaluate(side, scalars)) for side in kernel.grid)
    if any(side > most for side, most in zip((x, y, z), CUDA.grid_sides, strict=True)):
        return False
    try:
        check_indices(kernel, Binding(dict(scalars), (x, y, z)))
    except DeviceError:
        return False
    return True


def bits_of(kernel: Kernel) -> str:
    return f"Indices have {8 * kernel.index.bytes} bits"


def with_largest(kernel: Kernel) -> Kernel:
    """The kernel with a line of its doc that says how large its scalars may be, all alike."""
    names = [each.name for each in kernel.scalars if each.dtype is kernel.index]
    most = largest(kernel, lambda length: dict.fromkeys(names, length)) if names else 0
    if not most:
        return kernel
    each = " each" if len(names) > 1 else ""
    said = f"{bits_of(kernel)}: {', '.join(names)} of at most {most}{each}"
    return replace(kernel, doc=f"{kernel.doc}\n{said}")
