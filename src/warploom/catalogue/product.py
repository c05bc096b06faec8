"""Products of polynomials over GF(2), 32 of them at a time in the bits of a word.

    c[t] = XOR over i of a[i] & b[t - i]        degree coefficients each, 2·degree of the product

Bit p of the words belongs to polynomial p, so that a word operation is 32 multiplications. Many
products are made by one launch; product number q has its coefficients at q·degree.

*One coefficient of each 32 a lane* (`registers`, `shared`): the fill of the sketch. In iteration i
lane t gets a[i] and b[(t - i) mod 32] and adds their product to c[t] if t ≥ i, to c[t + 32]
otherwise. With P words of each operand a lane, 2·P² additions would do; but if a lane with t < i
takes the words of b in an order turned by one, all but the first go to the same sum in every lane,
and P·(P + 1) are enough: 2 for 32 coefficients, 6 for 64.

*One piece a lane* (`pieces`): each lane keeps `piece` coefficients of b and multiplies pieces of a
by them, piece² operations for 2·piece words that move. Here the sums move, not b: seen from a sum,
iteration i is at lane t - i, as above, but no lane ever has to choose between two sums.
"""

from __future__ import annotations

from warploom.catalogue.window import WARP, check_block
from warploom.errors import CheckError
from warploom.index.ir import Expr, Var, select
from warploom.kernel.build import Array, Builder, RegisterArray, ceil_div, choose
from warploom.kernel.dtype import u32
from warploom.kernel.ir import Cell, Kernel, Number

MAX_DEGREE = 384
MAX_PIECE = 32
EVERY_BIT = 0xFFFFFFFF


UNROLLED_PARTS = 2  # with more words a lane an iteration is long enough to stay in a loop


def check_degree(degree: int) -> None:
    if degree % WARP or not WARP <= degree <= MAX_DEGREE:
        raise CheckError(
            f"{degree} coefficients", advice=f"use a multiple of {WARP} up to {MAX_DEGREE}"
        )


# --- one coefficient of each 32 a lane --------------------------------------------------------


def product_registers(degree: int = 32, block: int = 128) -> Kernel:
    """Both operands in registers, exchanged by shuffle."""
    k, batch, a, b, c = _start("registers", degree, block)
    q = k.let("q", k.block_x * (block // WARP) + k.warp)
    parts = degree // WARP
    held_a, held_b = k.registers("held_a", u32, parts), k.registers("held_b", u32, parts)
    with k.loop("p", parts) as p:
        at = q * degree + p * WARP + k.lane
        held_a[p] = a.at(at, when=q.lt(batch))
        held_b[p] = b.at(at, when=q.lt(batch))
    sums = k.registers("sums", u32, 2 * parts, 0)
    with k.loop("i", WARP, unroll=parts <= UNROLLED_PARTS) as i:
        got_a, got_b = k.registers("got_a", u32, parts), k.registers("got_b", u32, parts)
        with k.loop("p", parts) as p:
            got_a[p] = k.shuffle(held_a[p], i)
            # The receiver is lane + i: before the ring closes it takes word p, then the one before.
            turned = held_b[(p + (parts - 1)) % parts]
            sent = choose((k.lane + i).lt(WARP), held_b[p], turned) if parts > 1 else held_b[p]
            got_b[p] = k.shuffle(sent, (k.lane - i) % WARP)
        _add_products(k, sums, got_a, got_b, k.lane.ge(i))
    _store_lanes(k, c, sums, q, degree, batch)
    return k.done()


def product_shared(degree: int = 32, block: int = 128) -> Kernel:
    """Both operands in shared memory."""
    k, batch, a, b, c = _start("shared", degree, block)
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
    sums = k.registers("sums", u32, 2 * parts, 0)
    with k.loop("i", WARP, unroll=parts <= UNROLLED_PARTS) as i:
        got_a, got_b = k.registers("got_a", u32, parts), k.registers("got_b", u32, parts)
        with k.loop("p", parts) as p:
            got_a[p] = tile_a[k.warp * degree + p * WARP + i]
        turned = select(k.lane.lt(i), k.lane - i + degree, k.lane - i)  # (lane - i) mod degree
        got_b[0] = tile_b[k.warp * degree + turned]
        with k.loop("p", 1, parts) as p:
            got_b[p] = tile_b[k.warp * degree + k.lane + p * WARP - i]
        _add_products(k, sums, got_a, got_b, k.lane.ge(i))
    _store_lanes(k, c, sums, q, degree, batch)
    return k.done()


def _add_products(
    k: Builder, sums: RegisterArray, a: RegisterArray, b: RegisterArray, early: Expr
) -> None:
    """One iteration. The first word of b belongs to the lowest sums in an `early` lane, t ≥ i,
    and to the highest ones in the others.
    """
    parts = len(a)
    low, high = k.register("low", u32), k.register("high", u32)
    k.set(low, choose(early, b[0], 0))
    k.set(high, choose(early, Number(0, u32), b[0]))
    with k.loop("p", parts) as p:
        sums[p] = sums[p] ^ (a[p] & low)
        with k.loop("r", 1, parts) as r:
            sums[p + r] = sums[p + r] ^ (a[p] & b[r])
        sums[p + parts] = sums[p + parts] ^ (a[p] & high)


def _store_lanes(
    k: Builder, c: Array, sums: RegisterArray, q: Expr, degree: int, batch: Var
) -> None:
    with k.loop("p", len(sums)) as p:
        c.put(q * (2 * degree) + p * WARP + k.lane, sums[p], when=q.lt(batch))


def _start(form: str, degree: int, block: int) -> tuple[Builder, Var, Array, Array, Array]:
    check_degree(degree)
    doc = (
        f"c = a b for polynomials of {degree} coefficients over GF(2), bit-sliced.\n"
        "In iteration i a lane gets a[i] and b[(lane - i) mod 32] of its warp's product."
    )
    k, batch, a, b, c = _parameters(f"product_{form}_{degree}", degree, block, doc)
    k.grid(ceil_div(batch, block // WARP))
    return k, batch, a, b, c


def _parameters(
    name: str, degree: int, block: int, doc: str
) -> tuple[Builder, Var, Array, Array, Array]:
    check_block(block)
    # Asked for one block at least, the assembler takes a few registers more instead of spilling.
    k = Builder(name, block=block, doc=doc, min_blocks=1)
    batch = k.scalar("batch")
    a, b = (k.array(each, u32, batch * degree, const=True) for each in "ab")
    return k, batch, a, b, k.array("c", u32, batch * (2 * degree))


# --- one piece a lane -------------------------------------------------------------------------


def piece_sizes(degree: int) -> list[int]:
    """Pieces that divide a product among 2, 4, 8, 16 or 32 lanes, the usual one first."""
    check_degree(degree)
    sizes = [degree // lanes for lanes in (2, 4, 8, 16, 32) if 4 <= degree // lanes <= MAX_PIECE]
    return sorted(sizes, key=lambda size: (size < 8, size % 4, size))


def product_pieces(
    degree: int = 64, piece: int = 0, operand: str = "load", finish: str = "store",
    block: int = 128,
) -> Kernel:  # fmt: skip
    """Any multiple of 32 coefficients up to 384, `piece` of them in each lane (0: the usual).

    `operand`: how a lane gets the next piece of a, by `load` or `shuffle`. `finish`: the first
    lane's finished sums are stored at once (`store`), or kept until all lanes store (`keep`).
    """
    sizes = piece_sizes(degree)
    piece = piece or sizes[0]
    if piece not in sizes:
        raise CheckError(f"pieces of {piece}", advice=f"use {', '.join(map(str, sizes))}")
    if operand not in ("load", "shuffle") or finish not in ("store", "keep"):
        raise CheckError(
            f"operand '{operand[:40]}', finish '{finish[:40]}'",
            advice="operand is load or shuffle, finish is store or keep",
        )
    return _Pieces(degree, piece, operand, finish, block).kernel()


class _Pieces:
    """Writes the kernel. The lanes of one product are a group of `lanes` neighbours."""

    def __init__(self, degree: int, piece: int, operand: str, finish: str, block: int) -> None:
        self.degree, self.piece, self.block = degree, piece, block
        self.by_load, self.keep = operand == "load", finish == "keep"
        self.lanes = degree // piece
        self.width = next(width for width in (4, 2, 1) if piece % width == 0)
        doc = (
            f"c = a b for polynomials of {degree} coefficients over GF(2), bit-sliced.\n"
            f"{self.lanes} lanes share a product; each keeps {piece} coefficients of b. In "
            "iteration i all get\npiece i of a; sums then move to the lane before, the first "
            "lane's are finished."
        )
        name = f"product_pieces_{degree}"
        self.k, self.batch, self.a, self.b, self.c = _parameters(name, degree, block, doc)

    def kernel(self) -> Kernel:
        k, piece, lanes = self.k, self.piece, self.lanes
        groups = self.block // lanes
        k.grid(ceil_div(self.batch, groups))
        q = k.let("q", k.block_x * groups + k.thread // lanes)
        mine = k.let("mine", k.lane % lanes)
        b = k.registers("held_b", u32, piece)
        self._load(b, self.b, q * self.degree + mine * piece)
        a = b if self.by_load else k.registers("held_a", u32, piece)
        if not self.by_load:
            self._load(a, self.a, q * self.degree + mine * piece)
        more = k.register("more", u32)
        k.set(more, choose(mine.ne(lanes - 1), Number(EVERY_BIT, u32), 0))
        sums = k.registers("sums", u32, 2 * piece, 0)
        finished = k.registers("finished", u32, piece, 0) if self.keep else sums
        with k.loop("i", lanes, unroll=False) as i:
            self._multiply(i, a, b, sums)
            self._pass_on(i, sums, finished, more)
        if self.keep:
            self._store(finished, q * (2 * self.degree) + mine * piece)
        self._store(sums, q * (2 * self.degree) + (mine + lanes) * piece)
        return k.done()

    def _load(self, into: RegisterArray, source: Array, at: Expr) -> None:
        with self.k.loop("v", 0, self.piece, self.width) as v:
            into[v] = source.at(at + v, when=Var("q").lt(self.batch), width=self.width)

    def _store(self, sums: RegisterArray, at: Expr, when: Expr | None = None) -> None:
        valid = Var("q").lt(self.batch)
        where = valid if when is None else valid.and_(when)
        with self.k.loop("v", 0, self.piece, self.width) as v:
            self.c.put(at + v, sums[v], when=where, width=self.width)

    def _multiply(self, i: Var, a: RegisterArray, b: RegisterArray, sums: RegisterArray) -> None:
        k = self.k
        part = k.registers("now_a", u32, self.piece)
        if self.by_load:
            self._load(part, self.a, Var("q") * self.degree + i * self.piece)
        else:
            with k.loop("x", self.piece) as x:
                part[x] = k.shuffle(a[x], k.lane - Var("mine") + i)
        with k.loop("x", self.piece) as x, k.loop("y", self.piece) as y:
            sums[x + y] = sums[x + y] ^ (part[x] & b[y])

    def _pass_on(self, i: Var, sums: RegisterArray, finished: RegisterArray, more: Cell) -> None:
        """The lower half goes to the lane before, the upper half becomes the lower one."""
        k, mine = self.k, Var("mine")
        if not self.keep:
            at = Var("q") * (2 * self.degree) + i * self.piece
            self._store(sums, at, mine.eq(0))
        after = k.lane - mine + (mine + 1) % self.lanes
        moved = k.register("moved", u32)
        with k.loop("e", self.piece) as e:
            k.set(moved, k.shuffle(sums[e], after))
            if self.keep:
                # Finished sums enter at the last lane and move down: piece i ends in lane i.
                older = k.register("older", u32)
                k.set(older, k.shuffle(finished[e], after))
                finished[e] = choose(mine.eq(self.lanes - 1), moved, older)
            sums[e] = sums[e + self.piece] ^ (moved & more)
            sums[e + self.piece] = 0
