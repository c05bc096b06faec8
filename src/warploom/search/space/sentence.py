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
from warploom.search.space.ir import (
    Amount,
    And,
    Atom,
    Chosen,
    Compare,
    Counted,
    Every,
    Given,
    Holds,
    Is,
    Kind,
    Or,
    Sentence,
    Some,
    Term,
    Variable,
)

MOST_CLAUSES = 4096

T = TypeVar("T", Chosen, Counted, Given, int, Holds, Term)


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """Some objects of `variables` fulfil the static `filters` and the one `condition`.

    `scope` are the variables outside, which stand for other objects than these.
    """

    variables: tuple[Variable, ...]
    filters: tuple[Holds, ...]
    condition: Is | Compare | None
    scope: tuple[Variable, ...]


Condition: TypeAlias = Atom | OneOf


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """One of the conditions holds, for all objects of `variables`; pairs in `different` are not
    the same object. Of `flagged` ones the sentence asks whether they are active."""

    variables: tuple[Variable, ...]
    different: tuple[tuple[Variable, Variable], ...]
    conditions: tuple[Condition, ...]
    flagged: frozenset[Variable]


def variables_of(part: Sentence | Term) -> tuple[Variable, ...]:
    """The free variables, in order of appearance."""
    return tuple(dict.fromkeys(_free(part)))


def _free(part: Sentence | Term) -> Iterator[Variable]:
    match part:
        case int():
            return
        case Chosen() | Counted() | Given() | Holds():
            yield from part.arguments
        case Is(term, _):
            yield from term.arguments
        case Compare(_, left, right):
            yield from _free(left)
            yield from _free(right)
        case And(parts) | Or(parts):
            for each in parts:
                yield from _free(each)
        case Some(variables, body) | Every(variables, body):
            yield from (v for v in _free(body) if v not in variables)
        case _:
            assert_never(part)


def rewritten(part: Sentence, atom: Callable[[Atom], Sentence]) -> Sentence:
    """The sentence with every condition replaced."""
    match part:
        case Is() | Compare() | Holds():
            return atom(part)
        case And(parts):
            return And(tuple(rewritten(each, atom) for each in parts))
        case Or(parts):
            return Or(tuple(rewritten(each, atom) for each in parts))
        case Some(variables, body):
            return Some(variables, rewritten(body, atom))
        case Every(variables, body):
            return Every(variables, rewritten(body, atom))
        case _:
            assert_never(part)


def renamed(part: Sentence, names: Mapping[Variable, Variable]) -> Sentence:
    """The sentence with free variables exchanged."""

    def term(old: T) -> T:
        if isinstance(old, int):
            return old
        arguments = tuple(names.get(variable, variable) for variable in old.arguments)
        return replace(old, arguments=arguments)

    def atom(old: Atom) -> Atom:
        match old:
            case Is(chosen, allowed):
                return Is(term(chosen), allowed)
            case Compare(op, left, right):
                return Compare(op, term(left), term(right))
            case Holds():
                return term(old)
            case _:
                assert_never(old)

    return rewritten(part, atom)


def renamed_apart(part: Sentence) -> Sentence:
    """The sentence in which every quantifier has variables of its own."""
    match part:
        case Is() | Compare() | Holds():
            return part
        case And(parts):
            return And(tuple(map(renamed_apart, parts)))
        case Or(parts):
            return Or(tuple(map(renamed_apart, parts)))
        case Some(variables, body):
            fresh = {variable: replace(variable) for variable in variables}
            return Some(tuple(fresh.values()), renamed(renamed_apart(body), fresh))
        case Every(variables, body):
            fresh = {variable: replace(variable) for variable in variables}
            return Every(tuple(fresh.values()), renamed(renamed_apart(body), fresh))
        case _:
            assert_never(part)


def compared(part: Sentence, lifted: Callable[[Chosen], Counted]) -> Sentence:
    """Where a choice is compared with a counter, its value is lifted to a counter, too."""

    def atom(old: Atom) -> Atom:
        match old:
            case Compare(op, Chosen() as left, Counted() as right):
                return Compare(op, lifted(left), right)
            case Compare(op, Counted() as left, Chosen() as right):
                return Compare(op, left, lifted(right))
            case _:
                return old

    return rewritten(part, atom)


# -- clauses ---------------------------------------------------------------------------------------

_Joined: TypeAlias = tuple[tuple[Variable, tuple[Variable, ...]], ...]
# Conditions, and the variables that `Every` has joined, each with those it differs from.
_Draft: TypeAlias = tuple[tuple[Condition, ...], _Joined]


def clauses(sentence: Sentence) -> list[Clause]:
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


def flagged(sentence: Sentence) -> frozenset[Variable]:
    """The variables whose flags are asked for: they may stand for inactive objects."""
    found: set[Variable] = set()

    def note(atom: Atom) -> Atom:
        if isinstance(atom, Is) and atom.term.choice.is_flag:
            found.update(atom.term.arguments)
        return atom

    rewritten(sentence, note)
    return frozenset(found)


def _normal(part: Sentence, scope: tuple[Variable, ...]) -> list[_Draft]:
    """Conjunctive normal form. `Every` is drawn out: its variables run through all objects, apart
    from those of `scope`, and so do the whole clauses it is in."""
    match part:
        case Compare("!=", left, right) if _counts(left) or _counts(right):
            return [((Compare("<", left, right), Compare(">", left, right)), ())]
        case Is() | Compare() | Holds():
            return [((part,), ())]
        case And(parts):
            return [draft for each in parts for draft in _normal(each, scope)]
        case Or(parts):
            return _distributed([_normal(each, scope) for each in parts])
        case Every(variables, body):
            own = tuple((v, (*scope, *variables[:at])) for at, v in enumerate(variables))
            inner = _normal(body, (*scope, *variables))
            return [(conditions, (*own, *joined)) for conditions, joined in inner]
        case Some(variables, body):
            return [(tuple(_one_of(variables, body, scope)), ())]
        case _:
            assert_never(part)


def _counts(term: Term) -> bool:
    return isinstance(term, Counted)


def _asks(part: Atom) -> bool:
    """A comparison that asks more than one choice."""
    if not isinstance(part, Compare):
        return False
    asked = [term for term in (part.left, part.right) if not isinstance(term, Given | int)]
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
    variables: tuple[Variable, ...], body: Sentence, scope: tuple[Variable, ...]
) -> Iterator[OneOf]:
    """`Some` of a disjunction is the disjunction; each part has one condition on choices."""
    for conjunction in _disjuncts(body):
        filters = tuple(part for part in conjunction if isinstance(part, Holds))
        dynamic = [part for part in conjunction if not isinstance(part, Holds)]
        if len(dynamic) > 1 or any(_asks(part) for part in dynamic):
            raise CheckError(
                "'some' may ask one choice only, besides what is known of the objects",
                advice="declare a Boolean choice that stands for the rest",
            )
        yield OneOf(variables, filters, dynamic[0] if dynamic else None, scope)


def _disjuncts(part: Sentence) -> list[tuple[Atom, ...]]:
    """Disjunctive normal form without quantifiers."""
    match part:
        case Is() | Compare() | Holds():
            return [(part,)]
        case Or(parts):
            return [each for inner in parts for each in _disjuncts(inner)]
        case And(parts):
            return [sum(chosen, ()) for chosen in product(*map(_disjuncts, parts))]
        case Some() | Every():
            raise CheckError("'some' may not hold another 'some' or 'every'")
        case _:
            assert_never(part)


# -- what is refused -------------------------------------------------------------------------------


def check_requirement(sentence: Sentence) -> None:
    """Clauses can be made of it, and no quantifier takes a variable that is already in use."""
    _check_bound(sentence, frozenset(variables_of(sentence)))
    clauses(renamed_apart(sentence))


def _check_bound(part: Sentence, used: frozenset[Variable]) -> None:
    match part:
        case Is() | Compare() | Holds():
            return
        case And(parts) | Or(parts):
            for each in parts:
                _check_bound(each, used)
        case Some(variables, body) | Every(variables, body):
            for variable in variables:
                if variable in used:
                    raise CheckError(
                        f"'{variable.name}' is used outside its 'some' or 'every'",
                        advice="give the quantifier a variable of its own",
                    )
            _check_bound(body, used | set(variables))
        case _:
            assert_never(part)


def check_amount(name: str, kind: Kind, amount: Amount) -> None:
    """The condition is a conjunction on choices, and no amount can make the counter shrink."""
    conditions(amount.when)
    lowest = 1 if kind == "product" else 0
    least = _least(amount.amount, lowest)
    if least < lowest:
        raise CheckError(f"'{name}' counts {least}", advice=f"a {kind} takes at least {lowest}")


def _least(term: Term, otherwise: int) -> int:
    match term:
        case int():
            return term
        case Chosen(choice, _):
            if not choice.is_integer:
                raise CheckError(f"'{choice.name}' has no numbers to count")
            return min((int(value) for value in choice.values), default=otherwise)
        case Given(number, _):
            return min(number.values.values(), default=otherwise)
        case Counted(counter, _):
            return _least(counter.base, otherwise)  # no amount makes it less
        case _:
            assert_never(term)


def conditions(when: Sentence) -> tuple[Atom, ...]:
    """The parts of a conjunction, each of them known or about one choice."""
    match when:
        case Is() | Compare() | Holds():
            if _asks(when):
                raise CheckError("what is counted depends on one choice at a time, on no counter")
            return (when,)
        case And(parts):
            return tuple(atom for part in parts for atom in conditions(part))
        case Or() | Some() | Every():
            raise CheckError(
                "what is counted depends on a conjunction of conditions",
                advice="declare a Boolean choice for anything else",
            )
        case _:
            assert_never(when)
