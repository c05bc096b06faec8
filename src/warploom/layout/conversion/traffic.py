"""What the layouts of a module of Triton's IR cost: each conversion between register layouts by the
cheapest way, each access to shared memory by its wavefronts, and better layouts where there are.

A tile's layout is judged by all accesses to tiles of its type together. An access in a loop counts
`LOOP_WEIGHT` times as much as one outside, as nobody knows how often the loop runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product as combinations_of

import numpy as np

from warploom.errors import CheckError, ParseError, UnsupportedError, WarploomError
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.conversion.fragment import Fragment
from warploom.layout.conversion.staging import Side, Staging, matrix_sides, stored_once
from warploom.layout.formats.encoding import written_linear
from warploom.layout.formats.encoding_shared import shared_layout
from warploom.layout.formats.fragment_bases import from_attribute
from warploom.layout.formats.given import row_major_addresses
from warploom.layout.formats.linear import Linear
from warploom.layout.formats.triton import offset_bases
from warploom.layout.formats.ttgir import DESCRIPTORS, Operation, TileType, TritonModule
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
    bound: str = ""  # why the layout cannot be another


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
    known, rows, uses = _Known(), list[Row](), dict[str, list[_Use]]()
    for operation in module.operations:
        row, use = _row(module, operation, known, machine, budget)
        rows += [] if row is None else [row]
        if use is not None:
            uses.setdefault(_type_text(use.tile), []).append(use)
    ordered = sorted(rows, key=lambda row: (-row.weight, row.operation.line))
    held = _held(module)
    tiles = [_judged(each, held.get(text, ""), machine, budget) for text, each in uses.items()]
    return Traffic(module, tuple(ordered), tuple(tiles), machine)


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
            return _conversion(operation, known, module.target >= 90, machine, budget), None
        if operation.name in DESCRIPTORS:
            return None, None
        return _shared(operation, machine)
    except WarploomError as error:
        if isinstance(error, CheckError | UnsupportedError):
            return Row(operation, "not counted", 0.0, unknown=error.message), None
        error.span = error.span or module.span(operation.line)
        raise


# -- conversions -----------------------------------------------------------------------------------


def _conversion(
    operation: Operation,
    known: _Known,
    stores_matrices: bool,
    machine: Machine,
    budget: Budget | None,
) -> Row:
    if len(operation.types) != 2:
        raise CheckError("a conversion is from one layout to another")
    source, target = operation.types
    key = (_type_text(source), _type_text(target))
    if key not in known.conversions:
        known.conversions[key] = convert(
            from_attribute(source.layout, source.shape, source.layout.name),
            from_attribute(target.layout, target.shape, target.layout.name),
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
    staging = _staging(found, stores_matrices)
    if staging is None:
        raise CheckError("no way through shared memory was found in time")
    cost = found.costs[
        "matrices" if "matrix" in staging.store.kind + staging.load.kind else "shared"
    ]
    named = f"{staging.store.name} + {staging.load.name}, {show(staging.layout)[:60]}"
    least = sum(staging.task.bound.wavefronts)
    return Row(operation, named, cost, staging.wavefronts, least, instructions=staging.instructions)


def _staging(found: Conversion, stores_matrices: bool) -> Staging | None:
    """The cheapest way through shared memory; not every GPU has stmatrix."""
    ways = [found.matrices, *found.other_matrices, found.shared]
    if found.chosen == "shared":
        ways.reverse()
    return next(
        (w for w in ways if w is not None and (stores_matrices or "matrix" not in w.store.kind)),
        None,
    )


def _bytes_of(tile: TileType) -> int:
    found = tile.element_bytes
    if found is None:
        raise CheckError(f"elements {tile.element[:20]} have no whole bytes")
    return found


def _type_text(tile: TileType) -> str:
    return f"{tile.whole}{tile.shape if tile.place == 'tensor' else ''}{tile.element}{tile.layout}"


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


def _shared(operation: Operation, machine: Machine) -> tuple[Row | None, _Use | None]:
    tensor, tile = operation.only("tensor"), operation.only("memdesc")
    if tensor is None or tile is None:
        return None, None  # an allocation that nothing is stored to yet
    size, whole = _bytes_of(tile), tile.whole
    _check_shapes(tensor, tile)
    addresses = row_major_addresses(shared_layout(tile.layout, whole), Problem("", whole, size, ()))
    fragment = from_attribute(tensor.layout, tensor.shape, tensor.layout.name)
    loads = operation.name == "ttg.local_load"
    if not loads:
        fragment = stored_once(fragment)
    moved, times = _over_the_whole(fragment, whole)
    kind: AccessKind = "ld" if loads else "st"
    if operation.name == "ttg.async_copy_global_to_local":
        kind = "cp.async"
    problem = Problem(operation.name, whole, size, (), machine.serving)
    best = _cheapest(moved, addresses, kind, problem, operation.contiguity)
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


def _cheapest(
    fragment: Fragment,
    addresses: Numbers,
    kind: AccessKind,
    problem: Problem,
    contiguity: int,
) -> tuple[Access, int, int]:
    """Vectors as wide as the layout allows, or matrices: what takes the fewest wavefronts."""
    size = problem.element_bytes
    sides = [_vectors(fragment, addresses, kind, size, contiguity)]
    if kind != "cp.async" and problem.serving.has_matrices:
        sides += matrix_sides(fragment, "ld" if kind == "ld" else "st", size)
    best: tuple[Access, int, int] | None = None
    for side in sides:
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


def _held(module: TritonModule) -> dict[str, str]:
    """Types of tiles that a matrix unit or a tensor copy reads or writes by itself."""
    return {
        _type_text(each): operation.name
        for operation in module.operations
        if operation.name in DESCRIPTORS
        for each in operation.types
        if each.place == "memdesc"
    }


def _judged(uses: list[_Use], held: str, machine: Machine, budget: Budget | None) -> JudgedTile:
    tile, lines = uses[0].tile, tuple(use.operation.line for use in uses)
    accesses = tuple(
        Access(use.access.name, use.access.elements, use.access.kind, _weight(use)) for use in uses
    )
    task = Task(Problem("tile", tile.whole, _bytes_of(tile), accesses, machine.serving))
    score = task.meter.score(uses[0].addresses)
    assert score is not None, "each access was counted in this layout"
    now, least = sum(score.wavefronts), sum(task.bound.wavefronts) if task.torn is None else 0
    if held or task.torn is not None or now == least:
        return JudgedTile(tile, lines, now, least, bound=held)
    best = solve(task, "mixed", budget).best
    if best is None or best.cost >= task.weighted(score):
        return JudgedTile(tile, lines, now, least)
    layout, better = task.layout(best), sum(best.score.wavefronts)
    return JudgedTile(tile, lines, now, least, show(layout), _attribute(layout), better)


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
