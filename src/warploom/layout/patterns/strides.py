"""Patterns of strides, by parameters: transforms, trees, structures, stencils, histograms."""

from __future__ import annotations

from itertools import combinations

from warploom.errors import CheckError
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import Access
from warploom.layout.patterns.usual import Accesses, Index, Tensor


def _bits(t: Tensor) -> int:
    size = t.size
    if size & (size - 1) or size < 2 * t.lanes:
        raise CheckError("this pattern is of a power of two, at least two warps of elements")
    return size.bit_length() - 1


def fft(t: Tensor) -> Accesses:
    """A transform in place, by radix 2: both halves of every butterfly, one access for each stride;
    by another `radix`, its strides."""
    bits, radix = _bits(t), t.option("radix", 2)
    if radix != 2:
        return _radix(t, radix)
    half = t.size // 2

    def index(stride: int) -> Index:
        def butterfly(s: Numbers, lane: Numbers) -> Numbers:
            number = s * t.lanes + lane
            upper, i = number // half, number % half
            first: Numbers = i // stride * (2 * stride) + i % stride
            return first + upper * stride

        return butterfly

    steps = t.size // t.lanes
    return [t.access(f"stride {1 << b}", "ld", steps, index(1 << b)) for b in range(bits)]


def _radix(t: Tensor, radix: int) -> Accesses:
    if radix != t.lanes or t.size != radix * radix:
        raise CheckError(
            f"a transform of {t.size} by radix {radix}", advice="the radix is 2, or lanes² elements"
        )
    return [
        t.access(f"stride {radix}", "ld", radix, lambda s, lane: s * radix + lane),
        t.access("stride 1", "ld", radix, lambda s, lane: s + radix * lane),
    ]


def bitonic(t: Tensor) -> Accesses:
    """Neighbours as pairs, then halves of a warp."""
    _bits(t)
    return [t.linear("pairs", "ld", 2), t.linear("halves", "ld", 1)]


def strides(t: Tensor) -> Accesses:
    """Every stride that is a power of two, up to the number of lanes."""
    most = t.lanes.bit_length() - 1
    steps = t.size // t.lanes
    if _bits(t) < 2 * most:
        raise CheckError(f"all strides need at least {t.lanes * t.lanes} elements")

    def index(k: int) -> Index:
        return lambda s, lane: (lane << k) + (s >> k << (k + most)) + (s & (1 << k) - 1)

    return [t.access(f"stride {1 << k}", "ld", steps, index(k)) for k in range(most + 1)]


def reduction(t: Tensor) -> Accesses:
    """A tree over all elements: the element that stays of each pair, level by level."""
    _bits(t)
    levels = [k for k in range(t.size.bit_length()) if t.size >> (k + 1) >= t.lanes]
    return [
        t.access(
            f"stride {1 << k}",
            "ld",
            (t.size >> (k + 1)) // t.lanes,
            lambda s, lane, k=k: s * t.lanes + lane << (k + 1),  # type: ignore[misc]
        )
        for k in levels
    ]


def but_two(t: Tensor) -> Accesses:
    """All bits of the element number but two of the lowest four go over the lanes."""
    bits, lane_bits = _bits(t), t.lanes.bit_length() - 1
    if bits != lane_bits + 2:
        raise CheckError(f"this pattern is of {4 * t.lanes} elements")

    def index(left: tuple[int, int]) -> Index:
        kept = [bit for bit in range(bits) if bit not in left]

        def spread(s: Numbers, lane: Numbers) -> Numbers:
            element = (s & 1) << left[0] | (s >> 1) << left[1]
            for place, bit in enumerate(kept):
                element = element | (lane >> place & 1) << bit
            return element

        return spread

    return [
        t.access(f"all but {i},{j}", "ld", 4, index((i, j))) for i, j in combinations(range(4), 2)
    ]


def every_bits(t: Tensor) -> Accesses:
    """Every choice of bits of the element number, as many as lanes have."""
    bits, lane_bits = _bits(t), t.lanes.bit_length() - 1

    def index(kept: tuple[int, ...]) -> Index:
        rest = [bit for bit in range(bits) if bit not in kept]

        def spread(s: Numbers, lane: Numbers) -> Numbers:
            element = s & 0
            for place, bit in enumerate(kept):
                element = element | (lane >> place & 1) << bit
            for place, bit in enumerate(rest):
                element = element | (s >> place & 1) << bit
            return element

        return spread

    steps = t.size // t.lanes
    return [
        t.access("bits " + ",".join(map(str, kept)), "ld", steps, index(kept))
        for kept in combinations(range(bits), lane_bits)
    ]


# -- structures, tiles, stencils -------------------------------------------------------------------


def aos(t: Tensor) -> Accesses:
    """Structures of `columns` words, one for each lane: stored in order, fields loaded."""
    if t.rows != t.lanes:
        raise CheckError("there is one structure for each lane")
    return [
        t.linear("store in order", "st", 1),
        t.access("load fields", "ld", t.columns, lambda s, lane: lane * t.columns + s),
    ]


def stencil(t: Tensor) -> Accesses:
    """A stencil of 5 or 9 `points` over the inside, by warps of lanes/8 rows and 8 columns; and the
    columns of the halo."""
    points = t.option("points", 5)
    if points not in (5, 9):
        raise CheckError(f"a stencil of {points} points", advice="it has 5 or 9 points")
    around = [(r, c) for r in (0, -1, 1) for c in (0, -1, 1) if points == 9 or r == 0 or c == 0]
    high, wide = t.lanes // 8, 8
    across = t.divided(t.columns - 2, wide, "columns inside")
    steps = across * t.divided(t.rows - 2, high, "rows inside")

    def index(down: int, right: int) -> Index:
        def cell(s: Numbers, lane: Numbers) -> Numbers:
            row = s // across * high + lane // wide + 1 + down
            return row * t.columns + s % across * wide + lane % wide + 1 + right

        return cell

    found = [t.access(f"{r:+},{c:+}", "ld", steps, index(r, c)) for r, c in around]
    return [*found, _halo_columns(t)]


def _halo_columns(t: Tensor) -> Access:
    steps = t.divided(t.rows - 2, t.lanes, "rows inside")
    last = t.columns - 1

    def index(s: Numbers, lane: Numbers) -> Numbers:
        return (s % steps * t.lanes + lane + 1) * t.columns + s // steps * last

    return t.access("halo columns", "ld", 2 * steps, index)


def halo(t: Tensor) -> Accesses:
    """Rows from the first and from the third column on, and the columns of the halo."""
    if t.columns != t.lanes + 2:
        raise CheckError(f"this pattern has {t.lanes + 2} columns")
    return [
        t.access("from column 0", "ld", t.rows, lambda s, lane: s * t.columns + lane),
        t.access("from column 2", "ld", t.rows, lambda s, lane: s * t.columns + lane + 2),
        _halo_columns(t),
    ]


def histogram(t: Tensor) -> Accesses:
    """Bins hit by lanes: a copy of them for each lane where there are columns, else one for all."""
    if t.columns == t.lanes:
        return [
            t.access(
                "bins", "ld", 16,
                lambda s, lane: (lane * 37 + s * 11) % t.rows * t.columns + lane,
            )
        ]  # fmt: skip
    return [t.access("one bin", "ld", 8, lambda s, _: 7 * s % t.size)]
