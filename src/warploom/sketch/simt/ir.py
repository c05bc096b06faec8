"""What a SIMT sketch is: one warp's work on one tile, as statements over named lane values.

A traced sketch has arrays (global tiles, shared, constant, registers of each lane), statements that
move values between them, accumulators, and holes. A statement says *where* by index expressions
over lanes and loop counters, in which a hole stands as the variable `?name`.
`evaluate.py` says what it means, `lower.py` turns it into the term language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, assert_never

from warploom.errors import Span
from warploom.index.ir import Expr, Var, substitute, variables
from warploom.kernel.dtype import DType
from warploom.sketch.code.function import Function
from warploom.sketch.code.tiling import Array as Array
from warploom.sketch.code.tiling import Space as Space
from warploom.sketch.code.tiling import Tiling
from warploom.sketch.term.ir import Constant, Goal, constant, size
from warploom.sketch.term.operator import NEUTRAL, function

HoleKind: TypeAlias = Literal["swizzle", "partition", "condition", "bits"]


@dataclass(frozen=True, slots=True)
class Accumulator:
    """`⊕` over items, each `⊙` of values; `loops` are those it was made in, `span` is where.

    Without `init` it starts at the neutral element that the element type has. `types`, if there are
    any, are those in which `init` is that element: it is for kernels of these types alone.
    """

    name: str
    outer: str
    inner: str | None
    init: float | None
    finalize: str
    finish: Callable[[Any], Any] | None
    loops: tuple[str, ...]
    span: Span | None = None
    types: tuple[DType, ...] = ()

    @property
    def first(self) -> tuple[Constant, ...]:
        """The item it starts with, if that is not the neutral element."""
        if self.init is None or self.types or self.init == NEUTRAL[self.outer]:
            return ()
        return (constant(self.init),)

    @property
    def function(self) -> Function | None:
        """What finishes it, with its place."""
        if self.finish is None:
            return None
        return Function(f"finish '{self.finalize}'", self.finish, self.span)


@dataclass(frozen=True, slots=True)
class Hole:
    """What is left out: an index (swizzle, bits, partition) or a condition over some variables.

    `variables` and `extents` go together; for a swizzle or bits the first is the index and the
    second, if there is one, the secondary index. `size` is the number of values (2 for a
    condition), and `constants` are the sizes that conditions may compare with.
    """

    name: str
    kind: HoleKind
    size: int
    variables: tuple[str, ...]
    extents: tuple[int, ...]
    constants: tuple[int, ...] = ()

    @property
    def var(self) -> Var:
        return Var(f"?{self.name}")


@dataclass(frozen=True, slots=True)
class Read:
    """`target = array[index]`; a register array is the lane's own."""

    target: str
    array: str
    index: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exchange:
    """`target` = what the lane at these coordinates holds in `value`: a warp shuffle."""

    target: str
    value: str
    lanes: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Write:
    """`array[index] = value`; where the index is outside the array, nothing is written."""

    array: str
    index: tuple[Expr, ...]
    value: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Accumulate:
    """One accumulate statement, `number` counting them through the sketch."""

    number: int
    accumulator: str
    items: tuple[str, ...]
    predicate: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Finish:
    """`target` = the finalised accumulator."""

    target: str
    accumulator: str


@dataclass(frozen=True, slots=True)
class Loop:
    """Iterations 0 … count − 1; `count` is a constant and the loop stays one in the kernel."""

    var: str
    count: int
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """A barrier of the warp: what its lanes did before is done for all of them."""


Stmt: TypeAlias = Read | Exchange | Write | Accumulate | Finish | Loop | Sync


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A sketch at one size. `lanes` are the axes of the warp, slowest first.

    `span` is where the sketch is, `spans` where what has a name in it was made.
    """

    name: str
    doc: str
    sizes: Mapping[str, int]
    lanes: tuple[tuple[str, int], ...]
    arrays: Mapping[str, Array]
    accumulators: Mapping[str, Accumulator]
    holes: Mapping[str, Hole]
    body: tuple[Stmt, ...]
    goal: Goal
    span: Span | None = None
    spans: Mapping[str, Span | None] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arrays.values() if a.space in ("input", "constant"))

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arrays.values() if a.space == "output")

    @property
    def tiling(self) -> Tiling:
        """What it does to arrays of many tiles."""
        symbols, start = {}, 0
        for array in self.inputs:
            symbols[array.name] = tuple(range(start, start + size(array.shape)))
            start += size(array.shape)
        functions = {
            function(a.finalize): a.function
            for a in self.accumulators.values()
            if a.function is not None
        }
        return Tiling(self.name, self.inputs, self.outputs, self.goal, symbols, functions)

    @property
    def extents(self) -> dict[str, int]:
        """How many values each lane axis and loop counter takes."""
        return dict(self.lanes) | {s.var: s.count for s in walk(self.body) if isinstance(s, Loop)}

    @property
    def statements(self) -> tuple[Accumulate, ...]:
        """All accumulate statements."""
        return tuple(s for s in walk(self.body) if isinstance(s, Accumulate))


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, each before what is inside it."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Loop):
            yield from walk(stmt.body)


def exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """The index expressions of a statement itself."""
    match stmt:
        case Read(_, _, index) | Write(_, index, _):
            return index
        case Exchange(_, _, lanes):
            return lanes
        case Accumulate(_, _, _, predicate):
            return (predicate,)
        case Finish() | Loop() | Sync():
            return ()


def places(traced: Traced) -> Iterator[tuple[Expr, ...]]:
    """The indices at which lanes meet: those of shared memory and of outputs."""
    for stmt in walk(traced.body):
        if isinstance(stmt, Read | Write) and traced.arrays[stmt.array].space in (
            "shared",
            "output",
        ):
            yield stmt.index


def holes_in(*parts: Expr) -> list[str]:
    """The names of the holes in these expressions, each once."""
    names = (name for part in parts for name in sorted(variables(part)))
    return list(dict.fromkeys(name[1:] for name in names if name.startswith("?")))


def closed(body: tuple[Stmt, ...], fill: Mapping[str, Expr]) -> tuple[Stmt, ...]:
    """The body with its holes filled by these expressions."""
    holes = {f"?{name}": expr for name, expr in fill.items()}

    def each(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(substitute(part, holes) for part in parts)

    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Loop(var, count, inner):
                made.append(Loop(var, count, closed(inner, fill)))
            case Read() | Write():
                made.append(replace(stmt, index=each(stmt.index)))
            case Exchange():
                made.append(replace(stmt, lanes=each(stmt.lanes)))
            case Accumulate():
                made.append(replace(stmt, predicate=substitute(stmt.predicate, holes)))
            case Finish() | Sync():
                made.append(stmt)
            case _:
                assert_never(stmt)
    return tuple(made)


def prune(traced: Traced, live: frozenset[int]) -> tuple[Stmt, ...]:
    """The body without the accumulate statements outside `live` and what only they needed."""
    return _prune(traced.body, live, {array.name for array in traced.outputs})


def _prune(body: tuple[Stmt, ...], live: frozenset[int], used: set[str]) -> tuple[Stmt, ...]:
    """Backwards, so that every use is seen before what it uses; `used` grows."""
    kept: list[Stmt] = []
    for stmt in reversed(body):
        match stmt:
            case Loop(var, count, inner):
                left = _prune(inner, live, used)
                if left:
                    kept.append(Loop(var, count, left))
            case Sync():
                kept.append(stmt)
            case _ if _is_needed(stmt, live, used):
                used.update(_needs(stmt))
                kept.append(stmt)
    return tuple(reversed(kept))


def _is_needed(stmt: Stmt, live: frozenset[int], used: set[str]) -> bool:
    match stmt:
        case Accumulate(number, accumulator, _, _):
            return number in live and accumulator in used
        case Read(made, _, _) | Exchange(made, _, _) | Finish(made, _) | Write(made, _, _):
            return made in used
        case Loop() | Sync():
            return True


def _needs(stmt: Stmt) -> tuple[str, ...]:
    match stmt:
        case Accumulate(_, _, items, _):
            return items
        case Read(_, name, _) | Exchange(_, name, _) | Finish(_, name) | Write(_, _, name):
            return (name,)
        case Loop() | Sync():
            return ()
