"""`warploom mcp`: the checks and searches as tools for agents, over stdio."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.cli.declare import Command, option

HELP = """Serve judge, sanitize, report, solve_layout, synth, explore and emit to agents over MCP.

An agent starts this command and talks to it over standard input and output (Model Context
Protocol). It needs the Python package 'mcp': in the source folder, pip install '.[mcp]'.

\b
Example of a client's settings:
  {"mcpServers": {"warploom": {"command": "warploom", "args": ["mcp", "--root", "kernels"]}}}

Tools take files of --root alone: no '..', and no symbolic links. They write nothing there. Each
call is a process of its own with limits of time, memory, output and processes, and no network. On
Linux 6.2 or later, Landlock and seccomp hold it to that. Elsewhere a call that runs Python,
compiles CUDA or reads a recorded launch is refused unless you add --allow-python.

A Python file of somebody else can still say what it likes as an answer: a reference is believed.

Results are short, with links to the full record. Progress is reported, and cancelling a call ends
all that it started."""


@dataclass(frozen=True, kw_only=True)
class Mcp:
    """The options of one call."""

    root: Path = option(
        Path(), "--root", metavar="DIR", help="The folder whose files tools may name (default: .)."
    )
    seconds: float = option(
        120.0, "--seconds", min=1, metavar="S", help="Time limit of a call; it may ask for less."
    )
    memory: float = option(
        4096.0, "--memory", min=256, metavar="MB", help="Memory limit of a call."
    )
    output: float = option(
        64.0, "--output", min=1, metavar="MB", help="Limit of what a call writes."
    )
    allow_python: bool = option(
        False, "--allow-python", help="Run Python and CUDA files even where nothing confines them."
    )


COMMAND = Command("mcp", HELP, Mcp, "warploom.cli.mcp:mcp")
