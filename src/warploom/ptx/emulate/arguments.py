"""Arguments of a launch and initial values of variables, as bytes in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.machine.memory import WINDOWS, Memory, window_of
from warploom.ptx import ir
from warploom.ptx.demangle import demangled
from warploom.ptx.emulate.compile import alignment, byte_size
from warploom.ptx.emulate.context import immediate
from warploom.ptx.emulate.nested import Nested, Path
from warploom.ptx.emulate.tensor import TensorMap
from warploom.ptx.emulate.texture import Surface, handle
from warploom.ptx.patience import timed
from warploom.ptx.types import DTYPES, size_of

_WHOLE = ir.Spelling.INTEGER
_WHOLE_TYPES = frozenset(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64))


def bind(
    module: ir.Module, function: ir.Function, args: Sequence[Any], memory: Memory
) -> dict[str, int]:
    """Puts arrays and the parameter bytes into memory; gives the address of each parameter."""
    parameters = function.parameters
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        what = f"the arguments are a {type(args).__name__}"
        raise DeviceError(what, advice="give a list, one for each parameter")
    if len(args) != len(parameters):
        takes = f"kernel '{demangled(function.name)}' takes {len(parameters)} arguments"
        raise DeviceError(f"{takes}, {len(args)} are given", module.span(function))
    offsets, size = parameter_offsets(parameters)
    data = np.zeros(max(size, 1), np.uint8)
    places = _place_arrays(parameters, args, memory)
    known = {path[0]: address for path, address in places.items() if len(path) == 1}
    for number, (parameter, arg, offset) in enumerate(zip(parameters, args, offsets, strict=True)):
        if isinstance(arg, Surface):
            arg = _handle(parameter, arg, number, known, memory)
        if isinstance(arg, Nested):
            arg.fill((number,), places)
            arg = arg.data
        raw = _argument(parameter, arg, number, known)
        data[offset : offset + raw.size] = raw
    region = memory.add("the parameters", data, read_only=True, space="param")
    base = region.base - WINDOWS["param"]
    return {p.name: base + offset for p, offset in zip(parameters, offsets, strict=True)}


def parameter_offsets(parameters: Sequence[ir.Variable]) -> tuple[list[int], int]:
    """Where each parameter begins among the bytes of all, and how many those are."""
    offsets: list[int] = []
    place = 0
    for parameter in parameters:
        align = alignment(parameter)
        place = -(-place // align) * align
        offsets.append(place)
        place += byte_size(parameter)
    return offsets, place


@dataclass(frozen=True, slots=True)
class Fresh:
    """An array that nobody has written yet: a kernel that reads there before it writes is found.

    `marks` has a byte for each of its bytes, which becomes 1 as that is written.
    """

    array: npt.NDArray[Any]
    marks: npt.NDArray[np.uint8]

    @staticmethod
    def of(array: npt.NDArray[Any]) -> Fresh:
        return Fresh(array, np.zeros(array.nbytes, np.uint8))


@dataclass(frozen=True, slots=True)
class _Given:
    """An array among the arguments, and where the host keeps its bytes."""

    path: Path  # its number; of what an argument points to, also where the address stands
    what: str
    array: npt.NDArray[Any]
    start: int
    end: int
    marks: npt.NDArray[np.uint8] | None = None


def _place_arrays(
    parameters: Sequence[ir.Variable], args: Sequence[Any], memory: Memory
) -> dict[Path, int]:
    """Puts the arrays into memory: the address of each, by its number or path.

    Arrays that share bytes lie in one allocation, as far apart as on the host.
    """
    known: dict[Path, int] = {}
    for group in _overlapping(list(_arrays(parameters, args))):
        start = group[0].start
        names = " and ".join(one.what for one in sorted(group, key=lambda one: one.path))
        frozen = not any(one.array.flags.writeable for one in group)
        region = memory.add(names, _bytes_of(group), frozen)
        if len(group) == 1:
            region.written = group[0].marks
        known |= {one.path: region.base + one.start - start for one in group}
    return known


def _overlapping(given: list[_Given]) -> list[list[_Given]]:
    """Groups of arrays that share bytes, in the order of the arguments; the lowest array first."""
    groups: list[list[_Given]] = []
    end = -1
    for one in sorted(given, key=lambda one: (one.start, -one.end)):
        if one.start < end:
            groups[-1].append(one)
        else:
            groups.append([one])
        end = max(end, one.end)
    return sorted(groups, key=lambda group: min(one.path for one in group))


def _bytes_of(group: list[_Given]) -> npt.NDArray[np.uint8]:
    """The bytes of the host that a group covers; between rows of a tensor, those of its whole."""
    first, end = group[0], max(one.end for one in group)
    if first.end == end and first.array.flags.c_contiguous:
        return first.array.reshape(-1).view(np.uint8)
    whole: Any = (ctypes.c_uint8 * (end - first.start)).from_address(first.start)
    return np.frombuffer(whole, np.uint8)


def _arrays(parameters: Sequence[ir.Variable], args: Sequence[Any]) -> Iterator[_Given]:
    for number, (parameter, arg) in enumerate(zip(parameters, args, strict=True)):
        what = _what(number, parameter)
        if isinstance(arg, TensorMap):
            start = int(arg.array.__array_interface__["data"][0])
            yield _Given((number,), what, arg.array, start, start + arg.span)
            continue
        if isinstance(arg, Fresh):
            yield replace(_given((number,), what, arg.array), marks=arg.marks)
            continue
        if isinstance(arg, Nested):
            for path, value in arg.inner((number,)):
                inner = value.data if isinstance(value, Nested) else value
                if inner is not None:
                    at = ", ".join(map(str, path[1:]))
                    yield _given(path, f"what byte {at} of {what} points to", inner)
            arg = arg.data
        if parameter.sizes:
            continue
        if isinstance(arg, Surface):
            arg = arg.array
        if isinstance(arg, np.ndarray) and arg.ndim > 0:
            yield _given((number,), what, arg)


def _given(path: Path, what: str, array: npt.NDArray[Any]) -> _Given:
    if not array.flags.c_contiguous:
        raise DeviceError(f"{what} is not contiguous", advice="pass numpy.ascontiguousarray(…)")
    _check_bytes(what, array.dtype)
    start = int(array.__array_interface__["data"][0])
    return _Given(path, what, array, start, start + array.nbytes)


def _check_bytes(what: str, dtype: np.dtype[Any]) -> None:
    """A GPU has neither objects of Python nor numbers whose first byte is the highest."""
    if dtype.hasobject:
        raise DeviceError(f"{what} holds objects of Python", advice="give numbers of NumPy")
    if not dtype.isnative:
        advice = "give array.astype(array.dtype.newbyteorder('='))"
        raise DeviceError(f"{what} has the type {dtype.str}, of another byte order", advice=advice)


def _handle(
    parameter: ir.Variable, arg: Surface, number: int, known: dict[int, int], memory: Memory
) -> int:
    what = _what(number, parameter)
    if parameter.sizes or byte_size(parameter) != 8 or parameter.type[0] == "f":
        raise DeviceError(f"{what} is no handle of 64 bits, a texture or surface is given")
    return handle(memory, what, arg, known[number])


def _what(number: int, parameter: ir.Variable) -> str:
    return f"argument {number} ('{parameter.name}')"


def _argument(
    parameter: ir.Variable, arg: Any, number: int, known: dict[int, int]
) -> npt.NDArray[np.uint8]:
    size = byte_size(parameter)
    what = _what(number, parameter)
    if isinstance(arg, Fresh):
        arg = arg.array
    if isinstance(arg, TensorMap):
        arg = arg.encode(known[number])
    if parameter.sizes:
        raw = np.frombuffer(_struct(arg, what), np.uint8)
        if raw.size != size:
            raise DeviceError(f"{what} needs {size} bytes, {raw.size} are given")
        return raw
    if isinstance(arg, np.ndarray) and arg.ndim > 0:
        if size != 8:
            raise DeviceError(f"{what} is a .{parameter.type}, an array is given")
        return np.array([known[number]], np.uint64).view(np.uint8)
    if arg is None:
        return np.zeros(size, np.uint8)
    return _scalar(parameter, arg, what)


_INSTEAD = "give an array, as np.asarray(…, dtype=np.float32) makes one; kernels write into it"


def _struct(arg: Any, what: str) -> bytes:
    """What is passed by value and has several parts, as bytes."""
    if isinstance(arg, np.ndarray | np.generic):
        _check_bytes(what, arg.dtype)
        return arg.tobytes()
    try:
        return bytes(memoryview(arg))  # bytes, a ctypes structure
    except TypeError:
        raise DeviceError(
            f"{what} is a structure; {type(arg).__name__} cannot be passed",
            advice="give its bytes, or a NumPy record",
        ) from None


def _scalar(parameter: ir.Variable, arg: Any, what: str) -> npt.NDArray[np.uint8]:
    if parameter.type not in DTYPES or parameter.type == "pred":
        raise DeviceError(f"{what} has the type .{parameter.type}, which cannot be passed")
    dtype = DTYPES[parameter.type]
    if isinstance(arg, np.ndarray):  # of no axes
        arg = arg[()]
    if _same_bits(parameter, arg, dtype):
        return np.frombuffer(arg.tobytes(), np.uint8)
    if isinstance(arg, bool | int | np.integer | np.bool_):
        return _whole(parameter, int(arg), what, dtype)
    if isinstance(arg, float | np.floating):
        floating = {2: np.float16, 4: np.float32, 8: np.float64}.get(dtype.itemsize)
        if floating is not None and (dtype.kind == "f" or parameter.type[0] == "b"):
            with np.errstate(over="ignore"):  # beyond the largest is infinite, as in C
                return np.array([arg], floating).view(np.uint8)
        advice = "give a whole number, as int(…) makes one"
        raise DeviceError(f"{what} is a .{parameter.type}, a float is given", advice=advice)
    raise DeviceError(
        f"{what} is a .{parameter.type}; {type(arg).__name__} cannot be passed",
        advice=_INSTEAD if isinstance(arg, list | tuple) else "give a NumPy array or a number",
    )


def _same_bits(parameter: ir.Variable, arg: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a value of NumPy is passed as it is: both mean the same, or the type says only how
    many bits there are (Triton passes floats as b32)."""
    if not isinstance(arg, np.generic) or arg.dtype.itemsize != dtype.itemsize:
        return False
    means = "f" if dtype.kind == "f" else "biu"
    return parameter.type[0] == "b" or arg.dtype.kind in means


def _whole(
    parameter: ir.Variable, number: int, what: str, dtype: np.dtype[Any]
) -> npt.NDArray[np.uint8]:
    """An integer of Python or NumPy; a parameter that is a float gets its value."""
    bits = 8 * dtype.itemsize
    try:
        if dtype.kind == "f":
            return np.array([float(number)], dtype).view(np.uint8)
        if -(1 << bits - 1) <= number < 1 << bits:
            raw = (number & ((1 << bits) - 1)).to_bytes(dtype.itemsize, "little")
            return np.frombuffer(raw, np.uint8)
    except OverflowError:
        pass
    shown = str(number) if number.bit_length() < 256 else f"a number of {number.bit_length()} bits"
    raise DeviceError(f"{what}: {shown} does not fit a .{parameter.type}")


def initial_bytes(
    module: ir.Module, variable: ir.Variable, addresses: dict[str, int], data: npt.NDArray[np.uint8]
) -> None:
    """Fills the memory of a variable from its initialiser; `addresses` are generic ones."""
    size = size_of(variable.type)
    values = variable.initial or ()
    if len(values) * size > data.size or size == 0:
        raise DeviceError(f"'{variable.name}' has too many initial values", module.span(variable))
    whole = [v.value for v in values if isinstance(v, ir.Immediate) and v.spelling is _WHOLE]
    if variable.type in _WHOLE_TYPES and len(whole) == len(values):  # tables may be long
        mask = (1 << 8 * size) - 1
        raw = np.array([value & mask for value in timed(whole)], f"<u{size}").view(np.uint8)
        data[: raw.size] = raw
        return
    for number, value in enumerate(timed(values)):
        if isinstance(value, ir.Immediate):
            raw = immediate(value, variable.type).view(np.uint8)
        else:
            address = _address(module, variable, value, addresses)
            raw = np.array([address % (1 << 64)], np.uint64).view(np.uint8)
        data[number * size : (number + 1) * size] = raw[:size]


def _address(
    module: ir.Module, variable: ir.Variable, value: ir.Initial, addresses: dict[str, int]
) -> int:
    match value:
        case ir.Masked(mask, inner):
            lowest = (mask & -mask).bit_length() - 1 if mask else 0
            return (_address(module, variable, inner, addresses) & mask) >> lowest
        case ir.Generic(ir.Offset(ir.Symbol(name), offset)) if name in addresses:
            return addresses[name] + offset
        case ir.Generic(ir.Symbol(name)) if name in addresses:
            return addresses[name]
        case ir.Symbol() | ir.Offset(ir.Symbol()):
            generic = _address(module, variable, ir.Generic(value), addresses)
            return generic - window_of(generic)
        case _:
            raise DeviceError(
                f"'{variable.name}' starts with an unknown value", module.span(variable)
            )
