"""What an array expression is: interned nodes that know their types.

Parameters of a lambda are written without names: `Bound(level, position)` is a parameter of the
lambda `level` lambdas further out. So expressions that differ in names alone are one object. To
work inside a lambda it is opened: its parameters become free ones, `Param`, with names of their
own, and are bound again when it is closed.

    >>> from warploom.array.language.op import Split
    >>> from warploom.array.types import array
    >>> from warploom.index.ir import Const
    >>> from warploom.kernel.dtype import f32
    >>> x = Param("x", array(f32, 8))
    >>> apply(Split(Const(4)), (), (x,)).type is array(f32, 2, 4)
    True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NoReturn, TypeAlias, assert_never
from weakref import WeakKeyDictionary

from warploom.array.language.check import result_type
from warploom.array.language.op import (
    NUMBERS,
    Ask,
    Call,
    Compute,
    Get,
    Op,
    Reduce,
    Scan,
    Scatter,
    map_op_sizes,
)
from warploom.array.types import Scalar, Type, dtype_of, type_text, type_with
from warploom.errors import CheckError, Span, calling_line
from warploom.index.ir import Expr as Index
from warploom.index.ir import substitute
from warploom.kernel.ir import Comparison, Operator
from warploom.node import Interned, node

MOST_DEEP = 200  # operations inside each other


def _infix(op: Operator) -> tuple[_Method, _Method]:
    def method(self: Term, other: Term | float) -> Apply:
        return _operate(Compute(op), self, other)

    def reflected(self: Term, other: Term | float) -> Apply:
        return _operate(Compute(op), other, self)

    return method, reflected


def _asking(op: Comparison) -> _Method:
    return lambda self, other: _operate(Ask(op), self, other)


def _operate(op: Op, *operands: Term | float) -> Apply:
    """An operator written by a user, whose line an error is at."""
    like = next(each for each in operands if isinstance(each, Arithmetic))
    try:
        made = apply(op, (), [number_like(each, like) for each in operands])
    except CheckError as error:
        error.span = error.span or calling_line(__file__)
        raise
    # Whether a divisor may be zero is seen when there is a kernel.
    if isinstance(op, Compute) and op.op in DOUBTFUL and (span := calling_line(__file__)):
        note_place(made, span)
    return made


def _refused(what: str, instead: str) -> Callable[..., NoReturn]:
    """What Python would do by itself, and what to write."""

    def method(*_: object) -> NoReturn:
        raise CheckError(what, span=calling_line(__file__), advice=instead)

    return method


class Arithmetic:
    """The operators every expression has; a Python number takes the type of the other operand.

    Equal expressions are one object, so a comparison *of numbers* is a method, as in `index`.
    """

    __slots__ = ()

    __add__, __radd__ = _infix("+")
    __sub__, __rsub__ = _infix("-")
    __mul__, __rmul__ = _infix("*")
    __truediv__, __rtruediv__ = _infix("/")
    min, max = _infix("min")[0], _infix("max")[0]
    lt, le, gt, ge = _asking("<"), _asking("<="), _asking(">"), _asking(">=")
    eq, ne = _asking("=="), _asking("!=")
    __and__, __rand__ = _infix("&")
    __or__, __ror__ = _infix("|")
    __xor__, __rxor__ = _infix("^")
    __lshift__, __rlshift__ = _infix("<<")
    __rshift__, __rrshift__ = _infix(">>")

    def __neg__(self: Term) -> Apply:  # type: ignore[misc]
        return _operate(Compute("neg"), self)

    def __invert__(self: Term) -> Apply:  # type: ignore[misc]
        return _operate(Compute("~"), self)

    def __abs__(self: Term) -> Apply:  # type: ignore[misc]
        return _operate(Compute("abs"), self)

    def get(self: Term, part: int) -> Apply:  # type: ignore[misc]
        """A part of a tuple."""
        return _operate(Get(part), self)

    # `x and y` or `if x.lt(3)` would silently mean something else.
    __bool__ = _refused("an array expression has no truth value", "use choose")
    __lt__ = __le__ = __gt__ = __ge__ = _refused(
        "Python does not compare array expressions", "write x.lt(y) or x.ge(y), and choose by it"
    )
    __iter__ = __getitem__ = __len__ = _refused(
        "Python does not take array expressions apart",
        "use map_, element(0, xs), or x.get(0) of a tuple",
    )


@node
class Param(Arithmetic, metaclass=Interned):
    """A free parameter: an input of the program, or one of a lambda that was opened."""

    name: str
    type: Type


@node
class Bound(Arithmetic, metaclass=Interned):
    """A parameter of a lambda around: the nearest has level 0."""

    level: int
    position: int
    type: Type


@node
class Literal(Arithmetic, metaclass=Interned):
    """A number, or an array filled with one."""

    value: float
    type: Type


@node
class Apply(Arithmetic, metaclass=Interned):
    """Build with `apply`, which finds the type."""

    op: Op
    functions: tuple[Lambda, ...]
    arguments: tuple[Term, ...]
    type: Type


@node
class Lambda(metaclass=Interned):
    """A function; parameter i of the body is `Bound(0, i)` at its top. Called, it is applied."""

    types: tuple[Type, ...]
    body: Term

    def __call__(self, *arguments: Term) -> Term:
        return instantiate(self, arguments)


Term: TypeAlias = Param | Bound | Literal | Apply
_Method: TypeAlias = "Callable[[Term, Term | float], Apply]"


def apply(op: Op, functions: Sequence[Lambda], arguments: Sequence[Term]) -> Apply:
    """The operation applied; raises CheckError if it does not fit."""
    given, passed = tuple(functions), tuple(arguments)
    signatures = tuple((each.types, each.body.type) for each in given)
    made: Apply = Apply(
        op, given, passed, result_type(op, signatures, tuple(each.type for each in passed))
    )
    if facts_of(made).depth > MOST_DEEP:
        raise CheckError(
            f"more than {MOST_DEEP} operations inside each other",
            advice="iterate, or split the program with let",
        )
    return made


def number_like(value: Term | float, other: Term) -> Term:
    """A Python number as a literal of the other's type; an expression as it is."""
    if isinstance(value, Arithmetic):
        return value
    return literal(value, other.type)


def literal(value: float, type_: Type) -> Literal:
    """A number (or an array of it) of a type."""
    inner = type_
    while not isinstance(inner, Scalar) and hasattr(inner, "element"):
        inner = inner.element
    dtype = dtype_of(inner)
    if dtype is None or isinstance(value, bool) or not isinstance(value, int | float):
        raise CheckError(f"{value!r:.40} is no {type_text(type_)}")
    if not dtype.has(value):
        raise CheckError(f"{value} is no {dtype!r}", advice="round it, or convert the other")
    number = float(value) if dtype.is_float else int(value)
    return Literal(number, type_)


# -- facts about a node ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facts:
    """`loose`: how many lambdas around a node its parameters reach; `params`: the free ones;
    `concrete`: it computes something, where an abstract one only says where elements lie;
    `unreadable`: a scatter without inverse is in it."""

    loose: int
    params: frozenset[Param]
    concrete: bool
    depth: int
    unreadable: bool = False


_FACTS: WeakKeyDictionary[Apply, Facts] = WeakKeyDictionary()
_NONE: frozenset[Param] = frozenset()


def facts_of(term: Term) -> Facts:
    match term:
        case Param():
            return Facts(0, frozenset((term,)), False, 0)
        case Bound(level):
            return Facts(level + 1, _NONE, False, 0)
        case Literal():
            return Facts(0, _NONE, False, 0)
        case Apply():
            found = _FACTS.get(term)
            if found is None:
                found = _FACTS[term] = _facts(term)
            return found
        case _:
            assert_never(term)


def _facts(term: Apply) -> Facts:
    inside = [facts_of(each) for each in term.arguments]
    bodies = [facts_of(each.body) for each in term.functions]
    loose = [each.loose for each in inside] + [each.loose - 1 for each in bodies]
    both = [*inside, *bodies]
    return Facts(
        max(0, 0, *loose) if loose else 0,
        _NONE.union(*(each.params for each in both)),
        isinstance(term.op, WRITES) or any(each.concrete for each in both),
        1 + max((each.depth for each in both), default=0),
        (isinstance(term.op, Scatter) and term.op.inverse is None)
        or any(each.unreadable for each in both),
    )


WRITES = (*NUMBERS, Reduce, Scan, Call)


def is_concrete(term: Term) -> bool:
    """Whether something is computed, so that memory is written."""
    return facts_of(term).concrete


# -- where it was written --------------------------------------------------------------------------

# Operators that are not for all integers.
DOUBTFUL = ("/", "<<", ">>")
# The line on which an operation was last written, for errors that show only once sizes are known.
_PLACES: WeakKeyDictionary[Apply, Span] = WeakKeyDictionary()


def note_place(term: Apply, span: Span) -> None:
    _PLACES[term] = span


def place_of(term: Term) -> Span | None:
    """The user's line that built this operation."""
    return _PLACES.get(term) if isinstance(term, Apply) else None


# -- binding ---------------------------------------------------------------------------------------

_NUMBERS = count(1)


def fresh(type_: Type) -> Param:
    """A parameter that is nowhere else."""
    return Param(f"%{next(_NUMBERS)}", type_)


def instantiate(function: Lambda, arguments: Sequence[Term]) -> Term:
    """The body with arguments in the place of its parameters."""
    given = tuple(arguments)
    if tuple(each.type for each in given) != function.types:
        wanted, found = (
            ", ".join(map(type_text, types))
            for types in (function.types, (each.type for each in given))
        )
        raise CheckError(f"a function of {wanted} gets {found}")

    def leaf(term: Param | Bound, depth: int) -> Term:
        if isinstance(term, Bound) and term.level == depth:
            return given[term.position]
        return term

    return _changed(function.body, 0, leaf, lambda facts, depth: facts.loose > depth, {})


def opened(function: Lambda) -> tuple[tuple[Param, ...], Term]:
    """Free parameters and the body over them."""
    params = tuple(fresh(type_) for type_ in function.types)
    return params, instantiate(function, params)


def close(params: Sequence[Param], body: Term) -> Lambda:
    """The function of these parameters."""
    position = {param: at for at, param in enumerate(params)}

    def leaf(term: Param | Bound, depth: int) -> Term:
        if isinstance(term, Param) and term in position:
            return Bound(depth, position[term], term.type)
        return term

    wanted = frozenset(params)
    closed = _changed(body, 0, leaf, lambda facts, _: not facts.params.isdisjoint(wanted), {})
    return Lambda(tuple(param.type for param in params), closed)


_Leaf: TypeAlias = "Callable[[Param | Bound, int], Term]"
_Wanted: TypeAlias = "Callable[[Facts, int], bool]"


def _changed(
    term: Term, depth: int, leaf: _Leaf, wanted: _Wanted, done: dict[tuple[Term, int], Term]
) -> Term:
    """The term with its parameters changed; parts where `wanted` is false stay as they are."""
    match term:
        case Param() | Bound():
            return leaf(term, depth)
        case Literal():
            return term
        case Apply():
            if not wanted(facts_of(term), depth):
                return term
            key = (term, depth)
            if key not in done:
                functions = [
                    Lambda(each.types, _changed(each.body, depth + 1, leaf, wanted, done))
                    for each in term.functions
                ]
                arguments = [_changed(each, depth, leaf, wanted, done) for each in term.arguments]
                # Nothing changes its type, so the operation still fits.
                done[key] = made = Apply(term.op, tuple(functions), tuple(arguments), term.type)
                if term in _PLACES:
                    note_place(made, _PLACES[term])
            return done[key]
        case _:
            assert_never(term)


# -- walking ---------------------------------------------------------------------------------------


def walk(term: Term) -> Iterator[Term]:
    """The term and everything inside it, arguments before bodies, what is shared once; bodies stay
    closed."""
    pending, seen = [term], set[Term]()
    while pending:
        part = pending.pop()
        if isinstance(part, Apply):
            if part in seen:
                continue
            seen.add(part)
            pending += [each.body for each in reversed(part.functions)]
            pending += reversed(part.arguments)
        yield part


def repeated_terms(term: Term) -> frozenset[Term]:
    """What is applied and used more than once in one lambda, or outside of all."""
    uses: dict[Term, int] = {}
    pending = [term]
    while pending:
        part = pending.pop()
        uses[part] = uses.get(part, 0) + 1
        if isinstance(part, Apply) and uses[part] == 1:
            pending += part.arguments
    return frozenset(part for part, n in uses.items() if n > 1 and isinstance(part, Apply))


def with_sizes(term: Term, values: Mapping[str, int | Index]) -> Term:
    """The term with size variables replaced, everywhere."""
    return _Sized(values).term(term)


class _Sized:
    def __init__(self, values: Mapping[str, int | Index]) -> None:
        self.values = values
        self.done: dict[Term, Term] = {}

    def term(self, term: Term) -> Term:
        match term:
            case Param(name, type_):
                return Param(name, type_with(type_, self.values))
            case Bound(level, position, type_):
                return Bound(level, position, type_with(type_, self.values))
            case Literal(value, type_):
                return Literal(value, type_with(type_, self.values))
            case Apply():
                if term not in self.done:
                    self.done[term] = self._applied(term)
                return self.done[term]
            case _:
                assert_never(term)

    def _applied(self, term: Apply) -> Apply:
        made = apply(
            map_op_sizes(term.op, lambda size: substitute(size, self.values)),
            [self._function(each) for each in term.functions],
            [self.term(each) for each in term.arguments],
        )
        if term in _PLACES:
            note_place(made, _PLACES[term])
        return made

    def _function(self, function: Lambda) -> Lambda:
        types = tuple(type_with(each, self.values) for each in function.types)
        return Lambda(types, self.term(function.body))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A named function of arrays and numbers: its inputs are free parameters of the body."""

    name: str
    inputs: tuple[Param, ...]
    body: Term
