"""Fused attention: two products by wgmma with the softmax between them, in registers.

For softmax(c·Q·Kᵀ)·V as `loopnest/attention/stated.py` reads it, on machines that have products by
warp groups and tensor copies. What is decided is a space of its own (`loopnest/attention/`).
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.attention.stated import attention_of
from warploom.loopnest.strategies.form import ATTENTION, NotMeantError, Room, Variant

NAME = "fused-attention"


def variants(program: ir.Program, _: bool, room: Room) -> list[Variant]:
    if not room.warp_groups:
        raise NotMeantError("the machine has no products by warp groups")
    attention_of(program)
    return [Variant(NAME, program, space=ATTENTION)]
