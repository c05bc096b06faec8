"""What is to be read at once is short: files of at most 600 lines, functions of at most 80."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.sources import parsed, statements

SOURCES = Path(__file__).resolve().parents[1] / "src" / "warploom"
MOST_LINES, MOST_OF_A_FUNCTION = 600, 80


def may_be_long(text: str) -> bool:
    """Whether so many lines in a row are indented: only then is it worth while to parse."""
    begins = [n for n, line in enumerate(text.splitlines()) if re.match(r"[^\s)]", line)]
    gaps = pairwise([*begins, text.count("\n")])
    return any(end - begin > MOST_OF_A_FUNCTION for begin, end in gaps)


def long_functions(text: str) -> Iterator[str]:
    """Names of functions that are too long, each with its lines."""
    for node in statements(parsed(text)) if may_be_long(text) else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MOST_OF_A_FUNCTION:
                yield f"{node.name}: {lines} lines"


def test_files_and_functions_are_short() -> None:
    files = sorted(SOURCES.rglob("*.py"))
    assert len(files) > 300
    found = []
    for file in files:
        text = file.read_text()
        found += [f"{file.name}: {each}" for each in long_functions(text)]
        if (lines := text.count("\n")) > MOST_LINES:
            found.append(f"{file.name}: {lines} lines")
    assert found == []


def test_a_long_function_is_noticed() -> None:
    body = "    pass\n" * MOST_OF_A_FUNCTION
    assert list(long_functions(f"def short():\n{body[9:]}")) == []
    assert list(long_functions(f"class A:\n  async def long():\n{body}")) == ["long: 81 lines"]
