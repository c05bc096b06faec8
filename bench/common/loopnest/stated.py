"""Computations of every kind, stated as loop nests: small, of sizes that their tiles do not divide.

Reductions that need each other, norms, arg-max, masks, triangles, convolutions of every kind, rows
that other data name. Every implementation that a descent ends at has to compute what they mean.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.kernel.dtype import bf16, e4m3, f16, f32, i32, i64, u32
from warploom.loopnest.build import (
    LoopNest,
    cast,
    choose,
    cos,
    erf,
    exp,
    log,
    maximum,
    rsqrt,
    sin,
    sqrt,
)
from warploom.loopnest.computation import Computation, Loaded
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Axis, Program

Stating = Callable[[LoopNest], None]
STATED: dict[str, Stating] = {}


def stated(write: Stating) -> Stating:
    STATED[write.__name__.replace("_", " ")] = write
    return write


def program_named(name: str) -> Program:
    """In the form in which users' nests are explored."""
    nest = LoopNest(name.replace(" ", "_"))
    STATED[name](nest)
    return program_of(Computation.of(nest.done()), published=False)


def _rows(nest: LoopNest, rows: int = 3, columns: int = 5) -> tuple[Axis, Axis]:
    return nest.axis("i", rows, (2,), tail=True), nest.axis("j", columns, (2, 4), tail=True)


@stated
def softmax(nest: LoopNest) -> None:
    """In two passes: the greatest, then the sum."""
    i, j = _rows(nest)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    top = nest.fold("max", x[i, j], over=j)
    total = nest.sum(exp(x[i, j] - top), over=j)
    y[i, j] = exp(x[i, j] - top) / total


@stated
def softmax_of_bf16(nest: LoopNest) -> None:
    """Computed in f32, with each exponential kept; rows whose accesses may be wide."""
    i, j = nest.axis("i", 3, (2,), tail=True), nest.axis("j", 24, (2,), (8,), tail=True)
    x, y = nest.array("x", i, j, dtype=bf16), nest.array("y", i, j, dtype=bf16)
    own = cast(x[i, j], f32)
    top = nest.fold("max", own, over=j)
    above = nest.value(exp(own - top))
    y[i, j] = cast(above / nest.sum(above, over=j), bf16)


@stated
def rescaled_codes(nest: LoopNest) -> None:
    """From sixteen bits to eight, by a scale of each row."""
    i, j = _rows(nest, 5, 16)
    x, scale = nest.array("x", i, j, dtype=f16), nest.array("scale", i)
    y = nest.array("y", i, j, dtype=e4m3)
    y[i, j] = cast(cast(x[i, j], f32) * scale[i], e4m3)


@stated
def log_sum_exp(nest: LoopNest) -> None:
    i, j = _rows(nest)
    x, y = nest.array("x", i, j), nest.array("y", i)
    top = nest.fold("max", x[i, j], over=j)
    y[i] = log(nest.sum(exp(x[i, j] - top), over=j)) + top


@stated
def layer_norm(nest: LoopNest) -> None:
    i, j = _rows(nest)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    scale, shift = nest.array("scale", j), nest.array("shift", j)
    mean = nest.sum(x[i, j], over=j) * (1 / j.size)
    away = x[i, j] - mean
    variance = nest.sum(away * away, over=j) * (1 / j.size)
    y[i, j] = away * rsqrt(variance + 1e-5) * scale[j] + shift[j]


@stated
def root_mean_square_norm(nest: LoopNest) -> None:
    i, j = _rows(nest)
    x, y, scale = nest.array("x", i, j), nest.array("y", i, j), nest.array("scale", j)
    squares = nest.sum(x[i, j] * x[i, j], over=j)
    y[i, j] = x[i, j] / sqrt(squares * (1 / j.size) + 1e-5) * scale[j]


@stated
def row_sum(nest: LoopNest) -> None:
    i, j = _rows(nest, 5, 7)
    x, y = nest.array("x", i, j), nest.array("y", i)
    y[i] = nest.sum(x[i, j], over=j)


@stated
def column_sum(nest: LoopNest) -> None:
    i, j = _rows(nest, 5, 7)
    x, y = nest.array("x", i, j), nest.array("y", j)
    y[j] = nest.sum(x[i, j], over=i)


@stated
def arg_max(nest: LoopNest) -> None:
    """The greatest of a row and the first place where it is."""
    i, j = _rows(nest)
    x, top, at = nest.array("x", i, j), nest.array("top", i), nest.array("at", i, dtype=i32)
    most = nest.fold("max", x[i, j], over=j)
    top[i] = most
    at[i] = nest.fold("min", choose(x[i, j].eq(most), nest.index(j), j.size), over=j)


@stated
def product_of_rows(nest: LoopNest) -> None:
    i, j = _rows(nest, 5, 7)
    x, y = nest.array("x", i, j), nest.array("y", i)
    y[i] = nest.fold("*", x[i, j], over=j)


@stated
def triangular_product(nest: LoopNest) -> None:
    """Of a lower triangle: beyond the diagonal nothing is loaded."""
    i, j = _rows(nest, 7, 7)
    x, v, y = nest.array("x", i, j), nest.array("v", j), nest.array("y", i)
    y[i] = nest.sum(x.at((i, j), where=j.expr.le(i.expr)) * v[j], over=j)


@stated
def masked_scores(nest: LoopNest) -> None:
    """Scores of keys that come after a query are -1e9: a causal mask."""
    i, j = _rows(nest, 3, 3)
    k = nest.axis("k", 3, (2,), tail=True)
    q, keys, y = nest.array("q", i, k), nest.array("keys", j, k), nest.array("y", i, j)
    score = nest.sum(q[i, k] * keys[j, k], over=k)
    y[i, j] = choose(j.expr.le(i.expr), score, -1e9)


@stated
def dilated_convolution(nest: LoopNest) -> None:
    """Taps two apart, with zeros around."""
    c, h = nest.axis("c", 3, (2,), tail=True), nest.axis("h", 5, (2, 4), tail=True)
    k, r = nest.axis("k", 2, dynamic=False), nest.axis("r", 3, dynamic=False)
    x, w, y = nest.array("x", k, h), nest.array("w", c, k, r), nest.array("y", c, h)
    at = h + r * 2 - 2
    inside = at.expr.ge(0).and_(at.expr.lt(h.size))
    y[c, h] = nest.sum(x.at((k, at), where=inside) * w[c, k, r], over=(k, r))


@stated
def strided_convolution(nest: LoopNest) -> None:
    c, h = nest.axis("c", 3, (2,), tail=True), nest.axis("h", 5, (2, 4), tail=True)
    k, r = nest.axis("k", 2), nest.axis("r", 3, dynamic=False)
    x, w, y = nest.array("x", k, 11), nest.array("w", c, k, r), nest.array("y", c, h)
    y[c, h] = nest.sum(x[k, h * 2 + r] * w[c, k, r], over=(k, r))


@stated
def grouped_convolution(nest: LoopNest) -> None:
    g, c = nest.axis("g", 2), nest.axis("c", 3, (2,), tail=True)
    h, k, r = nest.axis("h", 3, (2,), tail=True), nest.axis("k", 2), nest.axis("r", 2)
    x, w, y = nest.array("x", 4, 4), nest.array("w", g, c, k, r), nest.array("y", 6, h)
    y[g * 3 + c, h] = nest.sum(x[g * 2 + k, h + r] * w[g, c, k, r], over=(k, r))


@stated
def stencil(nest: LoopNest) -> None:
    """Five points, with zeros around."""
    i, j = _rows(nest, 5, 5)
    x, y = nest.array("x", i, j), nest.array("y", i, j)

    def beside(down: int, right: int) -> Loaded:
        row, column = i + down, j + right
        rows = row.expr.ge(0).and_(row.expr.lt(i.size))
        columns = column.expr.ge(0).and_(column.expr.lt(j.size))
        return x.at((row, column), where=rows.and_(columns))

    total = x[i, j] * 4.0
    for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        total = total - beside(down, right)
    y[i, j] = total


@stated
def nearest_neighbour(nest: LoopNest) -> None:
    """An image made three times as large: a subscript that is no sum of multiples."""
    i, j = _rows(nest, 5, 7)
    x, y = nest.array("x", 2, 3), nest.array("y", i, j)
    y[i, j] = maximum(x[i // 3, j // 3], 0)


@stated
def matrix_product(nest: LoopNest) -> None:
    i, j = _rows(nest, 5, 3)
    k = nest.axis("k", 3, (2,), tail=True)
    a, b, c = nest.array("a", i, k), nest.array("b", k, j), nest.array("c", i, j)
    c[i, j] = nest.sum(a[i, k] * b[k, j], over=k)


@stated
def gelu(nest: LoopNest) -> None:
    i, j = _rows(nest)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    y[i, j] = 0.5 * x[i, j] * (1 + erf(x[i, j] * 0.5**0.5))


@stated
def rotary_embedding(nest: LoopNest) -> None:
    """Pairs turned by an angle that grows with the position, two arrays stored."""
    i, j = _rows(nest)
    x, angle = nest.array("x", i, j, 2), nest.array("angle", i, j)
    y, z = nest.array("y", i, j), nest.array("z", i, j)
    turned = angle[i, j]
    y[i, j] = x[i, j, 0] * cos(turned) - x[i, j, 1] * sin(turned)
    z[i, j] = x[i, j, 0] * sin(turned) + x[i, j, 1] * cos(turned)


@stated
def update_in_place(nest: LoopNest) -> None:
    i, j = _rows(nest)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    y[i, j] = y[i, j] * 0.5 + x[i, j]


@stated
def embedding(nest: LoopNest) -> None:
    """Rows of a table that other data name; where there is no such row, zeros."""
    i, j = _rows(nest)
    table, named = nest.array("table", 3, j), nest.array("named", i, dtype=i32)
    y = nest.array("y", i, j)
    y[i, j] = table[named[i], j]


@stated
def embedding_of_bf16(nest: LoopNest) -> None:
    """Rows whose accesses may be wide, scaled."""
    i, j = nest.axis("i", 5, (2,), tail=True), nest.axis("j", 24, (2,), (8,), tail=True)
    table, named = nest.array("table", 7, j, dtype=bf16), nest.array("named", i, dtype=i64)
    y = nest.array("y", i, j, dtype=bf16)
    y[i, j] = cast(cast(table[named[i], j], f32) * 0.5, bf16)


@stated
def embedding_by_a_fold(nest: LoopNest) -> None:
    """The same as a fold over the table, which reads all of it."""
    i, j = _rows(nest)
    row = nest.axis("row", 3)
    table, named = nest.array("table", row, j), nest.array("named", i, dtype=i32)
    y = nest.array("y", i, j)
    chosen = choose(named[i].eq(nest.index(row)), table[row, j], 0.0)
    y[i, j] = nest.sum(chosen, over=row)


@stated
def sum_of_named_rows(nest: LoopNest) -> None:
    """A bag of words: rows that data name are added up."""
    i, j = _rows(nest)
    k = nest.axis("k", 4, (2,))
    table, named = nest.array("table", 6, j), nest.array("named", i, k, dtype=i32)
    y = nest.array("y", i, j)
    y[i, j] = nest.sum(table[named[i, k], j], over=k)


@stated
def elements_that_data_name(nest: LoopNest) -> None:
    """One of each row, or -1; by a number that is computed."""
    i, j = nest.axis("i", 5, (2,), tail=True), nest.axis("j", 8, (2,), (4,))
    x, at, y = nest.array("x", i, 6), nest.array("at", i, j, dtype=u32), nest.array("y", i, j)
    y[i, j] = x.at((i, at[i, j] ^ 1), otherwise=-1)


@stated
def what_stands_beside_the_greatest(nest: LoopNest) -> None:
    """An element of one array, where a row of another is the greatest."""
    i, j = _rows(nest)
    x, z, y = nest.array("x", i, j), nest.array("z", i, j), nest.array("y", i)
    most = nest.fold("max", x[i, j], over=j)
    at = nest.fold("min", choose(x[i, j].eq(most), nest.index(j), j.size), over=j)
    y[i] = z[i, at]


@stated
def cumulative_sum(nest: LoopNest) -> None:
    """A scan: each place has the sum of a row as far as there."""
    i, j = _rows(nest, 3, 21)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    y[i, j] = nest.scan("+", x[i, j], over=j)


@stated
def shares_before(nest: LoopNest) -> None:
    """What comes before each place in its row, as a share of all of the row."""
    i, j = nest.axis("i", 3, (2,), tail=True), nest.axis("j", 20, (4, 8), (2,), tail=True)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    size = abs(x[i, j]) + 1.0
    y[i, j] = nest.scan("+", size, over=j, exclusive=True) / nest.sum(size, over=j)


@stated
def greatest_so_far(nest: LoopNest) -> None:
    """Along columns, of what is computed."""
    i, j = _rows(nest, 11, 5)
    x, y = nest.array("x", i, j, dtype=i32), nest.array("y", i, j, dtype=i32)
    y[i, j] = nest.scan("max", x[i, j] ^ nest.index(j), over=i) + x[i, j]


@stated
def cumulative_sum_by_folds(nest: LoopNest) -> None:
    """The same as a fold for each place, in which nothing is loaded beyond it: more work."""
    i, j = _rows(nest)
    k = nest.axis("k", j.size, (2,), tail=True)
    x, y = nest.array("x", i, k), nest.array("y", i, j)
    y[i, j] = nest.sum(x.at((i, k), where=k.expr.le(j.expr)), over=k)


@stated
def parity(nest: LoopNest) -> None:
    """Of the words of a row, bit by bit."""
    i, j = _rows(nest, 5, 7)
    x, y = nest.array("x", i, j, dtype=u32), nest.array("y", i, dtype=u32)
    y[i] = nest.fold("^", x[i, j], over=j)


@stated
def largest_of_windows(nest: LoopNest) -> None:
    """Pooling with a stride that is less than the window."""
    i, h = nest.axis("i", 3, (2,), tail=True), nest.axis("h", 5, (2, 4), tail=True)
    r = nest.axis("r", 3, dynamic=False)
    x, y = nest.array("x", i, 11), nest.array("y", i, h)
    y[i, h] = nest.fold("max", x[i, h * 2 + r], over=r)
