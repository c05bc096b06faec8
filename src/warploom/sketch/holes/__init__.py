"""What may fill a hole: the built-in gather functions by name, each a set of index tables.

`build` enumerates a built-in set, `custom` a user's own; both return a `GatherSet` of distinct
tables in order of first occurrence. Wrong input is a CheckError without a span.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from warploom.sketch.holes import condition, hvx, linear, permutation, simple, swizzle
from warploom.sketch.holes.call import Call, Option
from warploom.sketch.holes.common import Candidates, collect
from warploom.sketch.holes.custom import custom
from warploom.sketch.term.ir import GatherSet, Shape, size

__all__ = ["build", "custom", "known", "suggest"]

_FUNCTIONS: Mapping[str, Callable[[Call], Candidates]] = {
    "id": simple.identity,
    "identity": simple.identity,
    "reshape": simple.identity,
    "transpose": simple.transpose,
    "stack": simple.stack,
    "rot_idx": simple.rot_idx,
    "load_rep": simple.load_rep,
    "load_trunc": simple.load_trunc,
    "load_grid_2d": simple.load_grid_2d,
    "broadcast": simple.broadcast,
    **{
        f"{prefix}{name}{suffix}": function
        for name, function in (("xforms", swizzle.xforms), ("rots", swizzle.rots))
        for prefix in ("row_", "col_", "")
        for suffix in ("", "_no_group")
    },
    **{
        f"{function.__name__}{suffix}": function
        for function in (condition.reg_select, condition.cond_keep, condition.general_select)
        for suffix in ("", "_no_consts")
    },
    **{f"{prefix}linear": linear.linear for prefix in ("row_", "col_", "")},
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
    return collect(call, _FUNCTIONS[function](call))


def _check(call: Call) -> None:
    """What every function asks of its call."""
    for name in call.options:
        if name not in _OPTIONS:
            near = difflib.get_close_matches(name[:80], _OPTIONS, n=1, cutoff=0.5)
            advice = f"did you mean {near[0]}?" if near else f"options are {', '.join(_OPTIONS)}"
            call.fail(f"{call.function} has no option '{name[:80]}'", advice)
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
