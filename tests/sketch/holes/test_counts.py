"""The sizes of the sets, as published; every shape and option that a published sketch uses."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from warploom.sketch.holes import build
from warploom.sketch.term.ir import Shape

# columns of the published table, in its order
COLUMNS = (
    "col_xforms_no_group", "col_xforms", "row_xforms_no_group", "row_xforms",
    "col_rots_no_group", "col_rots", "row_rots_no_group", "row_rots",
)  # fmt: skip
TABLE = {
    (32, 2): (992, 1298, 10, 10, 32, 58, 2, 2),
    (32, 3): (992, 1347, 30, 30, 32, 58, 3, 3),
    (32, 4): (1984, 2716, 60, 77, 32, 58, 4, 5),
    (32, 5): (992, 1364, 100, 100, 32, 58, 5, 5),
    (32, 7): (992, 1365, 210, 210, 32, 58, 7, 7),
    (32, 9): (None, 2757, None, 415, 32, 58, None, 11),
    (32, 11): (None, 1369, None, 550, 32, 58, None, 11),
    (32, 13): (None, 1369, None, 780, 32, 58, None, 13),
    (8, 3): (56, None, 18, None, 8, None, 3, None),
    (32, 1): (1, 1, 1, 1, 32, 58, 1, 1),
}
CASES = [
    (name, shape, count)
    for shape, counts in TABLE.items()
    for name, count in zip(COLUMNS, counts, strict=True)
    if count is not None
]


@pytest.mark.sampled(25)
@pytest.mark.parametrize(("name", "shape", "count"), CASES)
def test_swizzle_table(name: str, shape: Shape, count: int) -> None:
    assert len(build(name, {}, (shape,), shape)) == count


@pytest.mark.parametrize("fold_len", [1, 3])
def test_the_implicit_fold_length_changes_nothing(fold_len: int) -> None:
    assert len(build("row_xforms", {"fold_len": fold_len}, ((32, 3),), (32, 3))) == 30
    assert len(build("col_rots", {"fold_len": fold_len}, ((32, 3),), (32, 3))) == 58


ACROSS = {"main": 0, "second": 1, "out": 1}
ALONG = {"main": 1, "second": 0, "out": 1}
STENCIL = {"main": 0, "second": 2, "out": 0}


@pytest.mark.parametrize(
    ("name", "options", "in_shape", "out_shape", "count"),
    [
        ("xforms_no_group", ACROSS, (4, 4), (4, 4), 25),
        ("xforms", ACROSS, (4, 4), (4, 4), 30),
        ("rots_no_group", ACROSS, (4, 4), (4, 4), 5),
        ("rots", ACROSS, (4, 4), (4, 4), 6),
        ("xforms_no_group", ALONG, (4, 8), (4, 8), 112),
        ("rots_no_group", ALONG, (4, 8), (4, 4), 8),
        *[("xforms_no_group", STENCIL, (4, 4, k, 2), (4, 4, k, 2), 12) for k in (3, 5, 7)],
        *[("xforms", STENCIL, (4, 4, k, 2), (4, 4, k, 2), 14) for k in (3, 5, 7)],
        ("xforms_no_group", STENCIL, (4, 4, 9, 3), (4, 4, 9, 3), 24),
        ("xforms", STENCIL, (4, 4, 9, 3), (4, 4, 9, 3), 30),
        *[("rots_no_group", STENCIL, (4, 4, k, 2), (4, 4, k, 2), 4) for k in (3, 9)],
        *[("rots", STENCIL, (4, 4, k, 2), (4, 4, k, 2), 5) for k in (3, 9)],
        ("reg_select_no_consts", {}, (32, 2), (32, 3), 14),
        *[("reg_select", {}, (32, 2), (32, k), 38) for k in (3, 5, 7, 9, 11, 13)],
        ("cond_keep_no_consts", {}, (32, 3), (32, 3), 14),
        *[("cond_keep", {}, (32, k), (32, k), 38) for k in (3, 5, 7, 9, 11, 13)],
        ("cond_keep_no_consts", {"restrict": (1, 1)}, (4, 2, 4), (4, 2, 4), 14),
        ("cond_keep", {"restrict": (1, 0)}, (4, 2, 4), (4, 2, 4), 44),
        ("cond_keep_no_consts", {"restrict": (3, 2, 1, 0)}, (4, 4, 4, 4), (4, 4, 4, 4), 14),
        ("cond_keep", {"restrict": (3, 2, 1, 0)}, (4, 4, 4, 4), (4, 4, 4, 4), 44),
        ("hvx_2x1", {"in_lim": 4, "fresh": None}, (4, 8), (5, 8), 149),
        ("hvx_2x1", {"in_lim": 4, "fresh": None}, (9, 8), (10, 8), 149),
    ],
)
def test_other_sets(
    name: str, options: dict[str, int], in_shape: Shape, out_shape: Shape, count: int
) -> None:
    assert len(build(name, options, (in_shape,), out_shape)) == count


@pytest.mark.parametrize(
    ("name", "sources", "outputs", "consts", "count"),
    [
        ("general_select_no_consts", 2, 3, None, 14),
        ("general_select_no_consts", 2, 5, None, 14),
        ("general_select", 2, 3, None, 38),
        ("general_select", 2, 5, None, 36),
        ("general_select_no_consts", 3, 7, None, 93),
        # The larger stencils are published with the grid's width as a constant.
        ("general_select", 3, 7, (0, 1, -1, 4, -4), 1469),
        ("general_select", 3, 9, (0, 1, -1, 4, -4), 1497),
    ],
)
@pytest.mark.parametrize("axis", [2, 3])
def test_general_select(
    name: str, sources: int, outputs: int, consts: tuple[int, ...] | None, count: int, axis: int
) -> None:
    options: dict[str, int | tuple[int, ...] | None] = {"axis": axis, "dims": (axis - 2, axis)}
    if consts is not None:
        options["consts"] = consts
    in_shape, out_shape = [4, 4, 3, 3], [4, 4, 3, 3]
    in_shape[axis], out_shape[axis] = sources, outputs
    assert len(build(name, options, (tuple(in_shape),), tuple(out_shape))) == count


@pytest.mark.parametrize(
    ("name", "options", "in_shape", "out_shape", "seconds"),
    [
        # several times what they take, so that a busy machine passes and a slow method does not
        ("col_xforms", {}, (32, 9), (32, 9), 0.2),
        ("col_xforms", {}, (32, 16), (32, 16), 0.5),
        ("general_select", {"axis": 2, "dims": (0, 2)}, (4, 4, 4, 4), (4, 4, 13, 4), 1.5),
    ],
)
def test_fast(
    name: str,
    options: dict[str, int],
    in_shape: Shape,
    out_shape: Shape,
    seconds: float,
    sound: Callable[..., None],
) -> None:
    def once() -> float:
        start = time.process_time()
        build(name, options, (in_shape,), out_shape)
        return time.process_time() - start

    assert min(once() for _ in range(3)) < seconds
    sound(build(name, options, (in_shape,), out_shape), most=40)
