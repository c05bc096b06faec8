"""A matmul of Hopper (`tests/ptx/hopper/gemm.ptx`) for the judge: by tensor maps, mbarriers and
wgmma; right, and with swizzles that do not fit each other."""

from __future__ import annotations

import numpy as np
from bench.common.verdict.computations import ROOT

from warploom import ptx
from warploom.ptx import tensor_map
from warploom.verdict.answer import Judgement
from warploom.verdict.argument import said_in
from warploom.verdict.judged import judged as judged_launch
from warploom.verdict.recorded import RecordedShape
from warploom.verdict.reference import Reference

TEXT = (ROOT / "tests" / "ptx" / "hopper" / "gemm.ptx").read_text()
SIZES = {"m": 128, "n": 128, "k": 256}  # a tile, whose ring of two goes round twice
SWIZZLE = 62  # where a descriptor of wgmma says it: 1 is of 128 bytes
REST = 64 << 32 | 1 << 16  # what else the descriptors of the kernel say


def text(swizzle: int = 1, step: int | None = None) -> str:
    """The kernel with another swizzle in its descriptors, of all or of one step of K."""
    found = TEXT
    for each in range(4) if step is None else (step,):
        was, now = ((code << SWIZZLE) + REST + 2 * each for code in (1, swizzle))
        found = found.replace(f", {was};", f", {now};")
    return found


# What is judged: a text, and the swizzle of the tensor map of A.
CASES = {
    "right": (text(), 128),
    "descriptors of 64 bytes": (text(2), 128),
    "descriptors of 32 bytes": (text(3), 128),
    "descriptors without a swizzle": (text(0), 128),
    "one descriptor of 64 bytes": (text(2, 3), 128),
    "a tensor map without a swizzle": (text(), 0),
}


def judged(name: str, seed: int, seconds: float = 60.0) -> Judgement:
    made, swizzle = CASES[name]
    m, n, k = SIZES.values()
    a, b, c = (np.zeros(shape, np.uint16) for shape in ((m, k), (n, k), (m, n)))
    maps = [
        tensor_map(a, box=(128, 64), swizzle=swizzle),
        tensor_map(b, box=(128, 64), swizzle=128),
    ]
    said = [said_in(each) for each in ("a=bf16[m,k]", "b=bf16[n,k]", "c=bf16[m,n]=out")]
    shape = RecordedShape(
        said, (1,), (384,), None, 2 * 256 * 64 * 2, [*maps, c, m, n, k], {"a": a, "b": b, "c": c}
    )
    kernel = ptx.load(made, "gemm.ptx").kernel()
    return judged_launch(kernel, Reference(lambda a, b: a @ b.T), shape, SIZES, seconds, seed)
