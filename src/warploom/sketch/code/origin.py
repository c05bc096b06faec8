"""Errors about a kernel, said of the sketch that it is made of: an error without a place comes in,
one at the line that made what it names goes out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from warploom.errors import Span, WarploomError

_NAME = re.compile(r"'([A-Za-z_]\w*)(\[[^']*\])?'")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a name of a kernel stands for: how the user calls that, and where it was made."""

    called: str
    span: Span | None


@contextmanager
def placing(sketch: str, origins: Mapping[str, Origin], span: Span | None) -> Iterator[None]:
    """Errors raised inside have a place, at worst `span`, and speak of what the sketch has."""
    try:
        yield
    except WarploomError as error:
        if error.span is not None:
            raise
        named = [origins[name] for name, _ in _NAME.findall(error.message) if name in origins]
        span = next((each.span for each in named if each.span is not None), span)
        message = _NAME.sub(lambda found: _called(found, origins), error.message)
        text = f"'{sketch}' becomes no kernel: {message}"
        raise type(error)(text, span, error.advice) from error


def _called(found: re.Match[str], origins: Mapping[str, Origin]) -> str:
    return origins[found[1]].called if found[1] in origins else found[0]
