"""Which hole stands in the way: one that, were it any gather at all, would let a fill exist.

A *free* gather lets every cell read any cell of the arguments, or zero, whatever the others read.
All of them are far too many to list, so the SMT encoding (`synth/smt.py`) reads them cell by cell;
what it finds is put into the program as a table and verified there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from warploom.errors import CheckError, SearchError, UnsupportedError
from warploom.index.smt import load_z3
from warploom.search.budget import Budget, BudgetSpentError
from warploom.sketch.explain.core import part_of
from warploom.sketch.explain.witness import witness
from warploom.sketch.holes import custom
from warploom.sketch.synth.bounds import no_bounds, solve_bounds
from warploom.sketch.synth.free import with_gathers
from warploom.sketch.synth.problem import Move, Problem, lower
from warploom.sketch.synth.smt import Clauses, Encoding, Reads, Solver, any_of
from warploom.sketch.term.gather import ZERO, GatherSet
from warploom.sketch.term.ir import Apply, Program, size
from warploom.sketch.term.read import live_steps
from warploom.sketch.term.verify import verify

_TRUE = re.compile(r"\(define-fun (\S+) \(\) Bool\s+true\)")

MOST_READS = 1 << 22  # cells of a hole times what each may read

Kind = Literal["one", "several", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class Blame:
    """`one`: each of `holes` (positions) would do on its own if it were free. `several`: none
    would, but all of `holes` together. `none`: not even all holes together. `unknown`: see `note`.

    With `every`, each hole was asked: no other hole would do on its own.
    """

    kind: Kind
    holes: tuple[int, ...] = ()
    every: bool = True
    note: str = ""


def find_blame(program: Program, budget: Budget) -> Blame:
    """The holes that are to blame for an impossible program with one goal."""
    live = live_steps(program)
    holes = [hole for hole in program.holes if hole in live]
    answers: dict[int, bool | None] = {}
    for hole in holes:
        # One hole may take half of what is left, so that others are asked, too.
        answers[hole] = _would_do(program, hole, part_of(budget, 0.5))
    alone = tuple(hole for hole, answer in answers.items() if answer)
    every = None not in answers.values()
    if alone:
        return Blame("one", alone, every)
    if not every:
        return Blame("unknown", note=_not_found())
    return _together(program, holes, budget)


def _not_found() -> str:
    try:
        load_z3()
    except UnsupportedError as missing:
        return f"which hole blocks it was not found: {missing.message}"
    return "which hole blocks it was not found"


def _would_do(program: Program, hole: int, budget: Budget) -> bool | None:
    """Whether there is a fill if this hole were free: first tried, then decided."""
    try:
        if witness(program, hole, budget) is not None:
            return True
    except BudgetSpentError:
        return None
    return _is_possible(program, {hole}, budget)


def _together(program: Program, holes: list[int], budget: Budget) -> Blame:
    """No hole would do on its own: some of them, or none at all."""
    answer = _is_possible(program, set(holes), budget) if len(holes) > 1 else False
    if not answer:
        note = "" if answer is False else "whether several holes would do was not found in time"
        return Blame("none" if answer is False else "unknown", note=note)
    needed = set(holes)
    for hole in holes:
        if len(needed) > 2 and _is_possible(program, needed - {hole}, budget):
            needed.discard(hole)
    return Blame("several", tuple(sorted(needed)))


def _is_possible(program: Program, holes: Collection[int], budget: Budget) -> bool | None:
    """Whether there is a fill if these holes were free; None: not known."""
    for with_zero, gathers in _freed(program, holes):
        try:
            problem = lower(with_gathers(program, gathers), program.goals[0])
        except CheckError:
            continue  # not every gather is allowed there: a zero would be two numbers
        except SearchError:
            return None
        answer = _answer(program, problem, gathers, budget)
        return answer if answer or with_zero else None
    return None


def _answer(
    program: Program, problem: Problem, gathers: dict[int, GatherSet], budget: Budget
) -> bool | None:
    moves = [step for step in problem.steps.values() if isinstance(step, Move)]
    if any(move.passed is not None for move in moves):
        return None  # bags that are passed on have no clauses
    try:
        load_z3()
        budget.check()
        # Cells choose one by one what they read, so nothing may be asked of the goal here.
        bounds = solve_bounds(problem, no_bounds(problem))
        encoding = Encoding(problem, bounds, budget)
        free = {p: _Free(encoding.clauses, p, problem, gathers[p]) for p in gathers}
        encoding.reads |= {p: each.reads for p, each in free.items()}
        encoding.build()
        solver = Solver(encoding.clauses, budget)
        model = solver.model()
    except (BudgetSpentError, UnsupportedError):
        return None
    if model is None:
        return False
    # As text: asking Z3 for one literal after another takes longer than solving.
    true = frozenset(_TRUE.findall(model.sexpr()))
    tables = {p: each.gather(true) for p, each in free.items()}
    filled = with_gathers(program, tables)
    choices = dict.fromkeys(filled.holes, 0) | solver.choices(model, encoding.controls)
    # What is said of a hole is proved: the table that would do is put in its place.
    return True if verify(filled, filled.goals[0], choices) else None


def _freed(program: Program, holes: Collection[int]) -> Iterator[tuple[bool, dict[int, GatherSet]]]:
    """The holes as sets of which gather j reads place j everywhere: with zero, then without."""
    for zero in (True, False):
        made: dict[int, GatherSet] = {}
        for hole in holes:
            step = program.steps[hole]
            assert isinstance(step, Apply)
            places = sum(map(size, step.gathers.arg_shapes))
            cells = size(step.gathers.out_shape)
            if (places + 1) * cells > MOST_READS:
                return
            rows = np.arange(places, dtype=np.int32).tolist() + [ZERO] * zero
            tables = np.repeat(np.array(rows, np.int32)[:, None], cells, axis=1)
            names = [str(row) for row in rows]
            made[hole] = custom(
                step.name, step.gathers.arg_shapes, step.gathers.out_shape, names, tables
            )
        yield zero, made


class _Free:
    """A free gather in the clauses: for each value, one literal for each place it may be read from.

    Under the laws a value has several cells (`synth/bags.py`), which are read together.
    """

    def __init__(
        self, clauses: Clauses, position: int, problem: Problem, gathers: GatherSet
    ) -> None:
        move = problem.steps[position]
        assert isinstance(move, Move)
        self._clauses, self._prefix, self._gathers = clauses, f"free.{position}", gathers
        self._tables = move.tables
        self._wide = move.cells // size(gathers.out_shape)
        self._literals: dict[int, list[str]] = {}

    def reads(self, cell: int) -> Reads:
        value = cell // self._wide
        if value not in self._literals:
            names = [f"{self._prefix}.{value}.{row}" for row in range(len(self._tables))]
            made = [self._clauses.declare(name) for name in names]
            self._clauses.require(any_of(made))
            self._clauses.require(f"((_ at-most 1) {' '.join(made)})")
            self._literals[value] = made
        return list(zip(self._tables[:, cell].tolist(), self._literals[value], strict=True))

    def gather(self, true: frozenset[str]) -> GatherSet:
        """The one gather that a model means; what nobody asks for reads the first place."""
        own = self._gathers
        table = own.tables[0].copy()
        for value, literals in self._literals.items():
            row = next(n for n, name in enumerate(literals) if name in true)
            table[value] = own.tables[row, value]
        return custom(own.function, own.arg_shapes, own.out_shape, ("free",), table[None])
