"""Fused attention: two products by wgmma with the softmax between them, in registers.

For softmax(c·Q·Kᵀ)·V as `loopnest/attention/stated.py` reads it, on machines that have products by
warp groups and tensor copies. What is decided is a space of its own (`loopnest/attention/`).
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.attention.space import FEW_ROWS
from warploom.loopnest.attention.stated import attention_of
from warploom.loopnest.strategies.form import ATTENTION, PACKED, NotMeantError, Room, Variant

NAME, SPLIT = "fused-attention", "split-attention"


def variants(program: ir.Program, _: bool, room: Room) -> list[Variant]:
    if not room.warp_groups:
        raise NotMeantError("the machine has no products by warp groups")
    attention_of(program)
    return [Variant(NAME, program, space=ATTENTION)]


def split(program: ir.Program, _: bool, room: Room) -> list[Variant]:
    """For few queries, as in decoding: memory says how long it takes, and has to be asked by all
    processors."""
    if not room.warp_groups:
        raise NotMeantError("the machine has no products by warp groups")
    made = attention_of(program).attention
    if made.queries * made.groups > FEW_ROWS:
        raise NotMeantError(
            f"{made.queries} queries of {made.groups} heads that share keys are more than "
            f"{FEW_ROWS}"
        )
    return [Variant(SPLIT, program, space=PACKED)]
