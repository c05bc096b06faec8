"""Launches of two addresses, in C: what the driver is given."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from warploom.native import c_compiler
from warploom.runtime import launcher
from warploom.runtime.driver import Function, LaunchConfig, Table

Enqueue = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(LaunchConfig),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)


class Driver:
    """What stands for a driver: it keeps what it was given, and answers `status`."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.status = 0
        self.library = SimpleNamespace(cuLaunchKernelEx=Enqueue(self._enqueue))

    def _enqueue(self, config: Any, function: int, table: Any, extra: int | None) -> int:
        c = config.contents
        if table:
            addresses = [ctypes.c_uint64.from_address(table[at]).value for at in (0, 2)]
            number = ctypes.c_int32.from_address(table[1]).value
        else:
            asked = (ctypes.c_void_p * 5).from_address(extra or 0)
            assert (asked[0], asked[2], asked[4]) == (1, 2, None)
            assert ctypes.c_size_t.from_address(asked[3] or 0).value == 24
            memory = asked[1] or 0  # the address after a number begins at a multiple of 8
            addresses = [ctypes.c_uint64.from_address(memory + at).value for at in (0, 16)]
            number = ctypes.c_int32.from_address(memory + 8).value
            extra = None
        sides = tuple(c.grid), tuple(c.block)
        self.given.append((sides, c.shared_bytes, c.stream, function, addresses, number, extra))
        return self.status


@pytest.mark.skipif(c_compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("beside", [[], [bytes(16)]])  # a table that is passed by value
def test_a_launch_has_its_addresses_stream_and_configuration(
    beside: list[bytes],
) -> None:
    driver = Driver()
    function = Function(driver, 0, None, 77)  # type: ignore[arg-type]
    table = Table([0, (-5).to_bytes(4, "little", signed=True), 0, *beside])
    made = launcher.quick(function, ((3, 2, 1), (64, 1, 1)), table, 0, 2, (16, -8))
    assert made is not None
    launch, held = made
    high = 0x7F00_0000_1000
    assert launch(high, 4096, 0) == 0
    driver.status = 201
    assert launch(high + 32, 4096, 99) == 201
    sides = ((3, 2, 1), (64, 1, 1))
    assert driver.given == [
        (sides, 0, None, 77, [high + 16, 4088], -5, None),
        (sides, 0, 99, 77, [high + 48, 4088], -5, None),
    ]
    assert launch(1, 2) == 1  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        launch("x", 2, 3)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        launch(-1, 2, 3)
    del held


def test_without_a_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_bound", lambda: None)
    function = Function(Driver(), 0, None)  # type: ignore[arg-type]
    assert launcher.quick(function, ((1, 1, 1), (1, 1, 1)), Table([0, 0]), 0, 1, (0, 0)) is None
