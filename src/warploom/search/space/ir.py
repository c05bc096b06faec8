"""What a space is: objects, choices among listed values, counters, and sentences about them.

Everything here is data that names objects and values; `Space` in build.py puts it together,
evaluate.py says what it means. Sentences are built with `|`, `&` and `~` from conditions on
choices, and every variable in them stands for all objects of its property, different variables for
different objects. `==` between terms is identity; *inside* the language it is `eq` and `ne`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from warploom.errors import CheckError

Objects: TypeAlias = tuple[Hashable, ...]
Value: TypeAlias = str | int
Operator: TypeAlias = Literal["<=", ">=", "<", ">", "==", "!="]
Kind: TypeAlias = Literal["sum", "product"]

NEGATED: dict[Operator, Operator] = {
    "<=": ">", ">": "<=", ">=": "<", "<": ">=", "==": "!=", "!=": "==",
}  # fmt: skip


# -- objects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Property:
    """The tuples of objects for which something holds: a set, or a relation between objects."""

    name: str
    arity: int
    rows: tuple[Objects, ...]
    _members: frozenset[Objects] = field(repr=False, default=frozenset())

    def __contains__(self, row: object) -> bool:
        return row in self._members

    def one(self, name: str) -> Variable:
        """A variable for an object of this set."""
        return self.row(name)[0]

    def each(self, *names: str) -> tuple[Variable, ...]:
        """Independent variables for objects of this set."""
        return tuple(self.one(name) for name in names)

    def row(self, *names: str) -> tuple[Variable, ...]:
        """Variables that stand for the objects of one tuple of this relation together."""
        if len(names) != self.arity:
            raise CheckError(f"'{self.name}' has tuples of {self.arity}, not of {len(names)}")
        binding = Binding(self)
        return tuple(Variable(name, binding, column) for column, name in enumerate(names))

    def __call__(self, *arguments: Variable) -> Holds:
        """The static condition that the objects are in this property."""
        _check_arguments(self.name, self.arity, arguments)
        return Holds(self, arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """What binds variables together: they run through the rows of one property."""

    property: Property


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    name: str
    binding: Binding
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """An integer known for each object (or tuple of objects), such as a size in bytes."""

    name: str
    arity: int
    values: Mapping[Objects, int]

    def __call__(self, *arguments: Variable) -> Given:
        _check_arguments(self.name, self.arity, arguments)
        return Given(self, arguments)


# -- choices and counters --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of `values` for each tuple of objects in `instances`; instance i starts with the values
    whose bits are set in `start[i]`.

    A choice between two objects of one set may be symmetric or antisymmetric: then `inverse[v]` is
    the value of (b, a) where (a, b) has value v, and only one of the two is an instance. `derived`
    choices follow from the others and are decided last. Where objects may be inactive (`absent`),
    an instance with an inactive object has no value, which is written as one bit more; a flag says
    which objects are active.
    """

    name: str
    sets: tuple[Property, ...]
    values: tuple[Value, ...]
    instances: tuple[Objects, ...]
    start: tuple[int, ...]
    inverse: tuple[int, ...] | None = None
    derived: bool = False
    absent: bool = False
    is_flag: bool = False

    @property
    def arity(self) -> int:
        return sum(members.arity for members in self.sets)

    @property
    def width(self) -> int:
        """Bits of a domain."""
        return len(self.values) + self.absent

    @property
    def absent_bit(self) -> int:
        return 1 << len(self.values) if self.absent else 0

    @property
    def is_integer(self) -> bool:
        return all(isinstance(value, int) for value in self.values)

    def bits(self, values: Iterable[Value | None]) -> int:
        """The values as a bit set; None is having no value."""
        bits = 0
        for value in values:
            if value is None and self.absent:
                bits |= self.absent_bit
                continue
            if value is None or value not in self.values:
                raise CheckError(
                    f"'{value}' is not a value of the choice '{self.name}'",
                    advice=f"its values are {', '.join(map(str, self.values))}",
                )
            bits |= 1 << self.values.index(value)
        return bits

    def __call__(self, *arguments: Variable) -> Chosen:
        _check_arguments(self.name, self.arity, arguments)
        return Chosen(self, arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Amount:
    """What a counter adds (or multiplies by) for each tuple of objects for which `when` holds."""

    amount: Term
    when: Sentence


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """For each tuple of objects of `per`, the sum or product of `base` and the amounts."""

    name: str
    kind: Kind
    per: tuple[Variable, ...]
    amounts: tuple[Amount, ...]
    base: Term

    def __call__(self, *arguments: Variable) -> Counted:
        _check_arguments(self.name, len(self.per), arguments)
        return Counted(self, arguments)


def _check_arguments(name: str, arity: int, arguments: tuple[Variable, ...]) -> None:
    if len(arguments) != arity or not all(isinstance(a, Variable) for a in arguments):
        raise CheckError(
            f"'{name}' takes {arity} variables",
            advice="make variables with the property's one(), each() or row()",
        )


# -- terms -----------------------------------------------------------------------------------------


class Comparisons:
    """Comparisons of numbers; between choices of the same values also `eq` and `ne`."""

    __slots__ = ()

    def __le__(self, other: Term) -> Compare:
        return _compare("<=", self, other)

    def __ge__(self, other: Term) -> Compare:
        return _compare(">=", self, other)

    def __lt__(self, other: Term) -> Compare:
        return _compare("<", self, other)

    def __gt__(self, other: Term) -> Compare:
        return _compare(">", self, other)

    def eq(self, other: Term) -> Compare:
        return _compare("==", self, other)

    def ne(self, other: Term) -> Compare:
        return _compare("!=", self, other)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen(Comparisons):
    """The value of a choice for some objects."""

    choice: Choice
    arguments: tuple[Variable, ...]

    def is_(self, *values: Value) -> Is:
        return Is(self, self.choice.bits(values))

    def is_not(self, *values: Value) -> Is:
        return ~self.is_(*values)


@dataclass(frozen=True, slots=True, eq=False)
class Counted(Comparisons):
    """The value of a counter for some objects."""

    counter: Counter
    arguments: tuple[Variable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Given(Comparisons):
    """A number known for some objects."""

    number: Number
    arguments: tuple[Variable, ...]


Term: TypeAlias = Chosen | Counted | Given | int


def _compare(op: Operator, left: object, right: object) -> Compare:
    return Compare(op, *_comparable(op, _term(left), _term(right)))


def _term(value: object) -> Term:
    if not isinstance(value, Chosen | Counted | Given | int) or isinstance(value, bool):
        raise CheckError(f"cannot compare with {value!r}", advice="compare numbers and choices")
    return value


def _comparable(op: Operator, left: Term, right: Term) -> tuple[Term, Term]:
    """Both are numbers, or values of the same list that are (not) equal."""
    choices = [term.choice for term in (left, right) if isinstance(term, Chosen)]
    if all(choice.is_integer for choice in choices):
        return left, right
    if len(choices) < 2 or choices[0].values != choices[1].values or op not in ("==", "!="):
        raise CheckError(
            f"the values of '{choices[0].name}' are not numbers",
            advice="choices among the same values are compared with eq and ne",
        )
    return left, right


# -- sentences -------------------------------------------------------------------------------------


class Connectives:
    __slots__ = ()

    def __or__(self, other: Sentence) -> Or:
        return Or((sentence(self), sentence(other)))

    def __and__(self, other: Sentence) -> And:
        return And((sentence(self), sentence(other)))

    def __bool__(self) -> bool:
        # `a or b` or `if a` would silently mean something else.
        raise TypeError("a sentence of a space has no truth value; use |, & and ~")


@dataclass(frozen=True, slots=True, eq=False)
class Is(Connectives):
    """The choice has one of the values whose bits are set in `allowed`."""

    term: Chosen
    allowed: int

    def __invert__(self) -> Is:
        return Is(self.term, ~self.allowed & (1 << len(self.term.choice.values)) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Connectives):
    op: Operator
    left: Term
    right: Term

    def __invert__(self) -> Compare:
        return Compare(NEGATED[self.op], self.left, self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Holds(Connectives):
    """The objects are in the property, or not: known before any choice is made."""

    property: Property
    arguments: tuple[Variable, ...]
    negated: bool = False

    def __invert__(self) -> Holds:
        return Holds(self.property, self.arguments, not self.negated)


@dataclass(frozen=True, slots=True, eq=False)
class And(Connectives):
    """Without parts: true."""

    parts: tuple[Sentence, ...]

    def __invert__(self) -> Or:
        return Or(tuple(~part for part in self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class Or(Connectives):
    """Without parts: false."""

    parts: tuple[Sentence, ...]

    def __invert__(self) -> And:
        return And(tuple(~part for part in self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class Some(Connectives):
    """There are objects, different from those of all other variables, for which `body` holds."""

    variables: tuple[Variable, ...]
    body: Sentence

    def __invert__(self) -> Every:
        return Every(self.variables, ~self.body)


@dataclass(frozen=True, slots=True, eq=False)
class Every(Connectives):
    """`body` holds for all objects, different from those of all other variables."""

    variables: tuple[Variable, ...]
    body: Sentence

    def __invert__(self) -> Some:
        return Some(self.variables, ~self.body)


Atom: TypeAlias = Is | Compare | Holds
Sentence: TypeAlias = Is | Compare | Holds | And | Or | Some | Every
TRUE = And(())


def sentence(value: object) -> Sentence:
    """The value itself, if it is a sentence."""
    if not isinstance(value, Is | Compare | Holds | And | Or | Some | Every):
        raise CheckError(
            f"{value!r} is not a sentence",
            advice="compare with eq and ne, not with == and !=",
        )
    return value


def implies(given: Sentence, then: Sentence) -> Or:
    return ~sentence(given) | sentence(then)


def iff(left: Sentence, right: Sentence) -> And:
    return implies(left, right) & implies(right, left)


def some(variable: Variable | tuple[Variable, ...], body: Sentence) -> Some:
    return Some(variable if isinstance(variable, tuple) else (variable,), sentence(body))


def every(variable: Variable | tuple[Variable, ...], body: Sentence) -> Every:
    return Every(variable if isinstance(variable, tuple) else (variable,), sentence(body))


# -- what a space requires -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """The sentence holds for all objects its free variables stand for."""

    name: str
    sentence: Sentence


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """`table[u][v]` holds the values that (a, c) may have where (a, b) has u and (b, c) has v."""

    choice: Choice
    table: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """For each tuple of objects, the terms together take one of the listed rows of values."""

    name: str
    terms: tuple[Chosen, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """For each tuple of objects of `total`, it is the sum or product of all the `parts`."""

    name: str
    kind: Kind
    total: Chosen
    part: Chosen


Constraint: TypeAlias = Requirement | Composition | Table | Equation
