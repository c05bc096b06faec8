"""What a law is: two expressions that mean the same, whatever is left open in them.

    map(f, map(g, x))  →  map(λv. f(g(v)), x)

Sides are written with the combinators that users write, over open types, sizes, expressions and
functions, so both sides are typed, for every type and size, when a law is defined. `rewritten`
finds the left side in an expression and gives the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from warploom.array.language.ir import (
    Apply,
    Bound,
    Lambda,
    Literal,
    Param,
    Term,
    apply,
    is_concrete,
    opened,
)
from warploom.array.language.op import (
    Call,
    Compute,
    Gather,
    Join,
    Map,
    Op,
    Scatter,
    Split,
    Transpose,
)
from warploom.array.rewrite.match import Binding, Hint, instance, match
from warploom.array.types import Any, Scalar, Type
from warploom.errors import CheckError
from warploom.index.ir import Expr, Var, lift
from warploom.kernel.ir import Operator

# Operators that may be applied in any order, and what changes nothing beside them.
NEUTRAL: dict[Operator, float] = {"+": 0, "*": 1, "|": 0, "^": 0}


@dataclass(frozen=True, slots=True)
class OpenFunction:
    """A function that a law leaves open: called, it is an expression of its result type."""

    name: str
    result: Type

    def __call__(self, *arguments: Term) -> Apply:
        return apply(Call(self.name, self.result), (), arguments)


@dataclass(frozen=True, slots=True)
class Monoid:
    """The open function is an operator of NEUTRAL; its neutral number is the open expression of
    this name, or this number."""

    function: str
    neutral: str | float


@dataclass(frozen=True, slots=True)
class Rearranged:
    """The open functions only move elements, each in the same way: every element of the argument is
    once in the result."""

    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Undone:
    """The second open function puts back what the first one rearranged."""

    there: str
    back: str


@dataclass(frozen=True, slots=True)
class Concrete:
    """The open expression computes something."""

    term: str


Condition = Monoid | Rearranged | Undone | Concrete


@dataclass(frozen=True, slots=True)
class Law:
    """`given` are open sizes and functions that the left side does not tell: whoever applies the
    law chooses them. `reorders`: sums come in another order, so floats may round otherwise."""

    name: str
    left: Term
    right: Term
    conditions: tuple[Condition, ...] = ()
    reorders: bool = False
    given: tuple[str, ...] = ()

    def with_(self, **given: Expr | int | Lambda | Term) -> Applied:
        """The law with something chosen."""
        return Applied(self).with_(**given)


@dataclass(frozen=True, slots=True)
class Applied:
    """A law with what is chosen for it: sizes, expressions, functions, and hints for matching."""

    law: Law
    binding: Binding = field(default_factory=Binding)
    hints: Mapping[str, Hint] = field(default_factory=dict)

    def with_(self, **given: Expr | int | Lambda | Term) -> Applied:
        binding = self.binding.copy()
        for name, value in given.items():
            match value:
                case Lambda():
                    binding.functions[name] = value
                case Param() | Literal() | Apply() | Bound():
                    binding.terms[name] = value
                case _:
                    binding.sizes[name] = lift(value)
        return replace(self, binding=binding)

    def hinting(self, **hints: Hint) -> Applied:
        return replace(self, hints={**self.hints, **hints})


def rewritten(law: Law | Applied, term: Term) -> Term | None:
    """The right side in place of an expression that is the left side; None if it is not."""
    applied = Applied(law) if isinstance(law, Law) else law
    law = applied.law
    binding = match(law.left, term, applied.binding, applied.hints, law.right)
    if binding is None or not all(is_met(each, binding) for each in law.conditions):
        return None
    made = instance(law.right, binding)
    if made.type is not term.type:
        raise CheckError(f"the law '{law.name}' changes a type", advice="give it other sizes")
    return made


def is_met(condition: Condition, binding: Binding) -> bool:
    match condition:
        case Monoid(function, neutral):
            number = neutral
            if isinstance(number, str):
                given = binding.terms[number]
                if not isinstance(given, Literal):
                    return False
                number = given.value
            return is_monoid(binding.functions[function], number)
        case Rearranged(names):
            moves = [movement(binding.functions[each]) for each in names]
            return None not in moves and len(set(moves)) == 1
        case Undone(there, back):
            first, then = (movement(binding.functions[each]) for each in (there, back))
            return first is not None and then is not None and _is_nothing((*first, *then))
        case Concrete(name):
            return is_concrete(binding.terms[name])


def is_monoid(function: Lambda, neutral: float) -> bool:
    """Whether a function of two numbers is an operator with this neutral number."""
    if len(function.types) != 2:
        return False
    (left, right), body = opened(function)
    if not isinstance(body, Apply) or not isinstance(body.op, Compute):
        return False
    number = isinstance(body.type, Scalar | Any)
    return (
        number and body.arguments == (left, right) and NEUTRAL.get(body.op.op) == neutral
    )  # fmt: skip


Movement: TypeAlias = "tuple[Op | Movement, ...]"


def movement(function: Lambda) -> Movement | None:
    """The layout operations that a function is made of, maps of such as tuples, the innermost
    first; None if it does anything but rearrange its argument."""
    (hole,), body = opened(function)
    found: list[Op | Movement] = []
    while body is not hole:
        match body:
            case Apply(Split() | Join() | Transpose() as op, _, (argument,)):
                found.append(op)
            case Apply(Gather(_, inverse) | Scatter(_, inverse) as op, _, (argument,)):
                if inverse is None:
                    return None
                found.append(op)
            case Apply(Map(), (f,), (argument,)):
                inner = movement(f)
                if inner is None:
                    return None
                found.append(inner)
            case _:
                return None
        body = argument
    return tuple(reversed(found))


def _is_nothing(moves: Movement) -> bool:
    """Whether layout operations, one after another, cancel."""
    left: list[Op | Movement] = []
    for each in moves:
        if left and _cancels(left[-1], each):
            left.pop()
        else:
            left.append(each)
    return not left


def _cancels(first: Op | Movement, then: Op | Movement) -> bool:
    match first, then:
        case (Transpose(), Transpose()) | (Split(), Join()):
            return True
        case (tuple(), tuple()):
            return _is_nothing((*first, *then))
        case _:
            return False


# -- writing laws ----------------------------------------------------------------------------------


def types(names: str) -> tuple[Any, ...]:
    """Open types."""
    return tuple(Any(each) for each in names.split())


def sizes(names: str) -> tuple[Var, ...]:
    """Open sizes."""
    return tuple(Var(each) for each in names.split())


def law(
    name: str,
    sides: Callable[[], tuple[Term, Term]],
    *conditions: Condition,
    reorders: bool = False,
    given: str = "",
) -> Law:
    """A law; both sides must be of one type."""
    left, right = sides()
    if left.type is not right.type:
        raise CheckError(f"the sides of the law '{name}' have different types")
    return Law(name, left, right, conditions, reorders, tuple(given.split()))
