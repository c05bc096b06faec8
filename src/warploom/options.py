"""The one reader of the environment. Everything else takes options as arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warploom.private import make_private, temporary_folder

_CALLED = "WARPLOOM_PTXAS_CALLED"
# The CUDA driver's own, of which a machine with a GPU has one.
CUDA_LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings a user may give by environment variable; read once, by the command line."""

    color: bool = True
    real_ptxas: str | None = None  # WARPLOOM_PTXAS: the assembler that `warploom-ptxas` calls
    called_by: str | None = None  # WARPLOOM_PTXAS_CALLED: what another `warploom-ptxas` has called
    path: str = ""  # PATH: where programs are looked for
    data_folder: str | None = None  # where results are kept: of this user, as the system has it
    emulate: bool = False  # WARPLOOM_EMULATE: launches of a script run without a GPU
    store: str | None = None  # WARPLOOM_STORE: another file for them; empty: none are kept


def from_environment() -> Options:
    data = _data_folder()
    return Options(
        color="NO_COLOR" not in os.environ,
        real_ptxas=os.environ.get("WARPLOOM_PTXAS") or None,
        called_by=os.environ.get(_CALLED) or None,
        path=os.environ.get("PATH", ""),
        emulate=emulates_scripts(),
        data_folder=None if data is None else os.path.join(data, "warploom"),
        store=os.environ.get("WARPLOOM_STORE"),
    )


def emulates_scripts() -> bool:
    """Whether WARPLOOM_EMULATE is there, and neither empty nor 0."""
    return os.environ.get("WARPLOOM_EMULATE", "") not in ("", "0")


def for_ptxas(real: str) -> dict[str, str]:
    """The environment in which `warploom-ptxas` calls an assembler, which may be such a script."""
    return {**os.environ, _CALLED: real}


def _home() -> str | None:
    """None where there is neither HOME nor an entry for this user, as in many containers."""
    home = os.path.expanduser("~")
    return home if os.path.isabs(home) else None


def _data_folder() -> str | None:
    """Where programs keep what is theirs."""
    home = _home()
    if sys.platform == "win32":
        given = os.environ.get("LOCALAPPDATA") or ""
        return given or (home and os.path.join(home, "AppData", "Local"))
    if sys.platform == "darwin":
        return home and os.path.join(home, "Library", "Application Support")
    given = os.environ.get("XDG_DATA_HOME", "")
    # The specification has relative ones ignored.
    return given if os.path.isabs(given) else home and os.path.join(home, ".local", "share")


def cache_folder() -> Path | None:
    """Where compiled code may be kept between runs; nowhere if WARPLOOM_CACHE is empty. What lies
    there is run, so a folder that depends on where one stands is not taken; without any it is one
    of this process."""
    given = os.environ.get("WARPLOOM_CACHE")
    if given == "":
        return None
    if given is not None and os.path.isabs(given):
        return Path(given)
    base = _cache_home()
    return temporary_folder() if base is None else Path(base, "warploom")


def _cache_home() -> str | None:
    """Where programs keep what they can make again."""
    base, home = os.environ.get("XDG_CACHE_HOME", ""), _home()
    return base if os.path.isabs(base) else home and os.path.join(home, ".cache")


def keep_caches_private() -> None:
    """PoCL and pyopencl run what they find in the user's cache folder, whoever put it there. If
    that is not this user's alone, they are given one of this process."""
    base = _cache_home()
    private = base is not None and make_private(Path(base))
    os.environ["XDG_CACHE_HOME"] = base if base and private else str(temporary_folder())


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While NumPy is imported. Its OpenBLAS starts a thread for each core, which takes a tenth of
    the time of a small search, and nothing of ours asks BLAS for anything. What users say counts,
    and processes that are started later know nothing of it."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


_FOR_CALLS = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")


def for_calls(folder: Path) -> dict[str, str]:
    """The environment of a call that somebody else asks for: where compilers are, and nothing that
    is this user's. It keeps nothing, and its temporary files lie in a folder of its own."""
    kept = {name: os.environ[name] for name in _FOR_CALLS if name in os.environ}
    own = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(folder))
    told = {"WARPLOOM_STORE": "", "WARPLOOM_CACHE": "", "NO_COLOR": "1"}
    return {**kept, **own, **told, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
