"""Lines for people, on standard output or standard error as they are at the time."""

from __future__ import annotations

import re
import sys

_CODES = re.compile(r"\x1b\[[;?0-9]*[a-zA-Z]")
_COLORS = {"red": 31, "green": 32, "yellow": 33, "magenta": 35}


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints; what is no terminal gets no colours."""
    stream = sys.stderr if err else sys.stdout
    said = f"{text}\n" if nl else str(text)
    if "\x1b" in said and not stream.isatty():
        said = _CODES.sub("", said)
    stream.write(said)
    stream.flush()


def style(text: str, color: str) -> str:
    """Bold, in a colour."""
    return f"\x1b[{_COLORS[color]}m\x1b[1m{text}\x1b[0m"
