"""Warp-group tile: products of matrices by wgmma, factors by tensor copies into a ring of stages.

For sums of products of converted loads of numbers of sixteen and eight bits, on machines that have
both. What is decided is a space of its own (`loopnest/matrix/`): tiles, stages, warp groups,
clusters, the order of tiles, and how results leave.
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.strategies.form import MATRIX, NotMeantError, Room, Variant

NAME = "warp-group-tile"


def variants(program: ir.Program, _: bool, room: Room) -> list[Variant]:
    if not room.warp_groups:
        raise NotMeantError("the machine has no products by warp groups")
    matrix_product(program)
    return [Variant(NAME, program, space=MATRIX)]
