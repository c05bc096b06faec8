"""A row of the store: its columns, the digest over all of them, and what its value may look like.

A row is believed only if its digest matches what was read of it, the key that it was found by
included, and if its value has the shape that its reader knows. Any other row counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

Json: TypeAlias = Any  # what `json.dumps` takes

FORMAT = 2
COLUMNS = "kind, content, device, sources, label, value, written, digest"
TABLE = """CREATE TABLE results (
  kind TEXT NOT NULL, content TEXT NOT NULL, device TEXT NOT NULL, sources TEXT NOT NULL,
  label TEXT NOT NULL, value TEXT NOT NULL, written REAL NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (kind, content, device, sources)
) WITHOUT ROWID"""
# Format 1 had no digests.
OLD_FORMAT = 1
OLD_TABLE = TABLE.replace(", digest TEXT NOT NULL", "")

_TYPES = (str, str, str, str, str, str, float, str)
# What a reader of a value may raise; `_wrong` says more.
MALFORMED = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


class RowError(ValueError):
    """A row that is not to be believed, and why."""


def seal(columns: Sequence[Any]) -> str:
    """The digest of a row: of every other column.

    >>> row = ["tune", "c", "H200", "s", "copy", "[1]", 0.5]
    >>> seal(row) == seal([*row[:2], "A100", *row[3:]])
    False
    """
    text = json.dumps(["warploom", FORMAT, *columns])
    return hashlib.sha256(text.encode()).hexdigest()


def opened(row: Sequence[object]) -> Json:
    """The value of a row with all its columns, if it is what was put there."""
    if tuple(map(type, row)) != _TYPES or seal(row[:-1]) != row[-1]:
        raise RowError("does not match its digest")
    try:
        return json.loads(str(row[5]), parse_constant=_no_number)
    except MALFORMED as error:
        raise RowError(f"holds no JSON that we write ({str(error)[:80]})") from None


def is_believed(row: Sequence[object]) -> bool:
    try:
        opened(row)
    except RowError:
        return False
    return True


def number_of(key: Sequence[object]) -> str:
    """The number by which people name a row: of all that it is found by."""
    return digest([each if isinstance(each, str) else repr(each) for each in key])


def digest(content: Json) -> str:
    """Equal for equal content, in every process.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _no_number(name: str) -> NoReturn:
    raise RowError(f"{name} is no number")


# -- shapes of values: each gives back what it was given, or raises RowError -----------------------


def entries(value: Json, *names: str) -> list[Json]:
    """The values of a dict with exactly these names.

    >>> entries({"low": 1, "high": 2}, "low", "high")
    [1, 2]
    """
    if not isinstance(value, dict) or set(value) != set(names):
        _wrong(f"a record of {', '.join(names)}", value)
    return [value[name] for name in names]


def text(value: Json) -> str:
    return value if isinstance(value, str) else _wrong("a text", value)


def items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else _wrong("a list", value)


def whole(value: Json, low: int, high: int | None = None) -> int:
    """A whole number from `low` up to and with `high`.

    >>> whole(3, 0, 3)
    3
    """
    if type(value) is not int or value < low or (high is not None and value > high):
        _wrong(f"a whole number from {low}" + ("" if high is None else f" to {high}"), value)
    return int(value)


def seconds(value: Json, least: float = 0.0) -> float:
    """A finite time that is no less."""
    if type(value) not in (int, float) or not least <= value < math.inf:
        _wrong("a time", value)
    return float(value)


def _wrong(wanted: str, value: Json) -> NoReturn:
    raise RowError(f"has {value!r:.40} in place of {wanted}")
