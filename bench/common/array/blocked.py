"""Products in blocks: tiles of both factors in local memory, sums in registers.

A group makes a block of `bm` × `bn` sums. In each iteration its threads fetch `bk` numbers of every
row of both factors into local memory, and each thread adds to the `rm` × `rn` sums that it holds in
registers. With `slices` > 1 as many threads hold each of these sums: each has a slice of the
products of an iteration, and in the end they add up through local memory; a small block then has
threads enough. With `parts` > 1 groups share the sums of a block: each has a part of the products,
and a second kernel adds up the parts. The convolution is such a product of its windows with its
kernels (an implicit GEMM): windows are only looked at, and what lies outside the image is a guard.

    rows [P][T][bk], columns [K][T][bk]   →   [P][K]     the last blocks of P and K may be partial
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.array.build import (
    copy,
    filled,
    fold,
    get,
    join,
    let,
    map_,
    map_global,
    map_group,
    map_local,
    map_sequential,
    map_vector,
    pad,
    pad_2d,
    program,
    slice_,
    slide_2d,
    split,
    to_global,
    to_local,
    to_private,
    transpose,
    zip_,
)
from warploom.array.language.ir import Program, Term
from warploom.array.types import array
from warploom.array.workload import Convolution, add
from warploom.errors import CheckError
from warploom.kernel.dtype import f32

LANES = 4  # numbers of one access


@dataclass(frozen=True, slots=True)
class Blocks:
    """Sizes of blocks: rows and columns of a group, products of an iteration, rows and columns of a
    thread, how many groups share the products of a block, and how many threads those of a sum."""

    bm: int
    bn: int
    bk: int
    rm: int
    rn: int
    parts: int = 1
    lanes: int = LANES  # numbers that a thread fetches in one access
    slices: int = 1

    @property
    def threads(self) -> tuple[int, int]:
        """Across columns, across rows; in one slice."""
        return self.bn // self.rn, self.bm // self.rm

    @property
    def near(self) -> int:
        """Accesses of one row by neighbouring threads: two fill a sector; more would put all that
        they store into the same banks."""
        return 2 if self.lanes == LANES and self.bk % (2 * LANES) == 0 else 1

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory: of both tiles, or of the sums of all slices at the end."""
        sums = self.slices * self.bm * self.bn if self.slices > 1 else 0
        return 4 * max(self.bk * (self.bm + self.bn), sums)

    def check(self, iterations: int) -> None:
        """Raises CheckError where a size is no multiple of what it is cut into."""
        across = self.threads[0] * self.lanes
        cut = [
            (self.bm, self.rm), (self.bn, self.rn), (self.rm, LANES), (self.rn, LANES),
            (self.bk, self.lanes), (self.bm * self.bk, across * self.slices),
            (self.bn * self.bk, across * self.slices), (iterations, self.parts),
            (self.bk, self.slices), (self.bm, self.slices),
        ]  # fmt: skip
        for whole, piece in cut:
            if whole % piece:
                raise CheckError(f"{self}: {piece} does not divide {whole}")


def blocked(rows: Term, columns: Term, counts: tuple[int, int, int], blocks: Blocks) -> Term:
    """[P][T][bk], [K][T][bk] → [P][K], where `counts` are P, K and T."""
    many, wide, iterations = counts
    blocks.check(iterations)
    up, across = -(-many // blocks.bm) * blocks.bm, -(-wide // blocks.bn) * blocks.bn
    xs = split(blocks.bm, _padded(rows, many, up))
    ys = split(blocks.bn, _padded(columns, wide, across))

    # Where the last block is partial, four neighbours may be both inside and outside.
    store = _copied if across == wide else _each

    def one(x: Term, y: Term) -> Term:
        """A block of sums for each part of the products."""
        each = iterations // blocks.parts
        pieces = zip_(split(each, transpose(x)), split(each, transpose(y)))
        return map_group(2, lambda part: _block(part, blocks, store), pieces)

    made = map_group(1, lambda x: map_group(0, lambda y: one(x, y), ys), xs)
    # [P/bm][K/bn][parts][bm][bn] → [parts][P][K]
    whole = transpose(map_(transpose, made))
    flat = map_(lambda part: join(map_(lambda row: map_(join, transpose(row)), part)), whole)
    cut = map_(lambda part: _cut(part, counts), flat)
    if blocks.parts == 1:
        return join(cut)
    return let(to_global(cut), _summed)


def _padded(x: Term, count: int, up: int) -> Term:
    return x if up == count else pad(0, up - count, x)


def _cut(x: Term, counts: tuple[int, int, int]) -> Term:
    return map_(lambda row: slice_(0, counts[1], row), slice_(0, counts[0], x))


def _block(part: Term, blocks: Blocks, store: Callable[[Term], Term]) -> Term:
    """The sums of a block over the iterations of one part: [bm][bn]."""
    across, up = blocks.threads
    shape = array(f32, up, across, blocks.rm, blocks.rn)
    sides = shape if blocks.slices == 1 else array(shape, blocks.slices)
    zero = to_private(_in_slices(lambda own: _by_thread(own, _each), filled(0.0, sides), blocks))

    def iteration(sums: Term, tile: Term) -> Term:
        """Both tiles are on their way before anybody waits."""
        x, y = tile.get(0), tile.get(1)
        return let(
            _fetched(x, blocks.bm, blocks),
            lambda u: let(
                _fetched(y, blocks.bn, blocks), lambda v: _from_tiles(sums, u, v, blocks)
            ),
        )

    sums = fold(iteration, zero, zip_(get(0, part), get(1, part)))
    if blocks.slices == 1:
        return _undealt(_by_thread(sums, store))
    put = _in_slices(lambda own: _by_thread(own, _copied), sums, blocks)
    return let(to_local(map_(_undealt, put)), lambda own: _over_slices(own, blocks))


def _in_slices(each: Callable[[Term], Term], x: Term, blocks: Blocks) -> Term:
    """What threads of one slice do, where there are several."""
    return each(x) if blocks.slices == 1 else map_local(2, each, x)


def _over_slices(sums: Term, blocks: Blocks) -> Term:
    """[slices][bm][bn] → [bm][bn]: threads of all slices have rows of their own."""

    def total(numbers: Term) -> Term:
        return copy(fold(add, 0.0, numbers))

    def rows(own: Term) -> Term:
        return map_local(1, lambda row: map_local(0, total, row), own)

    cells = map_(transpose, transpose(sums))  # [bm][bn][slices]
    return join(map_local(2, rows, split(blocks.bm // blocks.slices, cells)))


def _fetched(tile: Term, rows: int, blocks: Blocks) -> Term:
    """[rows][bk] in memory → in registers of all threads, several neighbours each."""
    across, _ = blocks.threads
    near = map_(lambda row: split(blocks.near, split(blocks.lanes, row)), tile)
    units = split(across, join(join(transpose(near))))  # rows before what is further in a row
    fetch = map_vector if blocks.lanes > 1 else map_sequential

    def fetched(lines: Term) -> Term:
        return map_local(1, lambda line: map_local(0, lambda own: fetch(copy, own), line), lines)

    lines = rows * blocks.bk // (blocks.lanes * across)
    parts = units if blocks.slices == 1 else split(lines // blocks.slices, units)
    return to_private(_in_slices(fetched, parts, blocks))


def _placed(fetched: Term, rows: int, blocks: Blocks) -> Term:
    """Elements in registers of all threads → [bk][rows] in local memory."""

    def moved(lines: Term) -> Term:
        return map_local(1, lambda line: map_local(0, _each, line), lines)

    lines = _in_slices(moved, fetched, blocks)
    units = join(lines if blocks.slices == 1 else join(lines))
    near = transpose(split(rows, split(blocks.near, units)))
    return to_local(transpose(map_(lambda row: join(join(row)), near)))


def _from_tiles(sums: Term, u: Term, v: Term, blocks: Blocks) -> Term:
    return let(
        _placed(u, blocks.bm, blocks),
        lambda x: let(_placed(v, blocks.bn, blocks), lambda y: _added(sums, x, y, blocks)),
    )


def _added(sums: Term, x: Term, y: Term, blocks: Blocks) -> Term:
    """Each thread adds the products of one iteration to its sums; x and y are [bk][bm],
    [bk][bn]."""
    across, up = blocks.threads

    def own(lines: Term, threads: int) -> Term:  # [threads][…][rm or rn]
        return transpose(map_(lambda line: _distributed(line, threads), lines))

    def step(s: Term, pair: Term) -> Term:
        a, b = pair.get(0), pair.get(1)
        return let(_in_registers(a), lambda u: let(_in_registers(b), lambda v: _outer(s, u, v)))

    def thread(mine: Term, row: Term) -> Term:
        return fold(step, mine.get(0), zip_(row, mine.get(1)))

    def added(s: Term, u: Term, v: Term) -> Term:
        columns = own(v, across)

        def line(pair: Term) -> Term:
            return map_local(0, lambda each: thread(each, pair.get(1)), zip_(pair.get(0), columns))

        return map_local(1, line, zip_(s, own(u, up)))

    if blocks.slices == 1:
        return added(sums, x, y)
    each = blocks.bk // blocks.slices
    sliced = zip_(sums, zip_(split(each, x), split(each, y)))
    return map_local(2, lambda s: added(s.get(0), s.get(1).get(0), s.get(1).get(1)), sliced)


def _outer(sums: Term, u: Term, v: Term) -> Term:
    def row(pair: Term) -> Term:
        return map_sequential(lambda s: s.get(0) + pair.get(1) * s.get(1), zip_(pair.get(0), v))

    return map_sequential(row, zip_(sums, u))


def _in_registers(x: Term) -> Term:
    return to_private(_copied(x))


def _copied(x: Term) -> Term:
    return join(map_sequential(lambda quad: map_vector(copy, quad), split(LANES, x)))


def _each(x: Term) -> Term:
    return map_sequential(copy, x)


def _by_thread(sums: Term, row: Callable[[Term], Term]) -> Term:
    """[up][across][rm][rn], each thread its own rows."""
    return map_local(1, lambda line: map_local(0, lambda own: map_sequential(row, own), line), sums)


def _distributed(x: Term, threads: int) -> Term:
    """[n] → [threads][n/threads]: four numbers for each thread, then the next four, …"""
    return map_(join, transpose(split(threads, split(LANES, x))))


def _gathered(x: Term) -> Term:
    """What was distributed, in one row again."""
    return join(join(transpose(map_(lambda own: split(LANES, own), x))))


def _undealt(sums: Term) -> Term:
    """[up][across][rm][rn] → [bm][bn]"""
    by_row = map_(lambda own: map_(_gathered, transpose(own)), sums)  # [up][rm][bn]
    return _gathered(by_row)


def _summed(parts: Term) -> Term:
    """[parts][P][K] → [P][K]"""

    def total(numbers: Term) -> Term:
        return copy(fold(add, 0.0, numbers))

    by_row = map_(transpose, transpose(parts))  # [P][K][parts]
    return map_global(1, lambda row: map_global(0, total, row), by_row)


# -- programs --------------------------------------------------------------------------------------


def matmul(rows: int, columns: int, products: int, blocks: Blocks) -> Program:
    """a [rows][products] with b [columns][products]: both have their products side by side."""
    return program(
        "blocked_matmul",
        lambda a, b: blocked(
            map_(lambda row: split(blocks.bk, row), a),
            map_(lambda row: split(blocks.bk, row), b),
            (rows, columns, products // blocks.bk),
            blocks,
        ),
        a=array(f32, rows, products),
        b=array(f32, columns, products),
    )


def convolution(layer: Convolution, blocks: Blocks) -> Program:
    """An image [H][W][C] and kernels [K][kh][kw][C] → [rows][columns][K]."""
    edges = [
        (layer.padding, (count - 1) * layer.stride + kernel - layer.padding - size)
        for count, kernel, size in (
            (layer.rows, layer.kernel_height, layer.height),
            (layer.columns, layer.kernel_width, layer.width),
        )
    ]
    counts = (
        layer.rows * layer.columns,
        layer.kernels,
        layer.kernel_height * layer.kernel_width * layer.channels // blocks.bk,
    )

    def iterations(window: Term) -> Term:
        """[kh][kw][C] → [T][bk], in one piece of the channels if that divides them."""
        if layer.channels % blocks.bk:
            return split(blocks.bk, join(join(window)))
        return join(join(map_(lambda row: map_(lambda c: split(blocks.bk, c), row), window)))

    def body(image: Term, kernels: Term) -> Term:
        padded = _edged(image, edges, (layer.height, layer.width))
        step = layer.stride
        windows = slide_2d((layer.kernel_height, step), (layer.kernel_width, step), padded)
        made = blocked(map_(iterations, join(windows)), map_(iterations, kernels), counts, blocks)
        return split(layer.columns, made)

    return program(
        "blocked_convolution",
        body,
        image=array(f32, layer.height, layer.width, layer.channels),
        kernels=array(f32, layer.kernels, layer.kernel_height, layer.kernel_width, layer.channels),
    )


def _edged(image: Term, edges: list[tuple[int, int]], sides: tuple[int, int]) -> Term:
    """Padded on all sides; where windows end before the image does, less of it is looked at."""
    kept = [size + min(0, after) for (_, after), size in zip(edges, sides, strict=True)]
    used = map_(lambda row: slice_(0, kept[1], row), slice_(0, kept[0], image))
    behind = [(before, max(0, after)) for before, after in edges]
    return pad_2d(behind[0], behind[1], used)


# -- kernels ---------------------------------------------------------------------------------------

ADDING = (64, 4, 1)  # threads of a group that adds up parts
