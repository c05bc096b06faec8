"""How large the arrays of a kernel may be: a tiled kernel comes in, a line of its header goes out.

Index arithmetic is done in 32 bits, and launches in which some expression may leave them are
refused; so the largest length is looked for with the very test that refuses them.
"""

from __future__ import annotations

from warploom.errors import CheckError, DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.arguments import Binding, check_indices
from warploom.machine.record import CUDA
from warploom.sketch.code.need import scalars_of, shapes_for
from warploom.sketch.code.tiling import Tiled

_INDEX_MAX = 2**31 - 1


def largest(tiled: Tiled) -> str:
    """The largest length of the first output, along all of its axes, that 32 bits allow."""
    low, high = 0, _INDEX_MAX
    while low < high:  # low is allowed, all above high are not
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _is_allowed(tiled, middle) else (low, middle - 1)
    first = tiled.tiling.outputs[0]
    if low == 0:
        raise CheckError("an index leaves 32 bits, however short the arrays are")
    most = " × ".join([str(low)] * len(first.shape))
    return f"indices have 32 bits: '{first.name}' of at most {most} elements"


def _is_allowed(tiled: Tiled, length: int) -> bool:
    tiling, kernel = tiled.tiling, tiled.kernel
    tiles = -(-length // tiling.outputs[0].shape[-1])
    lengths = {
        array.name: tuple(
            min(length, tiles * own) if array is tiling.outputs[0] else tiles * own
            for own in array.shape
        )
        for array in tiling.outputs
    }
    scalars = scalars_of(tiling, shapes_for(tiling, lengths))
    if max(scalars.values()) > _INDEX_MAX:
        return False
    x, y, z = (int(evaluate(side, scalars)) for side in kernel.grid)
    if any(side > most for side, most in zip((x, y, z), CUDA.grid_sides, strict=True)):
        return False
    try:
        check_indices(kernel, Binding(dict(scalars), (x, y, z)))
    except DeviceError:
        return False
    return True
