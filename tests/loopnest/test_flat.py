"""Convolutions as products: several axes as one mean the same, and the kernels are right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from bench.loopnest.tasks import Checked

import warploom
from warploom.emit.cuda import cuda
from warploom.errors import CheckError
from warploom.index.digits import separated
from warploom.index.evaluate import evaluate as evaluated
from warploom.index.ir import Var
from warploom.index.show import show as spelled
from warploom.loopnest.build import LoopNest
from warploom.loopnest.computation import Computation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, convolution
from warploom.loopnest.strategies.flat import flattened
from warploom.loopnest.strategies.known import variants_of
from warploom.loopnest.target import everything
from warploom.loopnest.trial import some_inputs
from warploom.machine.record import H200
from warploom.pipeline.drawn import Asked, leaves_of
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.search.branching.candidate import Candidates

TAIL = Cut(tail=True)


def layer(*sizes: int, **others: int) -> Program:
    named = dict(zip(("height", "width", "channels", "kernels"), sizes, strict=True))
    return convolution(**named, cut=TAIL, **others)  # type: ignore[arg-type]


def valid_with_bias(h: int = 5, w: int = 7, c: int = 4, k: int = 6) -> Program:
    """Kernels in rows of their own, no padding, a bias for each row and kernel."""
    nest = LoopNest("valid")
    i, j, m = nest.axis("i", h - 2), nest.axis("j", w - 1), nest.axis("m", k)
    r, s, d = nest.axis("r", 3), nest.axis("s", 2), nest.axis("d", c)
    x, g = nest.array("x", h, w, c), nest.array("g", r, s, d, m)
    bias, y = nest.array("bias", i, m), nest.array("y", i, j, m)
    y[i, j, m] = nest.sum(x[i + r, j + s, d] * g[r, s, d, m], over=(d, s, r)) + bias[i, m]
    return nest.done()


LAYERS = {
    "ragged": layer(5, 7, 6, 9),
    "stride": layer(9, 8, 4, 8, stride=2),
    "dilation": layer(9, 7, 3, 5, dilation=2, padding=2),
    "batch": layer(4, 5, 8, 4, batch=3),
    "no padding": layer(6, 5, 4, 4, padding=0),
    "rows of one": layer(7, 6, 8, 4, kernel_height=1, kernel_width=1, padding=0),
    "channels first": layer(5, 6, 4, 8, channels_first=True, batch=2),
    "bias": valid_with_bias(),
}


def flat(program: Program) -> Program:
    return program_of(flattened(Computation.of(program), free=True), published=False)


@pytest.mark.parametrize("name", LAYERS)
def test_fewer_axes_mean_the_same(name: str) -> None:
    program = LAYERS[name]
    made = flat(program)
    assert len(made.axes) < len(program.axes)
    arrays, numbers = some_inputs(program, np.random.default_rng(0))
    wanted, found = evaluate(program, arrays, numbers), evaluate(made, arrays, numbers)
    assert np.allclose(found["y"], wanted["y"], rtol=1e-5, atol=1e-5)


def test_it_is_the_convolution_of_the_textbook() -> None:
    program = layer(5, 6, 3, 4, stride=2, kernel_width=2)
    arrays, _ = some_inputs(program, np.random.default_rng(0))
    x, g = arrays["x"].reshape(5, 6, 3), arrays["g"].reshape(4, 3, 2, 3)
    around = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 2), axis=(0, 1))[::2, ::2]
    wanted = np.einsum("hwcrs,krsc->hwk", windows, g)
    assert np.allclose(evaluate(program, arrays)["y"].reshape(wanted.shape), wanted, atol=1e-5)


def test_rows_are_seen_as_one_where_they_are() -> None:
    made = flat(LAYERS["batch"])
    assert [(str(axis), axis.size) for axis in made.axes] == [
        ("b_h_w", 60),
        ("k", 4),
        ("r_s_c", 72),
    ]
    x, g, y = made.arrays
    assert (x.shape, g.shape, y.shape) == ((3, 4, 5, 8), (288,), (240,))
    first = flat(LAYERS["channels first"])  # images lie between the rows of two kernels
    assert [str(axis) for axis in first.axes] == ["b", "h_w", "k", "c_r_s"]


def test_what_is_no_product_or_has_tiles_of_a_user_stays() -> None:
    nest = LoopNest("grouped")
    i, c, r = nest.axis("i", 6), nest.axis("c", 4), nest.axis("r", 3)
    x, g, y = nest.array("x", 8, c), nest.array("g", c, r), nest.array("y", i, c)
    y[i, c] = nest.sum(x[i + r, c] * g[c, r], over=r)
    assert len(flat(nest.done()).axes) == 3  # a channel has kernels of its own
    given = Computation.of(LAYERS["ragged"])
    kept = flattened(given, free=False).axes  # w, k and c have tiles
    assert [str(axis) for axis in kept] == ["h", "w", "k", "r", "s", "c"]


SMALL = ("ragged", "stride", "dilation", "channels first", "bias")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SMALL)
def test_implementations_are_right(name: str) -> None:
    """On the simulator, as PTX and as C, without races."""
    found = Checked(flat(LAYERS[name])).batch(1, 2)
    assert found["run"]
    assert found["wrong"] == []


LARGE = {
    "blocks": (layer(40, 50, 16, 64), "block-tile"),
    "few channels": (layer(45, 41, 3, 64), "block-tile"),
    "columns are pixels": (layer(40, 50, 8, 64, channels_first=True), "block-tile"),
    "parts": (layer(6, 7, 128, 128), "split-over-blocks"),
    "parts by threads": (layer(17, 13, 128, 320), "split-k"),
}


def implementation(program: Program, strategy: str) -> tuple[Nest, Candidates]:
    """One that a strategy leaves open."""
    whole = Nest(program, H200.rates, everything(H200))
    variants = [each for each in variants_of(program, free=True)[0] if each.strategy == strategy]
    nest = nest_by(recipe_of(variants[0], whole))
    drawn = leaves_of(nest, Asked(4, (1,)))
    row = int(np.flatnonzero(drawn.arrived)[0])
    return nest, drawn.leaves.take(slice(row, row + 1))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LARGE)
def test_what_strategies_leave_open_is_right(name: str) -> None:
    nest, leaf = implementation(*LARGE[name])
    assert "equals the reference" in str(nest.tried(leaf, warploom.Budget()))


def test_neighbours_along_channels_are_one_access() -> None:
    nest, leaf = implementation(*LARGE["blocks"])
    assert nest.whole.arrays[0].shape == (40, 50, 16)  # as it was stated
    (kernel,) = nest.lowered(leaf)
    assert "float4*>(&x[" in cuda(kernel)


def test_quotients_without_what_does_not_change_them() -> None:
    t, q, i = Var("t"), Var("q"), Var("i")
    bounds = {"t": (0, 35), "q": (0, 3), "i": (0, 3)}
    whole = t * 16 + q * 4 + i
    for expr, wanted in [
        (whole // 64, "t // 4"),
        (whole // 192 % 3, "t // 12 % 3"),
        (whole % 64, "t % 4 * 16 + (q * 4 + i)"),
        (whole % 24, "(t * 4 + q) % 6 * 4 + i"),
        (whole % 3, "(t * 16 + q * 4 + i) % 3"),
        ((whole - 5) // 16, "(t * 16 + q * 4 + i - 5) // 16"),
    ]:
        made = separated(expr, bounds)
        assert spelled(made) == wanted
        env: dict[str, Any] = dict(zip(bounds, np.indices((36, 4, 4)), strict=True))
        assert np.array_equal(evaluated(made, env), evaluated(expr, env))


def test_a_kernel_has_to_fit() -> None:
    with pytest.raises(CheckError, match="larger than the padded image"):
        layer(2, 2, 4, 4, padding=0)
    assert math.prod(a.size for a in layer(2, 2, 4, 4).axes) == 2 * 2 * 4 * 9 * 4
