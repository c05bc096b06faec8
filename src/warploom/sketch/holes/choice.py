"""A choice of a set as plain data, and found again: by what it reads, or from JSON.

The record of a choice holds its family and parameters, which are all there is to it, and for the
reader its text and its index expressions, which `warploom.index.parse` reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.index.show import show
from warploom.sketch.holes.common import Integers, Positions, distinct
from warploom.sketch.term.gather import GatherSet, Moves, Settings, Sources


def choices_of(gathers: GatherSet, rows: Settings) -> Positions:
    """Which choice of the set each row means, however it is written there; −1 if none."""
    found = _written_so(gathers, rows)
    if (found < 0).any():
        missing = found < 0
        found[missing] = _reading_so(gathers.reads, gathers.family.reads(rows[missing]))
    return found


def _written_so(gathers: GatherSet, rows: Settings) -> Positions:
    found = np.full(len(rows), -1, np.intp)
    for number, row in enumerate(rows):
        same = np.flatnonzero((gathers.spelled == row).all(axis=1))
        if len(same):
            found[number] = gathers.owner[same[0]]
    return found


def _reading_so(known: Sources, asked: Sources) -> Positions:
    both = np.concatenate([_compared(known), _compared(asked)])
    first, kind = distinct(both)
    there = first < len(known)
    return np.where(there[kind], first[kind], -1)[len(known) :]


def _compared(reads: Sources) -> Integers:
    return reads.values if isinstance(reads, Moves) else reads


def choice_to_json(gathers: GatherSet, choice: int) -> dict[str, Any]:
    row = gathers.row(choice)
    gather = gathers.family.expression(row)
    return {
        "family": gathers.family.name,
        "parameters": gathers.family.to_json(row),
        "text": gathers.family.text(row),
        "argument": show(gather.argument),
        "offset": show(gather.offset),
    }


def choice_from_json(gathers: GatherSet, record: object) -> int:
    """The choice of the set that has this family and these parameters; else a CheckError."""
    if not isinstance(record, dict) or not {"family", "parameters"} <= record.keys():
        raise CheckError("a choice is an object with a family and parameters")
    family, parameters = record["family"], record["parameters"]
    if family != gathers.family.name:
        raise CheckError(
            f"{gathers.function} has choices of the family '{gathers.family.name}',"
            f" not {family!r:.80}"
        )
    if not isinstance(parameters, dict):
        raise CheckError(f"parameters are an object, not {parameters!r:.80}")
    row = gathers.family.from_json(parameters)
    found = int(_written_so(gathers, row[None])[0])
    if found < 0:
        raise CheckError(f"{gathers.function} has no choice {gathers.family.text(row)}")
    return found
