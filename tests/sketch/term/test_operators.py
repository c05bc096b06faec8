"""Every fold has its operator: what the word `fold` reads, what is refused, what numbers say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import of

from warploom.errors import CheckError
from warploom.search.outcome import Verdict
from warploom.sketch.term import spec
from warploom.sketch.term.ir import Apply, Goal, Program
from warploom.sketch.term.numeric import assign, evaluate_numbers
from warploom.sketch.term.read import as_published, read
from warploom.sketch.term.scalar import Sym
from warploom.sketch.term.show import show_term
from warploom.sketch.term.verify import Verification, verify

Load = Callable[[str], Program]

X = "x: [4] = range(0, 4)\n"


def verified(program: Program, *fill: int) -> Verification:
    return verify(program, program.goals[0], fill)


def refused(program: Program) -> str:
    with pytest.raises(CheckError) as caught:
        verified(program)
    return str(caught.value)


# -- the word fold ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["+", "*", "min", "max", "&", "|", "^"])
def test_a_written_operator_is_part_of_the_proof(load: Load, sign: str) -> None:
    for other in ("+", "*", "min", "max", "&", "|", "^"):
        program = load(f"{X}y: [2] = {sign} x{{fold_len=2}} goal: [2] = {other} [[0, 1], [2, 3]]")
        if sign == other:
            assert verified(program).verdict is Verdict.PROVED
        else:
            assert "in cell (0)" in refused(program)


@pytest.mark.parametrize("sign", ["+", "*", "min", "max", "&", "|", "^"])
def test_the_word_fold_reads_any_operator(load: Load, sign: str) -> None:
    by_goal = load(f"{X}y: [2] = fold x{{fold_len=2}} goal: [2] = {sign} [[0, 1], [2, 3]]")
    by_step = load(f"{X}y: [2] = {sign} x{{fold_len=2}} goal: [2] = fold [[0, 1], [2, 3]]")
    for program in (by_goal, by_step):
        reading = read(program, program.goals[0])
        step = reading.program.steps[1]
        assert isinstance(step, Apply)
        assert step.operator == sign
        assert show_term(reading.goal.values[0]) == f"{sign}(0, 1)"
        assert verified(program).verdict is Verdict.PROVED
        assert "what 'fold' computes" not in verified(program).not_covered


def test_a_fold_that_nobody_resolves_is_its_own_operator(load: Load) -> None:
    program = load(X + "y: [2] = fold x{fold_len=2} goal: [2] = [(0, 1), (2, 3)]")
    assert verified(program).verdict is Verdict.PROVED
    assert verified(program).not_covered == ("what 'fold' computes", "rounding and overflow")


def test_the_word_goes_by_depth(load: Load) -> None:
    program = load(
        X + "p: [2] = fold x{fold_len=2} y: [1] = fold p{fold_len=2} "
        "goal: [1] = + [[*(0, 1), *(2, 3)]]"
    )
    reading = read(program, program.goals[0])
    assert [s.operator for s in reading.program.steps if isinstance(s, Apply)] == ["*", "+"]
    assert verified(program)


def test_a_step_that_forms_folds_of_two_depths_is_read_cell_by_cell(load: Load) -> None:
    text = """x: [4] = range(0, 4)
    define mix([4], [1]) -> [2, 2] = [0, 1, 2, (1, 0)]
    p: [1] = * x{fold_len=4}
    y: [2] = fold mix{fold_len=2}(x, p)
    goal: [2] = [*(0, 1), +(2, *(0, 1, 2, 3))]"""
    program = load(text)
    assert verified(program)
    assert verified(load(text.replace("[*(0, 1), +", "[*(0, 1), *")))  # products at both depths
    mixed = verified(load(text.replace("p: [1] = *", "p: [1] = min")))
    assert (mixed.cell, mixed.holds) == ((1,), "+(2, min(0, 1, 2, 3))")


def test_one_operator_for_all_folds_of_a_depth(load: Load) -> None:
    program = load(X + "y: [2] = fold x{fold_len=2}\ngoal: [2] = [+(0, 1), *(2, 3)]")
    assert refused(program).splitlines()[0] == (
        "t.swflow:2:1: 'y' has folds of depth 1 written 'fold', and the goal's of that depth are "
        "* and + (t.swflow:3:7)"
    )
    program = load(
        X + "p: [1] = + x{fold_len=4}\nq: [1] = * x{fold_len=4}\ny: [2] = stack(p, q)\n"
        "goal: [2] = [(0, 1, 2, 3), (0, 1, 2, 3)]"
    )
    assert refused(program).splitlines()[0] == (
        "t.swflow:5:7: the goal's folds of depth 1 are written 'fold', but 'p' (+) "
        "(t.swflow:2:1) and 'q' (*) (t.swflow:3:1) differ"
    )


def test_depths_are_told_apart_by_cell(load: Load) -> None:
    """A bias and a product in one sum: the sum is always of depth two."""
    program = load(
        X + "p: [2] = * x{fold_len=2} b: [2] = [8, 9] y: [2] = + stack{fold_len=2}(p, b) "
        "goal: [2] = [((0, 1), 8), ((2, 3), 9)]"
    )
    assert show_term(read(program, program.goals[0]).goal.values[1]) == "+(9, *(2, 3))"
    assert verified(program)


def test_dead_steps_say_nothing(load: Load) -> None:
    program = load(
        X + "q: [2] = * x{fold_len=2} y: [2] = + x{fold_len=2} goal: [2] = [(0, 1), (2, 3)]"
    )
    assert verified(program)


def test_published_sketches_read_every_operator_as_fold(load: Load) -> None:
    program = load(X + "y: [2] = * x{fold_len=2} goal: [2] trove_sum{n=2}")
    assert refused(program).startswith("t.swflow:2:1: 'y' multiplies (*), but the goal")
    published = as_published(program)
    assert verified(published).verdict is Verdict.PROVED
    assert "what 'fold' computes" in verified(published).not_covered
    step = published.steps[1]
    assert isinstance(step, Apply)
    assert (step.operator, show_term(published.goals[0].values[0])) == ("fold", "(0, 1)")


# -- what can be seen ------------------------------------------------------------------------------


def test_both_places_are_named(load: Load) -> None:
    program = load(
        X + "p: [2] = + x{fold_len=2}\nout: [1] = * p{fold_len=2}\n"
        "goal: [1] = + [[*(0, 1), *(2, 3)]]\n"
    )
    assert refused(program) == (
        "t.swflow:3:1: 'out' multiplies (*), but the goal (t.swflow:4:7) adds (+) in cell (0)\n"
        "    3 | out: [1] = * p{fold_len=2}\n"
        "      | ^^^\n"
        "  let both say the same; the word 'fold' reads any operator"
    )


def test_an_operator_inside_is_seen_too(load: Load) -> None:
    program = load(
        X + "p: [2] = min x{fold_len=2}\nout: [1] = + p{fold_len=2}\n"
        "goal: [1] = + [[*(0, 1), *(2, 3)]]\n"
    )
    assert refused(program).splitlines()[0] == (
        "t.swflow:2:1: 'p' takes the minimum (min), but the goal (t.swflow:4:7) multiplies (*) "
        "in cell (0)"
    )


def test_what_cannot_be_seen_is_evaluated(load: Load) -> None:
    program = load(
        X + "p: [2] = + x{fold_len=2} q: [2] = * x{fold_len=2} y: [4] = reshape(p, q) "
        "goal: [4] = [+(0, 1), *(2, 3), *(0, 1), +(2, 3)]"
    )
    found = verified(program)
    assert (found.verdict, found.cell, found.wrong_cells) == (Verdict.REFUTED, (1,), 2)
    assert (found.holds, found.should_hold) == ("+(2, 3)", "*(2, 3)")


def test_a_goal_without_folds_is_no_mismatch(load: Load) -> None:
    program = load(X + "y: [4] = * x{fold_len=1} goal: [4] id")
    assert verified(program).verdict is Verdict.REFUTED
    program = load(X + "y: [4] = x goal: [4] = + [[0], [1], [2], [3]]")
    assert verified(program).verdict is Verdict.REFUTED


# -- zeros -----------------------------------------------------------------------------------------

MASKED = "define mask([4]) -> [4] = [0, (-1, 0), 2, (-1, 0)]\n" + X + "m: [4] = mask(x)\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "p: [2] = + m{fold_len=2} q: [2] = * m{fold_len=2} y: [4] = reshape(p, q) "
            "goal: [4] = [+(0), +(2), *(0), *(2)]",
            "a zero of 'm' would be 0 to 'p' (+) and 1 to 'q' (*)",
        ),
        (
            "define none([4]) -> [2, 2] = [0, 1, (-1, 0), (-1, 0)] p: [2] = * none{fold_len=2}(x) "
            "y: [1] = + p{fold_len=2} goal: [1] = + [[*(0, 1)]]",
            "a zero of 'p' would be 0 to 'y' (+) and 1 to 'p' (*)",
        ),
        (
            "define none([4]) -> [2, 2] = [0, 1, (-1, 0), (-1, 0)] p: [2] = * none{fold_len=2}(x) "
            "goal: [2] = [*(0, 1), ()]",
            "a zero of 'p' would be 0 in the goal and 1 to 'p' (*)",
        ),
        (
            'p: [4] = "f" m{fold_len=1} q: [2] = max m{fold_len=2} y: [6] = reshape(p, q) '
            'goal: [6] = ["f"(0), "f"(()), "f"(2), "f"(()), max(0), max(2)]',
            "a zero of 'm' would be 0 to 'p' (f()) and -inf to 'q' (max)",
        ),
    ],
)
def test_a_zero_cannot_be_two_numbers(load: Load, text: str, message: str) -> None:
    assert message in refused(load(MASKED + text))


@pytest.mark.parametrize(
    "text",
    [
        # Consumed by one operator only, and a product of it that is never empty.
        "p: [2] = * m{fold_len=2} y: [1] = + p{fold_len=2} goal: [1] = + [[*(0), *(2)]]",
        # An empty sum is 0, and so is the goal.
        "define none([4]) -> [2, 2] = [0, 1, (-1, 0), (-1, 0)] y: [2] = + none{fold_len=2}(x) "
        "goal: [2] = [+(0, 1), ()]",
        # The word takes a zero for nothing, whatever it reads.
        "p: [2] = fold m{fold_len=2} q: [2] = fold m{fold_len=1} z: [2] = * q{fold_len=2} "
        "y: [4] = reshape(p, z) goal: [4] = [(0), (2), ((0)), ((2))]",
        # A function of a zero is a function of 0.
        'y: [4] = "f" m{fold_len=1} goal: [4] = ["f"(0), "f"(()), "f"(2), "f"(())]',
        # Nothing consumes it.
        "y: [4] = m goal: [4] = [0, (), 2, ()]",
    ],
)
def test_a_zero_that_is_one_number_is_fine(load: Load, text: str) -> None:
    if "q: [2]" in text:
        text = text.replace("q: [2]", "q: [4]")
    assert verified(load(MASKED + text)), str(verified(load(MASKED + text)))


@pytest.mark.parametrize(
    ("text", "zero"),
    [
        (
            "define none([4]) -> [2, 2] = [0, 1, (-1, 0), (-1, 0)] p: [2] = * none{fold_len=2}(x) "
            "y: [1] = + p{fold_len=2} goal: [1] = + [[*(0, 1)]]",
            "a zero of 'p' would be 0 to 'y' (+) and 1 to 'p' (*)",
        ),
        ("p: [2] = * m{fold_len=2} y: [1] = + p{fold_len=2} goal: [1] = + [[*(0), *(2)]]", ""),
    ],
)
def test_a_zero_that_fold_takes_for_nothing_is_named(load: Load, text: str, zero: str) -> None:
    """Written with its operator the step would be refused; of `fold` the verdict says so."""
    written = load(MASKED + text.replace("= * ", "= fold "))
    verdict = verified(written)
    assert verdict.verdict is Verdict.PROVED
    named = [each for each in verdict.not_covered if "takes them for nothing" in each]
    assert named == (
        [f"zeros in what is written 'fold', which takes them for nothing ({zero})"] if zero else []
    )
    if zero:
        assert zero in refused(load(MASKED + text))
        assert "takes them for nothing" in str(verdict)


def test_any_choice_of_a_hole_counts(load: Load) -> None:
    """One choice of the hole brings the zero where a product takes it, another to the sum."""
    program = load(
        MASKED + "h: [4] = ?rots(m)\np: [2] = * h{fold_len=2}\nq: [2] = + m{fold_len=2}\n"
        "y: [4] = reshape(p, q)\ngoal: [4] = [*(0), *(2), +(0), +(2)]"
    )
    with pytest.raises(CheckError, match="a zero of 'm' would be 0 to 'q'"):
        verify(program, program.goals[0], [0])


# -- functions, constants, numbers -----------------------------------------------------------------


def test_functions_are_names_not_numbers(load: Load) -> None:
    program = load(
        X + 'y: [4] = "plumless" x{fold_len=1}\ngoal: [4] = "buckeroo" [[0],[1],[2],[3]]'
    )
    assert refused(program).splitlines()[0] == (
        "t.swflow:2:1: 'y' computes 'plumless', but the goal (t.swflow:3:7) computes 'buckeroo' "
        "in cell (0)"
    )
    program = load(X + 'y: [4] = "f" x{fold_len=1} goal: [4] = "f" [[0], [1], [2], [3]]')
    assert verified(program).not_covered == ("finish 'f' (the step gives no function)",)


def test_a_function_takes_one_item(load: Load) -> None:
    with pytest.raises(CheckError, match=r"'f\(\)' takes one item, not 2"):
        load(X + 'y: [2] = "f" x{fold_len=2} goal: [2] id')
    with pytest.raises(CheckError, match=r"'f\(\)' takes one item, not 2"):
        load(X + 'goal: [4] = [0, "f"(1, 2), 2, 3]')


def with_function(
    program: Program, function: Callable[..., Any], wanted: Callable[..., Any]
) -> Program:
    """The program whose last step computes `function`, with a goal given as a Python function."""
    steps = [*program.steps[:-1], replace(of(Apply, program.steps[-1]), function=function)]
    ((shape, values),), kept = spec.specify(wanted, [np.arange(4)])
    goal = Goal(shape, values, specification=kept)
    return replace(program, steps=tuple(steps), goals=(goal,))


def test_a_functions_values_are_compared(load: Load) -> None:
    text = X + 's: [1] = + x{fold_len=4} y: [1] = "half" s{fold_len=1} goal: [1] = [0]'

    def wanted(x: Any) -> Any:
        return [spec.finalized("half", spec.total(x), lambda value: value / 2)]

    right = verified(with_function(load(text), lambda value: 0.5 * value, wanted))
    assert right.verdict is Verdict.PROVED
    tried = "0, whole numbers up to ±4, halves up to ±4, whole numbers up to ±2^24, "
    tried += "whole numbers up to ±2^57"
    assert right.covers == (
        "symbols", "numbers, by the goal's function", f"finish 'half' (tried on {tried})",
    )  # fmt: skip
    assert right.not_covered == ("rounding and overflow",)
    wrong = verified(with_function(load(text), lambda value: value * 100, wanted))
    assert (wrong.verdict, wrong.cell) == (Verdict.REFUTED, (0,))
    assert Fraction(wrong.holds.removesuffix(" on numbers")) == 200 * Fraction(wrong.should_hold)
    unknown = verified(with_function(load(text), lambda value: value.shift(1), wanted))
    assert unknown.not_covered[-1] == "finish 'half' (its function does not run on numbers)"

    def unsaid(x: Any) -> Any:
        return [spec.finalized("half", spec.total(x))]

    open_ = verified(with_function(load(text), lambda value: value * 100, unsaid))
    assert open_.not_covered[-1] == "finish 'half' (no function given)"


@pytest.mark.parametrize(
    ("finish", "wanted"),
    [
        (lambda t: t, abs),
        (lambda t: t, lambda t: max(t, 0)),
        (lambda t: t, lambda t: min(t, 1 << 40)),
        (lambda t: t, lambda t: t or 1),
        (lambda t: t, int),
        (lambda t: t, lambda t: t * (1 + 5e-7)),
        (lambda t: t & (1 << 26) - 1, lambda t: t),
        (lambda t: t >> 1, lambda t: int(t / 2)),
        (lambda t: t >> 1, lambda t: t / 2),
    ],
)
def test_functions_that_agree_on_some_numbers_only(load: Load, finish: Any, wanted: Any) -> None:
    text = X + 's: [1] = + x{fold_len=4} y: [1] = "f" s{fold_len=1} goal: [1] = [0]'
    goal = partial(_finalized, wanted)
    assert verified(with_function(load(text), finish, goal)).verdict is Verdict.REFUTED
    assert verified(with_function(load(text), wanted, partial(_finalized, wanted)))


def _finalized(wanted: Any, x: Any) -> Any:
    return [spec.finalized("f", spec.total(x), wanted)]


@pytest.mark.parametrize(
    ("function", "tried"),
    [
        (math.sqrt, "0, whole numbers up to 4, halves up to 4, whole numbers up to 2^24"),
        (lambda t: 1 / t, "whole numbers up to 4, halves up to"),
        (math.exp, "0, whole numbers up to ±4, halves up to ±4)"),
        (lambda t: t >> 1, "0, whole numbers up to ±4, whole numbers up to ±2^24"),
    ],
)
def test_a_verdict_says_on_what_a_function_was_tried(load: Load, function: Any, tried: str) -> None:
    text = X + 's: [1] = + x{fold_len=4} y: [1] = "f" s{fold_len=1} goal: [1] = [0]'
    verdict = verified(with_function(load(text), function, partial(_finalized, function)))
    assert verdict.verdict is Verdict.PROVED
    assert f"finish 'f' (tried on {tried}" in verdict.covers[-1]
    assert f"proved; finish 'f' (tried on {tried}" in str(verdict)


def test_a_function_need_not_run_on_all_numbers(load: Load) -> None:
    """Sums of numbers of both signs may be zero: it is tried on those where it runs."""
    text = X + 's: [2] = + x{fold_len=2} y: [2] = "f" s{fold_len=1} goal: [2] = [0, 0]'

    def goal(x: Any) -> Any:
        return [spec.finalized("f", spec.total(row), lambda t: 1 / t) for row in x.reshape(2, 2)]

    right = verified(with_function(load(text), lambda t: 1 / t, goal))
    assert "(tried on whole numbers up to 4, halves up to 4, whole numbers up to ±2^24" in str(
        right
    )

    def seldom(t: Any) -> Any:
        if t % 7 == 5:
            raise ValueError(t)
        return 1 / t

    assert verified(with_function(load(text), seldom, goal)).verdict is Verdict.PROVED
    wrong = verified(with_function(load(text), lambda t: 2 / t, goal))
    assert wrong.verdict is Verdict.REFUTED


def test_a_goals_function_that_fails_is_named(load: Load) -> None:
    text = X + 's: [1] = + x{fold_len=4} y: [1] = "f" s{fold_len=1} goal: [1] = [0]'
    goal = partial(_finalized, lambda t: t / 0)
    verdict = verified(with_function(load(text), lambda t: t * 2.0, goal))
    assert verdict.covers[1].startswith("numbers, by the goal's terms (its function does not run")
    assert "finish 'f' (the goal's function fails: division by zero)" in verdict.not_covered


@pytest.mark.parametrize("sign", ["*", "max"])
def test_the_mean_of_no_sum_is_a_name(load: Load, sign: str) -> None:
    """Nobody says what the mean of a product is: nothing is compared with it."""
    text = X + f's: [1] = {sign} x{{fold_len=4}} y: [1] = "mean" s{{fold_len=1}} '
    text += f'goal: [1] = ["mean"({sign}(0, 1, 2, 3))]'
    program = load(text)
    (goal,) = program.goals
    steps = tuple(
        replace(of(Apply, step), function=lambda value: value) if step.name == "y" else step
        for step in program.steps
        if isinstance(step, Apply) or step.name == "x"
    )
    verdict = verify(replace(program, steps=steps), goal)
    assert "finish 'mean' (no function given)" in verdict.not_covered


def test_a_mean_needs_no_function(load: Load) -> None:
    text = X + 's: [1] = + x{fold_len=4} y: [1] = "mean" s{fold_len=1} goal: [1] = ["mean"(+(0))]'

    def wanted(x: Any) -> Any:
        return [spec.finalized("mean", spec.total(x))]

    assert verified(with_function(load(text), lambda value: value / 4.0, wanted))
    for wrong in (lambda value: value * 100, lambda value: value / 3.0, lambda value: value):
        assert verified(with_function(load(text), wrong, wanted)).verdict is Verdict.REFUTED


def test_constants_are_numbers(load: Load) -> None:
    text = (
        X + "c: [1] = [=5] y: [1] = {0} reshape{{fold_len=5}}(x, c) goal: [1] = [{0}(0,1,2,3,{1})]"
    )
    for sign in ("+", "*", "min", "|"):
        assert verified(load(text.format(sign, "=5.0")))
        wrong = verified(load(text.format(sign, "=6")))
        assert (wrong.holds, wrong.should_hold) == (
            f"{sign}(0, 1, 2, 3, =5)",
            f"{sign}(0, 1, 2, 3, =6)",
        )
    text = (
        X + "c: [1] = [=0.1] y: [1] = + reshape{fold_len=5}(x, c) goal: [1] = [+(0, 1, 2, 3, =0.1)]"
    )
    assert verified(load(text)).not_covered == (
        "rounding and overflow", "how the element type holds 0.1",
    )  # fmt: skip


def test_a_goals_function_is_run_on_numbers(load: Load) -> None:
    """A function that says one thing of symbols and another of numbers is found out."""
    program = load(X + "y: [1] = + x{fold_len=4} goal: [1] = [+(0, 1, 2, 3)]")

    def honest(x: Any) -> Any:
        return [x.sum()]

    def two_faced(x: Any) -> Any:
        return [x.sum() if isinstance(x[0], Sym) else x.sum() + 1]

    def unwilling(x: Any) -> Any:
        if not isinstance(x[0], Sym):
            raise TypeError("symbols only")
        return [x.sum()]

    def goal(function: Callable[..., Any]) -> Program:
        ((shape, values),), kept = spec.specify(function, [np.arange(4)])
        return replace(program, goals=(Goal(shape, values, specification=kept),))

    assert verified(goal(honest)).covers == ("symbols", "numbers, by the goal's function")
    found = verified(goal(two_faced))
    assert (found.verdict, found.cell, found.wrong_cells) == (Verdict.REFUTED, (0,), 1)
    assert int(found.should_hold) == int(found.holds.removesuffix(" on numbers")) + 1
    found = verified(goal(unwilling))
    assert found.covers == (
        "symbols",
        "numbers, by the goal's terms (its function does not run on them: symbols only)",
    )
    assert "the goal's function on numbers" in str(found)


@pytest.mark.parametrize("sign", ["min", "max", "&", "|", "^"])
@pytest.mark.parametrize("long", [False, True])
def test_numbers_are_exact_where_they_must_be(load: Load, sign: str, long: bool) -> None:
    """Products of many factors do not fit 64 bits: they are Python's integers then."""
    run = 12 if long else 1
    halves = [list(range(run)), list(range(run, 2 * run))]
    text = f"""x: [{2 * run}] = range(0, {2 * run})
    p: [2] = * x{{fold_len={run}}}
    y: [1] = {sign} p{{fold_len=2}}
    goal: [1] = {sign} * [{halves}]"""
    program = load(text)
    assert verified(program)
    reading = read(program, program.goals[0])
    assignment = assign(reading)
    assert assignment.dtype == (object if long else np.int64)
    value = evaluate_numbers(reading.program, (), assignment)[-1].values[0, 0]
    a, b = (math.prod(assignment.symbols[i][0] for i in half) for half in halves)
    assert value == {"min": min(a, b), "max": max(a, b), "&": a & b, "|": a | b, "^": a ^ b}[sign]


def test_a_goal_in_a_text_may_ask_for_laws(load: Load) -> None:
    text = X + "p: [2] = + x{fold_len=2}\ny: [1] = + p{fold_len=2}\n"
    goal = "goal: [1] = [+(0, 1, 2, 3)]"
    assert verified(load(text + goal)).verdict is Verdict.REFUTED
    assert verified(load(text + "@flatten " + goal)).laws[0].startswith("reassociated: +")
    with pytest.raises(CheckError, match=r"t\.swflow:4:2: a goal has no '@flat'"):
        load(text + "@flat " + goal)


def test_under_laws_every_fold_needs_its_operator(load: Load) -> None:
    text = X + "p: [2] = {} x{{fold_len=2}}\ny: [1] = {} p{{fold_len=2}}\n@flatten goal: [1] = {}"
    assert verified(load(text.format("fold", "fold", "[+(*(0, 1), *(2, 3))]")))
    for words in (("fold", "fold", "[+(0, 1, 2, 3)]"), ("fold", "fold", "[((0, 1), (2, 3))]")):
        assert "nothing says which operator it has" in refused(load(text.format(*words)))


def test_numbers_that_an_operator_cannot_take(load: Load) -> None:
    program = load(X + "c: [1] = [=0.5]\ny: [1] = ^ reshape{fold_len=5}(x, c)\n"
                   "goal: [1] = [^(0, 1, 2, 3, =0.5)]")  # fmt: skip
    assert "in the goal: '^' of numbers that it does not take" in refused(program)
    with pytest.raises(CheckError) as caught:
        verify(program, program.goals[0])
    assert caught.value.span == program.goals[0].span is not None


def test_a_goal_that_depends_on_what_it_is_given_is_refuted(load: Load) -> None:
    """By their text the symbols have an order, which is not that of the numbers."""

    def chosen(x: Any) -> Any:
        return [max(x[:2], key=repr)]

    text = X + "y: [1] = define_last(x) goal: [1] = [1]"
    text = "define define_last([4]) -> [1] = [1] " + text
    program = load(text)
    terms, given = spec.specify(chosen, [np.arange(4)])
    goal = replace(program.goals[0], values=terms[0][1], specification=given)
    for seed in range(8):
        assert verify(program, goal, seed=seed).verdict is Verdict.REFUTED


@pytest.mark.parametrize("zero", [np.int32(0), np.int64(0), np.float32(0)])
def test_a_goal_that_overflows_on_the_numbers_tried_refutes_nothing(load: Load, zero: Any) -> None:
    """They are long: its terms say what it means, and the verdict that it was not run."""
    text = X + "y: [1] = + x{fold_len=4} goal: [1] = [0]"

    def goal(x: Any) -> Any:
        return [zero + x[0] + x[1] + x[2] + x[3]]

    ((shape, values),), kept = spec.specify(goal, [np.arange(4)])
    verdict = verify(load(text), Goal(shape, values, specification=kept))
    assert verdict.verdict is Verdict.PROVED
    run = "the goal's function on numbers" not in verdict.not_covered
    assert run == (zero.dtype == np.int64)
