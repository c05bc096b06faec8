"""Kept results are found again by all that decides them; files that are not ours are left."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.search.workers import put_rows

from warploom.errors import CheckError, WarploomError
from warploom.search.farm import Farm
from warploom.search.store import Key, Store, digest, sources_digest

KEY = Key("tune", {"name": "copy", "n": 5}, "H200", "copy, n=5")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "store.sqlite", "these sources")


def test_what_was_put_is_found_by_content_device_and_sources(store: Store) -> None:
    assert store.get(KEY) is None
    assert not store.path.exists()  # asking makes no file
    store.put(KEY, [1.5, None, {"a": "ä"}])
    assert store.get(KEY) == [1.5, None, {"a": "ä"}]
    again = Store(store.path, "these sources")
    assert again.get(Key("tune", {"n": 5, "name": "copy"}, "H200")) == store.get(KEY)
    others = (
        (Key("tune", {"name": "copy", "n": 6}, "H200"), "these sources"),
        (Key("tune", KEY.content, "A100"), "these sources"),
        (Key("fill", KEY.content, "H200"), "these sources"),
        (KEY, "other sources"),
    )
    for key, sources in others:
        assert Store(store.path, sources).get(key) is None


def test_the_latest_is_kept_and_listed(store: Store) -> None:
    for value in (1, 2):
        store.put(KEY, value)
    Store(store.path, "older").put(KEY, 3)
    assert store.get(KEY) == 2
    listed = store.all()
    assert {(kept.value, kept.current, kept.label) for kept in listed} == {
        (2, True, "copy, n=5"),
        (3, False, "copy, n=5"),
    }
    assert store.forget(outdated=True) == 1
    assert [kept.value for kept in store.all()] == [2]
    assert store.forget() == 1
    assert store.all() == []


def other_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE results (kind TEXT)")
    connection.close()


def marked_database(path: Path) -> None:
    """Empty, but somebody has marked it as theirs."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 42")
        connection.execute("PRAGMA user_version = 7")
    connection.close()


def newer(path: Path) -> None:
    Store(path, "").put(KEY, 1)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def damaged(path: Path) -> None:
    ours = Store(path, "")
    for number in range(15):
        ours.put(Key("tune", number, "H200", "x" * 200), "y" * 200)
    whole = bytearray(path.read_bytes())
    whole[4096:] = bytes(0xAB for _ in whole[4096:])
    path.write_bytes(whole)


def cut(path: Path) -> None:
    damaged(path)
    path.write_bytes(path.read_bytes()[:5000])


def text(path: Path) -> None:
    path.write_text("my notes")


@pytest.mark.parametrize(
    "make", [other_database, marked_database, newer, damaged, cut, text], ids=lambda f: f.__name__
)
def test_what_is_not_ours_or_damaged_is_refused_and_left(tmp_path: Path, make: object) -> None:
    path = tmp_path / "store.sqlite"
    make(path)  # type: ignore[operator]
    before = path.read_bytes()
    ours = Store(path, "")
    for action in (lambda: ours.get(KEY), lambda: ours.put(KEY, 1), ours.all, ours.forget):
        with pytest.raises(CheckError, match="left as it is") as caught:
            action()
        assert "--no-store" in caught.value.advice
        assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["store.sqlite"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(WarploomError, match="store"):
        Store(tmp_path, "").put(KEY, 1)


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    farm = Farm(4)
    try:
        for done in [farm.submit(put_rows, str(path), worker, 20) for worker in range(4)]:
            done.result()
    finally:
        farm.shutdown()
    found = {kept.value for kept in Store(path, "").all()}
    assert found == {f"{worker}-{number}" for worker in range(4) for number in range(20)}


def test_digests_are_of_content_and_of_sources() -> None:
    assert digest([1, "1"]) != digest(["1", 1])
    assert len(sources_digest()) == 64
