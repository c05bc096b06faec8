"""The page of the Python reference is what the docstrings say now, and leaves no name out."""

from __future__ import annotations

import re

from bench.release import api_reference

import warploom
from warploom.pictured import PublicResult


def test_the_page_is_up_to_date() -> None:
    again = "run python -m bench.release.api_reference"
    assert api_reference.PAGE.read_text() == api_reference.page(), again


def test_every_public_name_and_every_result_has_a_section() -> None:
    text = api_reference.page()
    names = {name for name in warploom.__all__ if not name.startswith("_")}
    assert set(re.findall(r"^## `(\w+)`$", text, re.MULTILINE)) == names
    assert set(re.findall(r"^- \[`\w+`\]\(#(\w+)\)", text, re.MULTILINE)) == {
        name.lower() for name in names
    }
    returned = re.findall(r"^### `(\w+)`: what `(\w+)` returns$", text, re.MULTILINE)
    assert {call for _, call in returned} <= names
    listed = {path.rpartition(".")[2] for path in api_reference.RESULTS}
    own = {each.__name__ for each in PublicResult.__subclasses__()}
    assert own - listed <= {"Runnable"}  # which has no members of its own


def test_blocks_of_code_are_closed() -> None:
    assert api_reference.page().count("```") % 2 == 0
    assert "\n>>> " not in re.sub(r"```pycon.*?```", "", api_reference.page(), flags=re.DOTALL)
