"""What a machine value is: an interned expression over typed operands.

    >>> a, b = arg(0, "s32"), arg(1, "s32")
    >>> (a.to("s64") + b.to("s64")).clip(-(2**31), 2**31 - 1).to("s32").type
    's32'

A type is u8 to u64, s8 to s64, f32, f64 or pred (a truth). Integers wrap; both operands of an
operation have its type, and a Python integer stands for a constant of that type. `evaluate.py` says
what each operation means; NumPy, C, Z3 and the symbolic emulator interpret the same expressions.
Constants are folded and laws applied as an expression is built, so equal values are one object.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

from warploom.machine.value.arithmetic import apply, wrap
from warploom.node import Interned, node

Operand: TypeAlias = "Value | int"


def width_of(type_: str) -> int:
    """The bits of a type; a truth has one."""
    return 1 if type_ == "pred" else int(type_[1:])


def is_signed(type_: str) -> bool:
    return type_[0] == "s"


def is_float(type_: str) -> bool:
    return type_[0] == "f"


def unsigned(type_: str) -> str:
    """The unsigned type of that width."""
    return f"u{width_of(type_)}"


def limits(type_: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    top = 1 << width_of(type_) - is_signed(type_)
    return (-top if is_signed(type_) else 0), top - 1


@node
class Value(metaclass=Interned):
    """An operation on values; `number` is that of an operand or constant, or how to round."""

    op: str
    type: str
    args: tuple[Value, ...]
    number: int | str

    def __repr__(self) -> str:
        inner = [str(self.number)] if self.op in ("arg", "const") else list(map(repr, self.args))
        return f"{self.op}.{self.type}({', '.join(inner)})"

    @property
    def constant(self) -> int | None:
        """The number, of a constant."""
        return int(self.number) if self.op == "const" else None

    # -- arithmetic, wrapping in the type ---------------------------------------------------------

    def __add__(self, other: Operand) -> Value:
        return _binary("add", self, other)

    def __sub__(self, other: Operand) -> Value:
        return _binary("sub", self, other)

    def __mul__(self, other: Operand) -> Value:
        return _binary("mul", self, other)

    def __and__(self, other: Operand) -> Value:
        return _binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return _binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return _binary("xor", self, other)

    def __neg__(self) -> Value:
        return make("neg", self.type, (self,))

    def __invert__(self) -> Value:
        return make("not", self.type, (self,))

    def high_product(self, other: Operand) -> Value:
        """The upper half of the product."""
        return _binary("mulhi", self, other)

    def quotient(self, other: Operand) -> Value:
        """Rounded towards zero; the divisor is not zero, and the quotient is of the type."""
        return _binary("div", self, other)

    def remainder(self, other: Operand) -> Value:
        """With the sign of the dividend; the divisor is not zero."""
        return _binary("rem", self, other)

    def min(self, other: Operand) -> Value:
        return _binary("min", self, other)

    def max(self, other: Operand) -> Value:
        return _binary("max", self, other)

    def clip(self, low: int, high: int) -> Value:
        """The nearest number of a range; an end that the type cannot pass is not asked."""
        least, most = limits(self.type)
        value = self if low <= least else self.max(low)
        return value if high >= most else value.min(high)

    def __lshift__(self, amount: Operand) -> Value:
        """By less than the width."""
        return make("shl", self.type, (self, lift(amount, "u32")))

    def __rshift__(self, amount: Operand) -> Value:
        """By less than the width; a signed number keeps its sign."""
        return make("shr", self.type, (self, lift(amount, "u32")))

    # -- truths -----------------------------------------------------------------------------------

    def eq(self, other: Operand) -> Value:
        return make("eq", "pred", (self, lift(other, self.type)))

    def lt(self, other: Operand) -> Value:
        return make("lt", "pred", (self, lift(other, self.type)))

    def le(self, other: Operand) -> Value:
        return make("le", "pred", (self, lift(other, self.type)))

    def select(self, yes: Value, no: Operand) -> Value:
        """One of two values of one type, by this truth."""
        return make("select", yes.type, (self, yes, lift(no, yes.type)))

    # -- types ------------------------------------------------------------------------------------

    def to(self, type_: str) -> Value:
        """The number in another type: cut off, or extended by the sign that this type has."""
        return make("to", type_, (self,))

    def bits(self, type_: str) -> Value:
        """The same bits under another type of the same width."""
        return make("bits", type_, (self,))

    def field(self, low: int, type_: str) -> Value:
        """The bits from `low` on, as many as a type has."""
        return (self.bits(unsigned(self.type)) >> low).to(unsigned(type_)).bits(type_)

    # -- floating-point numbers -------------------------------------------------------------------

    def is_nan(self) -> Value:
        return ~self.eq(self)

    def rounded(self, how: str) -> Value:
        """The whole number near an f32 or f64, in its type: rint, trunc, floor or ceil."""
        return make(how, self.type, (self,))

    def encoded(self, format_: str, mode: str, finite: bool = False, *random: Value) -> Value:
        """The bits of a number rounded to a format of `machine/narrow.py`, as u32.

        `mode` is rn, rz, rm, rp, rna or rs, which adds sixteen random bits before it truncates;
        with `finite` what is too large becomes the largest number. A NaN is the format's one.
        """
        how = f"{format_} {mode}{' finite' if finite else ''}"
        return make("encode", "u32", (self, *random), how)

    # -- bits -------------------------------------------------------------------------------------

    def ones(self) -> Value:
        """How many bits are set."""
        return make("popc", "u32", (self,))

    def leading_zeros(self) -> Value:
        return make("clz", "u32", (self,))

    def reversed(self) -> Value:
        return make("brev", self.type, (self,))


def arg(number: int, type_: str) -> Value:
    """The operand of that number."""
    return Value("arg", type_, (), number)


def const(type_: str, number: int) -> Value:
    """A number, wrapped to its type."""
    return Value("const", type_, (), wrap(type_, number))


def real(type_: str, number: float) -> Value:
    """A floating-point number of f32 or f64, which holds it exactly."""
    kind = "<f" if type_ == "f32" else "<d"
    return const(type_, int.from_bytes(struct.pack(kind, number), "little"))


TRUE, FALSE = const("pred", 1), const("pred", 0)


def lift(value: Operand, type_: str) -> Value:
    """A Python integer as a constant; a value of another type is a mistake of ours."""
    if isinstance(value, int):
        return const(type_, value)
    if value.type != type_:
        raise TypeError(f"a value of {value.type} where {type_} is needed")
    return value


def joined(parts: list[Value], type_: str = "u32") -> Value:
    """Values side by side, the first in the lowest bits."""
    total, low = const(type_, 0), 0
    for part in parts:
        total = total | part.bits(unsigned(part.type)).to(type_) << low
        low += width_of(part.type)
    return total


def _binary(op: str, a: Value, b: Operand) -> Value:
    return make(op, a.type, (a, lift(b, a.type)))


def make(op: str, type_: str, args: tuple[Value, ...], number: int | str = 0) -> Value:
    """An operation, or what the laws make of it."""
    numbers = [a.constant for a in args]
    floating = any(is_float(each) for each in (type_, *(a.type for a in args)))
    if None not in numbers and (op == "bits" or not floating):
        kinds = tuple(a.type for a in args)
        return const(type_, apply(op, type_, kinds, [n for n in numbers if n is not None]))
    return _lawful(op, args, numbers, type_) or Value(op, type_, args, number)


def _lawful(
    op: str, args: tuple[Value, ...], numbers: list[int | None], type_: str
) -> Value | None:
    """What an operation is without computing: x + 0 = x, x < x is false, …"""
    match op:
        case "add" | "or" | "xor" if numbers[0] == 0 and not is_float(type_):
            return args[1]
        case _ if is_float(type_) and op not in ("select", "to", "bits"):
            return None
        case "add" | "sub" | "or" | "xor" | "shl" | "shr" if numbers[1] == 0:
            return args[0]
        case "lt" if args[0] is args[1]:  # of a NaN, too
            return FALSE
        case "select" if numbers[0] is not None:
            return args[1] if numbers[0] else args[2]
        case "select" if args[1] is args[2]:
            return args[1]
        case "to" | "bits" if args[0].type == type_:
            return args[0]
        case "bits" if args[0].op == "bits":
            return args[0].args[0].bits(type_)
        case _:
            return None


def nodes(values: list[Value]) -> Iterator[Value]:
    """Every node of some expressions once, operands before what uses them."""
    seen: set[Value] = set()
    for value in values:
        stack = [value]
        while stack:
            top = stack[-1]
            waiting = [a for a in top.args if a not in seen]
            if waiting and top not in seen:
                stack += waiting
                continue
            stack.pop()
            if top not in seen:
                seen.add(top)
                yield top
