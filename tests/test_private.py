"""What lies in a folder is loaded only if nobody but this user can have put it there."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.tools import is_here

from warploom import native
from warploom.native import kept_library
from warploom.options import cache_folder, from_environment
from warploom.private import make_private, read_private, temporary_folder
from warploom.process import python_command
from warploom.runtime.opencl import pyopencl
from warploom.search.storage import store

TEXT, FLAGS = "int f(void) { return 7; }\n", ("-fPIC", "-shared")
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Whose parents are as safe as those of a home folder."""
    tmp_path.chmod(0o700)
    return tmp_path / "cache" / "warploom"


def test_a_new_folder_is_this_users_alone(folder: Path) -> None:
    assert make_private(folder)
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    (folder / "a").write_bytes(b"kept")
    assert read_private(folder, "a") == b"kept"
    assert not make_private(Path("relative"))
    assert not Path("relative").exists()


def open_to_all(folder: Path) -> None:
    folder.chmod(0o777)


def sticky(folder: Path) -> None:
    """Others cannot rename what is there, and can put files there that are not yet."""
    folder.chmod(0o1777)


def open_to_a_group(folder: Path) -> None:
    os.chown(folder, -1, 12345)
    folder.chmod(0o770)


def of_another(folder: Path) -> None:
    os.chown(folder, 12345, -1)


def under_one_open_to_all(folder: Path) -> None:
    folder.parent.chmod(0o777)


def under_anothers(folder: Path) -> None:
    os.chown(folder.parent, 12345, -1)


PLANTED = [
    open_to_all,
    sticky,
    pytest.param(open_to_a_group, marks=ROOT_ONLY),
    pytest.param(of_another, marks=ROOT_ONLY),
    under_one_open_to_all,
    pytest.param(under_anothers, marks=ROOT_ONLY),
]


@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
@pytest.mark.parametrize("plant", PLANTED)
def test_a_library_that_others_may_have_planted_is_not_loaded(
    folder: Path, plant: object, caplog: pytest.LogCaptureFixture
) -> None:
    first = kept_library(TEXT, FLAGS, folder)
    (place,) = folder.iterdir()
    place.write_bytes(hashlib.sha256(b"planted").digest() + b"planted")
    assert kept_library(TEXT, FLAGS, folder) == b"planted"  # as it would be taken
    assert callable(plant)
    native._instead_of.cache_clear()
    plant(folder)
    with caplog.at_level(logging.INFO, "warploom"):
        assert kept_library(TEXT, FLAGS, folder) == first
        assert kept_library(TEXT, FLAGS, folder) == first
    assert len(caplog.records) == 1
    assert temporary_folder().stat().st_mode & 0o777 == 0o700


def of_a_stranger(file: Path) -> None:
    os.chown(file, 12345, -1)


def open_file(file: Path) -> None:
    file.chmod(0o666)


def link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "plant", [pytest.param(of_a_stranger, marks=ROOT_ONLY), open_file, link, pipe]
)
def test_a_file_that_others_may_have_written_is_not_read(folder: Path, plant: object) -> None:
    assert make_private(folder)
    (folder / "a").write_bytes(b"kept")
    assert callable(plant)
    plant(folder / "a")
    assert read_private(folder, "a") is None


@pytest.mark.parametrize("name", ["WARPLOOM_CACHE", "XDG_CACHE_HOME"])
def test_a_cache_that_depends_on_where_one_stands_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.delenv("WARPLOOM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(name, "cache")
    assert cache_folder() == tmp_path / ".cache" / "warploom"
    monkeypatch.setenv(name, "/var/cache/mine")
    assert cache_folder() in (Path("/var/cache/mine"), Path("/var/cache/mine/warploom"))


@pytest.mark.parametrize("home", [None, "~", "here"])
def test_without_a_home_nothing_is_made_where_one_stands(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, home: str | None
) -> None:
    """A user of a container without HOME and without an entry in the list of users."""
    for name in ("WARPLOOM_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "WARPLOOM_STORE", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is None:
        monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    else:
        monkeypatch.setenv("HOME", home)
    store._store_of_process.cache_clear()
    assert cache_folder() == temporary_folder()
    assert from_environment().data_folder is None
    for _ in range(2):
        kept = store.users_store()
        assert kept is not None
        assert kept.path.parent == temporary_folder()
    assert [each.message for each in caplog.records if "no home folder" in each.message] == [
        caplog.records[0].message
    ]


def test_a_command_without_a_home_gives_its_answer(tmp_path: Path) -> None:
    """Of a user that the system does not know, as in many containers: an answer, and no folder."""
    code = """
import pwd, sys
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
from warploom.cli import main
sys.argv = ["warploom", "synth", "sums"]
main()"""
    ran = subprocess.run(
        python_command(code), capture_output=True, text=True, cwd=tmp_path,
        env={"PATH": os.environ["PATH"]}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("no home folder is known") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["open", "relative", "own"])
def test_what_opencl_keeps_is_this_users_alone(
    given: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL loads libraries from there, and pyopencl's tables are unpickled."""
    folder.mkdir(parents=True, mode=0o700)
    if given == "open":
        open_to_all(folder)
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", folder.name if given == "relative" else str(folder))
    monkeypatch.setitem(sys.modules, "pyopencl", ModuleType("pyopencl"))
    pyopencl()
    kept = Path(os.environ["XDG_CACHE_HOME"])
    wanted = {"open": temporary_folder(), "relative": folder.parent / ".cache", "own": folder}
    assert kept == wanted[given]
    assert make_private(kept)
