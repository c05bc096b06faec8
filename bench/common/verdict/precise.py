"""Kernels whose roundings were counted by hand (tests/verdict/precision.cu), most of them also with
sums that somewhere pass through bf16."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.verdict.computations import Reference

from warploom import ptx
from warploom.verdict.answer import Judgement
from warploom.verdict.judged import judge

TEXT = (Path(__file__).parents[3] / "tests" / "verdict" / "precision.ptx").read_text()
KERNELS = ptx.load(TEXT, "precision.ptx")


@dataclass(frozen=True)
class Counted:
    """`roundings` of the kernel with sums in float, and how they were counted."""

    reference: Reference
    args: Mapping[str, Any]
    roundings: int
    why: str
    grid: int = 1
    block: Any = 32
    shape: Mapping[str, int] = field(default_factory=dict)
    alone: bool = False  # there is no such kernel with sums in bf16

    def judged(self, name: str, **more: Any) -> Judgement:
        return judge(
            KERNELS.kernel(name), self.reference, self.args, grid=self.grid, block=self.block,
            shape=self.shape, **{"seed": 7, **more},
        )  # fmt: skip


def softmax(x: Any) -> Any:
    e = np.exp2(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer(x: Any) -> Any:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def online(s: Any, v: Any) -> Any:
    e = np.exp2(s - s.max(axis=0))
    return (e * v).sum(axis=0) / e.sum(axis=0)


def horner(x: Any) -> Any:
    s = 1
    for _ in range(6):
        s = s * x + 0.5
    return s * 3


LINE = {"x": "f32[32]", "y": "f32[32]=out"}
COUNTED = {
    "row_sum": Counted(
        lambda x: x.sum(axis=1), {"x": "f32[2,n]", "y": "f32[2]=out", "n": "i32=n"}, 7,
        "a lane has 3 of 70 numbers, 2 additions; 5 shuffles", 2, shape={"n": 70},
    ),
    "dot": Counted(
        lambda x, y: (x @ y).reshape(1),
        {"x": "bf16[n]", "y": "bf16[n]", "z": "f32[1]=out", "n": "i32=n"}, 8,
        "3 fma, the first to 0; 5 shuffles", shape={"n": 70},
    ),
    "matmul": Counted(
        lambda a, b: a @ b,
        {"a": "f32[8,n]", "b": "f32[n,8]", "c": "f32[8,8]=out", "n": "i32=n"}, 10,
        "8 fma of the first tile, and 2 tiles that are added", block=(8, 8), shape={"n": 24},
    ),
    "softmax": Counted(
        softmax, {"x": "f32[2,n]", "y": "f32[2,n]=out", "n": "i32=n"}, 10,
        "x - m, exp2, 2 additions, 5 shuffles, the division", 2, shape={"n": 70},
    ),
    "layer": Counted(
        layer, {"x": "f32[2,64]", "y": "f32[2,64]=out"}, 17,
        "u + v, 5 shuffles, /64 is exact; u - mean, v·v, fma, 5 shuffles; fma, rsqrt, u·s",
        2,
    ),
    "taps": Counted(
        lambda x, w, n: sum(w[k] * x[k : k + n] for k in range(5)),
        {"x": "f32[n+4]", "w": "f32[5]", "y": "f32[n]=out", "n": "i32=n"}, 5, "5 fma",
        shape={"n": 32},
    ),
    "scan": Counted(lambda x: np.cumsum(x), LINE, 5, "5 steps"),
    "online": Counted(
        online, {"s": "f32[n,32]", "v": "f32[n,32]", "o": "f32[32]=out", "n": "i32=n"}, 8,
        "x - m, exp2, its product with v; 4 fma; the division", shape={"n": 5},
    ),
    "tree": Counted(
        lambda x: x.sum().reshape(1), {"x": "f32[128]", "y": "f32[1]=out"}, 7, "7 steps", block=128
    ),
    "tensor": Counted(
        lambda a, b: a @ b.T,
        {"a": "bf16[16,n]", "b": "bf16[8,n]", "c": "f32[16,8]=out", "n": "i32=n"}, 6,
        "k is 48, and sm_80 rounds after each 8", shape={"n": 48},
    ),
    "horner": Counted(
        horner, {"x": "f32[32]", "y": "bf16[32]=out"}, 8,
        "6 fma, the product with 3, the conversion to bf16", alone=True,
    ),
    "lost": Counted(lambda x: x, LINE, 2, "x + C, and less C", alone=True),
}  # fmt: skip
NARROWED = [name for name, each in COUNTED.items() if not each.alone]
