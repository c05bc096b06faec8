"""Winners that come with the package: known again by what is computed, first in a race."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from bench.harness import RESULTS
from bench.loopnest.winners import FILE, tiling_of
from tests.loopnest.test_matrix import stated

from warploom.kernel.dtype import bf16, f16
from warploom.loopnest.kernels import matmul
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.matrix.tiling import Tiling
from warploom.loopnest.matrix.words import tiling_words
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline import raced
from warploom.pipeline.drawn import unpacked
from warploom.pipeline.meant import statement
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.strategic import strategies_of
from warploom.pipeline.winners import leaf_of, winner_of, winners
from warploom.search.budget import Budget

DEVICE = "NVIDIA H200 sm_90"


def test_the_file_is_of_measured_rows() -> None:
    assert FILE.exists()
    assert (RESULTS / "matrix_device.json").exists()
    assert len(winners()) >= 10
    assert all(each.device == DEVICE for some in winners().values() for each in some)


def test_a_statement_has_no_names_but_all_else() -> None:
    plain = statement(stated((64, 64, 64)))
    assert plain == statement(stated((64, 64, 64)))
    for how in ({"dtype": f16}, {"majors": "mk-nk"}, {"after": True}, {"batch": 2}):
        assert statement(stated((64, 64, 64), **how)) != plain
    assert statement(stated((64, 64, 72))) != plain
    assert statement(matmul(64, 64, 64)) is None  # of single precision


@pytest.mark.parametrize(("sizes", "strategy"), [((1024,) * 3, " 1"), ((16, 4096, 4096), " 2")])
def test_a_named_product_has_one_and_a_race_begins_with_it(
    sizes: tuple[int, int, int], strategy: str
) -> None:
    program = matmul(*sizes, dtype=bf16)
    winner = winner_of(program, DEVICE)
    assert winner is not None
    assert winner.strategy.endswith(strategy)
    assert winner_of(program, "another device") is None
    nest = Nest(program, H200.rates, everything(H200))
    variants = strategies_of(nest, "warp-group-tile", "default", free=True).variants
    ((name, leaf),) = leaf_of(winner, nest, variants)
    own: Any = nest_by(recipe_of(variants[int(name[-1]) - 1], nest))
    tiling = own.tiling(unpacked(own, leaf))
    assert {n: getattr(tiling, n) for n in winner.decisions} == winner.decisions
    assert str(winner).endswith("ping_pong=0")
    # Decisions of today's spaces alone, and none against those of the user.
    assert leaf_of(replace(winner, decisions={"rows": 100}), nest, variants) == ()
    nest.asked = (f"stages={7 if tiling.stages != 7 else 6}",)
    fixed = strategies_of(nest, "warp-group-tile", "default", free=True).variants
    assert leaf_of(winner, nest, fixed) == ()


def test_words_are_read_as_they_are_written() -> None:
    product = matrix_product(stated((4096, 4096, 4096)))
    for tiling in (
        Tiling(64, 64, 64, 2, 1, 1, 1, 0), Tiling(128, 256, 64, 4, 2, 2, 8, 2, 1),
        Tiling(192, 128, 128, 3, 3, 4, 4, 1), Tiling(128, 128, 64, 4, 2, 1, 16, 2, 0, 1),
        Tiling(128, 128, 64, 4, 2, 1, 16, 0, split=3),
    ):  # fmt: skip
        words = "; ".join(tiling_words(product, tiling))
        assert tiling_of(words, product.a.array.name) == tiling


class BegunError(Exception):
    pass


def test_a_race_measures_it_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: Any, before: list[tuple[int, bytes]], **__: Any) -> Any:
        raise BegunError(before)

    monkeypatch.setattr(raced, "TimedRace", begun)
    nest = Nest(matmul(1024, 1024, 1024, dtype=bf16), H200.rates, everything(H200))
    variants = strategies_of(nest, "warp-group-tile", "default", free=True).variants
    for device, count in ((DEVICE, 1), ("another device", 0)):
        quick: Any = SimpleNamespace(device=device)
        with pytest.raises(BegunError) as caught:
            raced.raced(nest, variants, quick, Budget(), raced.Wanted())
        assert len(caught.value.args[0]) == count
