"""Why attention is one pass over the keys: laws, as two sides that agree on numbers.

What is known of a row after some keys is a greatest score m, a sum l of exponentials beside it, and
results O that were summed with them as weights. Two of these join to the one of all their keys.

    (m, l, O) ∘ (n, k, P)  =  (g, l·e^(m−g) + k·e^(n−g), O·e^(m−g) + P·e^(n−g))    g = max(m, n)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """Rows of which some keys were seen: (rows), (rows), (rows, head)."""

    most: Array
    total: Array
    results: Array


def nothing(rows: int, head: int) -> Partial:
    """What is known before any key."""
    return Partial(np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, head)))


def of_keys(scores: Array, values: Array) -> Partial:
    """Rows by these keys alone; a score of -infinity has no weight."""
    most = scores.max(axis=1)
    weights = np.exp(scores - _finite(most)[:, None])
    return Partial(most, weights.sum(axis=1), weights @ values)


def joined(left: Partial, right: Partial) -> Partial:
    most = np.maximum(left.most, right.most)
    a, b = (np.exp(each.most - _finite(most)) for each in (left, right))
    results = a[:, None] * left.results + b[:, None] * right.results
    return Partial(most, a * left.total + b * right.total, results)


def finished(partial: Partial) -> Array:
    """The result; of a row that saw no key, zeros."""
    seen = partial.total > 0
    found: Array = partial.results / np.where(seen, partial.total, 1.0)[:, None]
    return found


def _finite(most: Array) -> Array:
    return np.where(np.isfinite(most), most, 0.0)


# -- laws ------------------------------------------------------------------------------------------

Sides: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Law:
    """Both sides, of scores of three blocks of keys and the values that belong to them."""

    name: str
    sides: Callable[[Sequence[Array], Sequence[Array]], Sides]


def _rows_scale(scores: Sequence[Array], values: Sequence[Array]) -> Sides:
    """A product of matrices commutes with a factor for each row."""
    weights, factor = np.exp(scores[0] - 3.0), np.exp(_finite(scores[1].max(axis=1)))
    return (factor[:, None] * weights) @ values[0], factor[:, None] * (weights @ values[0])


def _partials(scores: Sequence[Array], values: Sequence[Array]) -> list[Partial]:
    return [of_keys(*each) for each in zip(scores, values, strict=True)]


def _associates(scores: Sequence[Array], values: Sequence[Array]) -> Sides:
    a, b, c = _partials(scores, values)
    return joined(joined(a, b), c), joined(a, joined(b, c))


def _neutral(scores: Sequence[Array], values: Sequence[Array]) -> Sides:
    one = of_keys(scores[0], values[0])
    return joined(nothing(len(scores[0]), values[0].shape[1]), one), one


def _commutes(scores: Sequence[Array], values: Sequence[Array]) -> Sides:
    a, b, _ = _partials(scores, values)
    return joined(a, b), joined(b, a)


def _joins(scores: Sequence[Array], values: Sequence[Array]) -> Sides:
    """What is known of two blocks of keys together is what is known of all their keys."""
    a, b, _ = _partials(scores, values)
    return joined(a, b), of_keys(np.concatenate(scores[:2], axis=1), np.concatenate(values[:2]))


LAWS = (
    Law("products commute with factors of rows", _rows_scale),
    Law("joining associates", _associates),
    Law("joining commutes", _commutes),
    Law("nothing is neutral", _neutral),
    Law("blocks join to their keys", _joins),
)


def differences(law: Law, scores: Sequence[Array], values: Sequence[Array]) -> Iterator[float]:
    """How far the sides are apart, of the greatest number of each part."""
    with np.errstate(invalid="ignore"):
        sides = law.sides(scores, values)
    for left, right in zip(*map(_parts, sides), strict=True):
        same = left == right
        gap = np.abs(np.where(same, 0.0, left) - np.where(same, 0.0, right))
        largest = np.abs(right[np.isfinite(right)]).max(initial=1.0)
        yield float(gap.max(initial=0.0) / largest)


def _parts(side: Any) -> list[Array]:
    return [side.most, side.total, side.results] if isinstance(side, Partial) else [side]
