"""Expressions of the CC 2022 paper, small."""

from __future__ import annotations

from collections.abc import Callable

from warploom.array import build as al
from warploom.array.language.ir import Program, Term
from warploom.array.types import array
from warploom.kernel.dtype import i32

i, j, k, n, s, t = al.sizes("i j k n s t")

To = Callable[[Term], Term]


def listing_1(to: To = al.to_local) -> Program:
    """Loops A to E: rows are computed to a buffer by B and C, and read column by column by D, E."""

    def row(x: Term) -> Term:
        buffer = to(al.map_(lambda r: al.map_(lambda v: v * 2, r), x))
        columns = al.transpose(buffer)
        return al.transpose(al.map_(lambda c: al.map_(lambda v: v + 1, c), columns))

    return al.program("listing_1", lambda x: al.map_(row, x), x=array(i32, i, j, k))


def listing_3(to: To = al.to_local) -> Program:
    """Maps A to D: a product in tiles of tiles, a sum in tiles. A plan numbers C, D before B."""

    def tile(x: Term) -> Term:
        inner = al.map_(lambda p: al.map_(lambda v: v * 3, p), al.split(t, x))
        return al.map_(lambda v: v + 5, al.join(to(inner)))

    return al.program(
        "listing_3", lambda x: al.join(al.map_(tile, al.split(s, x))), x=array(i32, n)
    )
