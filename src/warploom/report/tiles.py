"""Several tiles of one kernel on their way, from global memory to the product and back: strips of
places and moves, with the memory that they share in each phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.layout.wavefronts.picture import Compared
from warploom.report.grid import Grid, rules, side_by_side
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.report.request import grid_of
from warploom.report.svg import Drawing

_PLACE, _MOVE, _HIGH, _GAP = 86, 190, 34, 16  # pixels of a box, of a move, of a row, between rows
_NAME = 74
_WIDE, _BAR = 640, 26  # of the memory's drawing
_LOOKS = {"global": "global", "shared": "shared", "registers": "thread", "product": "vector"}
_SHADES = ("k2", "k6", "k10", "k14", "k18", "k22", "k4", "k12")
_WAY = (
    "Each row is a tile. Boxes are places, and between them stand the instructions that move the "
    "tile, with how often a warp issues them and the wavefronts of shared memory that they take."
)
_MEMORY = "Shared memory of a block in each phase; a tile has its buffers side by side."
_REQUESTS = "The request of each tile that waits longest in rows as they are, there and as chosen."


@dataclass(frozen=True, slots=True)
class DrawnMove:
    """One move of a tile; `way` is its places with arrows between."""

    way: str
    instruction: str
    counts: str


@dataclass(frozen=True, slots=True)
class DrawnTile:
    """A tile: its moves in order, its bytes, the numbers of its phases, and its worst request."""

    name: str
    detail: str
    moves: tuple[DrawnMove, ...]
    offset: int
    buffer: int  # bytes
    stages: int
    live: tuple[int, ...]
    compared: Compared


@dataclass(frozen=True, slots=True)
class DrawnTiles:
    title: str
    tiles: tuple[DrawnTile, ...]
    phases: tuple[str, ...]
    limit: int
    bytes: int
    facts: tuple[Fact, ...]
    lines: tuple[str, ...]


def picture(drawn: DrawnTiles, brief: bool = False) -> Picture:
    del brief  # nothing takes long
    way = Figure("tiles", _WAY, _ways(drawn))
    memory = Figure("memory", _MEMORY, _memory(drawn))
    grids = _grids(drawn.tiles)
    panels = "".join(grid.html() for grid in grids)
    parts = (
        Part("From memory to the product and back", way.html),
        Part("Shared memory", memory.html),
        Part("Requests", f'<div class="flow heat">{panels}</div>', _REQUESTS),
    )
    requests = Figure("requests", _REQUESTS, side_by_side(drawn.title, grids))
    return Picture(
        "Tiles of a kernel", drawn.title, drawn.facts, parts, (way, memory, requests), drawn.lines,
        None, ("flow.css",), rules(grids),
    )  # fmt: skip


def _grids(tiles: Sequence[DrawnTile]) -> list[Grid]:
    found = []
    for tile in tiles:
        for request in tile.compared.requests:
            grid = grid_of(tile.compared, request)
            found.append(
                Grid(f"{tile.name}: {grid.title}", grid.detail, grid.columns, grid.rows,
                     grid.heads, grid.kinds, grid.texts, grid.told, grid.across, grid.down)
            )  # fmt: skip
    return found


def _ways(drawn: DrawnTiles) -> str:
    drawing = Drawing(drawn.title)
    for row, tile in enumerate(drawn.tiles):
        y = row * (_HIGH + 30 + _GAP) + 8
        drawing.text(0, y + 20, tile.name, size=13)
        drawing.text(_NAME, y + _HIGH + 15, tile.detail, "label", size=9)
        _strip(drawing, tile, y)
    return drawing.svg()


def _strip(drawing: Drawing, tile: DrawnTile, y: float) -> None:
    """Places and moves of one tile; a place that a move ends in begins the next."""
    x, here = float(_NAME), ""
    for move in tile.moves:
        first, *rest = move.way.split(" → ")
        if first != here:
            x = _box(drawing, x, y, first)
        x = _arrow(drawing, x, y, move)
        for place in rest:
            x = _box(drawing, x, y, place)
            here = place
            if place is not rest[-1]:
                drawing.line([(x, y + _HIGH / 2), (x + 14, y + _HIGH / 2)], "axis")
                x += 14


def _box(drawing: Drawing, x: float, y: float, place: str) -> float:
    drawing.cell(x, y, _PLACE, _HIGH, _LOOKS.get(place, "serial"), place)
    return x + _PLACE


def _arrow(drawing: Drawing, x: float, y: float, move: DrawnMove) -> float:
    middle, end = y + _HIGH / 2, x + _MOVE
    drawing.line([(x, middle), (end, middle)], "axis")
    drawing.line([(end - 6, middle - 4), (end, middle), (end - 6, middle + 4)], "axis")
    drawing.text(x + _MOVE / 2, middle - 5, move.instruction, "", "middle", 9)
    drawing.text(x + _MOVE / 2, middle + 13, move.counts, "label", "middle", 9)
    return end


def _memory(drawn: DrawnTiles) -> str:
    drawing, scale = Drawing(drawn.title), _WIDE / max(drawn.bytes, 1)
    for phase, name in enumerate(drawn.phases):
        y = phase * (_BAR + 22) + 8
        drawing.text(0, y + 17, name)
        drawing.rect(_NAME, y, _WIDE, _BAR, "empty", f"{drawn.bytes} bytes")
        for number, tile in enumerate(drawn.tiles):
            if phase not in tile.live:
                continue
            for stage in range(tile.stages):
                first = tile.offset + stage * tile.buffer
                told = f"{tile.name}, buffer {stage}: bytes {first} to {first + tile.buffer}"
                look, wide = _SHADES[number % len(_SHADES)], tile.buffer * scale
                words = tile.name if wide > 9 * len(tile.name) else ""
                drawing.cell(_NAME + first * scale, y, max(wide - 1, 1), _BAR, look, words, told)
    end = len(drawn.phases) * (_BAR + 22) + 4
    drawing.text(_NAME, end, "0", "label", size=9)
    drawing.text(_NAME + _WIDE, end, f"{drawn.bytes} of {drawn.limit} bytes", "label", "end", 9)
    return drawing.svg()
