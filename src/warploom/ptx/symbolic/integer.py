"""What the integer instructions do to forms, one handler each.

Comes in: an instruction and a `Reader`. Goes out: one form per destination, or None where nothing
is known. Sums, products and widenings are exact; other pure instructions become functions.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.ptx.ir import Address, Component, Instruction, Register, Symbol
from warploom.ptx.known import record_of, space_of
from warploom.ptx.symbolic.form import Form, Pool, add, constant, scale
from warploom.ptx.symbolic.operand import Reader, is_integer, roots, width_of


def values(reader: Reader, step: Instruction) -> list[Form | None] | None:
    """One form per destination where we can say; None where nothing is known."""
    record = record_of(step)
    if record is None or not width_of(_kind(step)):
        return None
    handler = HANDLERS.get(step.opcode)
    if handler is not None:
        return handler(reader, step)
    return [_pure(reader, step)] if record.pure else None


def _operands(reader: Reader, step: Instruction, width: int) -> list[Form] | None:
    read = [reader.value(operand, width) for operand in step.operands[1:]]
    return None if any(form is None for form in read) else [f for f in read if f is not None]


def _kind(step: Instruction) -> str:
    return step.modifiers[-1] if step.modifiers else ""


def _pure(reader: Reader, step: Instruction) -> Form | None:
    """A function of the operands, keyed by the whole name of the instruction."""
    kind = _kind(step)
    if not is_integer(kind) or "cc" in step.modifiers:
        return None
    args = _operands(reader, step, max(map(width_of, step.modifiers)))  # nothing is cut off
    if args is None or not isinstance(step.operands[0], Register):
        return None
    width = width_of(step.operands[0].type)
    return reader.pool.function(step.name, width, tuple(args), _bounds(step, args))


def _bounds(step: Instruction, args: list[Form]) -> tuple[int, int] | None:
    kind = _kind(step)
    width = width_of(kind)
    last = args[-1].constant if args[-1].is_constant else None
    match step.opcode:
        case "popc" | "clz":
            return 0, width
        case "and" if last is not None:
            return 0, last
        case "shr" if last is not None and not kind.startswith("s"):
            return 0, (1 << max(0, width - last)) - 1
        case "rem" if last and kind.startswith("u"):
            return 0, last - 1
        case "div" if last and kind.startswith("u"):
            return 0, ((1 << width) - 1) // last
        case _:
            return None


# -- handlers, one per instruction that the ring expresses --------------------------------------


def _mov(reader: Reader, step: Instruction) -> list[Form | None] | None:
    if not isinstance(step.operands[0], Register | Component):
        return None
    return [reader.value(step.operands[1], width_of(_kind(step)))]


def _cvta(reader: Reader, step: Instruction) -> list[Form | None] | None:
    width = width_of(_kind(step))
    form = reader.value(step.operands[1], width)
    space = space_of(step)
    if form is None:
        return None
    if space == "global":  # generic addresses of global memory are its addresses
        return [form]
    window = reader.pool.symbol(f"window {space}", width)
    return [add(form, window, -1 if "to" in step.modifiers else 1)]


def _sum(reader: Reader, step: Instruction) -> list[Form | None] | None:
    if not is_integer(_kind(step)) or "sat" in step.modifiers:
        return None
    args = _operands(reader, step, width_of(_kind(step)))
    if args is None:
        return None
    return [add(args[0], args[1], -1 if step.opcode == "sub" else 1)]


def _product(reader: Reader, step: Instruction) -> list[Form | None] | None:
    """mul and mad, low half or wide; the high half is a pure function."""
    kind = _kind(step)
    if not is_integer(kind) or "sat" in step.modifiers:
        return None
    wide = "wide" in step.modifiers
    if not wide and "lo" not in step.modifiers:
        return [_pure(reader, step)]
    width = width_of(kind)
    full = 2 * width if wide else width
    a, b = (reader.value(operand, width) for operand in step.operands[1:3])
    if a is None or b is None:
        return None
    signed = kind.startswith("s")
    pool = reader.pool
    result = pool.multiply(pool.extend(a, full, signed), pool.extend(b, full, signed))
    if step.opcode == "mad":
        addend = reader.value(step.operands[3], full)
        return None if addend is None else [add(result, addend)]
    return [result]


def _neg(reader: Reader, step: Instruction) -> list[Form | None] | None:
    args = _operands(reader, step, width_of(_kind(step))) if is_integer(_kind(step)) else None
    return None if args is None else [scale(args[0], -1)]


def _not(reader: Reader, step: Instruction) -> list[Form | None] | None:
    width = width_of(_kind(step))
    args = _operands(reader, step, width)
    return None if args is None else [add(constant(width, -1), args[0], -1)]


def _shl(reader: Reader, step: Instruction) -> list[Form | None] | None:
    width = width_of(_kind(step))
    form = reader.value(step.operands[1], width)
    amount = reader.value(step.operands[2], 32)
    if form is None or amount is None:
        return None
    if not amount.is_constant:
        return [reader.pool.function("shl", width, (form, amount))]
    return [scale(form, 1 << amount.constant) if amount.constant < width else constant(width, 0)]


def _shr(reader: Reader, step: Instruction) -> list[Form | None] | None:
    width = width_of(_kind(step))
    form = reader.value(step.operands[1], width)
    amount = reader.value(step.operands[2], 32)
    if form is None or amount is None:
        return None
    args = [form, amount]
    return [reader.pool.function(step.name, width, (form, amount), _bounds(step, args))]


def _logic(reader: Reader, step: Instruction) -> list[Form | None] | None:
    """and, or, xor: exact for predicates, and where an `or` can carry nothing."""
    width = width_of(_kind(step))
    args = _operands(reader, step, width)
    if args is None:
        return None
    a, b = sorted(args, key=lambda form: form.is_constant)
    pool = reader.pool
    if width == 1:
        both = pool.multiply(a, b)
        match step.opcode:
            case "and":
                return [both]
            case "or":
                return [add(add(a, b), both)]
            case _:
                return [add(a, b)]
    if step.opcode in ("or", "xor") and b.is_constant and _low_zeros(a) >= b.constant.bit_length():
        return [add(a, b)]
    return [pool.function(f"{step.opcode}.b{width}", width, (a, b), _bounds(step, [a, b]))]


def _low_zeros(form: Form) -> int:
    """How many low bits are zero whatever the atoms are."""
    every = 0
    for _, coefficient in form.terms:
        every |= coefficient
    return (every & -every).bit_length() - 1 if every else form.width


def _cvt(reader: Reader, step: Instruction) -> list[Form | None] | None:
    kinds = [m for m in step.modifiers if width_of(m)]
    if len(kinds) != 2 or not all(map(is_integer, kinds)) or len(step.modifiers) != 2:
        return None
    form = reader.value(step.operands[1], width_of(kinds[1]))
    if form is None:
        return None
    wide = reader.pool.extend(form, width_of(kinds[0]), kinds[1].startswith("s"))
    if isinstance(step.operands[0], Register):  # a wider register is filled by the new type's sign
        whole = max(width_of(step.operands[0].type), wide.width)
        wide = reader.pool.extend(wide, whole, kinds[0].startswith("s"))
    return [wide]


def _selp(reader: Reader, step: Instruction) -> list[Form | None] | None:
    width = width_of(_kind(step))
    a, b = (reader.value(operand, width) for operand in step.operands[1:3])
    condition = reader.value(step.operands[3], 1)
    if a is None or b is None or condition is None:
        return None
    return [choose(reader.pool, condition, a, b)]


def choose(pool: Pool, condition: Form, a: Form, b: Form) -> Form:
    if condition.is_constant:
        return a if condition.constant else b
    if a == b:
        return a
    return pool.function("ite", a.width, (condition, a, b))


def _setp(reader: Reader, step: Instruction) -> list[Form | None] | None:
    kind = _kind(step)
    words = step.modifiers[:-1]
    if not is_integer(kind):
        return None
    width = width_of(kind)
    a, b = (reader.value(operand, width) for operand in step.operands[1:3])
    if a is None or b is None:
        return None
    result = compare(reader.pool, words[0], kind.startswith("s"), a, b)
    if result is None:
        return None
    both: list[Form | None] = [result, add(constant(1, 1), result)]
    if len(step.operands) == 4:
        other = reader.value(step.operands[3], 1)
        if other is None or len(words) != 2:
            return None
        both = [_joined(reader.pool, words[1], each, other) for each in both if each is not None]
    return both


def _joined(pool: Pool, word: str, a: Form, b: Form) -> Form:
    product = pool.multiply(a, b)
    match word:
        case "and":
            return product
        case "or":
            return add(add(a, b), product)
        case _:
            return add(a, b)


# comparison: (swap operands, negate the result, which basic one)
_BASIC = {
    "eq": (False, False, "eq"), "ne": (False, True, "eq"),
    "lt": (False, False, "lt"), "ge": (False, True, "lt"),
    "gt": (True, False, "lt"), "le": (True, True, "lt"),
    "lo": (False, False, "lt"), "hs": (False, True, "lt"),
    "hi": (True, False, "lt"), "ls": (True, True, "lt"),
}  # fmt: skip


def compare(pool: Pool, word: str, signed: bool, a: Form, b: Form) -> Form | None:
    """A comparison as a form of one bit; all of them by `eq` and `lt` and their negation."""
    if word not in _BASIC:
        return None
    swap, negate, basic = _BASIC[word]
    if word in ("lo", "ls", "hi", "hs"):
        signed = False
    a, b = (b, a) if swap else (a, b)
    result = _equal(pool, a, b) if basic == "eq" else _less(pool, signed, a, b)
    return add(constant(1, 1), result) if negate else result


def _equal(pool: Pool, a: Form, b: Form) -> Form:
    difference = add(a, b, -1)
    if difference.is_constant:
        return constant(1, int(difference.constant == 0))
    other = scale(difference, -1)
    return pool.function("eq", 1, (min(difference, other, key=lambda form: form.terms),))


def _less(pool: Pool, signed: bool, a: Form, b: Form) -> Form:
    if a == b:
        return constant(1, 0)
    full = pool.extend(a, 2 * a.width, signed), pool.extend(b, 2 * b.width, signed)
    gap = pool.bounds(add(full[0], full[1], -1))
    # With both sides as integers of twice the width, their difference does not wrap.
    if gap is not None and gap[1] < 0:
        return constant(1, 1)
    if gap is not None and gap[0] >= 0:
        return constant(1, 0)
    return pool.function("lt.s" if signed else "lt.u", 1, (a, b))


def _load(reader: Reader, step: Instruction) -> list[Form | None] | None:
    """Parameters and constants are functions of the address, as is `.nc` memory."""
    words = {word.split("::")[0] for word in step.modifiers}
    fixed = "param" in words or "const" in words or "nc" in words
    if not fixed or "volatile" in words or not isinstance(step.operands[0], Register):
        return None
    address = reader.address(step.operands[1])
    if address is None or not _readable(reader, step, words):
        return None
    kind = _kind(step)
    width = width_of(kind)
    name = "param" if "param" in words else "const" if "const" in words else "nc"
    if width not in (8, 16, 32, 64):
        return None
    form = reader.pool.function(f"{name}.{width}", width, (address,))
    return [reader.pool.extend(form, max(width, width_of(step.operands[0].type)), kind[0] == "s")]


def _readable(reader: Reader, step: Instruction, words: set[str]) -> bool:
    """Parameters of the kernel are; those of a call inside it change with every call."""
    if "nc" in words:  # a promise that the kernel itself breaks is no promise
        form = reader.address(step.operands[1])
        return form is not None and not roots(reader.pool, form) & reader.written
    if "param" not in words:
        return True
    address = step.operands[1]
    if not isinstance(address, Address):
        return False
    base = address.base
    return not isinstance(base, Symbol) or base.name in reader.parameters


Handler = Callable[[Reader, Instruction], list[Form | None] | None]
HANDLERS: dict[str, Handler] = {
    "mov": _mov, "cvta": _cvta, "add": _sum, "sub": _sum, "mul": _product, "mad": _product,
    "neg": _neg, "not": _not, "shl": _shl, "shr": _shr, "and": _logic, "or": _logic,
    "xor": _logic, "cvt": _cvt, "selp": _selp, "setp": _setp, "ld": _load,
}  # fmt: skip
