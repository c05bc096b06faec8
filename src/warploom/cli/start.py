"""Where the executable begins: the table of commands, and the overview that is printed from it.

Only the module of the command that is asked for is imported: nobody waits for what others need.
"""

from __future__ import annotations

import errno
import io
import sys
from difflib import get_close_matches
from typing import NoReturn

from warploom import __version__
from warploom.cli.streams import lost, open_standard, patient

# Exit statuses that are needed before `guard.py` is imported, which has them all.
BAD_OUTPUT, INTERRUPTED, UNREAD = 2, 130, 141

STATUSES = """\
Exit status:
  0    found, proved or clean
  1    impossible, refuted, or something was found, such as a race
  2    bad input, or an output that cannot be written
  3    undecided: the time or memory limit was reached
  70   internal error
  130  Ctrl-C: what was found so far is printed and kept
  141  the reader of standard output stopped early; files that you asked for are still written"""

CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# Each command is declared in a module of `commands/`.
COMMANDS = {
    "synth": "Find index arithmetic: fill the holes of a sketch, and prove the solutions.",
    "kernel": "Write, check and time kernels of the catalogue or of your own sketches.",
    "holes": "List what may fill a hole of a sketch: built-in functions and their options.",
    "layout": "Find the shared-memory layout with the fewest bank conflicts; convert registers.",
    "explore": "Search all implementations of a loop nest, such as a GEMM, with a lower bound.",
    "map": "Map an array expression onto blocks, threads and vectors, and write the kernel.",
    "sanitize": "Check a kernel for memory errors, races, deadlocks and uninitialised values.",
    "judge": "Is a kernel equal to its reference for all inputs of a shape; inputs if it is not.",
    "ci": "Run the checks that a project lists, for the files that were changed.",
    "mcp": "Serve checks and searches as tools for agents (MCP), with limits for each call.",
    "ptx": "Run and check CUDA or PTX without a GPU; count memory traffic; insert shuffles.",
    "show": "Draw a result as an HTML page, as SVG figures or as text.",
    "store": "List, export or remove the results that are kept on disk.",
    "check": "Check your own index arithmetic of shared memory, for every lane.",
    "verify": "Check certificates, which are proofs that synth, layout and ptx run write.",
    "bench": "Measure the tables of the papers on this machine, beside the published figures.",
    "machines": "List the known machines, or show the limits and rates of one.",
}

_ABOUT = """Usage: warploom [--version] COMMAND …

  Checks GPU kernels without a GPU, finds index arithmetic by search, proves it, writes kernels.

Commands:
{commands}

  $ warploom synth examples/sketches/sums.swflow --emit cuda    # a sketch becomes a kernel
  $ warploom COMMAND --help                                     # what a command does, with examples

{statuses}"""


def overview() -> str:
    width = max(map(len, COMMANDS))
    return _ABOUT.format(
        commands="\n".join(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items()),
        statuses=STATUSES,
    )


def main() -> None:
    open_standard()
    sys.stdout, sys.stderr = patient(sys.stdout), patient(sys.stderr)
    _write_any_name(sys.stdout)
    try:
        try:
            _started()
            status = 0
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
        except KeyboardInterrupt:  # while a command is imported; later on each has its own answer
            sys.stderr.write("interrupted before anything was begun\n")
            status = INTERRUPTED
    finally:
        sys.stdout.flush()  # here, where what goes wrong can be said
    status = _after_writing(status, lost(sys.stdout))
    if status:
        sys.exit(status)


def _after_writing(status: int, error: OSError | None) -> int:
    """The exit status, if some of the output did not get through. Errors stay what they are."""
    if error is None or status not in (0, 1, 3):
        return status
    if isinstance(error, BrokenPipeError):  # the reader of our output has seen enough
        return UNREAD
    sys.stderr.write(f"cannot write the output: {error.strerror}\n")
    return BAD_OUTPUT


def _write_any_name(stream: object) -> None:
    """Names of files may hold bytes that are no text, and a terminal may lack letters of ours."""
    if isinstance(stream, io.TextIOWrapper):
        is_utf8 = stream.encoding.lower().replace("-", "") == "utf8"
        stream.reconfigure(errors="surrogateescape" if is_utf8 else "backslashreplace")


def _started() -> None:
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    if asked in ("", "-h", "--help"):
        sys.stdout.write(overview() + "\n")
    elif asked == "--version":
        sys.stdout.write(f"warploom {__version__}\n")
    elif asked not in COMMANDS:
        no_command(asked)
    elif {"-h", "--help"} & set(sys.argv):
        _command(None)
    else:
        # Here, not at the top: help needs none of it.
        from warploom.cli.remembered import kept_command, remembering

        name = kept_command(sys.argv[1:])
        if name is None:
            _command(None)
        else:
            remembering(name, sys.argv[1 + len(name.split()) :], _command)


def _command(answer: object) -> None:
    from warploom.cli.app import application

    application(sys.argv[1])(sys.argv[1:], obj=answer)


def no_command(asked: str) -> NoReturn:
    """Says which commands there are."""
    near = get_close_matches(asked[:80], COMMANDS, n=1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
    sys.stderr.write(f"warploom has no command '{asked[:80]}'\n  {meant}\n")
    sys.exit(2)
