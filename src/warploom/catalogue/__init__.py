"""The catalogue: named kernels, each with sketch, specification, sizes and defaults."""

from __future__ import annotations

import difflib

from warploom.catalogue import (
    convolution,
    image,
    polynomial,
    stencil,
    structures,
    transposition,
)
from warploom.catalogue.entry import Case, Entry
from warploom.errors import ParseError

# A file of the catalogue has a tuple ENTRIES; a new file is named here.
FILES = (stencil, convolution, image, polynomial, structures, transposition)


def entries() -> dict[str, Entry]:
    """Every entry by name, in the order of the files."""
    return {entry.name: entry for file in FILES for entry in file.ENTRIES}


def find(name: str) -> Entry:
    """The entry with a name, or an error that says which names there are."""
    known = entries()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name[:80], known, n=1)
    raise ParseError(
        f"the catalogue has no kernel '{name[:80]}'",
        advice=f"did you mean {near[0]}?" if near else "it has " + ", ".join(known),
    )


__all__ = ["Case", "Entry", "entries", "find"]
