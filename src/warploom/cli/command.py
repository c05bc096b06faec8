"""The command that is being run, as the header of an emitted kernel names it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from enum import Enum
from typing import Any

from warploom.cli.declare import Context, Parameter

# Where results go and how many help: the text does not depend on it.
_ASIDE = ("out", "json_file", "store", "no_store", "keep", "processes", "cluster")


def command_words(asked: object, context: Context, *group: str) -> str:
    """`Command: warploom kernel aos-to-soa --set fields=5 --emit cuda`; `group` is the first of two
    words."""
    given = [
        word
        for each in context.command.parameters
        if each.name in context.given.difference(_ASIDE)
        for word in _words(each, getattr(asked, each.name))
    ]
    return f"Command: warploom {shlex.join([*group, context.command.name, *given])}"


def _words(parameter: Parameter, value: Any) -> Iterator[str]:
    """An argument or option as it was written."""
    for each in value if isinstance(value, list) else [value]:
        text = str(each.value if isinstance(each, Enum) else each)
        if not parameter.flags:
            yield text
        elif parameter.is_flag:
            yield parameter.flags[0] if each else parameter.off
        else:
            yield from (parameter.flags[0], text)
