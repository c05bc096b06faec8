"""A decided candidate read back: sizes, kinds, levels and the tree of loops that `order` describes.

In come a space and one decided candidate of it; out goes an `Implementation`, plain data that the
lowering to a kernel reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, cmp_to_key
from typing import Any, TypeAlias

from warploom.errors import InternalError
from warploom.layout.language.ir import Swizzle
from warploom.loopnest.ir import Axis, Dim, Instruction, Program, Temporary, Tile
from warploom.loopnest.space import NestSpace
from warploom.search.branching.candidate import Candidates, domain_of
from warploom.search.space.ir import Choice, Value

# Pieces of four elements stay together; eight of them are all banks.
PIECE_BITS, SWIZZLED_BITS = 2, 3


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Merged dimensions, and what is done in each iteration, in order."""

    dims: tuple[Dim, ...]
    kind: str
    size: int
    body: tuple[Node, ...]


Node: TypeAlias = Loop | Instruction


class Implementation:
    """`nests` is the whole control flow; `levels` are the sizes of the levels of threads, the
    innermost first, and `level[d]` is the one that a thread dimension is on. With `sizes` it is the
    same implementation of a computation whose axes are shorter."""

    def __init__(
        self,
        space: NestSpace,
        candidates: Candidates,
        row: int,
        sizes: Mapping[Axis, int] | None = None,
    ) -> None:
        self._space, self._candidates, self._row = space, candidates, row
        self.sizes: Mapping[Axis, int] = sizes or {}
        self.program: Program = space.program
        self.target = space.target
        self.size: dict[Tile, int] = {t: int(v) for t, v in self._unary(space.size)}
        self.kind: dict[Dim, str] = {d: str(v) for d, v in self._unary(space.kind)}
        lowered = {t for t, v in self._unary(space.lowered) if v == "TRUE"}
        self.lowered = tuple(t for t in space.program.temporaries if t in lowered)
        self.layout: dict[Dim, int | None] = {
            d: None if v == "NONE" else int(v) for d, v in self._unary(space.layout)
        }
        self.padding: dict[Temporary, int] = {t: int(v) for t, v in self._unary(space.padding)}
        self.swizzle: dict[Temporary, str] = {t: str(v) for t, v in self._unary(space.swizzle)}
        self.stages: dict[Temporary, int] = {t: int(v) for t, v in self._unary(space.stages)}
        self.fill: dict[Temporary, str] = {t: str(v) for t, v in self._unary(space.fill)}
        self.cache: dict[Instruction, str] = {i: str(v) for i, v in self._unary(space.cache)}
        self.spread = {d for d, v in self._unary(space.spread) if v == "TRUE"}
        self._order = self._relation(space.order)
        self._threads = self._relation(space.threads)

    # -- reading -----------------------------------------------------------------------------------

    def _values(self, choice: Choice) -> Iterator[tuple[tuple[object, ...], Value]]:
        columns = self._space.propagator.columns(choice)
        words = self._candidates.domains[self._row, columns].tolist()
        known = {bits: domain_of(choice, bits) for bits in set(words)}
        for instance, bits in zip(choice.instances, words, strict=True):
            domain = known[bits]
            if not domain.is_decided:
                raise InternalError(f"{choice.name}{tuple(map(str, instance))} is not decided")
            if domain.values:
                yield instance, domain.values[0]

    def _unary(self, choice: Choice) -> Iterator[tuple[Any, Value]]:
        return ((instance[0], value) for instance, value in self._values(choice))

    def _relation(self, choice: Choice) -> dict[tuple[object, object], str]:
        assert choice.inverse is not None
        turned = {v: choice.values[w] for v, w in zip(choice.values, choice.inverse, strict=True)}
        found: dict[tuple[object, object], str] = {}
        words = {value: (str(value), str(turned[value])) for value in choice.values}
        for (a, b), value in self._values(choice):
            found[a, b], found[b, a] = words[value]
        return found

    # -- dimensions --------------------------------------------------------------------------------

    def order(self, first: Dim | Instruction, second: Dim | Instruction) -> str:
        return self._order[first, second]

    def size_of(self, dim: Dim) -> int:
        """How many iterations it has."""
        if dim.tile is not None:
            return self.size[dim.tile]
        spare = dim.axis.span - dim.axis.size
        return -(-(self.length(dim.axis) + spare) // self.tile_elements(dim.axis))

    def length(self, axis: Axis) -> int:
        return self.sizes.get(axis, axis.size)

    def shortened(self, iterations: int) -> Implementation:
        """With at most so many tiles along each axis, the last as partial as it was: small enough
        to be run, with every loop, condition and barrier that the whole has."""
        sizes = {}
        for axis in self.program.axes:
            tile = self.tile_elements(axis)
            less = max(0, -(-axis.size // tile) - iterations) if axis.dynamic else 0
            sizes[axis] = axis.size - less * tile
        return Implementation(self._space, self._candidates, self._row, sizes)

    def tile_elements(self, axis: Axis) -> int:
        """Elements of one tile of an axis, over all its levels."""
        return math.prod(self.size[t] for t in self.program.tiles if t.axis is axis)

    def stride_of(self, dim: Dim) -> int:
        """By how much an iteration moves the index of its axis."""
        level = -1 if dim.tile is None else dim.tile.level
        return math.prod(
            self.size[t] for t in self.program.tiles if t.axis is dim.axis and t.level > level
        )

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """Those that are there."""
        added = [inst for t in self.lowered for inst in (t.put, t.get)]
        return (*self.program.instructions, *added)

    @cached_property
    def shared_folds(self) -> tuple[Instruction, ...]:
        """Those that threads have parts of."""
        return tuple(inst for inst in self.instructions
                     if any(self.kind[dim] == "THREAD" for dim in inst.over))  # fmt: skip

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        return tuple(dict.fromkeys(dim for inst in self.instructions for dim in inst.dims))

    # -- temporary arrays --------------------------------------------------------------------------

    def array_dims(self, temporary: Temporary) -> list[tuple[Dim, Dim]]:
        """The pairs of dimensions that it has, neighbours first."""
        ranked = [(self.layout[put], put, get) for put, get in temporary.pairs]
        there = sorted((r, at) for at, (r, _, _) in enumerate(ranked) if r is not None)
        return [temporary.pairs[at] for _, at in there]

    def lengths(self, temporary: Temporary) -> list[int]:
        """The length of each dimension of `array_dims`, a row padded."""
        padding = self.padding[temporary]
        dims = self.array_dims(temporary)
        return [self.size_of(put) + (padding if at == 0 else 0) for at, (put, _) in enumerate(dims)]

    def swizzle_of(self, temporary: Temporary) -> Swizzle | None:
        """What exchanges pieces of 16 bytes within what the outermost dimension counts, by the
        index of that one: pieces that would lie in the same banks then lie in different ones."""
        if self.swizzle[temporary] == "PLAIN":
            return None
        below = math.prod(self.lengths(temporary)[:-1]).bit_length() - 1
        bits = min(SWIZZLED_BITS, below - PIECE_BITS)
        return Swizzle(bits, PIECE_BITS, below - PIECE_BITS) if bits > 0 else None

    # -- threads -----------------------------------------------------------------------------------

    @cached_property
    def _mapped(self) -> list[list[Dim]]:
        """Thread dimensions by level, the innermost level first."""
        classes: list[list[Dim]] = []
        for dim in self.dims:
            if self.kind[dim] == "THREAD":
                for own in classes:
                    if self._threads[own[0], dim] == "MAPPED":
                        own.append(dim)
                        break
                else:
                    classes.append([dim])

        def inner_first(left: list[Dim], right: list[Dim]) -> int:
            return 1 if self._threads[left[0], right[0]] == "MAPPED_OUT" else -1

        return sorted(classes, key=cmp_to_key(inner_first))

    @cached_property
    def levels(self) -> tuple[int, ...]:
        return tuple(self.size_of(own[0]) for own in self._mapped)

    @cached_property
    def level(self) -> dict[Dim, int]:
        return {dim: number for number, own in enumerate(self._mapped) for dim in own}

    # -- the tree ----------------------------------------------------------------------------------

    @cached_property
    def merged(self) -> dict[Dim, tuple[Dim, ...]]:
        """With which dimensions each is one loop."""
        classes: list[list[Dim]] = []
        for dim in self.dims:
            for own in classes:
                if self.order(own[0], dim) == "MERGED":
                    own.append(dim)
                    break
            else:
                classes.append([dim])
        return {dim: tuple(own) for own in classes for dim in own}

    @cached_property
    def nests(self) -> tuple[Node, ...]:
        return self._bodies([*dict.fromkeys(own[0] for own in self.merged.values()),
                             *self.instructions])  # fmt: skip

    def _bodies(self, statements: list[Dim | Instruction]) -> tuple[Node, ...]:
        """Statements as a list of trees: those that are in no other come first, sorted."""

        def compare(left: Dim | Instruction, right: Dim | Instruction) -> int:
            return -1 if self.order(left, right) == "BEFORE" else 1

        top = [s for s in statements if not self._enclosed(s, statements)]
        made: list[Node] = []
        for statement in sorted(top, key=cmp_to_key(compare)):
            if isinstance(statement, Instruction):
                made.append(statement)
                continue
            inside = [s for s in statements
                      if s is not statement and self.order(statement, s) == "OUTER"]  # fmt: skip
            body = self._bodies(inside)
            kind, size = self.kind[statement], self.size_of(statement)
            made.append(Loop(self.merged[statement], kind, size, body))
        return tuple(made)

    def _enclosed(self, statement: Dim | Instruction, others: Iterable[Dim | Instruction]) -> bool:
        return any(s is not statement and self.order(s, statement) == "OUTER" for s in others)
