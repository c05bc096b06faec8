"""Polynomial products over GF(2): all forms and degrees, their fill, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.catalogue.agreement import (
    DEVICES,
    check_agreement,
    check_registers,
    counted,
    labels,
)

from warploom.catalogue import find
from warploom.catalogue.pieces import piece_sizes
from warploom.errors import CheckError

FORMS = [find(f"product-{form}") for form in ("registers", "shared", "pieces")]
CASES = [(entry, variant) for entry in FORMS for variant in entry.variants]
NAMES = [f"{e.name}-{name}" for e, name in zip([e for e, _ in CASES],
         labels(v for _, v in CASES), strict=True)]  # fmt: skip
DEGREES = range(32, 385, 32)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("device", ["c", "ptx"])
@pytest.mark.parametrize(("entry", "variant"), CASES, ids=NAMES)
def test_every_variant_computes_its_specification(entry: Any, variant: Any, device: str) -> None:
    check_agreement(entry, variant, device, entry.sizes()[1::12])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("entry", FORMS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("degree", [32, 64])
def test_the_simulator_computes_the_specification(entry: Any, degree: int) -> None:
    check_agreement(entry, {"degree": degree}, "simulator", [{"batch": 1}, {"batch": 9}])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("entry", FORMS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("degree", [32, 96, 224, 384])
def test_some_degrees(entry: Any, degree: int) -> None:
    check_agreement(entry, {"degree": degree}, "c", [{"batch": 5}])


# The form in registers is one long text: PoCL compiles it for a quarter of a minute.
@pytest.mark.parametrize(
    "entry",
    [pytest.param(each, marks=[pytest.mark.slow] if each is FORMS[0] else []) for each in FORMS],
    ids=lambda entry: entry.name,
)
def test_opencl_computes_the_specification(entry: Any) -> None:
    check_agreement(entry, {"degree": 32, "block": 32}, "opencl", entry.sizes()[::6])


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("entry", "variant"), CASES, ids=NAMES)
def test_every_variant_on_every_size(entry: Any, variant: Any, device: str) -> None:
    sizes = entry.sizes()
    assert len(sizes) >= 20
    check_agreement(entry, variant, device, sizes)


@pytest.mark.slow
@pytest.mark.parametrize("degree", DEGREES)
def test_every_piece_of_every_degree(degree: int) -> None:
    for piece in piece_sizes(degree):
        for finish, operand in (("store", "shuffle"), ("keep", "load")):
            variant = {"degree": degree, "piece": piece, "finish": finish, "operand": operand}
            check_agreement(FORMS[2], variant, "c", [{"batch": 7}])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", FORMS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("degree", [32, 64, 352, 384])
def test_nothing_leaves_its_registers(entry: Any, degree: int) -> None:
    check_registers(entry.kernel(degree=degree))


@pytest.mark.slow
@pytest.mark.parametrize("entry", FORMS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("degree", DEGREES)
def test_every_degree(entry: Any, degree: int) -> None:
    check_registers(entry.kernel(degree=degree))
    check_agreement(entry, {"degree": degree}, "ptx", [{"batch": 5}])


@pytest.mark.parametrize(("degree", "additions"), [(32, 2), (64, 6), (128, 20)])
def test_the_number_of_additions(degree: int, additions: int) -> None:
    """P·(P + 1) for P words a lane, where 2·P² is the obvious number."""
    report, _ = counted(FORMS[1], {"batch": 1}, degree=degree, block=32)
    assert report.operations == 32 * additions * 2  # an AND and an XOR each


def test_loads_and_stores_are_coalesced() -> None:
    for entry in FORMS[:2]:
        report, _ = counted(entry, {"batch": 8}, degree=64)
        assert report.efficiency == 1.0
    # A piece of 8 words is two accesses of half a line of sectors each.
    report, _ = counted(FORMS[2], {"batch": 8}, degree=64, operand="shuffle", finish="keep")
    assert report.efficiency == 0.5
    report, _ = counted(
        FORMS[2], {"batch": 8}, degree=128, operand="shuffle", finish="keep", piece=4
    )
    assert report.efficiency == 1.0


def test_a_product_by_one_and_by_x() -> None:
    entry = FORMS[2]
    kernel = entry.kernel(degree=96)
    case = entry.case(kernel, {"batch": 1}, degree=96)
    values = dict(zip("ab", (np.asarray(each) for each in case.arguments[1:3]), strict=True))
    for power in (0, 1, 95):
        b = np.zeros(96, np.uint32)
        b[power] = 0xFFFFFFFF
        wanted = entry.specification({"batch": 1, "a": values["a"], "b": b}, degree=96)["c"]
        assert np.array_equal(wanted[power : power + 96], values["a"])


@pytest.mark.parametrize(
    ("entry", "wrong", "said"),
    [
        (0, {"degree": 33}, "33 coefficients"),
        (1, {"degree": 416}, "up to 384"),
        (2, {"degree": 0}, "0 coefficients"),
        (2, {"degree": 64, "piece": 5}, "pieces of 5"),
        (2, {"operand": "guess"}, "operand 'guess'"),
        (0, {"block": 33}, "block of 33"),
        (1, {"degree": 384, "block": 1024}, "shared memory"),
    ],
)
def test_wrong_parameters(entry: int, wrong: Any, said: str) -> None:
    with pytest.raises(CheckError) as caught:
        FORMS[entry].kernel(**wrong)
    assert said in str(caught.value)
