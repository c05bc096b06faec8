"""What may fill a hole: the built-in gather functions by name, each a set of gathers.

`build` enumerates a built-in set, `custom` a user's own; both return a `GatherSet` of distinct
gathers in order of first occurrence. Wrong input is a CheckError without a span.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial

from warploom.errors import nearest
from warploom.sketch.holes import bits, hvx, linear, permutation, selection, simple, xform
from warploom.sketch.holes.axes import COLUMN, ROW, Axes
from warploom.sketch.holes.call import Call, Option
from warploom.sketch.holes.choice import choice_from_json, choice_to_json, choices_of
from warploom.sketch.holes.custom import custom
from warploom.sketch.term.gather import GatherSet, Shape, size

__all__ = [
    "build", "choice_from_json", "choice_to_json", "choices_of", "custom", "known", "suggest",
]  # fmt: skip

_USUAL: Mapping[str, Axes | None] = {"row_": ROW, "col_": COLUMN, "": None}

# Each takes a call and gives the set, with a family that knows what its rows mean.
_FUNCTIONS: Mapping[str, Callable[[Call], GatherSet]] = {
    **{
        name: partial(simple.single, make=make)
        for name, make in (
            ("id", simple.identity),
            ("identity", simple.identity),
            ("reshape", simple.identity),
            ("transpose", simple.transpose),
            ("stack", simple.stack),
            ("rot_idx", simple.rot_idx),
            ("load_rep", simple.load_rep),
            ("load_trunc", simple.load_trunc),
            ("load_grid_2d", simple.load_grid_2d),
            ("broadcast", simple.broadcast),
        )
    },
    **{
        f"{prefix}{name}{suffix}": partial(function, usual=usual, grouped=not suffix)
        for name, function in (("xforms", xform.xforms), ("rots", xform.rots))
        for prefix, usual in _USUAL.items()
        for suffix in ("", "_no_group")
    },
    **{
        f"{name}{suffix}": partial(function, constants=not suffix)
        for name, function in (
            ("reg_select", selection.reg_select),
            ("cond_keep", selection.cond_keep),
            ("general_select", selection.general_select),
        )
        for suffix in ("", "_no_consts")
    },
    **{f"{prefix}linear": partial(linear.linear, usual=usual) for prefix, usual in _USUAL.items()},
    **{f"{prefix}bits": partial(bits.bits, usual=usual) for prefix, usual in _USUAL.items()},
    "hvx_2x1": hvx.hvx_2x1,
    "hvx_2x2": hvx.hvx_2x2,
    "hvx_inplace": hvx.hvx_inplace,
    "grouped_perms": permutation.grouped_perms,
    "amd_swizzles_perm": permutation.amd_swizzles_perm,
}

# Every option of some function. One that another function reads is ignored, as published sketches
# may rely on; one that none reads is a slip of the pen.
_OPTIONS = (
    "axis", "consts", "dims", "fold_len", "fresh", "group", "in", "in_lim", "inplace", "l",
    "main", "out", "r", "restrict", "second", "swaps",
)  # fmt: skip


def known() -> tuple[str, ...]:
    """The names of all built-in functions."""
    return tuple(_FUNCTIONS)


def suggest(name: str) -> str | None:
    """The built-in function whose name is nearest, if any is near."""
    return next(iter(difflib.get_close_matches(name[:80], known(), n=1, cutoff=0.5)), None)


def build(
    function: str,
    options: Mapping[str, Option],
    arg_shapes: tuple[Shape, ...],
    out_shape: Shape,
) -> GatherSet:
    """All distinct gathers of a built-in function; `out_shape` includes a fold dimension."""
    call = Call(function, options, arg_shapes, out_shape)
    if function not in _FUNCTIONS:
        near = suggest(function)
        advice = f"did you mean {near}?" if near else f"known functions: {', '.join(known())}"
        call.fail(f"unknown function '{function[:80]}'", advice)
    _check(call)
    return _FUNCTIONS[function](call)


def _check(call: Call) -> None:
    """What every function asks of its call."""
    for name in call.options:
        if name not in _OPTIONS:
            advice = nearest(name, _OPTIONS, f"options are {', '.join(_OPTIONS)}", cutoff=0.5)
            call.fail(f"{call.function} has no option '{name[:80]}'", advice, name)
    if not call.arg_shapes:
        call.fail(f"{call.function} needs an argument", f"write {call.function}(x)")
    for shape in (*call.arg_shapes, call.out_shape):
        if not shape or min(shape) < 1 or len(shape) > 30:
            call.mismatch("a shape", "1 to 30 dimensions of at least 1 element each", shape)
    if max(sum(map(size, call.arg_shapes)), call.cells) > 1 << 27:
        call.fail(
            f"{call.function}: arrays of more than {1 << 27} elements are too large to search over",
            "use the size of one block, not of the whole problem",
        )
