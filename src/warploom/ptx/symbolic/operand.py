"""Operands as forms: registers, constants, thread and block indices, names, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from warploom.machine.record import CUDA
from warploom.ptx import ir
from warploom.ptx.symbolic.form import Form, Pool, constant

Target = ir.Register | ir.Component
BOUNDS = {"%laneid": (0, CUDA.lanes - 1)}
for _axis, _side, _blocks in zip("xyz", CUDA.block_sides, CUDA.grid_sides, strict=True):
    BOUNDS |= {
        f"%tid.{_axis}": (0, _side - 1), f"%ntid.{_axis}": (1, _side),
        f"%ctaid.{_axis}": (0, _blocks - 1), f"%nctaid.{_axis}": (1, _blocks),
    }  # fmt: skip


@lru_cache(maxsize=256)
def width_of(type_name: str) -> int:
    """Bits of a type; 0 for one we do not know."""
    if type_name == "pred":
        return 1
    if type_name in ("f16x2", "bf16x2", "tf32"):
        return 32
    match = re.fullmatch(r"(?:u|s|b|f|bf)(8|16|32|64|128)", type_name)
    return int(match.group(1)) if match else 0


@lru_cache(maxsize=256)
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

    def value(self, operand: ir.Operand, width: int) -> Form | None:
        pool = self.pool
        match operand:
            case ir.Register() | ir.Component():
                return pool.extend(self.register(operand), width, signed=False)
            case ir.Immediate(value=value):
                return constant(width, value)
            case ir.Negated(inner):
                form = self.value(inner, 1)
                return None if form is None else constant(1, 1) + form
            case ir.Special(name):
                form = self.special(name)
                return None if form is None else pool.extend(form, width, signed=False)
            case ir.Symbol(name):
                return self.symbol(name, width)
            case ir.Offset(base, offset):
                form = self.value(base, width)
                return None if form is None else form + constant(width, offset)
            case _:
                return None

    def special(self, name: str) -> Form | None:
        if name not in BOUNDS:
            return None
        moves = name in ("%tid.x", "%laneid")
        # y and z do not change along a row, yet lanes of one warp may stand in two rows.
        uniform = not moves and not name.startswith("%tid")
        return self.pool.symbol(name, 32, moves=moves, uniform=uniform, bounds=BOUNDS[name])

    def symbol(self, name: str, width: int) -> Form | None:
        if name in self.parameters or name in self.names:
            return self.pool.symbol(f"&{name}", width)
        return None

    def address(self, operand: ir.Operand) -> Form | None:
        """`[base+offset]`, in the width of its base register."""
        if not isinstance(operand, ir.Address) or operand.more:
            return None
        base = operand.base
        width = 64
        if isinstance(base, ir.Register | ir.Component):
            width = self.register(base).width
        form = self.value(base, width)
        return None if form is None else form + constant(width, operand.offset)


def roots(pool: Pool, address: Form) -> frozenset[int]:
    """The pointers an address starts from: atoms of the full width, taken once.

    Where a pointer is chosen from two, both count.
    """
    found: set[int] = set()
    seen = {address}
    stack = [address]
    while stack:
        for monomial, coefficient in stack.pop().terms.items():
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
