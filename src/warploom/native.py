"""C text to a library that is loaded into this process, with the C compiler of the machine."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from warploom.errors import AbsentError, DeviceError
from warploom.private import make_private, read_private, temporary_folder
from warploom.process import TIMEOUT_S, find_program, run_command

_DIGEST = hashlib.sha256().digest_size  # stands before a library that is kept
MOST_BYTES = 1 << 28  # of compiled code that is kept
COMPILERS = ("cc", "gcc", "clang")
_LIBRARY = ("-shared", "-fPIC")
_PROBE_S = 10.0  # for a text of one line
_PROBE = "#include <math.h>\nint probe(void) { return 0; }\n"


def c_compiler() -> str | None:
    return next((path for name in COMPILERS if (path := find_program(name))), None)


def require_c() -> str:
    """The C compiler."""
    compiler = c_compiler()
    if compiler is None:
        raise AbsentError("no C compiler was found", advice="install gcc or clang")
    return compiler


def compile_c(text: str, options: Sequence[str], seconds: float = TIMEOUT_S) -> bytes:
    """The text as a shared library, if the compiler has it ready within the seconds."""
    compiler = require_c()
    try:
        return _compiled(compiler, text, options, seconds)
    except DeviceError:
        _check_c(options, seconds)
        raise


def _check_c(options: Sequence[str], seconds: float = TIMEOUT_S) -> None:
    """Where nothing at all can be compiled, or loaded, nothing is said about a text: a compiler
    may lack its headers or its linker, and a folder for temporary files may allow no code."""
    compiler = require_c()
    try:
        _loaded(_compiled(compiler, _PROBE, options, min(seconds, _PROBE_S)))
    except DeviceError as error:
        raise AbsentError(
            f"the C compiler '{compiler}' compiles nothing here: {error.message}",
            advice="install gcc or clang with the headers and libraries of C",
        ) from None


def _compiled(compiler: str, text: str, options: Sequence[str], seconds: float) -> bytes:
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        source, target = Path(folder, "kernel.c"), Path(folder, "kernel.so")
        source.write_text(text)
        command = [compiler, *options, "-o", str(target), str(source), "-lm"]
        ran = run_command(command, "the C compiler could not be run", seconds)
        if ran.returncode:
            said = ran.stderr.replace(folder, "").strip()
            raise DeviceError(f"the C text does not compile:\n{said}")
        try:
            return target.read_bytes()
        except OSError:
            raise DeviceError(f"{compiler} says nothing and writes nothing") from None


def kept_library(
    text: str, options: Sequence[str], folder: Path | None, seconds: float = TIMEOUT_S
) -> bytes:
    """The text as a shared library, from a cache folder; a new one is put there if possible."""
    if folder is None:
        return compile_c(text, options, seconds)
    parts = (text, *options, _compiler_version(), platform.machine(), _processor())
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
    if not make_private(folder):
        folder = _instead_of(folder)
    place = folder / f"{name}.lib"
    found = _whole(read_private(folder, place.name))
    if found is not None:
        return found
    code = compile_c(text, options, seconds)
    load_library(code)  # what a broken compiler wrote is not kept
    with suppress(OSError):  # no place to keep it: it is compiled again the next time
        _keep(hashlib.sha256(code).digest() + code, place)
        if name.startswith("0"):  # to look at the folder each time would take longer
            _leave_newest(folder)
    return code


def _leave_newest(folder: Path) -> None:
    """Removes the oldest of the libraries beyond what the folder may hold."""
    kept = sorted(((each.stat(), each) for each in folder.glob("*.lib")), key=_age)
    left = sum(stat.st_size for stat, _ in kept) - MOST_BYTES
    for stat, each in kept:
        if left <= 0:
            break
        each.unlink(missing_ok=True)
        left -= stat.st_size


def _age(kept: tuple[os.stat_result, Path]) -> float:
    return kept[0].st_mtime


@lru_cache(maxsize=8)
def _instead_of(folder: Path) -> Path:
    """What lies in the cache is run in this process: nobody else may have put it there."""
    logging.getLogger("warploom").info(
        "'%s' cannot be made, or others can write to it: compiled code is kept for this run alone",
        folder,
    )
    return temporary_folder()


def _keep(data: bytes, place: Path) -> None:
    """Whole or not at all, whoever else writes it."""
    number, name = tempfile.mkstemp(dir=place.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.replace(name, place)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _whole(kept: bytes | None) -> bytes | None:
    """What was kept, if it is as it was: a library that was cut off would end this process."""
    if kept is None:
        return None
    digest, code = kept[:_DIGEST], kept[_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def load_library(code: bytes) -> ctypes.CDLL:
    try:
        return _loaded(code)
    except DeviceError:
        _check_c(_LIBRARY)
        raise


def _loaded(code: bytes) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        library = Path(folder, "kernel.so")
        library.write_bytes(code)
        try:
            return ctypes.CDLL(str(library))  # stays when the file is gone
        except OSError as error:
            raise DeviceError(f"the C code cannot be loaded: {error}") from None


@lru_cache(maxsize=1)
def _compiler_version() -> str:
    compiler = c_compiler()
    if compiler is None:
        return ""
    try:
        return run_command([compiler, "--version"], "no version", _PROBE_S).stdout
    except DeviceError:  # it is said when it should compile
        return ""


@lru_cache(maxsize=1)
def _processor() -> str:
    """What -march=native depends on; a home folder may be shared by several machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
