"""What a candidate launched, as a case for the judge: kernels one after another on named memory.

Comes in: launches with tensors as arguments, the inputs and parameters of the problem by name, and
the tensors that the candidate made and returned. Goes out: the arguments that all launches share,
each an input, a result or memory in between, and the launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.problems.host import Launch as Seen
from warploom.ptx.launch import Kernel
from warploom.verdict.argument import Said, said
from warploom.verdict.case import Argument, Case, Launch, argument_of
from warploom.verdict.tensors import Tensor

FLOATS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
_KINDS = {**FLOATS, "int8": "i8", "int32": "i32", "int64": "i64", "uint8": "u8"}
_ONE = "judge such kernels one by one, as CUDA files of their own"


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """One tensor of a candidate, and what is said of it."""

    tensor: Tensor
    said: Said


@dataclass(frozen=True, slots=True)
class InOrder:
    """The launches of a candidate, of which all sizes are fixed (`verdict.judged.Cases`)."""

    memories: Sequence[NamedTensor]
    launches: Sequence[tuple[Seen, Kernel]]

    def at(self, sizes: Mapping[str, int], seed: int) -> Case:
        draw = np.random.default_rng(seed)
        named = {each.said.name: argument_of(each.said, {}, draw) for each in self.memories}
        made = [self._launch(seen, kernel, named) for seen, kernel in self.launches]
        return Case(dict(sizes), made, named)

    def _launch(self, seen: Seen, kernel: Kernel, named: Mapping[str, Argument]) -> Launch:
        args: list[Any] = []
        for value in seen.args:
            if isinstance(value, Tensor):
                args.append(named[next(e.said.name for e in self.memories if is_same(e, value))])
            else:
                args.append(value)
        return Launch(seen.grid, seen.block, seen.cluster, seen.shared, args, kernel)


def is_same(memory: NamedTensor, tensor: Tensor) -> bool:
    return is_all_of(memory.tensor, tensor)


def is_all_of(a: Tensor, b: Tensor) -> bool:
    """Whether both are all of one memory, in its order."""
    x, y = a.array, b.array
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return False
    alike = a.numel() == b.numel() and str(a.dtype) == str(b.dtype)
    return bool(alike and y.flags.c_contiguous and x.ctypes.data == y.ctypes.data)


def memories_of(
    launches: Sequence[Seen], named: Mapping[str, Tensor], made: Sequence[Tensor],
    results: Sequence[Any],
) -> tuple[list[NamedTensor], list[str]]:  # fmt: skip
    """All memory that counts, and the names of the results. Each input is there, also one that no
    kernel is given: the reference has it for any values."""
    known = {**named, **{f"made{number}": each for number, each in enumerate(made)}}
    outputs = [_name_of(each, known) for each in results]
    taken: list[str] = []
    for launch in launches:
        names = [_name_of(each, known) for each in launch.args if isinstance(each, Tensor)]
        if len(set(names)) < len(names):
            raise CheckError(f"'{launch.kernel}' is given the same tensor twice", advice=_ONE)
        taken += names
    if missing := [name for name in outputs if name not in taken]:
        raise CheckError(f"no kernel is given what ModelNew returns: {', '.join(missing)}")
    if len(set(outputs)) < len(outputs):
        raise CheckError("ModelNew returns the same tensor twice")
    shown = {name: f"out{number}" for number, name in enumerate(outputs) if name not in named}
    found = []
    for name, tensor in known.items():
        if name in named or name in taken:
            shape = next(
                (each.shape for each, of in zip(results, outputs, strict=True) if of == name),
                tensor.shape,
            )
            is_output = name in outputs
            about = _said(shown.get(name, name), tensor, shape, name in named, is_output)
            found.append(NamedTensor(tensor, about))
    return found, [shown.get(name, name) for name in outputs]


def _said(name: str, tensor: Tensor, shape: Sequence[int], is_given: bool, is_output: bool) -> Said:
    kind = _KINDS.get(str(tensor.dtype))
    if kind is None:
        raise CheckError(f"a tensor of {tensor.dtype} is not judged")
    is_float = str(tensor.dtype) in FLOATS
    if is_given and not is_float:
        if is_output:
            raise CheckError(f"ModelNew changes '{name}', whole numbers that it is given")
        return said(name, tensor.array)  # whole numbers are the same in all runs
    text = f"{kind}[{','.join(map(str, shape))}]"
    if is_given:
        return said(name, f"{text}=inout" if is_output else text)
    start = "out" if is_output else "scratch"
    return said(name, f"{text}={start}" + (":zeros" if tensor.start == "zeros" else ""))


def _name_of(value: Any, known: Mapping[str, Tensor]) -> str:
    if isinstance(value, Tensor):
        for name, each in known.items():
            if is_all_of(each, value):
                return name
    raise CheckError("ModelNew computes with PyTorch beside its kernels", advice=_ONE)
