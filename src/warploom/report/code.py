"""The text of a kernel, with the step of the sketch that each line computes.

Registers of a kernel are named by the number of the step that they hold (`sketch/code/program.py`):
what a line assigns says which step it belongs to. Loops belong to what is in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LOADED, STORED, NOBODY = "loaded", "stored", None

_DECLARED = re.compile(r"^\s*(?:const )?\w+ v(\d+)\w*(?:\[\d+\])?(?:;| =)")
_ASSIGNED = re.compile(r"^\s*v(\d+)\w*(?:\[[^=]*\])? = ")
_OPENS = re.compile(r"^\s*(?:#pragma|for \(|if \(.*\) \{$)")


def steps_of_lines(lines: Sequence[str], output: str) -> list[int | str | None]:
    """For each line the step that it computes, `stored` for what is stored, else None."""
    stored = re.compile(rf"(?:^|[\s)]){re.escape(output)}\[.*\] = ")
    found: list[int | str | None] = []
    for line in lines:
        own = _DECLARED.match(line) or _ASSIGNED.match(line)
        found.append(int(own[1]) if own else STORED if stored.search(line) else NOBODY)
    _fill_loops(lines, found)
    return found


def _fill_loops(lines: Sequence[str], found: list[int | str | None]) -> None:
    """What opens a loop goes with the line that follows, what closes one with the line before."""
    for at in reversed(range(len(lines) - 1)):
        if found[at] is NOBODY and _OPENS.match(lines[at]):
            found[at] = found[at + 1]
    for at in range(1, len(lines)):
        if found[at] is NOBODY and lines[at].startswith("  ") and lines[at].strip() == "}":
            found[at] = found[at - 1]
