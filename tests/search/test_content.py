"""Content: whatever differs has another, whatever is the same has the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import pytest

from warploom.errors import InternalError
from warploom.search.content import content


@dataclass(frozen=True, eq=False)
class Thing:
    name: str
    other: Thing | None = None


@dataclass(frozen=True)
class Size:
    x: float
    y: Mapping[str, int]


class Kind(Enum):
    A = 1
    B = 1.0
    C = 2


def double(x: int) -> int:
    return 2 * x


def test_equal_things_have_equal_contents() -> None:
    one, two = Thing("a", Thing("b")), Thing("a", Thing("b"))
    assert one is not two
    assert content((one, Size(0.5, {"k": 1}))) == content((two, Size(0.5, {"k": 1})))


def test_whatever_differs_is_told_apart() -> None:
    shared = Thing("b")
    values = [
        None, True, 1, 1.0, "1", 0.1, 0.1 + 2**-56, 0.0, -0.0, float("inf"), float("nan"), (),
        ((),), (1, (2,)), ((1, 2),), Kind.A, Kind.C, {"a": 1}, {"a": 2}, {"b": 1}, Size(1.0, {}),
        Size(1.0, {"a": 1}), Thing("a"), Thing("a", Thing("b")), double, "double",
        (Thing("a", shared), Thing("a", shared)),  # two that share, and two that do not
        (Thing("a", Thing("b")), Thing("a", Thing("b"))),
    ]  # fmt: skip
    found = [repr(content(each)) for each in values]
    assert len(set(found)) == len(found)


def test_what_has_no_content_is_no_key() -> None:
    with pytest.raises(InternalError, match="object has no content"):
        content((1, object()))
