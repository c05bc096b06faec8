"""The application: a command is a module with `add(app)`, named in the table of `start.py`."""

from __future__ import annotations

from importlib import import_module

import typer
from typer.core import TyperGroup

from warploom import __version__
from warploom.cli.start import STATUSES, overview


class _Overview(TyperGroup):
    """The help of the whole is the same whether or not the commands were imported."""

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        del ctx
        return overview()


def application(*names: str) -> typer.Typer:
    """The application with these commands."""
    app = typer.Typer(
        name="warploom",
        cls=_Overview,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # the help is laid out by hand
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for name in names:
        import_module(f"warploom.cli.{name}").add(app)
    for own in (app, *(group.typer_instance for group in app.registered_groups)):
        for command in own.registered_commands if own is not None else ():
            command.epilog = STATUSES.replace("Exit status:", "In every command:")
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
