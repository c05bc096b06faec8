"""How far single precision may be from what a program means: a bound on its rounding errors.

One number for all elements of a value: what each operation makes of the noise of its operands, seen
by moving them, and what it rounds itself. So a sum that cancels may be as far off as its parts are,
and a product of small numbers may not.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from warploom.loopnest.evaluate import FUNCTIONS, Evaluation, Numbers
from warploom.loopnest.ir import Compute, Instruction, Load, Operand, Result, Running, Scan, Store

ROUNDED = 2.0**-23  # of a number in single precision, at most


class Noise:
    """Bounds on the rounding errors of an evaluation that has its values."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._noise: dict[Instruction, float] = {}

    def outputs(self) -> dict[str, float]:
        """For each array that is stored."""
        found: dict[str, float] = {}
        for instruction in self._evaluation.program.instructions:
            match instruction.action:
                case Store(access, value):
                    found[access.array.name] = self._operand(value, instruction)[1]
                case Load():
                    self._noise[instruction] = ROUNDED * self._largest(instruction)
                case Scan() as scan:
                    given = [self._operand(scan.value, instruction)]
                    count = self._evaluation.sizes[scan.axis]
                    own = ROUNDED * self._largest(instruction)
                    self._noise[instruction] = self._folded(scan.op, given, count) + own
                case Compute(op, operands):
                    self._noise[instruction] = self._computed(instruction, op, operands)
        return found

    def _computed(self, instruction: Instruction, op: str, operands: tuple[Operand, ...]) -> float:
        given = [self._operand(each, instruction) for each in operands
                 if not isinstance(each, Running)]  # fmt: skip
        part = max(ROUNDED, instruction.dtype.rounding[0])
        own = part * self._largest(instruction)
        running = instruction.running
        if running is not None:
            start = self._noise[running.start] + ROUNDED * self._largest(running.start)
            return start + self._folded(op, given, self._iterations(instruction)) + own
        if op == "cast":
            return given[0][1] + own
        if op == "choose":  # which side it is does not move
            return max(noise for _, noise in given) + own
        return _moved(op, given) + own

    def _folded(self, op: str, given: list[tuple[Numbers, float]], iterations: int) -> float:
        """An iteration adds its noise, and rounds what was added so far."""
        if op in ("min", "max", "&", "|", "^"):
            return given[0][1]
        if op == "*":
            sizes = [float(np.abs(values).max(initial=1)) for values, _ in given]
            return iterations * (given[0][1] + ROUNDED) * max(1.0, sizes[0]) ** min(iterations, 64)
        each = _moved("*", given) if op == "fma" else given[0][1]
        sizes = [float(np.abs(values).max(initial=0)) for values, _ in given]
        return iterations * (each + ROUNDED * math.sqrt(iterations) * math.prod(sizes))

    def _iterations(self, instruction: Instruction) -> int:
        evaluation = self._evaluation
        whole, kept = evaluation.shape(instruction), evaluation.varying(instruction)
        return math.prod(w for w, k in zip(whole, kept, strict=True) if k == 1)

    def _operand(self, operand: Operand, instruction: Instruction) -> tuple[Numbers, float]:
        values = self._evaluation.operand(operand, instruction.dtype)
        if isinstance(operand, Result):
            return values, self._noise[operand.instruction]
        exact = values.dtype.kind != "f"
        return values, 0.0 if exact else ROUNDED * float(np.abs(values).max(initial=0))

    def _largest(self, instruction: Instruction) -> float:
        values = self._evaluation.values[instruction]
        if values.dtype.kind != "f":
            return 0.0
        return _finite(values)


def _finite(values: Numbers) -> float:
    """The largest of those that are finite: mostly all are, of which no copy is made."""
    most = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if math.isfinite(most):
        return most
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def _moved(op: str, given: list[tuple[Numbers, float]]) -> float:
    """How far a result moves when its operands do; what is not finite is compared by itself."""
    function, most = FUNCTIONS[op], 0.0
    if op == "*" and all(values.dtype.kind == "f" for values, _ in given):
        (left, by), (right, to) = ((_finite(values), noise) for values, noise in given)
        return left * to + right * by + by * to
    with np.errstate(all="ignore"):
        there = function(*(values for values, _ in given))
        if there.dtype.kind != "f":  # integers that were floats once
            return sum(noise for _, noise in given)
        for signs in product((-1, 1), repeat=len(given)):
            parts = [values + sign * noise if values.dtype.kind == "f" else values
                     for sign, (values, noise) in zip(signs, given, strict=True)]  # fmt: skip
            apart = np.abs(function(*parts) - there)
            most = max(most, float(apart[np.isfinite(apart)].max(initial=0)))
    return most
