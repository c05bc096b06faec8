"""The catalogue: one table of names, each a sketch, a kernel, or both.

A kernel's entry has the sketch that it is built from, so that `warploom synth NAME` fills what
`warploom kernel NAME` writes; a sketch alone is a name, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module

from warploom.catalogue.entry import Case, Entry, Parameters
from warploom.catalogue.sketches import SKETCHES, SketchOnly
from warploom.errors import CheckError, ParseError, nearest, spelled
from warploom.sketch.term.ir import Program

# A file of the catalogue has a tuple ENTRIES; a new file is named here. They are read when a name
# is asked for: a sketch of the user's own needs none of them.
FILES = ("convolution", "image", "permute.entry", "polynomial", "structures", "transposition")

# The same of device functions, whose kernels only call them.
FUNCTION_FILES = ("functions", "load_store", "permute.tile_function", "scan")


def names() -> dict[str, Entry | SketchOnly]:
    """The one table: every name, kernels in the order of the files, then sketches."""
    return {**entries(), **{sketch.name: sketch for sketch in SKETCHES}}


def entries() -> dict[str, Entry]:
    """The kernels of the catalogue by name; `warploom.load(name)` is one as a function.

    >>> import warploom
    >>> entry = warploom.kernels()["aos-to-soa"]
    >>> entry.parameters["fields"]
    3
    """
    return _entries_of(FILES)


def find(name: str) -> Entry:
    """The kernel with a name, or an error that says which names there are."""
    match names().get(name):
        case Entry() as entry:
            return entry
        case SketchOnly(kernel=kernel):
            instead = f", or write 'warploom kernel {kernel}'" if kernel else ""
            raise ParseError(
                f"'{name}' is a sketch; no kernel of the catalogue is built from it",
                advice=f"fill it with 'warploom synth {name}'{instead}",
            )
    known = entries()
    if name == "attention":
        raise ParseError(
            "kernels of 'attention' are made for the sizes of a call",
            advice="call warploom.load('attention')(q, k, v); 'warploom explore' searches them",
        )
    if name in function_entries():
        raise ParseError(
            f"'{name}' is a device function: no kernel, and not called on arrays",
            advice=spelled(f"'warploom kernel {name}' writes it", f"device_function({name!r})"),
        )
    raise ParseError(
        f"the catalogue has no kernel '{name[:80]}'",
        advice=nearest(name, known, "it has " + ", ".join(known)),
    )


def function_entries() -> dict[str, Entry]:
    """The device functions by name; what an entry builds is a kernel that calls one."""
    return _entries_of(FUNCTION_FILES)


def find_function(name: str) -> Entry:
    """The device function with a name, or an error that says which there are."""
    known = function_entries()
    if name in known:
        return known[name]
    raise ParseError(
        f"there is no device function '{name[:80]}'",
        advice=nearest(name, known, "there are " + ", ".join(known)),
    )


def _entries_of(files: Iterable[str]) -> dict[str, Entry]:
    return {entry.name: entry for file in files for entry in _entries_in(file)}


@cache
def _entries_in(file: str) -> tuple[Entry, ...]:
    found: tuple[Entry, ...] = import_module(f"{__name__}.{file}").ENTRIES
    return found


def program(named: Entry | SketchOnly, given: Parameters) -> Program:
    """The sketch of a name at its parameters; of a kernel, the one that it is built from."""
    found = named.program(**given)
    if found is None:
        raise CheckError(
            f"'{named.name}' with these parameters is not built from a sketch",
            advice=f"no sketch is solved for it: 'warploom kernel {named.name}' says why",
        )
    return found


__all__ = [
    "Case",
    "Entry",
    "SketchOnly",
    "entries",
    "find",
    "find_function",
    "function_entries",
    "names",
    "program",
]
