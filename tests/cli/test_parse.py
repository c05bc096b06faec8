"""Words of a command line: read as everybody's tools read them, or refused with one line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from warploom.cli.declare import REQUIRED, Command, argument, option
from warploom.cli.parse import HelpAsked, UsageError, parsed


class Colour(StrEnum):
    red = "red"
    blue = "blue"


@dataclass(frozen=True, kw_only=True)
class Options:
    first: str = argument(REQUIRED, metavar="FIRST")
    rest: list[Path] = argument([], metavar="REST")
    count: int = option(3, "--count", min=0, max=9)
    share: float | None = option(None, "--share", min=0)
    size: list[str] = option([], "--size")
    colour: Colour | None = option(None, "--colour")
    out: Path = option(Path("-"), "-o", "--output")
    fast: bool = option(False, "--fast")
    code: bool | None = option(None, "--code/--no-code")


COMMAND = Command("paint", "Paint.", Options, "nowhere:nothing")


def read(text: str) -> Any:
    return parsed(COMMAND, text.split())[0]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("a", {}),
        ("a b -", {"rest": [Path("b"), Path("-")]}),
        ("--fast a --count 4 b", {"rest": [Path("b")], "fast": True, "count": 4}),
        ("a --count=4 --count 5", {"count": 5}),
        ("a --size x=1 --size=y=2", {"size": ["x=1", "y=2"]}),
        ("a --share inf --colour blue", {"share": float("inf"), "colour": Colour.blue}),
        ("a -oX", {"out": Path("X")}),
        ("a -o X", {"out": Path("X")}),
        ("a --output -", {"out": Path("-")}),
        ("a --size -x", {"size": ["-x"]}),  # the word after an option is its value
        ("a --code", {"code": True}),
        ("a --code --no-code", {"code": False}),
        ("a -- --fast -h", {"rest": [Path("--fast"), Path("-h")]}),
    ],
)
def test_words_are_options(words: str, wanted: dict[str, Any]) -> None:
    assert read(words) == Options(first="a", **wanted)


def test_what_was_given_is_known() -> None:
    assert parsed(COMMAND, ["a", "--count", "3"])[1] == {"first", "count"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Missing argument 'FIRST'."),
        ("a --fats", "No such option: --fats (Possible option: --fast)"),
        ("a --fast=1", "Option '--fast' does not take a value."),
        ("a -z", "No such option: -z"),
        ("a --count", "Option '--count' requires an argument."),
        ("a --count x", "Invalid value for '--count': 'x' is not a valid integer."),
        ("a --count 1.0", "Invalid value for '--count': '1.0' is not a valid integer."),
        ("a --count 10", "Invalid value for '--count': 10 is not in the range 0<=x<=9."),
        ("a --share x", "Invalid value for '--share': 'x' is not a valid float."),
        ("a --share nan", "Invalid value for '--share': nan is not in the range x>=0."),
        ("a --colour green", "Invalid value for '--colour': 'green' is not one of 'red', 'blue'."),
    ],
)
def test_other_words_are_refused(words: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(words)
    assert str(caught.value) == said


@pytest.mark.parametrize("words", ["--help", "a -h", "--count x --help"])
def test_help_comes_before_what_is_wrong_with_values(words: str) -> None:
    with pytest.raises(HelpAsked):
        read(words)
