"""Bit instructions: logic, shifts, fields, permutations, counts."""

from __future__ import annotations

from warploom.machine.value.ir import Value, const, is_signed, joined, make, unsigned, width_of
from warploom.ptx.ir import Immediate, Pair
from warploom.ptx.meaning.shape import Operands, Result, Table

TABLE = Table()


@TABLE.row("and or xor", "d a b", "pred|{bits}")
def logic(r: Operands) -> list[Result]:
    a, b = r.operands(r.kind(), r.kind())
    made = {"and": a & b, "or": a | b, "xor": a ^ b}
    return r.result(r.kind(), made[r.ins.opcode])


@TABLE.row("not", "d a", "pred|{bits}")
def invert(r: Operands) -> list[Result]:
    (a,) = r.operands(r.kind())
    return r.result(r.kind(), ~a)


@TABLE.row("cnot", "d a", "{bits}")
def cnot(r: Operands) -> list[Result]:
    (a,) = r.operands(r.kind())
    return r.result(r.kind(), a.eq(0).to(a.type))


@TABLE.row("shr", "d a b", "{bits}|{integer}")
@TABLE.row("shl", "d a b", "{bits}")
def shift(r: Operands) -> list[Result]:
    """Amounts of the width and more shift everything out."""
    width = r.kind()[1:]
    kind = f"{'s' if r.ins.opcode == 'shr' and is_signed(r.kind()) else 'u'}{width}"
    a, n = r.operands(kind, "u32")
    if is_signed(kind):
        return r.result(kind, a >> n.min(int(width) - 1))
    inside = n.min(int(width) - 1)
    moved = a << inside if r.ins.opcode == "shl" else a >> inside
    return r.result(kind, n.lt(int(width)).select(moved, 0))


@TABLE.row("shf", "d a b c", "l|r clamp|wrap b32")
def funnel(r: Operands) -> list[Result]:
    """shf: a 64-bit value shifted, one half of it kept."""
    low, high, amount = r.operands("u32", "u32", "u32")
    n = amount & 31 if r.has("wrap") else amount.min(32)
    both = joined([low, high], "u64")
    made = both << n >> 32 if r.has("l") else both >> n
    return r.result("u32", made.to("u32"))


@TABLE.row("lop3", "d a b c t", "b32\nor|and b32 = d|p a b c t q")
def lop3(r: Operands) -> list[Result]:
    """Any function of three bits, by its table; with a predicate also whether it is not zero."""
    table, target = r.ins.operands[4], r.ins.operands[0]
    if not isinstance(table, Immediate):
        raise ValueError(f"the table of {r.ins.name} is a constant")
    made = lop3_value(table.value & 0xFF, *r.operands("u32", "u32", "u32"))
    if len(r.ins.operands) == 5:
        return r.result("u32", made)
    if not isinstance(target, Pair):
        raise ValueError(f"{r.ins.name} has two results")
    q, some = r.read(r.ins.operands[5], "pred"), ~made.eq(0)
    flag = some | q if r.has("or") else some & q
    return [Result(target.first, "u32", made), Result(target.second, "pred", flag)]


def lop3_value(table: int, a: Value, b: Value, c: Value) -> Value:
    """A function of three bits as logic: by what it is where a is set and where it is not."""

    def of_two(rows: int) -> Value:
        zero = const("u32", 0)
        simple = [zero, ~(b | c), c & ~b, ~b, b & ~c, ~c, b ^ c, ~(b & c),
                  b & c, ~(b ^ c), c, c | ~b, b, b | ~c, b | c, ~zero]  # fmt: skip
        return simple[rows]

    clear, set_ = table & 15, table >> 4
    if clear == set_:
        return of_two(clear)
    if clear == set_ ^ 15:
        return a ^ of_two(clear)
    if not clear:
        return a & of_two(set_)
    if set_ == 15:
        return a | of_two(clear)
    return (a & of_two(set_)) | (~a & of_two(clear))


# -- fields -----------------------------------------------------------------------------------


def _amount(r: Operands, place: int, width: int) -> Value:
    """A position or length: its lowest byte; of 64-bit fields ptxas makes shifts, which clamp."""
    given = r.read(r.ins.operands[place], "u32")
    return given.min(0xFF) if width == 64 else given & 0xFF


def _low_ones(count: Value) -> Value:
    """As many ones as `count` says, at most 64, in the lowest bits."""
    inside = count.min(63)
    some = (const("u64", 1) << inside) - 1
    return count.lt(64).select(some, const("u64", -1))


@TABLE.row("bfe", "d a b c", "{carry}")
def extract(r: Operands) -> list[Result]:
    """bfe: `length` bits from `position`; beyond the top the sign bit (or zero) is repeated."""
    kind = r.kind()
    width = width_of(kind)
    a = r.read(r.ins.operands[1], unsigned(kind)).to("u64")
    position, length = _amount(r, 2, width), _amount(r, 3, width)
    field = position.lt(64).select(a >> position.min(63), 0) & _low_ones(length)
    if is_signed(kind):
        last = (position + length).max(1) - 1
        sign = ~length.eq(0) & ~(a >> last.min(width - 1) & 1).eq(0)
        room = position.lt(width).select(const("u32", width) - position, 0)
        field = sign.select(field | ~_low_ones(room.min(length)), field)
    return r.result(unsigned(kind), field.to(unsigned(kind)))


@TABLE.row("bfi", "d a b c e", "b32|b64")
def insert(r: Operands) -> list[Result]:
    """bfi: `length` bits of a put into b at `position`."""
    kind = unsigned(r.kind())
    width = width_of(kind)
    a, b = (x.to("u64") for x in r.operands(kind, kind))
    position, length = _amount(r, 3, width), _amount(r, 4, width)
    up = position.min(63)
    mask = position.lt(width).select(_low_ones(length.min(width)) << up, 0)
    return r.result(kind, ((b & ~mask) | (a << up & mask)).to(kind))


# -- counts -----------------------------------------------------------------------------------


@TABLE.row("bfind", "d a", "shiftamt? {carry}")
def bfind(r: Operands) -> list[Result]:
    """The highest bit that is not a copy of the sign; all ones where there is none."""
    (a,) = r.operands(r.kind())
    bits = a.lt(0).select(~a, a) if is_signed(r.kind()) else a
    zeros = bits.leading_zeros()
    found = zeros if r.has("shiftamt") else const("u32", width_of(a.type) - 1) - zeros
    return r.result("u32", bits.eq(0).select(const("u32", -1), found))


@TABLE.row("clz popc", "d a", "b32|b64")
def counted(r: Operands) -> list[Result]:
    """popc, clz"""
    (a,) = r.operands(unsigned(r.kind()))
    return r.result("u32", a.ones() if r.ins.opcode == "popc" else a.leading_zeros())


@TABLE.row("brev", "d a", "b32|b64")
def brev(r: Operands) -> list[Result]:
    (a,) = r.operands(unsigned(r.kind()))
    return r.result(a.type, a.reversed())


@TABLE.row("fns", "d a b c", "b32")
def fns(r: Operands) -> list[Result]:
    """The n-th set bit from a base, upwards or downwards; all ones where there is none."""
    made = make("nth", "u32", tuple(r.operands("u32", "u32", "s32")))
    return r.result("u32", made)


# -- prmt -------------------------------------------------------------------------------------

PRMT_MODES: dict[str, list[list[int]]] = {
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
    "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}


@TABLE.row("prmt", "d a b c", "b32 f4e|b4e|rc8|ecl|ecr|rc16?")
def prmt(r: Operands) -> list[Result]:
    """Any four of the eight bytes of two words; bit 3 of a selector repeats the byte's sign."""
    a, b, selector = r.operands("u32", "u32", "u32")
    mode = next((m for m in r.ins.modifiers if m in PRMT_MODES), None)
    if mode is not None:
        selector = _of_mode(PRMT_MODES[mode], selector & 3)
    both = joined([a, b], "u64")
    return r.result("u32", joined([_byte(both, selector >> 4 * n & 15) for n in range(4)]))


def _of_mode(rows: list[list[int]], number: Value) -> Value:
    """The selector that one of four rows of bytes stands for."""
    first, *rest = (sum(byte << 4 * at for at, byte in enumerate(row)) for row in rows)
    chosen = const("u32", first)
    for n, row in enumerate(rest, 1):
        chosen = number.eq(n).select(const("u32", row), chosen)
    return chosen


def _byte(both: Value, selector: Value) -> Value:
    byte = (both >> ((selector & 7) << 3)).to("u8")
    return (selector & 8).eq(0).select(byte, (byte.bits("s8") >> 7).bits("u8"))


# -- masks and extensions ------------------------------------------------------------------------


@TABLE.row("bmsk", "d a b", "clamp|wrap b32")
def bmsk(r: Operands) -> list[Result]:
    """A mask of b ones from bit a."""
    a, b = (_short(r, x) for x in r.operands("u32", "u32"))
    return r.result("u32", (_low_ones(b) << a).to("u32"))


@TABLE.row("szext", "d a b", "clamp|wrap u32|s32")
def szext(r: Operands) -> list[Result]:
    """The low b bits of a, extended by sign or zero."""
    a, b = r.operands("u32", "u32")
    ones = _low_ones(_short(r, b))
    low = a.to("u64") & ones
    top = ones + 1 >> 1
    made = (low ^ top) - top if is_signed(r.kind()) else low
    return r.result("u32", made.to("u32"))


def _short(r: Operands, n: Value) -> Value:
    """A position or length of up to 32 bits, clamped or modulo 32."""
    return n.min(32) if r.has("clamp") else n & 31
