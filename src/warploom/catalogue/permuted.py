"""Views without gaps, whose leading axes lie in memory in another order: taken as they lie.

x[a, b, i], in memory (b, a, i)   →   the kernel on (b, a, i)   →   y[a, b, j], in memory (b, a, j)

What a kernel is about are the last axes of its arrays; in which order it does what is in front of
them is nobody's business, so nothing is copied, and outputs lie in memory as the inputs do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warploom.errors import DeviceError
from warploom.runtime.plan import Plan
from warploom.runtime.view import View

Order = tuple[int, ...]


def permuted(
    arrays: Mapping[str, View], inner: Mapping[str, int]
) -> tuple[dict[str, View], Order] | None:
    """The arrays as they lie in memory, and in which order their leading axes are taken then; None
    if all of them are as they should be, or some cannot be taken so. `inner` says how many of the
    last axes of an array a kernel is about; arrays that it does not name stay as they are."""
    about = {name: each for name, each in arrays.items() if name in inner}
    if all(each.contiguous for each in arrays.values()):
        return None
    outer: Order | None = None
    for name, each in about.items():
        found = _order(each, inner[name])
        if found is None:
            return None
        leading = found[: len(found) - inner[name]]
        if outer is not None and outer != leading:
            raise DeviceError(
                f"'{name}' does not lie in memory as the other arrays do",
                advice="make a contiguous copy of one of them first",
            )
        outer = leading
    if outer is None:
        return None
    turned = {name: _taken(each, order_of(outer, inner[name])) for name, each in about.items()}
    return {**arrays, **turned}, outer


def order_of(outer: Order, inner: int) -> Order:
    return (*outer, *range(len(outer), len(outer) + inner))


def _order(view: View, inner: int) -> Order | None:
    """The axes in memory order, the last ones where they are; None if there are gaps then."""
    strides = view.strides
    count = len(view.shape) - inner
    if strides is None or count < 0:
        return None
    # An axis of one element lies anywhere; those that are alike keep their order.
    leading = sorted(range(count), key=lambda axis: -strides[axis] if view.shape[axis] > 1 else 0)
    order = (*leading, *range(count, len(view.shape)))
    expected = 1
    for axis in reversed(order):
        if view.shape[axis] > 1 and strides[axis] != expected:
            return None
        expected *= view.shape[axis]
    return order


def _taken(view: View, order: Order) -> View:
    host = None if view.host is None else view.host.transpose(order)
    shape = tuple(view.shape[axis] for axis in order)
    return replace(view, shape=shape, contiguous=True, host=host)


@dataclass(frozen=True, slots=True)
class Permuted:
    """A plan of arrays as they lie in memory, on those that were given: in which order the axes of
    each argument are taken, and those of each output were; None where they stay."""

    plan: Plan
    orders: tuple[Order | None, ...]
    outputs: tuple[Order, ...]

    def __call__(self, arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
        pairs = zip(arguments, self.orders, strict=True)
        found = self.plan([_turned(each, order) for each, order in pairs], pointers, stream)
        several = found if isinstance(found, tuple) else (found,)
        turned = tuple(
            _turned(each, _inverse(order))
            for each, order in zip(several, self.outputs, strict=True)
        )
        return turned[0] if len(turned) == 1 else turned


def _turned(array: Any, order: Order | None) -> Any:
    if order is None:
        return array
    return array.permute(order) if hasattr(array, "permute") else array.transpose(order)


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))
