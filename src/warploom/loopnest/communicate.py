"""Communications of a program, and the temporary arrays that they may need.

In come instructions; out goes one communication for every value that one of them has from another,
with the store, the load and the dimensions that it takes if it goes through memory: all that a
decision may add is there from the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from warploom.loopnest import ir


def communications(instructions: tuple[ir.Instruction, ...]) -> tuple[ir.Communication, ...]:
    return tuple(each for consumer in instructions for each in _incoming(consumer))


def _incoming(consumer: ir.Instruction) -> Iterator[ir.Communication]:
    seen = set[ir.Instruction]()
    for use in ir.results(consumer):
        producer = use.instruction
        if producer in seen:
            continue
        seen.add(producer)
        name = f"{producer}>{consumer}"
        temporary = None
        if use.scope is ir.Scope.MEMORY and use.pairs:
            temporary = _temporary(name, use, consumer)
        yield ir.Communication(name, producer, consumer, use.pairs, use.scope, temporary)


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """What is loaded only to be put into temporary arrays: the load with its tile dimensions, those
    of neighbours in memory last, the stores, and pairs (dimension of the load, of a store)."""

    load: ir.Instruction
    load_dims: tuple[ir.Dim, ...]
    puts: tuple[ir.Instruction, ...]
    pairs: ir.Pairs

    @property
    def dims(self) -> tuple[ir.Dim, ...]:
        return (*self.load_dims, *(own for _, own in self.pairs))

    @property
    def insts(self) -> tuple[ir.Instruction, ...]:
        return (self.load, *self.puts)

    def is_near(self, outer: ir.Dim, inner: ir.Dim, sector: int) -> bool:
        """Whether iterations of the inner of two loops along different axes may share a sector of
        memory: else their order makes no difference there. Of one axis they stand as they do."""
        assert isinstance(self.load.action, ir.Load)
        access = self.load.action.access
        steps = [abs(step) for step in access.steps.values()]
        if min(steps, default=0) * access.array.dtype.bytes >= sector:
            return False  # no two of its elements do
        assert inner.tile is not None
        below = math.prod(min(each) for each in inner.axis.tiles[inner.tile.level + 1 :])
        step = abs(access.steps.get(inner.axis, 0)) * below * access.array.dtype.bytes
        return outer.axis is inner.axis or step < sector


def copies(program: ir.Program) -> tuple[Copy, ...]:
    """Loads all of whose uses may go through temporary arrays."""
    found = []
    for load in program.instructions:
        uses = [each for each in program.communications if each.producer is load]
        made = [each.temporary for each in uses if each.temporary is not None]
        if not isinstance(load.action, ir.Load) or load.action.access.named:
            continue  # what data name a thread loads by what it knows itself
        if made and len(made) == len(uses):
            pairs = [
                (own, put)
                for each, t in zip(uses, made, strict=True)
                for (own, _), (put, _) in zip(each.pairs, t.pairs, strict=True)
            ]
            factors = load.action.access.steps
            tiles = [dim for dim in load.dims if dim.tile is not None]
            tiles.sort(key=lambda dim: -abs(factors.get(dim.axis, 0)))
            found.append(Copy(load, tuple(tiles), tuple(t.put for t in made), tuple(pairs)))
    return tuple(found)


def _temporary(name: str, use: ir.Result, consumer: ir.Instruction) -> ir.Temporary:
    """The array's dimensions are the pairs of tiles; what counts tiles is one loop for all."""
    producer = use.instruction
    shared = tuple(dim for dim in producer.dims if dim in consumer.dims)
    put_dims = _like(f"{name}.put", use.pairs)
    get_dims = _like(f"{name}.get", use.pairs)
    sides: ir.Pairs = tuple((old, new) for (old, _), new in zip(use.pairs, put_dims, strict=True))
    value = ir.result(producer, sides, ir.Scope.LOCAL)
    put = ir.Instruction(f"{name}.put", producer.dtype, (*shared, *put_dims), ir.Put(value))
    get = ir.Instruction(f"{name}.get", producer.dtype, (*shared, *get_dims), ir.Get())
    return ir.Temporary(f"{name}.array", put, get, tuple(zip(put_dims, get_dims, strict=True)))


def _like(name: str, pairs: ir.Pairs) -> tuple[ir.Dim, ...]:
    return tuple(ir.Dim(f"{name}.{dim.tile}", dim.axis, dim.tile) for dim, _ in pairs)
