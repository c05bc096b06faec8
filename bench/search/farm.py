"""One long search on one core and on many: the same fills, how much faster, how fine its pieces.

    python -m bench.search.farm [--workers 2,16] [--columns N] [--kill] [--crash] [--dask]

The search is `warploom synth sums --size columns=27 --size level=3`; with 28 columns it takes twice
as long, and there is no fill. Rows go to bench/results/farm.json, one for each way; a row that is
there is measured again only if it is asked for. `--kill` ends a worker in the middle, `--crash` the
whole command (kill -9), which then goes on from its store. `--dask` starts a scheduler and three
workers on this machine, does the search there, again with a worker killed in the middle, and once
more with the scheduler killed, after which the same command goes on in one process. The exit status
is 1 if any way gives other fills.
"""

from __future__ import annotations

import heapq
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.harness import arguments, earlier, environment, save

from warploom.bench.published import named
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm
from warploom.search.workers.pieces import Piece
from warploom.sketch.synth.parts import Answer
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting

NAME, SIZES = "sums", {"columns": 27, "level": 3}
CRASHES = 3
DASK = 3  # workers
ROWS = 3  # of the store, each a second of pieces, until something is killed

Row = dict[str, Any]


def makespan(seconds: list[float], workers: int, each: float) -> float:
    """When the last of them is done, if whoever is free takes the next, and each costs as much."""
    free = [0.0] * workers
    for piece in seconds:
        heapq.heappush(free, heapq.heappop(free) + piece + each)
    return max(free)


def measured(
    crew: Farm | Cluster | None, kill: Callable[[], object] | None = None
) -> tuple[Result, Row]:
    build = named(NAME)
    assert build is not None
    program = build(SIZES)
    pieces: list[Piece[Answer]] = []
    begun: list[float] = []

    def note(piece: Piece[Answer]) -> None:
        begun.append(time.monotonic())
        pieces.append(piece)
        if kill is not None and len(pieces) == 20:
            kill()

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


class Dask:
    """A scheduler and workers, in processes of their own; `end` kills one of them."""

    def __init__(self, folder: Path) -> None:
        self._told = folder / "scheduler.json"
        self._processes = [self._begun("scheduler", "--host", "127.0.0.1", "--port", "0")]
        while not self._told.exists():
            time.sleep(0.1)
        self.address: str = json.loads(self._told.read_text())["address"]
        self._processes += [
            self._begun("worker", "--nworkers", "1", "--nthreads", "1", "--no-nanny",
                        "--local-directory", str(folder))
            for _ in range(DASK)
        ]  # fmt: skip
        self._wait()

    def _begun(self, *words: str) -> subprocess.Popen[bytes]:
        told = ("--scheduler-file", str(self._told), "--no-dashboard")
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, *told], stderr=subprocess.DEVNULL
        )

    def _wait(self) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(DASK, timeout=120)

    def end(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait()

    def close(self) -> None:
        for number in range(len(self._processes)):
            self.end(number)


def command_in(folder: Path, *more: str) -> list[str]:
    words = [f"--size={key}={value}" for key, value in SIZES.items()]
    return [
        sys.executable, "-m", "warploom", "synth", NAME, *words, "--store",
        str(folder / "store.sqlite"), "--json", str(folder / "fills.json"), *more,
    ]  # fmt: skip


def until_kept(process: subprocess.Popen[bytes], folder: Path, rows: int) -> None:
    while process.poll() is None and _rows(folder) < rows:
        time.sleep(0.2)


def went_on(folder: Path) -> tuple[list[Any], Row]:
    """The command once more, in one process, to its end."""
    started = time.monotonic()
    subprocess.run(command_in(folder), stdout=subprocess.DEVNULL)
    record = json.loads((folder / "fills.json").read_text())[0]
    last = round(time.monotonic() - started, 2)
    return record["fills"], {"last_seconds": last, "complete": record["complete"]}


def crashed() -> tuple[list[Any], Row]:
    """The command, killed three times and started again; what it says in the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept: list[int] = []
        for _ in range(CRASHES):
            process = subprocess.Popen(command_in(folder), stdout=subprocess.DEVNULL)
            until_kept(process, folder, kept[-1] + ROWS if kept else ROWS)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kept.append(_rows(folder))
        fills, row = went_on(folder)
        return fills, {"rows_kept_at_each_crash": kept} | row


def stopped() -> tuple[list[Any], Row]:
    """The command on a cluster whose scheduler is killed; what it says, and says when it goes on
    without one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dask = Dask(folder)
        try:
            process = subprocess.Popen(
                command_in(folder, "--cluster", dask.address),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
            until_kept(process, folder, 2 * ROWS)
            dask.end(0)
            said = process.communicate()[1].decode().strip().splitlines()
        finally:
            dask.close()
        kept = _rows(folder)
        fills, row = went_on(folder)
        first = {"rows_kept": kept, "status": process.returncode, "said": said[:3]}
        return fills, first | row


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
    parser = arguments(__doc__, "farm.json")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--columns", type=int, default=27)
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--crash", action="store_true")
    asked = parser.parse_args()
    SIZES["columns"] = asked.columns
    rows: dict[str, Row] = earlier(asked.out)
    build = named(NAME)
    assert build is not None
    started = time.monotonic()
    whole = synthesize(build(SIZES))
    one = round(time.monotonic() - started, 2)
    wanted, wrong = whole.fills.choices.tolist(), 0
    listed = [whole.described(number) for number in range(len(whole.fills))]

    def keep(name: str, row: Row, same: bool) -> None:
        nonlocal wrong
        wrong += not same
        row |= {"same_fills": same, "search": SIZES, "fills": len(wanted), **environment()}
        row |= {"one_process_unparted": one, "load": round(os.getloadavg()[0], 2)}
        rows[f"{name}, {SIZES['columns']} columns, {os.cpu_count()} cores"] = row
        print(name, json.dumps(row), flush=True)
        save(asked.out, rows)

    def way(name: str, crew: Farm | Cluster | None, kill: Callable[[], object] | None) -> None:
        try:
            found, row = measured(crew, kill)
        finally:
            if crew is not None:
                crew.shutdown(cancel_futures=True)
        keep(name, row, found.complete and found.fills.choices.tolist() == wanted)

    for count in filter(None, map(int, asked.workers.split(","))):
        way(f"{count} processes", Farm(count) if count > 1 else None, None)
    if asked.kill:
        farm = Farm(3)
        way("3 processes, one killed", farm, lambda: farm._processes[0].kill())
    if asked.crash:
        again, row = crashed()
        keep(f"killed -9 {CRASHES} times", row, again == listed and row["complete"])
    if asked.dask:
        for killed in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                dask = Dask(Path(folder))
                try:
                    name = f"{DASK} workers of Dask{', one killed' if killed else ''}"
                    way(name, Cluster(dask.address), partial(dask.end, 1) if killed else None)
                finally:
                    dask.close()
        again, row = stopped()
        keep("the scheduler of Dask killed", row, again == listed and row["complete"])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
