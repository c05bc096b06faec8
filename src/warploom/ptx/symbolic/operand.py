"""Operands as forms: registers, constants, thread and block indices, names, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warploom.ptx.ir import (
    Address,
    Component,
    Immediate,
    Negated,
    Offset,
    Operand,
    Register,
    Special,
    Symbol,
)
from warploom.ptx.symbolic.form import Form, Pool, add, constant

Target = Register | Component
BOUNDS = {
    "%tid.x": (0, 1023), "%tid.y": (0, 1023), "%tid.z": (0, 63),
    "%ntid.x": (1, 1024), "%ntid.y": (1, 1024), "%ntid.z": (1, 64),
    "%ctaid.x": (0, 2**31 - 2), "%ctaid.y": (0, 65534), "%ctaid.z": (0, 65534),
    "%nctaid.x": (1, 2**31 - 1), "%nctaid.y": (1, 65535), "%nctaid.z": (1, 65535),
    "%laneid": (0, 31),
}  # fmt: skip


def width_of(type_name: str) -> int:
    """Bits of a type; 0 for one we do not know."""
    if type_name == "pred":
        return 1
    if type_name in ("f16x2", "bf16x2", "tf32"):
        return 32
    match = re.fullmatch(r"(?:u|s|b|f|bf)(8|16|32|64|128)", type_name)
    return int(match.group(1)) if match else 0


def is_integer(type_name: str) -> bool:
    return re.fullmatch(r"[usb](8|16|32|64)", type_name) is not None


@dataclass(slots=True)
class Reader:
    """Reads operands as forms of a width; knows which names are kernel parameters."""

    pool: Pool
    register: Callable[[Target], Form]
    parameters: frozenset[str]
    names: frozenset[str]  # variables with one address for all lanes
    written: frozenset[int] = frozenset()  # pointers that something in the kernel writes through

    def value(self, operand: Operand, width: int) -> Form | None:
        pool = self.pool
        match operand:
            case Register() | Component():
                return pool.extend(self.register(operand), width, signed=False)
            case Immediate(value=value):
                return constant(width, value)
            case Negated(inner):
                form = self.value(inner, 1)
                return None if form is None else add(constant(1, 1), form)
            case Special(name):
                form = self.special(name, width)
                return None if form is None else pool.extend(form, width, signed=False)
            case Symbol(name):
                return self.symbol(name, width)
            case Offset(base, offset):
                form = self.value(base, width)
                return None if form is None else add(form, constant(width, offset))
            case _:
                return None

    def special(self, name: str, width: int) -> Form | None:
        if name == "WARP_SZ":
            return constant(width, 32)
        if name not in BOUNDS:
            return None
        moves = name in ("%tid.x", "%laneid")
        # y and z do not change along a row, yet lanes of one warp may stand in two rows.
        uniform = not moves and not name.startswith("%tid")
        return self.pool.symbol(name, 32, moves=moves, uniform=uniform, bounds=BOUNDS[name])

    def symbol(self, name: str, width: int) -> Form | None:
        if name == "WARP_SZ":
            return constant(width, 32)
        if name in self.parameters or name in self.names:
            return self.pool.symbol(f"&{name}", width)
        return None

    def address(self, operand: Operand) -> Form | None:
        """`[base+offset]`, in the width of its base register."""
        if not isinstance(operand, Address) or operand.more:
            return None
        base = operand.base
        width = 64
        if isinstance(base, Register | Component):
            width = self.register(base).width
        form = self.value(base, width)
        return None if form is None else add(form, constant(width, operand.offset))


def roots(pool: Pool, address: Form) -> frozenset[int]:
    """The pointers an address starts from: atoms of the full width, taken once.

    Where a pointer is chosen from two, both count.
    """
    found: set[int] = set()
    seen = {address}
    stack = [address]
    while stack:
        for monomial, coefficient in stack.pop().terms:
            atom = pool.atoms[monomial[0]] if coefficient == 1 and len(monomial) == 1 else None
            if atom is None or atom.bounds is not None:
                continue
            if atom.op == "ite":
                arms = {form for form in atom.forms[1:] if form not in seen}
                seen |= arms
                stack += arms
            else:
                found.add(atom.index)
    return frozenset(found)
