"""Linear layouts with named inputs, as Triton has them: which coordinates each bit of a register,
lane, warp, block or offset adds, by exclusive or.

    register  [0,1] [0,2]      bit 0 of a register's number moves by 1 column, bit 1 by 2
    lane      [0,4] [0,8] [1,0] [2,0] [4,0]

`Growing` makes one from the inside out: a tile that grows along one dimension after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warploom.errors import CheckError
from warploom.layout.formats.mlir import Attribute
from warploom.layout.language.check import MOST_ELEMENTS

Base = tuple[int, ...]
MOST_BITS = 24  # of one input


@dataclass(frozen=True)
class Linear:
    """The bases of each input, and the shape of the tensor whose coordinates they are."""

    bases: dict[str, tuple[Base, ...]]
    shape: tuple[int, ...]

    def lists(self) -> dict[str, list[list[int]]]:
        """As JSON and `fragment_text.from_bases` have them."""
        return {name: [list(base) for base in bases] for name, bases in self.bases.items()}

    def of_one_block(self) -> Linear:
        """The part that the first block of a cluster has."""
        part = part_of_a_block(self.shape, self.bases.get("block", ()))
        return Linear({k: v for k, v in self.bases.items() if k != "block"}, part)


class Growing:
    """A layout that is being made; every dimension begins with one element."""

    def __init__(self, rank: int, *inputs: str) -> None:
        self.sizes = [1] * rank
        self.bases: dict[str, list[Base]] = {name: [] for name in inputs}

    def grow(self, name: str, dimension: int, count: int) -> None:
        """`count` times as many elements along a dimension, numbered by bits of the input."""
        for _ in range(bits_of(count)):
            self.add(name, self._unit(dimension, self.sizes[dimension]))
            self.sizes[dimension] *= 2

    def grow_all(self, name: str, counts: Sequence[int], order: Sequence[int]) -> None:
        for dimension in order:
            self.grow(name, dimension, counts[dimension])

    def repeat(self, name: str, count: int) -> None:
        """Bits of the input that change nothing."""
        for _ in range(bits_of(count)):
            self.add(name, (0,) * len(self.sizes))

    def times(self, name: str, bases: Iterable[Sequence[int]]) -> None:
        """Whole tiles, moved by these bases in units of the tile; `widen` follows."""
        for base in bases:
            self.add(name, tuple(n * size for n, size in zip(base, self.sizes, strict=True)))

    def add(self, name: str, base: Base) -> None:
        found = self.bases.setdefault(name, [])
        found.append(base)
        if len(found) > MOST_BITS:
            raise CheckError(f"more than {MOST_BITS} bases of {name}")

    def _unit(self, dimension: int, size: int) -> Base:
        return tuple(size if d == dimension else 0 for d in range(len(self.sizes)))

    def filling(
        self, shape: Sequence[int], order: Sequence[int], blocks: Sequence[Sequence[int]]
    ) -> Linear:
        """The layout of a whole tensor: blocks first share it out, then the tile grows in the
        order given to each block's part, or is cut to it."""
        check_shape(shape)
        limited = [_cut(base, shape) for base in blocks]
        counts = [min(n, size) for n, size in zip(_spans(blocks, len(shape)), shape, strict=True)]
        part = [max(1, size // count) for size, count in zip(shape, counts, strict=True)]
        first = next(iter(self.bases))
        for dimension in order:
            if self.sizes[dimension] < part[dimension]:
                self.grow(first, dimension, part[dimension] // self.sizes[dimension])
        cut = {name: tuple(_cut(b, part) for b in bases) for name, bases in self.bases.items()}
        moved = tuple(
            tuple(n * size for n, size in zip(base, part, strict=True)) for base in limited
        )
        return Linear({**cut, "block": moved}, tuple(shape))


def part_of_a_block(shape: tuple[int, ...], blocks: Sequence[Base]) -> tuple[int, ...]:
    """The shape of what one block has; those of the others begin where it ends.

    >>> part_of_a_block((64, 64), [(0, 32), (0, 0)])
    (64, 32)
    """
    found = list(shape)
    for dimension, size in enumerate(shape):
        moved = [base[dimension] for base in blocks if base[dimension]]
        found[dimension] = size >> len(moved)
        if sorted(moved) != [found[dimension] << bit for bit in range(len(moved))]:
            raise CheckError(f"blocks at {moved} of a dimension of {size}")
    return tuple(found)


def part_by_units(
    shape: tuple[int, ...], blocks: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], list[Base]]:
    """What one of several blocks has of a tile, and where the others are: bases of blocks that
    count such parts, as layout objects have them, in elements.

    >>> part_by_units((64, 64), [(0, 1)])
    ((64, 32), [(0, 32)])
    """
    if any(len(base) != len(shape) or min(base, default=0) < 0 for base in blocks):
        raise CheckError(f"blocks at {str(blocks)[:40]}", advice="write [[0, 1]]")
    part = [
        size >> max((base[dimension] for base in blocks), default=0).bit_length()
        for dimension, size in enumerate(shape)
    ]
    placed = [tuple(n * size for n, size in zip(base, part, strict=True)) for base in blocks]
    return part_of_a_block(shape, placed), placed


def check_shape(shape: Sequence[int]) -> None:
    total = 1
    for size in shape:
        if size < 1 or size & (size - 1):
            raise CheckError(f"a shape of {'x'.join(map(str, shape))} is not made of powers of two")
        total *= size
    if total > MOST_ELEMENTS:
        raise CheckError(f"a tensor of {total} elements", advice=f"{MOST_ELEMENTS} are the most")


def bits_of(count: int) -> int:
    if count < 1 or count & (count - 1):
        raise CheckError(f"{count} where a power of two should be")
    return count.bit_length() - 1


def _cut(base: Sequence[int], sizes: Sequence[int]) -> Base:
    """What goes beyond the size of a dimension stays where it is."""
    return tuple(n if n < size else 0 for n, size in zip(base, sizes, strict=True))


def _spans(bases: Sequence[Sequence[int]], rank: int) -> list[int]:
    found = [0] * rank
    for base in bases:
        if len(base) != rank:
            raise CheckError(f"the base {list(base)} has not {rank} coordinates")
        found = [a | b for a, b in zip(found, base, strict=True)]
    return [1 << number.bit_length() for number in found]


# -- what attributes say ---------------------------------------------------------------------------


def blocks_of(attribute: Attribute, rank: int) -> list[list[int]]:
    """What each bit of a block's number adds, in units of a block's part."""
    if "CTAsPerCGA" not in attribute.fields:
        return attribute.bases("CGALayout")
    ones = [1] * rank
    counts = powers(attribute, "CTAsPerCGA", rank, ones)
    splits = powers(attribute, "CTASplitNum", rank, ones)
    found, sizes = Growing(rank, "block"), splits
    for dimension in order_of(attribute, "CTAOrder", rank):
        if counts[dimension] % sizes[dimension]:
            raise attribute.wrong("CTASplitNum", "a divisor of CTAsPerCGA")
        found.grow("block", dimension, sizes[dimension])
        found.repeat("block", counts[dimension] // sizes[dimension])
    return [list(base) for base in found.bases["block"]]


def powers(
    attribute: Attribute, key: str, rank: int, otherwise: list[int] | None = None
) -> list[int]:
    found = attribute.numbers(key, otherwise)
    if len(found) != rank:
        raise CheckError(f"{key} of #{attribute.name} has {len(found)} sizes, and there are {rank}")
    for number in found:
        bits_of(number)
    return found


def order_of(attribute: Attribute, key: str, rank: int) -> list[int]:
    order = attribute.numbers(key, list(range(rank))[::-1])
    if sorted(order) != list(range(rank)):
        raise attribute.wrong(key, f"each of {rank} dimensions once")
    return order
