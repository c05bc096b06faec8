"""What a space means: whether values for all choices fulfil every declaration, in plain Python.

An assignment gives each instance of each choice a value, or None where an object of it is inactive.
Nothing here knows how propagation works; it is what propagation is tested against.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import permutations, product
from typing import TypeAlias, assert_never

from warploom.search.space import ir
from warploom.search.space.build import Space
from warploom.search.space.sentence import flagged, variables_of

Assignment: TypeAlias = Mapping[tuple[str, ir.Objects], ir.Value | None]
Environment: TypeAlias = dict[ir.Variable, Hashable]

COMPARE: dict[str, Callable[[ir.Value, ir.Value], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}


def violations(space: Space, assignment: Assignment) -> Iterator[str]:
    """What the assignment breaks, in words; nothing for a solution."""
    meaning = Meaning(space, assignment)
    yield from meaning.misplaced()
    for constraint in space.constraints:
        if not meaning.fulfils(constraint):
            yield _name(constraint)


def is_solution(space: Space, assignment: Assignment) -> bool:
    return next(violations(space, assignment), None) is None


def _name(constraint: ir.Constraint) -> str:
    if isinstance(constraint, ir.Composition):
        return f"composition of {constraint.choice.name}"
    return constraint.name


class Meaning:
    """The space's sentences under one assignment."""

    def __init__(self, space: Space, assignment: Assignment) -> None:
        self.space = space
        self.assignment = assignment
        self.flagged: frozenset[ir.Variable] = frozenset()  # may stand for inactive objects

    def misplaced(self) -> Iterator[str]:
        """Values that an instance cannot have at all; None for active objects, or the reverse."""
        for choice in self.space.choices:
            for instance, start in zip(choice.instances, choice.start, strict=True):
                value = self.assignment[choice.name, instance]
                present = self.is_own_flag(choice, instance) or self.active(instance)
                if (value is not None) != present:
                    yield f"{choice.name}{instance} has a value only where all objects are active"
                elif value is not None and not choice.bits([value]) & start:
                    yield f"{choice.name}{instance} cannot be {value}"

    def is_own_flag(self, choice: ir.Choice, instance: ir.Objects) -> bool:
        """Whether it says itself that its object is active: it has a value in any case."""
        return self.space.flags.get(instance[0], (None, None))[0] is choice

    def active(self, objects: ir.Objects) -> bool:
        flags = (self.space.flags[item] for item in objects if item in self.space.flags)
        return all(self.assignment[flag.name, (owner,)] == "TRUE" for flag, owner in flags)

    def value(self, choice: ir.Choice, objects: ir.Objects) -> ir.Value | None:
        if (choice.name, objects) in self.assignment:
            return self.assignment[choice.name, objects]
        assert choice.inverse is not None, f"{choice.name} is not made for {objects}"
        value = self.assignment[choice.name, objects[::-1]]
        return None if value is None else choice.values[choice.inverse[choice.values.index(value)]]

    # -- constraints -------------------------------------------------------------------------------

    def fulfils(self, constraint: ir.Constraint) -> bool:
        match constraint:
            case ir.Requirement(_, sentence):
                free, self.flagged = variables_of(sentence), flagged(sentence)
                return all(self.holds(sentence, at) for at in self.environments(free, {}))
            case ir.Composition(choice, table):
                return self.composes(choice, table)
            case ir.Table(_, terms, rows):
                return self.lists(terms, rows)
            case ir.Equation():
                return self.equates(constraint)
            case _:
                assert_never(constraint)

    def lists(self, terms: tuple[ir.Chosen, ...], rows: tuple[tuple[ir.Value, ...], ...]) -> bool:
        variables = tuple(dict.fromkeys(v for term in terms for v in term.arguments))
        flags = (term for term in terms if term.choice.is_flag)
        self.flagged = frozenset(v for term in flags for v in term.arguments)
        for at in self.environments(variables, {}):
            values = tuple(self.chosen(term, at) for term in terms)
            if None not in values and values not in rows:
                return False
        return True

    def composes(self, choice: ir.Choice, table: tuple[tuple[int, ...], ...]) -> bool:
        items = dict.fromkeys(item for instance in choice.instances for item in instance)
        for a, b, c in permutations(items, 3):
            values = [self.value(choice, pair) for pair in ((a, b), (b, c), (a, c))]
            if None not in values:
                u, v, w = (choice.values.index(value) for value in values if value is not None)
                if not table[u][v] >> w & 1:
                    return False
        return True

    def equates(self, equation: ir.Equation) -> bool:
        combine = math.prod if equation.kind == "product" else sum
        self.flagged = frozenset()
        inner = [v for v in equation.part.arguments if v not in equation.total.arguments]
        for at in self.environments(equation.total.arguments, {}):
            parts = [self.term(equation.part, deep) for deep in self.environments(inner, at)]
            if self.term(equation.total, at) != combine(int(part) for part in parts):
                return False
        return True

    # -- sentences ---------------------------------------------------------------------------------

    def environments(
        self, variables: tuple[ir.Variable, ...] | list[ir.Variable], outer: Environment
    ) -> Iterator[Environment]:
        """Different, active objects for the variables, different also from the outer ones.

        Variables of one row of a relation stand for objects of one row, also where some of them
        were bound further out."""
        bindings: dict[ir.Binding, list[ir.Variable]] = {}
        for variable in variables:
            bindings.setdefault(variable.binding, []).append(variable)
        columns = [_columns(binding, members, outer) for binding, members in bindings.items()]
        names = [variable for members in bindings.values() for variable in members]
        for rows in product(*columns):
            found = {**outer, **dict(zip(names, sum(rows, ()), strict=True))}
            asked = tuple(item for v, item in found.items() if v not in self.flagged)
            if len(set(found.values())) == len(found) and self.active(asked):
                yield found

    def holds(self, part: ir.Sentence, at: Environment, absent: bool = True) -> bool:
        """A condition on a choice that has no value counts as `absent`."""
        match part:
            case ir.Is(term, allowed):
                value = self.chosen(term, at)
                if value is None:
                    return absent
                return bool(allowed >> term.choice.values.index(value) & 1)
            case ir.Compare(op, left, right):
                terms = [term for term in (left, right) if isinstance(term, ir.Chosen)]
                if any(self.chosen(term, at) is None for term in terms):
                    return absent
                return COMPARE[op](self.term(left, at), self.term(right, at))
            case ir.Holds(members, arguments, negated):
                return (tuple(at[v] for v in arguments) in members) != negated
            case ir.And(parts):
                return all(self.holds(each, at, absent) for each in parts)
            case ir.Or(parts):
                return any(self.holds(each, at, absent) for each in parts)
            case ir.Some(variables, body):
                return any(
                    self.holds(body, deep, False) for deep in self.environments(variables, at)
                )
            case ir.Every(variables, body):
                return all(self.holds(body, deep) for deep in self.environments(variables, at))
            case _:
                assert_never(part)

    def chosen(self, term: ir.Chosen, at: Environment) -> ir.Value | None:
        return self.value(term.choice, tuple(at[v] for v in term.arguments))

    def term(self, term: ir.Term, at: Environment) -> ir.Value:
        match term:
            case int():
                return term
            case ir.Chosen():
                value = self.chosen(term, at)
                assert value is not None, "asked of an inactive object"
                return value
            case ir.Counted(counter, arguments):
                return self.count(counter, tuple(at[v] for v in arguments))
            case ir.Given(number, arguments):
                return number.values[tuple(at[v] for v in arguments)]
            case _:
                assert_never(term)

    def count(self, counter: ir.Counter, objects: ir.Objects) -> int:
        outer = dict(zip(counter.per, objects, strict=True))
        asking, self.flagged = self.flagged, frozenset()
        total = int(self.term(counter.base, outer))
        for amount in counter.amounts:
            names = dict.fromkeys((*variables_of(amount.amount), *variables_of(amount.when)))
            inner = [v for v in names if v not in outer]
            for at in self.environments(inner, outer):
                if self.holds(amount.when, at):
                    value = int(self.term(amount.amount, at))
                    total = total + value if counter.kind == "sum" else total * value
        self.flagged = asking
        return total


def _columns(
    binding: ir.Binding, members: list[ir.Variable], outer: Environment
) -> list[ir.Objects]:
    """What the members may stand for together."""
    fixed = {variable: item for variable, item in outer.items() if variable.binding is binding}
    rows = (
        tuple(row[variable.column] for variable in members)
        for row in binding.property.rows
        if all(row[variable.column] == item for variable, item in fixed.items())
    )
    return list(dict.fromkeys(rows))
