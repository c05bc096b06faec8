from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError, WarploomError
from warploom.sketch.term.ir import (
    Apply,
    Constant,
    Program,
    Symbol,
    Term,
    Undefined,
    Zero,
    fold_of,
)

Load = Callable[[str], Program]
GOAL = "\ngoal: [4] id\n"


def pack(*numbers: int) -> Term:
    return fold_of([Symbol(number) for number in numbers])


def apply_step(program: Program, position: int) -> Apply:
    step = program.steps[position]
    assert isinstance(step, Apply)
    return step


def test_names_are_looked_up_and_shadowed_names_stay_apart(load: Load) -> None:
    program = load("x: [4] = range(0, 4) x: [4] = ?rots(x) y: [4] = rots(x)" + GOAL)
    assert [step.name for step in program.steps] == ["x", "x.2", "y"]
    assert [apply_step(program, i).args for i in (1, 2)] == [(0,), (1,)]
    assert program.holes == (1, 2)


def test_a_block_is_flattened_and_its_names_end_with_it(load: Load) -> None:
    program = load(
        """a: [4] = range(0, 4)
        b: [4] = {
          a: [4] = rots(a)
          inner: [4] = { c: [4] = a }
          d: [8] = stack(a, inner)
          e: [4] = inner
        }
        f: [8] = stack(a, b)
        g: [4] = a
        goal: [4] id"""
    )
    names = ["a", "b.a", "b.inner.c", "b.d", "b.e", "f", "g"]
    assert [step.name for step in program.steps] == names
    args = {s.name: [names[i] for i in s.args] for s in program.steps if isinstance(s, Apply)}
    assert args == {
        "b.a": ["a"],
        "b.inner.c": ["b.a"],
        "b.d": ["b.a", "b.inner.c"],
        "b.e": ["b.inner.c"],
        "f": ["a", "b.e"],
        "g": ["a"],
    }


def test_a_variable_called_alone_is_a_copy(load: Load) -> None:
    program = load("stack: [4] = range(0, 4) y: [2, 2] = stack z: [4] = y" + GOAL)
    assert apply_step(program, 1).gathers.function == "identity"
    assert apply_step(program, 1).shape == (2, 2)


@pytest.mark.parametrize(
    ("text", "shape", "fold", "operator"),
    [
        ("[2, 2] = fold reshape(x)", (2,), 2, "fold"),
        ("[2] = + reshape{fold_len=2}(x)", (2,), 2, "+"),
        ("[4, 1] = * reshape{fold_len=0}(x)", (4,), 1, "*"),
        ("[2] = fold x{fold_len=2}", (2,), 2, "fold"),
        ("[2, 2] = fold (x)", (2,), 2, "fold"),
        ("[4] = fold ?rots(x)", (), 4, "fold"),
    ],
)
def test_fold_typing(
    load: Load, text: str, shape: tuple[int, ...], fold: int, operator: str
) -> None:
    program = load(f"x: [4] = range(0, 4) y: {text} x: [4] = x" + GOAL)
    step = apply_step(program, 1)
    assert (step.shape, step.fold, step.operator) == (shape, fold, operator)
    assert step.gathers.out_shape == (*shape, fold)


def test_the_fold_length_is_not_an_option_of_the_function(load: Load) -> None:
    # The library refuses options it does not know, as `rots` would refuse fold_len.
    program = load("x: [4] = range(0, 4) y: [2] = fold rots{fold_len=2}(x) z: [4] = x" + GOAL)
    assert apply_step(program, 1).gathers.options == ()


def test_literals(load: Load) -> None:
    program = load(
        """a: [2, 2] = range(3, 7)
        b: [2] = fold [[0, 1], [2, 2]]
        c: [2, 2] = fold [[0, 1], [2, 3]]
        d: [2, 2] = + range(0, 4)
        e: [3] = [(), (1, (-1, 2)), ?]
        f: [1] = fold * [[[0, 1], [2, 3]]]
        goal: [1] = [((0, 1), (2, 3))]"""
    )
    a, b, c, d, e, f = program.steps
    assert (a.shape, evaluate_literal(a)) == ((2, 2), tuple(map(Symbol, range(3, 7))))
    assert (b.shape, evaluate_literal(b)) == ((2,), (pack(0, 1), pack(2, 2)))
    assert (c.shape, evaluate_literal(c)) == ((2,), (pack(0, 1), pack(2, 3)))
    added = tuple(fold_of(list(map(Symbol, pair)), "+") for pair in ((0, 1), (2, 3)))
    assert (d.shape, evaluate_literal(d)) == ((2,), added)
    packed = fold_of([Symbol(1), pack(-1, 2)])
    assert evaluate_literal(e) == (Zero(), packed, Undefined())
    products = [fold_of(list(map(Symbol, pair)), "*") for pair in ((0, 1), (2, 3))]
    assert evaluate_literal(f) == (fold_of(products),)
    assert program.goals[0].values == (fold_of([pack(0, 1), pack(2, 3)]),)


def test_operators_in_literals(load: Load) -> None:
    program = load(
        """a: [3] = [+(0, 1), min(2, *(3, 4),), "mean"(+(0, 1))]
        b: [2] = & [[0, 1], [2, 3]]
        c: [1] = "root" ^ [[[4, 5]]]
        d: [5] = [=2, =-0.5, =1e3, =inf, |(0, =7)]
        e: [1] = [7]
        goal: [1] = max fold [[[0, 1], [2, 3]]]"""
    )
    a, b, c, d, _ = map(evaluate_literal, program.steps)
    x: list[Term] = [Symbol(number) for number in range(6)]
    total = fold_of(x[:2], "+")
    least = fold_of([x[2], fold_of(x[3:5], "*")], "min")
    assert a == (total, least, fold_of([total], "mean()"))
    assert b == (fold_of(x[:2], "&"), fold_of(x[2:4], "&"))
    assert c == (fold_of([fold_of(x[4:6], "^")], "root()"),)
    numbers = [Constant(2), Constant(-0.5), Constant(1000), Constant(math.inf)]
    assert d == (*numbers, fold_of([x[0], Constant(7)], "|"))
    assert program.goals[0].values == (fold_of([pack(0, 1), pack(2, 3)], "max"),)


def evaluate_literal(step: object) -> tuple[Term, ...]:
    values: tuple[Term, ...] = step.values  # type: ignore[attr-defined]
    return values


def test_definitions_by_exact_shapes(load: Load) -> None:
    program = load(
        """define f([4]) -> [2] = [3, 0]
        define f([4], [2]) -> [2] = { one = [(1, 1), (-1, 9)], "the two" = [(1, (0)), (-1, (7, 7))],
                                      again = [(1, 1), (2, 0)], out = [-1, (0, 4)] }
        x: [4] = range(0, 4)
        y: [2] = f(x)
        z: [2] = ?f(x, y)
        define f([4]) -> [2] = [((2)), 0]
        w: [2] = f(x)
        goal: [2] = [1, 2]"""
    )
    assert apply_step(program, 1).gathers.tables.tolist() == [[3, 0]]
    assert apply_step(program, 2).gathers.tables.tolist() == [[5, -1], [4, -1], [-2, -2]]
    assert apply_step(program, 3).gathers.tables.tolist() == [[2, 0]]
    assert [d.choices for d in program.definitions] == [("f",), ("one", "the two", "out"), ("f",)]


def test_definitions_come_before_built_ins(load: Load) -> None:
    program = load(
        """x: [2] = range(0, 2) a: [2] = reshape(x)
        define reshape([2]) -> [2] = [1, 0]
        b: [2] = reshape(x) c: [2, 1] = reshape(x) d: [2] = x
        goal: [2] = [0, 1]"""
    )
    assert [apply_step(program, i).gathers.tables.tolist() for i in (1, 2, 3)] == [
        [[0, 1]], [[1, 0]], [[0, 1]],
    ]  # fmt: skip


def test_several_goals_anywhere(load: Load) -> None:
    program = load("goal: [4] id x: [4] = { goal: [4] = [3, 2, 1, 0] y: [4] = range(0, 4) }")
    assert [goal.text for goal in program.goals] == ["id", ""]


def test_advice_on_pruning_is_ignored_and_other_annotations_are_not(load: Load) -> None:
    program = load("@noprune x: [4] = range(0, 4) @prune @noprune y: [4] = rots(x)" + GOAL)
    assert len(program.steps) == 2
    assert all(step.marks == () for step in program.steps)
    with pytest.raises(CheckError, match="an array has no '@fast'"):
        load("@noprune x: [4] = range(0, 4) @fast y: [4] = rots(x)" + GOAL)


X = "x: [4] = range(0, 4)\n"


@pytest.mark.parametrize(
    ("text", "first_line", "advice"),
    [
        ("", "1:1: the sketch is empty", "begin with an input"),
        ("# nothing", "1:10: the sketch is empty", "begin with an input"),
        ("goal: [4] id", "1:13: the sketch has a goal but no statement", "begin with an input"),
        (X, "2:1: the sketch has no goal", "add one"),
        (X + "y: [4] = rotss(x)", "2:10: unknown function 'rotss'", "did you mean 'rots'?"),
        (X + "y: [4] = zzzzz(x)", "2:10: unknown function 'zzzzz'", "functions: drop, identity"),
        ("xyz: [4] = range(0, 4) y: [4] = rots(xya)", "1:38: unknown name 'xya'", "'xyz'?"),
        (X + "y: [4] = rots", "2:10: 'rots' is no variable, and a function needs", "'rots'?"),
        (X + "y: [4] = qqq", "2:10: 'qqq' is no variable", "write qqq(…)"),
        (X + "y: [4] = x(x)", "2:10: 'x' is a variable here", "rename the variable"),
        (X + "y: [4] = x{k=1}", "2:10: copying 'x' takes no options", ""),
        (X + "y: [5] = rots(x)", "2:10: rots: sizes differ", "make them equal"),
        (X + "y: [4] = rots{no}(x)", "2:10: rots has no such option", ""),
        (X + "y: [4] = rots{fold_len=2}(x)", "2:15: option 'fold_len' without", "write fold"),
        (X + "y: [4] = + rots{fold_len=-2}(x)", "2:17: option 'fold_len' is a number of", ""),
        (X + "y: [4] = + rots{fold_len}(x)", "2:17: option 'fold_len' is a number of", ""),
        (
            "define f([2]) -> [4] = [0,1,0,1]\n" + X + "y: [4] = f(x)",
            "3:10: no definition f([4]) -> [4]",
            "there is f([2]) -> [4]",
        ),
        (
            "define rots([2]) -> [4] = [0,1,0,1]\n" + X + "y: [8] = rots(x)",
            "3:10: rots: sizes differ",
            "there is rots([2]) -> [4]",
        ),
        (
            "define f([4]) -> [4] = [0,1,2,3]\n" + X + "y: [4] = f{k=1}(x)",
            "3:10: 'f' is a definition and takes no options",
            "",
        ),
        ("x: [1000000000] = range(0, 1000000000)", "1:4: [1000000000] has 1000000000", "warp"),
        ("x: [3000, 3000] = range(0, 9)", "1:4: [3000, 3000] has 9000000 cells, more than", "warp"),
        (f"x: [{'1, ' * 33}] = [0]", "1:4: an array has at most 32 axes", ""),
        (X + "y: [4000000] = + x{fold_len=4000000}", "2:18: [4000000, 4000000] has 160000000", ""),
        ("x: [4] = range(0, 5)", "1:10: declared [4] with 4 cells, but range(0, 5) holds 5", ""),
        ("x: [4] = range(4, 0)", "1:10: range(4, 0) holds nothing", "0 <= a < b"),
        ("x: [4] = range(-4, 0)", "1:10: range(-4, 0) holds nothing", "0 <= a < b"),
        ("x: [4] = [1, 2, 3]", "1:4: declared [4], but the array has [3]", ""),
        ("x: [4] = fold [1, 2, 3]", "1:4: declared [4], but the array has [3]", "before or after"),
        ("x: [4] = fold fold [1, 2, 3, 4]", "1:10: 2 folds need 2 axes, got [4]", ""),
        (X + "y: [2] = { goal: [4] id }", "2:10: a block needs at least one binding", ""),
        (X + "y: [2] = { z: [4] = x }", "2:4: 'y' is declared [2], but the last binding", ""),
        (X + "y: [4] = { z: [4] = x }\nw: [4] = z", "3:10: 'z' is no variable", ""),
        (X + "goal: [4] idd", "2:11: unknown goal 'idd'", "did you mean 'id'?"),
        (X + "goal: [4] conv", "2:11: goal 'conv' needs option 'k'", "write conv {k=…}"),
        (X + "goal: [4] conv{k=0}", "2:16: option 'k' is a number of at least 1", ""),
        (X + "goal: [4] conv{k=[1]}", "2:16: option 'k' is a number of at least 1", ""),
        (X + "goal: [4] conv{w=2}", "2:16: goal 'conv' has no option 'w'", "write conv {k=…}"),
        (X + "goal: [4] id{w=2}", "2:14: goal 'id' has no option 'w'", "takes no options"),
        (X + "goal: [2, 2] conv{k=1}", "2:14: goal 'conv' has 1 axes, got [2, 2]", ""),
        (X + "goal: [4] conv{k=99999999999}", "2:11: goal 'conv' with these sizes", ""),
        (X + "goal: [2, 3] stencil_2d{k=1}", "2:14: goal 'stencil_2d' is square", ""),
        (X + "goal: [4] poly_mult{w=4}", "2:11: goal 'poly_mult' with w=4 has 8 cells", ""),
        (X + "goal: [2, 2] id", "2:7: the goal has shape [2, 2], but the", "exactly the cells"),
        (X + "goal: [4] = [0, 1, 2, ?]", "2:1: a goal cannot ask for undefined cells", "()"),
        ("define f([4]) -> [2] = [0]", "1:24: the output [2] needs 2 entries, got 1", ""),
        ("define f([2, 3]) -> [1] = [((2, 0))]", "1:28: index (2, 0) is not in [2, 3]", ""),
        ("define f([2, 3]) -> [1] = [((0, 3))]", "1:28: index (0, 3) is not in [2, 3]", ""),
        ("define f([2, 3]) -> [1] = [(0, (0, -1))]", "1:28: index (0, -1) is not in [2, 3]", ""),
        ("define f([2, 3]) -> [1] = [((1))]", "1:28: index (1) is not in [2, 3]", ""),
        ("define f([2]) -> [1] = [(2, 0)]", "1:25: there is no argument 2", "or -1 for zero"),
        ("define f([99999999999]) -> [1] = [0]", "1:10: [99999999999] has 99999999999 cells", ""),
    ],
)  # fmt: skip
def test_errors_say_where_what_and_what_to_do(
    load: Load, text: str, first_line: str, advice: str
) -> None:
    begin = time.process_time()
    with pytest.raises(CheckError) as caught:
        load(text)
    lines = str(caught.value).split("\n")
    assert lines[0].startswith("t.swflow:" + first_line)
    if advice:
        assert advice in lines[-1]
    assert time.process_time() - begin < 20


def test_the_caret_is_under_the_word(load: Load) -> None:
    with pytest.raises(CheckError) as caught:
        load(X + "y: [4] = rotss(x)" + GOAL)
    assert str(caught.value) == (
        "t.swflow:2:10: unknown function 'rotss'\n"
        "    2 | y: [4] = rotss(x)\n"
        "      |          ^^^^^\n"
        "  did you mean 'rots'?"
    )


def test_many_big_arrays_are_refused_together(load: Load) -> None:
    text = "x: [100000] = range(0, 100000)\n" + "y: [100000] = x\n" * 90
    with pytest.raises(CheckError, match="more than 8388608 cells together"):
        load(text + "goal: [100000] id")


def test_many_bindings_of_one_name_are_no_trouble(load: Load) -> None:
    begin = time.process_time()
    program = load("x: [1] = range(0, 1)\n" + "x: [1] = x\n" * 10_000 + "goal: [1] id")
    assert len({step.name for step in program.steps}) == 10_001
    assert program.steps[-1].name == "x.10001"
    assert time.process_time() - begin < 30


def test_the_same_call_is_the_same_set(load: Load) -> None:
    program = load("x: [4] = range(0, 4) y: [4] = rots(x) z: [4] = rots(y)" + GOAL)
    assert apply_step(program, 1).gathers is apply_step(program, 2).gathers


def test_folds_nest_only_so_deep(load: Load) -> None:
    text = "x: [1] = range(0, 1)\n" + "x: [1] = fold x{fold_len=1}\n" * 33
    with pytest.raises(CheckError, match=r"^t\.swflow:34:15: folds nest at most 32 deep"):
        load(text + "goal: [1] id")


SOUP = st.lists(
    st.sampled_from(
        [
            "x: [4] = range(0, 4)", "y: [2, 2] = x", "y: [2, 2] = fold x", "z: [2] = fold y",
            "z: [4] = ?rots(x)", "w: [4] = {", "}", "goal: [4] id", "goal: [2] trove_sum {n=2}",
            "define f([4]) -> [4] = [3, 2, 1, -1]", "v: [4] = f(z)", "v: [4] = drop(v)",
            "u: [4] = [(), 1, (2, 3), 4]", "@prune", "+", "(", "]", "-1", "fold",
        ]
    ),
    max_size=12,
).map("\n".join)  # fmt: skip


@examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SOUP)
def test_any_soup_of_statements_loads_or_is_a_located_error(load: Load, text: str) -> None:
    found: Program | WarploomError
    try:
        found = load(text)
    except WarploomError as error:
        found = error
    if isinstance(found, Program):
        assert found.goals
        assert all(goal.shape == found.steps[-1].shape for goal in found.goals)
    else:
        assert found.span is not None
