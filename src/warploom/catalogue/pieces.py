"""Products of polynomials over GF(2), written by hand: one piece of an operand a lane.

Each lane keeps `piece` coefficients of b and multiplies pieces of a by them, piece² operations for
2·piece words that move. Here the sums move, not b: seen from a sum, iteration i is at lane t - i
as in `product.py`, but no lane ever has to choose between two sums. No sketch stands behind it.
"""

from __future__ import annotations

from warploom.catalogue.product import check_degree, parameters
from warploom.errors import CheckError
from warploom.index.ir import Expr, Var
from warploom.kernel.build import Array, RegisterArray, ceil_div, choose
from warploom.kernel.dtype import u32
from warploom.kernel.ir import Cell, Kernel, Number

MAX_PIECE = 32
EVERY_BIT = 0xFFFFFFFF


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
            "lane's are finished.\nWritten by hand: there is no fill."
        )
        name = f"product_pieces_{degree}"
        self.k, self.batch, self.a, self.b, self.c = parameters(name, degree, block, doc)

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
