"""CuTe's layouts as text, in its five spellings, read and written; our layouts count elements.

    dsl             S<3,3,3> o 0 o (8,64):(64,1)
    c++             Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)
    pycute          SW_3_3_3 o 0 o (8, 64):(64, 1)
    tensor-layouts  (Swizzle(3, 3, 3)) o ((8, 64) : (64, 1))
    tilelang        Sw<3,4,3> o 0 o (8,128):(128,1)

The same layout each time, of 16-bit elements: in C++ a swizzle before a pointer counts bytes, one
behind it elements, as the layout does; in TileLang both count bytes. A tensor prints its pointer
with an address, and joins it to the swizzle: Sw<3,4,3>_smem_ptr[16b](0x7f00) o (_8,_64):(_64,_1).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

from warploom.errors import CheckError, Source, UnsupportedError
from warploom.layout.language.ir import Layout, Shift, Strided, Swizzle, chain, compose
from warploom.layout.language.laws import simplify
from warploom.layout.language.parse import MOST_DEPTH, Reader, Token
from warploom.layout.language.recast import to_bytes, to_elements
from warploom.layout.language.show import show, show_tree

Spelling: TypeAlias = Literal["dsl", "c++", "pycute", "tensor-layouts", "tilelang"]
SPELLINGS: tuple[Spelling, ...] = get_args(Spelling)
_UNITS = "an element has a power of two of them"

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>_?-?[0-9]+)(?![\w.])|(?P<swizzle>SW_[0-9]+_[0-9]+_-?[0-9]+)"
    r"|(?P<pointer>_?(?:[sg]mem_)?ptr\[[0-9]+b\]\(\w+\))|(?P<name>[A-Za-z]\w*)|(?P<symbol>[<>(),:])",
    re.ASCII,
)


def read_cute(text: str, element_bytes: int | None = None, packed: int = 1) -> Layout:
    """A layout in any of the spellings, in elements. TileLang's text does not say how large they
    are: `element_bytes` does, which `packed` of them have.

    >>> show(read_cute("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"))
    'S<3,3,3> o (8,64):(64,1)'
    """
    return _CuteReader(text, element_bytes, packed).layout(element_bytes)


class _CuteReader:
    def __init__(self, text: str, element_bytes: int | None, packed: int) -> None:
        self._reader = Reader(Source("<cute>", text), _TOKEN)
        self._wanted = None if element_bytes is None else 8 * element_bytes // packed
        self._bits: int | None = None  # C++: the pointer says how many an element has
        self._swizzles = self._of_bytes = 0  # read so far, and those before the pointer
        self._tilelang = bool(re.match(r"\s*Sw<[^>]*>\s*o\s*[0-9]", text))

    def layout(self, element_bytes: int | None) -> Layout:
        reader, first = self._reader, self._reader.next
        parts = reader.composition(self._part)
        if reader.next.kind != "end":
            reader.fail(f"'{reader.next.text}' after a layout", reader.next)
        if not parts:
            reader.fail("a pointer is no layout", first, "its layout comes after it")
        for number, part in enumerate(parts):
            if isinstance(part, Swizzle) and self._bits is not None and self._of_bytes > 0:
                parts[number] = reader.checked(of_elements(part, self._bits), first)
                self._of_bytes -= 1
        found = reader.checked(simplify(compose(*parts)), first)
        if not self._tilelang:
            return found
        if element_bytes is None:
            reader.fail("TileLang's layouts count bytes", first, "say how large an element is")
        return to_elements(found, element_bytes)

    def _part(self, depth: int = 0) -> list[Layout]:
        reader, token = self._reader, self._reader.next
        match token.kind:
            case "pointer":
                self._pointer(reader.take())
                return []
            case "swizzle":
                bits, base, shift = re.findall(r"-?[0-9]+", reader.take().text)
                self._swizzles += 1
                return [reader.checked(Swizzle(int(bits), int(base), int(shift)), token)]
            case "name":
                found = self._swizzle(reader.take())
                if reader.next.text.startswith("_") and reader.next.kind == "pointer":
                    self._pointer(reader.take())
                return [found]
            case "end":
                reader.fail("the text ends where a layout should stand", token)
        if token.text == "(" and not self._is_tree():
            if depth > MOST_DEPTH:
                reader.fail(f"a layout is at most {MOST_DEPTH} deep", token)
            reader.take()
            parts = reader.composition(lambda: self._part(depth + 1))
            reader.expect(")")
            return parts
        return [self._strided(token)]

    def _is_tree(self) -> bool:
        """Whether the parenthesis closes before anything that only a layout has."""
        depth = 0
        for token in self._reader.rest():
            if token.text in (":", "o") or token.kind in ("swizzle", "pointer", "name"):
                return depth == 0
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        return True

    def _strided(self, token: Token) -> Layout:
        reader = self._reader
        shape = reader.tree()
        if not reader.accept(":"):
            if isinstance(shape, int):
                return Shift(shape)
            reader.fail("':' should stand here", reader.next)
        return reader.checked(Strided(shape, reader.tree()), token)

    def _pointer(self, token: Token) -> None:
        if self._bits is not None:
            self._reader.fail("a second pointer", token)
        self._bits, self._of_bytes = int(re.findall(r"[0-9]+", token.text)[0][:9]), self._swizzles
        if not _is_power(self._bits):
            self._reader.fail(f"elements of {self._bits} bits", token, _UNITS)
        if self._wanted not in (None, self._bits):
            said = f"a pointer to elements of {self._bits} bits, and an element has {self._wanted}"
            self._reader.fail(said, token)

    def _swizzle(self, token: Token) -> Layout:
        reader = self._reader
        if token.text not in ("S", "Sw", "Swizzle"):
            reader.fail(f"'{token.text[:40]}' is no part of a layout of CuTe", token)
        closing = ">" if reader.accept("<") else ")"
        if closing == ")":
            reader.expect("(")
        numbers = reader.numbers(closing)
        if len(numbers) != 3:
            reader.fail(f"a swizzle has 3 numbers, not {len(numbers)}", token)
        self._swizzles += 1
        return reader.checked(Swizzle(*numbers), token)


def of_elements(swizzle: Swizzle, bits: int) -> Swizzle:
    """A swizzle before a pointer counts bytes; the same in elements of so many bits.

    >>> of_elements(Swizzle(3, 4, 3), 16), of_elements(Swizzle(3, 4, 3), 4)
    (Swizzle(3, 3, 3), Swizzle(3, 5, 3))
    """
    if not _is_power(bits):
        raise CheckError(f"elements of {bits} bits", advice=_UNITS)
    base = swizzle.base + 3 - (bits.bit_length() - 1)
    if base < 0 and swizzle.bits:
        raise CheckError(f"{show(swizzle)} of bytes moves parts of elements of {bits} bits")
    return Swizzle(swizzle.bits, max(base, 0), swizzle.shift)


def _of_pointer(swizzle: Swizzle, bits: int) -> Swizzle:
    """The same before a pointer, in bytes."""
    base = swizzle.base - 3 + (bits.bit_length() - 1)
    if base < 0 and swizzle.bits:
        raise CheckError(f"{show(swizzle)} of elements of {bits} bits moves parts of bytes")
    return Swizzle(swizzle.bits, max(base, 0), swizzle.shift)


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def write_cute(
    layout: Layout, spelling: str = "dsl", element_bytes: int = 4, packed: int = 1
) -> str:
    """The layout in one of the spellings; what CuTe cannot express is refused.

    >>> write_cute(compose(Swizzle(3, 3, 3), Strided((8, 64), (64, 1))), "c++", 2)
    'Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)'
    """
    if spelling not in SPELLINGS:
        raise UnsupportedError(
            f"no spelling is called '{spelling[:20]}'", advice=f"known are {', '.join(SPELLINGS)}"
        )
    swizzle, offset, strided = taken_apart(layout)
    match spelling:
        case "tilelang" if packed > 1:
            raise UnsupportedError("TileLang's layouts count bytes, and two elements are in one")
        case "tilelang":
            whole = to_bytes(
                compose(swizzle or Swizzle(0, 4, 3), Shift(offset), strided), element_bytes
            )
            swizzle, offset, strided = taken_apart(whole, simple=False)
            assert swizzle is not None
            return f"Sw<{_three(swizzle)}> o {offset} o {_strided_text(strided)}"
        case "tensor-layouts":
            text = _strided_text(strided, ", ", " : ")
            if offset:
                raise UnsupportedError("tensor-layouts has no offset inside a composition")
            return text if swizzle is None else f"(Swizzle({_three(swizzle, ', ')})) o ({text})"
        case "c++":
            return _cpp(swizzle, offset, strided, 8 * element_bytes // packed)
        case "pycute":
            text = _strided_text(strided, ", ")
            if swizzle is None and not offset:
                return text
            swizzle = swizzle or Swizzle(0, 0, 0)
            return f"SW_{_three(swizzle, '_')} o {offset} o {text}"
    text = _strided_text(strided)
    if swizzle is None and not offset:
        return text
    return f"S<{_three(swizzle or Swizzle(0, 0, 0))}> o {offset} o {text}"


def _cpp(swizzle: Swizzle | None, offset: int, strided: Strided, bits: int) -> str:
    text = re.sub(r"(-?[0-9]+)", r"_\1", _strided_text(strided))
    if swizzle is None and not offset:
        return text
    if offset:  # an offset takes the pointer's place, and then all counts elements
        return f"Sw<{_three(swizzle or Swizzle(0, 0, 0))}> o _{offset} o {text}"
    moved = _of_pointer(swizzle or Swizzle(0, 0, 0), bits)
    return f"Sw<{_three(moved)}> o smem_ptr[{bits}b](unset) o {text}"


def _three(swizzle: Swizzle, join: str = ",") -> str:
    return join.join(map(str, (swizzle.bits, swizzle.base, swizzle.shift)))


def _strided_text(layout: Strided, join: str = ",", colon: str = ":") -> str:
    return show_tree(layout.shape, join) + colon + show_tree(layout.stride, join)


def taken_apart(layout: Layout, simple: bool = True) -> tuple[Swizzle | None, int, Strided]:
    parts = chain(simplify(layout) if simple else layout)
    swizzle, offset = None, 0
    for part in parts[:-1]:
        if isinstance(part, Swizzle) and swizzle is None and not offset:
            swizzle = part
        elif isinstance(part, Shift) and not offset:
            offset = part.by
        else:
            raise _no_word(part)
    if not isinstance(parts[-1], Strided):
        raise _no_word(parts[-1])
    return swizzle, offset, parts[-1]


def _no_word(part: Layout) -> CheckError:
    return CheckError(
        f"CuTe cannot express {show(part)[:60]}",
        advice="a layout of CuTe is a Swizzle, an offset, and shapes with strides",
    )
