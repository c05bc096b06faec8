"""What a value of ours is, as a digest: the same in every process for what is built alike.

Values are made of our own records, of numbers, texts and arrays. A function in them, or a record of
a class that is not ours, is somebody's code, which is not known by looking at it: no digest. What
is listed for people leaves out what they need not see, so listings are no keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np

_OURS = "warploom."
# Of a record: the fields whose items have no order, and another one in every process.
ANY_ORDER = "_any_order"
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def content_digest(value: object) -> str | None:
    """None for what holds code, or itself.

    >>> from fractions import Fraction
    >>> content_digest((1, "a")) == content_digest((1, "a"))
    True
    >>> content_digest((1, "a")) == content_digest((1.0, "a"))
    False
    >>> content_digest(Fraction(1, 2)), content_digest([print])
    (None, None)
    """
    try:
        return _Digests().of(value)
    except (_UnknownError, RecursionError):
        return None


class _UnknownError(Exception):
    pass


@dataclass(slots=True)
class _Digests:
    """By identity: what is shared is looked at once. The values are held, so that no identity is
    given to another one meanwhile."""

    known: dict[int, tuple[object, str]] = field(default_factory=dict)

    def of(self, value: Any) -> str:
        if type(value) in _PLAIN:
            return _hash(type(value).__name__, [repr(value)])
        if id(value) not in self.known:
            self.known[id(value)] = value, ""  # while it is looked at
            self.known[id(value)] = value, self._of(value)
        found = self.known[id(value)][1]
        if not found:
            raise _UnknownError
        return found

    def _of(self, value: Any) -> str:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind in (tuple, list):
            return _hash(name, map(self.of, value))
        if kind in (set, frozenset):
            return _hash(name, sorted(map(self.of, value)))
        if kind is dict:
            pairs = value.items()
            return _hash(name, (part for pair in pairs for part in map(self.of, pair)))
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
            return _hash(name, [value.dtype.str, repr(value.shape), value.tobytes().hex()])
        if isinstance(value, np.generic):
            return _hash(name, [value.dtype.str, value.tobytes().hex()])
        if not name.startswith(_OURS) and kind is not FunctionType:
            raise _UnknownError
        if isinstance(value, Enum):
            return _hash(name, [value.name])
        if isinstance(value, FunctionType):
            return _named(value)
        if is_dataclass(value):
            return _hash(name, self._fields(value, getattr(kind, ANY_ORDER, ())))
        raise _UnknownError

    def _fields(self, value: Any, any_order: Sequence[str]) -> Iterator[str]:
        for each in fields(value):
            part: Any = getattr(value, each.name, None)  # a machine may lack a field
            if each.name in any_order:
                yield _hash("in any order", sorted(map(self.of, part)))
            else:
                yield self.of(part)


def _named(function: FunctionType) -> str:
    """One of ours is known by its name; not what was made while another ran."""
    name = f"{function.__module__}.{function.__qualname__}"
    if not name.startswith(_OURS) or "<" in name:
        raise _UnknownError
    return _hash("function", [name])


def _hash(name: str, parts: Iterable[str]) -> str:
    found = hashlib.sha256(name.encode())
    for part in parts:
        found.update(f"\0{len(part)}\0{part}".encode("utf-8", "surrogatepass"))
    return found.hexdigest()
