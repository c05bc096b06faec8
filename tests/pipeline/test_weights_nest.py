"""Products of packed weights explored: their nest answers what a nest of loops answers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.loopnest.after import AFTER
from tests.loopnest.test_weights import eight_bits, stated
from tests.pipeline.test_matrix_nest import drawn

from warploom.errors import CheckError
from warploom.loopnest.ir import Program
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline.exploring import explored
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.weights_nest import WeightsNest, shortened

SIZES: dict[str, Any] = {"m": 16, "n": 128, "k": 512, "weights": "int4", "group": 128}


def nest_of(program: Program, fixes: tuple[str, ...] = ()) -> WeightsNest:
    return WeightsNest(program, H200.rates, everything(H200), fixes)


PROGRAMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "long": ({"sizes": (16, 72, 4224)}, ("cluster=2", "parts=4")),
    "int8": ({"weight": eight_bits, "sizes": (70, 200, 640), "group": None}, ("rows=64",)),
    "after": ({"after": AFTER["gelu"], "sizes": (40, 100, 512)}, ()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_drawn_is_right(name: str) -> None:
    how, fixes = PROGRAMS[name]
    nest = nest_of(stated(**how), fixes)
    for leaf in drawn(nest, 2, seed=len(name)):
        trial = nest.tried(leaf)
        assert (trial.wrong, trial.stopped) == ("", None)
        assert nest.predicted_time(leaf) >= float(nest.bound(leaf)[0]) > 0


def test_recipes_make_the_same_space_elsewhere() -> None:
    nest = nest_of(stated(), ("wide=2",))
    other = nest_by(pickle.loads(pickle.dumps(nest.recipe)))
    assert type(other) is WeightsNest
    (leaf,) = drawn(nest, 1)
    assert other.tiling(leaf) == nest.tiling(leaf)
    assert other.tiling(leaf).wide == 2


def test_a_trial_has_a_whole_part_of_the_sum_and_a_part_of_one() -> None:
    nest = nest_of(stated(sizes=(70, 200, 4224)), ("rows=32", "cluster=1", "parts=4", "ahead=1"))
    tiling = nest.tiling(drawn(nest, 1)[0])
    span = tiling.span(nest.product.deep)
    found = {axis.name: size for axis, size in shortened(nest.product, tiling).items()}
    assert found["m"] == 32 + 70 % 32
    assert found["k"] == span + 4224 % span


def found(**how: Any) -> Any:
    return explored(
        "matmul", SIZES, type="bf16", model=True, store=False, evaluations=2, **how
    )  # fmt: skip


def test_weights_are_explored_by_name_and_the_record_says_what_was_decided() -> None:
    made = found(strategy="packed-weights", fix=("cluster=2",))
    nest = made.nest
    assert isinstance(nest, WeightsNest)
    best = nest.best_record(made)
    assert best is not None
    assert best["strategy"].startswith("packed-weights")
    assert nest.tiling(nest.again(best)) == nest.tiling(made.candidate)
    assert nest.tiling(made.candidate).cluster == 2
    assert "W straight from global memory, unsigned integers of 4 bits" in best["schedule"]
    assert "clusters of 2 blocks" in best["schedule"]
    assert "mma.sync" in made.text()


def test_machines_without_clusters_are_refused() -> None:
    with pytest.raises(CheckError, match="the machine has no clusters of blocks"):
        found(strategy="packed-weights", machine="k4000")


@pytest.mark.parametrize(
    ("sizes", "how", "why"),
    [
        ({"weights": "int5"}, {"type": "bf16"}, "no weights are called 'int5'"),
        ({}, {}, "weights of int4 are multiplied by bf16 or f16, not f32"),
        ({"group": 96}, {"type": "bf16"}, "in groups of 96 along k=512"),
        ({"transposed": "A"}, {"type": "f16"}, "no stride, splits or transposed"),
    ],
)
def test_sizes_without_a_meaning_are_refused(
    sizes: dict[str, Any], how: dict[str, Any], why: str
) -> None:
    with pytest.raises(CheckError, match=why):
        explored("matmul", SIZES | sizes, model=True, store=False, **how)
