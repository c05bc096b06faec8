"""What launches of permutations cost, fitted to times that were measured on a GPU.

    python -m bench.catalogue.permute_fit                 from bench/results/permute
    python -m bench.catalogue.permute_fit FILE … --write  other records; into the package

A record is what `bench.catalogue.permute_probe` writes: times of many kernels for each
row. The sum of squares of relative differences is the least, with differences between kernels of
one row weighed more. Costs stay near the usual ones where little was measured. What is told beside
them is how far the kernel that they choose is from the fastest one that was tried.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bench.catalogue.permute_rows import movement_of, rows
from bench.harness import RESULTS, ROOT, arguments

from warploom.catalogue.permute.box import Box
from warploom.catalogue.permute.cost import expected, usually
from warploom.catalogue.permute.gather import Gather
from warploom.catalogue.permute.launch import Candidate, Place, Spec
from warploom.catalogue.permute.problem import Movement
from warploom.catalogue.permute.rule import candidates
from warploom.catalogue.permute.runs import gathers

# A later one stands for the same launch.
FILES = ("rows_2", "rows_1", "probe_1", "probe_2", "probe_3", "rows_3", "probe_5", "rows_4")
FITTED = ROOT / "src/warploom/catalogue/permute/fitted.py"
HEAD = '''"""Costs of permutations, as `python -m bench.catalogue.permute_fit` prints them."""

from __future__ import annotations

COSTS: dict[str, float] = {
'''
Point = tuple[str, dict[str, float], float]  # row, features, time over a copy's
LEAST = 0.35  # of the usual cost
NEAR = 0.5  # how much it weighs that a cost is not the usual one

WITHIN, FAR = 3.0, 2.0  # weight of a difference within a row; how much slower still counts


def points(files: Sequence[Path]) -> list[Point]:
    """The kernels that were measured, and what the rule knows of each."""
    times: dict[str, dict[str, tuple[float, int | None]]] = {}
    for file in files:
        for name, row in json.loads(file.read_text())["rows"].items():
            for kernel, fraction, blocks in _measured(row) if not name.startswith("aside") else ():
                times.setdefault(name, {})[kernel] = 1 / fraction, blocks
    known, found = rows(), []
    for name, each in times.items():
        if name not in known:
            continue
        for candidate in _launches(movement_of(known[name])):
            part = candidate.part()
            kernel = next((k for k in _names(part.spec) if k in each), "")
            taken, blocks = each.get(kernel, (0.0, None))
            # Several launches may have one kernel: which one was measured its blocks say.
            if candidate.work is not None and taken and blocks in (None, part.blocks):
                del each[kernel]
                found.append((name, candidate.work.features, taken))
    return found


def _launches(moved: Movement) -> list[Candidate]:
    """What could do a movement, the cheapest first; then what gathers are now."""
    found = candidates(moved)
    now = [each for each in found if isinstance(each.spec, Gather)]
    others = [each for each in found if each not in now]
    earlier = [*gathers(Place(moved), whole=True), *others]
    return [*sorted(earlier, key=lambda each: each.cost), *now]


def _names(spec: Spec) -> Iterator[str]:
    """What a record may call a kernel: earlier boxes had sides of powers of two."""
    yield spec.name
    if isinstance(spec, Box):
        words = 1 << (spec.p + spec.wide - 2).bit_length()
        yield replace(spec, p=words - (spec.wide - 1)).name


def _measured(row: dict[str, Any]) -> list[tuple[str, float, int | None]]:
    if "tried" in row:
        return [(k, t["fraction"], t["says"]["blocks"]) for k, t in row["tried"].items()
                if t["right"]]  # fmt: skip
    if row.get("right") is True and len(row.get("kernels", ())) == 1:
        return [(row["kernels"][0], row["fraction"], None)]
    return []


def fitted(found: Sequence[Point]) -> dict[str, float]:
    """Costs no less than 0, by descents along one of them at a time."""
    names = sorted({name for _, features, _ in found for name in features})
    matrix = np.array([[f.get(name, 0.0) / t for name in names] for _, f, t in found])
    wanted = np.array([(t - 1) / t for _, _, t in found])
    matrix, wanted = _with_differences(found, matrix, wanted)
    usual = np.array([usually(name) for name in names])
    matrix = matrix * usual  # so that all unknowns are about 1
    gram, right = matrix.T @ matrix, matrix.T @ wanted + NEAR
    gram[np.diag_indices(len(names))] += NEAR
    times = np.ones(len(names))
    for _ in range(2000):
        for i in range(len(names)):
            rest = right[i] - gram[i] @ times + gram[i, i] * times[i]
            times[i] = max(LEAST, rest / gram[i, i])
    costs = times * usual
    return {name: float(f"{cost:.3g}") for name, cost in zip(names, costs, strict=True)}


def _with_differences(found: Sequence[Point], matrix: Any, wanted: Any) -> tuple[Any, Any]:
    """Beside the equations, how kernels of one row differ: what the rule is asked for."""
    rows: dict[str, list[int]] = {}
    for at, (name, _, _) in enumerate(found):
        rows.setdefault(name, []).append(at)
    more, sides = [], []
    for each in rows.values():
        best = min(each, key=lambda at: found[at][2])
        for at in each:
            if at != best and found[at][2] < FAR * found[best][2]:
                more.append(WITHIN * (matrix[at] - matrix[best] * found[best][2] / found[at][2]))
                sides.append(WITHIN * (1 - found[best][2] / found[at][2]))
    return np.vstack([matrix, *more]), np.concatenate([wanted, sides])


def told(found: Sequence[Point], costs: dict[str, float]) -> None:
    """How well costs predict, and what choosing by them loses."""
    by_row: dict[str, list[tuple[float, float]]] = {}
    for name, features, taken in found:
        by_row.setdefault(name, []).append((expected(features, costs), taken))
    ratios = [taken / cost for each in by_row.values() for cost, taken in each]
    lost = [min(each)[1] / min(t for _, t in each) for each in by_row.values() if len(each) > 1]
    low, high = np.quantile(ratios, [0.1, 0.9])
    print(f"# {len(found)} kernels of {len(by_row)} rows: time / cost {median(ratios):.2f}, "
          f"of eight in ten {low:.2f} to {high:.2f}")  # fmt: skip
    if lost:
        print(f"# {len(lost)} rows with several: chosen / fastest {median(lost):.3f}, "
              f"mean {np.mean(lost):.3f}, most {max(lost):.2f}")  # fmt: skip


def main() -> int:
    parser = arguments(__doc__)
    kept = [RESULTS / "permute" / f"{name}.json" for name in FILES]
    parser.add_argument("files", nargs="*", type=Path, default=kept)
    parser.add_argument("--write", action="store_true", help="write them into the package")
    given = parser.parse_args()
    found = points(given.files)
    costs = fitted(found)
    told(found, costs)
    text = HEAD + "".join(f'    "{name}": {cost},\n' for name, cost in costs.items()) + "}\n"
    if given.write:
        FITTED.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
