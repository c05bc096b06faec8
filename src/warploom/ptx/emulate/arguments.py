"""Arguments of a launch and initial values of variables, as bytes in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.machine.memory import Memory
from warploom.ptx.emulate.compile import alignment, byte_size
from warploom.ptx.emulate.context import immediate
from warploom.ptx.ir import Function, Immediate, Module, Offset, Operand, Symbol, Variable
from warploom.ptx.types import DTYPES, size_of


def bind(module: Module, function: Function, args: Sequence[Any], memory: Memory) -> dict[str, int]:
    """Puts arrays and the parameter bytes into memory; gives the address of each parameter."""
    parameters = function.parameters
    if len(args) != len(parameters):
        raise DeviceError(
            f"kernel '{function.name}' takes {len(parameters)} arguments, {len(args)} are given",
            module.span(function),
        )
    offsets: list[int] = []
    place = 0
    for parameter in parameters:
        align = alignment(parameter)
        place = -(-place // align) * align
        offsets.append(place)
        place += byte_size(parameter)
    data = np.zeros(max(place, 1), np.uint8)
    known: dict[tuple[int, int], int] = {}
    for number, (parameter, arg, offset) in enumerate(zip(parameters, args, offsets, strict=True)):
        raw = _argument(parameter, arg, number, memory, known)
        data[offset : offset + raw.size] = raw
    base = memory.add("the parameters", data, read_only=True).base
    return {p.name: base + offset for p, offset in zip(parameters, offsets, strict=True)}


def _argument(
    parameter: Variable, arg: Any, number: int, memory: Memory, known: dict[tuple[int, int], int]
) -> npt.NDArray[np.uint8]:
    size = byte_size(parameter)
    what = f"argument {number} ('{parameter.name}')"
    if parameter.sizes:
        raw = np.frombuffer(
            arg.tobytes() if isinstance(arg, np.ndarray | np.generic) else bytes(arg), np.uint8
        )
        if raw.size != size:
            raise DeviceError(f"{what} needs {size} bytes, {raw.size} are given")
        return raw
    if isinstance(arg, np.ndarray) and arg.ndim > 0:
        if size != 8:
            raise DeviceError(f"{what} is a .{parameter.type}, an array is given")
        address = _array_address(arg, what, memory, known)
        return np.array([address], np.uint64).view(np.uint8)
    if arg is None:
        return np.zeros(size, np.uint8)
    return _scalar(parameter, arg, what)


def _array_address(
    array: npt.NDArray[Any], what: str, memory: Memory, known: dict[tuple[int, int], int]
) -> int:
    """The address of an array; the same array given twice has one address."""
    if not array.flags.c_contiguous:
        raise DeviceError(f"{what} is not contiguous", advice="pass numpy.ascontiguousarray(…)")
    key = (array.__array_interface__["data"][0], array.nbytes)
    if key not in known:
        flat = array.reshape(-1).view(np.uint8)
        region = memory.add(what, flat, read_only=not array.flags.writeable)
        known[key] = region.base
    return known[key]


def _scalar(parameter: Variable, arg: Any, what: str) -> npt.NDArray[np.uint8]:
    if parameter.type not in DTYPES or parameter.type == "pred":
        raise DeviceError(f"{what} has the type .{parameter.type}, which cannot be passed")
    dtype = DTYPES[parameter.type]
    if isinstance(arg, np.generic) and arg.dtype.itemsize == dtype.itemsize:
        return np.frombuffer(arg.tobytes(), np.uint8)  # bits as they are: nvcc passes floats as b32
    if isinstance(arg, bool | int | np.integer | np.bool_):
        if dtype.kind == "f":
            return np.array([float(arg)], dtype).view(np.uint8)
        number = int(arg)
        bits = 8 * dtype.itemsize
        if not -(1 << bits - 1) <= number < 1 << bits:
            raise DeviceError(f"{what}: {number} does not fit a .{parameter.type}")
        raw = (number & ((1 << bits) - 1)).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(raw, np.uint8)
    if isinstance(arg, float | np.floating):
        floating = {2: np.float16, 4: np.float32, 8: np.float64}.get(dtype.itemsize)
        if floating is not None and (dtype.kind == "f" or parameter.type[0] == "b"):
            return np.array([arg], floating).view(np.uint8)
    raise DeviceError(f"{what} is a .{parameter.type}; {type(arg).__name__} cannot be passed")


def initial_bytes(
    module: Module, variable: Variable, addresses: dict[str, int], data: npt.NDArray[np.uint8]
) -> None:
    """Fills the memory of a variable from its initialiser."""
    size = size_of(variable.type)
    values = variable.initial or ()
    if len(values) * size > data.size or size == 0:
        raise DeviceError(f"'{variable.name}' has too many initial values", module.span(variable))
    for number, value in enumerate(values):
        raw = _initial(module, variable, value, addresses)
        data[number * size : (number + 1) * size] = raw[:size]


def _initial(
    module: Module, variable: Variable, value: Operand, addresses: dict[str, int]
) -> npt.NDArray[np.uint8]:
    match value:
        case Immediate():
            return immediate(value, variable.type).view(np.uint8)
        case Symbol(name) if name in addresses:
            return np.array([addresses[name]], np.uint64).view(np.uint8)
        case Offset(Symbol(name), offset) if name in addresses:
            return np.array([addresses[name] + offset], np.uint64).view(np.uint8)
        case _:
            raise DeviceError(
                f"'{variable.name}' starts with an unknown value", module.span(variable)
            )
