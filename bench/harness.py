"""What every script here shares: its options, rows that are kept and resumed, one line about where
and how they were measured.

    python -m bench.FOLDER.NAME --help    from the root of a checkout; warploom bench --list has all

Where the package is not installed, as on a machine that has a GPU and NumPy alone, PYTHONPATH=src
says where it is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
Row = TypeVar("Row")

if find_spec("warploom") is None:
    raise SystemExit("warploom is not installed: run this from the checkout with PYTHONPATH=src")


def arguments(
    doc: str | None, record: str = "", *, dry: str = "", only: str = "", resumes: bool = False
) -> argparse.ArgumentParser:
    """The parser of a script; its own options are added to it.

    `record` is the file of `bench/results` that it writes unless `--out` says another; `dry` and
    `only` say what those two options do, where a script has them; `resumes`: rows of an earlier
    run are kept unless `--again` is given.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module()}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if record:
        parser.add_argument("--out", type=Path, default=RESULTS / record, help="the record")
    if dry:
        parser.add_argument("--dry", action="store_true", help=dry)
    if only:
        parser.add_argument("--only", default="", metavar="WORD", help=only)
    if resumes:
        both = parser.add_mutually_exclusive_group()
        both.add_argument(
            "--again", action="store_true", help="forget what an earlier run measured"
        )
        both.add_argument(
            "--resume", dest="again", action="store_false", help="keep it, which is the default"
        )
    return parser


def module() -> str:
    """The name under which this process was started."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec.name if spec is not None else Path(sys.argv[0]).stem


def command(*words: str) -> str:
    """What the user typed, as a record names it; where the record goes is left out.

    `words` stand for the arguments, where a script says them otherwise.
    """
    given = list(words or sys.argv[1:])
    if "--out" in given:
        at = given.index("--out")
        del given[at : at + 2]
    return " ".join(["python", "-m", module(), *given])


def child(*words: str) -> list[str]:
    """The command that runs this script once more, in the folder ROOT, with other arguments."""
    return [sys.executable, "-m", module(), *words]


def environment(machine: str = "", *words: str) -> dict[str, str]:
    """The line that every record has: date, machine (this one, unless it is named), command."""
    return {
        "date": date.today().isoformat(),
        "machine": machine or this_machine(),
        "command": command(*words),
    }


def this_machine() -> str:
    """The processor, its cores and the versions that times depend on."""
    parts = [platform.machine(), f"{os.cpu_count()} cores", f"Python {platform.python_version()}"]
    numpy = sys.modules.get("numpy")
    return ", ".join([*parts, f"NumPy {numpy.__version__}"] if numpy else parts)


def earlier(path: Path, otherwise: Any = None, *, again: bool = False) -> Any:
    """The record of an earlier run; `otherwise`, or a new object, where none is there or wanted."""
    if again or not path.exists():
        return {} if otherwise is None else otherwise
    return json.loads(path.read_text())


def save(path: Path, record: Any, **layout: Any) -> None:
    """Replaces a record whole, so that a run that is stopped leaves the last one that was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, **({"indent": 1} | layout)) + "\n")
    part.replace(path)


def attempted(make: Callable[..., Row], *given: Any) -> tuple[Row | None, str]:
    """A row, and "" if it was made; else nothing and the error, so that other rows go on."""
    try:
        return make(*given), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def measured(
    rows: dict[str, Any],
    names: Iterable[str],
    make: Callable[[str], Any],
    keep: Callable[[str], None] = lambda _: None,
    *,
    only: str = "",
) -> None:
    """Makes the rows of names that have the word `only`, and keeps each as it is made.

    A row that is there is left alone. One that fails says why, and a later run makes it again.
    """
    for name in names:
        if only in name and "failed" in rows.get(name, {"failed": ""}):
            row, failed = attempted(make, name)
            rows[name] = {"failed": failed[:500]} if failed else row
            keep(name)
