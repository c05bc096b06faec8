"""What an index expression is: interned integer arithmetic, built with Python's own operators.

    >>> x = Var("x")
    >>> (3 - x) % 8
    Binary('%', Binary('-', Const(3), Var('x')), Const(8))

Equal expressions are one object, so `==` is identity and a comparison *inside* the language is a
method: `x.lt(8)`. Truth is 0 or 1; any other value counts as true. `evaluate.py` says what each
operation means. Nothing here recurses: expressions may be thousands of operations deep.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from operator import index
from typing import Literal, TypeAlias, TypeVar, assert_never, get_args

from warploom.node import Interned, node

BinaryOp: TypeAlias = Literal[
    "+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>",
    "<", "<=", ">", ">=", "==", "!=", "and", "or",
]  # fmt: skip
UnaryOp: TypeAlias = Literal["-", "not"]

BINARY: tuple[BinaryOp, ...] = get_args(BinaryOp)
UNARY: tuple[UnaryOp, ...] = get_args(UnaryOp)
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
# Operations whose value is always 0 or 1.
TRUTHS = COMPARISONS | {"and", "or", "not"}
COMMUTATIVE = frozenset({"+", "*", "&", "|", "^", "==", "!=", "and", "or"})

T = TypeVar("T")
_Method: TypeAlias = "Callable[[Expr, Expr | int], Binary]"


def _infix(op: BinaryOp) -> tuple[_Method, _Method]:
    """The pair `left op right` and, for an int on the left, its reflection."""

    def method(self: Expr, other: Expr | int) -> Binary:
        return Binary(op, self, lift(other)) if _is_operand(other) else NotImplemented

    def reflected(self: Expr, other: Expr | int) -> Binary:
        return Binary(op, lift(other), self) if _is_operand(other) else NotImplemented

    return method, reflected


def _prefix(op: UnaryOp) -> Callable[[Expr], Unary]:
    return lambda self: Unary(op, self)


def whole_number(value: object) -> int | None:
    """A whole number as Python has it, of NumPy's too; None for anything else, and for truths."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return index(value)
    except TypeError:  # an array, or NumPy's truth
        return None


def _is_operand(value: object) -> bool:
    return isinstance(value, Operators) or hasattr(value, "__index__")


class Operators:
    """The operators every node has; one line per operator, both directions from one table row."""

    __slots__ = ()

    __add__, __radd__ = _infix("+")
    __sub__, __rsub__ = _infix("-")
    __mul__, __rmul__ = _infix("*")
    __floordiv__, __rfloordiv__ = _infix("//")
    __mod__, __rmod__ = _infix("%")
    __and__, __rand__ = _infix("&")
    __or__, __ror__ = _infix("|")
    __xor__, __rxor__ = _infix("^")
    __lshift__, __rlshift__ = _infix("<<")
    __rshift__, __rrshift__ = _infix(">>")
    lt = _infix("<")[0]
    le = _infix("<=")[0]
    gt = _infix(">")[0]
    ge = _infix(">=")[0]
    eq = _infix("==")[0]
    ne = _infix("!=")[0]
    and_ = _infix("and")[0]
    or_ = _infix("or")[0]

    __neg__ = _prefix("-")
    not_ = _prefix("not")

    def __bool__(self) -> bool:
        # `x and y` or `if x.lt(3)` would silently mean something else.
        raise TypeError("an index expression has no truth value; use and_, or_, not_ and select")


def _brief(self: Expr) -> str:
    return _constructor_text(self, 8)


@node
class Const(Operators, metaclass=Interned):
    """A number. Build with `lift` where the value may be a bool or a NumPy integer."""

    value: int
    __repr__ = _brief


@node
class Var(Operators, metaclass=Interned):
    """A lane, loop counter or parameter, by name."""

    name: str
    __repr__ = _brief


@node
class Unary(Operators, metaclass=Interned):
    op: UnaryOp
    operand: Expr
    __repr__ = _brief


@node
class Binary(Operators, metaclass=Interned):
    op: BinaryOp
    left: Expr
    right: Expr
    __repr__ = _brief


@node
class Select(Operators, metaclass=Interned):
    """`then` where the condition is not 0, else `otherwise`. Both sides must be defined."""

    condition: Expr
    then: Expr
    otherwise: Expr
    __repr__ = _brief


Expr: TypeAlias = Const | Var | Unary | Binary | Select


def lift(value: Expr | int) -> Expr:
    """An int (or bool, or NumPy integer) as a constant; an expression as it is."""
    return value if isinstance(value, Expr) else Const(int(index(value)))


def select(condition: Expr | int, then: Expr | int, otherwise: Expr | int) -> Expr:
    return Select(lift(condition), lift(then), lift(otherwise))


def minimum(left: Expr | int, right: Expr | int) -> Expr:
    return select(lift(left).lt(right), left, right)


def maximum(left: Expr | int, right: Expr | int) -> Expr:
    return select(lift(left).lt(right), right, left)


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Binary():
            return (expr.left, expr.right)
        case Const() | Var():
            return ()
        case Unary():
            return (expr.operand,)
        case Select():
            return (expr.condition, expr.then, expr.otherwise)
        case _:
            assert_never(expr)


def rebuild(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The same operation on other children."""
    match expr:
        case Const() | Var():
            return expr
        case Unary(op, _):
            return Unary(op, *parts)
        case Binary(op, _, _):
            return Binary(op, *parts)
        case Select():
            return Select(*parts)
        case _:
            assert_never(expr)


def walk(expr: Expr, skip: Container[Expr] = ()) -> list[Expr]:
    """Every distinct node once, children before parents; nothing at or below a node of `skip`."""
    seen: set[Expr] = set()
    order: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        part, children_done = stack.pop()
        if children_done:
            order.append(part)
        elif part not in seen and part not in skip:
            seen.add(part)
            stack.append((part, True))
            stack.extend((child, False) for child in reversed(children(part)))
    return order


# A node, where its children are in the order, and which values nobody needs after it.
_Fold = tuple[tuple["Expr", tuple[int, ...], tuple[int, ...]], ...]
_SMALL, _MOST_KEPT = 64, 1 << 14
_folds: dict[Expr, _Fold] = {}


def _fold(expr: Expr) -> _Fold:
    """How to fold an expression; kept for small ones, which are asked for again and again."""
    known = _folds.get(expr)
    if known is not None:
        return known
    order = walk(expr)
    at = {part: place for place, part in enumerate(order)}
    inside = [tuple([at[child] for child in children(part)]) for part in order]
    last = {child: place for place, own in enumerate(inside) for child in own}
    made = tuple(
        (part, own, tuple([each for each in dict.fromkeys(own) if last[each] == place]))
        for place, (part, own) in enumerate(zip(order, inside, strict=True))
    )
    if len(order) <= _SMALL:
        if len(_folds) >= _MOST_KEPT:
            _folds.clear()
        _folds[expr] = made
    return made


def fold_up(expr: Expr, visit: Callable[[Expr, tuple[T, ...]], T]) -> T:
    """`visit(node, values of its children)` for each distinct node, from the leaves to the root.

    A value is dropped after its last use, so that folding arrays over a long expression is cheap.
    """
    values: dict[int, T] = {}
    for place, (part, own, done) in enumerate(_fold(expr)):
        values[place] = visit(part, tuple([values[child] for child in own]))
        for child in done:
            del values[child]
    return values[place]


def variables(expr: Expr) -> frozenset[str]:
    return frozenset(part.name for part, _, _ in _fold(expr) if isinstance(part, Var))


def constants(expr: Expr) -> frozenset[int]:
    """The distinct constants: each costs a register or an immediate."""
    return frozenset(part.value for part in walk(expr) if isinstance(part, Const))


def operations(expr: Expr) -> int:
    """The cost of an expression: its distinct operations, a shared one counted once."""
    return sum(1 for _, inside, _ in _fold(expr) if inside)


def substitute(expr: Expr, values: Mapping[str, Expr | int]) -> Expr:
    """Every variable named in `values` replaced, all at once."""

    def visit(part: Expr, parts: tuple[Expr, ...]) -> Expr:
        if isinstance(part, Var):
            return lift(values[part.name]) if part.name in values else part
        return rebuild(part, parts)

    return fold_up(expr, visit)


def _constructor_text(expr: Expr, depth: int) -> str:
    """The constructor calls; what lies deeper than `depth` is cut, so that debugging is safe."""
    name = type(expr).__name__
    match expr:
        case Const(value):
            return f"{name}({value})"
        case Var(variable):
            return f"{name}({variable!r})"
        case _ if depth == 0:
            return "..."
    head = [repr(expr.op)] if isinstance(expr, Unary | Binary) else []
    parts = head + [_constructor_text(child, depth - 1) for child in children(expr)]
    return f"{name}({', '.join(parts)})"
