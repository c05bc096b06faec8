"""Which lanes of an access to shared memory are served together, by the record of a machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.record import KNOWN, machine_named, machine_of
from warploom.machine.serving import Serving
from warploom.trust.checked import require, span_of

Numbers = npt.NDArray[np.int64]
WORD = 4  # bytes of a bank, of every machine that certificates are about


def serving_of(machine: Any) -> Serving:
    """The banks of a machine by name, or as the certificate itself describes it."""
    if isinstance(machine, str):
        require(machine in KNOWN, f"no machine is called {machine!r:.40}")
        return machine_named(machine).serving
    found = machine_of(machine, "the certificate").serving
    require(found.word_bytes == WORD, f"banks of {found.word_bytes} bytes")
    return found


def served(serving: Serving, kind: str, width: int) -> tuple[tuple[int, ...], int]:
    """The lanes served with lane 0, as a basis, and what joins it where lanes ask in pairs."""
    require(width in (1, 2, 4, 8, 16), f"vectors of {width} bytes")
    known = ("ld", "st", "cp.async", "ldmatrix", "ldmatrix.trans", "stmatrix", "stmatrix.trans")
    require(kind in known, f"there is no {kind}")
    asked = "st" if kind == "cp.async" else kind.removesuffix(".trans")
    found = [group for (k, w), group in serving.groups.items() if (k, w) == (asked, width)]
    require(bool(found), f"{serving.name} has no such {kind}")
    return found[0].basis, found[0].paired


def groups_of(step: Numbers, basis: tuple[int, ...], paired: int) -> Iterator[Numbers]:
    """The elements that are served together in one step, without idle lanes."""
    first, lane = step[:, 0], np.arange(len(step))
    others = [np.append(first, -1)[np.minimum(lane ^ by, len(step))] for by in (1, 2)]
    if paired and any(((first < 0) | (o < 0) | (first == o)).all() for o in others):
        basis = (*basis, paired)
    span = span_of(basis)
    for start in range(len(step)):  # lanes behind the last want nothing
        members = (start ^ span)[(start ^ span) < len(step)]
        wanted = step[members[first[members] >= 0]]
        if start == (start ^ span).min() and wanted.size:
            yield np.unique(wanted)
