"""`warploom.load("attention")` on arrays of NumPy: beside double precision, also where inputs are
hard; strides, options, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import warploom
from warploom.catalogue.attention import call
from warploom.catalogue.attention.asked import Options
from warploom.catalogue.attention.chosen import WINNERS, tilings
from warploom.catalogue.attention.tuned import sampled
from warploom.errors import CheckError, DeviceError
from warploom.kernel.dtype import bf16, coded, decoded
from warploom.loopnest.attention.problem import Attention
from warploom.machine.record import H200
from warploom.runtime.view import view

UNIT = 2.0**-11  # of f16


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float16)


def off(found: Any, q: Any, k: Any, v: Any, options: Options, bias: Any = None) -> float:
    """How far a result is from double precision, of the largest number there; half of the least
    step between numbers of f16 is forgiven."""
    groups, worst, largest = q.shape[1] // k.shape[1], 0.0, 0.0
    for b, h in np.ndindex(q.shape[:2]):
        arrays = q[b, h], k[b, h // groups], v[b, h // groups]
        one, keys, values = (each.astype(np.float64) for each in arrays)
        wanted = sampled(one, keys, values, np.arange(q.shape[2]), options, bias)
        worst = max(worst, float(np.abs(found[b, h] - wanted).max()))
        largest = max(largest, float(np.abs(wanted).max()))
    return (worst - 2.0**-25) / largest


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "ragged": ((1, 2, 50, 64), (1, 2, 70, 64), {}),
    "grouped, in a window": (
        (1, 2, 40, 64), (1, 1, 60, 64), {"causal": True, "window": 20, "soft_cap": 4.0},
    ),
    "one query": ((2, 4, 1, 64), (2, 2, 200, 64), {"scale": 0.2}),
    "some see no key": ((1, 1, 60, 64), (1, 1, 33, 64), {"causal": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_is_attention(name: str) -> None:
    wide, kept, given = CASES[name]
    q, k, v = drawn(*wide), drawn(*kept, seed=1), drawn(*kept, seed=2)
    found = warploom.load("attention")(q, k, v, **given)
    assert found.dtype == np.float16
    assert off(found, q, k, v, Options(**given)) < 3 * UNIT


def test_logarithms_and_arrays_as_words() -> None:
    words = [coded(drawn(1, 1, 20, 64, seed=n).astype(np.float64), bf16) for n in range(3)]
    f = warploom.load("attention", dtype="bf16", lse=True)
    found, logarithms = f(*words)
    q, k, v = (decoded(each, bf16).astype(np.float64) for each in words)
    assert off(decoded(found, bf16), q, k, v, Options()) < 2.0**-7
    wanted = np.log(np.exp(q @ k.swapaxes(2, 3) / 8).sum(-1))
    np.testing.assert_allclose(logarithms, wanted, atol=1e-5)
    assert f.text().count("__global__") == len(f.kernels)


def test_tokens_before_heads_are_taken_as_they_lie() -> None:
    q, k, v = (drawn(2, 30, 2, 64, seed=n).transpose(0, 2, 1, 3) for n in range(3))
    assert off(warploom.load("attention")(q, k, v), q, k, v, Options()) < 3 * UNIT


HARD = {
    "large": (200.0, 1.0),
    "one key alone": (3e4, 1.0),
    "small": (2.0**-20, 1.0),  # below all normal numbers
    "small values": (1.0, 2.0**-20),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_inputs(name: str) -> None:
    """Scores beyond what exponentials have, rows with one weight, numbers below the normal ones."""
    scores, values = HARD[name]
    q, k, v = drawn(1, 1, 40, 64), drawn(1, 1, 40, 64, seed=1), drawn(1, 1, 40, 64, seed=2)
    if name == "one key alone":
        q = k = np.eye(40, 64, dtype=np.float16)[None, None]
    q, v = (q * scores).astype(np.float16), (v * values).astype(np.float16)
    found = warploom.load("attention")(q, k, v)
    assert np.isfinite(found).all()
    assert off(found, q, k, v, Options()) < 3 * UNIT


def test_a_bias_may_leave_rows_without_keys() -> None:
    q, k, v = drawn(1, 1, 20, 64), drawn(1, 1, 30, 64, seed=1), drawn(1, 1, 30, 64, seed=2)
    bias = np.where(np.random.default_rng(3).random((20, 30)) < 0.5, 0, -np.inf).astype(np.float32)
    bias[7] = -np.inf
    found, logarithms = warploom.load("attention")(q, k, v, bias, lse=True)
    assert off(found, q, k, v, Options(), bias) < 3 * UNIT
    assert not found[0, 0, 7].any()
    assert logarithms[0, 0, 7] == -np.inf


def test_rows_of_the_lowest_bias_and_of_scores_beyond_integers() -> None:
    """A bias of the lowest number for all keys changes nothing; a great product with log2 e is
    rounded alike in weights, their sum and from block to block; a long window sees all."""
    q, k, v = drawn(1, 1, 20, 64), drawn(1, 1, 300, 64, seed=1), drawn(1, 1, 300, 64, seed=2)
    f = warploom.load("attention")
    lowest = np.full((20, 300), np.finfo(np.float32).min)
    wanted = v.astype(np.float64).mean(2, keepdims=True)
    assert np.abs(f(q, k, v, lowest) - wanted).max() < 1e-3
    same = f((q * 0 + 4096).astype(np.float16), (k * 0 + 4096).astype(np.float16), v)  # 2^27
    assert np.abs(same - wanted).max() < 1e-3
    given = {"causal": True, "window": 10**12}
    assert np.array_equal(f(q, k, v, **given), f(q, k, v, causal=True))


@pytest.mark.parametrize(
    ("shapes", "options", "said"),
    [
        (((4, 64), (4, 64)), {}, "batch, heads, length, size"),
        (((1, 3, 4, 64), (1, 2, 4, 64)), {}, "3 heads of queries share 2"),
        (((1, 1, 4, 80), (1, 1, 4, 80)), {}, "heads of 80"),
        (((1, 1, 4, 64), (1, 1, 4, 128)), {}, "one shape"),
        (((1, 1, 4, 64), (1, 1, 4, 64)), {"dtype": "bf16"}, "leave out dtype"),
        (((1, 1, 4, 64), (1, 1, 4, 64)), {"bias": np.zeros((5, 4), np.float32)}, "scores have"),
    ],
)
def test_which_arrays_are_refused(shapes: Any, options: dict[str, Any], said: str) -> None:
    q, k = (np.zeros(each, np.float16) for each in shapes)
    with pytest.raises(DeviceError, match=said):
        warploom.load("attention")(q, k, k, **options)


def test_strides_that_copies_cannot_follow_are_refused() -> None:
    q = np.zeros((1, 1, 8, 128), np.float16)
    with pytest.raises(DeviceError, match="cannot follow"):
        warploom.load("attention")(q[..., ::2], q[..., :64], q[..., :64])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"casual": True}, "causal"),
        ({"window": 5}, "causal=True"),
        ({"window": 0, "causal": True}, "a window of 0"),
        ({"soft_cap": -1.0}, "above 0"),
        ({"soft_cap": 1e6}, "at most 10000"),
        ({"causal": 1}, "True or False"),
    ],
)
def test_which_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckError, match=said):
        warploom.load("attention", **options)


class Recording:
    """A library that records what a call says of its gradient."""

    def __init__(self) -> None:
        self.back: Any = None

    def wants_gradients(self) -> bool:
        return True

    def recorded(self, run: Any, back: Any, *arrays: Any) -> Any:
        self.back = back
        return run(*arrays)


def test_a_recorded_call_has_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording()
    monkeypatch.setattr(call, "library", lambda _: recording)
    monkeypatch.setattr(call, "view", lambda *given: replace(view(*given), tracked=True))
    q, k, v = (drawn(1, 2, 20, 64, seed=n) for n in range(3))
    found = warploom.load("attention", causal=True)(q, k, v)
    assert off(found, q, k, v, Options(causal=True)) < 3 * UNIT
    made = recording.back(np.ones_like(found))
    # Weights of a row add up to 1: so do gradients of values.
    np.testing.assert_allclose(made[2].astype(float).sum(2), 20.0, rtol=1e-2)
    assert np.abs(made[0]).max() > 0.1
    with pytest.raises(DeviceError, match="'bias' wants a gradient"):
        warploom.load("attention")(q, k, v, np.zeros((20, 20), np.float32))


def test_without_a_gpu_nothing_is_tuned() -> None:
    q = np.zeros((1, 1, 8, 64), np.float16)
    with pytest.raises(DeviceError, match="tuned on a GPU"):
        warploom.load("attention", tune=1)(q, q, q)


def test_what_was_measured_to_be_fast_comes_first() -> None:
    for (head, causal), winner in WINNERS.items():
        made = Attention(4, 16, 2048, 2048, head, causal)
        assert tilings(made, H200)[0] == winner
        assert winner.is_possible(made, H200.shared_bytes_most)
    few = tilings(Attention(64, 32, 1, 8192, 128), H200)[0]
    assert few.packed
