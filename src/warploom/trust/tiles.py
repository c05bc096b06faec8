"""Checks a certificate about several tiles of one kernel by itself.

What is checked: each tile's layout, as `trust/layout.py` checks it; buffers begin where the banks,
and the swizzle of copies and of wgmma, are those of the layout; all lie within the limit, and no
two tiles that are alive in one phase meet; the total; and that no layouts at all cost
less in any of the ways to do the accesses that are listed. That last is a sum: tiles meet in memory
alone, so each tile's least bound over its ways is what it costs in any choice.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

from warploom.errors import CheckError
from warploom.trust.checked import Checked, digest, fraction, require
from warploom.trust.layout import alignment_of
from warploom.trust.layout_text import check_layout_and_text

_KEYS = {"kind", "version", "name", "limit", "phases", "tiles", "cost", "least", "instructions",
         "bytes", "digest"}  # fmt: skip
_TILE_KEYS = {"name", "way", "stages", "live", "aligned", "offset", "layout", "others"}
_OF_THE_TILE = ("shape", "element_bytes", "packed", "machine")  # whatever moves it
_MOST_BYTES = 1 << 40
_NOT_COVERED = (
    "whether the ways that are listed are all ways to do the accesses",
    "that the accesses are those of the kernel",
)


def check_tiles(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    try:
        return _check(record)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise CheckError(f"the certificate is not of this form: {error!r:.80}") from None
    except (RecursionError, MemoryError):
        raise CheckError("the certificate is too large") from None


def _check(record: dict[str, Any]) -> Checked:
    named = record["kind"] == "tiles" and repr(record["version"]) == "1"
    require(set(record) == _KEYS and named, "it has other parts than it should")
    require(digest(record) == record["digest"], "it was changed after it was written")
    tiles, phases = record["tiles"], record["phases"]
    require(isinstance(tiles, list) and bool(tiles), "it has no tiles")
    words = isinstance(phases, list) and all(isinstance(each, str) for each in phases)
    require(words and len(phases) == len(set(phases)) > 0, "phases are names")
    names = [record["name"], *(tile["name"] for tile in tiles), *(tile["way"] for tile in tiles)]
    require(all(isinstance(each, str) for each in names), "what should be a text is none")
    machine = tiles[0]["layout"]["problem"]["machine"]
    together = all(tile["layout"]["problem"]["machine"] == machine for tile in tiles)
    require(together, "its tiles are of several machines")
    left_open: list[str] = []
    spans = [_span(tile, len(phases), left_open) for tile in tiles]
    _check_places(record, tiles, spans)
    cost = sum((fraction(tile["layout"]["cost"]) for tile in tiles), Fraction(0))
    require(str(cost) == record["cost"], f"all tiles cost {cost}")
    steps = sum(_steps(tile["layout"]) for tile in tiles)
    require(repr(record["instructions"]) == f"{steps}", f"there are {steps} instructions")
    least = sum((_least(tile) for tile in tiles), Fraction(0))
    require(str(least) == record["least"], f"the least of all tiles is {least}")
    ways = sum(1 + len(tile["others"]) for tile in tiles)
    end = max(end for _, end in spans)
    shown = (
        f"{len(tiles)} tiles cost {cost} (all wavefronts) within {end} bytes, of {record['limit']}",
        f"no layouts whatever cost less than {least}, in any of the {ways} ways that are listed",
    )
    if cost > least:
        left_open.append(f"whether {cost} is the least")
    return Checked(shown, "; ".join(dict.fromkeys(left_open)), _NOT_COVERED)


def _span(tile: dict[str, Any], phases: int, left_open: list[str]) -> tuple[int, int]:
    """The bytes of all buffers of a tile: the first, and the first behind them."""
    require(set(tile) == _TILE_KEYS, "a tile has other parts than it should")
    name, aligned, live = tile["name"], tile["aligned"], tile["live"]
    numbers = (tile["stages"], aligned, tile["offset"])
    require(all(type(n) is int and 0 <= n < _MOST_BYTES for n in numbers), f"{name}: no number")
    require(tile["stages"] >= 1 and aligned >= 1, f"{name}: no buffer")
    require(tile["offset"] % aligned == 0, f"{name}: it begins at {tile['offset']}")
    known = bool(live) and all(type(n) is int and 0 <= n < phases for n in live)
    require(isinstance(live, list) and known, f"{name}: no such phases")
    layout = tile["layout"]
    found = _checked(layout)
    if found.open:
        left_open.append(f"{name}: {found.open}")
    problem = layout["problem"]
    own, packed = problem["element_bytes"], problem.get("packed", 1)
    lanes = (lane for each in problem["accesses"] for step in each["elements"] for lane in step)
    widest = max(map(len, lanes), default=1)
    require(aligned * packed % (widest * own) == 0, f"{name}: its accesses are not aligned")
    needed = alignment_of(layout)
    require(aligned % needed == 0, f"{name}: it begins at a multiple of {needed} bytes")
    size = -(-(max(layout["addresses"]) + 1) * own // packed)
    before = (tile["stages"] - 1) * -(-size // aligned) * aligned
    return tile["offset"], tile["offset"] + before + size


def _checked(layout: dict[str, Any]) -> Checked:
    require(layout["kind"] == "layout", "a tile has no certificate of its layout")
    require(layout["objective"] == "total", "tiles are added up")
    return check_layout_and_text(layout)


def _check_places(
    record: dict[str, Any], tiles: list[dict[str, Any]], spans: list[tuple[int, int]]
) -> None:
    limit = record["limit"]
    require(type(limit) is int and max(end for _, end in spans) <= limit, "a tile ends outside")
    said = record["bytes"]  # records that were written earlier round the last buffer up as well
    require(type(said) is int and limit >= said, "it says no number of bytes")
    require(said >= max(end for _, end in spans), "more bytes are taken than it says")
    for (one, a), (other, b) in combinations(zip(tiles, spans, strict=True), 2):
        meet = set(one["live"]) & set(other["live"]) and a[0] < b[1] and b[0] < a[1]
        require(not meet, f"{one['name']} and {other['name']} meet in one phase")


def _steps(layout: dict[str, Any]) -> int:
    return sum(len(access["elements"]) for access in layout["problem"]["accesses"])


def _least(tile: dict[str, Any]) -> Fraction:
    """The least bound of the ways of a tile; each way is about the same tile."""
    found = fraction(tile["layout"]["bound"])
    mine = tile["layout"]["problem"]
    for other in tile["others"]:
        named = set(other) == {"way", "layout"} and isinstance(other["way"], str)
        require(named, "a way has other parts than it should")
        layout = other["layout"]
        theirs = layout["problem"]
        same = all(theirs.get(key) == mine.get(key) for key in _OF_THE_TILE)
        require(same, f"{tile['name']}: a way is about another tile")
        require(_moved(theirs) == _moved(mine), f"{tile['name']}: a way moves something else")
        _checked(layout)
        found = min(found, fraction(layout["bound"]))
    return found


def _moved(problem: dict[str, Any]) -> list[tuple[str, str, list[int]]]:
    """What each access moves in all, whatever instruction does it."""
    found = []
    for access in problem["accesses"]:
        flat = {e for step in access["elements"] for lane in step for e in lane if e >= 0}
        found.append((access["name"], access["weight"], sorted(flat)))
    return found
