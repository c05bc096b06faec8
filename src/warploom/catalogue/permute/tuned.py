"""`warploom.permute(…, tune=True)`: the launches that are expected to be fast, measured on the GPU.

The tensor itself is what is moved. Each launch is compared with the plain kernel before it is
timed, and what was measured is kept in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from warploom.catalogue.permute.launch import Candidate, Part, Place, kernel_of
from warploom.catalogue.permute.launched import Launch, launches
from warploom.catalogue.permute.problem import Movement
from warploom.catalogue.permute.rule import candidates, parts, places
from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.errors import DeviceError
from warploom.runtime import driver, rig
from warploom.runtime.library import blank, library
from warploom.runtime.view import View, library_of
from warploom.search.budget import Budget
from warploom.search.outcome import Found
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Task, tune

MOST = 16  # launches that are tried for a movement
ALIGNED = 128  # bytes; kernels are made for where y begins after a multiple


@dataclass(frozen=True, slots=True)
class Tried:
    """A launch, and its kernel's machine code."""

    part: Part
    built: rig.Built


def tuned_parts(
    moved: Movement, late: tuple[int, int], bench: rig.Bench[Tried], seconds: float,
    store: Store | None,
) -> list[Part]:  # fmt: skip
    """The fastest launches of a movement whose arrays begin `late` bytes after a multiple of 128;
    those of the rule where several launches follow each other, or time was too short for any."""
    several = places(moved, *late)
    if len(several) != 1:
        return parts(moved, *late)
    (place,) = several
    task: Task[Part, Tried] = Task(
        "permute", _content(place), bench.device, list(shortlist(place)), _said,
        partial(prepared, bench.arch), bench.measure,
    )  # fmt: skip
    found = tune(task, Budget(seconds), store=store)
    return [found.answer.best.candidate] if isinstance(found, Found) else parts(moved, *late)


def shortlist(place: Place) -> Iterator[Part]:
    """What the rule takes, the best of each other kind of kernel, then the cheapest ones."""
    found = candidates(place.moved, place.x_late, place.y_late)
    firsts: dict[str, Candidate] = {}
    for each in found:
        if each.work is not None:
            firsts.setdefault(each.work.kernel, each)
    kinds = list(firsts.values()) or found[:1]
    others = [each for each in found if each.work is not None and each not in kinds]
    for each in (*kinds, *others[: MOST - len(kinds)]):
        yield each.part()


def _said(part: Part) -> str:
    return f"{part.spec.name} in {part.blocks} blocks"


def _content(place: Place) -> dict[str, Any]:
    moved = place.moved
    axes = [[axis.size, axis.read, axis.write, axis.factor] for axis in moved.axes]
    how = "" if moved.to is None else moved.to.to.name
    return {"bytes": moved.bytes, "axes": axes, "late": [place.x_late, place.y_late], "to": how}


def prepared(arch: str, part: Part) -> Tried:
    """Run in processes of their own: kernel and machine code."""
    kernel = kernel_of(part.spec)
    return Tried(part, rig.built(kernel, cuda(kernel), arch))


class PermuteRig(rig.GpuRig[Tried]):
    """A GPU, and the tensor that is moved."""

    def __init__(self, x: View, moved: Movement, late: tuple[int, int]) -> None:
        super().__init__(x.device)
        self.x, self.moved, self.late = x, moved, late
        self.stream = library(x.owner).stream(x.device)
        self.bytes = moved.write_span[1] * moved.written_bytes
        self._wanted: Any = None

    def _room(self) -> tuple[Any, int]:
        """Bytes for a result, all 0, and the address of the first: as late as in the call."""
        count = -(-(self.bytes + 2 * ALIGNED) // self.x.dtype.bytes)
        byte = np.uint8 if library_of(self.x.owner) == "cupy" else import_module("torch").uint8
        room = blank(self.x.owner, (count,)).view(byte)
        room[...] = 0
        address = library(self.x.owner).pointer(room)
        first = -address % ALIGNED + self.late[1]
        return room[first : first + self.bytes], address + first

    def launches(self, prepared: Tried) -> Sequence[driver.Launch]:
        kernel = prepared.built.kernel
        name = function_name(kernel, "cuda")
        function = driver.open_driver().load(prepared.built.code, name, self.gpu)
        launch = Launch(prepared.part, kernel, function)
        found, to = self._room()

        def run() -> None:
            launch(self.x.pointer, to, self.stream())

        run()
        if not bool((found == self._right()).all()):
            raise DeviceError(f"'{kernel.name}' computes a wrong result on this GPU")
        return [run]

    def _right(self) -> Any:
        """The result of the plain kernel."""
        if self._wanted is None:
            self._wanted, to = self._room()
            plain = parts(self.moved, *self.late, plain=True)
            launches(plain, self.gpu)(self.x.pointer, to, self.stream())
        return self._wanted
