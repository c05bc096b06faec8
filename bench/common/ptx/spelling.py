"""Instructions of every form in the table of opcodes, with operands that fit, and kernels of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from random import Random

import numpy as np

from warploom.ptx import parse
from warploom.ptx.meaning.video import doubt
from warploom.ptx.opcode import Opcode, OpcodeForm

HEADER = """.version {version}
.target {target}
.address_size 64
.visible .entry k()
{{ .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<130>; .reg .b64 %l<9>; .reg .b128 %q<9>;
.reg .f32 %f<130>; .reg .f64 %d<9>; .reg .b8 %c<9>; .local .align 16 .b8 own[32]; .shared .align 16 .b8 tile[32];
"""
TYPE = re.compile(r"pred|[busf]\d+|bf16|tf32|[busf]+\d+x\d|u?e\dm\d(x\d)?")
NARROW = {"e2m1x2": 8, "e2m1x4": 16, "tf32": 32}  # other numbers of 4 to 8 bits take a byte each
WIDE = {"16": "32", "32": "64"}


def covering(form: OpcodeForm) -> Iterator[tuple[str, ...]]:
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
    if kind == "e2m1x2":
        return f"%c{number}"
    return f"%{ {8: 'h', 16: 'h', 32: 'r', 64: 'l', 128: 'q'}[width] }{number}"


def bits(kind: str) -> int:
    if kind in NARROW:
        return NARROW[kind]
    if re.match("u?e\\d", kind):
        return 8 * int(kind.partition("x")[2] or 1)
    found = re.search(r"(\d+)(?:x(\d))?$", kind)
    assert found, kind
    return int(found[1]) * int(found[2] or 1)


VIDEO = re.compile(r"v(?:add|sub|absdiff|min|max|avrg|set|shl|shr|mad)([24]?)")
PARTS = ["", "b0", "b1", "b2", "b3", "h0", "h1"]
MASKS = {"2": ["", "h0", "h1", "h10"],
         "4": ["", *("b" + "".join(some) for n in (1, 2, 3, 4) for some in combinations("3210", n))]}  # fmt: skip


def variants(opcode: Opcode) -> range:
    """In how many ways operands are tried: of video instructions, whole registers and parts."""
    return range(6 if VIDEO.fullmatch(opcode.name) else 1)


def _video(opcode: Opcode, form: OpcodeForm, modifiers: tuple[str, ...], variant: int) -> str:
    """With selectors, and of vmad with signs; the first variant has whole registers where it can.

    Of what the emulator would refuse for its operands there is one with narrow parts.
    """
    merges, count = form.operands[0] == "d.part", len(form.operands)
    chance = Random(f"{opcode.name} {modifiers} {merges} {variant}")
    tried = [_whole(opcode.name, merges)] * (variant == 0)
    tried += [_by_chance(opcode.name, merges, modifiers, chance) for _ in range(10 * bool(variant))]
    last = ("b1" * merges, "h0", "b1", "") if not _lanes(opcode.name) else ("", "", "", "")
    name = ".".join((opcode.name, *modifiers))
    for signs, chosen in (*tried, (("", "", "", ""), last)):
        written = [
            f"{sign}%r{number}{'.' * bool(part)}{part}"
            for number, (sign, part) in enumerate(zip(signs, chosen, strict=True))
        ]
        line = f"{name} {', '.join(written[:count])};"
        if agreed(line):
            break
    return line


def _lanes(name: str) -> str:
    found = VIDEO.fullmatch(name)
    return found[1] if found else ""


def _whole(name: str, merges: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return ("", "", "", ""), ("b1" * merges, "", "", "")


def _by_chance(
    name: str, merges: bool, modifiers: tuple[str, ...], chance: Random
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    lanes, turned = _lanes(name), ""
    if lanes:
        letter, last = ("h", "0123") if lanes == "2" else ("b", "01234567")
        a, b = (letter + "".join(chance.choices(last, k=int(lanes))) for _ in "ab")
        return ("", "", "", ""), (chance.choice(MASKS[lanes]), a, chance.choice(["", b]), "")
    if name == "vmad" and "po" not in modifiers:
        turned = chance.choice(["", "a", "b", "ab", "c", "abc"])
    target = chance.choice(PARTS[1:]) if merges else ""
    signs = ("", *("-" if letter in turned else "" for letter in "abc"))
    return signs, (target, chance.choice(PARTS), chance.choice(PARTS), "")


@cache
def agreed(line: str) -> bool:
    """Whether a video instruction has but one meaning."""
    head = ".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() { .reg .b32 %r<9>; "
    text = head + f"{line} ret; }}"
    return not doubt(next(parse(text).functions[0].instructions()))


def instruction(
    opcode: Opcode, form: OpcodeForm, modifiers: tuple[str, ...], variant: int = 0
) -> str:
    if VIDEO.fullmatch(opcode.name) and form.operands[0].startswith("d"):
        return _video(opcode, form, modifiers, variant)
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
    if re.fullmatch(r"\[(t\d|h[rf]*)\]", word):
        return _with_coordinates(word[1], word[2:-1])
    if re.match(r"[-%{_L\d]|\[[^abdst]", word):
        return word
    if name == "wgmma" and word in "xyqiz":
        return {"x": "%l1", "y": "%l2", "q": "%p1", "i": "1", "z": "0"}[word]
    if word in ("[b]", "[s]"):
        return "[%r8]"
    several = re.fullmatch(r"[a-d](\d+)([rfdhl])", word)
    if several:  # registers of a matrix, of a texel
        return "{" + ", ".join(f"%{several[2]}{i}" for i in range(int(several[1]))) + "}"
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
        return "%p7|%p8"
    if (name, word) == ("cvt", "v"):
        return "{%f1, %f2, %f3, %f4}"
    if word == "d|p" and name in ("elect", "match", "lop3"):
        return f"{register(kind, 1)}|%p2"
    return register(kind, number)


def _with_coordinates(of: str, axes: str) -> str:
    """A tensor map has so many, all whole; a texture's handle says of each which it is."""
    banks = "r" * int(axes) if of == "t" else axes
    given = ", ".join(f"%{bank}{i}" for i, bank in enumerate(banks))
    return f"[%l8, {{{given}}}]" if given else "[%l8]"


def _address(name: str, word: str, modifiers: tuple[str, ...]) -> str:
    spaces = {m.split("::")[0] for m in modifiers}
    if word == "[a]" and "cp_fenceproxy" in modifiers:
        return "[%l8]"
    if "shared" in spaces and (name != "cp" or word == "[d]"):
        return "[tile]"
    return "[own]" if "local" in spaces else "[%l8]"


def kind_of(name: str, word: str, kinds: list[str], modifiers: tuple[str, ...]) -> str:
    """The type of the register that an operand is, or the constant that it is."""
    last = kinds[-1] if kinds else "b32"
    if word == "m":
        return "b32"
    if word == "p" and "L2::cache_hint" in modifiers:
        return "b64"
    match name, word:
        case ("wmma", "n") | ("createpolicy", "n" | "k"):
            return "b32"
        case ("mapa", "b") | ("getctarank", "d"):
            return "u32"
        case ("cp", "h"):
            return "b16"
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
        case ("cvt", "c" | "e"):
            return "b32"
        case ("lop3", "q"):
            return "pred"
        case ("mul", "d") | ("mad", "d" | "c") if "wide" in modifiers:
            return f"{last[0]}{WIDE[last[1:]]}" if last[1:] in WIDE else last
        case ("add" | "sub" | "fma", _) if len(kinds) > 1:  # f32 and halves
            return last if word == "a" or (name, word) == ("fma", "b") else kinds[0]
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
        case ("applypriority" | "discard" | "fence" | "tensormap", "n"):
            return "128"
        case ("tensormap", "i"):
            return "1"
        case ("cp", "n"):
            return "16" if "wait_group" not in modifiers else "0"
        case ("setmaxnreg", "n"):
            return "64"
        case ("movmatrix", _) | ("mbarrier", "n" | "t"):
            return "b32"
        case ("mbarrier", "d") if modifiers[0].endswith("wait"):
            return "pred"
        case ("mbarrier", "s") if "parity" in modifiers:
            return "b32"
        case ("mbarrier", "d") if "pending_count" in modifiers:
            return "b32"
        case ("cp", "n") if "bulk" in modifiers:
            return "b32"
        case ("cp", "i"):
            return "0"
        case ("pmevent", "a"):
            return "1"
        case _:
            return last


# -- kernels that run them ------------------------------------------------------------------------

EDGES16 = [0, 1, 2, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7E01, 0x3C00, 0x3E00, 0x4100, 0x8000, 0x8001, 0x83FF, 0xBC00, 0xC100,
           0xFC00, 0x0080, 0x007F, 0x3F80, 0x3F81, 0xBF80, 0x7F80, 0x7FFF, 0xFFFF, 31, 32, 0x42FF]  # fmt: skip
EDGES32 = [0, 1, 3, 17, 31, 33, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F000000, 0x3FC00000, 0x40200000, 0x477FF000, 0x4B000001,
           0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x80000000, 0x80000001, 0x807FFFFF, 0xBF800000, 0xC0200000, 0xFF800000,
           0xFFFFFFFF, 0x33000001, 0x387FE000, 0xCF000000, 0x4F800000, 0xC3020000, 0x3F801000]  # fmt: skip
EDGES64 = [0, 1, 31, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x3FF0000000000000, 0x3FE0000000000000, 0x3FF8000000000000,
           0x4004000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000001, 0x8000000000000000,
           0x8000000000000001, 0x800FFFFFFFFFFFFF, 0xBFF0000000000000, 0xC004000000000000, 0xFFF0000000000000,
           0xFFFFFFFFFFFFFFFF, 0x3810000000000000, 0x36A0000000000001, 0x41F0000000000001, 0x40F0000000000000,
           0x3FF0000010000000, 0x3FF0000030000000, 0x3E60000000000001, 0x8000000100000000, 0xFFFFFFFF80000000]  # fmt: skip
THREADS = 1024
STORES = {"%p": "selp.u64 %l0, 1, 0, {r}; st.global.u64 [%o], %l0;", "%h": "st.global.b16 [%o], {r};",
          "%r": "st.global.b32 [%o], {r};", "%f": "st.global.f32 [%o], {r};", "%l": "st.global.b64 [%o], {r};",
          "%d": "st.global.f64 [%o], {r};", "%c": "cvt.u16.u8 %h0, {r}; st.global.b16 [%o], %h0;"}  # fmt: skip


def inputs() -> list[np.ndarray]:
    """Five columns of each width: edges that meet each other, then random bits."""
    rng = np.random.default_rng(5)
    found = []
    for dtype, edges in ((np.uint16, EDGES16), (np.uint32, EDGES32), (np.uint64, EDGES64)):
        columns = (
            np.frombuffer(rng.bytes(5 * THREADS * np.dtype(dtype).itemsize), dtype)
            .reshape(5, -1)
            .copy()
        )
        square = np.arange(len(edges) ** 2)
        for column in range(5):
            pick = square // len(edges) ** (column % 2) + column * (square // 7)
            columns[column, : square.size] = np.array(edges, dtype)[pick % len(edges)]
        found.append(columns)
    return found


def program(texts: list[str], target: str = "") -> str:
    """A kernel that stores, for each instruction, what it gives for each thread; without a target
    for the oldest that has them."""
    later = any("f32x2" in text or ("redux" in text and ".f32" in text) for text in texts)
    target = target or ("sm_100a" if later else "sm_90a")
    body = [HEADER.format(version="8.6", target=target).replace("k()", "k(.param .u64 h, .param .u64 r, .param .u64 l, .param .u64 out)")
            + ".reg .b64 %o, %b; .reg .b32 %t; mov.u32 %t, %tid.x;"]  # fmt: skip
    for bank, size in (("h", 2), ("r", 4), ("l", 8)):
        body.append(f"ld.param.u64 %b, [{bank}]; mad.wide.u32 %b, %t, {size}, %b;")
        body += [
            f"ld.global.b{8 * size} %{bank}{n}, [%b+{(n - 1) * size * THREADS}];"
            for n in range(1, 6)
        ]
    body += [
        f"mov.b32 %f{n}, %r{n}; mov.b64 %d{n}, %l{n}; setp.lt.s32 %p{n}, %r{n}, 0; cvt.u8.u16 %c{n}, %h{n};"
        for n in range(1, 6)
    ]
    body.append("ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 8, %o;")
    for text in texts:
        pair = text.split()[1].rstrip(",").split("|")
        target = pair[-1] if text.startswith("lop3") else pair[0].partition(".")[0]
        body += [text, STORES[target[:2]].format(r=target), f"add.u64 %o, %o, {8 * THREADS};"]
    return "\n".join(body) + "\nret;\n}\n"


def spelled(form: OpcodeForm) -> list[tuple[str, ...]]:
    """Rows with one word or none for each slot."""
    rows: list[tuple[str, ...]] = [()]
    for slot in form.slots:
        words = slot.words + (("",) if slot.optional else ())
        rows = [(*row, word) for row in rows for word in words]
    return rows


def parts(row: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for word in row for part in word.split(".") if part)
