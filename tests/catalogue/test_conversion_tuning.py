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
    loop_input,
    loop_result,
    looped_texts,
    tune_way,
    ways_of,
)
from warploom.errors import CheckError, DeviceError, UnsupportedError, WarploomError
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.formats.fragment_text import read_fragment
from warploom.ptx import load
from warploom.runtime.compile import can_compile, compile_cuda
from warploom.search.outcome import Found, Impossible
from warploom.search.storage.store import Store

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


@pytest.mark.sampled(2)
@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("name", CASES)
def test_loops_convert_every_iteration(name: str) -> None:
    found = case(name)
    for way, one in ways_of(found).values():
        kernel = load(compile_cuda(looped_text(one, way)).text).kernel("convert")
        for iterations in (1, 4):
            values, x = loop_input(one, 2)
            wanted, known = loop_result(one, values, iterations)
            y = np.full_like(wanted, 0xA5)
            kernel.launch(2, 32 * one.source.warps, [np.int32(2), np.int32(iterations), x, y])
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
def test_the_fastest_way_is_chosen_and_kept(tmp_path: Path) -> None:
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


def test_more_shared_memory_than_a_block_has_is_refused() -> None:
    rows, columns = "blocked([1,4],[1,32],[4,1],[1,0])", "blocked([4,1],[32,1],[1,4],[0,1])"
    found = convert(read_fragment(rows, (128, 128)), read_fragment(columns, (128, 128)), 4)
    with pytest.raises(UnsupportedError, match="65536 bytes of shared memory"):
        looped_text(found, "matrices")
    with pytest.raises(WarploomError, match="65536 bytes of shared memory"):
        looped_texts(found)  # where no way is left


def test_ways_that_need_too_much_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found, text = case("words"), looped_text

    def small(one: Conversion, way: str) -> str:
        if way == "shared":
            raise CheckError("the kernel uses 65536 bytes of shared memory")
        return text(one, way)

    monkeypatch.setattr(conversion_tuning, "looped_text", small)
    assert set(looped_texts(found)) == set(ways_of(found)) - {"shared"}
