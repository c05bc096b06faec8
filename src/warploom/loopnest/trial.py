"""An implementation tried: run on the simulator beside what its program means.

In come an implementation and a seed; out goes what was run and whether it was right. Axes are cut
short to a few tiles, the last as partial as it was: every loop, condition and barrier is there, and
it takes a second. Inputs have both signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.kernel.evaluate import run
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import elements, evaluate, written
from warploom.loopnest.lower import lower

# Tiles along each axis: the first, one between (where a pipeline is filled), the last.
TURNS = 3
# How far a sum in single precision may be from one in double precision, of the largest element.
CLOSE = 1e-4
# What is in an array before: between the rows of a shortened one it has to stay there.
UNTOUCHED = 77


@dataclass(frozen=True, slots=True)
class Tried:
    """`wrong` names an element that is not what it should be; it is empty if all are right."""

    sizes: dict[str, int]
    wrong: str = ""

    def __str__(self) -> str:
        sizes = ", ".join(f"{axis} = {size}" for axis, size in self.sizes.items())
        return self.wrong or f"equals its meaning on the simulator at {sizes}"


def tried(implementation: Implementation, seed: int = 0, turns: int = TURNS) -> Tried:
    """Raises where the kernel does what no kernel may: a race, an access outside its array."""
    made, random = implementation.shortened(turns), np.random.default_rng(seed)
    program = made.program
    arrays = {
        array.name: random.standard_normal(count).astype(array.dtype.numpy)
        for array, count in elements(program, made.sizes).items()
    }
    numbers = {each.name: float(np.float32(random.normal())) for each in program.parameters}
    wanted = evaluate(program, arrays, numbers, made.sizes)
    given = {**arrays, **{name: np.full_like(each, UNTOUCHED) for name, each in wanted.items()}}
    run(lower(made), [*(given[array.name] for array in program.arrays), *numbers.values()])
    sizes = {axis.name: size for axis, size in made.sizes.items()}
    stored = written(program, made.sizes)
    for name, each in wanted.items():
        off = np.abs(given[name] - each) > CLOSE * max(1.0, float(np.abs(each).max()))
        apart = np.where(stored[name], off, given[name] != UNTOUCHED)
        if apart.any():
            at = int(np.argmax(apart))
            wrong = f"{name}[{at}] is {given[name][at]:.6g} and should be {each[at]:.6g}"
            return Tried(sizes, wrong)
    return Tried(sizes)
