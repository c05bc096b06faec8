"""The SMT engine: a problem becomes clauses over Booleans, Z3's models become fills.

A *control* Boolean for each choice of each hole says what fills it. Everything else is demand,
asked backward from the goal: the Boolean "cell c of step s must hold value v" forces the cell that
the chosen gather reads for c to hold v, down to the inputs, where it is true or false. A cell that
nothing asks for is free, so undefined needs no value of its own. A fold is a canonical multiset:
the goal says which folds matter, and a run is one of them if it holds each item often enough
("at least" for every item, zeros included, is "exactly"). docs/search.md says why this is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.index.smt import load_z3
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Reason
from warploom.sketch.synth.bounds import Bounds, solve_bounds
from warploom.sketch.synth.domain import UNDEFINED_ID, ZERO_ID
from warploom.sketch.synth.expand import Tally
from warploom.sketch.synth.problem import Given, Move, Problem
from warploom.sketch.synth.rows import Origin, Rows

Flags: TypeAlias = npt.NDArray[np.bool_]
Model: TypeAlias = Any  # of Z3, which has no types
Literal: TypeAlias = str  # SMT-LIB text: Z3 reads it 25 times as fast as Python could build it
# What a cell may read: places in the step's source, each with the literal that it is the one.
Reads: TypeAlias = list[tuple[int, Literal]]
Wanted: TypeAlias = dict[int, dict[int, Literal]]  # by cell and value

TRUE, FALSE = "true", "false"


class Clauses:
    """SMT-LIB text under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def declare(self, name: str, kind: str = "Bool") -> str:
        self.lines.append(f"(declare-const {name} {kind})")
        return name

    def define(self, name: str, body: str, kind: str = "Bool") -> str:
        self.lines.append(f"(define-fun {name} () {kind} {body})")
        return name

    def require(self, literal: Literal) -> None:
        self.lines.append(f"(assert {literal})")

    def imply(self, given: Literal, then: Literal) -> None:
        if then != TRUE:
            self.lines.append(f"(assert (=> {given} {then}))")


def any_of(literals: list[Literal]) -> Literal:
    if len(literals) > 1:
        return f"(or {' '.join(literals)})"
    return literals[0] if literals else FALSE


def at_least(count: int, literals: list[Literal]) -> Literal:
    if len(literals) < count:
        return FALSE
    return any_of(literals) if count == 1 else f"((_ at-least {count}) {' '.join(literals)})"


class Control:
    """One hole (or fixed step): exactly one of its live choices is taken."""

    def __init__(self, clauses: Clauses, move: Move, alive: npt.NDArray[np.int64]) -> None:
        self.alive = alive
        self.taken: list[Literal] = [TRUE]
        self._clauses = clauses
        self._name = f"hole.{move.position}"
        self._tables = move.tables[alive]
        self._groups: dict[bytes, list[Literal]] = {}
        if len(alive) > 1:
            self.taken = [clauses.declare(f"{self._name}.{choice}") for choice in alive]
            clauses.require(any_of(self.taken))
            clauses.require(f"((_ at-most 1) {' '.join(self.taken)})")

    def reads(self, cell: int) -> Reads:
        places, first, group = np.unique(
            self._tables[:, cell], return_index=True, return_inverse=True
        )
        # Numbered by first choice, so that cells which split the choices alike share the groups.
        order = np.argsort(first)
        rank = np.argsort(order)[group.ravel()].astype(np.int32)
        key = rank.tobytes()
        if key not in self._groups:
            self._groups[key] = [self._group(np.flatnonzero(rank == r)) for r in range(len(first))]
        return list(zip(places[order].tolist(), self._groups[key], strict=True))

    def _group(self, members: npt.NDArray[np.intp]) -> Literal:
        if len(members) == len(self.taken):
            return TRUE
        literals: list[Literal] = [self.taken[member] for member in members]
        if len(literals) == 1:
            return literals[0]
        number = len(self._clauses.lines)
        return self._clauses.define(f"{self._name}.any.{number}", any_of(literals))


@dataclass(slots=True, eq=False)
class Encoding:
    """The clauses of a problem: `bounds` says what cells may hold, `reads` what they read."""

    problem: Problem
    bounds: Bounds
    budget: Budget
    clauses: Clauses = field(default_factory=Clauses)
    reads: dict[int, Callable[[int], Reads]] = field(default_factory=dict)
    controls: dict[int, Control] = field(default_factory=dict)
    _flags: dict[int, Flags] = field(default_factory=dict)
    _wanted: dict[int, Wanted] = field(default_factory=dict)

    def build(self) -> None:
        """Demands from the goal down: when a step's turn comes, all that read it have had theirs.

        Steps whose `reads` are already there keep them; the others get a control.
        """
        problem = self.problem
        self._wanted = {position: {} for position in problem.steps}
        for position, step in problem.steps.items():
            self._flags[position] = problem.domain.unpack(self.bounds.possible[position])
            if isinstance(step, Move) and position not in self.reads:
                control = Control(self.clauses, step, self.bounds.alive[position])
                self.reads[position] = control.reads
                if step.is_hole:
                    self.controls[position] = control
        for cell, value in enumerate(problem.goal.tolist()):
            self.clauses.require(self._holds(problem.last, cell, value))
        for step in reversed(problem.steps.values()):
            if isinstance(step, Move):
                self._step(step)

    def _step(self, move: Move) -> None:
        wanted = self._wanted[move.position]
        if move.folded:
            wanted = self._runs(move, wanted)
        source = [
            (arg, cell)
            for arg, start, end in self.problem.layout(move)
            for cell in range(end - start)
        ]
        for cell, literals in wanted.items():
            self.budget.check()
            reads = self.reads[move.position](cell)
            for value, literal in literals.items():
                self._read(source, reads, value, literal)

    def _read(
        self, source: list[tuple[int, int]], reads: Reads, value: int, literal: Literal
    ) -> None:
        """The cell reads one of the places that may hold the value, and that place holds it."""
        live = []
        for place, selected in reads:
            if place < len(source):
                held = self._holds(*source[place], value)
            else:  # undefined, then zero
                held = TRUE if value == ZERO_ID and place > len(source) else FALSE
            if held != FALSE:
                live.append(selected)
                both = literal if selected == TRUE else f"(and {literal} {selected})"
                self.clauses.imply(both, held)
        if len(live) < len(reads):
            self.clauses.imply(literal, any_of(live))

    def _runs(self, move: Move, wanted: Wanted) -> Wanted:
        """What the cells of each run must hold so that it folds to what is wanted."""
        possible = self.problem.domain.unpack(self.bounds.inner_possible[move.position])
        inner: Wanted = {}
        for out, literals in wanted.items():
            run = range(out * move.fold, (out + 1) * move.fold)
            for value, literal in literals.items():
                items = self._items(move, value)
                if items is None:
                    self.clauses.imply(literal, FALSE)
                    continue
                for item, count in items.items():
                    holding = [
                        self._named(inner, f"inner.{move.position}", cell, item)
                        for cell in run
                        if possible[cell, item]
                    ]
                    self.clauses.imply(literal, at_least(count, holding))
        return inner

    def _items(self, move: Move, value: int) -> Counter[int] | None:
        """A fold as a multiset, filled up with zeros to the length of a run; None: no run folds
        to this value."""
        domain = self.problem.domain
        count = 0 if value == ZERO_ID else int(domain.item_count[value])
        if not 0 <= count <= move.fold:
            return None
        return Counter([*domain.items[value, :count].tolist(), *[ZERO_ID] * (move.fold - count)])

    def _holds(self, position: int, cell: int, value: int) -> Literal:
        """That a cell must hold a value; false if it cannot, true if it does in any case."""
        if value == UNDEFINED_ID or not self._flags[position][cell, value]:
            return FALSE
        if isinstance(self.problem.steps[position], Given):
            return TRUE
        return self._named(self._wanted[position], f"cell.{position}", cell, value)

    def _named(self, wanted: Wanted, prefix: str, cell: int, value: int) -> Literal:
        literals = wanted.setdefault(cell, {})
        if value not in literals:
            literals[value] = self.clauses.declare(f"{prefix}.{cell}.{value}")
        return literals[value]


class Solver:
    """Z3 on the clauses of an encoding, one model after another, within a budget."""

    def __init__(self, clauses: Clauses, budget: Budget) -> None:
        self.z3 = load_z3()
        # For finite domains: clauses, counts and bit vectors.
        self.core = self.z3.SolverFor("QF_FD")
        self.budget = budget
        budget.check()
        self.core.from_string("\n".join(clauses.lines))

    def model(self) -> Model | None:
        """The next model, None if there is none; raises if the budget or the solver gives out."""
        self.budget.check()
        left = self.budget.seconds_left
        if left is not None:
            self.core.set("timeout", max(1, int(1000 * left)))
        answer = self.core.check()
        if answer == self.z3.sat:
            return self.core.model()
        if answer == self.z3.unsat:
            return None
        why = self.core.reason_unknown()
        if "keyboard" in why:  # the solver caught the signal in our place
            raise KeyboardInterrupt
        self.budget.check()
        timed_out = left is not None and why in ("timeout", "canceled")
        raise BudgetSpentError(Reason.SECONDS if timed_out else Reason.SOLVER)

    def choices(self, model: Model, controls: Mapping[int, Control]) -> dict[int, int]:
        """What the model puts into each hole."""
        found = {}
        for hole, control in controls.items():
            taken = (model.eval(self._literal(name), True) for name in control.taken)
            at = next(n for n, value in enumerate(taken) if self.z3.is_true(value))
            found[hole] = int(control.alive[at])
        return found

    def exclude(self, fill: Mapping[int, int], controls: Mapping[int, Control]) -> None:
        taken = []
        for hole, control in controls.items():
            at = int(np.searchsorted(control.alive, fill[hole]))
            taken.append(self._literal(control.taken[at]))
        self.core.add(self.z3.Not(self.z3.And(taken)))

    def _literal(self, name: Literal) -> Any:
        return self.z3.BoolVal(True) if name == TRUE else self.z3.Bool(name)


@dataclass(slots=True, eq=False)
class SmtEngine:
    """Every fill, one model after another; each is excluded by a clause once it is found."""

    problem: Problem
    budget: Budget
    on_progress: Callable[[int, int], None] | None = None
    tallies: dict[int, Tally] = field(default_factory=dict)
    shared: dict[int, Rows] = field(default_factory=dict)
    _encoding: Encoding | None = None

    def prepare(self) -> bool:
        """Bounds, then clauses. False: the bounds already show that there is no fill."""
        load_z3()
        bounds = solve_bounds(self.problem)
        for position, step in self.problem.steps.items():
            if isinstance(step, Move) and step.is_hole:
                options = len(step.tables)
                tally = self.tallies[position] = Tally(options=options, visited=options)
                tally.prune("bounds", options - len(bounds.alive[position]))
        if bounds.feasible:
            self._encoding = Encoding(self.problem, bounds, self.budget)
            self._encoding.build()
        return bounds.feasible

    def solutions(self) -> Iterator[Rows]:
        assert self._encoding is not None
        controls = self._encoding.controls
        solver = Solver(self._encoding.clauses, self.budget)
        number = 0
        while (model := solver.model()) is not None:
            fill = solver.choices(model, controls)
            number += 1
            for tally in self.tallies.values():
                tally.kept += 1
            if self.on_progress is not None:
                self.on_progress(self.problem.last, number)
            choices = {hole: np.array([choice]) for hole, choice in fill.items()}
            origin = Origin(1, np.arange(2), (), choices)
            yield Rows(self.problem.goal[None, :], {}, origin)
            solver.exclude(fill, controls)
