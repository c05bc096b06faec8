"""Operands to functions: how an instruction reads its sources and writes its destination.

A `Fetch` takes a frame and gives the operand's value for the running threads; a `Store` takes a
frame and a value. Both are made once, when a kernel is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError, UnsupportedError, WarploomError
from warploom.ptx import ir
from warploom.ptx.emulate.driver import GIVEN
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.special import special_fetch
from warploom.ptx.types import BOOL, DTYPES, F16, F32, F64, U32, U64, UNSIGNED, is_float, scalar

Array = npt.NDArray[Any]
DType = np.dtype[Any]
Fetch = Callable[[Frame], Array]
Store = Callable[[Frame, Array], None]
Step = Callable[[Frame], None]
Steps = Callable[["Context", ir.Instruction, Callable[[], Step]], Step]
CARRY = "%cc"
# What a driver puts there is known for grids that meet and for tiles of warps: another one, read
# as 0, would have the kernel blamed for where it then reads and writes.
OF_THE_DRIVER = ("%envreg", "%reserved_smem")
# What NumPy and Python raise for operands that do not fit an instruction, such as and.f32.
MALFORMED = (TypeError, ValueError, KeyError, IndexError)


def malformed(module: ir.Module, instruction: ir.Instruction, error: Exception) -> DeviceError:
    return DeviceError(
        f"{instruction.name} with these operands is no instruction ({error})",
        module.span(instruction),
    )


@dataclass(slots=True)
class Context:
    """What is known of one function while its instructions are made into steps."""

    module: ir.Module
    function: ir.Function
    shared: dict[str, int]  # offset of every shared variable
    slots: dict[str, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)  # bytes of each slot; 0 for a predicate
    locals: dict[str, int] = field(default_factory=dict)  # offset in the frame's local memory
    local_size: int = 0
    current: ir.Instruction | None = None
    unfused: frozenset[int] = frozenset()  # where those fma stand that round their product
    steps: Steps | None = None  # makes the steps of a launch whose floats are something else

    # -- errors ---------------------------------------------------------------------------

    def fail(self, message: str, instruction: ir.Instruction | None = None) -> WarploomError:
        place = instruction or self.current
        return DeviceError(message, self.module.span(place) if place else None)

    def unknown(self, what: str) -> WarploomError:
        assert self.current is not None
        return UnsupportedError(
            f"the emulator does not know {what}",
            self.module.span(self.current),
            "the rest of the kernel runs; this instruction was reached by at least one thread",
        )

    # -- slots ----------------------------------------------------------------------------

    def slot(self, register: ir.Register, component: int = 0) -> int:
        key = register.key if register.vector == 1 else f"{register.key}.{component}"
        return self.slot_of(key, register.type)

    def slot_of(self, key: str, kind: str) -> int:
        found = self.slots.get(key)
        if found is None:
            if kind not in DTYPES:
                raise self.unknown(f"the register type .{kind}")
            found = self.slots[key] = len(self.sizes)
            self.sizes.append(0 if kind == "pred" else DTYPES[kind].itemsize)
        return found

    def add_local(self, name: str, size: int, align: int) -> None:
        """Room in the frame's local memory for a `.local` or a `.param` of a call."""
        place = -(-self.local_size // align) * align
        self.locals[name] = place
        self.local_size = place + size

    # -- reading --------------------------------------------------------------------------

    def read(self, operand: ir.Operand, kind: str) -> Fetch:
        """The operand as a value of a PTX type."""
        match operand:
            case ir.Register():
                return self.read_slot(self.slot(operand), kind, operand.type)
            case ir.Component(register, index):
                return self.read_slot(self.slot(register, index), kind, register.type)
            case ir.Immediate() if not _is_readable(operand, kind):
                raise self.fail(f"a floating constant cannot be read as .{kind}")
            case ir.Immediate():
                return constant(immediate(operand, kind))
            case ir.Special(name) if name.startswith(OF_THE_DRIVER) and name not in GIVEN:
                raise self.unknown(f"{name}, which a driver sets")
            case ir.Special(name):
                return _typed(special_fetch(name), DTYPES[kind])
            case ir.Negated(inner):
                return _inverted(self.read(inner, kind))
            case ir.Symbol() | ir.Offset() | ir.Address():
                return _typed(self.address_of(operand), DTYPES[kind])
            case _:
                raise self.unknown(f"this operand of {self._name()}")

    def _name(self) -> str:
        return self.current.name if self.current else "?"

    def read_slot(self, slot: int, kind: str, declared: str) -> Fetch:
        if kind not in DTYPES:
            raise self.unknown(f"the type .{kind}")
        dtype = DTYPES[kind]
        have = self.sizes[slot]
        if (have == 0) != (dtype == BOOL):
            raise self.fail(f"a .{declared} register cannot be read as .{kind}")
        if have in (0, dtype.itemsize):
            return _read_same(slot, dtype)
        if have < dtype.itemsize:
            return _read_wider(slot, UNSIGNED[have], dtype)
        return _read_narrower(slot, UNSIGNED[have], dtype)

    # -- writing --------------------------------------------------------------------------

    def write(self, operand: ir.Operand, kind: str) -> Store:
        """Where a result of that type goes; a wider register is filled by sign or zero."""
        match operand:
            case ir.Register():
                slot = self.slot(operand)
            case ir.Component(register, index):
                slot = self.slot(register, index)
            case ir.Symbol("_"):
                return _nowhere
            case ir.Symbol(name):
                raise self.fail(f"{self._name()} writes to '{name}', which is no register here")
            case _:
                raise self.fail(f"{self._name()} cannot write to this operand")
        return self.write_slot(slot, kind)

    def write_slot(self, slot: int, kind: str) -> Store:
        have, dtype = self.sizes[slot], DTYPES[kind]
        if (have == 0) != (dtype == BOOL):
            raise self.fail(f"{self._name()} cannot write .{kind} to a register of another kind")
        if have == 0 or have == dtype.itemsize:
            return lambda f, value: f.write(slot, value)
        if have < dtype.itemsize:
            raise self.fail(f"{self._name()} writes .{kind} to a narrower register")
        wide, narrow = UNSIGNED[have], UNSIGNED[dtype.itemsize]
        if is_float(kind):
            return lambda f, value: f.write(slot, value.view(narrow).astype(wide))
        return lambda f, value: f.write(slot, value.view(dtype).astype(wide))

    # -- addresses ------------------------------------------------------------------------

    def address(self, operand: ir.Operand) -> Fetch:
        """The byte address of `[…]` as unsigned 64-bit numbers (32-bit ones for 32-bit bases)."""
        if not isinstance(operand, ir.Address) or operand.more:
            raise self.unknown(f"this address of {self._name()}")
        base, offset = operand.base, operand.offset
        if isinstance(base, ir.Register | ir.Component):
            register = base if isinstance(base, ir.Register) else base.register
            dtype = UNSIGNED.get(self.sizes[self.slot(register)], U64)
            fetch = self.read(base, f"u{8 * dtype.itemsize}")
            return _plus(fetch, offset, dtype)
        if isinstance(base, ir.Immediate):
            return constant(scalar(base.value + offset, U64))
        return _plus(self.address_of(base), offset, U64)

    def address_of(self, operand: ir.Operand) -> Fetch:
        """The address of a variable, in its own space, as unsigned 64-bit numbers."""
        if isinstance(operand, ir.Offset | ir.Address):
            return _plus(self.address_of(operand.base), operand.offset, U64)
        if not isinstance(operand, ir.Symbol):
            raise self.unknown(f"this operand of {self._name()}")
        name = operand.name
        if name in self.locals:
            return _local_address(self.locals[name])
        if name in self.shared:
            return constant(scalar(self.shared[name], U64))
        if any(v.name == name for v in (*self.function.parameters, *self.function.results)):
            return self._parameter_address(name)
        return self._global_address(name)

    def _parameter_address(self, name: str) -> Fetch:
        if self.function.kind == "entry":
            return lambda f: _number(f.batch.symbols[name])
        return lambda f: _number(f.parameters[name])

    def _global_address(self, name: str) -> Fetch:
        instruction = self.current

        def fetch(f: Frame) -> Array:
            address = f.batch.symbols.get(name, f.batch.functions.get(name))
            if address is None:
                raise self.fail(f"'{name}' is not declared in this module", instruction)
            return _number(address)

        return fetch


def _number(value: int) -> Array:
    return np.array([value], np.uint64)


def _local_address(offset: int) -> Fetch:
    return lambda f: _number(f.local_base + offset)


def _nowhere(_: Frame, __: Array) -> None:
    return


def constant(value: Array) -> Fetch:
    value.setflags(write=False)
    return lambda _: value


def _is_readable(operand: ir.Immediate, kind: str) -> bool:
    """Whether a constant has a meaning in a type: a floating one has its bits in none narrower."""
    dtype = DTYPES[kind]
    if operand.spelling is ir.Spelling.INTEGER or dtype in (F16, F32, F64):
        return True
    if operand.spelling is ir.Spelling.DECIMAL and kind == "b32":
        return True
    return dtype.itemsize == (4 if operand.spelling is ir.Spelling.SINGLE else 8)


@np.errstate(all="ignore")  # a number that is too large is infinite, as in an assembler
def immediate(operand: ir.Immediate, kind: str) -> Array:
    """A constant as one value of a PTX type."""
    dtype = DTYPES[kind]
    if kind == "pred":
        return np.array([operand.value != 0])
    if dtype not in (F16, F32, F64):
        if operand.spelling is ir.Spelling.DECIMAL and dtype == U32 and kind == "b32":
            return np.array([_as_double(operand)], F32).view(U32)
        return scalar(operand.value, dtype)
    if operand.spelling is ir.Spelling.INTEGER:
        # f16 constants are written as bits; an integer in an f32/f64 place is its value.
        if dtype == F16:
            return scalar(operand.value, UNSIGNED[2]).view(F16)
        return np.array([operand.value], dtype)
    if operand.spelling is ir.Spelling.SINGLE:
        single = scalar(operand.value, U32).view(F32)
        return single if dtype == F32 else single.astype(dtype)
    return np.array([_as_double(operand)], F64).astype(dtype)


def _as_double(operand: ir.Immediate) -> float:
    return float(scalar(operand.value, U64).view(F64)[0])


def _typed(fetch: Fetch, dtype: DType) -> Fetch:
    """An integer value (address, special register) in another integer type."""
    return lambda f: fetch(f).astype(dtype, copy=False)


def _inverted(fetch: Fetch) -> Fetch:
    return lambda f: ~fetch(f)


def _plus(fetch: Fetch, offset: int, dtype: DType) -> Fetch:
    if offset == 0:
        return fetch
    distance = scalar(offset, dtype)
    return lambda f: fetch(f) + distance


def _read_same(slot: int, dtype: DType) -> Fetch:
    def fetch(f: Frame) -> Array:
        value = f.regs[slot]
        if f.compact and value.size != 1:
            value = value[f.index]
        return value if value.dtype is dtype else value.view(dtype)

    return fetch


def _read_narrower(slot: int, have: DType, dtype: DType) -> Fetch:
    """The low bits of a wider register."""
    same = _read_same(slot, have)
    bits = UNSIGNED[dtype.itemsize]
    return lambda f: same(f).astype(bits).view(dtype)


def _read_wider(slot: int, have: DType, dtype: DType) -> Fetch:
    """A narrow register where a wide value is asked for: filled with zeros."""
    same = _read_same(slot, have)
    bits = UNSIGNED[dtype.itemsize]
    return lambda f: same(f).astype(bits).view(dtype)
