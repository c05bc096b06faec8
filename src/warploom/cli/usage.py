"""The help of a command as text: usage, what it does, arguments, options, exit statuses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from textwrap import wrap

from warploom.cli.declare import Command, Group, Parameter
from warploom.cli.parse import range_text

WIDEST = 100
NARROWEST = 50
COLUMN = 30  # at most, for what stands left of the explanations
AS_IT_IS = "\b"  # as its first line: the paragraph is not wrapped
EPILOG = "'warploom --help' lists all exit statuses."
_HELP_ROW = ("-h, --help", "Show this message and exit.")
_TYPES = {"str": "TEXT", "int": "N", "float": "X", "Path": "FILE"}

Row = tuple[str, str]


def width() -> int:
    """As wide as the terminal, but no wider than can be read."""
    return max(min(get_terminal_size().columns, WIDEST) - 2, NARROWEST)


def usage(prog: str, asked: Command | Group) -> str:
    if isinstance(asked, Group):
        return f"{prog} COMMAND [ARGS]..."
    arguments = [_in_usage(each) for each in asked.parameters if not each.flags]
    return " ".join([prog, "[OPTIONS]", *arguments])


def _in_usage(each: Parameter) -> str:
    word = each.declared.metavar + "..." * each.many
    return word if each.is_required else f"[{word}]"


def help_text(prog: str, asked: Command | Group) -> str:
    """All of it, as wide as the terminal."""
    wide = width()
    parts = [f"Usage: {usage(prog, asked)}", _paragraphs(asked.help, wide)]
    if isinstance(asked, Group):
        rows = [(each.name, summary(each)) for each in asked.commands]
        parts += [_section("Options", [_HELP_ROW], wide), _section("Commands", rows, wide)]
        return "\n\n".join(parts)
    arguments = [argument_row(each) for each in asked.parameters if not each.flags]
    explained = [row for row in arguments if row[1]]
    if explained:
        parts.append(_section("Arguments", explained, wide))
    parts.append(_section("Options", [*option_rows(asked), _HELP_ROW], wide))
    return "\n\n".join([*parts, _paragraphs(EPILOG, wide)])


def summary(command: Command) -> str:
    """The first sentence of its help."""
    first = " ".join(paragraphs(command.help)[0].split())
    return re.split(r"(?<=[.?!]) ", first)[0]


def paragraphs(text: str) -> list[str]:
    """Those of a help; one that is to stay as it is begins with its mark."""
    return [each.strip("\n") for each in re.split(r"\n\n+", text.strip("\n"))]


def argument_row(each: Parameter) -> Row:
    return each.declared.metavar, each.declared.help


def option_rows(command: Command) -> list[Row]:
    return [(_names(each), _explained(each)) for each in command.parameters if each.flags]


def _names(each: Parameter) -> str:
    names = ", ".join(each.flags) + (f" / {each.off}" if each.off else "")
    return names if each.is_flag else f"{names} {_metavar(each)}"


def _metavar(each: Parameter) -> str:
    return each.declared.metavar or "|".join(each.choices) or _TYPES[each.kind.__name__]


def _explained(each: Parameter) -> str:
    default = each.declared.default
    facts = []
    if each.is_required:
        facts.append("required")
    elif not each.is_flag and default is not None and default not in ("", []):
        facts.append(f"default: {default}")
    if ranged := range_text(each):
        facts.append(ranged)
    said = f"[{'; '.join(facts)}]" if facts else ""
    return "  ".join(filter(None, (each.declared.help, said)))


# -- layout ----------------------------------------------------------------------------------------


def _paragraphs(text: str, wide: int) -> str:
    return "\n\n".join("\n".join(_indented(each, wide)) for each in paragraphs(text))


def _indented(paragraph: str, wide: int) -> Iterator[str]:
    if paragraph.startswith(AS_IT_IS):
        lines: Iterable[str] = paragraph.removeprefix(AS_IT_IS).strip("\n").splitlines()
    else:
        lines = wrap(" ".join(paragraph.split()), wide - 2, break_on_hyphens=False)
    return (f"  {line}" for line in lines)


def _section(title: str, rows: list[Row], wide: int) -> str:
    longest = max((len(left) for left, _ in rows if len(left) <= COLUMN), default=0)
    return "\n".join([f"{title}:", *(line for row in rows for line in _row(row, longest, wide))])


def _row(row: Row, longest: int, wide: int) -> Iterator[str]:
    """A name, and beside it what it means; below it, if the name is long."""
    left, right = row
    lines = wrap(right, max(wide - longest - 4, 20), break_on_hyphens=False)
    if not lines or len(left) > longest:
        yield f"  {left}"
    else:
        yield f"  {left:<{longest}}  {lines.pop(0)}"
    yield from (f"  {'':<{longest}}  {line}" for line in lines)
