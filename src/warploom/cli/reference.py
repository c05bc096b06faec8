"""The reference of the command line, as a page: each command with its usage, help and options.

It is written from what commands declare when the site is built, so that it cannot grow old.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap

from warploom.cli.app import command_named
from warploom.cli.declare import Command, Group
from warploom.cli.start import COMMANDS, STATUSES
from warploom.cli.usage import AS_IT_IS, EPILOG, Row, argument_row, option_rows, paragraphs, usage

WIDE = 78  # columns of a usage
_MARKUP = re.compile(r"([\\*_<>\[\]#|])")


def all_commands() -> Iterator[tuple[str, Command]]:
    """Each command with the words that call it."""
    for name in COMMANDS:
        found = command_named(name)
        if isinstance(found, Command):
            yield f"warploom {name}", found
        else:
            yield from ((f"warploom {name} {each.name}", each) for each in found.commands)


def commands_page() -> Iterator[str]:
    """The lines of the page."""
    yield "# Commands\n"
    yield "`warploom COMMAND --help` says the same in a terminal.\n"
    for name in COMMANDS:
        found = command_named(name)
        if isinstance(found, Group):
            yield f"## `warploom {name}`\n"
            yield from _prose(found.help)
            for each in found.commands:
                yield from _command(f"warploom {name} {each.name}", each, "###")
        else:
            yield from _command(f"warploom {name}", found, "##")
    yield "## Exit statuses\n"
    yield from ("```text", STATUSES, "```\n")


def _command(prog: str, command: Command, level: str) -> Iterator[str]:
    yield f"{level} `{prog}`\n"
    lines = wrap(usage(prog, command), WIDE, subsequent_indent="    ", break_on_hyphens=False)
    yield from ("```text", *lines, "```\n")
    yield from _prose(command.help)
    rows = [argument_row(each) for each in command.parameters if not each.flags]
    yield from _rows([row for row in rows if row[1]])
    yield from _rows(option_rows(command))


def _prose(text: str) -> Iterator[str]:
    for each in paragraphs(text):
        if each.startswith(AS_IT_IS):
            yield f"```text\n{each.removeprefix(AS_IT_IS).strip(chr(10))}\n```\n"
        elif each != EPILOG:
            yield f"{_plain(each)}\n"


def _rows(rows: Iterable[Row]) -> Iterator[str]:
    """A list: unlike cells of a table, its lines wrap wherever the page ends."""
    listed = [f"- `{name}`" + (f": {_plain(said)}" if said else "") for name, said in rows]
    yield from (*listed, "") if listed else ()


def _plain(text: str) -> str:
    """Characters that Markdown would read as its own, but for what is code already."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(each if each.startswith("`") else _MARKUP.sub(r"\\\1", each) for each in parts)
