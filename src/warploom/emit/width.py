"""Index expressions as text, in numbers of 32 or 64 bits.

In a kernel whose indices have 64 bits, a name whose values are known to fit 32 is an `int` all the
same, and so is what is computed from such names alone and fits: lanes and loop counters stay cheap.
"""

from __future__ import annotations

from warploom.emit.dialect import Dialect
from warploom.index.ir import TRUTHS, Binary, Const, Expr, Select, Unary, Var, substitute, walk
from warploom.index.laws import tidied
from warploom.index.ranges import Range, Ranges
from warploom.index.show import c_text
from warploom.kernel.bounds import INT_MAX, INT_MIN, Bounds
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel


class IndexPrinter:
    """`bounds` are the printer's, who keeps them up to date; `type` is what indices are; the names
    of helper functions begin with `prefix`."""

    def __init__(self, kernel: Kernel, dialect: Dialect, bounds: Bounds, prefix: str) -> None:
        self.type = dialect.types[kernel.index]
        self._suffix = dialect.long.upper() if kernel.index is DType.I64 else ""
        self._bounds = bounds
        self._prefix = prefix
        self._ints = bounds.keys() - {each.name for each in kernel.scalars}

    def text(self, expr: Expr) -> str:
        expr = tidied(expr)
        if not self._suffix or self._is_int(expr):
            return c_text(expr, self._bounds, prefix=self._prefix)
        return c_text(self._lengthened(expr), self._bounds, self._suffix, self._prefix)

    def declared(self, name: str, values: tuple[int, int]) -> str:
        """The type of a name that has these values; later texts know of it."""
        if not self._suffix or _fits(Range(*values)):
            self._ints.add(name)
            return "int"
        self._ints.discard(name)
        return self.type

    def _is_int(self, expr: Expr) -> bool:
        ranges = Ranges(self._bounds)
        return all(
            _fits(ranges.of(part)) and (not isinstance(part, Var) or part.name in self._ints)
            for part in walk(expr)
        )

    def _lengthened(self, expr: Expr) -> Expr:
        """Literals are long; but where names alone are added or multiplied, C would do it in `int`,
        and if that may be too small, they are made long first."""
        ranges = Ranges(self._bounds)
        if not any(self._in_int(part) and not _fits(ranges.of(part)) for part in walk(expr)):
            return expr
        names = {part.name for part in walk(expr) if isinstance(part, Var)}
        return substitute(expr, {n: Binary("*", Var(n), Const(1)) for n in names & self._ints})

    def _in_int(self, expr: Expr) -> bool:
        """Whether C computes it in `int`, if literals are long."""
        match expr:
            case Const():
                return False
            case Var(name):
                return name in self._ints
            case Unary() | Binary() if expr.op in TRUTHS:
                return True
            case Unary(_, operand):
                return self._in_int(operand)
            case Binary(_, left, right):
                return self._in_int(left) and self._in_int(right)
            case Select(_, then, otherwise):
                return self._in_int(then) and self._in_int(otherwise)


def _fits(values: Range) -> bool:
    return bool(values.low >= INT_MIN and values.high <= INT_MAX)
