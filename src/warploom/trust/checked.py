"""What every checker of certificates says, and how each knows that nothing was changed since."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a certificate shows; `open` is what it leaves open, if anything, and `not_covered` what
    no proof of its kind is about."""

    shown: tuple[str, ...]
    open: str = ""
    not_covered: tuple[str, ...] = ()


def digest(record: dict[str, Any], but: Collection[str] = ("digest",)) -> str:
    """SHA-256 of all parts of a record but those in `but`."""
    rest = {key: value for key, value in record.items() if key not in but}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def require(holds: bool, message: str) -> None:
    if not holds:
        raise CheckError(f"the certificate does not hold: {message}")


class TooMuchError(Exception):
    """A check that nobody would wait for: it leaves open whether the certificate holds."""


def shielded(check: Callable[[], T], unknown: Callable[[str], T]) -> T:
    """What a check gives, or `unknown` of what it leaves open, if it takes too much. Whatever else
    ends it is a certificate that does not hold."""
    try:
        return check()
    except TooMuchError as error:
        return unknown(str(error))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise CheckError(f"the certificate is not of this form: {error!r:.80}") from None
    except (RecursionError, MemoryError):
        raise CheckError("the certificate is too large") from None


class Work:
    """What a check may take, counted: a short file may ask for a check without an end."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooMuchError(f"whether it holds: a check takes more than {self._most} steps")


def whole_numbers(given: object) -> npt.NDArray[np.int64]:
    """A table as it stands in a record; nothing is rounded, and true is no number."""
    found = np.array(given, dtype=object)
    require(set(map(type, found.ravel())) <= {int}, "there are numbers that are not whole")
    return found.astype(np.int64)


def distinct_rows(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """In the order of their bytes. NumPy's own way makes a field of each column, and may have a
    million of them."""
    return rows[:1] if rows.shape[1] == 0 else numbered_rows(rows)[0]


def numbered_rows(
    rows: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All different rows, and which of them each row is."""
    whole = np.ascontiguousarray(rows, np.int64)
    seen = whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel()
    _, first, which = np.unique(seen, return_index=True, return_inverse=True)
    return whole[first], which.reshape(-1)


# A numerator and a denominator. An exponent is not read: a few letters would be a number of many.
_FRACTION = re.compile(r"-?\d{1,2000}(?:/\d{1,2000})?", re.ASCII)


def fraction(given: object) -> Fraction:
    """A number as it stands in a record: a text of whole numbers."""
    require(isinstance(given, str) and _FRACTION.fullmatch(given) is not None, "a number is none")
    return Fraction(str(given))


_MOST_BITS = 24  # of the numbers of which all sums are listed

# -- sums of bits, without carries -----------------------------------------------------------------


def bits_of(size: int) -> int:
    """The bits of numbers below a size."""
    require(size == 1 << size.bit_length() - 1, "the size is no power of two")
    return size.bit_length() - 1


def independent(vectors: Iterable[int]) -> list[int]:
    """A basis of all their sums: few vectors that stand for very many."""
    known: list[int] = []
    for vector in vectors:
        left = reduce(lambda v, other: min(v, v ^ other), known, vector)
        known += [left] * (left > 0)
    return known


def rank_of(vectors: Iterable[int]) -> int:
    """How many of them are no sums of others."""
    return len(independent(vectors))


def sums_of(columns: list[int], points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each point the sum of the columns whose bits it has."""
    parts = ((points >> place & 1) * column for place, column in enumerate(columns))
    return reduce(np.bitwise_xor, parts, np.zeros_like(points))


def span_of(basis: tuple[int, ...] | list[int]) -> npt.NDArray[np.int64]:
    """All sums, in the order of numbers whose bits say which."""
    require(len(basis) <= _MOST_BITS, f"a basis of more than {_MOST_BITS} vectors")
    zero = np.zeros(1, dtype=np.int64)
    return reduce(lambda found, vector: np.append(found, found ^ vector), basis, zero)


Limits = list[tuple[frozenset[int], int]]  # of some numbers so many at most
_LIMITS_AT_ONCE = 256  # that are changed while one number is looked at


def room_for(
    limits: Limits, size: int, count: int, chosen: list[int], work: Work
) -> list[int] | None:
    """So many numbers below a size that no limit forbids, beginning with those chosen."""
    if len(chosen) == count:
        return chosen
    full = frozenset[int]().union(*(some for some, most in limits if not most))
    for number in range(max(chosen, default=-1) + 1, size - (count - len(chosen)) + 1):
        work.take(1)
        if number not in full:
            work.take(len(limits) // _LIMITS_AT_ONCE)
            fewer = [(some, most - (number in some)) for some, most in limits]
            if (found := room_for(fewer, size, count, [*chosen, number], work)) is not None:
                return found
    return None
