"""Python before 3.11.5 keeps a character that a possessive group gave back (gh-106052)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources import text_of

from warploom.ptx.lex import BLANK
from warploom.sketch.term.lex import _RUN

ROOT = Path(__file__).parents[1] / "src" / "warploom"
POSSESSIVE = (")*+", ")++", ")?+")


def test_no_group_is_possessive() -> None:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        lines = [line for line in text_of(path).splitlines() if 'r"' in line or "r'" in line]
        if count := sum(line.count(mark) for line in lines for mark in POSSESSIVE):
            found[path.relative_to(ROOT).as_posix()] = count
    assert not found


@pytest.mark.parametrize("text", ["[1, 2]", "[1, 2, 3,\n 4 # five\n]", "[1]"])
def test_a_table_keeps_its_last_number(text: str) -> None:

    run = _RUN.match(text, 1)
    rest = text[run.end() if run else 1 :]
    assert rest.split()[0].rstrip("]").isdigit()


@pytest.mark.parametrize(
    ("text", "end"), [("/", 0), ("/* open *", 0), (" /***/ // a\n/", 12), ("/* a * b */x", 11)]
)
def test_blanks_end_where_they_end(text: str, end: int) -> None:

    blanks = BLANK.match(text)
    assert blanks is not None
    assert blanks.end() == end
