"""How a warp shares out a box of an array: which element each lane takes in which round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, Var, lift
from warploom.sketch.term.ir import Shape

Index: TypeAlias = Expr | int
LaneShuffle: TypeAlias = Callable[..., Any]
TILE_FILE = __file__  # frames of this file are not the user's


class Tile:
    """A box of an array, shared out over the lanes in rounds of `stride` elements, axis by axis."""

    def __init__(
        self,
        lanes: tuple[tuple[str, int], ...],
        loop: Callable[[int, str], Iterator[Var]],
        shape: Shape,
        rounds: int | Shape,
        stride: int | Shape,
        offset: int | Shape,
    ) -> None:
        self.lanes, self.loop = lanes, loop
        axes = len(self.lanes)
        if len(shape) != axes:
            raise CheckError(
                f"a warp of {axes} axes copies arrays of {axes} axes, not {len(shape)}"
            )
        self.rounds = per_axis(rounds, axes)
        self.strides = per_axis(stride, axes)
        self.offsets = per_axis(offset, axes)
        for count, step, (_, width), length, start in zip(
            self.rounds, self.strides, self.lanes, shape, self.offsets, strict=True
        ):
            if count < 1 or step < 1 or start < 0:
                raise CheckError("rounds and strides are at least 1, offsets at least 0")
            if start + (count - 1) * step * width >= length:
                raise CheckError(
                    f"{count} rounds of {width} lanes with stride {step} pass {length} elements",
                    advice="the last round must begin inside the array",
                )

    @property
    def register_shape(self) -> Shape:
        return tuple(r * s for r, s in zip(self.rounds, self.strides, strict=True))

    def walk(
        self, shuffle: LaneShuffle | None
    ) -> Iterator[tuple[tuple[Expr, ...], tuple[Expr, ...]]]:
        """The loops over rounds and strides, with the place in memory and the register."""
        yield from self._axis(shuffle, [], [])

    def _axis(
        self, shuffle: LaneShuffle | None, counters: list[Expr], within: list[Expr]
    ) -> Iterator[tuple[tuple[Expr, ...], tuple[Expr, ...]]]:
        axes, done = len(self.lanes), len(counters)
        if done < axes:
            for i in self._count(self.rounds[done], "j"):
                yield from self._axis(shuffle, [*counters, i], within)
        elif len(within) < axes:
            for s in self._count(self.strides[len(within)], "s"):
                yield from self._axis(shuffle, counters, [*within, s])
        else:
            yield self._place(shuffle, counters, within), self._register(counters, within)

    def _count(self, count: int, name: str) -> Iterator[Expr]:
        if count == 1:
            yield Const(0)
        else:
            yield from self.loop(count, name)

    def _place(
        self, shuffle: LaneShuffle | None, counters: list[Expr], within: list[Expr]
    ) -> tuple[Expr, ...]:
        lanes: tuple[Index, ...] = tuple(Var(name) for name, _ in self.lanes)
        if shuffle is not None:
            lanes = as_tuple(shuffle(*lanes, *counters))
        parts = zip(self.offsets, counters, self.lanes, lanes, self.strides, within, strict=True)
        return tuple(
            _sum(start, _times(_sum(_times(count, size), lift(lane)), stride), s)
            for start, count, (_, size), lane, stride, s in parts
        )

    def _register(self, counters: list[Expr], within: list[Expr]) -> tuple[Expr, ...]:
        parts = zip(counters, self.strides, within, strict=True)
        return tuple(_sum(_times(count, stride), s) for count, stride, s in parts)


def _sum(*parts: Expr | int) -> Expr:
    kept = [lift(part) for part in parts if lift(part) != Const(0)]
    result = kept[0] if kept else Const(0)
    for part in kept[1:]:
        result = result + part
    return result


def _times(expr: Expr, factor: int) -> Expr:
    return expr if factor == 1 or expr == Const(0) else expr * factor


def as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def per_axis(value: int | Shape, axes: int) -> Shape:
    if isinstance(value, (int, np.integer)):
        return (int(value),) * axes
    if len(value) != axes:
        raise CheckError(f"{axes} numbers are wanted, one for each axis, not {len(value)}")
    return tuple(map(int, value))
