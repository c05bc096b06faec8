"""The museum of public faults: kernels, record and page agree, and faults are named."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from bench.common.ptx.museum import Exhibit, exhibits, look, named, read
from bench.common.ptx.museum_page import PAGE, page
from bench.harness import RESULTS
from tests.tools import require

RECORD: dict[str, Any] = json.loads((RESULTS / "museum.json").read_text())
NAMES = [each.name for each in exhibits()]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_named_and_its_mend_is_not_accused(name: str) -> None:
    require("ptx")
    exhibit, row = read(name), RECORD["rows"][name]
    before = look(name, mended=False)
    assert named(exhibit, before), before
    assert (before.kind, sorted(before.lines)) == (row["before"]["kind"], row["before"]["lines"])
    after = look(name, mended=True)
    assert (after.kind, after.proved) == ("", exhibit.after)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_order_of_lanes_accuses_a_mended_kernel(name: str) -> None:
    require("ptx")
    for seed in range(10, 15):
        assert not look(name, mended=True, schedule=seed).kind


def test_the_record_has_every_exhibit() -> None:
    assert list(RECORD["rows"]) == NAMES
    assert RECORD["faults"] == RECORD["named"] == len(NAMES) >= 30
    assert not RECORD["accused"]


def test_the_page_is_made_of_exhibits_and_record() -> None:
    assert PAGE.read_text() == page(RECORD), "run python -m bench.ptx.museum"


@pytest.mark.parametrize("name", NAMES)
def test_an_exhibit_says_where_it_comes_from(name: str) -> None:
    """Its number is that of the thread, something is mended, and a line is expected."""
    exhibit = read(name)
    number = re.search(r"#(\d+):", exhibit.title)
    assert number is not None
    assert re.fullmatch(
        rf"https://github.com/[\w.-]+/[\w.-]+/(issues|pull)/{number[1]}", exhibit.link
    )
    assert _differs(exhibit)
    assert exhibit.marked


def _differs(exhibit: Exhibit) -> bool:
    before, after = exhibit.text(mended=False), exhibit.text(mended=True)
    return before != after and before.count("\n") == after.count("\n")
