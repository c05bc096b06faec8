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

twice_summed = al.program(
    "twice_summed",
    lambda x: al.let(
        al.to_global(
            al.join(
                al.map_(lambda r: al.reduce(lambda s, v: s + v, 0.0, r), al.split(m, x))
            )
        ),
        lambda y: al.reduce(lambda s, v: s + v, 0.0, y),
    ),
    x=array(f32, n),
)


def wrong():
    return al.program("wrong", lambda x: al.map_(lambda v: v + x, x), x=array(f32, n))


fives = al.program(
    "fives",
    lambda mine: al.map_(lambda r: al.map_(lambda v: v + 1, r), al.split(5, mine)),
    mine=array(f32, n),
)
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


def test_the_first_comes_soon(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::tiled", "--size", "n=12", "--first", "--json", "-")
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)
    assert 12 % record["tiles"]["m"] == 0


def test_counts(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::doubled", "--size", "n=12", "--count")
    assert ran.status == 0
    assert ran.out.startswith("5 mappings")


def test_fusion_rules_leave_more_or_less(cli: Cli) -> None:
    found = {}
    for rule in ("coded", "intended", "none"):
        ran = cli("map", "stencil-2d", "--size", "n=8,m=8", "--fusion", rule, "--count")
        found[rule] = int(ran.out.split()[0].replace(",", ""))
    assert found["coded"] <= found["intended"] < found["none"]


def test_the_best_is_written(cli: Cli) -> None:
    ran = cli("map", "matvec", "--size", "m=8,n=6", "--among", "50", "--emit", "cuda")
    assert ran.status == 0, ran.err
    assert "__global__" in ran.out
    assert "predicted" in ran.err


def test_without_a_parallel_map_one_thread_does_it(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::summed", "--size", "n=12")
    assert ran.status == 0
    assert "grid 1, block 1 thread; reductions of 12;" in ran.out


@pytest.mark.slow
def test_what_is_measured_is_kept(cli: Cli, own: str, tmp_path: Path) -> None:
    """The second time all samples come from the store."""
    asked = (
        "map", f"{own}::tiled", "--size", "n=12", "--tune", "--on", "c", "--candidates", "2",
        "--store", str(tmp_path / "kept.sqlite"), "--json", "-",
    )  # fmt: skip
    ran = cli(*asked)
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)
    assert record["tune"]["outcome"] == "found"
    assert len(record["tune"]["trials"]) == 2
    assert all(len(each["samples"]) > 2 for each in record["tune"]["trials"])
    assert {each["bytes"] for each in record["tune"]["front"]} == {0}
    assert record["kernels"]
    again = cli(*asked)
    assert "0 samples just now" in again.err
    assert json.loads(again.out) == [record]
    other = Path(own).read_text().replace("v + 1", "v * 3 + 1")
    Path(own).write_text(other)
    changed = cli(*asked)  # what was measured of another expression of this name is none of it
    assert changed.status == 0, changed.err
    assert "0 samples just now" not in changed.err


def test_memory_of_ones_own(cli: Cli, own: str) -> None:
    """A sum in two kernels: as many partial sums as there are pieces."""
    ran = cli("map", f"{own}::twice_summed", "--size", "n=12", "--memory", "8", "--sample", "3",
              "--json", "-")  # fmt: skip
    assert ran.status == 0, ran.err
    assert {12 // each["tiles"]["m"] for each in json.loads(ran.out)} <= {1, 2}
    none = cli("map", f"{own}::twice_summed", "--size", "n=12", "--memory", "0")
    assert none.status == 1
    assert "impossible" in none.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dot", "--size", "n=8", "--store", "x", "--no-store"), "exclude each other"),
        (("dot", "--size", "n=8", "--tune", "--best"), "give one of them"),
        (("dot",), "the size 'n' of its input 'x' has no value"),
        (("dot", "--size", "n=0"), "the size n is 0"),
        (("dot", "--size", "n=4,q=3"), "has no size 'q'"),
        (("dot", "--size", "n=99999999999"), "is not a size"),
        (("dot", "--size", "n=9999999999"), "sizes are from 1 to 2**31 - 1"),
        (("dot", "--size", "n=8,n=16"), "the size 'n' is given twice"),
        (("dot", "--size", "n=8", "--plain"), "'dot' is not rewritten"),
        (("matvec", "--size", "m=100000,n=100000"), "input 'a' has 10000000000 elements"),
        (("nothing",), "known are total, dot"),
        (("conv", "--layer", "conv9"), "nown are conv1_1"),
        (("dot", "--layer", "conv1_1"), "--layer is for conv"),
        (("dot", "--size", "n=8", "--machine", "abacus"), "no machine called"),
        (("dot", "--size", "n=8", "--count", "--best"), "give one of them"),
        (("dot", "--size", "n=8", "--first", "--sample", "2"), "give one of them"),
        (("dot", "--size", "n=8", "--first", "--among", "9"), "nothing with --first"),
        (("dot", "--size", "n=8", "--count", "--emit", "c"), "--emit means nothing with --count"),
        (("dot", "--size", "n=8", "--sample", "2", "--among", "9"), "--among means nothing"),
    ],
)
def test_what_is_refused(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    ran = cli("map", *arguments)
    assert ran.status == 2
    assert said in ran.err


def test_names_that_are_there_are_listed(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::nothing_like_it")
    assert ran.status == 2
    assert f"it has {own}::" in ran.err
    assert f"{own}::fives" in ran.err


def test_errors_are_at_the_users_line(cli: Cli, own: str) -> None:
    ran = cli("map", f"{own}::wrong", "--size", "n=8")
    assert ran.status == 2
    assert "own_maps.py:30" in ran.err
    split = cli("map", f"{own}::fives", "--size", "n=12")
    assert split.status == 2
    assert "do not go together" in split.err
    assert "own_maps.py:35" in split.err


@pytest.mark.parametrize("how", [("--sample", "1"), ("--tune", "--no-store", "--on", "c")])
def test_what_no_candidate_can_do_is_an_error(cli: Cli, tmp_path: Path, how: tuple[str]) -> None:
    """Nothing shows that a divisor is not zero."""
    file = tmp_path / "ratio.py"
    file.write_text(
        "from warploom.array import build as al\n"
        "from warploom.array.types import array\n"
        "from warploom.kernel.dtype import i32\n"
        "(n,) = al.sizes('n')\n"
        "f = lambda a: al.compute('/', a, a)\n"
        "p = al.program('p', lambda x: al.map_(f, x), x=array(i32, n))\n"
    )
    ran = cli("map", f"{file}::p", "--size", "n=8", *how)
    assert ran.status == 2
    assert "ratio.py:5" in ran.err
    assert "a divisor may be zero" in ran.err
    own = cli("map", f"{file}::p", "--size", "n=8", "--plain")
    assert (own.status, "--plain" in own.err) == (2, True)
