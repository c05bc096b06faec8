"""The SMT engine: a problem becomes clauses over Booleans, Z3's models become fills.

A *control* Boolean for each choice of each hole says what fills it. Everything else is demand,
asked backward from the goal: the Boolean "cell c of step s must hold value v" forces the cell that
the chosen gather reads for c to hold v, down to the inputs, where it is true or false. A cell that
nothing asks for is free, so undefined needs no value of its own. A fold is a canonical multiset:
the goal says which folds matter, and a run is one of them if it holds each item often enough
(cells hold one value each, so "at least" is "exactly"). docs/search.md says why no fill is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import missing_extra
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Reason
from warploom.sketch.synth.bounds import Bounds, solve_bounds
from warploom.sketch.synth.domain import UNDEFINED_ID, ZERO_ID
from warploom.sketch.synth.expand import Tally
from warploom.sketch.synth.problem import Given, Move, Problem
from warploom.sketch.synth.rows import Origin, Rows

Flags: TypeAlias = npt.NDArray[np.bool_]
Literal: TypeAlias = Any  # a Boolean of Z3, which has no types
Model: TypeAlias = Any
# What a cell may read: places in the step's source, each with the literal that it is read.
Reads: TypeAlias = list[tuple[int, Literal]]
Wanted: TypeAlias = dict[int, dict[int, Literal]]  # by cell and value


def load_z3() -> Any:
    """The solver's module; everything else gets it from here."""
    try:
        import z3  # type: ignore[import-untyped]
    except ImportError:
        raise missing_extra("z3-solver", "smt") from None
    return z3


class Control:
    """One hole: exactly one of its live choices is taken."""

    def __init__(self, z3: Any, move: Move, alive: npt.NDArray[np.int64]) -> None:
        self._z3 = z3
        self.alive = alive
        self._tables = move.tables[alive]
        self.taken = [z3.Bool(f"choice.{move.position}.{choice}") for choice in alive]
        if len(alive) == 1:
            self.taken = [z3.BoolVal(True)]
        self._groups: dict[bytes, list[Literal]] = {}

    def clauses(self) -> list[Literal]:
        return [self._z3.PbEq([(literal, 1) for literal in self.taken], 1)]

    def reads(self, cell: int) -> Reads:
        places, first, group = np.unique(
            self._tables[:, cell], return_index=True, return_inverse=True
        )
        # Groups by first choice, so that cells which split the choices alike share the literals.
        order = np.argsort(first)
        rank = np.argsort(order)[group.ravel()].astype(np.int32)
        literals = self._groups.setdefault(rank.tobytes(), [])
        if not literals:
            literals += [self._any_of(np.flatnonzero(rank == r)) for r in range(len(places))]
        return list(zip(places[order].tolist(), literals, strict=True))

    def choice(self, model: Model) -> int:
        """What the model puts into the hole."""
        z3 = self._z3
        at = next(n for n, x in enumerate(self.taken) if z3.is_true(model.eval(x, True)))
        return int(self.alive[at])

    def is_choice(self, choice: int) -> Literal:
        return self.taken[int(np.searchsorted(self.alive, choice))]

    def _any_of(self, members: npt.NDArray[np.intp]) -> Literal:
        return self._z3.Or([self.taken[n] for n in members])


@dataclass(slots=True, eq=False)
class Encoding:
    """The clauses of a problem: `bounds` says what cells may hold, `reads` what they read."""

    problem: Problem
    bounds: Bounds
    reads: dict[int, Callable[[int], Reads]]
    budget: Budget
    z3: Any = field(default_factory=load_z3)
    solver: Any = None
    _flags: dict[int, Flags] = field(default_factory=dict)
    _wanted: dict[int, Wanted] = field(default_factory=dict)

    def build(self) -> None:
        """Demands from the goal down: when a step's turn comes, all that read it have been."""
        # Z3's solver for finite domains: clauses, counts and bit vectors, one model after another.
        self.solver = self.z3.SolverFor("QF_FD")
        problem = self.problem
        unpack = problem.domain.unpack
        self._flags = {p: unpack(bits) for p, bits in self.bounds.possible.items()}
        self._wanted = {position: {} for position in problem.steps}
        for cell, value in enumerate(problem.goal.tolist()):
            self._clause([], self._holds(problem.last, cell, value))
        for step in reversed(problem.steps.values()):
            if isinstance(step, Move):
                self._step(step)

    def model(self) -> Model | None:
        """The next model, None if there is none; raises if the budget or the solver gives out."""
        self.budget.check()
        left = self.budget.seconds_left
        if left is not None:
            self.solver.set("timeout", max(1, int(1000 * left)))
        answer = self.solver.check()
        if answer == self.z3.sat:
            return self.solver.model()
        if answer == self.z3.unsat:
            return None
        why = self.solver.reason_unknown()
        if "keyboard" in why:  # the solver caught the signal for us
            raise KeyboardInterrupt
        self.budget.check()
        timed_out = left is not None and why in ("timeout", "canceled")
        raise BudgetSpentError(Reason.SECONDS if timed_out else Reason.SOLVER)

    # -- steps ---------------------------------------------------------------------------------

    def _step(self, move: Move) -> None:
        wanted = self._wanted[move.position]
        self._one_value_each(wanted)
        if move.folded:
            wanted = self._runs(move, wanted)
            self._one_value_each(wanted)
        arguments = [
            (arg, cell) for arg, start, end in self.problem.layout(move) for cell in range(end - start)
        ]
        for cell, literals in wanted.items():
            self.budget.check()
            reads = self.reads[move.position](cell)
            for value, literal in literals.items():
                self._read(arguments, reads, value, literal)

    def _read(
        self, arguments: list[tuple[int, int]], reads: Reads, value: int, literal: Literal
    ) -> None:
        """The cell reads one of the places that may hold the value, and that one holds it."""
        live = []
        for place, selected in reads:
            if place < len(arguments):
                held = self._holds(*arguments[place], value)
            else:  # undefined, then zero
                is_zero = place > len(arguments) and value == ZERO_ID
                held = self.z3.BoolVal(True) if is_zero else None
            if held is not None:
                live.append(selected)
                if not self.z3.is_true(held):
                    self._clause([literal, selected], held)
        if len(live) < len(reads):
            self._clause([literal], self.z3.Or(live))

    def _runs(self, move: Move, wanted: Wanted) -> Wanted:
        """What the cells of each run must hold so that it folds to what is wanted."""
        possible = self.problem.domain.unpack(self.bounds.inner_possible[move.position])
        inner: Wanted = {}
        for out, literals in wanted.items():
            run = range(out * move.fold, (out + 1) * move.fold)
            for value, literal in literals.items():
                items = self._items(move, value)
                if items is None:
                    self._clause([literal], None)
                    continue
                for item, count in items.items():
                    holding = [
                        inner.setdefault(cell, {}).setdefault(
                            item, self.z3.Bool(f"inner.{move.position}.{cell}.{item}")
                        )
                        for cell in run
                        if possible[cell, item]
                    ]
                    self._clause([literal], self._at_least(holding, count))
        return inner

    def _items(self, move: Move, value: int) -> Counter[int] | None:
        """A fold as a multiset, filled up with zeros to the length of a run; None: it is too long,
        or no fold at all."""
        domain = self.problem.domain
        count = 0 if value == ZERO_ID else int(domain.item_count[value])
        if not 0 <= count <= move.fold:
            return None
        return Counter([*domain.items[value, :count].tolist(), *[ZERO_ID] * (move.fold - count)])

    # -- literals ------------------------------------------------------------------------------

    def _holds(self, position: int, cell: int, value: int) -> Literal | None:
        """The literal that a cell holds a value; None: it cannot."""
        if value == UNDEFINED_ID or not self._flags[position][cell, value]:
            return None
        if isinstance(self.problem.steps[position], Given):
            return self.z3.BoolVal(True)
        wanted = self._wanted[position].setdefault(cell, {})
        if value not in wanted:
            wanted[value] = self.z3.Bool(f"cell.{position}.{cell}.{value}")
        return wanted[value]

    def _one_value_each(self, wanted: Wanted) -> None:
        for literals in wanted.values():
            if len(literals) > 1:
                self.solver.add(self.z3.AtMost(*literals.values(), 1))

    def _at_least(self, literals: list[Literal], count: int) -> Literal:
        if len(literals) <= count:
            return self.z3.And(literals) if len(literals) == count else self.z3.BoolVal(False)
        return self.z3.Or(literals) if count == 1 else self.z3.AtLeast(*literals, count)

    def _clause(self, given: list[Literal], then: Literal | None) -> None:
        last = self.z3.BoolVal(False) if then is None else then
        self.solver.add(self.z3.Or([*(self.z3.Not(literal) for literal in given), last]))


@dataclass(slots=True, eq=False)
class SmtEngine:
    """Every fill, one model after another; found ones are excluded by a clause each."""

    problem: Problem
    budget: Budget
    on_progress: Callable[[int, int], None] | None = None
    tallies: dict[int, Tally] = field(default_factory=dict)
    shared: dict[int, Rows] = field(default_factory=dict)
    _encoding: Encoding | None = None
    _controls: dict[int, Control] = field(default_factory=dict)

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
            self._encoding, self._controls = encode(self.problem, bounds, self.budget)
        return bounds.feasible

    def solutions(self) -> Iterator[Rows]:
        encoding = self._encoding
        assert encoding is not None
        number = 0
        while (model := encoding.model()) is not None:
            fill = {hole: control.choice(model) for hole, control in self._controls.items()}
            number += 1
            for tally in self.tallies.values():
                tally.kept += 1
            if self.on_progress is not None:
                self.on_progress(self.problem.last, number)
            yield self._rows(fill)
            taken = [self._controls[hole].is_choice(choice) for hole, choice in fill.items()]
            encoding.solver.add(encoding.z3.Not(encoding.z3.And(taken)))

    def _rows(self, fill: dict[int, int]) -> Rows:
        choices = {hole: np.array([choice]) for hole, choice in fill.items()}
        return Rows(self.problem.goal[None, :], {}, Origin(1, np.arange(2), (), choices))


def encode(
    problem: Problem,
    bounds: Bounds,
    budget: Budget,
    own: dict[int, Callable[[int], Reads]] | None = None,
) -> tuple[Encoding, dict[int, Control]]:
    """The clauses, and a control for each hole but those whose reads are given."""
    z3 = load_z3()
    reads = dict(own or {})
    controls = {}
    for position, step in problem.steps.items():
        if isinstance(step, Move) and position not in reads:
            control = Control(z3, step, bounds.alive[position])
            reads[position] = control.reads
            if step.is_hole:
                controls[position] = control
    encoding = Encoding(problem, bounds, reads, budget, z3)
    encoding.build()
    for control in controls.values():
        encoding.solver.add(*control.clauses())
    return encoding, controls
