"""PTX text to a `Module`.

Statements of a body are read by one regular expression each where they have their usual form;
everything else goes through the token cursor. Bad text gives one located `ParseError`. Nesting is
kept on an explicit stack, so no input can exhaust Python's.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

from warploom.errors import ParseError, one_of
from warploom.ptx import ir
from warploom.ptx.choices import TARGETS
from warploom.ptx.declare import (
    LINKAGES,
    SPACES,
    read_parameters,
    read_registers,
    read_variables,
)
from warploom.ptx.lex import BLANK, IDENTIFIER, Token, check_braces, make_text
from warploom.ptx.names import Names
from warploom.ptx.operand import Cursor, read_operands, usual_operands
from warploom.ptx.patience import look

DEEPEST_SCOPE = 200

# `@!%p1 opcode.mod::mod operands;` without comments or strings inside.
_USUAL = re.compile(
    rf"(?:@(!?)\s*({IDENTIFIER})\s+)?([A-Za-z]\w*+((?:(?:\.|::)\w++)*))"
    r'(?:\s++(?!:)([^;/"]*+)|(?=[;{\[(]))()([^;/"]*+);'
)
_LABEL = re.compile(rf"({IDENTIFIER})\s*+:(?!:)(){BLANK.pattern}")
_LOCATION = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?!\s*[,\w])")
_TARGET_LISTS = (".branchtargets", ".calltargets", ".callprototype")


def parse(text: str, name: str = "<ptx>") -> ir.Module:
    """Reads a whole PTX file; `name` is what errors call it."""
    with collector_paused():
        return _ModuleReader(make_text(text, name)).read()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Reading makes many objects and no cycles; looking for cycles doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _without_dots(words: list[str]) -> tuple[str, ...]:
    return tuple(word[1:] for word in words)


class _ModuleReader:
    def __init__(self, text: ir.Text) -> None:
        self.text = text
        self.cursor = Cursor(text, 0)
        self.target: tuple[str, ...] = ()
        self.address_size = 32
        self.defined: set[str] = set()  # functions whose bodies were read
        self.items: list[ir.Function | ir.Variable | ir.Directive] = []

    def read(self) -> ir.Module:
        version = self._read_version()
        check_braces(self.text)
        while self.cursor.ahead.kind != "end":
            self._read_item()
        return ir.Module(self.text, version, self.target, self.address_size, tuple(self.items))

    def _read_version(self) -> tuple[int, int]:
        cursor = self.cursor
        if cursor.ahead.text != ".version":
            raise cursor.error("PTX starts with .version")
        cursor.take()
        token = cursor.expect_kind("number", "a version such as 8.0")
        major, dot, minor = token.text.partition(".")
        if not (dot and major.isdigit() and minor.isdigit() and len(token.text) < 12):
            raise cursor.error("expected a version such as 8.0", token)
        return int(major), int(minor)

    def _read_item(self) -> None:
        cursor = self.cursor
        start = cursor.ahead.start
        linkage: list[str] = []
        while cursor.ahead.text in LINKAGES:
            linkage.append(cursor.take().text)
        word = cursor.ahead.text
        if word in (".entry", ".func"):
            self.items.append(self._read_function(_without_dots(linkage), start))
        elif word in SPACES:
            self.items += read_variables(cursor, _without_dots(linkage), start)
        elif linkage or cursor.ahead.kind not in ("directive", "mark"):
            raise cursor.error("expected a declaration or a directive")
        elif word == ".target":
            self._read_target()
        elif word == ".address_size":
            cursor.take()
            place = cursor.ahead
            self.address_size = cursor.integer("32 or 64")
            if self.address_size not in (32, 64):
                raise cursor.error("addresses have 32 or 64 bits", place)
        elif cursor.ahead.kind == "directive":
            self.items.append(read_directive(cursor))
        elif not cursor.accept(";"):
            raise cursor.error("expected a declaration or a directive")

    def _read_target(self) -> None:
        cursor = self.cursor
        cursor.take()
        tokens = [cursor.expect_kind("name", "a target such as sm_80")]
        while cursor.accept(","):
            tokens.append(cursor.expect_kind("name", "a target such as sm_80"))
        for token in tokens:
            if token.text.startswith("sm_") and token.text not in TARGETS:
                raise ParseError(
                    f"there is no target '{token.text[:40]}'",
                    self.text.span(token.start, token.end), one_of(token.text, TARGETS),
                )  # fmt: skip
        self.target = tuple(token.text for token in tokens)

    def _read_function(self, linkage: tuple[str, ...], start: int) -> ir.Function:
        cursor = self.cursor
        kind = cursor.take().text[1:]
        directives: list[ir.Directive] = []
        while cursor.ahead.kind == "directive":
            directives.append(_read_header_directive(cursor))
        results = read_parameters(cursor) if cursor.at("(") else ()
        while cursor.ahead.kind == "directive":
            directives.append(_read_header_directive(cursor))
        name = cursor.expect_kind("name", "the name of the function").text
        parameters = read_parameters(cursor) if cursor.at("(") else ()
        while cursor.ahead.kind == "directive":
            directives.append(_read_header_directive(cursor))
        names = Names()
        for parameter in (*results, *parameters):
            if parameter.space == "reg":
                names.declare(parameter.name, 0, parameter.type, parameter.vector)
        body: tuple[ir.Statement, ...] | None = None
        if cursor.at("{"):
            opening = cursor.ahead
            if name in self.defined:
                raise cursor.error(f"a second body of '{name}'", opening)
            self.defined.add(name)
            reader = _BodyReader(self.text, names, opening)
            body, inside, closing = reader.read()
            end = closing + 1
            self.cursor = Cursor(self.text, end)
        else:
            token = cursor.expect(";")
            inside = closing = token.start
            end = token.end
        return ir.Function(
            kind, name, results, parameters, linkage, tuple(directives), body, start, end,
            inside, closing,
        )  # fmt: skip


class _BodyReader:
    """Reads the statements between the braces of a function."""

    def __init__(self, text: ir.Text, names: Names, opening: Token) -> None:
        self.text = text
        self.names = names
        self.position = opening.end
        self.stack: list[tuple[list[ir.Statement], int]] = [([], opening.start)]
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.last_label = ""

    def read(self) -> tuple[tuple[ir.Statement, ...], int, int]:
        """The statements, the offset after `{` and the offset of the matching `}`."""
        inside = self.position
        body = self.text.source.text
        blank, usual, label = BLANK.match, _USUAL.match, _LABEL.match
        while self.stack:
            look()
            gap = blank(body, self.position)
            self.position = gap.end() if gap else self.position
            match = usual(body, self.position)
            if match is not None and self._add_usual(match):
                continue
            match = label(body, self.position)
            if match is not None:
                self._add_labels(match)
            else:
                closing = self.position
                self._read_other()
        return self.closed, inside, closing

    def _add_usual(self, match: re.Match[str]) -> bool:
        """Adds an instruction from its match; False where the text needs the cursor."""
        negated, guard, name, _, text, _, tail = match.groups()
        text = text if text is not None else tail
        operands: tuple[ir.Operand, ...] = ()
        if text and not text.isspace():
            found = None if "{" in text or "(" in text else usual_operands(text, self.names)
            if found is None:
                return False
            operands = found
        predicate = self._predicate(guard, match.start(2)) if guard else None
        opcode, modifiers = self._split(name)
        start, self.position = match.span()
        self.stack[-1][0].append(
            ir.Instruction(
                opcode, modifiers, operands, predicate, negated == "!", start, self.position
            )
        )
        return True

    def _split(self, name: str) -> tuple[str, tuple[str, ...]]:
        found = self.opcodes.get(name)
        if found is None:
            opcode, *modifiers = name.split(".")
            found = self.opcodes[name] = (opcode, tuple(modifiers))
        return found

    def _predicate(self, name: str, start: int) -> ir.Register:
        found = self.names.known.get(name)
        if found is None:
            found = self.names.known[name] = self.names.resolve(name)
        if not isinstance(found, ir.Register):
            raise ParseError(
                f"the predicate '{name}' is not a declared register",
                self.text.span(start, start + len(name)),
            )
        return found

    def _read_other(self) -> None:
        cursor = Cursor(self.text, self.position)
        token = cursor.ahead
        if token.kind == "end":
            raise ParseError(
                "this brace is never closed", self.text.span(self.stack[-1][1]), "add a '}'"
            )
        if token.text == "{":
            self._open(token)
        elif token.text == "}":
            self._close(token)
        elif token.kind == "directive":
            self._read_directive(cursor)
        elif token.text == ";":
            self.position = token.end
        else:
            self._read_instruction(cursor)

    def _add_labels(self, match: re.Match[str] | None) -> None:
        """A label, and those that follow it at once."""
        body = self.text.source.text
        add, again, statements = self.names.add_label, _LABEL.match, self.stack[-1][0]
        while match is not None:
            look()
            name = match.group(1)
            start, end = match.start(), match.end(2)
            if not add(name):
                raise ParseError(f"label '{name}' stands twice", self.text.span(start, end))
            statements.append(ir.Label(name, start, end))
            self.last_label = name
            self.position = match.end()
            match = again(body, self.position)

    def _open(self, token: Token) -> None:
        if len(self.stack) > DEEPEST_SCOPE:
            raise ParseError("scopes nested too deeply", self.text.span(token.start))
        self.names.open_scope()
        self.stack.append(([], token.start))
        self.position = token.end

    def _close(self, token: Token) -> None:
        statements, start = self.stack.pop()
        self.position = token.end
        if self.stack:
            self.names.close_scope()
            self.stack[-1][0].append(ir.Scope(tuple(statements), start, token.end))
        else:
            self.closed = tuple(statements)

    def _read_directive(self, cursor: Cursor) -> None:
        statements = self.stack[-1][0]
        start = cursor.ahead.start
        word = cursor.ahead.text
        location = _LOCATION.match(self.text.source.text, start) if word == ".loc" else None
        if location is not None:
            statements.append(ir.Directive("loc", location.groups(), "", start, location.end()))
            self.position = location.end()
            return
        if word == ".reg":
            statements.append(read_registers(cursor, self.names))
        elif word in SPACES or word in LINKAGES:
            linkage: list[str] = []
            while cursor.ahead.text in LINKAGES:
                linkage.append(cursor.take().text)
            if cursor.ahead.text not in SPACES:
                raise cursor.error("expected a state space")
            statements += read_variables(cursor, _without_dots(linkage), start)
        else:
            label = self.last_label if word in _TARGET_LISTS else ""
            statements.append(read_directive(cursor, label))
        self.position = statements[-1].end

    def _read_instruction(self, cursor: Cursor) -> None:
        start = cursor.ahead.start
        predicate, negated = None, False
        if cursor.accept("@"):
            negated = cursor.accept("!")
            token = cursor.expect_kind("name", "a predicate")
            predicate = self._predicate(token.text, token.start)
        name = cursor.expect_kind("name", "a statement").text
        opcode, modifiers = self._split(name)
        cursor.calls = opcode == "call"
        operands = read_operands(cursor, self.names)
        self.position = cursor.expect(";").end
        self.stack[-1][0].append(
            ir.Instruction(opcode, modifiers, operands, predicate, negated, start, self.position)
        )


def read_directive(cursor: Cursor, label: str = "") -> ir.Directive:
    """Any directive that has no form of its own: .loc, .file, .section, .pragma, .alias …"""
    first = cursor.take()
    name = first.text[1:]
    if name == "section":
        return _read_section(cursor, first)
    if name in ("loc", "file"):
        return _read_line_directive(cursor, first)
    words: list[str] = []
    while not cursor.at(";"):
        if cursor.ahead.kind == "end" or cursor.at("}"):
            raise cursor.error(f"expected ';' after .{name}")
        words.append(cursor.take().text)
    return ir.Directive(name, tuple(words), label, first.start, cursor.expect(";").end)


def _read_line_directive(cursor: Cursor, first: Token) -> ir.Directive:
    """`.file 1 "a.cu"` and `.loc 1 2 3, function_name …, inlined_at …` end without a semicolon."""
    words: list[str] = []
    end = first.end
    while True:
        token = cursor.ahead
        after_comma = bool(words) and words[-1] == ","
        continues = token.kind in ("number", "string") or token.text in (",", "+")
        named = token.kind == "name" and words[-1:] in (["function_name"], ["+"])
        if not (continues or named or (after_comma and token.kind == "name")):
            break
        words.append(token.text)
        end = cursor.take().end
    if first.text == ".loc" and not _is_location([word for word in words if word != ","]):
        raise ParseError(
            "expected a file, a line and a column in .loc, and after inlined_at",
            cursor.text.span(first.start),
        )
    return ir.Directive(first.text[1:], tuple(words), "", first.start, end)


def _is_location(words: list[str]) -> bool:
    """Whether three whole numbers say where, and three more where that was put, if it was."""
    starts = [0] + [at + 1 for at, word in enumerate(words) if word == "inlined_at"]
    return all(
        len(words[at : at + 3]) == 3
        and all(w.isdecimal() and len(w) < 20 for w in words[at : at + 3])
        for at in starts
    )


def _read_section(cursor: Cursor, first: Token) -> ir.Directive:
    """`.section .debug_info { … }`; the contents are kept as text only."""
    words = [cursor.take().text]
    opening = cursor.expect("{")
    body = cursor.text.source.text
    closing = body.find("}", opening.end)
    if closing < 0:
        raise ParseError("this brace is never closed", cursor.text.span(opening.start))
    fresh = Cursor(cursor.text, closing)
    cursor.ahead = fresh.ahead
    words.append(body[opening.end : closing])
    return ir.Directive("section", tuple(words), "", first.start, cursor.expect("}").end)


def _read_header_directive(cursor: Cursor) -> ir.Directive:
    """A directive between the header of a function and its body, such as `.maxntid 256, 1, 1`."""
    first = cursor.take()
    words: list[str] = []
    end = first.end
    if first.text == ".pragma":
        words.append(cursor.expect_kind("string", "a string").text)
        end = cursor.expect(";").end
    elif first.text == ".attribute":
        while not (words and words.count("(") == words.count(")")):
            if cursor.ahead.kind == "end":
                raise cursor.error("expected ')'")
            words.append(cursor.take().text)
    else:
        while cursor.ahead.kind in ("number", "string") or cursor.at(","):
            end = cursor.ahead.end
            words.append(cursor.take().text)
    return ir.Directive(first.text[1:], tuple(words), "", first.start, end)
