"""What the layouts of a module of Triton's IR cost: each conversion between register layouts by the
cheapest way, each access to shared memory by its wavefronts, and better layouts where there are.

A tile's layout is judged by all accesses to tiles of its type, and to views of them, together. An
access in a loop counts `LOOP_WEIGHT` times as much as one outside, as nobody knows how often the
loop runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product as combinations_of

import numpy as np

from warploom.errors import CheckError, ParseError, UnsupportedError, WarploomError
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.conversion.fragment import Fragment
from warploom.layout.conversion.staging import Side, Staging, matrix_sides, stored_once
from warploom.layout.conversion.tile_views import (
    ModuleTiles,
    TileViews,
    addresses_of,
    block_part,
    type_text,
)
from warploom.layout.formats.encoding import linear_of, written_linear
from warploom.layout.formats.fragment_bases import from_bases
from warploom.layout.formats.linear import Linear
from warploom.layout.formats.triton import offset_bases
from warploom.layout.formats.ttgir import MOVES, Operation, TileType, TritonModule
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show
from warploom.layout.patterns.access import IDLE, Access, AccessKind, Problem
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.cost import Meter
from warploom.machine.record import CUDA, KNOWN, Machine, machine_named
from warploom.search.budget import Budget

LOOP_WEIGHT = 10
VECTOR_BYTES = 16


@dataclass(frozen=True)
class Row:
    """One operation: how it is done best with the layouts that it has, and what that takes.

    `wavefronts` are those of shared memory, of all warps; `least` is what no layout of the tile
    beats for this access alone. `cost` ranks rows, in wavefronts: it has shuffles and barriers."""

    operation: Operation
    way: str
    cost: float
    wavefronts: int = 0
    least: int = 0
    shuffles: int = 0
    instructions: int = 0
    unknown: str = ""  # why nothing is known

    @property
    def weight(self) -> float:
        return self.cost * float(LOOP_WEIGHT**self.operation.loops)


@dataclass(frozen=True)
class JudgedTile:
    """All tiles of one type: their accesses together, and a layout that serves them better."""

    tile: TileType
    lines: tuple[int, ...]
    wavefronts: int
    least: int
    better: str = ""  # a layout of fewer wavefronts, and as an attribute where there is one
    better_attribute: str = ""
    better_wavefronts: int = 0
    bound: str = ""  # what else uses it, so that its layout cannot be another


@dataclass(frozen=True)
class Traffic:
    module: TritonModule
    rows: tuple[Row, ...]  # what costs most first
    tiles: tuple[JudgedTile, ...]
    machine: Machine


@dataclass
class _Known:
    """What was counted before: the same operation stands at several places of a module."""

    conversions: dict[tuple[str, ...], Conversion] = field(default_factory=dict)


def traffic_of(module: TritonModule, budget: Budget | None = None) -> Traffic:
    """Every operation that moves data between layouts, ranked, and every type of tile."""
    machine = machine_of(module)
    known, rows, uses = _Known(), list[Row](), list[_Use]()
    for operation in module.operations:
        if operation.name not in MOVES:
            continue
        row, use = _row(module, operation, known, machine, budget)
        rows += [] if row is None else [row]
        uses += [] if use is None else [use]
    ordered = sorted(rows, key=lambda row: (-row.weight, row.operation.line))
    uncounted = {row.operation.line for row in rows if row.unknown}
    judged = tuple(_judged_all(ModuleTiles(module, uncounted), uses, machine, budget))
    return Traffic(module, tuple(ordered), judged, machine)


def machine_of(module: TritonModule) -> Machine:
    """The machine that a module was compiled for, as far as there is a record of it."""
    name = module.architecture or ("cuda" if module.lanes == CUDA.lanes else "")
    if name not in KNOWN:
        raise UnsupportedError(
            f"a module for {name or f'warps of {module.lanes} lanes'}", module.span(1),
            f"machines that are known: {', '.join(KNOWN)}",
        )  # fmt: skip
    found = machine_named(name)
    if found.lanes != module.lanes:
        raise UnsupportedError(
            f"warps of {module.lanes} lanes", module.span(1), f"{name} has {found.lanes}"
        )
    return found


def _row(
    module: TritonModule,
    operation: Operation,
    known: _Known,
    machine: Machine,
    budget: Budget | None,
) -> tuple[Row | None, _Use | None]:
    try:
        if operation.name == "ttg.convert_layout":
            return _conversion(module, operation, known, machine, budget), None
        return _shared(module, operation, machine)
    except WarploomError as error:
        if isinstance(error, CheckError | UnsupportedError):
            return Row(operation, "not counted", 0.0, unknown=error.message), None
        error.span = error.span or module.span(operation.line)
        raise


# -- conversions -----------------------------------------------------------------------------------


def _registers(module: TritonModule, operation: Operation, tensor: TileType) -> Fragment:
    """Which thread holds what; a layout is for as many threads as execute the operation."""
    linear = linear_of(tensor.layout, tensor.shape)
    there = {"warp": operation.warps, "lane": module.lanes, "block": module.blocks}
    for name, count in there.items():
        said = 1 << len(linear.bases.get(name, ()))
        if said != count:
            raise ParseError(
                f"#{tensor.layout.name} is a layout of {said} {name}s, and there are {count}",
                advice="num-warps, threads-per-warp and num-ctas of the module say how many",
            )
    return from_bases(linear.lists(), tensor.shape, tensor.layout.name)


def _conversion(
    module: TritonModule,
    operation: Operation,
    known: _Known,
    machine: Machine,
    budget: Budget | None,
) -> Row:
    if len(operation.types) != 2:
        raise CheckError("a conversion is from one layout to another")
    source, target = operation.types
    key = (type_text(source), type_text(target), str(operation.warps))
    if key not in known.conversions:
        known.conversions[key] = convert(
            _registers(module, operation, source),
            _registers(module, operation, target),
            _bytes_of(source),
            budget,
            machine=machine,
        )
    found = known.conversions[key]
    way = found.chosen
    if way in ("nothing", "renames"):
        return Row(operation, way, 0.0)
    if way == "shuffles" and found.shuffles is not None:
        rounds = found.shuffles.rounds
        return Row(operation, f"{rounds} rounds of shuffles", found.costs[way], shuffles=rounds)
    staging = _staging(found, _matrix_instructions(module))
    if staging is None:
        raise CheckError("no way through shared memory was found in time")
    cost = found.costs[
        "matrices" if "matrix" in staging.store.kind + staging.load.kind else "shared"
    ]
    named = f"{staging.store.name} + {staging.load.name}, {show(staging.layout)[:60]}"
    least = sum(staging.task.bound.wavefronts)
    return Row(operation, named, cost, staging.wavefronts, least, instructions=staging.instructions)


def _matrix_instructions(module: TritonModule) -> tuple[str, ...]:
    """Those that the GPU has. A module that names no target is not for an old one."""
    has = [name for name, since in (("ldmatrix", 75), ("stmatrix", 90)) if module.target >= since]
    return tuple(has) if module.target else ("ldmatrix",)


def _staging(found: Conversion, matrices: tuple[str, ...]) -> Staging | None:
    """The cheapest way through shared memory; not every GPU has stmatrix."""
    ways = [found.matrices, *found.other_matrices, found.shared]
    if found.chosen == "shared":
        ways.reverse()
    return next(
        (w for w in ways if w is not None and _has(w.store, matrices) and _has(w.load, matrices)),
        None,
    )


def _has(side: Side, matrices: tuple[str, ...]) -> bool:
    return "matrix" not in side.kind or side.kind.startswith(matrices)


def _bytes_of(tile: TileType) -> int:
    found = tile.element_bytes
    if found is None:
        raise CheckError(f"elements {tile.element[:20]} have no whole bytes")
    return found


# -- shared memory ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Use:
    """An access to a tile, as the problem of the whole tile has it; `times` such accesses go over
    the whole tile."""

    tile: TileType
    operation: Operation
    access: Access
    addresses: Numbers
    times: int


def _shared(
    module: TritonModule, operation: Operation, machine: Machine
) -> tuple[Row | None, _Use | None]:
    tensor, tile = operation.only("tensor"), operation.only("memdesc")
    if tensor is None or tile is None:
        return None, None  # an allocation that nothing is stored to yet
    _check_shapes(tensor, tile)
    size, whole, addresses = _bytes_of(tile), block_part(tile), addresses_of(tile)
    fragment = _registers(module, operation, tensor)
    _check_blocks(fragment, tile)
    loads = operation.name == "ttg.local_load"
    if not loads:
        fragment = stored_once(fragment)
    moved, times = _over_the_whole(fragment, whole)
    kind: AccessKind = "ld" if loads else "st"
    if operation.name == "ttg.async_copy_global_to_local":
        kind = "cp.async"
    problem = Problem(operation.name, whole, size, (), machine.serving)
    vectors = _vectors(moved, addresses, kind, size, operation.contiguity)
    ways = [vectors, *_matrix_ways(module, moved, kind, problem)]
    best = _cheapest(ways, addresses, problem)
    access, wavefronts, instructions = best
    task = Task(replace(problem, accesses=(access,)))
    least = wavefronts if task.torn is not None else int(task.bound.wavefronts[0])
    row = Row(
        operation, access.name, wavefronts / times, wavefronts // times, least // times,
        instructions=instructions,
    )  # fmt: skip
    return row, _Use(tile, operation, access, addresses, times)


def _check_shapes(tensor: TileType, tile: TileType) -> None:
    """Triton moves a tensor to or from a tile of its shape, which may be a part of a whole one."""

    def text(shape: tuple[int, ...]) -> str:
        return "x".join(map(str, shape))

    if tensor.shape != tile.shape:
        raise ParseError(
            f"a tensor of {text(tensor.shape)[:60]} and a tile of {text(tile.shape)[:60]}",
            advice="in Triton's IR both have one shape",
        )
    if any(total % part for total, part in zip(tile.whole, tile.shape, strict=True)):
        raise ParseError(f"{text(tile.shape)[:60]} is no part of {text(tile.whole)[:60]}")


def _check_blocks(fragment: Fragment, tile: TileType) -> None:
    """Each block of a cluster moves its own part, which is what is counted."""
    blocks = linear_of(tile.layout, tile.whole).bases.get("block", ())
    shared = blocks if any(map(any, blocks)) else ()
    if shared != fragment.blocks or (shared and tile.shape != tile.whole):
        raise CheckError("blocks share the tensor in another way than the tile")


def _over_the_whole(fragment: Fragment, whole: tuple[int, ...]) -> tuple[Fragment, int]:
    """The access to each part of a tile, one after another; of how many parts it is."""
    if fragment.shape == whole:
        return fragment, 1
    counts = [total // part for total, part in zip(whole, fragment.shape, strict=True)]
    held = fragment.elements
    places = np.unravel_index(np.maximum(held, 0), fragment.shape)
    parts = []
    for corner in combinations_of(*(range(count) for count in counts)):
        moved = [
            place + number * size
            for place, number, size in zip(places, corner, fragment.shape, strict=True)
        ]
        parts.append(np.where(held == IDLE, IDLE, np.ravel_multi_index(tuple(moved), whole)))
    return Fragment(fragment.name, whole, np.concatenate(parts, axis=0)), len(parts)


def _matrix_ways(
    module: TritonModule, fragment: Fragment, kind: AccessKind, problem: Problem
) -> list[Side]:
    if kind == "cp.async" or not problem.serving.has_matrices:
        return []
    has = _matrix_instructions(module)
    sides = matrix_sides(fragment, "ld" if kind == "ld" else "st", problem.element_bytes)
    return [side for side in sides if _has(side, has)]


def _cheapest(ways: list[Side], addresses: Numbers, problem: Problem) -> tuple[Access, int, int]:
    """Vectors as wide as the layout allows, or matrices: what takes the fewest wavefronts."""
    best: tuple[Access, int, int] | None = None
    for side in ways:
        elements = side.elements.reshape(-1, *side.elements.shape[2:])
        access = Access(side.name, elements, side.kind)
        score = Meter(replace(problem, accesses=(access,))).score(addresses)
        if score is None:
            continue  # its vectors do not lie together
        found = (access, int(score.wavefronts[0]), side.steps)
        if best is None or found[1:] < best[1:]:
            best = found
    assert best is not None, "single elements can always be moved"
    return best


def _vectors(
    fragment: Fragment, addresses: Numbers, kind: AccessKind, size: int, contiguity: int
) -> Side:
    """The registers of a thread in vectors, as wide as they lie together in every thread."""
    held = np.where(fragment.elements == IDLE, IDLE, addresses[fragment.elements])
    most = min(VECTOR_BYTES // size, contiguity or VECTOR_BYTES)
    for width in (16, 8, 4, 2):
        if width <= most and fragment.registers % width == 0:
            groups = _together(held, width)
            if groups is not None:
                break
    else:
        groups = [[register] for register in range(fragment.registers)]
    vectors = fragment.elements[:, :, np.array(groups)]
    return Side(kind, tuple(map(tuple, groups)), vectors.transpose(0, 2, 1, 3))


def _together(held: Numbers, width: int) -> list[list[int]] | None:
    """Registers whose addresses follow one another, from a multiple of the width on."""
    busy = np.argwhere((held != IDLE).all(axis=2))
    if not len(busy):
        return None
    first = held[tuple(busy[0])]
    order = np.argsort(first, kind="stable").reshape(-1, width)
    order = order[np.argsort(order.min(axis=1))]
    found = held[:, :, order]
    idle = (found == IDLE).all(axis=3)
    right = (found == found[..., :1] + np.arange(width)).all(axis=3)
    right &= found[..., 0] % width == 0
    return order.tolist() if bool((right | idle).all()) else None


# -- tiles -----------------------------------------------------------------------------------------


def _judged_all(
    tiles: ModuleTiles, uses: list[_Use], machine: Machine, budget: Budget | None
) -> Iterator[JudgedTile]:
    """Each tile with all accesses to it, by whichever view."""
    left = uses
    used = {type_text(use.tile) for use in uses}
    while left:
        views = tiles.views_of(left[0].tile, used)
        own = [use for use in left if type_text(use.tile) in views.numbers]
        left = [use for use in left if type_text(use.tile) not in views.numbers]
        yield _judged(own, views, machine, budget)


def _judged(
    uses: list[_Use], views: TileViews, machine: Machine, budget: Budget | None
) -> JudgedTile:
    tile, lines = uses[0].tile, tuple(use.operation.line for use in uses)
    accesses = tuple(_of_the_tile(use, views.numbers[type_text(use.tile)]) for use in uses)
    task = Task(Problem("tile", block_part(tile), _bytes_of(tile), accesses, machine.serving))
    score = task.meter.score(uses[0].addresses)
    assert score is not None, "each access was counted in this layout"
    now, least = sum(score.wavefronts), sum(task.bound.wavefronts) if task.torn is None else 0
    if views.held or task.torn is not None or now == least:
        return JudgedTile(tile, lines, now, least, bound=views.held)
    best = solve(task, "mixed", budget).best
    if best is None or best.cost >= task.weighted(score):
        return JudgedTile(tile, lines, now, least)
    layout, better = task.layout(best), sum(best.score.wavefronts)
    return JudgedTile(tile, lines, now, least, show(layout), _attribute(layout), better)


def _of_the_tile(use: _Use, numbers: Numbers) -> Access:
    """An access to a view as one to the tile."""
    elements = use.access.elements
    moved = np.where(elements == IDLE, IDLE, numbers[elements])
    return Access(use.access.name, moved, use.access.kind, _weight(use))


def _attribute(layout: Layout) -> str:
    """The layout as Triton's IR would name it; empty where it has no words for it."""
    try:
        bases = offset_bases(layout)["offset"]
    except CheckError:
        return ""
    found = Linear({"offset": tuple(map(tuple, bases)), "block": ()}, sizes_of(layout))
    return str(written_linear(found))


def _weight(use: _Use) -> float:
    return float(LOOP_WEIGHT**use.operation.loops)
