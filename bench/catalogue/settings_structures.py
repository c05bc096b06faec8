"""Rows of structures: to arrays, back, and summed; ours beside plain kernels and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from bench.catalogue.settings_compile import Built, Job, Record
from bench.catalogue.settings_gpu import QUICK, SAMPLES, Gpu, Launch, grid_of

from warploom.kernel.dtype import DType

FIELDS = (*range(2, 17), 24, 32)
OTHER_TYPES = ("float16", "float64")
OTHER_FIELDS = (2, 3, 5, 8)
MOVES = {"aos-to-soa": "to_arrays", "soa-to-aos": "to_structures", "aos-sum": "sums"}
SHARED = 48 << 10
INPUT_BYTES = 10**9
# Of the copy ceiling at multiples of 4096 and at odd numbers; of the best plain kernel.
WHOLE, ODD, OF_BEST = 0.93, 0.88, 0.98


@dataclass(frozen=True)
class Structures:
    """One row."""

    entry: str
    fields: int
    dtype: str
    n: int

    @property
    def key(self) -> str:
        return f"{self.entry}/{self.dtype}/{self.fields}/{self.n}"

    @property
    def moved(self) -> int:
        """Bytes."""
        outputs = 1 if self.entry == "aos-sum" else self.fields
        return self.n * (self.fields + outputs) * np.dtype(self.dtype).itemsize

    def jobs(self) -> Iterator[Job]:
        given, size = (("fields", self.fields), ("dtype", self.dtype)), (("n", self.n),)
        yield Job(self.key, self.entry, "default", given, size)
        for strategy in ("registers", "shared", "direct"):
            more = (*given, ("strategy", strategy))
            yield Job(self.key, self.entry, f"ours {strategy}", more, size)


def structure_rows(options: Any) -> list[Structures]:
    kinds = [("float32", fields) for fields in options.fields]
    known = {each.value for each in DType}
    kinds += [(d, f) for d in OTHER_TYPES if d in known for f in OTHER_FIELDS]
    rows = []
    for dtype, fields in kinds:
        even = options.bytes // (np.dtype(dtype).itemsize * fields) // 4096 * 4096
        rows += [Structures(e, fields, dtype, n) for n in (even, even - 4095) for e in MOVES]
    return rows


def plain_jobs(rows: list[Structures]) -> Iterator[Job]:
    for fields, dtype in sorted({(row.fields, row.dtype) for row in rows}):
        for per in (1, 4):
            if per * 256 * (fields | 1) * np.dtype(dtype).itemsize <= SHARED:
                given = (("fields", fields), ("dtype", dtype), ("per", per))
                yield Job("", "", f"per={per}", given)


class StructureCase:
    """Arrays of a row, and what they must become."""

    def __init__(self, gpu: Gpu, row: Structures) -> None:
        torch = gpu.torch
        self.gpu, self.row = gpu, row
        kind = getattr(torch, row.dtype)
        self.x = torch.rand(row.n * row.fields, device="cuda", dtype=torch.float32).to(kind)
        outputs = row.n if row.entry == "aos-sum" else row.n * row.fields
        self.y = torch.empty(outputs, device="cuda", dtype=kind)
        by_structure = row.entry != "soa-to-aos"
        shape = (row.n, row.fields) if by_structure else (row.fields, row.n)
        self.view = self.x.view(shape)
        self.wanted = self.view.double().sum(1) if row.entry == "aos-sum" else None

    def right(self) -> bool:
        torch = self.gpu.torch
        if self.wanted is None:
            return bool(torch.equal(self.y.view(self.view.t().shape), self.view.t()))
        tolerance = 2e-3 if self.row.dtype == "float16" else 1e-5
        return bool(((self.y.double() - self.wanted).abs() <= tolerance * self.wanted.abs()).all())

    def launch(self, code: bytes, name: str, grid: Any, block: Any) -> Launch:
        arguments = [np.int32(self.row.n), self.x.data_ptr(), self.y.data_ptr()]
        return self.gpu.launch(code, name, grid, block, arguments)

    def timed(self, launch: Launch, samples: int = QUICK) -> Record:
        self.y.fill_(float("nan"))
        launch()
        if not self.right():
            return {"error": "wrong result"}
        seconds, spread = self.gpu.seconds(launch, samples)
        return {"seconds": seconds, "spread": spread}

    def by_torch(self) -> Launch:
        if self.wanted is None:
            return lambda: self.view.t().contiguous()
        return lambda: self.gpu.torch.sum(self.view, dim=1, out=self.y)


def measure_structures(gpu: Gpu, row: Structures, ours: list[Built], plain: list[Built]) -> Record:
    case = StructureCase(gpu, row)
    ceiling = gpu.ceiling(row.moved)
    found: Record = {"n": row.n, "bytes": row.moved, "ceiling": ceiling, "ours": {}, "others": {}}
    for each in ours:
        record: Record = {"settings": each.settings}
        if each.failure or each.kernel is None:
            record["error"] = each.failure
        else:
            launch = case.launch(each.code, each.name, grid_of(each.kernel, {"n": row.n}),
                                 each.kernel.block)  # fmt: skip
            samples = SAMPLES if each.job.label == "default" else QUICK
            record |= case.timed(launch, samples)
            record["registers"] = (each.registers or {}).get(each.name)
        found["ours"][each.job.label] = record
    for each in plain:
        per = dict(each.job.given)["per"]
        for kind in ("direct", "shared"):
            label, name = f"{kind} {each.job.label}", f"{kind}_{MOVES[row.entry]}"
            if each.failure:
                found["others"][label] = {"error": each.failure}
                continue
            grid = (-(-row.n // (256 * per)), 1, 1)
            found["others"][label] = case.timed(case.launch(each.code, name, grid, (256, 1, 1)))
    seconds, spread = gpu.seconds(case.by_torch(), 5)
    found["others"]["torch"] = {"seconds": seconds, "spread": spread}
    return judged_structures(row, found, ceiling)


def judged_structures(row: Structures, found: Record, ceiling: float) -> Record:
    for each in (*found["ours"].values(), *found["others"].values()):
        if "seconds" in each:
            each["fraction"] = round(row.moved / each["seconds"] / ceiling, 4)
    default = found["ours"]["default"].get("fraction", 0.0)
    best = max(each.get("fraction", 0.0) for each in found["others"].values())
    goal = WHOLE if row.n % 4096 == 0 else ODD
    return found | {
        "fraction": default,
        "of_best": round(default / best, 4),
        "goal": goal,
        "met": default >= goal and default >= OF_BEST * best,
    }
