"""Warp-group tile: products of matrices by wgmma, factors by tensor copies into a ring of stages.

For sums of products of converted loads of numbers of sixteen and eight bits, on machines that have
both. What is decided is a space of its own (`loopnest/matrix/`): tiles, stages, warp groups,
clusters, the order of tiles, and how results leave.
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.strategies.form import MATRIX, TURNED, NotMeantError, Room, Variant

NAME = "warp-group-tile"
FEW = 128  # rows that may be columns of tiles: tiles have few columns sooner than few rows
# So they may where there are few tiles, which narrower ones make more of.
TILE = 128


def variants(program: ir.Program, _: bool, room: Room) -> list[Variant]:
    if not room.warp_groups:
        raise NotMeantError("the machine has no products by warp groups")
    found = matrix_product(program)
    made = [Variant(NAME, program, space=MATRIX)]
    if found.rows.size <= FEW or blocks(program) < room.processors:
        matrix_product(program, turned=True)
        made.append(Variant(NAME, program, space=TURNED))
    return made


def blocks(program: ir.Program) -> int:
    """How many tiles of usual size there are."""
    found = matrix_product(program)
    high, wide = (-(-axis.size // TILE) for axis in (found.rows, found.columns))
    return found.batches * high * wide
