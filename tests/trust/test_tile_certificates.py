"""Certificates of several tiles: where buffers begin, what a way is about, one machine for all."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import pytest
from bench.common.trust.layout import signed

from warploom.errors import CheckError
from warploom.layout.patterns.tiles import parse_tiles
from warploom.pipeline.tiles import tiles_solved
from warploom.trust.tiles import check_tiles

COPIED = """machine = "h200"
vary = []
[[tile]]
name = "A"
shape = [64, {columns}]
element = "f16"
stages = 2
[[tile.access]]
kind = "tma"
[[tile.access]]
kind = "wgmma"
name = "A"
rows = 64
"""
SINGLE = """vary = []
[[tile]]
name = "bytes"
shape = [4, 32]
element = "u8"
[[tile.access]]
kind = "ld"
steps = 4
index = "step * 32 + lane"
"""


@cache
def text_of(tiles: str) -> str:
    return json.dumps(tiles_solved(parse_tiles(tiles)).certificate())


def aligned_to(tiles: str, aligned: int) -> dict[str, Any]:
    record = json.loads(text_of(tiles))
    record["tiles"][0]["aligned"] = aligned
    return signed(record | {"bytes": record["limit"]})


@pytest.mark.parametrize(("columns", "repeats"), [(16, 256), (32, 512), (64, 1024)])
def test_a_tile_begins_where_its_swizzle_does(columns: int, repeats: int) -> None:
    """Copies and wgmma swizzle by the address: after eight rows of 32, 64 or 128 bytes again."""
    tiles = COPIED.format(columns=columns)
    assert json.loads(text_of(tiles))["tiles"][0]["layout"]["layout"].startswith("S<")
    for right in (repeats, 2 * repeats, 3 * repeats):
        assert not check_tiles(aligned_to(tiles, right)).open
    for wrong in (16, repeats // 2, repeats + repeats // 2):
        with pytest.raises(CheckError, match=f"begins at a multiple of {repeats} bytes"):
            check_tiles(aligned_to(tiles, wrong))


def test_a_tile_begins_at_a_bank() -> None:
    """From another byte on, elements that were in one word are in two."""
    tiles = SINGLE
    for right in (4, 12, 128):
        assert not check_tiles(aligned_to(tiles, right)).open
    for wrong in (1, 2, 6):
        with pytest.raises(CheckError, match="begins at a multiple of 4 bytes"):
            check_tiles(aligned_to(tiles, wrong))


def altered(tiles: str) -> dict[str, Any]:
    return copy.deepcopy(json.loads(text_of(tiles)))


def test_all_tiles_are_of_one_machine() -> None:
    record = altered(SINGLE)
    other = copy.deepcopy(record["tiles"][0])
    other |= {"name": "other", "offset": 128}
    other["layout"] = signed(other["layout"])
    record["tiles"].append(other)
    doubled = {key: str(2 * int(record[key])) for key in ("cost", "least")}
    record |= doubled | {"instructions": 2 * record["instructions"], "bytes": 256}
    assert not check_tiles(signed(record)).open
    other["layout"]["problem"]["machine"] = "h200"
    other["layout"] = signed(other["layout"])
    with pytest.raises(CheckError, match="several machines"):
        check_tiles(signed(record))


def test_a_way_is_about_elements_of_the_same_size() -> None:
    """Two elements to a byte would be another tile, whose bound may be another."""
    record = altered(SINGLE)
    other = {"way": "another", "layout": copy.deepcopy(record["tiles"][0]["layout"])}
    record["tiles"][0]["others"] = [other]
    assert not check_tiles(signed(record)).open
    layout = other["layout"]
    layout["problem"]["packed"] = 2
    other["layout"] = signed(layout)
    with pytest.raises(CheckError, match="about another tile"):
        check_tiles(signed(record))


@pytest.mark.parametrize(
    ("key", "value"),
    [("phases", [3]), ("name", 3), ("version", True), ("instructions", 4.0), ("kind", "layout")],
)
def test_what_is_told_is_of_its_kind(key: str, value: Any) -> None:
    record = altered(SINGLE)
    assert record["instructions"] == 4
    with pytest.raises(CheckError):
        check_tiles(signed(record | {key: value}))
