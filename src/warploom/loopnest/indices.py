"""Where an implementation's instructions are: indices of loops, cells of arrays, conditions.

In come an implementation and the index of every loop at the moment; out go expressions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify, total
from warploom.layout.language.expression import mapped
from warploom.layout.language.ir import Swizzle
from warploom.loopnest import ir
from warploom.loopnest.decided import Implementation

# Pieces of four elements stay together; eight of them are all banks.
PIECE_BITS, SWIZZLED_BITS = 2, 3


class Places:
    """`index` has the index of every loop that is open, `half` the one of several arrays that is
    meant; `several` says how many there are where it is not one."""

    def __init__(self, made: Implementation) -> None:
        self.made = made
        self.index: dict[ir.Dim, Expr] = {}
        self.half: dict[ir.Temporary, int] = {}
        self.several: dict[ir.Temporary, int] = {}
        self.temporaries = {t.put: t for t in made.lowered} | {t.get: t for t in made.lowered}
        self._names: dict[str, str] = {}

    def name(self, name: str) -> str:
        """An identifier for each name."""
        if name not in self._names:
            plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
            taken = set(self._names.values())
            made, number = plain, 1
            while made in taken:
                number += 1
                made = f"{plain}_{number}"
            self._names[name] = made
        return self._names[name]

    # -- global memory -----------------------------------------------------------------------------

    def along(self, inst: ir.Instruction, axis: ir.Axis) -> Expr:
        """The index along an axis."""
        own = [dim for dim in inst.dims if dim.axis is axis]
        return total(self.index[dim] * self.made.stride_of(dim) for dim in own)

    def element(self, inst: ir.Instruction, access: ir.Access) -> Expr:
        place = access.place
        terms = [self.along(inst, axis) * f for axis, f in place.factors.items()]
        return total([*terms, Const(place.offset)])

    def vector(self, inst: ir.Instruction) -> ir.Dim | None:
        return next((dim for dim in inst.dims if self.made.kind[dim] == "VECTOR"), None)

    def width(self, inst: ir.Instruction) -> int:
        wide = self.vector(inst)
        return 1 if wide is None else self.made.size_of(wide)

    def inside(
        self, inst: ir.Instruction, axes: Sequence[ir.Axis] | None = None, width: int = 1
    ) -> Iterator[Expr]:
        """That the index is not beyond the end of an axis whose last tile is partial. Of an access
        that is wide along an axis with a tail, all is inside or nothing."""
        wide = self.vector(inst)
        for axis in inst.axes if axes is None else axes:
            outer = [self.made.size_of(dim) for dim in inst.dims if dim.axis is axis]
            size = self.made.length(axis)
            if math.prod(outer) > size:
                lanes = self.width(inst) if wide is not None and wide.axis is axis else 1
                if width > 1 and axis is _unit_axis(inst):
                    lanes = width
                yield self.along(inst, axis).le(size - lanes)

    def first_threads(self, inst: ir.Instruction) -> Iterator[Expr]:
        """On levels of threads along which nothing differs, one thread stores for all."""
        own = {self.made.level[dim] for dim in inst.dims if self.made.kind[dim] == "THREAD"}
        for level in range(len(self.made.levels)):
            if level not in own:
                yield Var(f"level_{level}").eq(0)

    # -- temporary arrays --------------------------------------------------------------------------

    def array(self, temporary: ir.Temporary) -> str:
        """The name of an array, or of the one of several that is meant here."""
        half = self.half.get(temporary, 0)
        return self.name(temporary.name + (f".other{half if half > 1 else ''}" if half else ""))

    def array_dims(self, temporary: ir.Temporary) -> list[tuple[ir.Dim, ir.Dim]]:
        """The pairs of dimensions that it has, neighbours first."""
        ranked = [(self.made.layout[put], put, get) for put, get in temporary.pairs]
        there = sorted((r, at) for at, (r, _, _) in enumerate(ranked) if r is not None)
        return [temporary.pairs[at] for _, at in there]

    def lengths(self, temporary: ir.Temporary) -> list[int]:
        """The length of each dimension of `array_dims`, a row padded."""
        padding = self.made.padding[temporary]
        dims = self.array_dims(temporary)
        return [
            self.made.size_of(put) + (padding if at == 0 else 0) for at, (put, _) in enumerate(dims)
        ]

    def cell(self, inst: ir.Instruction) -> Expr:
        """Where in its array a temporary's store or load is."""
        temporary = self.temporaries[inst]
        dims, stride, terms = self.array_dims(temporary), 1, list[Expr]()
        for (put, get), length in zip(dims, self.lengths(temporary), strict=True):
            own = put if inst is temporary.put else get
            terms.append(self.index[own] * stride)
            stride *= length
        swizzle = self.swizzle(temporary)
        return total(terms) if swizzle is None else simplify(mapped(swizzle, total(terms)))

    def swizzle(self, temporary: ir.Temporary) -> Swizzle | None:
        """What exchanges pieces of 16 bytes within what the outermost dimension counts, by the
        index of that one: pieces that would lie in the same banks then lie in different ones."""
        if self.made.swizzle[temporary] == "PLAIN":
            return None
        below = math.prod(self.lengths(temporary)[:-1]).bit_length() - 1
        bits = min(SWIZZLED_BITS, below - PIECE_BITS)
        return Swizzle(bits, PIECE_BITS, below - PIECE_BITS) if bits > 0 else None


def _unit_axis(inst: ir.Instruction) -> ir.Axis | None:
    """The one along which an access has its neighbours."""
    assert isinstance(inst.action, ir.Load)
    factors = inst.action.access.place.factors
    return next((axis for axis, factor in factors.items() if factor == 1), None)


def both(conditions: Iterable[Expr]) -> Expr | None:
    """All of them; None if there is none."""
    listed = [simplify(each) for each in conditions]
    return reduce(lambda a, b: a.and_(b), listed) if listed else None
