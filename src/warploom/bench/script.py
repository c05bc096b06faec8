"""The scripts of a checkout's `bench/`, which are no part of an installed package: found, run."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from warploom.errors import AbsentError, ParseError, one_of

CHECKOUT = Path(__file__).resolve().parents[3]


def scripts() -> dict[str, Path]:
    """Every script by its name, such as `ptx.speed`; none where there is no checkout."""
    files = sorted((CHECKOUT / "bench").glob("*/*.py"))
    is_script = '\nif __name__ == "__main__":\n'
    return {f"{f.parent.name}.{f.stem}": f for f in files if is_script in f.read_text("utf-8")}


def purpose(file: Path) -> str:
    """The first line of a script's docstring."""
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]


def run_script(name: str, words: Sequence[str], tables: Iterable[str]) -> int:
    """Runs a script from the root of its checkout, and returns its exit status."""
    known = scripts()
    if not known:
        raise AbsentError(
            f"'{name}' is not a table, and the scripts of bench/ are not in the package",
            advice="run it in a checkout of the repository",
        )
    if name not in known:
        raise ParseError(f"no table or script '{name}'", advice=one_of(name, [*tables, *known]))
    return subprocess.call([sys.executable, "-m", f"bench.{name}", *words], cwd=CHECKOUT)
