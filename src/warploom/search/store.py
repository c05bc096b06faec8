"""Results that are kept: one SQLite file, which several processes may read and write at once.

A result is found again by what it is of (`content`), by the device it was measured on, and by a
digest of our own sources: whatever may change a result makes it another one. A file that is damaged
or not ours is refused and left as it is.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from warploom.errors import CheckError, DeviceError, WarploomError
from warploom.options import from_environment

Json: TypeAlias = Any  # what `json.dumps` takes
T = TypeVar("T")

FORMAT = 1
FILE = "store.sqlite"
_OURS = 0x57415250  # "WARP": SQLite keeps it in the header of the file
_HEADER = b"SQLite format 3\0"
_WAIT = 60.0  # seconds for another writer

_TABLE = """CREATE TABLE results (
  kind TEXT NOT NULL, content TEXT NOT NULL, device TEXT NOT NULL, sources TEXT NOT NULL,
  label TEXT NOT NULL, value TEXT NOT NULL, written REAL NOT NULL,
  PRIMARY KEY (kind, content, device, sources)
) WITHOUT ROWID"""


_WHERE = "kind=? AND content=? AND device=? AND sources=?"
_GET = f"SELECT value FROM results WHERE {_WHERE}"


@dataclass(frozen=True, slots=True)
class Key:
    """What a result is of. `content` is anything that JSON can say; `label` is for people."""

    kind: str
    content: Json
    device: str
    label: str = ""

    @property
    def digest(self) -> str:
        return digest(self.content)


@dataclass(frozen=True, slots=True)
class Kept:
    """A row of the file, as it is listed; its number is made of all that it is found by."""

    number: str
    kind: str
    device: str
    label: str
    value: Json
    written: float
    current: bool  # by the sources that are running


class Store:
    """The results in one file, which is made when the first one is put there."""

    def __init__(self, path: Path | str, sources: str | None = None) -> None:
        self.path = Path(path)
        self._sources = sources

    @property
    def sources(self) -> str:
        return self._sources if self._sources is not None else sources_digest()

    def get(self, key: Key) -> Json | None:
        """What was put there under this key, or None."""
        rows = self._read(_GET, self._row(key))
        return rows[0][0] if rows else None

    def get_all(self, keys: Sequence[Key]) -> list[Json | None]:
        """The same for many keys, with one look into the file."""
        if not keys or not _is_there(self.path):
            return [None] * len(keys)
        with self._open(write=False) as connection:
            if not _is_ours(connection, self.path):
                return [None] * len(keys)
            found = (connection.execute(_GET, self._row(key)).fetchone() for key in keys)
            return [None if row is None else json.loads(row[0]) for row in found]

    def drop(self, keys: Sequence[Key]) -> None:
        """Forgets these."""
        if keys and _is_there(self.path):
            with self._open(write=True) as connection:
                rows = [self._row(key) for key in keys]
                connection.executemany(f"DELETE FROM results WHERE {_WHERE}", rows)

    def _row(self, key: Key) -> tuple[str, str, str, str]:
        return key.kind, key.digest, key.device, self.sources

    def put(self, key: Key, value: Json) -> None:
        """Keeps a result, in the place of an older one under the same key."""
        text = json.dumps(value, sort_keys=True)
        where = self._row(key)
        with self._open(write=True) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*where, key.label, text, time.time()),
            )

    def all(self) -> list[Kept]:
        """Every result, the latest first."""
        rows = self._read(
            "SELECT value, kind, content, device, sources, label, written FROM results "
            "ORDER BY written DESC"
        )
        return [
            Kept(digest(key), kind, key[2], label, value, written, key[3] == self.sources)
            for value, kind, *key, label, written in ((row[0], row[1], *row[1:]) for row in rows)
        ]

    def forget(self, *, outdated: bool = False, before: float | None = None) -> int:
        """Removes all results, or those of other sources, or those written before a time; how many
        there were."""
        if not _is_there(self.path):
            return 0
        where, values = ["1"], list[Json]()
        if outdated:
            where, values = [*where, "sources != ?"], [*values, self.sources]
        if before is not None:
            where, values = [*where, "written < ?"], [*values, before]
        with self._open(write=True) as connection:
            query = f"DELETE FROM results WHERE {' AND '.join(where)}"
            return connection.execute(query, values).rowcount

    def _read(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query whose first column is a value; none where nothing was put yet."""
        if not _is_there(self.path):
            return []
        with self._open(write=False) as connection:
            if not _is_ours(connection, self.path):
                return []
            rows = connection.execute(query, values).fetchall()
            return [(json.loads(value), *rest) for value, *rest in rows]

    @contextmanager
    def _open(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction; another process may write before and after it."""
        _check_header(self.path)
        connection = self._connect()
        try:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if write and not _is_ours(connection, self.path):
                connection.execute(f"PRAGMA application_id = {_OURS}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.execute(_TABLE)
            yield connection
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise DeviceError(f"the store '{self.path}' cannot be used: {error}") from None
        except (sqlite3.DatabaseError, ValueError) as error:
            raise _refused(self.path, f"is damaged ({error})") from None
        finally:
            connection.close()  # what was not committed is undone

    def _connect(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise DeviceError(
                f"the store '{self.path}' cannot be opened: {error}",
                advice="name another file with --store, or none with --no-store",
            ) from None


class Forgiving(Store):
    """A store without which the work goes on: the first error is told, then it is left alone."""

    def __init__(self, path: Path | str, told: Callable[[WarploomError], None]) -> None:
        super().__init__(path)
        self._told, self._failed = told, False

    def get(self, key: Key) -> Json | None:
        return self._tried(lambda: Store.get(self, key), None)

    def get_all(self, keys: Sequence[Key]) -> list[Json | None]:
        return self._tried(lambda: Store.get_all(self, keys), [None] * len(keys))

    def put(self, key: Key, value: Json) -> None:
        self._tried(lambda: Store.put(self, key, value), None)

    def drop(self, keys: Sequence[Key]) -> None:
        self._tried(lambda: Store.drop(self, keys), None)

    def _tried(self, action: Callable[[], T], otherwise: T) -> T:
        if self._failed:
            return otherwise
        try:
            return action()
        except WarploomError as error:
            self._failed = True
            self._told(error)
            return otherwise


def users_store() -> Store | None:
    """The file in the user's data folder, or the one that the environment names; None if that is
    empty."""
    options = from_environment()
    if options.store is not None:
        return Store(options.store) if options.store else None
    return Store(Path(options.data_folder) / FILE)


def _is_there(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _check_header(path: Path) -> None:
    """SQLite takes some files that it did not write for new ones."""
    if not _is_there(path):
        return
    try:
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except OSError as error:
        raise DeviceError(f"the store '{path}' cannot be read: {error.strerror}") from None
    if header != _HEADER:
        raise _refused(path, "is no store of ours")


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds our results; not yet, if it is new; any other is refused."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (format_,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner == 0 and tables == 0 and format_ == 0:
        return False
    if owner != _OURS:
        raise _refused(path, "is a database of something else")
    if format_ != FORMAT:
        raise _refused(path, f"has the format {format_}, not {FORMAT}")
    return True


def _refused(path: Path, why: str) -> CheckError:
    return CheckError(
        f"the store '{path}' {why}; it is left as it is",
        advice="move it away, or name another file with --store, or none with --no-store",
    )


def digest(content: Json) -> str:
    """Equal for equal content, in every process.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """Of every Python file of this package, by name and bytes."""
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
