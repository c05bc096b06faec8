"""How long commands take to start: CPU seconds of every `--help`, and of a small search.

    python -m bench.cli.startup [--only WORDS] [--out FILE]

Each is run in a process of its own, with compiled modules there already; the least of three runs
counts. The exit status is 1 if one takes longer than its limit. The record goes to
`bench/results/startup.json`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from bench.harness import arguments, environment, save

from warploom.cli.app import command_named
from warploom.cli.declare import Group
from warploom.cli.start import COMMANDS

HELP_SECONDS = 0.25
SOLVE_SECONDS = 0.5
RUNS = 3
SOLVE = ("layout", "solve", "rcd:32x32", "--no-store")


def helps() -> Iterator[tuple[str, ...]]:
    """The words that ask for help: of all commands together, of each, and of those in groups."""
    yield ("--help",)
    for name in COMMANDS:
        yield (name, "--help")
        found = command_named(name)
        for each in found.commands if isinstance(found, Group) else ():
            yield (name, each.name, "--help")


def cpu_seconds(words: Sequence[str]) -> float:
    """Of the user and the system, for one call."""
    # Nothing of the caller's folder: what lies beside it must not be imported.
    with tempfile.TemporaryDirectory() as folder:
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        process = subprocess.Popen(
            [sys.executable, "-m", "warploom", *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env=kept,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"warploom {' '.join(words)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def rows(only: str) -> Iterator[dict[str, Any]]:
    limits = [*((words, HELP_SECONDS) for words in helps()), (SOLVE, SOLVE_SECONDS)]
    for words, limit in limits:
        if only in " ".join(words):
            cpu_seconds(words)  # modules are compiled
            least = min(cpu_seconds(words) for _ in range(RUNS))
            yield {"command": " ".join(words), "cpu_seconds": round(least, 3), "limit": limit}


def main() -> int:
    given = arguments(__doc__, "startup.json", only="commands with this word").parse_args()
    found = []
    for row in rows(given.only):
        found.append(row)
        print(f"{row['cpu_seconds']:6.3f} of {row['limit']:g} s  warploom {row['command']}")
    save(given.out, {**environment(), "rows": found})
    return int(any(row["cpu_seconds"] > row["limit"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
