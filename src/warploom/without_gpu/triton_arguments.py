"""The arguments of a Triton launch: as its compiler wants to know them, and as its PTX takes them.

Arguments are specialised as Triton does it: a whole number 1 is a constant, whole numbers and
addresses that are multiples of sixteen are known to be. A tuple is the arguments in it. A tensor
descriptor of the host becomes a tensor map with its sides and strides, or, where the target has no
such maps, an address with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.errors import DeviceError, UnsupportedError
from warploom.ptx.emulate.tensor import SWIZZLES, TensorMap, tensor_map
from warploom.without_gpu.arrays import Passed, memory_of

_TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16",
    "float32": "fp32", "float64": "fp64", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip
_MULTIPLE = 16
_DIVISIBLE = [["tt.divisibility", _MULTIPLE]]
_CONSTANT = "constexpr"
Path = tuple[int, ...]  # the number of an argument, and those within tuples


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor descriptor of the host: a part of an array, with sides and strides in elements."""

    memory: Passed
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    nan_outside: bool

    def map(self, made: Mapping[str, Any], what: str) -> TensorMap:
        """The tensor map that the compiler asked for."""
        if made.get("fp4_padded") or made.get("is_im2col"):
            raise UnsupportedError(f"{what}: tensor maps of im2col or of 4-bit floats")
        kind = "bf16" if self.memory.kind == "bfloat16" else ""
        box, swizzle = made["block_size"], SWIZZLES[made["swizzle"]]
        return tensor_map(self._view(what), box, swizzle, nan_outside=self.nan_outside, kind=kind)

    def _view(self, what: str) -> Any:
        array = self.memory.array
        size = array.itemsize
        reach = sum((side - 1) * step for side, step in zip(self.shape, self.strides, strict=True))
        if (reach + 1) * size > self.memory.raw.nbytes:
            raise DeviceError(f"{what} describes more than its tensor holds")
        steps = [step * size for step in self.strides]
        return np.lib.stride_tricks.as_strided(array, self.shape, steps)

    def apart(self) -> list[Any]:
        """As its parts, where nothing makes a tensor map of it."""
        sides = [np.int64(each) for each in (*self.shape, *self.strides)]
        return [self.memory.raw, *sides, self.nan_outside, False, *self.tail]

    @property
    def tail(self) -> list[Any]:
        """What the kernel is told of it besides."""
        return [
            *(np.int32(each) for each in self.shape),
            *(np.int64(each) for each in self.strides),
        ]


@dataclass(slots=True)
class Call:
    """The arguments of one call as the compiler wants them, and those that stay for the launch."""

    signature: dict[str, Any] = field(default_factory=dict)
    constants: dict[Path, Any] = field(default_factory=dict)
    known: dict[Path, list[list[Any]]] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)

    def args(self, maps: Sequence[Mapping[str, Any]]) -> list[Any]:
        """As the PTX takes them; `maps` are the tensor maps that the compiler asked for."""
        wanted = iter(maps)
        found: list[Any] = []
        for number, value in enumerate(self.values):
            if not isinstance(value, Descriptor):
                found.append(value)
            elif maps:
                found += [value.map(next(wanted), f"argument {number}"), *value.tail]
            else:
                found += value.apart()
        return found


def call_of(function: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """The call of a kernel with these arguments."""
    try:
        bound = function.signature.bind(*args, **named)
    except TypeError as error:
        raise DeviceError(f"{function.__name__}: {error}") from None
    bound.apply_defaults()
    call = Call(given=dict(bound.arguments))
    for number, (parameter, value) in enumerate(
        zip(function.params, bound.arguments.values(), strict=True)
    ):
        call.signature[parameter.name] = _added(call, (number,), parameter, value)
    return call


def _added(call: Call, path: Path, parameter: Any, value: Any) -> Any:
    """The type of an argument, or of one in a tuple; adds to the call what is known of it."""
    name = parameter.name
    specialised = not parameter.do_not_specialize
    if isinstance(value, tuple) and not parameter.is_constexpr:
        return tuple(_added(call, (*path, at), parameter, one) for at, one in enumerate(value))
    if _is_descriptor(value):
        call.values.append(_descriptor(value, name))
        return _described(value, name)
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    constant = parameter.is_constexpr or value is None or hasattr(value, "cache_key")
    if constant or (whole and value == 1 and specialised):
        call.constants[path] = value
        return _CONSTANT
    memory = memory_of(value, f"argument {path[0]} ('{name}')")
    if memory is not None:
        found = f"*{_element(memory, name)}"
        call.values.append(memory.raw)
        multiple = memory.aligned
    else:
        annotated = parameter.annotation_type if len(path) == 1 else None
        found = annotated or _scalar(value, name)
        call.values.append(value)
        multiple = whole and value % _MULTIPLE == 0
    if multiple and specialised:
        call.known[path] = _DIVISIBLE
    return found


# -- descriptors ----------------------------------------------------------------------------------


def _is_descriptor(value: Any) -> bool:
    ours = type(value).__module__.startswith("triton.")
    return ours and all(
        hasattr(value, each) for each in ("base", "shape", "strides", "block_shape")
    )


def _memory_of(value: Any, name: str) -> Passed:
    memory = memory_of(value.base, f"the tensor of '{name}'")
    if memory is None:
        raise DeviceError(f"'{name}' describes a {type(value.base).__name__}, which is no tensor")
    return memory


def _descriptor(value: Any, name: str) -> Descriptor:
    if getattr(value, "round_f32_to_tf32", False):
        raise UnsupportedError(f"'{name}': copies that round float32 to tf32")
    shape, strides = (tuple(int(each) for each in sizes) for sizes in (value.shape, value.strides))
    nan_outside = getattr(value, "padding", "zero") == "nan"
    return Descriptor(_memory_of(value, name), shape, strides, nan_outside)


def _described(value: Any, name: str) -> str:
    """The type of a descriptor, as Triton writes it; Gluon's has its layout."""
    element = _element(_memory_of(value, name), name)
    block = [int(each) for each in value.block_shape]
    layout = f",{value.layout!r}" if hasattr(value, "layout") else ""
    return f"tensordesc<{element}{block}{layout}>"


# -- types ----------------------------------------------------------------------------------------


def _element(memory: Passed, name: str) -> str:
    if memory.kind not in _TYPES:
        known = ", ".join(_TYPES)
        raise DeviceError(f"'{name}' holds {memory.kind}, which Triton does not have", advice=known)
    return _TYPES[memory.kind]


def _scalar(value: Any, name: str) -> str:
    if isinstance(value, bool | np.bool_):
        return "i1"
    if isinstance(value, int | np.integer):
        number = int(value)
        if -(1 << 31) <= number < 1 << 31:
            return "i32"
        return "i64" if number < 1 << 63 else "u64"
    if isinstance(value, float | np.floating):
        return "fp32"
    raise DeviceError(f"'{name}': a {type(value).__name__} cannot be passed to a Triton kernel")
