"""Where each statement of a kernel stands: what its names mean there, and what holds.

In comes a kernel; out go its statements in program order, each with a `Place`. Names for
expressions are put in, loop counters get names of their own, and the coordinates of a thread are
written with as few variables as say it all, so that two expressions over a place can be compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import count

import numpy as np

from warploom.errors import CheckError
from warploom.index.evaluate import Value as Numbers
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var, fold_up, substitute, variables
from warploom.index.ranges import Ranges
from warploom.kernel.bounds import Bounds, index_limits, static_bounds, thread_variables
from warploom.kernel.ir import For, If, Kernel, Let, Named, PingPong, Ring, Stmt
from warploom.kernel.warpgroup import GROUP


class Level(IntEnum):
    """Who is sure to agree on a value."""

    BLOCK = 0
    WARP = 1
    NOBODY = 2


@dataclass(frozen=True, slots=True)
class Counter:
    """A loop that a statement is inside of: its counter is `start + step·iteration`.

    `iteration` is a variable of its own; `iterations` how many there are, where that is a constant.
    """

    loop: For
    iteration: str
    start: Expr
    stop: Expr
    iterations: int | None
    level: Level

    @property
    def value(self) -> Expr:
        turned: Expr = Var(self.iteration)
        if self.loop.step != 1:
            turned = turned * self.loop.step
        return turned if self.start is Const(0) else self.start + turned

    @property
    def condition(self) -> Expr | None:
        """What is known of the counter inside the loop, besides the bounds of its iteration."""
        return None if self.iterations is not None else self.value.lt(self.stop)


@dataclass(frozen=True, slots=True)
class Place:
    """`guards` are the conditions that hold here, over the variables that `names` ends in."""

    names: Mapping[str, Expr]
    guards: tuple[Expr, ...] = ()
    counters: tuple[Counter, ...] = ()
    level: Level = Level.BLOCK
    _seen: dict[Expr, Expr] = field(default_factory=dict, compare=False)

    def expr(self, expr: Expr) -> Expr:
        """An expression of the kernel with all names put in."""
        if expr not in self._seen:
            self._seen[expr] = substitute(expr, self.names)
        return self._seen[expr]

    @property
    def unrolled(self) -> frozenset[str]:
        """The iterations that are constants once loops are unrolled."""
        return frozenset(
            each.iteration
            for each in self.counters
            if each.loop.unroll and each.iterations is not None
        )


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A statement at its place, with the sites of the bodies inside it."""

    stmt: Stmt
    place: Place
    bodies: tuple[tuple[Site, ...], ...] = ()

    def walk(self) -> Iterator[Site]:
        """The site and all inside it, in program order."""
        yield self
        for body in self.bodies:
            for site in body:
                yield from site.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Scopes:
    """A kernel's statements at their places, and the bounds of all variables in them."""

    kernel: Kernel
    body: tuple[Site, ...]
    bounds: Bounds
    data: frozenset[str] = frozenset()  # variables that stand for what data decide

    def walk(self) -> Iterator[Site]:
        for site in self.body:
            yield from site.walk()


# Of the kernels that passes are at work on: each asks for what the one before it has worked out.
_RECENT: deque[Scopes] = deque(maxlen=4)


def scopes(kernel: Kernel) -> Scopes:
    """The scopes of a kernel, worked out once for passes that follow each other."""
    for known in tuple(_RECENT):
        if known.kernel is kernel:
            return known
    known = _Walk(kernel).scopes()
    _RECENT.append(known)
    return known


def thread_names(kernel: Kernel) -> dict[str, Expr]:
    """The coordinates of a thread over a few of them: lane and warp, or x, y and z."""
    lane, warp, width = Var("lane"), Var("warp"), kernel.warp_size
    x, y, z = kernel.block
    if y == z == 1:
        thread = warp * width + lane if x > width else lane
        return {
            "thread": thread, "thread_x": thread, "thread_y": Const(0), "thread_z": Const(0),
            **({} if x > width else {"warp": Const(0)}),
        }  # fmt: skip
    thread = Var("thread_x") + Var("thread_y") * x + Var("thread_z") * (x * y)
    return {"thread": thread, "lane": thread % width, "warp": thread // width}


class _Walk:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.threads = thread_variables(kernel)
        self.bounds = static_bounds(kernel)
        self.levels: dict[Expr, Level] = {}
        self.iterations: dict[str, Level] = {}
        self.fresh = count()
        self.data: set[str] = set()

    def scopes(self) -> Scopes:
        place = Place(thread_names(self.kernel), guards=self._base_guards())
        body = self._body(self.kernel.body, place)
        return Scopes(self.kernel, body, self.bounds, frozenset(self.data))

    def _base_guards(self) -> tuple[Expr, ...]:
        """What every launch is checked for, and the grid is made for."""
        kernel = self.kernel
        sizes = [each.size.ge(1) for each in kernel.arrays if not isinstance(each.size, Const)]
        blocks = [
            condition
            for axis, size in zip("xyz", kernel.grid, strict=True)
            if not isinstance(size, Const)
            for condition in (size.ge(1), Var(f"block_{axis}").lt(size))
        ]
        partial = kernel.threads % kernel.warp_size and kernel.threads > kernel.warp_size
        names = thread_names(kernel)
        inside = [names["thread"].lt(kernel.threads)] if partial and "lane" not in names else []
        return (*kernel.requires, *sizes, *blocks, *inside)

    def _body(self, body: tuple[Stmt, ...], place: Place) -> tuple[Site, ...]:
        sites = []
        for stmt in body:
            match stmt:
                case Let(name, expr):
                    sites.append(Site(stmt, place))
                    names = {**place.names, name: place.expr(expr)}
                    place = replace(place, names=names, _seen={})
                case Named():
                    sites.append(Site(stmt, place))
                    names = {**place.names, stmt.name: self._data(stmt)}
                    place = replace(place, names=names, _seen={})
                case For():
                    sites.append(self._loop(stmt, place))
                case Ring():
                    sites.append(self._ring(stmt, place))
                case PingPong():
                    sites.append(self._turn(stmt, place))
                case If():
                    sites.append(self._branches(stmt, place))
                case _:
                    sites.append(Site(stmt, place))
        return tuple(sites)

    def _data(self, stmt: Named) -> Var:
        """A variable of its own for what each thread may have otherwise."""
        name = f"{stmt.name}@{next(self.fresh)}"
        self.bounds[name] = stmt.bounds
        self.iterations[name] = Level.NOBODY
        self.data.add(name)
        return Var(name)

    def _branches(self, stmt: If, place: Place) -> Site:
        known = place.expr(stmt.condition)
        level = max(place.level, self._level(known))
        then, otherwise = (
            self._body(inner, replace(place, guards=(*place.guards, guard), level=level))
            for inner, guard in ((stmt.then, known), (stmt.otherwise, known.not_()))
        )
        return Site(stmt, place, (then, otherwise))

    def _ring(self, stmt: Ring, place: Place) -> Site:
        """A ring is a loop that is never unrolled, inside of which its stage has a name."""
        loop = For(stmt.var, Const(0), stmt.count, stmt.body, unroll=False)
        inner = self._loop(loop, place, {stmt.stage: self._stage(stmt)})
        return Site(stmt, place, inner.bodies)

    def _turn(self, stmt: PingPong, place: Place) -> Site:
        """Some warp group is meant, on which the block agrees."""
        name, groups = f"turn#{next(self.fresh)}", self.kernel.threads // GROUP
        self.iterations[name] = Level.BLOCK
        self.bounds[name] = (0, max(0, groups - 1))
        own = place.expr(Var("warp") // (GROUP // self.kernel.warp_size)).eq(Var(name))
        inside = replace(place, guards=(*place.guards, own))
        return Site(stmt, place, (self._body(stmt.body, inside),))

    def _stage(self, stmt: Ring) -> Expr:
        name = f"{stmt.stage}#{next(self.fresh)}"
        self.iterations[name] = Level.BLOCK
        self.bounds[name] = (0, stmt.stages - 1)
        return Var(name)

    def _loop(self, stmt: For, place: Place, more: Mapping[str, Expr] | None = None) -> Site:
        """A loop without an iteration has nothing inside."""
        counter = self._counter(stmt, place)
        if counter.iterations == 0:
            return Site(stmt, place, ((),))
        inside = Place(
            {**place.names, stmt.var: counter.value, **(more or {})},
            place.guards if counter.condition is None else (*place.guards, counter.condition),
            (*place.counters, counter),
            max(place.level, counter.level),
        )
        return Site(stmt, place, (self._body(stmt.body, inside),))

    def _counter(self, stmt: For, place: Place) -> Counter:
        start, stop = place.expr(stmt.start), place.expr(stmt.stop)
        iterations = None if stmt.counts is None else len(stmt.counts)
        iteration = f"{stmt.var}#{next(self.fresh)}"
        level = max(self._level(start), self._level(stop))
        self.iterations[iteration] = level
        if iterations is None:
            ranges = Ranges(self.bounds)
            reach = ranges.of(stop).high - 1 - ranges.of(start).low
            low, high = index_limits(self.kernel)
            most = min(reach // stmt.step, high - low)
        else:
            most = iterations - 1
        self.bounds[iteration] = (0, max(most, 0))
        return Counter(stmt, iteration, start, stop, iterations, level)

    def _level(self, expr: Expr) -> Level:
        """Whether all threads of a block, or of a warp, agree on an expression."""
        if expr not in self.levels:
            self.levels[expr] = fold_up(expr, self._level_of_part)
        return self.levels[expr]

    def _level_of_part(self, part: Expr, levels: tuple[Level, ...]) -> Level:
        if isinstance(part, Var) and part.name in self.iterations:
            return self.iterations[part.name]
        if max(levels, default=Level.NOBODY) == Level.BLOCK:
            return Level.BLOCK
        names = variables(part)
        if names and names <= self.threads.keys():
            try:
                return _exact_level(evaluate(part, self.threads), self.kernel)
            except CheckError:  # not defined in every thread
                return Level.NOBODY
        return max(levels, default=Level.BLOCK)


def _exact_level(value: Numbers, kernel: Kernel) -> Level:
    if isinstance(value, int) or bool(np.all(value == value[0])):
        return Level.BLOCK
    first = (np.arange(kernel.threads) // kernel.warp_size) * kernel.warp_size
    return Level.WARP if bool(np.all(value == value[first])) else Level.NOBODY
