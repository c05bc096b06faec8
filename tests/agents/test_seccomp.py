"""The filter of system calls, for both machines: run here by a small interpreter of its language.

There is no AArch64 machine in the tests. So what its filter answers is evaluated, and the numbers
of its calls are compared with the kernel's own headers, where they are installed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from warploom.agents import seccomp
from warploom.agents.seccomp import MACHINES, REFUSED, SIGNALS, instructions

MASK = (1 << 32) - 1
ALLOWED, ENDED = 0x7FFF0000, 0x80000000
PERMISSION, NO_CALL, PRETENDED = 0x00050001, 0x00050026, 0x00050000
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),  # AArch64 has no numbers of its own
}
# A few calls that Python and compilers cannot do without.
NEEDED = {
    "x86_64": {"read": 0, "write": 1, "mmap": 9, "execve": 59, "openat": 257, "exit_group": 231},
    "aarch64": {"read": 63, "write": 64, "mmap": 222, "execve": 221, "openat": 56,
                "exit_group": 94},
}  # fmt: skip


def answered(machine: str, call: int, *words: int, arch: int | None = None,
             signals: bool = False) -> int:  # fmt: skip
    """What the filter says of a call, with these words of 64 bits."""
    which, own = MACHINES[machine]
    given = [each & ((1 << 64) - 1) for each in (*words, *[0] * 6)][:6]
    halves = [half for each in given for half in (each & MASK, each >> 32)]
    data = [call, own if arch is None else arch, 0, 0, *halves]
    program = list(instructions(which, own, signals))
    at, held = 0, 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        match code:
            case 0x20:  # load a word of the call
                assert value % 4 == 0
                held = data[value // 4]
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x45:
                at += yes if held & value else no
            case 0x06:
                return value
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


@pytest.mark.parametrize("machine", list(MACHINES))
def test_what_is_refused(machine: str) -> None:
    which = MACHINES[machine][0]
    for name, numbers in REFUSED.items():
        if numbers[which] >= 0:
            assert answered(machine, numbers[which]) == PERMISSION, name
    for name, number in NEEDED[machine].items():
        assert answered(machine, number) == ALLOWED, name
    every = {each[which] for each in (*REFUSED.values(), *SIGNALS.values())} - {-1}
    special = {each[which] for each in (
        seccomp._CLONE, seccomp._CLONE3, seccomp._SETSID, seccomp._PRLIMIT, seccomp._PRCTL
    )}  # fmt: skip
    for number in set(range(1000)) - every - special:
        assert answered(machine, number, MASK, MASK, MASK) == ALLOWED


@pytest.mark.parametrize("machine", list(MACHINES))
def test_what_is_refused_by_its_words(machine: str) -> None:
    which = MACHINES[machine][0]
    clone, prlimit, prctl = (
        each[which] for each in (seccomp._CLONE, seccomp._PRLIMIT, seccomp._PRCTL)
    )
    fork, thread = 0x01200011, 0x003D0F00  # as the C library asks for them
    assert answered(machine, clone, fork) == answered(machine, clone, thread) == ALLOWED
    for flag in (0x20000, *(1 << bit for bit in range(25, 31)), 0x8000):
        assert answered(machine, clone, fork | flag) == PERMISSION, hex(flag)
    assert answered(machine, seccomp._CLONE3[which], 0) == NO_CALL
    assert answered(machine, seccomp._SETSID[which]) == PRETENDED
    assert answered(machine, prlimit, 0, 7, 0, 1 << 40) == ALLOWED  # asks
    for new in (1, 1 << 32, (1 << 63) | 1):  # an address, of which either half counts
        assert answered(machine, prlimit, 0, 7, new) == PERMISSION
    assert answered(machine, prctl, 1, 9) == ALLOWED
    assert answered(machine, prctl, 4, 0) == PERMISSION


@pytest.mark.parametrize("machine", list(MACHINES))
def test_signals_where_landlock_does_not_keep_them(machine: str) -> None:
    which = MACHINES[machine][0]
    for number in (each[which] for each in SIGNALS.values()):
        assert answered(machine, number, os.getpid(), 9, signals=True) == ALLOWED
        assert answered(machine, number, os.getpid() + 1, 9, signals=True) == PERMISSION
        assert answered(machine, number, -1, 9, signals=True) == PERMISSION
        assert answered(machine, number, 1, 9) == ALLOWED  # Landlock's to refuse


def test_calls_of_another_machine_end_the_process() -> None:
    """Their numbers mean other calls: those of 32 bits, and x32 beside x86-64."""
    for machine, (_, own) in MACHINES.items():
        for other in (0x40000003, 0x40000028, *(a for _, a in MACHINES.values() if a != own)):
            assert answered(machine, 0, arch=other) == ENDED
    assert answered("x86_64", 0x40000000 | 41) == ENDED


@pytest.mark.parametrize("machine", list(MACHINES))
def test_numbers_are_those_of_the_headers(machine: str) -> None:
    header = HEADERS[machine]
    if not header.is_file():
        pytest.skip("the headers of Linux are not installed")
    found = {
        name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    }
    which = MACHINES[machine][0]
    own = {
        "clone": seccomp._CLONE, "clone3": seccomp._CLONE3, "setsid": seccomp._SETSID,
        "prlimit64": seccomp._PRLIMIT, "prctl": seccomp._PRCTL,
    }  # fmt: skip
    newest = max(found.values())
    compared = 0
    for name, numbers in {**REFUSED, **SIGNALS, **own}.items():
        if numbers[which] <= newest:  # a newer call than the headers have is not in them
            assert found.get(name, -1) == numbers[which], name
            compared += 1
    assert compared > 50
