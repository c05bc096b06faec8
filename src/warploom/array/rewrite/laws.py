"""The laws: what may be rewritten. Each shows before → after; `law.py` says how one is read.

Laws that take something apart are also there the other way round, where that is of use. `LAWS`
lists all of them, for the tests, with those that depend on a number at some of its values.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.array.build import (
    Size,
    copy,
    element,
    get,
    join,
    let,
    map_,
    map_nested,
    map_vector,
    pack,
    reduce,
    slide,
    slide_2d,
    split,
    transpose,
    zip_,
)
from warploom.array.language.ir import Apply, Literal, Param, Term, apply
from warploom.array.language.op import SPACES, SpaceName, To
from warploom.array.plan.plan import copied
from warploom.array.rewrite.law import (
    Concrete,
    Law,
    Monoid,
    OpenFunction,
    Rearranged,
    Undone,
    law,
    sizes,
    types,
)
from warploom.array.types import Type, array

a, a_2, b, c, t = types("a a2 b c t")
n, m, size, rows, columns = sizes("n m size rows columns")

Sides = tuple[Term, Term]


def f_(result: Type, name: str = "f") -> OpenFunction:
    return OpenFunction(name, result)


# -- maps ------------------------------------------------------------------------------------------


def _fusion() -> Sides:
    f, g, x = f_(c), f_(b, "g"), Param("x", array(a, n))
    return map_(lambda v: f(v), map_(lambda v: g(v), x)), map_(lambda v: f(g(v)), x)


def _zip_fusion() -> Sides:
    e, f, g = f_(c, "e"), f_(t), f_(b, "g")
    x, y = Param("x", array(a, n)), Param("y", array(a_2, n))
    left = map_(
        lambda p: e(p.get(0), p.get(1)), zip_(map_(lambda v: f(v), x), map_(lambda v: g(v), y))
    )
    return left, map_(lambda p: e(f(p.get(0)), g(p.get(1))), zip_(x, y))


FUSE_MAPS = law("fuse maps", _fusion)
# Where f begins and g ends is for a hint to say: hinting(f=…) picks the expression that g is.
SPLIT_MAP = law("split a map", lambda: _fusion()[::-1])
FUSE_ZIPPED_MAPS = law("fuse maps into a map of their zip", _zip_fusion)


def _split_join() -> Sides:
    f, x = f_(b), Param("x", array(a, n))
    whole = map_(lambda v: f(v), x)
    return whole, join(map_(lambda piece: map_(lambda v: f(v), piece), split(size, x)))


SPLIT_JOIN = law("map in pieces", _split_join, given="size")
UNSPLIT = law("pieces of a map together", lambda: _split_join()[::-1])


def tiles(x: Term, height: Size, width: Size) -> Apply:
    """[n][m] → [n/height][m/width][height][width]"""
    cut = map_(lambda row: split(width, row), x)
    return map_(transpose, split(height, cut))


def untiled(x: Term) -> Apply:
    """[p][q][height][width] → [p·height][q·width]"""
    return join(map_(lambda strip: map_(join, transpose(strip)), x))


def _tiling() -> Sides:
    f, x = f_(b), Param("x", array(a, n, m))

    def each(tile: Term) -> Apply:
        return map_(lambda row: map_(lambda v: f(v), row), tile)

    tiled = tiles(x, rows, columns)
    return each(x), untiled(map_(lambda strip: map_(each, strip), tiled))


TILE_2D = law("map in tiles", _tiling, given="rows columns")


def _stencil_pieces() -> Sides:
    f, x = f_(b), Param("x", array(a, n + size - 1))

    def each(t: Term) -> Apply:
        return map_(lambda w: f(w), slide(size, 1, t))

    return each(x), join(map_(each, slide(rows + size - 1, rows, x)))


def _stencil_tiles() -> Sides:
    f, x = f_(b), Param("x", array(a, n + size - 1, m + size - 1))
    window = (size, 1)

    def each(t: Term) -> Apply:
        return map_nested(2, lambda w: f(w), slide_2d(window, window, t))

    halo = slide_2d((rows + size - 1, rows), (columns + size - 1, columns), x)
    return each(x), untiled(map_(lambda strip: map_(each, strip), halo))


STENCIL_PIECES = law("a stencil in pieces with their borders", _stencil_pieces, given="rows")
STENCIL_TILES = law("a stencil in tiles with their borders", _stencil_tiles, given="rows columns")


def _interchange() -> Sides:
    e, xs, ys = f_(c, "e"), Param("xs", array(a, n)), Param("ys", array(b, m))
    left = map_(lambda x: map_(lambda y: e(x, y), ys), xs)
    return left, transpose(map_(lambda y: map_(lambda x: e(x, y), xs), ys))


INTERCHANGE = law("interchange independent maps", _interchange)


def _interchange_nested() -> Sides:
    f, x = f_(b), Param("x", array(a, n, m))

    def each(rows_: Term) -> Apply:
        return map_(lambda row: map_(lambda v: f(v), row), rows_)

    return each(x), transpose(each(transpose(x)))


INTERCHANGE_NESTED = law("interchange a nest of maps", _interchange_nested)


def _interchange_first() -> Sides:
    e, h = f_(c, "e"), f_(array(a, m), "h")
    xs, ys = Param("xs", array(t, n)), Param("ys", array(b, m))
    left = map_(lambda x: map_(lambda p: e(p.get(0), p.get(1)), zip_(h(x), ys)), xs)
    columns_ = transpose(map_(lambda x: h(x), xs))
    pairs = zip_(columns_, ys)
    return left, transpose(
        map_(lambda p: map_(lambda v: e(v, p.get(1)), p.get(0)), pairs)
    )  # fmt: skip


def _interchange_second() -> Sides:
    e, h = f_(c, "e"), f_(array(b, m), "h")
    xs, ys = Param("xs", array(t, n)), Param("ys", array(a, m))
    left = map_(lambda x: map_(lambda p: e(p.get(0), p.get(1)), zip_(ys, h(x))), xs)
    pairs = zip_(ys, transpose(map_(lambda x: h(x), xs)))
    return left, transpose(
        map_(lambda p: map_(lambda v: e(p.get(0), v), p.get(1)), pairs)
    )  # fmt: skip


INTERCHANGE_FIRST = law("interchange with a zip, first part", _interchange_first)
INTERCHANGE_SECOND = law("interchange with a zip, second part", _interchange_second)


def _map_join() -> Sides:
    f, x = f_(b), Param("x", array(a, n, m))
    return map_(lambda v: f(v), join(x)), join(map_(lambda row: map_(lambda v: f(v), row), x))


MAP_JOIN = law("map of a join", _map_join)


# -- layout out of maps ----------------------------------------------------------------------------


def _hoisted(move: Callable[[Term], Apply], inner: Type) -> Sides:
    e, xs = f_(inner, "e"), Param("xs", array(t, n))
    return map_(lambda x: move(e(x)), xs), map_(lambda v: move(v), map_(lambda x: e(x), xs))


def _hoisted_map() -> Sides:
    e, f, xs = f_(array(a, m), "e"), f_(b), Param("xs", array(t, n))
    left = map_(lambda x: map_(lambda v: f(v), e(x)), xs)
    return left, map_(lambda row: map_(lambda v: f(v), row), map_(lambda x: e(x), xs))


HOIST_JOIN = law("join out of a map", lambda: _hoisted(join, array(a, m, size)))
HOIST_TRANSPOSE = law("transpose out of a map", lambda: _hoisted(transpose, array(a, m, size)))
HOIST_SPLIT = law("split out of a map", lambda: _hoisted(lambda x: split(size, x), array(a, m)))
HOIST_ELEMENT = law(
    "an element out of a map", lambda: _hoisted(lambda x: element(0, x), array(a, m))
)
HOIST_MAP = law("a map that does not depend on the element out of a map", _hoisted_map)


# -- layout that undoes itself ---------------------------------------------------------------------

MATRIX = Param("x", array(a, n, m))
TRANSPOSE_TWICE = law("transpose twice", lambda: (transpose(transpose(MATRIX)), MATRIX))
SPLIT_JOINED = law("split a join", lambda: (split(m, join(MATRIX)), MATRIX))
JOIN_SPLIT = law(
    "join a split",
    lambda: (join(split(size, Param("x", array(a, n)))), Param("x", array(a, n))),
)
JOIN_JOIN = law(
    "join of joins",
    lambda: (
        join(map_(lambda v: join(v), Param("x", array(a, n, m, size)))),
        join(join(Param("x", array(a, n, m, size)))),
    ),
)
MAP_IDENTITY = law(
    "map of nothing", lambda: (map_(lambda v: v, Param("x", array(a, n))), Param("x", array(a, n)))
)


PAIR = pack(Param("x", a), Param("y", b))
FIRST_OF_PAIR = law("first of a pair", lambda: (get(0, PAIR), Param("x", a)))
SECOND_OF_PAIR = law("second of a pair", lambda: (get(1, PAIR), Param("y", b)))
CLEANING = (
    TRANSPOSE_TWICE, SPLIT_JOINED, JOIN_SPLIT, MAP_IDENTITY, FIRST_OF_PAIR, SECOND_OF_PAIR,
)  # fmt: skip


# -- zips ------------------------------------------------------------------------------------------


def _join_zip() -> Sides:
    x, y = Param("x", array(a, n, m)), Param("y", array(b, n, m))
    zipped = map_(lambda p: zip_(p.get(0), p.get(1)), zip_(x, y))
    return join(zipped), zip_(join(x), join(y))


def _split_zip() -> Sides:
    x, y = Param("x", array(a, n)), Param("y", array(b, n))
    pieces = zip_(split(size, x), split(size, y))
    return split(size, zip_(x, y)), map_(lambda p: zip_(p.get(0), p.get(1)), pieces)


def _join_zip_maps() -> Sides:
    f, x, y = f_(c), Param("x", array(a, n, m)), Param("y", array(b, n, m))

    def each(p: Term) -> Apply:
        return map_(lambda q: f(q.get(0), q.get(1)), p)

    left = join(map_(lambda p: each(zip_(p.get(0), p.get(1))), zip_(x, y)))
    return left, each(zip_(join(x), join(y)))


JOIN_ZIP = law("join of zips", _join_zip)
JOIN_ZIP_MAPS = law("join of maps of zips", _join_zip_maps)
SPLIT_ZIP = law("split of a zip", _split_zip)


# -- reductions ------------------------------------------------------------------------------------

PLUS, Z = f_(a, "plus"), Param("z", a)
MONOID = Monoid("plus", "z")


def total(x: Term) -> Apply:
    """x0 plus x1 plus …, as an array of one element."""
    return reduce(lambda s, v: PLUS(s, v), Z, x)


def _reduce_map() -> Sides:
    h, g, z = f_(a, "h"), f_(c, "g"), Param("z", a)
    x = Param("x", array(b, n))
    left = reduce(lambda s, v: h(s, v), z, map_(lambda v: g(v), x))
    return left, reduce(lambda s, v: h(s, g(v)), z, x)


REDUCE_MAP = law("fuse a map into a reduction", _reduce_map)


def _partial() -> Sides:
    x = Param("x", array(a, n))
    return total(x), total(join(map_(total, split(size, x))))


def _partial_products() -> Sides:
    f = f_(a)
    x, y = Param("x", array(b, n, m)), Param("y", array(c, n, m))

    def products(p: Term) -> Apply:
        return map_(lambda q: f(q.get(0), q.get(1)), p)

    left = total(products(zip_(join(x), join(y))))

    def inner(p: Term) -> Apply:
        return total(products(zip_(p.get(0), p.get(1))))

    return left, total(join(map_(inner, zip_(x, y))))


def _merged() -> Sides:
    h, x = f_(array(a, m), "h"), Param("x", array(b, n))
    left = total(join(map_(lambda v: total(h(v)), x)))
    return left, total(join(map_(lambda v: h(v), x)))


def _regrouped() -> Sides:
    f = f_(a)
    x, y = Param("x", array(b, n)), Param("y", array(c, n))
    move_x, move_y = f_(array(b, n), "move_x"), f_(array(c, n), "move_y")

    def products(p: Term) -> Apply:
        return map_(lambda q: f(q.get(0), q.get(1)), p)

    return total(products(zip_(x, y))), total(products(zip_(move_x(x), move_y(y))))


PARTIAL = law("partial reductions", _partial, MONOID, reorders=True, given="size")
PARTIAL_PRODUCTS = law("partial reductions of products", _partial_products, MONOID, reorders=True)
MERGE_REDUCTIONS = law("reductions of reductions together", _merged, MONOID, reorders=True)
REGROUP_PRODUCTS = law(
    "a reduction of products in another order",
    _regrouped,
    MONOID,
    Rearranged(("move_x", "move_y")),
    reorders=True,
    given="move_x move_y",
)


def _zero_laws(zero: float) -> tuple[Law, Law]:
    """Laws of reductions that start from a number, which the larger start is filled with."""
    h = f_(a, "h")

    def added(s: Term, v: Term) -> Apply:
        return map_(lambda p: PLUS(p.get(0), p.get(1)), zip_(s, v))

    def ones() -> Sides:
        x = Param("x", array(a, n, 1))
        start = Literal(zero, a)
        left = reduce(lambda s, v: PLUS(s, v), start, join(x))
        return left, join(reduce(added, Literal(zero, array(a, 1)), x))

    def interchange() -> Sides:
        e, xs = f_(array(b, m), "e"), Param("xs", array(t, n))
        left = map_(lambda x: reduce(lambda s, v: h(s, v), Literal(zero, a), e(x)), xs)
        step = lambda s, v: map_(lambda p: h(p.get(0), p.get(1)), zip_(s, v))  # noqa: E731
        columns_ = transpose(map_(lambda x: e(x), xs))
        return left, transpose(reduce(step, Literal(zero, array(a, n)), columns_))

    return (
        law(f"a reduction from {zero:g} of arrays of one", ones, Monoid("plus", zero)),
        law(f"reductions from {zero:g} of a map as one reduction", interchange),
    )


REDUCE_ONES, MAP_REDUCE = _zero_laws(0.0)


# -- memory ----------------------------------------------------------------------------------------


def to(space: SpaceName, x: Term) -> Apply:
    return apply(To(space), (), (x,))


def _numbers(depth: int) -> Type:
    """An array of arrays of numbers."""
    return array(a, *sizes("n1 n2 n3 n4 n5 n6 n7")[:depth])


def copying(space: SpaceName, depth: int) -> Law:
    """x → to_space(x copied, number by number), `depth` arrays deep."""

    def sides() -> Sides:
        x = Param("x", _numbers(depth))
        return x, to(space, copied(x))

    return law(f"copy {depth} deep to {space} memory", sides)


def placing(space: SpaceName) -> Law:
    """x → to_space(x), for what computes something."""
    x = Param("x", a)
    return law(f"place in {space} memory", lambda: (x, to(space, x)), Concrete("x"))


def prefetching(space: SpaceName, depth: int) -> Law:
    """e(x) → let y = to_space(x copied, in another order) in e(y, put back); x is chosen."""

    def sides() -> Sides:
        type_ = _numbers(depth)
        x, e = Param("x", type_), f_(b, "e")
        there = f_(_numbers_moved(depth), "there")
        back = f_(type_, "back")
        moved = to(space, copied(there(x)))
        return e(x), let(moved, lambda y: e(back(y)))

    undone = Undone("there", "back")
    return law(f"prefetch {depth} deep to {space} memory", sides, undone, given="x there back")


def _numbers_moved(depth: int) -> Type:
    """As many arrays deep, with sizes of its own."""
    return array(a, *sizes("m1 m2 m3 m4 m5 m6 m7")[:depth])


def _vectors() -> Sides:
    x = Param("x", array(a, n))
    return map_(copy, x), map_vector(copy, x)


VECTOR_COPY = law("copy by vectors", _vectors)

LAWS: tuple[Law, ...] = (
    FUSE_MAPS, SPLIT_MAP, FUSE_ZIPPED_MAPS, SPLIT_JOIN, UNSPLIT, TILE_2D, STENCIL_PIECES,
    STENCIL_TILES, INTERCHANGE,
    INTERCHANGE_NESTED, INTERCHANGE_FIRST, INTERCHANGE_SECOND, MAP_JOIN,
    HOIST_JOIN, HOIST_TRANSPOSE, HOIST_SPLIT, HOIST_ELEMENT, HOIST_MAP,
    *CLEANING, JOIN_JOIN, JOIN_ZIP, JOIN_ZIP_MAPS, SPLIT_ZIP,
    REDUCE_MAP, PARTIAL, PARTIAL_PRODUCTS, MERGE_REDUCTIONS, REGROUP_PRODUCTS,
    REDUCE_ONES, MAP_REDUCE,
    *(copying(space, depth) for space in SPACES for depth in (1, 3)),
    *(placing(space) for space in SPACES),
    *(prefetching(space, 2) for space in SPACES),
    VECTOR_COPY,
)  # fmt: skip
