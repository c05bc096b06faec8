"""Reads the Python-like text that `show` prints; no Python is evaluated.

A text with `/` is read as C has it: `/` and `%` round towards zero there, and `//`, which C does
not have, is refused beside it. In other texts `//` and `%` round down. Of numbers that are not
negative both are the same. C's comparisons bind tighter than `&`, `^` and `|`, Python's weaker: in
a text of C such a mix needs parentheses. A number like 010, which is 8 in C, is refused.

A shift-reduce parser over two stacks: it never recurses, so depth is no limit, and every bad text
ends in one located ParseError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from warploom.errors import ParseError, Source
from warploom.index import ir
from warploom.index.evaluate import HIGHEST
from warploom.index.show import NEGATION, PRIORITY

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
    r"|(?P<symbol>//|<<|>>|<=|>=|==|!=|[-+*/%&|^<>()])",
    re.ASCII,
)
_KEYWORDS = frozenset({"if", "else", "and", "or", "not"})
_C_DIVISION = re.compile(r"(?<!/)/(?!/)")
_BITWISE = frozenset({"&", "^", "|"})
_MAX_DIGITS = 20
_PRIORITY = PRIORITY | {"/": PRIORITY["//"]}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # number, name, symbol (keywords too) or end
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An operator whose last operand is not read yet; "(" and "if" wait for their partner."""

    op: str
    arity: int
    priority: int
    token: _Token


def parse(text: str, source_name: str = "<expression>") -> ir.Expr:
    """
    >>> parse("(3 - x) % 8")
    Binary('%', Binary('-', Const(3), Var('x')), Const(8))
    >>> from warploom.index.evaluate import evaluate
    >>> [evaluate(parse(text), {"x": -7}) for text in ("x / 4", "x // 4")]
    [-1, -2]
    """
    return _Parser(Source(source_name, text)).read()


class _Parser:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._operands: list[ir.Expr] = []
        self._waiting: list[_Waiting] = []
        self._of_c = _C_DIVISION.search(source.text) is not None

    def read(self) -> ir.Expr:
        want_operand = True
        for token in self._tokens():
            if self._of_c and token.text == "//":
                self._fail("'//' beside '/'", token, "'/' is C's division, and '//' is Python's")
            want_operand = self._operand(token) if want_operand else self._operator(token)
        return self._operands.pop()

    def _tokens(self) -> Iterator[_Token]:
        text, position = self._source.text, 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if not found:
                self._fail("this is not part of an expression", _Token("symbol", "?", position))
            kind, word = str(found.lastgroup), found.group()
            if kind != "space":
                yield _Token("symbol" if word in _KEYWORDS else kind, word, position)
            position = found.end()
        yield _Token("end", "", len(text))

    def _operand(self, token: _Token) -> bool:
        """Takes a token where an operand should begin; tells whether one is still wanted."""
        match token.kind, token.text:
            case "number", _:
                self._number(token)
            case "name", name:
                self._operands.append(ir.Var(name))
            case "symbol", "(":
                self._waiting.append(_Waiting("(", 0, 0, token))
                return True
            case "symbol", "-":
                self._waiting.append(_Waiting("-", 1, NEGATION, token))
                return True
            case "symbol", "not":
                if self._waiting and self._waiting[-1].priority > PRIORITY["not"]:
                    self._fail("'not' binds weaker than the operator before it", token, "(not ...)")
                self._waiting.append(_Waiting("not", 1, PRIORITY["not"], token))
                return True
            case "end", _:
                self._fail("the expression ends where a value should stand", token)
            case _:
                self._fail(f"'{token.text}' where a value should stand", token)
        return False

    def _operator(self, token: _Token) -> bool:
        """Takes a token where an operand has just ended; tells whether one is wanted next."""
        match token.kind, token.text:
            case "end", _:
                self._close("end", token)
                return False
            case "symbol", ")":
                self._close("(", token)
                return False
            case "symbol", "else":
                self._close("if", token)
                self._waiting.append(_Waiting("else", 3, PRIORITY["if"], token))
            case "symbol", "if":
                self._reduce_above(PRIORITY["if"])
                if self._waiting and self._waiting[-1].op == "if":
                    self._fail("a condition may not be an 'if' itself", token, "parenthesise it")
                self._waiting.append(_Waiting("if", 0, 0, token))
            case "symbol", op if op in _PRIORITY and op != "not":
                self._refuse_mix(token)
                self._reduce_above(_PRIORITY[op])
                top = self._waiting[-1] if self._waiting else None
                if top and top.priority == _PRIORITY[op]:
                    if op in ir.COMPARISONS:
                        self._fail("comparisons do not chain", token, "write x < y and y < z")
                    self._reduce()
                self._waiting.append(_Waiting(op, 2, _PRIORITY[op], token))
            case _:
                self._fail(f"'{token.text}' where an operator should stand", token)
        return True

    def _refuse_mix(self, token: _Token) -> None:
        """Refuses a comparison beside `&`, `^` or `|`, which C and Python group differently."""
        for other in reversed(self._waiting if self._of_c else []):
            if other.priority == 0:  # a bracket, or the condition of an "if"
                return
            pair = {token.text, other.op}
            if pair & _BITWISE and not pair.isdisjoint(ir.COMPARISONS):
                advice = "C compares first, Python last: parenthesise what is meant"
                self._fail(f"'{token.text}' beside '{other.op}'", token, advice)

    def _number(self, token: _Token) -> None:
        if re.match("0[0-9]", token.text):
            self._fail("a number that begins with 0", token, "C reads it to base 8")
        too_long = len(token.text) > _MAX_DIGITS
        value = 0 if too_long else int(token.text, 16 if token.text[:2] in ("0x", "0X") else 10)
        negative = bool(self._waiting) and self._is_sign_of(token)
        if too_long or value > HIGHEST + negative:
            self._fail("the number does not fit in 64 bits", token)
        if negative:
            self._waiting.pop()
        self._operands.append(ir.Const(-value if negative else value))

    def _is_sign_of(self, number: _Token) -> bool:
        sign = self._waiting[-1]
        between = self._source.text[sign.token.start + 1 : number.start]
        return sign.op == "-" and sign.arity == 1 and not between.strip()

    def _close(self, opener: str, token: _Token) -> None:
        """Reduces back to the "(" or "if" that `token` answers, or to the start at the end."""
        self._reduce_above(0)
        if not self._waiting:
            if opener != "end":
                self._fail(f"'{token.text}' has no '{opener}' before it", token)
            return
        top = self._waiting.pop()
        if top.op != opener:
            missing = "')'" if top.op == "(" else "'else'"
            self._fail(f"this '{top.op}' has no {missing}", top.token)

    def _reduce_above(self, priority: int) -> None:
        while self._waiting and self._waiting[-1].priority > priority:
            self._reduce()

    def _reduce(self) -> None:
        waiting = self._waiting.pop()
        parts = self._operands[-waiting.arity :]
        del self._operands[-waiting.arity :]
        if self._of_c and waiting.op in _OF_C:
            self._operands.append(_OF_C[waiting.op](*parts))
        else:
            self._operands.append(_build(waiting, parts))

    def _fail(self, message: str, token: _Token, advice: str = "") -> NoReturn:
        raise ParseError(message, self._source.at(token.start, len(token.text)), advice)


def _quotient(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """C's division: one more than rounded down, where signs differ and something is left over."""
    down: ir.Expr = ir.Binary("//", left, right)
    inexact = ir.Binary("!=", ir.Binary("%", left, right), ir.Const(0))
    differ = ir.Binary("!=", ir.Binary("<", left, ir.Const(0)), ir.Binary("<", right, ir.Const(0)))
    return ir.Select(ir.Binary("and", inexact, differ), ir.Binary("+", down, ir.Const(1)), down)


def _remainder(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """What C's division leaves over."""
    return ir.Binary("-", left, ir.Binary("*", _quotient(left, right), right))


_OF_C = {"/": _quotient, "%": _remainder}


def _build(waiting: _Waiting, parts: list[ir.Expr]) -> ir.Expr:
    if waiting.arity == 3:
        then, condition, otherwise = parts
        return ir.Select(condition, then, otherwise)
    if waiting.arity == 1:
        unary: ir.UnaryOp = "not" if waiting.op == "not" else "-"
        return ir.Unary(unary, parts[0])
    binary: ir.BinaryOp = waiting.op  # type: ignore[assignment]  # only PRIORITY's binary names wait
    return ir.Binary(binary, parts[0], parts[1])
