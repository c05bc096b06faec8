"""Names that only we would search for stay out of the sources (docs/glossary.md has them)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.sources import outline, text_of

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "warploom").rglob("*.py"))
PAGES = [each for each in sorted((ROOT / "docs").glob("*.md")) if each.name != "glossary.md"]

FILES = {"again", "ahead", "certain", "deal", "herd", "manner", "place", "telling", "undefined"}
ONCE = {"record"}  # names that may stand once: with several meanings none is found
CLASSES = {"Apart", "Certain", "Deal", "Dealer", "Manner", "Passage", "Told", "Turn", "Turns"}
CLASS = re.compile(rf"class (?:{'|'.join(CLASSES)})\b")  # the others need not be parsed
WORDS = re.compile(
    r"\b(?:a|the|one|each|every|same|different|its|many) turns? of (?:a|the|every|each|all|its)?"
    r" ?loops?\b|\bherds? of\b|\bloops? of one turn\b|\bmanners?\b|\btelling\b|\blanes part\b"
    r"|\b(?:values|what) (?:that |which )?nobody (?:gave|stored)\b|\b(?:copy|copies|copied) past\b",
    re.IGNORECASE,
)
# A cooperative copy is none of these, but for DEAL, a value of `dim_kind` that users write.
DEALS = re.compile(r"\b_?[Dd]eal(?:s|t|er|ers|ing)?\b|\bmanner_of\b")


def test_no_file_has_a_name_of_our_own() -> None:
    assert [file.name for file in SOURCES if file.stem in FILES] == []


def test_a_name_that_says_little_stands_once() -> None:
    for name in ONCE:
        assert len([file for file in SOURCES if file.stem == name]) <= 1


def test_no_class_has_a_name_of_our_own() -> None:
    found = [
        (file.name, name)
        for file in SOURCES
        if CLASS.search(text_of(file))
        for name, _ in outline(text_of(file)).classes
        if name in CLASSES
    ]
    assert found == []


@pytest.mark.parametrize("words", [WORDS, DEALS], ids=["words", "deals"])
def test_no_text_has_words_of_our_own(words: re.Pattern[str]) -> None:
    found = [(file.name, words.findall(file.read_text())) for file in (*SOURCES, *PAGES)]
    assert [each for each in found if each[1]] == []


def test_what_is_found() -> None:
    for text in ("in every turn of a loop", "copied past the registers", "values nobody gave"):
        assert WORDS.search(text), text
    assert DEALS.search("copies are dealt out")
    assert not DEALS.search("dim_kind = DEAL")
    assert not WORDS.search("what turns out to be long")


def test_the_glossary_names_what_went() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    for name in FILES - {"place"}:
        assert f"{name}.py" in text
