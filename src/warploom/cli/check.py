"""`warploom check`: a user's own index arithmetic, for all lanes, steps and warps it declares."""

from __future__ import annotations

from typing import Any

from warploom.cli.commands.check import CheckOptions
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run
from warploom.cli.inputs import parse_sizes, python_value
from warploom.cli.output import kept_free, write_records
from warploom.cli.say import echo
from warploom.errors import CheckError, ParseError
from warploom.layout.own import Examined, SharedTile, examine

MOST_TILES = 1000


def check(asked: CheckOptions, _context: Context) -> None:
    def action() -> Status:
        if "::" not in asked.name:
            raise ParseError(
                f"'{asked.name[:80]}' names nothing to check", advice="write FILE.py::NAME"
            )
        records: list[dict[str, Any]] = []
        with kept_free(asked.json_file, so_far=records, begun={"name": asked.name}):
            for tile in tiles(asked.name, python_value(asked.name, parse_sizes(asked.size))):
                found = examine(tile)
                records.append(examined_record(found))
                for line in examined_lines(found):
                    echo(line)
        write_records(asked.json_file, records)
        return Status.FOUND if all(each["right"] for each in records) else Status.IMPOSSIBLE

    run(action)


def tiles(name: str, value: object) -> list[SharedTile]:
    given = value if isinstance(value, list | tuple) else [value]
    for each in given:
        if not isinstance(each, SharedTile):
            raise CheckError(
                f"{name} is a {type(each).__name__}",
                advice="it should be a SharedTile, a list of them, or a function that returns such",
            )
    if not 1 <= len(given) <= MOST_TILES:
        raise CheckError(f"{name} has {len(given)} tiles", advice=f"1 to {MOST_TILES}")
    return [each for each in given if isinstance(each, SharedTile)]


def examined_lines(found: Examined) -> list[str]:
    if not found.right:
        return [f"{found.name}: wrong", *(f"  {line}" for line in found.wrong)]
    lines = [
        f"{found.name}: proved for every lane, step and warp, {found.tried} in all: one place for "
        f"{_elements(found)}, {_inside(found)}, the same for all, vectors whole"
    ]
    for name, count, bound in zip(found.accesses, found.wavefronts, found.bound, strict=True):
        best = "no layout takes fewer" if count == bound else f"the bound is {bound:g}"
        lines.append(f"  {name:20} {count:g} wavefronts per request; {best}")
    return lines


def _elements(found: Examined) -> str:
    if found.used == found.size:
        return "each element"
    return f"each of {found.used} elements (nobody uses the other {found.size - found.used})"


def _inside(found: Examined) -> str:
    if found.places is not None:
        return f"inside of {found.places}"
    return f"from 0 to {found.reach - 1} (how many places there are was not said)"


def examined_record(found: Examined) -> dict[str, Any]:
    return {
        "name": found.name,
        "right": found.right,
        "wrong": list(found.wrong),
        "accesses": list(found.accesses),
        "wavefronts": list(found.wavefronts),
        "bound": list(found.bound),
        "tried": found.tried,
        "used": found.used,
        "size": found.size,
        "reach": found.reach,
        "places": found.places,
    }
