"""Which sources of Warploom run in this process: their digest, as long as it says so truly.

A process has loaded some modules and will load others. Its files tell what runs only if none of
them changed after the first was loaded; otherwise the process says that they did, and is no longer
taken at its word.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from warploom.began import AT_NS, FIRST_FILE

CHANGED = "changed"  # stands for the digest of sources that are not those on disk
_ROOT = Path(__file__).parents[2]


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """SHA-256 of every Python file of this package, by name and bytes."""
    found = hashlib.sha256()
    for name, path in sorted((_name(path), path) for path in _files()):
        found.update(f"{name}\0".encode())
        with open(path, "rb", buffering=0) as file:
            found.update(hashlib.sha256(file.read()).digest())
    return found.hexdigest()


def running_digest() -> str:
    """The digest of the sources that run in this process; `CHANGED` where that is not known."""
    try:
        before, digest, after = _known()
        unchanged = before is not None and before == after == _state()
    except OSError:  # a file that is there no longer
        return CHANGED
    return digest if unchanged else CHANGED


_State = frozenset[tuple[object, ...]]


@lru_cache(maxsize=1)
def _known() -> tuple[_State | None, str, _State | None]:
    """The digest, and the files as they were before and after it was computed."""
    return _state(), sources_digest(), _state()


def _state() -> _State | None:
    """What tells one state of all files from another; None if one is newer than what was loaded."""
    if FIRST_FILE is not None:
        now = os.stat(_ROOT / "__init__.py")
        if (now.st_dev, now.st_ino) != (FIRST_FILE.st_dev, FIRST_FILE.st_ino):
            return None  # the whole folder was put in the place of another
    stats = {path: os.stat(path) for path in _files()}
    if any(stat.st_ctime_ns > AT_NS for stat in stats.values()):
        return None
    return frozenset((path, s.st_dev, s.st_ino, s.st_ctime_ns) for path, s in stats.items())


def _files() -> Iterator[str]:
    """The Python files of the package, or the archive that it is loaded from."""
    if _ROOT.is_dir():
        return _walked(str(_ROOT))
    return iter([str(next(each for each in _ROOT.parents if each.is_file()))])


def _walked(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walked(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path


def _name(path: str) -> str:
    """The path within the package, equal on every system; empty for an archive."""
    root = f"{_ROOT}{os.sep}"
    return path.removeprefix(root).replace(os.sep, "/") if path.startswith(root) else ""
