"""The time model beside what was measured: how it ranks implementations, and how far off it is.

    python -m bench.loopnest.times --works FOLDER [--some 400] [--processes 2] [--fit] [--only WORD]

Rows are those of `command_measured/`, whose files have decisions and times of all that
`bench.loopnest.command_device` measured on an H200. Of each row some are made again, in outline as
the search makes them, and counted (`kernel/work.py`); counts stay in FOLDER, so that the next run
goes on. Each implementation is in one of two halves by its digest. `--fit` prints coefficients that
fit the first half best, without the rows ASIDE, for the machine's record; the table is about the
other half alone: Kendall's rank correlation over pairs whose times differ by more than 5 %, the
median of relative errors and their ninth decile.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, astuple, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import RESULTS, arguments, environment, save
from bench.loopnest.command_device import MEASURED, ROWS

from warploom.errors import WarploomError
from warploom.kernel.work import work_of
from warploom.loopnest.lower import outlined
from warploom.machine.record import H200
from warploom.machine.times import Times, predicted
from warploom.machine.work import Work, stacked
from warploom.pipeline.drawn import made_again
from warploom.pipeline.exploring import nest_of
from warploom.pipeline.nest import Nest
from warploom.pipeline.raced import entries_of
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.strategic import strategies_of

ASIDE = ("matvec-5000", "row-sum", "transposed-matvec")  # which no fit has seen
CLOSE = 1.05  # times whose order is not asked for
STEP, LEAST_STEP = 0.3, 0.004  # of the logarithm of a coefficient
ROUNDS, SEVERAL = 60, 25  # of each coefficient by itself, then of some together
# What a coefficient may be at all, by its meaning: an instruction takes an issue slot. Those that
# are not here are not fitted.
WITHIN = {
    "clock": (1.6, 1.98), "launch": (600, 1500), "block": (0.3, 0.8), "memory": (3800, 4800),
    "run": (1, 128), "stream": (1, 200), "l2": (5500, 16000), "asked": (60, 400),
    "access": (1, 4), "move": (0.2, 1), "iteration": (1, 3), "line": (0.3, 2), "sector": (0.25, 1),
    "wavefront": (0.8, 1.3), "begin": (200, 3000), "global_wait": (150, 1000),
    "memory_wait": (50, 1200), "shared_wait": (20, 100), "barrier_wait": (5, 200),
    "dependent": (0.2, 6), "own_registers": (10, 24), "spill": (0.1, 4), "together": (1, 8),
    "beneath": (1, 8), "beside": (1, 8), "hidden": (1, 8),
}  # fmt: skip
COUNTS = len(fields(Work))
WAITED = 32  # implementations for one process at a time

Sample = tuple[Work, float]


# -- works -----------------------------------------------------------------------------------------


def drawn(row: str, some: int) -> Iterator[list[Any]]:
    """Of what was timed in graphs, the first so many in the order of their digests. What was
    dropped at a first look has no time that is right: on most it is far too long."""
    kept = json.loads(lzma.decompress((RESULTS / MEASURED / f"{row}.json.xz").read_bytes()))
    yield from sorted((each for each in kept if each[5]), key=lambda each: each[1])[:some]


_nests: dict[tuple[str, str], Nest] = {}


def counted(row: str, asked: list[list[Any]]) -> list[tuple[str, list[float] | None]]:
    """The work of some implementations; None where they have no kernel any more."""
    whole = whole_of(row)
    found: list[tuple[str, list[float] | None]] = []
    for entry, key, leaf, *_ in asked:
        try:
            if (row, entry) not in _nests:
                _nests[row, entry] = nest_by(whole[entry])
            nest = _nests[row, entry]
            made = outlined(nest.implementation(made_again(nest, {"leaf": leaf})))
            found.append((key, [float(each) for each in astuple(work_of(made))]))
        except (WarploomError, KeyError) as error:
            print(f"{row}, {entry}: {error}", file=sys.stderr)
            found.append((key, None))
    return found


_known: dict[str, dict[str, Any]] = {}


def whole_of(row: str) -> dict[str, Any]:
    """What takes part in a row's search: recipes of spaces by the names of their entries."""
    if row not in _known:
        given = ROWS[row].nest
        nest = nest_of(*given) if isinstance(given, tuple) else nest_of(given())
        variants = strategies_of(nest, None, "default", free=isinstance(given, tuple)).variants
        _known[row] = {each.name: each.recipe for each in entries_of(nest, variants, True)}
    return _known[row]


def works(row: str, some: int, folder: Path, pool: ProcessPoolExecutor) -> dict[str, Work]:
    """Those that are kept, and those that are missing."""
    file = folder / f"{row}.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    kept = {key: each for key, each in kept.items() if each is None or len(each) == COUNTS}
    missing = sorted((each for each in drawn(row, some) if each[1] not in kept),
                     key=lambda each: str(each[0]))  # fmt: skip
    pieces = [missing[at : at + WAITED] for at in range(0, len(missing), WAITED)]
    for done in pool.map(counted, [row] * len(pieces), pieces):
        kept |= dict(done)
        folder.mkdir(parents=True, exist_ok=True)
        save(file, kept, indent=None)
        print(f"{row}: {len(kept)}", file=sys.stderr, flush=True)
    return {key: Work(*each) for key, each in kept.items() if each is not None}


def halves(row: str, some: int, known: dict[str, Work]) -> tuple[list[Sample], list[Sample]]:
    """What a fit sees, and what judges it."""
    parts: tuple[list[Sample], list[Sample]] = ([], [])
    for _, key, _, _, taken, _ in drawn(row, some):
        if key in known:
            parts[int(key[-1], 16) % 2].append((known[key], taken))
    return parts


# -- judging ---------------------------------------------------------------------------------------


def kendall(measured: np.ndarray, told: np.ndarray) -> float:
    """Over pairs whose measured times differ by more than CLOSE."""
    log, other = np.log(measured), np.log(told)
    apart, order = np.subtract.outer(log, log), np.subtract.outer(other, other)
    far = np.abs(apart) > np.log(CLOSE)
    return float((np.sign(apart) * np.sign(order))[far].mean()) if far.any() else 1.0


def judged_works(samples: list[Sample]) -> dict[str, float]:
    measured = np.array([taken for _, taken in samples])
    return judged(predicted(stacked([work for work, _ in samples]), H200).nanoseconds, measured)


def judged(told: np.ndarray, measured: np.ndarray) -> dict[str, float]:
    """How well predicted times say which of many implementations are fast, and how fast."""
    wrong = np.abs(told / measured - 1)
    best = measured[np.argsort(told)[:8]].min() / measured.min()
    return {
        "implementations": len(measured),
        "kendall": round(kendall(measured, told), 3),
        "median_error": round(float(np.median(wrong)), 3),
        "ninth_decile": round(float(np.quantile(wrong, 0.9)), 3),
        "best_of_first_eight": round(float(best), 3),
    }


# -- fitting ---------------------------------------------------------------------------------------


def loss(times: Times, rows: list[tuple[Work, np.ndarray]]) -> float:
    """The mean over rows of how far predictions are off, and of order, as both matter."""
    machine = H200.but(times=times)
    total = 0.0
    for work, measured in rows:
        off = np.log(predicted(work, machine).nanoseconds / measured)
        total += float(np.mean(np.abs(off)) + 0.5 * np.std(off))
    return total / len(rows)


def fitted(rows: list[tuple[Work, np.ndarray]], times: Times) -> Times:
    """One coefficient after another, by steps of its own that become larger or smaller; then some
    of them together."""
    best, random = loss(times, rows), np.random.default_rng(0)
    steps = dict.fromkeys(WITHIN, STEP)

    def changed(by: dict[str, float]) -> Times:
        moved = {name: float(getattr(times, name)) * np.exp(step) for name, step in by.items()}
        kept: dict[str, Any] = {n: float(np.clip(each, *WITHIN[n])) for n, each in moved.items()}
        return replace(times, **kept)

    for _ in range(ROUNDS):
        since = best
        for name in random.permutation(list(WITHIN)):
            both = [changed({name: sign * steps[name]}) for sign in (1, -1)]
            got, other = min(((loss(each, rows), each) for each in both), key=lambda one: one[0])
            if got < best:
                best, times = got, other
            steps[name] = max(LEAST_STEP, steps[name] * (1.2 if got == best else 0.6))
        for _ in range(SEVERAL):
            some = random.choice(list(WITHIN), 3, replace=False)
            other = changed({n: random.normal() * max(0.05, steps[n]) for n in some})
            got = loss(other, rows)
            if got < best:
                best, times = got, other
        print(f"{best:.4f}", file=sys.stderr, flush=True)
        if since - best < 2e-5 and max(steps.values()) < 5 * LEAST_STEP:
            break
    return times


# -- the whole -------------------------------------------------------------------------------------


def main() -> int:
    parser = arguments(__doc__, "times_model.json", only="rows with this word in their name")
    parser.add_argument("--works", type=Path, required=True, help="a folder for what is counted")
    parser.add_argument("--some", type=int, default=400, help="of each row")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fit", action="store_true", help="print coefficients")
    asked = parser.parse_args()
    names = [path.name.removesuffix(".json.xz") for path in sorted((RESULTS / MEASURED).iterdir())]
    names = [name for name in names if asked.only in name]
    with ProcessPoolExecutor(asked.processes) as pool:
        known = {name: works(name, asked.some, asked.works, pool) for name in names}
    parts = {name: halves(name, asked.some, known[name]) for name in names}
    if asked.fit:
        seen = [
            (stacked([work for work, _ in first]), np.array([taken for _, taken in first]))
            for name, (first, _) in parts.items()
            if name not in ASIDE and first
        ]
        for key, value in asdict(fitted(seen, H200.times)).items():
            if key in WITHIN:
                print(f"{key} = {value:.4g}")
        return 0
    table = {name: judged_works(second) for name, (_, second) in parts.items()}
    for name, row in table.items():
        print(name, json.dumps(row), flush=True)
    save(asked.out, {"rows": table, **environment()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
