from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from warploom.bench import synth
from warploom.bench.measure import Request, apart, measure
from warploom.bench.published import named, published, published_sketch
from warploom.errors import CheckError


def test_every_row_of_the_published_table_is_a_sketch() -> None:
    assert len(published()) == 77
    for name in published():
        assert named(name) is not None
        assert "goal:" in published_sketch(name)
    row = named("trove-8x3")
    assert row is not None
    assert row({}).holes
    with pytest.raises(CheckError, match="no sizes to set"):
        row({"columns": 3})


def test_a_measurement_is_the_same_in_a_process_of_its_own() -> None:
    here, there = measure(Request("trove-8x3")), apart(Request("trove-8x3"))
    assert here["solutions"] == there["solutions"] == 2
    assert here["states"] == there["states"]
    assert apart(Request("nowhere"))["error"] == "no sketch is called 'nowhere'"
    assert "no answer" in apart(Request("trove-8x3"), seconds=0.01)["error"]


def test_what_is_measured() -> None:
    assert len(synth.rows()) == 77
    assert 8 <= len(synth.rows(quick=True)) <= 20
    assert [r.name for r in synth.rows("^trove")] == ["trove-8x3"]
    labels = [r.label for r in synth.limits()]
    assert len(labels) == 19
    assert "transposition columns=16 level=3" in labels
    assert "product-shared level=3" in labels
    ways = [way.label for way, _ in synth.ablations(1.0, "8x3")]
    assert ways == ["default engine", "pairs", "single locations", "fuel 1", "fuel 4", "fuel 16"]


def test_lines_of_the_table() -> None:
    record = measure(Request("trove-8x3"))
    line = synth.cells(record, published()["trove-8x3"])
    assert len(line) == len(synth.HEADER)
    assert line[:3] == ("trove-8x3", "2", "2")
    lines = synth.laid_out([synth.HEADER, line, ("broken", "out of memory")])
    assert len(lines[0]) == len(lines[1])
    assert lines[2].split(maxsplit=1) == ["broken", "out of memory"]
    told = synth.summary([record, {"name": "broken", "error": "out of memory"}])
    assert told[0].startswith("1 of 2 answered")
    assert told[1] == "solution counts equal to the published ones: 1 of 1"
    wrong = {**record, "solutions": 3}
    assert synth.summary([wrong])[2] == "  trove-8x3 has 3: unexplained"
    assert synth.summary([])[0] == "0 of 0 answered"
    assert "sets" in synth.phase_lines([record])[0]


def test_the_command_prints_and_writes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    ran = cli("bench", "synth", "--match", "trove-8x3|universe", "--json", str(file))
    assert ran.status == 0
    assert re.search(r"^trove-8x3 +2 +2 +\d+ +198 ", ran.out, re.MULTILINE)
    assert "factor at most 1.0" in ran.out
    assert [r["solutions"] for r in json.loads(file.read_text())] == [2, 1]
    assert cli("bench", "--match", "(").status == 2


def test_the_page_of_results_says_what_the_record_holds() -> None:
    root = Path(__file__).parents[2]
    records = json.loads((root / "bench" / "results" / "synth.json").read_text())
    page, known = (root / "docs" / "results.md").read_text(), published()
    for ours in (False, True):
        rows = [each for each in records if (each["name"] not in known) == ours]
        assert synth.summary(rows)[0] in page
