"""The operations of array expressions, as data; `check.py` gives their types, `evaluate.py` their
meaning.

An operation is applied to functions (written as lambdas) and arguments (written as expressions):
`map` has one of each. *Layout* operations only say where elements lie; they move nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, assert_never, get_args

from warploom.array.language.size import normal
from warploom.index.ir import Expr, Var
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Comparison, Operator
from warploom.node import Interned, node

LevelKind: TypeAlias = Literal[
    "any", "sequential", "vector", "lane", "warp", "local", "group", "global"
]
SpaceName: TypeAlias = Literal["global", "local", "private"]
Boundary: TypeAlias = Literal["clamp", "wrap", "mirror", "constant"]

SPACES: tuple[SpaceName, ...] = get_args(SpaceName)
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)
DIMENSIONED = frozenset({"local", "group", "global"})

# The position that an index function of `gather` and `scatter` is given.
POSITION = Var("position")


@node
class Level(metaclass=Interned):
    """Where the iterations of a map run; `any`: not decided yet. Lanes are neighbours in dimension
    0."""

    kind: LevelKind
    dimension: int


ANY, SEQUENTIAL, VECTOR = Level("any", 0), Level("sequential", 0), Level("vector", 0)


# -- functions over arrays


@node
class Map(metaclass=Interned):
    """f, [a]n → [f(a)]n"""

    level: Level


@node
class Reduce(metaclass=Interned):
    """f(b, a) → b; b, [a]n → [b]1, from the first element to the last."""


@node
class Scan(metaclass=Interned):
    """f(b, a) → b; b, [a]n → [b]n: what `reduce` holds after each element."""


@node
class Iterate(metaclass=Interned):
    """f(a) → a; a → a: f applied so many times."""

    times: int


@node
class Let(metaclass=Interned):
    """f(a) → b; a → b: the argument is computed once."""


# -- layout


@node
class Split(metaclass=Interned):
    """[a]n → [[a]size](n / size)"""

    size: Expr


@node
class Join(metaclass=Interned):
    """[[a]m]n → [a](n·m)"""


@node
class Transpose(metaclass=Interned):
    """[[a]m]n → [[a]n]m"""


@node
class Gather(metaclass=Interned):
    """[a]n → [a]n: element i is the argument's at `index`, over POSITION. `inverse`, if it is
    known, says which i reads a given element; without one several may read it."""

    index: Expr
    inverse: Expr | None


@node
class Scatter(metaclass=Interned):
    """[a]n → [a]n: the argument's element i becomes element `index`, which is a permutation.
    `inverse`, if it is known, says which element comes to lie at a place."""

    index: Expr
    inverse: Expr | None


@node
class Slide(metaclass=Interned):
    """[a]n → [[a]size]((n - size) / step + 1): windows that begin `step` apart."""

    size: Expr
    step: Expr


@node
class Pad(metaclass=Interned):
    """[a]n → [a](left + n + right). Outside is the nearest element (`clamp`), the array again
    (`wrap`), its mirror image with the last element twice (`mirror`), or `value` (`constant`)."""

    left: Expr
    right: Expr
    boundary: Boundary
    value: float


@node
class Slice(metaclass=Interned):
    """[a]n → [a]size: the elements from `start` on."""

    start: Expr
    size: Expr


@node
class Element(metaclass=Interned):
    """[a]n → a: the element at `index`."""

    index: Expr


@node
class Zip(metaclass=Interned):
    """[a]n, [b]n, … → [(a, b, …)]n"""


@node
class Unzip(metaclass=Interned):
    """[(a, b, …)]n → ([a]n, [b]n, …)"""


@node
class Get(metaclass=Interned):
    """(a, b, …) → a part, counted from 0."""

    part: int


@node
class Pack(metaclass=Interned):
    """a, b, … → (a, b, …)"""


@node
class AsVector(metaclass=Interned):
    """[s]n → [vector of width]( n / width)"""

    width: int


@node
class AsScalar(metaclass=Interned):
    """[vector of width]n → [s](n·width)"""


@node
class To(metaclass=Interned):
    """a → a, where what computes it writes to this memory."""

    space: SpaceName


# -- numbers


@node
class Compute(metaclass=Interned):
    """An operator on numbers, or on vectors lane by lane."""

    op: Operator


@node
class Copy(metaclass=Interned):
    """a → a: the same number, written anew. It is what moves data from memory to memory."""


@node
class Ask(metaclass=Interned):
    """A comparison of two numbers."""

    op: Comparison


@node
class Choose(metaclass=Interned):
    """truth, a, a → a"""


@node
class Convert(metaclass=Interned):
    """A number of another type."""

    dtype: DType


@node
class Call(metaclass=Interned):
    """In laws only: a function that a law leaves open, by name; `result` is its type."""

    name: str
    result: object


Layout: TypeAlias = (
    Split | Join | Transpose | Gather | Scatter | Slide | Pad | Slice | Element
    | Zip | Unzip | Get | Pack | AsVector | AsScalar
)  # fmt: skip
Number: TypeAlias = Compute | Copy | Ask | Choose | Convert
Over: TypeAlias = Map | Reduce | Scan | Iterate | Let
Op: TypeAlias = Over | Layout | To | Number | Call

NUMBERS = get_args(Number)


def map_op_sizes(op: Op, change: Callable[[Expr], Expr]) -> Op:
    """The same operation with other sizes."""
    match op:
        case Split(size):
            return Split(normal(change(size)))
        case Slide(size, step):
            return Slide(normal(change(size)), normal(change(step)))
        case Pad(left, right, boundary, value):
            return Pad(normal(change(left)), normal(change(right)), boundary, value)
        case Slice(start, size):
            return Slice(normal(change(start)), normal(change(size)))
        case Element(index):
            return Element(normal(change(index)))
        case Gather(index, inverse):
            return Gather(change(index), None if inverse is None else change(inverse))
        case Scatter(index, inverse):
            return Scatter(change(index), None if inverse is None else change(inverse))
        case (
            Map() | Reduce() | Scan() | Iterate() | Let() | Join() | Transpose() | Zip() | Unzip()
            | Get() | Pack() | AsVector() | AsScalar() | To() | Compute() | Copy() | Ask()
            | Choose() | Convert() | Call()
        ):  # fmt: skip
            return op
        case _:
            assert_never(op)


def sizes_of(op: Op) -> tuple[Expr, ...]:
    """The sizes that an operation is written with."""
    found: list[Expr] = []

    def note(size: Expr) -> Expr:
        found.append(size)
        return size

    map_op_sizes(op, note)
    return tuple(found)
