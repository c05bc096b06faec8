"""Implementations that cuts remove, timed on a GPU beside the kept ones that they become.

    python -m bench.loopnest.cuts_device [--pairs 200] [--processes 16] [--only matmul] [--out FILE]
    python -m bench.loopnest.cuts_device --dry --pairs 9 --processes 2      compiled, not measured

Programs have realistic sizes; each gives as many pairs. Removed implementations are drawn at random
from the uncut space, at most `ALIKE` of a program that come to their witness by the same cuts, and
none that the time model predicts to take longer than `LONGEST`, or of so many statements, written
out, that a compiler takes minutes. Both are compiled by all cores,
checked, and timed in CUDA graphs, one after the other in each round. `ratio` is the time of the
kept one by that of the removed one. Above 1.03 both are timed again in more rounds, which counts.
Rows are written as they come; the same command goes on where it was stopped.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from bench.common.loopnest.cutting import Cutting
from bench.harness import arguments, earlier, environment, save

from warploom.errors import WarploomError
from warploom.kernel.ir import For, Stmt, bodies
from warploom.loopnest.build import LoopNest, exp
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import axpy, batched_matmul, gesummv, matmul, matvec
from warploom.loopnest.lower import outlined
from warploom.machine.record import H200
from warploom.pipeline.drawn import Made, made_of
from warploom.pipeline.nest import Nest
from warploom.pipeline.raced import quick_gpu
from warploom.search.branching.candidate import Candidates
from warploom.search.branching.descent import descents

SLOWER = 1.03  # the kept one by the removed one: a cut has lost something
ALIKE = 5
LONGEST = 2e7  # nanoseconds
WRITTEN = 1500  # statements, loops that are unrolled written out
ROUNDS, MORE_ROUNDS = 7, 31
DRAWN, TRIES = 16, 60  # descents at a time, and how many times
RECORD = "loopnest_cuts_device.json"


def _tiled(nest: LoopNest, name: str, size: int) -> Any:
    return nest.axis(name, size, (2, 4, 8, 16, 32, 64, 128), (2, 4))


def softmax(m: int, n: int) -> LoopNest:
    nest = LoopNest("softmax")
    i, j = _tiled(nest, "m", m), _tiled(nest, "n", n)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    top = nest.fold("max", x[i, j], over=j)
    y[i, j] = exp(x[i, j] - top) / nest.sum(exp(x[i, j] - top), over=j)
    return nest


def scaled_transposed(m: int, n: int) -> LoopNest:
    nest = LoopNest("scaled_transposed")
    i, j = _tiled(nest, "m", m), _tiled(nest, "n", n)
    x, y = nest.array("x", i, j), nest.array("y", j, i)
    y[j, i] = x[i, j] * 2
    return nest


def points(m: int, n: int) -> LoopNest:
    """Five of them, of a stencil whose tiles divide."""
    nest = LoopNest("points")
    i, j = _tiled(nest, "m", m), _tiled(nest, "n", n)
    A, B = nest.array("A", m + 2, n + 2), nest.array("B", i, j)
    B[i, j] = A[i + 1, j + 1] + A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2]
    return nest


def sums(m: int, n: int, over_rows: bool) -> LoopNest:
    nest = LoopNest("sums")
    i, j = _tiled(nest, "m", m), _tiled(nest, "n", n)
    A = nest.array("A", i, j)
    y = nest.array("y", j if over_rows else i)
    y[j if over_rows else i] = nest.sum(A[i, j], over=i if over_rows else j)
    return nest


PROGRAMS: dict[str, Callable[[], Program | LoopNest]] = {
    "axpy 2^20": lambda: axpy(1 << 20),
    "stencil 1024": lambda: points(1024, 1024),
    "transposed 1024": lambda: scaled_transposed(1024, 1024),
    "row sums 1024": lambda: sums(1024, 1024, over_rows=False),
    "column sums 1024": lambda: sums(1024, 1024, over_rows=True),
    "matvec 2048": lambda: matvec(2048, 2048),
    "gesummv 1024": lambda: gesummv(1024, 1024),
    "matmul 256": lambda: matmul(256, 256, 256),
    "matmul 1024": lambda: matmul(1024, 1024, 1024),
    "batched 64": lambda: batched_matmul(64, 64, 64, 64),
    "softmax 512": lambda: softmax(512, 512),
}


@dataclass(frozen=True)
class Pair:
    """`removed` and `kept` are compiled; `steps` are the cuts between them."""

    name: str
    steps: tuple[str, ...]
    removed: Made
    kept: Made

    @property
    def key(self) -> str:
        return f"{self.name}: {hashlib.sha256(self.removed.leaf).hexdigest()[:32]}"


@cache
def _cutting(name: str) -> tuple[Cutting, Nest]:
    given = PROGRAMS[name]()
    program = given.done() if isinstance(given, LoopNest) else given
    cutting = Cutting(program_of(Computation.of(program), published=False))
    return cutting, Nest(cutting.program, H200.rates, replace(cutting.target, cuts=()))


def pairs(name: str, seed: int, count: int, arch: str) -> list[Pair]:
    """As many that are removed, drawn by the seed, each with its witness, compiled."""
    cutting, nest = _cutting(name)
    found, alike = list[Pair](), Counter[tuple[str, ...]]()
    for number in range(TRIES):
        drawn = descents(cutting.problem, DRAWN, np.random.default_rng([seed, number]))
        leaves = drawn.leaves.take(np.flatnonzero(drawn.arrived))
        leaves = leaves.take(~cutting.kept(leaves))
        for row in range(len(leaves)):
            made = _pair(name, cutting, nest, leaves.take(slice(row, row + 1)), arch)
            if made is not None and alike[made.steps] < ALIKE:
                alike[made.steps] += 1
                found.append(made)
            if len(found) == count:
                return found
    return found


def _pair(name: str, cutting: Cutting, nest: Nest, leaf: Candidates, arch: str) -> Pair | None:
    def _is_long(each: Candidates) -> bool:
        return _written(outlined(cutting.made(each)).body) > WRITTEN

    witnessed = cutting.witnessed(leaf)
    assert witnessed.kept is not None, f"no witness for an implementation of {name}"
    try:
        if nest.outlined_time(leaf) > LONGEST or any(map(_is_long, (leaf, witnessed.kept))):
            return None
        removed, kept = (made_of(nest, each, 0, arch, set()) for each in (leaf, witnessed.kept))
    except WarploomError:  # what no kernel can be written for
        return None
    assert removed is not None
    assert kept is not None
    return Pair(name, witnessed.steps, removed, kept)


def _written(stmts: Sequence[Stmt]) -> int:
    total = 0
    for stmt in stmts:
        inside = sum(_written(body) for body in bodies(stmt))
        if isinstance(stmt, For) and (stmt.unroll or len(stmt.counts or range(9)) < 9):
            inside *= len(stmt.counts or ())
        total += 1 + inside
    return total


def drawn(
    names: list[str], each: int, arch: str, processes: int, known: set[str]
) -> Iterator[Pair]:
    """By all cores, in parts of a few, so that all have something to do."""
    parts = max(1, -(-each // 6))
    with ProcessPoolExecutor(processes, max_tasks_per_child=4) as pool:
        asked = [pool.submit(pairs, name, part, -(-each // parts), arch)
                 for name in names for part in range(parts)]  # fmt: skip
        for done in as_completed(asked):
            for pair in done.result():
                if pair.key not in known:
                    known.add(pair.key)
                    yield pair


def timed(pair: Pair, quick: Any) -> dict[str, Any]:
    row = {"program": pair.name, "steps": list(pair.steps), "key": pair.key,
           "same_text": pair.removed.key == pair.kept.key}  # fmt: skip
    for made in (pair.removed, pair.kept):
        quick.time(made, float("inf"))  # is it right
    removed, kept = quick.again((pair.removed, pair.kept), ROUNDS)
    if kept > SLOWER * removed:
        row["first_ratio"] = round(kept / removed, 4)
        removed, kept = quick.again((pair.removed, pair.kept), MORE_ROUNDS)
    row |= {"removed_us": round(removed / 1e3, 3), "kept_us": round(kept / 1e3, 3)}
    return row | {"ratio": round(kept / removed, 4)}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """`over` counts removed ones that are more than 3 % faster than their witness."""
    failed, rows = [r for r in rows if "error" in r], [r for r in rows if "error" not in r]
    ratios = sorted(row["ratio"] for row in rows)
    lost = [row for row in rows if row["ratio"] > SLOWER]
    by: dict[str, list[float]] = {}
    for row in rows:
        for step in set(row["steps"]):
            by.setdefault(step, []).append(row["ratio"])
    return {"pairs": len(rows), "over": len(lost), "failed": len(failed),
            "median": float(np.median(ratios)) if ratios else None,
            "worst": ratios[-1] if ratios else None,
            "lost": [(row["program"], row["steps"], row["ratio"]) for row in lost],
            "by": {name: {"pairs": len(own), "median": float(np.median(own)), "worst": max(own),
                          "over": sum(each > SLOWER for each in own)}
                   for name, own in sorted(by.items())}}  # fmt: skip


def main() -> int:
    parser = arguments(__doc__, RECORD, only="programs with this word", dry="no GPU", resumes=True)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--processes", type=int, default=16)
    asked = parser.parse_args()
    names = [name for name in PROGRAMS if asked.only in name]
    rows: list[dict[str, Any]] = earlier(asked.out, again=asked.again).get("rows", [])
    each = -(-asked.pairs // len(names))
    programs = {} if asked.dry else {n: quick_gpu(_cutting(n)[0].program) for n in names}
    arch = "sm_90" if asked.dry else next(iter(programs.values())).arch
    since = time.monotonic()
    for pair in drawn(names, each, arch, asked.processes, {row["key"] for row in rows}):
        if asked.dry:
            print(pair.name, pair.steps, pair.removed.key == pair.kept.key, flush=True)
            continue
        try:
            row = timed(pair, programs[pair.name])
        except WarploomError as error:  # a wrong result, or a failed launch: counted by itself
            row = {"program": pair.name, "steps": list(pair.steps), "key": pair.key}
            row["error"] = str(error)[:300]
        rows.append(row)
        print(round(time.monotonic() - since), row | {"key": ""}, flush=True)
        device = next(iter(programs.values())).device
        save(asked.out, {"summary": summary(rows), "rows": rows, **environment(device)})
    if asked.dry:
        return 0
    print(json.dumps(summary(rows), indent=1))
    return 1 if summary(rows)["over"] else 0


if __name__ == "__main__":
    sys.exit(main())
