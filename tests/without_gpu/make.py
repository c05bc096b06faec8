"""Writes `kept/`, `small/` and `hopper/`: what Triton, Gluon and Numba make of the kernels here, as
PTX that needs none of them.

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
from bench.common.without_gpu.hopper import problem
from tests.without_gpu import (
    gluon_hopper,
    numba_kernels,
    triton_hopper,
    triton_kernels,
    triton_small,
)
from tests.without_gpu.small_cases import SMALL, Kept

from warploom.ptx import TensorMap
from warploom.without_gpu.numba_kernel import NumbaKernel
from warploom.without_gpu.prepared import Prepared
from warploom.without_gpu.triton_kernel import TritonKernel

KEPT = Path(__file__).parent / "kept"
BLOCKS = Path(__file__).parent / "small"
HOPPER = Path(__file__).parent / "hopper"
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
    write_hopper()


def write_small() -> None:
    BLOCKS.mkdir(exist_ok=True)
    for one in SMALL:
        small(one)


# -- Hopper ---------------------------------------------------------------------------------------

# Their names, tiles, what else is set, and whether descriptors are made by the host.
MATMULS: tuple[tuple[str, Any, tuple[int, int, int], dict[str, Any], bool], ...] = (
    ("triton_roles", triton_hopper.roles, (128, 128, 64), {"num_stages": 3}, False),
    ("triton_hosted", triton_hopper.hosted, (64, 128, 64), {"num_stages": 3}, True),
    ("triton_described", triton_hopper.described, (64, 128, 64), {"num_stages": 3}, False),
    ("triton_twofold", triton_hopper.twofold, (128, 128, 64), {"num_ctas": 2}, False),
    ("gluon_ring", gluon_hopper.ring, (64, 128, 64), {"STAGES": 3}, True),
)


def write_hopper() -> None:
    HOPPER.mkdir(exist_ok=True)
    for name, function, tile, more, hosted in MATMULS:
        rows, columns, inner = tile
        sides = {"M": 2 * rows, "N": 2 * columns, "K": 4 * inner}  # known to be multiples of 16
        arrays = {key: np.asarray(x) for key, x in problem(*sides.values()).items() if key in "abc"}
        boxes = {"a": (rows, inner), "b": (columns, inner), "c": (rows, columns)}
        given = {
            key: descriptor(name, array, boxes[key]) if hosted else array
            for key, array in arrays.items()
        }
        settings = {"num_warps": 4, **more}
        if name.startswith("triton"):
            settings |= {"BM": rows, "BN": columns, "BK": inner}
        job = TritonKernel(function, "sm_90").prepare(
            (4,), (*given.values(), *sides.values()), settings
        )
        write(name, job, hopper_record(job, tile, arrays, hosted), HOPPER)


def descriptor(name: str, array: Any, box: tuple[int, int]) -> Any:
    """As a host makes it of a tensor."""
    import torch
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as Gluon
    from triton.tools.tensor_descriptor import TensorDescriptor

    tensor, sides = torch.from_numpy(array), list(box)
    if name.startswith("triton"):
        return TensorDescriptor.from_tensor(tensor, sides)
    layout = gl.NVMMASharedLayout.get_default_for(sides, gl.float16)
    return Gluon.from_tensor(tensor, sides, layout)


def hopper_record(
    job: Prepared, tile: tuple[int, ...], arrays: dict[str, Any], hosted: bool
) -> dict[str, Any]:
    """The launch with names for what depends on its size."""
    args: list[Any] = []
    for name in arrays:
        if not hosted:
            args.append(name)
            continue
        map_ = job.args[len(args)]
        assert isinstance(map_, TensorMap)
        args.append({"map": name, "box": map_.box, "swizzle": map_.swizzle})
        args += [{"side": name, "axis": axis} for axis in range(2)]
        args += [{"stride": name, "axis": axis} for axis in range(2)]
    args += ["M", "N", "K"]
    blocks = int(np.prod(job.grid))
    for left in job.args[len(args) :]:
        args.append(None if left is None else {"scratch": left.nbytes // blocks})
    cluster = 1 if job.cluster is None else int(np.prod(job.cluster))
    return {
        "threads": job.block, "shared": job.shared_bytes, "cluster": cluster, "tile": tile,
        "args": args,
    }  # fmt: skip


if __name__ == "__main__":
    main()
