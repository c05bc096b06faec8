"""A plan and a candidate → all kernels of a program, in order, and the memory between them.

A *candidate* is everything that was left open: numbers for the sizes, and for each kernel how its
maps run and how many threads a group has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from warploom.array.code.scheduled import schedule_of
from warploom.array.code.spread import Spread
from warploom.array.code.storage import dims_of, names_of, parts_of
from warploom.array.language.evaluate import Value, as_value
from warploom.array.language.ir import DOUBTFUL, Apply, Literal, Param, Program, place_of, walk
from warploom.array.language.op import Compute
from warploom.array.mapping.constraint import Constraints, broken
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import map_tree
from warploom.array.plan.home import leaf_paths
from warploom.array.plan.loops import Plan
from warploom.array.plan.numbered import numbered
from warploom.array.types import Array, Tuple, Type, dtype_of
from warploom.errors import CheckError, OperandError, Span
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.pictured import Pictured
from warploom.schedule.lower import lower

# Runs a kernel on arrays and numbers, in place.
Launch = Callable[[Kernel, list[Any]], object]


@dataclass(frozen=True, slots=True)
class Candidate:
    sizes: Mapping[str, int]
    spreads: tuple[Spread, ...]


@dataclass(frozen=True, slots=True)
class GlobalArray:
    """An array in global memory: an input, the output, or something between kernels."""

    name: str
    dtype: DType
    dims: tuple[int, ...]
    role: str


@dataclass(frozen=True, slots=True)
class Compiled(Pictured):
    """The kernels of a program, to be run one after another, and how each is spread."""

    plan: Plan
    kernels: tuple[Kernel, ...]
    memories: tuple[GlobalArray, ...]
    spreads: tuple[Spread, ...]
    sizes: Mapping[str, int]

    @property
    def temporary_bytes(self) -> int:
        """Bytes of global memory for temporaries, beside inputs and output."""
        found = {
            array.name: int(getattr(array.size, "value", 0)) * array.dtype.bytes
            for kernel in self.kernels
            for array in kernel.arrays
        }
        between = {each.name for each in self.memories if each.role == "temporary"}
        return sum(count for name, count in found.items() if name in between)

    def __call__(self, launch: Launch, *inputs: Any) -> Value:
        """What the program computes of its inputs, each kernel run by `launch`."""
        arrays = self._given(inputs)
        for kernel in self.kernels:
            for array in kernel.arrays:
                if array.name not in arrays:
                    size = int(getattr(array.size, "value", 0))
                    arrays[array.name] = np.full(size, 0x5A, array.dtype.numpy)
            launch(kernel, [arrays[each.name] for each in kernel.params])
        return self.result(arrays)

    def result(self, arrays: Mapping[str, Any]) -> Value:
        """The output, of its arrays by name."""
        return self._result(arrays, self.plan.output, self.plan.output.type, ())

    def inputs(self, arrays: Mapping[str, Any]) -> list[Value]:
        """The inputs, of what kernels are given by name; zeros where none of them uses one."""
        found = dict(arrays)
        for (memory, parts), name in names_of(self.plan).items():
            if name not in found:
                dims, dtype = dims_of(memory.type, parts)
                found[name] = np.zeros(dims, dtype.numpy)
        given = [each.memory for each in self.plan.buffers if each.role == "input"]
        return [self._result(found, each, each.type, ()) for each in given]

    def _given(self, inputs: Sequence[Any]) -> dict[str, Any]:
        names, found = names_of(self.plan), dict[str, Any]()
        given = [each for each in self.plan.buffers if each.role == "input"]
        for buffer, value in zip(given, inputs, strict=True):
            made = as_value(value, buffer.memory.type, buffer.memory.name)
            for path in leaf_paths(buffer.memory.type):
                leaf: Any = made
                for part in parts_of(path):
                    leaf = leaf[part]
                flat = np.ascontiguousarray(leaf).reshape(-1)
                number = buffer.space == "private"
                found[names[buffer.memory, parts_of(path)]] = flat[0].item() if number else flat
        return found

    def _result(
        self, arrays: Mapping[str, Any], memory: Param, type_: Type, parts: tuple[int, ...]
    ) -> Value:
        inner = type_
        while isinstance(inner, Array):
            inner = inner.element
        if isinstance(inner, Tuple):
            return tuple(
                self._result(arrays, memory, part, (*parts, at))
                for at, part in enumerate(inner.parts)
            )
        dims, _ = dims_of(memory.type, parts)
        return np.asarray(arrays[names_of(self.plan)[memory, parts]]).reshape(dims)


def compile_candidate(plan: Plan, candidate: Candidate) -> Compiled:
    """The kernels of a candidate; raises CheckError if its mapping breaks a rule."""
    check_mapping(plan, candidate)
    made = numbered(plan, candidate.sizes)
    try:
        kernels = [
            lower(schedule_of(made, at, spread)) for at, spread in enumerate(candidate.spreads)
        ]
    except OperandError as error:  # of what the program says: no other candidate would do
        error.span = error.span or _undivided(plan.program)
        raise
    return Compiled(
        made, tuple(kernels), tuple(memories_of(made)), candidate.spreads, candidate.sizes
    )


def _undivided(program: Program) -> Span | None:
    """Where integers are divided or shifted by what is known only when it runs."""
    for term in walk(program.body):
        match term:
            case Apply(Compute(op), _, (_, by)) if op in DOUBTFUL and not isinstance(by, Literal):
                dtype, found = dtype_of(by.type), place_of(term)
                if dtype is not None and not dtype.is_float and found is not None:
                    return found
    return None


def check_mapping(plan: Plan, candidate: Candidate) -> None:
    if len(candidate.spreads) != len(plan.stages):
        raise CheckError(f"{len(plan.stages)} kernels, but {len(candidate.spreads)} mappings")
    for at, spread in enumerate(candidate.spreads):
        wrong = broken(_rules(plan, at), spread.runs)
        if wrong:
            raise CheckError(f"the mapping breaks a rule: {wrong[0].kind}, {wrong[0].about}")


@lru_cache(maxsize=8)
def _rules(plan: Plan, stage: int) -> Constraints:
    return sound(map_tree(plan, stage))


def memories_of(plan: Plan) -> list[GlobalArray]:
    """The arrays in global memory."""
    names = names_of(plan)
    found = []
    for buffer in plan.buffers:
        if buffer.space == "global":
            for path in leaf_paths(buffer.memory.type):
                dims, dtype = dims_of(buffer.memory.type, parts_of(path))
                name = names[buffer.memory, parts_of(path)]
                found.append(GlobalArray(name, dtype, dims, buffer.role))
    return found
