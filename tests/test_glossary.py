"""Names that only we would search for stay out of the sources (docs/glossary.md has them)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "warploom").rglob("*.py"))
PAGES = [each for each in sorted((ROOT / "docs").glob("*.md")) if each.name != "glossary.md"]

FILES = {"again", "ahead", "certain", "deal", "herd", "manner", "place", "telling", "undefined"}
CLASSES = {"Apart", "Certain", "Deal", "Dealer", "Manner", "Passage", "Told", "Turn", "Turns"}
WORDS = re.compile(
    r"\b(?:a|the|one|each|every|same|different|its|many) turns? of (?:a|the|every|each|all|its)?"
    r" ?loops?\b|\bherds? of\b|\bloops? of one turn\b",
    re.IGNORECASE,
)


def test_no_file_has_a_name_of_our_own() -> None:
    assert [file.name for file in SOURCES if file.stem in FILES] == []


def test_no_class_has_a_name_of_our_own() -> None:
    found = [
        (file.name, node.name)
        for file in SOURCES
        if any(name in file.read_text() for name in CLASSES)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and node.name in CLASSES
    ]
    assert found == []


def test_loops_have_iterations() -> None:
    found = [(file.name, WORDS.findall(file.read_text())) for file in (*SOURCES, *PAGES)]
    assert [each for each in found if each[1]] == []


def test_what_is_found() -> None:
    assert WORDS.search("in every turn of a loop")
    assert not WORDS.search("what turns out to be long")


def test_the_glossary_names_what_went() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    for name in FILES - {"place"}:
        assert f"{name}.py" in text
