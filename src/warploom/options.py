"""The one reader of the environment. Everything else takes options as arguments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """Settings a user may give by environment variable; read once, by the command line."""

    color: bool = True
    real_ptxas: str | None = None  # WARPLOOM_PTXAS: the assembler that `warploom-ptxas` calls
    path: str = ""  # PATH: where programs are looked for


def from_environment() -> Options:
    return Options(
        color="NO_COLOR" not in os.environ,
        real_ptxas=os.environ.get("WARPLOOM_PTXAS") or None,
        path=os.environ.get("PATH", ""),
    )


def cache_folder() -> Path | None:
    """Where compiled code may be kept between runs; nowhere if WARPLOOM_CACHE is empty."""
    given = os.environ.get("WARPLOOM_CACHE")
    if given is not None:
        return Path(given) if given else None
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "warploom"
