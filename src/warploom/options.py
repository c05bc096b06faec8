"""The one reader of the environment. Everything else takes options as arguments."""

from __future__ import annotations

import os
from dataclasses import dataclass


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
