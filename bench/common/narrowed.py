"""A value of a wide type → the same value, with the narrow type that the caller says it has."""

from __future__ import annotations

from typing import TypeVar

from warploom.search.outcome import Found, Outcome

T = TypeVar("T")


def answer(outcome: Outcome[T]) -> T:
    """What was found: something was."""
    assert isinstance(outcome, Found)
    return outcome.answer


def present(value: T | None) -> T:
    """The value, which is not None."""
    assert value is not None
    return value


def of(kind: type[T], value: object) -> T:
    """The value, which is of this class."""
    assert isinstance(value, kind)
    return value
