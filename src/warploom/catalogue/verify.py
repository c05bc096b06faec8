"""Does a kernel of the catalogue do what its specification says? On any device, and its mutants.

`verify` runs an entry on its sizes and says where it disagrees; `mutation` asks whether that would
notice a wrong kernel.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from warploom.catalogue.entry import Case, Entry, Parameter, Size
from warploom.errors import DeviceError, WarploomError
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.runtime.callable import Device, load
from warploom.trust.mutation import Examination, Share, Trial, examine

PROBES = 24


@dataclass(frozen=True, slots=True)
class Checked:
    """One size on one device; `wrong` says what is wrong, if anything is."""

    device: str
    size: Size
    wrong: str = ""


def verify(
    entry: Entry,
    settings: dict[str, Parameter],
    device: Device = "simulator",
    sizes: Sequence[Size] | None = None,
    kernel: Kernel | None = None,
    calls: bool = False,
) -> list[Checked]:
    """The entry against its specification, on each size; with `calls` its function is a header."""
    kernel = kernel or entry.kernel(**settings)
    function = load(kernel, device, calls=calls)
    found = []
    for seed, size in enumerate(sizes or entry.sizes(**entry.settings(settings))):
        case = entry.case(kernel, size, seed, **settings)
        wrong = _wrong(entry, kernel, case, lambda given: function(*given), DeviceError)
        found.append(Checked(device, size, wrong))
    return found


def mutation(
    entry: Entry,
    settings: dict[str, Parameter],
    *,
    most: int | None = None,
    seed: int = 0,
    share: Share = (0, 1),
) -> Examination:
    """Whether the simulator on the entry's sizes catches every mutant that computes otherwise."""
    kernel = entry.kernel(**settings)
    sizes = entry.sizes(**entry.settings(settings))
    trials = [_trial(entry, entry.case(kernel, size, 1, **settings)) for size in _mixed(sizes)]
    probes = []
    for number, size in enumerate(probe_sizes(sizes, seed)):
        try:
            probe = _trial(entry, entry.case(kernel, size, 100 + number, **settings))
            if not probe(kernel):
                probes.append(probe)
        except WarploomError:  # a size that the kernel does not take
            continue
    return examine(kernel, trials, probes, most=most, seed=seed, share=share)


def _trial(entry: Entry, case: Case) -> Trial:
    return lambda kernel: _wrong(entry, kernel, case, partial(run, kernel), WarploomError)


def _wrong(
    entry: Entry,
    kernel: Kernel,
    case: Case,
    call: Callable[[list[Any]], object],
    refusal: type[WarploomError],
) -> str:
    """What is wrong with a kernel on a case: a refusal, or its result; empty if nothing is."""
    arguments = case.fresh()
    try:
        call(arguments)
    except refusal as error:
        return error.message
    return "" if entry.agrees(kernel, case, arguments) else "a wrong result"


def _mixed(sizes: Sequence[Size]) -> list[Size]:
    """Middle sizes first: they notice most, and the large ones take longest."""
    middle = len(sizes) // 2
    return sorted(sizes, key=lambda size: abs(sizes.index(size) - middle))


def probe_sizes(sizes: Sequence[Size], seed: int = 0) -> list[dict[str, int]]:
    """Further sizes, near the given ones and between them."""
    draw = random.Random(seed)
    largest = {name: max(size[name] for size in sizes) for name in sizes[0]}
    near = [
        {name: max(1, value + draw.choice((-3, -2, -1, 1, 2, 3))) for name, value in size.items()}
        for size in draw.sample(list(sizes), min(len(sizes), PROBES // 2))
    ]
    between = [
        {name: draw.randint(1, most) for name, most in largest.items()}
        for _ in range(PROBES - len(near))
    ]
    return near + between
