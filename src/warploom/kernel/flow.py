"""What depends on where a statement stands: it is in bounds, defined, met by all who must.

Every access of a global, shared or constant array stays inside it in every launch; divisors are not
zero and shifts not too far; shuffle amounts lie within the warp; barriers are met by whole blocks,
shuffles by whole warps. Each is shown for one thread and iteration that stand for all
(`reason.py`), or refused with a thread that does otherwise, if one is found (`witness.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.errors import CheckError, OperandError
from warploom.index.ir import Binary, Const, Expr, walk
from warploom.index.show import show
from warploom.kernel import ir
from warploom.kernel.bounds import INDEX_BITS
from warploom.kernel.flow_hopper import check_hopper_site, touched
from warploom.kernel.reason import reasoning
from warploom.kernel.registers import check_registers
from warploom.kernel.scope import Level, Place, Scopes, Site, scopes
from warploom.kernel.traverse import exprs_in, own_exprs, target_of, values_of
from warploom.kernel.whole import Whole
from warploom.kernel.witness import find_witness


@dataclass(frozen=True, slots=True)
class ArrayAccess:
    """A read or write of an array: its index in the kernel's words, and what guards it."""

    site: Site
    array: str
    size: Expr
    index: Expr
    width: int
    guards: tuple[Expr, ...]

    @property
    def above(self) -> Expr:
        return self.site.place.expr(self.index).ge(0)

    @property
    def below(self) -> Expr:
        index = self.site.place.expr(self.index)
        return (index + self.width).le(self.size) if self.width > 1 else index.lt(self.size)


@dataclass(frozen=True, slots=True)
class Part:
    """A node of a value, and the conditions under which it is chosen."""

    value: ir.Value
    guards: tuple[Expr, ...]
    compares: tuple[tuple[ir.Compare, bool], ...]


def check_flow(kernel: ir.Kernel) -> None:
    """Raises CheckError at the first statement that breaks one of the promises above."""
    flow = Flow(scopes(kernel))
    for site in flow.scopes.walk():
        flow.check_site(site)
    check_registers(flow.scopes, flow.runs)


class Flow:
    """One kernel's sites, and what can be shown of them."""

    def __init__(self, known: Scopes) -> None:
        self.scopes = known
        self.kernel = known.kernel
        self.reasoning = reasoning(known)
        self.sizes: dict[str, Expr] = {each.name: each.size for each in self.kernel.arrays}
        self.sizes |= {
            each.name: Const(each.size) for each in self.kernel.body if isinstance(each, ir.Shared)
        }
        self.constants = {
            each.name for each in self.kernel.arrays
            if isinstance(each, ir.ArrayParam) and each.space == "constant"
        }  # fmt: skip

    def runs(self, site: Site) -> bool:
        """Whether a loop has at least one iteration in every launch."""
        assert isinstance(site.stmt, ir.For | ir.Ring)
        place, stmt = site.place, site.stmt
        if isinstance(stmt, ir.Ring):
            goal = place.expr(stmt.count).ge(1)
        else:
            goal = place.expr(stmt.start).lt(place.expr(stmt.stop))
        return self.reasoning.shows(goal, place.guards)

    def check_site(self, site: Site) -> None:
        check_meeting(site)
        check_hopper_site(self, site)
        self._check_defined(site)
        for access in self.accesses(site):
            self._check_inside(access)
        match site.stmt:
            case ir.Load(width=width) | ir.Store(width=width) if width > 1:
                self._check_aligned(site, width)
            case ir.Shuffle():
                self._check_amount(site, site.stmt)
            case _:
                pass

    # -- memory

    def accesses(self, site: Site) -> Iterator[ArrayAccess]:
        """The accesses of a statement: the one that it is, and reads of constant arrays."""
        stmt, place = site.stmt, site.place
        if isinstance(stmt, ir.Load | ir.Store):
            guards = self.guards_of(site)
            yield ArrayAccess(
                site, stmt.array, self.sizes[stmt.array], stmt.index, stmt.width, guards
            )
        for each in touched(self.kernel, stmt):
            more = () if each.guard is None else (place.expr(each.guard),)
            size, guards = self.sizes[each.array], (*place.guards, *more)
            yield ArrayAccess(site, each.array, size, each.index, each.width, guards)
        for part in parts_of(site):
            cell = part.value
            if isinstance(cell, ir.Cell) and cell.name in self.constants and cell.index is not None:
                size = self.sizes[cell.name]
                yield ArrayAccess(
                    site, cell.name, size, cell.index, 1, (*place.guards, *part.guards)
                )

    def guards_of(self, site: Site) -> tuple[Expr, ...]:
        """What holds where a load or store takes place."""
        stmt, place = site.stmt, site.place
        if isinstance(stmt, ir.Load | ir.Store) and stmt.predicate is not None:
            return (*place.guards, place.expr(stmt.predicate))
        return place.guards

    def is_inside(self, access: ArrayAccess) -> tuple[bool, bool]:
        """Whether an access is shown not to be before its array, and not to be after it."""
        shows = self.reasoning.shows
        return shows(access.above, access.guards), shows(access.below, access.guards)

    def _check_inside(self, access: ArrayAccess) -> None:
        for goal, shown in zip((access.above, access.below), self.is_inside(access), strict=True):
            if not shown:
                raise self._outside(access, goal)

    def _outside(self, access: ArrayAccess, goal: Expr) -> CheckError:
        place, index = access.site.place, access.index
        found = find_witness(self.kernel, place, access.guards, goal, place.expr(index))
        if found is None:
            return CheckError(
                f"the index of '{access.array}' cannot be shown to stay within its "
                f"{show(access.size)} elements: {show(index)}",
                advice="put a condition around it, or have one put in: done(predicate=True)",
            )
        wide = f" to [{found.value + access.width - 1}]" if access.width > 1 else ""
        return CheckError(
            f"'{access.array}' has {show(access.size)} elements, but {found} uses "
            f"[{found.value}]{wide}{found.circumstances}; the index is {show(index)}",
            advice="put a condition around it, or have one put in: done(predicate=True)",
        )

    def _check_aligned(self, site: Site, width: int) -> None:
        assert isinstance(site.stmt, ir.Load | ir.Store)
        index, guards = site.place.expr(site.stmt.index), self.guards_of(site)
        goal = (index % width).eq(0)
        if not self.reasoning.shows(goal, guards):
            found = find_witness(self.kernel, site.place, guards, goal, index)
            who = f": {found} uses [{found.value}]{found.circumstances}" if found else ""
            raise CheckError(
                f"an access of {width} elements of '{site.stmt.array}' cannot be shown to be "
                f"aligned{who}; the index is {show(site.stmt.index)}",
                advice=f"make the index a multiple of {width}, or access one element at a time",
            )

    # -- what must be defined

    def _check_defined(self, site: Site) -> None:
        predicate = site.stmt.predicate if isinstance(site.stmt, ir.Load | ir.Store) else None
        for expr in own_exprs(site.stmt):
            guards = site.place.guards if expr is predicate else self.guards_of(site)
            self._check_expr(expr, site.place, guards)
        target = target_of(site.stmt)
        if target is not None and target.index is not None:
            self._check_expr(target.index, site.place, site.place.guards)
        for part in parts_of(site):
            for expr in exprs_in(part.value):
                self._check_expr(expr, site.place, (*site.place.guards, *part.guards))
            if isinstance(part.value, ir.Operation) and not ir.dtype_of(part.value).is_float:
                self._check_operation(part.value, site, part)

    def _check_expr(self, expr: Expr, place: Place, guards: tuple[Expr, ...]) -> None:
        """Divisors are not zero, and no number of 32 bits is shifted by more than 31."""
        for part in walk(expr):
            match part:
                case Binary("//" | "%", _, Const(value)) if value != 0:
                    pass
                case Binary("//" | "%" as op, _, right):
                    self._check_goal(right, right.ne(0), place, guards, f"'{op}' divides by")
                case Binary("<<" | ">>", _, Const(value)) if 0 <= value < INDEX_BITS:
                    pass
                case Binary("<<" | ">>" as op, _, right):
                    inside = right.ge(0).and_(right.lt(INDEX_BITS))
                    self._check_goal(right, inside, place, guards, f"'{op}' shifts by")
                case _:
                    pass

    def _check_goal(
        self, part: Expr, goal: Expr, place: Place, guards: tuple[Expr, ...], what: str
    ) -> None:
        wanted = place.expr(goal)
        if self.reasoning.shows(wanted, guards):
            return
        found = find_witness(self.kernel, place, guards, wanted, place.expr(part))
        value = f"{found.value} in {found}{found.circumstances}" if found else "an unknown amount"
        raise CheckError(
            f"{what} {show(part)}, which may be {value}",
            advice="put a condition around it that keeps it in range",
        )

    def _check_operation(self, value: ir.Operation, site: Site, part: Part) -> None:
        if value.op not in ("/", "<<", ">>"):
            return
        right = value.operands[1]
        guards = (*site.place.guards, *part.guards)
        shows = self.reasoning.shows
        whole = Whole(
            site.place,
            self.scopes.bounds,
            lambda goal, more: shows(goal, (*guards, *more)),
            self.kernel.index,
        )
        whole.note(part.compares)
        number = whole.of(right)
        bits = ir.dtype_of(right).bytes * 8
        goal = number.ne(0) if value.op == "/" else number.ge(0).and_(number.lt(bits))
        if not whole.shows(goal):
            what = "a divisor may be zero" if value.op == "/" else f"'{value.op}' may shift too far"
            raise OperandError(
                f"{what}: no condition excludes it for the second operand of '{value.op}'",
                advice="bound it, as in (d & 15) + 1, or choose(d.ne(0), n / d, 0)",
            )

    def _check_amount(self, site: Site, stmt: ir.Shuffle) -> None:
        if stmt.mode == "idx":
            return
        lane, place, width = stmt.lane, site.place, self.kernel.warp_size
        goal = place.expr(lane.ge(0).and_(lane.lt(width)))
        if self.reasoning.shows(goal, place.guards):
            return
        found = find_witness(self.kernel, place, place.guards, goal, place.expr(lane))
        value = f"{found.value} in {found}{found.circumstances}" if found else "any number"
        raise CheckError(
            f"a shuffle '{stmt.mode}' by {show(lane)}, which may be {value}, "
            f"is not within 0 to {width - 1}",
            advice="take it modulo the warp size, or read a lane by its number: mode 'idx'",
        )


_MEETINGS = {
    ir.Barrier: "barrier",
    ir.Shuffle: "shuffle",
    ir.TensorProduct: "product on tensor cores",
}


def check_meeting(site: Site) -> None:
    """Threads that wait for each other all get there."""
    level = site.place.level
    match site.stmt:
        case ir.Barrier("block" | "group") if level > Level.BLOCK:
            raise CheckError(
                "a barrier stands under a condition that differs between threads of a block",
                advice="move the barrier out of the condition",
            )
        case ir.Barrier() | ir.Shuffle() | ir.TensorProduct() if level > Level.WARP:
            what = _MEETINGS[type(site.stmt)]
            raise CheckError(
                f"a {what} stands under a condition that differs between lanes of a warp",
                advice=f"move the {what} out and select its result instead",
            )
        case ir.For(var, start, stop):
            counters = [each for body in site.bodies for inner in body[:1]
                        for each in inner.place.counters[-1:]]  # fmt: skip
            if any(each.level > Level.WARP for each in counters):
                raise CheckError(
                    f"the loop over '{var}' has bounds that differ between lanes of a warp: "
                    f"{show(start)} to {show(stop)}",
                    advice="loop as far as the warp must go, and put a condition inside",
                )
        case _:
            pass


def parts_of(site: Site) -> Iterator[Part]:
    """Every node of the values that a statement reads, with the conditions that choose it."""
    stmt, place = site.stmt, site.place
    guards: tuple[Expr, ...] = ()
    if isinstance(stmt, ir.Load | ir.Store) and stmt.predicate is not None:
        predicate = place.expr(stmt.predicate)
        guards = (predicate if isinstance(stmt, ir.Store) else predicate.not_(),)
    for value in values_of(stmt):
        yield from _parts(value, place, guards, ())


def _parts(
    value: ir.Value,
    place: Place,
    guards: tuple[Expr, ...],
    compares: tuple[tuple[ir.Compare, bool], ...],
) -> Iterator[Part]:
    yield Part(value, guards, compares)
    match value:
        case ir.Choose(ir.Compare() as condition, then, otherwise):
            for each in (condition.left, condition.right):
                yield from _parts(each, place, guards, compares)
            yield from _parts(then, place, guards, (*compares, (condition, True)))
            yield from _parts(otherwise, place, guards, (*compares, (condition, False)))
        case ir.Choose(condition, then, otherwise):
            assert not isinstance(condition, ir.Compare)
            known = place.expr(condition)
            yield from _parts(then, place, (*guards, known), compares)
            yield from _parts(otherwise, place, (*guards, known.not_()), compares)
        case _:
            for each in ir.operands(value):
                yield from _parts(each, place, guards, compares)
