"""What other layout libraries gave, where they differ from us, each difference by its name.

The calls on which pycute, tensor-layouts, TileLang and the CuTe DSL agree are in `test_algebra.py`
and `test_language.py`; random ones in `test_oracles.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.language.algebra import left_inverse
from warploom.layout.language.evaluate import Numbers, extended, values
from warploom.layout.language.facts import as_matrix
from warploom.layout.language.ir import Strided
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task


def canned(rows: int, columns: int, beside: int) -> Numbers:
    """TileLang's own layout of 16-bit elements: `beside` chunks of 16 bytes of eight rows are a
    block, its chunks exchanged by the row; blocks go down first."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    chunk = column // 8
    place = chunk % beside ^ row % 8 // (8 // beside)
    block = chunk // beside * (rows // 8) + row // 8
    found: Numbers = (block * 8 + row % 8) * beside * 8 + place * 8 + column % 8
    return found


@pytest.mark.parametrize(
    ("columns", "beside", "published"),
    [(48, 2, "10.67/4"), (80, 2, "12.8/4"), (96, 4, "6.667/4")],
)
def test_tilelangs_canned_layouts_store_slower(columns: int, beside: int, published: str) -> None:
    task = Task(pattern(f"ldmatrix:64x{columns}:f16"), waste=False)
    theirs = canned(64, columns, beside)
    assert np.array_equal(np.sort(theirs), np.arange(64 * columns))
    assert str(task.meter.score(theirs)) == published
    ours = solve(task, "mixed").best
    assert ours is not None
    assert str(ours.score) == str(task.bound) == "4/4"


@pytest.mark.parametrize("columns", [40, 72])
def test_tilelang_leaves_rows_as_they_are_where_that_is_no_worse(columns: int) -> None:
    task = Task(pattern(f"ldmatrix:64x{columns}:f16"), waste=False)
    rows = np.arange(task.problem.size, dtype=np.int64)
    assert str(task.meter.score(rows)) == str(task.bound)


def test_pycutes_left_inverse_differs_outside_the_image() -> None:
    layout = Strided(4, 2)
    ours, theirs = left_inverse(layout), Strided((2, 4), (4, 1))
    assert values(ours).tolist() != values(theirs).tolist()
    image = values(layout)
    assert extended(ours, image).tolist() == extended(theirs, image).tolist() == [0, 1, 2, 3]


def test_a_matrix_is_refused_where_strides_carry() -> None:
    """tensor-layouts gives one for (8,8):(9,1), wrong at 37 of 64 places."""
    table = values(Strided((8, 8), (9, 1)))
    assert as_matrix(table) is None


def test_wide_loads_are_served_in_phases() -> None:
    """tensor-layouts counts all lanes at once, and a perfect load of 16 bytes as 4-way."""
    task = Task(pattern("transpose:32x32:f32:store=16"))
    rows = np.arange(1024, dtype=np.int64)
    score = task.meter.score(rows)
    assert score is not None
    assert score.per_request[0] == task.bound.per_request[0] == 4


def test_three_elements_of_a_lane_are_no_reason_to_end_the_process() -> None:
    """Triton 3.9 aborts on a size of 3."""
    assert read_fragment("(32,3):(3,1)").elements.shape == (1, 32, 3)
