"""Options that say where results are kept."""

from __future__ import annotations

from pathlib import Path

import typer

from warploom.errors import ParseError
from warploom.search.store import Store, users_store

STORE = typer.Option(
    None, "--store", metavar="FILE", help="Where answers and samples are kept; default: your own."
)
NO_STORE = typer.Option(False, "--no-store", help="Search again, and keep nothing.")


def store_of(file: Path | None, none: bool) -> Store | None:
    """The one that was asked for, or the user's own."""
    if file is not None and none:
        raise ParseError("--store and --no-store exclude each other")
    return None if none else Store(file) if file is not None else users_store()
