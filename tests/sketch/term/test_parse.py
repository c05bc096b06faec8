from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import ParseError
from warploom.sketch.term.limits import MAX_WORDS
from warploom.sketch.term.parse import parse
from warploom.sketch.term.surface import (
    Array,
    Binding,
    Block,
    Call,
    Define,
    Entry,
    Exact,
    GoalStatement,
    LiteralValue,
    NamedGoal,
    Pack,
    Range,
    Statement,
    Unknown,
)


def one(text: str) -> Statement:
    (statement,) = parse(text, "t").statements
    return statement


def value(text: str) -> LiteralValue | Block | Call:
    statement = one(f"x: [2] = {text}")
    assert isinstance(statement, Binding)
    return statement.value


def error(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse(text, "t")
    return str(caught.value)


def test_binding_with_annotations_and_trailing_commas() -> None:
    binding = one("@prune @noprune @other x: [4, 2,] = f{a, b=1, c=[1, 2,], d=[],}(y, z,)")
    assert isinstance(binding, Binding)
    assert isinstance(binding.value, Call)
    assert (binding.name.text, binding.type.shape) == ("x", (4, 2))
    assert [note.name.text for note in binding.annotations] == ["prune", "noprune", "other"]
    assert [(o.name.text, o.value) for o in binding.value.options] == [
        ("a", None), ("b", 1), ("c", (1, 2)), ("d", ()),
    ]  # fmt: skip
    assert [arg.text for arg in binding.value.args or ()] == ["y", "z"]


@pytest.mark.parametrize(
    ("text", "operator", "function", "args"),
    [
        ("f(a)", None, "f", ["a"]),
        ("?f(a)", None, "f", ["a"]),
        ("f()", None, "f", []),
        ("y", None, "y", None),
        ("y {}", None, "y", None),
        ("fold f(a)", "fold", "f", ["a"]),
        ("min f(a)", "min", "f", ["a"]),
        ("^ ?f(a)", "^", "f", ["a"]),
        ('"mean" f(a)', "mean()", "f", ["a"]),
        ("+ ?f(a)", "+", "f", ["a"]),
        ("*f(a)", "*", "f", ["a"]),
        ("fold (?f{k=1}(a, b))", "fold", "f", ["a", "b"]),
        ("fold (y)", "fold", "y", None),
        ("fold y", "fold", "y", None),
    ],
)
def test_calls(text: str, operator: str | None, function: str, args: list[str] | None) -> None:
    call = value(text)
    assert isinstance(call, Call)
    assert (call.operator, call.function.text) == (operator, function)
    assert (None if call.args is None else [arg.text for arg in call.args]) == args


def test_literals() -> None:
    literal = value("fold + [[1, -2], [3, 4,],]")
    assert isinstance(literal, LiteralValue)
    assert literal.folds == ("fold", "+")
    assert literal.body == Array((2, 2), (1, -2, 3, 4))
    literal = value("range(3, 5)")
    assert isinstance(literal, LiteralValue)
    assert literal.body == Range(3, 5)
    literal = value("[(), (1, (2, 3),), ?, 7, 8]")
    assert isinstance(literal, LiteralValue)
    inner = Pack("fold", (1, Pack("fold", (2, 3))))
    assert literal.body == Array((5,), (Pack("fold", ()), inner, Unknown(), 7, 8))
    literal = value('"f" min [[+(1, 2), "g"(3), =-0.5]]')
    assert isinstance(literal, LiteralValue)
    assert literal.folds == ("f()", "min")
    assert literal.body == Array((1, 3), (Pack("+", (1, 2)), Pack("g()", (3,)), Exact(-0.5)))


def test_blocks_hold_any_statement() -> None:
    block = value("{ y: [2] = range(0, 2) goal: [2] id define f([2]) -> [1] = [0] z: [2] = y }")
    assert isinstance(block, Block)
    assert [type(s).__name__ for s in block.statements] == [
        "Binding", "GoalStatement", "Define", "Binding",
    ]  # fmt: skip


def test_goals() -> None:
    goal = one("goal: [2] = fold fold [[[1], [2]], [[3], [4]]]")
    assert isinstance(goal, GoalStatement)
    assert isinstance(goal.value, LiteralValue)
    assert goal.value.folds == ("fold", "fold")
    goal = one("goal: [8] poly_mult {w=4}")
    assert isinstance(goal, GoalStatement)
    assert isinstance(goal.value, NamedGoal)
    assert goal.value.options[0].value == 4


def test_definitions_with_all_four_entries_and_names() -> None:
    define = one("define f([4], [2, 2],) -> [4] = [[3, ((1,))], [(1, 2), (1, (0, 1)),]]")
    assert isinstance(define, Define)
    entries = define.gathers[0].entries
    assert entries[0] == 3
    assert [(e.argument, e.index) for e in entries if isinstance(e, Entry)] == [
        (0, (1,)), (1, 2), (1, (0, 1)),
    ]  # fmt: skip
    define = one(r'define f([4]) -> [1] = { a = [0], "b \"c\"" = [(-1, (0,))], }')
    assert isinstance(define, Define)
    assert [g.name.text for g in define.gathers if g.name] == ["a", 'b "c"']


@pytest.mark.parametrize(
    ("text", "first_line"),
    [
        ("x", "t:1:2: expected ':', got the end of the text"),
        ("x: 3", "t:1:4: expected '[', got '3'"),
        ("x: []", "t:1:5: expected a number, got ']'"),
        ("x: [0] = y", "t:1:5: every size of a shape is at least 1, got 0"),
        ("x: [2]\n  y", "t:2:3: expected '=', got 'y'"),
        ("x: [2] = ", "t:1:10: expected a value, got the end of the text"),
        ("x: [2] = fold fold f(y)", "t:1:15: a call takes one fold only"),
        ("x: [2] = + max f(y)", "t:1:12: a call takes one fold only"),
        ('x: [2] = "" f(y)', "t:1:10: a function has a name"),
        ("x: [2] = [+ 1]", "t:1:13: expected '(', got '1'"),
        ("x: [2] = [=x]", "t:1:12: expected a number, got 'x'"),
        ("x: [2] = [=nan]", "t:1:12: expected a number, got 'nan'"),
        ("min: [2] = f(y)", "t:1:1: expected a statement, got 'min'"),
        ("x: [2] = ?fold f(y)", "t:1:11: expected a value, got 'fold'"),
        ("x: [2] = fold { }", "t:1:15: expected a call or an array, got '{'"),
        ("x: [2] = {\n y: [2] = z", "t:1:10: the block that begins here never ends"),
        ("x: [2] = f(y z)", "t:1:14: expected ',' or ')', got 'z'"),
        ("x: [2] = f(,)", "t:1:12: expected a name, got ','"),
        ("x: [2] = f(1)", "t:1:12: expected a name, got '1'"),
        ("x: [2] = f{a=b}(y)", "t:1:14: expected a number or '[', got 'b'"),
        ("x: [2] = f{a, a=1}(y)", "t:1:15: option 'a' is given twice"),
        ("x: [2] = fold (f(y)", "t:1:20: expected ')', got the end of the text"),
        ("x: [2] = []", "t:1:11: expected a number, '(' or '?', got ']'"),
        ("x: [2] = [[]]", "t:1:12: expected a number, '(' or '?', got ']'"),
        ("x: [2] = [1, [2]]", "t:1:14: expected a number, '(' or '?', got '['"),
        ("x: [2] = [[1], 2]", "t:1:16: expected '[', got '2'"),
        ("x: [2] = [[1, 2], [3]]", "t:1:19: rows of different shapes: [2] before, [1] here"),
        ("x: [2] = [1 2]", "t:1:13: expected ',' or ']', got '2'"),
        ("x: [2] = [1,,2]", "t:1:13: expected a number, '(' or '?', got ','"),
        ("x: [2] = [1, 2", "t:1:10: the array that begins here never ends"),
        ("x: [2] = range(1 2)", "t:1:18: expected ',', got '2'"),
        ("goal [2] id", "t:1:6: expected ':', got '['"),
        ("goal: [2] = f(x)", "t:1:13: expected '[' or 'range', got 'f'"),
        ("define f() -> [1] = [0]", "t:1:10: expected '[', got ')'"),
        ("define f([1]) [1] = [0]", "t:1:15: expected '->', got '['"),
        ("define f([1]) -> [1] = {}", "t:1:25: expected the name of a gather, got '}'"),
        ("define f([1]) -> [1] = [(0)]", "t:1:27: expected ',', got ')'"),
        ("define f([1]) -> [1] = [?]", "t:1:25: expected a number or '(', got '?'"),
        ("@ x: [2] = y", "t:1:4: expected a statement, got ':'"),
        ("= 3", "t:1:1: expected a statement, got '='"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what(text: str, first_line: str) -> None:
    assert error(text).split("\n")[0] == first_line


def test_the_caret_is_under_the_word() -> None:
    assert error("x: [2] = f(yy zzz)") == (
        "t:1:15: expected ',' or ')', got 'zzz'\n"
        "    1 | x: [2] = f(yy zzz)\n"
        "      |               ^^^"
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x: [1] = " + "[" * 100_000, "arrays nest at most 32 deep"),
        ("x: [1] = [" + "(" * 100_000, "folds nest at most 32 deep"),
        ("x: [1] = {" * 100_000, "blocks nest at most 32 deep"),
        ("[" * 4_000_000, "expected a statement"),
        ("a " * 2_000_000, "expected ':'"),
        ("x: [1] = [" + "1," * 2_000_000, "expected a number"),
        ("x: [1] = [" + "[1]," * 1_000_000, f"the text has more than {MAX_WORDS} words"),
        ("x: [" + "1," * 2_000_000, f"the text has more than {MAX_WORDS} words"),
        ("x: [1] = " + "+" * 4_000_000, f"the text has more than {MAX_WORDS} words"),
        ('"' + "\\" * 4_000_000, "never ends"),
    ],
)
def test_hostile_text_fails_fast(text: str, message: str) -> None:
    begin = time.process_time()
    assert message in error(text)
    assert time.process_time() - begin < 30


WORDS = st.sampled_from(
    [
        "x",
        "y",
        "fold",
        "+",
        "*",
        "min",
        "&",
        "=",
        "define",
        "range",
        "goal",
        "->",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        "?",
        ",",
        "@",
        "=",
        "1",
        "-1",
        "99",
        '"s"',
        "#",
        "\n",
    ]
)


@examples(300)
@given(st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=40).map(" ".join)))
def test_any_text_parses_or_is_a_located_error(text: str) -> None:
    found = None
    try:
        parse(text, "t")
    except ParseError as error:
        found = error
    if found is not None:
        assert found.span is not None
        assert str(found).startswith("t:")
