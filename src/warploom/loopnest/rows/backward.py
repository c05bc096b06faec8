"""Gradients of what `forward.py` states: of rows, and of what all rows share.

`g` is the gradient of the result. What a norm has of its rows, a mean and a factor, is computed
again where rows are at hand, and stored for the sums over all rows.
"""

from __future__ import annotations

from warploom.kernel.dtype import DType, i32, u8
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, choose, rsqrt
from warploom.loopnest.rows.common import Rows, power, stored
from warploom.loopnest.rows.forward import Norm, if_named


def softmax(m: int, n: int, dtype: DType) -> LoopNest:
    """y·(g − Σ y·g)"""
    rows = Rows.of("softmax_gradient", m, n, dtype)
    y, g = rows.given("y"), rows.given("g")
    rows.put("dx", y * (g - rows.sum(y * g)))
    return rows.nest


def log_softmax(m: int, n: int, dtype: DType) -> LoopNest:
    """g − e^y·Σ g"""
    rows = Rows.of("log_softmax_gradient", m, n, dtype)
    y, g = rows.given("y"), rows.given("g")
    rows.put("dx", g - power(y) * rows.sum(g))
    return rows.nest


def cross_entropy(m: int, n: int, dtype: DType) -> LoopNest:
    """(softmax − 1 at the label)·g, where g is one number for each row."""
    rows = Rows.of("cross_entropy_gradient", m, n, dtype)
    own = rows.given("x")
    named, g = rows.each("label", i32)[rows.i], rows.each("g")[rows.i]
    top = rows.highest(own)
    by = rows.nest.value(if_named(named, n, g))
    share = rows.nest.value(by / rows.sum(power(own - top)))
    right = choose(rows.nest.index(rows.j).eq(named), by, 0.0)
    rows.put("dx", power(own - top) * share - right)
    return rows.nest


def layer_norm(m: int, n: int, dtype: DType, norm: Norm) -> LoopNest:
    """With x̂ = (x − mean)·by and s = g·scale: by·(s − mean of s − x̂·(mean of s·x̂))"""
    rows = Rows.of("layer_norm_gradient", m, n, dtype)
    own, g = rows.given("x"), _scaled(rows, norm)
    mean = rows.nest.value(rows.mean(own))
    away = own - mean
    by = rows.nest.value(rsqrt(rows.mean(away * away) + norm.epsilon))
    less = rows.nest.value(rows.mean(g))
    along = rows.nest.value(rows.mean(g * away) * (by * by))
    _put(rows, (g - less - away * along) * by, norm)
    rows.each("mean")[rows.i] = mean
    rows.each("by")[rows.i] = by
    return rows.nest


def rms_norm(m: int, n: int, dtype: DType, norm: Norm) -> LoopNest:
    """With x̂ = x·by and s = g·scale: by·(s − x̂·(mean of s·x̂))"""
    rows = Rows.of("rms_norm_gradient", m, n, dtype)
    own, g = rows.given("x"), _scaled(rows, norm)
    by = rows.nest.value(rsqrt(rows.mean(own * own) + norm.epsilon))
    along = rows.nest.value(rows.mean(g * own) * (by * by))
    _put(rows, (g - own * along) * by, norm)
    rows.each("by")[rows.i] = by
    return rows.nest


def _scaled(rows: Rows, norm: Norm) -> Value:
    g = rows.given("g")
    return g * rows.factor("scale", norm.weights) if norm.scale else g


def _put(rows: Rows, made: Value, norm: Norm) -> None:
    """The gradient of what is normed: of the residual as it is, of x where that is not dropped.
    What is stored beside the norm has a gradient of its own."""
    if norm.residual or norm.mask:
        made = made + rows.given("dsum")
    if norm.mask:
        made = rows.nest.value(made)
        rows.put("dsummed", made)
        kept = rows.whole("mask", u8)[rows.i, rows.j].ne(0)
        made = choose(kept, made * rows.nest.parameter("factor"), 0.0)
    rows.put("dx", made)


# -- what all rows share ---------------------------------------------------------------------------


def scale(m: int, n: int, dtype: DType, weights: DType, has_mean: bool) -> LoopNest:
    """Of a norm's factors: the sum of g·x̂ over all rows."""
    rows = Rows.of("scale_gradient", m, n, dtype)
    away = rows.given("x")
    if has_mean:
        away = away - rows.each("mean")[rows.i]
    made = rows.nest.sum(rows.given("g") * (away * rows.each("by")[rows.i]), over=rows.i)
    rows.column("dscale", weights)[rows.j] = stored(made, weights)
    return rows.nest


def shift(m: int, n: int, dtype: DType, weights: DType) -> LoopNest:
    """Of a norm's summands: the sum of g over all rows."""
    rows = Rows.of("shift_gradient", m, n, dtype)
    made = rows.nest.sum(rows.given("g"), over=rows.i)
    rows.column("dshift", weights)[rows.j] = stored(made, weights)
    return rows.nest
