"""Programs whose runs are accepted by the conditions of a proof, against all their schedules."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from bench.common.ptx.phases import LOOKS, LOOPS, RELAXES, Case, Log, explore, schedule
from bench.common.ptx.phases_drawn import draw
from bench.common.ptx.phases_text import text

from warploom.errors import DeviceError
from warploom.ptx import load
from warploom.ptx.emulate.asked import Model
from warploom.ptx.emulate.skeleton import Recorded
from warploom.ptx.prove.conditions import check
from warploom.ptx.prove.flags import check_flags, counted_on

AS_PTX = 100  # one in so many is run as PTX, too


def broken(recorded: Recorded) -> set[str]:
    """The conditions that fail; these programs wait for no copy before they end."""
    rest, chains = counted_on(replace(recorded, loops=tuple(LOOPS.values())), LOOPS)
    failed = [*check(rest), *check_flags(rest, LOOPS, chains)]
    return {each.condition for each in failed} - {"exit"}


def from_ptx(case: Case) -> set[str] | None:
    """What is in the way of a proof of the program as PTX; None where it does not come to its end.

    Its copies bring the same bytes to the same place: that they race is no matter here."""
    kernel = load(text(case), "program.ptx").kernel("k")
    source, flags = np.zeros(16, np.uint8), np.array([*case.flags, 0], np.uint32)
    model: Model = "ptx" if case.manual else "practice"
    try:
        report = kernel.launch(
            1, 32 * len(case.program), [source, flags], races="all", prove=True, seconds=60,
            model=model,
        )  # fmt: skip
    except DeviceError:
        return None
    assert report.proof is not None
    return {each.condition for each in report.proof.failed} - {"exit", "races"}


def looked_at(seed: int, programs: int) -> dict[str, Any]:
    """So many programs that come to their end: how many are accepted, and which wrongly."""
    r, counts = Random(seed), Counter[str]()
    wrong: list[str] = []
    began = time.process_time()
    while counts["programs"] < programs:
        case = draw(r)
        counts["drawn"] += 1
        run = schedule(case, r)
        if run is None:
            continue
        _count(counts, wrong, case, *run)
        if counts["programs"] % AS_PTX == 0:
            _as_ptx(counts, wrong, case, run[0])
    return {**counts, "wrong_programs": wrong[:10], "seconds": time.process_time() - began}


def _count(
    counts: Counter[str], wrong: list[str], case: Case, log: Log, recorded: Recorded
) -> None:
    truth = explore(case, log)
    if truth == "too many":
        counts["too large"] += 1
        return
    counts["programs"] += 1
    counts["third phase"] += any(phase >= 2 for phase in log.values())
    counts["same in all schedules"] += truth == "same"
    used = {op.word for ops in case.program for op in ops}
    flags, peeks = bool(used & {*LOOKS}), "peek" in used
    relaxed = bool(used & {*RELAXES})
    counts["with relaxed arrivals or waits"] += relaxed
    counts["with flags"] += flags
    counts["with a wait that may say no once"] += peeks
    if not broken(recorded):
        counts["accepted"] += 1
        counts["accepted with flags"] += flags
        counts["accepted with relaxed arrivals or waits"] += relaxed
        if truth != "same":
            counts["wrong"] += 1
            wrong.append(f"{truth}: {case}")


def _as_ptx(counts: Counter[str], wrong: list[str], case: Case, log: Log) -> None:
    failed = from_ptx(case)
    counts["as ptx"] += 1
    if failed is not None and not failed:
        counts["accepted as ptx"] += 1
        truth = explore(case, log)
        if truth not in ("same", "too many"):
            counts["wrong"] += 1
            wrong.append(f"as PTX, {truth}: {case}")
