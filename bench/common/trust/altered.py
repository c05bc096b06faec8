"""Certificates in which one field is another, of any kind of certificate."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any


def with_another_field(
    record: dict[str, Any], count: int, random: Random
) -> Iterator[dict[str, Any]]:
    """The record so many times, each with another value at one place."""
    for path in random.choices(leaves(record), k=count):
        yield changed(record, path, random)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list) or not value:
        return [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [leaf for key, part in inner for leaf in leaves(part, (*path, key))]


def changed(record: dict[str, Any], path: tuple[Any, ...], random: Random) -> dict[str, Any]:
    """The record with another value at one place."""
    record = copy.deepcopy(record)
    place: Any = record
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    others: list[Any] = [0, 1, -1, 7, None, "+", "x0", [], {}, True, 2.5, ""]
    if isinstance(old, int):
        others += [old + 1, old - 1, str(old)]
    elif isinstance(old, str):
        others += [old + " ", old[1:]]
    place[path[-1]] = random.choice([o for o in others if json.dumps(o) != json.dumps(old)])
    return record
