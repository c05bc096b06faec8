"""The SQLite file of the store: is it ours, of which format, and how it becomes ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from warploom.errors import CheckError, DeviceError, spelled
from warploom.search.storage.row import FORMAT, OLD_FORMAT, OLD_TABLE, TABLE

_OURS = 0x57415250  # "WARP": SQLite keeps it in the header of the file
_HEADER = b"SQLite format 3\0"


def is_there(path: Path) -> bool:
    try:
        return path.exists() and path.stat().st_size > 0
    except OSError as error:  # its name is too long, or a folder is closed to us
        raise unusable(path, str(error.strerror)) from None


def check_header(path: Path) -> None:
    """SQLite takes some files that it did not write for new ones."""
    if not is_there(path):
        return
    try:
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except OSError as error:
        raise DeviceError(f"the store '{path}' cannot be read: {error.strerror}") from None
    if header != _HEADER:
        raise refused(path, "is no store of ours")


def format_of(connection: sqlite3.Connection, path: Path) -> int:
    """The format of our results in this file; 0 if it is new; any other file is refused."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (format_,) = connection.execute("PRAGMA user_version").fetchone()
    tables = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    if owner == 0 and not tables and format_ == 0:
        return 0
    if owner != _OURS:
        raise refused(path, "is a database of something else")
    if format_ not in (OLD_FORMAT, FORMAT):
        raise refused(path, f"has the format {format_}, not {FORMAT}")
    table = TABLE if format_ == FORMAT else OLD_TABLE
    if tables != [("table", "results", "results", table)]:
        raise refused(path, "is damaged (its table is another)")
    return int(format_)


def make_ours(connection: sqlite3.Connection, path: Path) -> int:
    """An empty table in a new file, and in the place of one whose rows nobody believes; the format
    that it had."""
    found = format_of(connection, path)
    if found == FORMAT:
        return found
    if found == OLD_FORMAT:
        connection.execute("DROP TABLE results")
    connection.execute(f"PRAGMA application_id = {_OURS}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute(TABLE)
    return found


def another_store() -> str:
    """Advice where a store is of no use."""
    return spelled(
        "name another file with --store, or none with --no-store",
        "name another file in WARPLOOM_STORE, or pass store=False where a call takes it",
    )


def unusable(path: Path, why: str) -> DeviceError:
    return DeviceError(
        f"the store '{str(path)[:200]}' cannot be used: {why}",
        advice=another_store(),
    )


def refused(path: Path, why: str) -> CheckError:
    return CheckError(
        f"the store '{path}' {why}; it is left as it is",
        advice=f"move it away, or {another_store()}",
    )


def plain(said: object) -> str:
    """A short text, as damaged bytes may be part of what SQLite says of them."""
    return "".join(each if each.isprintable() else "?" for each in str(said))[:120]
