"""The pytest plugin: a user's kernels and index arithmetic, checked in the user's own tests.

    def test_my_tile(check_tile):
        check_tile(my_tile)          # a warploom.layout.own.SharedTile

    def test_softmax(gpu):           # there is none: the kernel is emulated, with all checks
        gpu.launch(softmax, (rows,), x, out, columns, BLOCK=128)

Installed with the package; where it is not, `-p warploom.pytest_plugin` loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from warploom.errors import WarploomError
from warploom.layout.own import Examined, SharedTile, examine
from warploom.machine.report import Report
from warploom.ptx.emulate.asked import Volatile
from warploom.without_gpu.front import DEFAULT_ARCH, SECONDS, emulate


@pytest.fixture
def check_tile() -> Callable[[SharedTile], Examined]:
    """Fails where a tile's index arithmetic is wrong, and says for which lanes."""

    def check(tile: SharedTile) -> Examined:
        found = examine(tile)
        if not found.right:
            pytest.fail("\n".join(found.wrong), pytrace=False)
        return found

    return check


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
                volatile=self.volatile,
            )  # fmt: skip
            report = emulated[launch](*args, **named)
            self.reports.append(report)
            return report
        except WarploomError as error:  # what the kernel does wrong, and what cannot be launched
            found = error
        # Outside of the handler: pytest would show the error twice.
        printed = "".join(getattr(found, "output", ()))
        pytest.fail(f"{printed}{found}", pytrace=False)


@pytest.fixture
def gpu() -> Gpu:
    """Launches kernels without a GPU; whatever they do wrong fails the test."""
    return Gpu()
