"""The computations that loop nests are known by: axpy, matrix products and what is made of them.

Each takes sizes and gives a program. Tiles are those of the paper; a tail lets the last be partial.
Some take factors of a type in which nothing is computed: they are converted where they are
multiplied, and results where they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from warploom.errors import CheckError, spelled
from warploom.kernel.dtype import DType, bf16, e4m3, e5m2, f16, f32, i8, i32
from warploom.kernel.ir import dtype_of
from warploom.loopnest.attention.program import attention
from warploom.loopnest.build import LoopNest, Tensor, Term, cast, exp, maximum, tf32
from warploom.loopnest.ir import Axis, Linear, Program

Tiles: TypeAlias = Sequence[int | Sequence[int]]
T = TypeVar("T")
Activation: TypeAlias = Literal["none", "relu", "sigmoid"]
Integers: TypeAlias = Literal["none", "int4", "int8"]


@dataclass(frozen=True, slots=True)
class Cut:
    """How axes are cut: by divisors (proper ones, if asked), or with a partial tile at the end."""

    tail: bool = False
    proper: bool = False


WHOLE = Cut()
# Types of factors, and in which results are stored. Sums of i8 are i32, all others f32.
STORED: dict[DType, DType] = {f32: f32, f16: f16, bf16: bf16, e4m3: bf16, e5m2: bf16, i8: i32}
# Tiles of the rows of a matrix, and of the elements of a row.
ROWS: Tiles = (128, 16)
ROW: Tiles = (128,)


def _axis(nest: LoopNest, name: str, size: int, tiles: Tiles, cut: Cut) -> Axis:
    return nest.axis(name, size, *tiles, tail=cut.tail, proper=cut.proper)


def axpy(n: int, tiles: Tiles = (1024, 4), cut: Cut = WHOLE) -> Program:
    """z = α·x + y"""
    nest = LoopNest("axpy")
    i = _axis(nest, "n", n, tiles, cut)
    alpha = nest.parameter("alpha")
    x, y, z = nest.array("x", i), nest.array("y", i), nest.array("z", i)
    z[i] = alpha * x[i] + y[i]
    return nest.done()


def matvec(
    m: int, n: int, tiles: Tiles = ROWS, inner: Tiles = ROW, *, parts: int = 1, cut: Cut = WHOLE
) -> Program:
    """y = A·x. With `parts` (a multiple of 128 that divides n) as many partial sums of each row are
    added up side by side, and then put together."""
    nest = LoopNest("matvec")
    i = _axis(nest, "m", m, tiles, cut)
    row = _Parts(nest, n, inner, parts, cut)
    A, x, y = nest.array("A", i, n), nest.array("x", n), nest.array("y", i)
    y[i] = row.sum(A[i, row.at] * x[row.at])
    return nest.done()


def gesummv(
    m: int, n: int, tiles: Tiles = ROWS, inner: Tiles = ROW, *, parts: int = 1, cut: Cut = WHOLE
) -> Program:
    """y = (α·A + β·B)·x, with partial sums as in `matvec`"""
    nest = LoopNest("gesummv")
    i = _axis(nest, "m", m, tiles, cut)
    row = _Parts(nest, n, inner, parts, cut)
    alpha, beta = nest.parameter("alpha"), nest.parameter("beta")
    A, B = nest.array("A", i, n), nest.array("B", i, n)
    x, y = nest.array("x", n), nest.array("y", i)
    shared = x[row.at]
    if parts > 1:  # one sum is half the loops of two
        y[i] = row.sum((alpha * A[i, row.at] + beta * B[i, row.at]) * shared)
        return nest.done()
    ax, bx = row.sum(A[i, row.at] * shared), row.sum(B[i, row.at] * shared)
    y[i] = alpha * ax + beta * bx
    return nest.done()


class _Parts:
    """The index along a row that is summed: one axis, or iterations of `parts` neighbours, which
    are warps of 32 lanes of 4 elements. Their partial sums are added up by elements, lanes,
    warps."""

    def __init__(self, nest: LoopNest, n: int, tiles: Tiles, parts: int, cut: Cut) -> None:
        self.nest = nest
        self.folded: list[Axis] = []
        if parts == 1:
            self.iterations = _axis(nest, "n", n, tiles, cut)
            self.at: Linear = self.iterations
            return
        if parts % 128 or n % parts:
            raise CheckError(
                f"a row of {n} has no {parts} parts",
                advice="give a multiple of 128 that divides the row",
            )
        self.iterations = _axis(nest, "n", n // parts, tiles, cut)
        self.at = self.iterations * parts
        below = parts
        for name, size in (("warp", parts // 128), ("lane", 32), ("wide", 4)):
            below //= size
            if size > 1:
                axis = nest.axis(name, size, dynamic=False)
                self.at = self.at + axis * below
                self.folded.insert(0, axis)

    def sum(self, expression: Term) -> Term:
        total: Term = self.nest.sum(expression, over=self.iterations)
        for axis in self.folded:
            total = self.nest.sum(total, over=axis)
        return total


def matmul(
    m: int,
    n: int,
    k: int,
    tiles: tuple[Tiles, Tiles, Tiles] = ((32, 4), (32, 4), (32,)),
    *,
    stride: int = 1,
    transposed: str = "",
    activation: Activation = "none",
    splits: int = 1,
    weights: Integers = "none",
    group: int = 128,
    dtype: DType = f32,
    leading: bool = False,
    cut: Cut = WHOLE,
) -> Program:
    """C = activation(A·B). `stride` is the distance of neighbours in A; `transposed` names those of
    A and B that are stored by columns. With `splits` (which divide k) it is P[z] = A[z]·B[z] for as
    many parts of k beside each other, which `add_parts` adds up: another kernel. `dtype` is that of
    A and B; P has the type of sums. With `weights` B is of integers, as `_Packed` has them. Of
    factors of single precision that are `leading` only the bits of tf32 count."""
    nest = LoopNest("matmul")
    if splits < 1 or k % splits or (splits > 1 and activation != "none"):
        raise CheckError(
            f"k={k} with activation '{activation}' cannot be split into {splits} parts",
            advice="splits must divide k; give the activation to add-parts",
        )
    i, j, over = (
        _axis(nest, name, size, own, cut)
        for name, size, own in zip("mnk", (m, n, k // splits), tiles, strict=True)
    )
    A = nest.array("A", m, k, dtype=dtype, strides=_strides(m, k, "A" in transposed, stride))
    if weights != "none":
        packed = _Packed(weights, group, dtype)
        packed.check(k, stride == splits == 1 and not transposed)
        total = nest.sum(cast(A[i, over], f32) * packed.value(nest, j, over), over=over)
        nest.array("C", i, j, dtype=dtype)[i, j] = cast(activated(total, activation), dtype)
        return nest.done()
    B = nest.array("B", k, n, dtype=dtype, strides=_strides(k, n, "B" in transposed))
    if splits == 1:
        C = nest.array("C", i, j, dtype=STORED[dtype])
        total = nest.sum(_product(A[i, over], B[over, j], leading), over=over)
        C[i, j] = _as(activated(total, activation), STORED[dtype])
        return nest.done()
    z = _axis(nest, "z", splits, (), cut)
    at, P = z * (k // splits) + over, nest.array("P", z, i, j, dtype=sums_of(dtype))
    P[z, i, j] = nest.sum(_product(A[i, at], B[at, j], leading), over=over)
    return nest.done()


@dataclass(frozen=True, slots=True)
class _Packed:
    """Weights W[n, k] of four bits, eight in a word, the first in the lowest bits, each less 8; or
    of eight, with a sign. S[n, k / group] scales a group of them along k."""

    weights: Integers
    group: int
    dtype: DType

    def check(self, k: int, plain: bool) -> None:
        if self.weights not in ("int4", "int8"):
            raise CheckError(f"no weights are called {self.weights!r}", advice="int4, int8 or none")
        if self.dtype not in (f16, bf16):
            raise CheckError(
                f"weights of {self.weights} are multiplied by bf16 or f16, not {self.dtype!r}",
                advice="give a type: " + spelled("--type bf16", "type='bf16'"),
            )
        if k % self.group or self.group % 8 or not plain:
            raise CheckError(
                f"weights of {self.weights} in groups of {self.group} along k={k}",
                advice="groups of a multiple of 8 that divides k; no stride, splits or transposed",
            )

    def value(self, nest: LoopNest, j: Axis, over: Axis) -> Term:
        if self.weights == "int8":
            weight = cast(nest.array("W", j, over, dtype=i8)[j, over], f32)
        else:
            words = nest.array("W", j, over.size // 8, dtype=i32)
            # One index is shown to stay inside of a word, also where each operator stands alone.
            by = nest.index(4 * (over % 8).expr)
            field = (words[j, over // 8] >> by) & 15
            weight = cast(field - 8, f32)
        scales = nest.array("S", j, over.size // self.group, dtype=self.dtype)
        return weight * cast(scales[j, over // self.group], f32)


def sums_of(dtype: DType) -> DType:
    """The type in which products of factors are added up."""
    return f32 if dtype.is_real else i32


def _product(a: Term, b: Term, leading: bool = False) -> Term:
    """Two elements multiplied in the type of their sum."""
    if leading:
        return tf32(a) * tf32(b)
    sums = sums_of(dtype_of(a))
    return _as(a, sums) * _as(b, sums)


def _as(value: Term, dtype: DType) -> Term:
    """A value in a type, which it may have already."""
    return value if dtype_of(value) is dtype else cast(value, dtype)


def add_parts(
    splits: int,
    m: int,
    n: int,
    tiles: tuple[Tiles, Tiles] = ((32,), (32, 4)),
    *,
    activation: Activation = "none",
    cut: Cut = WHOLE,
) -> Program:
    """C = activation(Σ P[z]): what `matmul` with as many splits leaves to do"""
    nest = LoopNest("add_parts")
    i, j = _axis(nest, "m", m, tiles[0], cut), _axis(nest, "n", n, tiles[1], cut)
    z = _axis(nest, "z", splits, (), cut)
    P, C = nest.array("P", z, i, j), nest.array("C", i, j)
    C[i, j] = activated(nest.sum(P[z, i, j], over=z), activation)
    return nest.done()


def _strides(rows: int, columns: int, transposed: bool, stride: int = 1) -> tuple[int, int]:
    return (stride, stride * rows) if transposed else (stride * columns, stride)


def activated(value: Term, activation: Activation) -> Term:
    match activation:
        case "none":
            return value
        case "relu":
            return maximum(value, 0)
        case "sigmoid":
            if not dtype_of(value).is_float:
                raise CheckError(
                    f"a sigmoid of {dtype_of(value)!r}", advice="relu, or no activation"
                )
            return 1 / (1 + exp(-value))
        case _:
            raise CheckError(f"no activation is called {activation!r}", advice="relu, sigmoid")


def batched_matmul(
    batch: int,
    m: int,
    n: int,
    k: int,
    tiles: Tiles = (64,),
    batch_tiles: Tiles = (128,),
    *,
    shared_b: bool = False,
    dtype: DType = f32,
    leading: bool = False,
    cut: Cut = WHOLE,
) -> Program:
    """C[b] = A[b]·B[b], or with one B for all; `dtype` is that of A and B, `leading` as above."""
    nest = LoopNest("batched_matmul")
    b = _axis(nest, "b", batch, batch_tiles, cut)
    i, j, over = (
        _axis(nest, name, size, tiles, cut) for name, size in zip("mnk", (m, n, k), strict=True)
    )
    A = nest.array("A", b, i, over, dtype=dtype)
    place = (over, j) if shared_b else (b, over, j)
    B = nest.array("B", *place, dtype=dtype)
    C = nest.array("C", b, i, j, dtype=STORED[dtype])
    total = nest.sum(_product(A[b, i, over], B[place], leading), over=over)
    C[b, i, j] = _as(total, STORED[dtype])
    return nest.done()


def two_matmuls(
    m: int,
    n: int,
    k: int,
    p: int,
    tiles: Tiles = (32, 4),
    inner: Tiles = (32,),
    *,
    activation: Activation = "none",
    cut: Cut = WHOLE,
) -> Program:
    """E = activation(α·A·B·C + β·D), without A·B in global memory."""
    nest = LoopNest("two_matmuls")
    i, h = _axis(nest, "m", m, tiles, cut), _axis(nest, "p", p, tiles, cut)
    j, over = _axis(nest, "n", n, tiles, cut), _axis(nest, "k", k, inner, cut)
    alpha, beta = nest.parameter("alpha"), nest.parameter("beta")
    A, B, C = nest.array("A", i, over), nest.array("B", over, j), nest.array("C", j, h)
    D, E = nest.array("D", i, h), nest.array("E", i, h)
    first = nest.sum(A[i, over] * B[over, j], over=over)
    second = nest.sum(first * C[j, h], over=j)
    E[i, h] = activated(alpha * second + beta * D[i, h], activation)
    return nest.done()


def doitgen(
    r: int, q: int, s: int, tiles: Tiles = (32, 4), inner: Tiles = (32,), cut: Cut = WHOLE
) -> Program:
    """B[r, q, p] = Σ A[r, q, s]·C4[s, p] over s, where p and s have one size"""
    nest = LoopNest("doitgen")
    a, b = _axis(nest, "r", r, (), cut), _axis(nest, "q", q, tiles, cut)
    over, c = _axis(nest, "s", s, inner, cut), _axis(nest, "p", s, tiles, cut)
    A, C4 = nest.array("A", a, b, over), nest.array("C4", over, c)
    B = nest.array("B", a, b, c)
    B[a, b, c] = nest.sum(A[a, b, over] * C4[over, c], over=over)
    return nest.done()


def convolution(
    height: int,
    width: int,
    channels: int,
    kernels: int,
    tiles: tuple[Tiles, Tiles, Tiles] = ((4,), (32, 4), (16,)),
    *,
    kernel_height: int = 3,
    kernel_width: int = 3,
    stride: int = 1,
    padding: int = 1,
    dilation: int = 1,
    batch: int = 1,
    channels_first: bool = False,
    cut: Cut = WHOLE,
) -> Program:
    """y[b, h, w, k] = Σ x[b, h·stride + r·dilation - padding, w·…, c]·g[k, r, s, c] over r, s, c,
    where x is 0 outside; images of one batch have no axis for it. With `channels_first` y is
    [b, k, h, w], x is [b, c, h, w] and g is [k, c, r, s]."""
    high, wide = (
        (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
        for size, taps in ((height, kernel_height), (width, kernel_width))
    )
    if min(high, wide) < 1:
        raise CheckError("the kernels are larger than the padded image")
    nest = LoopNest("convolution")
    images = (nest.axis("b", batch),) if batch > 1 else ()
    h, w = nest.axis("h", high), _axis(nest, "w", wide, tiles[0], cut)
    k = _axis(nest, "k", kernels, tiles[1], cut)
    r, s = nest.axis("r", kernel_height), nest.axis("s", kernel_width)
    c = _axis(nest, "c", channels, tiles[2], cut)
    down, right = h * stride + r * dilation - padding, w * stride + s * dilation - padding

    def array(name: str, near: Axis, *others: Axis | int, all_of: tuple[Axis, ...] = ()) -> Tensor:
        return nest.array(name, *all_of, *_placed(near, others, channels_first))

    x = array("x", c, height, width, all_of=images)
    g, y = array("g", c, r, s, all_of=(k,)), array("y", k, h, w, all_of=images)
    inside = [each.expr.ge(0).and_(each.expr.le(size - 1))
              for each, size in ((down, height), (right, width))]  # fmt: skip
    loaded = x.at(
        (*images, *_placed(c, (down, right), channels_first)), where=inside[0].and_(inside[1])
    )
    weight = g[(k, *_placed(c, (r, s), channels_first))]
    y[(*images, *_placed(k, (h, w), channels_first))] = nest.sum(loaded * weight, over=(r, s, c))
    return nest.done()


def _placed(near: T, others: tuple[T, ...], first: bool) -> tuple[T, ...]:
    """Channels before the sides of an image, or after them."""
    return (near, *others) if first else (*others, near)


KERNELS: dict[str, Callable[..., Program]] = {
    "axpy": axpy,
    "matvec": matvec,
    "gesummv": gesummv,
    "matmul": matmul,
    "batched-matmul": batched_matmul,
    "two-matmuls": two_matmuls,
    "doitgen": doitgen,
    "add-parts": add_parts,
    "convolution": convolution,
    "attention": attention,
}
