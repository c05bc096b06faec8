"""Where results are kept."""

from __future__ import annotations

from pathlib import Path

from warploom.cli.remembered import warn
from warploom.errors import ParseError
from warploom.search.storage.store import Forgiving, Store, users_store


def store_of(file: Path | None, none: bool) -> Store | None:
    """The one that was asked for, or the user's own; what is wrong with it is a warning."""
    if file is not None and none:
        raise ParseError("--store and --no-store exclude each other")
    named = None if none else Store(file) if file is not None else users_store()
    return None if named is None else Forgiving(named.path, warn)
