"""Computations of every kind as loop nests: each implementation is right by three ways of running
it, and what cannot be stated is refused with the nearest thing that can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bench.common.loopnest.stated import STATED, program_named
from bench.loopnest.tasks import Checked

from warploom.errors import CheckError
from warploom.kernel.dtype import bf16, i32
from warploom.loopnest.build import LoopNest, cast, choose, exp
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.trial import some_inputs

pytest.importorskip("cuda.bindings.nvrtc")


def test_there_are_twenty_at_least() -> None:
    assert len(STATED) >= 20


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STATED)
def test_random_implementations_are_right(name: str) -> None:
    """On the simulator, as PTX and as C; bench/loopnest/descents.py makes 500 descents of each."""
    found = Checked(program_named(name)).batch(1, 2)
    assert found["run"]
    assert found["wrong"] == []


def test_a_kernel_that_is_wrong_is_noticed() -> None:
    checked = Checked(program_named("row sum"))
    checked.wanted = {name: each + 1 for name, each in checked.wanted.items()}
    assert len(checked.batch(1, 1)["wrong"]) == 3  # by each of the three


def test_what_they_mean() -> None:
    """Two of them beside NumPy's own words."""
    softmax, embedding = program_named("softmax"), program_named("embedding")
    arrays, _ = some_inputs(softmax, np.random.default_rng(0))
    x = arrays["x"].reshape(3, 5).astype(np.float64)
    power = np.exp(x - x.max(axis=1, keepdims=True))
    wanted = power / power.sum(axis=1, keepdims=True)
    assert np.allclose(evaluate(softmax, arrays)["y"].reshape(3, 5), wanted, rtol=1e-5)
    arrays, _ = some_inputs(embedding, np.random.default_rng(0))
    arrays["named"] = np.array([2, 0, 7], np.int32)  # there is no row 7
    by_a_fold = program_named("embedding by a fold")
    table = arrays["table"].reshape(3, 5)
    rows = np.stack([table[2], table[0], 0 * table[0]])
    assert np.array_equal(evaluate(embedding, arrays)["y"].reshape(3, 5), rows)
    assert np.array_equal(evaluate(by_a_fold, arrays)["y"].reshape(3, 5), rows)


def test_an_update_from_elsewhere_is_refused() -> None:
    nest = LoopNest("shifted")
    i = nest.axis("i", 8)
    x = nest.array("x", 9)
    x[i] = x[i + 1] * 2.0
    with pytest.raises(CheckError, match="loaded and stored"):
        nest.done()


def test_an_update_of_a_row_by_what_was_folded_of_it_is_refused() -> None:
    nest = LoopNest("softmax")
    i, j = nest.axis("i", 8), nest.axis("j", 8)
    x = nest.array("x", i, j)
    top = nest.fold("max", x[i, j], over=j)
    x[i, j] = exp(x[i, j] - top)
    with pytest.raises(CheckError, match="loaded and stored"):
        nest.done()


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda x, j: x + x, "'\\+' is of bf16"),
        (lambda x, j: exp(x), "'exp' is of bf16"),
        (lambda x, j: choose(x.lt(x), x, x), "'<' is of bf16"),
    ],
)
def test_nothing_is_computed_in_codes(write: Callable[[Any, Any], Any], said: str) -> None:
    nest = LoopNest("codes")
    j = nest.axis("j", 8)
    x, y = nest.array("x", j, dtype=bf16), nest.array("y", j, dtype=bf16)
    with pytest.raises(CheckError, match=said) as error:
        y[j] = write(x[j], j)
    assert "cast it to f32" in (error.value.advice or "")


def test_codes_become_single_precision_alone() -> None:
    nest = LoopNest("codes")
    j = nest.axis("j", 8)
    x, y = nest.array("x", j, dtype=bf16), nest.array("y", j, dtype=i32)
    y[j] = cast(x[j], i32)
    with pytest.raises(CheckError, match="makes i32 of bf16"):
        nest.done()


def test_a_fold_of_codes_is_refused() -> None:
    nest = LoopNest("codes")
    j = nest.axis("j", 8)
    x = nest.array("x", j, dtype=bf16)
    with pytest.raises(CheckError, match="a fold by '\\+' is of bf16"):
        nest.sum(x[j], over=j)
