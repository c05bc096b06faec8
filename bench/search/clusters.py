"""Twenty Dask clusters with workers that are bad, old, late, changed or lost: right or refused.

    python -m bench.search.clusters [--only NAME] [--out FILE]

A *bad* worker runs a copy of the package that adds a fill to each piece, an *old* one a copy that
knows nothing of digests and does the same, a *bare* one has no Warploom, a *turned* one runs a true
copy whose files change in the middle of the search. Late ones join after the connection. Each
search (`sums`, 9 columns, level 3, in pieces from the start) must give all its fills and no other,
by good workers alone, with every other worker named in one line; or it must be refused with one
error that names them. The record goes to bench/results/clusters.json; the exit status is 1 if any
cluster gives anything else. Needs warploom[cluster].
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import arguments, environment

import warploom
from warploom.bench.published import named
from warploom.errors import DeviceError
from warploom.search.workers import cluster as clusters
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.far import Far
from warploom.search.workers.pieces import Piece
from warploom.sketch.synth.parts import Answer
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting

NAME, SIZES = "sums", {"columns": 9, "level": 3}
AFTER = 5  # pieces, something happens
PATIENCE = 5.0  # seconds without a worker; 30 for users
ROOT = Path(warploom.__file__).parent

_LIES = """

_true = solved


def solved(engine, order, rows):
    found = _true(engine, order, rows)
    more = np.concatenate([found.first, np.zeros((1, found.first.shape[1]), np.int64)])
    return Answer(found.count + 1, more, None, found.tallies, found.stopped)
"""
_BARE = "raise ModuleNotFoundError(\"No module named 'warploom'\", name='warploom')\n"


def made(kind: str, folder: Path) -> Path:
    """A folder for PYTHONPATH with the package as such a worker has it."""
    place = folder / kind
    if kind == "bare":
        place.mkdir(exist_ok=True)
        (place / "warploom.py").write_text(_BARE)
    elif not place.exists():
        shutil.copytree(ROOT, place / "warploom", ignore=shutil.ignore_patterns("__pycache__"))
        if kind in ("bad", "old"):
            with (place / "warploom/sketch/synth/split.py").open("a") as file:
                file.write(_LIES)
        if kind == "old":
            _without_digests(place / "warploom")
    return place


def _without_digests(package: Path) -> None:
    """As the package was before answers told who made them."""
    (package / "search/workers/sources.py").rename(package / "search/ancient.py")
    for name in ("store", "answer", "roster", "cluster", "farm"):
        file = package / "search" / f"{name}.py"
        file.write_text(file.read_text().replace("search.sources", "search.ancient"))
    for file in package.glob("pipeline/*.py"):
        file.write_text(file.read_text().replace("search.sources", "search.ancient"))


class Dask:
    """A scheduler of this machine; workers are added by their kind."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._told = folder, folder / "scheduler.json"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._scheduler = self._begun(ROOT.parent, "scheduler", "--host", "127.0.0.1", "--port=0")
        until(lambda: self._told.exists() and self._told.read_text().rstrip().endswith("}"))
        self.address: str = json.loads(self._told.read_text())["address"]

    def _begun(self, path: Path, *words: str) -> subprocess.Popen[bytes]:
        told = ("--scheduler-file", str(self._told), "--no-dashboard")
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "dask", *words, *told], stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": f"{path}:{ROOT.parents[1]}"}, cwd=self._folder,
        )  # fmt: skip

    def add(self, kind: str, number: int = 0) -> None:
        """A worker, called by its kind; `gpu` after it gives it the label."""
        base, _, label = kind.partition("+")
        path = ROOT.parent if base == "good" else made(base, self._folder)
        more = ("--resources", "GPU=1") if label else ()
        name = f"{kind}-{number}"
        self.workers[name] = self._begun(
            path, "worker", "--name", name, "--nthreads", "1", "--no-nanny",
            "--local-directory", str(self._folder), *more,
        )  # fmt: skip

    def names(self) -> dict[str, str]:
        """Those who are there, by address."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            known = client.scheduler_info(n_workers=-1)["workers"]
        return {who: str(each["name"]) for who, each in known.items()}

    def wait(self, count: int) -> dict[str, str]:
        while len(found := self.names()) < count:
            time.sleep(0.1)
        return found

    def kill(self, name: str) -> None:
        self.workers[name].kill()
        self.workers[name].wait()

    def close(self) -> None:
        for process in (*self.workers.values(), self._scheduler):
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Case:
    """Who is there at first, who comes later, what else happens then, and how it must end."""

    name: str
    first: tuple[str, ...]
    late: tuple[str, ...] = ()
    event: str = ""  # kill: all who were there at first; step: files of `turned` workers change
    refused: bool = False
    measured: bool = False


CASES = (
    Case("good alone", ("good",)),
    Case("a bad one from the start", ("good", "bad")),
    Case("an old one from the start", ("good", "old")),
    Case("a bare one from the start", ("good", "bare")),
    Case("one of each", ("good", "bad", "old", "bare")),
    Case("bad alone", ("bad",), refused=True),
    Case("old alone", ("old",), refused=True),
    Case("bare alone", ("bare",), refused=True),
    Case("bad, old and bare", ("bad", "old", "bare"), refused=True),
    Case("a late good one", ("good",), ("good",)),
    Case("a late bad one", ("good",), ("bad",)),
    Case("a late old one", ("good",), ("old",)),
    Case("a late bare one", ("good",), ("bare",)),
    Case("late ones of each kind", ("good",), ("bad", "old", "bare", "good")),
    Case("a bad one, then a good one", ("good", "bad"), ("good",)),
    Case("one that changes", ("good", "turned"), (), "step"),
    Case("one that changes, alone", ("turned",), (), "step", refused=True),
    Case("the good one dies, another comes", ("good",), ("good",), "kill"),
    Case("the good one dies, a bad one comes", ("good",), ("bad",), "kill", refused=True),
    Case("measurements, a late bad one", ("good+gpu",), ("bad+gpu",), measured=True),
)


def happens(case: Case, dask: Dask, here: Cluster, told: list[str]) -> None:
    """In the middle of the search; goes on when all who came have been looked at."""
    before = dask.names()
    if case.event == "step":
        with (made("turned", dask._folder) / "warploom/errors.py").open("a") as file:
            file.write("# changed\n")
    for number, kind in enumerate(case.late, 1):
        dask.add(kind, number)
    if not case.late:
        return
    now = dask.wait(len(before) + len(case.late))
    good = sum(name.startswith("good") for name in now.values())
    bad = len(now) - good
    until(lambda: len(here._roster.to_ask()) == good and len(told) == bad)
    if case.event == "kill":
        for who in before.values():
            dask.kill(who)


def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not come to that")
        time.sleep(0.05)


def searched(case: Case, dask: Dask, told: list[str]) -> dict[str, Any]:
    known = dask.wait(len(case.first))
    here = Cluster(dask.address, told.append)
    pieces = 0

    def note(_piece: Piece[Answer]) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == AFTER:
            happens(case, dask, here, told)
            known.update(dask.names())

    build = named(NAME)
    assert build is not None
    try:
        while case.event == "step" and len(here.done_by) < len(known):  # all have loaded it
            synthesize(build(SIZES), parting=Parting(crew=here, patience=0.0))
        at_first = here.workers
        found = synthesize(build(SIZES), parting=Parting(crew=here, patience=0.0, on_piece=note))
        measured = measurements(here) if case.measured else None
        done = {known.get(who, who): count for who, count in here.done_by.items()}
        return {
            "fills": found.fills.choices.tolist(), "complete": found.complete, "pieces": pieces,
            "workers_at_first": at_first, "workers_at_last": here.workers, "done_by": done,
            "measured": measured,
        }  # fmt: skip
    finally:
        here.shutdown()


def measurements(here: Cluster) -> list[str]:
    """Who measures, as these say themselves: where their package lies."""
    from bench.search.clusters import FakeBench

    bench = Far(here, FakeBench)
    return [str(bench.told("path")[0]) for _ in range(4)]


class FakeBench:
    def __init__(self) -> None:
        self.path = str(Path(warploom.__file__).parent)

    def measure(self, prepared: int, samples: int) -> list[float]:
        return [float(prepared)] * samples


def tried(case: Case, wanted: list[Any]) -> dict[str, Any]:
    told: list[str] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="warploom-") as name:
        dask = Dask(Path(name))
        try:
            for number, kind in enumerate(case.first):
                dask.add(kind, 10 + number)
            row = searched(case, dask, told)
        except DeviceError as error:
            row = {"refused": error.message.replace(name, ""), "advice": error.advice}
        finally:
            dask.close()
    row |= {"told": told, "seconds": round(time.monotonic() - started, 1)}
    row["right"] = is_right(case, row, wanted)
    row.pop("fills", None)
    return row


def is_right(case: Case, row: dict[str, Any], wanted: list[Any]) -> bool:
    others = [kind for kind in (*case.first, *case.late) if not kind.startswith("good")]
    if case.refused:
        named_all = all(line.split()[2] in row.get("refused", "") for line in row["told"])
        return named_all and len(row["told"]) == len(others) and "version" in row["advice"]
    good = all(name.startswith(("good", "turned")) for name in row.get("done_by", {"?": 0}))
    late = sum(kind.startswith("good") for kind in case.late)
    grew = row.get("workers_at_last", 0) == 1 + late <= len(row.get("done_by", ()))
    if case.event:
        grew = row.get("workers_at_last") == 1
    return (
        row.get("fills") == wanted
        and row["complete"]
        and good
        and grew
        and len(row["told"]) == len(others)
        and set(row["measured"] or [str(ROOT)]) == {str(ROOT)}
    )


def main() -> int:
    parser = arguments(__doc__, "clusters.json", only="names with this word")
    asked = parser.parse_args()
    clusters._PATIENCE = PATIENCE
    build = named(NAME)
    assert build is not None
    wanted = synthesize(build(SIZES)).fills.choices.tolist()
    rows: dict[str, Any] = {}
    for case in CASES:
        if asked.only in case.name:
            rows[case.name] = tried(case, wanted)
            print(case.name, json.dumps(rows[case.name]), flush=True)
    right = sum(row["right"] for row in rows.values())
    print(f"{right} of {len(rows)} clusters are right or refused, as they must be")
    if not asked.only:
        about = {
            **environment(),
            "clusters": len(rows), "right": right, "fills": len(wanted),
        }  # fmt: skip
        text = json.dumps({**about, "rows": rows}, indent=1).replace(f"{ROOT}", "src/warploom")
        asked.out.write_text(text + "\n")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
