"""Which computations are attention, as a user states it.

    s = c · Σ_d q[…, i, d]·k[…, j, d]      m = max_j s      p = e^(s − m)
    o[…, i, e] = Σ_j p·v[…, j, e] / Σ_j p, or Σ_j (p / Σ_j p)·v[…, j, e]
    logarithm[…, i] = m + log Σ_j p, where it is stored, too

Queries, keys and values are bf16 or f16 and converted where they are multiplied, as p is to their
type and back. Axes before i, j are heads; those of queries alone share keys. Scores may be -∞ where
j > i + a or j < i − b: blocks of keys that no query sees are skipped. What else becomes of scores
is a map (`scores.py`): a soft cap, biases, other masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, isinf, prod

from warploom.errors import CheckError
from warploom.index.ir import Binary, Expr, Var, variables
from warploom.index.polynomial import Normal
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cast, Choose, Number, Operation, Value
from warploom.loopnest import ir
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.scores import ScoreMap, parts_of
from warploom.loopnest.computation import Computation, Folded, Kept, Loaded, Stored
from warploom.loopnest.strategies.form import NotMeantError

FAR = 1 << 30  # beyond any query and key


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """`names` of arrays, by what they are in attention: q, k, v, o, and lse; those that scores are
    mapped with by a number. Of the axes of heads the last share keys, so many as `shared`."""

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
        map = self.attention.map
        return replace(
            self.attention, heads=prod(own), groups=groups, queries=query, keys=key,
            map=None if map is None else map.along(sizes),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """`seen` are conditions on the axes alone; `value` is what `total` becomes before the scale."""

    q: Loaded
    k: Loaded
    over: ir.Axis
    scale: float
    seen: tuple[Expr, ...]
    total: Folded
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class _Softmax:
    """Scores, the greatest of a row, what exponentials add up to, and values beside them."""

    scores: Value
    most: Folded
    total: Folded
    value: Loaded


def attention_of(program: ir.Program) -> Stated:
    """The attention that a program is, or why it is none."""
    source = Computation.of(program)
    if not 1 <= len(source.stores) <= 2 or source.parameters:
        raise NotMeantError(
            "it does not store results, and maybe logarithms of sums, of arrays alone"
        )
    result, *others = sorted(source.stores, key=lambda each: _is_wide(each.access), reverse=True)
    softmax = _softmax(result)
    scores = _scores(softmax.scores)
    logarithm = others[0] if others else None
    if logarithm is not None and not _is_logarithm(logarithm.value, softmax):
        raise NotMeantError("a second result is not the greatest score + log of the sum of weights")
    return _stated(scores, softmax, result, logarithm)


def _is_wide(access: ir.Access) -> int:
    return len(access.axes)


def _plain(value: Value) -> Value:
    """A value that is computed once, as what it is."""
    while isinstance(value, Kept):
        value = value.value
    return value


def _softmax(store: Stored) -> _Softmax:
    """Results divided by the sum of weights, or a sum with weights that were divided before: a
    product commutes with factors of rows."""
    stored = _plain(store.value)
    result = _plain(stored.value) if isinstance(stored, Cast) else stored
    total: Value | None = None
    match result:
        case Operation("/", (Folded() as inner, Folded() as total)):
            result = inner
    if not isinstance(stored, Cast) or not isinstance(result, Folded) or not _sums(result):
        raise NotMeantError(
            "what is stored is no converted sum of weighted values, nor a quotient of two sums"
        )
    weights, value = _weighed(result)
    match weights:
        case Operation("/", (own, Folded() as total)):
            weights = _plain(own)
    if not isinstance(total, Folded) or not _sums(total) or total.over != result.over:
        raise NotMeantError("results are not divided by the sum of their weights")
    if _plain(total.value) is not weights or len(result.over) != 1:
        raise NotMeantError("results are not divided by the sum of their weights")
    scores, most = _exponent(weights, result.over[0])
    return _Softmax(scores, most, total, value)


def _sums(*folds: Folded) -> bool:
    return all(e.op == "+" and isinstance(e.start, Number) and e.start.value == 0 for e in folds)


def _weighed(result: Folded) -> tuple[Value, Loaded]:
    """Weights, rounded as they are multiplied, and values."""
    for first, second in _orders(_plain(result.value)):
        match first, second:
            case Cast(_, rounded), Cast(_, Loaded() as value):
                match _plain(rounded):
                    case Cast(kind, weights) if kind is value.dtype:
                        return _plain(weights), value
    raise NotMeantError(
        "weights are not rounded to the type of the values that they multiply: "
        "write cast(cast(weights, bf16), f32) * cast(V[…], f32)"
    )


def _orders(value: Value) -> Iterator[tuple[Value, Value]]:
    """The factors of a product, in both orders."""
    match value:
        case Operation("*", (a, b)):
            yield _plain(a), _plain(b)
            yield _plain(b), _plain(a)


def _exponent(weights: Value, over: ir.Axis) -> tuple[Value, Folded]:
    """What the weights are exponentials of, less its greatest."""
    match weights:
        case Operation("exp", (difference,)):
            match _plain(difference):
                case Operation("-", (scores, Folded() as most)):
                    own = most.op == "max" and most.over == (over,)
                    least = isinstance(most.start, Number) and most.start.value == -inf
                    if own and least and _plain(most.value) is _plain(scores):
                        return _plain(scores), most
    raise NotMeantError("weights are no exponentials of scores less the greatest of a row")


def _is_logarithm(value: Value, softmax: _Softmax) -> bool:
    match _plain(value):
        case Operation("+", (a, b)):
            both = [_plain(a), _plain(b)]
            log = [e for e in both if isinstance(e, Operation) and e.op == "log"]
            return softmax.most in both and [_plain(e.operands[0]) for e in log] == [softmax.total]
    return False


# -- scores


def _scores(value: Value) -> _Scores:
    """Masks and factors that are outermost are taken off, one after another: they commute."""
    seen: list[Expr] = []
    scale = 1.0
    while True:
        value = _plain(value)
        match value:
            case Choose(condition, then, Number(other)) if (
                isinstance(condition, Expr) and isinf(other) and other < 0
            ):
                value = then
                seen.append(condition)
            case Operation("*", (Number(number), inner)) if number > 0:
                value, scale = inner, scale * number
            case Operation("*" | "/" as op, (inner, Number(number))) if number > 0:
                value, scale = inner, (scale * number if op == "*" else scale / number)
            case _:
                break
    total = _products(value)
    for first, second in _orders(_plain(total.value)):
        match first, second:
            case Cast(_, Loaded() as q), Cast(_, Loaded() as k):
                return _Scores(q, k, total.over[0], scale, tuple(seen), total, value)
    raise NotMeantError("scores are no sums of products of two converted loads")


def _products(value: Value) -> Folded:
    """The one sum that scores are made of."""
    pending, found = [value], dict[Folded, None]()
    while pending:
        each = pending.pop()
        if isinstance(each, Folded):
            found[each] = None
        pending += parts_of(each)
    if len(found) != 1 or not _sums(*found) or any(len(each.over) != 1 for each in found):
        raise NotMeantError("scores are of no sum, or of several")
    return next(iter(found))


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Binary("and", left, right):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield condition


@dataclass(slots=True)
class _Band:
    """Keys from `lower` to `upper` beside a query's own number; what else is asked for."""

    upper: int | None
    lower: int | None
    others: list[Expr]


def _band(seen: tuple[Expr, ...], query: ir.Axis, key: ir.Axis) -> _Band:
    made = _Band(None, None, [])
    for each in (part for condition in seen for part in _conjuncts(condition)):
        found = _limit(each, query, key)
        if found is None:
            made.others.append(each)
        elif found[0] == "upper":
            made.upper = found[1] if made.upper is None else min(made.upper, found[1])
        else:
            made.lower = found[1] if made.lower is None else max(made.lower, found[1])
    return made


def _limit(condition: Expr, query: ir.Axis, key: ir.Axis) -> tuple[str, int] | None:
    """j − i <= c as an upper limit, j − i >= c as a lower one."""
    names = {query.name, key.name}
    match condition:
        case Binary("<" | "<=" | ">" | ">=" as op, left, right) if variables(condition) == names:
            apart = Var(key.name) - Var(query.name)
            strict = len(op) == 1
            above = _constant(left - right - apart, names)  # j − i + above < 0
            if above is not None:
                if op[0] == "<":
                    return "upper", -above - strict
                return "lower", -above + strict
            below = _constant(left - right + apart, names)  # below − (j − i) < 0
            if below is not None:
                if op[0] == "<":
                    return "lower", below + strict
                return "upper", below - strict
    return None


def _constant(expr: Expr, names: set[str]) -> int | None:
    """The number that an expression is, whatever its variables are."""
    terms = Normal(dict.fromkeys(names, (0, FAR))).of(expr).terms
    return terms.get((), 0) if not set(terms) - {()} else None


# -- axes and arrays


def _stated(scores: _Scores, softmax: _Softmax, store: Stored, logarithm: Stored | None) -> Stated:
    over = softmax.total.over[0]
    q, k = (scores.q, scores.k) if over in scores.k.access.axes else (scores.k, scores.q)
    parts = {"q": q.access, "k": k.access, "v": softmax.value.access, "o": store.access}
    dtypes = {each.array.dtype for each in parts.values()}
    if len(dtypes) != 1 or not dtypes <= {DType.BF16, DType.F16}:
        raise NotMeantError("arrays are not all bf16, or f16")
    orders = {name: _dense(access) for name, access in parts.items()}
    *heads, query, deep = orders["q"]
    *kept, key, wide = orders["k"]
    result = orders["o"]
    own = heads[: len(kept)] == kept and orders["v"][:-1] == (*kept, over)
    alike = orders["v"][-1].size == deep.size and result == (*heads, query, orders["v"][-1])
    if not (own and alike and key is over and query is not key and deep is wide is scores.over):
        raise NotMeantError("axes are not those of heads, queries, keys and numbers of a head")
    if logarithm is not None:
        parts["lse"] = logarithm.access
        if _dense(logarithm.access, 1) != (*heads, query):
            raise NotMeantError("logarithms of sums are not stored along heads and queries")
        if logarithm.access.array.dtype is not DType.F32:
            raise NotMeantError("logarithms of sums are not stored as f32")
    band = _band(scores.seen, query, key)
    map = _map(scores, band, tuple(heads), query, key)
    shift = key.size - query.size
    try:
        made = Attention(
            1, prod(each.size for each in heads), query.size, key.size, deep.size,
            band.upper is not None, "bf16" if dtypes == {DType.BF16} else "f16",
            prod(each.size for each in heads[len(kept) :]),
            None if band.lower is None else shift - band.lower + 1,
            logarithm is not None, scores.scale, 0 if band.upper is None else band.upper - shift,
            map,
        )  # fmt: skip
    except CheckError as error:
        raise NotMeantError(str(error)) from None
    if made.has_empty_rows:
        raise NotMeantError("some queries see no key: what is stated of them is no number")
    names = {name: access.array.name for name, access in parts.items()}
    extra = () if map is None else map.arrays
    names |= {f"of_scores_{at}": each.name for at, each in enumerate(extra)}
    return Stated(made, names, tuple(heads), len(heads) - len(kept), query, key)


def _map(
    scores: _Scores, band: _Band, heads: tuple[ir.Axis, ...], query: ir.Axis, key: ir.Axis
) -> ScoreMap | None:
    """What scores become beside a factor and a band; None if nothing."""
    if not band.others and scores.value is scores.total:
        return None
    value = scores.value
    for each in band.others:
        value = Choose(each, value, Number(-inf, DType.F32))
    made = ScoreMap(value, scores.total, heads, query, key)
    made.check()
    return made


def _dense(access: ir.Access, least: int = 2) -> tuple[ir.Axis, ...]:
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
    if len(axes) < least:
        raise NotMeantError(f"'{access.array}' has no rows")
    return tuple(axes)
