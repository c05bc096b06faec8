"""The mappings of `solve`, found by CP-SAT: Booleans for "this map runs so", clauses as they are.

A second solver, from the same constraints but by other code; the extra `cp` brings it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from warploom.array.mapping.constraint import LEVELS, RUNS, Constraints, Is, Literal
from warploom.array.mapping.solve import Table
from warploom.errors import missing_extra
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided


def load_cp_model() -> Any:
    try:
        return import_module("ortools.sat.python.cp_model")
    except ImportError:
        raise missing_extra("ortools", "cp") from None


class MappingModel:
    """The model, and one Boolean for each way in which each map may run."""

    def __init__(self, constraints: Constraints) -> None:
        self.cp = load_cp_model()
        self.model = self.cp.CpModel()
        self.runs = {
            (each, run): self.model.new_bool_var(f"map {each} {run}")
            for each, allowed in constraints.choices.items()
            for run in sorted(allowed)
        }
        # What is read of a solution: one number for each map that is not decided.
        self.code = {
            each: self.model.new_int_var(0, len(RUNS), f"map {each}")
            for each, allowed in constraints.choices.items()
        }
        self.used = {run: self.model.new_bool_var(f"used {run}") for run in LEVELS}
        for each, allowed in constraints.choices.items():
            self.model.add_exactly_one(self.runs[each, run] for run in sorted(allowed))
            numbers = [RUNS.index(run) * self.runs[each, run] for run in sorted(allowed)]
            self.model.add(sum(numbers) == self.code[each])
        for run, used in self.used.items():
            having = [var for (_, own), var in self.runs.items() if own == run]
            self.model.add_max_equality(used, having) if having else self.model.add(used == 0)
        for constraint in constraints.listed:
            for clause in constraint.clauses:
                self.model.add_bool_or([lit for each in clause for lit in self._literals(each)])

    def _literals(self, literal: Literal) -> list[Any]:
        """The Boolean variables whose disjunction is equivalent to the literal."""
        if isinstance(literal, Is):
            keys = [(literal.map, run) for run in sorted(literal.runs)]
            return [self.runs[key] for key in keys if key in self.runs]
        used = self.used[literal.run]
        return [used if literal.truth else used.negated()]


def solve_by_cpsat(constraints: Constraints, budget: Budget | None = None) -> Outcome[Table]:
    """Every mapping, in no order; undecided if the time is not enough for all."""
    made = MappingModel(constraints)
    columns = list(constraints.choices)
    rows: list[list[int]] = []
    spent = budget or Budget()

    class Collector(made.cp.CpSolverSolutionCallback):  # type: ignore[misc, name-defined]
        def on_solution_callback(self) -> None:
            rows.append([self.value(made.code[each]) for each in columns])
            if spent.is_spent():
                self.stop_search()

    solver = made.cp.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    if spent.seconds_left is not None:
        solver.parameters.max_time_in_seconds = max(0.0, spent.seconds_left)
    status = solver.solve(made.model, Collector())
    table = np.array(rows, np.int8).reshape(len(rows), len(columns))
    if status == made.cp.INFEASIBLE:
        return Impossible()
    if status == made.cp.OPTIMAL:
        return Found(table, complete=True)
    reason = Reason.SECONDS if spent.is_spent() else Reason.SOLVER
    return Found(table, False, reason) if rows else Undecided(reason)
