"""What a call of attention asks for: options and arrays, checked → the computation.

Arrays are (batch, heads, length, size), as PyTorch's `scaled_dot_product_attention` has them; heads
of queries are a multiple of those of keys. What tensor copies cannot reach is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from warploom.errors import CheckError, DeviceError, nearest
from warploom.kernel.dtype import DType
from warploom.loopnest.attention.problem import HEAD_SIZES, LARGEST, Attention
from warploom.loopnest.attention.program import attention_nest
from warploom.loopnest.attention.stated import attention_of
from warploom.runtime.view import View

UNIT = 16  # bytes: what tensor copies begin at, and rows are apart by a multiple of
KINDS = {DType.BF16: "bf16", DType.F16: "f16"}
MOST_CAP = 1e4  # a tanh in single precision is off by 1e-7, and the cap multiplies that
AXES = ("batch", "heads", "queries", "keys")


@dataclass(frozen=True, slots=True)
class Options:
    """`causal`: no query sees keys after its own, the last query sees the last key. `window`: so
    many keys up to there. `scale`: of products, 1/√size if None. `soft_cap`: scores become
    cap·tanh(s / cap). `lse`: the logarithms of the sums of exponentials are a second result.
    `dtype`: of arrays that have none of their own for it, as NumPy's have none for bf16."""

    causal: bool = False
    window: int | None = None
    scale: float | None = None
    soft_cap: float | None = None
    lse: bool = False
    dtype: str | None = None

    def with_given(self, given: Mapping[str, Any]) -> Options:
        known = [each.name for each in fields(self)]
        for name in given:
            if name not in known:
                raise CheckError(
                    f"'attention' has no option '{name:.80}'",
                    advice=nearest(name, known, "its options: " + ", ".join(known)),
                )
        made = replace(self, **given)
        made._check()
        return made

    def _check(self) -> None:
        for name in ("causal", "lse"):
            if not isinstance(getattr(self, name), bool):
                raise CheckError(f"'{name}' is True or False, not {getattr(self, name)!r:.40}")
        own = self.window
        if own is not None and (isinstance(own, bool) or not isinstance(own, int) or own < 1):
            raise CheckError(f"a window of {own!r:.40} keys", advice="a whole number from 1 on")
        if own is not None and not self.causal:
            raise CheckError(
                "a window is of keys up to each query's own",
                advice="give causal=True; other masks are a stated nest for warploom.explore",
            )
        for name in ("scale", "soft_cap"):
            number = getattr(self, name)
            if number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise CheckError(f"'{name}' is a number, not {number!r:.40}")
            if not 0 < number < math.inf:
                raise CheckError(f"'{name}' is {number}", advice="a number above 0")
        if not 1 / LARGEST <= (self.soft_cap or 1.0) <= MOST_CAP:
            raise CheckError(
                f"'soft_cap' is {self.soft_cap}",
                advice=f"at most {MOST_CAP:g}: beyond it scores are hardly changed, and tanh has "
                "too few digits",
            )
        if self.dtype not in (None, *KINDS.values()):
            raise CheckError(f"dtype={self.dtype!r:.40}", advice='"bf16" or "f16"')


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCall:
    """`attention` has its batches; `steps` are of q, k and v from a batch, a head and a row to the
    next, in elements, None where an array is dense."""

    attention: Attention
    steps: Mapping[str, tuple[int, int, int]]
    shapes: Mapping[str, tuple[int, ...]]


def asked(options: Options, views: Mapping[str, View]) -> AttentionCall:
    """The computation of a call on these arrays: q, k, v, and maybe bias."""
    q, k, v = (views[name] for name in "qkv")
    dtype = _type(options, views)
    for name, each in (("q", q), ("k", k), ("v", v)):
        if len(each.shape) != 4:
            raise DeviceError(
                f"'{name}' has the shape {each.shape}",
                advice="give (batch, heads, length, size), as in x[None]",
            )
        if not each.size:
            raise DeviceError(f"'{name}' has no elements")
    (batch, heads, _, head), kept = q.shape, k.shape[1]
    if k.shape != v.shape or (batch, head) != (k.shape[0], k.shape[3]):
        raise DeviceError(
            f"'q' is {q.shape}, 'k' {k.shape} and 'v' {v.shape}",
            advice="k and v have one shape, with the batch and the size of q",
        )
    if heads % kept:
        raise DeviceError(f"{heads} heads of queries share {kept} of keys", advice="a multiple")
    if head not in HEAD_SIZES:
        raise DeviceError(
            f"'q' has heads of {head} numbers", advice=f"one of {HEAD_SIZES}: pad with zeros"
        )
    made = _attention(options, views, dtype)
    steps = {name: found for name in "qkv" if (found := _steps(views[name], name)) is not None}
    shapes = {"o": q.shape, "lse": q.shape[:3]}
    return AttentionCall(made, steps, shapes)


def _type(options: Options, views: Mapping[str, View]) -> DType:
    """The type of q, k and v. NumPy has bf16 as words, if the options say so."""
    named = {kind: dtype for dtype, kind in KINDS.items()}
    types = {views[name].dtype for name in "qkv"}
    found = next(iter(types))
    if types == {DType.U16} and options.dtype == "bf16":
        return DType.BF16
    if len(types) > 1 or found not in KINDS:
        said = ", ".join(f"'{name}' is {views[name].dtype!r}" for name in "qkv")
        raise DeviceError(
            said, advice="q, k and v are all bf16, or f16; of NumPy bf16 as u16 with dtype='bf16'"
        )
    if options.dtype is not None and named[options.dtype] is not found:
        raise DeviceError(f"arrays are {found!r}, not {options.dtype}", advice="leave out dtype")
    return found


def _attention(options: Options, views: Mapping[str, View], dtype: DType) -> Attention:
    (batch, heads, queries, head), kept, keys = views["q"].shape, *views["k"].shape[1:3]
    window = None if options.window is None else min(options.window, keys)  # that is all of them
    made = Attention(
        batch, heads, queries, keys, head, options.causal, "bf16" if dtype is DType.BF16 else "f16",
        heads // kept, window, options.lse, options.scale,
    )  # fmt: skip
    if options.soft_cap is None and "bias" not in views:
        return made
    bias, kind = None, DType.F32
    if "bias" in views:
        bias, kind = _bias(views["bias"], (batch, heads, queries, keys))
    # Masks are those above: what queries without keys have is not stated.
    nest = attention_nest(
        batch, heads, queries, keys, head, groups=made.groups, cap=options.soft_cap,
        bias=bias, bias_dtype=kind, scale=options.scale, dtype=dtype,
    )  # fmt: skip
    stated = attention_of(nest.done()).attention
    return replace(made, map=stated.map, scale=stated.scale)


def _bias(view: View, wanted: tuple[int, ...]) -> tuple[tuple[bool, ...], DType]:
    """Along which of batch, heads and queries a bias has elements of its own, and their type."""
    if view.dtype not in (DType.F32, DType.BF16, DType.F16):
        raise DeviceError(
            f"'bias' is {view.dtype!r}",
            advice="give numbers: 0 for keys that are seen, or -inf",
        )
    shape = (1,) * (4 - len(view.shape)) + view.shape
    if len(shape) != 4 or any(n not in (1, w) for n, w in zip(shape, wanted, strict=True)):
        raise DeviceError(f"'bias' has the shape {view.shape}, scores have {wanted}")
    if shape[3] != wanted[3] or not view.contiguous:
        raise DeviceError("'bias' is not dense along its axes", advice="give a whole copy of it")
    return tuple(n > 1 for n in shape[:3]), view.dtype


def _steps(view: View, name: str) -> tuple[int, int, int] | None:
    if view.contiguous:
        return None
    if view.strides is None:
        raise DeviceError(f"'{name}' does not say how it lies in memory", advice="give a copy")
    batch, head, row, last = view.strides
    sizes = view.shape
    uneven = [each * view.dtype.bytes % UNIT for each in (batch, head, row)]
    if last != 1 or min(view.strides) < 0 or any(uneven):
        raise DeviceError(
            f"'{name}' has strides of {view.strides} elements, which tensor copies cannot follow",
            advice=f"rows are dense, and apart by multiples of {UNIT} bytes: give a copy",
        )
    # An axis of one element has any stride; copies ask for one above zero.
    least = sizes[3]
    own = [s if n > 1 else least for n, s in zip(sizes[:3], (batch, head, row), strict=True)]
    if min(own) < 1:
        raise DeviceError(f"'{name}' has elements that share memory", advice="give a copy")
    return own[0], own[1], own[2]
