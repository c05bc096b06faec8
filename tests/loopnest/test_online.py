"""Long rows in one pass: the law on numbers, and what strategies make of it."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.kernel.dtype import bf16, f32
from warploom.loopnest import ir
from warploom.loopnest.build import LoopNest, exp
from warploom.loopnest.computation import Computation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.instructions import program_of
from warploom.loopnest.rows import backward, forward
from warploom.loopnest.strategies.form import NotMeantError
from warploom.loopnest.strategies.known import variants_of
from warploom.loopnest.strategies.online import Pieces, in_pieces

ROWS = {
    "softmax": lambda m, n: forward.softmax(m, n, f32),
    "cross entropy": lambda m, n: forward.cross_entropy(m, n, f32),
    "root mean square": lambda m, n: forward.rms_norm(m, n, f32, forward.Norm()),
    "gradient of softmax": lambda m, n: backward.softmax(m, n, f32),
    "gradient of log-softmax": lambda m, n: backward.log_softmax(m, n, f32),
}


def cut_of(over: ir.Axis, width: int) -> Pieces:
    """Neighbours of a row as its pieces."""
    count = -(-over.size // width)
    which, within = (ir.Axis(name, size, ((size,),), False, False, None, False)
                     for name, size in (("piece", count), ("near", width)))  # fmt: skip
    return Pieces(over, which * width + within, (which,), (within,))


def inputs(program: ir.Program, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    made = {}
    for each in program.arrays:
        if each.dtype is f32:
            made[each.name] = random.normal(size=each.shape).astype(np.float32) * 4
        else:
            made[each.name] = random.integers(0, 4, each.shape).astype(each.dtype.numpy)
    return made


def both(nest: LoopNest, given: dict[str, np.ndarray], width: int) -> list[dict[str, np.ndarray]]:
    """What a nest computes as it stands, and in pieces."""
    program = nest.done()
    source = Computation.of(program)
    over = next(axis for axis in source.axes if axis.name == "n")
    pieces = program_of(in_pieces(source, cut_of(over, width)), published=False)
    with np.errstate(all="ignore"):
        found = [evaluate(each, given) for each in (program, pieces)]
    shapes = {each.name: each.shape for each in program.arrays}
    return [{name: each.reshape(shapes[name]) for name, each in made.items()} for made in found]


@pytest.mark.parametrize("name", ROWS)
def test_pieces_make_no_difference_but_for_rounding(name: str) -> None:
    for n, width in ((37, 8), (16, 4), (5, 8)):
        nest = ROWS[name](3, n)
        whole, pieces = both(nest, inputs(ROWS[name](3, n).done()), width)
        for key, value in whole.items():
            np.testing.assert_allclose(pieces[key], value, rtol=2e-5, atol=2e-6)


def test_pieces_of_nothing_but_the_lowest_add_nothing() -> None:
    given = inputs(forward.softmax(2, 24, f32).done())
    given["x"][0, :17] = -np.inf
    given["x"][1, :] = -np.inf  # such a row has no softmax, in one pass or in two
    whole, pieces = both(forward.softmax(2, 24, f32), given, 8)
    assert not whole["y"][0, :17].any()
    np.testing.assert_allclose(pieces["y"][0], whole["y"][0], rtol=1e-6)
    assert np.isnan(whole["y"][1]).all()
    assert np.isnan(pieces["y"][1]).all()


def test_large_numbers_stay_in_range() -> None:
    given = inputs(forward.softmax(1, 24, f32).done())
    given["x"][0] = np.linspace(-3e38, 3e38, 24)
    whole, pieces = both(forward.softmax(1, 24, f32), given, 8)
    assert whole["y"][0, -1] == 1
    np.testing.assert_array_equal(pieces["y"], whole["y"])


def test_a_fold_that_needs_another_in_another_way_has_no_pieces() -> None:
    source = Computation.of(forward.layer_norm(2, 24, f32, forward.Norm()).done())
    with pytest.raises(NotMeantError, match="in another way than a maximum"):
        in_pieces(source, cut_of(source.axes[1], 8))


def test_a_factor_that_does_not_need_the_maximum_stays() -> None:
    nest = LoopNest("weighted")
    i, j = nest.axis("m", 2), nest.axis("n", 20)
    x, w, y = nest.array("x", i, j), nest.array("w", j), nest.array("y", i)
    top = nest.fold("max", x[i, j], over=j)
    y[i] = nest.sum(w[j] * exp(2.0 * (x[i, j] - top)), over=j) + top
    given = inputs(nest.done())
    whole, pieces = both(nest, given, 8)
    np.testing.assert_allclose(pieces["y"], whole["y"], rtol=2e-5)


def test_long_rows_have_pieces_and_short_ones_have_none() -> None:
    long, _ = variants_of(forward.cross_entropy(64, 50257, bf16).done(), free=False)
    short, _ = variants_of(forward.cross_entropy(64, 1000, bf16).done(), free=False)
    names = [{axis.name for axis in each.program.axes} for each in (long[0], short[0])]
    assert "npiece" in names[0]
    assert "npiece" not in names[1]
