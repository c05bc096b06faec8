"""`warploom show`: lines, pages and figures."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli

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
