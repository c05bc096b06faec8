"""Where the numbers of a buffer lie: which array, registers or parameter, and at which index.

A tuple is several arrays, one for each part. What a group shares and is made in a map over its
threads is there once for each thread; what all see and is made in maps over groups or threads, once
for each iteration of these. A thread's own memory is registers. A dimension of it that all accesses
index by maps over the same threads is spread over them: each thread holds its own iterations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from warploom.array.code.spread import Spread, iterations_of
from warploom.array.language.bind import known_shape
from warploom.array.language.ir import Param
from warploom.array.mapping.constraint import BY_THREAD, LOCAL
from warploom.array.plan.home import leaf_paths
from warploom.array.plan.loops import Buffer, Loop, Plan, Write, loops_in, reads_of, sites
from warploom.array.plan.numbered import loop_size
from warploom.array.plan.view import Part, Path
from warploom.array.types import Array, Tuple, Type, Vector
from warploom.errors import InternalError, UnsupportedError
from warploom.index.ir import Const, Expr, Var
from warploom.kernel.dtype import DType

Kind: TypeAlias = Literal["global", "shared", "registers", "number"]


@dataclass(frozen=True, slots=True)
class Place:
    """`dims` are the sizes, `spread[k]` says that each thread holds its own iterations of dimension
    k. `copies` are maps, by their counters, for each of which there is one more, and how many."""

    name: str
    dtype: DType
    kind: Kind
    dims: tuple[int, ...]
    spread: tuple[bool, ...] = ()
    copies: tuple[tuple[str, int], ...] = ()

    @property
    def elements(self) -> int:
        return math.prod(self.dims) * math.prod(count for _, count in self.copies)


def parts_of(path: Path) -> tuple[int, ...]:
    return tuple(step.number for step in path if isinstance(step, Part))


def indices_of(path: Path) -> tuple[Expr, ...]:
    return tuple(step for step in path if not isinstance(step, Part))


def dims_of(type_: Type, parts: tuple[int, ...]) -> tuple[tuple[int, ...], DType]:
    """The sizes along a path through a type, and the number at its end."""
    dims: tuple[int, ...] = ()
    rest = list(parts)
    while True:
        match type_:
            case Array(element, _):
                dims += known_shape(type_)[:1]
                type_ = element
            case Tuple(members):
                type_ = members[rest.pop(0)]
            case Vector(element, width):
                dims += (width,)
                type_ = element
            case _:
                dtype = getattr(type_, "dtype", None)
                if dtype is None:
                    raise UnsupportedError(
                        "a Boolean cannot be stored",
                        advice="use it in choose(condition, a, b) at once",
                    )
                return dims, dtype


def accesses_of(write: Write) -> list[tuple[Param, Path]]:
    """What a statement writes, and then what it reads."""
    return [(write.memory, write.path), *((r.memory, r.path) for r in reads_of(write.value))]


def flat(indices: Sequence[Expr], dims: Sequence[int]) -> Expr:
    """Row by row."""
    result: Expr = Const(0)
    for index, size in zip(indices, dims, strict=True):
        result = result * size + index
    return result


@dataclass(slots=True)
class Storage:
    """The places of all buffers that one stage touches."""

    plan: Plan
    stage: int
    spread: Spread
    names: dict[tuple[Param, tuple[int, ...]], str]
    found: dict[tuple[Param, tuple[int, ...]], Place] = field(default_factory=dict)

    def of(self, memory: Param, path: Path) -> Place:
        key = (memory, parts_of(path))
        if key not in self.found:
            self.found[key] = self._placed(*key)
        return self.found[key]

    def _placed(self, memory: Param, parts: tuple[int, ...]) -> Place:
        buffer = self.plan.buffer(memory)
        dims, dtype = dims_of(memory.type, parts)
        name = self.names[memory, parts]
        if buffer.space == "private":
            if buffer.role == "input":
                if dims:
                    raise UnsupportedError(f"'{memory.name}' is a vector", advice="pass an array")
                return Place(name, dtype, "number", ())
            spread = self._spread(memory, parts, len(dims))
            held = [self._held(memory, parts, k) if s else n
                    for k, (s, n) in enumerate(zip(spread, dims, strict=True))]  # fmt: skip
            return Place(name, dtype, "registers", tuple(held), spread)
        copies = tuple(self._copies(buffer)) if buffer.role == "temporary" else ()
        kind: Kind = "shared" if buffer.space == "local" else "global"
        return Place(name, dtype, kind, dims, (False,) * len(dims), copies)

    def _copies(self, buffer: Buffer) -> Iterator[tuple[str, int]]:
        loops = maps_of(self.plan, self.stage)
        for number in buffer.chain:
            run = self.spread.runs[number]
            if run in BY_THREAD:
                continue
            if buffer.space == "local":
                if run in self.spread.sides:
                    yield run, self.spread.threads_of(run)
            else:
                yield loops[number].counter, loop_size(loops[number])

    # -- dimensions spread over threads

    def _accesses(self, memory: Param, parts: tuple[int, ...]) -> Iterator[tuple[Expr, ...]]:
        for site in sites(self.plan.stages[self.stage].body):
            for own, path in accesses_of(site.write):
                if own is memory and parts_of(path) == parts:
                    yield indices_of(path)

    def _maps_at(self, memory: Param, parts: tuple[int, ...], k: int) -> list[Loop | None]:
        """The map that indexes a dimension in each access, if one alone does."""
        by_counter = {each.counter: each for each in maps_of(self.plan, self.stage).values()}
        steps = [at[k] for at in self._accesses(memory, parts)]
        return [by_counter.get(each.name) if isinstance(each, Var) else None for each in steps]

    def _spread(self, memory: Param, parts: tuple[int, ...], rank: int) -> tuple[bool, ...]:
        found = []
        for k in range(rank):
            maps = self._maps_at(memory, parts, k)
            runs = {self.spread.runs[each.map.number] if each and each.map else "" for each in maps}
            found.append(len(runs) == 1 and runs <= set(LOCAL) and None not in maps)
        return tuple(found)

    def _held(self, memory: Param, parts: tuple[int, ...], k: int) -> int:
        first = self._maps_at(memory, parts, k)[0]
        if first is None or first.map is None:
            raise InternalError("a dimension spread over threads without a map")
        return iterations_of(
            loop_size(first), self.spread.threads_of(self.spread.runs[first.map.number])
        )


def maps_of(plan: Plan, stage: int) -> Mapping[int, Loop]:
    return {
        loop.map.number: loop for loop in loops_in(plan.stages[stage].body) if loop.map is not None
    }


def names_of(plan: Plan) -> dict[tuple[Param, tuple[int, ...]], str]:
    """A name for each array of each buffer, none of them twice and none a counter's."""
    counters = {loop.counter for stage in plan.stages for loop in loops_in(stage.body)}
    taken, found = set(counters), dict[tuple[Param, tuple[int, ...]], str]()
    for buffer in plan.buffers:
        for path in leaf_paths(buffer.memory.type):
            parts = parts_of(path)
            name = "_".join((buffer.memory.name, *map(str, parts)))
            while name in taken:
                name += "_"
            taken.add(name)
            found[buffer.memory, parts] = name
    return found
