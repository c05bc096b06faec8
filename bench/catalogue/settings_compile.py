"""What settings_device.py and settings_probe.py compile: kernels of ours, and hand-written ones."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bench.harness import ROOT

from warploom.catalogue import find
from warploom.emit.cuda import cuda
from warploom.errors import WarploomError
from warploom.kernel.ir import Kernel
from warploom.machine.record import H200
from warploom.runtime.compile import compile_cuda, parse_usage

ARCH = "sm_90"

Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A kernel of ours for a size, or all hand-written ones for a structure."""

    row: str  # the key of a record
    entry: str  # "" for hand-written ones
    label: str
    given: tuple[tuple[str, Any], ...]
    size: tuple[tuple[str, int], ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        return find(self.entry).settings(dict(self.given), dict(self.size), H200)


@dataclass
class Built:
    job: Job
    name: str = ""
    code: bytes = b""
    kernel: Kernel | None = None
    settings: Record | None = None
    registers: dict[str, int] | None = None
    failure: str = ""


def build(job: Job) -> Built:
    """In a process of its own."""
    try:
        if not job.entry:
            return assembled(Built(job), plain_text(**dict(job.given)))
        settings = job.settings
        kernel = find(job.entry).kernel(**settings)
        return assembled(Built(job, kernel.name, b"", kernel, settings), cuda(kernel))
    except WarploomError as error:
        return Built(job, failure=str(error)[:300])


def built_all(jobs: list[Job]) -> dict[str, list[Built]]:
    """By row; what is the same kernel for several jobs is compiled once."""
    groups: dict[Any, list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.entry, *same_for(job)), []).append(job)
    by_row: dict[str, list[Built]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(build, [group[0] for group in groups.values()], chunksize=2)
        for built, group in zip(made, groups.values(), strict=True):
            for job in group:
                by_row.setdefault(job.row, []).append(replace(built, job=job))
    return by_row


def same_for(job: Job) -> tuple[tuple[str, Any], ...]:
    try:
        return tuple(job.settings.items()) if job.entry else job.given
    except WarploomError:  # it will say so when it is built
        return job.given


def assembled(built: Built, text: str) -> Built:
    options = ("--ptxas-options=-v", "--fmad=false") if built.kernel else ("--ptxas-options=-v",)
    made = compile_cuda(text, ARCH, kind="cubin", options=options)
    built.code = made.code
    built.registers = {name: used.registers for name, used in parse_usage(made.log).items()}
    return built


def plain_text(fields: int, dtype: str, per: int) -> str:
    words = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
    added = {"float32": "float", "float64": "double", "float16": "__half"}[dtype]
    head = "#include <cuda_fp16.h>\n" if dtype == "float16" else ""
    values = {"S": fields, "T": words[np.dtype(dtype).itemsize], "F": added, "PER": per}
    head += "".join(f"#define {name} {value}\n" for name, value in values.items())
    return head + (ROOT / "bench" / "catalogue" / "structures_baselines.cu").read_text()
