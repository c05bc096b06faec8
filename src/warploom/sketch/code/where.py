"""Which steps of a program lie in memory and which in the registers of lanes, and which can lie in
neither: all of that is known before a fill is, so it is refused before anything is searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from warploom.errors import CheckError, Span, UnsupportedError, spelled
from warploom.index.table import Ints
from warploom.kernel.dtype import DType
from warploom.kernel.ir import INTEGER_ONLY
from warploom.machine.record import CUDA
from warploom.sketch.code.memory import Input, inputs_of, view_of_literal
from warploom.sketch.term.gather import size
from warploom.sketch.term.ir import Apply, Literal, Program, Shape, Step, marked
from warploom.sketch.term.operator import says
from warploom.sketch.term.read import live_steps

WARP = CUDA.lanes


def check_layout(
    program: Program, lanes: int | None, steps: Mapping[str, int], dtype: DType
) -> None:
    """Refuses what no fill of the program could be lowered with."""
    found, live = lanes_of(program, lanes), live_steps(program)
    inputs = inputs_of(program, live)
    check_steps(inputs, steps)
    root, _ = stored(program, found)
    in_memory: set[int] = set()
    for position in (each for each in sorted(live) if each <= root):
        step = program.steps[position]
        if isinstance(step, Literal):
            view_of_literal(step, inputs)
            in_memory.add(position)
        elif set(step.args) <= in_memory and stays_in_memory(step, found):
            in_memory.add(position)
        else:
            check_in_lanes(step, found, dtype)
            for arg in step.args:
                if arg in in_memory:
                    check_read(program.steps[arg], found, step.span)
                    in_memory.remove(arg)  # from now on it lies in registers
    if root in in_memory:
        check_read(program.steps[root], found, program.steps[root].span)


def check_steps(inputs: tuple[Input, ...], steps: Mapping[str, int]) -> None:
    known = {each.name for each in inputs}
    for name, step in steps.items():
        if name not in known or not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise CheckError(
                f"a step of {step!r:.40} for '{str(name)[:40]}'",
                advice=f"the inputs are {', '.join(sorted(known))}; a step is a whole number,"
                " 0 or more",
            )


def lanes_of(program: Program, asked: int | None) -> int:
    """The length of the axis across lanes: as asked for, as marked, or the first one of most."""
    steps = [program.steps[at] for at in sorted(live_steps(program))]
    applied = [step for step in steps if isinstance(step, Apply)]
    moving = [step for step in applied if step.gathers.is_hole or step.fold is not None]
    lengths = Counter(step.gathers.out_shape[0] for step in moving or applied)
    asked = _marked_lanes(steps) if asked is None else asked
    if not lengths and asked is None:
        raise UnsupportedError(f"'{program.name}' has no step", advice="apply something")
    found = lengths.most_common(1)[0][0] if asked is None else asked
    if not isinstance(found, int) or not 1 <= found <= WARP:
        span = moving[0].span if moving else None
        raise UnsupportedError(
            f"an axis of {found!r:.40} lanes",
            span,
            f"a group of lanes has at most {WARP}: {spelled('give --lanes', 'pass lanes=')}",
        )
    return found


def _marked_lanes(steps: list[Step]) -> int | None:
    """How long the axis across lanes is by what the sketch itself says."""
    found: int | None = None
    for step in steps:
        if marked(step, "lanes"):
            shape = step.gathers.out_shape if isinstance(step, Apply) else step.shape
            if not shape or found not in (None, shape[0]):
                raise CheckError(
                    f"'{step.name}' of shape {list(shape)} is marked @lanes, but another array has"
                    f" {found} lanes",
                    step.span,
                )
            found = shape[0]
    return found


def stays_in_memory(step: Apply, lanes: int) -> bool:
    """Whether a step of what is in memory only says what is read from there, and is no exchange
    between registers."""
    if step.fold is not None or marked(step, "registers"):
        return False
    shapes = [*step.gathers.arg_shapes, step.gathers.out_shape]
    return not (step.gathers.is_hole and all(shape[:1] == (lanes,) for shape in shapes))


def check_in_lanes(step: Apply, lanes: int, dtype: DType) -> None:
    """Refuses a step that is computed in registers, but does not fit lanes or element type."""
    shape = step.gathers.out_shape
    if marked(step, "memory"):
        raise UnsupportedError(
            f"'{step.name}' is marked @memory, but a hole or a fold computes or reads it",
            step.span,
            "fixed gathers of inputs, and those at the end, can lie in memory",
        )
    if shape[0] != lanes:
        raise UnsupportedError(
            f"'{step.name}' of shape {list(shape)} does not lie in {lanes} lanes",
            step.span,
            f"its first axis must have length {lanes}; or {spelled('give --lanes', 'pass lanes=')}",
        )
    if step.fold is not None and size(shape[1:]) % step.fold:
        raise UnsupportedError(
            f"'{step.name}' folds across lanes", step.span, "a fold is within a lane"
        )
    if step.fold is not None and step.operator in INTEGER_ONLY and dtype.is_float:
        raise UnsupportedError(
            f"'{step.name}' {says(step.operator)} of {dtype.value}",
            step.span,
            "give dtype=, an integer type",
        )


def check_read(step: Step, lanes: int, span: Span | None) -> None:
    """Refuses what is in memory and would be loaded into lanes, but does not lie so."""
    shape: Shape = step.gathers.out_shape if isinstance(step, Apply) else step.shape
    if shape[0] != lanes:
        raise UnsupportedError(
            f"'{step.name}' of shape {list(shape)} is read by a hole or fold, and does not lie in"
            " lanes",
            span,
            f"its first axis must have length {lanes}; or {spelled('give --lanes', 'pass lanes=')}",
        )


def stored(program: Program, lanes: int) -> tuple[int, Ints]:
    """The step whose registers are stored, and which of its cells each element is.

    Fixed gathers at the end that do not lie in lanes only say where things are stored.
    """
    position = len(program.steps) - 1
    table = np.arange(size(program.steps[position].shape))
    while isinstance(step := program.steps[position], Apply):
        outside = step.shape[:1] != (lanes,) or marked(step, "memory")
        outside = outside and not marked(step, "registers")
        if step.fold is not None or step.gathers.is_hole or len(step.args) != 1 or not outside:
            break
        table = step.gathers.table(0)[table].astype(np.int64)
        if (table < 0).any():
            raise UnsupportedError(
                f"'{step.name}' holds zeros or undefined cells", step.span, "let it copy cells"
            )
        position = step.args[0]
    return position, table
