"""`warploom ci`: the checks that a project lists, run for what was changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.commands.shared import json_option
from warploom.cli.declare import Command, argument, option

HELP = """Run the sanitize and judge checks that a TOML file lists, for the files that were changed.

\b
A check has a tool and the arguments of that tool, named as those of 'warploom mcp':
  [[check]]
  tool = "judge"                              # or "sanitize"
  kernel = "kernels/softmax.cu"
  reference = "kernels/references.py::softmax"
  args = ["x=f32[rows,n]", "y=f32[rows,n]=out", "n=i32=n"]
  grid = "rows"
  shape = { rows = 3, n = [37, 64] }
  files = ["kernels/*.cuh"]                   # also run it if one of these was changed

Files are relative to the working folder. FILES, or the lines of --changed, say which files were
changed; a check runs if it names one of them. Without both, all checks run, as when the list itself
was changed. The files are those of your project: they run with your rights.

\b
Example:
  $ warploom ci --sarif found.sarif --summary table.md
  $ git diff --name-only -z --relative main > changed.txt && warploom ci --changed changed.txt

\b
Exit status: the worst of all checks
  0    all are clean or equal, or none had to run
  1    something was found, or a kernel is different
  2    bad input
  3    undecided or unknown; with --allow-undecided it is 0
  130  Ctrl-C"""


@dataclass(frozen=True, kw_only=True)
class Ci:
    """The options of one call."""

    files: list[str] = argument([], metavar="FILES", help="Files that were changed.")
    checks: Path = option(
        Path("warploom.toml"), "--checks", metavar="FILE", help="The list (default: warploom.toml)."
    )
    changed: Path | None = option(
        None,
        "--changed",
        metavar="FILE",
        help="Files that were changed, as git diff --name-only lists them.",
    )
    sarif: Path | None = option(
        None, "--sarif", metavar="FILE", help="Write all findings as one run of SARIF 2.1.0."
    )
    summary: Path | None = option(
        None, "--summary", metavar="FILE", help="Write a table of the checks as Markdown."
    )
    seconds: float = option(60.0, "--seconds", min=1, metavar="S", help="Time limit of a check.")
    allow_undecided: bool = option(
        False, "--allow-undecided", help="Take undecided and unknown for passed."
    )
    json_file: Path | None = json_option()


COMMAND = Command("ci", HELP, Ci, "warploom.cli.ci:ci")
