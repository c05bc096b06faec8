"""Attention as an operator of PyTorch: `torch.ops.warploom.attention(q, k, v, causal)`.

Options have a value for each kind: a window, a scale or a soft cap of 0 is none. On the CPU the
plain expression runs; its words are those that NumPy and PyTorch share.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from warploom.catalogue.attention.asked import Options
from warploom.catalogue.attention.call import Attending
from warploom.catalogue.attention.gradient import gradients, seen_by, wide
from warploom.runtime.view import library_of

SCHEMA = (
    "Tensor q, Tensor k, Tensor v, bool causal=False, int window=0, float scale=0.0, "
    "float soft_cap=0.0"
)


def run(q: Any, k: Any, v: Any, *options: Any) -> Any:
    """By our kernels."""
    return _called(options)(q.detach(), k.detach(), v.detach())


def plain(q: Any, k: Any, v: Any, *options: Any) -> Any:
    made, _ = in_words(q, k, v, said(*options))
    return made.to(q.dtype) if library_of(q) == "torch" else made.astype(q.dtype)


def all_gradients(_: Any, gradient: Any, q: Any, k: Any, v: Any, *options: Any) -> Any:
    """Those of q, k and v; results and the logarithms of their sums are computed once more."""
    if getattr(q, "is_cuda", False):
        result, logarithms = _called(options)(q.detach(), k.detach(), v.detach(), lse=True)
    else:
        result, logarithms = in_words(q, k, v, said(*options))
    arrays = {"q": q, "k": k, "v": v}
    return gradients(gradient, arrays, result, logarithms, said(*options))


def said(
    causal: bool = False, window: int = 0, scale: float = 0.0, soft_cap: float = 0.0
) -> Options:
    given = {"window": window or None, "scale": scale or None, "soft_cap": soft_cap or None}
    return Options().with_given({"causal": causal, **given})


@lru_cache(maxsize=64)
def _called(options: tuple[Any, ...]) -> Attending:
    return Attending(said(*options))


def in_words(q: Any, k: Any, v: Any, options: Options) -> tuple[Any, Any]:
    """The result and the logarithms of sums, in single precision or more."""
    module = import_module(library_of(q))
    (heads, queries, head), keys = q.shape[1:], k.shape[2]
    where = {"device": q.device} if library_of(q) == "torch" else {}
    shared = module.arange(heads, **where) // (heads // k.shape[1])
    k, v = wide(k)[:, shared], wide(v)[:, shared]
    scale = head**-0.5 if options.scale is None else options.scale
    s = wide(q) @ k.swapaxes(-1, -2) * scale
    if options.soft_cap is not None:
        s = module.tanh(s / options.soft_cap) * options.soft_cap
    seen = seen_by(module, q, queries, keys, options)
    if seen is not None:
        s = module.where(seen, s, module.zeros_like(s) - float("inf"))
    most = module.amax(s, -1)
    most = module.where(most > -float("inf"), most, module.zeros_like(most))
    p = module.exp(s - most[..., None])
    total = p.sum(-1)
    known = module.where(total > 0, total, module.zeros_like(total) + 1)
    logarithms = module.where(total > 0, most + module.log(known), most - float("inf"))
    return p @ v / known[..., None], logarithms
