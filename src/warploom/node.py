"""Interned nodes: equal fields give the same object, so `==` and `hash` are by identity."""

from __future__ import annotations

from dataclasses import dataclass, fields
from threading import Lock
from typing import Any, TypeVar, dataclass_transform
from weakref import WeakValueDictionary

T = TypeVar("T")

_BUILDING = Lock()


class Interned(type):
    """Metaclass that looks a node up before building it.

    The class of each field is part of the key: `1`, `True` and `1.0` are equal in Python but are
    different nodes; so are the two zeros. Fields are given by position, so that one node has one
    key.
    """

    _live: WeakValueDictionary[tuple[Any, ...], Any]

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> None:
        super().__init__(name, bases, body)
        cls._live = WeakValueDictionary()

    def __call__(cls, *given: Any) -> Any:
        key = tuple([(f.__class__, f.hex() if f.__class__ is float else f) for f in given])
        try:
            return cls._live[key]
        except KeyError:
            made = super().__call__(*given)
            with _BUILDING:  # two threads that build one node get the same
                return cls._live.setdefault(key, made)


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass compared by identity; its metaclass should be `Interned`.

    A node that travels to another process and back is the same node: it is built again from its
    fields, not filled in.
    """
    plain = "__repr__" not in cls.__dict__
    made = dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)(cls)
    made.__reduce__ = _rebuilt  # type: ignore[method-assign]
    if plain:
        made.__repr__ = _written  # type: ignore[method-assign]
    return made


MOST_WRITTEN = 1000  # nodes: one that shares parts may be much larger as a tree


def _written(self: Any) -> str:
    left = [MOST_WRITTEN]

    def text(value: Any) -> str:
        if isinstance(value, tuple):
            parts = [text(each) for each in value]
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if not isinstance(type(value), Interned) or type(value).__dict__["__repr__"] != _written:
            return repr(value)
        left[0] -= 1
        if left[0] < 0:
            return "…"
        own = (f"{each.name}={text(getattr(value, each.name))}" for each in fields(value))
        return f"{type(value).__qualname__}({', '.join(own)})"

    return text(self)


def _rebuilt(self: Any) -> tuple[type, tuple[Any, ...]]:
    return type(self), tuple(getattr(self, each.name) for each in fields(self))
