"""The computations as kernels of Triton: `tests/verdict/triton` holds the PTX of each, with a first
line that says how it is launched (`tests/verdict/make.py` writes them)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bench.common.verdict.computations import COMPUTATIONS, ROOT, Computation
from bench.common.verdict.more_computations import MORE

from warploom import ptx
from warploom.ptx.launch import LoadedModule

FOLDER = ROOT / "tests" / "verdict" / "triton"
ALL = {**COMPUTATIONS, **MORE}
KINDS = ("", "_wrong", "_gamed")


@dataclass(frozen=True)
class Settings:
    """How a kernel is compiled and launched."""

    grid: str
    block: int  # its constant BLOCK
    warps: int = 1


ELEMENTS = Settings("(n+31)//32", 32)
ROWS = Settings("rows", 64, 4)
SETTINGS = {
    **dict.fromkeys(("saxpy", "relu", "silu", "gelu", "softplus", "swiglu", "adam"), ELEMENTS),
    **dict.fromkeys(("gather", "scatter_add", "convolve", "columns", "half_axpy"), ELEMENTS),
    **dict.fromkeys(("row_max", "softmax", "layer_norm", "log_sum_exp", "unit", "outer"), ROWS),
    **dict.fromkeys(("entropy", "batch_norm"), ROWS),
    "sigmoid": Settings("1", 64, 2), "row_sum": Settings("rows", 16), "dot": Settings("1", 64, 4),
    "rms_norm": Settings("1", 64, 2), "matmul": Settings("(n+15)//16,(n+15)//16", 16, 4),
    "tensor": Settings("n//16,n//16", 16, 4),
    "transpose": Settings("(n+7)//8,(rows+7)//8", 8, 2), "heat": Settings("rows", 16),
    "scan": Settings("1", 32), "attention": Settings("1", 16, 4), "rope": Settings("rows", 32),
    "matvec": Settings("rows//4", 32, 2), "tiled": Settings("n//8,n//8", 8, 2),
    "batched": Settings("3", 8, 2), "taps": Settings("rows-2", 32),
    "mean_pool": Settings("rows", 16), "max_pool": Settings("rows", 16),
    "embed": Settings("3", 32), "block_scan": Settings("1", 128, 4),
    "causal": Settings("n", 64, 2),
}  # fmt: skip


@cache
def kernels(name: str) -> tuple[LoadedModule, dict[str, Any]]:
    """The three kernels of a computation, and how each is launched."""
    path = FOLDER / f"{name}.ptx"
    text = path.read_text()
    return ptx.load(text, path.name), json.loads(text.partition("\n")[0][2:])


def written(full: str) -> Computation:
    """A kernel's computation: the same reference and arguments, and Triton's launch."""
    name = full.removesuffix("_wrong").removesuffix("_gamed")
    module, launches = kernels(name)
    launch = launches[full]
    same = ALL[name]
    scratch = {f"scratch{n}": "i64=0" for n in range(launch["scratch"])}
    return replace(
        same, args={**same.args, **scratch}, grid=SETTINGS[name].grid, kernels=module,
        block=str(launch["threads"]), shared=launch["shared"],
    )  # fmt: skip
