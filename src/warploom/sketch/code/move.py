"""One step of a filled program as a move: where every register of every lane comes from.

An array [lanes, …] lies in the registers of a group of lanes: lane x0 holds its cells in row-major
order, and x1 is a register's number. A gather's choice, which is index arithmetic over output
coordinates, becomes three expressions over x0 and x1: from which lane, from which of its registers,
and whether from anywhere (else zero). Moves compose; `sent` is what a sender must know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from warploom.errors import CheckError, Span
from warploom.index.ir import (
    Binary,
    Const,
    Expr,
    Unary,
    Var,
    select,
    substitute,
    variables,
)
from warploom.index.laws import simplify
from warploom.index.table import Ints, Mask
from warploom.index.table import cheapest as cheapest_of
from warploom.kernel.lower import split_rotation
from warploom.sketch.code.form import (
    ALWAYS,
    LANE,
    REGISTER,
    bounds_of,
    cheapest,
    condition_of,
    sizes_of,
    tabulated,
    with_selects,
    written,
)
from warploom.sketch.term.gather import GatherExpr, Shape, size, strides

__all__ = ["LANE", "REGISTER", "Move", "composed", "move_of", "spread_index"]


@dataclass(frozen=True)
class Move:
    """Lane x0's register x1 becomes register `register` of lane `lane` where `kept`, else zero.

    There are `registers` of them in each of `lanes` lanes, and `sources` to choose from. Where a
    gather is undefined the expressions may say anything: they are not `live` there.
    """

    lanes: int
    registers: int
    sources: int
    lane: Expr
    register: Expr
    kept: Expr = ALWAYS

    @cached_property
    def lane_table(self) -> Ints:
        return tabulated(self.lane, self.lanes, self.registers)

    @cached_property
    def register_table(self) -> Ints:
        return tabulated(self.register, self.lanes, self.registers)

    @cached_property
    def live(self) -> Mask:
        """The cells that come from somewhere."""
        inside = (self.lane_table >= 0) & (self.lane_table < self.lanes)
        inside &= (self.register_table >= 0) & (self.register_table < self.sources)
        live: Mask = inside & (tabulated(self.kept, self.lanes, self.registers) != 0)
        return live

    @property
    def within(self) -> bool:
        """Whether every lane reads its own registers alone."""
        own = np.arange(self.lanes)[:, None]
        return bool(((self.lane_table == own) | ~self.live).all())

    @property
    def idle(self) -> bool:
        same = self.register_table == np.arange(self.registers)
        whole = self.sources == self.registers and bool(self.live.all())
        return whole and self.within and bool(same.all())

    @cached_property
    def sent(self) -> Expr | None:
        """Which register lane x0 offers to whoever makes register x1 of it, if one will do.

        It is `register` at the receiver, whom the sender finds by inverting `lane`. None if there
        is no such expression: `exchange.rounds` goes through the lanes then.
        """
        offered, asked = self._offers()
        if offered is None:
            return None
        forms = list(written(offered, asked))
        if LANE.name not in variables(self.register):
            forms.insert(0, self.register)
        elif (receiver := _receiver(self.lane, self.lanes)) is not None:
            forms.insert(
                0, simplify(substitute(self.register, {LANE.name: receiver}), self._bounds)
            )

        def agrees(found: Ints) -> bool:
            inside = (found >= 0) & (found < self.sources)  # idle senders offer something, too
            return bool(((found == offered) | ~asked).all() and inside.all())

        best = cheapest_of(forms, sizes_of(self.lanes, self.registers), agrees)
        return None if best is None else with_selects(best)

    @property
    def _bounds(self) -> dict[str, tuple[int, int]]:
        return bounds_of(self.lanes, self.registers)

    def _offers(self) -> tuple[Ints | None, Mask]:
        """What each lane is asked for, and where it is; nothing if it is asked for two things."""
        offered = np.zeros((self.lanes, self.registers), np.int64)
        asked = np.zeros(offered.shape, np.bool_)
        for receiver, register in np.argwhere(self.live).tolist():
            sender = self.lane_table[receiver, register]
            wanted = self.register_table[receiver, register]
            if asked[sender, register] and offered[sender, register] != wanted:
                return None, asked
            offered[sender, register], asked[sender, register] = wanted, True
        return offered, asked


def by_cases(table: Ints, matters: Mask) -> Expr:
    """A table over lanes and registers as selects: one condition after another, where there is a
    simple one, else lane by lane."""
    values, counts = np.unique(table[matters], return_counts=True)
    if not len(values):
        return Const(0)
    rest = int(values[np.argmax(counts)])
    result: Expr = Const(rest)
    for value in values.tolist():
        if value != rest:
            here = (table == value) & matters
            condition = condition_of(here, matters)
            result = select(_listed(here) if condition is None else condition, value, result)
    return result


def _listed(mask: Mask) -> Expr:
    """Where the mask holds: the lanes from one to another, register by register."""
    registers = mask.shape[1]
    condition: Expr = Const(0)
    for register in range(registers):
        edges = np.flatnonzero(np.diff(mask[:, register], prepend=False, append=False)).tolist()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            here = LANE.eq(start) if stop == start + 1 else LANE.ge(start).and_(LANE.lt(stop))
            here = here if registers == 1 else REGISTER.eq(register).and_(here)
            condition = here if condition is Const(0) else condition.or_(here)
    return condition


def _receiver(lane: Expr, lanes: int) -> Expr | None:
    """The x0 for which `lane`, a bijection of a simple form, is the sender's number x0."""
    match lane:
        case Var(name) if name == LANE.name:
            return LANE
        case Binary("^", left, right):
            for own, other in ((left, right), (right, left)):
                if own is LANE and LANE.name not in variables(other):
                    return LANE ^ other
    parts = split_rotation(lane, lanes, LANE.name)
    if parts is None:
        return None
    own, rest = parts
    match own:
        case Var():
            return (LANE - rest) % lanes
        case Unary("-", Var()):
            return (rest - LANE) % lanes
    return None


# -- from gathers --------------------------------------------------------------------------------


def spread_index(shape: Shape) -> dict[str, Expr]:
    """The coordinates x0, x1, … of a cell of [lanes, …] by lane and register."""
    inner = shape[1:]
    found: dict[str, Expr] = {LANE.name: LANE}
    for axis, (length, stride) in enumerate(zip(inner, strides(inner), strict=True), 1):
        whole = REGISTER if stride == 1 else REGISTER // stride
        found[f"x{axis}"] = whole if stride * length == size(inner) else whole % length
        if length == 1:
            found[f"x{axis}"] = Const(0)
    return found


def move_of(
    gather: GatherExpr, arguments: tuple[Shape, ...], out_shape: Shape, span: Span | None = None
) -> Move:
    """A gather between arrays [lanes, …]; the registers of all arguments are counted through."""
    lanes, registers = out_shape[0], size(out_shape[1:])
    for shape in arguments:
        if not shape or shape[0] != lanes:
            raise CheckError(
                f"an array of shape {list(shape)} does not lie in {lanes} lanes",
                span,
                f"its first axis must have length {lanes}",
            )
    bounds = bounds_of(lanes, registers)
    place = spread_index(out_shape)
    argument = simplify(substitute(gather.argument, place), bounds)
    offset = simplify(substitute(gather.offset, place), bounds)
    kept = argument.lt(len(arguments))
    return Move(
        lanes,
        registers,
        sum(size(shape[1:]) for shape in arguments),
        _by_argument(argument, [_lane_in(offset, shape, bounds) for shape in arguments], bounds),
        with_selects(_by_argument(argument, _registers_in(offset, arguments, bounds), bounds)),
        simplify(kept, bounds),
    )


def _lane_in(offset: Expr, shape: Shape, bounds: dict[str, tuple[int, int]]) -> Expr:
    return simplify(offset // size(shape[1:]), bounds)


def _registers_in(
    offset: Expr, arguments: tuple[Shape, ...], bounds: dict[str, tuple[int, int]]
) -> list[Expr]:
    found, before = [], 0
    for shape in arguments:
        held = size(shape[1:])
        found.append(simplify(offset % held + before, bounds))
        before += held
    return found


def _by_argument(argument: Expr, each: list[Expr], bounds: dict[str, tuple[int, int]]) -> Expr:
    result = each[-1]
    for number in reversed(range(len(each) - 1)):
        result = select(argument.eq(number), each[number], result)
    return simplify(result, bounds)


def composed(outer: Move, inner: Move) -> Move:
    """`outer` of what `inner` makes, as one move."""
    if outer.sources != inner.registers or outer.lanes != inner.lanes:
        raise CheckError("these moves do not follow one another")
    between = {LANE.name: outer.lane, REGISTER.name: outer.register}
    bounds = bounds_of(outer.lanes, outer.registers)

    def at(expr: Expr) -> Expr:
        return simplify(substitute(expr, between), bounds)

    kept = outer.kept if inner.kept is ALWAYS else outer.kept.and_(at(inner.kept))
    made = Move(
        outer.lanes, outer.registers, inner.sources, at(inner.lane), at(inner.register), kept
    )
    sizes = outer.lanes, outer.registers
    return Move(
        *sizes,
        inner.sources,
        cheapest(made.lane, *sizes, made.live),
        with_selects(cheapest(made.register, *sizes, made.live)),
        cheapest(made.kept, *sizes),
    )


def evaluated(move: Move, held: Ints, zero: int = 0) -> Ints:
    """What a move makes of [lanes, sources]: its meaning, in plain NumPy."""
    lane = np.clip(move.lane_table, 0, move.lanes - 1)
    register = np.clip(move.register_table, 0, move.sources - 1)
    return np.where(move.live, held[lane, register], zero)


def at_place(expr: Expr, lane: Expr, register: Expr | int) -> Expr:
    """An expression of a move at a thread's lane and register."""
    return substitute(expr, {LANE.name: lane, REGISTER.name: register})
