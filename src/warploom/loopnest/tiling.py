"""Which sizes the tiles of an axis may have, one by one and together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

from warploom.errors import CheckError
from warploom.loopnest.access import Axis, Skew

Tiles: TypeAlias = Sequence[int | Sequence[int]]

# Sizes offered for one tile where the user gives only the largest.
MOST_SIZES = 16
# Ways to choose the sizes of all tiles of an axis.
MOST_TILINGS = 4096


def tilings(axis: Axis) -> tuple[tuple[int, ...], ...]:
    """The sizes that the tiles of an axis may have together, the outermost first."""
    if math.prod(map(len, axis.tiles)) > MOST_TILINGS:
        raise CheckError(
            f"the axis '{axis}' has more than {MOST_TILINGS} tilings", advice="list fewer sizes"
        )
    return tuple(row for row in product(*axis.tiles) if _fits(axis, row))


def _fits(axis: Axis, row: tuple[int, ...]) -> bool:
    total = math.prod(row)
    if axis.dynamic:
        return total < 2 * axis.span if axis.tail else axis.size % total == 0
    if not row:
        return axis.size == 1
    return row[0] == -(-axis.span // math.prod(row[1:])) if axis.tail else total == axis.size


def outer_size(axis: Axis, row: tuple[int, ...]) -> int:
    """How many tiles there are, the last of them maybe partial."""
    return -(-axis.span // math.prod(row))


def cut(
    name: str,
    size: int,
    tiles: Tiles,
    *,
    dynamic: bool = True,
    tail: bool = False,
    proper: bool = False,
    skew: Skew | None = None,
) -> Axis:
    """An axis with a tile for each entry of `tiles`: a list of sizes, or the largest.

    Where only the largest is given, the sizes are divisors of the axis (less than it, if `proper`),
    with a tail also powers of two. Tiles that no tiling has room for are left out, the outermost
    first. An axis that is not dynamic has one more tile outside, for what the others leave.
    """
    if not 1 <= size < 1 << 31:
        raise CheckError(
            f"the axis '{name}' has size {size}", advice="sizes are from 1 to 2**31 - 1"
        )
    listed = [_sizes(name, size, tile, tail, proper) for tile in tiles]
    listed = [sizes for sizes in listed if sizes]
    while True:
        span = size + (0 if skew is None else skew.most)
        made = Axis(name, size, _levels(span, listed, dynamic, tail), dynamic, tail, skew)
        if not listed or tilings(made):
            return made
        listed = listed[1:]


def _sizes(
    name: str, size: int, tile: int | Sequence[int], tail: bool, proper: bool
) -> tuple[int, ...]:
    if not isinstance(tile, int):
        sizes = tuple(sorted(set(tile)))
        if not sizes or sizes[0] < 2:
            raise CheckError(
                f"the tiles of '{name}' have sizes {list(tile)}", advice="list sizes from 2 upwards"
            )
        return sizes
    divisors = [n for n in range(2, min(tile, size - proper) + 1) if size % n == 0]
    found = set(divisors[:MOST_SIZES])
    if tail:
        found |= {1 << bit for bit in range(1, min(tile, 2 * size - 1).bit_length())}
    return tuple(sorted(found))


def _levels(
    size: int, listed: list[tuple[int, ...]], dynamic: bool, tail: bool
) -> tuple[tuple[int, ...], ...]:
    if dynamic:
        return tuple(listed)
    counts = {-(-size // n) for n in map(math.prod, product(*listed)) if tail or size % n == 0}
    outer = tuple(sorted(n for n in counts if n > 1))
    return (outer, *listed) if outer else tuple(listed) or ((1,),)  # of one iteration, but there
