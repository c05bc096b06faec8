"""Structures and arrays: right on every device and size, coalesced, without spills or shuffles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalogue.agreement import DEVICES, check_agreement, check_registers, counted, labels
from tests.sampled import examples

from warploom.catalogue import Entry, find
from warploom.catalogue.structures import tuned
from warploom.errors import CheckError
from warploom.kernel.ir import Shuffle, walk
from warploom.search.outcome import Verdict
from warploom.sketch.synth.solve import synthesize

NAMES = ("aos-to-soa", "soa-to-aos", "aos-sum")
MEASURED = (2, 3, 4, 5, 6, 7, 8, 12, 16)
CASES = [(find(name), variant) for name in NAMES for variant in find(name).variants]
IDS = [f"{entry.name}-{labels([variant])[0]}" for entry, variant in CASES]
# One of each way to be built.
SAMPLED: list[tuple[str, dict[str, Any]]] = [
    ("aos-to-soa", {"fields": 6, "width": 1}),
    ("aos-to-soa", {"fields": 3, "pack": 4, "block": 64}),
    ("aos-to-soa", {"fields": 12, "order": "rcr", "width": 1}),
    ("soa-to-aos", {"fields": 5, "dtype": "int64", "pack": 2}),
    ("soa-to-aos", {"fields": 16, "order": "rcr"}),
    ("aos-to-soa", {"fields": 5, "strategy": "shared"}),
    ("soa-to-aos", {"fields": 2, "strategy": "shared"}),
    ("soa-to-aos", {"fields": 4, "strategy": "direct"}),
    ("aos-sum", {"fields": 3, "strategy": "shared"}),
    ("aos-sum", {"fields": 6}),
    ("aos-sum", {"fields": 5, "dtype": "int32", "block": 64}),
]


def sizes(entry: Entry, variant: dict[str, Any]) -> list[dict[str, int]]:
    return entry.sizes(**entry.settings(variant))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("entry", "variant"), CASES, ids=IDS)
def test_the_simulator_agrees_on_some_sizes(entry: Entry, variant: dict[str, Any]) -> None:
    assert len(sizes(entry, variant)) >= 20
    check_agreement(entry, variant, "simulator", sizes(entry, variant)[::9])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("device", ["c", "ptx"])
@pytest.mark.parametrize(("name", "variant"), SAMPLED, ids=[f"{n}-{v}" for n, v in SAMPLED])
def test_devices_agree_on_some_sizes(name: str, variant: dict[str, Any], device: str) -> None:
    entry = find(name)
    check_agreement(entry, variant, device, sizes(entry, variant)[::6])


@pytest.mark.parametrize(("name", "variant"), [("aos-to-soa", {"block": 32, "tiles": 1})])
def test_opencl_agrees_on_some_sizes(name: str, variant: dict[str, Any]) -> None:
    entry = find(name)
    check_agreement(entry, variant, "opencl", sizes(entry, variant)[::6])


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("entry", "variant"), CASES, ids=IDS)
def test_devices_agree_on_every_size(entry: Entry, variant: dict[str, Any], device: str) -> None:
    check_agreement(entry, variant, device, sizes(entry, variant))


@examples(8, least=3)
@given(
    name=st.sampled_from(NAMES),
    fields=st.integers(1, 40),
    order=st.sampled_from(["crc", "rcr"]),
    n=st.integers(1, 700),
)
def test_any_number_of_fields(name: str, fields: int, order: str, n: int) -> None:
    variant: dict[str, Any] = {"fields": fields, "block": 64}
    if name != "aos-sum":
        variant["order"] = order
    check_agreement(find(name), variant, "simulator", [{"n": n}])


@pytest.mark.sampled(9)
@pytest.mark.parametrize("order", ["crc", "rcr"])
@pytest.mark.parametrize("fields", MEASURED)
@pytest.mark.parametrize("name", ["aos-to-soa", "soa-to-aos"])
def test_whole_tiles_are_coalesced(name: str, fields: int, order: str) -> None:
    report, kernel = counted(find(name), {"n": 4096}, fields=fields, order=order)
    assert report.load_efficiency == report.store_efficiency == 1.0
    assert report.divergent_branches == report.bank_conflicts == 0
    if order == "rcr":
        assert not any(isinstance(stmt, Shuffle) for stmt in walk(kernel.body))


@pytest.mark.parametrize("name", ["aos-to-soa", "soa-to-aos"])
def test_packed_structures_are_coalesced(name: str) -> None:
    report, _ = counted(find(name), {"n": 4096}, fields=3, pack=4)
    assert report.efficiency == 1.0


@pytest.mark.parametrize("fields", [5, 8])
def test_arrays_that_begin_within_a_line_are_stored_by_lines(fields: int) -> None:
    """All but the ends; in registers every store touches a sector more than it fills."""
    size = {"n": 20001}
    through, _ = counted(find("aos-to-soa"), size, fields=fields, strategy="shared")
    across, _ = counted(find("aos-to-soa"), size, fields=fields, strategy="registers")
    assert through.store_efficiency > 0.93
    assert across.store_efficiency < 0.85


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "fields", [f if f in (3, 8, 16) else pytest.param(f, marks=pytest.mark.slow) for f in MEASURED]
)
def test_nothing_is_spilled(fields: int) -> None:
    for name in NAMES:
        sizes: tuple[dict[str, int] | None, ...] = (None, {"n": 4096}, {"n": 4097})
        chosen = [find(name).settings({"fields": fields}, size) for size in sizes]
        for each in {tuple(setting.items()) for setting in chosen}:
            check_registers(find(name).kernel(**dict(each)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aos-to-soa", "aos-sum"])
def test_no_setting_of_the_tune_space_spills(name: str) -> None:
    entry = find(name)
    for fields in MEASURED:
        for setting in entry.tune(entry.settings({"fields": fields})):
            check_registers(entry.kernel(fields=fields, **setting))


@pytest.mark.parametrize("fields", MEASURED)
def test_tune_spaces_are_small_and_have_both_orders(fields: int) -> None:
    found = tuned(fields)
    assert 5 <= len(found) <= 20
    assert {each["order"] for each in found} == {"crc", "rcr"}


def test_sums_need_an_exchange_only_between_accesses() -> None:
    """Four fields come in one access; six come in three, two summed before any exchange."""
    alone, _ = counted(find("aos-sum"), {"n": 1024}, fields=4, tiles=1)
    pairs, _ = counted(find("aos-sum"), {"n": 1024}, fields=6, tiles=1)
    assert (alone.shuffles, pairs.shuffles) == (0, 3 * 32)


def test_the_header_states_the_fill_and_its_verdict() -> None:
    doc = find("aos-to-soa").kernel(fields=5).doc
    assert "Verdict: proved" in doc
    assert "lane (x0 * 5 + x1) % 32" in doc
    assert "not covered" not in doc
    assert "not covered: rounding and overflow" in find("aos-sum").kernel(fields=5).doc


@pytest.mark.parametrize("name", NAMES)
def test_the_sketch_can_be_filled(name: str) -> None:
    program = find(name).program(fields=5)
    assert program is not None
    assert synthesize(program, mode="first").verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ({"fields": 0}, "0 fields"),
        ({"fields": 65}, "65 fields"),
        ({"block": 48}, "48 threads"),
        ({"block": 2048}, "2048 threads"),
        ({"dtype": "half"}, "half"),
        ({"order": "ccc"}, "ccc"),
        ({"width": 2}, "2 elements"),
        ({"pack": 3}, "3 structures"),
        ({"pack": 4, "dtype": "float64"}, "side by side"),
        ({"pack": 2, "order": "rcr"}, "one structure per lane"),
        ({"tiles": 100}, "100 tiles"),
        ({"tiles": -1}, "-1 tiles"),
        ({"fields": "3"}, "whole number"),
        ({"field": 3}, "no parameter"),
    ],
)
def test_bad_parameters_are_one_error(variant: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        find("aos-to-soa").kernel(**variant)
