"""The application: a command is declared in `commands/`, and named in the table of `start.py`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

from warploom import __version__
from warploom.cli.declare import Command, Context, Group
from warploom.cli.parse import HELP, HelpAsked, UsageError, parsed
from warploom.cli.say import echo
from warploom.cli.start import BAD_OUTPUT, no_command, overview
from warploom.cli.usage import help_text, usage

BAD_INPUT = BAD_OUTPUT


def command_named(name: str) -> Command | Group:
    """What the module of a command declares."""
    found: Command | Group = import_module(f"warploom.cli.commands.{name}").COMMAND
    return found


class Application:
    """Some of the commands, to be called with words; it ends with SystemExit, as the shell is to
    see it."""

    def __init__(self, *names: str) -> None:
        self.commands = {name: command_named(name) for name in names}

    def __call__(
        self, args: Sequence[str], prog_name: str = "warploom", obj: object = None
    ) -> NoReturn:
        if not args or args[0] in HELP:
            echo(overview())
            raise SystemExit(0)
        if args[0] == "--version":
            echo(f"{prog_name} {__version__}")
            raise SystemExit(0)
        if args[0] not in self.commands:
            no_command(args[0])
        _called(self.commands[args[0]], f"{prog_name} {args[0]}", args[1:], obj)


def application(*names: str) -> Application:
    """The application with these commands."""
    return Application(*names)


def _called(asked: Command | Group, prog: str, words: Sequence[str], obj: object) -> NoReturn:
    try:
        if isinstance(asked, Group):
            found = _chosen(asked, prog, words)
            _called(found, f"{prog} {found.name}", words[1:], obj)
        options, given = parsed(asked, words)
    except HelpAsked:
        echo(help_text(prog, asked))
        raise SystemExit(0) from None
    except UsageError as error:
        echo(f"Usage: {usage(prog, asked)}\nTry '{prog} -h' for help.\n\nError: {error}", err=True)
        raise SystemExit(BAD_INPUT) from None
    asked.run(options, Context(asked, given, obj))
    sys.exit(0)


def _chosen(group: Group, prog: str, words: Sequence[str]) -> Command:
    """The command of a group; without a word there is only help, and nothing was done."""
    if not words:
        echo(help_text(prog, group), err=True)
        raise SystemExit(BAD_INPUT)
    if words[0] in HELP:
        raise HelpAsked
    known = {each.name: each for each in group.commands}
    if words[0] in known:
        return known[words[0]]
    if words[0].startswith("-"):
        raise UsageError(f"No such option: {words[0].partition('=')[0]}")
    near = get_close_matches(words[0], known, n=1)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    raise UsageError(f"No such command '{words[0]}'.{meant}")
