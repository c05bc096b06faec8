"""`warploom show`: lines, pages and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli

from warploom.cli.show import MOST_SAMPLES

SUMS = "examples/sketches/sums.swflow"
IMPOSSIBLE = """x: [12] = range(0, 12)
regs: [4,3] = load_rep(x)
s: [4,3] = ?row_xforms(regs)
goal: [4,3] trove
"""


def test_lines_page_and_figures(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "sums.html"
    ran = cli("show", SUMS, "-o", str(page), "--json", str(tmp_path / "r.json"))
    assert ran.status == 0
    assert "lane 1" in ran.out
    assert page.read_text().startswith("<!doctype html>")
    (record,) = json.loads((tmp_path / "r.json").read_text())
    assert record["facts"]["verdict"] == "proved"
    assert record["text"] == ran.out.splitlines()
    assert cli("show", SUMS, "--no-code", "-o", str(tmp_path / "s.svg")).status == 0
    assert (tmp_path / "s.svg").read_text().startswith("<svg")


def test_impossible(cli: Cli, tmp_path: Path) -> None:
    sketch = tmp_path / "none.swflow"
    sketch.write_text(IMPOSSIBLE)
    ran = cli("show", str(sketch), "-o", str(tmp_path / "none.html"))
    assert ran.status == 1
    assert "impossible" in ran.out
    assert 'class="wrong"' in (tmp_path / "none.html").read_text()


def test_bad_input(cli: Cli, tmp_path: Path) -> None:
    assert cli("show", "nothing-of-that-name").status == 2
    ran = cli("show", SUMS, "--no-code", "-o", str(tmp_path / "no" / "page.html"))
    assert ran.status == 2
    assert "cannot write" in ran.err


def test_a_kernel_without_a_sketch_is_drawn_on_the_simulator(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "permute.html"
    ran = cli("show", "permute", "--size", "axes=2,0,1,dtype=float64", "-o", str(page))
    assert ran.status == 0
    assert "permute_201: result as specified" in ran.out
    assert "stores to memory: 4 requests, 0 passes lost" in ran.out
    assert page.read_text().startswith("<!doctype html>")
    assert "of the form K=V" in cli("show", "permute", "--size", "0").err


RACE = "examples/ptx/race.ptx"
ARGUMENTS = ("--block", "64", "--arg", "f32[64]=range", "--arg", "f32[64]=zeros")


def test_ptx_with_a_race(cli: Cli, tmp_path: Path) -> None:
    ran = cli("show", RACE, *ARGUMENTS, "-o", str(tmp_path / "race.html"))
    assert ran.status == 1
    assert "race.ptx:31" in ran.out
    assert 'class="site raced"' in (tmp_path / "race.html").read_text()


def test_a_search_that_was_kept(cli: Cli, tmp_path: Path) -> None:
    samples = [[0.1, "tree", 3, 0, None, {}], [0.2, "tree", 9, 1, 4.5, {"bound": 2}]]
    record = {"name": "axpy", "history": {"unit": "ns", "bound": 2.0, "samples": samples}}
    (tmp_path / "kept.json").write_text(json.dumps([record]))
    ran = cli("show", str(tmp_path / "kept.json"), "-o", str(tmp_path / "search.html"))
    assert ran.status == 0
    assert "4.5 ns" in ran.out
    assert "axpy: 1 time a new best" in ran.out
    assert "1 looked at, 9 states visited; dropped: 2 by bound" in ran.out
    (tmp_path / "other.json").write_text("[{}]")
    assert cli("show", str(tmp_path / "other.json")).status == 2
    for text in ("{", "[" * 200_000):
        (tmp_path / "none.json").write_text(text)
        assert "cannot read" in cli("show", str(tmp_path / "none.json")).err


@pytest.mark.parametrize(
    "sample",
    [
        [0.1, "tree", 3, 0, None, {"bound": "many"}],
        [0.1, "tree", 3, 0, None, {"bound": None}],
        [0.1, "tree", 3, 0, None, {"bound": float("inf")}],
        [0.1, "tree", 10**400, 0, None, {}],
        [10**400, "tree", 3, 0, None, {}],
        [0.1, "tree", 3, 0, float("nan"), {}],
        [-5, "tree", 3, 0, None, {}],
        [0.1, "tree"],
    ],
    ids=lambda sample: f"{sample}"[:40],
)
def test_a_history_that_is_none_is_one_error(cli: Cli, tmp_path: Path, sample: list[Any]) -> None:
    file = tmp_path / "kept.json"
    file.write_text(json.dumps([{"history": {"unit": "ns", "bound": None, "samples": [sample]}}]))
    ran = cli("show", str(file), "-o", str(tmp_path / "page.html"))
    assert (ran.status, "internal error" in ran.err) == (2, False)
    assert "a search's history" in ran.err
    assert not (tmp_path / "page.html").exists()


def test_a_history_without_end_is_not_drawn(cli: Cli, tmp_path: Path) -> None:
    file, samples = tmp_path / "kept.json", [[0.1, "tree", 3, 0, None, {}]] * (MOST_SAMPLES + 1)
    file.write_text(json.dumps([{"history": {"unit": "ns", "bound": None, "samples": samples}}]))
    assert cli("show", str(file)).status == 2


def test_a_fill_that_is_not_there(cli: Cli) -> None:
    assert "no fill 7" in cli("show", SUMS, "--fill", "7").err


def test_a_kernel_of_the_catalogue(cli: Cli) -> None:
    ran = cli("show", "aos-to-soa", "--as", "kernel", "--size", "fields=4,strategy=shared")
    assert ran.status == 0
    assert "result as specified" in ran.out
    assert "bank conflicts" in ran.out


def test_a_result_that_was_kept_is_verified_again(cli: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert cli("synth", SUMS, "--json", str(kept)).status == 0
    ran = cli("show", str(kept), "--no-code")
    assert ran.status == 0
    assert "proved" in ran.out
    assert cli("show", str(kept), "--fill", "9").status == 2
    (record,) = json.loads(kept.read_text())
    record["choices"][0]["s"], record["choices"][0]["t"] = ({"family": "none"},) * 2
    kept.write_text(json.dumps([record]))
    assert cli("show", str(kept), "--no-code").status == 2
    record["sketch"] = record["sketch"].replace("trove_sum{n=3}", "sum_of_nothing")
    kept.write_text(json.dumps([record]))
    assert cli("show", str(kept), "--no-code").status == 2
