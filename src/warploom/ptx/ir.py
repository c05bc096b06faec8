"""What PTX is made of: modules, functions, declarations, statements and operands.

Every statement knows where it stands in the text it was read from (`start`, `end`: offsets), so
that an unchanged module prints byte for byte and an edit is a splice of text (see `show`).
Names are resolved while reading: a `Register` carries its declared type and a key that is unique
in its function, even where nested scopes declare the same name again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from warploom.errors import Source, Span

# -- operands ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register. `name` is as written; `key` tells equal names of two scopes apart."""

    name: str
    type: str  # without the dot: b32, f64, pred, …
    key: str
    vector: int = 1  # 2 or 4 for `.reg .v4 .f32 %v`


@dataclass(frozen=True, slots=True)
class Component:
    """One element of a vector register: `%v.x`."""

    register: Register
    index: int


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes or halves of a register, as video instructions name them: `%r1.b0`, `%r2.h10`."""

    register: Register
    selector: str  # without the dot


@dataclass(frozen=True, slots=True)
class Special:
    """A special register: `%tid.x`, `%laneid`, `%clock64` …"""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is no register: a variable, parameter, function, label, or `_` for nothing."""

    name: str


class Spelling(Enum):
    """How an immediate was written, which says how it is to be read."""

    INTEGER = "integer"
    DECIMAL = "decimal"  # 1.5e3: a double
    SINGLE = "single"  # 0fXXXXXXXX
    DOUBLE = "double"  # 0dXXXXXXXXXXXXXXXX


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. `value` is the integer, or the bit pattern for every floating spelling."""

    text: str
    value: int
    spelling: Spelling


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`: a predicate used the other way round, as an operand."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Minus:
    """`-%r1`: a register, or a part of one, with its sign turned."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; `base` is an immediate for an absolute address.

    `more` holds what else stands between the brackets (tensor coordinates, array indices).
    """

    base: Operand
    offset: int = 0
    more: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Offset:
    """`name+4` outside brackets, as in `mov.u64 %rd1, table+4`."""

    base: Operand
    offset: int


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, …}`"""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`a|b`: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Arguments:
    """`(a, b, …)`: the lists of a call."""

    elements: tuple[Operand, ...]


Operand = (
    Register
    | Component
    | Part
    | Special
    | Symbol
    | Immediate
    | Negated
    | Minus
    | Address
    | Offset
    | Vector
    | Pair
    | Arguments
)

# -- initial values ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Generic:
    """`generic(name)`: the generic address, not the one within the variable's space."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Masked:
    """`0xff00(name)`: one byte of an address."""

    mask: int
    operand: Operand | Generic


Initial = Operand | Generic | Masked

# -- statements -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """`@!p opcode.modifier.modifier operand, operand;`"""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    predicate: Register | None
    negated: bool
    start: int
    end: int

    @property
    def name(self) -> str:
        """Opcode and modifiers as written: `ld.global.nc.v4.f32`."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class RegisterDeclaration:
    """`.reg .b32 %r<5>, x;` One entry per name; `count` is 0 where no `<n>` is written."""

    type: str
    vector: int
    names: tuple[tuple[str, int], ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared piece of memory, a kernel parameter, or a parameter of a function.

    `sizes` are array sizes, outermost first; an open `[]` is 0. `vector` is 1, 2 or 4.
    `initial` holds the initialiser, flattened in memory order.
    """

    name: str
    space: str  # reg, param, shared, local, const, global
    type: str
    vector: int
    sizes: tuple[int, ...]
    align: int
    linkage: tuple[str, ...]  # extern, visible, weak, common
    attributes: tuple[str, ...]  # ptr, global, restrict … in order, without dots
    initial: tuple[Initial, ...] | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Directive:
    """Any other statement that starts with a dot: .loc, .file, .pragma, .section, .alias …

    `words` are its tokens after the name, as written. Targets and prototypes of branches and
    calls keep the label that names them.
    """

    name: str
    words: tuple[str, ...]
    label: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scope:
    """`{ … }` inside a body."""

    statements: tuple[Statement, ...]
    start: int
    end: int


Statement = Label | Instruction | RegisterDeclaration | Variable | Directive | Scope


# -- functions and modules --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """An `.entry` or a `.func`; `body` is None for a declaration without one.

    `directives` are those between header and body (`.maxntid 256, 1, 1`, `.noreturn`).
    `body_start` is the offset just after the opening brace, `body_end` that of the closing one.
    """

    kind: str  # entry or func
    name: str
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    linkage: tuple[str, ...]
    directives: tuple[Directive, ...]
    body: tuple[Statement, ...] | None
    start: int
    end: int
    body_start: int
    body_end: int

    def flat(self) -> Iterator[Statement]:
        """All statements in text order, scopes opened."""
        return flatten(self.body or ())

    def instructions(self) -> Iterator[Instruction]:
        return (s for s in self.flat() if isinstance(s, Instruction))


def flatten(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in statements:
        if isinstance(statement, Scope):
            yield from flatten(statement.statements)
        else:
            yield statement


@dataclass(frozen=True, slots=True)
class Text:
    """The text a module was read from, with the start of every line."""

    source: Source
    line_starts: tuple[int, ...] = field(repr=False)

    def span(self, start: int, end: int | None = None) -> Span:
        """The place of a run of characters, cut at the end of its first line."""
        row = max(0, bisect_right(self.line_starts, start) - 1)
        begin = self.line_starts[row]
        last = self.line_starts[row + 1] - 1 if row + 1 < len(self.line_starts) else None
        stop = start + 1 if end is None else end
        if last is not None:
            stop = min(stop, last)
        return Span(self.source, row + 1, start - begin + 1, max(1, stop - start))


@dataclass(frozen=True, slots=True)
class Module:
    """One PTX file. `items` are all top-level items in order; the others are views of it."""

    text: Text
    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    items: tuple[Function | Variable | Directive, ...]
    _functions: dict[str, Function] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, Function] = {}
        for function in self.functions:
            known = found.setdefault(function.name, function)
            if known.body is None and function.body is not None:
                found[function.name] = function
        object.__setattr__(self, "_functions", found)

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(item for item in self.items if isinstance(item, Function))

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(item for item in self.items if isinstance(item, Variable))

    @property
    def directives(self) -> tuple[Directive, ...]:
        return tuple(item for item in self.items if isinstance(item, Directive))

    def function(self, name: str) -> Function | None:
        """The function of that name, the one with a body if there are several declarations."""
        return self._functions.get(name)

    def span(self, item: Statement | Function) -> Span:
        return self.text.span(item.start, item.end)

    def source_of(self, item: Statement | Function) -> str:
        """The text of a statement, exactly as it was written."""
        return self.text.source.text[item.start : item.end]
