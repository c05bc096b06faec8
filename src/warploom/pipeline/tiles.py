"""Several tiles of one kernel in, a way and a layout for each out: words, records, texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.emit.index_function import exported
from warploom.emit.parts import noted_text
from warploom.layout.formats.function_name import function_name
from warploom.layout.language.show import show
from warploom.layout.patterns.access import IDLE, Access, Problem, size_words
from warploom.layout.patterns.tiles import Tiles
from warploom.layout.solver.front_json import ways_record
from warploom.layout.solver.joint import Joint, Placed, Point, bytes_of_phases, solve_tiles
from warploom.layout.solver.joint_certificate import tiles_certificate
from warploom.layout.wavefronts.picture import worst_request
from warploom.machine.record import CUDA
from warploom.pictured import Pictured
from warploom.report.picture import Fact, Picture
from warploom.report.tiles import DrawnMove, DrawnTile, DrawnTiles, picture
from warploom.search.budget import Budget
from warploom.search.engine import OnProgress, Watch
from warploom.search.outcome import Found, Impossible, NothingFoundError
from warploom.search.outcome_json import outcome_record

_OBJECTIVE = "the fewest wavefronts of all tiles together, each access by its weight"


@dataclass(frozen=True, slots=True)
class Move:
    """One access of a tile as it is done: between which places, by what, and what that takes.
    `sectors` and `least_sectors` are of global memory; None where it takes no part."""

    access: str
    way: str
    instruction: str
    instructions: int
    wavefronts: int
    least: int
    weight: float
    sectors: int | None
    least_sectors: int | None


@dataclass(frozen=True, slots=True, eq=False)
class TilesResult(Pictured):
    """What was found for all tiles of a file together."""

    joint: Joint

    @property
    def best(self) -> Placed:
        """The choice for every tile; an error says why where there is none."""
        if self.joint.best is None:
            name, outcome = self.joint.tiles.name, self.joint.outcome
            raise NothingFoundError(f"'{name}' has no choice for all tiles: {outcome}", outcome)
        return self.joint.best

    def record(self) -> dict[str, Any]:
        return tiles_record(self.joint)

    def certificate(self, watch: Watch | None = None) -> dict[str, Any]:
        """The proof as plain data; written as JSON, `warploom verify FILE` checks it."""
        return tiles_certificate(self.joint, self.best, watch)

    def text(self, language: str = "cuda", *notes: str) -> str:
        """The index function of every tile, one after another."""
        parts = []
        for point, offset in zip(self.best.points, self.best.offsets, strict=True):
            name = function_name("place", point.tile.name)
            problem = point.task.problem
            size, packed = problem.element_bytes, problem.packed
            each = exported(point.layout, language, name, size, packed)
            parts.append(each if language == "triton" else noted_text(each, _where(point, offset)))
        if language == "triton":
            return "".join(parts)
        verdict = f"Verdict: {verdict_of(self.joint)}."
        head = f"Tiles: {self.joint.tiles.name}, {self.best.bytes} bytes of shared memory"
        return noted_text("\n".join(parts), head, verdict, *notes)

    def __str__(self) -> str:
        return "\n".join(tiles_lines(self.joint))


def tiles_solved(
    tiles: Tiles,
    klass: str | None = None,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
) -> TilesResult:
    """The best ways and layouts of all tiles within the memory that they share."""
    return TilesResult(solve_tiles(tiles, klass, budget, on_progress))


def verdict_of(joint: Joint) -> str:
    match joint.outcome:
        case Found():
            return "no layouts of any kind take fewer wavefronts: proved"
        case Impossible(why):
            return f"{why}: proved"
        case _:
            return str(joint.outcome)


def _where(point: Point, offset: int) -> str:
    each = point.bytes // point.tile.stages
    stages = f", {point.tile.stages} buffers of {each}" if point.tile.stages > 1 else ""
    return f"{point.tile.name}: bytes {offset} to {offset + point.bytes}{stages}"


# -- what each access does -------------------------------------------------------------------------


def moves_of(point: Point) -> Iterator[Move]:
    """The accesses of a tile in their order, as they were chosen."""
    problem, score = point.task.problem, point.answer.score
    for number, access in enumerate(problem.accesses):
        way = point.tile.way_of(number)
        sectors, least = _sectors(problem, access) if "global" in way else (None, None)
        yield Move(
            access.name, way, instruction_of(problem, access), access.steps,
            score.wavefronts[number], point.task.bound.wavefronts[number], access.weight,
            sectors, least,
        )  # fmt: skip


def instruction_of(problem: Problem, access: Access) -> str:
    """
    >>> from warploom.layout.patterns.named import pattern
    >>> asked = pattern("ldmatrix:64x64:f16")
    >>> [instruction_of(asked, each) for each in asked.accesses]
    ['st 16 bytes', 'ldmatrix.x4']
    """
    if "matrix" in access.kind:
        first, *rest = access.kind.split(".")
        rows = int((access.elements[0, :, 0] != IDLE).sum())
        return ".".join([first, f"x{rows // 8}", *rest])
    return f"{access.kind} {problem.bytes_of(access.width)} bytes"


def _sectors(problem: Problem, access: Access) -> tuple[int | None, int | None]:
    """Sectors of all requests, of a tensor whose rows begin at whole sectors; and the least."""
    sector = CUDA.sector_bytes
    if problem.columns * problem.bits % (8 * sector):
        return None, None
    where = access.elements.reshape(access.steps, -1)
    moved = [np.unique(row[row != IDLE]) for row in where]
    found = sum(len(np.unique(problem.bytes_of(row) // sector)) for row in moved)
    return found, sum(-(-len(row) * problem.bits // (8 * sector)) for row in moved)


# -- words and records -----------------------------------------------------------------------------


def tiles_lines(joint: Joint) -> list[str]:
    tiles, best = joint.tiles, joint.best
    count = f"{len(tiles.tiles)} tile" + "s" * (len(tiles.tiles) > 1)
    lines = [f"{tiles.name}: {count} on {tiles.machine.name}, {tiles.limit} bytes of shared memory"]
    lines += [f"  {_OBJECTIVE}", ""]
    if best is not None:
        for point, offset in zip(best.points, best.offsets, strict=True):
            lines += _tile_lines(point, offset)
        lines += _memory_lines(joint, best)
    return [*lines, *_verdict_lines(joint)]


def _tile_lines(point: Point, offset: int) -> list[str]:
    problem = point.task.problem
    size = "×".join(map(str, problem.shape))
    lines = [f"  {point.tile.name}: {size} elements of {size_words(problem)}"]
    lines.append(f"    {show(point.layout)[:100]}, {_where(point, offset).partition(': ')[2]}")
    for move in moves_of(point):
        weight = f", weight {move.weight:g}" * (move.weight != 1)
        lines.append(
            f"    {move.way}: {move.instruction}, {move.instructions} instructions, "
            f"{move.wavefronts} wavefronts (at least {move.least}){weight}{_sector_words(move)}"
        )
    lines += [f"    {name}: by TMA" for name in problem.copies]
    return [*lines, ""]


def _sector_words(move: Move) -> str:
    if move.sectors is None:
        return ""
    return f", {move.sectors} sectors" + f" (at least {move.least_sectors})" * (
        move.sectors != move.least_sectors
    )


def _memory_lines(joint: Joint, best: Placed) -> list[str]:
    sizes = bytes_of_phases(joint.tiles, [point.bytes for point in best.points])
    each = zip(joint.tiles.phases, sizes, strict=True)
    shown = ", ".join(f"{phase} {size}" for phase, size in each)
    return [
        f"  bytes of each phase: {shown}; of all {best.bytes}",
        f"  in all: {float(best.cost):g} wavefronts, {best.instructions} instructions",
    ]


def _verdict_lines(joint: Joint) -> list[str]:
    match joint.outcome:
        case Found():
            return ["found: every tile meets the bound", f"  {verdict_of(joint)}"]
        case Impossible(why):
            gap = f"  best: {float(joint.best.cost):g} wavefronts" if joint.best else ""
            return [f"impossible: {why}", *[gap] * bool(gap)]
        case _:
            least = f"nothing costs less than {float(joint.least):g}"
            return [f"{joint.outcome}", f"  {least}"]


def tiles_record(joint: Joint) -> dict[str, Any]:
    tiles, best = joint.tiles, joint.best
    found: dict[str, Any] = {
        "name": tiles.name,
        "machine": tiles.machine.name,
        "limit": tiles.limit,
        "phases": list(tiles.phases),
        **outcome_record(joint.outcome),
        "least": float(joint.least),
        "needed_bytes": list(joint.needed),
        "cost": None if best is None else float(best.cost),
    }
    if best is None:
        return found | {"tiles": []}
    return found | {
        "instructions": best.instructions,
        "bytes": best.bytes,
        "tiles": [
            {
                "name": point.tile.name, "layout": show(point.layout), "offset": offset,
                "bytes": point.bytes, "stages": point.tile.stages,
                "live": [tiles.phases[n] for n in sorted(point.tile.live)],
                "cost": float(point.cost), "moves": [_move_record(m) for m in moves_of(point)],
                **ways_record(chosen), "way": point.way,
            }
            for point, offset, chosen in zip(best.points, best.offsets, joint.chosen, strict=True)
        ],
    }  # fmt: skip


def _move_record(move: Move) -> dict[str, Any]:
    found: dict[str, Any] = {
        "access": move.access, "from_to": move.way, "instruction": move.instruction,
        "instructions": move.instructions, "wavefronts": move.wavefronts, "least": move.least,
        "weight": move.weight,
    }  # fmt: skip
    if move.sectors is not None:
        found |= {"sectors": move.sectors, "least_sectors": move.least_sectors}
    return found


# -- the picture -----------------------------------------------------------------------------------


def tiles_picture(found: TilesResult, brief: bool = False) -> Picture:
    """All tiles on their way, the memory that they share, and the worst request of each."""
    best, joint = found.best, found.joint
    pairs = zip(best.points, best.offsets, strict=True)
    facts = (
        Fact("wavefronts", f"{float(best.cost):g}", "good" if best.cost == joint.least else ""),
        Fact("at least", f"{float(joint.least):g}"),
        Fact("instructions", str(best.instructions)),
        Fact("bytes", f"{best.bytes} of {joint.tiles.limit}"),
        Fact("verdict", verdict_of(joint)),
    )
    drawn = DrawnTiles(
        joint.tiles.name, tuple(_drawn(point, offset) for point, offset in pairs),
        joint.tiles.phases, joint.tiles.limit, best.bytes, facts, tuple(tiles_lines(joint)),
    )  # fmt: skip
    return picture(drawn, brief)


def _drawn(point: Point, offset: int) -> DrawnTile:
    tile, task = point.tile, point.task
    moves = tuple(
        DrawnMove(
            move.way, move.instruction, f"{move.instructions} issued, {_counted(move)} wavefronts"
        )
        for move in moves_of(point)
    )
    size, name = "×".join(map(str, task.problem.shape)), show(point.layout)
    return DrawnTile(
        tile.name, f"{size}, {name[:60]}, {point.bytes} bytes", moves, offset,
        point.bytes // tile.stages, tile.stages, tuple(sorted(tile.live)),
        worst_request(task, task.addresses(point.answer.map), name, ()),
    )  # fmt: skip


def _counted(move: Move) -> str:
    return str(move.wavefronts) + f" (at least {move.least})" * (move.wavefronts != move.least)
