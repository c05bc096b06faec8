"""Results that are kept: one SQLite file, which several processes may read and write at once.

A result is found again by what it is of (`content`), by the device it was measured on, and by a
digest of our own sources: whatever may change a result makes it another one. Every row carries a
digest over all its columns (`row.py`); one that does not match is reported and counts as absent. A
file that is damaged or not ours is refused and left as it is.
"""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from warploom.errors import CheckError, DeviceError, WarploomError, spelled
from warploom.options import from_environment
from warploom.private import temporary_folder
from warploom.search.storage.database import (
    another_store,
    check_header,
    format_of,
    is_there,
    make_ours,
    plain,
    refused,
    unusable,
)
from warploom.search.storage.row import (
    COLUMNS,
    FORMAT,
    MALFORMED,
    OLD_FORMAT,
    Json,
    RowError,
    digest,
    is_believed,
    number_of,
    opened,
    seal,
)
from warploom.search.workers.sources import sources_digest

__all__ = ["Forgiving", "Json", "Kept", "Key", "Store", "digest", "sources_digest", "users_store"]

T = TypeVar("T")
Told = Callable[[WarploomError], None]

FILE = "store.sqlite"
_WAIT = 60.0  # seconds for another writer

_WHERE = "kind=? AND content=? AND device=? AND sources=?"
_GET = f"SELECT {COLUMNS} FROM results WHERE {_WHERE}"
_HAS = f"SELECT 1 FROM results WHERE {_WHERE}"
_PUT = f"INSERT OR REPLACE INTO results ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


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


def _as_warning(error: WarploomError) -> None:
    warnings.warn(error.message, stacklevel=2)


class Store:
    """The results in one file, which is made when the first one is put there. `told` hears of rows
    that are not believed; without it they are warnings of Python."""

    def __init__(
        self, path: Path | str, sources: str | None = None, told: Told = _as_warning
    ) -> None:
        self.path = Path(path)
        self.failed = False  # nothing is read or kept any more
        self._sources = sources
        self._told = told
        self._said_old = False

    @property
    def sources(self) -> str:
        return self._sources if self._sources is not None else sources_digest()

    def get(self, key: Key, read: Callable[[Json], T] | None = None) -> T | None:
        """What was put there under this key, or None. `read` makes of it what is wanted, and raises
        ValueError where it has another shape: then it is none, too."""
        return self.get_all([key], lambda value, _: value if read is None else read(value))[0]

    def get_all(
        self, keys: Sequence[Key], read: Callable[[Json, int], T] | None = None
    ) -> list[T | None]:
        """`get` for many keys, with one look into the file; `read` is told which of them."""
        if not keys:
            return []
        with self._reading() as connection:
            if connection is None:
                return [None] * len(keys)
            rows = [connection.execute(_GET, self._row(key)).fetchall() for key in keys]
        return [
            self._believed(key, found, at, read)
            for at, (key, found) in enumerate(zip(keys, rows, strict=True))
        ]

    def _believed(
        self,
        key: Key,
        rows: Sequence[Sequence[Any]],
        at: int,
        read: Callable[[Json, int], T] | None,
    ) -> T | None:
        """The value of the first row that is what was put under this key."""
        where = self._row(key)
        for row in rows:
            try:
                if tuple(row[:4]) != where:
                    raise RowError("is of another key")
                value = opened(row)
                return value if read is None else read(value, at)
            except MALFORMED as error:
                self._tell_row(where, key.label or key.kind, error, "it is computed again")
        return None

    def drop(self, keys: Sequence[Key]) -> None:
        """Forgets these."""
        if keys and is_there(self.path):
            with self._open(write=True) as connection:
                rows = [self._row(key) for key in keys]
                connection.executemany(f"DELETE FROM results WHERE {_WHERE}", rows)

    def _row(self, key: Key) -> tuple[str, str, str, str]:
        return key.kind, key.digest, key.device, self.sources

    def put(self, key: Key, value: Json) -> None:
        """Keeps a result, in the place of an older one under the same key."""
        row = self._written(key, value)
        with self._open(write=True) as connection:
            connection.execute(_PUT, row)

    def add(self, key: Callable[[int], Key], values: Sequence[Json], number: int = 0) -> None:
        """Keeps several results at once, under the first keys from that number on without one."""
        with self._open(write=True) as connection:
            for value in values:
                while connection.execute(_HAS, self._row(key(number))).fetchone() is not None:
                    number += 1
                connection.execute(_PUT, self._written(key(number), value))

    def _written(self, key: Key, value: Json) -> tuple[Any, ...]:
        try:
            text = json.dumps(value, sort_keys=True, allow_nan=False)
        except ValueError as error:
            raise CheckError(f"'{key.label}' cannot be kept: {error}") from None
        row = (*self._row(key), key.label, text, time.time())
        return (*row, seal(row))

    def all(self) -> list[Kept]:
        """Every result that is to be believed, the latest first."""
        with self._reading() as connection:
            if connection is None:
                return []
            query = f"SELECT {COLUMNS} FROM results ORDER BY written DESC"
            rows = connection.execute(query).fetchall()
        kept = []
        for row in rows:
            try:
                value = opened(row)
            except RowError as error:
                self._tell_row(row[:4], str(row[0]), error, "`warploom store prune` drops it")
                continue
            kind, _, device, sources, label, _, written, _ = row
            current = sources == self.sources
            kept.append(Kept(number_of(row[:4]), kind, device, label, value, written, current))
        return kept

    def forget(self, *, outdated: bool = False, before: float | None = None) -> int:
        """Removes all results, or those of other sources, or those written before a time; rows that
        are not believed go with any of them. How many there were."""
        if not is_there(self.path):
            return 0
        with self._open(write=True) as connection:
            rows = connection.execute(f"SELECT {COLUMNS} FROM results").fetchall()
            stays = [
                is_believed(row)
                and ((outdated and row[3] == self.sources)
                     or (before is not None and row[6] >= before))
                for row in rows
            ]  # fmt: skip
            left = [row for row, stay in zip(rows, stays, strict=True) if stay]
            if len(left) < len(rows):
                # All at once: a damaged row may not be found by what it says it is.
                connection.execute("DELETE FROM results")
                connection.executemany(_PUT, left)
            return len(rows) - len(left)

    def _tell_row(self, where: Sequence[object], what: str, error: Exception, after: str) -> None:
        name = f"row {number_of(where)[:10]} ({plain(what)}) of the store '{self.path}'"
        self._told(CheckError(f"{name} {plain(error)}: {after}"))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection to look at rows; None where there are none of ours yet."""
        if not is_there(self.path):
            yield None
            return
        with self._open(write=False) as connection:
            found = format_of(connection, self.path)
            self._tell_format(found)
            yield connection if found == FORMAT else None

    def _tell_format(self, found: int) -> None:
        if found == OLD_FORMAT and not self._said_old:
            self._said_old = True
            self._told(CheckError(
                f"the store '{self.path}' was written by an older version, whose rows carry no "
                "digest: none is used, and the next result that is kept removes them"
            ))  # fmt: skip

    @contextmanager
    def _open(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction; another process may write before and after it."""
        check_header(self.path)
        connection = self._connect()
        try:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if write:
                self._tell_format(make_ours(connection, self.path))
            yield connection
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise unusable(self.path, plain(error)) from None
        except (sqlite3.Error, ValueError, OverflowError, MemoryError) as error:
            raise refused(self.path, f"is damaged ({plain(error)})") from None
        finally:
            connection.close()  # what was not committed is undone

    def _connect(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise DeviceError(
                f"the store '{self.path}' cannot be opened: {error}",
                advice=another_store(),
            ) from None
        # A row with bytes that are no text is one damaged row, and not the end of all reading.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        return connection


class Forgiving(Store):
    """A store without which the work goes on: the first error is told, then it is left alone."""

    def __init__(self, path: Path | str, told: Told) -> None:
        super().__init__(path, told=told)

    def get_all(
        self, keys: Sequence[Key], read: Callable[[Json, int], T] | None = None
    ) -> list[T | None]:
        return self._tried(lambda: Store.get_all(self, keys, read), [None] * len(keys))

    def put(self, key: Key, value: Json) -> None:
        self._tried(lambda: Store.put(self, key, value), None)

    def add(self, key: Callable[[int], Key], values: Sequence[Json], number: int = 0) -> None:
        self._tried(lambda: Store.add(self, key, values, number), None)

    def drop(self, keys: Sequence[Key]) -> None:
        self._tried(lambda: Store.drop(self, keys), None)

    def _tried(self, action: Callable[[], T], otherwise: T) -> T:
        if self.failed:
            return otherwise
        try:
            return action()
        except WarploomError as error:
            self.failed = True
            self._told(DeviceError(f"{error.message}; the answer is not kept", advice=error.advice))
            return otherwise


def users_store() -> Store | None:
    """The file in the user's data folder, or the one that the environment names; None if that is
    empty."""
    options = from_environment()
    if options.store is not None:
        return Store(options.store) if options.store else None
    if options.data_folder is None:
        return _store_of_process()
    return Store(Path(options.data_folder) / FILE)


@lru_cache(maxsize=1)
def _store_of_process() -> Store:
    import logging  # here, not at the top: what is wrong with a store is rare

    logging.getLogger("warploom").warning(
        "warning: no home folder is known: results are kept for this run alone; "
        f"name a file with {spelled('--store or WARPLOOM_STORE', 'WARPLOOM_STORE')}"
    )
    return Store(temporary_folder() / FILE)
