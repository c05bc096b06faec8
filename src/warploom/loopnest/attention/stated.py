"""Which computations are attention, as a user states it.

    s = c · Σ_d q[…, i, d]·k[…, j, d], or -∞ where j > i + shift      m = max_j s      p = e^(s − m)
    o[…, i, e] = Σ_j p·v[…, j, e] / Σ_j p

Queries, keys and values are bf16 or f16 and converted where they are multiplied, as p is to their
type and back. Axes before i, j are heads; those of queries alone share keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isinf, prod

from warploom.errors import CheckError
from warploom.index.ir import Expr, Var
from warploom.index.laws import simplify
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cast, Choose, Number, Operation, Value
from warploom.loopnest import ir
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.computation import Computation, Folded, Kept, Loaded, Stored
from warploom.loopnest.strategies.form import NotMeantError


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """`names` of arrays, by what they are in attention: q, k, v and o; axes of heads, of which
    the last share keys, so many as `shared`."""

    attention: Attention
    names: Mapping[str, str]
    heads: tuple[ir.Axis, ...]
    shared: int
    query: ir.Axis
    key: ir.Axis

    def along(self, sizes: Mapping[ir.Axis, int]) -> Attention:
        """The same along shorter axes."""
        own = [sizes.get(each, each.size) for each in self.heads]
        groups = prod(own[len(own) - self.shared :])
        query, key = (sizes.get(each, each.size) for each in (self.query, self.key))
        return replace(self.attention, heads=prod(own), groups=groups, queries=query, keys=key)


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    q: Loaded
    k: Loaded
    over: ir.Axis
    scale: float
    seen: Expr | None  # where a query sees a key


def attention_of(program: ir.Program) -> Stated:
    """The attention that a program is, or why it is none."""
    source = Computation.of(program)
    if len(source.stores) != 1 or source.parameters:
        raise NotMeantError("it does not store once what arrays alone decide")
    (store,) = source.stores
    result, total = _quotient(store)
    weights, value = _weighed(result)
    (over,) = result.over if len(result.over) == 1 else (None,)
    if total.over != result.over or _plain(total.value) is not weights or over is None:
        raise NotMeantError("results are not divided by the sum of their weights")
    scores = _scores(_exponent(weights, over))
    return _stated(scores, value, store, over)


def _plain(value: Value) -> Value:
    """A value that is computed once, as what it is."""
    while isinstance(value, Kept):
        value = value.value
    return value


def _quotient(store: Stored) -> tuple[Folded, Folded]:
    match _plain(store.value):
        case Cast(_, value):
            match _plain(value):
                case Operation("/", (Folded() as result, Folded() as total)) if _sums(
                    result, total
                ):
                    return result, total
    raise NotMeantError("what is stored is no converted quotient of two sums")


def _sums(*folds: Folded) -> bool:
    return all(e.op == "+" and isinstance(e.start, Number) and e.start.value == 0 for e in folds)


def _weighed(result: Folded) -> tuple[Value, Loaded]:
    """Weights, rounded as they are multiplied, and values."""
    match _plain(result.value):
        case Operation("*", (Cast(_, rounded), Cast(_, Loaded() as value))):
            match _plain(rounded):
                case Cast(kind, weights) if kind is value.dtype:
                    return _plain(weights), value
    raise NotMeantError("weights are not rounded to the type of the values that they multiply")


def _exponent(weights: Value, over: ir.Axis) -> Value:
    """What the weights are exponentials of, less its greatest."""
    match weights:
        case Operation("exp", (difference,)):
            match _plain(difference):
                case Operation("-", (scores, Folded() as most)):
                    own = most.op == "max" and most.over == (over,)
                    least = isinstance(most.start, Number) and most.start.value == -inf
                    if own and least and _plain(most.value) is _plain(scores):
                        return _plain(scores)
    raise NotMeantError("weights are no exponentials of scores less the greatest of a row")


def _scores(value: Value) -> _Scores:
    seen: Expr | None = None
    match value:
        case Choose(condition, then, Number(other)) if isinstance(condition, Expr):
            if not (isinf(other) and other < 0):
                raise NotMeantError("scores that are not seen are not -infinity")
            value, seen = _plain(then), condition
    scale = 1.0
    match value:
        case Operation("*", (Number(number), inner)) | Operation("*", (inner, Number(number))):
            value, scale = _plain(inner), number
    if not isinstance(value, Folded) or len(value.over) != 1 or not _sums(value):
        raise NotMeantError("scores are no scaled sums")
    match _plain(value.value):
        case Operation("*", (Cast(_, Loaded() as q), Cast(_, Loaded() as k))):
            return _Scores(q, k, value.over[0], scale, seen)
    raise NotMeantError("scores are no sums of products of two converted loads")


def _stated(scores: _Scores, value: Loaded, store: Stored, over: ir.Axis) -> Stated:
    q, k = (scores.q, scores.k) if over in scores.k.access.axes else (scores.k, scores.q)
    parts = {"q": q.access, "k": k.access, "v": value.access, "o": store.access}
    dtypes = {each.array.dtype for each in parts.values()}
    if len(dtypes) != 1 or not dtypes <= {DType.BF16, DType.F16}:
        raise NotMeantError("arrays are not all bf16, or f16")
    orders = {name: _dense(access) for name, access in parts.items()}
    *heads, query, deep = orders["q"]
    *kept, key, wide = orders["k"]
    result = orders["o"]
    own = heads[: len(kept)] == kept and orders["v"][:-1] == (*kept, over)
    alike = orders["v"][-1].size == deep.size and result == (*heads, query, orders["v"][-1])
    if not (own and alike and key is over and deep is wide is scores.over):
        raise NotMeantError("axes are not those of heads, queries, keys and numbers of a head")
    try:
        made = Attention(
            1, prod(each.size for each in heads), query.size, key.size, deep.size,
            scores.seen is not None, "bf16" if dtypes == {DType.BF16} else "f16",
            prod(each.size for each in heads[len(kept) :]), scale=scores.scale,
        )  # fmt: skip
    except CheckError as error:
        raise NotMeantError(str(error)) from None
    if scores.seen is not None and made.shift < 0:
        raise NotMeantError("some queries see no key: what is stated of them is no number")
    if scores.seen is not None and not _is_causal(scores.seen, query, key, made.shift):
        raise NotMeantError("keys are seen otherwise than up to each query's own")
    names = {name: access.array.name for name, access in parts.items()}
    return Stated(made, names, tuple(heads), len(heads) - len(kept), query, key)


def _dense(access: ir.Access) -> tuple[ir.Axis, ...]:
    """The axes of an array that is accessed whole, the outermost first."""
    if access.where is not None or not access.is_linear or access.place.offset:
        raise NotMeantError(f"'{access.array}' is not accessed along its axes")
    steps = access.place.factors
    axes = sorted(steps, key=lambda axis: (-steps[axis], -axis.size))
    wanted = 1
    for axis in reversed(axes):
        if steps[axis] != wanted:
            raise NotMeantError(f"'{access.array}' is not dense")
        wanted *= axis.size
    if len(axes) < 2:
        raise NotMeantError(f"'{access.array}' has no rows")
    return tuple(axes)


def _is_causal(seen: Expr, query: ir.Axis, key: ir.Axis, shift: int) -> bool:
    """j <= i + shift, in one of the ways to say it."""
    i, j = Var(query.name), Var(key.name)
    ways = [j.le(i + shift), (i + shift).ge(j), j.lt(i + (shift + 1)), (j - i).le(shift)]
    return any(simplify(seen) is simplify(each) for each in ways)
