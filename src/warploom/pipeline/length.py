"""Which shapes outputs have, given those of the inputs; shapes that do not fit are refused."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.errors import DeviceError
from warploom.sketch.code.need import Need, Shapes, needs_of
from warploom.sketch.code.tiling import Tiling, size_names
from warploom.sketch.term.ir import Shape


def output_shapes(tiling: Tiling, inputs: Mapping[str, Shape]) -> Shapes:
    """The largest outputs that these inputs are enough for, if nothing of them is left over."""
    needs = needs_of(tiling)
    for need in needs:
        _check_long_enough(need, inputs)
    shapes: Shapes = {}
    for output in tiling.outputs:
        axes = range(len(output.shape))
        own = [n for n in needs if n.output is output]
        shapes[output.name] = tuple(
            _length([n for n in own if n.out_axis == axis], inputs, size_names(output)[axis])
            for axis in axes
        )
    for need in needs:
        if need.out_axis is not None:
            _check_nothing_left(need, inputs, shapes[need.output.name][need.out_axis])
    return shapes


def _length(needs: list[Need], inputs: Mapping[str, Shape], name: str) -> int:
    if not needs or any(need.input.step[need.axis] == 0 for need in needs):
        raise DeviceError(f"'{name}' does not follow from the inputs", advice="give the output too")
    return min(_most(need, inputs[need.input.name][need.axis]) for need in needs)


def _most(need: Need, given: int) -> int:
    """The longest output for which an input of this length is enough."""
    assert need.out_axis is not None
    step, tile = need.input.step[need.axis], need.output.shape[need.out_axis]
    if given == 0:  # of nothing nothing is made
        return 0
    if need.rate is not None:
        up, down = need.rate
        return (given - (need.most - step)) * down // up
    return ((given - need.most) // step + 1) * tile


def _check_long_enough(need: Need, inputs: Mapping[str, Shape]) -> None:
    given, least = inputs[need.input.name][need.axis], need.at(1)
    if 0 < given < least:
        raise DeviceError(
            f"'{need.input.name}' has {given} elements{_along(need)}, but one element of "
            f"'{need.output.name}' needs {least}"
        )


def _check_nothing_left(need: Need, inputs: Mapping[str, Shape], length: int) -> None:
    """What is left over would be computed nowhere. But a tile may end in what nobody reads, and
    strided windows where less than a stride is left."""
    assert need.out_axis is not None
    given, used = inputs[need.input.name][need.axis], need.at(length)
    step, tile = need.input.step[need.axis], need.output.shape[need.out_axis]
    spare = max(0, step - need.most)
    if need.rate is not None and need.rate[1] == 1 and need.most > step:  # windows overlap
        spare = need.rate[0] - 1
    if given > used + spare:
        more = need.at(length + (1 if need.rate is not None else tile))
        raise DeviceError(
            f"'{need.input.name}' has {given} elements{_along(need)}, but only {used} are used, "
            f"for {length} of '{need.output.name}'",
            advice=f"give {used} or {more} elements, or pass the output, too",
        )


def _along(need: Need) -> str:
    return "" if len(need.input.shape) == 1 else f" along axis {need.axis}"
