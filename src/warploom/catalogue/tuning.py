"""Settings measured instead of chosen by rule: a kernel's tune space, on a GPU, by the one tuner.

Every candidate computes what is specified before it is timed. What was measured is kept in a store,
if there is one.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol, TypeAlias, Unpack

from warploom.catalogue import find
from warploom.catalogue.entry import Entry, Parameter, Parameters, Size
from warploom.catalogue.timing import GpuBench
from warploom.emit.cuda import cuda
from warploom.errors import CheckError, DeviceError
from warploom.machine.record import Machine
from warploom.runtime import rig
from warploom.runtime.rig import Built
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Task, Tuned, TuneOptions, tune
from warploom.search.workers.far import Measuring

Settings: TypeAlias = dict[str, Parameter]


def candidates(entry: Entry, given: Parameters, size: Size, machine: Machine) -> list[Settings]:
    """What the rule chooses, then the tune space; what is given stays as it is."""
    own = {entry.own_name(name): value for name, value in given.items()}
    untuned = entry.settings(own, size, machine)
    found = [untuned]
    for each in entry.tune(untuned):
        try:
            decided = entry.settings({**each, **own}, size, machine)
        except CheckError:  # it does not go with what is given
            continue
        if decided not in found:
            found.append(decided)
    return found


def show_settings(settings: Parameters) -> str:
    """`block=256 tiles=2`: in order of names, so that one setting has one text."""
    return " ".join(f"{name}={settings[name]}" for name in sorted(settings))


class Bench(rig.Bench[Built], Protocol):
    """Where settings of an entry are measured, for one size."""

    size: Size
    machine: Machine


class FarBench(rig.FarRig):
    """The GPU of a worker."""

    def __init__(self, entry: Entry, given: Parameters, size: Size, crew: Measuring) -> None:
        super().__init__(crew, named_bench, entry.name, dict(given), dict(size))
        self.size = size
        (self.machine,) = self.told("machine")


def named_bench(name: str, given: Settings, size: dict[str, int]) -> GpuBench:
    return GpuBench(find(name), given, size)


def tune_entry(
    entry: Entry, given: Parameters, bench: Bench, **how: Unpack[TuneOptions]
) -> Outcome[Tuned[Settings]]:
    """The fastest settings of a kernel of the catalogue for the size of a bench."""
    task: Task[Settings, Built] = Task(
        entry.name,
        {"settings": dict(given), "size": dict(bench.size)},
        bench.device,
        candidates(entry, given, bench.size, bench.machine),
        show_settings,
        partial(build_for, entry.name, bench.arch),
        bench.measure,
    )
    return tune(task, **how)


def build_for(name: str, arch: str, settings: Settings) -> Built:
    """Run in processes of their own: kernel and machine code."""
    kernel = find(name).kernel(**settings)
    return rig.built(kernel, cuda(kernel), arch)


class Tuner:
    """Settings for the sizes that turn up, each tuned when it comes first."""

    def __init__(self, seconds: float, store: Store | None) -> None:
        self.seconds, self.store = seconds, store
        self._known: dict[object, Settings] = {}

    def settings(self, entry: Entry, given: Parameters, size: Size, gpu: int) -> Settings:
        """The best that was found in time; the rule's if nothing was."""
        if gpu < 0:
            raise DeviceError(
                f"'{entry.name}' is tuned on a GPU, but these arrays are in host memory",
                advice="move them to a GPU, or load it without tune",
            )
        key = tuple(sorted(size.items())), show_settings(given), gpu
        if key not in self._known:
            bench = GpuBench(entry, given, size, gpu)
            found = tune_entry(entry, given, bench, budget=Budget(self.seconds), store=self.store)
            if isinstance(found, Impossible):
                raise DeviceError(f"'{entry.name}' cannot be tuned here: {found.why}")
            rule = entry.settings(given, size, bench.machine)
            self._known[key] = found.answer.best.candidate if isinstance(found, Found) else rule
        return self._known[key]
