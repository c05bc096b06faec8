"""The patterns that people meet, by parameters: transpositions, operands of matrix units, strides.

Each function takes sizes and gives the accesses of one warp. `named.py` gives them names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from warploom.errors import CheckError
from warploom.layout.access import IDLE, Access, AccessKind, Problem
from warploom.layout.cost import Mask
from warploom.layout.evaluate import Numbers
from warploom.machine.serving import NVIDIA, Serving

Index = Callable[[Numbers, Numbers], "Numbers | int"]

CHUNK_BYTES = 16  # of a row of a matrix for ldmatrix and stmatrix; the widest access of a lane


@dataclass(frozen=True, slots=True)
class Tensor:
    """What the functions below are about."""

    rows: int
    columns: int
    bytes: int = 4
    serving: Serving = NVIDIA
    options: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.rows * self.columns

    @property
    def lanes(self) -> int:
        return self.serving.lanes

    def option(self, name: str, otherwise: int) -> int:
        return self.options.get(name, otherwise)

    def vector(self, name: str, otherwise: int) -> int:
        """An option that says how many bytes a lane moves, in elements."""
        width = self.option(name, otherwise)
        if width % self.bytes or width < self.bytes:
            raise CheckError(f"{name}={width} bytes is no vector of elements of {self.bytes}")
        return width // self.bytes

    def access(
        self,
        name: str,
        kind: AccessKind,
        steps: int,
        index: Index,
        width: int = 1,
        active: Callable[[Numbers], Mask] | None = None,
    ) -> Access:
        """`index(step, lane)` is the first element; a vector goes on along the row."""
        step = np.arange(steps, dtype=np.int64)[:, None]
        lane = np.arange(self.lanes, dtype=np.int64)[None]
        first = np.broadcast_to(index(step, lane), (steps, self.lanes))
        elements = first[:, :, None] + np.arange(width)
        if active is not None:
            elements = np.where(
                np.broadcast_to(active(lane), first.shape)[:, :, None], elements, IDLE
            )
        return Access(name, elements, kind)

    def linear(self, name: str, kind: AccessKind, width: int) -> Access:
        """All elements in order, lane after lane."""
        steps = self.divided(self.size, self.lanes * width, "elements in steps of a warp")
        return self.access(
            name, kind, steps, lambda s, lane: (self.lanes * s + lane) * width, width
        )  # fmt: skip

    def divided(self, whole: int, part: int, what: str) -> int:
        if part < 1 or whole % part or not whole:
            raise CheckError(
                f"this pattern needs {what}: {part} does not divide {whole}",
                advice="write the accesses in a file instead",
            )
        return whole // part

    def by_columns(self, name: str, kind: AccessKind, width: int) -> Access:
        """Lanes go down the rows, and on to the next columns where there are fewer rows."""
        high = min(self.rows, self.lanes)
        across = self.divided(self.lanes, high, "rows that a warp can go down")
        down = self.divided(self.rows, high, "rows that a warp can go down")
        steps = down * self.divided(self.columns, across * width, "columns for each step")

        def index(s: Numbers, lane: Numbers) -> Numbers:
            row = lane % high + high * (s % down)
            return row * self.columns + (s // down * across + lane // high) * width

        return self.access(name, kind, steps, index, width)


Accesses = Sequence[Access]


def transpose(t: Tensor) -> Accesses:
    """Rows stored, columns loaded; `store` and `load` are bytes of a lane."""
    store, load = t.vector("store", t.bytes), t.vector("load", t.bytes)
    return [t.linear("store rows", "st", store), t.by_columns("load columns", "ld", load)]


def columns(t: Tensor) -> Accesses:
    """Columns stored, rows loaded."""
    store, load = t.vector("store", t.bytes), t.vector("load", t.bytes)
    return [t.by_columns("store columns", "st", store), t.linear("load rows", "ld", load)]


def rcd(t: Tensor) -> Accesses:
    """Rows, columns and the diagonals column = row ^ step."""
    rows = t.divided(t.rows, t.lanes, "as many rows as lanes")
    if rows != 1 or t.columns != t.lanes:
        raise CheckError("diagonals are of a tensor with as many rows and columns as lanes")
    return [
        t.linear("rows", "ld", 1),
        t.by_columns("columns", "ld", 1),
        t.access("diagonals", "ld", t.rows, lambda s, lane: lane * t.columns + (lane ^ s)),
    ]


def blocks(t: Tensor) -> Accesses:
    """Blocks of every shape that a warp can have, from one row to one column."""
    found = []
    high = 1
    while high <= t.lanes:
        wide = t.lanes // high
        found.append(_block(t, high, wide))
        high *= 2
    order = [0, len(found) - 1, *range(1, len(found) - 1)]
    return [found[place] for place in order]


def _block(t: Tensor, high: int, wide: int) -> Access:
    down = t.divided(t.rows, high, f"blocks of {high}×{wide}")
    across = t.divided(t.columns, wide, f"blocks of {high}×{wide}")

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = s // across * high + lane // wide
        return row * t.columns + s % across * wide + lane % wide

    return t.access(f"{high}x{wide}", "ld", down * across, index)


# -- matrix units ----------------------------------------------------------------------------------


def ldmatrix(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored in order, matrices loaded by ldmatrix."""
    return _matrices(t, "st", "ldmatrix")


def ldmatrix_copied(t: Tensor) -> Accesses:
    """The same, stored by cp.async."""
    return _matrices(t, "cp.async", "ldmatrix")


def ldmatrix_trans(t: Tensor) -> Accesses:
    """The same, loaded by ldmatrix.trans."""
    return _matrices(t, "cp.async", "ldmatrix.trans")


def _matrices(t: Tensor, store: AccessKind, load: AccessKind) -> Accesses:
    width = t.divided(CHUNK_BYTES, t.bytes, "elements in 16 bytes")
    return [t.linear("store", store, width), _rows_of_matrices(t, "load", load, width)]


def _rows_of_matrices(t: Tensor, name: str, kind: AccessKind, width: int) -> Access:
    """Rows of 16 bytes of up to four matrices of 8 rows: two below two where that goes up."""
    across = t.divided(t.columns, width, "whole rows of 16 bytes")
    if t.rows % 16 == 0 and across % 2 == 0:
        pairs = across // 2

        def square(s: Numbers, lane: Numbers) -> Numbers:
            row = s // pairs * 16 + lane % 16
            return row * t.columns + (s % pairs * 2 + lane // 16) * width

        return t.access(name, kind, t.rows // 16 * pairs, square, width)
    beside = next(count for count in (4, 3, 2, 1) if across % count == 0)
    parts = across // beside

    def flat(s: Numbers, lane: Numbers) -> Numbers:
        row = s // parts * 8 + lane % 8
        return row * t.columns + (s % parts * beside + lane // 8) * width

    steps = t.divided(t.rows, 8, "rows of whole matrices") * parts
    return t.access(name, kind, steps, flat, width, lambda lane: lane < 8 * beside)


def stmatrix(t: Tensor) -> Accesses:
    """Matrices stored by stmatrix, rows loaded as vectors of 16 bytes."""
    width = t.divided(CHUNK_BYTES, t.bytes, "elements in 16 bytes")
    return [_rows_of_matrices(t, "store", "stmatrix", width), t.linear("load", "ld", width)]


def mma_a(t: Tensor) -> Accesses:
    """Vectors of 16 bytes stored, operand A of mma loaded word by word."""
    width = t.divided(4, t.bytes, "elements in a word")
    vector = t.divided(CHUNK_BYTES, t.bytes, "elements in 16 bytes")
    return [t.linear("store", "st", vector), _fragment(t, "load A", "ld", width, width)]


def mma_b(t: Tensor) -> Accesses:
    """The same of operand B, which lies with k along its rows (n × k)."""
    width = t.divided(4, t.bytes, "elements in a word")
    vector = t.divided(CHUNK_BYTES, t.bytes, "elements in 16 bytes")
    wide, rows = 4 * width, t.divided(t.rows, 8, "rows of B")
    steps = rows * t.divided(t.columns, wide, "columns of B")

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = s % rows * 8 + lane // 4
        return row * t.columns + s // rows * wide + lane % 4 * width

    vectors = t.linear("store", "st", vector)
    return [vectors, t.access("load B", "ld", steps, index, width)]


def mma_c(t: Tensor) -> Accesses:
    """The result of mma stored, two columns at a time; rows loaded as vectors of 16 bytes."""
    vector = t.divided(CHUNK_BYTES, t.bytes, "elements in 16 bytes")
    return [_fragment(t, "store C", "st", 2, 2), t.linear("load", "ld", vector)]


def _fragment(t: Tensor, name: str, kind: AccessKind, width: int, apart: int) -> Access:
    """Lane l has row l/4, and the row eight further; columns from apart · (l mod 4)."""
    wide, rows = 4 * apart, t.divided(t.rows, 8, "rows of a fragment")
    steps = rows * t.divided(t.columns, wide, "columns of a fragment")

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = lane // 4 + 8 * (s % rows)
        return row * t.columns + s // rows * wide + lane % 4 * apart

    return t.access(name, kind, steps, index, width)


def mfma(t: Tensor) -> Accesses:
    """Vectors written in order; each lane reads `load` bytes of one of 16 rows."""
    width = t.vector("load", CHUNK_BYTES)
    groups = t.divided(t.lanes, 16, "lanes that read 16 rows")
    across = t.divided(t.columns, groups * width, "columns for each step")

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = s // across * 16 + lane % 16
        return row * t.columns + (s % across * groups + lane // 16) * width

    steps = t.divided(t.rows, 16, "rows of an operand") * across
    return [
        t.linear("write", "st", t.vector("store", width * t.bytes)),
        t.access("read", "ld", steps, index, width),
    ]


def blocked(t: Tensor) -> Accesses:
    """A blocked layout of registers, 2×2 elements of a lane and 8×4 lanes, stored; rows loaded."""
    down, across = (
        t.divided(t.rows, 16, "blocks of 16×8"),
        t.divided(t.columns, 8, "blocks of 16×8"),
    )

    def index(s: Numbers, lane: Numbers) -> Numbers:
        row = s // (2 * across) * 16 + s // across % 2 + lane // 4 * 2
        return row * t.columns + s % across * 8 + lane % 4 * 2

    stored = t.access("store blocks", "st", 2 * down * across, index, 2)
    return [stored, t.linear("load rows", "ld", 1)]


# -- strides ---------------------------------------------------------------------------------------


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
    turns = t.divided(t.rows - 2, t.lanes, "rows inside")
    last = t.columns - 1

    def index(s: Numbers, lane: Numbers) -> Numbers:
        return (s % turns * t.lanes + lane + 1) * t.columns + s // turns * last

    return t.access("halo columns", "ld", 2 * turns, index)


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


def problem_of(name: str, tensor: Tensor, accesses: Accesses, flat: bool = False) -> Problem:
    shape = (tensor.size,) if flat else (tensor.rows, tensor.columns)
    return Problem(name, shape, tensor.bytes, tuple(accesses), tensor.serving)
