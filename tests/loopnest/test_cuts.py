"""What cuts remove of the default space is never better than what they keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.common.loopnest import cutting
from bench.common.loopnest.cut_programs import SMALL
from bench.common.loopnest.cutting import Comparing, Cutting

from warploom.loopnest.cuts import CUTS
from warploom.loopnest.target import CUTS as NAMES
from warploom.loopnest.target import DEFAULT, everything, paper, with_tensor_cores
from warploom.machine.record import H200
from warploom.pipeline.nest import Nest

COMPARED = 5
QUICK = ("axpy, last tile partial", "long vector", "scaled rows", "add parts")  # others: accept


def compared(name: str, seed: int = 1, drawn: int = 60) -> list[tuple[str, ...]]:
    """What is wrong with the witnesses of some removed implementations."""
    own = Cutting(SMALL[name]())
    leaves, _ = own.implementations(0, drawn, seed)
    removed = np.flatnonzero(~own.kept(leaves))
    chosen = np.random.default_rng(seed).permutation(removed)[:COMPARED]
    assert len(chosen)
    comparing = Comparing(own)
    return [comparing.compared(leaves.take(slice(row, row + 1))).wrong for row in map(int, chosen)]


@pytest.mark.parametrize("name", QUICK)
def test_a_removed_implementation_becomes_a_kept_one_that_is_no_worse(name: str) -> None:
    assert not any(compared(name))


def test_a_witness_that_is_worse_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With both exchanged: what was removed is worse in some count."""
    worse = cutting.worse
    monkeypatch.setattr(cutting, "worse", lambda kept, removed, n: worse(removed, kept, n))
    assert any(compared("axpy"))


def test_every_cut_that_is_named_has_a_sentence_and_a_witness() -> None:
    assert set(NAMES) == set(CUTS)


def test_published_spaces_and_tensor_cores_are_uncut() -> None:
    assert everything(H200).cuts == NAMES
    assert paper(H200).cuts == DEFAULT.cuts == with_tensor_cores(H200).cuts == ()


def test_the_page_says_every_cut() -> None:
    page = (Path(__file__).parents[2] / "docs" / "loopnests.md").read_text()
    assert not [cut.name for cut in CUTS.values() if f"`{cut.name}`" not in page]


def test_what_a_user_decides_is_not_cut() -> None:
    program = SMALL["axpy"]()
    target = everything(H200)
    dims = [str(dim) for dim in program.dims]
    nest = Nest(program, H200.rates, target, tuple(f"dim_kind({dim})=LOOP" for dim in dims))
    assert nest.is_possible
    assert nest.target == replace(target, cuts=())
    assert Nest(program, H200.rates, target, ()).target.cuts == NAMES
