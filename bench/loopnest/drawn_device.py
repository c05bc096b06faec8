"""The time model beside implementations that are drawn at random, measured on a GPU.

    python -m bench.loopnest.drawn_device [--each 300] [--processes 16] [--only WORD] [--out FILE]
    python -m bench.loopnest.drawn_device --dry --each 8 --processes 2      compiled, not measured

What a search measures lies close together, near the best. Here the rows of `command_device` are
drawn from all over their spaces: as many from each strategy's variants and from the space as it is,
by descents as the search makes them. Left out are texts that `command_measured/` has (coefficients
were fitted to half of those), and what the model predicts to take longer than `LONGEST` or `FAR`
times the least prediction among the first of a row. Rows are judged as in `bench.loopnest.times`.
They are written as they come; the same command goes on where it was stopped.
"""

from __future__ import annotations

import json
import lzma
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any

import numpy as np
from bench.harness import RESULTS, arguments, earlier, environment, save
from bench.loopnest.command_device import MEASURED, ROWS
from bench.loopnest.times import judged, whole_of

from warploom.errors import WarploomError
from warploom.pipeline.drawn import Asked, Made, leaves_of, made_of
from warploom.pipeline.nest import Nest
from warploom.pipeline.raced import quick_gpu
from warploom.pipeline.spaces import nest_by

LONGEST = 3e6  # nanoseconds
FAR = 40.0
MORE = 1.4  # descents for an implementation that is measured
RECORD = "times_drawn.json"
ARCH = "sm_90"
Pair = tuple[float, Made]

_nests: dict[tuple[str, str], Nest] = {}


def pieces(row: str, each: int, processes: int) -> list[tuple[str, str, int, int]]:
    """Row, entry, seed and how many descents: more than are wanted, since some are left out. One
    process does much of one entry, since its space takes seconds to make."""
    entries = list(whole_of(row))
    rounds = -(-processes // len(entries))
    descents = -(-int(MORE * each) // (rounds * len(entries)))
    return [(row, entry, seed, descents) for entry in entries for seed in range(rounds)]


def some(row: str, entry: str, seed: int, descents: int) -> list[Pair]:
    """What one piece gives: predicted nanoseconds, and the compiled kernels."""
    if (row, entry) not in _nests:
        _nests[row, entry] = nest_by(whole_of(row)[entry])
    nest = _nests[row, entry]
    if not nest.is_possible:
        return []
    found = leaves_of(nest, Asked(descents, (7, seed)))
    told = list[tuple[float, int]]()
    for at in map(int, np.flatnonzero(found.arrived)):
        try:
            told.append((nest.outlined_time(found.leaves.take(slice(at, at + 1))), at))
        except WarploomError:  # what no kernel can be written for
            continue
    most = min(LONGEST, FAR * min((each for each, _ in told), default=0.0))
    seen, made = set[str](), list[Pair]()
    for each, at in told:
        if each > most:
            continue
        try:
            built = made_of(nest, found.leaves, at, ARCH, seen)
        except WarploomError:
            continue
        if built is not None:
            made.append((float(each), built))
    return made


def fitted_texts(row: str) -> set[str]:
    file = RESULTS / MEASURED / f"{row}.json.xz"
    kept = json.loads(lzma.decompress(file.read_bytes())) if file.exists() else []
    return {each[1] for each in kept}


def drawn(row: str, each: int, waiting: Sequence[Future[list[Pair]]]) -> Iterator[Pair]:
    known, given = fitted_texts(row), 0
    for done in as_completed(waiting):
        for pair in done.result():
            if pair[1].key not in known and given < each:
                known.add(pair[1].key)
                given += 1
                yield pair


def measured(row: str, pairs: Iterator[Pair], quick: Any) -> dict[str, Any]:
    """[predicted, measured] nanoseconds of each, and how well one says the other."""
    found, failed = list[list[float]](), 0
    for told, made in pairs:
        try:
            taken, timed = quick.time(made, float("inf"))
        except WarploomError as error:
            print(f"{row}: {error}", file=sys.stderr)
            failed += 1
            continue
        if timed:
            found.append([round(told, 1), round(taken, 1)])
    both = np.array(found)
    return {**judged(both[:, 0], both[:, 1]), "failed": failed, "pairs": found}


def main() -> int:
    parser = arguments(__doc__, RECORD, only="rows with this word", dry="no GPU", resumes=True)
    parser.add_argument("--each", type=int, default=300, help="of each row")
    parser.add_argument("--processes", type=int, default=16)
    asked = parser.parse_args()
    record = earlier(asked.out, again=asked.again)
    rows = record.get("rows", {})
    names = [name for name in ROWS if asked.only in name and name not in rows]
    with ProcessPoolExecutor(asked.processes) as pool:
        waiting = {
            name: [pool.submit(some, *piece) for piece in pieces(name, asked.each, asked.processes)]
            for name in names
        }
        for name in names:
            since, pairs = time.monotonic(), drawn(name, asked.each, waiting[name])
            if asked.dry:
                told = [each for each, _ in pairs]
                print(name, len(told), np.round(np.quantile(told, (0, 0.5, 1))), flush=True)
                continue
            quick = quick_gpu(nest_by(next(iter(whole_of(name).values()))).whole)
            rows[name] = measured(name, pairs, quick)
            said = {key: value for key, value in rows[name].items() if key != "pairs"}
            print(name, json.dumps(said), f"{time.monotonic() - since:.0f} s", flush=True)
            save(asked.out, {"rows": rows, **environment(quick.device)}, indent=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
