"""Softmax, norms and cross entropy of rows, as anyone would state them.

Numbers are computed in single precision, whatever they are stored in. A row that is -inf throughout
has no softmax: it is no number. The loss of a row whose label names no class is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.kernel.dtype import DType, f32, i32, u8
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, choose, log, rsqrt
from warploom.loopnest.rows.common import Rows, power, single, stored

EPSILON = 1e-5


def softmax(m: int, n: int, dtype: DType) -> LoopNest:
    rows = Rows.of("softmax", m, n, dtype)
    own = rows.given("x")
    top = rows.highest(own)
    share = rows.nest.value(1.0 / rows.sum(power(own - top)))
    rows.put("y", power(own - top) * share)
    return rows.nest


def log_softmax(m: int, n: int, dtype: DType) -> LoopNest:
    rows = Rows.of("log_softmax", m, n, dtype)
    own = rows.given("x")
    top = rows.highest(own)
    less = rows.nest.value(log(rows.sum(power(own - top))))
    rows.put("y", own - top - less)
    return rows.nest


def cross_entropy(m: int, n: int, dtype: DType, labels: DType = i32) -> LoopNest:
    """The loss of each row: log Σ e^x, less x of the class that the label names."""
    rows = Rows.of("cross_entropy", m, n, dtype)
    x, label, loss = rows.whole("x"), rows.each("label", labels), rows.each("loss")
    own = single(x[rows.i, rows.j])
    top = rows.highest(own)
    total = rows.sum(power(own - top))
    named = label[rows.i]
    made = log(total) + (top - single(x[rows.i, named]))
    loss[rows.i] = if_named(named, n, made)
    return rows.nest


def if_named(label: Value, n: int, value: Value) -> Value:
    """0 where a label names no class."""
    return choose(label.ge(0), choose(label.lt(n), value, 0.0), 0.0)


@dataclass(frozen=True, slots=True)
class Norm:
    """What a norm has beside its rows: a factor and a summand for each place of a row, of the type
    `weights`; before it a `residual` is added, to x where it is not dropped. The sum is stored,
    too."""

    scale: bool = True
    shift: bool = False
    residual: bool = False
    mask: bool = False
    weights: DType = f32
    epsilon: float = EPSILON


def layer_norm(m: int, n: int, dtype: DType, norm: Norm) -> LoopNest:
    rows = Rows.of("layer_norm", m, n, dtype)
    own = summed(rows, norm)
    away = own - rows.nest.value(rows.mean(own))
    by = rows.nest.value(rsqrt(rows.mean(away * away) + norm.epsilon))
    _weighted(rows, away * by, norm, own)
    return rows.nest


def rms_norm(m: int, n: int, dtype: DType, norm: Norm) -> LoopNest:
    rows = Rows.of("rms_norm", m, n, dtype)
    own = summed(rows, norm)
    by = rows.nest.value(rsqrt(rows.mean(own * own) + norm.epsilon))
    _weighted(rows, own * by, norm, own)
    return rows.nest


def summed(rows: Rows, norm: Norm) -> Value:
    """What is normed; a sum is rounded as it is stored, so that the gradient sees the same."""
    own = rows.given("x")
    if norm.mask:
        own = choose(rows.whole("mask", u8)[rows.i, rows.j].ne(0),
                     own * rows.nest.parameter("factor"), 0.0)  # fmt: skip
    if norm.residual:
        own = own + rows.given("residual")
    if norm.residual or norm.mask:
        own = rows.nest.value(single(stored(own, rows.dtype)))
    return own


def _weighted(rows: Rows, made: Value, norm: Norm, own: Value) -> None:
    if norm.scale:
        made = made * rows.factor("scale", norm.weights)
    if norm.shift:
        made = made + rows.factor("shift", norm.weights)
    rows.put("y", made)
    if norm.residual or norm.mask:
        rows.put("sum", own)


def statistics(m: int, n: int, dtype: DType, norm: Norm, has_mean: bool) -> LoopNest:
    """What a norm takes of each row: its mean, if it has one, and its factor."""
    rows = Rows.of("statistics", m, n, dtype)
    own = rows.given("x")
    if has_mean:
        mean = rows.nest.value(rows.mean(own))
        rows.each("mean")[rows.i] = mean
        own = own - mean
    rows.each("by")[rows.i] = rsqrt(rows.mean(own * own) + norm.epsilon)
    return rows.nest
