"""The digest of the sources that run: of files that did not change since they were loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warploom

SCRIPT = """
import sys, os, time
sys.path.insert(0, sys.argv[1])
from warploom.search.workers.sources import CHANGED, running_digest, sources_digest
first = running_digest() if sys.argv[2] == "asked" else None
print("ready", flush=True)
sys.stdin.readline()
said = running_digest()
print(said == CHANGED, first is None or first == sources_digest() != CHANGED)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few modules are enough: those that the digest itself needs."""
    folder = tmp_path_factory.mktemp("copy") / "warploom"
    (folder / "search" / "workers").mkdir(parents=True)
    ours = Path(warploom.__file__).parent
    needed = ("began.py", "pictured.py", "search/workers/sources.py")
    for name in ("__init__.py", "search/__init__.py", "search/workers/__init__.py", *needed):
        if (ours / name).exists():
            shutil.copy(ours / name, folder / name)
    return folder


def edited(folder: Path) -> None:
    with (folder / "began.py").open("a") as file:
        file.write("\n")


def added(folder: Path) -> None:
    (folder / "later.py").write_text("\n")


def removed(folder: Path) -> None:
    (folder / "spare.py").unlink()


def replaced(folder: Path) -> None:
    """By a folder that was there before, as a link that is turned does it."""
    folder.rename(folder.with_name("old"))
    folder.with_name("other").rename(folder)


def nothing(folder: Path) -> None:
    assert folder.is_dir()


@pytest.mark.parametrize("asked", ["asked", "never"])
@pytest.mark.parametrize("change", [edited, added, removed, replaced, nothing])
def test_files_that_change_after_they_were_loaded_are_told(
    package: Path, tmp_path: Path, change: object, asked: str
) -> None:
    root = tmp_path / "root"
    for name in ("warploom", "other"):
        shutil.copytree(package, root / name)
        (root / name / "spare.py").write_text("\n")
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SCRIPT, str(root), asked],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert callable(change)
    change(root / "warploom")
    out, _ = process.communicate("\n")
    # A file that nobody had loaded is missing in the digest, which then is another one.
    unnoticed = change is nothing or (change is removed and asked == "never")
    assert out.split() == [str(not unnoticed), "True"]


def test_an_archive_has_a_digest_of_its_own(package: Path, tmp_path: Path) -> None:
    """Two that differ have two: no files were found in either, and their digests were equal."""
    said = set()
    for number in range(2):
        (package / "more.py").write_text(f"number = {number}\n")
        made = shutil.make_archive(
            str(tmp_path / f"{number}"), "zip", root_dir=package.parent, base_dir="warploom"
        )
        code = "import sys; sys.path.insert(0, sys.argv[1]); "
        code += (
            "from warploom.search.workers.sources import running_digest; print(running_digest())"
        )
        said.add(subprocess.check_output([sys.executable, "-I", "-S", "-c", code, made], text=True))
    assert len(said) == 2
    assert all(len(each.strip()) == 64 for each in said)
