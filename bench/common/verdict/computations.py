"""Computations with a reference in NumPy, each with a kernel that is right, one that is wrong and
one that is made to pass (tests/verdict/kernels.cu)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warploom import ptx
from warploom.ptx.launch import LoadedModule
from warploom.verdict.answer import Judgement
from warploom.verdict.judged import judge

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "tests" / "verdict" / "kernels.ptx").read_text()
KERNELS = ptx.load(TEXT, "kernels.ptx")
N = 37
AT = np.random.default_rng(5).integers(0, 16, N).astype(np.int32)
Reference = Callable[..., Any]


@dataclass(frozen=True)
class Computation:
    reference: Reference
    args: Mapping[str, Any]
    grid: str = "1"
    block: str = "32"
    shape: Mapping[str, Any] = field(default_factory=lambda: {"n": N})
    kernels: LoadedModule = KERNELS
    shared: int = 0  # bytes, beside what the kernel declares

    def judged(self, name: str, **more: Any) -> Judgement:
        options: dict[str, Any] = {"grid": self.grid, "block": self.block, "shape": self.shape}
        options |= {"seed": 7, "shared_bytes": self.shared} | more
        return judge(self.kernels.kernel(name), self.reference, self.args, **options)


def softmax(x: Any) -> Any:
    made = np.exp(x - x.max(axis=1, keepdims=True))
    return made / made.sum(axis=1, keepdims=True)


def layer_norm(x: Any) -> Any:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def convolve(x: Any, w: Any, n: int) -> Any:
    zeros = np.zeros(2)
    wide = np.concatenate([zeros, x, zeros])
    return sum(w[k] * wide[k : k + n] for k in range(5))


def heat(x: Any) -> Any:
    y = x.copy()
    near = x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]
    y[1:-1, 1:-1] = x[1:-1, 1:-1] + 0.125 * (near - 4 * x[1:-1, 1:-1])
    return y


def scan(x: Any) -> Any:
    return np.tril(np.ones((32, 32))) @ x


def scatter_add(x: Any, at: Any) -> Any:
    return (np.arange(32)[:, None] == at[None, :]).astype(float) @ x


def log_sum_exp(x: Any) -> Any:
    top = x.max(axis=1)
    return top + np.log(np.exp(x - top[:, None]).sum(axis=1))


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax((q @ k.T) / np.sqrt(32)) @ v


ELEMENTS = {"x": "f32[n]", "y": "f32[n]=out", "n": "i32=n"}
ROWS = {"x": "f32[rows,n]", "y": "f32[rows,n]=out", "n": "i32=n"}
OF_ROWS = {"x": "f32[rows,n]", "y": "f32[rows]=out", "n": "i32=n"}
SHAPE = {"rows": 3, "n": N}
MATRICES = {"a": "f32[n,n]", "b": "f32[n,n]", "c": "f32[n,n]=out", "n": "i32=n"}
TILES = {"a": "bf16[n,n]", "b": "bf16[n,n]", "c": "f32[n,n]=out", "n": "i32=n"}
BY_TWO = {"grid": "2"}


def by_element(reference: Reference) -> Computation:
    return Computation(reference, ELEMENTS, grid="(n+31)//32")


COMPUTATIONS = {
    "saxpy": Computation(
        lambda x, y, a: a * x + y,
        {"x": "f32[n]", "y": "f32[n]=inout", "a": "f32", "n": "i32=n"}, "2",
    ),
    "relu": by_element(lambda x: np.maximum(x, 0)),
    "silu": by_element(lambda x: x / (1 + np.exp(-x))),
    "sigmoid": by_element(lambda x: 1 / (1 + np.exp(-x))),
    "row_sum": Computation(lambda x: x.sum(axis=1), OF_ROWS, "rows", shape=SHAPE),
    "dot": Computation(
        lambda x, y: (x @ y).reshape(1),
        {"x": "f32[n]", "y": "f32[n]", "z": "f32[1]=out", "n": "i32=n"}, block="128",
    ),
    "row_max": Computation(lambda x: x.max(axis=1), OF_ROWS, "rows", shape=SHAPE),
    "softmax": Computation(softmax, ROWS, "rows", shape=SHAPE),
    "layer_norm": Computation(layer_norm, ROWS, "rows", shape=SHAPE),
    "rms_norm": Computation(lambda x: x / np.sqrt((x * x).mean() + 1e-6), ELEMENTS),
    "matmul": Computation(
        lambda a, b: a @ b, MATRICES, "(n+7)//8,(n+7)//8", "8,8", shape={"n": 19}
    ),
    "tensor": Computation(lambda a, b: a @ b, TILES, "n//16,n//16", shape={"n": 32}),
    "transpose": Computation(
        lambda x: x.T,
        {"x": "f32[rows,n]", "y": "f32[n,rows]=out", "rows": "i32=rows", "columns": "i32=n"},
        "(n+7)//8,(rows+7)//8", "8,8", {"rows": 13, "n": 10},
    ),
    "convolve": Computation(
        convolve, {"x": "f32[n]", "w": "f32[5]", "y": "f32[n]=out", "n": "i32=n"}, "2"
    ),
    "heat": Computation(
        heat, {"x": "f32[rows,n]", "y": "f32[rows,n]=out", "rows": "i32=rows", "n": "i32=n"},
        "rows", shape={"rows": 6, "n": 11},
    ),
    "scan": Computation(scan, {"x": "f32[32]", "y": "f32[32]=out"}, shape={}),
    "gather": Computation(
        lambda x, at: x[at], {"x": "f32[n]", "at": AT, "y": "f32[n]=out", "n": "i32=n"}, "2"
    ),
    "attention": Computation(
        attention,
        {"q": "f32[2,32]", "k": "f32[n,32]", "v": "f32[n,32]", "o": "f32[2,32]=out", "n": "i32=n"},
        "2", shape={"n": 3},
    ),
    "log_sum_exp": Computation(log_sum_exp, OF_ROWS, "rows", shape=SHAPE),
    "scatter_add": Computation(
        scatter_add, {"x": "f32[n]", "at": AT, "y": "f32[32]=out:zeros", "n": "i32=n"}, "2"
    ),
}  # fmt: skip
