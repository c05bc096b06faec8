"""A space as text, close to the paper's listings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from warploom.search.space.build import Space
from warploom.search.space.ir import (
    And,
    Choice,
    Chosen,
    Compare,
    Composition,
    Constraint,
    Counted,
    Counter,
    Equation,
    Every,
    Given,
    Holds,
    Is,
    Or,
    Requirement,
    Sentence,
    Some,
    Table,
    Term,
    Variable,
)
from warploom.search.space.sentence import variables_of


def show_space(space: Space) -> str:
    return "\n".join(_lines(space))


def _lines(space: Space) -> Iterator[str]:
    yield f"space {space.name}"
    for members in space.properties:
        yield f"set {members.name}: {len(members.rows)} of {members.arity}"
    for choice in space.choices:
        yield show_choice(choice)
    for counter in space.counters:
        yield show_counter(counter)
    for constraint in space.constraints:
        yield show_constraint(constraint)


def show_choice(choice: Choice) -> str:
    sets = ", ".join(members.name for members in choice.sets)
    values = " | ".join(map(str, choice.values))
    symmetry = "" if choice.inverse is None else f"  # {_symmetry(choice, choice.inverse)}"
    return f"choice {choice.name}({sets}): {values}{symmetry}"


def _symmetry(choice: Choice, inverse: tuple[int, ...]) -> str:
    pairs = [
        f"{choice.values[v]} -> {choice.values[w]}" for v, w in enumerate(inverse) if v < w
    ]  # fmt: skip
    return f"antisymmetric: {', '.join(pairs)}" if pairs else "symmetric"


def show_counter(counter: Counter) -> str:
    per = ", ".join(variable.name for variable in counter.per)
    parts = []
    for amount in counter.amounts:
        inner = [v for v in variables_of(amount.amount) if v not in counter.per]
        inner += [v for v in variables_of(amount.when) if v not in (*counter.per, *inner)]
        parts.append(f"{_quantified(inner)}{show_term(amount.amount)}{_when(amount.when)}")
    base = show_term(counter.base)
    return f"counter {counter.name}({per}): {counter.kind} of {'; '.join([base, *parts])}"


def show_constraint(constraint: Constraint) -> str:
    match constraint:
        case Requirement(name, sentence):
            shown = f"{_quantified(variables_of(sentence))}{show_sentence(sentence)}"
            return f"require {shown}  # {name}"
        case Composition(choice, _):
            return f"compose {choice.name}"
        case Table(name, terms, rows):
            shown = ", ".join(map(show_term, terms))
            return f"require ({shown}) among {len(rows)} rows  # {name}"
        case Equation(name, kind, total, part):
            return f"require {show_term(total)} == {kind} of {show_term(part)}  # {name}"
        case _:
            assert_never(constraint)


def _quantified(variables: tuple[Variable, ...] | list[Variable]) -> str:
    if not variables:
        return ""
    shown = ", ".join(f"{v.name} in {v.binding.property.name}" for v in variables)
    return f"forall {shown}: "


def _when(when: Sentence) -> str:
    always = isinstance(when, And) and not when.parts
    return "" if always else f" when {show_sentence(when)}"


def show_sentence(part: Sentence) -> str:
    match part:
        case Is(term, allowed):
            choice = term.choice
            names = [str(v) for at, v in enumerate(choice.values) if allowed >> at & 1]
            return f"{show_term(term)} is {' | '.join(names) or 'nothing'}"
        case Compare(op, left, right):
            return f"{show_term(left)} {op} {show_term(right)}"
        case Holds(members, arguments, negated):
            called = f"{members.name}({', '.join(v.name for v in arguments)})"
            return f"not {called}" if negated else called
        case And(parts):
            return "(" + " && ".join(map(show_sentence, parts)) + ")" if parts else "true"
        case Or(parts):
            return "(" + " || ".join(map(show_sentence, parts)) + ")" if parts else "false"
        case Some(variables, body) | Every(variables, body):
            word = "some" if isinstance(part, Some) else "every"
            shown = ", ".join(f"{v.name} in {v.binding.property.name}" for v in variables)
            return f"{word} {shown}: {show_sentence(body)}"
        case _:
            assert_never(part)


def show_term(term: Term) -> str:
    match term:
        case int():
            return str(term)
        case Chosen(choice, arguments):
            name = choice.name
        case Counted(counter, arguments):
            name = counter.name
        case Given(number, arguments):
            name = number.name
        case _:
            assert_never(term)
    return f"{name}({', '.join(variable.name for variable in arguments)})"
