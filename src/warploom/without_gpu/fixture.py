"""The fixture `gpu` of the pytest plugin: what a kernel does wrong fails the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from warploom.errors import WarploomError
from warploom.machine.report import Report
from warploom.ptx.emulate.asked import Model, Volatile
from warploom.without_gpu.front import DEFAULT_ARCH, SECONDS, emulate


@dataclass(slots=True)
class Gpu:
    """What kernels are launched on; the fields are what `warploom.emulate` takes."""

    arch: str = DEFAULT_ARCH
    races: bool = True
    benign: bool = True
    counters: bool = True
    seconds: float = SECONDS
    heap_bytes: int | None = None
    volatile: Volatile = "relaxed"
    model: Model = "practice"
    reports: list[Report] = field(default_factory=list)  # of all launches of the test

    def launch(
        self, kernel: Any, launch: Any, *args: Any, name: str | None = None, **named: Any
    ) -> Report:
        """`launch` is what stands in the brackets: a grid, or a grid and a block.

        `name` is that of a kernel in CUDA text that has several.
        """
        found: WarploomError
        try:
            emulated = emulate(
                kernel, name, arch=self.arch, races=self.races, benign=self.benign,
                counters=self.counters, seconds=self.seconds, heap_bytes=self.heap_bytes,
                volatile=self.volatile, model=self.model,
            )  # fmt: skip
            report = emulated[launch](*args, **named)
            self.reports.append(report)
            return report
        except WarploomError as error:  # what the kernel does wrong, and what cannot be launched
            found = error
        # Outside of the handler: pytest would show the error twice.
        printed = "".join(getattr(found, "output", ()))
        pytest.fail(f"{printed}{found}", pytrace=False)
