"""`triton.jit` functions through Triton's own compiler, which needs no GPU.

Arguments are specialised as Triton does it: a whole number 1 is a constant, whole numbers and
addresses that are multiples of sixteen are known to be. This is the only module that imports
Triton.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from warploom.errors import DeviceError, UnsupportedError
from warploom.ptx.emulate.launch import Kernel, load
from warploom.without_gpu.arrays import Passed, memory_of
from warploom.without_gpu.prepared import Prepared, moved_texts, python_files

_TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16",
    "float32": "fp32", "float64": "fp64", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip
_MULTIPLE = 16
_DIVISIBLE = [["tt.divisibility", _MULTIPLE]]
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def is_triton(kernel: Any) -> bool:
    return type(kernel).__module__.startswith("triton.")


@dataclass(slots=True)
class _Call:
    """The arguments of one call as the compiler wants them, and those that stay for the launch."""

    signature: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    known: dict[tuple[int], list[list[Any]]] = field(default_factory=dict)
    args: list[Any] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)


class TritonKernel:
    def __init__(self, function: Any, arch: str) -> None:
        if not hasattr(function, "params") or not hasattr(function, "arg_names"):
            raise UnsupportedError(
                f"a {type(function).__name__} chooses its settings by measuring on a GPU",
                advice="give the function under it, .fn, and its settings as arguments",
            )
        self.function = function
        found = re.fullmatch(r"sm_(\d+)a?", arch)
        if found is None:
            raise DeviceError(f"'{arch}' is no GPU architecture", advice="use sm_80, sm_90, …")
        self.capability = int(found[1])
        self._compiled: dict[str, tuple[Kernel, Any]] = {}

    def prepare(self, launch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Prepared:
        options = {name: named.pop(name) for name in OPTIONS if name in named}
        call = self._call(args, named)
        kernel, settings = self._compile(call, options)
        shape = launch(call.given) if callable(launch) else launch
        scratch = self._scratch(kernel, settings, len(call.args), shape)
        return Prepared(
            kernel, shape, self._threads(kernel, settings), [*call.args, *scratch],
            int(settings.shared),
        )  # fmt: skip

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> _Call:
        try:
            bound = self.function.signature.bind(*args, **named)
        except TypeError as error:
            raise DeviceError(f"{self.function.__name__}: {error}") from None
        bound.apply_defaults()
        call = _Call(given=dict(bound.arguments))
        for number, (parameter, value) in enumerate(
            zip(self.function.params, bound.arguments.values(), strict=True)
        ):
            self._add(call, number, parameter, value)
        return call

    def _add(self, call: _Call, number: int, parameter: Any, value: Any) -> None:
        name = parameter.name
        specialised = not parameter.do_not_specialize
        memory = memory_of(value, f"argument {number} ('{name}')")
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if parameter.is_constexpr or value is None or (whole and value == 1 and specialised):
            call.signature[name] = "constexpr"
            call.constants[name] = value
            return
        if memory is not None:
            call.signature[name] = f"*{_element(memory, name)}"
            call.args.append(memory.raw)
            multiple = memory.aligned
        else:
            call.signature[name] = parameter.annotation_type or _scalar(value, name)
            call.args.append(value)
            multiple = whole and value % _MULTIPLE == 0
        if multiple and specialised:
            call.known[(number,)] = _DIVISIBLE

    def _compile(self, call: _Call, options: dict[str, Any]) -> tuple[Kernel, Any]:
        key = repr((call.signature, call.constants, call.known, options))
        if key not in self._compiled:
            compiler = import_module("triton.compiler")
            backends = import_module("triton.backends.compiler")
            source = compiler.ASTSource(
                self.function, call.signature, call.constants, call.known
            )  # fmt: skip
            target = backends.GPUTarget("cuda", self.capability, 32)
            made = import_module("triton").compile(source, target=target, options=options)
            shown_as = f"{self.function.__name__}, as PTX"
            texts = moved_texts(made.asm["ptx"], self.function)
            module = load(made.asm["ptx"], shown_as, texts, named=python_files(self.function))
            self._compiled[key] = module.kernel(made.metadata.name), made.metadata
        return self._compiled[key]

    def _threads(self, kernel: Kernel, settings: Any) -> int:
        """As the PTX says: warps that Triton adds for copies of its own are among them."""
        for directive in kernel.function.directives:
            if directive.name == "reqntid":
                return prod(int(word) for word in directive.words if word.isdigit())
        return 32 * int(settings.num_warps)

    def _scratch(self, kernel: Kernel, settings: Any, given: int, shape: Any) -> list[Any]:
        """Memory that Triton allocates for a launch: none, or so many bytes for each block."""
        wanted = len(kernel.function.parameters) - given
        blocks = prod(shape) if isinstance(shape, tuple | list) else int(shape)
        size = int(getattr(settings, "global_scratch_size", 0) or 0) * blocks
        first = np.zeros(size, np.uint8) if size else None
        return [first, *[None] * wanted][:wanted]


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
