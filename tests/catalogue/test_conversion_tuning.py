"""Ways of a conversion in a loop, and the choice by measurement."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from warploom.catalogue import conversion_tuning
from warploom.catalogue.conversion import looped_text
from warploom.catalogue.conversion_tuning import (
    ReadyWay,
    best_way,
    kept_way,
    loop_input,
    loop_result,
    tune_way,
    ways_of,
)
from warploom.errors import DeviceError
from warploom.layout.convert import Conversion, convert
from warploom.layout.fragment_text import read_fragment
from warploom.ptx import load
from warploom.runtime.compile import can_compile, compile_cuda
from warploom.search.outcome import Found, Impossible
from warploom.search.store import Store

ROW = "blocked([1,1],[1,32],[1,1],[1,0])"
CASES = {
    "words": (ROW, "blocked([1,4],[4,8],[1,1],[1,0])", 4, (4, 32)),
    "bytes in pairs": ("mma_c()", "mma_a(4)", 1, (16, 32)),
    "nothing": ("mma_c()", "mma_a(2)", 2, (16, 16)),
    "three of a lane": ("(32,3):(1,32)", "(32,3):(3,1)", 4, None),
    "halves of two warps": (
        "blocked([1,2],[4,8],[2,1],[1,0])", "blocked([2,1],[4,8],[1,2],[1,0])", 2, (16, 32)
    ),
}  # fmt: skip


def case(name: str) -> Conversion:
    source, target, size, shape = CASES[name]
    return convert(read_fragment(source, shape), read_fragment(target, shape), size)


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("name", CASES)
def test_loops_convert_every_turn(name: str) -> None:
    found = case(name)
    for way, one in ways_of(found).values():
        kernel = load(compile_cuda(looped_text(one, way)).text).kernel("convert")
        for turns in (1, 4):
            values, x = loop_input(one, 2)
            wanted, known = loop_result(one, values, turns)
            y = np.full_like(wanted, 0xA5)
            kernel.launch(2, 32 * one.source.warps, [np.int32(2), np.int32(turns), x, y])
            assert ((y == wanted) | (known == 0)).all(), way


def test_warps_that_load_their_own_need_not_wait_for_others() -> None:
    alone, together = case("words").shared, case("halves of two warps").shared
    assert alone is not None
    assert together is not None
    assert alone.within_warps
    assert not together.within_warps
    assert "__syncwarp" in looped_text(case("words"), "shared")
    assert "__syncthreads" in looped_text(case("halves of two warps"), "shared")


class Told:
    """A bench that takes what it is told."""

    device, arch = "told sm_90", "sm_90"

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self.asked = seconds, 0

    def measure(self, ready: ReadyWay, samples: int) -> Sequence[float]:
        self.asked += samples
        if ready.name not in self.seconds:
            raise DeviceError("it gives a wrong result")
        return [self.seconds[ready.name]] * samples


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
def test_the_fastest_way_is_chosen_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, store = case("words"), Store(tmp_path / "store.sqlite")
    assert found.chosen == "matrices"  # by rule
    bench = Told({"shuffles": 2e-6, "matrices": 3e-6})  # shared memory gives a wrong result
    with ThreadPoolExecutor(1) as pool:
        tuned = tune_way(found, bench, store=store, pool=pool)
        assert isinstance(tuned, Found)
        assert best_way(tuned, found) == "shuffles"
        assert tuned.answer.untuned.candidate == "matrices"
        asked = bench.asked
        again = tune_way(found, bench, store=store, pool=pool)
        assert best_way(again, found) == "shuffles"
        assert bench.asked == asked
        nothing = tune_way(found, Told({}), pool=pool)
        assert isinstance(nothing, Impossible)
        assert best_way(nothing, found) == "matrices"

    class Driver:
        def name(self, _: int) -> str:
            return "told"

        def architecture(self, _: int) -> str:
            return "sm_90"

    monkeypatch.setattr(conversion_tuning, "open_driver", Driver)
    assert kept_way(found, store) == "shuffles"
    assert kept_way(case("halves of two warps"), store) is None
    assert kept_way(found, None) is None


def test_without_a_gpu_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise DeviceError("there is no CUDA driver on this machine")

    monkeypatch.setattr(conversion_tuning, "open_driver", none)
    assert kept_way(case("words"), Store(tmp_path / "store.sqlite")) is None
