"""Patterns of laws against expressions: what is left open in a law is found, or it does not match.

A pattern is an expression with open types (`Any`), open sizes (variables), open expressions (free
parameters) and open functions (`Call`). An open function stands for any expression over what it is
called with, and nothing else that is bound inside the pattern: where a law needs that something
does not depend on a map's element, the function is simply not called with it. It may be called with
parameters of lambdas around, with parts of them, with what is known already, or with a call whose
place in the expression a *hint* picks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from warploom.array.language.ir import (
    Apply,
    Bound,
    Lambda,
    Literal,
    Param,
    Term,
    apply,
    close,
    facts_of,
    fresh,
    literal,
    opened,
    walk,
)
from warploom.array.language.op import POSITION, Call, Op, map_op_sizes, sizes_of
from warploom.array.language.size import normal
from warploom.array.types import Any, Array, Tuple, Type, array
from warploom.errors import InternalError
from warploom.index.ir import Expr, Var, substitute, variables

Hint: TypeAlias = Callable[[Term], bool]


@dataclass(slots=True)
class Binding:
    """What the open parts of a law are."""

    types: dict[str, Type] = field(default_factory=dict)
    sizes: dict[str, Expr] = field(default_factory=dict)
    terms: dict[str, Term] = field(default_factory=dict)
    functions: dict[str, Lambda] = field(default_factory=dict)

    def copy(self) -> Binding:
        return Binding(dict(self.types), dict(self.sizes), dict(self.terms), dict(self.functions))


class _NoMatchError(Exception):
    """Raised inside a match, and never leaves it."""


def match(
    pattern: Term,
    term: Term,
    known: Binding | None = None,
    hints: Mapping[str, Hint] | None = None,
    other: Term | None = None,
) -> Binding | None:
    """The binding under which the pattern is the term; None if there is none.

    What is known beforehand may only occur in the `other` side of a law.
    """
    matcher = _Matcher(known.copy() if known else Binding(), hints or {})
    try:
        matcher.chosen(pattern, *(() if other is None else (other,)))
        matcher.term(pattern, term)
    except _NoMatchError:
        return None
    return matcher.binding


@dataclass(slots=True)
class _Matcher:
    binding: Binding
    hints: Mapping[str, Hint]
    # Parameters of lambdas that were opened on both sides: the pattern's, and the expression's,
    # which no open expression may hold.
    opened: dict[Param, Param] = field(default_factory=dict)
    inner: frozenset[Param] = frozenset()

    def chosen(self, *sides: Term) -> None:
        """What was chosen beforehand tells its type."""
        for part in (part for side in sides for part in walk(side)):
            match part:
                case Param(name, type_) if name in self.binding.terms:
                    self.type(type_, self.binding.terms[name].type)
                case Apply(Call(name, result), _, arguments) if name in self.binding.functions:
                    function = self.binding.functions[name]
                    self.type(result, function.body.type)
                    for given, own in zip(arguments, function.types, strict=True):
                        self.type(given.type, own)
                case _:
                    pass

    def term(self, pattern: Term, term: Term) -> None:
        match pattern:
            case Param() if pattern in self.opened:
                _require(term is self.opened[pattern])
            case Param(name, type_):
                _require(facts_of(term).params.isdisjoint(self.inner))
                _require(self.binding.terms.setdefault(name, term) is term)
                self.type(type_, term.type)
            case Literal(value, type_):
                _require(isinstance(term, Literal) and term.value == value)
                self.type(type_, term.type)
            case Apply(Call(name, result), _, arguments):
                self.type(result, term.type)
                self._call(name, arguments, term)
            case Apply(op, functions, arguments):
                if not isinstance(term, Apply):
                    raise _NoMatchError
                self._apply(op, functions, arguments, term)
            case Bound():
                raise InternalError("a pattern is closed")

    def _apply(
        self, op: Op, functions: tuple[Lambda, ...], arguments: tuple[Term, ...], term: Apply
    ) -> None:
        _require(len(term.functions) == len(functions) and len(term.arguments) == len(arguments))
        self._op(op, term.op)
        for wanted, found in zip(arguments, term.arguments, strict=True):
            self.term(wanted, found)
        for function, own in zip(functions, term.functions, strict=True):
            self._function(function, own)

    def _op(self, wanted: Op, found: Op) -> None:
        _require(type(wanted) is type(found))
        for pattern, size in zip(sizes_of(wanted), sizes_of(found), strict=True):
            self.size(pattern, size)
        _require(map_op_sizes(wanted, self._known) is map_op_sizes(found, lambda size: size))

    def _known(self, size: Expr) -> Expr:
        return substitute(size, self.binding.sizes)

    def _function(self, wanted: Lambda, found: Lambda) -> None:
        _require(len(wanted.types) == len(found.types))
        for type_, own in zip(wanted.types, found.types, strict=True):
            self.type(type_, own)
        ours, body = opened(found)
        theirs, pattern = opened(wanted)
        outer, self.inner = self.inner, self.inner | frozenset(ours)
        self.opened.update(zip(theirs, ours, strict=True))
        self.term(pattern, body)
        self.inner = outer

    # -- open functions

    def _call(self, name: str, arguments: tuple[Term, ...], term: Term) -> None:
        given = [self._argument(name, each, term) for each in arguments]
        params = [fresh(each.type) for each in given]
        body = replaced_terms(term, dict(zip(given, params, strict=True)))
        _require(facts_of(body).params.isdisjoint(self.inner))
        made = close(params, body)
        _require(self.binding.functions.setdefault(name, made) is made)

    def _argument(self, name: str, pattern: Term, term: Term) -> Term:
        """What an open function is called with."""
        known = self._instance(pattern)
        if known is not None:
            return known
        hint = self.hints.get(name)
        for part in parts(term) if hint is not None else ():
            if hint is not None and hint(part):
                try:
                    self.term(pattern, part)
                except _NoMatchError:
                    continue
                return part
        raise _NoMatchError

    def _instance(self, pattern: Term) -> Term | None:
        """A pattern all of which is known."""
        match pattern:
            case Param(name, _):
                own = self.opened.get(pattern)
                return self.binding.terms.get(name) if own is None else own
            case Apply(op, (), arguments) if not isinstance(op, Call):
                made = [self._instance(each) for each in arguments]
                known = [each for each in made if each is not None]
                return apply(op, (), known) if len(known) == len(made) else None
            case _:
                return None

    # -- types and sizes

    def type(self, pattern: object, found: Type) -> None:
        match pattern:
            case Any(name):
                _require(self.binding.types.setdefault(name, found) is found)
            case Array(element, size):
                if not isinstance(found, Array):
                    raise _NoMatchError
                self.size(size, found.size)
                self.type(element, found.element)
            case Tuple(wanted):
                if not isinstance(found, Tuple) or len(found.parts) != len(wanted):
                    raise _NoMatchError
                for part, own in zip(wanted, found.parts, strict=True):
                    self.type(part, own)
            case _:
                _require(pattern is found)

    def size(self, pattern: Expr, found: Expr) -> None:
        if POSITION.name in variables(pattern):  # an index function, which is compared as a whole
            return
        unknown = variables(pattern) - self.binding.sizes.keys()
        if not unknown:
            _require(normal(self._known(pattern)) is found)
        elif isinstance(pattern, Var):
            self.binding.sizes[pattern.name] = found
        # A sum or product with something open says nothing; types elsewhere will.


def _require(condition: bool) -> None:
    if not condition:
        raise _NoMatchError


def parts(term: Term) -> list[Term]:
    """The term and everything inside it that no lambda inside binds, outermost first."""
    return [each for each in walk(term) if facts_of(each).loose == 0]


def replaced_terms(term: Term, values: Mapping[Term, Term]) -> Term:
    """The term with whole parts of it replaced, wherever they occur."""
    return _replaced(term, dict(values))


def _replaced(term: Term, done: dict[Term, Term]) -> Term:
    if term in done or not isinstance(term, Apply):
        return done.get(term, term)
    arguments = [_replaced(each, done) for each in term.arguments]
    functions = [_replaced_in(each, done) for each in term.functions]
    same = (*arguments, *functions) == (*term.arguments, *term.functions)
    done[term] = term if same else apply(term.op, functions, arguments)
    return done[term]


def _replaced_in(function: Lambda, done: dict[Term, Term]) -> Lambda:
    params, body = opened(function)
    made = _replaced(body, done)
    return function if made is body else close(params, made)


# -- the other way ---------------------------------------------------------------------------------


def instance(pattern: Term, binding: Binding) -> Term:
    """The pattern with everything that it leaves open put in."""
    match pattern:
        case Param(name, _) if name in binding.terms:
            return binding.terms[name]
        case Param():
            return pattern
        case Literal(value, type_):
            return literal(value, type_instance(type_, binding))
        case Apply(Call(name, _), _, arguments):
            return binding.functions[name](*(instance(each, binding) for each in arguments))
        case Apply(op, functions, arguments):
            return apply(
                map_op_sizes(op, lambda size: substitute(size, binding.sizes)),
                [_function_instance(each, binding) for each in functions],
                [instance(each, binding) for each in arguments],
            )
        case Bound():
            raise InternalError("a pattern is closed")


def _function_instance(function: Lambda, binding: Binding) -> Lambda:
    theirs, body = opened(function)
    ours = [fresh(type_instance(each, binding)) for each in function.types]
    inside = binding.copy()
    inside.terms.update({each.name: own for each, own in zip(theirs, ours, strict=True)})
    return close(ours, instance(body, inside))


def type_instance(type_: Type, binding: Binding) -> Type:
    match type_:
        case Any(name):
            return binding.types[name]
        case Array(element, size):
            return array(type_instance(element, binding), substitute(size, binding.sizes))
        case Tuple(members):
            return Tuple(tuple(type_instance(each, binding) for each in members))
        case _:
            return type_
