"""Arithmetic of host code: whole numbers and floats as C has them, of names that have values."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from warploom.verdict.tensors import Tensor

_WHOLE = r"int|long|long long|int32_t|int64_t|size_t|unsigned|unsigned int|uint32_t|uint64_t"
_KINDS = rf"(?:const )?({_WHOLE}|float|double)"
# A cast binds as an operator of one operand does, so it is written as one that C has elsewhere.
_CAST = re.compile(rf"\(\s*{_KINDS}\s*\)(?=\s*[\w(.-])")
_STATIC = re.compile(rf"static_cast<\s*{_KINDS}\s*>")
_LITERAL = re.compile(
    r"\b(?:(?P<hex>0[xX][0-9a-fA-F]+)|(?P<number>(?:\d+\.?\d*|(?<!\w)\.\d+)(?:[eE][+-]?\d+)?))"
    r"[fFuUlL]*(?![\w.])"
)
_LARGEST = 1 << 63


class NotReadError(Exception):
    """What of a text is not read."""


def as_whole(value: Any) -> int:
    """As a cast to a whole type has it: towards zero."""
    found = int(value)
    if abs(found) >= _LARGEST:
        raise ValueError
    return found


def _is_whole(kind: str) -> bool:
    return kind not in ("float", "double")


class Number:
    """Arithmetic on whole numbers and floats as C has it, of names that have values."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def of(self, text: str) -> Any:
        if "~" in text:
            raise NotReadError(f"'{text[:60]}'")
        plain = _LITERAL.sub(lambda m: m["hex"] or m["number"], text)
        plain = _CAST.sub(lambda m: "~+" if _is_whole(m[1]) else "~-", plain)
        plain = _STATIC.sub(lambda m: "int" if _is_whole(m[1]) else "float", plain)
        plain = plain.replace("std::", "")
        try:
            return self._of(ast.parse(plain.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, OverflowError):
            raise NotReadError(f"'{text[:60]}'") from None

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.Name(id=name) if isinstance(self.names.get(name), int | float):
                return self.names[name]
            case ast.UnaryOp(op=ast.Invert(), operand=ast.UnaryOp(op=ast.UAdd(), operand=inner)):
                return as_whole(self._of(inner))
            case ast.UnaryOp(op=ast.Invert(), operand=ast.UnaryOp(op=ast.USub(), operand=inner)):
                return float(self._of(inner))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._of(inner)
            case ast.BinOp(left=left, op=op, right=right):
                return self._joined(op, self._of(left), self._of(right))
            case ast.Call():
                return self._called(node)
        raise ValueError(ast.unparse(node))

    def _called(self, node: ast.Call) -> Any:
        match node:
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[first, second]):
                return {"min": min, "max": max}[name](self._of(first), self._of(second))
            case ast.Call(func=ast.Name(id="int"), args=[inner]):
                return as_whole(self._of(inner))
            case ast.Call(func=ast.Name(id="float"), args=[inner]):
                return float(self._of(inner))
            case ast.Call(func=ast.Name(id="sizeof"), args=[ast.Name(id=kind)]):
                return {"float": 4, "int": 4, "double": 8, "half": 2}[kind]
            case ast.Call(func=ast.Name(id="sqrtf" | "sqrt"), args=[inner]):
                return float(np.sqrt(self._of(inner)))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=args):
                tensor = self.names.get(name)
                if isinstance(tensor, Tensor) and attr in ("size", "numel", "dim"):
                    return int(getattr(tensor, attr)(*map(self._of, args)))
        raise ValueError(ast.unparse(node))

    def _joined(self, op: ast.operator, a: Any, b: Any) -> Any:
        whole = isinstance(a, int) and isinstance(b, int)
        match op:
            case ast.Add():
                return a + b
            case ast.Sub():
                return a - b
            case ast.Mult():
                return a * b
            case ast.Div() if whole:
                return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
            case ast.Div():
                return a / b
            case ast.Mod() if whole and a >= 0 and b > 0:
                return a % b
            case ast.LShift() if whole and 0 <= b < 63:
                return a << b
            case ast.RShift() if whole and 0 <= b < 63:
                return a >> b
        raise ValueError
