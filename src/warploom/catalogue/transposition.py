"""A batch of m×n matrices, each transposed within the registers of a warp (or of a part of one).

    y[b][j][i] = x[b][i][j],   0 <= b < count,  0 <= i < m,  0 <= j < n

The shorter side that fits lies across lanes, the other across registers; small matrices lie side by
side in a warp. Loads and stores follow memory; the exchange between them is a synthesised fill, of
the linear sets (level 0) or of the published grammars (levels 1 to 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Parameter, Values, listed
from warploom.catalogue.fill import sketch, transposing
from warploom.catalogue.layout import MOST_WORDS, WARP, check_block, element_type, is_streaming
from warploom.catalogue.shape import transposed_matrices
from warploom.catalogue.sketches import check_level, check_sizes
from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.index.laws import simplify
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.sketch.code.exchange import Tiles, count, exchange
from warploom.sketch.code.move import at_place
from warploom.sketch.term.ir import Program

MOST_SIDE = 64
WORDS_IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class _Plan:
    """`lanes` by `registers`, whose product is the matrix; `back` if lanes are its columns."""

    lanes: int
    registers: int
    back: bool
    dtype: DType
    warps: int
    tiles: int

    @property
    def words(self) -> int:
        return self.lanes * self.registers

    @property
    def beside(self) -> int:
        """Matrices next to one another in a warp."""
        return WARP // self.lanes

    @property
    def matrices_per_block(self) -> int:
        return self.warps * self.tiles * self.beside


def _plan(m: int, n: int, dtype: str, block: int, tiles: int) -> _Plan:
    if not (1 <= m <= MOST_SIDE and 1 <= n <= MOST_SIDE) or min(m, n) > WARP:
        raise CheckError(
            f"matrices of {m} × {n}",
            advice=f"sides up to {MOST_SIDE}, one of them at most {WARP}",
        )
    check_block(block)
    back = m > WARP
    lanes, registers = (n, m) if back else (m, n)
    tiles = tiles or max(1, WORDS_IN_FLIGHT // registers)
    if tiles < 1 or tiles * registers > MOST_WORDS:
        raise CheckError(
            f"{tiles} matrices of {registers} words per lane",
            advice=f"at most {MOST_WORDS} words per lane in all",
        )
    return _Plan(lanes, registers, back, element_type(dtype), block // WARP, tiles)


def transposition(
    m: int, n: int, order: str, dtype: str, block: int, tiles: int, streaming: int, level: int = 0
) -> Kernel:
    plan = _plan(m, n, dtype, block, tiles)
    check_level("transposition", level)
    if level and plan.back:
        raise CheckError(
            f"{m} rows at level {level}", advice=f"up to {WARP} lie across lanes; or use level=0"
        )
    fill = transposing(plan.lanes, plan.registers, order, back=plan.back, level=level)
    k = Builder(f"transpose_{m}x{n}", block=block, doc=f"{_what(m, n, dtype)}\n{fill.doc}")
    matrices = k.scalar("count")
    x = k.array("x", plan.dtype, matrices * plan.words, const=True)
    y = k.array("y", plan.dtype, matrices * plan.words)
    k.grid(ceil_div(matrices, plan.matrices_per_block))
    first = k.let("first", (k.block_x * plan.warps + k.warp) * (plan.tiles * plan.beside))
    side = k.let("side", simplify(k.lane // plan.lanes)) if plan.lanes < WARP else None
    own = k.lane if side is None else k.let("own", simplify(k.lane % plan.lanes))
    held = Tiles(k, "a", plan.dtype, plan.registers, 1, plan.tiles).declare()
    load_lane, store_lane, steps = fill.ways

    def place(tile: Expr, j: Expr, source: Expr) -> tuple[Expr, Expr]:
        number = first + tile * plan.beside
        matrix = k.let("matrix", simplify(number if side is None else number + side))
        inside: Expr = matrix.lt(matrices)
        if WARP % plan.lanes:  # some lanes are left over
            inside = inside.and_(k.lane.lt(plan.beside * plan.lanes))
        other = simplify(at_place(source, own, j))
        return simplify(matrix * plan.words + j * plan.lanes + other), inside

    with count(k, "tile", plan.tiles) as tile, count(k, "j", plan.registers) as j:
        at, inside = place(tile, j, load_lane)
        k.set(held.at(tile, j), x.at(at, when=inside, streaming=is_streaming(streaming)))
    lead = 0 if side is None else side * plan.lanes
    held = exchange(k, held, fill.moves(steps), lane=own, first_lane=lead)
    with count(k, "tile", plan.tiles) as tile, count(k, "j", plan.registers) as j:
        at, inside = place(tile, j, store_lane)
        y.put(at, held.at(tile, j), when=inside, streaming=is_streaming(streaming))
    return k.done()


def _what(m: int, n: int, dtype: str) -> str:
    return f"Transposes each of count {m} × {n} matrices of {dtype}: y[b][j][i] = x[b][i][j]."


# -- what it must compute ------------------------------------------------------------------------


def _some_matrices(size: dict[str, int], random: np.random.Generator, **given: Any) -> Values:
    words = size["count"] * int(given["m"]) * int(given["n"])
    return {"count": size["count"], "x": random.permutation(words).astype(str(given["dtype"]))}


def _transposed(values: Values, **given: Any) -> Arrays:
    x = values["x"]
    assert isinstance(x, np.ndarray)
    return {"y": x.reshape(-1, int(given["m"]), int(given["n"])).transpose(0, 2, 1).copy()}


def _sizes(**given: Any) -> list[dict[str, int]]:
    plan = _plan_of(given)
    block = plan.matrices_per_block
    edges = [*range(1, 21), plan.beside * plan.tiles, plan.beside * plan.tiles + 1]
    edges += [block - 1, block, block + 1, block + 7, 2 * block + 3]
    return [{"count": count} for count in sorted({edge for edge in edges if edge > 0})]


def _plan_of(given: dict[str, Any]) -> _Plan:
    return _plan(*(given[name] for name in ("m", "n", "dtype", "block", "tiles")))


def _sketch(**given: Any) -> Program:
    """At levels 1 to 3 the rows lie across lanes, however many there are."""
    check_level("transposition", given["level"])
    if given["level"]:
        check_sizes("transposition", {name: given[name] for name in ("m", "n")})
        return sketch(given["m"], given["n"], given["order"], level=given["level"])
    plan = _plan_of(given)
    return sketch(plan.lanes, plan.registers, str(given["order"]), plan.back)


_VARIANTS: tuple[dict[str, Parameter], ...] = (
    {},
    {"m": 32, "n": 32},
    {"m": 5, "n": 7},
    {"m": 12, "n": 8, "order": "rcr"},
    {"m": 32, "n": 12, "order": "rcr"},
    {"m": 16, "n": 3, "dtype": "int64"},
    {"m": 40, "n": 9},
    {"m": 1, "n": 4},
    {"m": 31, "n": 1},
    {"m": 16, "n": 5, "level": 2},
    {"m": 8, "n": 3, "order": "rcr", "level": 3},
)

ENTRIES = (
    Entry(
        name="transposition",
        doc="a batch of small matrices, each transposed in registers",
        parameters={
            "m": 32, "n": 8, "order": "crc", "dtype": "float32", "block": 256, "tiles": 0,
            "streaming": 1, "level": 0,
        },
        aliases={"rows": "m", "columns": "n"},
        build=transposition,
        inputs=_some_matrices,
        specification=_transposed,
        sizes=_sizes,
        sketch=_sketch,
        fit=transposed_matrices,
        inner={"x": 2, "y": 2},
        tune=listed(
            {"order": order, "block": block, "tiles": tiles}
            for order in ("crc", "rcr")
            for block in (128, 256)
            for tiles in (1, 2, 4)
        ),
        variants=_VARIANTS,
    ),
)  # fmt: skip
