"""Calls in confined processes: what hostile files can do, and what is left of them."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agents import hostile

from warploom.agents.call import Ended, Limits, run
from warploom.agents.confined import can_confine

confined = pytest.mark.skipif(not can_confine(), reason="no Landlock or no seccomp")
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are listed on Linux alone")
CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine(), 0)

JUDGE = ["judge", "twice.ptx", "--arg=x=f32[32]", "--arg=y=f32[32]=out"]
SMALL = Limits(seconds=60.0, memory_bytes=2 << 30, output_bytes=16 << 20)
BRIEF = Limits(seconds=4.0, memory_bytes=2 << 30, output_bytes=16 << 20)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "twice.ptx").write_text(hostile.TWICE)
    (folder / "references.py").write_text(hostile.REFERENCES)
    return folder


def called(root: Path, words: list[str], limits: Limits = SMALL) -> Ended:
    return run(words, root, root.parent / "place", limits, can_confine(), threading.Event())


def script(root: Path, text: str, limits: Limits = SMALL) -> Ended:
    (root / "script.py").write_text(text)
    return called(root, ["sanitize", "script.py", "--run"], limits)


def processes_named(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        found += [text] if word in text else []
    return found


def test_a_kernel_is_judged(root: Path) -> None:
    ended = called(root, [*JUDGE, "--reference=references.py::twice"])
    assert (ended.status, ended.stopped) == (0, ""), ended
    assert ": equal" in ended.out


@confined
def test_nothing_outside_can_be_had_or_changed(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    before = (root / "twice.ptx").stat()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        text = hostile.TRIES.format(
            outside=str(outside), port=listener.getsockname()[1], clone=CLONE
        )
        ended = script(root, text)
        listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listener.accept()
    lines = ended.out.splitlines()
    assert [each for each in lines if each.startswith("done: ")] == [], ended
    assert sum(each.startswith("refused: ") for each in lines) == hostile.TRIED, ended
    assert sorted(each.name for each in root.iterdir()) == [
        "references.py", "script.py", "twice.ptx",
    ]  # fmt: skip
    assert [each.name for each in outside.iterdir()] == ["secret"]
    after = (root / "twice.ptx").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


@confined
def test_the_same_script_without_confinement_does_much_of_it(root: Path) -> None:
    """Else the test above would say nothing."""
    (root.parent / "secret").write_text("secret")
    text = hostile.TRIES.format(outside=str(root.parent), port=9, clone=CLONE)
    keep = ("reads", "lists", "opens_a_socket", "changes_modes", "writes_inside", "makes_a_link")
    lines = text.replace("for each in list", f"KEEP = {keep}\nfor each in list").replace(
        "if callable(each)", "if getattr(each, '__name__', '') in KEEP and callable(each)"
    )
    (root / "script.py").write_text(lines)
    words = ["sanitize", "script.py", "--run"]
    ended = run(words, root, root.parent / "place", SMALL, False, threading.Event())
    assert [each for each in ended.out.splitlines() if each.startswith("refused")] == [], ended
    assert ended.out.count("done: ") == len(keep)


def test_time_is_limited(root: Path) -> None:
    began = time.monotonic()
    ended = called(root, [*JUDGE, "--reference=references.py::endless"], BRIEF)
    assert (ended.status, ended.stopped) == (None, "time")
    assert time.monotonic() - began < 3 * BRIEF.seconds


def test_an_array_of_ten_gigabytes_is_an_error(root: Path) -> None:
    ended = called(root, [*JUDGE, "--reference=references.py::huge"])
    assert ended.status in (2, 3, 70), ended
    assert "memory" in (ended.out + ended.err).lower()


@linux
def test_the_memory_of_all_processes_counts_together(root: Path) -> None:
    ended = script(root, hostile.GROWS, Limits(seconds=30.0, memory_bytes=1 << 30))
    assert ended.stopped == "memory", ended


@linux
def test_forks_are_ended(root: Path) -> None:
    (root / "bomb.py").write_text(hostile.FORKS)
    words = ["sanitize", "bomb.py", "--run"]
    assert called(root, words).stopped in ("processes", "memory")
    assert processes_named(str(root)) == []


@confined
def test_nobody_leaves_the_group(root: Path) -> None:
    seconds = f"98231.{os.getpid()}"
    ended = script(root, hostile.STAYS.format(seconds=seconds))
    assert ended.status == 2, ended  # it launched no kernel
    assert processes_named(seconds) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", [hostile.FLOODS, hostile.FILLS, hostile.MANY_FILES])
def test_output_is_limited(root: Path, text: str) -> None:
    ended = script(root, text)
    wrote = sum(each.stat().st_size for each in (root.parent / "place").rglob("*"))
    assert ended.stopped == "output" or "File too large" in ended.out + ended.err, ended
    assert wrote < 1 << 30


@confined
@pytest.mark.parametrize("text", [hostile.UNLINKED, hostile.NAMELESS, hostile.MAPPED])
def test_files_without_a_name_count(root: Path, text: str) -> None:
    ended = script(root, text)
    assert ended.stopped == "output", ended
    assert "held all" not in ended.out


@linux
def test_threads_count(root: Path) -> None:
    ended = script(root, hostile.THREADS, Limits(seconds=30.0, processes=8))
    assert ended.stopped == "processes", ended


@confined
def test_whatever_ends_the_server_ends_its_calls(root: Path) -> None:
    (root / "detached.py").write_text(hostile.DETACHED)
    words = ["sanitize", "detached.py", "--run"]
    text = (
        "import sys, threading\nfrom pathlib import Path\n"
        "from warploom.agents.call import Limits, run\nroot = Path(sys.argv[1])\n"
        f"run({words!r}, root, root.parent / 'place', Limits(), True, threading.Event())\n"
    )
    path = os.pathsep.join(each for each in sys.path if each)
    server = subprocess.Popen(
        [sys.executable, "-P", "-c", text, str(root)], env={**os.environ, "PYTHONPATH": path}
    )
    try:
        _until(lambda: len(processes_named(str(root))) == 10)  # server, guard, and 2 ** 3
    finally:
        server.kill()
        server.wait()
    _until(lambda: processes_named(str(root)) == [])


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@linux
def test_how_a_call_ends_is_told(root: Path) -> None:
    """Also where a signal ends it, as limits of the kernel do."""
    assert script(root, "import os\nos._exit(7)").status == 7
    text = "import os, signal\nsignal.signal(signal.SIGXCPU, signal.SIG_DFL)\n"
    (root.parent / "place").rename(root.parent / "before")
    ended = script(root, f"{text}os.kill(os.getpid(), signal.SIGXCPU)")
    assert ended.stopped == "time", ended


def test_a_call_is_cancelled(root: Path) -> None:
    cancelled = threading.Event()
    timer = threading.Timer(1.0, cancelled.set)
    timer.start()
    words = [*JUDGE, "--reference=references.py::endless"]
    ended = run(words, root, root.parent / "place", SMALL, can_confine(), cancelled)
    assert ended.stopped == "cancelled"
    assert ended.seconds < 20
    timer.join()
