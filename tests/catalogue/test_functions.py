"""Device functions by name: right as kernels, and as headers that a kernel includes and calls."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.tools import require

from warploom import device_function
from warploom.catalogue import function_entries
from warploom.catalogue.entry import Entry, Parameter
from warploom.catalogue.scan import rounds_of
from warploom.catalogue.scratch import place_of, wavefronts
from warploom.catalogue.verify import mutation, verify
from warploom.errors import CheckError, ParseError
from warploom.pipeline.header import named_header

ALL = [(entry, each) for entry in function_entries().values() for each in entry.variants]
QUICK: tuple[tuple[str, dict[str, Parameter]], ...] = (
    ("blocked-to-striped", {"registers": 3}),
    ("striped-to-blocked", {"registers": 4, "through": "shared"}),
    ("striped-to-blocked", {"registers": 2, "bytes": 16}),
    ("transpose", {"rows": 12, "columns": 4, "bytes": 2}),
    ("load-structures", {"fields": 6}),
    ("store-structures", {"fields": 5}),
    ("permute-tile", {}),
    ("permute-tile", {"bytes": 1}),
    ("inclusive-scan", {}),
    ("exclusive-scan", {"dtype": "int64", "operator": "*", "lanes": 12, "registers": 2}),
)


def name_of(case: object) -> str:
    match case:
        case Entry(name=name):
            return name
        case dict():
            return " ".join(f"{key}={value}" for key, value in case.items())
    return str(case)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "given"), QUICK, ids=name_of)
@pytest.mark.parametrize("device", ["simulator", "c", "ptx"])
def test_headers_are_right(name: str, given: dict[str, Parameter], device: str) -> None:
    require(device)
    header = device_function(name, **given)  # type: ignore[arg-type]
    entry = header.called.entry
    sizes = entry.sizes(**header.called.settings)
    some = [*sizes[::3], sizes[-1]]
    if device == "simulator":
        found = verify(entry, dict(header.called.settings), "simulator", some)
    else:
        found = header.verify(device, some)  # type: ignore[arg-type]
    assert [each for each in found if each.wrong] == []


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "given"), ALL, ids=name_of)
def test_every_variant_is_right_everywhere(entry: Entry, given: dict[str, Parameter]) -> None:
    header = named_header(entry, given)
    for device in ("c", "ptx", "opencl"):
        require(device)
        assert [each for each in header.verify(device) if each.wrong] == []
    assert [each for each in verify(entry, given) if each.wrong] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["store-structures", "permute-tile", "inclusive-scan"])
def test_a_wrong_index_is_noticed(name: str) -> None:
    entry = function_entries()[name]
    assert mutation(entry, {}, most=5).survivors == ()


def test_headers_say_fill_verdict_and_what_they_cover() -> None:
    moved = device_function("load-structures", fields=3).text("cuda")
    assert "(x0 * 3 + x1) % 32" in moved
    assert "Verdict: proved" in moved
    assert "1, 2, 4, 8 or 16 bytes" in moved
    assert "n is at most 715827818" in moved
    assert "__shared__" not in moved
    summed = device_function("inclusive-scan", dtype="float32").text("opencl")
    assert "reassociated: +" in summed


def test_the_rounds_of_a_scan_are_those_of_the_fill() -> None:
    rounds, doc = rounds_of(32, "+")
    assert sorted(each.distance for each in rounds) == [1, 2, 4, 8, 16]
    assert "Verdict: proved" in doc


@pytest.mark.parametrize("registers", range(1, 17))
def test_items_in_shared_memory_lie_apart(registers: int) -> None:
    place, room = place_of(registers)
    assert room <= 34 * registers
    assert wavefronts(place, registers) == 2 * registers  # one for each access, no bank twice
    text = device_function("striped-to-blocked", registers=registers, through="shared").text()
    assert text.count("room[") == 2
    assert not re.search(r"room\[.*\) / \d", text)  # but by its lane alone, or its register


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(ParseError, match="no device function 'exchange'"):
        device_function("exchange")
    with pytest.raises(ParseError) as found:
        device_function("load-structure")
    assert "load-structures" in found.value.advice
    for name, wrong in (
        ("load-structures", {"fields": 0}),
        ("load-structures", {"fields": 65}),
        ("load-structures", {"bytes": 3}),
        ("blocked-to-striped", {"lanes": 33}),
        ("blocked-to-striped", {"through": "memory"}),
        ("blocked-to-striped", {"lanes": 16, "through": "shared"}),
        ("transpose", {"rows": 40}),
        ("inclusive-scan", {"operator": "-"}),
    ):
        with pytest.raises(CheckError):
            device_function(name, **wrong)


def test_the_specification_moves_what_the_words_say() -> None:
    """Lane i's register j of a transposed matrix, told apart from what the header does."""
    entry = function_entries()["transpose"]
    x = np.arange(6, dtype=np.uint32)
    given = entry.settings({"rows": 3, "columns": 2})
    (y,) = entry.specification({"count": 1, "x": x}, **given).values()
    assert y.tolist() == [0, 2, 4, 1, 3, 5]
