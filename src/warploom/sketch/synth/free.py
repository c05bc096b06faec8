"""Swizzles whose constants are left free: a program and ranges come in, constants that work go out.

`FreeSwizzle` stands for the gathers that replace x[out] by
`(cf·i + i//df + cr·k + k//dr + c) mod n`, with i = x[main], k = x[second] and every constant free
in a range: for n = 32 over thirty million maps, too many to list. The solver gets the formula as
bit vectors instead. What it finds is put into the program as an ordinary step and verified there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.sketch.holes import custom
from warploom.sketch.holes.common import coordinates, read
from warploom.sketch.holes.expressions import coordinate, quotient, replaced, total
from warploom.sketch.synth.bounds import Bounds, edges_of, solve_bounds
from warploom.sketch.synth.problem import Move, Problem, lower
from warploom.sketch.synth.smt import Control, Encoding, Model, Reads, encode, load_z3
from warploom.sketch.term.ir import Apply, GatherSet, Program, Shape, Table
from warploom.sketch.term.verify import Verification, verify

NONE = range(1)
LARGEST_MODULUS = 4096
LONGEST_RANGE = 1 << 20


class Constants(NamedTuple):
    """One swizzle; a step `df` or `dr` of 0 leaves its quotient out."""

    cf: int
    cr: int
    c: int
    df: int = 0
    dr: int = 0


@dataclass(frozen=True, slots=True)
class FreeSwizzle:
    """What may be chosen: axes and modulus are given, each constant lies in a range.

    The modulus is the argument's length along `out`, and `cf`, `cr`, `c` range over all its
    remainders, unless something else is given.
    """

    main: int
    second: int
    out: int
    cf: range | None = None
    cr: range | None = None
    c: range | None = None
    df: range = NONE
    dr: range = NONE
    modulus: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FreeFill:
    """`program` has the swizzles put in; `choices` fills the holes that were listed."""

    program: Program
    choices: dict[int, int]
    constants: dict[str, Constants]
    verification: Verification


def fill_free(
    program: Program,
    swizzles: Mapping[str, FreeSwizzle],
    goal: int = 0,
    *,
    budget: Budget | None = None,
) -> Found[FreeFill] | Impossible | Undecided:
    """One fill in which each step named in `swizzles` becomes such a swizzle.

    What the step does in `program` (`identity`, say) is forgotten, other holes are filled as usual.
    Constants are taken as simple as easily found: without a step, then 0, then 1.
    """
    limits = budget or Budget()
    forms = {_find(program, name): _form(program, name, s) for name, s in swizzles.items()}
    opened = _with_gathers(program, {p: form.any_coordinate() for p, form in forms.items()})
    problem = lower(opened, program.goals[goal])
    live = {p: form for p, form in forms.items() if p in problem.steps}
    try:
        encoding, controls = encode(
            problem, _forward(problem), limits, {p: form.reads for p, form in live.items()}
        )
        encoding.solver.add(*(clause for form in live.values() for clause in form.clauses()))
        model = encoding.model()
        if model is None:
            return Impossible()
    except BudgetSpentError as spent:
        return Undecided(spent.reason)
    except KeyboardInterrupt:
        return Undecided(Reason.INTERRUPTED)
    model = _simplest(encoding, list(live.values()), model)
    found = {p: form.constants(model if p in live else None) for p, form in forms.items()}
    return Found(_instance(program, goal, forms, found, controls, model), complete=False)


def _instance(
    program: Program,
    goal: int,
    forms: Mapping[int, Form],
    found: Mapping[int, Constants],
    controls: Mapping[int, Control],
    model: Model,
) -> FreeFill:
    """The program with the constants in place, proved."""
    filled = _with_gathers(program, {p: form.gather(found[p]) for p, form in forms.items()})
    choices = {h: controls[h].choice(model) if h in controls else 0 for h in filled.holes}
    proof = verify(filled, filled.goals[goal], choices)
    return FreeFill(filled, choices, {program.steps[p].name: found[p] for p in forms}, proof)


def _simplest(encoding: Encoding, forms: list[Form], model: Model) -> Model:
    """Tries 0 and 1 for one constant after another, as long as the budget lasts."""
    try:
        for name in ("df", "dr", "c", "cr", "cf"):
            for form in forms:
                for value in (0, 1):
                    encoding.solver.push()
                    encoding.solver.add(form.equals(name, value))
                    better = encoding.model()
                    if better is not None:
                        model = better
                        break
                    encoding.solver.pop()
    except (BudgetSpentError, KeyboardInterrupt):
        pass  # what was found is still right
    return model


def _forward(problem: Problem) -> Bounds:
    """What cells may hold in any fill. Cells choose what they read one by one, so the rule that
    drops a choice wherever one cell cannot use it would be wrong: nothing is asked of the goal."""
    everything = problem.domain.all_bits()
    start = Bounds()
    for position, step in problem.steps.items():
        start.allowed[position] = np.tile(everything, (problem.cells_of(position), 1))
        if isinstance(step, Move):
            start.inner_allowed[position] = np.tile(everything, (step.cells, 1))
            start.alive[position] = np.arange(len(step.tables))
            start.edges[position] = edges_of(step, start.alive[position])
    return solve_bounds(problem, start)


# -- one swizzle -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Form:
    """A free swizzle on given shapes: its formula for numbers, for the solver and for people."""

    name: str
    gathers: GatherSet  # what the step had before: its shapes
    axes: tuple[int, int, int]
    modulus: int
    ranges: dict[str, range]

    @property
    def in_shape(self) -> Shape:
        return self.gathers.arg_shapes[0]

    @property
    def out_shape(self) -> Shape:
        return self.gathers.out_shape

    def any_coordinate(self) -> GatherSet:
        """Gather j reads coordinate j for every cell: what a cell may read, whatever the others."""
        tables = np.concatenate([self._table(np.array(j)) for j in range(self.modulus)])
        names = [str(j) for j in range(self.modulus)]
        return custom(self.name, self.gathers.arg_shapes, self.out_shape, names, tables)

    def gather(self, constants: Constants) -> GatherSet:
        """The set that holds just this swizzle."""
        text = ",".join(f"{k}={v}" for k, v in constants._asdict().items() if v)
        values = self.values(constants)
        made = custom(
            self.name, self.gathers.arg_shapes, self.out_shape, [f"free[{text}]"], self._table(values)
        )
        value = self._expression(constants)
        shown = replaced(self.in_shape, self.out_shape, self.axes[2], value, beyond=False)
        return replace(made, expression=lambda _: shown)

    def values(self, constants: Constants) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The new coordinate of every cell; broadcasts to the shape."""
        cf, cr, c, df, dr = constants
        at = coordinates(self.out_shape)
        i, k = at[self.axes[0]], at[self.axes[1]]
        steps = (i // df if df else 0) + (k // dr if dr else 0)
        new: np.ndarray[Any, np.dtype[np.int64]] = (cf * i + cr * k + c + steps) % self.modulus
        return new

    def _expression(self, constants: Constants) -> Expr:
        cf, cr, c, df, dr = constants
        main, second, _ = self.axes
        n = self.modulus
        i, k = coordinate(main), coordinate(second)
        terms = [(cf % n, i), (cr % n, k)]
        terms += [(1, quotient(i, df, self.out_shape[main]))] if df else []
        terms += [(1, quotient(k, dr, self.out_shape[second]))] if dr else []
        body = total(terms, c % n)
        plain = self.out_shape[main] <= n and body == i
        return body if plain else body % n

    def _table(self, values: np.ndarray[Any, Any]) -> Table:
        source = list(coordinates(self.out_shape))
        source[self.axes[2]] = values
        return read(self.in_shape, source, self.out_shape)

    # -- for the solver ------------------------------------------------------------------------

    def __post_init__(self) -> None:
        z3 = load_z3()
        longest = max(len(r) for r in self.ranges.values())
        # Products of two numbers below these, and a few more below the modulus, must fit.
        width = ((longest + 4) * self.modulus).bit_length()
        bits = {k: z3.BitVec(f"{self.name}.{k}", width) for k in self.ranges}
        main, second = (range(self.out_shape[axis]) for axis in self.axes[:2])
        cells: dict[tuple[int, int], Any] = {}
        object.__setattr__(self, "_solver", (z3, bits, cells))
        fans = [self._remainder([("cf", i)], ("df", i)) for i in main]
        turns = [self._remainder([("cr", k), ("c", 1)], ("dr", k)) for k in second]
        object.__setattr__(self, "_parts", (fans, turns))
