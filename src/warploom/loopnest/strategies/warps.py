"""Warp tile: products of matrices by mma.sync, factors by asynchronous copies into stages.

For sums of products of converted loads of f16, bf16, i8 and u8, on machines that copy to shared
memory asynchronously but have no products by warp groups: those from sm_80 on. What is decided is a
space of its own (`loopnest/matrix/warp_space.py`).
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.matrix.warp_space import check_meant
from warploom.loopnest.strategies.form import WARPS, NotMeantError, Room, Variant

NAME = "warp-tile"


def variants(program: ir.Program, _: bool, room: Room) -> list[Variant]:
    if room.warp_groups:
        raise NotMeantError("the machine has products by warp groups, which are faster")
    if not room.copies:
        raise NotMeantError("the machine has no asynchronous copies to shared memory")
    check_meant(matrix_product(program))
    return [Variant(NAME, program, space=WARPS)]
