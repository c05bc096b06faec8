"""What a sketch is: terms, gathers, steps and the program they form.

A program is a flat list of steps in single assignment form; blocks and shadowed names of the text
are gone by the time it exists. `evaluate.py` says what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.node import Interned, node
from warploom.sketch.term.gather import UNDEFINED as UNDEFINED
from warploom.sketch.term.gather import ZERO as ZERO
from warploom.sketch.term.gather import GatherExpr as GatherExpr
from warploom.sketch.term.gather import GatherSet as GatherSet
from warploom.sketch.term.gather import Shape as Shape
from warploom.sketch.term.gather import Table as Table
from warploom.sketch.term.gather import size as size
from warploom.sketch.term.operator import WORD, is_function


@node
class Zero(metaclass=Interned):
    """Nothing: the neutral element of the fold that consumes it, 0 where no fold does."""


@node
class Undefined(metaclass=Interned):
    """A value nobody may rely on: an index out of bounds, or a fold of an undefined value."""


@node
class Symbol(metaclass=Interned):
    """One element of an input."""

    number: int


@node
class Constant(metaclass=Interned):
    """A number, such as an accumulator starts with. Build with `constant`."""

    value: int | float


@node
class Fold(metaclass=Interned):
    """A multiset of terms and an operator: the sum, product, … of its items, in any order.

    The operator is one of `OPERATORS`, the word `fold`, or a function of one item, such as
    `mean()`. Build with `fold_of`.
    """

    operator: str
    items: tuple[Zero | Undefined | Symbol | Constant | Fold, ...]

    _any_order: ClassVar = ("items",)


Term: TypeAlias = Zero | Undefined | Symbol | Constant | Fold


def constant(value: float) -> Constant:
    """A number of double precision; the same one is the same constant, be it 5 or 5.0."""
    return Constant(int(float(value)) if float(value).is_integer() else float(value))


def fold_of(items: list[Term] | tuple[Term, ...], operator: str = WORD) -> Term:
    """Packs terms: zeros vanish, nothing is zero, an undefined item spoils the whole.

    A function keeps its item, be it zero. A fold of one item is not that item, and nested folds do
    not flatten: that is for the laws to say (`laws.py`).
    """
    whole = is_function(operator)
    kept = [item for item in items if whole or not isinstance(item, Zero)]
    if any(isinstance(item, Undefined) for item in kept):
        return Undefined()
    return _multiset(operator, kept) if kept else Zero()


def _multiset(operator: str, items: Iterable[Term]) -> Fold:
    """One order for equal multisets, which is another one in every process."""
    return Fold(operator, tuple(sorted(items, key=id)))


def _travelling(self: Fold) -> tuple[Callable[..., Fold], tuple[str, tuple[Term, ...]]]:
    return _multiset, (self.operator, self.items)


Fold.__reduce__ = _travelling  # type: ignore[assignment,method-assign]


def leaves_of(terms: list[Term]) -> Iterator[Symbol | Constant]:
    """The symbols and numbers in some terms, as often as terms that are not shared hold them."""
    stack, seen = list(terms), set[Fold]()
    while stack:
        term = stack.pop()
        if isinstance(term, (Symbol, Constant)):
            yield term
        elif isinstance(term, Fold) and term not in seen:
            seen.add(term)
            stack += term.items


# Where an array lies when the sketch becomes a kernel: `lanes` (its first axis is across lanes),
# `registers`, `memory`; of an input, `step`: how far apart its tiles begin.
PLACES = ("lanes", "registers", "memory")
STEP = "step"
Marks: TypeAlias = tuple[tuple[str, int | None], ...]


def marked(step: Step, name: str) -> bool:
    return any(mark == name for mark, _ in step.marks)


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """An input: `values` in row-major order."""

    name: str
    shape: Shape
    values: tuple[Term, ...]
    span: Span | None = None
    marks: Marks = ()


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """`name = gathers(args)`, then, if `fold` is not None, each run of `fold` cells is packed.

    `shape` is the shape after the fold. `operator` is what the fold stands for, as in `Fold`;
    `function` computes an operator such as `mean()` on numbers, where it is known.
    """

    name: str
    shape: Shape
    args: tuple[int, ...]  # positions of earlier steps
    gathers: GatherSet
    fold: int | None = None
    operator: str = WORD
    span: Span | None = None
    function: Callable[[Any], Any] | None = None
    marks: Marks = ()


Step: TypeAlias = Literal | Apply


@dataclass(frozen=True, slots=True, eq=False)
class Specification:
    """A goal as the Python function that it was written as.

    `function(*arrays, **sizes)` gets one array for each of `inputs`, which hold the numbers of the
    symbols in it, and returns `outputs` arrays. `known` are the functions such as `mean` of which
    it says what they compute.
    """

    function: Callable[..., Any]
    inputs: tuple[npt.NDArray[np.int64], ...]
    sizes: Mapping[str, int]
    outputs: int
    known: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """What the last step must hold, equal up to `laws`. `text` is how it was written, for printing.

    `specification` is the function that the values were computed by, if there is one.
    """

    shape: Shape
    values: tuple[Term, ...]
    text: str = ""
    span: Span | None = None
    laws: tuple[str, ...] = ()
    specification: Specification | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A user's own gathers: named index tables. `tables` as in `GatherSet`."""

    name: str
    arg_shapes: tuple[Shape, ...]
    out_shape: Shape
    choices: tuple[str, ...]
    tables: Table


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Steps in order; the last one is compared with each goal."""

    name: str
    steps: tuple[Step, ...]
    goals: tuple[Goal, ...]
    definitions: tuple[Definition, ...] = field(default=())

    @property
    def holes(self) -> tuple[int, ...]:
        """Positions of the steps whose gather is open, in order."""
        return tuple(
            i for i, s in enumerate(self.steps) if isinstance(s, Apply) and s.gathers.is_hole
        )
