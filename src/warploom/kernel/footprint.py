"""Which cells an access touches, thread by thread, and where two accesses meet.

The index of an access is taken apart into digits, as a number is: with a row length n that is
only known at the launch, row·n + column names the cell (row, column) if 0 <= column < n is shown.
A digit is a part that all threads of a block share, the same for both accesses, and a part over
threads and iterations, which is tried out. Where that does not work, the accesses may meet
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var, substitute, variables
from warploom.index.laws import simplify
from warploom.index.polynomial import Normal, Quotient
from warploom.index.ranges import Ranges
from warploom.index.terms import Polynomial
from warploom.kernel.bounds import Bounds, thread_variables
from warploom.kernel.ir import Load, Shared, Store
from warploom.kernel.pool import offsets
from warploom.kernel.reason import reasoning
from warploom.kernel.scope import Counter, Level, Scopes, Site

MOST_POINTS = 1 << 18
MOST_KEPT = 1 << 20  # cells that are remembered, of accesses that were tried out
POOL = "shared memory"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One load or store, in units that all arrays of its memory share."""

    site: Site
    memory: str
    write: bool
    index: Expr  # the first unit
    units: int
    guards: tuple[Expr, ...]

    @property
    def counters(self) -> tuple[Counter, ...]:
        return self.site.place.counters

    @property
    def array(self) -> str:
        assert isinstance(self.site.stmt, Load | Store)
        return self.site.stmt.array


@dataclass(frozen=True, slots=True)
class Later:
    """The second access comes `iterations` iterations of a loop after the first; None: any
    number."""

    iteration: str
    iterations: int | None


@dataclass(frozen=True, slots=True)
class _Cells:
    """Keys of the cells that an access touches, and the threads that do."""

    keys: Ints
    threads: Ints


@lru_cache(maxsize=4)
def footprints(scopes: Scopes) -> Footprints:
    """The footprints of a kernel's accesses, shared by passes that follow each other."""
    return Footprints(scopes)


class Footprints:
    """The accesses of a kernel to memory that some thread writes."""

    def __init__(self, scopes: Scopes) -> None:
        self.kernel = scopes.kernel
        self.bounds: Bounds = scopes.bounds
        self.reasoning = reasoning(scopes)
        self.normal = Normal(scopes.bounds)
        self.threads = thread_variables(self.kernel)
        self._parameters = {each.name for each in self.kernel.scalars}
        self._shared = {each.name: each for each in self.kernel.body if isinstance(each, Shared)}
        self._places = offsets(list(self._shared.values()))
        self._unit = 0
        for each in self._shared.values():
            self._unit = gcd(self._unit, each.dtype.bytes)
        written = {s.stmt.array for s in scopes.walk() if isinstance(s.stmt, Store)}
        self.written = {self.memory(name) for name in written}
        self._data = scopes.data
        self._ranges = Ranges(self.bounds)
        self._tried: dict[tuple[object, ...], _Cells | None] = {}
        self._kept = 0  # cells in there
        self._met: dict[tuple[Access, Access, Later | None], Level | None] = {}
        self._accesses: dict[int, Access | None] = {}

    def memory(self, array: str) -> str:
        """What an array is a part of; arrays that may be the same have the same memory."""
        if array in self._shared:
            return POOL
        param = next(each for each in self.kernel.arrays if each.name == array)
        return array if param.restrict else f"any {param.dtype!r}"

    def access(self, site: Site) -> Access | None:
        """The access that a statement is, if it is to memory that is written."""
        if id(site) not in self._accesses:
            self._accesses[id(site)] = self._access(site)
        return self._accesses[id(site)]

    def _access(self, site: Site) -> Access | None:
        stmt, place = site.stmt, site.place
        if not isinstance(stmt, Load | Store) or self.memory(stmt.array) not in self.written:
            return None
        index, units = place.expr(stmt.index), stmt.width
        if stmt.array in self._shared:
            each = self._shared[stmt.array].dtype.bytes // self._unit
            index = index * each + self._places[stmt.array] // self._unit
            units *= each
        guards = place.guards
        if stmt.predicate is not None:
            guards = (*guards, place.expr(stmt.predicate))
        write = isinstance(stmt, Store)
        return Access(site, self.memory(stmt.array), write, simplify(index), units, guards)

    def meet(self, first: Access, second: Access, later: Later | None = None) -> Level | None:
        """Whether different threads of a block may touch one cell, one of them writing.

        WARP if only lanes of one warp do, BLOCK if threads of different warps may; None if nobody.
        Without `later` both are in the same iteration of all loops that they share.
        """
        if first.memory != second.memory or not (first.write or second.write):
            return None
        if self.kernel.threads == 1 or self._apart(first, second):
            return None
        key = (first, second, later)
        if key not in self._met:
            self._met[key] = self._meet(first, second, later)
        return self._met[key]

    def _apart(self, first: Access, second: Access) -> bool:
        """Whether their bounds alone say that they never touch one cell, in any iterations."""
        (low, high), (other_low, other_high) = map(self._ranges.of, (first.index, second.index))
        return high + first.units <= other_low or other_high + second.units <= low

    def surely(self, access: Access, outer: int) -> bool:
        """Whether only conditions on threads and iterations, beside the first `outer` guards,
        decide if an access takes place."""
        if self._is_anywhere(access):
            return False
        return all(self._is_finite(guard) for guard in access.guards[outer:])

    def _is_anywhere(self, access: Access) -> bool:
        """Whether data decide which cell it is."""
        return bool(self._data & variables(access.index))

    def covers(self, writes: Sequence[Access], read: Access) -> bool:
        """Whether every cell that a read touches is one that a write does, in the same
        iteration."""
        touched: list[tuple[Ints, Ints]] = []
        if self._is_anywhere(read):
            return False
        for write in (each for each in writes if not self._is_anywhere(each)):
            common = self._common(write, read, None)
            digits = self._digits(write, read, read.index) if common is not None else None
            if common is None or digits is None or len(digits[0]) != 1:
                continue
            matter = {*self._depends_on(write), *self._depends_on(read)}
            shared = {name: 0 for name in common if name in matter}
            made, asked = (
                self._cells(each, digit, shared)
                for each, digit in ((write, digits[0]), (read, digits[1]))
            )
            if made is not None and asked is not None:
                touched.append((made.keys, asked.keys))
        return _all_covered(touched)

    def _meet(self, first: Access, second: Access, later: Later | None) -> Level | None:
        unknown = Level.BLOCK if self.kernel.threads > self.kernel.warp_size else Level.WARP
        if self._is_anywhere(first) or self._is_anywhere(second):
            return unknown
        common = self._common(first, second, later)
        if common is None:
            return unknown
        other, shared = second.index, dict.fromkeys(self._telling(common, first, second), 0)
        if later is not None and later.iterations is not None:
            if self._finite(later.iteration):
                shared[later.iteration] = later.iterations
            else:
                other = substitute(
                    other, {later.iteration: Var(later.iteration) + later.iterations}
                )
        digits = self._digits(first, second, other)
        if digits is None:
            return unknown
        # An iteration on which nothing depends is met in every other: there is no need to try them
        # all.
        matter = {name for each in (first, second) for name in self._depends_on(each)}
        shared = {name: iterations for name, iterations in shared.items() if name in matter}
        cells = self._cells(first, digits[0], dict.fromkeys(shared, 0))
        others = self._cells(second, digits[1], shared)
        if cells is None or others is None:
            return unknown
        return self._compare(cells, others)

    def _depends_on(self, access: Access) -> Iterator[str]:
        yield from variables(access.index)
        for guard in access.guards:
            yield from variables(guard)

    def _common(self, first: Access, second: Access, later: Later | None) -> list[str] | None:
        """Finite iterations that are the same for both; None if an index depends on one that
        differs and is not finite."""
        names = variables(first.index) | variables(second.index)
        iterations = [each.iteration for each in first.counters]
        shared = []
        for place, counter in enumerate(second.counters):
            here = place < len(iterations) and iterations[place] == counter.iteration
            carried = later is not None and later.iteration in iterations[: place + 1]
            if here and not carried:
                shared.append(counter.iteration)
            elif (
                later is not None
                and counter.iteration == later.iteration
                and later.iterations is not None
            ):
                continue  # the shift says how they differ
            elif counter.iteration in names and not self._finite(counter.iteration):
                return None
        free = [each for each in first.counters if each.iteration not in shared]
        if any(
            each.iteration in variables(first.index)
            and not self._finite(each.iteration)
            and not (
                later is not None
                and later.iteration == each.iteration
                and later.iterations is not None
            )
            for each in free
        ):
            return None
        return [name for name in shared if self._finite(name)]

    def _telling(self, common: list[str], first: Access, second: Access) -> list[str]:
        """The common loop counters that decide what the accesses touch: over the others, the two
        overlap in all iterations or in none."""
        names = variables(first.index) | variables(second.index)
        for guard in (*first.guards, *second.guards):
            names |= variables(guard)
        return [each for each in common if each in names]

    def _finite(self, name: str) -> bool:
        """Whether a variable takes few values, the same in every launch."""
        if name in self.threads:
            return True
        low, high = self.bounds.get(name, (0, MOST_POINTS))
        return "#" in name and high - low < MOST_POINTS

    # -- digits

    def _digits(
        self, first: Access, second: Access, other: Expr
    ) -> tuple[list[Polynomial], list[Polynomial]] | None:
        """Both indices as lists of polynomials over threads and iterations, equal shared parts left
        out; the cells are the same exactly if all digits are."""
        # What is shown of the second access is shown of it in its own iteration, not in a later
        # one.
        lists = [[self.normal.of(each)] for each in (first.index, second.index, other)]
        names = sorted(self._scalars(lists[0][0], lists[2][0]))
        while names:
            name = next((each for each in names if self._divides(each, lists, first, second)), None)
            if name is None:
                break
            names.remove(name)
            for each in lists:
                each[:1] = _divided(each[0], self.normal.of(Var(name)))
        pairs = [self._without_shared(a, b) for a, b in zip(lists[0], lists[2], strict=True)]
        if any(pair is None for pair in pairs):
            return None
        return [p[0] for p in pairs if p is not None], [p[1] for p in pairs if p is not None]

    def _divides(
        self, name: str, lists: list[list[Polynomial]], first: Access, second: Access
    ) -> bool:
        """Whether both indices are rows of a length by name, and a place within the row."""
        symbol = self.normal.of(Var(name))
        return all(
            self._is_digit(access, _divided(each[0], symbol)[1], name)
            for access, each in zip((first, second), lists, strict=False)
        )

    def _scalars(self, *polynomials: Polynomial) -> set[str]:
        """Scalar parameters that multiply something that differs between threads or iterations.

        An iteration is no row length, though it may multiply a thread: in a later iteration it is
        another one.
        """
        found = set()
        for polynomial in polynomials:
            for monomial in polynomial.terms:
                nodes = [self.normal.atoms[atom] for atom in monomial]
                plain = {each.name for each in nodes if isinstance(each, Var)}
                scalars = plain & self._parameters
                if scalars and len(monomial) > len(scalars):
                    found |= scalars
        return found

    def _is_digit(self, access: Access, rest: Polynomial, name: str) -> bool:
        """Whether a rest is shown to lie between 0 and a row length, where the access happens."""
        expr = self._expr(rest)
        inside = expr.ge(0).and_((expr + (access.units - 1)).lt(Var(name)))
        return self.reasoning.shows(inside, access.guards)

    def _expr(self, polynomial: Polynomial) -> Expr:
        total: Expr = Const(0)
        for monomial, factor in polynomial.terms.items():
            term: Expr = Const(factor)
            for atom in monomial:
                node = self.normal.atoms[atom]
                if isinstance(node, Quotient):
                    node = self._expr(node.value) // self._expr(node.divisor)
                term = term * node
            total = total + term
        return simplify(total)

    def _without_shared(
        self, left: Polynomial, right: Polynomial
    ) -> tuple[Polynomial, Polynomial] | None:
        """Both without the terms on which all threads agree, if these are the same in both."""
        parts = [self._split(each) for each in (left, right)]
        if parts[0] is None or parts[1] is None or parts[0][0] != parts[1][0]:
            return None
        return parts[0][1], parts[1][1]

    def _split(self, polynomial: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        shared, own = {}, {}
        for monomial, factor in polynomial.terms.items():
            kinds = {self._kind(atom) for atom in monomial}
            if kinds <= {"own"}:
                own[monomial] = factor
            elif kinds == {"shared"}:
                shared[monomial] = factor
            else:
                return None
        return Polynomial(shared), Polynomial(own)

    def _kind(self, atom: int) -> str:
        """`own`: over threads and finite iterations; `shared`: the same for all threads; or
        `mixed`."""
        finite = {self._finite(name) for name in self._names(atom)}
        return "own" if finite == {True} else "shared" if finite == {False} else "mixed"

    def _names(self, atom: int) -> Iterator[str]:
        node = self.normal.atoms[atom]
        if isinstance(node, Quotient):
            for part in (node.value, node.divisor):
                for inner in part.atoms():
                    yield from self._names(inner)
        else:
            yield from variables(node)

    # -- cells, tried out

    def _cells(
        self, access: Access, digits: Sequence[Polynomial], shared: Mapping[str, int]
    ) -> _Cells | None:
        """Every cell by its digits and the iterations that both accesses share, with its threads.

        `shared` gives how many iterations to take off, so that equal keys are iterations that meet.
        """
        guards = tuple([each for each in access.guards if self._is_finite(each)])
        key = (guards, tuple(digits), tuple(shared.items()), access.units)
        if key not in self._tried:
            found = self._cells_of(guards, digits, shared, access.units)
            self._kept += 0 if found is None else len(found.keys)
            if self._kept > MOST_KEPT:
                self._tried, self._kept = {}, 0
            self._tried[key] = found
        return self._tried[key]

    def _cells_of(
        self,
        guards: Sequence[Expr],
        digits: Sequence[Polynomial],
        shared: Mapping[str, int],
        units: int,
    ) -> _Cells | None:
        names = {name for each in guards for name in variables(each)} | set(shared)
        names |= {name for digit in digits for atom in digit.atoms() for name in self._names(atom)}
        iterations = sorted(name for name in names if name not in self.threads)
        sizes = [self.bounds[name][1] + 1 for name in iterations]
        if np.prod([float(each) for each in sizes]) * self.kernel.threads > MOST_POINTS:
            return None
        axes = np.ix_(np.arange(self.kernel.threads), *[np.arange(each) for each in sizes])
        env: dict[str, Any] = {name: each[axes[0]] for name, each in self.threads.items()}
        env |= dict(zip(iterations, axes[1:], strict=True))
        shape = (self.kernel.threads, *sizes)
        try:
            columns = [np.broadcast_to(self._value(each, env), shape) for each in digits]
            used = np.ones(shape, dtype=bool)
            for guard in guards:
                used &= np.asarray(evaluate(guard, env)) != 0
        except CheckError:
            return None
        columns += [np.broadcast_to(env[name] - off, shape) for name, off in shared.items()]
        rows = np.stack([each[used] for each in columns], axis=1)
        threads = np.broadcast_to(axes[0], shape)[used]
        return _Cells(*_widened(rows, threads, len(digits) - 1, units))

    def _is_finite(self, guard: Expr) -> bool:
        names = variables(guard)
        return bool(names) and all(self._finite(name) for name in names)

    def _value(self, polynomial: Polynomial, env: Mapping[str, Any]) -> Any:
        total: Any = np.int64(0)
        for monomial, factor in polynomial.terms.items():
            term: Any = np.int64(factor)
            for atom in monomial:
                term = term * self._atom_value(atom, env)
            total = total + term
        return total

    def _atom_value(self, atom: int, env: Mapping[str, Any]) -> Any:
        node = self.normal.atoms[atom]
        if isinstance(node, Quotient):
            return self._value(node.value, env) // self._value(node.divisor, env)
        return evaluate(node, env)

    def _compare(self, first: _Cells, second: _Cells) -> Level | None:
        """Who meets in a cell that both touch."""
        if not len(first.keys) or not len(second.keys):
            return None
        codes = _codes(np.concatenate([first.keys, second.keys]))
        ids = codes[: len(first.keys)], codes[len(first.keys) :]
        width = self.kernel.warp_size
        if _strangers(ids, (first.threads // width, second.threads // width)):
            return Level.BLOCK
        return Level.WARP if _strangers(ids, (first.threads, second.threads)) else None


def _all_covered(pairs: Sequence[tuple[Ints, Ints]]) -> bool:
    """Whether every row of what is asked, the same in all pairs, is made in one of them."""
    if not pairs:
        return False
    missing = np.ones(len(pairs[0][1]), dtype=bool)
    for made, asked in pairs:
        if asked.shape != pairs[0][1].shape:
            continue
        codes = _codes(np.concatenate([made, asked])) if len(made) else np.arange(len(asked))
        missing &= ~np.isin(codes[len(made) :], codes[: len(made)])
    return not missing.any()


def _divided(polynomial: Polynomial, symbol: Polynomial) -> tuple[Polynomial, Polynomial]:
    """How often a polynomial contains an atom, and the rest."""
    (monomial,) = symbol.terms
    whole = polynomial.quotient(monomial)
    return whole, polynomial - whole * symbol


def _codes(rows: Ints) -> Ints:
    """A small number for each row; equal rows have equal numbers."""
    low = rows.min(axis=0)
    sizes = rows.max(axis=0) - low + 1
    many = float(np.prod(sizes.astype(float)))
    if many < 2.0**62:
        code = np.zeros(len(rows), dtype=np.int64)
        for column, size in enumerate(sizes):
            code = code * size + (rows[:, column] - low[column])
        if many <= MOST_POINTS:  # small enough as they are
            return code
        return np.unique(code, return_inverse=True)[1].reshape(-1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _strangers(ids: tuple[Ints, Ints], groups: tuple[Ints, Ints]) -> bool:
    """Whether members of different groups touch one cell, one by each access."""
    count = int(max(ids[0].max(), ids[1].max())) + 1
    lows, highs = [], []
    for each, members in zip(ids, groups, strict=True):
        low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
        np.minimum.at(low, each, members)
        np.maximum.at(high, each, members)
        lows.append(low)
        highs.append(high)
    touched = (highs[0] >= 0) & (highs[1] >= 0)
    apart = (lows[0] != highs[1]) | (highs[0] != lows[1])
    return bool((touched & apart).any())


def _widened(rows: Ints, threads: Ints, column: int, units: int) -> tuple[Ints, Ints]:
    """The cells of accesses of several units, of which `rows` has the first."""
    if units == 1:
        return rows, threads
    parts = []
    for offset in range(units):
        part = rows.copy()
        part[:, column] += offset
        parts.append(part)
    return np.concatenate(parts), np.tile(threads, units)
