"""Strategies: where and in which order laws are applied. A term comes in, a rewritten one goes out.

A strategy that cannot be applied *fails*; combinators decide what that means. Places are found by
pattern (`map_over(n)`, or any predicate), never by number: a strategy survives changes elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from warploom.array.language.ir import (
    Apply,
    Lambda,
    Program,
    Term,
    apply,
    close,
    is_concrete,
    opened,
    walk,
)
from warploom.array.language.op import Map, Reduce, Zip
from warploom.array.language.size import normal
from warploom.array.rewrite.law import Applied, Law, rewritten
from warploom.array.rewrite.match import parts
from warploom.array.types import Array, shape
from warploom.errors import SearchError
from warploom.index.ir import Expr

Pattern: TypeAlias = Callable[[Term], bool]
# The rewritten term, or None: it cannot be applied.
Strategy: TypeAlias = Callable[[Term], "Term | None"]

MOST_STEPS = 1000


def by(law: Law | Applied) -> Strategy:
    """The law, at the root."""
    return lambda term: rewritten(law, term)


def choice(*strategies: Strategy) -> Strategy:
    """The first that works."""

    def run(term: Term) -> Term | None:
        return next((made for each in strategies if (made := each(term)) is not None), None)

    return run


def repeat(strategy: Strategy) -> Strategy:
    """As long as it works."""

    def run(term: Term) -> Term:
        for _ in range(MOST_STEPS):
            made = strategy(term)
            if made is None or made is term:
                return term
            term = made
        raise SearchError(f"a strategy still finds something to do after {MOST_STEPS} steps")

    return run


def once(strategy: Strategy) -> Strategy:
    """At the first place, from the outside to the inside, where it works."""

    def run(term: Term) -> Term | None:
        made = strategy(term)
        return _one_child(term, run) if made is None else made

    return run


def innermost(strategy: Strategy) -> Strategy:
    """At the first place, from the inside to the outside, where it works."""

    def run(term: Term) -> Term | None:
        made = _one_child(term, run)
        return strategy(term) if made is None else made

    return run


def at(pattern: Pattern, strategy: Strategy) -> Strategy:
    """At the first place that looks like this and where it works."""
    return once(lambda term: strategy(term) if pattern(term) else None)


def in_body(strategy: Strategy) -> Strategy:
    """In the body of the function of a map or the like, as a whole."""

    def run(term: Term) -> Term | None:
        if not isinstance(term, Apply) or not term.functions:
            return None
        made = _in_function(term.functions[0], strategy)
        if made is None:
            return None
        return apply(term.op, (made, *term.functions[1:]), term.arguments)

    return run


def everywhere(strategy: Strategy) -> Strategy:
    """At every place where it works, from the inside to the outside, once each."""

    def run(term: Term) -> Term:
        if isinstance(term, Apply):
            functions = [_all_in(each, run) for each in term.functions]
            arguments = [run(each) for each in term.arguments]
            term = apply(term.op, functions, arguments)
        made = strategy(term)
        return term if made is None else made

    return run


def normalise(*laws: Law | Applied) -> Strategy:
    """The laws wherever they apply, until none does."""
    return repeat(once(choice(*(by(each) for each in laws))))


def _all_in(function: Lambda, run: Callable[[Term], Term]) -> Lambda:
    params, body = opened(function)
    made = run(body)
    return function if made is body else close(params, made)


def _one_child(term: Term, strategy: Strategy) -> Term | None:
    """The term with the strategy applied in one of its parts."""
    if not isinstance(term, Apply):
        return None
    for at_, argument in enumerate(term.arguments):
        made = strategy(argument)
        if made is not None:
            arguments = (*term.arguments[:at_], made, *term.arguments[at_ + 1 :])
            return apply(term.op, term.functions, arguments)
    for at_, function in enumerate(term.functions):
        inner = _in_function(function, strategy)
        if inner is not None:
            functions = (*term.functions[:at_], inner, *term.functions[at_ + 1 :])
            return apply(term.op, functions, term.arguments)
    return None


def _in_function(function: Lambda, strategy: Strategy) -> Lambda | None:
    params, body = opened(function)
    made = strategy(body)
    return None if made is None else close(params, made)


def on(pattern: Pattern, law: Applied, name: str = "x") -> Strategy:
    """The law at the root; the first part that looks like this is chosen for an open expression."""

    def run(term: Term) -> Term | None:
        for part in parts(term):
            if pattern(part):
                return rewritten(law.with_(**{name: part}), term)
        return None

    return run


# -- patterns --------------------------------------------------------------------------------------


def map_over(size: Expr | int) -> Pattern:
    """A map over so many elements that computes something for each."""
    wanted = normal(size)
    return lambda term: (
        _is_over(term, Map, 0, wanted)
        and isinstance(term, Apply)
        and is_concrete(term.functions[0].body)
    )


def reduce_over(size: Expr | int) -> Pattern:
    return lambda term: _is_over(term, Reduce, 1, normal(size))


def _is_over(term: Term, op: type, argument: int, size: Expr) -> bool:
    if not isinstance(term, Apply) or not isinstance(term.op, op):
        return False
    given = term.arguments[argument].type
    return isinstance(given, Array) and given.size is size


def holding(pattern: Pattern, inner: Pattern) -> Pattern:
    """A map or the like with something inside its function."""
    return lambda term: (
        pattern(term)
        and isinstance(term, Apply)
        and any(inner(part) for each in term.functions for part in walk(each.body))
    )


def over_zip(pattern: Pattern) -> Pattern:
    """A map of which the argument is a zip."""
    return lambda term: (
        pattern(term)
        and isinstance(term, Apply)
        and isinstance(term.arguments[0], Apply)
        and isinstance(term.arguments[0].op, Zip)
    )


def of_shape(*sizes: Expr | int) -> Pattern:
    """An array of arrays of these sizes."""
    wanted = tuple(normal(each) for each in sizes)
    return lambda term: shape(term.type) == wanted


# -- whole programs --------------------------------------------------------------------------------


def transformed(program: Program, *steps: tuple[str, Strategy]) -> Program:
    """The program after some steps; one that cannot be taken is named."""
    body = program.body
    for name, strategy in steps:
        made = strategy(body)
        if made is None:
            raise SearchError(f"'{program.name}': the step '{name}' cannot be taken")
        body = made
    return Program(program.name, program.inputs, body)
