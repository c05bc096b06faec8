"""OR-Tools CP-SAT, where it is installed, as judge of what propagation removes.

The model is built from the declarations by code of its own: Booleans for values, a clause for every
tuple of objects, sums and products as tables of partial results.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import present

from warploom.search.branching.candidate import Candidates
from warploom.search.branching.descent import descents
from warploom.search.branching.problem import SpaceProblem
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space
from warploom.search.space.evaluate import COMPARE, is_solution
from warploom.search.space.ir import (
    And,
    Binding,
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
from warploom.search.space.sentence import flagged, variables_of

cp_model = pytest.importorskip("ortools.sat.python.cp_model")

# Clauses alone are asked, and most answers follow by propagation: relaxations do not pay.
QUESTIONS = {
    "num_workers": 1,
    "linearization_level": 0,
    "cp_model_probing_level": 0,
    "symmetry_level": 0,
}


At = dict[Variable, Any]
Literals = dict[Any, Any]  # by value


class Model:
    """A CP-SAT model: `literal[choice, objects, value]` for every value, None for absence."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.model = cp_model.CpModel()
        self.literals: dict[tuple[str, tuple[Any, ...], object], Any] = {}
        self.counted: dict[tuple[Counter, tuple[Any, ...]], Literals] = {}
        self.started: dict[tuple[str, tuple[Any, ...]], list[tuple[int, Any]]] = {}
        self.never: set[object] = set()  # literals of values that no start has
        self.true = self.model.new_constant(1)
        for choice in space.choices:
            for instance, start in zip(choice.instances, choice.start, strict=True):
                self.instance(choice, instance, start)
        for constraint in space.constraints:
            self.add(constraint)

    def instance(self, choice: Choice, instance: tuple[Any, ...], start: int) -> None:
        own = []
        for at, value in enumerate((*choice.values, None)):
            literal = self.model.new_bool_var(f"{choice.name}{instance}={value}")
            if not start >> at & 1:
                self.model.add(literal == 0)
                self.never.add(literal)
            self.literals[choice.name, instance, value] = literal
            own.append(literal)
        self.model.add_exactly_one(own)
        if not any(choice is self.space.flags.get(item, (None,))[0] for item in instance):
            missing = [self.active(item).negated() for item in instance if item in self.space.flags]
            absent = own[-1]
            self.model.add_bool_or([absent.negated(), *missing])
            for each in missing:
                self.model.add_implication(each, absent)

    def active(self, item: object) -> Any:
        if item not in self.space.flags:
            return self.true
        flag, owner = self.space.flags[item]
        return self.literals[flag.name, (owner,), "TRUE"]

    def value(self, choice: Choice, objects: tuple[Any, ...], value: Any) -> Any:
        """The literal that an instance has a value."""
        if (choice.name, objects, None) in self.literals:
            return self.literals[choice.name, objects, value]
        if value is not None:
            value = choice.values[present(choice.inverse)[choice.values.index(value)]]
        return self.literals[choice.name, objects[::-1], value]

    # -- environments ------------------------------------------------------------------------------

    def environments(self, variables: Iterable[Variable], outer: At) -> list[At]:
        bindings: dict[Binding, list[Variable]] = {}
        for variable in variables:
            bindings.setdefault(variable.binding, []).append(variable)
        found = []
        for rows in product(*(binding.property.rows for binding in bindings)):
            at = dict(outer)
            fits = True
            for row, (binding, members) in zip(rows, bindings.items(), strict=True):
                for variable, item in outer.items():
                    fits &= variable.binding is not binding or row[variable.column] == item
                at |= {variable: row[variable.column] for variable in members}
            if fits and len(set(at.values())) == len(at) and at not in found:
                found.append(at)
        return found

    # -- sentences as literals ---------------------------------------------------------------------

    def either(self, literals: list[Any]) -> Any:
        made = self.model.new_bool_var("")
        self.model.add_bool_or([*literals, made.negated()])
        for literal in literals:
            self.model.add_implication(literal, made)
        return made

    def both(self, literals: list[Any]) -> Any:
        return self.either([literal.negated() for literal in literals]).negated()

    def sentence(
        self, part: Sentence, at: At, flags: frozenset[Variable], absent: bool = True
    ) -> Any:
        match part:
            case Is(term, allowed):
                objects = tuple(at[v] for v in term.arguments)
                kept: list[str | int | None]
                kept = [v for bit, v in enumerate(term.choice.values) if allowed >> bit & 1]
                kept += [None] if absent else []
                return self.either([self.value(term.choice, objects, v) for v in kept])
            case Compare():
                return self.compare(part, at, absent)
            case Holds(members, arguments, negated):
                true = (tuple(at[v] for v in arguments) in members) != negated
                return self.true if true else self.true.negated()
            case And(parts):
                return self.both([self.sentence(p, at, flags, absent) for p in parts])
            case Or(parts):
                return self.either([self.sentence(p, at, flags, absent) for p in parts])
            case Some(variables, body):
                ways = []
                for deep in self.environments(variables, at):
                    here = [self.active(deep[v]) for v in variables if v not in flags]
                    ways.append(self.both([self.sentence(body, deep, flags, False), *here]))
                return self.either(ways)
            case Every(variables, body):
                ways = []
                for deep in self.environments(variables, at):
                    gone = [self.active(deep[v]).negated() for v in variables if v not in flags]
                    ways.append(self.either([self.sentence(body, deep, flags), *gone]))
                return self.both(ways)

    def compare(self, part: Compare, at: At, absent: bool) -> Any:
        """By the values that each side may have."""
        options = [self.options(term, at) for term in (part.left, part.right)]
        kept = []
        for (left, u), (right, v) in product(options[0].items(), options[1].items()):
            if absent if None in (left, right) else COMPARE[part.op](left, right):
                kept.append(self.both([u, v]))
        return self.either(kept)

    def options(self, term: Term, at: At) -> Literals:
        match term:
            case int():
                return {term: self.true}
            case Given(number, arguments):
                return {number.values[tuple(at[v] for v in arguments)]: self.true}
            case Chosen(choice, arguments):
                objects = tuple(at[v] for v in arguments)
                return {v: self.value(choice, objects, v) for v in (*choice.values, None)}
            case Counted(counter, arguments):
                return self.count(counter, tuple(at[v] for v in arguments))

    def count(self, counter: Counter, objects: tuple[Any, ...]) -> Literals:
        """Every value that the counter may have, with the literal that it has it."""
        key = (counter, objects)
        if key not in self.counted:
            self.counted[key] = self.totals(counter, objects)
        return self.counted[key]

    def totals(self, counter: Counter, objects: tuple[Any, ...]) -> Literals:
        outer = dict(zip(counter.per, objects, strict=True))
        totals = self.options(counter.base, outer)
        for amount in counter.amounts:
            names = dict.fromkeys((*variables_of(amount.amount), *variables_of(amount.when)))
            for at in self.environments([v for v in names if v not in outer], outer):
                here = [self.active(item) for item in at.values()]
                counts = self.both([self.sentence(amount.when, at, frozenset(), False), *here])
                amounts = self.options(amount.amount, at)
                totals = self.added(counter, totals, amounts, counts)
        return totals

    def added(self, counter: Counter, totals: Literals, amounts: Literals, counts: Any) -> Literals:
        reached: dict[Any, list[Any]] = {}
        for total, literal in totals.items():
            reached.setdefault(total, []).append(self.both([literal, counts.negated()]))
            for amount, own in amounts.items():
                if amount is not None:
                    after = total + amount if counter.kind == "sum" else total * amount
                    reached.setdefault(after, []).append(self.both([literal, own, counts]))
        return {total: self.either(ways) for total, ways in reached.items()}

    # -- constraints -------------------------------------------------------------------------------

    def add(self, constraint: Constraint) -> None:
        match constraint:
            case Requirement(_, sentence):
                flags = flagged(sentence)
                for at in self.environments(variables_of(sentence), {}):
                    missing = [self.active(at[v]).negated() for v in at if v not in flags]
                    self.model.add_bool_or([self.sentence(sentence, at, flags), *missing])
            case Composition(choice, table):
                self.compose(choice, table)
            case Table(_, terms, rows):
                self.table(terms, rows)
            case Equation():
                self.equation(constraint)

    def compose(self, choice: Choice, table: Sequence[Sequence[int]]) -> None:
        """What no start of a pair allows is not asked, nor what allows everything; from c to a
        only where that would say something else than from a to c."""
        items = dict.fromkeys(item for instance in choice.instances for item in instance)
        place = {item: at for at, item in enumerate(items)}
        mirrored = self.mirrored(choice, table)
        for a, b, c in product(items, repeat=3):
            if len({a, b, c}) == 3 and not (mirrored and place[a] > place[c]):
                known = [self.possible(choice, pair) for pair in ((a, b), (b, c), (a, c))]
                for (u, first), (v, second) in product(known[0], known[1]):
                    third = [literal for w, literal in known[2] if table[u][v] >> w & 1]
                    if len(third) < len(known[2]):
                        absent = self.value(choice, (a, c), None)
                        self.model.add_bool_or(first.negated(), second.negated(), *third, absent)

    @staticmethod
    def mirrored(choice: Choice, table: Sequence[Sequence[int]]) -> bool:
        """Whether a table says the same of (c, b) and (b, a) as of (a, b) and (b, c)."""
        step, values = choice.inverse, range(len(choice.values))
        return step is not None and all(
            (table[u][v] >> w & 1) == (table[step[v]][step[u]] >> step[w] & 1)
            for u, v, w in product(values, repeat=3)
        )

    def possible(self, choice: Choice, objects: tuple[Any, ...]) -> list[tuple[int, Any]]:
        """The values that an instance may start with, by their places, and their literals."""
        if (choice.name, objects) not in self.started:
            found = ((at, self.value(choice, objects, v)) for at, v in enumerate(choice.values))
            self.started[choice.name, objects] = [
                (at, literal) for at, literal in found if literal not in self.never
            ]
        return self.started[choice.name, objects]

    def table(self, terms: Sequence[Chosen], rows: Iterable[Sequence[Any]]) -> None:
        variables = dict.fromkeys(v for term in terms for v in term.arguments)
        for at in self.environments(variables, {}):
            places = [(term.choice, tuple(at[v] for v in term.arguments)) for term in terms]
            ways = []
            for row in rows:
                pairs = zip(places, row, strict=True)
                ways.append(self.both([self.value(*place, value) for place, value in pairs]))
            self.model.add_bool_or([*ways, *(self.value(*place, None) for place in places)])

    def equation(self, constraint: Equation) -> None:
        kind = constraint.kind
        inner = [v for v in constraint.part.arguments if v not in constraint.total.arguments]
        for at in self.environments(constraint.total.arguments, {}):
            totals: Literals = {1 if kind == "product" else 0: self.true}
            for deep in self.environments(inner, at):
                there = self.both([self.active(deep[v]) for v in inner])
                counter = Counter("", kind, (), (), 0)
                totals = self.added(counter, totals, self.options(constraint.part, deep), there)
            wanted = self.options(constraint.total, at)
            ways = [
                self.both([literal, wanted[total]])
                for total, literal in totals.items()
                if total in wanted
            ]
            self.model.add_bool_or([*ways, wanted[None]])

    # -- questions ---------------------------------------------------------------------------------

    def solvable(
        self, candidates: Candidates, propagator: Propagator, wanted: dict[int, int]
    ) -> Any:
        """Whether a solution lies within the domains and has some of the wanted values, which are
        given by position; one of them is enough."""
        model = self.model.clone()
        ways = []
        for choice in self.space.choices:
            start = propagator.layout.choices.offset[choice]
            for at, instance in enumerate(choice.instances, start):
                allowed = int(candidates.domains[0, at])
                for bit, value in enumerate((*choice.values, None)):
                    literal = self.literals[choice.name, instance, value]
                    if wanted.get(at, 0) >> bit & 1:
                        ways.append(literal)
                    elif not allowed >> bit & 1:
                        model.add(literal == 0)
        model.add_bool_or(ways)
        solver = cp_model.CpSolver()
        for name, value in QUESTIONS.items():
            setattr(solver.parameters, name, value)
        status = solver.solve(model)
        assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE)
        return status != cp_model.INFEASIBLE


def judge(space: Space, seed: int, rounds: int = 3) -> tuple[int, int]:
    """How many values were removed after random decisions, and how many kept ones are in none."""
    propagator, model = Propagator(space, (18, 7, 0)[seed % 3]), Model(space)
    pick = random.Random(seed)
    full = propagator.layout.start
    unrestricted = Candidates(full[None], np.zeros((1, 1)), np.zeros((1, 1)))
    root = propagator.root()
    if not len(root):
        assert not model.solvable(unrestricted, propagator, {0: int(full[0])})
        return 0, 0
    removed = missed = 0
    asked = unrestricted.take(slice(None))
    for _ in range(rounds):
        gone = asked.domains[0] & ~root.domains[0, : propagator.choices]
        wanted = {at: int(gone[at]) for at in range(propagator.choices) if gone[at]}
        removed += sum(bits.bit_count() for bits in wanted.values())
        assert not wanted or not model.solvable(asked, propagator, wanted)
        position = pick.randrange(propagator.choices)
        bits = 1 << pick.choice([b for b in range(63) if int(root.domains[0, position]) >> b & 1])
        asked.domains[0, position] = bits
        before = root.take(slice(None))
        alive = propagator.restrict(
            root, np.zeros(1, np.int64), np.array([position]), np.array([bits], np.uint64)
        )
        if not alive[0]:
            assert not model.solvable(before, propagator, {position: bits})
            break
    found = descents(SpaceProblem(propagator), 4, np.random.default_rng(seed))
    for row in np.flatnonzero(found.arrived):
        assert is_solution(space, propagator.assignment(found.leaves, int(row)))
        leaf = found.leaves.take(slice(row, row + 1))
        assert model.solvable(leaf, propagator, {0: int(leaf.domains[0, 0])})
    missed = int(not found.arrived.all())
    return removed, missed
