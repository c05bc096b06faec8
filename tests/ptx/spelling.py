"""Instructions of every form in the table of opcodes, with operands that fit, as text for ptxas."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warploom.ptx.opcode import Form, Opcode

HEADER = """.version {version}
.target {target}
.address_size 64
.visible .entry k()
{{ .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .b128 %q<9>;
.reg .f32 %f<9>; .reg .f64 %d<9>; .local .align 16 .b8 own[32]; .shared .align 16 .b8 tile[32];
"""
TYPE = re.compile(r"pred|[busf]\d+|bf16|tf32|[busf]+\d+x\d")
WIDE = {"16": "32", "32": "64"}


def covering(form: Form) -> Iterator[tuple[str, ...]]:
    """Rows of modifiers in which every word of every slot stands at least once."""
    plain = ["" if slot.optional else slot.words[0] for slot in form.slots]
    rows = {tuple(plain): None}
    for place, slot in enumerate(form.slots):
        for word in slot.words:
            rows[(*plain[:place], word, *plain[place + 1 :])] = None
            if place + 1 < len(form.slots):  # with every type too, where the last slot is one
                for last in form.slots[-1].words:
                    rows[(*plain[:place], word, *plain[place + 1 : -1], last)] = None
    for row in rows:
        yield tuple(part for word in row for part in word.split(".") if part)


def register(kind: str, number: int) -> str:
    if kind == "pred":
        return f"%p{number}"
    if kind in ("f32", "f64"):
        return f"%{'f' if kind == 'f32' else 'd'}{number}"
    width = bits(kind)
    return f"%{ {8: 'h', 16: 'h', 32: 'r', 64: 'l', 128: 'q'}[width] }{number}"


def bits(kind: str) -> int:
    found = re.search(r"(\d+)(?:x(\d))?$", kind)
    if kind == "tf32":
        return 32
    assert found, kind
    return int(found[1]) * int(found[2] or 1)


def instruction(opcode: Opcode, form: Form, modifiers: tuple[str, ...]) -> str:
    words = [word for word in form.operands if not word.endswith("?")]
    kinds = [word for word in modifiers if TYPE.fullmatch(word)]
    vector = next((int(word[1]) for word in modifiers if re.fullmatch(r"v[248]", word)), 1)
    operands = []
    for number, word in enumerate(words):
        operands.append(_operand(opcode.name, word, kinds, modifiers, number, vector))
    return f"{'.'.join((opcode.name, *modifiers))} {', '.join(operands)};"


def _operand(
    name: str, word: str, kinds: list[str], modifiers: tuple[str, ...], number: int, vector: int
) -> str:
    if word.startswith("["):
        return _address(name, word, modifiers)
    if name in ("ld", "ldu", "st", "atom", "red") and word in ("d", "b", "c"):
        kind = "b16" if bits(kinds[-1]) == 8 else kinds[-1]
        each = [register(kind, (number + i) % 9) for i in range(vector)]
        return each[0] if vector == 1 else "{" + ", ".join(each) + "}"
    kind = kind_of(name, word, kinds, modifiers)
    if kind.isdigit() or kind == "0x1f":
        return kind
    if word == "d|p" and name == "setp" and kinds[-1].endswith("x2"):
        return "%p1|%p2"
    if word == "d|p" and name in ("elect", "match"):
        return f"{register(kind, 1)}|%p2"
    return register(kind, number)


def _address(name: str, word: str, modifiers: tuple[str, ...]) -> str:
    spaces = {m.split("::")[0] for m in modifiers}
    if "shared" in spaces and (name != "cp" or word == "[d]"):
        return "[tile]"
    return "[own]" if "local" in spaces else "[%l8]"


POLICY = {"p": "b64"}


def kind_of(name: str, word: str, kinds: list[str], modifiers: tuple[str, ...]) -> str:  # noqa: C901
    """The type of the register that an operand is, or the constant that it is."""
    last = kinds[-1] if kinds else "b32"
    if word == "m":
        return "b32"
    if word == "p" and "L2::cache_hint" in modifiers:
        return "b64"
    match name, word:
        case ("setp", "c") | ("set", "c") | ("selp", "c"):
            return "pred"
        case ("setp", "d|p") | ("testp", "d") | ("isspacep", "d"):
            return "pred"
        case ("set" | "cvt" | "slct", "d") if "pack" not in modifiers:
            return kinds[0]
        case ("slct", "a" | "b"):
            return kinds[0]
        case ("cvt", "d"):
            return "b32"
        case ("cvt", "a" | "b") if "pack" in modifiers:
            return "s32"
        case ("cvt", "c"):
            return "b32"
        case ("mul", "d") | ("mad", "d" | "c") if "wide" in modifiers:
            return f"{last[0]}{WIDE[last[1:]]}"
        case ("popc" | "clz" | "bfind", "d"):
            return "b32"
        case ("shl" | "shr", "b") | ("bfe", "b" | "c") | ("bfi", "c" | "e"):
            return "u32"
        case ("lop3", "t"):
            return "128"
        case ("isspacep", "a"):
            return "b64"
        case ("match", "d" | "d|p") | ("elect" | "activemask", _):
            return "b32"
        case ("vote", "a") | ("bar" | "barrier", "p"):
            return "pred"
        case ("vote", "d"):
            return last
        case ("bar" | "barrier", "d"):
            return last
        case ("bar" | "barrier", "a"):
            return "1"
        case ("bar" | "barrier", "b"):
            return "64"
        case ("shfl", "b" | "c"):
            return "b32"
        case ("applypriority" | "discard", "n"):
            return "128"
        case ("cp", "n"):
            return "16" if "wait_group" not in modifiers else "0"
        case ("setmaxnreg", "n"):
            return "64"
        case ("pmevent", "a"):
            return "1"
        case _:
            return last
