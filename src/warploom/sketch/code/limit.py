"""How large the arrays of a kernel may be: a tiled kernel comes in, a line of its header out."""

from __future__ import annotations

from warploom.errors import CheckError
from warploom.kernel.largest import bits_of
from warploom.kernel.largest import largest as largest_length
from warploom.sketch.code.need import scalars_of, shapes_for
from warploom.sketch.code.tiling import Tiled


def largest(tiled: Tiled) -> str:
    """The largest length of the first output, along all of its axes, that its indices allow."""
    most = largest_length(tiled.kernel, lambda length: _scalars(tiled, length))
    first = tiled.tiling.outputs[0]
    if most == 0:
        bits = 8 * tiled.kernel.index.bytes
        raise CheckError(f"an index overflows {bits} bits, however short the arrays are")
    lengths = " × ".join([str(most)] * len(first.shape))
    return f"{bits_of(tiled.kernel)}: '{first.name}' of at most {lengths} elements"


def _scalars(tiled: Tiled, length: int) -> dict[str, int]:
    """The parameters of a launch whose first output is this long along all of its axes."""
    tiling = tiled.tiling
    first = tiling.outputs[0]
    tiles = [-(-length // own) for own in first.shape]
    lengths = {
        array.name: tuple(count * own for count, own in zip(tiles, array.shape, strict=True))
        for array in tiling.outputs
    }
    lengths[first.name] = (length,) * len(first.shape)
    return scalars_of(tiling, shapes_for(tiling, lengths))
