"""PTX that Triton made is equal to its reference, also where lanes store what others store."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.common.verdict.triton_texts import judged, texts

SOME = [pytest.param(path, id=path.stem) for path in texts()]


def test_there_are_texts_of_all_kinds() -> None:
    assert len(SOME) >= 20


# What is not followed yet: pairs of f32 in one register, and the largest of three.
UNKNOWN = {"layernorm": "add.f32x2", "softmax": "max.f32"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", SOME)
def test_a_text_of_triton_is_equal_or_unknown_with_the_reason(path: Path) -> None:
    found = judged(path, 3)
    name = path.stem.split("_")[1]
    if path.stem.endswith("sm_100") and name in UNKNOWN:
        assert found.verdict == "unknown"
        assert UNKNOWN[name] in found.shapes[0].reasons[0].message
        return
    assert found.verdict == "equal", found
    assert not found.shapes[0].reasons
