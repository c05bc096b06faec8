"""Random implementations of every program of rows: is each of them right, without races?

    python -m bench.loopnest.rows_drawn [--count 100] [--only softmax] [--again] [--out FILE]

Of each program so many different kernels are drawn, in turn from all that strategies make of it:
rows that are aligned and rows that begin anywhere, held in registers, folded in pieces, and read
again. So that short rows are long ones, threads hold few elements here. Each kernel runs on the
simulator, and as compiled PTX on the emulator; races are looked for on both. Results are compared
with what the program as it was stated means. A program is kept as it ends, in
bench/results/rows_drawn.json: a run that was stopped goes on. The exit status is 1 if anything was
wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from bench.common.loopnest.compiled import Batch
from bench.harness import arguments, earlier, environment, save

from warploom.emit.cuda import cuda
from warploom.errors import WarploomError
from warploom.index.evaluate import evaluate as evaluate_index
from warploom.kernel.dtype import DType, bf16, f16, f32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Program
from warploom.loopnest.lower import lower
from warploom.loopnest.strategies import row
from warploom.loopnest.trial import UNTOUCHED, agrees, some_inputs
from warploom.pipeline.drawn import Asked, leaves_of
from warploom.pipeline.exploring import nest_of
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.rows.function import RowFunction
from warploom.pipeline.rows.stated import STATED, types_wanted
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.strategic import strategies_of

SIZES = ((5, 261, bf16), (3, 1203, bf16), (4, 96, f32), (3, 613, f16), (6, 40, bf16))
AT_ONCE = 4  # drawn of a variant
BATCH = 20  # kernels that are compiled together
FEW = {"HELD": 8, "MOST_THREADS": 64, "LONG": (32, 64)}


@contextmanager
def little_room() -> Iterator[None]:
    """Threads hold few elements of a row, so that rows need not be long to be read in pieces."""
    before = {name: getattr(row, name) for name in FEW}
    for name, value in FEW.items():
        setattr(row, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(row, name, value)


def stated(name: str, m: int, n: int, dtype: DType) -> Any:
    function = RowFunction(STATED[name], {})
    names = (*function.inputs, *function.outputs)
    types = {each: (types_wanted(each) or (dtype,))[0] for each in names}
    return function.stated.nest(m, n, types, function.options)


def kernels_of(name: str, size: tuple[int, int, DType], seed: int) -> Iterator[tuple[Kernel, ...]]:
    """Drawn kernels, of each variant some in turn."""
    nest = nest_of(stated(name, *size))
    for at, variant in enumerate(strategies_of(nest, None, "default", free=False).variants):
        try:
            own = nest_by(recipe_of(variant, nest))
        except WarploomError:
            continue
        yield from drawn(own, (seed, at))


def drawn(own: Nest, seed: tuple[int, int]) -> Iterator[tuple[Kernel, ...]]:
    found = leaves_of(own, Asked(AT_ONCE, seed))
    for at in np.flatnonzero(found.arrived):
        leaf = found.leaves.take(slice(int(at), int(at) + 1))
        yield own.lowered(leaf) if own.after is not None else (lower(own.implementation(leaf)),)


class Meant:
    """A program with numbers, and what it means."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arrays, self.numbers = some_inputs(program, np.random.default_rng(0))
        self.wanted = evaluate(program, self.arrays, self.numbers)

    def given(self, kernel: Kernel, between: dict[str, Any]) -> dict[str, Any]:
        made = {}
        for each in kernel.arrays:
            if each.name in between:
                made[each.name] = between[each.name]
            elif each.name in self.wanted:
                made[each.name] = np.full_like(self.arrays[each.name], UNTOUCHED)
            elif each.name in self.arrays:
                made[each.name] = self.arrays[each.name]
            else:
                size = int(evaluate_index(each.size, {}))
                made[each.name] = between[each.name] = np.zeros(size, each.dtype.numpy)
        return made

    def wrong(self, made: dict[str, Any]) -> list[str]:
        with np.errstate(all="ignore"):
            return [f"{name} is wrong" for name, wanted in self.wanted.items()
                    if not agrees(self.program, name, made[name], wanted).all()]  # fmt: skip


def checked(several: list[tuple[Kernel, ...]], meant: Meant) -> list[str]:
    """What is wrong with kernels, on the simulator and as PTX."""
    batch = Batch([each for kernels in several for each in kernels])
    found, number = list[str](), 0
    for kernels in several:
        for way in ("simulator", "emulator"):
            between: dict[str, Any] = {}
            for at, kernel in enumerate(kernels):
                made = meant.given(kernel, between)
                ordered = [*made.values(), *meant.numbers.values()]
                report = (run(kernel, ordered) if way == "simulator"
                          else batch.by_ptx(number + at, ordered))  # fmt: skip
                found += [f"{way}: {race}" for race in report.races]
            found += [f"{way}: {text}" for text in meant.wrong(made)]
        number += len(kernels)
    return found


def checked_program(name: str, count: int) -> dict[str, Any]:
    since, seen, wrong = time.monotonic(), set[str](), list[str]()
    by_size = {str(size): 0 for size in SIZES}
    seed = 0
    while len(seen) < count and seed < 8:
        for size in SIZES:
            waiting: list[tuple[Kernel, ...]] = []
            some = max(1, (count - len(seen)) // (len(SIZES) - SIZES.index(size)))
            meant = Meant(stated(name, *size).done())
            for kernels in kernels_of(name, size, seed):
                if len(waiting) >= some or len(seen) >= count:
                    break
                text = "".join(map(cuda, kernels))
                if text not in seen:
                    seen.add(text)
                    waiting.append(kernels)
            by_size[str(size)] += len(waiting)
            for first in range(0, len(waiting), BATCH):
                wrong += checked(waiting[first : first + BATCH], meant)
        seed += 1
    sizes = {f"{m}×{n} {dtype!r}": by_size[str((m, n, dtype))] for m, n, dtype in SIZES}
    return {"name": name, "kernels": len(seen), "sizes": sizes, "wrong": wrong,
            "seconds": round(time.monotonic() - since, 1)}  # fmt: skip


def main() -> int:
    parser = arguments(__doc__, "rows_drawn.json", only="names with this word", resumes=True)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    rows = earlier(given.out).get("programs", [])
    known = {each["name"]: each for each in rows}
    names = [name for name in STATED if given.only in name]
    with little_room():
        for name in names:
            before = known.get(name)
            if before is None or given.again or before["kernels"] < given.count:
                known[name] = checked_program(name, given.count)
                rows = [known[each] for each in STATED if each in known]
                save(given.out, {**environment(), "programs": rows})
            print({key: known[name][key] for key in ("name", "kernels", "wrong", "seconds")},
                  flush=True)  # fmt: skip
    return int(any(known[name]["wrong"] for name in names))


if __name__ == "__main__":
    sys.exit(main())
