"""Random filled programs [lanes, registers], what they mean on numbers, and what kernels make."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warploom.kernel.dtype import DType, i64
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.runtime import load
from warploom.sketch.build import Sketch, Value
from warploom.sketch.code.memory import inputs_of
from warploom.sketch.code.program import lower_program
from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Apply, Goal, Program, Undefined, Zero
from warploom.sketch.term.numeric import Assignment, evaluate_numbers
from warploom.sketch.term.read import live_steps, read

OPERATORS = ("+", "*", "min", "max", "&", "|", "^")
HOLES = ("row_xforms", "col_xforms", "row_rots", "col_rots", "row_linear", "col_linear")


@dataclass(frozen=True)
class Filled:
    program: Program
    fill: dict[int, int]


def random_program(seed: int) -> Filled | None:
    """A program whose goal is what it holds; None if that is not defined everywhere."""
    draw = random.Random(seed)
    lanes, registers = draw.choice((2, 4, 8, 12, 32)), draw.randint(1, 4)
    s = Sketch(f"random {seed}")
    value = _loaded(s, draw, lanes, registers)
    operator = draw.choice(OPERATORS)  # of all folds, so that zeros have one meaning
    for _ in range(draw.randint(1, 4)):
        value = _step(s, draw, value, lanes, operator)
    if draw.random() < 0.7:
        value = s.fold("identity", value, operator=operator)
    if draw.random() < 0.3:
        table = _shuffled(draw, np.arange(_cells(value)))
        value = s.gather(table, value, shape=(_cells(value),))
    return _closed(s, draw, value)


def _closed(s: Sketch, draw: random.Random, last: Value) -> Filled | None:
    s.goal(np.zeros(last.shape, np.int64))
    program = s.program()
    fill = {hole: draw.randrange(_options(program, hole)) for hole in program.holes}
    held = evaluate(program, fill)[-1]
    if any(isinstance(term, Undefined | Zero) for term in held):
        return None
    goal = Goal(program.steps[-1].shape, held)
    return Filled(replace(program, goals=(goal,)), fill)


def _options(program: Program, hole: int) -> int:
    step = program.steps[hole]
    assert isinstance(step, Apply)
    return len(step.gathers)


def _cells(value: Value) -> int:
    return int(np.prod(value.shape))


def _shuffled(draw: random.Random, numbers: Any) -> Any:
    listed = numbers.tolist()
    draw.shuffle(listed)
    return np.array(listed)


def _loaded(s: Sketch, draw: random.Random, lanes: int, registers: int) -> Value:
    cells = lanes * registers
    match draw.randrange(3):
        case 0:
            return s.apply("load_rep", s.input("x", cells), shape=(lanes, registers))
        case 1:
            return s.literal("x", _shuffled(draw, np.arange(cells)).reshape(lanes, registers))
        case _:
            longer = s.input("x", cells + 3)
            table = [draw.randrange(cells + 3) for _ in range(cells)]
            return s.gather(np.array(table).reshape(lanes, registers), longer)


def _step(s: Sketch, draw: random.Random, value: Value, lanes: int, operator: str) -> Value:
    registers = _cells(value) // lanes
    match draw.randrange(7):
        case 0 | 1 if registers > 1:
            return s.hole(draw.choice(HOLES), value)
        case 2 if registers > 1:
            return s.hole("cond_keep_no_consts", value)
        case 3:
            # Any register of any lane, now and then zero: needs several shuffles.
            low = -1 if draw.random() < 0.5 else 0
            table = [draw.randint(low, _cells(value) - 1) for _ in range(lanes * registers)]
            return s.gather(np.array(table).reshape(lanes, registers), value)
        case 4 if registers % 2 == 0:
            shape = (lanes, registers // 2, 2)
            return s.fold("reshape", value, shape=shape, operator=operator)
        case 5:
            own = np.arange(lanes)[:, None] * registers
            within = [draw.randrange(registers) for _ in range(lanes * 2)]
            return s.gather(own + np.array(within).reshape(lanes, 2), value)
        case _:
            turned = (np.arange(lanes)[:, None] + np.arange(registers)) % lanes
            other = s.gather(turned * registers + np.arange(registers), value)
            both = s.apply("stack", value, other)
            return s.apply("reshape", both, shape=(lanes, 2 * registers))


def expected(filled: Filled, numbers: dict[int, list[int]], tiles: int) -> Any:
    """[tiles, cells] by the evaluator that defines the language."""
    program = read(filled.program, filled.program.goals[0]).program  # `fold` has its operator
    assignment = Assignment(numbers, np.dtype(np.int64), (), 0, frozenset(), tiles)
    return evaluate_numbers(program, filled.fill, assignment)[-1].values


def check_kernel(filled: Filled, seed: int, tiles: int, **options: Any) -> Kernel:
    """The kernel, run on whole tiles and, where it takes them, on a partial one."""
    dtype: DType = options.pop("dtype", i64)
    device = options.pop("device", "simulator")
    kernel = lower_program(filled.program, filled.fill, dtype=dtype, warps=1, **options)

    def launch(arguments: list[Any]) -> None:
        run(kernel, arguments) if device == "simulator" else load(kernel, device)(*arguments)

    draw = np.random.default_rng(seed)
    program = filled.program
    inputs = inputs_of(program, live_steps(program))
    arrays = {
        each.name: draw.integers(-9, 9, (tiles, len(each.symbols))).astype(dtype.numpy)
        for each in inputs
    }
    numbers = {
        symbol: arrays[each.name][:, at].tolist()
        for each in inputs
        for at, symbol in enumerate(each.symbols)
    }
    wanted = expected(filled, numbers, tiles).reshape(-1).astype(dtype.numpy)
    partial = not any("%" in repr(each) for each in kernel.requires)
    for length in {len(wanted), len(wanted) - 1 if partial else len(wanted)} - {0}:
        out = np.full(length, 77, dtype.numpy)
        given = [arrays[each.name].reshape(-1) for each in inputs]
        launch([length, *(len(each) for each in given), *given, out])
        assert np.array_equal(out, wanted[:length]), (program.name, length)
    return kernel
