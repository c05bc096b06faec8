"""Attention as a loop nest: what a user would write, and the start of own variants.

>>> from warploom.loopnest.attention.stated import attention_of
>>> found = attention_of(attention_nest(2, 8, 256, 256, 64, causal=True, cap=30.0).done())
>>> found.attention.causal, found.attention.map is None
(True, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from warploom.errors import CheckError
from warploom.kernel.dtype import DType, bf16, f32
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, cast, choose, exp, log, tanh
from warploom.loopnest.ir import Program

NAMES = ("q", "k", "v", "o", "lse", "bias")


def attention_nest(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    head: int,
    *,
    groups: int = 1,
    causal: bool = False,
    window: int | None = None,
    cap: float | None = None,
    bias: Sequence[bool] | None = None,
    bias_dtype: DType = f32,
    sums: bool = False,
    scale: float | None = None,
    dtype: DType = bf16,
) -> LoopNest:
    """o = softmax(cap·tanh(c·q·kᵀ / cap) + bias + mask)·v. Of `heads` of queries `groups` share
    keys. The last query sees the last key: `causal` ones see none after that, with a `window`
    only so many up to there. `bias` says along which of batch, heads and queries it has elements of
    its own. With `sums` the logarithms of the sums of exponentials are a second result, lse."""
    if not dtype.is_real:
        raise CheckError(f"attention of {dtype!r}", advice="weights are fractions: give floats")
    x = LoopNest("attention")
    b, h, g = x.axis("b", batch), x.axis("h", heads // groups), x.axis("g", groups)
    i, j = x.axis("i", queries), x.axis("j", keys)
    c, e = x.axis("c", head), x.axis("e", head)
    q = x.array("q", b, h, g, i, c, dtype=dtype)
    k, v = x.array("k", b, h, j, c, dtype=dtype), x.array("v", b, h, j, e, dtype=dtype)
    products = x.sum(cast(q[b, h, g, i, c], f32) * cast(k[b, h, j, c], f32), over=c)
    s: Value = products * (head**-0.5 if scale is None else scale)
    if cap is not None:
        s = tanh(s / cap) * cap
    if bias is not None:
        along = [a for a, own in zip((b, h, g, i), _by_axis(bias), strict=True) if own]
        added = x.array("bias", *along, j, dtype=bias_dtype)[(*along, j)]
        s = s + (added if bias_dtype is f32 else cast(added, f32))
    if causal:
        s = choose(j.expr.le(i.expr + (keys - queries)), s, -inf)
    if window is not None:
        s = choose(j.expr.gt(i.expr + (keys - queries - window)), s, -inf)
    s = x.value(s)
    m = x.fold("max", s, over=j)
    p = x.value(exp(s - m))
    total = x.sum(p, over=j)
    o = x.array("o", b, h, g, i, e, dtype=dtype)
    result = x.sum(cast(cast(p, dtype), f32) * cast(v[b, h, j, e], f32), over=j)
    o[b, h, g, i, e] = cast(result / total, dtype)
    if sums:
        lse = x.array("lse", b, h, g, i)
        lse[b, h, g, i] = m + log(total)
    return x


def _by_axis(bias: Sequence[bool]) -> tuple[bool, bool, bool, bool]:
    """Returns the same of batch, heads with own keys, heads that share them, queries."""
    batch, heads, queries = bias
    return batch, heads, heads, queries


def attention(
    batch: int, heads: int, queries: int, keys: int, head: int, *, groups: int = 1,
    causal: bool = False, window: int = 0, cap: int = 0, dtype: DType = bf16, cut: object = None,
) -> Program:  # fmt: skip
    """o = softmax(c·q·kᵀ)·v; a window or a cap of 0 is none. Nothing is cut here."""
    del cut
    return attention_nest(
        batch, heads, queries, keys, head,
        groups=groups, causal=causal, window=window or None, cap=float(cap) or None, dtype=dtype,
    ).done()  # fmt: skip
