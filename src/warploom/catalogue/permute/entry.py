"""A permutation for fixed axes and any sizes, as a kernel of the catalogue: text to paste.

    y[i0, i1, …] = x[…]   →   tiles of 32 × 32 elements through shared memory, or rows as they lie

What `warploom.permute` launches is chosen by sizes and strides; this is one kernel for all of them,
simple enough to read. The tile's layout is the solver's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Fit, Parameter, Shapes, Values, listed
from warploom.catalogue.layout import check_block, element_type
from warploom.catalogue.permute.frame import Placed, placed
from warploom.catalogue.permute.problem import MOST_AXES
from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Expr, Var, lift
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel

TILE, LANES = 32, 32
EACH = 4  # elements of a thread where rows stay whole


def axes_of(text: str) -> tuple[int, ...]:
    """The order of axes that a text says, as in `2,0,1`."""
    try:
        axes = tuple(int(each) for each in text.split(","))
    except ValueError:
        axes = ()
    if not axes or sorted(axes) != list(range(len(axes))) or len(axes) > MOST_AXES:
        raise CheckError(
            f"'{text:.40}' is no order of axes",
            advice=f"write each of 0, 1, … once, up to {MOST_AXES} of them, as in axes=2,0,1",
        )
    return axes


@lru_cache(maxsize=16)
def tile_layout(bytes: int) -> Placed:
    """Rows of a tile stored by one warp each, columns loaded."""
    cells = np.arange(TILE * TILE).reshape(TILE, TILE)
    return placed(TILE, TILE, bytes, cells[:, :, None], cells.T[:, :, None])


def permutation(axes: str, dtype: str, block: int) -> Kernel:
    order = axes_of(axes)
    check_block(block)
    k = Builder("permute_" + "".join(map(str, order)), block=block, doc=_what(order, dtype))
    moved = _Moved(k, order, block, element_type(dtype))
    if order[-1] == len(order) - 1:
        moved.rows()
    else:
        moved.tiles()
    return k.done(predicate=True)


def _what(order: tuple[int, ...], dtype: str) -> str:
    given = ", ".join(f"i{axis}" for axis in range(len(order)))
    taken = ", ".join(f"i{axis}" for axis in order)
    return (
        f"Moves elements of {dtype}: y[{taken}] = x[{given}].\n"
        "n are sizes, x_step and y_step how far apart neighbours along an axis of x lie, by axes"
        " of x."
    )


class _Moved:
    """The kernel of an order, as it is written."""

    def __init__(self, k: Builder, order: tuple[int, ...], block: int, kind: DType) -> None:
        self.k, self.order, self.block, self.kind = k, order, block, kind
        axes = range(len(order))
        self.sizes = [k.scalar(f"n{axis}") for axis in axes]
        self.reads, self.writes = (
            [k.scalar(f"{way}_step{axis}") for axis in axes] for way in ("x", "y")
        )
        self.outer, self.total = k.scalar("outer"), k.scalar("total")
        for each in (*self.sizes, self.outer, self.total):
            k.require(each.ge(1))
        self.x = k.array("x", kind, self.total, const=True)
        self.y = k.array("y", kind, self.total)

    def rows(self) -> None:
        """Rows that stay whole: elements in the order of y."""
        k, block = self.k, self.block
        k.grid(ceil_div(self.total, block * EACH))
        k.comment("elements in the order of y, which are side by side in x, too")
        held = k.registers("held", self.kind, EACH)
        with k.loop("n", EACH) as n:
            at = k.let("at", (k.block_x * EACH + n) * block + k.thread)
            steps = self._digits(at, list(self.order))
            held[n] = self.x.at(self._offset(self.reads, steps), when=at.lt(self.total))
        with k.loop("n", EACH) as n:
            at = k.let("at", (k.block_x * EACH + n) * block + k.thread)
            self.y.put(at, held[n], when=at.lt(self.total))

    def tiles(self) -> None:
        """Tiles along the last axis of x and the last one of y; all other axes are counted out."""
        k, layout = self.k, tile_layout(self.kind.bytes)
        p, q = len(self.order) - 1, self.order[-1]
        across, along = (ceil_div(self.sizes[axis], TILE) for axis in (p, q))
        k.grid(across * along, self.outer)
        k.comment(layout.says)
        first_q = k.let("first_q", k.block_x % along * TILE)
        first_p = k.let("first_p", k.block_x // along * TILE)
        steps = self._digits(k.block_y, [axis for axis in self.order if axis not in (p, q)])
        memory = k.shared("memory", self.kind, layout.slots)
        rows = self.block // LANES
        line, lane = k.let("line", k.thread // LANES), k.let("beside", k.thread % LANES)
        times = -(-TILE // rows)
        held = k.registers("held", self.kind, times)
        with k.loop("n", times) as n:
            own = k.let("own", line + n * rows)
            a, b = k.let("a", first_p + lane), k.let("b", first_q + own)
            inside = a.lt(self.sizes[p]).and_(b.lt(self.sizes[q])).and_(own.lt(TILE))
            held[n] = self.x.at(self._offset(self.reads, {**steps, p: a, q: b}), when=inside)
        with k.loop("n", times) as n:
            own = k.let("own", line + n * rows)
            with k.when(own.lt(TILE)):
                memory.put(layout.at(own, lane), held[n])
        k.barrier()
        got = k.register("got", self.kind)
        with k.loop("n", times) as n:
            own = k.let("own", line + n * rows)
            a, b = k.let("a", first_p + own), k.let("b", first_q + lane)
            with k.when(a.lt(self.sizes[p]).and_(b.lt(self.sizes[q])).and_(own.lt(TILE))):
                k.set(got, memory.at(layout.at(lane, own)))
                self.y.put(self._offset(self.writes, {**steps, p: a, q: b}), got)

    def _digits(self, number: Expr, axes: list[int]) -> dict[int, Expr]:
        """The step along each axis, of a number that counts them out, the last one fastest."""
        k, rest = self.k, number
        found: dict[int, Expr] = {}
        for axis in reversed(axes[1:]):
            found[axis] = k.let(f"i{axis}", rest % self.sizes[axis])
            rest = k.let(f"left{axis}", rest // self.sizes[axis])
        if axes:
            found[axes[0]] = rest
        return found

    def _offset(self, strides: list[Var], steps: dict[int, Expr]) -> Expr:
        total: Expr = lift(0)
        for axis in sorted(steps):
            total = total + steps[axis] * strides[axis]
        return total


# -- what it must compute --------------------------------------------------------------------------


def _scalars(order: tuple[int, ...], shape: Sequence[int]) -> dict[str, int]:
    """Sizes and strides of dense arrays."""
    moved = [shape[axis] for axis in order]
    found = {f"n{axis}": size for axis, size in enumerate(shape)}
    for axis in range(len(order)):
        found[f"x_step{axis}"] = math.prod(shape[axis + 1 :])
        found[f"y_step{axis}"] = math.prod(moved[order.index(axis) + 1 :])
    inner = {order[-1], len(order) - 1}
    found["outer"] = math.prod(size for axis, size in enumerate(shape) if axis not in inner)
    return {**found, "total": math.prod(shape)}


def _inputs(size: dict[str, int], random: np.random.Generator, **given: Any) -> Values:
    order = axes_of(str(given["axes"]))
    scalars = _scalars(order, [size[f"n{axis}"] for axis in range(len(order))])
    return {**scalars, "x": random.permutation(scalars["total"]).astype(str(given["dtype"]))}


def _moved(values: Values, **given: Any) -> Arrays:
    order, x = axes_of(str(given["axes"])), values["x"]
    assert isinstance(x, np.ndarray)
    shape = [int(values[f"n{axis}"]) for axis in range(len(order))]
    return {"y": np.ascontiguousarray(x.reshape(shape).transpose(order)).reshape(-1)}


def _sizes(**given: Any) -> list[dict[str, int]]:
    """Sides around a tile's, along the last axis of x and of y; others are short."""
    order = axes_of(str(given["axes"]))
    count = len(order)
    sides = [1, 2, 3, 31, 32, 33, 40, 64, 65]
    found = []
    for at, side in enumerate((*sides, 7, *sides, 5, 70)):
        other = sides[(at * 4 + 1) % len(sides)]
        shape = [2 + (at + axis) % 2 for axis in range(count)]
        shape[order[-1]], shape[-1] = other, side
        found.append({f"n{axis}": n for axis, n in enumerate(shape)})
    return found


def _fit(shapes: Shapes, axes: str, **_: Any) -> Fit:
    order, shape = axes_of(axes), shapes["x"]
    if len(shape) != len(order):
        raise DeviceError(
            f"'x' has the shape {shape}", advice=f"give an array of {len(order)} axes"
        )
    return Fit(_scalars(order, shape), {"y": tuple(shape[axis] for axis in order)})


_VARIANTS: tuple[dict[str, Parameter], ...] = (
    {},
    {"axes": "2,0,1", "dtype": "uint8"},
    {"axes": "0,2,1", "dtype": "int16", "block": 128},
    {"axes": "1,0,2", "dtype": "float64"},
    {"axes": "0,2,3,1"},
    {"axes": "3,1,0,2", "dtype": "int64", "block": 512},
)

ENTRIES = (
    Entry(
        name="permute",
        doc="a tensor with its axes in another order, for fixed axes and any sizes",
        parameters={"axes": "1,0", "dtype": "float32", "block": 256},
        build=permutation,
        inputs=_inputs,
        specification=_moved,
        sizes=_sizes,
        fit=_fit,
        tune=listed({"block": block} for block in (128, 256, 512)),
        variants=_VARIANTS,
    ),
)
