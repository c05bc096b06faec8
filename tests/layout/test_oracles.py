"""Our algebra against two others: equal functions, or both refuse; each known difference by name.

`tensor_layouts` comes with the dev extra; `pycute` is in the wheel of nvidia-cutlass, of which only
that folder is needed on the path.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from bench.common.layout.oracle import ALWAYS, KNOWN, OPERATIONS, differences

from warploom.layout.language.evaluate import extended
from warploom.layout.language.ir import Swizzle


def oracle(name: str) -> ModuleType:
    return pytest.importorskip(name, reason=f"{name} is not installed: nothing to compare with")


def compare(name: str, count: int) -> None:
    oracle(name)
    for operation in OPERATIONS:
        seen = differences(name, operation, count, seed=7)
        assert set(seen) <= ALWAYS | KNOWN[operation], (operation, seen)
        assert seen["equal"] + seen["equal on the image"] > count / 3, (operation, seen)


def test_some_layouts_against_tensor_layouts() -> None:
    compare("tensor_layouts", 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pycute", "tensor_layouts"])
def test_ten_thousand_layouts(name: str) -> None:
    compare(name, 10_000)


@pytest.mark.parametrize("name", ["pycute.swizzle", "tensor_layouts"])
def test_swizzles(name: str) -> None:
    module = oracle(name)
    numbers = np.arange(512)
    for bits in range(4):
        for base in range(4):
            for shift in [*range(bits, 5), *range(-4, -bits + 1)]:
                theirs = module.Swizzle(bits, base, shift)
                if bits and shift:
                    assert [theirs(int(x)) for x in numbers] == extended(
                        Swizzle(bits, base, shift), numbers
                    ).tolist()
