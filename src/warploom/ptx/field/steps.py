"""Instructions of a launch whose floats are elements: each computes with them, moves them whole, or
has nothing to do with them; anything else is not known.

What moves floats may take them apart into halves of words and join these, as the packing of pairs
does. All other instructions must find the same in all copies, so that no element went in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.shape import parts
from warploom.ptx.field.atomics import sum_of
from warploom.ptx.field.digits import DIGIT
from warploom.ptx.field.elements import Elements, NotKnown
from warploom.ptx.field.floats import active_of, applied, by_copies, field_of
from warploom.ptx.field.roundings import Note, how_of
from warploom.ptx.ir import Address, Immediate, Instruction, Operand, Register
from warploom.ptx.known import keys_of, registers, split_operands, varies
from warploom.ptx.opcode import MemoryEffect
from warploom.ptx.table import OPCODES
from warploom.ptx.types import DTYPES, is_float, type_of, types_of

Array = npt.NDArray[Any]
Function = Callable[..., Array]

EXPONENT = 23  # where that of a single begins
QUIET = (MemoryEffect.NOTHING, MemoryEffect.MEETS)
AMOUNTS = {"shl": 1, "shr": 1, "bfe": 2, "bfi": 2}  # of bits: the last operands, of 32 bits
SYNCHRONISES = frozenset({"mbarrier", "fence", "membar", "griddepcontrol", "discard", "tensormap"})
ARITHMETIC = frozenset({"f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "f32x2"})
REFUSED = ("relu", "xorsign", "abs", "oob")  # of arithmetic: they compare
DRAWN = ("rsqrt", "sqrt", "sin", "cos", "lg2", "tanh")
PRODUCTS = frozenset({"mma", "wgmma", "wmma"})
REDUCED = frozenset({"atom", "red", "redux"})
MOVES = frozenset(
    {"mov", "selp", "shfl", "ld", "ldu", "st", "ldmatrix", "stmatrix", "movmatrix", "cp"}
)
BITWISE = frozenset(
    {"and", "or", "xor", "add", "shl", "shr", "prmt", "cvt", "bfe", "bfi", "lop3", "shf"}
)


def step_of(ctx: Context, ins: Instruction, plain: Callable[[], Step]) -> Step:
    """`plain` compiles the instruction as for any other launch."""
    if ins.opcode == "activemask" or varies(ins.operands):
        return _unknown(ctx, ins, "what differs from run to run")
    if _computes(ins):
        return _arithmetic(ctx, ins, plain())
    if ins.opcode in ("setp", "set") and is_float(type_of(ins)):
        return _comparison(ctx, ins, plain())
    if ins.opcode == "cvt" and any(is_float(each) for each in types_of(ins)):
        return _conversion(ctx, ins, plain())
    if ins.opcode in PRODUCTS:
        return _product(ctx, ins, plain())
    if ins.opcode in REDUCED or "reduce" in ins.modifiers:
        if _floating(ins):
            return _atomic(ctx, ins)
        return _checked(ctx, ins, plain(), split_operands(ins)[1])
    if ins.opcode in MOVES and (ins.opcode, *ins.modifiers[:1]) != ("st", "async"):
        return _checked(ctx, ins, plain(), _steering(ins))
    if ins.opcode in BITWISE:
        return _whole_halves(ctx, ins, plain())
    if OPCODES[ins.opcode].memory not in QUIET and ins.opcode not in SYNCHRONISES:
        return _unknown(ctx, ins, ins.name)
    return _checked(ctx, ins, plain(), split_operands(ins)[1])


# -- arithmetic -----------------------------------------------------------------------------------

_SOURCES = {
    "add": 2, "sub": 2, "mul": 2, "fma": 3, "mad": 3, "div": 2, "rcp": 1, "neg": 1, "abs": 1,
    "min": 2, "max": 2, "ex2": 1, **dict.fromkeys(DRAWN, 1),
}  # fmt: skip


def _computes(ins: Instruction) -> bool:
    return ins.opcode in _SOURCES and is_float(type_of(ins) or "b32")


def function_of(e: Elements, ins: Instruction) -> Function:
    """What an instruction does with elements."""
    made = _unclamped(e, ins.opcode, {"rm", "f32"} <= set(ins.modifiers))
    return (lambda *given: e.clamped(made(*given))) if "sat" in ins.modifiers else made


def _fused(e: Elements, rounds_down: bool, x: Array, y: Array, z: Array) -> Array:
    made = e.add(e.mul(x, y), z)
    steps = e.are_steps(x, y, z) if rounds_down else np.zeros(x.size, bool)
    if steps.any():
        made[steps] = e.stepped(x[steps])
    return made


def _unclamped(e: Elements, name: str, rounds_down: bool) -> Function:
    match name:
        case "add":
            return e.add
        case "sub":
            return lambda x, y: e.add(x, e.neg(y))
        case "mul":
            return e.mul
        case "fma" | "mad":
            return lambda x, y, z: _fused(e, rounds_down, x, y, z)
        case "div":
            return lambda x, y: e.mul(x, e.inverse(y))
        case "rcp":
            return e.inverse
        case "neg":
            return e.neg
        case "min" | "max":
            return lambda *given: reduce(lambda x, y: e.extreme(x, y, name == "min"), given)
        case "ex2":
            return e.exp2
        case "rsqrt":
            return lambda x: e.inverse(e.function("sqrt", x))
        case _:
            return lambda x: e.function(name, x)


def _arithmetic(ctx: Context, ins: Instruction, plain: Step) -> Step:
    refused = set(REFUSED) & set(ins.modifiers) or not set(types_of(ins)) <= ARITHMETIC
    count = _SOURCES[ins.opcode]
    if ins.opcode in ("min", "max") and len(ins.operands) == 2 + count:  # of three
        count += 1
    if refused or len(ins.operands) > 1 + count:
        return _unknown(ctx, ins, f"{ins.name}")
    kinds = types_of(ins)
    result = kinds[0]
    pairs = result.endswith("x2")
    sources = [kinds[-1]] * (count - 1) + [result] if len(kinds) > 1 else [result] * count
    store, fetches = parts(ctx, ins, result, *sources)
    scalar = [kind.removesuffix("x2") for kind in sources]
    size = DTYPES[scalar[0]].itemsize
    note = Note(how_of(ins.opcode), result.removesuffix("x2"), ctx.module.span(ins))
    computed = ctx.read(ins.operands[0], result)

    def step(f: Frame) -> None:
        fn = function_of(field_of(f).elements, ins)
        values = [fetch(f) for fetch in fetches]
        floats = _Once(f, plain, computed)
        with told(ctx, ins):
            if not pairs:
                store(f, applied(f, fn, values, scalar, result, note, floats))
                return
            halves = [[_half(v, n, size) for v in values] for n in (0, 1)]
            low, high = (
                applied(
                    f, fn, halves[n], scalar, scalar[0], note, partial(floats.half, n, size)
                )
                for n in (0, 1)
            )  # fmt: skip
            store(f, _pair(low, high, size))

    return step


class _Once:
    """What an instruction makes of plain floats; it may write to what it reads, so that it runs
    once, after its operands were read."""

    def __init__(self, f: Frame, plain: Step, computed: Fetch) -> None:
        self.f, self.plain, self.computed = f, plain, computed
        self.made: Array | None = None

    def __call__(self) -> Array:
        if self.made is None:
            self.plain(self.f)
            self.made = self.computed(self.f).copy()
        return self.made

    def half(self, which: int, size: int) -> Array:
        return _half(self(), which, size)


def _half(words: Array, which: int, size: int) -> Array:
    """One of the two floats of so many bytes that a word holds."""
    whole = words.view(f"u{2 * size}")
    return np.asarray((whole >> whole.dtype.type(8 * size * which)).astype(f"u{size}"))


def _pair(low: Array, high: Array, size: int) -> Array:
    """Two floats as one word."""
    both = np.dtype(f"u{2 * size}")
    parts_ = np.broadcast_arrays(low.view(f"u{size}"), high.view(f"u{size}"))
    first, second = (each.astype(both) for each in parts_)
    return np.asarray(first | second << both.type(8 * size))


class told:  # noqa: N801 - read as a word
    """What is not known is said of the instruction."""

    def __init__(self, ctx: Context, ins: Instruction) -> None:
        self.ctx, self.ins = ctx, ins

    def __enter__(self) -> None:
        return

    def __exit__(self, _: Any, error: Any, __: Any) -> None:
        if isinstance(error, NotKnown) and error.span is None:
            error.span = self.ctx.module.span(self.ins)


def _unknown(ctx: Context, ins: Instruction, what: str) -> Step:
    def step(_: Frame) -> None:
        with told(ctx, ins):
            raise NotKnown(what)

    return step


def _comparison(ctx: Context, ins: Instruction, plain: Step) -> Step:
    """A comparison of constants; of what depends on inputs none is known."""
    kind = type_of(ins)
    fetches = [ctx.read(each, kind) for each in ins.operands[1:3]]

    def step(f: Frame) -> None:
        with told(ctx, ins):
            for fetch in fetches:
                _check_same(f, fetch(f), "a comparison of floats")
        plain(f)

    return step


def _conversion(ctx: Context, ins: Instruction, plain: Step) -> Step:
    """Between floats the element stays; of a float that is a plain constant as it is."""
    kinds, words = types_of(ins), set(ins.modifiers)
    target, source = kinds[-2], kinds[-1]
    pair = target in ("f16x2", "bf16x2") and source == "f32"
    simple = all(kind in ("f16", "bf16", "f32", "f64", "tf32") for kind in (target, source)) or pair
    if not simple or words & {"relu", "rni", "rzi", "rmi", "rpi", "rs"}:
        return _checked(ctx, ins, plain, split_operands(ins)[1])
    result = "f32" if target == "tf32" else target
    store = ctx.write(ins.operands[0], "b32" if pair or target == "tf32" else result)
    fetches = [ctx.read(each, source) for each in ins.operands[1:]]
    kind = target.removesuffix("x2")
    computed = ctx.read(ins.operands[0], "b32" if pair or target == "tf32" else result)
    note = Note("narrower" if _is_narrower(kind, source) else "exact", kind, ctx.module.span(ins))

    def step(f: Frame) -> None:
        with told(ctx, ins):
            fn = _same(f, words, note.how == "narrower")
            values, floats = [fetch(f) for fetch in fetches], _Once(f, plain, computed)
            made = [
                applied(
                    f, fn, [value], [source], result.removesuffix("x2"), note,
                    partial(floats.half, 1 - n, 2) if pair else floats,
                )
                for n, value in enumerate(values)
            ]  # fmt: skip
        if not pair:
            store(f, made[0])
            return
        high, low = np.broadcast_arrays(*(each.view(np.uint16) for each in made))
        store(f, low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16))

    return step


_WITHIN = {  # types whose floats are such of another, too
    "f64": ("f32", "tf32", "f16", "bf16"), "f32": ("tf32", "f16", "bf16"), "tf32": ("f16", "bf16"),
}  # fmt: skip


def _is_narrower(target: str, source: str) -> bool:
    return source != target and source not in _WITHIN.get(target, ())


def _same(f: Frame, words: set[str], rounds: bool) -> Function:
    """The element itself, but for a clamp; of a step rounding would make another. One that is
    rounded is new, so that this is noted of it."""
    e = field_of(f).elements

    def same(x: Array) -> Array:
        if (e["step"][x] > 0).any():
            raise NotKnown("a conversion of an exponent's bits")
        return e.copied(x) if rounds else x

    return e.clamped if "sat" in words else same


# -- products of matrices ------------------------------------------------------------------------

FOLLOWED = frozenset({"f16", "bf16", "tf32", "f32"})


def _floating(ins: Instruction) -> bool:
    return any(is_float(each) for each in types_of(ins))


def _atomic(ctx: Context, ins: Instruction) -> Step:
    """A sum in memory; its place must not depend on floats."""
    step = sum_of(ctx, ins)
    if step is None:
        return _unknown(ctx, ins, f"{ins.name} of floats")
    where = tuple(each for each in ins.operands if isinstance(each, Address))
    checked = _checked(ctx, ins, step, where)

    def told_of(f: Frame) -> None:
        with told(ctx, ins):
            checked(f)

    return told_of


def _product(ctx: Context, ins: Instruction, plain: Step) -> Step:
    """`FieldArithmetic` makes them; here is looked at what says where the matrices lie."""
    words = set(ins.modifiers)
    if words & {"load", "store"}:
        return _checked(ctx, ins, plain, tuple(o for o in ins.operands if isinstance(o, Address)))
    kinds = types_of(ins)
    if not kinds:  # fences and waits
        return plain
    if all(not is_float(kind) for kind in kinds):
        return _checked(ctx, ins, plain, split_operands(ins)[1])
    if not set(kinds) <= FOLLOWED or "m8n8k4" in words:
        return _unknown(ctx, ins, f"{ins.name}")
    where = tuple(o for o in ins.operands if isinstance(o, Register) and o.type in ("b64", "pred"))
    checked, place = _checked(ctx, ins, plain, where), ctx.module.span(ins)

    def step(f: Frame) -> None:
        field_of(f).place = place
        with told(ctx, ins):
            checked(f)

    return step


# -- what moves floats, and what has nothing to do with them --------------------------------------


def _steering(ins: Instruction) -> tuple[Operand, ...]:
    """Operands that say where something goes, not what."""
    _, read = split_operands(ins)
    match ins.opcode:
        case "selp":
            return read[2:]
        case "mov":
            return ()
        case "shfl":
            return read[1:]
        case "st" | "stmatrix":
            return ins.operands[:1]
        case "movmatrix":
            return ()
        case _:
            return read


def _checked(ctx: Context, ins: Instruction, plain: Step, operands: tuple[Operand, ...]) -> Step:
    fetches = _reads(ctx, operands)
    if not fetches:
        return plain

    def step(f: Frame) -> None:
        with told(ctx, ins):
            for fetch in fetches:
                _check_same(f, fetch(f), f"{ins.name} of a float's bits")
        plain(f)

    return step


def _reads(ctx: Context, operands: tuple[Operand, ...]) -> list[Fetch]:
    """How the registers among operands are read, as bits."""
    found = []
    for register in registers(operands):
        declared = (register if isinstance(register, Register) else register.register).type
        for key in keys_of(register):
            slot = ctx.slot_of(key, declared)
            kind = "pred" if ctx.sizes[slot] == 0 else f"b{8 * ctx.sizes[slot]}"
            found.append(ctx.read_slot(slot, kind, declared))
    return found


def _apart(f: Frame, value: Array) -> Array | None:
    """Where the copies of a value differ, of threads that run; None where nowhere."""
    copies = by_copies(value)
    apart = (copies != copies[0]).any(axis=0)
    active = active_of(f)
    if active is not None and apart.size > 1:
        apart &= active
    return apart if apart.any() else None


def _check_same(f: Frame, value: Array, what: str) -> None:
    bits = value if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")
    if _apart(f, bits) is not None:
        raise NotKnown(what)


def _whole_halves(ctx: Context, ins: Instruction, plain: Step) -> Step:
    """Bits of words that move in whole halves, each from one place or from none."""
    reads = _reads(ctx, split_operands(ins)[1])
    words = len(ins.operands) - AMOUNTS.get(ins.opcode, 0)
    fetches = [
        ctx.read(each, f"b{8 * _size(ins)}" if at < words else "b32")
        for at, each in enumerate(ins.operands[1:], 1)
        if not _is_predicate(each)
    ]

    raised = _raised(ctx, ins, plain)

    def step(f: Frame) -> None:
        values = [read(f) for read in reads]
        if any(_apart(f, v) is not None for v in values):
            if raised is not None:
                with told(ctx, ins):
                    raised(f)
                return
            with told(ctx, ins):
                if not _in_halves(f, ins, [fetch(f) for fetch in fetches]):
                    raise NotKnown(f"{ins.name} of a float's bits")
        plain(f)

    return step


def _raised(ctx: Context, ins: Instruction, plain: Step) -> Step | None:
    """`shl.b32 r, x, 23` of a float whose lowest bits are an exponent."""
    amount = ins.operands[-1]
    if ins.name != "shl.b32" or not isinstance(amount, Immediate) or amount.value != EXPONENT:
        return None
    store, fetch = ctx.write(ins.operands[0], "f32"), ctx.read(ins.operands[1], "f32")
    note, computed = Note("exact", "f32"), ctx.read(ins.operands[0], "f32")

    def step(f: Frame) -> None:
        e = field_of(f).elements
        words = by_copies(fetch(f).view(np.uint32))
        active = active_of(f)
        low = words & np.uint32(0xFFFF) if active is None or words.shape[1] == 1 else (
            words[:, active] & np.uint32(0xFFFF)
        )  # fmt: skip
        if (low == 0).any():  # it was rounded to its upper half
            raise NotKnown(f"{ins.name} of a float's bits")

        def exponents(x: Array) -> Array:
            if (e["step"][x] == 0).any():
                raise NotKnown(f"{ins.name} of a float's bits")
            return e.exponent_of(x)

        floats = _Once(f, plain, computed)
        store(f, applied(f, exponents, [fetch(f)], ["f32"], "f32", note, floats))

    return step


def _is_predicate(operand: Operand) -> bool:
    return getattr(operand, "type", "") == "pred"


def _size(ins: Instruction) -> int:
    kind = type_of(ins)
    return DTYPES[kind].itemsize if kind in DTYPES else 4


def _halves(f: Frame, value: Array) -> Array:
    """By copy, thread and half of a word, its bits; of threads that run."""
    copies = np.ascontiguousarray(by_copies(value.view(f"u{value.dtype.itemsize}")))
    active = active_of(f)
    if active is not None and copies.shape[1] > 1:
        copies = np.ascontiguousarray(copies[:, active])
    return copies.view(np.uint16).reshape(*copies.shape, -1)


def _in_halves(f: Frame, ins: Instruction, values: list[Array]) -> bool:
    halves = [_halves(f, each) for each in values]
    apart = [(each != each[0]).any(axis=0) for each in halves]
    match ins.opcode:
        case "or" | "xor" | "add":  # of each half only one side is there
            x, y = (
                np.broadcast_to(each, np.broadcast_shapes(*(h.shape for h in halves)))
                for each in halves
            )
            none = [(each == 0).all(axis=0) for each in (x, y)]
            mixed = (x != x[0]).any(axis=0) | (y != y[0]).any(axis=0)
            carries = ins.opcode == "add" and "cc" in ins.modifiers
            return not carries and not (mixed & ~none[0] & ~none[1]).any()
        case "and":
            for mask, word in ((0, 1), (1, 0)):
                if not apart[mask].any():
                    known = np.isin(halves[mask], (0, 0xFFFF)).all(axis=0)
                    return bool((known | ~apart[word]).all())
            return False
        case "shl" | "shr" | "bfe":
            return _by_halves(apart[1:], values[1:]) and ins.modifiers[-1][0] != "s"
        case "bfi":
            return _by_halves(apart[2:], values[2:])
        case "prmt":
            return len(ins.modifiers) == 1 and _whole_selectors(f, values[2])
        case "cvt":
            return all(DTYPES[kind].itemsize >= 2 and kind[0] in "ub" for kind in types_of(ins))
        case _:
            return False


def _by_halves(apart: list[Array], amounts: list[Array]) -> bool:
    """Whether amounts of bits, which are the same in all copies, are those of whole halves."""
    return not any(
        each.any() or (amount % np.array(DIGIT, amount.dtype)).any()
        for each, amount in zip(apart, amounts, strict=True)
    )


def _whole_selectors(f: Frame, selector: Array) -> bool:
    """Whether pairs of selectors name the two bytes of a half."""
    if _apart(f, selector) is not None:
        return False
    words = selector.view(np.uint32)
    for at in (0, 8):
        low, high = words >> np.uint32(at) & 15, words >> np.uint32(at + 4) & 15
        if ((low & 1) | (low & 8) | (high != low + 1)).any():
            return False
    return True
