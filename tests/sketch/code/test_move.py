"""Moves compose as their meanings do, senders offer what is asked for, forms are equal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.catalogue.window import window_sketch
from warploom.index.ir import Const, Expr, operations, select
from warploom.sketch.code.exchange import rounds
from warploom.sketch.code.form import (
    LANE,
    REGISTER,
    cheapest,
    split,
    subtracting_last,
    tabulated,
    with_selects,
)
from warploom.sketch.code.move import Move, composed, evaluated
from warploom.sketch.code.proved import find

LANES = 8
small = st.integers(-3, 9)


@st.composite
def conditions(draw: st.DrawFn) -> Expr:
    right = draw(small) + REGISTER * draw(st.integers(-1, 1))
    return draw(st.sampled_from([LANE.lt, LANE.ge, LANE.eq, LANE.ne]))(right)


@st.composite
def lanes_of(draw: st.DrawFn) -> Expr:
    """Rotations, reflections, exclusive ors and maps that are none of these."""
    rest = REGISTER * draw(small) + draw(small)
    found: list[Expr] = [
        LANE, (LANE + rest) % LANES, (rest - LANE) % LANES, LANE ^ (rest % LANES),
        LANE // 2, (LANE * 3 + rest) % LANES, rest % LANES,
    ]  # fmt: skip
    return draw(st.sampled_from(found))


@st.composite
def moves(draw: st.DrawFn, sources: int, registers: int) -> Move:
    choice = select(draw(conditions()), REGISTER + draw(small), LANE * draw(small)) % sources
    plain = (REGISTER + draw(small)) % sources
    register = draw(st.sampled_from([choice, plain]))
    kept = draw(st.sampled_from([Const(1), draw(conditions())]))
    return Move(LANES, registers, sources, draw(lanes_of()), register, kept)


@examples(60)
@given(inner=moves(3, 4), outer=moves(4, 2))
def test_moves_compose(inner: Move, outer: Move) -> None:
    held = np.arange(1, LANES * 3 + 1).reshape(LANES, 3)
    both = evaluated(composed(outer, inner), held)
    assert np.array_equal(both, evaluated(outer, evaluated(inner, held)))


@examples(100)
@given(move=moves(3, 3))
def test_senders_offer_what_is_asked_for(move: Move) -> None:
    if move.sent is None:
        return
    offered = tabulated(move.sent, LANES, 3)
    assert offered.min() >= 0
    assert offered.max() < 3
    for lane, register in np.argwhere(move.live).tolist():
        sender = move.lane_table[lane, register]
        assert offered[sender, register] == move.register_table[lane, register]


@examples(60)
@given(move=moves(3, 3))
def test_rounds_bring_every_register_once(move: Move) -> None:
    for j in range(3):
        got = np.full(LANES, -1)
        for offered, receivers in rounds(move, j):
            table, takes = (tabulated(each, LANES, 1)[:, 0] for each in (offered, receivers))
            for lane in np.flatnonzero(move.live[:, j] & (takes != 0)).tolist():
                got[lane] = table[move.lane_table[lane, j]]
        assert np.array_equal(got[move.live[:, j]], move.register_table[move.live[:, j], j])


@examples(100)
@given(move=moves(3, 5), condition=conditions())
def test_forms_are_equal_everywhere(move: Move, condition: Expr) -> None:
    for expr in (move.lane, move.register, condition, select(condition, move.lane, 3)):
        wanted = tabulated(expr, LANES, 5)
        found = cheapest(expr, LANES, 5)
        assert np.array_equal(tabulated(found, LANES, 5), wanted)
        assert operations(found) <= operations(expr)
        assert np.array_equal(tabulated(with_selects(expr), LANES, 5), wanted)
        summed = expr + (REGISTER - LANE)
        last = tabulated(subtracting_last(summed), LANES, 5)
        assert np.array_equal(last, tabulated(summed, LANES, 5))
        cases = split(wanted, condition)
        assert cases is None or np.array_equal(tabulated(cases, LANES, 5), wanted)


def test_a_sender_of_a_window_decides_by_its_own_lane() -> None:
    move = find(window_sketch(4, weighted=False)).move("received", "loaded")
    assert move.sent is select(LANE.lt(REGISTER), 1, 0)
