"""What `warploom layout` is given: patterns of accesses, layouts as texts, names of exports."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from warploom.choices import LANGUAGES, SPELLINGS
from warploom.cli.layout_view import sizes
from warploom.errors import EmitError, ParseError, UnsupportedError, one_of
from warploom.layout.formats.given import given_layout
from warploom.layout.language.ir import Layout
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.named import FIFTY, TYPES, pattern
from warploom.layout.patterns.pattern import load_pattern
from warploom.layout.solver.task import Task

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
EXPORTS = (*LANGUAGES, *SPELLINGS)

Reader = tuple[str, Callable[[], Problem]]  # a pattern's text, and what reads it


def readers(texts: list[str], machine: str | None) -> list[Reader]:
    """What the arguments stand for; reading a large pattern takes time, which its budget has."""
    found: list[Reader] = []
    for text in texts:
        if text == "all":
            found += [(name, partial(pattern, name)) for name in FIFTY]
        elif Path(text).suffix == ".toml" or Path(text).is_file():
            found.append((text, partial(load_pattern, Path(text), machine)))
        else:
            name = text if machine is None else f"{text}@{machine}"
            found.append((name, partial(pattern, name)))
    return found


def known_export(how: str | None, name: str) -> None:
    """Refuses before the search what cannot be written after it."""
    if how is None or how == "triton":
        return
    if how not in EXPORTS:
        raise UnsupportedError(f"no layout is written as '{how[:20]}'", advice=one_of(how, EXPORTS))
    # Here, not at the top: it knows all languages, and a search needs none of them.
    from warploom.emit.reserved import is_reserved_function

    language = "cuda" if how in SPELLINGS else how
    if not NAME.fullmatch(name) or is_reserved_function(name, language):
        raise EmitError(f"'{name[:40]}' cannot be a name in {language}", advice="give --name")


def layout_for(
    task: Task | None, text: str, shape: str | None = None, element: str | None = None
) -> Layout:
    """A layout as somebody wrote it; a pattern says shape and element where it does not."""
    if task is None:
        return given_layout(text, None if shape is None else sizes(shape), bytes_of(element))
    if shape is not None or element is not None:
        raise ParseError("the pattern says shape and element", advice="leave them out")
    return given_layout(text, task.problem.shape, task.problem.element_bytes)


def task_of(text: str) -> Task:
    """The one problem that a text stands for."""
    found = readers([text], None)
    if len(found) > 1:
        raise ParseError(f"'{text}' stands for {len(found)} patterns", advice="name one of them")
    return Task(found[0][1]())


def bytes_of(element: str | None) -> int | None:
    if element is not None and element not in TYPES:
        raise ParseError(f"no element type '{element[:20]}'", advice=one_of(element, TYPES))
    return None if element is None else TYPES[element]
