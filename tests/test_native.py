"""Compiled C code is kept between runs: whole, or made again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.tools import is_here

from warploom import native
from warploom.native import kept_library

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")


def test_compiled_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, flags = "int f(void) { return 7; }\n", ("-fPIC", "-shared")
    folder = tmp_path / "new" / "cache"
    first = kept_library(text, flags, folder)
    assert [path.suffix for path in folder.iterdir()] == [".lib"]
    monkeypatch.setenv("PATH", os.devnull)  # no compiler any more
    assert kept_library(text, flags, folder) == first
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    monkeypatch.undo()
    assert kept_library(text, flags, nowhere / "below")  # no place to keep it


def test_what_was_kept_and_is_damaged_is_made_again(tmp_path: Path) -> None:
    """Half a library, loaded, would end the process."""
    text, flags = "int f(void) { return 7; }\n", ("-fPIC", "-shared")
    first = kept_library(text, flags, tmp_path)
    (place,) = tmp_path.iterdir()
    whole = place.read_bytes()
    for damaged in (b"", whole[:1000], whole[:-1], whole[:-1] + b"\1", first):
        place.write_bytes(damaged)
        assert kept_library(text, flags, tmp_path) == first
        assert place.read_bytes() == whole
    place.unlink()
    place.mkdir()  # nothing can be put there
    assert kept_library(text, flags, tmp_path) == first
    assert [path.name for path in tmp_path.iterdir()] == [place.name]


def test_the_oldest_libraries_go_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (tmp_path / f"{number}.lib").write_bytes(bytes(100))
        os.utime(tmp_path / f"{number}.lib", (number, number))
    monkeypatch.setattr(native, "MOST_BYTES", 250)
    native._leave_newest(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["3.lib", "4.lib"]
