"""Calls of the kernel that a confined process may not make, as a filter of seccomp: sockets, other
processes, memory that no limit counts, modes and owners of files.

The filter holds for this process and all that it starts. `setsid` does nothing and says that it
did: whatever is started stays in one group, which can be ended as a whole.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator

EPERM, ENOSYS = 1, 38

# Of each call its number on x86-64 and on AArch64; -1 where it does not exist.
REFUSED = {
    # the network, also by a ring of requests
    "socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425),
    # other processes: their memory, files, limits, place in a queue
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "setrlimit": (160, 164), "setpgid": (109, 154), "kcmp": (312, 272),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    # memory and messages that stay behind, or that no limit counts
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "userfaultfd": (323, 282),
    # what is about files and not Landlock's
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "lchown": (94, -1), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    # the system
    "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265),
}  # fmt: skip
SIGNALS = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
}  # fmt: skip
_CLONE, _CLONE3, _SETSID, _PRLIMIT = (56, 220), (435, 435), (112, 157), (302, 261)
_PRCTL = (157, 167)
# Flags of clone: namespaces, and a child of who waits for this process, which nobody would reap.
_APART = 0x7E020000 | 0x8000
_SET_DUMPABLE = 4  # of prctl: then the server could not see what files a process holds

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000  # the same calls under other numbers

# The instructions of a filter: load a word of the call, compare, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _MACHINE, _WORDS = 0, 4, 16  # where they stand

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2

Instruction = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("text", ctypes.c_char_p))


def known_machine() -> bool:
    """Whether the numbers of its calls are in the tables here."""
    return platform.machine() in MACHINES


def restrict(keep_signals: bool) -> None:
    """Installs the filter. With `keep_signals` the process signals itself alone, where Landlock
    does not see to it that signals stay inside."""
    which, machine = MACHINES[platform.machine()]
    found = instructions(which, machine, keep_signals)
    text = b"".join(struct.pack("HBBI", *each) for each in found)
    program = _Program(len(text) // 8, text)
    library = ctypes.CDLL(None, use_errno=True)
    no_new_rights(library)
    if library.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp refuses the filter")


def no_new_rights(library: ctypes.CDLL) -> None:
    """No program that is started has more rights than this process."""
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the process cannot give up new rights")


def instructions(which: int, machine: int, keep_signals: bool) -> Iterator[Instruction]:
    """The filter, for the numbers of one machine's column of the tables."""
    yield (_LOAD, 0, 0, _MACHINE)
    yield (_EQUAL, 1, 0, machine)
    yield (_RETURN, 0, 0, _KILL)
    yield (_LOAD, 0, 0, _NUMBER)
    if which == 0:
        yield (_AT_LEAST, 0, 1, _X32)
        yield (_RETURN, 0, 0, _KILL)
    refused = {each[which] for each in REFUSED.values()} - {-1}
    for number in sorted(refused):
        yield from _answer(number, _ERROR | EPERM)
    yield from _answer(_CLONE3[which], _ERROR | ENOSYS)  # its flags lie in memory: clone is taken
    yield from _answer(_SETSID[which], _ERROR)
    yield from _unless(_CLONE[which], 0, (_ANY_BIT, 0, 1, _APART))
    yield from _unless(_PRCTL[which], 0, (_EQUAL, 0, 1, _SET_DUMPABLE))
    for half in (0, 4):  # limits may be asked for, and not be set
        yield from _unless(_PRLIMIT[which], 16 + half, (_EQUAL, 1, 0, 0))
    if keep_signals:
        for each in SIGNALS.values():
            yield from _unless(each[which], 0, (_EQUAL, 1, 0, os.getpid()))
    yield (_RETURN, 0, 0, _ALLOW)


def _answer(number: int, answer: int) -> Iterator[Instruction]:
    yield (_EQUAL, 0, 1, number)
    yield (_RETURN, 0, 0, answer)


def _unless(number: int, place: int, test: Instruction) -> Iterator[Instruction]:
    """Refuses the call if a word of it, at a place behind the first, does not pass the test; a
    test jumps over the next instruction where it passes."""
    yield (_EQUAL, 0, 4, number)
    yield (_LOAD, 0, 0, _WORDS + place)
    yield test
    yield (_RETURN, 0, 0, _ERROR | EPERM)
    yield (_LOAD, 0, 0, _NUMBER)
