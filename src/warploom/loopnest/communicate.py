"""Communications of a program, and the temporary arrays that they may need.

In come instructions; out goes one communication for every value that one of them has from another,
with the store, the load and the dimensions that it takes if it goes through memory: all that a
decision may add is there from the start.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.loopnest.ir import (
    Communication,
    Dim,
    Get,
    Instruction,
    Pairs,
    Put,
    Result,
    Scope,
    Temporary,
    results,
)


def communications(instructions: tuple[Instruction, ...]) -> tuple[Communication, ...]:
    return tuple(each for consumer in instructions for each in _incoming(consumer))


def _incoming(consumer: Instruction) -> Iterator[Communication]:
    seen = set[Instruction]()
    for use in results(consumer):
        producer = use.instruction
        if producer in seen:
            continue
        seen.add(producer)
        name = f"{producer}>{consumer}"
        temporary = None
        if use.scope is Scope.MEMORY and use.pairs:
            temporary = _temporary(name, use, consumer)
        yield Communication(name, producer, consumer, use.pairs, use.scope, temporary)


def _temporary(name: str, use: Result, consumer: Instruction) -> Temporary:
    """The array's dimensions are the pairs of tiles; what counts tiles is one loop for all."""
    producer = use.instruction
    shared = tuple(dim for dim in producer.dims if dim in consumer.dims)
    put_dims = _like(f"{name}.put", use.pairs)
    get_dims = _like(f"{name}.get", use.pairs)
    sides: Pairs = tuple((old, new) for (old, _), new in zip(use.pairs, put_dims, strict=True))
    value = Result(producer, sides, Scope.LOCAL)
    put = Instruction(f"{name}.put", producer.dtype, (*shared, *put_dims), Put(value))
    get = Instruction(f"{name}.get", producer.dtype, (*shared, *get_dims), Get())
    return Temporary(f"{name}.array", put, get, tuple(zip(put_dims, get_dims, strict=True)))


def _like(name: str, pairs: Pairs) -> tuple[Dim, ...]:
    return tuple(Dim(f"{name}.{dim.tile}", dim.axis, dim.tile) for dim, _ in pairs)
