"""What recipes share: layout hoisted out of maps, functions that move, caches."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as folded

from warploom.array.build import join, map_, transpose
from warploom.array.language.ir import Apply, Lambda, Term, close, fresh, is_concrete, opened
from warploom.array.language.op import Map, SpaceName
from warploom.array.language.size import normal
from warploom.array.rewrite.law import Applied
from warploom.array.rewrite.laws import (
    HOIST_ELEMENT,
    HOIST_JOIN,
    HOIST_MAP,
    HOIST_SPLIT,
    HOIST_TRANSPOSE,
    prefetching,
)
from warploom.array.rewrite.strategy import Strategy, at, by, choice, on, repeat
from warploom.array.types import Array, Type, array
from warploom.index.ir import Expr

Move = Callable[[Term], Term]
Step = tuple[str, Strategy]


def moves_a_result(term: Term) -> bool:
    """A map that computes something and then only moves it."""
    if not isinstance(term, Apply) or not isinstance(term.op, Map):
        return False
    _, body = opened(term.functions[0])
    if not isinstance(body, Apply) or len(body.arguments) != 1:
        return False
    return is_concrete(body.arguments[0]) and not any(is_concrete(f.body) for f in body.functions)


# Layout comes out of maps, so that maps are inside each other with nothing between.
HOIST: Strategy = repeat(
    at(
        moves_a_result,
        choice(*map(by, (HOIST_JOIN, HOIST_TRANSPOSE, HOIST_SPLIT, HOIST_ELEMENT, HOIST_MAP))),
    )
)


def deep(depth: int, move: Move) -> Move:
    """The move, so many arrays deep."""
    return move if depth == 0 else lambda x: map_(deep(depth - 1, move), x)


def swapped(*depths: int) -> Move:
    """Neighbouring dimensions exchanged, at one depth after another."""
    return lambda x: folded(lambda y, depth: deep(depth, transpose)(y), depths, x)


def flat(x: Term) -> Term:
    """All dimensions one; the outermost is joined last."""
    assert isinstance(x.type, Array)
    inner = x.type.element
    if not isinstance(inner, Array):
        return x
    return join(x if not isinstance(inner.element, Array) else map_(flat, x))


def function_of(type_: Type, f: Move) -> Lambda:
    x = fresh(type_)
    return close((x,), f(x))


def cached(
    space: SpaceName, number: Type, sizes: tuple[Expr, ...], *depths: int
) -> Strategy:  # fmt: skip
    """The array of these sizes that an expression uses is copied first, with dimensions exchanged
    at these depths while it is copied."""
    type_ = array(number, *sizes)
    there = function_of(type_, swapped(*depths))
    back = function_of(there.body.type, swapped(*reversed(depths)))
    law: Applied = prefetching(space, len(sizes)).with_(there=there, back=back)
    wanted = tuple(normal(each) for each in sizes)

    def looks(term: Term) -> bool:
        return term.type is array(number, *wanted)

    return on(looks, law)
