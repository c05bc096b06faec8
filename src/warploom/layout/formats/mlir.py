"""Attributes of MLIR as Triton prints them: a text → a name and its fields, and back.

    #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], …}>

Nothing is known here of what a name means, but that some had other names once: `encoding.py` knows
the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from warploom.errors import CheckError, ParseError, Source
from warploom.layout.language.parse import MOST_DEPTH, Reader, Token

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*)|(?P<attribute>#[A-Za-z_][\w.$-]*)|(?P<plus>:\s*\+)"
    r"|(?P<number>-?[0-9]+)(?![\w.])|(?P<name>[A-Za-z_]\w*)|(?P<symbol>[<>{}\[\](),:=])",
    re.ASCII,
)

_OLDER = "triton_gpu."  # the dialect's name before it was `ttg`
_BYTES = {(1, 8): 128, (2, 4): 64, (4, 2): 32}  # perPhase and maxPhase → bytes of a swizzle
_AFTER_BRACES = ("alignment",)  # of shared_linear: <{offset = …, block = …}, alignment = 16>
Value: TypeAlias = "int | bool | str | list[Value] | Attribute | dict[str, Value]"


@dataclass(frozen=True)
class Attribute:
    """A name, such as ttg.blocked, what it is given by name, and by place."""

    name: str
    fields: dict[str, Value] = field(default_factory=dict)
    places: tuple[Value, ...] = ()

    def __str__(self) -> str:
        return written(self)

    def number(self, key: str, otherwise: int | None = None) -> int:
        found = self.fields.get(key, otherwise)
        if type(found) is not int or abs(found) > 1 << 30:
            raise self.wrong(key, "a number")
        return found

    def truth(self, key: str) -> bool:
        found = self.fields.get(key, False)
        if not isinstance(found, bool):
            raise self.wrong(key, "true or false")
        return found

    def numbers(self, key: str, otherwise: list[int] | None = None) -> list[int]:
        return self.checked_numbers(self.fields.get(key, otherwise), key)

    def bases(self, key: str) -> list[list[int]]:
        """Lists of numbers; none where nothing is said."""
        found = self.fields.get(key, [])
        if not isinstance(found, list):
            raise self.wrong(key, "a list of lists, [[0, 1], [0, 2]]")
        return [self.checked_numbers(each, key) for each in found]

    def parent(self) -> Attribute:
        found = self.fields.get("parent")
        if not isinstance(found, Attribute):
            raise self.wrong("parent", "a layout")
        return found

    def checked_numbers(self, found: object, key: str) -> list[int]:
        if not isinstance(found, list) or len(found) > 64:
            raise self.wrong(key, "a list of numbers")
        numbers = [each for each in found if type(each) is int and 0 <= each <= 1 << 30]
        if len(numbers) != len(found):
            raise self.wrong(key, "a list of numbers that are not negative")
        return numbers

    def wrong(self, key: str, what: str) -> CheckError:
        said = "is missing" if key not in self.fields else "is something else"
        return CheckError(f"{key} of #{self.name} {said}", advice=f"it is {what}")


def read_attribute(text: str, aliases: Mapping[str, Attribute] | None = None) -> Attribute:
    """An attribute, perhaps with the name that it is given: `#mine = #ttg.blocked<{…}>`.

    >>> read_attribute("#ttg.slice<{dim = 0, parent = #b}>", {"b": Attribute("ttg.b")}).name
    'ttg.slice'
    """
    reader = Reader(Source("<attribute>", text), _TOKEN)
    if reader.next.kind == "attribute" and [each.text for each in reader.rest()[1:2]] == ["="]:
        reader.take()
        reader.take()
    found = _attribute(reader, aliases or {}, 0)
    if reader.next.kind != "end":
        reader.fail(f"'{reader.next.text[:40]}' after an attribute", reader.next)
    return found


def _attribute(reader: Reader, aliases: Mapping[str, Attribute], depth: int) -> Attribute:
    token = reader.take()
    if token.kind != "attribute":
        reader.fail("an attribute should stand here", token, "write #ttg.blocked<{…}>")
    if depth > MOST_DEPTH:
        reader.fail(f"an attribute is at most {MOST_DEPTH} deep", token)
    name = token.text[1:]
    if not reader.accept("<"):
        if name not in aliases:
            reader.fail(f"#{name[:40]} is not defined", token, "its definition comes before it")
        return aliases[name]
    fields: dict[str, Value] = {}
    places: list[Value] = []
    while not reader.accept(">"):
        if reader.next.kind == "name":
            _entry(reader, aliases, fields, depth)
        elif reader.accept("{"):
            _entries(reader, aliases, fields, depth)
        else:
            places.append(_value(reader, aliases, depth))
        reader.accept(",")
    return _of_today(Attribute(name, fields, tuple(places)))


def _of_today(attribute: Attribute) -> Attribute:
    """By the names that Triton has now: `#triton_gpu.shared` was two layouts.

    >>> old = {"vec": 8, "perPhase": 1, "maxPhase": 8, "order": [1, 0], "hasLeadingOffset": True}
    >>> _of_today(Attribute("triton_gpu.shared", old)).fields["swizzlingByteWidth"]
    128
    """
    name = attribute.name
    if name.startswith(_OLDER):
        name = "ttg." + name.removeprefix(_OLDER)
    if name != "ttg.shared":
        return Attribute(name, attribute.fields, attribute.places)
    if attribute.truth("hasLeadingOffset"):
        return Attribute("ttg.nvmma_shared", _of_matrix_units(attribute))
    fields = {key: n for key, n in attribute.fields.items() if key != "hasLeadingOffset"}
    return Attribute("ttg.swizzled_shared", fields, attribute.places)


def _of_matrix_units(attribute: Attribute) -> dict[str, Value]:
    """Swizzles over rows of 128, 64 or 32 bytes, of which 16 stay together."""
    vec, order = attribute.number("vec"), attribute.numbers("order")
    phases = attribute.number("perPhase"), attribute.number("maxPhase")
    if phases not in _BYTES or vec not in (16, 8, 4) or len(order) != 2:
        raise CheckError(
            f"#{attribute.name} with a leading offset, vec = {vec}, perPhase = {phases[0]} and "
            f"maxPhase = {phases[1]}",
            advice="it swizzles rows of 128, 64 or 32 bytes of a matrix",
        )
    rest = {key: value for key, value in attribute.fields.items() if key.startswith("CTA")}
    return {
        "swizzlingByteWidth": _BYTES[phases], "transposed": order[0] == 0,
        "elementBitWidth": 128 // vec, **rest,
    }  # fmt: skip


def _entries(
    reader: Reader, aliases: Mapping[str, Attribute], fields: dict[str, Value], depth: int
) -> None:
    while not reader.accept("}"):
        _entry(reader, aliases, fields, depth)
        if not reader.accept(",") and reader.next.text != "}":
            reader.fail("',' or '}' should stand here", reader.next)


def _entry(
    reader: Reader, aliases: Mapping[str, Attribute], fields: dict[str, Value], depth: int
) -> None:
    token = reader.take()
    if token.kind != "name":
        reader.fail("the name of a field should stand here", token)
    if token.text in fields:
        reader.fail(f"{token.text[:40]} is given twice", token)
    reader.expect("=")
    fields[token.text] = _value(reader, aliases, depth + 1)


def _value(reader: Reader, aliases: Mapping[str, Attribute], depth: int) -> Value:
    token = reader.next
    if depth > MOST_DEPTH:
        reader.fail(f"a value is at most {MOST_DEPTH} deep", token)
    match token.kind:
        case "attribute":
            return _attribute(reader, aliases, depth + 1)
        case "number":
            return _number(reader)
        case "name":
            reader.take()
            return {"true": True, "false": False}.get(token.text, token.text)
    if reader.accept("{"):
        inner: dict[str, Value] = {}
        _entries(reader, aliases, inner, depth)
        return inner
    if not reader.accept("["):
        reader.fail("a value should stand here", token)
    found: list[Value] = []
    while not reader.accept("]"):
        if found:
            reader.expect(",")
        found.append(_value(reader, aliases, depth + 1))
    return found


def _number(reader: Reader) -> Value:
    """A number, or an interval with its padding, 32:+4."""
    first = reader.number()
    if reader.next.kind != "plus":
        return first
    reader.take()
    return [first, reader.number()]


def written(attribute: Attribute) -> str:
    """The attribute as Triton prints it, without aliases."""
    braced = not attribute.name.startswith("ttng.tensor_memory")
    shown = {key: f"{key} = {_shown(value)}" for key, value in attribute.fields.items()}
    after = "".join(f", {shown.pop(key)}" for key in _AFTER_BRACES if braced and key in shown)
    entries = ", ".join(shown.values())
    placed = [_placed(each) for each in attribute.places]
    if not braced:
        return f"#{attribute.name}<{', '.join([*placed, entries])}>"
    return f"#{attribute.name}<{' '.join([*placed, '{' + entries + '}'])}{after}>"


def _shown(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case list():
            return "[" + ", ".join(map(_shown, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{key} = {_shown(each)}" for key, each in value.items()) + "}"
        case Attribute():
            return written(value)
    return str(value)


def _placed(value: Value) -> str:
    """Pairs of intervals and paddings: [32:+4, 128:+8]."""
    if not isinstance(value, list) or not all(_is_pair(each) for each in value):
        raise ParseError("only intervals with their padding stand by place")
    return (
        "[" + ", ".join(f"{each[0]}:+{each[1]}" for each in value if isinstance(each, list)) + "]"
    )


def _is_pair(value: Value) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)


__all__ = ["Attribute", "Token", "Value", "read_attribute", "written"]
