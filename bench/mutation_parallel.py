"""The mutation check of one kernel of the catalogue, on all cores of this machine.

python bench/mutation_parallel.py convolution-2d rows=4 block=32
"""

from __future__ import annotations

import os
import sys
from multiprocessing import Pool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from warploom.catalogue import find
from warploom.catalogue.verify import _mixed, _trial, probe_sizes
from warploom.errors import WarploomError
from warploom.trust.mutation import mutants

WORDS = sys.argv[2:]
SETTINGS = {k: int(v) if v.isdigit() else v for k, _, v in (w.partition("=") for w in WORDS)}


def part(number: int, of: int) -> list[tuple[str, str]]:
    """(mutant, fate) for every `of`-th mutant."""
    entry = find(sys.argv[1])
    kernel = entry.kernel(**SETTINGS)
    sizes = entry.sizes(**entry.settings(SETTINGS))
    trials = [_trial(entry, entry.case(kernel, size, 1, **SETTINGS)) for size in _mixed(sizes)]
    probes = []
    for seed, size in enumerate(probe_sizes(sizes)):
        try:
            probe = _trial(entry, entry.case(kernel, size, 100 + seed, **SETTINGS))
            if not probe(kernel):
                probes.append(probe)
        except WarploomError:  # a size that the kernel does not take
            continue
    fates = []
    for at, mutant in enumerate(mutants(kernel)):
        if at % of == number:
            caught = any(trial(mutant.kernel) for trial in trials)
            slipped = not caught and any(probe(mutant.kernel) for probe in probes)
            fate = "caught" if caught else "NOT CAUGHT" if slipped else "computes the same"
            fates.append((str(mutant), fate))
    return fates


def main() -> int:
    count = os.cpu_count() or 1
    with Pool(count) as pool:
        parts = pool.starmap(part, [(number, count) for number in range(count)])
    fates = [fate for each in parts for fate in each]
    for name, fate in fates:
        if fate == "NOT CAUGHT":
            print(f"not caught: {name}")
    totals = {fate: sum(f == fate for _, f in fates) for fate in sorted({f for _, f in fates})}
    print(f"{sys.argv[1]} {' '.join(WORDS)}: {len(fates)} mutants: {totals}")
    return 1 if totals.get("NOT CAUGHT") else 0


if __name__ == "__main__":
    raise SystemExit(main())
