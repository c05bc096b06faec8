"""Products of matrices explored: the nest of warp groups answers what a nest of loops answers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.loopnest.test_matrix import stated

from warploom.errors import CheckError
from warploom.kernel.dtype import e4m3, f16, f32, i8
from warploom.loopnest.ir import Program
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline.drawn import Asked, leaves_of, packed
from warploom.pipeline.exploring import explored
from warploom.pipeline.matrix_nest import MatrixNest, TurnedNest
from warploom.pipeline.spaces import nest_by
from warploom.search.branching.candidate import Candidates
from warploom.search.branching.descent import descended, seeds
from warploom.search.engine import Watch

SIZES = {"m": 200, "n": 264, "k": 200}


def nest_of(program: Program, turned: bool = False, fixes: tuple[str, ...] = ()) -> MatrixNest:
    made = TurnedNest if turned else MatrixNest
    return made(program, H200.rates, everything(H200), fixes)


def drawn(nest: MatrixNest, count: int, seed: int = 0) -> list[Candidates]:
    here = nest.root.take(np.zeros(count, np.int64))
    random = seeds(count, np.random.default_rng(seed))
    found = descended(nest.problem, here, random, lambda some: np.ones(len(some)), Watch())
    assert found.arrived.all()
    return [found.leaves.take(slice(row, row + 1)) for row in range(count)]


PROGRAMS: dict[str, tuple[dict[str, Any], bool, tuple[str, ...]]] = {
    "plain": ({}, False, ()),
    "both dense along results": ({"majors": "km-kn"}, False, ("rows=64", "cluster=2")),
    "batch": ({"batch": 3, "majors": "mk-nk"}, False, ("columns=64",)),
    "more after the sum": ({"after": True, "dtype": f16}, False, ("columns=64",)),
    "turned": ({"sizes": (72, 264, 200)}, True, ()),
    "turned, few": ({"sizes": (16, 136, 200), "majors": "mk-nk"}, True, ()),
    "beside": ({"majors": "km-nk"}, False, ("cluster=2", "beside=1", "columns=64")),
    "ping-pong": ({"sizes": (2120, 2120, 72)}, False, ("ping_pong=1", "columns=64")),
    "split": ({"sizes": (200, 136, 4096)}, False, ("split=3", "stages=2", "deep=64")),
    "e4m3": ({"sizes": (200, 264, 208), "dtype": e4m3, "majors": "mk-nk"}, False, ("rows=64",)),
    "tf32": ({"dtype": f32, "majors": "mk-nk", "after": True}, False, ("rows=64",)),
    "i8": ({"sizes": (200, 264, 208), "dtype": i8, "majors": "mk-nk"}, False, ()),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_drawn_is_right(name: str) -> None:
    how, turned, fixes = PROGRAMS[name]
    nest = nest_of(stated(**how), turned, fixes)
    for leaf in drawn(nest, 1, seed=len(name)):
        trial = nest.tried(leaf)
        assert (trial.wrong, trial.stopped) == ("", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_more_that_is_drawn_is_right(name: str) -> None:
    how, turned, fixes = PROGRAMS[name]
    nest = nest_of(stated(**how), turned, fixes)
    assert not any(nest.tried(leaf).wrong for leaf in drawn(nest, 6, seed=1))


def test_draws_follow_predicted_times_and_near_a_good_one_some_choices_are_open() -> None:
    nest = nest_of(stated((200, 264, 4096)))

    def times(*seed: int) -> list[float]:
        found = leaves_of(nest, Asked(3, seed))
        rows = np.flatnonzero(found.arrived)
        return [nest.predicted_time(found.leaves.take(slice(row, row + 1))) for row in rows]

    chosen = [time for at in (1, 2, 3) for time in times(0, at)]
    others = [time for at in (4, 8, 12) for time in times(0, at)]
    assert len(chosen) == len(others) == 9
    assert np.median(chosen) < np.median(others)
    (leaf,) = drawn(nest, 1)
    own, found = packed(leaf, 0), set[bytes]()
    for at in range(1, 5):
        near = leaves_of(nest, Asked(3, (1, at), near=own))
        rows = [int(row) for row in np.flatnonzero(near.arrived)]
        found |= {packed(near.leaves, row) for row in rows}
    assert len(found - {own}) >= 3


def test_recipes_make_the_same_space_elsewhere() -> None:
    for turned in (False, True):
        nest = nest_of(stated((72, 264, 200)), turned, ("stages=3",))
        other = nest_by(pickle.loads(pickle.dumps(nest.recipe)))
        assert type(other) is type(nest)
        assert isinstance(other, MatrixNest)
        (leaf,) = drawn(nest, 1)
        assert other.tiling(leaf) == nest.tiling(leaf)
        assert other.tiling(leaf).stages == 3
        assert other.predicted_time(leaf) == nest.predicted_time(leaf) >= nest.least() > 0


def found(**how: Any) -> Any:
    return explored(
        "matmul", SIZES, type="bf16", strategy="warp-group-tile", model=True, store=False,
        evaluations=2, **how,
    )  # fmt: skip


def test_records_say_what_was_decided() -> None:
    made = found()
    nest = made.nest
    assert isinstance(nest, MatrixNest)
    best = nest.best_record(made)
    assert best is not None
    assert best["strategy"].startswith("warp-group-tile")
    assert {each["choice"] for each in best["decisions"]} >= {"rows", "columns", "stages"}
    assert nest.tiling(nest.again(best)) == nest.tiling(made.candidate)
    with pytest.raises(CheckError, match="none of this space"):
        nest.again({"decisions": best["decisions"][:2]})
    assert "tiles of " in best["schedule"]
    assert "wgmma" in made.text()


def test_decisions_are_of_the_space_of_the_strategy_that_is_named() -> None:
    made = found(fix=("rows=128", "stages=3"))
    assert isinstance(made.nest, MatrixNest)
    tiling = made.nest.tiling(made.candidate)
    assert (tiling.rows, tiling.stages) == (128, 3)
    with pytest.raises(CheckError, match="'100' is not a value of the choice 'rows'"):
        found(fix="rows=100")
    with pytest.raises(CheckError, match="there is no choice called 'dim_kind'"):
        found(fix="dim_kind(n0)=BLOCK")
    with pytest.raises(CheckError, match="contradict each other"):
        found(fix=("rows=64", "consumers=2", "ping_pong=0"))
    with pytest.raises(CheckError, match="branch and bound is of loops"):
        explored("matmul", SIZES, type="bf16", strategy="warp-group-tile", fix="rows=64",
                 model=True, engine="exact")  # fmt: skip
    with pytest.raises(CheckError, match="no choice called 'rows'"):
        explored("matmul", SIZES, strategy="block-tile", fix="rows=64", model=True)
