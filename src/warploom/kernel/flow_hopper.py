"""What depends on where statements of `warpgroup.py` stand: boxes and factors inside their arrays
and aligned, the same for all threads of a warp group, and, where one block brings what others use,
the same for all blocks of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warploom.errors import CheckError
from warploom.index.ir import Binary, Const, Expr, Var, fold_up, rebuild, substitute, variables
from warploom.index.show import show
from warploom.kernel import ir
from warploom.kernel.descriptor import UNIT, pattern_bytes, tile_span
from warploom.kernel.scope import Level, Site
from warploom.kernel.warpgroup import GROUP, HOPPER, Fill, MapParam, Ring

if TYPE_CHECKING:
    from warploom.kernel.flow import Flow

ROWS = 64
WARPS = GROUP // 32
_TOGETHER = (
    Ring,
    Fill,
    ir.PingPong,
    ir.OrderedBarrier,
    ir.BulkStore,
    ir.WarpgroupProduct,
    ir.ClusterSum,
    ir.SharedSum,
)
_LANES = ("thread", "thread_x", "lane")


@dataclass(frozen=True, slots=True)
class Touched:
    """Neighbouring elements of an array, and what else holds where they are touched."""

    array: str
    index: Expr
    width: int
    guard: Expr | None = None


def touched(kernel: ir.Kernel, stmt: ir.Stmt) -> Iterator[Touched]:
    """The elements of arrays that a statement of Hopper touches."""
    match stmt:
        case Fill() | ir.BulkStore():
            boxes = kernel.cluster if isinstance(stmt, Fill) and stmt.split is not None else 1
            yield Touched(stmt.array, stmt.index, boxes * _map(kernel, stmt.map).elements)
        case ir.WarpgroupProduct():
            sizes = _sizes(kernel)
            for tile in stmt.tiles:
                rows = ROWS if tile is stmt.a else stmt.columns
                span = tile_span(tile, rows, sizes[tile.array])
                yield Touched(tile.array, tile.index, span)
        case ir.SharedSum(array, count):
            yield Touched(array, Const(0), count)
        case ir.LoadMatrix() | ir.StoreMatrix():
            given = Var("lane").lt(8 * stmt.count)
            yield Touched(stmt.array, stmt.index, _row(stmt), given)
        case _:
            return


def _row(stmt: ir.LoadMatrix | ir.StoreMatrix) -> int:
    """Elements of a row of a matrix."""
    return stmt.row if isinstance(stmt, ir.LoadMatrix) else 8


def _map(kernel: ir.Kernel, name: str) -> MapParam:
    return next(each for each in kernel.maps if each.name == name)


def _sizes(kernel: ir.Kernel) -> dict[str, int]:
    shared = [each for each in kernel.body if isinstance(each, ir.Shared)]
    found = {each.name: each.dtype.bytes for each in shared}
    return found | {each.name: each.dtype.bytes for each in kernel.arrays}


def check_hopper_site(flow: Flow, site: Site) -> None:
    stmt, level = site.stmt, site.place.level
    if not isinstance(stmt, HOPPER):
        return
    if isinstance(stmt, ir.Unpack | ir.Interleave):  # each thread for itself
        return
    if (isinstance(stmt, _TOGETHER) and level > Level.BLOCK) or level > Level.WARP:
        raise CheckError(
            f"a {_name(stmt)} stands under a condition that differs between threads of a block",
            advice="move it out of the condition",
        )
    match stmt:
        case Ring():
            _check_ring(flow, site, stmt)
        case Fill() | ir.BulkStore():
            _check_box(flow, site, stmt)
        case ir.WarpgroupProduct():
            _check_product(flow, site, stmt)
        case ir.ClusterSum():
            _check_met(flow, site)
        case ir.LoadMatrix() | ir.StoreMatrix():
            guards = (*site.place.guards, site.place.expr(Var("lane").lt(8 * stmt.count)))
            _aligned(
                flow, site, stmt.index, _row(stmt), f"a row of a matrix in '{stmt.array}'", guards
            )


def _name(stmt: ir.Stmt) -> str:
    match stmt:
        case Ring(var):
            return f"ring over '{var}'"
        case Fill(array=array):
            return f"fill of '{array}'"
        case ir.WarpgroupProduct():
            return "product of a warp group"
        case ir.OrderedBarrier():
            return "order of warp groups"
        case ir.SharedSum():
            return "sum of a cluster"
        case ir.PingPong():
            return "ping-pong of warp groups"
        case ir.ClusterSum():
            return "sum over a cluster"
        case _:
            return "move of matrices"


def _check_ring(flow: Flow, site: Site, stmt: Ring) -> None:
    if stmt.sums and not flow.runs(site):
        raise CheckError(
            f"the ring over '{stmt.var}' may have no iteration, but begins sums",
            advice="require what makes its count at least 1",
        )
    if any(each.split is not None for each in stmt.fills):
        top = set(flow.scopes.body[0].place.guards)
        place = site.bodies[0][0].place if site.bodies[0] else site.place
        around = [each for counter in place.counters for each in (counter.start, counter.stop)]
        around += [each for each in place.guards if each not in top and not _of_loop(each, place)]
        for expr in around:
            _alike(flow, expr, f"the count of the ring over '{stmt.var}'")


def _check_met(flow: Flow, site: Site) -> None:
    """All blocks of a cluster come here."""
    top = set(flow.scopes.body[0].place.guards)
    for guard in site.place.guards:
        if guard not in top:
            _alike(flow, guard, "whether blocks come to a sum over their cluster")


def _of_loop(guard: Expr, place: object) -> bool:
    """Whether a guard says only that a counter is below its end, of which the end is looked at."""
    counters = getattr(place, "counters", ())
    return any(guard is each.condition for each in counters)


def _check_box(flow: Flow, site: Site, stmt: Fill | ir.BulkStore) -> None:
    map = _map(flow.kernel, stmt.map)
    size = _sizes(flow.kernel)[stmt.array]
    what = f"a box of '{stmt.map}' in '{stmt.array}'"
    _aligned(flow, site, stmt.index, pattern_bytes(map.swizzle) // size, what)
    _aligned(flow, site, stmt.at[-1], max(1, UNIT // size), f"the last coordinate of {what}")
    for expr in (*stmt.at, stmt.index):
        if isinstance(stmt, ir.BulkStore) and stmt.scope == "group":
            _of_group(flow, site, expr, what)
        elif variables(site.place.expr(expr)) & {*_LANES, "warp"}:
            raise CheckError(
                f"{what} begins at {show(expr)}, which differs between threads",
                advice="one thread asks for it: let blocks and counters alone say where",
            )
        if isinstance(stmt, Fill) and stmt.split is not None:
            _alike(flow, site.place.expr(expr), f"where {what} begins")


def _check_product(flow: Flow, site: Site, stmt: ir.WarpgroupProduct) -> None:
    for tile in stmt.tiles:
        size = _sizes(flow.kernel)[tile.array]
        what = f"a factor in '{tile.array}'"
        _aligned(flow, site, tile.index, UNIT // size, what)
        _of_group(flow, site, tile.index, what)


def _of_group(flow: Flow, site: Site, index: Expr, what: str) -> None:
    """All warps of a warp group agree on it."""
    known, warp = site.place.expr(index), Var("warp")
    first = substitute(known, {"warp": warp // WARPS * WARPS})
    alike = known is first or flow.reasoning.shows(known.eq(first), site.place.guards)
    if variables(known) & set(_LANES) or not alike:
        raise CheckError(
            f"{what} begins at {show(index)}, which differs between threads of a warp group",
            advice=f"use warp // {WARPS}, blocks and counters",
        )


def _aligned(
    flow: Flow, site: Site, index: Expr, by: int, what: str, guards: tuple[Expr, ...] | None = None
) -> None:
    goal = (site.place.expr(index) % by).eq(0)
    if by > 1 and not flow.reasoning.shows(goal, site.place.guards if guards is None else guards):
        raise CheckError(
            f"{what} cannot be shown to be aligned: {show(index)}",
            advice=f"make it a multiple of {by} elements",
        )


def _alike(flow: Flow, expr: Expr, what: str) -> None:
    """All blocks of a cluster agree on it: they are named by the number of their cluster only."""
    cluster, block = flow.kernel.cluster, Var("block_x")

    def without(node: Expr, parts: tuple[Expr, ...]) -> Expr:
        match node:
            case Binary("//", left, right) if left is block and right is Const(cluster):
                return Var("block_y")
        return rebuild(node, parts)

    if "block_x" in variables(fold_up(expr, without)):
        raise CheckError(
            f"{what} may differ between blocks of a cluster: {show(expr).replace('#', '_')}",
            advice=f"use block_x // {cluster}",
        )
