"""Kernels for `ptx_engine.py`: each run by the evaluator and by the fast engine, bits compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
from bench.common.ptx import device_kernels
from bench.common.ptx.spelling import THREADS, inputs, instruction, parts, program, spelled
from bench.ptx import mma_device
from bench.ptx import ncu_kernels as kept
from bench.ptx.launches import Job

from warploom import ptx
from warploom.machine.counters import Counters
from warploom.ptx.emulate.asked import EngineName
from warploom.ptx.fast import cores
from warploom.ptx.table import OPCODES

SLICE = cores.FIRST_SLICE
FORMS = "forms"
TOGETHER = 24  # forms of an instruction in one kernel
Row = dict[str, Any]


def instructions() -> Iterator[Job]:
    for case in device_kernels.cases():
        text = device_kernels.PTX_HEADER + device_kernels.ptx_source(case)
        args = [*device_kernels.inputs(case), *device_kernels.outputs(case)]
        blocks = device_kernels.SIZE // device_kernels.BLOCK
        yield Job(case.name, text, case.name, (blocks,), (device_kernels.BLOCK,), args)


GROUPS: dict[str, Callable[[], Iterator[Job]]] = {
    "nvcc": kept.all_programs, "CUB": kept.all_collectives, "Triton": kept.all_tritons,
    "Numba": kept.numbas, "catalogue": kept.catalogued, "instructions": instructions,
    "matrices": lambda: iter(mma_device.jobs()),
}  # fmt: skip


@cache
def jobs(group: str) -> dict[str, Job]:
    return {job.name: job for job in GROUPS[group]()}


@cache
def forms(name: str) -> list[str]:
    """Every spelling of an opcode; of `set`, whose words do not touch each other, one in six."""
    record = OPCODES[name]
    every = [
        instruction(record, form, parts(row)) for form in record.forms for row in spelled(form)
    ]
    texts = list(dict.fromkeys(every))
    return texts[:: 1 + len(texts) // 1000 * 5]


def tasks(only: str = "") -> list[tuple[str, str]]:
    """Groups and kernels with that word; of one group alone, the others are not even made."""
    groups = [only] if only in (*GROUPS, FORMS) else [*GROUPS, FORMS]
    found = [(group, name) for group in groups if group != FORMS for name in jobs(group)]
    for record in OPCODES.values() if FORMS in groups else ():
        if record.pure and record.name not in ("mov", "cvta", "isspacep"):
            count = len(forms(record.name))
            found += [(FORMS, f"{record.name}/{first}") for first in range(0, count, TOGETHER)]
    return [task for task in found if only in " ".join(task)]


def looked_at(group: str, name: str, look: bool, noted: bool) -> Row:
    """How many of a task's kernels (or forms) are taken, which are left and why, which differ."""
    if group == FORMS:
        return _forms(name, look)
    row = _kernel(jobs(group)[name], look)
    if noted and row["taken"] and not look:
        _note(jobs(group)[name], row)
    return row


def _note(job: Job, row: Row) -> None:
    """The same with counters, then with races: their figures and findings, or who was left."""
    kernel = job.loaded()
    for asked in ({"counters": True}, {"races": "all"}):
        reports, results = [], []
        for engine in ("numpy", "c"):
            args = job.fresh()
            reports.append(kernel.launch(
                job.grid, job.block, args, shared_bytes=job.shared, engine=engine, **asked
            ))  # fmt: skip
            results.append(args)
        (word,) = asked
        row[f"{word}_taken"] = int(_is_compiled(reports[1]))
        same = all(a.tobytes() == b.tobytes() for a, b in zip(*results, strict=True)
                   if isinstance(a, np.ndarray))  # fmt: skip
        told = [
            [getattr(r, each.name) for each in fields(Counters) if r.counted] + [r.races]
            for r in reports
        ]
        if not same or told[0] != told[1]:
            row["other_bits"].append(f"{job.name}, {word}")


def _is_compiled(report: ptx.Report) -> bool:
    return report.engine == "c" or report.in_pieces


def _kernel(job: Job, look: bool) -> Row:
    kernel = job.loaded()
    why_not = kernel.why_not_fast()
    in_pieces = bool(why_not) and kernel.has_pieces()
    if not look and (in_pieces or not why_not):
        results, seconds = [], []
        # The second time it is compiled already; then its blocks are shared out at once.
        ways: list[tuple[EngineName, int, int]]
        ways = [("numpy", 1, 1), ("c", 1, SLICE), ("c", 1, SLICE), ("c", 4, 1)]
        for engine, many, first in ways:
            args, cores.FIRST_SLICE = job.fresh(), first
            started = time.monotonic()
            report = kernel.launch(
                job.grid, job.block, args, shared_bytes=job.shared, engine=engine, cores=many
            )
            seconds.append(round(time.monotonic() - started, 4))
            results.append(args)
        if _is_compiled(report):
            same = all(
                a.tobytes() == b.tobytes() for some in results[2:]
                for a, b in zip(results[0], some, strict=True) if isinstance(a, np.ndarray)
            )  # fmt: skip
            row = {"of": 1, "taken": 1, "left": {}, "other_bits": [] if same else [job.name]}
            row["in_pieces"] = int(in_pieces)
            return row | {
                "seconds": dict(zip(("numpy", "c", "again_c", "cores_c"), seconds, strict=True))
            }
        why_not = kernel.fast.why_not or "given up while it ran"
        in_pieces = False
    left = {job.name: why_not} if why_not and not in_pieces else {}
    taken = {"taken": int(not left), "in_pieces": int(in_pieces)}
    return {"of": 1, **taken, "left": left, "other_bits": []}


def _forms(name: str, look: bool) -> Row:
    opcode, _, first = name.partition("/")
    texts = forms(opcode)[int(first) : int(first) + TOGETHER]
    left = {}
    for text in texts:
        why_not = ptx.load(program([text])).kernel("k").why_not_fast()
        if why_not:
            left[text] = why_not
    taken = [text for text in texts if text not in left]
    row: Row = {"of": len(texts), "taken": len(taken), "left": left, "other_bits": []}
    if look or not taken:
        return row
    kernel, found = ptx.load(program(taken)).kernel("k"), []
    for engine in ("numpy", "c"):
        out = np.zeros((len(taken), THREADS), np.uint64)
        report = kernel.launch(1, THREADS, [*inputs(), out], engine=engine)
        found.append(out)
    if report.engine != "c":
        why_not = kernel.fast.why_not or "given up while it ran"
        return row | {"taken": 0, "left": left | dict.fromkeys(taken, why_not)}
    differ = (found[0] != found[1]).any(axis=1)
    row["other_bits"] = [text for text, bad in zip(taken, differ, strict=True) if bad]
    return row
