"""Gradients of attention: weights again from the logarithms of their sums, then products.

    p = e^(s − lse)    dv = pᵀ·do    ds = p·(do·vᵀ − Σ do·o)    dq = c·ds·k    dk = c·dsᵀ·q

Written with what NumPy, CuPy and PyTorch call alike, for the heads of one key head at a time:
right, and as fast as the library's own products.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from warploom.runtime.view import library_of

if TYPE_CHECKING:
    from warploom.catalogue.attention.asked import Options


def gradients(
    gradient: Any, arrays: Any, result: Any, logarithms: Any, options: Options
) -> tuple[Any, Any, Any]:
    """Those of q, k and v, for the gradient of the result."""
    q, k, v = (arrays[name] for name in "qkv")
    module = import_module(library_of(q))
    (batch, heads, queries, head), (kept, keys) = q.shape, k.shape[1:3]
    groups = heads // kept
    scale = head**-0.5 if options.scale is None else options.scale
    made = tuple(module.zeros_like(each) for each in (q, k, v))
    seen = seen_by(module, q, queries, keys, options)
    for b in range(batch):
        for h in range(kept):
            own = slice(h * groups, (h + 1) * groups)
            dq, dk, dv = _of_head(
                module, wide(q[b, own]), wide(k[b, h]), wide(v[b, h]), wide(gradient[b, own]),
                wide(result[b, own]), wide(logarithms[b, own]), scale, options.soft_cap,
                _bias(arrays, b, own), seen,
            )  # fmt: skip
            made[0][b, own], made[1][b, h], made[2][b, h] = (
                _like(each, to) for each, to in zip((dq, dk, dv), made, strict=True)
            )
    return made


def _of_head(
    module: Any, q: Any, k: Any, v: Any, do: Any, o: Any, lse: Any, scale: float,
    cap: float | None, bias: Any, seen: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    s = (q @ k.T) * scale
    slope = None
    if cap is not None:
        s = module.tanh(s / cap)
        slope = 1 - s * s
        s = s * cap
    if bias is not None:
        s = s + bias
    some = (lse > -float("inf"))[..., None]  # of queries that see a key
    p = module.exp(s - module.where(some, lse[..., None], module.zeros_like(lse)[..., None]))
    known = some if seen is None else some & seen
    p = module.where(known, p, module.zeros_like(p))
    dv = (p.swapaxes(-1, -2) @ do).sum(0)
    ds = p * (do @ v.T - (do * o).sum(-1)[..., None])
    if slope is not None:
        ds = ds * slope
    dk = (ds.swapaxes(-1, -2) @ q).sum(0) * scale
    return (ds @ k) * scale, dk, dv


def seen_by(module: Any, like: Any, queries: int, keys: int, options: Options) -> Any:
    """Which queries see which keys; None if all see all."""
    if not options.causal:
        return None
    where = {"device": like.device} if library_of(like) == "torch" else {}
    last = module.arange(queries, **where)[:, None] + (keys - queries)
    key = module.arange(keys, **where)[None]
    found = key <= last
    return found if options.window is None else found & (key > last - options.window)


def _bias(arrays: Any, b: int, own: slice) -> Any:
    bias = arrays.get("bias")
    if bias is None:
        return None
    while len(bias.shape) < 4:
        bias = bias[None]
    return wide(bias[b if bias.shape[0] > 1 else 0][own if bias.shape[1] > 1 else slice(None)])


def wide(array: Any) -> Any:
    """In single precision, or more where it has that."""
    if library_of(array) == "torch":
        return array if "64" in str(array.dtype) else array.float()
    return array if array.dtype.itemsize == 8 else array.astype("float32")


def _like(array: Any, other: Any) -> Any:
    return array.to(other.dtype) if library_of(array) == "torch" else array.astype(other.dtype)
