"""Which files a process may read and write, and that it reaches no network: told to Linux by
Landlock, for this process and all that it starts.

Comes in: paths. Goes out: nothing; from then on all else is refused by the kernel. Modes, owners
and times of files are not Landlock's, so `seccomp.py` refuses to change them.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

LEAST = 3  # the first version (Linux 6.2) in which files are not cut short behind its back
SIGNALS = 6  # the first version (Linux 6.12) that keeps signals in

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on all machines
_VERSION, _BENEATH = 1, 1

_EXECUTE, _WRITE, _READ, _LIST = 1, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FOLDER, _REMOVE, _MAKE_FOLDER, _MAKE = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE = 1 << 14
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE
_LOOK = _EXECUTE | _READ | _LIST
# No links, pipes or devices: what lies in the folder afterwards is plain files and folders.
_KEEP = _READ | _LIST | _WRITE | _TRUNCATE | _REMOVE_FOLDER | _REMOVE | _MAKE_FOLDER | _MAKE
_USE = _READ | _WRITE


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """The version of Landlock in this kernel; 0 where there is none."""
    try:
        return max(0, _syscall(_CREATE, None, 0, _VERSION))
    except (OSError, AttributeError):
        return 0


def restrict(reads: Iterable[Path], writes: Iterable[Path], devices: Iterable[Path]) -> None:
    """From now on, only these can be read, written (and read), and used without being changed."""
    have = version()
    if have < LEAST:
        raise OSError(f"Landlock is version {have}, {LEAST} is needed (Linux 6.2)")
    handled = (1 << (16 if have >= 5 else 15)) - 1  # version 5 has commands of devices
    rules = _Ruleset(handled, 3 if have >= 4 else 0, 3 if have >= SIGNALS else 0)
    size = 8 if have < 4 else 16 if have < SIGNALS else 24
    number = _syscall(_CREATE, ctypes.byref(rules), size, 0)
    try:
        for paths, allowed in ((reads, _LOOK), (writes, _KEEP), (devices, _USE)):
            for path in paths:
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    _allow(number, path, allowed)
        _syscall(_RESTRICT, number, 0)
    finally:
        os.close(number)


def _allow(ruleset: int, path: Path, allowed: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        rule = _Beneath(allowed if is_folder else allowed & _OF_FILES, opened)
        _syscall(_ADD, ruleset, _BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)


def _syscall(number: int, *words: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    call = library.syscall
    call.restype = ctypes.c_long
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in words]
    found = int(call(ctypes.c_long(number), *passed))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found
