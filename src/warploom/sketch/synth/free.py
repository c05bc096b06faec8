"""Swizzles whose constants are left free: a program and ranges come in, constants that work go out.

`FreeSwizzle` stands for the gathers that replace x[out] by
`(cf·i + i//df + cr·k + k//dr + c) mod n`, with i = x[main], k = x[second] and every constant free
in a range: for n = 32 over thirty million maps, too many to list. The solver gets the formula as
bit vectors instead. What it finds is a row of the one form of swizzles (`holes/swizzle.py`); it is
put into the program as an ordinary step and verified there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.index.smt import load_z3
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.sketch.holes import custom
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.moving import Moving, gather_set
from warploom.sketch.holes.swizzle import FAN, MODULUS, NO_WRAP, RATE, SHIFT, SLOW, STEP, Swizzles
from warploom.sketch.synth.bounds import Bounds, no_bounds, solve_bounds
from warploom.sketch.synth.problem import Problem, lower
from warploom.sketch.synth.smt import Clauses, Encoding, Model, Reads, Solver
from warploom.sketch.term.gather import GatherSet, Setting, Shape, moves, size
from warploom.sketch.term.ir import Apply, Program
from warploom.sketch.term.verify import Verification, verify

NONE = range(1)
LARGEST_MODULUS = 4096
LONGEST_RANGE = 1 << 12
MOST_READS = 1 << 22  # cells times what each may read


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
    load_z3()  # if it is missing, say so before any work
    limits = budget or Budget()
    forms = {_find(program, name): _opening(program, name, s) for name, s in swizzles.items()}
    opened = _with_gathers(program, {p: form.any_coordinate() for p, form in forms.items()})
    problem = lower(opened, program.goals[goal])
    encoding = Encoding(problem, _forward(problem), limits)
    unknowns = {p: Unknowns(encoding.clauses, p, form) for p, form in forms.items()}
    encoding.reads |= {p: unknown.reads for p, unknown in unknowns.items()}
    try:
        encoding.build()
        solver = Solver(encoding.clauses, limits)
        model = solver.model()
    except BudgetSpentError as spent:
        return Undecided(spent.reason)
    except KeyboardInterrupt:
        return Undecided(Reason.INTERRUPTED)
    if model is None:
        return Impossible()
    model = _simplest(solver, list(unknowns.values()), model)
    found = {p: unknown.constants(solver, model) for p, unknown in unknowns.items()}
    filled = _with_gathers(program, {p: forms[p].gather(found[p]) for p in forms})
    choices = dict.fromkeys(filled.holes, 0) | solver.choices(model, encoding.controls)
    proof = verify(filled, filled.goals[goal], choices)
    constants = {program.steps[p].name: found[p] for p in forms}
    return Found(FreeFill(filled, choices, constants, proof), complete=False)


def _simplest(solver: Solver, unknowns: list[Unknowns], model: Model) -> Model:
    """Tries 0 and 1 for one constant after another, as long as the budget lasts."""
    asked = [
        (constant, unknown, value)
        for constant in ("df", "dr", "c", "cr", "cf")
        for unknown in unknowns
        for value in (0, 1)
        if value in unknown.form.ranges[constant]
    ]
    settled: set[tuple[str, Unknowns]] = set()
    try:
        for constant, unknown, value in asked:
            if (constant, unknown) in settled:
                continue
            solver.core.push()
            unknown.assume(solver, constant, value)
            better = solver.model()
            if better is None:
                solver.core.pop()
            else:
                model = better
                settled.add((constant, unknown))
    except (BudgetSpentError, KeyboardInterrupt):
        pass  # what was found before is as right
    return model


def _forward(problem: Problem) -> Bounds:
    """What cells may hold in any fill. Cells choose what they read one by one, so the rule that
    drops a choice wherever one cell cannot use it would be wrong: nothing is asked of the goal."""
    return solve_bounds(problem, no_bounds(problem))


# -- one swizzle -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FreeSwizzles(Moving):
    """Swizzles of one modulus, with constants that no published set lists."""

    name = "free"

    functions: Swizzles

    def text(self, row: Setting) -> str:
        """The constants but those that are 0; a step is one only where it divides anything."""
        fan, step, rate, slow, shift = (int(row[c]) for c in (FAN, STEP, RATE, SLOW, SHIFT))
        df = step if step < self.functions.extents[self.functions.main] else 0
        dr = slow if slow < self.functions.turns else 0
        named = {"cf": fan, "cr": rate, "c": shift, "df": df, "dr": dr}
        return f"free[{','.join(f'{k}={v}' for k, v in named.items() if v)}]"

    def value(self, row: Setting) -> Expr:
        plain = row.copy()
        plain[[FAN, RATE, SHIFT]] %= row[MODULUS]
        return Moving.value(self, plain)


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """A free swizzle on the shapes of its step."""

    name: str
    family: FreeSwizzles
    modulus: int
    ranges: dict[str, range]

    @property
    def axes(self) -> tuple[int, int]:
        functions = self.family.functions
        assert functions.second is not None
        return functions.main, functions.second

    @property
    def out_shape(self) -> Shape:
        return self.family.call.out_shape

    def any_coordinate(self) -> GatherSet:
        """Gather j reads coordinate j for every cell: what a cell may read, whatever the others."""
        call = self.family.call
        each = np.arange(self.modulus)[:, None]
        reads = moves(call.in_shape, call.out_shape, self.family.axis, (), each)
        names = [str(j) for j in range(self.modulus)]
        return custom(self.name, call.arg_shapes, call.out_shape, names, reads.full())

    def gather(self, constants: Constants) -> GatherSet:
        """The set that holds just this swizzle."""
        return gather_set(self.family.call, self.family, self.row(constants)[None])

    def row(self, constants: Constants) -> Setting:
        cf, cr, c, df, dr = constants
        n, (main, second) = self.modulus, self.axes
        whole = max(n, self.out_shape[main])
        turns = self.out_shape[second]
        return np.array([whole, n, cf, df or whole, cr, dr or turns, c, NO_WRAP])


class Unknowns:
    """The constants of one swizzle as bit vectors: each counts the steps into its range."""

    def __init__(self, clauses: Clauses, position: int, form: Opening) -> None:
        self.form = form
        self._clauses = clauses
        self._prefix = f"free.{position}"
        longest = max(len(r) for r in form.ranges.values())
        # Two products of a count and a remainder, a quotient and a start must fit.
        self.width = (2 * (longest + 1) * form.modulus).bit_length()
        self.names = {k: f"{self._prefix}.{k}" for k in form.ranges}
        for constant, name in self.names.items():
            clauses.declare(name, self._kind)
            clauses.require(f"(bvult {name} {self._number(len(form.ranges[constant]))})")
        main, second = (form.out_shape[axis] for axis in form.axes)
        self._fans = [self._residue(f"fan.{i}", {"cf": i}, ("df", i)) for i in range(main)]
        self._turns = [
            self._residue(f"turn.{k}", {"cr": k, "c": 1}, ("dr", k)) for k in range(second)
        ]
        self._tables = form.any_coordinate().tables
        self._at = np.indices(form.out_shape).reshape(len(form.out_shape), -1)
        self._coordinates: dict[tuple[int, int], str] = {}

    def reads(self, cell: int) -> Reads:
        """Every coordinate along `out`, with the literal that the formula gives it."""
        i, k = (int(self._at[axis, cell]) for axis in self.form.axes)
        if (i, k) not in self._coordinates:
            both = self._define(f"both.{i}.{k}", f"(bvadd {self._fans[i]} {self._turns[k]})")
            n = self._number(self.form.modulus)
            wrapped = f"(ite (bvuge {both} {n}) (bvsub {both} {n}) {both})"
            self._coordinates[i, k] = self._define(f"new.{i}.{k}", wrapped)
        new = self._coordinates[i, k]
        places = self._tables[:, cell].tolist()
        return [(place, f"(= {new} {self._number(j)})") for j, place in enumerate(places)]

    def _residue(self, name: str, factors: dict[str, int], divided: tuple[str, int]) -> str:
        """The sum of constants times known factors, and of a quotient, modulo n."""
        n, ranges = self.form.modulus, self.form.ranges
        start = sum(ranges[k].start * factor for k, factor in factors.items())
        terms = [self._number(start % n)]
        for k, factor in factors.items():
            terms.append(f"(bvmul {self.names[k]} {self._number(ranges[k].step * factor % n)})")
        step_name, number = divided
        quotient_of = self._number(0)
        for at, step in enumerate(ranges[step_name]):
            if step and number // step % n:
                taken = f"(= {self.names[step_name]} {self._number(at)})"
                quotient_of = f"(ite {taken} {self._number(number // step % n)} {quotient_of})"
        body = f"(bvadd {' '.join([*terms, quotient_of])})"
        return self._define(name, f"(bvurem {body} {self._number(n)})")

    @property
    def _kind(self) -> str:
        return f"(_ BitVec {self.width})"

    def _number(self, value: int) -> str:
        return f"(_ bv{value} {self.width})"

    def _define(self, name: str, body: str) -> str:
        return self._clauses.define(f"{self._prefix}.{name}", body, self._kind)

    # -- models --------------------------------------------------------------------------------

    def constants(self, solver: Solver, model: Model) -> Constants:
        counts = {k: model.eval(self._bits(solver, k), True).as_long() for k in self.names}
        return Constants(**{k: self.form.ranges[k][count] for k, count in counts.items()})

    def assume(self, solver: Solver, constant: str, value: int) -> None:
        at = self.form.ranges[constant].index(value)
        solver.core.add(self._bits(solver, constant) == at)

    def _bits(self, solver: Solver, constant: str) -> Any:
        return solver.z3.BitVec(self.names[constant], self.width)


# -- names and shapes --------------------------------------------------------------------------


def _find(program: Program, name: str) -> int:
    for position, step in enumerate(program.steps):
        if step.name == name and isinstance(step, Apply):
            return position
    raise CheckError(f"the sketch has no step '{name[:80]}'", advice="name a step, not an input")


def _opening(program: Program, name: str, swizzle: FreeSwizzle) -> Opening:
    """The swizzle on the shapes of its step, checked."""
    step = program.steps[_find(program, name)]
    assert isinstance(step, Apply)
    axes = (swizzle.main, swizzle.second, swizzle.out)
    arguments, out = step.gathers.arg_shapes, step.gathers.out_shape
    if len(arguments) != 1 or len(arguments[0]) != len(out):
        raise CheckError(f"'{name}' must read one argument with as many axes as its result")
    if not all(0 <= axis < len(out) for axis in axes):
        raise CheckError(f"'{name}' has the axes 0 to {len(out) - 1}, not {axes}")
    if any(a != b for n, (a, b) in enumerate(zip(arguments[0], out, strict=True)) if n != axes[2]):
        raise CheckError(f"'{name}' and its argument must agree but for axis {axes[2]}")
    length = arguments[0][axes[2]]
    n = length if swizzle.modulus is None else swizzle.modulus
    if not 1 <= n <= min(length, LARGEST_MODULUS):
        raise CheckError(f"'{name}': the modulus is 1 to {min(length, LARGEST_MODULUS)}, not {n}")
    if n * size(out) > MOST_READS:
        raise CheckError(f"'{name}': {size(out)} cells that may each read {n} places are too many")
    asked = {k: getattr(swizzle, k) for k in Constants._fields}
    ranges = {k: range(n) if r is None else r for k, r in asked.items()}
    for constant, values in ranges.items():
        if not 1 <= len(values) <= LONGEST_RANGE:
            raise CheckError(f"'{name}': {constant} needs 1 to {LONGEST_RANGE} values")
    if any(min(r[0], r[-1]) < 0 for r in (swizzle.df, swizzle.dr)):
        raise CheckError(f"'{name}': the steps df and dr are 0 or more")
    call = Call(name, {}, arguments, out)
    family = FreeSwizzles(call, Swizzles(n, out, axes[0], axes[1]), axes[2])
    return Opening(name, family, n, ranges)


def _with_gathers(program: Program, gathers: Mapping[int, GatherSet]) -> Program:
    steps = list(program.steps)
    for position, made in gathers.items():
        step = steps[position]
        assert isinstance(step, Apply)
        steps[position] = replace(step, gathers=made)
    return replace(program, steps=tuple(steps))
