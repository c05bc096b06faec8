"""Warp-group tile: products of matrices by wgmma, factors by tensor copies into a ring of stages.

For sums of products of converted loads of numbers of sixteen and eight bits, on machines that have
both. What is decided is a space of its own (`loopnest/matrix/`): tiles, stages, warp groups,
clusters, the order of tiles, and how results leave.
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.computation import Computation
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.strategies.form import MATRIX, NotMeantError, Variant
from warploom.machine.record import Machine

NAME = "warp-group-tile"


def variants(program: ir.Program, machine: Machine) -> list[Variant]:
    if not (machine.warp_group_products and machine.tensor_copies):
        raise NotMeantError(f"'{machine.name}' has no products by warp groups")
    matrix_product(Computation.of(program))
    return [Variant(NAME, program, space=MATRIX)]
