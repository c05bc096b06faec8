"""Packed weights: few rows times integers of four or eight bits, which are read as they lie.

For sums of converted numbers of sixteen bits times weights that shifts and masks take out of words,
with a scale for each group, on machines that have clusters of blocks. What is decided is a space of
its own (`loopnest/weights/`).
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.strategies.form import WEIGHTS, NotMeantError, Room, Variant
from warploom.loopnest.weights.product import weight_product

NAME = "packed-weights"


def variants(program: ir.Program, _: bool, room: Room) -> list[Variant]:
    if not room.warp_groups:
        raise NotMeantError("the machine has no clusters of blocks")
    weight_product(program)
    return [Variant(NAME, program, space=WEIGHTS)]
