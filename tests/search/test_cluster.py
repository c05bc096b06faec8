"""Work on a Dask cluster of this machine: where that extra is not installed, this is left out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.workers import FakeBench, died, refused, squared

from warploom.errors import CheckError, DeviceError, UnsupportedError
from warploom.search import cluster
from warploom.search.cluster import Cluster
from warploom.search.far import Far
from warploom.sketch.front import load_text
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting

SKETCH = """
x: [12] = range(0, 12)
a: [4,3] = load_rep(x)
b: [4,3] = ?row_xforms(a)
c: [4,3] = ?col_xforms(b)
out: [4] = + identity{fold_len=3}(c)
goal: [4] trove_sum{n=3}
"""

# The scheduler and two workers, one of them with the label; the address is printed when all are
# there, and who has the label.
_START = """
import sys
from distributed import Client, Nanny, Scheduler, SpecCluster
one = {"host": "127.0.0.1", "nthreads": 1, "dashboard_address": None}
if __name__ == "__main__":
    made = SpecCluster(
        {0: {"cls": Nanny, "options": one | {"resources": {"GPU": 1}}},
         1: {"cls": Nanny, "options": one}},
        scheduler={"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": None}})
    Client(made).wait_for_workers(2)
    print(made.scheduler_address, flush=True)
    sys.stdin.read()
    made.close()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed", reason="needs warploom[cluster]")
    process, found = started(tmp_path_factory.mktemp("dask"))
    yield found
    process.communicate("")


def started(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A scheduler with its workers, and where it is."""
    script = folder / "start.py"
    script.write_text(_START)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": "/usr/bin:/bin"},
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match="cluster"):
        Cluster("tcp://127.0.0.1:8786")
    with pytest.raises(CheckError, match="without TLS"):
        Cluster("tcp://192.168.0.7:8786")


def test_results_and_errors_come_back(address: str) -> None:
    here = Cluster(address)
    try:
        assert here.workers == 2
        found = [each.result(60) for each in [here.submit(squared, n) for n in range(6)]]
        assert [square for square, _ in found] == [n * n for n in range(6)]
        assert here.measures
        assert here.measure(squared, 3).result(60)[0] == 9
        with pytest.raises(CheckError, match="not 3"):
            here.submit(refused, 3).result(60)
        shared = here.share([1, 2, 3])
        assert here.submit(len, shared).result(60) == 3
    finally:
        here.shutdown()


def test_workers_with_the_label_measure_and_they_alone(address: str) -> None:
    here = Cluster(address)
    try:
        bench = Far(here, FakeBench, "fake")
        assert bench.told("device") == ["fake GPU"]
        found = {each for _ in range(4) for each in bench.measure(0, 2)}
        everybody = here._client.run(os.getpid).values()
        labelled = [
            who
            for who, each in here._client.scheduler_info()["workers"].items()
            if each["resources"].get("GPU")
        ]
        assert found == set(here._client.run(os.getpid, workers=labelled).values())
        assert len(set(everybody) - found) == 1
    finally:
        here.shutdown()


def test_a_search_gives_the_same_fills(address: str) -> None:
    program = load_text(SKETCH)
    here = Cluster(address)
    try:
        found = synthesize(program, parting=Parting(crew=here, patience=0.0))
    finally:
        here.shutdown()
    whole = synthesize(program)
    assert found.fills.choices.tolist() == whole.fills.choices.tolist()
    assert found.complete


def test_other_sources_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "sources_digest", os.getpid)  # another one in each
    with pytest.raises(DeviceError, match="other sources"):
        Cluster(address)


def test_work_that_no_worker_survives_is_an_error(address: str) -> None:
    here = Cluster(address)
    try:
        with pytest.raises(DeviceError, match="lost"):
            here.submit(died, 1).result(120)
    finally:
        here.shutdown()
