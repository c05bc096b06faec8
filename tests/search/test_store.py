"""Kept results are found again by all that decides them; files that are not ours are left."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.search.workers import put_rows

from warploom.errors import CheckError, WarploomError, by_command
from warploom.search.storage.row import COLUMNS, OLD_FORMAT, OLD_TABLE, items, seal, text
from warploom.search.storage.store import Key, Store, digest, sources_digest
from warploom.search.workers.farm import Farm

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


def notes(path: Path) -> None:
    path.write_text("my notes")


@pytest.mark.parametrize(
    "make", [other_database, marked_database, newer, damaged, cut, notes], ids=lambda f: f.__name__
)
def test_what_is_not_ours_or_damaged_is_refused_and_left(tmp_path: Path, make: object) -> None:
    path = tmp_path / "store.sqlite"
    make(path)  # type: ignore[operator]
    before = path.read_bytes()
    ours = Store(path, "")
    for action in (lambda: ours.get(KEY), lambda: ours.put(KEY, 1), ours.all, ours.forget):
        with pytest.raises(CheckError, match="left as it is") as caught:
            action()
        assert "WARPLOOM_STORE" in caught.value.advice
        with by_command(), pytest.raises(CheckError) as caught:
            action()
        assert "--no-store" in caught.value.advice
        assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["store.sqlite"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(WarploomError, match="store"):
        Store(tmp_path, "").put(KEY, 1)


@pytest.mark.slow
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


# -- rows that are not what was put there ----------------------------------------------------------


def change(path: Path, sql: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(sql, values)
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE results SET value = replace(value, '1.5', '2.5')",
        "UPDATE results SET value = CAST(value AS BLOB)",
        "UPDATE results SET value = substr(value, 1, 3)",
        "UPDATE results SET value = 7",
        "UPDATE results SET value = CAST(x'ff22' AS TEXT)",
        "UPDATE results SET label = 'another'",
        "UPDATE results SET written = written + 1",
        "UPDATE results SET digest = upper(digest)",
        "UPDATE results SET digest = CAST(digest AS BLOB)",
    ],
)
def test_an_altered_row_is_named_and_absent(tmp_path: Path, sql: str) -> None:
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "", told.append)
    store.put(KEY, [1.5])
    other = Key("tune", 2, "H200")
    store.put(other, "untouched")
    number = next(kept.number for kept in store.all() if kept.label == KEY.label)
    change(store.path, f"{sql} WHERE label = 'copy, n=5'")
    assert store.get(KEY) is None
    assert store.get_all([other, KEY]) == ["untouched", None]
    assert [kept.value for kept in store.all()] == ["untouched"]
    assert len(told) == 3
    for error in told:
        assert number[:10] in error.message
        assert str(store.path) in error.message
        assert "\n" not in error.message
    assert store.forget(outdated=True) == 1  # damaged ones go with those that are outdated
    told.clear()
    assert [kept.value for kept in store.all()] == ["untouched"]
    assert not told
    store.put(KEY, [1.5])
    assert store.get(KEY) == [1.5]


def test_a_row_under_another_key_is_none_of_that_key(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite", "", lambda _: None)
    others = [Key("tune", {"name": "copy", "n": 6}, "H200"), Key("tune", KEY.content, "A100")]
    others += [Key("fill", KEY.content, "H200")]
    for other in others:
        store.forget()
        store.put(KEY, 1)
        change(
            store.path,
            "UPDATE results SET kind = ?, content = ?, device = ?",
            *(other.kind, other.digest, other.device),
        )
        assert (store.get(other), store.get(KEY), store.all()) == (None, None, [])
    store.forget()
    store.put(KEY, 1)
    change(store.path, "UPDATE results SET sources = 'newer'")
    assert Store(store.path, "newer", lambda _: None).get(KEY) is None


def test_without_a_listener_a_damaged_row_is_a_warning_of_python(store: Store) -> None:
    store.put(KEY, 1)
    change(store.path, "UPDATE results SET value = 2")
    with pytest.warns(UserWarning, match="does not match its digest: it is computed again"):
        assert store.get(KEY) is None


@pytest.mark.parametrize(
    "value", ["{", "[" * 100_000, "NaN", "[1e999, Infinity]", "9" * 5000], ids=lambda v: v[:5]
)
def test_json_that_nobody_wrote_is_absent(tmp_path: Path, value: str) -> None:
    """Its digest matches: it was made by hand."""
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "", told.append)
    store.put(KEY, 1)
    change(store.path, "UPDATE results SET value = ?", value)
    connection = sqlite3.connect(store.path)
    (row,) = connection.execute(f"SELECT {COLUMNS} FROM results").fetchall()
    connection.close()
    change(store.path, "UPDATE results SET digest = ?", seal(row[:-1]))
    assert store.get(KEY) is None
    assert "holds no JSON that we write" in told[0].message


def test_a_value_of_another_shape_is_absent(tmp_path: Path) -> None:
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "", told.append)
    store.put(KEY, [1])
    assert store.get(KEY, text) is None
    assert store.get(KEY, items) == [1]
    assert [error.message.partition("' ")[2] for error in told] == [
        "has [1] in place of a text: it is computed again"
    ]
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(CheckError, match="cannot be kept"):
            store.put(KEY, [wrong])


def test_rows_of_the_format_without_digests_are_not_used(tmp_path: Path) -> None:
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "", told.append)
    store.put(KEY, 1)
    for sql in (
        "DROP TABLE results",
        OLD_TABLE,
        f"PRAGMA user_version = {OLD_FORMAT}",
    ):
        change(store.path, sql)
    row = ("tune", KEY.digest, "H200", "", "", "17", 0.0)
    change(store.path, "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    assert (store.get(KEY), store.get(KEY), store.all()) == (None, None, [])
    assert [error.message for error in told] == [
        f"the store '{store.path}' was written by an older version, whose rows carry no digest: "
        "none is used, and the next result that is kept removes them"
    ]
    store.put(KEY, 2)
    assert [kept.value for kept in store.all()] == [2]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
        "CREATE INDEX i ON results (label)",
        "ALTER TABLE results ADD COLUMN more",
        "ALTER TABLE results RENAME COLUMN label TO name",
        f"PRAGMA user_version = {OLD_FORMAT}",
    ],
)
def test_a_table_that_is_not_ours_is_refused(store: Store, sql: str) -> None:
    store.put(KEY, 1)
    change(store.path, sql)
    for action in (lambda: store.get(KEY), lambda: store.put(KEY, 2)):
        with pytest.raises(CheckError, match="is damaged \\(its table is another\\)"):
            action()
