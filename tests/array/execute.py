"""Plans run one statement after another, on NumPy arrays, with everything sequential."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.array.language.ir import Param
from warploom.array.plan.home import leaf_paths
from warploom.array.plan.loops import Loop, Plan, Read, Write
from warploom.array.plan.view import Part
from warploom.array.types import Array, Tuple, Vector
from warploom.index.evaluate import evaluate as evaluate_index
from warploom.kernel.arithmetic import apply, compare, convert
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cast, Choose, Compare, Number, Operation

POISON = 0x5A5A5A5A


def parts_of(path: Any) -> tuple[int, ...]:
    return tuple(step.number for step in path if isinstance(step, Part))


def dims_of(type_: Any, parts: tuple[int, ...]) -> tuple[tuple[int, ...], DType]:
    """The sizes along a path through a type, and the number at its end."""
    dims: list[int] = []
    rest = list(parts)
    while True:
        match type_:
            case Array(element, size):
                dims.append(int(evaluate_index(size, {})))
                type_ = element
            case Tuple(members):
                type_ = members[rest.pop(0)]
            case Vector(element, width):
                dims.append(width)
                type_ = element
            case _:
                return tuple(dims), type_.dtype


class Execution:
    def __init__(self, plan: Plan, inputs: list[Any]) -> None:
        self.plan = plan
        self.memory: dict[tuple[Param, tuple[int, ...]], np.ndarray] = {}
        for buffer in plan.buffers:
            for path in leaf_paths(buffer.memory.type):
                parts = parts_of(path)
                dims, dtype = dims_of(buffer.memory.type, parts)
                value = np.full(dims, POISON, dtype.numpy)
                self.memory[buffer.memory, parts] = value
        for param, value in zip(plan.program.inputs, inputs, strict=True):
            self.give(param, (), value)

    def give(self, param: Param, parts: tuple[int, ...], value: Any) -> None:
        if isinstance(value, tuple):
            for at, part in enumerate(value):
                self.give(param, (*parts, at), part)
        else:
            self.memory[param, parts] = np.asarray(value)

    def run(self) -> Any:
        for stage in self.plan.stages:
            for node in stage.body:
                self.step(node, {})
        return self.result(self.plan.output, self.plan.output.type, ())

    def result(self, param: Param, type_: Any, parts: tuple[int, ...]) -> Any:
        while isinstance(type_, Array):
            type_ = type_.element
        if isinstance(type_, Tuple):
            return tuple(
                self.result(param, part, (*parts, at)) for at, part in enumerate(type_.parts)
            )
        return self.memory[param, parts]

    def step(self, node: Any, env: dict[str, int]) -> None:
        if isinstance(node, Loop):
            for iteration in range(int(evaluate_index(node.size, env))):
                for inner in node.body:
                    self.step(inner, {**env, node.counter: iteration})
            return
        assert isinstance(node, Write)
        if all(evaluate_index(condition, env) for condition in node.conditions):
            array = self.memory[node.memory, parts_of(node.path)]
            array[self.index(node.path, array.shape, env)] = self.value(node.value, env)

    def index(self, path: Any, shape: tuple[int, ...], env: dict[str, int]) -> tuple[int, ...]:
        found = tuple(int(evaluate_index(s, env)) for s in path if not isinstance(s, Part))
        assert len(found) == len(shape)
        assert all(0 <= at < size for at, size in zip(found, shape, strict=True)), (path, env)
        return found

    def value(self, value: Any, env: dict[str, int]) -> Any:
        match value:
            case Read(_, _, _, memory, path):
                array = self.memory[memory, parts_of(path)]
                return array[self.index(path, array.shape, env)]
            case Number(number, dtype):
                return dtype.numpy.type(number)
            case Operation(op, operands):
                given = [np.asarray(self.value(each, env)) for each in operands]
                return apply(op, given, DType(given[0].dtype.name))[()]
            case Choose(Compare(op, left, right), then, otherwise):
                sides = [np.asarray(self.value(each, env)) for each in (left, right)]
                return self.value(then if compare(op, *sides) else otherwise, env)
            case Choose(condition, then, otherwise):
                assert not isinstance(condition, Compare)
                return self.value(then if evaluate_index(condition, env) else otherwise, env)
            case Cast(dtype, inner):
                return convert(np.asarray(self.value(inner, env)), dtype)[()]
