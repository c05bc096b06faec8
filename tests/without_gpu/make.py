"""Writes `kept/` and `small/`: what Triton and Numba make of the kernels here, as PTX that needs
neither.

    PYTHONPATH=src:. python -m tests.without_gpu.make      # in an environment that has them

The first line of each text says how it is launched. Whole numbers are compiled without being
known, so that a text runs for every size.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.without_gpu.cases import TRITON, Case
from tests.without_gpu import numba_kernels, triton_kernels, triton_small
from tests.without_gpu.small_cases import SMALL, Kept

from warploom.without_gpu.numba_kernel import NumbaKernel
from warploom.without_gpu.prepared import Prepared
from warploom.without_gpu.triton_kernel import TritonKernel

KEPT = Path(__file__).parent / "kept"
BLOCKS = Path(__file__).parent / "small"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def bare(text: str) -> str:
    """Without paths and without what only a debugger reads."""
    text = re.sub(r"\n\t?\.section[ \t].*?\n\t?\{.*?\n\t?\}", "", text, flags=re.DOTALL)
    text = re.sub(r'(\.file\s+\d+\s+)"[^"]*/', r'\1"', text)
    return text.replace("\0", "").rstrip() + "\n"


def write(name: str, job: Prepared, record: dict[str, Any], folder: Path = KEPT) -> None:
    text = bare(job.kernel.owner.module.text.source.text)
    (folder / f"{name}.ptx").write_text(f"// {json.dumps(record)}\n{text}")


def triton(case: Case, dtype: str, arch: str) -> None:
    args, _, _ = case.make(np.random.default_rng(1), dtype, 33)
    function = getattr(triton_kernels, case.name)
    job = TritonKernel(function, arch).prepare((1,), (), {**args, **case.settings})
    text = job.kernel.owner.module.text.source.text
    if "tcgen05" in text:
        return
    passed = [name for name in args if not isinstance(args[name], int) or args[name] != 1]
    record = {
        "threads": job.block, "shared": job.shared_bytes, "args": passed,
        "scratch": len(job.args) - len(passed),
    }  # fmt: skip
    write(f"triton_{case.name}_{dtype}_{arch}", job, record)


def small(one: Kept) -> None:
    args, _ = one.made()
    job = TritonKernel(getattr(triton_small, one.name), "sm_90").prepare(
        (1,), (), {**args, "BLOCK": one.block, "num_warps": one.warps}
    )
    record = {
        "threads": job.block, "shared": job.shared_bytes, "args": [*args],
        "scratch": len(job.args) - len(args),
    }  # fmt: skip
    write(one.stem, job, record, BLOCKS)


def numba(name: str, arch: str) -> None:
    function, args = numba_kernels.KERNELS[name]
    job = NumbaKernel(function, arch).prepare((1, 64), args, {})
    write(f"numba_{name}_{arch}", job, {"threads": 64})


def main() -> None:
    KEPT.mkdir(exist_ok=True)
    for case in TRITON:
        for dtype in case.dtypes:
            for arch in ARCHITECTURES:
                triton(case, dtype, arch)
    for name in numba_kernels.KERNELS:
        numba(name, "sm_90")
    write_small()


def write_small() -> None:
    BLOCKS.mkdir(exist_ok=True)
    for one in SMALL:
        small(one)


if __name__ == "__main__":
    main()
