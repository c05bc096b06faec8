"""Runs an entry of the catalogue wherever this machine can, and compares with the specification."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.tools import require

from warploom import runtime
from warploom.catalogue import Entry
from warploom.emit.cuda import cuda
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.machine.report import Report

DEVICES = ("simulator", "c", "opencl", "ptx")


def check_agreement(
    entry: Entry, variant: dict[str, Any], device: Any, sizes: Iterable[dict[str, int]]
) -> None:
    """The kernel on the device computes what the specification says, on every size."""
    require(device)
    kernel = entry.kernel(**variant)
    function = runtime.load(kernel, device)
    for number, size in enumerate(sizes):
        case = entry.case(kernel, size, seed=number, **variant)
        arguments = case.fresh()
        function(*arguments)
        assert entry.agrees(kernel, case, arguments), f"{entry.name} {variant} {device} {size}"


def check_registers(kernel: Kernel) -> None:
    """No local memory and no spills."""
    require("ptx")
    found = runtime.usage(cuda(kernel))[kernel.name]
    assert found.stays_in_registers, found


def counted(entry: Entry, size: dict[str, int], **variant: Any) -> tuple[Report, Kernel]:
    """What the simulator counts for one launch."""
    kernel = entry.kernel(**variant)
    return run(kernel, entry.case(kernel, size, **variant).fresh()), kernel


def labels(variants: Iterable[dict[str, Any]]) -> list[str]:
    return ["-".join(f"{k}={v}" for k, v in each.items()) or "default" for each in variants]
