"""C++ names as they are written: `_ZN4deep5scaleIfEEvPT_i` is `deep::scale<float>`.

The names of kernels, as compilers for Itanium's rules mangle them: namespaces, template arguments
that are types, numbers and packs, substitutions. Parameters are not read. What is spelled otherwise
(expressions, local names, operators) is left to `plain_name`.
"""

from __future__ import annotations

import re
from functools import lru_cache

_BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char",
    "h": "unsigned char", "s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int",
    "l": "long", "m": "unsigned long", "x": "long long", "y": "unsigned long long",
    "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double",
    "g": "__float128", "z": "...",
}  # fmt: skip
_LONG_BUILTIN = {
    "Dh": "half", "DF16_": "_Float16", "DF16b": "__bf16", "Dn": "decltype(nullptr)",
    "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t",
}  # fmt: skip
_STANDARD = {
    "Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string", "Si": "std::istream",
    "So": "std::ostream", "Sd": "std::iostream",
}  # fmt: skip
_AROUND = {"P": "*", "R": "&", "O": "&&", "K": " const", "V": " volatile", "r": " __restrict"}
_SUFFIX = {"j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}
DEEPEST = 40  # a name of compilers nests a few


class _OtherwiseError(Exception):
    """A spelling that is not read here."""


@lru_cache(maxsize=1 << 12)
def demangled(name: str) -> str:
    """The name with its namespaces and template arguments; as it is if it is no C++ name."""
    if not name.startswith("_Z"):
        return name
    try:
        return _Mangled(name).name()
    except (_OtherwiseError, IndexError):
        return plain_name(name)


def local_name(name: str) -> str:
    """What a variable is called in its source: `_ZZ4gemmE4full`, of a function, is `full`."""
    for length in re.finditer(r"E(\d{1,4})", name) if name.startswith("_ZZ") else ():
        rest = name[length.end() :]
        own, discriminator = rest[: int(length[1])], rest[int(length[1]) :]
        if len(own) == int(length[1]) and re.fullmatch(r"(_\d+_?|__\d+_)?", discriminator):
            return own
    return demangled(name)


def plain_name(name: str) -> str:
    """What a mangled C++ name is called in its source, without namespaces and types."""
    if not name.startswith("_Z"):
        return name
    rest = name.removeprefix("_ZN").removeprefix("_Z").removeprefix("L")
    found = ""
    while (number := re.match(r"\d{1,6}", rest)) is not None:
        start = number.end()
        found = rest[start : start + int(number[0])]
        rest = rest[start + int(number[0]) :]
    return found or name


def called(name: str) -> frozenset[str]:
    """All that a kernel may be called: mangled, in full, without namespaces, without arguments."""
    full = demangled(name)
    short = _without_namespaces(full)
    every = {name, full, short, short.split("<")[0], full.split("<")[0], plain_name(name)}
    return frozenset(each.replace(" ", "") for each in every)


def _without_namespaces(full: str) -> str:
    head, angle, rest = full.partition("<")
    return head.split("::")[-1] + angle + rest


class _Mangled:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 2
        self.known: list[str] = []  # what S_, S0_, … stand for
        self.arguments: list[str] = []  # what T_, T0_, … stand for
        self.depth = 0

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def accept(self, word: str) -> bool:
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def read(self, pattern: str) -> str:
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            raise _OtherwiseError
        self.at = found.end()
        return found[0]

    # -- names ----------------------------------------------------------------------------------

    def name(self) -> str:
        if self.accept("N"):
            return self.nested()
        found = ""
        if self.accept("St"):
            found = "std::"
        elif self.peek() == "S":
            found = self.substitution()
            return found + self.template() if self.peek() == "I" else found
        found += self.source()
        if self.peek() == "I":
            self.known.append(found)
            found += self.template()
        return found

    def nested(self) -> str:
        self.read("[rVK]*[RO]?")
        prefix, fresh = "", False
        while not self.accept("E"):
            if fresh:
                self.known.append(prefix)
            fresh = True
            if self.peek() == "I":
                prefix += self.template()
            elif self.accept("St"):
                prefix, fresh = "std", False
            elif self.peek() == "S":
                prefix, fresh = self.substitution(), False
            else:
                prefix += ("::" if prefix else "") + self.source()
        return prefix

    def source(self) -> str:
        self.accept("L")  # of one file alone
        length = int(self.read(r"\d{1,6}"))
        found = self.peek(length)
        if len(found) != length:
            raise _OtherwiseError
        self.at += length
        return "(anonymous namespace)" if found.startswith("_GLOBAL__N_") else found

    def substitution(self) -> str:
        if self.peek(2) in _STANDARD:
            self.at += 2
            return _STANDARD[self.text[self.at - 2 : self.at]]
        return self._numbered("S", self.known)

    def _numbered(self, letter: str, table: list[str]) -> str:
        """S_, S0_, … S9_, SA_, …: the first, the second, …"""
        digits = self.read(rf"{letter}[0-9A-Z]{{0,3}}_")[1:-1]
        place = int(digits, 36) + 1 if digits else 0
        return table[place]

    # -- template arguments and types -----------------------------------------------------------

    def template(self) -> str:
        self.accept("I")
        found: list[str] = []
        while not self.accept("E"):
            found += self.argument()
        if self.depth == 0:
            self.arguments = found
        return f"<{', '.join(found)}>"

    def argument(self) -> list[str]:
        if self.accept("J"):
            found: list[str] = []
            while not self.accept("E"):
                found += self.argument()
            return found
        return [self.literal() if self.accept("L") else self.type()]

    def literal(self) -> str:
        letter, kind = self.peek(), self.type()
        digits = self.read(r"n?\d+").replace("n", "-")
        if not self.accept("E"):
            raise _OtherwiseError
        if letter == "b":
            return "true" if digits == "1" else "false"
        return (
            digits + _SUFFIX.get(letter, "") if letter in (*_SUFFIX, "i") else f"({kind}){digits}"
        )

    def type(self) -> str:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _OtherwiseError
        found = self._type()
        self.depth -= 1
        return found

    def _type(self) -> str:
        letter = self.peek()
        if letter in _BUILTIN:
            self.at += 1
            return _BUILTIN[letter]
        for word, meaning in _LONG_BUILTIN.items():
            if self.accept(word):
                return meaning
        if letter in _AROUND:
            self.at += 1
            found = self.type() + _AROUND[letter]
        elif letter == "A":
            size = self.read(r"A\d*_")[1:-1]
            found = f"{self.type()} [{size}]"
        elif letter == "T":
            found = self._numbered("T", self.arguments)
        elif letter == "S" and self.peek(2) != "St":
            before = self.at
            found = self.name()
            if "I" not in self.text[before : self.at]:
                return found
        else:
            found = self.name()
        self.known.append(found)
        return found
