"""README and docs are written in short sentences (docs/glossary.md has the banned words).

What is read is the prose of a page: paragraphs, list items and headings, without code blocks,
tables, HTML and pictures. A sentence ends at `.`, `!` or `?` before a space, at `:` or `;` at the
end of a line, and at the end of a paragraph or list item. A word is what stands between spaces and
has a letter or a digit; a piece of inline code, whatever is in it, is one word, and so is the
address of a link (none: its text counts).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST = 30  # words in a sentence


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Each paragraph, heading and list item of prose, with the number of its first line."""
    text = re.sub(r"^( *)```.*?^ *```$", _lines, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", _lines, text, flags=re.DOTALL)
    found: list[tuple[int, str]] = []
    open_ = False
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip()
        apart = not said or said.startswith(("|", "#", "<", "!["))
        begins = re.match(r"(?:[-*]|\d+\.) ", said)
        if said and (not apart or said.startswith("#")):
            if open_ and not begins and not apart:
                first, before = found[-1]
                found[-1] = first, f"{before} {said}"
            else:
                found.append((number, said.lstrip("#").strip()))
        open_ = not apart
    return found


def _lines(match: re.Match[str]) -> str:
    """As many empty lines, so that the numbers of lines stay."""
    return "\n" * match[0].count("\n")


def sentences(paragraph: str) -> list[str]:
    plain = re.sub(r"``.+?``|`[^`]*`", "`code`", paragraph)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    plain = re.sub(r"^(?:[-*]|\d+\.) ", "", plain)
    return re.split(r"(?<=[.!?])[\"”)*]*\s+(?=[\"“(*]*[A-Z`\d])|(?<=[:;])$", plain)


def words(sentence: str) -> int:
    return sum(1 for each in sentence.split() if re.search(r"\w", each))


def long_ones(text: str) -> list[tuple[int, int, str]]:
    return [
        (number, words(each), each)
        for number, paragraph in paragraphs(text)
        for each in sentences(paragraph)
        if words(each) > MOST
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_sentence_is_long(page: Path) -> None:
    found = [
        f"{page.name}:{n}: {count} words: {text}" for n, count, text in long_ones(page.read_text())
    ]
    assert not found, "\n".join(found)
