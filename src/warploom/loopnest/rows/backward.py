"""Gradients of what `forward.py` states: of rows, and of what all rows share.

`g` is the gradient of the result. What a forward pass had of its rows is computed again: that
takes no further look at memory. Sums over all rows are given what `statistics` has of each.
"""

from __future__ import annotations

from warploom.kernel.dtype import DType, i32, u8
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, choose, rsqrt
from warploom.loopnest.rows.common import Rows, power, stored
from warploom.loopnest.rows.forward import Norm, if_named


def softmax(m: int, n: int, dtype: DType) -> LoopNest:
    """y·(g − Σ y·g), where y is the softmax of x: with e = e^(x − max), Σ y·g is Σ e·g / Σ e."""
    rows = Rows.of("softmax_gradient", m, n, dtype)
    g, own = rows.given("g"), rows.given("x")
    top = rows.highest(own)
    share = rows.nest.value(1.0 / rows.sum(power(own - top)))
    less = rows.nest.value(rows.sum(power(own - top) * g) * share)
    rows.put("dx", power(own - top) * share * (g - less))
    return rows.nest


def log_softmax(m: int, n: int, dtype: DType) -> LoopNest:
    """g − y·Σ g, where y is the softmax of x."""
    rows = Rows.of("log_softmax_gradient", m, n, dtype)
    g, own = rows.given("g"), rows.given("x")
    top = rows.highest(own)
    share = rows.nest.value(rows.sum(g) / rows.sum(power(own - top)))
    rows.put("dx", g - power(own - top) * share)
    return rows.nest


def cross_entropy(m: int, n: int, dtype: DType, labels: DType = i32) -> LoopNest:
    """(softmax − 1 at the label)·g, where g is one number for each row."""
    rows = Rows.of("cross_entropy_gradient", m, n, dtype)
    g = rows.each("g")[rows.i]
    own, named = rows.given("x"), rows.each("label", labels)[rows.i]
    top = rows.highest(own)
    by = rows.nest.value(if_named(named, n, g))
    share = rows.nest.value(by / rows.sum(power(own - top)))
    right = choose(rows.nest.index(rows.j, labels).eq(named), by, 0.0)
    rows.put("dx", power(own - top) * share - right)
    return rows.nest


def layer_norm(m: int, n: int, dtype: DType, norm: Norm) -> LoopNest:
    """With x̂ = (x − mean)·by and s = g·scale: by·(s − mean of s − x̂·(mean of s·x̂))"""
    rows = Rows.of("layer_norm_gradient", m, n, dtype)
    g, own = rows.given("g"), rows.given("x")
    g = g * rows.factor("scale", norm.weights) if norm.scale else g
    away = own - rows.nest.value(rows.mean(own))
    by = rows.nest.value(rsqrt(rows.mean(away * away) + norm.epsilon))
    less = rows.nest.value(rows.mean(g))
    along = rows.nest.value(rows.mean(g * away) * (by * by))
    _put(rows, (g - less - away * along) * by, norm)
    return rows.nest


def rms_norm(m: int, n: int, dtype: DType, norm: Norm) -> LoopNest:
    """With x̂ = x·by and s = g·scale: by·(s − x̂·(mean of s·x̂))"""
    rows = Rows.of("rms_norm_gradient", m, n, dtype)
    g, own = rows.given("g"), rows.given("x")
    g = g * rows.factor("scale", norm.weights) if norm.scale else g
    by = rows.nest.value(rsqrt(rows.mean(own * own) + norm.epsilon))
    along = rows.nest.value(rows.mean(g * own) * (by * by))
    _put(rows, (g - own * along) * by, norm)
    return rows.nest


def _put(rows: Rows, made: Value, norm: Norm) -> None:
    """The gradient of what is normed: of the residual as it is, of x where that is not dropped.
    What is stored beside the norm has a gradient of its own."""
    if norm.residual or norm.mask:
        made = made + rows.given("dsum")
    if not norm.mask:
        rows.put("dx", made)
        return
    made = rows.nest.value(made)
    kept = rows.whole("mask", u8)[rows.i, rows.j].ne(0)
    rows.put("dx", choose(kept, made * rows.nest.parameter("factor"), 0.0))
    if norm.residual:
        rows.put("dresidual", made)


# -- what all rows share ---------------------------------------------------------------------------


def scale(m: int, n: int, dtype: DType, weights: DType, has_mean: bool) -> LoopNest:
    """The gradient of a norm's factors: the sum of g·x̂ over all rows."""
    rows = Rows.of("scale_gradient", m, n, dtype)
    g, away = rows.given("g"), rows.given("x")
    if has_mean:
        away = away - rows.each("mean")[rows.i]
    made = rows.nest.sum(g * (away * rows.each("by")[rows.i]), over=rows.i)
    rows.column("dscale", weights)[rows.j] = stored(made, weights)
    return rows.nest


def shift(m: int, n: int, dtype: DType, weights: DType) -> LoopNest:
    """The gradient of a norm's summands: the sum of g over all rows."""
    rows = Rows.of("shift_gradient", m, n, dtype)
    made = rows.nest.sum(rows.given("g"), over=rows.i)
    rows.column("dshift", weights)[rows.j] = stored(made, weights)
    return rows.nest
