# ruff: noqa: E501 - tables and programs read better with a line each
"""Blocks, the running order and live registers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.errors import CheckError
from warploom.ptx import flow, parse
from warploom.ptx.emulate.compile import uses
from warploom.ptx.opcode import Control

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def graph(body: str, **cuts: Any) -> flow.Graph:
    text = f"{HEADER}.entry k()\n{{ .reg .pred %p<3>; .reg .b32 %r<9>;\n{body}\n}}\n"
    module = parse(text)
    return flow.build(module, module.functions[0], **cuts)


def ranks(found: flow.Graph) -> list[int]:
    return flow.loop_order([block.successors for block in found.blocks])


def test_loop_runs_before_what_follows_it() -> None:
    # The exit of the loop stands before its body in the text.
    found = graph("head: @%p1 bra body;\nexit: ret;\nbody: add.u32 %r1, %r1, 1; bra head;")
    head, exit_, body = ranks(found)[:3]
    assert head < body < exit_


def test_nested_loops_are_contiguous() -> None:
    successors = [[1], [2, 6], [3, 5], [4], [2], [1], []]  # 2-3-4 inside 1-…-5
    rank = flow.loop_order(successors)
    assert rank == sorted(rank, key=lambda r: r)
    assert {rank[n] for n in (2, 3, 4)} == set(
        range(min(rank[2], rank[3], rank[4]), min(rank[2], rank[3], rank[4]) + 3)
    )


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=2), min_size=n, max_size=n)
    )
)
def test_order_is_a_permutation_and_topological_without_cycles(successors: list[list[int]]) -> None:
    rank = flow.loop_order(successors)
    assert sorted(rank) == list(range(len(successors)))
    reach = [set(s) for s in successors]
    for _ in successors:
        reach = [r | {y for x in r for y in reach[x]} for r in reach]
    for node, after in enumerate(successors):
        for other in after:
            if node not in reach[other]:  # no way back: not in one loop
                assert rank[node] < rank[other]


def test_labels_belong_to_scopes() -> None:
    found = graph("{ bra L; add.u32 %r1, %r1, 1; L: }\n{ bra L; L: }\nret;")
    assert found.blocks[0].successors == [2]
    with pytest.raises(CheckError, match="no label"):
        graph("{ L: }\nbra L;")


def test_live_registers() -> None:
    found = graph(
        "mov.u32 %r1, 1;\n@%p1 bra end;\n@%p2 mov.u32 %r2, %r1;\nadd.u32 %r3, %r2, %r1;\nend: st.global.u32 [0], %r1;"
    )
    live = flow.live_in(found, uses)
    assert live[0] == {"%p1", "%p2", "%r2"}  # %r2 may keep its old value
    assert live[2] == {"%r1"}


def test_every_barrier_is_a_block() -> None:
    body = "mov.u32 %r1, 1;\nbar.sync 0;\nmov.u32 %r2, 1;\nbar.warp.sync -1;\nret;"
    cuts = {"after": frozenset({Control.BARRIER}), "before": frozenset({Control.BARRIER})}
    found = graph(body, **cuts)
    assert [[i.opcode for i in found.instructions(b)] for b in found.blocks] == [
        ["mov"],
        ["bar"],
        ["mov", "bar", "ret"],
        [],
    ]
    cuts["before"] |= {Control.LANES}
    assert len(graph(body, **cuts).blocks) == 5
    assert len(graph(body).blocks) == 2
