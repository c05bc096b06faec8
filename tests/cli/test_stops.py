"""Every command beside Ctrl-C, lack of memory, our own bugs, closed and full outputs.

One table of commands; each row says where its work is done, so that a test can end it there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from bench.common.cli.commands import SUMS
from bench.common.cli.stops import ROWS, Row, row
from bench.common.cli.tile import FILE
from tests.cli.conftest import Cli
from tests.cli.test_schemas import schemas, wrong

from warploom.errors import InternalError
from warploom.loopnest.bound import Bound
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Reason

SEVERAL = ("synth", "layout solve")  # of which one is undecided, as a line of the answer


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    Path("fill.json").write_text("[{}]")


def ended(monkeypatch: pytest.MonkeyPatch, row: Row, stop: Callable[[], BaseException]) -> None:
    """The work of the row ends so."""

    def work(*_: Any, **__: Any) -> None:
        raise stop()

    monkeypatch.setattr(row.work, work)


STOPS: dict[str, tuple[Callable[[], BaseException], int, str]] = {
    "Ctrl-C": (KeyboardInterrupt, 130, "interrupted"),
    "memory": (MemoryError, 3, "memory"),
    "the budget's memory": (lambda: BudgetSpentError(Reason.MEMORY), 3, "memory budget spent"),
    "Ctrl-C, seen by a budget": (lambda: BudgetSpentError(Reason.INTERRUPTED), 130, "interrupted"),
    "a bug": (lambda: ZeroDivisionError("surprise"), 70, "internal error: ZeroDivisionError"),
    "a bug that we saw": (lambda: InternalError("not so"), 70, "internal error: InternalError"),
}

USUAL = ("Ctrl-C", "memory", "a bug")
ONCE = ("synth", "layout solve", "ptx run", "show")  # in which the others are tried, too


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("row", "why"),
    [(row, why) for row in ROWS for why in STOPS if why in USUAL or row.name in ONCE],
    ids=lambda each: getattr(each, "name", each),
)
def test_the_status_of_what_ends_a_command(
    row: Row, why: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, status, said = STOPS[why]
    ended(monkeypatch, row, stop)
    ran = cli(*row.words, "--json", "records.json")
    assert ran.status == status, ran.err
    assert said in ran.err + (ran.out if row.name in SEVERAL else "")
    assert "Traceback" not in ran.err
    if status in (3, 130):
        last = json.loads(Path("records.json").read_text())[-1]
        if row.words[0] == "ptx" and row.words[1] != "shuffle":
            assert (last["status"], bool(last["findings"])) == (status, True)
        else:
            assert wrong(last, schemas()["interrupted"]) == []
            assert last["stopped"] in (Reason.INTERRUPTED.value, Reason.MEMORY.value)


# -- outputs ---------------------------------------------------------------------------------------

OUTPUTS = [(row, (*option,)) for row in ROWS for option in (*row.outputs, ("--json",))]
OUTPUTS += [(row, ("-o",)) for row in ROWS if "-o" in row.words]
OUTPUTS += [(row("store export --store s.sqlite", "store.Store"), ("-o",))]
PLACES = {
    "no/such/folder/x.svg": "there is no folder",
    ".": "it is a folder",
    "/proc/x.svg": "cannot write",  # a folder that takes no file, whoever asks
    "x" * 300: "cannot write",
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("row", "option", "place"),
    [(*each, place) for each, place in zip(OUTPUTS, cycle(PLACES), strict=False)],
    ids=lambda each: each[:20] if isinstance(each, str) else str(getattr(each, "name", each)),
)
def test_an_output_that_cannot_be_written_is_said_before_the_work(
    row: Row, option: tuple[str, ...], place: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(monkeypatch, row, lambda: AssertionError("the work was begun"))
    ran = cli(*row.words, *option, place)
    assert ran.status == 2, ran.err
    assert f"cannot write '{place}'" in ran.err
    assert PLACES[place] in ran.err
    assert ran.out == ""


def test_a_file_is_replaced_when_all_is_written_and_not_before(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, link = Path("proof.json"), Path("link.json")
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    words = ["synth", SUMS, "--no-store", "--certificate", "link.json"]
    with monkeypatch.context() as patched:
        ended(patched, ROWS[0], lambda: ZeroDivisionError("surprise"))
        assert cli(*words).status == 70
    assert file.read_text() == "old"
    seen = []
    replace = Path.replace

    def replaced(self: Path, target: Path) -> Path:
        seen.append((file.read_text(), self.parent == target.parent))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replaced)
    assert cli(*words).status == 0
    assert seen == [("old", True)]
    assert json.loads(file.read_text())[0]["kind"] == "fill"
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    left = {each.name for each in Path().iterdir()}
    assert left == {"proof.json", "link.json", "mine.py", "fill.json"}


def test_pipes_and_devices_are_written_as_they_are(cli: Cli) -> None:
    os.mkfifo("pipe")
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(Path("pipe").read_text()))
    reader.start()
    assert cli("machines", "--json", "pipe").status == 0
    reader.join(timeout=20)
    assert len(json.loads(heard[0])) > 3
    assert Path("pipe").is_fifo()
    assert cli("machines", "--json", "/dev/null").status == 0
    assert Path("/dev/null").is_char_device()
    full = cli("machines", "--json", "/dev/full")
    assert (full.status, full.err) == (2, "cannot write '/dev/full': No space left on device\n")


def test_two_outputs_have_two_files(cli: Cli) -> None:
    ran = cli("synth", SUMS, "--emit", "c", "-o", "a", "--json", "./a", "--no-store")
    assert (ran.status, "two outputs go to 'a'" in ran.err) == (2, True)


# -- Ctrl-C, as a terminal sends it ----------------------------------------------------------------


@pytest.mark.slow
def test_explore_that_was_stopped_is_not_done(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was: status 0, as if all had been looked at."""
    looked = 0
    bound = Bound.__call__

    def pressed(self: Bound, candidates: Any) -> Any:
        nonlocal looked
        looked += 1
        if looked == 100:
            os.kill(os.getpid(), signal.SIGINT)
        return bound(self, candidates)

    monkeypatch.setattr(Bound, "__call__", pressed)
    words = [
        "explore",
        "matmul",
        "--size",
        "m=32,n=32,k=32",
        "--evaluations",
        "100000",
        "--no-store",
    ]
    words += ["--no-store", "--strategy", "none"]
    ran = cli(*words, "--emit", "cuda", "-o", "best.cu", "--keep", "kept.json", "--json", "r.json")
    assert ran.status == 130, ran.err
    assert "best: " in ran.out
    assert "__global__" in Path("best.cu").read_text()
    record = json.loads(Path("r.json").read_text())[0]
    assert (record["outcome"], record["stopped"]) == ("found", "interrupted")
    assert json.loads(Path("kept.json").read_text())["best"] == record["best"]


@pytest.mark.parametrize(
    "words",
    [
        ["synth", SUMS],
        ["kernel", SUMS, "-o", "sums.cu"],
        ["map", "dot", "--size", "n=64"],
        ["layout", "solve", "transpose:32x32:f32"],
        ["layout", "convert", "--from", "(32,40):(40,1)", "--to", "(32,40):(1,32)"],
        ["show", "axpy", "--as", "nest", "--size", "n=64"],
    ],
    ids=lambda words: " ".join(words[:2])[-20:],
)
def test_ctrl_c_while_a_budget_watches(
    words: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pressed as the search begins: it ends at its first check, with a record."""
    checked = Budget.interruptible

    @contextmanager
    def pressed(self: Budget) -> Iterator[None]:
        with checked(self):
            os.kill(os.getpid(), signal.SIGINT)
            yield

    monkeypatch.setattr(Budget, "interruptible", pressed)
    store = [] if words[0] in ("kernel", "show") else ["--no-store"]
    ran = cli(*words, *store, "--json", "r.json")
    assert ran.status == 130, ran.err
    assert json.loads(Path("r.json").read_text())


# -- the executable --------------------------------------------------------------------------------


def executable(words: list[str], redirected: str = "", **more: Any) -> tuple[int, str]:
    """The status and what standard error gets, as a shell calls it."""
    command = f'"$0" -m warploom "$@" {redirected}'
    ran = subprocess.run(
        ["bash", "-c", command, sys.executable, *words],
        stderr=subprocess.PIPE, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONUNBUFFERED": "1"}, **more,
    )  # fmt: skip
    return ran.returncode, ran.stderr


FILES = ["machines", "--json", "r.json"]


def test_who_stops_reading_gets_the_files() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert executable(FILES, stdout=writer) == (141, "")
    os.close(writer)
    assert len(json.loads(Path("r.json").read_text())) > 3


def test_a_full_disk_is_one_line_and_the_files_are_written() -> None:
    said = "cannot write the output: No space left on device\n"
    assert executable(FILES, "> /dev/full") == (2, said)
    assert len(json.loads(Path("r.json").read_text())) > 3


def test_streams_that_are_closed_are_no_files_of_ours() -> None:
    """What is opened next would be standard output, and get what is printed."""
    assert executable(FILES, "<&- >&- 2>&-") == (0, "")
    assert len(json.loads(Path("r.json").read_text())) > 3
    status, said = executable(["machines", "--json", "-"], ">&-")
    assert (status, said.splitlines()[0]) == (2, "cannot write to standard output: it is closed")
