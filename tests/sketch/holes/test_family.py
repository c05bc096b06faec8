"""Choices are data: every set can be written as JSON, pickled, cut down, and read cell by cell."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const
from warploom.index.parse import parse
from warploom.sketch.holes import (
    build,
    choice_from_json,
    choice_to_json,
    choices_of,
    custom,
    known,
)
from warploom.sketch.holes.common import grid
from warploom.sketch.holes.condition import ALWAYS, NEVER, Conditions
from warploom.sketch.holes.expressions import coordinate, only
from warploom.sketch.holes.moving import expression_cost
from warploom.sketch.holes.swizzle import COLUMNS, WRAP_BOTH, WRAP_TURN, Swizzles
from warploom.sketch.term.gather import ZERO, GatherSet, Moves, Shape

Sound = Callable[..., None]

CALLS: dict[str, tuple[Mapping[str, Any], tuple[Shape, ...], Shape]] = {
    "id": ({}, ((4, 3),), (4, 3)),
    "reshape": ({}, ((4, 3),), (12,)),
    "stack": ({}, ((4,), (4,)), (4, 2)),
    "rot_idx": ({"r": 1}, ((2, 3, 4),), (4, 2, 3)),
    "load_trunc": ({}, ((10,),), (4, 3)),
    "load_grid_2d": ({}, ((5, 5),), (4, 4, 2, 2)),
    "broadcast": ({"group": 1}, ((4,),), (4, 3)),
    "row_xforms": ({}, ((4, 6),), (4, 6)),
    "col_xforms": ({}, ((8, 3),), (8, 3)),
    "xforms": ({"main": 0, "second": 2, "out": 1}, ((4, 4, 3),), (4, 4, 3)),
    "xforms_no_group": ({"main": 0, "second": 1, "out": 0}, ((4, 2),), (7, 2)),
    "row_rots": ({}, ((4, 6),), (4, 6)),
    "rots": ({"main": 1, "second": 0, "out": 1}, ((3, 4),), (3, 6)),
    "col_linear": ({}, ((6, 4),), (6, 4)),
    "col_bits": ({}, ((8, 3),), (8, 3)),
    "reg_select": ({}, ((4, 3, 2),), (4, 3, 5)),
    "cond_keep": ({"restrict": (1, 1)}, ((4, 2, 3),), (4, 2, 3)),
    "cond_keep_no_consts": ({}, ((5,),), (5,)),
    "general_select": ({"axis": 1, "dims": (1, 0)}, ((3, 3),), (3, 4)),
    "hvx_2x1": ({"inplace": None, "swaps": None}, ((2, 4),), (3, 4)),
    "hvx_inplace": ({}, ((4, 4),), (4, 4)),
    "grouped_perms": ({"axis": 0, "group": 3, "restrict": (1, 1)}, ((5, 2),), (5, 2)),
    "amd_swizzles_perm": ({"axis": 0, "group": 2}, ((64, 2),), (64, 2)),
}
FAMILIES = {
    "single", "xform", "rot", "linear", "bits", "first_if", "keep_if", "select", "hvx",
    "permutation",
}  # fmt: skip


def make(name: str) -> GatherSet:
    options, args, out = CALLS[name]
    return build(name, options, args, out)


def own() -> GatherSet:
    tables = np.array([[0, 1, 2, 3], [3, 2, ZERO, 0], [0, 1, 2, 3]], np.int32)
    return custom("mine", ((4,),), (4,), ["same", "back", "again"], tables)


def test_every_family_is_here() -> None:
    assert {make(name).family.name for name in CALLS} == FAMILIES
    assert set(CALLS) <= set(known())
    assert own().family.name == "table"


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CALLS)
def test_a_choice_goes_to_json_and_back(name: str) -> None:
    gathers = make(name)
    for choice in range(0, len(gathers), max(1, len(gathers) // 60)):
        record = json.loads(json.dumps(choice_to_json(gathers, choice)))
        assert choice_from_json(gathers, record) == choice
        assert record["text"] == gathers.describe(choice)
        shown = gathers.expression(choice)
        assert parse(record["argument"]) is shown.argument
        assert parse(record["offset"]) is shown.offset


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CALLS)
def test_every_spelling_goes_to_json_and_back(name: str) -> None:
    gathers = make(name)
    family = gathers.family
    for n in range(0, len(gathers.spelled), max(1, len(gathers.spelled) // 60)):
        row, choice = gathers.spelled[n], int(gathers.owner[n])
        record = {"family": family.name, "parameters": family.to_json(row)}
        assert choice_from_json(gathers, record) == choice
        assert choices_of(gathers, row[None]).tolist() == [choice]
        read = family.reads(row[None])
        table = read if isinstance(read, np.ndarray) else read.full()
        assert np.array_equal(table[0], gathers.tables[choice])


@pytest.mark.parametrize("name", CALLS)
def test_wrong_records_are_refused(name: str) -> None:
    gathers = make(name)
    good = choice_to_json(gathers, len(gathers) - 1)
    names = list(good["parameters"])
    wrong: list[Any] = [
        None,
        [],
        {},
        {"family": good["family"]},
        good | {"family": "nothing"},
        good | {"parameters": None},
        good | {"parameters": good["parameters"] | {"more": 1}},
    ]
    wrong += [good | {"parameters": {k: v for k, v in good["parameters"].items() if k != n}}
              for n in names]  # fmt: skip
    values: tuple[Any, ...] = (None, 1.5, "?", [], {}, True, 10**30, 123456)
    wrong += [
        good | {"parameters": good["parameters"] | {n: value}} for n in names for value in values
    ]
    for record in wrong:
        if record == good or (record and record.get("parameters") == {}):
            continue  # the identity of permutations has no parameter
        with pytest.raises(CheckError):
            choice_from_json(gathers, record)


def test_ones_own_choices_are_known_by_name() -> None:
    gathers = own()
    assert choice_to_json(gathers, 1)["parameters"] == {"choice": "back"}
    assert choice_from_json(gathers, {"family": "table", "parameters": {"choice": "again"}}) == 0
    with pytest.raises(CheckError, match="no table is called 'other'"):
        choice_from_json(gathers, {"family": "table", "parameters": {"choice": "other"}})


@pytest.mark.parametrize("name", CALLS)
def test_a_set_can_be_sent_elsewhere(name: str) -> None:
    """Nothing but data is in it."""
    gathers = make(name)
    again = pickle.loads(pickle.dumps(gathers))
    assert np.array_equal(again.tables, gathers.tables)
    last = len(gathers) - 1
    assert again.describe(last) == gathers.describe(last)
    assert again.expression(last) == gathers.expression(last)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CALLS)
def test_some_choices_are_read_without_the_others(name: str, sound: Sound) -> None:
    gathers, whole = make(name), make(name).tables
    for cell in range(0, whole.shape[1], 3):
        assert np.array_equal(gathers.column(cell), whole[:, cell])
    some = list(range(len(gathers) - 1, -1, -3))
    assert np.array_equal(gathers.rows_of(some), whole[some])
    assert np.array_equal(gathers.table(0), whole[0])
    assert "tables" not in vars(gathers)  # the whole was never written out
    fewer = gathers.only(some)
    assert np.array_equal(fewer.tables, whole[some])
    assert [fewer.describe(n) for n in range(len(some))] == [gathers.describe(n) for n in some]
    sound(fewer, most=20)


def test_most_sets_are_small() -> None:
    gathers = build("col_xforms", {}, ((32, 9, 4),), (32, 9, 4))
    assert isinstance(gathers.reads, Moves)
    assert gathers.reads.values.nbytes == len(gathers) * 32 * 9
    assert gathers.tables.nbytes == gathers.reads.values.nbytes * 4 * 4


def test_a_large_stencil_can_be_built_but_not_written_out() -> None:
    """Tables of more than a gigabyte, in less than a megabyte."""
    shape = (25, 50, 9, 32)
    options: dict[str, Any] = {"axis": 2, "dims": (0, 2), "consts": (0, 1, -1, 4, -4)}
    gathers = build("general_select", options, ((25, 50, 3, 32),), shape)
    assert isinstance(gathers.reads, Moves)
    assert len(gathers) * np.prod(shape) * 4 > 1 << 30
    assert gathers.reads.values.nbytes < 1 << 20
    assert gathers.column(7).shape == (len(gathers),)
    with pytest.raises(CheckError, match="too large to write out"):
        _ = gathers.tables


def test_what_is_not_of_the_set_is_not_found() -> None:
    gathers = build("col_xforms_no_group", {}, ((8, 3),), (8, 3))
    turned = np.array([[8, 8, 1, 8, 0, 3, 2, 0], [8, 8, 1, 8, 0, 3, 0, 0]])  # a shift; none
    assert choices_of(gathers, turned).tolist() == [-1, 0]
    wider = build("col_xforms", {}, ((8, 3),), (8, 3))
    row = np.array([[8, 8, 9, 8, 16, 3, 0, 0]])  # written otherwise, but the identity all the same
    assert choices_of(wider, row).tolist() == [0]


# -- the forms -----------------------------------------------------------------------------------


@examples(150)
@given(st.data())
def test_swizzles_are_their_formula(data: st.DataObject) -> None:
    """Values and expressions, for groups, moduli, steps and both ways to wrap."""
    step = data.draw(st.integers(1, 4))
    modulus = step * data.draw(st.integers(1, 4))
    group = data.draw(st.sampled_from([modulus, 2 * modulus, 40]))
    wrap = data.draw(st.sampled_from([0, WRAP_TURN, WRAP_BOTH]))
    fan, rate, shift = (data.draw(st.integers(-5, 12)) for _ in range(3))
    slow = data.draw(st.integers(1, 5))
    extents = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 6))
    row = np.array([group, modulus, fan, step, rate, slow, shift, wrap])
    swizzles = Swizzles(24, extents, 0, 1)
    at = grid(extents, (0, 1))
    expected = []
    for i, k in zip(at[0].tolist(), at[1].tolist(), strict=True):
        j, turn = i % group, rate * k + k // slow + shift
        if wrap == WRAP_TURN:
            moved = fan * j + j // step + turn % (modulus // step)
        elif wrap == WRAP_BOTH:
            moved = fan * j + (j // step + turn) % (modulus // step)
        else:
            moved = fan * j + j // step + turn
        expected.append(i - j + moved % modulus)
    assert len(row) == len(COLUMNS)
    assert swizzles.values(row[None], at)[0].tolist() == expected
    names = [coordinate(0), coordinate(1)]
    value = evaluate(swizzles.expression(row, names), {"x0": at[0], "x1": at[1]})
    assert np.broadcast_to(value, len(expected)).tolist() == expected


@examples(20)
@given(
    extents=st.lists(st.integers(1, 5), min_size=1, max_size=2).map(tuple),
    constants=st.lists(st.integers(-6, 6), min_size=1, max_size=3).map(tuple),
)
def test_conditions_are_their_expressions_and_cost_what_those_cost(
    extents: tuple[int, ...], constants: tuple[int, ...]
) -> None:
    conditions = Conditions(extents, constants, tuple(range(len(extents))))
    rows = conditions.rows(len(constants))
    at = grid(extents, range(len(extents)))
    env = {f"x{axis}": values for axis, values in at.items()}
    names = [coordinate(axis) for axis in range(len(extents))]
    masks = conditions.masks(rows, at)
    for row, mask in zip(rows, masks, strict=True):
        value = evaluate(conditions.expression(row, names), env)
        assert np.broadcast_to(value, mask.shape).tolist() == mask.tolist()
        constancy = conditions.constancy(row)
        assert constancy == (bool(mask[0]) if mask.all() or not mask.any() else None)
    written = [row for row in rows if not isinstance(conditions.expression(row, names), Const)]
    exact = [expression_cost(only(conditions.expression(row, names))) for row in written]
    costs = conditions.costs(np.array(written))
    assert [exact[n] for n in np.argsort(costs, kind="stable")] == sorted(exact)
    assert len(set(costs.tolist())) == len(set(exact))
    for code in (ALWAYS, NEVER):
        always = np.array([[code, 0, 0, 0, 0]])
        assert conditions.masks(always, at).all() == (code == ALWAYS)
