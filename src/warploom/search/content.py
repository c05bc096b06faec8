"""A value of ours as plain data, whole: what differs anywhere has another content.

In come dataclasses, enumerations, tuples, mappings and numbers, which may refer to each other; out
goes JSON that is equal in every process, to be told apart or digested (`store.digest`). Listings
for people leave out what they need not see, so they are no keys.

>>> content((1, 0.5, "x"))
[1, ['float', '0x1.0000000000000p-1'], 'x']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any, TypeAlias

from warploom.errors import InternalError

Json: TypeAlias = Any


def content(value: object) -> Json:
    return _of(value, {})


def _of(value: object, seen: dict[int, int]) -> Json:
    match value:
        case Enum():
            return [type(value).__name__, value.name]
        case None | bool() | int() | str():
            return value
        case float():
            return ["float", value.hex()]
        case tuple() | list():
            return [_of(each, seen) for each in value]
        case Mapping():
            return ["map", [[_of(key, seen), _of(each, seen)] for key, each in value.items()]]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _record(value, seen)
        case FunctionType():
            return ["function", f"{value.__module__}.{value.__qualname__}"]
        case _:
            raise InternalError(f"{type(value).__name__} has no content")


def _record(value: Any, seen: dict[int, int]) -> Json:
    """What is equal to itself alone is written once, and is a number where it comes again."""
    if "__eq__" not in vars(type(value)):
        if id(value) in seen:
            return ["again", seen[id(value)]]
        seen[id(value)] = len(seen)
    return [type(value).__name__, *(_of(getattr(value, f.name), seen) for f in fields(value))]
