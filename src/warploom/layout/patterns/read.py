"""A pattern by its name, from a file, or as it is."""

from __future__ import annotations

from pathlib import Path

from warploom.errors import CheckError
from warploom.layout.patterns import named
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.pattern import load_pattern


def read_pattern(pattern: str | Path | Problem, machine: str | None = None) -> Problem:
    """What a pattern stands for: a file, or a name."""
    if isinstance(pattern, Problem):
        if machine is not None:
            raise CheckError("a pattern says its machine itself", advice="leave machine out")
        return pattern
    if not isinstance(pattern, str | Path):
        raise CheckError(
            f"a pattern is a name or a file, not a {type(pattern).__name__}",
            advice="try transpose:32x32:f32",
        )
    if is_file(pattern):
        return load_pattern(Path(pattern), machine)
    return named.pattern(str(pattern) if machine is None else f"{pattern}@{machine}")


def is_file(pattern: str | Path) -> bool:
    """Whether a file is meant, and no name."""
    return Path(pattern).suffix == ".toml" or Path(pattern).is_file()
