"""Sentences taken apart: their variables, renaming, clauses, and what is refused.

Comes in: a sentence. Goes out: clauses, each a disjunction of conditions with the variables that
run through all objects (`Every` has joined them) and those that run through some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias, TypeVar, assert_never

from warploom.errors import CheckError
from warploom.search.space import ir

MOST_CLAUSES = 4096

T = TypeVar("T", ir.Chosen, ir.Counted, ir.Given, int, ir.Holds, ir.Term)


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """Some objects of `variables` fulfil the static `filters` and the one `condition`.

    `scope` are the variables outside, which stand for other objects than these.
    """

    variables: tuple[ir.Variable, ...]
    filters: tuple[ir.Holds, ...]
    condition: ir.Is | ir.Compare | None
    scope: tuple[ir.Variable, ...]


Condition: TypeAlias = ir.Atom | OneOf


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """One of the conditions holds, for all objects of `variables`; pairs in `different` are not
    the same object. Of `flagged` ones the sentence asks whether they are active."""

    variables: tuple[ir.Variable, ...]
    different: tuple[tuple[ir.Variable, ir.Variable], ...]
    conditions: tuple[Condition, ...]
    flagged: frozenset[ir.Variable]


def variables_of(part: ir.Sentence | ir.Term) -> tuple[ir.Variable, ...]:
    """The free variables, in order of appearance."""
    return tuple(dict.fromkeys(_free(part)))


def _free(part: ir.Sentence | ir.Term) -> Iterator[ir.Variable]:
    match part:
        case int():
            return
        case ir.Chosen() | ir.Counted() | ir.Given() | ir.Holds():
            yield from part.arguments
        case ir.Is(term, _):
            yield from term.arguments
        case ir.Compare(_, left, right):
            yield from _free(left)
            yield from _free(right)
        case ir.And(parts) | ir.Or(parts):
            for each in parts:
                yield from _free(each)
        case ir.Some(variables, body) | ir.Every(variables, body):
            yield from (v for v in _free(body) if v not in variables)
        case _:
            assert_never(part)


def rewritten(part: ir.Sentence, atom: Callable[[ir.Atom], ir.Sentence]) -> ir.Sentence:
    """The sentence with every condition replaced."""
    match part:
        case ir.Is() | ir.Compare() | ir.Holds():
            return atom(part)
        case ir.And(parts):
            return ir.And(tuple(rewritten(each, atom) for each in parts))
        case ir.Or(parts):
            return ir.Or(tuple(rewritten(each, atom) for each in parts))
        case ir.Some(variables, body):
            return ir.Some(variables, rewritten(body, atom))
        case ir.Every(variables, body):
            return ir.Every(variables, rewritten(body, atom))
        case _:
            assert_never(part)


def renamed(part: ir.Sentence, names: Mapping[ir.Variable, ir.Variable]) -> ir.Sentence:
    """The sentence with free variables exchanged."""

    def term(old: T) -> T:
        if isinstance(old, int):
            return old
        arguments = tuple(names.get(variable, variable) for variable in old.arguments)
        return replace(old, arguments=arguments)

    def atom(old: ir.Atom) -> ir.Atom:
        match old:
            case ir.Is(chosen, allowed):
                return ir.Is(term(chosen), allowed)
            case ir.Compare(op, left, right):
                return ir.Compare(op, term(left), term(right))
            case ir.Holds():
                return term(old)
            case _:
                assert_never(old)

    return rewritten(part, atom)


def renamed_apart(part: ir.Sentence) -> ir.Sentence:
    """The sentence in which every quantifier has variables of its own."""
    match part:
        case ir.Is() | ir.Compare() | ir.Holds():
            return part
        case ir.And(parts):
            return ir.And(tuple(map(renamed_apart, parts)))
        case ir.Or(parts):
            return ir.Or(tuple(map(renamed_apart, parts)))
        case ir.Some(variables, body):
            fresh = {variable: replace(variable) for variable in variables}
            return ir.Some(tuple(fresh.values()), renamed(renamed_apart(body), fresh))
        case ir.Every(variables, body):
            fresh = {variable: replace(variable) for variable in variables}
            return ir.Every(tuple(fresh.values()), renamed(renamed_apart(body), fresh))
        case _:
            assert_never(part)


def compared(part: ir.Sentence, lifted: Callable[[ir.Chosen], ir.Counted]) -> ir.Sentence:
    """Where a choice is compared with a counter, its value is lifted to a counter, too."""

    def atom(old: ir.Atom) -> ir.Atom:
        match old:
            case ir.Compare(op, ir.Chosen() as left, ir.Counted() as right):
                return ir.Compare(op, lifted(left), right)
            case ir.Compare(op, ir.Counted() as left, ir.Chosen() as right):
                return ir.Compare(op, left, lifted(right))
            case _:
                return old

    return rewritten(part, atom)


# -- clauses ---------------------------------------------------------------------------------------

_Joined: TypeAlias = tuple[tuple[ir.Variable, tuple[ir.Variable, ...]], ...]
# Conditions, and the variables that `Every` has joined, each with those it differs from.
_Draft: TypeAlias = tuple[tuple[Condition, ...], _Joined]


def clauses(sentence: ir.Sentence) -> list[Clause]:
    """The sentence as clauses, which all have to hold."""
    free = variables_of(sentence)
    apart = [(a, b) for at, a in enumerate(free) for b in free[:at]]
    found = []
    for conditions, joined in _normal(sentence, free):
        different = [(variable, other) for variable, scope in joined for other in scope]
        variables = (*free, *(variable for variable, _ in joined))
        pairs = (*apart, *different)
        found.append(Clause(variables, pairs, conditions, flagged(sentence)))
    return found


def flagged(sentence: ir.Sentence) -> frozenset[ir.Variable]:
    """The variables whose flags are asked for: they may stand for inactive objects."""
    found: set[ir.Variable] = set()

    def note(atom: ir.Atom) -> ir.Atom:
        if isinstance(atom, ir.Is) and atom.term.choice.is_flag:
            found.update(atom.term.arguments)
        return atom

    rewritten(sentence, note)
    return frozenset(found)


def _normal(part: ir.Sentence, scope: tuple[ir.Variable, ...]) -> list[_Draft]:
    """Conjunctive normal form. `Every` is drawn out: its variables run through all objects, apart
    from those of `scope`, and so do the whole clauses it is in."""
    match part:
        case ir.Compare("!=", left, right) if _counts(left) or _counts(right):
            return [((ir.Compare("<", left, right), ir.Compare(">", left, right)), ())]
        case ir.Is() | ir.Compare() | ir.Holds():
            return [((part,), ())]
        case ir.And(parts):
            return [draft for each in parts for draft in _normal(each, scope)]
        case ir.Or(parts):
            return _distributed([_normal(each, scope) for each in parts])
        case ir.Every(variables, body):
            own = tuple((v, (*scope, *variables[:at])) for at, v in enumerate(variables))
            inner = _normal(body, (*scope, *variables))
            return [(conditions, (*own, *joined)) for conditions, joined in inner]
        case ir.Some(variables, body):
            return [(tuple(_one_of(variables, body, scope)), ())]
        case _:
            assert_never(part)


def _counts(term: ir.Term) -> bool:
    return isinstance(term, ir.Counted)


def _asks(part: ir.Atom) -> bool:
    """A comparison that asks more than one choice."""
    if not isinstance(part, ir.Compare):
        return False
    asked = [term for term in (part.left, part.right) if not isinstance(term, ir.Given | int)]
    return len(asked) > 1 or any(map(_counts, asked))


def _distributed(parts: list[list[_Draft]]) -> list[_Draft]:
    if math.prod(map(len, parts)) > MOST_CLAUSES:
        raise CheckError(
            f"a sentence of more than {MOST_CLAUSES} clauses",
            advice="declare a Boolean choice for a part of it",
        )
    found = []
    for chosen in product(*parts):
        conditions = tuple(condition for draft, _ in chosen for condition in draft)
        joined = tuple(dict.fromkeys(each for _, draft in chosen for each in draft))
        found.append((conditions, joined))
    return found


def _one_of(
    variables: tuple[ir.Variable, ...], body: ir.Sentence, scope: tuple[ir.Variable, ...]
) -> Iterator[OneOf]:
    """`Some` of a disjunction is the disjunction; each part has one condition on choices."""
    for conjunction in _disjuncts(body):
        filters = tuple(part for part in conjunction if isinstance(part, ir.Holds))
        dynamic = [part for part in conjunction if not isinstance(part, ir.Holds)]
        if len(dynamic) > 1 or any(_asks(part) for part in dynamic):
            raise CheckError(
                "'some' may ask one choice only, besides what is known of the objects",
                advice="declare a Boolean choice that stands for the rest",
            )
        yield OneOf(variables, filters, dynamic[0] if dynamic else None, scope)


def _disjuncts(part: ir.Sentence) -> list[tuple[ir.Atom, ...]]:
    """Disjunctive normal form without quantifiers."""
    match part:
        case ir.Is() | ir.Compare() | ir.Holds():
            return [(part,)]
        case ir.Or(parts):
            return [each for inner in parts for each in _disjuncts(inner)]
        case ir.And(parts):
            return [sum(chosen, ()) for chosen in product(*map(_disjuncts, parts))]
        case ir.Some() | ir.Every():
            raise CheckError("'some' may not hold another 'some' or 'every'")
        case _:
            assert_never(part)


# -- what is refused -------------------------------------------------------------------------------


def check_requirement(sentence: ir.Sentence) -> None:
    """Clauses can be made of it, and no quantifier takes a variable that is already in use."""
    _check_bound(sentence, frozenset(variables_of(sentence)))
    clauses(renamed_apart(sentence))


def _check_bound(part: ir.Sentence, used: frozenset[ir.Variable]) -> None:
    match part:
        case ir.Is() | ir.Compare() | ir.Holds():
            return
        case ir.And(parts) | ir.Or(parts):
            for each in parts:
                _check_bound(each, used)
        case ir.Some(variables, body) | ir.Every(variables, body):
            for variable in variables:
                if variable in used:
                    raise CheckError(
                        f"'{variable.name}' is used outside its 'some' or 'every'",
                        advice="give the quantifier a variable of its own",
                    )
            _check_bound(body, used | set(variables))
        case _:
            assert_never(part)


def check_amount(name: str, kind: ir.Kind, amount: ir.Amount) -> None:
    """The condition is a conjunction on choices, and no amount can make the counter shrink."""
    conditions(amount.when)
    lowest = 1 if kind == "product" else 0
    least = _least(amount.amount, lowest)
    if least < lowest:
        raise CheckError(f"'{name}' counts {least}", advice=f"a {kind} takes at least {lowest}")


def _least(term: ir.Term, otherwise: int) -> int:
    match term:
        case int():
            return term
        case ir.Chosen(choice, _):
            if not choice.is_integer:
                raise CheckError(f"'{choice.name}' has no numbers to count")
            return min((int(value) for value in choice.values), default=otherwise)
        case ir.Given(number, _):
            return min(number.values.values(), default=otherwise)
        case ir.Counted(counter, _):
            return _least(counter.base, otherwise)  # no amount makes it less
        case _:
            assert_never(term)


def conditions(when: ir.Sentence) -> tuple[ir.Atom, ...]:
    """The parts of a conjunction, each of them known or about one choice."""
    match when:
        case ir.Is() | ir.Compare() | ir.Holds():
            if _asks(when):
                raise CheckError("what is counted depends on one choice at a time, on no counter")
            return (when,)
        case ir.And(parts):
            return tuple(atom for part in parts for atom in conditions(part))
        case ir.Or() | ir.Some() | ir.Every():
            raise CheckError(
                "what is counted depends on a conjunction of conditions",
                advice="declare a Boolean choice for anything else",
            )
        case _:
            assert_never(when)
