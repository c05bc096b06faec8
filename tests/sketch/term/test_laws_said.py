"""What "impossible" is said to mean is the same in pages, help and answers; README links it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warploom.cli.commands.synth import HELP
from warploom.search.outcome import Impossible
from warploom.sketch.simt.solve import solve
from warploom.sketch.term.laws import LAWS, laws_said

ROOT = Path(__file__).parents[3]
NOT_AMONG = (
    "idempotence (max(x, x) = x)",
    "inverses (x ^ x = 0)",
    "constants as neutral elements (x + 0 = x)",
    "distributivity",
)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("`", "")).lower()


@pytest.mark.parametrize("page", ["docs/sketch.md", "docs/search.md"])
def test_pages_say_which_laws_are_not_used(page: str) -> None:
    text = plain((ROOT / page).read_text())
    assert "under the laws used" in text
    for law in NOT_AMONG:
        assert law in text, law
    assert "not among" in text


def test_the_readme_says_where() -> None:
    assert "[under the laws used](docs/sketch.md#laws)" in " ".join(
        (ROOT / "README.md").read_text().split()
    )


def test_help_and_answers_say_the_same() -> None:
    for text in (HELP, *(laws_said(laws) for laws in LAWS.values())):
        for law in NOT_AMONG:
            assert law in plain(text), law
        assert "order of items" in plain(text)
    assert "under the laws used" in plain(HELP)
    for documented in (solve, Impossible):
        assert "laws used" in plain(documented.__doc__ or "")
