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
        raise CheckError(f"an index leaves {bits} bits, however short the arrays are")
    lengths = " × ".join([str(most)] * len(first.shape))
    return f"{bits_of(tiled.kernel)}: '{first.name}' of at most {lengths} elements"


def _scalars(tiled: Tiled, length: int) -> dict[str, int]:
    tiling = tiled.tiling
    tiles = -(-length // tiling.outputs[0].shape[-1])
    lengths = {
        array.name: tuple(
            min(length, tiles * own) if array is tiling.outputs[0] else tiles * own
            for own in array.shape
        )
        for array in tiling.outputs
    }
    return scalars_of(tiling, shapes_for(tiling, lengths))
