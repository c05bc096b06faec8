"""Rings that share stages, turns of warp groups, factors in registers: what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from warploom.emit.cuda import cuda
from warploom.errors import CheckError, EmitError
from warploom.kernel import ir
from warploom.kernel.check import check
from warploom.kernel.ir import Kernel, OrderedBarrier, Ring, WarpgroupProduct
from warploom.loopnest.attention.kernel import kernel_of
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.machine.record import H200

Change = Callable[[ir.Stmt], tuple[ir.Stmt, ...]]


def plain() -> Kernel:
    return kernel_of(
        Attention(1, 1, 128, 256, 64), AttentionTiling(2, 64, ahead=True, turns=True), H200
    )


def changed(kernel: Kernel, change: Change) -> Kernel:
    """The kernel with others in place of each statement, those inside others too."""

    def of(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        made: list[ir.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ir.For | Ring):
                stmt = replace(stmt, body=of(stmt.body))
            made += change(stmt)
        return tuple(made)

    return replace(kernel, body=of(kernel.body))


def without_ends(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return () if isinstance(stmt, OrderedBarrier) and stmt.ends else (stmt,)


def twice(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return (stmt, stmt) if isinstance(stmt, OrderedBarrier) and not stmt.ends else (stmt,)


def with_barriers(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
    begins = isinstance(stmt, OrderedBarrier) and not stmt.ends
    return (stmt, ir.Barrier("block")) if begins else (stmt,)


def other_stages(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
    if isinstance(stmt, Ring) and stmt.var == "k_turn_first":
        return (replace(stmt, stages=1),)
    return (stmt,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_ends, "has no end"),
        (twice, "begins inside of another"),
        (with_barriers, "one after another"),
        (other_stages, "in common"),
    ],
)
def test_what_is_wrong_is_refused(change: Change, said: str) -> None:
    check(plain())
    with pytest.raises(CheckError, match=said):
        check(changed(plain(), change))


def test_a_factor_in_registers_begins_with_a_word() -> None:
    def shifted(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
        if isinstance(stmt, WarpgroupProduct) and isinstance(stmt.a, ir.Cell):
            assert stmt.a.index is not None
            return (replace(stmt, a=replace(stmt.a, index=stmt.a.index // 8 * 8 // 2 + 1)),)
        return (stmt,)

    with pytest.raises(EmitError, match="inside a word"):
        cuda(changed(plain(), shifted))
