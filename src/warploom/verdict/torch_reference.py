"""Is a reference written with PyTorch? Then its arrays are tensors.

It is if it names PyTorch, or a function that it calls does. One that names neither PyTorch nor
NumPy is written as its file is: with PyTorch if that is imported there and NumPy is not.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.ptx.field.arrays import Exact
from warploom.verdict.tensor_types import FLOATS, WHOLE
from warploom.verdict.tensors import Tensor, is_tensor, of_constant

_OURS = Tensor.__module__  # what stands in for PyTorch
_KINDS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def speaks_torch(function: Callable[..., Any]) -> bool:
    while isinstance(function, partial):
        function = function.func
    code = inspect.unwrap(function)
    if not hasattr(code, "__code__"):  # an object that is called
        code = inspect.getattr_static(type(code), "__call__", code)
    named = set(_named_by(code, set()))
    if named & {"torch", "numpy"}:
        return "torch" in named
    beside = {_package(each) for each in getattr(code, "__globals__", {}).values()}
    return "torch" in beside and "numpy" not in beside


def _named_by(function: Any, seen: set[int]) -> Iterator[str]:
    """The packages that a function names, and those that its functions name."""
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return
    seen.add(id(code))
    scope = function.__globals__
    for each in getattr(function, "__annotations__", {}).values():
        yield _package(scope.get(each.split(".")[0]) if isinstance(each, str) else each)
    values = [scope[name] for name in _globals_of(code) if name in scope]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # nothing is in it yet
            continue
    yield from _imported(code)
    for value in values:
        package = _package(value)
        yield package
        if package not in ("torch", "numpy"):
            yield from _named_by(inspect.unwrap(value) if callable(value) else value, seen)


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _instructions(each)


def _globals_of(code: CodeType) -> Iterator[str]:
    return (e.argval for e in _instructions(code) if e.opname in ("LOAD_GLOBAL", "LOAD_NAME"))


def _imported(code: CodeType) -> Iterator[str]:
    """What a function imports in its body."""
    return (e.argval.split(".")[0] for e in _instructions(code) if e.opname == "IMPORT_NAME")


def _package(value: Any) -> str:
    """Where something is from."""
    if isinstance(value, ModuleType):
        return value.__name__.split(".")[0]
    owner = getattr(value, "__self__", None)  # of functions that are written in C
    candidates = (value, owner, type(value)) if isinstance(owner, type) else (value, type(value))
    for each in candidates:
        module = inspect.getattr_static(each, "__module__", None)
        if isinstance(module, str) and module.split(".")[0] in ("torch", "numpy"):
            return module.split(".")[0]
        if module == _OURS:
            return "torch"
    return ""


def as_tensor(name: str, value: Any, kind: str | None) -> Any:
    """An argument as the tensor that PyTorch would have; sizes are numbers of Python."""
    if not isinstance(value, Exact | np.ndarray | np.generic):
        return value
    if kind in _KINDS:
        return Tensor(value, FLOATS[_KINDS[kind]])
    if str(value.dtype) not in WHOLE:
        advice = "give such numbers to a reference on arrays of NumPy"
        raise CheckError(f"'{name}' is of {value.dtype}, of which no tensors are", advice=advice)
    return Tensor(value)


def without_tensors(made: Any) -> Any:
    """Results as arrays."""
    if isinstance(made, dict):
        return {name: without_tensors(each) for name, each in made.items()}
    if isinstance(made, tuple | list):
        return [without_tensors(each) for each in made]
    return of_constant(made).array if is_tensor(made) else made
