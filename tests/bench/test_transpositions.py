"""Every m×n transposition has a fill, found and verified; the full run is slow."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pytest

from warploom.bench import transpositions
from warploom.bench.transpositions import (
    Key,
    Recipe,
    Recipes,
    Transposition,
    fill_one,
    load,
    run,
    save,
    sketch,
    update,
)
from warploom.errors import CheckError, ParseError
from warploom.index.evaluate import evaluate
from warploom.index.parse import parse
from warploom.search.budget import Budget
from warploom.sketch.front import load_text
from warploom.sketch.term.ir import Apply

NAMED = [(64, 64), (64, 63), (48, 36), (32, 2), (32, 4), (32, 6), (1, 64), (64, 1), (60, 64)]


def some_large() -> list[tuple[int, int]]:
    draw = random.Random(20)
    return [*NAMED, *((draw.randint(13, 64), draw.randint(1, 64)) for _ in range(31))]


def assert_transposes(case: Transposition) -> None:
    """Runs the record alone: the three index expressions on the loaded matrix."""
    i, j = np.indices((case.m, case.n))
    held = (i + case.m * j).ravel()
    assert len(case.fill) == 3
    for axis, text in zip((k == "c" for k in case.order), case.fill.values(), strict=True):
        offset = np.broadcast_to(evaluate(parse(text), {"x0": i, "x1": j}), i.shape)
        kept = (offset // case.n == i) if axis else (offset % case.n == j)
        assert kept.all(), f"{case.m}×{case.n}: {text} moves along the wrong axis"
        held = held[offset.ravel()]
    assert (held == np.arange(case.m * case.n)).all(), f"{case.m}×{case.n}"


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("sides", [6, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", ["crc", "rcr"])
def test_all_small_ones(order: str, sides: int) -> None:
    cases = list(run(range(1, sides + 1), range(1, sides + 1), order))
    assert len(cases) == sides * sides
    for case in cases:
        assert case.verified
        assert_transposes(case)
    assert {case.found for case in cases} == {"searched", "carried"}


@pytest.mark.slow
def test_large_ones() -> None:
    """Carried over from small ones where possible, as in the full run."""
    recipes = Recipes()
    for m, n in [(2, 2), (2, 3), (2, 4), (3, 4), (4, 2), (4, 3), (6, 3), (6, 4), (4, 6), (6, 9)]:
        fill_one(m, n, "crc", recipes)
    for m, n in some_large():
        case = fill_one(m, n, "crc", recipes, Budget(60))
        assert case.verified
        assert_transposes(case)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("m", "n"), [(32, 2), (32, 4), (32, 6), (12, 18), (1, 1)])
@pytest.mark.parametrize("order", ["crc", "rcr"])
def test_each_can_be_searched_by_itself(m: int, n: int, order: str) -> None:
    (case,) = run([m], [n], order, carry=False)
    assert case.found == "searched"
    assert case.verified
    assert_transposes(case)


def recipe(m: int, n: int, *forms: str) -> Recipe:
    """Forms by their text, in the sets of an m×n case, whether it has such a choice or not."""
    program = load_text(sketch(m, n))
    families = [s.gathers.family for s in program.steps[2:] if isinstance(s, Apply)]
    return tuple(
        (family, family.from_json({"form": form}))
        for family, form in zip(families, forms, strict=True)
    )


def test_recipes_that_are_wrong_or_unknown_are_not_believed() -> None:
    # The second permutes where 4 lanes have 3 registers, but not where 4 have 6.
    unknown = "(x * S + y) % L"
    recipes = Recipes([recipe(4, 3, "x", "x", "x"), recipe(4, 3, "x", unknown, "x")])
    assert len(recipes.fills(load_text(sketch(4, 6)))) == 1
    case = fill_one(4, 6, "crc", recipes)
    assert case.found == "searched"
    assert_transposes(case)
    assert fill_one(8, 12, "crc", recipes).found in ("searched", "carried")
    assert fill_one(1, 5, "crc", recipes).found == "carried"  # nothing moves


def test_without_time_nothing_is_claimed() -> None:
    (case,) = run([32], [6], carry=False, seconds=0.0)
    assert case.found == "undecided"
    assert not case.verified
    assert not case.fill
    assert "32×6 (undecided)" in transpositions.summary([case])[-1]


def test_the_file_resumes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "records.json"
    first = update(path, lambda done: run([2, 3], [2, 3], done=done))
    assert path.read_text().count("\n") == len(first) + 2
    asked: list[int] = []

    def more(done: Collection[Key]) -> Iterator[Transposition]:
        asked.append(len(done))
        return run([2, 3], [2, 3, 4], done=done)

    second = update(path, more)
    assert asked == [4]
    assert len(second) == 6
    assert load(path) == sorted(second, key=lambda case: case.key)
    assert {c.key: c.seconds for c in second}.items() >= {c.key: c.seconds for c in first}.items()


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "records.json"

    def stopped(done: Collection[Key]) -> Iterator[Transposition]:
        yield fill_one(2, 3, "crc")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update(path, stopped)
    assert [(case.m, case.n) for case in load(path)] == [(2, 3)]


def test_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    assert load(path) == []
    for text in ("{", "[1]", '[{"order":"crc"}]', '{"a":1}', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ParseError, match="cannot read the records"):
            load(path)
    with pytest.raises(CheckError, match="unknown order"):
        list(run([2], [2], "ccc"))
    save(path, [])
    assert load(path) == []


@pytest.mark.slow
@pytest.mark.parametrize("order", ["crc", "rcr"])
def test_all_of_them(order: str) -> None:
    cases = list(run(order=order))
    assert len(cases) == 4096
    for case in cases:
        assert case.verified
        assert_transposes(case)
    assert sum(case.seconds for case in cases) < 900
