"""The algebra of shape:stride layouts as CuTe has it; what has no answer is refused.

A mode is one pair size:stride. Every function here takes and gives `Strided` layouts, whose meaning
as functions of numbers is what the operations are about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from warploom.errors import CheckError
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import Numbers, extended, values
from warploom.layout.language.ir import Strided, Tree, flat
from warploom.layout.language.show import show

Mode: TypeAlias = tuple[int, int]
# Which modes an operation goes into: a tree, whose numbers say nothing.
Profile: TypeAlias = "Tree | None"


def modes(layout: Strided) -> list[Mode]:
    return list(zip(flat(layout.shape), flat(layout.stride), strict=True))


def cosize(layout: Strided) -> int:
    """How many places a layout reaches over: one more than its highest value, if no stride is
    negative.

    >>> cosize(Strided((4, 8), (8, 1)))
    32
    """
    return 1 + sum((size - 1) * abs(stride) for size, stride in modes(layout))


def coalesce(layout: Strided, profile: Profile = None) -> Strided:
    """The same function of numbers, with as few modes as there can be. With a profile, which is a
    tree of any numbers, each mode of the profile is coalesced by itself, and further modes stay.

    >>> show(coalesce(Strided((2, (1, 6)), (1, (6, 2)))))
    '12:1'
    >>> show(coalesce(Strided((2, (1, 6)), (1, (6, 2))), (1, 1)))
    '(2,6):(1,2)'
    """
    if not isinstance(profile, tuple):
        return _layout(_merged(modes(layout)))
    parts = top_modes(layout)
    if len(profile) > len(parts):
        raise CheckError(f"a profile of {len(profile)} modes, and {show(layout)} has {len(parts)}")
    own = [coalesce(part, each) for part, each in zip(parts, profile, strict=False)]
    return joined(*own, *parts[len(profile) :])


def filtered(layout: Strided) -> Strided:
    """The modes that change the value, coalesced."""
    return _layout(_merged([mode for mode in modes(layout) if mode[1]]))


def composition(outer: Strided, inner: Strided) -> Strided:
    """outer ∘ inner with the shape of inner, where that is a layout of shapes and strides.

    >>> show(composition(Strided((6, 2), (8, 2)), Strided((4, 3), (3, 1))))
    '((2,2),3):((24,2),8)'
    """
    check(outer)
    wanted = extended(outer, values(check(inner)))
    result = _composed(outer, inner.shape, inner.stride)
    if result is not None:
        layout = Strided(*result)
        if np.array_equal(values(check(layout)), wanted):
            return layout
    raise CheckError(
        f"{show(outer)} after {show(inner)} is no layout of shapes and strides",
        advice="sizes and strides of the inner layout should divide the sizes of the outer",
    )


def _composed(outer: Strided, shape: Tree, stride: Tree) -> tuple[Tree, Tree] | None:
    """Mode by mode of inner: what the outer layout makes of each."""
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        parts = [_composed(outer, *part) for part in zip(shape, stride, strict=True)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return tuple(shape for shape, _ in known), tuple(stride for _, stride in known)
    assert isinstance(shape, int)
    assert isinstance(stride, int)
    found = recognised(extended(outer, np.arange(shape, dtype=np.int64) * stride))
    if found is None:
        return None
    return (shape, 0) if not found else (_layout(found).shape, _layout(found).stride)


def recognised(table: Numbers) -> list[Mode] | None:
    """The modes, none of size 1, of the layout that has these values; None if none has.

    >>> recognised(np.array([0, 24, 2, 26]))
    [(2, 24), (2, 2)]
    """
    found: list[Mode] = []
    if table[0] != 0:
        return None
    while len(table) > 1:
        stride = int(table[1])
        steps = np.flatnonzero(table != stride * np.arange(len(table)))
        run = int(steps[0]) if steps.size else len(table)
        size = max(d for d in range(1, run + 1) if len(table) % d == 0)
        if size == 1:
            return None
        rows = table.reshape(-1, size)
        if not np.array_equal(rows - rows[:, :1], np.broadcast_to(table[:size], rows.shape)):
            return None
        found.append((size, stride))
        table = rows[:, 0]
    return _merged(found)


def complement(layout: Strided, size: int) -> Strided:
    """The ordered layout that leads from one copy of the layout to the next, up to `size`.

    No sum of a value of each is met twice. Where every stride is a multiple of what smaller
    strides cover, the sums are all numbers; where not, some are left out, as in CuTe.

    >>> show(complement(Strided((2, 2), (1, 6)), 24))
    '(3,2):(2,12)'
    >>> show(complement(Strided((4, 6), (1, 6)), 72))
    '2:36'
    """
    if size < 1:
        raise CheckError(f"a complement is within at least one number, not {size}")
    check(layout)
    covered, found = 1, []
    moving = [(stride, size) for size, stride in modes(layout) if stride and size > 1]
    for stride, there in sorted(moving):
        if stride < covered:
            raise CheckError(
                f"{show(layout)} has no complement: two of its values may be one",
                advice="a stride is at least what the modes of smaller strides cover",
            )
        found.append((stride // covered, covered))
        covered = there * stride
    found.append((-(-size // covered), covered))
    return _layout(_merged(found))


def joined(*parts: Strided) -> Strided:
    """Layouts side by side, each one mode of the result."""
    return Strided(tuple(part.shape for part in parts), tuple(part.stride for part in parts))


def right_inverse(layout: Strided) -> Strided:
    """R with layout(R(i)) = i for a run of numbers from 0; the longest, if no values meet.

    >>> show(right_inverse(Strided((4, 8), (8, 1))))
    '(8,4):(4,1)'
    """
    found, reached = [], 1
    for stride, size, start in _by_stride(layout):
        if stride == reached:
            found.append((size, start))
            reached = size * stride
    return _layout(_merged(found))


def left_inverse(layout: Strided) -> Strided:
    """L with layout(L(layout(i))) = layout(i), so L(layout(i)) = i where no values meet; what it
    is elsewhere is not said.

    >>> show(left_inverse(Strided(4, 2)))
    '(2,4):(0,1)'
    >>> show(left_inverse(Strided((2, 4), (0, 2))))
    '(2,4):(0,2)'
    """
    found, before, number, last = [], 1, 0, 1
    for stride, size, start in _by_stride(layout):
        step = abs(stride)
        if step < before or step % before:
            break
        found.append((step // before, number))
        before, number, last = step, start if stride > 0 else -start, size
    else:
        inverse = _layout(_merged([*found, (last, number)]))
        table = values(layout)
        if np.array_equal(extended(layout, extended(inverse, table)), table):
            return inverse
    raise CheckError(
        f"{show(layout)} has no left inverse that is a layout",
        advice="two numbers have one value, or strides are no multiples of one another",
    )


def _by_stride(layout: Strided) -> list[tuple[int, int, int]]:
    """Stride, size and the number at which a mode begins, the smallest strides first; modes that
    change nothing are left out."""
    check(layout)
    starts = np.cumprod([1, *flat(layout.shape)]).tolist()
    every = zip(modes(layout), starts, strict=False)
    moving = [(stride, size, start) for (size, stride), start in every if size > 1 and stride]
    return sorted(moving, key=lambda mode: (abs(mode[0]), mode))


def top_modes(layout: Strided, count: int | None = None) -> list[Strided]:
    """The modes at the top of the tree, each a layout; a number by itself is one mode."""
    shape, stride = layout.shape, layout.stride
    parts = [layout]
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        parts = [Strided(*part) for part in zip(shape, stride, strict=True)]
    if count is not None and len(parts) != count:
        raise CheckError(f"{show(layout)} does not have {count} modes")
    return parts


def _merged(given: Iterable[Mode]) -> list[Mode]:
    """Modes of size 1 left out, neighbours joined where the second goes on from the first."""
    found: list[Mode] = []
    for size, stride in given:
        if size == 1:
            continue
        if found and found[-1][0] * found[-1][1] == stride:
            found[-1] = (found[-1][0] * size, found[-1][1])
        else:
            found.append((size, stride))
    return found


def _layout(given: list[Mode]) -> Strided:
    if not given:
        return Strided(1, 0)
    if len(given) == 1:
        return Strided(*given[0])
    return Strided(tuple(size for size, _ in given), tuple(stride for _, stride in given))
