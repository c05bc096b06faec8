"""`warploom layout read`: what the layouts of a file of Triton's IR cost, ranked."""

from __future__ import annotations

from functools import partial
from typing import Any

from warploom.cli.commands.layout import ReadFile
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run
from warploom.cli.output import kept_free, write_records
from warploom.cli.progress import progress
from warploom.cli.ptx_input import read_text
from warploom.cli.say import echo
from warploom.layout.conversion.traffic import JudgedTile, Row, Traffic, traffic_of
from warploom.layout.formats.ttgir import read_ttgir
from warploom.machine.record import CUDA
from warploom.search.budget import Budget

_HEAD = f"  {'cost':>6}  {'line':>4}  {'loops':>5}  {'wavefronts':>10}  {'least':>5}  operation"


def read_command(asked: ReadFile, _context: Context) -> None:
    run(partial(_read, asked))


def _read(asked: ReadFile) -> Status:
    with kept_free(asked.json_file):
        budget = Budget(asked.seconds)
        with progress("read"), budget.interruptible():
            found = traffic_of(read_ttgir(read_text(asked.file), asked.file), budget)
        for line in traffic_lines(found):
            echo(line)
    write_records(asked.json_file, [traffic_record(found)])
    if budget.interrupted:
        return Status.INTERRUPTED
    if any(tile.better for tile in found.tiles):
        return Status.IMPOSSIBLE
    undecided = budget.is_spent() or any(row.unknown for row in found.rows)
    return Status.UNDECIDED if undecided else Status.FOUND


def traffic_lines(found: Traffic) -> list[str]:
    module = found.module
    lines = [f"{module.source.name}: {module.warps} warps of {module.lanes} lanes"]
    if found.machine != CUDA:
        lines[0] += f" on {found.machine.name}, whose banks were not measured here"
    if not found.rows:
        return [*lines, "  no operation moves data between layouts"]
    lines += ["", _HEAD, *map(_row_line, found.rows)]
    for tile in found.tiles:
        lines += _tile_lines(tile)
    return lines


def _row_line(row: Row) -> str:
    operation = row.operation
    name = operation.name.partition(".")[2]
    said = f"{name}: {row.unknown or row.way}"
    return (
        f"  {row.cost:6.0f}  {operation.line:4}  {operation.loops:5}  {row.wavefronts:10}  "
        f"{row.least:5}  {said}"
    )


def _tile_lines(tile: JudgedTile) -> list[str]:
    shape = "x".join(map(str, tile.tile.whole))
    places = ", ".join(map(str, tile.lines))
    lines = ["", f"  tile {shape} {tile.tile.element} {tile.tile.layout}"]
    lines.append(f"    lines {places}: {tile.wavefronts} wavefronts, at least {tile.least}")
    if tile.bound:
        return [*lines, f"    {tile.bound} uses it, so its layout stays as it is"]
    if not tile.better:
        met = tile.wavefronts == tile.least
        return [*lines, "    no layout is better" if met else "    no better layout was found"]
    lines.append(f"    better: {tile.better[:100]}, {tile.better_wavefronts} wavefronts")
    return [
        *lines,
        *([f"    as an attribute: {tile.better_attribute}"] * bool(tile.better_attribute)),
    ]


def traffic_record(found: Traffic) -> dict[str, Any]:
    module = found.module
    return {
        "file": module.source.name,
        "warps": module.warps,
        "lanes": module.lanes,
        "operations": [_row_record(row) for row in found.rows],
        "tiles": [_tile_record(tile) for tile in found.tiles],
    }


def _row_record(row: Row) -> dict[str, Any]:
    return {
        "operation": row.operation.name,
        "line": row.operation.line,
        "loops": row.operation.loops,
        "way": row.way,
        "cost": row.cost,
        "wavefronts": row.wavefronts,
        "least": row.least,
        "shuffles": row.shuffles,
        "instructions": row.instructions,
    } | ({"not_counted": row.unknown} if row.unknown else {})


def _tile_record(tile: JudgedTile) -> dict[str, Any]:
    found: dict[str, Any] = {
        "shape": list(tile.tile.whole),
        "element": tile.tile.element,
        "layout": str(tile.tile.layout),
        "lines": list(tile.lines),
        "wavefronts": tile.wavefronts,
        "least": tile.least,
    }
    if tile.bound:
        found["held_by"] = tile.bound
    if tile.better:
        found["better"] = {"layout": tile.better, "wavefronts": tile.better_wavefronts}
        found["better"] |= {"attribute": tile.better_attribute} if tile.better_attribute else {}
    return found
