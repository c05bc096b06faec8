"""The application: a command is a module with `add(app)`; a new one is named in COMMANDS.

Only the module of the command that is asked for is imported, so that one command does not wait for
what the others need.
"""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from warploom import __version__

COMMANDS = ("synth", "kernel", "layout", "explore", "ptx", "verify", "bench", "machines")


def application(*names: str) -> typer.Typer:
    """The application with these commands."""
    app = typer.Typer(
        name="warploom",
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # the help is laid out by hand
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="Finds the index arithmetic of GPU and SIMD kernels by search, and proves it.",
    )
    app.callback()(_root)
    for name in names:
        import_module(f"warploom.cli.{name}").add(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"warploom {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Say which version this is."
    ),
) -> None:
    del version  # its callback has done the work
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    application(*([asked] if asked in COMMANDS else COMMANDS))()
