"""Barriers put in: a kernel comes in whose threads share memory, out goes one without races in it.

Two accesses of one cell by different threads, one of them a write, need a barrier between them, in
every iteration and from one iteration of a loop to the next: of the warp if only lanes of one warp
meet, of the block otherwise. Within a list of statements the fewest block barriers are put in that
do this, then the fewest warp barriers that are missing still; barriers that are there already
count. Where a barrier would stand under a condition that not all who must meet agree on, the kernel
is refused. What different blocks do to one cell, or two threads in one statement, no barrier can
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from warploom.errors import CheckError
from warploom.index.show import show
from warploom.kernel.check_hopper import refuse_hopper
from warploom.kernel.footprint import Access, Later, footprints
from warploom.kernel.ir import Barrier, For, If, Kernel, Load, Scope, Stmt, Store
from warploom.kernel.scope import Level, Site, scopes

SCOPE: dict[Level, Scope] = {Level.BLOCK: "block", Level.WARP: "warp"}
LEVELS = (Level.BLOCK, Level.WARP)


def synchronise(kernel: Kernel) -> Kernel:
    """The kernel with the barriers it lacks."""
    refuse_hopper(kernel, "for which barriers are not found")
    return replace(kernel, body=_Synchroniser(kernel).body())


@dataclass(frozen=True, slots=True)
class _Summary:
    """What a statement does, for one kind of barrier: accesses that may come before any barrier in
    it, and those that may come after all; whether there is a way through without one."""

    first: tuple[Access, ...] = ()
    last: tuple[Access, ...] = ()
    passes: bool = True

    def then(self, after: _Summary) -> _Summary:
        return _Summary(
            self.first + (after.first if self.passes else ()),
            (self.last if after.passes else ()) + after.last,
            self.passes and after.passes,
        )

    def beside(self, other: _Summary) -> _Summary:
        return _Summary(
            self.first + other.first, self.last + other.last, self.passes or other.passes
        )


@dataclass(frozen=True, slots=True)
class _Item:
    """A statement, barriers inside it put in, and its summary for each kind of barrier."""

    stmt: Stmt
    summaries: dict[Level, _Summary] = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Around:
    """Where a list of statements stands: which barriers may stand in it, and the loop it is of."""

    level: Level
    iteration: str | None
    iterations: int | None = None

    @property
    def again(self) -> bool:
        """Whether the list may run twice in a row."""
        return self.iteration is not None and self.iterations != 1


class _Synchroniser:
    def __init__(self, kernel: Kernel) -> None:
        self.known = scopes(kernel)
        self.footprints = footprints(self.known)
        self.reasoning = self.footprints.reasoning
        found = (self.footprints.access(site) for site in self.known.walk())
        self.everything = tuple(each for each in found if each is not None)

    def body(self) -> tuple[Stmt, ...]:
        return self._list(self.known.body, _Around(Level.BLOCK, None))[0]

    def _list(
        self, sites: tuple[Site, ...], around: _Around
    ) -> tuple[tuple[Stmt, ...], dict[Level, _Summary]]:
        items = [self._item(site) for site in sites]
        gaps: dict[int, Level] = {}
        for level in LEVELS:
            for gap in self._gaps(items, around, level, frozenset(gaps)):
                if around.level > level:
                    raise self._refused(items, gap, level)
                gaps[gap] = level
        stmts: list[Stmt] = []
        summaries = dict.fromkeys(LEVELS, _Summary())
        for place, item in enumerate(items):
            here = [item]
            if place in gaps:
                here.insert(0, _barrier(Barrier(SCOPE[gaps[place]])))
            for each in here:
                stmts.append(each.stmt)
                summaries = {
                    level: summaries[level].then(each.summaries[level]) for level in LEVELS
                }
        return tuple(stmts), summaries

    def _item(self, site: Site) -> _Item:
        match site.stmt:
            case For() as stmt:
                return self._loop(stmt, site)
            case If() as stmt:
                return self._branches(stmt, site)
            case Barrier() as stmt:
                return _barrier(stmt)
            case stmt:
                access = self.footprints.access(site)
                own = () if access is None else (access,)
                return _Item(stmt, dict.fromkeys(LEVELS, _Summary(own, own)))

    def _loop(self, stmt: For, site: Site) -> _Item:
        (body,) = site.bodies
        if not body:
            return _Item(stmt, dict.fromkeys(LEVELS, _Summary()))
        counter = body[0].place.counters[-1]
        around = _Around(body[0].place.level, counter.iteration, counter.iterations)
        inner, summaries = self._list(body, around)
        surely = counter.iterations is not None or self.reasoning.shows(
            counter.start.lt(counter.stop), site.place.guards
        )
        if not surely:
            summaries = {level: each.beside(_Summary()) for level, each in summaries.items()}
        return _Item(replace(stmt, body=inner), summaries)

    def _branches(self, stmt: If, site: Site) -> _Item:
        sides = []
        for body in site.bodies:
            level = body[0].place.level if body else site.place.level
            sides.append(self._list(body, _Around(level, None)))
        self._check_apart(site)
        (then, left), (otherwise, right) = sides
        made = replace(stmt, then=then, otherwise=otherwise)
        known = site.place.expr(stmt.condition)
        for condition, taken in ((known, left), (known.not_(), right)):
            if self.reasoning.shows(condition, site.place.guards):
                return _Item(made, taken)
        return _Item(made, {level: left[level].beside(right[level]) for level in LEVELS})

    def _check_apart(self, site: Site) -> None:
        """Threads that take different branches at one time meet in no cell."""
        inside = [body[0].place.level for body in site.bodies if body]
        if len(inside) < 2 or max(inside) == Level.BLOCK:
            return
        sides = [
            [a for s in body for each in s.walk() if (a := self.footprints.access(each))]
            for body in site.bodies
        ]
        for one, other in product(*sides):
            met = self.footprints.meet(one, other)
            if met is not None and (met == Level.BLOCK or max(inside) > Level.WARP):
                raise CheckError(
                    f"threads that take different branches may meet in '{one.array}': "
                    f"{_text(one)} and {_text(other)}",
                    advice="do one after the other, outside the condition",
                )

    # -- where barriers go: a gap is the place before a statement

    def _gaps(
        self, items: Sequence[_Item], around: _Around, level: Level, fixed: frozenset[int]
    ) -> set[int]:
        parts = [item.summaries[level] for item in items]
        if not any(part.first or part.last for part in parts):
            return set()
        once = self._scan(parts, range(len(parts)), around, level, fixed)
        if not around.again:
            return once
        free = not once and not fixed and all(part.passes for part in parts)
        if free and not self._meets_later(parts, around, level):
            return set()
        if fixed:
            start = min(fixed)
            return self._scan(parts, _ring(start, len(parts)), around, level, fixed)
        return self._best_ring(parts, around, level)

    def _best_ring(self, parts: Sequence[_Summary], around: _Around, level: Level) -> set[int]:
        """The fewest gaps that part all iterations; of equals those that also part most from
        outside."""
        closed = [place for place, part in enumerate(parts) if not part.passes]
        best: tuple[tuple[int, int], set[int]] | None = None
        starts = range(len(parts)) if not closed else [closed[0]]
        for start in starts:
            ring = _ring(start, len(parts))
            first = set() if closed else {start}
            gaps = first | self._scan(parts, ring, around, level, frozenset(first))
            cost = (len(gaps), self._outside_conflicts(parts, gaps, level))
            # Of equals the last: a barrier that closes the ring then stands as late as it can.
            if best is None or cost <= best[0]:
                best = cost, gaps
        assert best is not None
        return best[1]

    def _scan(
        self,
        parts: Sequence[_Summary],
        order: Sequence[int],
        around: _Around,
        level: Level,
        fixed: frozenset[int],
    ) -> set[int]:
        """Gaps needed when statements run in an order; after its highest place the next iteration
        begins. A barrier goes in as late as it can, which takes the fewest."""
        gaps: set[int] = set()
        pending: list[tuple[Access, int]] = []
        first = order[0] if len(order) else 0
        for place in order:
            part, iteration = parts[place], int(place < first)
            if place in fixed:
                pending = []
            elif any(
                self._conflict(old, new, around if iteration > before else None, level)
                for old, before in pending
                for new in part.first
            ):
                gaps.add(place)
                pending = []
            if not part.passes:
                pending = []
            pending += [(each, iteration) for each in part.last]
        again = around.again and first not in fixed | gaps
        if again and self._closes(pending, parts[first], around, level):
            gaps.add(first)
        return gaps

    def _closes(
        self, pending: list[tuple[Access, int]], part: _Summary, around: _Around, level: Level
    ) -> bool:
        """Whether what is pending after a whole iteration meets the statement that comes next."""
        return any(
            self._conflict(old, new, around if iteration == 0 else None, level)
            for old, iteration in pending
            for new in part.first
        )

    def _conflict(self, old: Access, new: Access, around: _Around | None, level: Level) -> bool:
        later = None
        if around is not None:
            assert around.iteration is not None
            later = Later(around.iteration, 1)
        return self.footprints.meet(old, new, later) == level

    def _meets_later(self, parts: Sequence[_Summary], around: _Around, level: Level) -> bool:
        assert around.iteration is not None
        later = Later(around.iteration, None)
        # A loop that may have no iteration lets others pass, whatever barriers are in it: what
        # comes after them all is then not what comes before any.
        old = [each for part in parts for each in part.last]
        new = [each for part in parts for each in part.first]
        return any(
            self.footprints.meet(one, other, later) == level for one, other in product(old, new)
        )

    def _outside_conflicts(self, parts: Sequence[_Summary], gaps: set[int], level: Level) -> int:
        """How many accesses outside the loop still meet one inside, with these barriers in it."""
        whole = _Summary()
        for place, part in enumerate(parts):
            if place in gaps:
                whole = whole.then(_Summary((), (), False))
            whole = whole.then(part)
        inside = {each for part in parts for each in (*part.first, *part.last)}
        outside = [each for each in self.everything if each not in inside]
        return sum(
            any(self.footprints.meet(each, other) == level for other in (*whole.first, *whole.last))
            for each in outside
        )

    def _refused(self, items: Sequence[_Item], gap: int, level: Level) -> CheckError:
        new = items[gap].summaries[level].first or items[gap].summaries[level].last
        where = f" before {_text(new[0])}" if new else ""
        return CheckError(
            f"a {SCOPE[level]} barrier is needed{where}, under a condition that differs between "
            f"{'threads of a block' if level == Level.BLOCK else 'lanes of a warp'}",
            advice="move the accesses out of the condition, or give each thread cells of its own",
        )


def _barrier(stmt: Barrier) -> _Item:
    closed, open_ = _Summary((), (), False), _Summary()
    block = closed if stmt.scope == "block" else open_
    return _Item(stmt, {Level.BLOCK: block, Level.WARP: closed})


def _ring(start: int, count: int) -> list[int]:
    return [*range(start, count), *range(start)]


def _text(access: Access) -> str:
    stmt = access.site.stmt
    assert isinstance(stmt, Load | Store)
    return f"the {'store to' if access.write else 'load of'} {stmt.array}[{show(stmt.index)}]"
