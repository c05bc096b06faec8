"""Words of a command line → the options of a call, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from warploom.cli.declare import Command, Parameter

HELP = ("-h", "--help")


class UsageError(Exception):
    """Words that are no call of the command."""


class HelpAsked(Exception):  # noqa: N818  # it is no error
    """Somebody wants to read the help."""


def parsed(command: Command, words: Sequence[str]) -> tuple[Any, frozenset[str]]:
    """The options of a call, and the names of those that were given."""
    texts = _texts(command, words)
    values = {}
    for each in command.parameters:
        if each.name in texts:
            found = [_value(each, text) for text in texts[each.name]]
            values[each.name] = found if each.many else found[-1]
        elif each.is_required:
            what = "option" if each.flags else "argument"
            raise UsageError(f"Missing {what} '{each.label}'.")
    return command.takes(**values), frozenset(texts)


def _texts(command: Command, words: Sequence[str]) -> dict[str, list[Any]]:
    """What was given, by field; of a flag, whether it is on. Options may stand after arguments."""
    options = {flag: each for each in command.parameters for flag in each.flags}
    off = {each.off: each for each in command.parameters if each.off}
    found: dict[str, list[Any]] = {}
    free: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            free += rest
        elif word == "-" or not word.startswith("-"):
            free.append(word)
        elif word in HELP:
            raise HelpAsked
        elif word in off:
            found.setdefault(off[word].name, []).append(False)
        else:
            option, value = _option(word, options, off)
            found.setdefault(option.name, []).append(_given(option, word, value, rest))
    _place(command, free, found)
    return found


def _option(
    word: str, options: dict[str, Parameter], off: dict[str, Parameter]
) -> tuple[Parameter, str | None]:
    """The option that a word is, and the value that is glued to it."""
    if word in options:
        return options[word], None
    if word.startswith("--"):
        name, equals, value = word.partition("=")
    else:
        name, equals, value = word[:2], word[2:], word[2:]
    if name in options and equals:
        return options[name], value
    near = sorted(get_close_matches(name, [*options, *off, *HELP])) if len(name) > 2 else []
    some = "s" * (len(near) > 1)
    said = f" (Possible option{some}: {', '.join(near)})" if near else ""
    raise UsageError(f"No such option: {name}{said}")


def _given(option: Parameter, word: str, value: str | None, rest: Iterator[str]) -> Any:
    if option.is_flag:
        if value is not None:
            raise UsageError(f"Option '{option.label}' does not take a value.")
        return True
    given = next(rest, None) if value is None else value
    if given is None:
        raise UsageError(f"Option '{word}' requires an argument.")
    return given


def _place(command: Command, free: list[str], found: dict[str, list[Any]]) -> None:
    """Words that belong to no option, each to its argument."""
    left = list(free)
    for each in command.parameters:
        if not each.flags and left:
            taken = left if each.many else left[:1]
            found[each.name] = list(taken)
            left = left[len(taken) :]
    if left:
        raise UsageError(f"Got unexpected extra argument{'s' * (len(left) > 1)} ({' '.join(left)})")


def _value(each: Parameter, given: Any) -> Any:
    """A text as the value of its kind; a flag is one already."""
    if each.is_flag or each.kind is str:
        return given
    if each.kind is Path:
        return Path(given)
    if issubclass(each.kind, StrEnum):
        if given in each.choices:
            return each.kind(given)
        listed = ", ".join(f"'{name}'" for name in each.choices)
        raise _invalid(each, f"'{given}' is not one of {listed}.")
    return _number(each, given)


def _number(each: Parameter, given: str) -> Any:
    what = "integer" if each.kind is int else "float"
    try:
        number = each.kind(given)
    except ValueError:
        raise _invalid(each, f"'{given[:80]}' is not a valid {what}.") from None
    least, most = each.declared.least, each.declared.most
    # Not a number is in no range.
    if (least is not None and not number >= least) or (most is not None and not number <= most):
        raise _invalid(each, f"{given[:80]} is not in the range {range_text(each)}.")
    return number


def range_text(each: Parameter) -> str:
    """`x>=0`, `0<=x<=31`; empty if every number will do."""
    least, most = each.declared.least, each.declared.most
    if least is None and most is None:
        return ""
    if least is not None and most is not None:
        return f"{least:g}<=x<={most:g}"
    return f"x>={least:g}" if least is not None else f"x<={most:g}"


def _invalid(each: Parameter, why: str) -> UsageError:
    return UsageError(f"Invalid value for '{each.label}': {why}")
