"""One long search on one core and on many: the same fills, how much faster, how fine its pieces.

    PYTHONPATH=src:. python bench/farm.py [--workers 2,16] [--cluster ADDRESS] [--kill] [--crash]

The search is `warploom synth sums --size columns=27 --size level=3`. Rows go to
bench/results/farm.json, one for each way; a row that is there is measured again only if it is asked
for. `--kill` ends a worker in the middle, `--crash` the whole command (kill -9), which then goes on
from its store. The exit status is 1 if any way gives other fills.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from warploom.bench.published import named
from warploom.search.cluster import Cluster
from warploom.search.farm import Farm
from warploom.search.pieces import Piece
from warploom.sketch.synth.parts import Answer
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting

RESULTS = Path(__file__).parent / "results" / "farm.json"
NAME, SIZES = "sums", {"columns": 27, "level": 3}
CRASHES = 3

Row = dict[str, Any]


def makespan(seconds: list[float], workers: int, each: float) -> float:
    """When the last of them is done, if whoever is free takes the next, and each costs as much."""
    free = [0.0] * workers
    for piece in seconds:
        heapq.heappush(free, heapq.heappop(free) + piece + each)
    return max(free)


def measured(crew: Farm | Cluster | None, kill: bool = False) -> tuple[Result, Row]:
    build = named(NAME)
    assert build is not None
    program = build(SIZES)
    pieces: list[Piece[Answer]] = []
    begun: list[float] = []

    def note(piece: Piece[Answer]) -> None:
        begun.append(time.monotonic())
        pieces.append(piece)
        if kill and isinstance(crew, Farm) and len(pieces) == 20:
            crew._processes[0].kill()

    started = time.monotonic()
    found = synthesize(program, parting=Parting(crew=crew, patience=0.0, on_piece=note))
    wall = time.monotonic() - started
    seconds = [piece.seconds for piece in pieces]
    workers = 1 if crew is None else crew.workers
    within = begun[-1] - begun[0] if len(begun) > 1 else 0.0
    overhead = max(0.0, (within * workers - sum(seconds[1:])) / max(1, len(seconds) - 1))
    return found, {
        "workers": workers,
        "seconds": round(wall, 2),
        "before_the_first_piece": round(begun[0] - started, 2),
        "in_pieces": round(within, 2),
        "pieces": len(pieces),
        "cpu_seconds_of_pieces": round(sum(seconds), 2),
        "largest_share": round(max(seconds) / sum(seconds), 5),
        "overhead_of_a_piece": round(overhead, 5),
        "predicted_in_pieces_by_16": round(makespan(seconds, 16, min(overhead, 0.05)), 2),
    }


def crashed() -> tuple[list[Any], Row]:
    """The command, killed three times and started again; what it says in the end."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "fills.json"
        words = [f"--size={key}={value}" for key, value in SIZES.items()]
        command = [
            sys.executable, "-m", "warploom", "synth", NAME, *words, "--store",
            str(Path(folder) / "store.sqlite"), "--json", str(out),
        ]  # fmt: skip
        kept: list[int] = []
        for _ in range(CRASHES):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            more = kept[-1] + 10 if kept else 10
            while process.poll() is None and _rows(Path(folder)) < more:
                time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kept.append(_rows(Path(folder)))
        started = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        record = json.loads(out.read_text())[0]
        row = {
            "pieces_kept_at_each_crash": kept,
            "last_seconds": round(time.monotonic() - started, 2),
        }
        return record["fills"], row | {"complete": record["complete"]}


def _rows(folder: Path) -> int:
    import sqlite3

    path = folder / "store.sqlite"
    if not path.exists():
        return 0
    connection = sqlite3.connect(path, timeout=60)
    try:
        return int(connection.execute("SELECT count(*) FROM results").fetchone()[0])
    except sqlite3.OperationalError:  # it is just being made
        return 0
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--cluster")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--crash", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    rows: dict[str, Row] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    build = named(NAME)
    assert build is not None
    started = time.monotonic()
    whole = synthesize(build(SIZES))
    one = round(time.monotonic() - started, 2)
    wanted = whole.fills.choices.tolist()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}"
    fills = [whole.described(number) for number in range(len(whole.fills))]
    ways: dict[str, Any] = {}
    for count in map(int, asked.workers.split(",")):
        ways[f"{count} processes"] = (lambda c=count: Farm(c)) if count > 1 else (lambda: None)
    if asked.cluster:
        ways["a Dask cluster"] = lambda: Cluster(asked.cluster)
    if asked.kill:
        ways["3 processes, one killed"] = lambda: Farm(3)
    wrong = 0
    for name, crew_of in ways.items():
        crew = crew_of()
        try:
            found, row = measured(crew, kill="killed" in name)
        finally:
            if crew is not None:
                crew.shutdown(cancel_futures=True)
        row["same_fills"] = found.complete and found.fills.choices.tolist() == wanted
        wrong += not row["same_fills"]
        row |= {"one_process_unparted": one, "machine": machine, "load": os.getloadavg()[0]}
        rows[f"{name}, {os.cpu_count()} cores"] = row
        print(name, json.dumps(row), flush=True)
        asked.out.write_text(json.dumps(rows, indent=1) + "\n")
    if asked.crash:
        again, row = crashed()
        row |= {"same_fills": again == fills and row["complete"], "machine": machine}
        wrong += not row["same_fills"]
        rows[f"killed -9 {CRASHES} times, {os.cpu_count()} cores"] = row
        print("crashes", json.dumps(row), flush=True)
        asked.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
