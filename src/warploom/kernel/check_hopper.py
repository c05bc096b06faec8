"""When statements of `warpgroup.py` are well formed: maps, types, shapes, bytes and alignment.

What depends on where a statement stands is looked at in `flow_hopper.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from warploom.errors import CheckError
from warploom.index.ir import Const, variables
from warploom.kernel import ir
from warploom.kernel.descriptor import UNIT, pattern_bytes
from warploom.kernel.dtype import DType
from warploom.kernel.tensor import types_of
from warploom.kernel.warpgroup import GROUP, HOPPER, QUAD, Fill, MapParam, Ring, Swizzle, Tile
from warploom.machine.record import CUDA

MOST_RANK, MOST_SIDE, MOST_CLUSTER = 5, 256, 8
MOST_COLUMNS, COLUMNS = 256, 8
REGISTER_FILE = 1 << 16  # registers of a block's processor
WITHOUT = "it keeps rings, boxes and products of warp groups as they are written"


def of_hopper(kernel: ir.Kernel) -> bool:
    """Whether a kernel has statements that only Hopper has."""
    return any(isinstance(each, HOPPER) or _is_of_group(each) for each in ir.walk(kernel.body))


def needs_hopper(kernel: ir.Kernel) -> bool:
    """Whether other machines cannot run it: matrices of a warp are loaded by those before, too."""
    some = tuple(each for each in HOPPER if each is not ir.LoadMatrix)
    return any(isinstance(each, some) or _is_of_group(each) for each in ir.walk(kernel.body))


def _is_of_group(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Barrier) and stmt.scope == "group"


def refuse_hopper(kernel: ir.Kernel, what: str) -> None:
    if of_hopper(kernel):
        raise CheckError(f"'{kernel.name}' has statements of Hopper, {what}", advice=WITHOUT)


# -- the kernel ------------------------------------------------------------------------------------


def check_head(kernel: ir.Kernel) -> None:
    """Its maps, its cluster, its threads."""
    arrays = {each.name: each for each in kernel.arrays if each.space == "global"}
    for map in kernel.maps:
        _check_map(map, arrays)
    if not 1 <= kernel.cluster <= MOST_CLUSTER:
        raise CheckError(f"a cluster of {kernel.cluster} blocks", advice=f"1 to {MOST_CLUSTER}")
    rings = [each for each in ir.walk(kernel.body) if isinstance(each, Ring)]
    if needs_hopper(kernel):
        _check_threads(kernel)
    if bool(rings) != (kernel.roles is not None):
        raise CheckError(
            f"'{kernel.name}' has {'' if rings else 'no '}rings, but "
            f"{'no ' if rings else ''}roles of warp groups",
            advice="give roles=Roles() to a kernel with rings, and to no other",
        )
    _check_stages(rings)
    if kernel.roles is not None:
        _check_roles(kernel, kernel.roles)
    _check_filled(kernel)
    _check_products(kernel.body, frozenset())
    _check_turns(kernel.body)
    _check_sent(kernel)
    _check_sums(kernel)
    for turn in (each for each in ir.walk(kernel.body) if isinstance(each, ir.PingPong)):
        _check_turn(turn)


def _check_stages(rings: list[Ring]) -> None:
    """Rings that have a stage in common fill the same arrays, in as many stages, in turn."""
    first: dict[str, Ring] = {}
    for ring in rings:
        other = first.setdefault(ring.stage, ring)
        alike = other.stages == ring.stages and _filled(other) == _filled(ring)
        inside = any(each is ring for each in ir.walk(other.body))
        if not alike or inside:
            raise CheckError(
                f"two rings have the stage '{ring.stage}', but not all that it is of in common",
                advice="name each stage apart, or let them fill the same arrays by the same maps",
            )
    names = [each.var for each in rings] + list(first)
    if len(set(names)) < len(names):
        raise CheckError("two rings have a name in common", advice="name each stage apart")


def _filled(ring: Ring) -> list[tuple[str, str, int | None]]:
    return [(each.map, each.array, each.split) for each in ring.fills]


def _check_sent(kernel: ir.Kernel) -> None:
    """Boxes of one array are sent by blocks, or by warp groups."""
    scopes: dict[str, str] = {}
    for stmt in ir.walk(kernel.body):
        if (
            isinstance(stmt, ir.BulkStore)
            and scopes.setdefault(stmt.array, stmt.scope) != stmt.scope
        ):
            raise CheckError(f"boxes of '{stmt.array}' are sent by a block, and by warp groups")


def _check_turns(body: tuple[ir.Stmt, ...]) -> None:
    """Turns begin and end in the same list of statements, where all warp groups come."""
    under_way = False
    for stmt in body:
        if isinstance(stmt, ir.OrderedBarrier):
            if stmt.ends is not under_way:
                raise CheckError(
                    "an order of warp groups begins inside of another, or ends without one",
                    advice="let it begin and end in the same list of statements",
                )
            under_way = not under_way
            continue
        inside = list(ir.walk((stmt,)))
        if under_way or isinstance(stmt, ir.PingPong):
            if any(isinstance(each, ir.OrderedBarrier) for each in inside):
                raise CheckError("an order of warp groups inside of another")
            if under_way and any(map(_meets_others, inside)):
                raise CheckError(
                    "all warp groups meet in what they do one after another",
                    advice="let them meet before or after it",
                )
        else:
            for each in ir.bodies(stmt):
                _check_turns(each)
    if under_way:
        raise CheckError("an order of warp groups has no end", advice="end it: ends=True")


def _meets_others(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Barrier | ir.BulkStore) and stmt.scope == "block"


def _check_turn(turn: ir.PingPong) -> None:
    """In it there is one warp group; others know how often its rings turn."""
    inside = list(ir.walk(turn.body))
    for stmt in inside:
        block = isinstance(stmt, ir.Barrier | ir.BulkStore) and stmt.scope == "block"
        if block or isinstance(stmt, ir.PingPong):
            raise CheckError(
                f"a {type(stmt).__name__} of the block stands in a body of one warp group",
                advice='use the scope "group"',
            )
    declared = {each.name for each in inside if isinstance(each, ir.Let)}
    declared |= {each.var for each in inside if isinstance(each, ir.For)}
    direct = [each for each in turn.body if isinstance(each, Ring)]
    for ring in (each for each in inside if isinstance(each, Ring)):
        if ring not in direct or variables(ring.count) & declared:
            raise CheckError(
                f"the ring over '{ring.var}' has a count that other warp groups do not know",
                advice="let it stand in the ping-pong itself, and count by what is declared before",
            )


def _check_products(body: tuple[ir.Stmt, ...], filled: frozenset[str]) -> None:
    """Products take their factors from stages of rings around them."""
    for stmt in body:
        if isinstance(stmt, ir.WarpgroupProduct):
            for tile in stmt.tiles:
                if tile.array not in filled:
                    raise CheckError(
                        f"a product of a warp group takes '{tile.array}', which no ring around it "
                        "fills",
                        advice="put it in the body of a ring that does",
                    )
        inner = filled
        if isinstance(stmt, Ring):
            inner = filled | {each.array for each in stmt.fills}
        for each in ir.bodies(stmt):
            _check_products(each, inner)


def _check_map(map: MapParam, arrays: Mapping[str, ir.ArrayParam]) -> None:
    what = f"the map '{map.name}'"
    array = arrays.get(map.array)
    if array is None:
        raise CheckError(f"{what} is of '{map.array}', which is no global array")
    rank, inner = len(map.sizes), map.box[-1] * array.dtype.bytes if map.box else 0
    wrong = [
        (not 1 <= rank <= MOST_RANK or len(map.box) != rank or len(map.strides) != rank - 1,
         f"has {rank} axes, a box of {len(map.box)} and {len(map.strides)} strides"),
        (not all(1 <= side <= MOST_SIDE for side in map.box),
         f"has a box of {map.box}; its sides are 1 to {MOST_SIDE}"),
        (map.swizzle not in get_args(Swizzle), f"has a swizzle of {map.swizzle} bytes"),
        (inner % UNIT != 0, f"has a box with rows of {inner} bytes, no multiple of {UNIT}"),
        (bool(map.swizzle) and inner != map.swizzle,
         f"has rows of {inner} bytes for a swizzle of {map.swizzle}"),
    ]  # fmt: skip
    for bad, why in wrong:
        if bad:
            raise CheckError(f"{what} {why}")


def _check_threads(kernel: ir.Kernel) -> None:
    x, y, z = kernel.block
    if y * z != 1 or x % GROUP or kernel.warp_size != CUDA.lanes:
        raise CheckError(
            f"a block of {kernel.block} threads for whole warp groups",
            advice=f"a multiple of {GROUP} along its first side",
        )
    if x + GROUP > CUDA.block_threads and kernel.roles is not None:
        raise CheckError(f"{x} threads, and {GROUP} more that fill rings, are too many")


def _check_roles(kernel: ir.Kernel, roles: ir.Roles) -> None:
    asked = roles.producer_registers, roles.consumer_registers
    total = GROUP * asked[0] + kernel.threads * asked[1]
    if any(each % 8 or not 24 <= each <= 240 for each in asked) or total > REGISTER_FILE:
        raise CheckError(
            f"threads that fill rings have {asked[0]} registers, others {asked[1]}",
            advice=f"multiples of 8 from 24 to 240, {REGISTER_FILE} in all threads of a block",
        )


def _check_filled(kernel: ir.Kernel) -> None:
    """Only fills write where rings are filled."""
    stmts = list(ir.walk(kernel.body))
    filled = {each.array for each in stmts if isinstance(each, Fill)}
    for stmt in stmts:
        if isinstance(stmt, ir.Store | ir.StoreMatrix | ir.BulkStore) and stmt.array in filled:
            raise CheckError(
                f"'{stmt.array}' is filled by a ring and used by a {type(stmt).__name__}",
                advice="store to another shared array",
            )


# -- statements ------------------------------------------------------------------------------------


def check_hopper(stmt: ir.Stmt, scope: Mapping[str, Any], kernel: ir.Kernel) -> None:
    match stmt:
        case Ring():
            _check_ring(stmt, scope)
        case Fill() | ir.BulkStore():
            _check_box(stmt, scope, kernel)
        case ir.WarpgroupProduct():
            _check_product(stmt, scope)
        case ir.Unpack():
            _check_unpack(stmt, scope)
        case ir.Interleave():
            _check_interleave(stmt, scope)
        case ir.SharedSum():
            _check_shared_sum(stmt, scope, kernel)
        case ir.LoadMatrix(cell) | ir.StoreMatrix(value=cell):
            _check_matrices(stmt, cell, scope)
        case ir.ClusterSum():
            _check_sum(stmt, scope, kernel)
        case _:
            pass


def _check_ring(stmt: Ring, scope: Mapping[str, Any]) -> None:
    if stmt.stages < 1 or not stmt.fills:
        raise CheckError(
            f"the ring over '{stmt.var}' has {stmt.stages} stages and {len(stmt.fills)} fills",
            advice="at least one of each",
        )
    if any(isinstance(each, Fill) for each in stmt.body[len(stmt.fills) :]):
        raise CheckError(
            f"a fill in the ring over '{stmt.var}' stands after another statement",
            advice="fills come first",
        )
    for name in stmt.sums:
        declared = scope.get(name)
        if not isinstance(declared, ir.Registers) or declared.size is None:
            raise CheckError(f"the ring over '{stmt.var}' sums in '{name}', no register array")


def _check_box(stmt: Fill | ir.BulkStore, scope: Mapping[str, Any], kernel: ir.Kernel) -> None:
    map = next((each for each in kernel.maps if each.name == stmt.map), None)
    if map is None:
        raise CheckError(f"'{stmt.map}' is no map of '{kernel.name}'")
    array, shared = scope[map.array], _shared(stmt.array, scope)
    if array.dtype is not shared.dtype:
        raise CheckError(f"a box of {array.dtype!r} for '{stmt.array}' of {shared.dtype!r}")
    if len(stmt.at) != len(map.box):
        raise CheckError(f"{len(stmt.at)} coordinates for the {len(map.box)} axes of '{stmt.map}'")
    _check_aligned(shared, map.swizzle)
    if isinstance(stmt, ir.BulkStore):
        if array.const:
            raise CheckError(f"'{array.name}' is const but is stored to through '{stmt.map}'")
    elif stmt.split is not None and not (0 <= stmt.split < len(map.box) and kernel.cluster > 1):
        raise CheckError(
            f"a fill of '{stmt.array}' is split along axis {stmt.split} among "
            f"{kernel.cluster} blocks",
            advice="an axis of the map, in a kernel with clusters",
        )


def _check_aligned(shared: ir.Shared, swizzle: int) -> None:
    least = pattern_bytes(swizzle)
    if shared.align % least or shared.bytes % least or shared.offset is not None:
        raise CheckError(
            f"the shared array '{shared.name}' of {shared.bytes} bytes begins at a multiple of "
            f"{shared.align}",
            advice=f"both are multiples of {least}, and it has no offset",
        )


def _check_product(stmt: ir.WarpgroupProduct, scope: Mapping[str, Any]) -> None:
    if stmt.kind not in get_args(ir.TensorKind):
        raise CheckError(f"no tensor core takes factors for {stmt.kind!r:.40}")
    if stmt.columns % COLUMNS or not COLUMNS <= stmt.columns <= MOST_COLUMNS:
        raise CheckError(
            f"a product of {stmt.columns} columns", advice=f"8 to {MOST_COLUMNS}, by {COLUMNS}"
        )
    sums, factors = types_of(stmt.kind)
    own = factors[0]  # none is rounded on its way
    _check_array(stmt.target, sums, "a product of a warp group", scope)
    if isinstance(stmt.a, ir.Cell):
        _check_array(stmt.a, own, "a product of a warp group", scope)
    for tile in stmt.tiles:
        _check_tile(tile, own, stmt.kind, scope)


def _check_tile(tile: Tile, dtype: DType, kind: str, scope: Mapping[str, Any]) -> None:
    shared = _shared(tile.array, scope)
    if shared.dtype is not dtype:
        raise CheckError(f"'{tile.array}' of {shared.dtype!r} in a product of {kind}")
    if tile.swizzle not in get_args(Swizzle) or tile.major not in ("k", "mn"):
        raise CheckError(f"a factor with a swizzle of {tile.swizzle} and '{tile.major}' dense")
    if tile.major == "mn" and dtype.bytes != 2:
        raise CheckError(
            f"rows of '{tile.array}' are dense, of {dtype!r}",
            advice="only factors of 16 bits may be stored so; let k be dense",
        )
    if any(each % UNIT or not 0 < each < 1 << 18 for each in (tile.stride, tile.leading)):
        raise CheckError(f"a factor with strides of {tile.stride} and {tile.leading} bytes")
    _check_aligned(shared, tile.swizzle)


def _check_matrices(
    stmt: ir.LoadMatrix | ir.StoreMatrix, cell: ir.Cell, scope: Mapping[str, Any]
) -> None:
    shared = _shared(stmt.array, scope)
    if stmt.count not in (1, 2, 4):
        raise CheckError(f"{stmt.count} matrices at once", advice="1, 2 or 4")
    plain = isinstance(stmt, ir.LoadMatrix) and not stmt.transposed
    if shared.dtype.bytes != 2 and not (plain and shared.dtype.bytes in (1, 4)):
        raise CheckError(
            f"matrices of {shared.dtype!r} in '{stmt.array}'",
            advice="their elements have 16 bits; 8 or 32 where they are loaded as they lie",
        )
    _check_array(cell, shared.dtype, f"matrices of '{stmt.array}'", scope)


def _check_sum(stmt: ir.ClusterSum, scope: Mapping[str, Any], kernel: ir.Kernel) -> None:
    shared, what = _shared(stmt.array, scope), f"a sum over a cluster in '{stmt.array}'"
    if shared.dtype.bytes != 4:
        raise CheckError(f"{what} of {shared.dtype!r}", advice="its elements have 32 bits")
    for cell in (stmt.target, stmt.value):
        _check_array(cell, shared.dtype, what, scope)
        if not isinstance(cell.index, Const):
            raise CheckError(f"{what} of '{cell.name}' begins at what is no constant")
    if stmt.count <= 0 or stmt.count % QUAD:
        raise CheckError(f"{what} of {stmt.count} registers", advice=f"a multiple of {QUAD}")
    if stmt.target.name == stmt.value.name:
        raise CheckError(f"{what} overwrites what it adds", advice="use another register array")
    if stmt.blocks != kernel.cluster or stmt.blocks < 2:
        raise CheckError(
            f"{what} of {stmt.blocks} blocks, where a cluster has {kernel.cluster}",
            advice="all blocks of a cluster, at least two",
        )
    least = stmt.elements(kernel.threads)
    if shared.size < least or shared.offset is not None:
        raise CheckError(f"{what} needs {least} elements, which has {shared.size}",
                         advice="it has no offset")  # fmt: skip


def _check_sums(kernel: ir.Kernel) -> None:
    """A sum over a cluster comes once, and nothing else uses where its parts arrive."""
    stmts = list(ir.walk(kernel.body))
    found = [each for each in stmts if isinstance(each, ir.ClusterSum)]
    if not found:
        return
    for stmt in stmts:
        inner = [each for body in ir.bodies(stmt) for each in ir.walk(body)]
        once = isinstance(stmt, ir.For | Ring | ir.PingPong)
        if len(found) > 1 or (once and any(each is found[0] for each in inner)):
            raise CheckError(
                f"'{kernel.name}' adds over a cluster more than once",
                advice="one sum, outside of loops: its blocks would have to agree on more",
            )
        if stmt is not found[0] and not isinstance(stmt, ir.Shared):
            used = {getattr(stmt, "array", "")}
            if isinstance(stmt, ir.WarpgroupProduct):
                used = {each.array for each in stmt.tiles}
            if found[0].array in used:
                raise CheckError(
                    f"'{found[0].array}' is where parts of a sum arrive, and used by a "
                    f"{type(stmt).__name__}",
                    advice="use another shared array",
                )


def _check_unpack(stmt: ir.Unpack, scope: Mapping[str, Any]) -> None:
    if stmt.bits not in (4, 8):
        raise CheckError(f"integers of {stmt.bits!r:.40} bits in a word", advice="4 or 8")
    low, high = (-(1 << stmt.bits - 1), 1 << stmt.bits - 1) if stmt.signed else (0, 1 << stmt.bits)
    if not low <= stmt.zero < high:
        raise CheckError(
            f"integers of {stmt.bits} bits less {stmt.zero}", advice=f"from {low} to {high - 1}"
        )
    source, target = stmt.source.dtype, stmt.target.dtype
    if source.is_real or source.bytes not in (1, 4):
        raise CheckError(f"'{stmt.source.name}' of {source!r} holds no integers to unpack")
    if target not in (DType.BF16, DType.F16):
        raise CheckError(f"'{stmt.target.name}' of {target!r} takes no integers of few bits",
                         advice="bf16 or f16")  # fmt: skip
    for cell in (stmt.source, stmt.target):
        _check_array(cell, cell.dtype, "integers that are unpacked", scope)


def _check_interleave(stmt: ir.Interleave, scope: Mapping[str, Any]) -> None:
    dtype = stmt.source.dtype
    if dtype.bytes != 2 or stmt.count < 4 or stmt.count % 4:
        raise CheckError(f"{stmt.count} registers of {dtype!r} in turn",
                         advice="a multiple of 4, of 16 bits each")  # fmt: skip
    for cell in (stmt.source, stmt.target):
        _check_array(cell, dtype, "registers in turn", scope)


def _check_shared_sum(stmt: ir.SharedSum, scope: Mapping[str, Any], kernel: ir.Kernel) -> None:
    shared = _shared(stmt.array, scope)
    if shared.dtype is not DType.F32 or not 0 < stmt.count <= shared.size:
        raise CheckError(
            f"sums of {stmt.count} elements of '{stmt.array}', {shared.size} of {shared.dtype!r}"
        )
    if stmt.count % kernel.cluster:
        raise CheckError(f"{stmt.count} sums are not divided among {kernel.cluster} blocks")
    if not any(each is stmt for each in kernel.body):
        raise CheckError(
            f"a cluster sums '{stmt.array}' in a loop or under a condition",
            advice="let all of its blocks come to it: outside of both",
        )
    after = kernel.body[next(at for at, each in enumerate(kernel.body) if each is stmt) + 1 :]
    if any(
        isinstance(each, ir.Store | ir.SharedSum) and each.array == stmt.array
        for each in ir.walk(after)
    ):
        raise CheckError(
            f"'{stmt.array}' is stored to where other blocks may still read it to add it up",
            advice="store to another shared array",
        )


def _check_array(cell: ir.Cell, dtype: DType, what: str, scope: Mapping[str, Any]) -> None:
    declared = scope.get(cell.name)
    if not isinstance(declared, ir.Registers) or declared.size is None or cell.index is None:
        raise CheckError(f"'{cell.name}' in {what} is no element of a register array")
    if not declared.dtype is cell.dtype is dtype:
        raise CheckError(f"'{cell.name}' of {declared.dtype!r} in {what}, which is of {dtype!r}")


def _shared(name: str, scope: Mapping[str, Any]) -> ir.Shared:
    found = scope.get(name)
    if not isinstance(found, ir.Shared):
        raise CheckError(f"'{name}' is no shared array that is known here")
    return found
