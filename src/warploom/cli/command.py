"""The command that is being run, as the header of an emitted kernel names it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer

# Where results go and how many help: the text does not depend on it.
_ASIDE = ("out", "json_file", "store", "no_store", "keep", "processes", "cluster")


def command_words(context: typer.Context) -> str:
    """`Command: warploom kernel aos-to-soa --set fields=5 --emit cuda`"""
    given = [
        word
        for param in context.command.params
        if param.name is not None and param.name not in _ASIDE and _is_given(context, param.name)
        for word in _words(param, context.params[param.name])
    ]
    own = context.command_path.split()[-1]
    return f"Command: warploom {shlex.join([own, *given])}"


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _words(param: Any, value: Any) -> Iterator[str]:
    """An argument or option as it was written."""
    for each in value if isinstance(value, list | tuple) else [value]:
        text = str(each.value if isinstance(each, Enum) else each)
        if param.param_type_name == "argument":
            yield text
        elif param.is_flag:
            yield param.opts[0] if each else param.secondary_opts[0]
        else:
            yield from (param.opts[0], text)
