"""Work on a Dask cluster of this machine: where that extra is not installed, this is left out."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.search.workers import FakeBench, died, many_bytes, refused, squared, until

from warploom.bench.published import named
from warploom.errors import CheckError, DeviceError, UnsupportedError
from warploom.search.storage.store import Store
from warploom.search.workers import cluster
from warploom.search.workers.answer import packed
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.far import Far
from warploom.search.workers.sources import CHANGED, running_digest
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


class FakeClient:
    """Stands for the client of Dask: `work` says what becomes of what it is asked."""

    work: Callable[..., Any]
    status = "running"
    _handle_report_task: Future[None]
    workers: dict[str, Any]  # what each says of its sources

    def __init__(self, address: str, **_options: object) -> None:
        del address
        FakeClient.status, FakeClient._handle_report_task = "running", Future()

    def run(self, _function: object, workers: list[str], on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        return {who: FakeClient.workers[who] for who in workers}

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        one = {"nthreads": 1, "resources": {}}
        return {"workers": dict.fromkeys(FakeClient.workers, one)}

    def submit(self, *work: Any, workers: list[str], **_options: object) -> SimpleNamespace:
        status, result = FakeClient.work(workers, *work[1:])
        asked = SimpleNamespace(status=status, result=result, exception=result)
        asked.add_done_callback = lambda told: None if status == "pending" else told(asked)
        return asked

    def close(self, timeout: float) -> None:
        del timeout


def done(workers: list[str], token: str, fn: Any, named: Any, *args: Any) -> tuple[str, Any]:
    """As the first of the workers would do it."""
    answer = packed(token, workers[0], fn, args, named)
    return "finished", lambda timeout: answer


def made_by(digest: object, who: str) -> Callable[..., tuple[str, Any]]:
    """The same, but that one of them has other sources and lies in what it computes."""

    def work(workers: list[str], token: str, fn: Any, named: Any, *args: Any) -> tuple[str, Any]:
        if workers[0] != who:
            return done(workers, token, fn, named, *args)
        if isinstance(digest, Exception):
            return "error", lambda timeout: digest
        head = packed(token, who, int, (), {})[:3]
        lie = (*head, digest, pickle.dumps((True, (-1, -1))))
        return "finished", lambda timeout: lie if isinstance(digest, str) else digest

    return work


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> Iterator[Cluster]:
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=FakeClient))
    monkeypatch.setattr(cluster, "_LOOK_EVERY", 0.02)
    FakeClient.workers = {"one": running_digest(), "two": running_digest()}
    here = Cluster("tcp://127.0.0.1:8786", told.append)
    yield here
    here.shutdown()


def lost(timeout: float) -> None:
    del timeout
    raise OSError("the connection was closed")


@pytest.mark.parametrize("status", ["finished", "error"])
def test_a_result_that_is_lost_on_its_way_is_an_error(fake: Cluster, status: str) -> None:
    """Whoever waited for it used to wait forever."""
    FakeClient.work = staticmethod(lambda *_: (status, lost))
    with pytest.raises(DeviceError, match="a result on the cluster was lost"):
        fake.submit(squared, 2).result(60)
    FakeClient.work = staticmethod(done)
    assert fake.submit(squared, 2).result(60)[0] == 4


def said_farewell() -> None:
    FakeClient._handle_report_task.set_result(None)


def was_closed() -> None:
    FakeClient.status = "closed"


@pytest.mark.parametrize("leave", [said_farewell, was_closed])
def test_whoever_waits_hears_that_a_scheduler_has_ended(
    fake: Cluster, leave: Callable[[], None]
) -> None:
    FakeClient.work = staticmethod(lambda *_: ("pending", None))
    waiting = [fake.submit(squared, n) for n in range(3)]
    assert not any(each.done() for each in waiting)
    leave()
    for each in [*waiting, fake.submit(squared, 3)]:
        with pytest.raises(DeviceError, match="the cluster is gone") as told:
            each.result(60)
        assert "the same command goes on" in (told.value.advice or "")
    with pytest.raises(DeviceError, match="the cluster is gone"):
        _ = fake.workers


OLD = "one runs other sources"
OTHERS = [
    ("0" * 64, OLD),
    (CHANGED, "one runs Warploom from files that changed after it was loaded"),
    (AttributeError("Can't get attribute 'f' on <module 'warploom.search.workers.sources'>"), OLD),
    (AttributeError("module 'warploom.search.workers.sources' has no attribute 'f'"), OLD),
    (ModuleNotFoundError("No module named 'warploom.search.workers.sources'"), OLD),
    (ModuleNotFoundError("No module named 'warploom'"), "one has no Warploom installed"),
    (Exception("ModuleNotFoundError(\"No module named 'warploom'\")"), "one has no Warploom"),
    (ModuleNotFoundError("No module named 'numpy'"), "one cannot load Warploom"),
]


@pytest.mark.parametrize(("said", "line"), OTHERS)
def test_an_answer_of_other_sources_is_thrown_away(
    fake: Cluster, told: list[str], said: Any, line: str
) -> None:
    """Of a worker that was right when it was checked; it is named, and another is asked."""
    FakeClient.work = staticmethod(made_by(said, "one"))
    FakeClient.workers["one"] = said
    assert [fake.submit(squared, n).result(60)[0] for n in range(3)] == [0, 1, 4]
    assert len(told) == 1
    assert line in told[0]
    assert fake.done_by == {"two": 3}
    assert fake.workers == 1


@pytest.mark.parametrize(("said", "line"), OTHERS)
def test_a_late_worker_is_checked_before_it_is_asked(
    fake: Cluster, told: list[str], said: Any, line: str
) -> None:
    FakeClient.work = staticmethod(done)
    FakeClient.workers |= {"one": said, "three": running_digest()}
    FakeClient.workers["a late one"] = said
    waited(lambda: fake.workers == 3 and len(told) == 1)
    assert f"a late {line}" in told[0]
    assert "a late one" not in fake._roster.to_ask()
    del FakeClient.workers["a late one"]
    waited(lambda: not fake._roster._refused)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("said", "line"), OTHERS)
def test_a_cluster_of_others_alone_is_refused(
    fake: Cluster, told: list[str], said: Any, line: str
) -> None:
    FakeClient.workers = {"one": said, "three": "1" * 64}
    with pytest.raises(DeviceError, match=f"{line}.*; three runs other sources") as error:
        Cluster("tcp://127.0.0.1:8786", told.append)
    assert "install the same version" in error.value.advice
    FakeClient.workers = {}
    with pytest.raises(DeviceError, match="the cluster has no workers"):
        Cluster("tcp://127.0.0.1:8786", told.append)


MALFORMED = [None, 4, (), ("warploom answer 1", "?", "one", "", b""), ("a", "b", "c", "d", "e")]


@pytest.mark.parametrize("said", MALFORMED)
def test_what_is_no_answer_to_the_question_is_an_error(fake: Cluster, said: Any) -> None:
    """Of a worker that cannot be blamed: its sources are ours, each time one asks."""
    FakeClient.work = staticmethod(lambda *_: ("finished", lambda timeout: said))
    with pytest.raises(DeviceError, match="not an answer of Warploom"):
        fake.submit(squared, 2).result(60)


def test_work_of_workers_that_left_is_sent_to_those_that_came(fake: Cluster) -> None:
    """Dask would keep it for those who were named when it was asked for."""
    FakeClient.work = staticmethod(
        lambda workers, *rest: ("pending", None) if "one" in workers else done(workers, *rest)
    )
    asked = fake.submit(squared, 3)
    FakeClient.workers = {"three": running_digest()}
    assert asked.result(60)[0] == 9


def test_nobody_waits_forever_for_a_worker(fake: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.05)
    FakeClient.work = staticmethod(lambda *_: ("pending", None))
    asked = fake.submit(squared, 3)
    FakeClient.workers = {"bad": "0" * 64}
    with pytest.raises(DeviceError, match=r"no worker of the cluster.*: bad runs other sources"):
        asked.result(60)


def test_a_process_whose_own_sources_changed_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=FakeClient))
    monkeypatch.setattr(cluster, "running_digest", lambda: CHANGED)
    with pytest.raises(DeviceError, match="changed after this process") as error:
        Cluster("tcp://127.0.0.1:8786")
    assert error.value.advice == "start it again"


def waited(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("it did not come to that")


class Dask:
    """A scheduler and two workers, in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._told = folder / "scheduler.json"
        root = Path(__file__).parents[2]
        self._environment = {"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": "/usr/bin:/bin"}
        self.scheduler = self._begun("scheduler", "--host", "127.0.0.1", "--port", "0")
        while not self._told.exists():
            time.sleep(0.05)
        self.address = str(json.loads(self._told.read_text())["address"])
        alone = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        self._workers = [self._begun("worker", *alone) for _ in range(2)]

    def _begun(self, *words: str) -> subprocess.Popen[bytes]:
        told = ("--scheduler-file", str(self._told), "--no-dashboard")
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, *told],
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )

    def close(self) -> None:
        for process in (*self._workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    distributed = pytest.importorskip("distributed", reason="needs warploom[cluster]")
    made = Dask(tmp_path)
    try:
        with distributed.Client(made.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield made
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["early", "middle", "late", "after"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_scheduler_that_ends_at_any_moment(
    dask: Dask, tmp_path: Path, how: signal.Signals, moment: str
) -> None:
    """Work that was just asked for, that runs, whose results are on their way; asked for later."""
    begun, end = tmp_path / "begun", tmp_path / "end"
    here = Cluster(dask.address)
    try:
        work = (many_bytes, 100, str(begun)) if moment == "late" else (until, str(begun), str(end))
        asked = [] if moment == "after" else [here.submit(*work) for _ in range(6)]
        while moment in ("middle", "late") and not begun.exists():
            time.sleep(0.01)
        dask.scheduler.send_signal(how)
        dask.scheduler.wait()
        asked += [here.submit(*work) for _ in range(2)]
        for each in asked:
            error = each.exception(300)
            assert error is None or isinstance(error, DeviceError)
        assert isinstance(asked[-1].exception(), DeviceError)
    finally:
        end.touch()
        here.shutdown()


@pytest.mark.slow
def test_the_store_of_a_stopped_scheduler_goes_on(dask: Dask, tmp_path: Path) -> None:
    """The command says one error; the same one without a cluster has the whole answer."""
    store = Store(tmp_path / "store.sqlite")
    words = ["synth", "sums", "--size", "columns=18", "--size", "level=3"]
    words += ["--store", str(store.path)]
    command = [sys.executable, "-m", "warploom", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    process = subprocess.Popen(
        [*command, "--cluster", dask.address],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    while process.poll() is None and len(store.all()) < 4:
        time.sleep(0.05)
    dask.scheduler.kill()
    _, said = process.communicate()
    if process.returncode == 2:  # it was not just done
        assert "the same command goes on" in said
        assert "Traceback" not in said
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (ran.returncode, "no fill exists" in ran.stdout) == (1, True)


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a bad one from the start", "a late old one", "bare alone"])
def test_a_search_is_right_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty clusters (bench/search/clusters.py), three."""
    pytest.importorskip("distributed", reason="needs warploom[cluster]")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    twenty = import_module("bench.clusters")
    assert len(twenty.CASES) == 20
    (case,) = (each for each in twenty.CASES if each.name == name)
    build = named(twenty.NAME)
    assert build is not None
    assert twenty.tried(case, synthesize(build(twenty.SIZES)).fills.choices.tolist())["right"]


def test_work_that_no_worker_survives_is_an_error(address: str) -> None:
    here = Cluster(address)
    try:
        with pytest.raises(DeviceError, match="lost"):
            here.submit(died, 1).result(120)
    finally:
        here.shutdown()
