"""`warploom map`: what it prints, writes and returns, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

OWN = """
from warploom.array import build as al
from warploom.array.types import array
from warploom.kernel.dtype import f32

n, m = al.sizes("n m")
doubled = al.program("doubled", lambda x: al.map_(lambda v: v * 2, x), x=array(f32, n))
tiled = al.program(
    "tiled",
    lambda x: al.join(al.map_(lambda r: al.map_(lambda v: v + 1, r), al.split(m, x))),
    x=array(f32, n),
)
summed = al.program("summed", lambda x: al.reduce(lambda s, v: s + v, 0.0, x), x=array(f32, n))


def wrong():
    return al.program("wrong", lambda x: al.map_(lambda v: v + x, x), x=array(f32, n))
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    file = tmp_path / "own_maps.py"
    file.write_text(OWN)
    return str(file)


def test_candidates_of_ones_own(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::tiled", "--size", "n=12", "--sample", "2", "--json", "-")
    assert ran.status == 0, ran.err
    records = json.loads(ran.out)
    assert len(records) == 2
    for record in records:
        assert 12 % record["tiles"]["m"] == 0
        assert record["kernels"][0]["group"]
    again = cli("map", f"{own}::tiled", "--size", "n=12", "--sample", "2", "--json", "-")
    assert again.out == ran.out


def test_counts(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::doubled", "--size", "n=12", "--count")
    assert ran.status == 0
    assert ran.out.startswith("5 mappings")


def test_the_best_is_written(cli: Cli) -> None:
    ran = cli("map", "matvec", "--size", "m=8,n=6", "--among", "50", "--emit", "cuda")
    assert ran.status == 0, ran.err
    assert "__global__" in ran.out
    assert "threads" in ran.err


def test_without_a_parallel_map_one_thread_does_it(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::summed", "--size", "n=12")
    assert ran.status == 0
    assert "no map runs in parallel" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dot",), "the size 'n' of its input 'x' has no value"),
        (("dot", "--size", "n=0"), "the size n is 0"),
        (("dot", "--size", "n=4,q=3"), "has no size 'q'"),
        (("dot", "--size", "n=9999999999"), "is not a size"),
        (("nothing",), "known are total, dot"),
        (("conv", "--layer", "conv9"), "known are conv1_1"),
        (("dot", "--layer", "conv1_1"), "--layer is for conv"),
        (("dot", "--size", "n=8", "--machine", "abacus"), "no machine called"),
        (("dot", "--size", "n=8", "--count", "--best"), "ask one"),
        (("dot", "--size", "n=8", "--count", "--emit", "c"), "--emit means nothing with --count"),
        (("dot", "--size", "n=8", "--sample", "2", "--among", "9"), "--among means nothing"),
    ],
)
def test_what_is_refused(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    ran = cli("map", *arguments)
    assert ran.status == 2
    assert said in ran.err


def test_errors_are_at_the_users_line(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::wrong", "--size", "n=8")
    assert ran.status == 2
    assert "own_maps.py:17" in ran.err
    split = cli("map", f"{own}::tiled", "--size", "n=12,m=5")
    assert split.status == 2
    assert "do not go together" in split.err
