"""Reads a `.swflow` text: characters come in, the surface tree comes out.

statement  := annotation* (definition | goal | binding)
annotation := '@' NAME ('=' NUMBER)?
binding    := name ':' type '=' (literal | block | call)
type       := '[' number, … ']'
literal    := fold* (nested array of leaves | 'range' '(' number ',' number ')')
leaf       := number | [fold] '(' leaf, … ')' | '?' | '=' a number of any kind
fold       := '+' | '*' | 'min' | 'max' | '&' | '|' | '^' | 'fold' | a function's name in quotes
block      := '{' statement* '}'
call       := [fold ['(']] ['?'] name [options] ['(' name, … ')'] [')']
goal       := 'goal' ':' type ('=' literal | name [options])
definition := 'define' name '(' type, … ')' '->' type '=' (gather | '{' named gather, … '}')
gather     := nested array of: n | ((i, j, …)) | (argument, n) | (argument, (i, j, …))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from warploom.errors import ParseError, Span
from warploom.sketch.term import surface
from warploom.sketch.term.ir import Shape
from warploom.sketch.term.lex import Kind, Lexer, Token, lexer
from warploom.sketch.term.limits import MAX_NESTING, MAX_RANK, MAX_WORDS
from warploom.sketch.term.operator import WORD, function

T = TypeVar("T")


def parse(text: str, name: str) -> surface.File:
    """The surface tree of a text, or one located ParseError."""
    return _Parser(lexer(text, name)).file()


class _Parser:
    """Recursive descent with one token of look-ahead; nesting is bounded, so recursion is too."""

    def __init__(self, source: Lexer) -> None:
        self.source = source
        self.token = source.at(0)
        self.words = 0

    # -- tokens ----------------------------------------------------------------------------------

    def next(self) -> Token:
        token = self.token
        self.words += 1
        if self.words > MAX_WORDS:  # bounds the time that any text can take
            raise ParseError(f"the text has more than {MAX_WORDS} words", self.here())
        self.token = self.source.at(token.start + len(token.text))
        return token

    def sees(self, kind: Kind) -> bool:
        return self.token.kind is kind

    def accept(self, kind: Kind) -> Token | None:
        return self.next() if self.token.kind is kind else None

    def expect(self, kind: Kind, advice: str = "") -> Token:
        if self.token.kind is not kind:
            raise self.unexpected(kind.value, advice)
        return self.next()

    def here(self) -> Span:
        return self.source.span_of(self.token)

    def unexpected(self, wanted: str, advice: str = "") -> ParseError:
        token = self.token
        got = Kind.END.value if token.kind is Kind.END else f"'{token.text[:40]}'"
        return ParseError(f"expected {wanted}, got {got}", self.here(), advice)

    def number(self) -> int:
        return int(self.expect(Kind.NUMBER).text)

    def name(self) -> surface.Name:
        span = self.here()
        return surface.Name(self.expect(Kind.NAME).text, span)

    def listed(self, close: Kind, item: Callable[[], T], least: int = 1) -> tuple[T, ...]:
        """`item, item, …` up to and with the closing bracket; a trailing comma is fine."""
        items: list[T] = []
        while len(items) < least or self.token.kind is not close:
            items.append(item())
            if self.token.kind is not Kind.COMMA:
                break
            self.next()
        if self.token.kind is not close:
            raise self.unexpected(f"',' or {close.value}")
        self.next()
        return tuple(items)

    # -- statements ------------------------------------------------------------------------------

    def file(self) -> surface.File:
        statements: list[surface.Statement] = []
        while self.token.kind is not Kind.END:
            statements.append(self.statement(0))
        return surface.File(tuple(statements), self.here())

    def statement(self, depth: int) -> surface.Statement:
        annotations: list[surface.Annotation] = []
        while self.accept(Kind.AT):
            name = self.name()
            number = self.number() if self.accept(Kind.EQUALS) else None
            annotations.append(surface.Annotation(name, number))
        if self.token.kind is Kind.GOAL:
            return self.goal(tuple(annotations))
        if self.accept(Kind.DEFINE):
            return self.definition()
        if self.token.kind is not Kind.NAME:
            raise self.unexpected(
                "a statement", "a statement is 'name: [shape] = value', 'goal: …' or 'define …'"
            )
        name = self.name()
        self.expect(Kind.COLON, "a binding is 'name: [shape] = value'")
        declared = self.type()
        self.expect(Kind.EQUALS)
        return surface.Binding(name, declared, self.value(depth), tuple(annotations))

    def type(self) -> surface.Type:
        span = self.here()
        self.expect(Kind.SQUARE_OPEN, "a shape is written like [32, 5]")
        return surface.Type(self.listed(Kind.SQUARE_CLOSE, self.size), span)

    def size(self) -> int:
        span = self.here()
        value = self.number()
        if value <= 0:
            raise ParseError(f"every size of a shape is at least 1, got {value}", span)
        return value

    def value(self, depth: int) -> surface.LiteralValue | surface.Block | surface.Call:
        """What follows `=`: told apart by the first token that is not a fold."""
        start = self.token
        folds = self.folds()
        if self.token.kind in (Kind.SQUARE_OPEN, Kind.RANGE):
            return self.literal(tuple(folds.values()), self.source.span_of(start))
        if self.token.kind is Kind.BRACE_OPEN:
            if folds:
                raise self.unexpected(
                    "a call or an array", "a block cannot be folded; fold its last line"
                )
            return self.block(depth)
        if len(folds) > 1:
            raise ParseError(
                "a call takes one fold only",
                self.source.span_of(list(folds)[1]),
                "write the second fold as its own statement",
            )
        return self.call(next(iter(folds.values()), None))

    def folds(self) -> dict[Token, str]:
        """As many operators as stand here, the outermost first."""
        found = {}
        while self.token.kind in (Kind.FOLD, Kind.STRING):
            token = self.token
            found[token] = self.operator()
        return found

    def operator(self) -> str:
        """One operator: a sign, a word, or the name of a function in quotes."""
        if self.token.kind is Kind.FOLD:
            return self.next().text
        token, name = self.token, self.string()
        if not name:
            raise ParseError("a function has a name", self.source.span_of(token))
        return function(name)

    def string(self) -> str:
        return self.next().text[1:-1].replace('\\"', '"')

    def block(self, depth: int) -> surface.Block:
        span = self.here()
        if depth >= MAX_NESTING:
            raise ParseError(f"blocks nest at most {MAX_NESTING} deep", span)
        self.expect(Kind.BRACE_OPEN)
        statements: list[surface.Statement] = []
        while self.token.kind is not Kind.BRACE_CLOSE:
            if self.token.kind is Kind.END:
                raise ParseError("the block that begins here never ends", span, "close it with }")
            statements.append(self.statement(depth + 1))
        self.next()
        return surface.Block(tuple(statements), span)

    def call(self, operator: str | None) -> surface.Call:
        wrapped = operator is not None and self.accept(Kind.PAREN_OPEN) is not None
        self.accept(Kind.OPEN_MARK)  # cosmetic: a hole is a call with more than one gather
        if self.token.kind is not Kind.NAME:
            raise self.unexpected("a value", "a value is an array, range(a, b), a block or a call")
        called = self.name()
        options = self.options()
        args: tuple[surface.Name, ...] | None = None
        if self.accept(Kind.PAREN_OPEN):
            args = self.listed(Kind.PAREN_CLOSE, self.name, least=0)
        if wrapped:
            self.expect(Kind.PAREN_CLOSE)
        return surface.Call(operator, called, options, args)

    def options(self) -> tuple[surface.Option, ...]:
        if not self.accept(Kind.BRACE_OPEN):
            return ()
        options = self.listed(Kind.BRACE_CLOSE, self.option, least=0)
        seen: set[str] = set()
        for option in options:
            if option.name.text in seen:
                raise ParseError(f"option '{option.name.text}' is given twice", option.name.span)
            seen.add(option.name.text)
        return options

    def option(self) -> surface.Option:
        name = self.name()
        if not self.accept(Kind.EQUALS):
            return surface.Option(name, None)
        if self.accept(Kind.SQUARE_OPEN):
            return surface.Option(name, self.listed(Kind.SQUARE_CLOSE, self.number, least=0))
        if self.token.kind is not Kind.NUMBER:
            raise self.unexpected("a number or '['")
        return surface.Option(name, self.number())

    def goal(self, annotations: tuple[surface.Annotation, ...]) -> surface.GoalStatement:
        span = self.here()
        self.next()
        self.expect(
            Kind.COLON, "a goal is 'goal: [shape] = array' or 'goal: [shape] name {options}'"
        )
        declared = self.type()
        if self.token.kind is Kind.NAME:
            return surface.GoalStatement(
                declared, surface.NamedGoal(self.name(), self.options()), annotations, span
            )
        self.expect(Kind.EQUALS, "a goal is an array behind '=', or the name of a built-in goal")
        start = self.here()
        folds = tuple(self.folds().values())
        if self.token.kind not in (Kind.SQUARE_OPEN, Kind.RANGE):
            raise self.unexpected("'[' or 'range'")
        return surface.GoalStatement(declared, self.literal(folds, start), annotations, span)

    # -- literals --------------------------------------------------------------------------------

    def literal(self, folds: tuple[str, ...], span: Span) -> surface.LiteralValue:
        if self.accept(Kind.RANGE):
            self.expect(Kind.PAREN_OPEN)
            start = self.number()
            self.expect(Kind.COMMA)
            stop = self.number()
            self.expect(Kind.PAREN_CLOSE)
            return surface.LiteralValue(folds, surface.Range(start, stop), span)
        shape, leaves = self.array(lambda: self.leaf(0), "a number, '(' or '?'", _LEAF)
        return surface.LiteralValue(folds, surface.Array(shape, tuple(leaves)), span)

    def array(
        self, leaf: Callable[[], T], wanted: str, starts: frozenset[Kind], depth: int = 1
    ) -> tuple[Shape, list[T | int]]:
        """A rectangular nested array; its shape and its leaves in row-major order."""
        opening = self.here()
        if depth > MAX_RANK:
            raise ParseError(f"arrays nest at most {MAX_RANK} deep", opening)
        self.expect(Kind.SQUARE_OPEN)
        if not self.sees(Kind.SQUARE_OPEN):
            leaves = self.row(opening, leaf, wanted, starts)
            return (len(leaves),), leaves
        rows = 0
        inner: Shape | None = None
        leaves = []
        while not self.sees(Kind.SQUARE_CLOSE):
            span = self.here()
            shape, row = self.array(leaf, wanted, starts, depth + 1)
            if inner is not None and shape != inner:
                raise ParseError(
                    f"rows of different shapes: {list(inner)} before, {list(shape)} here", span
                )
            inner = shape
            leaves += row
            rows += 1
            if not self.accept(Kind.COMMA):
                break
        self.close_array(opening)
        return (rows, *(inner or ())), leaves

    def row(
        self, opening: Span, leaf: Callable[[], T], wanted: str, starts: frozenset[Kind]
    ) -> list[T | int]:
        """The leaves of one innermost row; the opening bracket is read already."""
        leaves: list[T | int] = []
        while True:
            numbers, behind = self.source.run(self.token.start)
            if numbers:
                leaves += numbers
                self.token = self.source.at(behind)
            if self.token.kind is Kind.SQUARE_CLOSE and leaves:
                break
            if self.token.kind not in starts:
                raise self.unexpected(wanted)
            leaves.append(self.number() if self.token.kind is Kind.NUMBER else leaf())
            if not self.accept(Kind.COMMA):
                break
        self.close_array(opening)
        return leaves

    def close_array(self, opening: Span) -> None:
        if self.token.kind is Kind.END:
            raise ParseError("the array that begins here never ends", opening, "close it with ]")
        if self.token.kind is not Kind.SQUARE_CLOSE:
            raise self.unexpected("',' or ']'")
        self.next()

    def leaf(self, depth: int) -> surface.Leaf:
        if self.token.kind is Kind.NUMBER:
            return self.number()
        if self.accept(Kind.OPEN_MARK):
            return surface.Unknown()
        if self.accept(Kind.EQUALS):
            return self.exact()
        if depth >= MAX_NESTING:
            raise ParseError(f"folds nest at most {MAX_NESTING} deep", self.here())
        written = self.token.kind in (Kind.FOLD, Kind.STRING)
        operator = self.operator() if written else WORD
        if self.token.kind is not Kind.PAREN_OPEN:
            raise self.unexpected("'('" if written else "a number, '(' or '?'")
        self.next()
        return surface.Pack(
            operator, self.listed(Kind.PAREN_CLOSE, lambda: self.leaf(depth + 1), least=0)
        )

    def exact(self) -> surface.Exact:
        """The number behind `=`, such as 2, -0.5, 1e9 or inf."""
        if self.token.kind not in (Kind.NUMBER, Kind.NAME):
            raise self.unexpected("a number")
        try:
            value = float(self.token.text)
        except ValueError:
            raise self.unexpected("a number") from None
        if math.isnan(value):
            raise self.unexpected("a number")
        self.next()
        return surface.Exact(value)

    # -- definitions -----------------------------------------------------------------------------

    def definition(self) -> surface.Define:
        name = self.name()
        self.expect(Kind.PAREN_OPEN, "a definition is 'define name([shape], …) -> [shape] = …'")
        args = self.listed(Kind.PAREN_CLOSE, self.type)
        self.expect(Kind.ARROW)
        out = self.type()
        self.expect(Kind.EQUALS)
        if self.accept(Kind.BRACE_OPEN):
            gathers = self.listed(Kind.BRACE_CLOSE, self.named_gather)
        else:
            gathers = (self.gather(None),)
        return surface.Define(name, args, out, gathers)

    def named_gather(self) -> surface.Gather:
        span = self.here()
        if self.token.kind is Kind.STRING:
            name = surface.Name(self.string(), span)
        elif self.token.kind is Kind.NAME:
            name = self.name()
        else:
            raise self.unexpected(
                "the name of a gather", "named gathers are written '{name = […], …}'"
            )
        self.expect(Kind.EQUALS)
        return self.gather(name)

    def gather(self, name: surface.Name | None) -> surface.Gather:
        span = self.here()
        _, entries = self.array(self.entry, "a number or '('", _ENTRY)
        return surface.Gather(name, tuple(entries), span)

    def entry(self) -> surface.Entry:
        span = self.here()
        self.expect(Kind.PAREN_OPEN)
        if self.sees(Kind.PAREN_OPEN):
            entry = surface.Entry(0, self.coordinates(), span)
        else:
            argument = self.number()
            self.expect(Kind.COMMA)
            index = self.coordinates() if self.sees(Kind.PAREN_OPEN) else self.number()
            entry = surface.Entry(argument, index, span)
        self.accept(Kind.COMMA)
        self.expect(Kind.PAREN_CLOSE)
        return entry

    def coordinates(self) -> tuple[int, ...]:
        self.expect(Kind.PAREN_OPEN)
        return self.listed(Kind.PAREN_CLOSE, self.number)


_LEAF = frozenset(
    {Kind.NUMBER, Kind.PAREN_OPEN, Kind.OPEN_MARK, Kind.FOLD, Kind.STRING, Kind.EQUALS}
)
_ENTRY = frozenset({Kind.NUMBER, Kind.PAREN_OPEN})
