"""Work in other processes: results, errors and processes that die come back to who asked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.workers import died, died_at_first, refused, squared, untold

from warploom.errors import CheckError, DeviceError
from warploom.search.workers.farm import Farm, _receive


@pytest.fixture
def farm() -> Iterator[Farm]:
    made = Farm(2)
    yield made
    made.shutdown()


def test_results_come_back_from_other_processes(farm: Farm) -> None:
    found = [each.result() for each in [farm.submit(squared, n) for n in range(10)]]
    assert [square for square, _ in found] == [n * n for n in range(10)]
    assert os.getpid() not in {who for _, who in found}
    assert len({who for _, who in found}) <= 2


def test_what_cannot_travel_runs_here(farm: Farm) -> None:
    assert farm.submit(lambda: os.getpid()).result() == os.getpid()


def test_errors_come_back(farm: Farm) -> None:
    with pytest.raises(CheckError, match="not 3") as caught:
        farm.submit(refused, 3).result()
    assert caught.value.advice == "take another"
    with pytest.raises(DeviceError, match="cannot travel"):
        farm.submit(untold).result()


def test_work_that_ends_every_process_is_an_error_of_its_own(farm: Farm) -> None:
    with pytest.raises(DeviceError, match="ended with status 7, 3 times"):
        farm.submit(died, 7).result()
    assert farm.submit(squared, 4).result()[0] == 16


def test_the_work_of_a_lost_process_is_done_again(farm: Farm, tmp_path: Path) -> None:
    assert farm.submit(died_at_first, str(tmp_path / "seen")).result() == "done"


def test_files_that_changed_since_they_were_loaded_are_told(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that starts now would run another program than this one."""
    monkeypatch.setattr("warploom.search.workers.farm.running_digest", lambda: "0" * 64)
    with pytest.raises(DeviceError, match="files of Warploom changed") as caught:
        farm.submit(squared, 4).result()
    assert caught.value.advice == "start it again"


def test_half_an_answer_is_none() -> None:
    """Of a process that ended while it sent it: its work is done again."""
    with pytest.raises(EOFError):
        _receive(io.BytesIO((10).to_bytes(8, "little") + b"half"))


ALONE = """
import os, sys
from tests.search.workers import napped
from warploom.search.workers.farm import Farm, _receive
farm = Farm(1)
farm.submit(napped, 600)
while not farm._processes:
    pass
print(farm._processes[0].pid, flush=True)
os._exit(0)
"""


def test_a_worker_does_not_outlive_who_asked() -> None:
    """However long its work would take: the other process is gone at once, and nobody waits."""
    path = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(
        [sys.executable, "-c", ALONE],
        stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    worker = Path(f"/proc/{int(ran.stdout)}")
    for _ in range(600):
        if not worker.exists() or "Z" in (worker / "stat").read_text().split()[2]:
            return
        time.sleep(0.1)
    pytest.fail("it is still there")


def test_a_closed_farm_takes_nothing() -> None:
    made = Farm(1)
    made.submit(squared, 1).result()
    made.shutdown(cancel_futures=True)
    with pytest.raises(RuntimeError):
        made.submit(squared, 2)


def test_work_that_is_given_up_ends_and_is_not_done_again(farm: Farm) -> None:
    sleeping = farm.submit(time.sleep, 60)
    while not sleeping.running() or not farm._processes:
        time.sleep(0.01)
    time.sleep(0.2)
    farm.abandon()
    with pytest.raises(DeviceError, match="given up"):
        sleeping.result(timeout=30)
    assert farm.submit(abs, -3).result(timeout=60) == 3  # others are begun for what comes later
