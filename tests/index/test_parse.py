"""What `show` prints is read back as the same object; all other text is one located error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.strategies import expressions
from tests.sampled import examples

from warploom.errors import ParseError
from warploom.index.ir import Const, Expr, Var, select
from warploom.index.parse import parse
from warploom.index.show import show

x, y = Var("x"), Var("y")


@given(expressions(20))
@examples(300)
def test_round_trip(expr: Expr) -> None:
    assert parse(show(expr)) is expr


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("x-3", x - 3),
        ("3 - -3", Const(3) - Const(-3)),
        ("-(3)", -Const(3)),
        ("- x * 2", (-x) * 2),
        ("x // 2 % 3", (x // 2) % 3),
        ("x + y << 1 & 3", ((x + y) << 1) & 3),
        ("not x == 1 and y", x.eq(1).not_().and_(y)),
        ("1 if x else 2 if y else 3", select(x, 1, select(y, 2, 3))),
        ("(1 if x else 2) if y else 3", select(y, select(x, 1, 2), 3)),
        ("0x1F & threadIdx.x", Const(31) & Var("threadIdx.x")),
        ("-9223372036854775808", Const(-(2**63))),
        (" x\n  + y ", x + y),
    ],
)
def test_forms(text: str, expr: Expr) -> None:
    assert parse(text) is expr


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", (1, 1), "ends where a value"),
        ("x +", (1, 4), "ends where a value"),
        ("x + * y", (1, 5), "'*' where a value"),
        ("x y", (1, 3), "'y' where an operator"),
        ("(x", (1, 1), "this '(' has no ')'"),
        ("x)", (1, 2), "')' has no '('"),
        ("(x if y)", (1, 4), "this 'if' has no 'else'"),
        ("x if y", (1, 3), "this 'if' has no 'else'"),
        ("x else y", (1, 3), "'else' has no 'if'"),
        ("(x else y)", (1, 1), "this '(' has no ')'"),
        ("1 if x if y else 2 else 3", (1, 8), "condition"),
        ("x < y < 3", (1, 7), "do not chain"),
        ("x + not y", (1, 5), "'not' binds weaker"),
        ("9223372036854775808", (1, 1), "64 bits"),
        ("9" * 100_000, (1, 1), "64 bits"),
        ("1.5", (1, 1), "not part of"),
        ("3x", (1, 1), "not part of"),
        ("x\n $", (2, 2), "not part of"),
        ("__import__('os')", (1, 11), "where an operator"),
        ("x = 3", (1, 3), "not part of"),
        ("x ** 2", (1, 4), "'*' where a value"),
        ("\x00", (1, 1), "not part of"),
        ("010 + x", (1, 1), "begins with 0"),
        ("x / 4 & 1 == 0", (1, 11), "'==' beside '&'"),
        ("x / 4 < y + 1 | z", (1, 15), "'|' beside '<'"),
        ("(x / 4) + (y & 3 + z != 1)", (1, 22), "'!=' beside '&'"),
    ],
)
def test_bad_text_is_one_located_error(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, "a.txt")
    span = caught.value.span
    assert span is not None
    assert (span.source.name, span.line, span.column) == ("a.txt", *place)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "text",
    ["(x / 4 & 1) == 0", "x / 4 & (y == 0)", "x / 4 & 1 and y == 0", "x & 1 == 0", "0", "x / 10"],
)
def test_what_both_languages_group_alike_needs_no_parentheses(text: str) -> None:
    parse(text)


@given(st.text(alphabet="x1-+*/%()<>=!&|^ ifelsnotad\n.", max_size=40) | st.text(max_size=20))
@examples(400)
def test_any_text_is_read_or_refused(text: str) -> None:
    outcome = parse_or_error(text)
    if isinstance(outcome, ParseError):
        assert outcome.span is not None
    else:
        assert parse(show(outcome)) is outcome


def parse_or_error(text: str) -> Expr | ParseError:
    try:
        return parse(text)
    except ParseError as error:
        return error


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", ["(" * 100_000, "-" * 100_000, "not " * 50_000, "x+" * 50_000])
def test_hostile_depth_is_refused_quickly(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ParseError):
        parse(text)
    assert time.process_time() - start < 30


def test_depth_is_no_limit() -> None:
    nested = "(1 - " * 20_000 + "x" + ")" * 20_000
    assert show(parse(nested)) == nested.replace("(", "", 1)[:-1]
