"""Products of matrices on tensor cores by the user's call, from an empty store, beside cuBLAS.

    python -m bench.loopnest.matrix_device --out FOLDER [--seconds 90] [--only bf16-4096 …]

Rows are as `command_device` has them: the loop nest of a product whose factors are converted where
they are multiplied. `nk` says that the second factor has its rows along the sum (a weight as
PyTorch's `linear` has it), `kn` that it is stored as NumPy multiplies it; `mk` and `km` of the
first. Rows of `tf32` have factors of single precision, of which ten bits of the fraction count.
Rows of `int4` and `int8` have weights of as many bits, scaled by groups of 128 along the sum,
beside cuBLAS with weights of sixteen bits. `matrix_device.json` has a record of each row. L2 is as
the launches before left it, for both.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

from bench.harness import arguments
from bench.loopnest.command_device import Call, Row, main

from warploom.kernel.dtype import DType, bf16, e4m3, f16, f32
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, cast, erf, tf32
from warploom.loopnest.kernels import Integers, matmul

RECORDS = "matrix_device.json"
TORCH = {f16: "float16", bf16: "bfloat16", f32: "float32", e4m3: "float8_e4m3fn"}


def product(
    m: int, n: int, k: int, dtype: DType = bf16, layout: str = "mk-kn", gelu: bool = False
) -> LoopNest:
    """C = A·B, or gelu(A·B + bias), in the type of the factors; of eight bits in bf16."""
    nest = LoopNest("matmul")
    axes = {"m": nest.axis("m", m), "n": nest.axis("n", n), "k": nest.axis("k", k)}
    first, second = ([axes[each] for each in side] for side in layout.split("-"))
    out = bf16 if dtype is e4m3 else dtype
    seen = tf32 if dtype is f32 else partial(cast, dtype=f32)
    A, B = nest.array("A", *first, dtype=dtype), nest.array("B", *second, dtype=dtype)
    C = nest.array("C", axes["m"], axes["n"], dtype=out)
    a, b = seen(A[tuple(first)]), seen(B[tuple(second)])
    value: Value = nest.sum(a * b, over=axes["k"])
    if gelu:
        value = nest.value(value + cast(nest.array("bias", axes["n"], dtype=out)[axes["n"]], f32))
        value = 0.5 * value * (1.0 + erf(value * 0.5**0.5))
    C[axes["m"], axes["n"]] = value if out is f32 else cast(value, out)
    return nest


def library(m: int, n: int, k: int, dtype: DType, layout: str, torch: Any) -> Call:
    torch.backends.cuda.matmul.allow_tf32 = True
    sizes, kind = {"m": m, "n": n, "k": k}, getattr(torch, TORCH[dtype])
    a, b = (
        torch.randn(*(sizes[each] for each in side), device="cuda").to(kind)
        for side in layout.split("-")
    )
    a, b = a if layout[0] == "m" else a.t(), b if layout[3] == "k" else b.t()
    if dtype is e4m3:
        one = torch.ones((), device="cuda")
        return partial(torch._scaled_mm, a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    out = torch.empty(m, n, device="cuda", dtype=getattr(torch, TORCH[dtype]))
    return partial(torch.mm, a, b, out=out)


def row(
    name: str, shape: tuple[int, int, int], wanted: float, dtype: DType = bf16,
    layout: str = "mk-kn", gelu: bool = False,
) -> Row:  # fmt: skip
    kind = "tf32" if dtype is f32 else repr(dtype)
    said = f"cuBLAS, {kind}{', without bias and GELU' if gelu else ''}"
    nest = partial(product, *shape, dtype, layout, gelu)
    return Row(name, nest, said, wanted, partial(library, *shape, dtype, layout))


def weighted(m: int, n: int, k: int, weights: Integers, wanted: float) -> Row:
    """A product with packed weights, beside that with weights of sixteen bits."""
    nest = partial(matmul, m, n, k, ((), (), ()), weights=weights, group=128, dtype=bf16)
    said = "cuBLAS, weights of bf16"
    return Row(f"{weights}-{m}x{n}x{k}", nest, said, wanted,
               partial(library, m, n, k, bf16, "mk-nk"))  # fmt: skip


ROWS: dict[str, Row] = {
    each.name: each
    for each in (
        row("bf16-1024", (1024, 1024, 1024), 0.95),
        row("bf16-2048", (2048, 2048, 2048), 0.95),
        row("bf16-4096", (4096, 4096, 4096), 0.97),
        row("bf16-8192", (8192, 8192, 8192), 0.97),
        row("bf16-1000", (1000, 1000, 1000), 1.0),
        row("bf16-1536x384x4096", (1536, 384, 4096), 1.0),
        row("bf16-8192x8192x512", (8192, 8192, 512), 0.95),
        row("bf16-128x4096x4096", (128, 4096, 4096), 1.15),
        row("bf16-16x4096x4096", (16, 4096, 4096), 1.0),
        row("bf16-4096-nk", (4096, 4096, 4096), 0.97, layout="mk-nk"),
        row("bf16-4096-km-nk", (4096, 4096, 4096), 0.97, layout="km-nk"),
        row("bf16-4096-km-kn", (4096, 4096, 4096), 0.97, layout="km-kn"),
        row("bf16-1024-nk", (1024, 1024, 1024), 0.95, layout="mk-nk"),
        row("f16-4096", (4096, 4096, 4096), 0.97, f16),
        row("e4m3-4096", (4096, 4096, 4096), 0.85, e4m3, "mk-nk"),
        row("tf32-2048", (2048, 2048, 2048), 0.9, f32, "mk-nk"),
        row("tf32-4096", (4096, 4096, 4096), 0.9, f32, "mk-nk"),
        row("bf16-4096-gelu", (4096, 4096, 4096), 0.94, gelu=True),
        weighted(16, 4096, 4096, "int4", 1.92),  # 1.5 times ours of bf16, which is 1.28 of cuBLAS
        weighted(16, 4096, 4096, "int8", 0.0),
        weighted(64, 4096, 4096, "int4", 0.0),
        weighted(1, 4096, 4096, "int4", 0.0),
    )
}


if __name__ == "__main__":
    main(arguments(__doc__, dry="no GPU"), ROWS, RECORDS)
    sys.stdout.flush()
    os._exit(0)  # threads that hand out tasks may wait for workers that were ended
