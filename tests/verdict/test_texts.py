"""Kernels that were not written for the judge: of the catalogue, of CUB, a matmul of Hopper."""

from __future__ import annotations

from typing import Any

import pytest
from bench.common.verdict import catalogue_kernels, cub_texts, hopper_matmul
from tests.tools import require

UNKNOWN = {
    "warp_sort": "a comparison of floats", "block_merge_sort": "a comparison of floats",
    "block_radix_sort": "of a float's bits",
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "kind"), cub_texts.NAMES)
def test_a_collective_of_cub_is_equal_or_compares_floats(name: str, kind: str) -> None:
    found = cub_texts.judged(name, kind, 3)
    if kind == "float" and name in UNKNOWN:
        assert found.verdict == "unknown"
        assert UNKNOWN[name] in found.shapes[0].reasons[0].message
        return
    assert found.verdict == "equal", found


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(*each, id=catalogue_kernels.title(*each))
        for each in catalogue_kernels.settings()
    ],
)
def test_a_kernel_of_the_catalogue_is_equal(name: str, variant: dict[str, Any]) -> None:
    require("ptx")
    found = catalogue_kernels.judged(name, variant, 3, 120)
    assert found.verdict == "equal", found


def test_floats_that_are_joined_of_halves_are_followed() -> None:
    """Doubles that are shuffled are put together by `bfi`."""
    require("ptx")
    assert catalogue_kernels.judged("aos-sum", {"dtype": "float64"}, 3).verdict == "equal"


@pytest.mark.slow
@pytest.mark.parametrize("name", hopper_matmul.CASES)
def test_a_matmul_of_hopper_is_equal_unless_its_swizzles_differ(name: str) -> None:
    found = hopper_matmul.judged(name, 3, 300)
    assert found.verdict == ("equal" if name == "right" else "different"), found
    assert name == "right" or found.counterexample is not None


def test_each_wrong_swizzle_is_in_the_text() -> None:
    texts = {name: text for name, (text, swizzle) in hopper_matmul.CASES.items() if swizzle}
    assert len({*texts.values()}) == len(texts) == 5
