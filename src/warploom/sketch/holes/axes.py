"""Which coordinate a hole moves, by which other, and along which axis it reads."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.sketch.holes.call import Call


@dataclass(frozen=True, slots=True)
class Axes:
    main: int
    second: int
    out: int


ROW = Axes(1, 0, 1)
COLUMN = Axes(0, 1, 0)


def axes_of(call: Call, usual: Axes | None) -> Axes:
    """The axes that the call names, or the usual ones of its function."""
    names = ("main", "second", "out")
    rank = len(call.in_shape)
    if any(name in call.options for name in names):
        axes = Axes(*(call.axis(name, rank) for name in names))
    elif usual is None:
        call.fail(
            f"{call.function} needs the options main, second and out",
            f"write {call.function}{{main=0,second=1,out=0}}, or use col_{call.function}",
        )
    elif rank < 2:
        call.fail(
            f"{call.function} needs an array of two or more dimensions, got {rank}",
            "name the axes: {main=0,second=0,out=0}",
        )
    else:
        axes = usual
    call.agree_but_for(axes.out)
    return axes


def axes_along_main(call: Call, usual: Axes | None) -> Axes:
    """The axes of a call that reads along its main one."""
    axes = axes_of(call, usual)
    if axes.out != axes.main:
        call.fail(
            f"{call.function} moves along its main axis {axes.main}, not along {axes.out}",
            f"write {{main={axes.out},second={axes.second},out={axes.out}}}",
        )
    return axes
