"""PTX that Triton made (`tests/without_gpu/kept`), each with a reference in NumPy for the judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.verdict.computations import ROOT, softmax
from bench.common.without_gpu.cases import TRITON, philox

from warploom import ptx
from warploom.verdict.answer import Judgement
from warploom.verdict.judged import judge

FOLDER = ROOT / "tests" / "without_gpu" / "kept"
CASES = {case.name: case for case in TRITON}
TYPES = {"float16": "f16", "float32": "f32", "int32": "i32", "int64": "i64"}


def layer_norm(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + eps)
    return centred * scale * weight + bias


def dropout(x: Any, p: Any, n: int) -> Any:
    """Which are kept depends on whole numbers alone; by the case's seed."""
    kept = philox(7, np.arange(n)) > np.float32(0.3)
    return np.where(kept, x / (1 - p), 0.0)


def attention(q: Any, k: Any, v: Any, scale: Any) -> Any:
    return softmax((q @ k.T) * scale) @ v


ROWS = {"x": "T[rows,columns]", "out": "T[rows,columns]=out", "columns": "i32=columns"}
# By kernel: what its arguments are, with T for the type of the text, and the reference.
REFERENCES: dict[str, tuple[dict[str, str], Callable[..., Any]]] = {
    "add": ({"x": "T[n]", "y": "T[n]", "out": "T[n]=out", "n": "i32=n"}, lambda x, y: x + y),
    "softmax": (ROWS, softmax),
    "layernorm": (
        {**ROWS, "weight": "T[columns]", "bias": "T[columns]", "eps": "f32"}, layer_norm
    ),
    "scan": (ROWS, lambda x: np.cumsum(x, axis=1)),
    "matmul": (
        {"a": "T[M,K]", "b": "T[K,N]", "c": "f32[M,N]=out", "M": "i32=M", "N": "i32=N",
         "K": "i32=K"},
        lambda a, b: a @ b,
    ),
    "dropout": (
        {"x": "T[n]", "out": "T[n]=out", "n": "i32=n", "p": "f32=0.3", "seed": "i32=7"}, dropout
    ),
    "attention": (
        {**dict.fromkeys("qkv", "T[length,width]"), "out": "f32[length,width]=out",
         "length": "i32=length", "scale": "f32"}, attention,
    ),
}  # fmt: skip


def texts() -> list[Path]:
    """PTX of Triton's kernels, for three architectures."""
    return sorted(FOLDER.glob("triton_*.ptx"))


def judged(path: Path, seed: int, seconds: float = 60.0) -> Judgement:
    """At the small ragged size of its case."""
    _, name, dtype, _ = path.stem.split("_", 3)
    case, (described, reference) = CASES[name], REFERENCES[name]
    given, _, _ = case.make(np.random.default_rng(1), dtype, case.sizes[1])
    text = path.read_text()
    record = json.loads(text.partition("\n")[0][2:])
    args: dict[str, Any] = {}
    shape: dict[str, int] = {}
    for each in record["args"]:
        said = described[each].replace("T", TYPES[dtype])
        if "[" in said:
            names = said[said.index("[") + 1 : said.index("]")].split(",")
            shape |= dict(zip(names, map(int, given[each].shape), strict=True))
        whole = said.startswith("i") and said.endswith("]")
        args[each] = given[each] if whole else said  # whole numbers stay as they are
    args |= {f"scratch{n}": "i64=0" for n in range(record["scratch"])}
    return judge(
        ptx.load(text, path.name).kernel(), reference, args, grid=case.grid(given),
        block=record["threads"], shared_bytes=record["shared"], shape=shape, seed=seed,
        seconds=seconds,
    )  # fmt: skip
