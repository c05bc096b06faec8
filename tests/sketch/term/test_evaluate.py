from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.search.outcome import Verdict
from warploom.sketch.term.evaluate import TermStore, evaluate
from warploom.sketch.term.ir import (
    Apply,
    Fold,
    Program,
    Symbol,
    Term,
    Undefined,
    Zero,
    fold_of,
)
from warploom.sketch.term.numeric import (
    NUMBER,
    PRIME,
    UNDEFINED_STATE,
    ZERO_STATE,
    assign,
    evaluate_numbers,
    goal_numbers,
)
from warploom.sketch.term.read import read
from warploom.sketch.term.verify import Verifier, verify

Load = Callable[[str], Program]


def pack(*items: int | Term) -> Term:
    return fold_of([Symbol(item) if isinstance(item, int) else item for item in items])


def last(program: Program, *fill: int) -> tuple[Term, ...]:
    return evaluate(program, fill)[-1]


def test_gathers_and_folds_on_symbols(load: Load) -> None:
    program = load(
        """x: [4] = range(0, 4)
        dropped: [4] = drop(x)
        turned: [4] = ?rots(dropped)
        pairs: [4, 2] = stack(x, turned)
        out: [4] = fold pairs{fold_len=2}
        goal: [4] = [(0, 2), (1,), (2, 0), (3,)]"""
    )
    x, dropped, turned, _, out = evaluate(program, {2: 2})
    assert x == tuple(map(Symbol, range(4)))
    assert dropped == (Symbol(0), Zero(), Symbol(2), Zero())
    assert turned == (Symbol(2), Zero(), Symbol(0), Zero())
    assert out == (pack(0, 2), pack(1), pack(2, 0), pack(3)) == program.goals[0].values
    assert verify(program, program.goals[0], [2]).verdict is Verdict.PROVED


def test_undefined_spoils_a_fold_and_zero_vanishes(load: Load) -> None:
    program = load(
        """define f([2]) -> [3, 2] = [0, -1, (-1, 0), (-1, 5), 1, (-1, 0)]
        x: [2] = range(0, 2)
        y: [3] = fold f{fold_len=2}(x)
        goal: [3] = [0, (), (1,)]"""
    )
    assert last(program) == (Undefined(), Zero(), pack(1))
    found = verify(program, program.goals[0])
    assert (found.cell, found.holds, found.should_hold) == ((0,), "?", "0")
    assert found.wrong_cells == 1


def test_a_fold_is_a_multiset(load: Load) -> None:
    program = load(
        "x: [2] = [0, 0] y: [1] = fold x{fold_len=2} goal: [1] = [(0, 0)] goal: [1] = [(0,)]"
    )
    assert verify(program, program.goals[0]).verdict is Verdict.PROVED
    assert verify(program, program.goals[1]).verdict is Verdict.REFUTED
    assert len(last(program)) == 1
    assert isinstance(last(program)[0], Fold)


def test_a_symbol_the_goal_does_not_know_satisfies_nothing(load: Load) -> None:
    program = load("x: [2] = [-1, 5] goal: [2] = [4, 5]")
    assert str(verify(program, program.goals[0])) == (
        "refuted: cell (0) holds -1, should hold 4 (1 cells are wrong)"
    )


def test_verify_names_the_first_wrong_cell(load: Load) -> None:
    program = load("x: [2, 3] = range(0, 6) y: [2, 3] = rots(x) goal: [2, 3] = [[0,1,2],[3,5,4]]")
    found = verify(program, program.goals[0], [0])
    assert (found.verdict, found.cell) == (Verdict.REFUTED, (1, 1))
    assert (found.holds, found.should_hold, found.wrong_cells) == ("4", "5", 2)
    assert not found


def test_fills_are_checked(load: Load) -> None:
    program = load("x: [2] = range(0, 2) y: [2] = rots(x) goal: [2] id")
    for fill, message in (
        ((), "the sketch has 1 holes, the fill has 0 choices"),
        ((2,), "hole 'y' has choices 0 to 1, not 2"),
        ((-1,), "hole 'y' has choices 0 to 1, not -1"),
        ({}, "the fill has no choice for hole 'y' (step 1)"),
    ):
        with pytest.raises(CheckError) as caught:
            evaluate(program, fill)
        assert str(caught.value) == message


def test_terms_and_their_numbers_correspond() -> None:
    store = TermStore()
    terms = (Zero(), Undefined(), Symbol(7), pack(7, 8), pack(pack(8, 7), 7), pack(7, 7, 7))
    ids = store.numbers(terms)
    assert len(set(ids.tolist())) == len(terms)
    assert store.terms(ids) == terms
    rows = np.array([[ids[2], 1, store.number(Symbol(8))]], np.int32)
    assert store.fold(rows).tolist() == [ids[3]]


# -- numbers -------------------------------------------------------------------------------------


def test_weighted_sums_multiply_inside_and_add_outside(load: Load) -> None:
    program = load(
        """x: [2] = range(0, 2) w: [2] = range(2, 4)
        p: [2] = fold stack{fold_len=2}(x, w)
        y: [1] = fold p{fold_len=2}
        goal: [1] = [((0, 2), (1, 3))]"""
    )
    reading = read(program, program.goals[0])
    assignment = assign(reading, seed=5)
    a, b, c, d = (np.array(assignment.symbols[i], object) for i in range(4))
    steps = evaluate_numbers(reading.program, (), assignment)
    assert steps[2].values.astype(object).T.tolist() == [
        (a * c % PRIME).tolist(), (b * d % PRIME).tolist(),
    ]  # fmt: skip
    expected = ((a * c + b * d) % PRIME).tolist()
    assert steps[3].values[:, 0].tolist() == expected
    assert goal_numbers(reading.goal, assignment).values[:, 0].tolist() == expected


def test_written_operators_win(load: Load) -> None:
    program = load(
        """x: [2] = range(0, 2) w: [2] = range(2, 4)
        p: [2] = + stack{fold_len=2}(x, w)
        y: [1] = * p{fold_len=2}
        goal: [1] = [((0, 2), (1, 3))]"""
    )
    reading = read(program, program.goals[0])
    assignment = assign(reading)
    a, b, c, d = (np.array(assignment.symbols[i], object) for i in range(4))
    expected = ((a + c) * (b + d) % PRIME).tolist()
    assert evaluate_numbers(program, (), assignment)[-1].values[:, 0].tolist() == expected
    assert goal_numbers(reading.goal, assignment).values[:, 0].tolist() == expected
    assert verify(program, program.goals[0])


@pytest.mark.parametrize("sign", ["+", "*"])
def test_zero_is_the_identity_of_the_fold_that_meets_it(load: Load, sign: str) -> None:
    program = load(
        f"""define f([2]) -> [3, 2] = [0, (-1, 0), (-1, 0), 1, 1, -1]
        x: [2] = range(0, 2) y: [3] = {sign} f{{fold_len=2}}(x) goal: [3] = [(0,), (1,), (1,)]"""
    )
    reading = read(program, program.goals[0])
    assignment = assign(reading)
    numbers = evaluate_numbers(program, (), assignment)[-1]
    assert numbers.state.tolist() == [NUMBER, NUMBER, UNDEFINED_STATE]
    assert numbers.values[:, 0].tolist() == assignment.symbols[0]
    assert numbers.differs(goal_numbers(reading.goal, assignment)).tolist() == [
        False, False, True,
    ]  # fmt: skip


def test_a_zero_that_nothing_consumes_is_0(load: Load) -> None:
    program = load(
        """define f([2]) -> [3, 2] = [0, 1, (-1, 0), (-1, 0), 1, -1]
        x: [2] = range(0, 2) y: [3] = + f{fold_len=2}(x) goal: [3] = [(0, 1), (), (1,)]"""
    )
    reading = read(program, program.goals[0])
    assignment = assign(reading)
    numbers = evaluate_numbers(program, (), assignment)[-1]
    assert numbers.state.tolist() == [NUMBER, ZERO_STATE, UNDEFINED_STATE]
    assert numbers.values[:, 1].tolist() == [0, 0, 0]
    assert numbers.differs(goal_numbers(reading.goal, assignment)).tolist() == [
        False, False, True,
    ]  # fmt: skip


# -- many fills ----------------------------------------------------------------------------------

SKETCH = """x: [8] = range(0, 8)
a: [8] = ?rots(x)
b: [8] = drop(a)
c: [8] = ?rots(x)
p: [8] = * stack{fold_len=2}(b, c)
q: [8] = ?rots(p)
y: [4] = + q{fold_len=2}
goal: [4] = [((0, 0), (1,)), ((2, 2), (3,)), ((4, 4), (5,)), ((6, 6), (7,))]"""


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*[st.integers(0, 7)] * 3), min_size=1, max_size=10))
def test_a_verifier_says_of_many_fills_what_evaluation_says_of_each(
    load: Load, fills: list[tuple[int, int, int]]
) -> None:
    program = load(SKETCH)
    goal = program.goals[0]
    verifier = Verifier(program, goal)
    reading = read(program, goal)
    assignment = assign(reading, seed=3)
    wanted = goal_numbers(reading.goal, assignment)
    for fill in [*fills, (0, 0, 0), (2, 2, 6)]:
        right = evaluate(program, fill)[-1] == reading.goal.values
        assert bool(verifier.verify(fill)) == right
        numbers = evaluate_numbers(program, fill, assignment)[-1]
        assert not numbers.differs(wanted).any() or not right


def test_symbols_and_numbers_agree_on_every_fill(load: Load) -> None:
    program = load(SKETCH)
    reading = read(program, program.goals[0])
    assignment = assign(reading)
    wanted = goal_numbers(reading.goal, assignment)
    verifier = Verifier(program, program.goals[0])
    right = 0
    for a in range(8):
        for c in range(0, 8, 2):
            for q in range(0, 8, 2):
                found = verifier.verify((a, c, q))
                numbers = evaluate_numbers(program, (a, c, q), assignment)[-1]
                assert bool(found) == (not numbers.differs(wanted).any())
                right += bool(found)
    assert right == 4  # all three rotation together, by an even number


def test_verification_is_quick(load: Load) -> None:
    rows = "".join(f"s{i}: [32, 16] = rots(s{i - 1})\n" for i in range(1, 6))
    program = load(
        "s0: [32, 16] = range(0, 512)\n"
        + rows
        + "y: [32] = + s5{fold_len=16} goal: [32] trove_sum{n=16}"
    )
    verifier = Verifier(program, program.goals[0])
    assert verifier.verify([0] * 5)
    fills = np.random.default_rng(0).integers(0, 512, (100, 5)).tolist()
    begin = time.process_time()
    for fill in fills:
        verifier.verify(fill)
    assert (time.process_time() - begin) / len(fills) < 0.5  # about 1 ms on an idle machine
    step = program.steps[1]
    assert isinstance(step, Apply)
    assert len(step.gathers) == 512
