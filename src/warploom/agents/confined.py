"""A command of ours in a process that can do little else: it reads some folders, writes to one, and
has so much memory. What `call.py` starts begins here, before anything large is imported.

Limits of the process hold everywhere. Landlock and seccomp are Linux's; where either is missing,
`can_confine` says so, and who calls decides what is not run at all.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from warploom.agents import landlock, seccomp
from warploom.process import find_program, python_command

_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
# What a process may ask of itself; not of the network, which is there, too.
_OF_ITSELF = tuple(f"/proc/self/{name}" for name in ("fd", "maps", "stat", "statm", "status"))
# What programs, compilers and libraries need of a system; no home folders, and no /etc as a whole.
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/nix/store", "/etc/alternatives",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    "/proc/cpuinfo", "/proc/meminfo", *_OF_ITSELF, "/sys/devices/system/cpu",
    "/sys/devices/system/node",
)  # fmt: skip
_PROBE = "from warploom.agents.confined import probe\nprobe()"
_BEGIN = "from warploom.agents.confined import main\nmain()"
_PROBE_S = 30.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Confinement:
    """`folder` is read, `scratch` written; `is_kernels` says that Landlock and seccomp see to it.
    Bytes are limits of one process, of its memory and of a file that it writes. `line` is the end
    of a pipe whose other end the server has; below 0 there is none."""

    folder: str
    scratch: str
    memory_bytes: int
    file_bytes: int
    processor_seconds: int
    is_kernels: bool
    line: int = -1


def command(words: list[str], confinement: Confinement) -> list[str]:
    """The command line of a confined call of ours."""
    return python_command(_BEGIN, json.dumps([asdict(confinement), words]))


def main() -> None:
    """In the new process: confines itself, and is the command."""
    given, words = json.loads(sys.argv[1])
    how = Confinement(**given)
    if how.line >= 0:
        _guarded(how.line)
    confine(how)
    sys.argv = ["warploom", *words]
    runpy.run_module("warploom", run_name="__main__", alter_sys=False)


def confine(how: Confinement) -> None:
    """From now on this process, and what it starts, is confined; there is no way back."""
    _limit(how)
    _end_with_parent()
    if how.is_kernels:
        library = ctypes.CDLL(None, use_errno=True)
        reads = [Path(each) for each in (how.folder, *_SYSTEM, *_of_python(), *_of_compilers())]
        seccomp.no_new_rights(library)
        _drop_capabilities(library)
        landlock.restrict(reads, [Path(how.scratch)], [Path(each) for each in _DEVICES])
        seccomp.restrict(keep_signals=landlock.version() < landlock.SIGNALS)


@lru_cache(maxsize=1)
def can_confine() -> bool:
    """Whether Landlock and seccomp are here and do what they are asked, tried in a process."""
    if landlock.version() < landlock.LEAST or not seccomp.known_machine():
        return False
    try:
        ran = subprocess.run(python_command(_PROBE), capture_output=True, timeout=_PROBE_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0 and ran.stdout.split() == [b"confined"]


def probe() -> None:
    """In a process of its own: says `confined` if neither a file nor a socket can be had."""
    from tempfile import TemporaryDirectory

    home = str(Path(__file__).resolve().parent)
    with TemporaryDirectory(prefix="warploom-") as outside:
        Path(outside, "file").write_text("outside")
        inner = os.fork()
        if inner == 0:
            confine(Confinement(home, home, 1 << 40, 1 << 40, 1 << 20, True))
            os._exit(0 if _is_shut(Path(outside, "file")) else 1)
        _, status = os.waitpid(inner, 0)
    sys.stdout.write("confined" if os.waitstatus_to_exitcode(status) == 0 else "open")


def _is_shut(file: Path) -> bool:
    import socket  # here: nothing else of ours needs it

    try:
        file.read_bytes()
    except PermissionError:
        try:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        except PermissionError:
            return True
    return False


def _guarded(line: int) -> None:
    """Goes on in a child. This process stays outside of what confines it, and ends the whole group
    if the server is gone: what it started could do without the signal that its parent's end is."""
    child = os.fork()
    if child == 0:
        os.close(line)
        return
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_likewise(status)
        if select.select([line], [], [], _LOOK_S)[0]:
            os.killpg(0, signal.SIGKILL)


def _end_likewise(status: int) -> None:
    """As the child ended: by a status, or by a signal."""
    if os.WIFSIGNALED(status):
        with suppress(OSError, ValueError):  # of SIGKILL nothing can be said
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


# -- what it is made of ----------------------------------------------------------------------------


def _limit(how: Confinement) -> None:
    """Limits that every Unix has; a lower one that is there already stays."""
    try:
        import resource
    except ImportError:  # Windows, where `call.py` watches memory and time alone
        return
    for kind, most in (
        (resource.RLIMIT_AS, how.memory_bytes),
        (resource.RLIMIT_FSIZE, how.file_bytes),
        (resource.RLIMIT_CPU, how.processor_seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))


def _end_with_parent() -> None:
    """Whatever ends the server ends this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL


def _drop_capabilities(library: ctypes.CDLL) -> None:
    """What root may do beyond other users, such as to raise its limits."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if library.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


def _of_python() -> list[str]:
    """Where this Python and its packages lie; not the folder that one stands in."""
    homes = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(__file__).resolve().parents[2])]
    paths = [each for each in sys.path if os.path.isabs(each) and not _is_too_much(each)]
    return [each for each in (*homes, *paths) if not _is_too_much(each)]


def _is_too_much(path: str) -> bool:
    real = Path(path).resolve()
    return real in (Path("/"), Path.home(), *Path.home().parents)


def _of_compilers() -> list[str]:
    """Where a compiler on PATH really lies: nvcc in a folder with its headers and libraries."""
    found = [find_program(name) for name in ("nvcc", "cc", "gcc", "clang")]
    real = [Path(each).resolve() for each in found if each is not None]
    return [str(each.parent.parent) for each in real if not _is_too_much(str(each.parent.parent))]
