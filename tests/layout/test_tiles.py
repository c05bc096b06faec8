"""Several tiles together: the best choice within one memory beside brute force, what is refused."""

from __future__ import annotations

import copy
import functools
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom.errors import CheckError, WarploomError
from warploom.layout.patterns.pattern import parse_pattern
from warploom.layout.patterns.tiles import KernelTile, Tiles, load_tiles, parse_tiles
from warploom.layout.solver.joint import Joint, place, solve_tiles
from warploom.layout.solver.solve import members
from warploom.layout.solver.task import Task
from warploom.machine.record import CUDA
from warploom.pipeline.pictures import picture
from warploom.pipeline.tiles import TilesResult, tiles_solved
from warploom.search.outcome import Found, Impossible
from warploom.trust.checked import digest
from warploom.trust.tiles import check_tiles

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiles" / "matmul.toml"


def transposes(limit: int, *sizes: int, vary: str = "[]", more: str = "") -> Tiles:
    """Tiles of f32 that are stored by rows and loaded by columns, all alive at once."""
    text = f"shared = {limit}\nvary = {vary}\n"
    for number, rows in enumerate(sizes):
        text += f"""
[[tile]]
name = "t{number}"
shape = [{rows}, 32]
element = "f32"
{more}
[[tile.access]]
kind = "st"
steps = {rows}
index = "step * 32 + lane"
[[tile.access]]
kind = "ld"
steps = {rows}
index = "(step // 32 * 32 + lane) * 32 + step % 32"
"""
    return parse_tiles(text)


def cheapest(tiles: Tiles, klass: str) -> int | None:
    """By trying all layouts of the class for every tile, and every order of them side by side."""
    costs = []
    for tile in tiles.tiles:
        task = Task(tile.problem)
        answers = [task.answer(layout) for layout in members(task, klass)]
        costs.append([(int(a.cost), tile.bytes_with(a.unused)) for a in answers if a is not None])
    fitting = [
        sum(cost for cost, _ in choice)
        for choice in itertools.product(*costs)
        if min(map(end, itertools.permutations(size for _, size in choice))) <= tiles.limit
    ]
    return min(fitting, default=None)


def end(sizes: Iterable[int]) -> int:
    """Of tiles one after another, each of which begins at a multiple of 128 bytes."""
    return functools.reduce(lambda at, size: -(-at // 128) * 128 + size, sizes, 0)


@pytest.mark.parametrize("limit", [8064, 8192, 8320, 8443, 8444, 8704])
def test_within_the_memory_nothing_is_cheaper(limit: int) -> None:
    """Rows as they are take 32 wavefronts a column, and padding 128 bytes more."""
    tiles = transposes(limit, 32, 32)
    found = solve_tiles(tiles, "pad")
    expected = cheapest(tiles, "pad")
    assert (None if found.best is None else found.best.cost) == expected
    if limit < 8192:
        assert isinstance(found.outcome, Impossible)
        assert "8192 bytes" in found.outcome.why
    elif limit >= 8444:  # 4220 bytes with padding, and what is between two such tiles
        assert isinstance(found.outcome, Found)
    else:
        assert isinstance(found.outcome, Impossible)  # proved: no choice of the class is better


def test_layouts_without_waste_are_found_where_there_is_no_room() -> None:
    found = solve_tiles(transposes(8192, 32, 32))
    assert isinstance(found.outcome, Found)
    assert found.best is not None
    assert found.best.bytes == 8192


def test_places_are_the_lowest_there_are() -> None:
    """Beside every arrangement on a grid of 128 bytes."""
    draw = np.random.default_rng(4)
    for _ in range(12):
        count = int(draw.integers(2, 5))
        sizes = [128 * int(n) for n in draw.integers(1, 4, count)]
        problem = transposes(8192, 32).tiles[0].problem
        live = [frozenset(np.flatnonzero(draw.integers(0, 2, 3)).tolist()) or frozenset({0})
                for _ in sizes]  # fmt: skip
        tiles = tuple(KernelTile(problem, 1, each) for each in live)
        least = min(
            end
            for at in itertools.product(range(0, sum(sizes), 128), repeat=count)
            if (end := max(a + s for a, s in zip(at, sizes, strict=True))) <= 1536
            and all(
                not live[i] & live[j] or at[i] + sizes[i] <= at[j] or at[j] + sizes[j] <= at[i]
                for i, j in itertools.combinations(range(count), 2)
            )
        )
        asked = Tiles("", tiles, least, ("a", "b", "c"), (), CUDA)
        found = place(asked, sizes)
        assert found is not None
        assert max(a + s for a, s in zip(found, sizes, strict=True)) == least
        assert place(Tiles("", tiles, least - 1, ("a", "b", "c"), (), CUDA), sizes) is None


def example() -> Joint:
    return solve_tiles(load_tiles(EXAMPLE))


@pytest.mark.slow
def test_a_matmul_meets_every_bound_and_its_certificate_holds() -> None:
    found = tiles_solved(load_tiles(EXAMPLE))
    assert isinstance(found.joint.outcome, Found)
    ways = {point.tile.name: point.way for point in found.best.points}
    assert ways["A"] == "mma.a by ldmatrix"  # a quarter of the instructions of ld
    assert found.best.bytes == 65536
    said = picture(found)
    assert {figure.name for figure in said.figures} == {"tiles", "memory", "requests"}
    assert "ldmatrix.x4" in said.html
    text = found.text("cuda")
    assert all(f"place_{name}(" in text for name in "ABC")


def small() -> TilesResult:
    return tiles_solved(transposes(8448, 32, 32, vary='["width"]', more="stages = 1"), "pad")


@pytest.mark.slow
def test_certificates_hold_and_changed_ones_do_not() -> None:
    record = json.loads(json.dumps(small().certificate()))
    checked = check_tiles(record)
    assert not checked.open
    assert "no layouts whatever cost less" in checked.shown[1]
    for change in (_nearer, _cheaper, _smaller, _less, _fewer, _another, _unlike):
        changed = copy.deepcopy(record)
        change(changed)
        changed["digest"] = digest(changed)
        with pytest.raises(CheckError):
            check_tiles(changed)
    with pytest.raises(CheckError, match="changed after"):
        check_tiles(record | {"limit": 9000})
    with pytest.raises(CheckError, match=r"not of this form|other parts"):
        check_tiles({"kind": "tiles"})


def _nearer(record: dict[str, Any]) -> None:
    record["tiles"][1]["offset"] -= 128  # it meets the first


def _cheaper(record: dict[str, Any]) -> None:
    record["cost"] = record["least"] = str(int(record["cost"]) - 1)


def _smaller(record: dict[str, Any]) -> None:
    record["limit"] = record["bytes"] - 1


def _less(record: dict[str, Any]) -> None:
    record["bytes"] -= 128


def _fewer(record: dict[str, Any]) -> None:
    record["instructions"] -= 1


def _another(record: dict[str, Any]) -> None:
    """A way that is about another tile would make the least too high, or too low."""
    record["tiles"][0]["others"][0]["layout"]["problem"]["shape"] = [16, 64]


def _unlike(record: dict[str, Any]) -> None:
    record["tiles"][0]["layout"]["addresses"][:2] = record["tiles"][0]["layout"]["addresses"][1::-1]


def test_without_room_for_the_best_the_certificate_says_what_is_open() -> None:
    found = tiles_solved(transposes(8320, 32, 32), "pad")
    checked = check_tiles(json.loads(json.dumps(found.certificate())))
    assert "is the least" in checked.open


def test_a_pattern_of_one_tile_says_who_takes_several() -> None:
    with pytest.raises(WarploomError, match="several tiles") as error:
        parse_pattern(EXAMPLE.read_text())
    assert "layout tiles" in error.value.advice


HEAD = '[[tile]]\nname = "a"\nshape = [32, 32]\nelement = "f32"\n'
ACCESS = '[[tile.access]]\nuse = "rows"\nkind = "st"\n'
BAD = {
    "": "0 tiles",
    "tile = 3": "tiles are tables",
    "phases = []\n" + HEAD + ACCESS: "1 to 16 different names",
    'phases = ["a", "a"]\n' + HEAD + ACCESS: "different names",
    'vary = ["colour"]\n' + HEAD + ACCESS: "no decision",
    "shared = 0\n" + HEAD + ACCESS: "shared",
    "shared = 49153\n" + HEAD + ACCESS: "a block has at most 49152 bytes",
    'machine = "h200"\nshared = 232449\n' + HEAD + ACCESS: "at most 232448 bytes",
    HEAD: "no access",
    HEAD + 'live = ["night"]\n' + ACCESS: "no phase",
    HEAD + "live = []\n" + ACCESS: "never alive",
    HEAD + "stages = 65\n" + ACCESS: "stages",
    HEAD + "colour = 1\n" + ACCESS: "unknown key",
    HEAD + ACCESS + HEAD + ACCESS: "two tiles",
    HEAD.replace('"a"', '""') + ACCESS: "needs a name",
    HEAD + ACCESS.replace("rows", "mma.q"): "no access is called",
    HEAD + "access = 3": "accesses are tables",
    (HEAD + ACCESS) * 9: "9 tiles",
    "[[tile]\n": "Expected|expected",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_files_end_in_one_located_error(text: str) -> None:
    with pytest.raises(WarploomError, match=BAD[text]) as error:
        parse_tiles(text, "bad.toml")
    assert error.value.span is not None
    assert error.value.span.source.name == "bad.toml"


def test_errors_name_the_access_of_their_tile() -> None:
    text = HEAD + ACCESS + HEAD.replace('"a"', '"b"') + ACCESS.replace("rows", "mma.q")
    with pytest.raises(WarploomError) as error:
        parse_tiles(text)
    assert error.value.span is not None
    assert error.value.span.line == 13
