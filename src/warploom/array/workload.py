"""Programs to map: convolution, products of matrices and vectors, stencils, reductions.

Each is what to compute, as short as it can be said, with symbolic sizes; `recipe/` rewrites some of
them to what a GPU is good at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.array.build import (
    Function,
    Size,
    fold,
    join,
    map_,
    map_nested,
    pad,
    pad_2d,
    program,
    reduce,
    sizes,
    slice_,
    slide,
    slide_2d,
    transpose,
    zip_,
    zip_nested,
)
from warploom.array.language.ir import Program, Term
from warploom.array.language.op import Boundary
from warploom.array.types import array
from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.kernel.dtype import DType, f32


def add(s: Term, v: Term) -> Term:
    return s + v


def product(pair: Term) -> Term:
    return pair.get(0) * pair.get(1)


def dot_product(x: Term, y: Term) -> Term:
    return fold(add, 0.0, map_(product, zip_(x, y)))


# -- vectors and matrices --------------------------------------------------------------------------


def total(dtype: DType = f32) -> Program:
    """The sum of all elements."""
    (n,) = sizes("n")
    return program("total", lambda x: reduce(add, 0.0, x), x=array(dtype, n))


def dot(dtype: DType = f32) -> Program:
    (n,) = sizes("n")
    vector = array(dtype, n)
    return program("dot", dot_product, x=vector, y=vector)


def matvec(dtype: DType = f32) -> Program:
    m, n = sizes("m n")
    return program(
        "matvec",
        lambda a, x: map_(lambda row: dot_product(row, x), a),
        a=array(dtype, m, n),
        x=array(dtype, n),
    )


def matmul(dtype: DType = f32) -> Program:
    m, n, k = sizes("m n k")

    def body(a: Term, b: Term) -> Term:
        columns = transpose(b)
        return map_(lambda row: map_(lambda column: dot_product(row, column), columns), a)

    return program("matmul", body, a=array(dtype, m, k), b=array(dtype, k, n))


# -- stencils --------------------------------------------------------------------------------------


def stencil_1d(points: int = 3, boundary: Boundary = "clamp", dtype: DType = f32) -> Program:
    """Sums of neighbours with weights, on a line."""
    (n,) = sizes("n")
    before = (points - 1) // 2

    def body(x: Term, w: Term) -> Term:
        padded = pad(before, points - 1 - before, x, boundary)
        return map_(lambda window: dot_product(window, w), slide(points, 1, padded))

    return program("stencil_1d", body, x=array(dtype, n), w=array(dtype, points))


def stencil_2d(points: int = 3, boundary: Boundary = "clamp", dtype: DType = f32) -> Program:
    """Sums of neighbours with weights, in a plane."""
    n, m = sizes("n m")
    around = ((points - 1) // 2, points - 1 - (points - 1) // 2)

    def body(x: Term, w: Term) -> Term:
        windows = slide_2d((points, 1), (points, 1), pad_2d(around, around, x, boundary))
        return map_nested(2, lambda window: dot_product(join(window), join(w)), windows)

    return program("stencil_2d", body, x=array(dtype, n, m), w=array(dtype, points, points))


# -- convolution -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Convolution:
    """Sizes of a layer, in numbers."""

    height: int
    width: int
    channels: int
    kernels: int
    kernel_height: int = 3
    kernel_width: int = 3
    stride: int = 1
    padding: int = 1

    @property
    def rows(self) -> int:
        return (self.height + 2 * self.padding - self.kernel_height) // self.stride + 1

    @property
    def columns(self) -> int:
        return (self.width + 2 * self.padding - self.kernel_width) // self.stride + 1

    def sizes(self, rows: int | None = None, columns: int | None = None) -> dict[str, int]:
        """The size variables of `convolution`; more rows and columns than there are may be
        computed, so that tiles divide them."""
        across = rows or self.rows, columns or self.columns
        if across[0] < self.rows or across[1] < self.columns:
            raise CheckError("fewer rows or columns are computed than there are")
        needed = [
            (count - 1) * self.stride + kernel - self.padding
            for count, kernel in zip(across, (self.kernel_height, self.kernel_width), strict=True)
        ]
        if min(self.rows, self.columns, *needed) < 1:
            raise CheckError("the kernels are larger than the padded image")
        return {
            "H": self.height, "W": self.width, "C": self.channels, "K": self.kernels,
            "kh": self.kernel_height, "kw": self.kernel_width,
            "UH": min(self.height, needed[0]), "UW": min(self.width, needed[1]),
            "RH": self.rows, "RW": self.columns, "OH": across[0], "OW": across[1],
        }  # fmt: skip


# The convolutions of VGG-16, by their published names.
VGG_16: Mapping[str, Convolution] = {
    name: Convolution(side, side, channels, kernels)
    for names, side, channels, kernels in (
        ("conv1_1", 224, 3, 64),
        ("conv1_2", 224, 64, 64),
        ("conv2_1", 112, 64, 128),
        ("conv2_2", 112, 128, 128),
        ("conv3_1", 56, 128, 256),
        ("conv3_2 conv3_3", 56, 256, 256),
        ("conv4_1", 28, 256, 512),
        ("conv4_2 conv4_3", 28, 512, 512),
        ("conv5_1 conv5_2 conv5_3", 14, 512, 512),
    )
    for name in names.split()
}


def cut_2d(x: Term, rows: Size, columns: Size) -> Term:
    """The first rows and columns."""
    return map_(lambda row: slice_(0, columns, row), slice_(0, rows, x))


def each_plane(f: Function, x: Term) -> Term:
    """[h][w][c] → f of every [h][w], as [c]…"""
    return map_(f, transpose(map_(transpose, x)))


def convolution(padding: int = 1, stride: int = 1, dtype: DType = f32) -> Program:
    """The direct convolution of an image [H][W][C] with kernels [K][kh][kw][C]: every window with
    every kernel, summed over all products.

    OH and OW rows and columns are computed, of which RH and RW are the result; the first UH and UW
    of the image are used (more would be behind the last window). `Convolution.sizes` has numbers.
    """
    h, w, uh, uw, c, k, kh, kw, oh, ow, rh, rw = sizes("H W UH UW C K kh kw OH OW RH RW")

    def behind(count: Expr, kernel: Expr, used: Expr) -> Expr:
        return (count - 1) * stride + kernel - padding - used

    def body(image: Term, kernels: Term) -> Term:
        around = [(padding, behind(oh, kh, uh)), (padding, behind(ow, kw, uw))]
        windows = each_plane(
            lambda plane: slide_2d(
                (kh, stride), (kw, stride), pad_2d(around[0], around[1], cut_2d(plane, uh, uw))
            ),
            image,
        )
        whole = map_(transpose, transpose(windows))  # [OH][OW][C][kh][kw]
        weights = map_(lambda kernel: transpose(map_(transpose, kernel)), kernels)

        def one(window: Term, kernel: Term) -> Term:
            pairs = join(join(zip_nested(3, window, kernel)))
            return reduce(add, 0.0, map_(product, pairs))

        def each(window: Term) -> Term:
            return join(map_(lambda kernel: one(window, kernel), weights))

        return cut_2d(map_nested(2, each, whole), rh, rw)

    return program(
        "convolution", body, image=array(dtype, h, w, c), kernels=array(dtype, k, kh, kw, c)
    )
