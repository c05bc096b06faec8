"""A launch, block, thread and iteration in which something goes wrong, found by trying small
launches.

Index expressions read no memory, so that a place is reached exactly if its guards hold: what is
found here happens in a real launch. Finding nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from random import Random
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, constants, variables
from warploom.kernel.bounds import thread_variables
from warploom.kernel.ir import BLOCK_NAMES, Kernel
from warploom.kernel.scope import Counter, Place
from warploom.machine.record import CUDA

MOST_LAUNCHES = 160
MOST_POINTS = 1 << 17
ITERATIONS = 32  # of a loop, from both ends of it
SMALL = (1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 65, 100)
MOST_VALUE = 5000  # larger sizes say nothing that smaller ones do not, and take long


@dataclass(frozen=True, slots=True)
class Witness:
    """The scalars of a launch, and who goes wrong in it; `iterations` are loop counters by name."""

    scalars: Mapping[str, int]
    block: tuple[int, int, int]
    thread: int
    iterations: Mapping[str, int]
    value: int

    def __str__(self) -> str:
        where = "" if self.block == (0, 0, 0) else f" of block {_block_text(self.block)}"
        return f"thread {self.thread}{where}"

    @property
    def circumstances(self) -> str:
        """The loop counters and scalars, as the end of a sentence."""
        given = {**self.iterations, **self.scalars}
        return " at " + ", ".join(f"{n} = {v}" for n, v in given.items()) if given else ""


def _block_text(block: tuple[int, int, int]) -> str:
    return str(block[0]) if block[1] == block[2] == 0 else str(block)


def find_witness(
    kernel: Kernel, place: Place, guards: tuple[Expr, ...], goal: Expr, shown: Expr
) -> Witness | None:
    """Where the goal is false though the guards hold; `shown` is what its value is reported of."""
    if any("@" in name for each in (*guards, goal, shown) for name in variables(each)):
        return None  # data decide it, which a launch does not say
    search = _Search(kernel, place, guards, goal, shown)
    for scalars in _launches(kernel, (*guards, goal)):
        try:
            found = search.try_launch(scalars)
        except CheckError:  # something else is undefined in this launch
            continue
        if found is not None:
            return found
    return None


@dataclass(frozen=True, slots=True)
class _Search:
    kernel: Kernel
    place: Place
    guards: tuple[Expr, ...]
    goal: Expr
    shown: Expr

    def try_launch(self, scalars: Mapping[str, int]) -> Witness | None:
        grid = [int(evaluate(size, scalars)) for size in self.kernel.grid]
        axes: dict[str, Any] = dict(zip(BLOCK_NAMES, map(_ends, grid), strict=True))
        axes["thread"] = np.arange(self.kernel.threads)
        for counter in self.place.counters:
            axes[counter.iteration] = self._iterations(counter, scalars)
        axes = _fewer(axes)
        shape = tuple(len(each) for each in axes.values())
        env = dict(zip(axes, np.ix_(*axes.values()), strict=True))
        threads = thread_variables(self.kernel)
        env |= {name: each[env["thread"]] for name, each in threads.items()}
        env |= scalars
        reached = np.ones(shape, dtype=bool)
        for guard in self.guards:
            reached &= np.asarray(evaluate(guard, env)) != 0
            if not reached.any():
                return None
        wrong = reached & (np.asarray(evaluate(self.goal, env)) == 0)
        if not wrong.any():
            return None
        return self._witness(np.argwhere(wrong)[0], axes, scalars)

    def _iterations(self, counter: Counter, scalars: Mapping[str, int]) -> Any:
        if counter.iterations is not None:
            return _ends(counter.iterations, ITERATIONS)
        bounds = (counter.start, counter.stop)
        if not all(variables(each) <= scalars.keys() for each in bounds):
            return np.arange(20)  # they differ between blocks, or iterations of another loop
        start, stop = (int(evaluate(each, scalars)) for each in bounds)
        return _ends(max(1, -(-(stop - start) // counter.loop.step)), ITERATIONS)

    def _witness(self, at: Any, axes: Mapping[str, Any], scalars: Mapping[str, int]) -> Witness:
        values = {name: int(each[i]) for (name, each), i in zip(axes.items(), at, strict=True)}
        threads = thread_variables(self.kernel)
        env: dict[str, int] = {**scalars, **values}
        env |= {name: int(each[values["thread"]]) for name, each in threads.items()}
        iterations = {
            each.loop.var: int(evaluate(each.value, env))
            for each in self.place.counters
            if each.iteration in values
        }
        block = values["block_x"], values["block_y"], values["block_z"]
        value = int(evaluate(self.shown, env))
        return Witness(dict(scalars), block, values["thread"], iterations, value)


def _ends(count: int, most: int = 8) -> Any:
    """0 … count - 1, or the ends of it if that is long."""
    if count <= most:
        return np.arange(max(count, 0))
    half = most // 2
    return np.concatenate([np.arange(half), np.arange(count - half, count)])


def _fewer(axes: dict[str, Any]) -> dict[str, Any]:
    """The axes cut down until not too many points are left; threads stay as they are."""
    while np.prod([float(len(each)) for each in axes.values()]) > MOST_POINTS:
        longest = max((name for name in axes if name != "thread"), key=lambda name: len(axes[name]))
        keep = max(1, len(axes[longest]) // 2)
        last = len(axes[longest]) - keep // 2
        axes[longest] = np.concatenate([axes[longest][: keep - keep // 2], axes[longest][last:]])
    return axes


def _launches(kernel: Kernel, exprs: Sequence[Expr]) -> Iterator[dict[str, int]]:
    """Scalars that the kernel may be launched with, small ones first."""
    names = [each.name for each in kernel.scalars if each.dtype is kernel.index]
    everything = (*exprs, *kernel.grid, *(each.size for each in kernel.arrays))
    found = {value for expr in everything for value in constants(expr)}
    near = {value + d for value in found for d in (-1, 0, 1)}
    near |= {2 * value + d for value in found for d in (0, 1)}
    values = sorted({*SMALL, *(value for value in near if 0 < value <= MOST_VALUE)})
    values += [0, -1]
    random = Random(0)
    if len(values) ** len(names) <= 4 * MOST_LAUNCHES:
        drawn: Iterator[tuple[int, ...]] = product(values, repeat=len(names))
    else:
        weights = [1 / (1 + at / 8) for at in range(len(values))]
        drawn = (
            tuple(random.choices(values, weights, k=len(names))) for _ in range(8 * MOST_LAUNCHES)
        )
    launches = (dict(zip(names, each, strict=True)) for each in drawn)
    yield from islice((each for each in launches if _allowed(kernel, each)), MOST_LAUNCHES)


def _allowed(kernel: Kernel, scalars: Mapping[str, int]) -> bool:
    try:
        return (
            all(evaluate(condition, scalars) for condition in kernel.requires)
            and all(int(evaluate(each.size, scalars)) >= 1 for each in kernel.arrays)
            and all(
                1 <= int(evaluate(size, scalars)) <= limit
                for size, limit in zip(kernel.grid, CUDA.grid_sides, strict=True)
            )
        )
    except CheckError:
        return False
