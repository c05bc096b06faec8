"""Our algebra against another's: equal functions, or both refuse; each known difference by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from bench.common.narrowed import present

from warploom.errors import CheckError
from warploom.layout.language import algebra, tiling
from warploom.layout.language.evaluate import extended, values
from warploom.layout.language.ir import Strided, Tree, product

SIZES = [1, 2, 2, 3, 4, 4, 6, 8]
STRIDES = [0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
OPERATIONS = (
    "coalesce", "composition", "complement", "divide", "product", "right", "left",
    "divide by mode", "zipped divide", "tiled divide", "zipped product", "tiled product",
)  # fmt: skip


def random_layout(random: np.random.Generator) -> Strided:
    def tree(depth: int) -> tuple[Tree, Tree]:
        if depth == 0 or random.random() < 0.5:
            return int(random.choice(SIZES)), int(random.choice(STRIDES))
        parts = [tree(depth - 1) for _ in range(random.integers(1, 4))]
        return tuple(shape for shape, _ in parts), tuple(stride for _, stride in parts)

    while product((found := Strided(*tree(2))).shape) > 1024:
        pass
    return found


def theirs(module: ModuleType, operation: str, a: Strided, b: Strided, size: int) -> Any:
    def layout(of: Strided) -> Any:
        return module.Layout(of.shape, of.stride)

    compose = getattr(module, "composition", None) or module.compose
    tilers = tuple(map(layout, tiler_of(a, b)))
    return {
        "coalesce": lambda: module.coalesce(layout(a)),
        "composition": lambda: compose(layout(a), layout(b)),
        "complement": lambda: module.complement(layout(a), size),
        "divide": lambda: module.logical_divide(layout(a), layout(b)),
        "product": lambda: module.logical_product(layout(a), layout(b)),
        "right": lambda: module.right_inverse(layout(a)),
        "left": lambda: module.left_inverse(layout(a)),
        "divide by mode": lambda: module.logical_divide(layout(a), tilers),
        "zipped divide": lambda: module.zipped_divide(layout(a), tilers),
        "tiled divide": lambda: module.tiled_divide(layout(a), tilers),
        "zipped product": lambda: module.zipped_product(layout(a), tilers),
        "tiled product": lambda: module.tiled_product(layout(a), tilers),
    }[operation]()


def ours(operation: str, a: Strided, b: Strided, size: int) -> Strided:
    calls: dict[str, Callable[[], Strided]] = {
        "coalesce": lambda: algebra.coalesce(a),
        "composition": lambda: algebra.composition(a, b),
        "complement": lambda: algebra.complement(a, size),
        "divide": lambda: tiling.logical_divide(a, b),
        "product": lambda: tiling.logical_product(a, b),
        "right": lambda: algebra.right_inverse(a),
        "left": lambda: algebra.left_inverse(a),
        "divide by mode": lambda: tiling.logical_divide(a, tiler_of(a, b)),
        "zipped divide": lambda: tiling.zipped_divide(a, tiler_of(a, b)),
        "tiled divide": lambda: tiling.tiled_divide(a, tiler_of(a, b)),
        "zipped product": lambda: tiling.zipped_product(a, tiler_of(a, b)),
        "tiled product": lambda: tiling.tiled_product(a, tiler_of(a, b)),
    }
    return calls[operation]()


def tiler_of(a: Strided, b: Strided) -> tuple[Strided, ...]:
    """A tiler for the first mode, or for two, of what the second layout has."""
    parts = algebra.top_modes(b)[: min(2, len(algebra.top_modes(a)))]
    return tuple(parts)


def by_mode(operation: str, result: Strided) -> list[Strided]:
    """What was made of each mode: its tile, then which tile."""
    tops = algebra.top_modes(result)
    if operation == "divide by mode":
        return tops
    rests = algebra.top_modes(tops[1]) if operation.startswith("zipped") else tops[1:]
    tiles = algebra.top_modes(tops[0])
    return [algebra.joined(*each) for each in zip(tiles, rests, strict=False)]


def meaning(operation: str, a: Strided, b: Strided, size: int, result: Strided) -> bool:
    """Whether a result is what the operation is defined to be."""
    if " " in operation:
        kind = "divide" if "divide" in operation else "product"
        parts = zip(algebra.top_modes(a), tiler_of(a, b), by_mode(operation, result), strict=False)
        return all(meaning(kind, mode, tile, size, part) for mode, tile, part in parts)
    table = values(result).tolist()
    match operation:
        case "coalesce":
            return table == values(a).tolist()
        case "composition":
            return table == extended(a, values(b)).tolist()
        case "complement":
            there = set(values(algebra.filtered(a)).tolist())
            sums = [x + y for x in there for y in table]
            rising = all(x < y for x, y in pairwise(table))
            covered = max((count * step for count, step in algebra.modes(a)), default=1)
            whole = sums != [] and max(table) + max(1, covered) >= size
            return whole and len(set(sums)) == len(sums) and rising
        case "divide":
            tile = product(b.shape)
            inside = extended(a, values(b)).tolist()
            return table[:tile] == inside
        case "product":
            return table[: product(a.shape)] == values(a).tolist()
        case "right":
            return extended(a, values(result)).tolist() == list(range(len(table)))
        case _:
            image = values(a)
            return extended(a, extended(result, image)).tolist() == image.tolist()


def differences(name: str, operation: str, count: int, seed: int) -> Counter[str]:
    """How often the two agree, and how they differ."""
    module, random, seen = import_module(name), np.random.default_rng(seed), Counter[str]()
    for _ in range(count):
        a, b = random_layout(random), random_layout(random)
        size = int(random.integers(1, 200))
        try:
            there = theirs(module, operation, a, b, size)
            their = Strided(there.shape, there.stride) if there.shape != () else Strided(1, 0)
            values(their)
        except (AssertionError, ValueError, TypeError, ZeroDivisionError, NotImplementedError):
            their = None
        try:
            our = ours(operation, a, b, size)
        except CheckError:
            our = None
        if our is not None:
            assert meaning(operation, a, b, size, our), (operation, a, b, size)
        if our is None and their is None:
            seen["both refuse"] += 1
        elif our is None:
            right = meaning(operation, a, b, size, present(their))
            seen["only ours refuses, " + ("theirs is right" if right else "theirs is wrong")] += 1
        elif their is None:
            seen["only theirs refuses"] += 1
        else:
            seen[compared(operation, a, b, size, our, their)] += 1
    return seen


def compared(
    operation: str, a: Strided, b: Strided, size: int, our: Strided, their: Strided
) -> str:
    if values(our).tolist() == values(their).tolist():
        return "equal"
    if not meaning(operation, a, b, size, their):
        return "different, theirs is wrong"
    if operation == "left":  # outside the image every value is as good as another
        return "equal on the image"
    if operation == "right":
        longer = product(our.shape) - product(their.shape)
        return "theirs is longer" if longer < 0 else "ours is longer" if longer else "as long"
    return "different"


# What may differ, and why. Wrong is theirs where it is not what the operation is defined to be: a
# size that does not divide is cut off, a complement leaves holes or meets the layout.
ALWAYS = {
    "equal",
    "both refuse",
    "only ours refuses, theirs is wrong",
    "different, theirs is wrong",
}
KNOWN: dict[str, set[str]] = {
    "coalesce": set(),
    "composition": {"only theirs refuses"},  # one element, or strides that happen to fit
    # A layout whose modes overlap has no complement for us; theirs may still fill a short run.
    "complement": {"only ours refuses, theirs is right"},
    "divide": {"only ours refuses, theirs is right", "only theirs refuses"},  # by the complement
    "product": {"only ours refuses, theirs is right", "only theirs refuses"},  # likewise
    "right": {"ours is longer"},  # after a mode of stride 0, or one whose values meet
    # Theirs refuses some layouts whose modes repeat a value; ours inverts them on their image.
    "left": {"only ours refuses, theirs is right", "only theirs refuses", "equal on the image"},
    **{
        operation: {"only ours refuses, theirs is right", "only theirs refuses"}
        for operation in OPERATIONS
        if " " in operation
    },
}
