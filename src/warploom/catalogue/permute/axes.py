"""Axes as calls give them: how many a tensor has, orders of them as numbers or by a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warploom.catalogue.permute.problem import MOST_AXES
from warploom.errors import CheckError, DeviceError
from warploom.index.ir import whole_number
from warploom.runtime.view import view

Axes = tuple[int, ...]
NAMES = {"transposed": 2, "channels_last": 3, "channels_first": 3}  # and the fewest axes


def named_axes(name: str, count: int) -> Axes:
    """The order that a name says, of so many axes.

    >>> named_axes("channels_last", 4), named_axes("channels_first", 4), named_axes("transposed", 3)
    ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1))
    """
    if name not in NAMES:
        raise CheckError(
            f"'{name:.40}' is no order of axes",
            advice=f"give numbers, or one of {', '.join(NAMES)}",
        )
    least = NAMES[name]
    if count < least:
        raise CheckError(f"a tensor of {count} axes has none to be {name}", advice="give numbers")
    *others, last = range(count)
    if name == "transposed":
        return (*others[:-1], last, others[-1])
    batch = tuple(others[: count > 3])  # of three axes, all are those of one image
    if name == "channels_last":
        return (*batch, *range(len(batch) + 1, count), len(batch))
    return (*batch, last, *others[len(batch) :])


def count_of(array: Any, name: str = "x") -> int:
    """How many axes a tensor has; what is none is refused by its name."""
    count = getattr(array, "ndim", None)
    if not isinstance(count, int):
        view(array, name)
        raise DeviceError(f"'{name}' does not tell its axes", advice="give a NumPy array of it")
    return count


def checked_axes(axes: Sequence[int] | str, count: int) -> Axes:
    """The axes as numbers from 0, each once."""
    if isinstance(axes, str):
        axes = named_axes(axes, count)
    try:
        given = [whole_number(each) for each in axes]
    except TypeError:
        given = [None]
    if any(each is None for each in given):
        raise CheckError(f"axes are whole numbers, not {axes!r:.60}", advice="as in (0, 2, 1)")
    order = tuple(int(each) + count * (int(each) < 0) for each in given if each is not None)
    if count > MOST_AXES:
        raise CheckError(
            f"a tensor of {count} axes", advice=f"at most {MOST_AXES}: reshape it to fewer"
        )
    if sorted(order) != list(range(count)):
        raise CheckError(
            f"{tuple(given)} is no order of the {count} axes of the tensor",
            advice=f"each of 0 to {count - 1} once" if count else "it has none: ()",
        )
    return order
