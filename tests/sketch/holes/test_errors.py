"""Wrong calls: one CheckError that says what was expected, at once and before allocating."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.sketch.holes import build, known, suggest

SQUARE = ((4, 4),)
WRONG: list[tuple[str, dict[str, Any], tuple[Any, ...], tuple[int, ...], str]] = [
    ("rangee", {}, SQUARE, (4, 4), "unknown function 'rangee'"),
    ("row_xform", {}, SQUARE, (4, 4), "did you mean row_xforms"),
    ("id", {}, (), (4,), "needs an argument"),
    ("id", {}, ((4,), (4,)), (4,), "takes 1 argument, got 2"),
    ("id", {}, ((4,),), (5,), "number of elements must be 4, got 5"),
    ("id", {"fold_lne": 3}, ((4,),), (4,), "did you mean fold_len"),
    ("id", {}, ((0,),), (4,), "a shape must be"),
    ("transpose", {}, ((2, 3),), (2, 3), r"must be \[3,2\], got \[2,3\]"),
    ("stack", {}, ((2,), (2,)), (2, 3), r"last output dimension must be 2 .*got 3"),
    ("stack", {}, ((2,), (3,)), (2, 2), r"each argument must be \[2\], got \[3\]"),
    ("rot_idx", {}, SQUARE, (4, 4), "exactly one of the options r and l"),
    ("rot_idx", {"r": 1, "l": 1}, SQUARE, (4, 4), "exactly one of the options r and l"),
    ("rot_idx", {"r": 1}, ((2, 3),), (2, 3), r"must be \[3,2\]"),
    ("rot_idx", {"r": (1,)}, SQUARE, (4, 4), "option r needs one number"),
    ("load_rep", {}, ((4, 3),), (2, 2), r"must be \[3\], got \[2\]"),
    ("load_trunc", {}, ((4, 3, 2),), (4,), "end of the output shape"),
    ("load_grid_2d", {}, ((4, 3),), (4,), "2 dimensions into 4, not 2 into 1"),
    ("broadcast", {}, ((4,),), (4, 3), r"must be \[4\], got \[3\]"),
    ("broadcast", {"group": 2}, ((4,),), (4, 3), "group=2 is out of range"),
    ("broadcast", {}, ((4, 3),), (3,), "end of the output shape"),
    ("xforms", {}, SQUARE, (4, 4), "needs the options main, second and out"),
    ("rots", {"fold_len": 4}, SQUARE, (4, 4), "needs the options main, second and out"),
    ("xforms", {"main": 0, "out": 1}, SQUARE, (4, 4), "needs the option second"),
    ("xforms", {"main": 0, "second": 2, "out": 1}, SQUARE, (4, 4), "axis 2 is out of range"),
    ("row_rots", {"main": -1, "second": 0, "out": 1}, SQUARE, (4, 4), "axis -1 is out of range"),
    ("row_xforms", {}, ((4,),), (4,), "two or more dimensions"),
    ("row_xforms", {}, SQUARE, (5, 4), r"must be \[4,4\], got \[5,4\]"),
    ("col_rots", {}, SQUARE, (4, 4, 1), r"must be \[4,4\], got \[4,4,1\]"),
    ("row_xforms", {}, ((1, 4),), (1, 5), "has no gather"),
    ("row_rots", {}, ((4, 1),), (4, 2), "has no gather"),
    ("reg_select", {}, ((4, 3),), (4, 4), "must be 2, got 3"),
    ("reg_select", {}, ((4, 2),), (5, 4), r"must be \[4,2\], got \[5,4\]"),
    ("reg_select", {"consts": 3}, ((4, 2),), (4, 4), "option consts needs a list"),
    ("reg_select", {"consts": (1 << 40,)}, ((4, 2),), (4, 4), "is too large"),
    ("cond_keep", {}, ((4, 2),), (4, 4), r"must be \[4,2\], got \[4,4\]"),
    ("cond_keep", {"restrict": (1,)}, SQUARE, (4, 4), "even count of numbers, got 1"),
    ("cond_keep", {"restrict": (2, 0)}, SQUARE, (4, 4), "restrict: axis 2 is out of range"),
    ("cond_keep", {"restrict": (0, 9)}, SQUARE, (4, 4), "on axis 0, position 9 is out of range"),
    ("general_select", {}, SQUARE, (4, 4), "needs the option axis"),
    ("general_select", {"axis": 1}, ((4, 1),), (4, 4), "length 1"),
    ("general_select", {"axis": 1, "dims": (0, 5)}, ((4, 2),), (4, 4), "axis 5 is out of range"),
    ("general_select", {"axis": 1, "dims": (0, 0)}, ((4, 2),), (4, 4), "twice"),
    ("general_select", {"axis": 1, "dims": ()}, ((4, 2),), (4, 4), "only 0 exist"),
    ("general_select", {"axis": 0}, ((2, 2),), (4, 4), r"all but axis 0"),
    ("hvx_2x1", {}, ((4,),), (4,), r"works on \[registers, lanes\]"),
    ("hvx_2x1", {}, ((2, 4),), (2, 8), "number of lanes must be 4, got 8"),
    ("hvx_2x1", {"in": (0,)}, SQUARE, (4, 4), "even count of numbers"),
    ("hvx_2x1", {"in": (0, 4)}, SQUARE, (4, 4), "register 4 is out of range"),
    ("hvx_2x1", {"out": (4,)}, SQUARE, (4, 4), "register 4 is out of range"),
    ("hvx_2x2", {"out": (1,)}, SQUARE, (4, 4), "even count of numbers"),
    ("hvx_2x1", {"in_lim": 5}, SQUARE, (4, 4), "in_lim=5 is out of range"),
    ("hvx_2x1", {"fresh": 1}, SQUARE, (5, 4), "option fresh takes no value"),
    ("grouped_perms", {"axis": 0}, SQUARE, (4, 4), "needs the option group"),
    ("grouped_perms", {"axis": 0, "group": 0}, SQUARE, (4, 4), "group=0 is out of range"),
    ("grouped_perms", {"axis": 0, "group": 2}, SQUARE, (2, 8), r"must be \[4,4\]"),
    (
        "grouped_perms",
        {"axis": 0, "group": 2, "restrict": (0, 1, 1, 1)},
        SQUARE,
        (4, 4),
        "one pair",
    ),
    ("grouped_perms", {"axis": None, "group": 2}, SQUARE, (4, 4), "needs one number"),
]
TOO_LARGE: list[tuple[str, dict[str, Any], tuple[Any, ...], tuple[int, ...]]] = [
    ("id", {}, ((1 << 40,),), (1 << 40,)),
    ("stack", {}, ((1 << 30,),) * 4, (1 << 30, 4)),
    ("col_xforms", {}, ((1024, 1024),), (1024, 1024)),
    ("col_xforms_no_group", {}, ((1 << 20, 64),), (1 << 20, 64)),
    ("col_rots", {}, ((1 << 17, 8),), (1 << 17, 8)),
    ("reg_select", {}, ((1 << 10, 1 << 13, 2),), (1 << 10, 1 << 13, 2)),
    ("cond_keep", {}, ((1 << 10, 1 << 13),), (1 << 10, 1 << 13)),
    ("general_select", {"axis": 1}, ((8, 8),), (8, 8)),
    ("general_select", {"axis": 1}, ((4, 2000),), (4, 2000)),
    ("general_select", {"axis": 1, "consts": tuple(range(20000))}, ((64, 3),), (64, 64)),
    ("hvx_2x1", {"swaps": None}, ((4, 17),), (4, 17)),
    ("hvx_2x2", {"swaps": None}, ((4, 64),), (4, 64)),
    ("hvx_2x1", {"swaps": None}, ((64, 16),), (64, 16)),
    ("hvx_2x1", {}, ((1 << 20, 4),), (1 << 20, 4)),
    ("hvx_2x1", {}, ((512, 64),), (512, 64)),
    ("grouped_perms", {"axis": 0, "group": 9}, ((18, 2),), (18, 2)),
    ("grouped_perms", {"axis": 0, "group": 10**9}, ((18, 2),), (18, 2)),
    ("grouped_perms", {"axis": 0, "group": 8}, ((1 << 16, 2),), (1 << 16, 2)),
]


@pytest.mark.parametrize(("function", "options", "args", "out", "message"), WRONG)
def test_wrong_calls(
    function: str,
    options: dict[str, Any],
    args: tuple[Any, ...],
    out: tuple[int, ...],
    message: str,
) -> None:
    with pytest.raises(CheckError, match=message) as caught:
        build(function, options, args, out)
    assert caught.value.span is None
    assert len(str(caught.value)) < 1000


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("function", "options", "args", "out"), TOO_LARGE)
def test_absurd_sets_are_refused_before_they_are_made(
    function: str, options: dict[str, Any], args: tuple[Any, ...], out: tuple[int, ...]
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CheckError, match=r"too|masks|range") as caught:
            build(function, options, args, out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.advice
    assert peak < 1 << 28


def test_names() -> None:
    assert {"id", "col_xforms_no_group", "rots", "cond_keep_no_consts", "hvx_inplace"} <= set(
        known()
    )
    assert suggest("colxforms") == "col_xforms"
    assert suggest("zzzzzzzzzz") is None


SMALL = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
OPTION = st.one_of(
    st.none(), st.integers(-2, 5), st.lists(st.integers(-1, 4), max_size=4).map(tuple)
)
NAMES = ("main", "second", "out", "axis", "group", "dims", "consts", "restrict", "r", "l",
         "in", "in_lim", "fresh", "inplace", "swaps", "fold_len")  # fmt: skip


@examples(400)
@given(
    function=st.sampled_from(known()),
    options=st.dictionaries(st.sampled_from(NAMES), OPTION, max_size=4),
    args=st.lists(SMALL, max_size=2).map(tuple),
    out=SMALL,
)
def test_any_call_is_a_set_or_a_check_error(
    function: str,
    options: dict[str, Any],
    args: tuple[Any, ...],
    out: tuple[int, ...],
    sound: Callable[..., None],
) -> None:
    try:
        gathers = build(function, options, args, out)
    except CheckError:
        return
    assert len(gathers) >= 1
    gathers.describe(len(gathers) - 1)
    sound(gathers, most=5)
