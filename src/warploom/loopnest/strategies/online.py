"""Long rows in one pass: each thread folds pieces of a row, and the pieces are put together.

    M = max_j u_j        →   m_c = max of piece c,  M = max_c m_c
    Σ_j w_j·e^(u_j − M)  →   s_c = Σ of piece c of w_j·e^(u_j − m_c),  Σ_c s_c·e^(m_c − M)

Pairs (m, s) with (m, s)·(m', s') = (M, s·e^(m − M) + s'·e^(m' − M)), where M is the greater of m
and m', are a monoid: in which pieces a row is folded makes no difference but for rounding. So what
is loaded of a piece serves the maximum and the sum. Of a piece that is -inf throughout the sum is
taken beside 0 instead, and is 0; a row of these alone is no number, as it is with two passes.
`tests/loopnest/test_online.py` checks the law on numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from warploom.index.ir import Expr, substitute
from warploom.kernel.ir import (
    Cast,
    Choose,
    Compare,
    FromIndex,
    Number,
    Operation,
    Operator,
    Value,
    walk_value,
)
from warploom.kernel.traverse import map_value
from warploom.loopnest import ir
from warploom.loopnest.computation import Computation, Folded, Kept, Leaf, Loaded, Stored
from warploom.loopnest.fold import neutral
from warploom.loopnest.strategies.form import NotMeantError

EXPONENTIALS = frozenset({"exp", "exp2", "exp2_ftz"})
LOWEST = -math.inf
PARTS = 4  # leaves that one becomes, at most


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """A row in pieces: the index is `at`, over axes that say which piece it is, and others that are
    `within` it. Before the first index there are as many places as `skew` says."""

    over: ir.Axis
    at: ir.Affine
    which: tuple[ir.Axis, ...]
    within: tuple[ir.Axis, ...]
    skew: ir.Skew | None = None

    @property
    def axes(self) -> tuple[ir.Axis, ...]:
        return (*self.which, *self.within)

    @property
    def inside(self) -> Expr:
        """That a place of a piece is in the row."""
        ends = self.at.expr.le(self.over.size - 1)
        return ends if self.skew is None else self.at.expr.ge(0).and_(ends)


def in_pieces(given: Computation, cut: Pieces) -> Computation:
    """The computation with all folds along the row done piece by piece, in one pass; what is stored
    along the row is so in a second one. NotMeantError where a fold needs another in a way that the
    law does not say."""
    made = _Rewriting(given, cut)
    stores = tuple(
        replace(each, number=each.number * PARTS, value=made.outside(each.value))
        for each in given.stores
    )
    leaves = sorted(_reached(stores), key=lambda each: each.number)
    axes = [part for axis in given.axes
            for part in ((*cut.axes, axis) if axis is cut.over else (axis,))]  # fmt: skip
    used = {axis for store in stores for axis in store.access.axes}
    return replace(
        given,
        axes=tuple(axis for axis in axes if axis is not cut.over or axis in used),
        leaves=tuple(leaves),
        stores=stores,
    )


def _reached(stores: tuple[Stored, ...]) -> set[Leaf]:
    found: set[Leaf] = set()
    stack: list[Value] = [each.value for each in stores]
    while stack:
        for each in walk_value(stack.pop()):
            if isinstance(each, Leaf) and each not in found:
                found.add(each)
                match each:
                    case Folded():
                        stack += [each.value, each.start]
                    case Kept():
                        stack.append(each.value)
                    case Loaded():
                        stack += [named.value for named in each.access.named]
    return found


class _Rewriting:
    def __init__(self, given: Computation, cut: Pieces) -> None:
        self.given, self.cut = given, cut
        self.known: dict[Leaf, Value] = {}  # leaves as they are outside of the pieces
        self.parts: dict[Folded, Folded] = {}  # of each fold along the row, what a piece has
        self.loads: dict[Loaded, Loaded] = {}
        self.besides: dict[Folded, Kept] = {}
        folds = [each for each in given.leaves
                 if isinstance(each, Folded) and cut.over in each.over]  # fmt: skip
        if not folds or any(each.over != (cut.over,) for each in folds):
            raise NotMeantError("no fold is along the rows alone")
        values = {each: self._inlined(each.value) for each in folds}
        self.fill = self._fill(values)
        for each in folds:
            self._fold(each, values[each])

    # -- values outside of pieces ------------------------------------------------------------------

    def outside(self, value: Value) -> Value:
        """With the folds that are put together of pieces."""
        return map_value(value, lambda expr: expr, self._found)

    def _found(self, each: Value) -> Value:
        if not isinstance(each, Leaf):
            return each
        if each not in self.known:
            number = each.number * PARTS
            match each:
                case Loaded(access=access):
                    again = access.naming(self.outside)
                    self.known[each] = replace(each, number=number, access=again)
                case Kept(value=value):
                    self.known[each] = replace(each, number=number, value=self.outside(value))
                case Folded(value=value, start=start):
                    self.known[each] = replace(each, number=number, value=self.outside(value),
                                               start=self.outside(start))  # fmt: skip
                case _:
                    raise NotMeantError("it has scans")
        return self.known[each]

    # -- folds -------------------------------------------------------------------------------------

    def _fold(self, fold: Folded, value: Value) -> None:
        needed = [each for each in dict.fromkeys(walk_value(value)) if each in self.parts]
        scale: Value | None = None
        known: dict[Value, Value] = {}
        if needed:
            top, *others = needed
            assert isinstance(top, Folded)
            made = _exponential(value, top) if fold.op == "+" and not others else None
            if made is None or top.op != "max":
                raise NotMeantError(f"'{fold}' needs '{top}' in another way than a maximum")
            op, factor = made
            part, whole = self.parts[top], self.known[top]
            away: Value = Operation("-", (part, whole))
            if factor is not None:
                away = Operation("*", (away, factor))
            scale = Operation(op, (away,))
            low = Number(LOWEST, part.dtype)
            known[top] = self._beside(top, Choose(Compare("==", part, low),
                                                  Number(0.0, part.dtype), part))  # fmt: skip
        inner = self._inside(value, known)
        number = fold.number * PARTS
        nothing = Number(neutral(fold.op, fold.dtype), fold.dtype)
        if _at(value, self._filled) != nothing.value:
            inner = Choose(self.cut.inside, inner, nothing)
        part = replace(fold, name=f"{fold.name}_piece", number=number + 1, value=inner,
                       over=self.cut.within, start=nothing)  # fmt: skip
        whole_value: Value = part if scale is None else Operation("*", (part, scale))
        self.parts[fold] = part
        self.known[fold] = replace(fold, number=number + 2, value=whole_value,
                                   over=self.cut.which, start=self.outside(fold.start))  # fmt: skip

    def _beside(self, top: Folded, value: Value) -> Kept:
        """What the sum of a piece is taken beside, once for the piece."""
        if top not in self.besides:
            number = top.number * PARTS + 3
            self.besides[top] = Kept(f"{top.name}_beside", None, top.dtype, number, value)
        return self.besides[top]

    def _inlined(self, value: Value) -> Value:
        """Without values that are kept: of a piece they are computed where they are used."""

        def found(each: Value) -> Value:
            return self._inlined(each.value) if isinstance(each, Kept) else each

        return map_value(value, lambda expr: expr, found)

    def _inside(self, value: Value, known: Mapping[Value, Value]) -> Value:
        """A value along the row, in a piece."""

        def found(each: Value) -> Value:
            if each in known:
                return known[each]
            match each:
                case Loaded() if self.cut.over in each.access.axes:
                    return self._load(each)
                case FromIndex(expr, dtype):
                    return FromIndex(self._expr(expr), dtype)
                case Choose(condition, then, otherwise) if not isinstance(condition, Compare):
                    return Choose(self._expr(condition), then, otherwise)
            return self._found(each)

        return map_value(value, lambda expr: expr, found)

    def _expr(self, expr: Expr) -> Expr:
        return substitute(expr, {self.cut.over.name: self.cut.at.expr})

    # -- loads -------------------------------------------------------------------------------------

    def _load(self, load: Loaded) -> Loaded:
        if load not in self.loads:
            access, cut = load.access, self.cut
            if access.named or access.where is not None or not access.is_linear:
                raise NotMeantError(f"'{load}' is loaded where data or conditions say")
            subscripts = tuple(self._subscript(each) for each in access.subscripts)
            fill = self.fill if load.dtype.is_real else 0
            inner = ir.Access(access.array, subscripts, ir.Where(cut.inside, cut.axes), fill)
            self.loads[load] = replace(load, name=f"{load.name}_piece", access=inner,
                                       number=load.number * PARTS + 1)  # fmt: skip
        return self.loads[load]

    def _subscript(self, given: ir.Subscript) -> ir.Subscript:
        assert isinstance(given, ir.Affine)
        factor = given.factors.get(self.cut.over, 0)
        others = tuple((axis, f) for axis, f in given.terms if axis is not self.cut.over)
        return ir.Affine(given.offset, others) + self.cut.at * factor

    def _fill(self, values: Mapping[Folded, Value]) -> float:
        """What loads give beyond the ends of a row: what leaves most folds as they are."""

        def count(fill: float) -> int:
            self.fill = fill
            return sum(_at(value, self._filled) == neutral(fold.op, fold.dtype)
                       for fold, value in values.items())  # fmt: skip

        return max((0.0, LOWEST), key=count)

    def _filled(self, load: Loaded) -> float | None:
        if self.cut.over in load.access.axes and load.dtype.is_real:
            return self.fill
        return None


def _exponential(value: Value, top: Folded) -> tuple[Operator, Number | None] | None:
    """Returns f and c of a product with one factor f(c·(u − top)), which alone needs `top`."""
    match value:
        case Operation("*", (left, right)):
            own = [each for each in (left, right) if top in set(walk_value(each))]
            return _exponential(own[0], top) if len(own) == 1 else None
        case Operation(op, (power,)) if op in EXPONENTIALS:
            found = _less(power, top)
            return None if found is None else (op, *found)
    return None


def _less(power: Value, top: Folded) -> tuple[Number | None] | None:
    """The number c of c·(u − top)."""
    match power:
        case Operation("-", (left, right)) if right is top and top not in set(walk_value(left)):
            return (None,)
        case Operation("*", (Operation("-", (left, right)), Number() as factor)) | Operation(
            "*", (Number() as factor, Operation("-", (left, right)))
        ) if right is top and top not in set(walk_value(left)):
            return (factor,)
    return None


def _at(value: Value, filled: Callable[[Loaded], float | None]) -> float | None:
    """What a value is where loads are what `filled` says, however other leaves are; None if that
    is not known. Beside what is lower than all numbers other leaves are finite."""
    match value:
        case Loaded():
            return filled(value)
        case Number(number):
            return float(number)
        case Cast(_, inner):
            return _at(inner, filled)
        case Operation(op, parts):
            return _of(op, [_at(each, filled) for each in parts])
    return None


def _of(op: str, parts: list[float | None]) -> float | None:
    match op, parts:
        case "-", [float(left), right] if left == LOWEST:
            return None if right == LOWEST else LOWEST
        case "*", [float(left), float(right)] if math.isfinite(left) or math.isfinite(right):
            return None if 0 in (left, right) and LOWEST in (left, right) else left * right
        case "*", [left, right] if LOWEST in (left, right):
            return None
        case _, [float(only)] if op in EXPONENTIALS:
            return 0.0 if only == LOWEST else None
    return None
