"""Row-shaped computations by the user's call on a GPU, from an empty store, beside PyTorch.

    python -m bench.loopnest.rows_device --out FOLDER [--seconds 60] [--only softmax-bf16 …]
    python -m bench.loopnest.rows_device --dry --seconds 20 --only softmax-bf16           no GPU

Softmax, norms and cross entropy as a user states them, as `command_device` explores and times its
rows. `rows_device.json` has a record of each. A reference "copy" or "read" moves as many bytes as
the row has to.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.harness import arguments
from bench.loopnest.command_device import Call, Row, copy, main

from warploom.kernel.dtype import DType, bf16, f16, f32, i32
from warploom.kernel.ir import Value
from warploom.loopnest.build import LoopNest, cast, choose, exp, log, rsqrt

RECORDS = "rows_device.json"


# -- as a user would write them --------------------------------------------------------------------


def single(value: Value, dtype: DType) -> Value:
    return value if dtype is f32 else cast(value, f32)


def stored(value: Value, dtype: DType) -> Value:
    return value if dtype is f32 else cast(value, dtype)


def softmax(m: int, n: int, dtype: DType) -> LoopNest:
    nest = LoopNest("softmax")
    i, j = nest.axis("m", m), nest.axis("n", n)
    x, y = nest.array("x", i, j, dtype=dtype), nest.array("y", i, j, dtype=dtype)
    own = single(x[i, j], dtype)
    above = nest.value(exp(own - nest.fold("max", own, over=j)))
    share = nest.value(1.0 / nest.sum(above, over=j))
    y[i, j] = stored(above * share, dtype)
    return nest


def layer_norm(m: int, n: int, dtype: DType) -> LoopNest:
    nest = LoopNest("layer_norm")
    i, j = nest.axis("m", m), nest.axis("n", n)
    x, y = nest.array("x", i, j, dtype=dtype), nest.array("y", i, j, dtype=dtype)
    scale, shift = nest.array("scale", j, dtype=dtype), nest.array("shift", j, dtype=dtype)
    own = single(x[i, j], dtype)
    mean = nest.value(nest.sum(own, over=j) * (1 / n))
    away = own - mean
    by = nest.value(rsqrt(nest.sum(away * away, over=j) * (1 / n) + 1e-5))
    made = away * by * single(scale[j], dtype) + single(shift[j], dtype)
    y[i, j] = stored(made, dtype)
    return nest


def rms_norm(m: int, n: int, dtype: DType) -> LoopNest:
    nest = LoopNest("rms_norm")
    i, j = nest.axis("m", m), nest.axis("n", n)
    x, y = nest.array("x", i, j, dtype=dtype), nest.array("y", i, j, dtype=dtype)
    scale = nest.array("scale", j, dtype=dtype)
    own = single(x[i, j], dtype)
    by = nest.value(rsqrt(nest.sum(own * own, over=j) * (1 / n) + 1e-5))
    y[i, j] = stored(own * by * single(scale[j], dtype), dtype)
    return nest


def cross_entropy(m: int, n: int, dtype: DType) -> LoopNest:
    """The loss of each row."""
    nest = LoopNest("cross_entropy")
    i, j = nest.axis("m", m), nest.axis("n", n)
    x, label = nest.array("x", i, j, dtype=dtype), nest.array("label", i, dtype=i32)
    loss = nest.array("loss", i)
    own = single(x[i, j], dtype)
    top = nest.fold("max", own, over=j)
    total = nest.sum(exp(own - top), over=j)
    right = nest.sum(choose(nest.index(j).eq(label[i]), own, 0.0), over=j)
    loss[i] = log(total) + top - right
    return nest


# -- references ------------------------------------------------------------------------------------

TORCH = {f32: "float32", f16: "float16", bf16: "bfloat16"}


def drawn(torch: Any, dtype: DType, *shape: int) -> Any:
    return torch.randn(*shape, device="cuda", dtype=getattr(torch, TORCH[dtype]))


def torch_softmax(m: int, n: int, dtype: DType, torch: Any) -> Call:
    x = drawn(torch, dtype, m, n)
    out = torch.empty_like(x)
    return partial(torch.softmax, x, 1, out=out)


def torch_layer_norm(m: int, n: int, dtype: DType, torch: Any) -> Call:
    x, scale, shift = (drawn(torch, dtype, *s) for s in ((m, n), (n,), (n,)))
    return partial(torch.nn.functional.layer_norm, x, (n,), scale, shift)


def torch_rms_norm(m: int, n: int, dtype: DType, torch: Any) -> Call:
    x, scale = drawn(torch, dtype, m, n), drawn(torch, dtype, n)
    return partial(torch.nn.functional.rms_norm, x, (n,), scale, 1e-5)


def read(bytes_: int, torch: Any) -> Call:
    """As many bytes read and summed up by PyTorch, in rows."""
    x = drawn(torch, f32, bytes_ // 4 // 4096, 4096)
    out = torch.empty(x.shape[0], device="cuda")
    return partial(torch.sum, x, 1, out=out)


def row(
    name: str,
    nest: Callable[[int, int, DType], LoopNest],
    size: tuple[int, int, DType],
    wanted: float,
    reference: Callable[[Any], Call],
    what: str,
) -> Row:
    return Row(name, partial(nest, *size), what, wanted, reference)


def beside_copy(name: str, nest: Any, m: int, n: int, dtype: DType, wanted: float) -> Row:
    moved = 2 * m * n * dtype.bytes
    return row(name, nest, (m, n, dtype), wanted, partial(copy, moved), "copy of as many bytes")


def beside_torch(name: str, nest: Any, reference: Any, dtype: DType, wanted: float) -> Row:
    size = (8192, 4096, dtype)
    return row(name, nest, size, wanted, partial(reference, *size), "PyTorch's own")


ROWS: dict[str, Row] = {
    each.name: each
    for each in (
        beside_torch("softmax-bf16", softmax, torch_softmax, bf16, 107 / 36),
        beside_torch("layer-norm-bf16", layer_norm, torch_layer_norm, bf16, 55 / 36),
        beside_torch("rms-norm-bf16", rms_norm, torch_rms_norm, bf16, 43 / 36),
        row("cross-entropy-bf16", cross_entropy, (4096, 50257, bf16), 0.85,
            partial(read, 4096 * 50257 * 2), "read of as many bytes"),
        beside_torch("softmax-f16", softmax, torch_softmax, f16, 107 / 36),
        beside_torch("softmax-f32", softmax, torch_softmax, f32, 1.0),
        beside_torch("layer-norm-f32", layer_norm, torch_layer_norm, f32, 1.0),
        beside_copy("softmax-1000", softmax, 32768, 1000, bf16, 0.8),
        beside_copy("softmax-4097", softmax, 8192, 4097, bf16, 0.8),
        beside_copy("softmax-100003", softmax, 512, 100003, bf16, 0.8),
        beside_copy("softmax-100003-f32", softmax, 512, 100003, f32, 0.8),
        beside_copy("rms-norm-4097", rms_norm, 8192, 4097, bf16, 0.8),
        beside_copy("rms-norm-100003", rms_norm, 512, 100003, bf16, 0.8),
    )
}  # fmt: skip


if __name__ == "__main__":
    main(arguments(__doc__, dry="no GPU"), ROWS, RECORDS)
    sys.stdout.flush()
    os._exit(0)  # threads that hand out tasks may wait for workers that were ended
