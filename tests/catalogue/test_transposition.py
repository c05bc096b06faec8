"""Batches of small matrices: right for every shape and device."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalogue.agreement import DEVICES, check_agreement, check_registers, counted, labels
from tests.sampled import examples

from warploom.catalogue import find
from warploom.errors import CheckError

ENTRY = find("transposition")


def sizes(variant: dict[str, Any]) -> list[dict[str, int]]:
    return ENTRY.sizes(**ENTRY.settings(variant))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("variant", ENTRY.variants, ids=labels(ENTRY.variants))
def test_the_simulator_agrees_on_some_sizes(variant: dict[str, Any]) -> None:
    assert len(sizes(variant)) >= 20
    check_agreement(ENTRY, variant, "simulator", sizes(variant)[::9])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("device", ["c", "ptx"])
@pytest.mark.parametrize("variant", [{"m": 5, "n": 7}, {"m": 12, "n": 8, "order": "rcr"}])
def test_devices_agree_on_some_sizes(variant: dict[str, Any], device: str) -> None:
    check_agreement(ENTRY, variant, device, sizes(variant)[::4])


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", ENTRY.variants, ids=labels(ENTRY.variants))
def test_devices_agree_on_every_size(variant: dict[str, Any], device: str) -> None:
    check_agreement(ENTRY, variant, device, sizes(variant))


@examples(8, least=3)
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 32),
    order=st.sampled_from(["crc", "rcr"]),
    count=st.integers(1, 60),
)
def test_any_shape(m: int, n: int, order: str, count: int) -> None:
    variant: dict[str, Any] = {"m": m, "n": n, "order": order, "block": 64}
    check_agreement(ENTRY, variant, "simulator", [{"count": count}])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", ["crc", "rcr"])
@pytest.mark.parametrize("n", [3, 8, 12, 32])
def test_whole_warps_are_coalesced(n: int, order: str) -> None:
    report, kernel = counted(ENTRY, {"count": 64}, m=32, n=n, order=order)
    assert report.efficiency == 1.0
    check_registers(kernel)


@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (33, 33), (65, 2), (2, 65)])
def test_matrices_that_do_not_fit_are_one_error(m: int, n: int) -> None:
    with pytest.raises(CheckError, match="matrices of"):
        ENTRY.kernel(m=m, n=n)
