"""Machine values for Z3: an expression of integers → a term over bit vectors; None for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warploom.machine.value.ir import Value, is_float, is_signed, nodes, width_of

Multiply = Callable[[Any, Any], Any]
Extend = Callable[[Any, int, bool], Any]  # a term, the width wanted, and whether by its sign


def term(z3: Any, value: Value, operands: list[Any], multiply: Multiply, extend: Extend) -> Any:
    """The value over terms for the operands.

    `multiply` makes products and `extend` other widths: a caller may leave parts of them unknown.
    """
    made: dict[Value, Any] = {}
    for node in nodes([value]):
        args = [made[a] for a in node.args]
        made[node] = _term(z3, node, args, operands, multiply, extend)
        if made[node] is None:
            return None
    return made[value]


def _term(
    z3: Any, node: Value, args: list[Any], operands: list[Any], multiply: Multiply, extend: Extend
) -> Any:
    width = width_of(node.type)
    if is_float(node.type):
        return None
    match node.op:
        case "arg":
            return operands[int(node.number)]
        case "const":
            return z3.BitVecVal(int(node.number), width)
        case "mul":
            return multiply(*args)
        case "to":
            return extend(args[0], width, is_signed(node.args[0].type))
        case "bits":
            return args[0]
        case "select":
            return z3.If(args[0] == 1, args[1], args[2])
        case "eq" | "lt" | "le":
            holds = _compared(z3, node.op, is_signed(node.args[0].type), *args)
            return z3.If(holds, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
        case "min" | "max":
            holds = _compared(z3, "lt", is_signed(node.type), *args)
            return z3.If(holds, *(args if node.op == "min" else args[::-1]))
        case "shl" | "shr":
            amount = extend(args[1], width, False)
            return _shifted(z3, node, args[0], amount)
        case "div" | "rem":
            return _divided(z3, node, *args)
        case _:
            return _plain(node.op, args)


def _compared(z3: Any, op: str, signed: bool, a: Any, b: Any) -> Any:
    match op, signed:
        case "eq", _:
            return a == b
        case "lt", True:
            return a < b
        case "le", True:
            return a <= b
        case "lt", _:
            return z3.ULT(a, b)
        case _:
            return z3.ULE(a, b)


def _shifted(z3: Any, node: Value, a: Any, amount: Any) -> Any:
    if node.op == "shl":
        return a << amount
    return a >> amount if is_signed(node.type) else z3.LShR(a, amount)


def _divided(z3: Any, node: Value, a: Any, b: Any) -> Any:
    if node.op == "div":
        return a / b if is_signed(node.type) else z3.UDiv(a, b)
    return z3.SRem(a, b) if is_signed(node.type) else z3.URem(a, b)


def _plain(op: str, args: list[Any]) -> Any:
    match op:
        case "add":
            return args[0] + args[1]
        case "sub":
            return args[0] - args[1]
        case "and":
            return args[0] & args[1]
        case "or":
            return args[0] | args[1]
        case "xor":
            return args[0] ^ args[1]
        case "neg":
            return -args[0]
        case "not":
            return ~args[0]
        case _:
            return None
