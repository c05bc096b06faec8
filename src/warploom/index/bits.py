"""Affine maps over F2: y = M·x ^ c on bit vectors, where x may be several numbers laid end to end.

    >>> from warploom.index.ir import Var
    >>> turned = rotation(5, 2)
    >>> turned(0b10011), show(turned.expression(Var("x")))
    (28, 'x >> 2 ^ (x & 3) << 3')
    >>> (reversal(3) @ xor(3, 1)).text
    '[4, 2, 1] ^ 4'

A map is its columns: column j is what bit j of the input adds to the result. With one column for
each bit of lane, register and warp this is how layouts are written, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, variables
from warploom.index.show import show

MOST_BITS = 62  # values are 64-bit integers, of which the sign and one bit are left out
_MOST_TESTED_BITS = 20  # an expression is tried on every input


@dataclass(frozen=True, slots=True)
class BitMap:
    """`columns[j]` is the image of input bit j less the image of zero, `offset`.

    The result has `bits` bits. The input is one number after the other, the first in the lowest
    bits; `widths` says how many bits each has.
    """

    columns: tuple[int, ...]
    offset: int
    bits: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= MOST_BITS or min(self.widths, default=0) < 0:
            raise CheckError(f"a bit map gives 0 to {MOST_BITS} bits, not {self.bits}")
        if sum(self.widths) != len(self.columns):
            raise CheckError(f"{sum(self.widths)} input bits need as many columns")
        if any(not 0 <= each < 1 << self.bits for each in (*self.columns, self.offset)):
            raise CheckError(f"a column or the offset has more than {self.bits} bits")

    @overload
    def __call__(self, *inputs: int) -> int: ...
    @overload
    def __call__(self, *inputs: npt.NDArray[Any]) -> npt.NDArray[Any]: ...
    def __call__(self, *inputs: Any) -> Any:
        """The result for numbers or, element by element, for arrays."""
        if len(inputs) != len(self.widths):
            raise CheckError(f"the map takes {len(self.widths)} numbers, not {len(inputs)}")
        result: Any = self.offset
        for value, columns in zip(inputs, self.parts, strict=True):
            result = result ^ (value & 0)  # an array also where nothing is read of it
            for bit, column in enumerate(columns):
                result = result ^ (value >> bit & 1) * column
        return result

    @property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each number."""
        ends = np.cumsum([0, *self.widths]).tolist()
        return tuple(self.columns[a:b] for a, b in pairwise(ends))

    def __matmul__(self, inner: BitMap) -> BitMap:
        """This map after another: `(outer @ inner)(x) == outer(inner(x))`."""
        if inner.bits != len(self.columns) or len(self.widths) != 1:
            raise CheckError(f"a map of {len(self.columns)} bits is put after one of {inner.bits}")
        columns = tuple(self(column) ^ self.offset for column in inner.columns)
        return BitMap(columns, self(inner.offset), self.bits, inner.widths)

    @property
    def rank(self) -> int:
        return len(_reduced(self.columns))

    @property
    def is_permutation(self) -> bool:
        """Whether every result is taken, and once."""
        return self.rank == len(self.columns) == self.bits

    def inverse(self) -> BitMap:
        """The map that undoes this one, from one number to one number."""
        if not self.is_permutation:
            raise CheckError(f"the map {self.text} has no inverse")
        # Gauss and Jordan: each column with the bit that says which it was.
        count = self.bits
        rows = [column | 1 << (count + j) for j, column in enumerate(self.columns)]
        for bit in range(count):
            at = next(n for n in range(bit, count) if rows[n] >> bit & 1)
            rows[bit], rows[at] = rows[at], rows[bit]
            rows = [r ^ rows[bit] if r >> bit & 1 and n != bit else r for n, r in enumerate(rows)]
        columns = tuple(row >> count for row in rows)
        linear = BitMap(columns, 0, count, (count,))
        return BitMap(columns, linear(self.offset), count, (count,))

    @property
    def text(self) -> str:
        """The columns, and the offset if there is one."""
        columns = f"[{', '.join(map(str, self.columns))}]"
        return f"{columns} ^ {self.offset}" if self.offset else columns

    def expression(self, *inputs: Expr) -> Expr:
        """The map as shifts, masks and exclusive ors of the inputs, each within its width."""
        if len(inputs) != len(self.widths):
            raise CheckError(f"the map takes {len(self.widths)} numbers, not {len(inputs)}")
        terms = [
            term
            for value, columns in zip(inputs, self.parts, strict=True)
            for term in _shifted(value, columns)
        ]
        if self.offset or not terms:
            terms.append(Const(self.offset))
        result = terms[0]
        for term in terms[1:]:
            result = result ^ term
        return result

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "offset": self.offset,
            "bits": self.bits,
            "widths": list(self.widths),
        }


def from_json(record: object) -> BitMap:
    """The map that `to_json` wrote; anything else is a CheckError."""
    names = {"columns": list, "offset": int, "bits": int, "widths": list}
    if not isinstance(record, dict) or record.keys() != names.keys():
        raise CheckError(f"a bit map is an object with {', '.join(names)}")
    numbers = [record["offset"], record["bits"]]
    for name in ("columns", "widths"):
        if not isinstance(record[name], list):
            raise CheckError(f"the {name} of a bit map are a list")
        numbers += record[name]
    if not all(type(number) is int for number in numbers):
        raise CheckError("a bit map is made of whole numbers")
    columns, widths = (tuple(cast("list[int]", record[n])) for n in ("columns", "widths"))
    return BitMap(columns, record["offset"], record["bits"], widths)


def identity(bits: int) -> BitMap:
    return _one(bits, range(bits))


def xor(bits: int, offset: int) -> BitMap:
    """x ^ offset."""
    return BitMap(identity(bits).columns, offset, bits, (bits,))


def rotation(bits: int, by: int) -> BitMap:
    """The bits turned `by` places towards the lowest."""
    return _one(bits, ((bit - by) % bits for bit in range(bits)))


def reversal(bits: int, start: int = 0, count: int | None = None) -> BitMap:
    """`count` bits from bit `start` on (all, unless said) in reverse order."""
    end = start + (bits - start if count is None else count)
    if not 0 <= start <= end <= bits:
        raise CheckError(f"bits {start} to {end} are not among {bits} bits")
    inside = range(start, end)
    return _one(bits, (start + end - 1 - bit if bit in inside else bit for bit in range(bits)))


def _one(bits: int, places: Iterable[int]) -> BitMap:
    """Bit j goes to the jth place."""
    return BitMap(tuple(1 << place for place in places), 0, bits, (bits,))


def side_by_side(*maps: BitMap) -> BitMap:
    """The exclusive or of several maps, each of numbers of its own: x, y → f(x) ^ g(y)."""
    offset = 0
    for each in maps:
        offset ^= each.offset
    columns = tuple(column for each in maps for column in each.columns)
    widths = tuple(width for each in maps for width in each.widths)
    return BitMap(columns, offset, max((each.bits for each in maps), default=0), widths)


def from_expression(expr: Expr, widths: Mapping[str, int], bits: int) -> BitMap | None:
    """The map that an expression computes on variables of so many bits; None if it is not affine.

    The expression is evaluated on every input, of which there may be 2²⁰.

    >>> from warploom.index.ir import Var
    >>> from_expression(31 - Var("x"), {"x": 5}, 5) == xor(5, 31)
    True
    """
    if not variables(expr) <= widths.keys():
        raise CheckError(f"the widths of all variables of {show(expr)[:80]} are needed")
    total = sum(widths.values())
    if total > _MOST_TESTED_BITS:
        raise CheckError(f"{total} input bits are too many to try, over {_MOST_TESTED_BITS}")
    inputs = _every_input(tuple(widths.values()))
    env = dict(zip(widths, inputs, strict=True))
    values = np.broadcast_to(np.asarray(evaluate(expr, env)), 1 << total)
    if values.min() < 0 or int(values.max()) >> bits:
        return None
    found = from_table(values, tuple(widths.values()))
    return None if found is None else replace(found, bits=bits)


def from_table(table: npt.NDArray[np.int64], widths: tuple[int, ...]) -> BitMap | None:
    """The map that has these results, that of 0 first; None if it is not affine."""
    found = None if table.min() < 0 else affine_columns(table)
    if found is None:
        return None
    columns, offset = found
    return BitMap(columns, offset, max(each.bit_length() for each in (*columns, offset, 1)), widths)


def affine_columns(table: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], int] | None:
    """Columns and offset of the map over F2 that has these results; None if it is not affine."""
    size, offset = len(table), int(table[0])
    if size & (size - 1):
        return None
    columns = tuple(int(table[1 << bit]) ^ offset for bit in range(size.bit_length() - 1))
    span = np.array([offset], dtype=np.int64)
    for column in columns:
        span = np.concatenate([span, span ^ column])
    return (columns, offset) if np.array_equal(span, table) else None


def _every_input(widths: tuple[int, ...]) -> list[npt.NDArray[np.int64]]:
    whole = np.arange(1 << sum(widths), dtype=np.int64)
    starts = np.cumsum([0, *widths[:-1]]).tolist() if widths else []
    return [whole >> s & (1 << w) - 1 for s, w in zip(starts, widths, strict=True)]


def _shifted(value: Expr, columns: tuple[int, ...]) -> Iterator[Expr]:
    """The bits that move alike, together: `value & mask`, shifted, for each distance."""
    width = len(columns)
    # From what moves furthest down to what moves furthest up.
    for distance in range(-width, max((c.bit_length() for c in columns), default=0)):
        moved = [j for j in range(width) if j + distance >= 0 and columns[j] >> (j + distance) & 1]
        if not moved:
            continue
        mask = sum(1 << j for j in moved)
        if distance < 0 and len(moved) == width + distance:
            yield value >> -distance  # what a mask would keep out falls off
            continue
        kept = value if mask == (1 << width) - 1 else value & mask
        yield kept if distance == 0 else kept << distance if distance > 0 else kept >> -distance


def _reduced(columns: Sequence[int]) -> list[int]:
    """Independent columns that span the same space."""
    found: list[int] = []
    for column in columns:
        for other in found:
            column = min(column, column ^ other)
        if column:
            found.append(column)
    return found
