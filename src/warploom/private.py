"""Folders that this user alone can write to: what lies there may be loaded and run.

Comes in: a path. Goes out: an open folder, if nobody else can change what it is or holds. Files are
looked at after they were opened, so that none is checked and another read.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_HAS_OWNERS = hasattr(os, "getuid")  # Windows has folders of a user by other means
_MOST_BYTES = 1 << 30


@lru_cache(maxsize=1)
def temporary_folder() -> Path:
    """A folder of this process, which goes with it."""
    from tempfile import mkdtemp  # here, not at the top: it brings much along

    made, owner = mkdtemp(prefix="warploom-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # and not a child that was forked
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return Path(made)


def make_private(folder: Path) -> bool:
    """Whether the folder is this user's alone; it is made if it is not there."""
    if not folder.is_absolute():
        return False
    try:
        _made(folder)
        number = _opened(folder)
    except OSError:
        return False
    if number is not None:
        os.close(number)
    return number is not None


def read_private(folder: Path, name: str) -> bytes | None:
    """A file of a private folder, if it is a plain one of this user that others cannot write."""
    try:
        place = _opened(folder)
        if place is None:
            return None
        try:
            number = os.open(name, os.O_RDONLY | _flag("O_NOFOLLOW", "O_NONBLOCK"), dir_fd=place)
        finally:
            os.close(place)
        with os.fdopen(number, "rb") as file:
            found = os.fstat(number)
            plain = stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES
            return file.read() if plain and _is_ours(found) else None
    except OSError:
        return None


def _made(folder: Path) -> None:
    """With the parents that are missing, for this user alone."""
    if not folder.is_dir():
        _made(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _opened(folder: Path) -> int | None:
    """The folder, open, if it is this user's, and nobody can put another in its place."""
    if not folder.is_absolute():
        return None
    real = Path(os.path.realpath(folder))
    if not all(_is_safe(os.stat(each)) for each in real.parents):
        return None
    number = os.open(real, os.O_RDONLY | _flag("O_DIRECTORY", "O_NOFOLLOW"))
    if _is_ours(os.fstat(number)):
        return number
    os.close(number)
    return None


def _is_ours(found: os.stat_result) -> bool:
    return not _HAS_OWNERS or (found.st_uid == os.getuid() and not _others_write(found))


def _is_safe(found: os.stat_result) -> bool:
    """A folder above ours: who else can write there cannot rename what is ours."""
    sticky = bool(found.st_mode & stat.S_ISVTX)
    known = not _HAS_OWNERS or found.st_uid in (0, os.getuid())
    return known and (sticky or not _HAS_OWNERS or not _others_write(found))


def _others_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_own_group(found.st_gid)


@lru_cache(maxsize=16)
def _is_own_group(group: int) -> bool:
    """Many systems give each user a group of the same name, in which nobody else is."""
    import grp
    import pwd

    try:
        found, user = grp.getgrgid(group), pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return (found.gr_gid, found.gr_name) == (user.pw_gid, user.pw_name) and set(found.gr_mem) <= {
        user.pw_name
    }


def _flag(*names: str) -> int:
    """Flags of `os.open` that this system has."""
    return sum(getattr(os, name, 0) for name in names)
