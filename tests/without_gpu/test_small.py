"""Triton kernels with fewer elements than threads are not accused, and those with races still are.

The texts in `small/` are what Triton 3.9 makes of `triton_small.py`; `make live` compiles every
kernel at every shape.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.without_gpu.small_cases import CASES, RACY, ROWS, SHAPES, SMALL, Kept, close

import warploom
from warploom import ptx
from warploom.errors import KernelError
from warploom.machine.report import Report

FOLDER = Path(__file__).parent / "small"
RIGHT = [one for one in SMALL if one.name in CASES]
WRONG = [one for one in SMALL if one.name in RACY]


def launched(one: Kept, **options: Any) -> tuple[Report, dict[str, Any], dict[str, Any]]:
    text = (FOLDER / f"{one.stem}.ptx").read_text()
    record = json.loads(text.partition("\n")[0][2:])
    args, wanted = one.made()
    given = [args[name] for name in record["args"]] + [None] * record["scratch"]
    more: dict[str, Any] = {"races": "all", "benign": True} | options
    report = ptx.load(text, one.stem).kernel().launch(
        ROWS, record["threads"], given, shared_bytes=record["shared"],
        **more,
    )  # fmt: skip
    return report, args, wanted


def test_there_are_enough() -> None:
    assert len(CASES) >= 30
    assert len(RACY) == 10
    assert {one.name for one in SMALL} == {*CASES, *RACY}


@pytest.mark.sampled(18)
@pytest.mark.parametrize("one", RIGHT, ids=lambda one: one.stem)
def test_is_right_and_not_accused(one: Kept) -> None:
    report, args, wanted = launched(one)
    assert not report.races
    for name, values in wanted.items():
        close(args[name], values)


@pytest.mark.parametrize("one", WRONG, ids=lambda one: one.stem)
def test_is_racy_and_found(one: Kept) -> None:
    report, _, _ = launched(one)
    assert report.races
    with pytest.raises(KernelError, match="data race"):
        launched(one, races=True)


@pytest.mark.parametrize("one", RIGHT[:9:8], ids=lambda one: one.stem)
def test_the_first_race_is_none_either(one: Kept) -> None:
    """Where a launch ends at its first race, and where it is compiled, if it can be."""
    launched(one, races=True)
    report, args, wanted = launched(one, engine="c")
    assert not report.races
    for name, values in wanted.items():
        close(args[name], values)


@pytest.mark.parametrize("one", WRONG[:1], ids=lambda one: one.stem)
def test_both_engines_find_the_same(one: Kept) -> None:
    found = [{race.pair for race in launched(one, engine=e)[0].races} for e in ("numpy", "c")]
    assert found[0] == found[1] != set()


def test_without_benign_all_of_it_is_told() -> None:
    dead, sums = Kept("scale", 16, 1), Kept("squares", *SHAPES[[*CASES].index("squares") % 9])
    assert launched(dead, benign=False)[0].races
    assert launched(sums, benign=False)[0].races
    report, _, _ = launched(sums)
    assert [re.match(r"st\.shared", _line(race)) is not None for race in report.rounding] == [True]


def _line(race: Any) -> str:
    span = race.second.label
    return str(span.source.line(span.line)).strip()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [*CASES, *RACY])
def test_live(name: str, shape: tuple[int, int]) -> None:
    pytest.importorskip("triton")
    from tests.without_gpu import triton_small  # noqa: PLC0415 - needs Triton

    one = Kept(name, *shape)
    args, wanted = one.made()
    emulated = warploom.emulate(getattr(triton_small, name))
    settings = {"BLOCK": one.block, "num_warps": one.warps}
    if name in RACY:
        with pytest.raises(KernelError, match=r"triton_small\.py:\d+:\d+: data race|data races"):
            emulated[(ROWS,)](**args, **settings)
        return
    emulated[(ROWS,)](**args, **settings)
    for each, values in wanted.items():
        close(args[each], values)
