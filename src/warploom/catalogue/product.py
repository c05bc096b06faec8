"""Products of polynomials over GF(2), 32 of them at a time in the bits of a word.

    c[t] = XOR over i of a[i] & b[t - i]        degree coefficients each, 2·degree of the product

Bit p of the words belongs to polynomial p, so that a word operation is 32 multiplications. Many
products are made by one launch; product number q has its coefficients at q·degree.

A lane keeps one coefficient of each 32. For 32 coefficients, which ones a lane gets in iteration i,
and to which of its two sums their product goes, is for the fill of a sketch to say
(`product_sketch`), which is found and verified when a kernel is built.

For P·32 coefficients the same fill is read with a symbol for the P words that a lane holds, which
are a polynomial in Y = x³²: the second sum counts Y times. So 2·P² additions would do; but Y times
an operand moves its words up one place, and if that is done before multiplying, P·(P + 1) are
enough: 2 for 32 coefficients, 6 for 64. The last word arrives in the first one's place then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from warploom.catalogue.layout import WARP, check_block
from warploom.errors import CheckError, SearchError
from warploom.index.ir import Expr, Var, select
from warploom.kernel.build import Array, Builder, RegisterArray, ceil_div, choose
from warploom.kernel.dtype import u32
from warploom.kernel.ir import Kernel, Number
from warploom.sketch.build import Sketch, Value
from warploom.sketch.code.form import cheapest, split, subtracting_last, tabulated
from warploom.sketch.code.move import REGISTER, Move, at_place
from warploom.sketch.code.proved import Proved, find
from warploom.sketch.term import spec
from warploom.sketch.term.ir import Program

Operand = TypeVar("Operand", Array, RegisterArray)

MAX_DEGREE = 384
SEARCHED_LANES = 4  # the search is at this size, the fill is carried over to a warp
UNROLLED_PARTS = 2  # with more words a lane an iteration is long enough to stay in a loop


def check_degree(degree: int) -> None:
    if degree % WARP or not WARP <= degree <= MAX_DEGREE:
        raise CheckError(
            f"{degree} coefficients", advice=f"use a multiple of {WARP} up to {MAX_DEGREE}"
        )


# --- the sketch and its fill --------------------------------------------------------------------


def product_sketch(lanes: int) -> Program:
    """Every lane keeps two sums. In each iteration it gets one coefficient of each operand (holes)
    and adds their product to one of the sums, or to neither (holes)."""
    s = Sketch(f"product of {lanes} coefficients")
    a, b = (_coefficients(s, name, lanes) for name in "ab")
    products = s.fold("stack", a, b, name="products", operator="&")
    both = s.apply("broadcast", products, shape=(lanes, 2, lanes), group=1, name="both")
    early = s.hole("cond_keep_no_consts", both, restrict=[1, 0], name="early")
    late = s.hole("cond_keep_no_consts", early, restrict=[1, 1], name="late")
    sums = s.fold("reshape", late, name="sums", operator="^")
    turned = s.apply("transpose", sums, shape=(2, lanes), name="turned")
    s.apply("reshape", turned, shape=2 * lanes, name="out")

    def coefficients(a: list[object], b: list[object]) -> list[object]:
        pairs = [(i, j) for i in range(lanes) for j in range(lanes)]
        terms = [[(i, j) for i, j in pairs if i + j == t] for t in range(2 * lanes)]
        return [spec.bit_xor([a[i] & b[j] for i, j in each]) if each else 0 for each in terms]  # type: ignore[operator]

    s.goal(coefficients)
    return s.program()


def _coefficients(s: Sketch, name: str, lanes: int) -> Value:
    """One coefficient for each lane and iteration."""
    axes = {"main": 0, "second": 1, "out": 1}
    every = s.apply(
        "broadcast", s.input(f"{name}_in", lanes), shape=(lanes, lanes), name=f"{name}_all"
    )
    first = s.hole("xforms_no_group", every, name=f"{name}_1", **axes)
    return s.hole("rots_no_group", first, name=name, **axes)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Lane x0 gets in iteration x1 the words that lane `plain` has of one operand and lane
    `turned` of the other; their product goes to the first sum where `early`, else to the second.

    `turned` is a move from two registers: 0 for the words in order, 1 for those moved up.
    """

    plain_is_a: bool
    plain: Move
    turned: Move
    early: Expr
    doc: str


@lru_cache(maxsize=1)
def exchange_of() -> Exchange:
    """The exchange of a product, by the fill of its sketch."""
    return exchange_from(find(product_sketch(WARP), product_sketch(SEARCHED_LANES)))


def exchange_from(proved: Proved) -> Exchange:
    a, b = (proved.move(name, f"{name}_in") for name in "ab")
    kept = proved.move("late", "both").kept
    early, late = (
        cheapest(at_place(kept, Var("x0"), REGISTER + half * WARP), WARP, WARP) for half in (0, 1)
    )
    first, second = (tabulated(each, WARP, WARP) != 0 for each in (early, late))
    if not np.array_equal(first, ~second):
        raise SearchError("this fill does not add every product to exactly one sum")
    for plain_is_a, plain, other in ((True, a, b), (False, b, a)):
        turned = replace(other, sources=2, register=select(early, 0, 1))
        if turned.sent is not None:
            return Exchange(plain_is_a, plain, turned, early, proved.doc)
    raise SearchError("this fill asks a lane for two different orders of its words at once")


# --- kernels ------------------------------------------------------------------------------------


def product_registers(degree: int = 32, block: int = 128) -> Kernel:
    """Both operands in registers, exchanged by shuffle."""
    k, batch, a, b, c, exchange = _start("registers", degree, block)
    q = k.let("q", k.block_x * (block // WARP) + k.warp)
    parts = degree // WARP
    held_a, held_b = k.registers("held_a", u32, parts), k.registers("held_b", u32, parts)
    with k.loop("p", parts) as p:
        at = q * degree + p * WARP + k.lane
        held_a[p] = a.at(at, when=q.lt(batch))
        held_b[p] = b.at(at, when=q.lt(batch))
    plain, turned = _operands(exchange, held_a, held_b)
    sums = k.registers("sums", u32, 2 * parts, 0)
    with k.loop("i", WARP, unroll=parts <= UNROLLED_PARTS) as i:
        got, moved = k.registers("got", u32, parts), k.registers("moved", u32, parts)
        assert exchange.turned.sent is not None
        up = at_place(exchange.turned.sent, k.lane, i)
        with k.loop("p", parts) as p:
            got[p] = k.shuffle(plain[p], at_place(exchange.plain.lane, k.lane, i))
            sent = turned[(p + up * (parts - 1)) % parts] if parts > 1 else turned[0]
            moved[p] = k.shuffle(sent, at_place(exchange.turned.lane, k.lane, i))
        _add_products(k, sums, got, moved, at_place(exchange.early, k.lane, i))
    _store_lanes(k, c, sums, q, degree, batch)
    return k.done()


def product_shared(degree: int = 32, block: int = 128) -> Kernel:
    """Both operands in shared memory."""
    k, batch, a, b, c, exchange = _start("shared", degree, block)
    warps = block // WARP
    q = k.let("q", k.block_x * warps + k.warp)
    parts = degree // WARP
    tile_a, tile_b = (k.shared(f"tile_{name}", u32, warps * degree) for name in "ab")
    word = k.register("word", u32)
    with k.loop("p", parts) as p:
        at = p * WARP + k.lane
        for tile, source in ((tile_a, a), (tile_b, b)):
            k.set(word, source.at(q * degree + at, when=q.lt(batch)))
            tile.put(k.warp * degree + at, word)
    k.barrier("warp")
    plain, turned = _operands(exchange, tile_a, tile_b)
    first, others = _places(exchange, parts)
    sums = k.registers("sums", u32, 2 * parts, 0)
    with k.loop("i", WARP, unroll=parts <= UNROLLED_PARTS) as i:
        got, moved = k.registers("got", u32, parts), k.registers("moved", u32, parts)
        start = k.warp * degree
        with k.loop("p", parts) as p:
            got[p] = plain[start + p * WARP + at_place(exchange.plain.lane, k.lane, i)]
        moved[0] = turned[start + at_place(first, k.lane, i)]
        with k.loop("p", 1, parts) as p:
            moved[p] = turned[subtracting_last(start + at_place(others, k.lane, i) + p * WARP)]
        _add_products(k, sums, got, moved, at_place(exchange.early, k.lane, i))
    _store_lanes(k, c, sums, q, degree, batch)
    return k.done()


def _operands(exchange: Exchange, a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """The plain one and the one that is turned."""
    return (a, b) if exchange.plain_is_a else (b, a)


def _places(exchange: Exchange, parts: int) -> tuple[Expr, Expr]:
    """Where the words that a lane gets of the turned operand lie: the first, and any other, from
    its place in order."""
    lane, early = exchange.turned.lane, exchange.early
    places = [
        lane + select(early, 0, (parts - 1) * WARP) if parts > 1 else lane,
        lane + select(early, 0, -WARP),
    ]
    first, others = (_place(place, early) for place in places)
    return first, others


def _place(place: Expr, early: Expr) -> Expr:
    """A sum for either case costs nothing beside the address; a remainder would."""
    cases = split(tabulated(place, WARP, WARP), early)
    return cheapest(place, WARP, WARP) if cases is None else cases


def _add_products(
    k: Builder, sums: RegisterArray, got: RegisterArray, moved: RegisterArray, early: Expr
) -> None:
    """One iteration. The first moved word belongs to the lowest sums in an `early` lane, and to the
    highest ones in the others.
    """
    parts = len(got)
    low, high = k.register("low", u32), k.register("high", u32)
    k.set(low, choose(early, moved[0], 0))
    k.set(high, choose(early, Number(0, u32), moved[0]))
    with k.loop("p", parts) as p:
        sums[p] = sums[p] ^ (got[p] & low)
        with k.loop("r", 1, parts) as r:
            sums[p + r] = sums[p + r] ^ (got[p] & moved[r])
        sums[p + parts] = sums[p + parts] ^ (got[p] & high)


def _store_lanes(
    k: Builder, c: Array, sums: RegisterArray, q: Expr, degree: int, batch: Var
) -> None:
    with k.loop("p", len(sums)) as p:
        c.put(q * (2 * degree) + p * WARP + k.lane, sums[p], when=q.lt(batch))


def _start(
    form: str, degree: int, block: int
) -> tuple[Builder, Var, Array, Array, Array, Exchange]:
    check_degree(degree)
    check_block(block)
    exchange = exchange_of()
    doc = (
        f"c = a b for polynomials of {degree} coefficients over GF(2), bit-sliced.\n"
        f"Lane x0 has {degree // WARP} words of each operand, a symbol of the sketch each; in "
        f"iteration i = x1\n(x2 of early and late) it adds one product.\n{exchange.doc}"
    )
    k, batch, a, b, c = parameters(f"product_{form}_{degree}", degree, block, doc)
    k.grid(ceil_div(batch, block // WARP))
    return k, batch, a, b, c, exchange


def parameters(
    name: str, degree: int, block: int, doc: str
) -> tuple[Builder, Var, Array, Array, Array]:
    check_block(block)
    # Asked for one block at least, the assembler takes a few registers more instead of spilling.
    k = Builder(name, block=block, doc=doc, min_blocks=1)
    batch = k.scalar("batch")
    a, b = (k.array(each, u32, batch * degree, const=True) for each in "ab")
    return k, batch, a, b, k.array("c", u32, batch * (2 * degree))
