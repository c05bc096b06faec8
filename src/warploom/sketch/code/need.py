"""What a kernel of tiles asks of its arrays: which lengths of inputs go with lengths of outputs.

The specification says which elements of an input tile each element of an output tile needs. From
that follows, axis by axis, how long an input must be so that every element needed exists, also for
a last tile that is not whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.index.ir import Expr, Var
from warploom.kernel.build import ceil_div
from warploom.sketch.code.tiling import Array, Tiling, size_names
from warploom.sketch.term.ir import Fold, Shape, Symbol, Term, size

Shapes: TypeAlias = dict[str, Shape]


@dataclass(frozen=True, slots=True)
class Need:
    """Along `axis`, tile b of `input` begins at b·step; `elements[p]` of it are needed for the
    first p of the `tile` elements of the output's tile along `out_axis`.

    An input with more axes than the outputs has one tile along those in front: `out_axis` None.
    """

    input: Array
    axis: int
    output: Array
    out_axis: int | None
    elements: tuple[int, ...]

    @property
    def most(self) -> int:
        return self.elements[-1]

    @property
    def rate(self) -> tuple[int, int] | None:
        """u and d without a common divisor, if p elements of any output, whole tiles or not, need
        at most ⌈p·u / d⌉ + c of the input, and whole tiles that many."""
        if self.out_axis is None:
            return None
        step, tile = self.input.step[self.axis], self.output.shape[self.out_axis]
        up, down = step // gcd(step, tile), tile // gcd(step, tile)
        beyond = self.most - step
        counted = enumerate(self.elements[1:], start=1)
        within = all(n <= -(-p * up // down) + beyond for p, n in counted)
        return (up, down) if within else None

    def at(self, length: int) -> int:
        """How many elements the input must have for an output of this length."""
        if self.out_axis is None:
            return self.most
        step, tile = self.input.step[self.axis], self.output.shape[self.out_axis]
        if self.rate is not None:
            up, down = self.rate
            return -(-length * up // down) + self.most - step
        return (-(-length // tile) - 1) * step + self.most

    @property
    def condition(self) -> Expr:
        """What `at` asks for, as a condition on the kernel's parameters."""
        given = Var(size_names(self.input)[self.axis])
        if self.out_axis is None:
            return given.ge(self.most)
        wanted = Var(size_names(self.output)[self.out_axis])
        step, tile = self.input.step[self.axis], self.output.shape[self.out_axis]
        if self.rate is not None:
            up, down = self.rate
            needed = _times(wanted, up) if down == 1 else ceil_div(_times(wanted, up), down)
            return given.ge(_plus(needed, self.most - step))
        return given.ge(_plus(_times(ceil_div(wanted, tile), step), self.most - step))


def _times(expr: Expr, factor: int) -> Expr:
    return expr if factor == 1 else expr * factor


def _plus(expr: Expr, more: int) -> Expr:
    return expr if more == 0 else expr + more if more > 0 else expr - -more


def needs_of(tiling: Tiling) -> tuple[Need, ...]:
    """For each axis of each input and each output that needs something of it."""
    arrays = {array.name: array for array in (*tiling.inputs, *tiling.outputs)}
    made: list[Need] = []
    for (name, output_name), reached in _farthest(tiling).items():
        array, output = arrays[name], arrays[output_name]
        for axis in range(len(array.shape)):
            along = reached[axis].reshape(output.shape) + 1
            # The last axes of all arrays go together, and so on from the end.
            own = len(output.shape) - len(array.shape) + axis
            if not along.any():
                continue
            if own < 0:
                made.append(Need(array, axis, output, None, (0, int(along.max()))))
                continue
            others = tuple(a for a in range(len(output.shape)) if a != own)
            first = np.maximum.accumulate(along.max(axis=others))
            made.append(Need(array, axis, output, own, (0, *map(int, first))))
    return tuple(made)


def shapes_for(tiling: Tiling, outputs: Shapes, more: int = 0) -> Shapes:
    """The shapes of all arrays for outputs of these; inputs are as short as may be, and `more`."""
    shapes: Shapes = {a.name: a.shape for a in tiling.inputs if a.space == "constant"} | outputs
    for array in tiling.inputs:
        if array.space == "input":
            shapes[array.name] = (1 + more,) * len(array.shape)
    for need in needs_of(tiling):
        length = 0 if need.out_axis is None else shapes[need.output.name][need.out_axis]
        own = list(shapes[need.input.name])
        own[need.axis] = max(own[need.axis], need.at(length) + more)
        shapes[need.input.name] = tuple(own)
    return shapes


def scalars_of(tiling: Tiling, shapes: Shapes) -> dict[str, int]:
    """The kernel's parameters that hold lengths."""
    return {
        name: length
        for array in (*tiling.inputs, *tiling.outputs)
        if array.space != "constant"
        for name, length in zip(size_names(array), shapes[array.name], strict=True)
    }


def _farthest(tiling: Tiling) -> dict[tuple[str, str], list[npt.NDArray[np.int64]]]:
    """By input and output: along each axis of the input the last index each output cell needs."""
    owner: dict[int, tuple[str, tuple[int, ...]]] = {}
    for array in tiling.inputs:
        if array.space == "input":
            places = np.ndindex(array.shape)
            for number, where in zip(tiling.symbols[array.name], places, strict=True):
                owner[number] = array.name, where
    result: dict[tuple[str, str], list[npt.NDArray[np.int64]]] = {}
    symbols: dict[Term, frozenset[int]] = {}
    start = 0
    for output in tiling.outputs:
        for cell in range(size(output.shape)):
            for number in _symbols(tiling.goal.values[start + cell], symbols) & owner.keys():
                name, where = owner[number]
                new = [np.full(size(output.shape), -1) for _ in where]
                axes = result.setdefault((name, output.name), new)
                for axis, index in zip(axes, where, strict=True):
                    axis[cell] = max(axis[cell], index)
        start += size(output.shape)
    return result


def _symbols(term: Term, known: dict[Term, frozenset[int]]) -> frozenset[int]:
    """The symbols in a term."""
    if isinstance(term, Symbol):
        return frozenset((term.number,))
    if not isinstance(term, Fold):
        return frozenset()
    if term not in known:
        known[term] = frozenset().union(*(_symbols(item, known) for item in term.items))
    return known[term]
