from __future__ import annotations

import time

import pytest

from warploom.errors import ParseError
from warploom.sketch.term.lex import Kind, lexer, tokens


def texts(text: str) -> list[str]:
    return [token.text for token in tokens(text)][:-1]


def kinds(text: str) -> list[Kind]:
    return [token.kind for token in tokens(text)][:-1]


def test_special_characters_end_words_and_blanks_do_not_matter() -> None:
    assert texts("x:[4,2]=?f{k=3}(a)") == [
        "x", ":", "[", "4", ",", "2", "]", "=", "?", "f", "{", "k", "=", "3", "}", "(", "a", ")",
    ]  # fmt: skip
    assert texts("a+b") == ["a", "+", "b"]
    assert texts(")->[") == [")", "->", "["]
    assert texts("a\u2003b\u00a0c\t\r\nd") == ["a", "b", "c", "d"]


def test_fold_and_its_signs_are_one_kind_but_keep_their_text() -> None:
    signs = "fold + * min max & | ^"
    assert kinds(signs) == [Kind.FOLD] * 8
    assert texts(signs) == signs.split()
    assert kinds("&(0) minimum max.1 a^b") == [
        Kind.FOLD, Kind.PAREN_OPEN, Kind.NUMBER, Kind.PAREN_CLOSE, *[Kind.NAME] * 3,
    ]  # fmt: skip


def test_words() -> None:
    assert kinds("fold define range goal -> folds - -> a->b x.y-z> -1 1a") == [
        Kind.FOLD, Kind.DEFINE, Kind.RANGE, Kind.GOAL, Kind.ARROW, Kind.NAME, Kind.NAME, Kind.ARROW,
        Kind.NAME, Kind.NAME, Kind.NUMBER, Kind.NAME,
    ]  # fmt: skip


def test_comments_and_strings() -> None:
    assert texts('a # b "c\n"d # e" f#g') == ["a", '"d # e"', "f"]
    assert texts(r'"a\"b" c "x\\" y" z') == [r'"a\"b"', "c", r'"x\\" y"', "z"]
    assert kinds('"" "x"') == [Kind.STRING] * 2


def test_numbers_are_64_bit() -> None:
    assert kinds("9223372036854775807 -9223372036854775808 007") == [Kind.NUMBER] * 3
    for text in ("9223372036854775808", "-9223372036854775809", "1" * 5000):
        with pytest.raises(ParseError, match=r"^<text>:1:1: this number does not fit in 64 bits"):
            tokens(text)


def test_a_run_of_numbers_is_the_same_as_its_tokens() -> None:
    source = lexer("1, -2 ,\n 3 # three\n, 4, 5x, 6,", "t")
    numbers, behind = source.run(0)
    assert numbers == [1, -2, 3, 4]
    assert source.at(behind).text == "5x"
    assert lexer("9223372036854775808,", "t").run(0) == ([], 0)


@pytest.mark.parametrize(
    ("text", "first_line"),
    [
        ("a \0", "t:1:3: unexpected character U+0000"),
        ("a\n\x7f", "t:2:1: unexpected character U+007F"),
        ("\ud800", "t:1:1: unexpected character U+D800"),
        ("\x7fELF\x01\x02", "t:1:1: unexpected character U+007F"),
        ('x\n  "abc', "t:2:3: the string that begins here never ends"),
        ("x" * 201, "t:1:1: a name has at most 200 characters"),
        ("a" * (1 << 22) + "b", "t:1:1: the text has 4194305 characters, more than 4194304"),
    ],
)
def test_hostile_text_is_one_located_error(text: str, first_line: str) -> None:
    begin = time.monotonic()
    with pytest.raises(ParseError) as caught:
        tokens(text, "t")
    assert str(caught.value).split("\n")[0] == first_line
    assert time.monotonic() - begin < 30


def test_spans_count_lines_and_columns_from_one() -> None:
    source = lexer("ab\n cd\n", "t")
    span = source.span_of(source.at(3))
    assert (span.line, span.column, span.length) == (2, 2, 2)
    end = source.span_of(source.at(6))
    assert (end.line, end.column) == (3, 1)
