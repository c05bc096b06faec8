"""Launches of the kernels of `triton_small.py`, and what NumPy says they give.

One table for the texts in `small/`, which `make test` runs, and for Triton itself (`make live`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from bench.common.without_gpu.cases import philox

Args = dict[str, Any]
Wanted = dict[str, Any]
ROWS = 3
Make = Callable[[np.random.Generator, int], tuple[Args, Wanted]]
CASES: dict[str, Make] = {}
RACY: dict[str, Make] = {}
# Elements of a block, and warps: fewer elements than lanes, than threads, as many, and more.
SHAPES = [(16, 1), (16, 4), (32, 1), (32, 4), (64, 2), (64, 4), (128, 4), (128, 8), (128, 32)]


@dataclass(frozen=True)
class Kept:
    """A kernel at one shape; rows are a little shorter than the block, so that masks matter."""

    name: str
    block: int
    warps: int

    @property
    def stem(self) -> str:
        return f"{self.name}_{self.block}_{self.warps}"

    def made(self) -> tuple[Args, Wanted]:
        short = 0 if self.name == "scale" else 3
        make = (CASES | RACY)[self.name]
        return make(np.random.default_rng(self.block + self.warps), self.block - short)


def _case(make: Make) -> Make:
    CASES[make.__name__.removeprefix("_")] = make
    return make


def _array(rng: np.random.Generator, *sizes: int) -> Any:
    return rng.normal(size=sizes or ROWS).astype(np.float32)


def _wide(*arrays: Any) -> list[Any]:
    return [each.astype(np.float64) for each in arrays]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _sum(x: Any) -> Any:
    return x.sum(axis=1, keepdims=True)


def close(found: Any, wanted: Any) -> None:
    if found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=1e-4, atol=2e-5)


@_case
def _scale(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    return {"x": x, "n": n}, {"x": 2 * x}


@_case
def _axpy(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x, y = _array(rng, ROWS, n), _array(rng, ROWS, n)
    return {"x": x, "y": y, "n": n, "a": 1.5}, {"y": 1.5 * x + y}


@_case
def _bump(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng)
    return {"x": x, "n": n}, {"x": x + 1}


@_case
def _relu(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    return {"x": x, "n": n}, {"x": np.maximum(x, 0)}


@_case
def _silu(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    (wide,) = _wide(x)
    return {"x": x, "n": n}, {"x": wide * _sigmoid(wide)}


@_case
def _dropout(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    kept = philox(7, np.arange(x.size)).reshape(x.shape) > np.float32(0.3)
    return {"x": x, "n": n, "p": 0.3, "seed": 7}, {"x": np.where(kept, x / 0.7, 0)}


@_case
def _rotary(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    half = n // 2
    x, cosine, sine = _array(rng, ROWS, n), _array(rng, half), _array(rng, half)
    u, v = x[:, :half], x[:, half : 2 * half]
    wanted = np.concatenate((u * cosine - v * sine, v * cosine + u * sine, x[:, 2 * half :]), 1)
    return {"x": x, "cosine": cosine, "sine": sine, "n": n}, {"x": wanted}


@_case
def _swap(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    half, x = n // 2, _array(rng, ROWS, n)
    wanted = np.concatenate((x[:, half : 2 * half], x[:, :half], x[:, 2 * half :]), 1)
    return {"x": x, "n": n}, {"x": wanted}


@_case
def _adam(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    p, g, m, v = (_array(rng, ROWS, n) for _ in range(4))
    v = np.abs(v)
    wide = _wide(p, g, m, v)
    first, second = 0.9 * wide[2] + 0.1 * wide[1], 0.99 * wide[3] + 0.01 * wide[1] ** 2
    args = {"p": p, "g": g, "m": m, "v": v, "n": n, "rate": 0.1}
    after = wide[0] - 0.1 * first / (np.sqrt(second) + 1e-6)
    return args, {"p": after, "m": first, "v": second}


@_case
def _swiglu(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    a, b = _array(rng, ROWS, n), _array(rng, ROWS, n)
    u, w = _wide(a, b)
    return {"a": a, "b": b, "out": np.zeros_like(a), "n": n}, {"out": u * _sigmoid(u) * w}


@_case
def _swiglu_back(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    dc, a, b = (_array(rng, ROWS, n) for _ in range(3))
    d, u, w = _wide(dc, a, b)
    s = _sigmoid(u)
    wanted = {"a": d * (u * s * (1 - s) + s) * w, "b": d * u * s}
    return {"dc": dc, "a": a, "b": b, "n": n}, wanted


@_case
def _huber(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x, y = _array(rng, ROWS, n), _array(rng, ROWS, n)
    d = x.astype(np.float64) - y
    size = np.abs(d)
    loss = np.where(size < 1, d * d / 2, size - 0.5).sum(axis=1)
    args = {"x": x, "y": y, "loss": np.zeros(ROWS, np.float32), "n": n}
    return args, {"loss": loss, "x": np.where(size < 1, d, np.sign(d))}


def _probabilities(x: Any) -> Any:
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / _sum(powers)


@_case
def _softmax(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    return {"x": x, "n": n}, {"x": _probabilities(x)}


@_case
def _softmax_back(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    y, dy = _probabilities(_array(rng, ROWS, n)).astype(np.float32), _array(rng, ROWS, n)
    u, d = _wide(y, dy)
    wanted = u * (d - _sum(u * d))
    return {"y": y, "dy": dy, "dx": np.zeros_like(y), "n": n}, {"dx": wanted}


@_case
def _softmax_back_in_place(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    args, wanted = _softmax_back(rng, n)
    return {"y": args["y"], "dy": args["dy"], "n": n}, {"dy": wanted["dx"]}


@_case
def _log_softmax(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    most, norm = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.float32)
    args = {"x": x, "most": most, "norm": norm, "n": n}
    return args, {"x": np.log(_probabilities(x)), "most": x.max(axis=1)}


def _moments(x: Any) -> tuple[Any, Any]:
    wide = x.astype(np.float64)
    return wide.mean(axis=1, keepdims=True), 1 / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)


@_case
def _layernorm(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x, weight, bias = _array(rng, ROWS, n), _array(rng, n), _array(rng, n)
    mean, rstd = _moments(x)
    zeros = [np.zeros(ROWS, np.float32) for _ in range(2)]
    args = {"x": x, "weight": weight, "bias": bias, "out": np.zeros_like(x), "mean": zeros[0],
            "rstd": zeros[1], "n": n}  # fmt: skip
    out = (x - mean) * rstd * weight + bias
    return args, {"out": out, "mean": mean[:, 0], "rstd": rstd[:, 0]}


@_case
def _layernorm_in_place(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    mean, rstd = _moments(x)
    return {"x": x, "n": n}, {"x": (x - mean) * rstd}


@_case
def _layernorm_back(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    dy, x, weight = _array(rng, ROWS, n), _array(rng, ROWS, n), _array(rng, n)
    mean, rstd = _moments(x)
    h, wd = (x - mean) * rstd, weight.astype(np.float64) * dy
    dx = (wd - h * _sum(h * wd) / n - _sum(wd) / n) * rstd
    args = {"dy": dy, "x": x, "weight": weight, "mean": mean[:, 0].astype(np.float32),
            "rstd": rstd[:, 0].astype(np.float32), "dw": np.zeros(n, np.float32),
            "n": n}  # fmt: skip
    return args, {"dy": dx, "dw": (dy * h).sum(axis=0)}


def _inverse(x: Any) -> Any:
    return 1 / np.sqrt(_sum(x.astype(np.float64) ** 2) / x.shape[1] + 1e-6)


@_case
def _rmsnorm(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x, weight = _array(rng, ROWS, n), _array(rng, n)
    rstd = _inverse(x)
    args = {"x": x, "weight": weight, "out": np.zeros_like(x), "rstd": np.zeros(ROWS, np.float32),
            "n": n}  # fmt: skip
    return args, {"out": x * rstd * weight, "rstd": rstd[:, 0]}


@_case
def _rmsnorm_in_place(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    return {"x": x, "n": n}, {"x": x * _inverse(x)}


@_case
def _rmsnorm_back(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    dy, x, weight = _array(rng, ROWS, n), _array(rng, ROWS, n), _array(rng, n)
    rstd = _inverse(x).astype(np.float32)
    m = dy.astype(np.float64) * weight
    total = _sum(m * x)
    args = {"dy": dy, "x": x, "weight": weight, "rstd": rstd[:, 0].copy(),
            "dot": np.zeros(ROWS, np.float32), "n": n}  # fmt: skip
    return args, {"dy": rstd * (m - rstd**2 / n * total * x), "dot": total[:, 0]}


@_case
def _cross_entropy(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x, labels = _array(rng, ROWS, n), rng.integers(0, n, ROWS).astype(np.int32)
    p, row = _probabilities(x), np.arange(ROWS)
    gradient = p.copy()
    gradient[row, labels] -= 1
    args = {"x": x, "labels": labels, "loss": np.zeros(ROWS, np.float32), "n": n}
    return args, {"x": gradient, "loss": -np.log(p[row, labels])}


@_case
def _divergence(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    p, q = (_probabilities(_array(rng, ROWS, n)).astype(np.float32) for _ in range(2))
    u, w = _wide(p, q)
    args = {"p": p, "q": q, "out": np.zeros(ROWS, np.float32), "n": n}
    return args, {"out": (u * np.log(u / w)).sum(axis=1)}


@_case
def _squares(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    args = {"x": x, "out": np.zeros(ROWS, np.float32), "n": n}
    return args, {"out": (x.astype(np.float64) ** 2).sum(axis=1)}


def _two(rng: np.random.Generator, n: int, rows: int = ROWS) -> Args:
    x, y = _array(rng, rows, n), _array(rng, rows, n)
    return {"x": x, "y": y, "out": np.zeros(ROWS, np.float32), "n": n}


@_case
def _dot(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    args = _two(rng, n)
    x, y = _wide(args["x"], args["y"])
    return args, {"out": (x * y).sum(axis=1)}


@_case
def _cosine(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    args = _two(rng, n)
    x, y = _wide(args["x"], args["y"])
    lengths = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return args, {"out": (x * y).sum(axis=1) / lengths}


@_case
def _variance(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    args = {"x": x, "out": np.zeros(ROWS, np.float32), "n": n}
    return args, {"out": x.astype(np.float64).var(axis=1)}


@_case
def _unit(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    lengths = np.sqrt(_sum(x.astype(np.float64) ** 2))
    args = {"x": x, "lengths": np.zeros(ROWS, np.float32), "n": n}
    return args, {"x": x / lengths, "lengths": lengths[:, 0]}


@_case
def _long_squares(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    return _squares(rng, 3 * n + 1)


@_case
def _argmax(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    args = {"x": x, "out": np.zeros(ROWS, np.int32), "n": n}
    return args, {"out": x.argmax(axis=1)}


@_case
def _cumsum(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    return {"x": x, "n": n}, {"x": np.cumsum(x, axis=1, dtype=np.float64)}


@_case
def _columns(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    args = _two(rng, n, 4 * ROWS)
    x, y = _wide(args["x"], args["y"])
    args["out"] = np.zeros((ROWS, n), np.float32)
    return args, {"out": (x * y).reshape(ROWS, 4, n).sum(axis=1)}


@_case
def _matvec(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    a, x = _array(rng, 4 * ROWS, n), _array(rng, n)
    args = {"a": a, "x": x, "out": np.zeros(4 * ROWS, np.float32), "n": n}
    return args, {"out": a.astype(np.float64) @ x}


# -- with races -----------------------------------------------------------------------------------


def _alone(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    return {"x": _array(rng, ROWS + 1, n), "n": n}, {}


def _into(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    x = _array(rng, ROWS, n)
    return {"x": x, "out": np.zeros_like(x), "n": n}, {}


def _weights(rng: np.random.Generator, n: int) -> tuple[Args, Wanted]:
    dy, x = _array(rng, ROWS, n), _array(rng, ROWS, n)
    return {"dy": dy, "x": x, "dw": np.zeros(n, np.float32), "n": n}, {}


RACY |= {
    "racy_shift": _alone, "racy_reverse": _alone, "racy_stencil": _alone, "racy_halo": _alone,
    "racy_last": _into, "racy_total": _into, "racy_pairs": _into, "racy_passed_on": _into,
    "racy_weights": _weights, "racy_dots": lambda rng, n: (_two(rng, n), {}),
}  # fmt: skip

# The texts that are kept: each kernel at one shape, those that were accused at three.
OFTEN = ("scale", "layernorm", "rmsnorm_in_place", "softmax_back", "swiglu_back", "cross_entropy")
SMALL = [
    *(Kept(name, *SHAPES[number % len(SHAPES)]) for number, name in enumerate(CASES | RACY)),
    *(Kept(name, *shape) for name in OFTEN for shape in ((16, 1), (32, 4), (128, 8))),
]
SMALL = [*dict.fromkeys(SMALL)]
