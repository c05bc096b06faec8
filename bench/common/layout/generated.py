"""Problems as a user writes them, each by its number alone; and the best of what is cheap to try:
rows as they are, every padding, every swizzle, counted one by one without the solver."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warploom.layout.patterns.access import IDLE, SERVED_AS, Problem
from warploom.layout.patterns.named import TYPES
from warploom.machine.serving import serve

Numbers = npt.NDArray[np.int64]
SHAPES = (
    (64, 32),
    (32, 32),
    (48, 40),
    (24, 96),
    (17, 33),
    (128, 16),
    (16, 64),
    (4, 8, 32),
    (34, 34),
)
ELEMENTS = ("f32", "f32", "f16", "f64", "i8")


def problem_text(number: int) -> str:
    """A tensor and one to four accesses: windows, columns, strides, vectors, matrices."""
    random = np.random.default_rng((26, number))
    shape = SHAPES[int(random.integers(len(SHAPES)))]
    element = ELEMENTS[int(random.integers(len(ELEMENTS)))]
    lines = [f"shape = {list(shape)}", f'element = "{element}"']
    for place in range(int(random.integers(1, 5))):
        kind, width, index = _access(random, shape, TYPES[element])
        lines += [
            "[[access]]", f'name = "access {place}"', f'kind = "{kind}"', f"width = {width}",
            f"steps = {int(random.choice([1, 2, 4, 4, 8, 50]))}", f'index = "{index}"',
        ]  # fmt: skip
        if random.random() < 0.2:
            lines.append(f"weight = {random.choice([0.1, 3, 10])}")
    return "\n".join(lines) + "\n"


def _access(random: np.random.Generator, shape: tuple[int, ...], size: int) -> tuple[str, int, str]:
    elements, columns = int(np.prod(shape)), shape[-1]
    rows = elements // columns
    what = str(random.choice(["window", "rows", "columns", "stride", "xor", "vector", "matrix"]))
    widths = [w for w in (2, 4, 8, 16) if w * size in (8, 16) and columns % w == 0]
    if what in ("vector", "matrix") and not widths:
        what = "columns"
    stride = int(random.choice([2, 3, 5, 8, 16, columns + 1]))
    width = int(random.choice(widths)) if widths else 1
    of = {
        "window": ("ld", 1, f"(lane + step) % {elements}"),
        "rows": ("ld", 1, f"(step * 32 + lane) % {elements}"),
        "columns": ("ld", 1, f"(lane % {rows} * {columns} + step) % {elements}"),
        "stride": ("ld", 1, f"(lane * {stride} + step / 2) % {elements}"),
        "xor": ("ld", 1, f"(lane % {rows} * {columns} + (lane ^ step)) % {elements}"),
        "vector": ("ld", width, f"(lane % {rows} * {columns} + step * {width}) % {elements}"),
    }
    if what != "matrix":
        return of[what]
    if 16 // size not in widths:
        return of["vector"]
    return "ldmatrix", 16 // size, f"(lane % {rows} * {columns} + step * {16 // size}) % {elements}"


def cheap_layouts(problem: Problem) -> Iterator[Numbers]:
    """The addresses of rows as they are, of every padding and of every swizzle without gaps."""
    x = np.arange(problem.size)
    for by in range(max(1, problem.serving.banks * 4 // problem.element_bytes)):
        yield x + x // problem.columns * by
    bits = (problem.size - 1).bit_length()
    for count in range(1, bits + 1):
        for shift in range(count, bits + 1):
            for base in range(bits - shift + 1):
                mask = (1 << count) - 1 << base
                for moved in ((x >> shift) & mask, (x & mask) << shift):
                    if (x ^ moved).max() < problem.size:
                        yield x ^ moved


def cost_of(problem: Problem, addresses: Numbers) -> float | None:
    """All wavefronts of the tile by weight; None where a vector is torn."""
    total = 0.0
    for access in problem.accesses:
        busy = access.elements[:, :, 0] != IDLE
        lies = addresses[np.maximum(access.elements, 0)]
        whole = (lies == lies[:, :, :1] + np.arange(access.width)).all(axis=2)
        if not (whole & (lies[:, :, 0] % access.width == 0) | ~busy).all():
            return None
        width = access.width * problem.element_bytes
        at = lies[:, :, 0] * problem.element_bytes
        found = serve(problem.serving, at, width, SERVED_AS[access.kind], busy)
        total += access.weight * int(found.wavefronts.sum())
    return total


def cheap_best(problem: Problem) -> float | None:
    costs = (cost_of(problem, each) for each in cheap_layouts(problem))
    return min((cost for cost in costs if cost is not None), default=None)
