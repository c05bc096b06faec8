"""Applies laws to an expression until none applies.

A law is two sides and a condition. Its variables are patterns: `a, b, c` match constants only,
`u, v` anything but a constant, all others anything. The parameters of a condition are names of the
law: a constant comes as its int, anything else as its `Range`. Where the left side is defined, the
right side must be defined and equal; one test checks that for every law.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from warploom.errors import CheckError, InternalError
from warploom.index import ir
from warploom.index.evaluate import HIGHEST, LOWEST, apply
from warploom.index.ranges import Range, Ranges
from warploom.index.show import show

CONSTANTS = frozenset("abc")
NOT_CONSTANT = frozenset("uv")

SOME = 10_000  # steps, whatever the size of an expression

_Root: TypeAlias = tuple[type, str]  # the kind of a node, and its operator


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """`left` → `right`, when the condition holds."""

    left: ir.Expr
    right: ir.Expr
    when: Callable[..., bool]
    # The names that the condition asks about, in its order.
    asks: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{show(self.left)}  →  {show(self.right)}"


def law(left: ir.Expr, right: ir.Expr | int, when: Callable[..., bool] = lambda: True) -> Law:
    made = Law(left, ir.lift(right), when, tuple(inspect.signature(when).parameters))
    unknown = (ir.variables(made.right) | set(made.asks)) - ir.variables(left)
    if unknown:
        raise InternalError(f"the law {made.name} does not bind {sorted(unknown)}")
    return made


class LawTable:
    """Laws by the operations at the root and just below it; few are left to be matched."""

    def __init__(self, laws: Iterable[Law]) -> None:
        self._laws = tuple(laws)
        self._candidates: dict[tuple[_Root, ...], tuple[Law, ...]] = {}

    def candidates(self, expr: ir.Expr) -> tuple[Law, ...]:
        roots = (_root(expr), *[_root(child) for child in ir.children(expr)])
        if roots not in self._candidates:
            self._candidates[roots] = tuple(
                each for each in self._laws if _may_match(each.left, roots)
            )
        return self._candidates[roots]


class Rewriter:
    """Laws, ready to be applied to expressions over variables with the given bounds."""

    def __init__(self, laws: LawTable, bounds: Mapping[str, tuple[int, int]]) -> None:
        self._laws = laws
        self._ranges = Ranges(bounds)
        self._done: dict[ir.Expr, ir.Expr] = {}

    @property
    def looked_at(self) -> int:
        return len(self._done)

    def rewrite(self, expr: ir.Expr) -> ir.Expr:
        """Children first; what a law gives is itself rewritten before it is used."""
        done = self._done
        if expr in done:
            return done[expr]
        becomes: dict[ir.Expr, ir.Expr] = {}
        steps = 0
        stack = [expr]
        while stack:
            part = stack[-1]
            steps += 1
            if steps % SOME == 0 and steps > SOME + 1_000 * len(ir.walk(expr)):
                raise InternalError(f"the laws of index expressions do not end at {part!r}")
            waits_for = (becomes[part],) if part in becomes else ir.children(part)
            missing = [other for other in waits_for if other not in done]
            if missing:
                stack.extend(missing)
            elif part in becomes:
                done[stack.pop()] = done[becomes[part]]
            else:
                after = self._step(
                    ir.rebuild(part, tuple([done[child] for child in ir.children(part)]))
                )
                if after is part:
                    done[stack.pop()] = part
                else:
                    becomes[part] = after
        return done[expr]

    def _step(self, expr: ir.Expr) -> ir.Expr:
        """One law applied at the root, or the same expression if there is none."""
        known = self._value(expr)
        if known is not None:
            return known
        for each in self._laws.candidates(expr):
            bound: dict[str, ir.Expr] = {}
            if _matches(each.left, expr, bound) and self._allows(each, bound):
                result = _instantiate(each.right, bound)
                if result is not None:
                    return result
        return expr

    def _value(self, expr: ir.Expr) -> ir.Const | None:
        """The constant that this must be, as its parts are constants or its bounds meet."""
        known = _fold(expr)
        if known is not None:
            return known
        low, high = self._ranges.of(expr)
        return ir.Const(low) if low == high and LOWEST <= low <= HIGHEST else None

    def _allows(self, each: Law, bound: dict[str, ir.Expr]) -> bool:
        return each.when(*[self._fact(name, bound[name]) for name in each.asks])

    def _fact(self, name: str, expr: ir.Expr) -> int | Range:
        if name in CONSTANTS:
            assert isinstance(expr, ir.Const)
            return expr.value
        return self._ranges.of(expr)


def _root(expr: ir.Expr) -> _Root:
    return type(expr), expr.op if isinstance(expr, ir.Unary | ir.Binary) else ""


def _may_match(pattern: ir.Expr, roots: tuple[_Root, ...]) -> bool:
    """Whether some expression with these operations at its root and below it has this form."""
    wanted = (pattern, *ir.children(pattern))
    return len(wanted) == len(roots) and all(
        root[0] is ir.Const or each.name not in CONSTANTS
        if isinstance(each, ir.Var)
        else root == _root(each)
        for each, root in zip(wanted, roots, strict=True)
    )


def _matches(pattern: ir.Expr, expr: ir.Expr, bound: dict[str, ir.Expr]) -> bool:
    """Whether the expression has the form of the pattern; fills `bound`. Patterns are shallow."""
    match pattern:
        case ir.Const():
            return pattern is expr
        case ir.Var(name):
            if name in bound:
                return bound[name] is expr
            if name in (NOT_CONSTANT if isinstance(expr, ir.Const) else CONSTANTS):
                return False
            bound[name] = expr
            return True
        case _:
            if _root(pattern) != _root(expr):
                return False
            for inner, part in zip(ir.children(pattern), ir.children(expr), strict=True):
                if not _matches(inner, part, bound):
                    return False
            return True


def _instantiate(right: ir.Expr, bound: dict[str, ir.Expr]) -> ir.Expr | None:
    """The right side with its constants computed; None if one of them is undefined."""

    def visit(part: ir.Expr, parts: tuple[ir.Expr | None, ...]) -> ir.Expr | None:
        if isinstance(part, ir.Var):
            return bound[part.name]
        known = tuple([each for each in parts if each is not None])
        if len(known) < len(parts):
            return None
        made = ir.rebuild(part, known)
        constant = all(isinstance(each, ir.Const) for each in known)
        return _fold(made) if constant else made

    return ir.fold_up(right, visit)


def _fold(expr: ir.Expr) -> ir.Const | None:
    """The value of an operation on constants; None if it is another thing, or undefined."""
    values = [part.value for part in ir.children(expr) if isinstance(part, ir.Const)]
    if isinstance(expr, ir.Var) or len(values) < len(ir.children(expr)):
        return None
    try:
        return ir.Const(int(apply(expr, tuple(values))))
    except CheckError:
        return None
