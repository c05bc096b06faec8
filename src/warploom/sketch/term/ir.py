"""What a sketch is: terms, gathers, steps and the program they form.

A program is a flat list of steps in single assignment form; blocks and shadowed names of the text
are gone by the time it exists. `evaluate.py` says what it means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from warploom.errors import Span
from warploom.node import Interned, node
from warploom.sketch.term.gather import UNDEFINED as UNDEFINED
from warploom.sketch.term.gather import ZERO as ZERO
from warploom.sketch.term.gather import GatherExpr as GatherExpr
from warploom.sketch.term.gather import GatherSet as GatherSet
from warploom.sketch.term.gather import Shape as Shape
from warploom.sketch.term.gather import Table as Table
from warploom.sketch.term.gather import size as size


@node
class Zero(metaclass=Interned):
    """The identity of every fold; what a gather reads where it reads nothing."""


@node
class Undefined(metaclass=Interned):
    """A value nobody may rely on: an index out of bounds, or a fold of an undefined value."""


@node
class Symbol(metaclass=Interned):
    """One element of an input."""

    number: int


@node
class Fold(metaclass=Interned):
    """A multiset of terms: the sum, product, … of its items, in any order. Build with `fold_of`."""

    items: tuple[Zero | Undefined | Symbol | Fold, ...]


Term: TypeAlias = Zero | Undefined | Symbol | Fold


def fold_of(items: list[Term] | tuple[Term, ...]) -> Term:
    """Packs terms: zeros vanish, nothing is zero, an undefined item spoils the whole.

    A fold of one item is not that item, and nested folds do not flatten: they may stand for
    different operators.
    """
    kept = [item for item in items if not isinstance(item, Zero)]
    if any(isinstance(item, Undefined) for item in kept):
        return Undefined()
    return Fold(tuple(sorted(kept, key=id))) if kept else Zero()


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """An input: `values` in row-major order."""

    name: str
    shape: Shape
    values: tuple[Term, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """`name = gathers(args)`, then, if `fold` is not None, each run of `fold` cells is packed.

    `shape` is the shape after the fold. `operator` is what the fold stands for ("+", "*" or
    "fold" where the text does not say).
    """

    name: str
    shape: Shape
    args: tuple[int, ...]  # positions of earlier steps
    gathers: GatherSet
    fold: int | None = None
    operator: str = "fold"
    span: Span | None = None


Step: TypeAlias = Literal | Apply


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """What the last step must hold. `text` is how the goal was written, for printing."""

    shape: Shape
    values: tuple[Term, ...]
    text: str = ""
    span: Span | None = None


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
