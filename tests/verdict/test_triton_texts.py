"""PTX that Triton made is equal to its reference, also where lanes store what others store."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.common.verdict.triton_texts import judged, texts

SOME = [
    pytest.param(path, id=path.stem, marks=pytest.mark.slow if "attention" in path.stem else ())
    for path in texts()
]


# What is not followed: the largest of a warp, random numbers that are compared, and masks of -1e30,
# by which a result is another one over the reals.
UNKNOWN = {
    ("softmax", "100"): "redux.sync.max.f32", ("dropout", ""): "a comparison of floats",
    ("attention", ""): "over the reals",
}  # fmt: skip


def test_there_are_texts_of_all_kinds() -> None:
    assert len(SOME) == 38


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", SOME)
def test_a_text_of_triton_is_equal_or_unknown_with_the_reason(path: Path) -> None:
    found = judged(path, 3)
    name, arch = path.stem.split("_")[1], path.stem.rpartition("_")[2]
    why = UNKNOWN.get((name, arch)) or UNKNOWN.get((name, ""))
    if why is not None:
        assert found.verdict == "unknown", found
        assert why in found.shapes[0].reasons[0].message
        return
    assert found.verdict == "equal", found
    assert not found.shapes[0].reasons
