"""Every row of the published table has the published number of solutions, with proof."""

from __future__ import annotations

import pytest

from warploom.bench.published import published, published_sketch
from warploom.search.outcome import Verdict
from warploom.sketch.front import load_text
from warploom.sketch.synth.solve import synthesize

# Where the published tool is unsound (blocks that read outer variables) or gave up.
OWN_ANSWERS = {
    "hvx_conv/6-regs-hvx-conv-arith-blocks": 4,
    "swinv_like_big/l2/2d-stencil-9": 1,
}
# Answered by no one before; the full acceptance runs measure it.
SHARED = "mult-64-with-16-shared"

ROWS = [name for name in published() if SHARED not in name]

# The reference pruner is for small problems.
SMALL = [
    "hvx_conv/6-regs-hvx-conv-arith-blocks",
    "swinv_like/l1/2d-stencil-3",
    "swinv_like/l1/mult-32-with-4",
    "swinv_like/l1/trove-cr_sum-1",
    "swinv_like/l1/trove-rcr-1",
    "swinv_like/l3/trove-crc-1",
    "trove-8x3",
    "universe-soundness-test",
    "useless-var-test",
]


def wanted(name: str) -> int:
    row = published()[name]
    count = OWN_ANSWERS.get(name, row.solutions)
    assert count is not None
    return count


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ROWS)
def test_default_engine(name: str) -> None:
    result = synthesize(load_text(published_sketch(name), name))
    assert result.fills.count == len(result.fills) == wanted(name)
    assert result.complete
    assert all(v.verdict is Verdict.PROVED for v in result.verdicts)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_reference_pruner(name: str, single: bool) -> None:
    program = load_text(published_sketch(name), name)
    result = synthesize(program, engine="pairs", single=single)
    assert result.fills.choices.tolist() == synthesize(program).fills.choices.tolist()
    assert result.fills.count == wanted(name)
    assert result.complete


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "hvx_conv/6-regs-hvx-conv-arith",
        "swinv_like/l1/1d-conv",
        "swinv_like/l1/2d-stencil-5",
        "swinv_like/l1/trove-crc-3",
        "swinv_like/l1/trove-rcr-2",
        "swinv_like/l3/trove-cr_sum-3",
        "swinv_like/l3/trove-crc-2",
    ],
)
def test_reference_pruner_on_larger_rows(name: str) -> None:
    program = load_text(published_sketch(name), name)
    result = synthesize(program, engine="pairs")
    assert result.fills.choices.tolist() == synthesize(program).fills.choices.tolist()
    assert result.fills.count == wanted(name)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["swinv_like/l1/trove-cr_sum-3", "swinv_like/l1/2d-stencil-3"])
def test_pairs_are_as_good_as_the_paper_says(name: str) -> None:
    """An oracle would visit no fewer candidates."""
    result = synthesize(load_text(published_sketch(name), name), engine="pairs")
    assert result.stats.factor == 1.0
