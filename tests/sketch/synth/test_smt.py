"""The SMT engine agrees with enumeration; free constants are found; giving up is not "no"."""

from __future__ import annotations

import os
import signal
import sys
import threading
from itertools import product
from typing import Any

import numpy as np
import pytest
from bench.common.sketch.generate import seeded, sketch
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.bench.published import published_sketch
from warploom.errors import CheckError, UnsupportedError
from warploom.index.evaluate import evaluate as index_value
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Found, Impossible, Reason, Undecided, Verdict
from warploom.sketch.build import Sketch
from warploom.sketch.front import load_text
from warploom.sketch.synth.free import Constants, FreeSwizzle, fill_free
from warploom.sketch.synth.smt import Clauses, Solver
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Apply, Program

pytest.importorskip("z3")

ROW = FreeSwizzle(main=1, second=0, out=1)
COLUMN = FreeSwizzle(main=0, second=1, out=0)


def assert_agree(program: Program) -> None:
    default, smt = synthesize(program), synthesize(program, engine="smt")
    assert smt.fills.count == default.fills.count
    assert smt.fills.choices.tolist() == default.fills.choices.tolist()
    assert type(smt.outcome) is type(default.outcome)
    assert smt.complete == default.complete
    assert all(verdict.verdict is Verdict.PROVED for verdict in smt.verdicts)


@given(seed=st.integers(0, 2**32), scale=st.sampled_from([1, 1, 1, 5]))
@examples(100)
def test_agrees_on_random_sketches(seed: int, scale: int) -> None:
    assert_agree(sketch(seeded(seed), scale))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name",
    [
        "trove-8x3",
        "universe-soundness-test",
        "useless-var-test",
        "hvx_conv/6-regs-hvx-conv-arith-blocks",
        "swinv_like/l1/1d-stencil",
        "swinv_like/l1/1d-conv",
        "swinv_like/l1/2d-stencil-3",
        "swinv_like/l1/mult-32-with-4",
        "swinv_like/l1/trove-cr_sum-2",
        "swinv_like/l1/trove-cr_sum-3",
    ],
)
def test_agrees_on_published_rows(name: str) -> None:
    assert_agree(load_text(published_sketch(name), name))


def test_first_and_best() -> None:
    program = load_text(published_sketch("trove-8x3"))
    fills = synthesize(program).fills.choices.tolist()
    first = synthesize(program, mode="first", engine="smt")
    assert first.fills.choices.tolist()[0] in fills
    best = synthesize(program, mode="best", engine="smt")
    assert best.fills.choices.tolist() == synthesize(program, mode="best").fills.choices.tolist()


# -- giving up ----------------------------------------------------------------------------------


def pigeons(holes: int) -> Clauses:
    """One pigeon too many: easy to say, hard to refute."""
    clauses = Clauses()
    for p, h in product(range(holes + 1), range(holes)):
        clauses.declare(f"p{p}.{h}")
    for p in range(holes + 1):
        clauses.require(f"(or {' '.join(f'p{p}.{h}' for h in range(holes))})")
    for h, p, q in product(range(holes), range(holes + 1), range(holes + 1)):
        if p < q:
            clauses.require(f"(not (and p{p}.{h} p{q}.{h}))")
    return clauses


def test_a_timeout_is_undecided() -> None:
    program = load_text(published_sketch("swinv_like/l1/trove-cr_sum-2"))
    assert synthesize(program, engine="smt", budget=Budget(seconds=0)).outcome == Undecided(
        Reason.SECONDS
    )
    with pytest.raises(BudgetSpentError) as caught:
        Solver(pigeons(12), Budget(seconds=0.2)).model()
    assert caught.value.reason is Reason.SECONDS


def test_unknown_is_the_solvers_own_reason() -> None:
    solver = Solver(pigeons(12), Budget())
    solver.core.set("rlimit", 1000)
    with pytest.raises(BudgetSpentError) as caught:
        solver.model()
    assert caught.value.reason is Reason.SOLVER


def test_ctrl_c_reaches_us_through_the_solver() -> None:
    solver = Solver(pigeons(12), Budget(seconds=60))
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        solver.model()


def test_unsatisfiable_is_none() -> None:
    assert Solver(pigeons(3), Budget(seconds=60)).model() is None


def test_without_z3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    program = load_text(published_sketch("trove-8x3"))
    with pytest.raises(UnsupportedError, match="z3-solver") as caught:
        synthesize(program, engine="smt")
    assert ".[smt]" in caught.value.advice
    with pytest.raises(UnsupportedError, match="z3-solver"):
        fill_free(program, {"s1": ROW})


# -- free constants -----------------------------------------------------------------------------


def stencil(function: str, lanes: int = 8) -> Program:
    """The sum of a lane and both its neighbours, around the corner."""
    s = Sketch("stencil")
    x = s.input("x", lanes)
    copies = s.gather(np.repeat(np.arange(lanes), 3).reshape(lanes, 3), x)
    moved = s.hole(function, copies, name="moved")
    s.sum("identity", moved)
    s.goal(lambda x: np.roll(x, 1) + x + np.roll(x, -1))
    return s.program()


def reversed_structures(row: str, column: str, fields: int = 3) -> Program:
    """Loaded coalesced, lane i then holds the fields of structure i, the last one first."""
    s = Sketch("structures")
    x = s.input("x", 8 * fields)
    loaded = s.apply("load_rep", x, shape=(8, fields))
    turned = s.hole(row, loaded, name="turned")
    s.hole(column, turned, name="exchanged")
    s.goal(lambda x: x.reshape(8, fields)[:, ::-1])
    return s.program()


def found(outcome: object) -> dict[str, Constants]:
    assert isinstance(outcome, Found)
    answer = outcome.answer
    assert answer.verification.verdict is Verdict.PROVED
    assert evaluate(answer.program, answer.choices)[-1] == answer.program.goals[0].values
    return dict(answer.constants)


def test_a_stencil_needs_the_constant() -> None:
    assert isinstance(synthesize(stencil("col_xforms")).outcome, Impossible)
    program = stencil("identity")
    without = FreeSwizzle(main=0, second=1, out=0, c=range(1))
    assert isinstance(fill_free(program, {"moved": without}), Impossible)
    moved = found(fill_free(program, {"moved": COLUMN}))["moved"]
    taps = {(moved.cr * k + moved.c) % 8 for k in range(3)}
    assert (moved.cf, taps) == (1, {7, 0, 1})


@pytest.mark.parametrize("fields", [3, 5])
def test_a_transposition_needs_the_constants(fields: int) -> None:
    listed = reversed_structures("row_xforms", "col_xforms", fields)
    assert isinstance(synthesize(listed).outcome, Impossible)
    program = reversed_structures("identity", "identity", fields)
    constants = found(fill_free(program, {"turned": ROW, "exchanged": COLUMN}))
    assert all(constants[name].c for name in ("turned", "exchanged"))


def test_free_and_listed_holes_together() -> None:
    """The rotation left to a listed hole, the rest free: both come out of one model."""
    s = Sketch("mixed")
    x = s.input("x", 24)
    loaded = s.apply("load_rep", x, shape=(8, 3))
    turned = s.apply("identity", loaded, name="turned")
    exchanged = s.apply("identity", turned, name="exchanged")
    s.hole("row_rots_no_group", exchanged, name="last")
    s.goal(lambda x: np.roll(x.reshape(8, 3), 1, axis=1))
    plain: dict[str, Any] = {"c": range(1)}
    free = {
        "turned": FreeSwizzle(main=1, second=0, out=1, **plain),
        "exchanged": FreeSwizzle(main=0, second=1, out=0, **plain),
    }
    outcome = fill_free(s.program(), free)
    found(outcome)
    assert isinstance(outcome, Found)
    assert list(outcome.answer.choices) == [4]


def moved_by(n: int, m: int, constants: Constants) -> Program:
    """One step, whose goal is what these constants give."""
    table = np.arange(n * m).reshape(n, m)
    cf, cr, c, df, dr = constants
    i, k = np.indices((n, m))
    at = (cf * i + cr * k + c + (i // df if df else 0) + (k // dr if dr else 0)) % n
    s = Sketch("moved")
    s.apply("identity", s.input("x", (n, m)), name="moved")
    s.goal(table[at, k])
    return s.program()


@given(
    n=st.integers(1, 7),
    m=st.integers(1, 3),
    cf=st.integers(-9, 9),
    cr=st.integers(-9, 9),
    c=st.integers(-9, 9),
    df=st.integers(0, 3),
    dr=st.integers(0, 3),
)
@examples(40)
def test_finds_constants_that_exist(
    n: int, m: int, cf: int, cr: int, c: int, df: int, dr: int
) -> None:
    program = moved_by(n, m, Constants(cf, cr, c, df, dr))
    all_of_them: dict[str, Any]
    all_of_them = {"cf": range(-9, 10), "cr": range(9, -10, -1), "c": range(-9, 10)}
    free = FreeSwizzle(main=0, second=1, out=0, **all_of_them, df=range(4), dr=range(4))
    outcome = fill_free(program, {"moved": free})
    found(outcome)
    assert isinstance(outcome, Found)
    step = outcome.answer.program.steps[-1]
    assert isinstance(step, Apply)
    assert not step.gathers.is_hole
    axes = np.indices((n, m)).reshape(2, -1)
    offset = index_value(step.gathers.expression(0).offset, {"x0": axes[0], "x1": axes[1]})
    assert np.broadcast_to(offset, n * m).tolist() == step.gathers.tables[0].tolist()


@given(cells=st.lists(st.integers(0, 3), min_size=8, max_size=8))
@examples(40)
def test_impossible_means_that_no_constants_do(cells: list[int]) -> None:
    at, k = np.array(cells).reshape(4, 2), np.indices((4, 2))[1]
    s = Sketch("anything")
    s.apply("identity", s.input("x", (4, 2)), name="moved")
    s.goal(np.arange(8).reshape(4, 2)[at, k])
    i = np.arange(4)[:, None]
    maps = ((cf * i + cr * k + c) % 4 for cf, cr, c in product(range(4), repeat=3))
    exists = any(np.array_equal(one, at) for one in maps)
    outcome = fill_free(s.program(), {"moved": COLUMN})
    assert isinstance(outcome, Found if exists else Impossible)


def test_a_found_swizzle_is_shown_by_its_constants() -> None:
    outcome = fill_free(stencil("identity"), {"moved": COLUMN})
    assert isinstance(outcome, Found)
    step = outcome.answer.program.steps[2]
    assert isinstance(step, Apply)
    text = step.gathers.describe(0)
    constants = outcome.answer.constants["moved"]
    assert text == f"free[cf={constants.cf},cr={constants.cr},c={constants.c}]"


def test_free_constants_without_time() -> None:
    assert fill_free(stencil("identity"), {"moved": COLUMN}, budget=Budget(seconds=0)) == Undecided(
        Reason.SECONDS
    )


@pytest.mark.parametrize(
    ("name", "swizzle", "message"),
    [
        ("nothing", COLUMN, "no step 'nothing'"),
        ("x", COLUMN, "no step 'x'"),
        ("moved", FreeSwizzle(main=0, second=1, out=2), "axes 0 to 1"),
        ("moved", FreeSwizzle(main=0, second=1, out=0, modulus=9), "modulus is 1 to 8"),
        ("moved", FreeSwizzle(main=0, second=1, out=0, cf=range(0)), "cf needs"),
        ("moved", FreeSwizzle(main=0, second=1, out=0, c=range(10**9)), "c needs"),
        ("moved", FreeSwizzle(main=0, second=1, out=0, df=range(-1, 3)), "0 or more"),
    ],
)
def test_wrong_swizzles(name: str, swizzle: FreeSwizzle, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        fill_free(stencil("identity"), {name: swizzle})
