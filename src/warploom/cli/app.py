"""The application: a command is a module with `add(app)`; a new one is named in COMMANDS."""

from __future__ import annotations

import typer

from warploom import __version__
from warploom.cli import bench, kernel, machines, ptx, synth

COMMANDS = (synth, kernel, ptx, bench, machines)

app = typer.Typer(
    name="warploom",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the help is laid out by hand
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Finds the index arithmetic of GPU and SIMD kernels by search, and proves it.",
)
for command in COMMANDS:
    command.add(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"warploom {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Say which version this is."
    ),
) -> None:
    del version  # its callback has done the work


def main() -> None:
    app()
