"""What `warploom layout` is given: patterns of accesses, layouts as texts, names of exports."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from warploom.choices import LANGUAGES, SPELLINGS
from warploom.errors import EmitError, UnsupportedError, one_of
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.named import FIFTY, pattern
from warploom.layout.patterns.read import is_file, read_pattern

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
EXPORTS = (*LANGUAGES, *SPELLINGS)

Reader = tuple[str, Callable[[], Problem]]  # a pattern's text, and what reads it


def readers(texts: list[str], machine: str | None) -> list[Reader]:
    """What the arguments stand for; reading a large pattern takes time, which its budget has."""
    found: list[Reader] = []
    for text in texts:
        if text == "all":
            found += [(name, partial(pattern, name)) for name in FIFTY]
        else:
            name = text if machine is None or is_file(text) else f"{text}@{machine}"
            found.append((name, partial(read_pattern, text, machine)))
    return found


def known_export(how: str | None, name: str | None) -> None:
    """Refuses before the search what cannot be written after it."""
    if how is None or how == "triton":
        return
    if how not in EXPORTS:
        raise UnsupportedError(
            f"there is no format '{how[:20]}' for layouts", advice=one_of(how, EXPORTS)
        )
    known_name("cuda" if how in SPELLINGS else how, name)


def known_name(language: str | None, name: str | None) -> None:
    """Refuses a name that no function can have in the language of the text."""
    if language is None or name is None:
        return
    # Here, not at the top: it knows all languages, and a search needs none of them.
    from warploom.emit.reserved import is_reserved_function

    if not NAME.fullmatch(name):
        raise EmitError(
            f"'{name[:40]}' cannot be a name in {language}",
            advice="a name has letters, digits and _, and begins with no digit",
        )
    if is_reserved_function(name, language):
        raise EmitError(
            f"'{name[:40]}' cannot be a name in {language}",
            advice="the language has it already: give another --name",
        )
