"""Programs whose runs are accepted by the conditions of a proof, against all their schedules."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import Any

import numpy as np
from bench.common.ptx.phases import Case, Log, draw, explore, schedule, text

from warploom.errors import DeviceError
from warploom.ptx import load
from warploom.ptx.emulate.skeleton import Recorded
from warploom.ptx.prove.conditions import check

AS_PTX = 100  # one in so many is run as PTX, too


def broken(recorded: Recorded) -> set[str]:
    """The conditions that fail; these programs wait for no copy before they end."""
    return {each.condition for each in check(recorded)} - {"exit"}


def from_ptx(case: Case) -> Recorded | None:
    """The skeleton of the program as PTX; None where it does not come to its end."""
    kernel = load(text(case), "program.ptx").kernel("k")
    source = np.zeros(16, np.uint8)
    try:
        report = kernel.launch(
            1, 32 * len(case.program), [source], races="all", prove=True, seconds=60
        )
    except DeviceError:
        return None
    assert report.proof is not None
    (recorded,) = report.proof.skeletons
    found: Recorded = recorded
    return found


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
    if not broken(recorded):
        counts["accepted"] += 1
        if truth != "same":
            counts["wrong"] += 1
            wrong.append(f"{truth}: {case}")


def _as_ptx(counts: Counter[str], wrong: list[str], case: Case, log: Log) -> None:
    recorded = from_ptx(case)
    counts["as ptx"] += 1
    if recorded is not None and not broken(recorded):
        counts["accepted as ptx"] += 1
        truth = explore(case, log)
        if truth not in ("same", "too many"):
            counts["wrong"] += 1
            wrong.append(f"as PTX, {truth}: {case}")
