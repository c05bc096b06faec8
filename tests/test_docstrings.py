"""Docstrings are whole sentences: none continues a sentence that stands elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.sources import outline, text_of

SOURCES = Path(__file__).parents[1] / "src" / "warploom"
DANGLING = r"\s*([Oo]f\s|…|\.\.\.|[Aa]s above|The same([.,;:]| (of|for|with|by|on) ))"


def dangling(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring that begins in the middle of a sentence."""
    for line, said in outline(text).docstrings:
        if re.match(DANGLING, said):
            yield line, said


def test_docstrings_begin_a_sentence() -> None:
    files = sorted(SOURCES.rglob("*.py"))
    assert len(files) > 100
    found = [
        f"{file.relative_to(SOURCES)}:{line}: {said.strip().splitlines()[0]}"
        for file in files
        for line, said in dangling(text_of(file))
    ]
    assert not found, "say what is returned:\n" + "\n".join(found)


def test_dangling_ones_are_seen() -> None:
    said = ["Of one thread, about.", "of which", "… in the phase before.", "The same, by cp.async."]
    for each in said:
        text = f'class C:\n    def f(self):\n        """{each}"""\n'
        assert list(dangling(text)) == [(3, each)]
    for each in ("Offsets of all.", "Estimated registers per thread.", "The same type, renamed."):
        assert not list(dangling(f'def f():\n    """{each}"""\n'))
