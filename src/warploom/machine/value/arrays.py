"""Machine values on NumPy: an expression → a function of arrays, one element for each thread.

Operands come as arrays of their type, with one element for each thread or one for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine import rounding
from warploom.machine.narrow import FORMATS, encode
from warploom.machine.value.ir import Value, nodes, width_of

Array = npt.NDArray[Any]
Function = Callable[..., Array]
BOOL = np.dtype(np.bool_)


def dtype_of(type_: str) -> np.dtype[Any]:
    """The NumPy type of a type."""
    if type_ == "pred":
        return BOOL
    kind = {"u": "u", "s": "i", "f": "f"}[type_[0]]
    return np.dtype(f"{kind}{width_of(type_) // 8}")


def function(values: list[Value]) -> Callable[[list[Array]], list[Array]]:
    """What computes these values from the list of operands; a part they share is computed once."""
    order = list(nodes(values))
    place = {node: number for number, node in enumerate(order)}
    fixed = [_fixed(node) for node in order]
    steps = [
        (place[node], _operation(node), tuple(place[a] for a in node.args))
        for node in order
        if node.op not in ("arg", "const")
    ]
    given = [(place[node], int(node.number)) for node in order if node.op == "arg"]
    wanted = [place[value] for value in values]

    def run(operands: list[Array]) -> list[Array]:
        cells: list[Any] = fixed.copy()
        for at, number in given:
            cells[at] = operands[number]
        for at, operation, sources in steps:
            cells[at] = operation(*[cells[source] for source in sources])
        return [cells[at] for at in wanted]

    return run


def single(value: Value, count: int) -> Function:
    """What computes one value from `count` operands; one operation on them all is it, itself."""
    plain = [a.number for a in value.args if a.op == "arg"]
    if plain == list(range(count)) and len(value.args) == count and count:
        return _operation(value)
    run = function([value])
    return lambda *operands: run(list(operands))[0]


def _fixed(node: Value) -> Array | None:
    if node.op != "const":
        return None
    bits = BOOL if node.type == "pred" else dtype_of(node.type)
    if node.type[0] == "f":
        bits = dtype_of(f"u{width_of(node.type)}")
    made = np.array([node.number], bits).view(dtype_of(node.type))
    made.setflags(write=False)
    return made


# -- the operations ---------------------------------------------------------------------------


def high_product(a: Array, b: Array) -> Array:
    """The upper half of a product in the operands' type."""
    size = a.dtype.itemsize
    if size < 8:
        wide = np.dtype(np.int64 if a.dtype.kind == "i" else np.uint64)
        product = a.astype(wide) * b.astype(wide)
        upper: Array = product >> wide.type(8 * size)
        return upper.astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    al, ah, bl, bh = ua & low, ua >> half, ub & low, ub >> half
    middle = ah * bl + ((al * bl) >> half)
    second = al * bh + (middle & low)
    high = ah * bh + (middle >> half) + (second >> half)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, ub, zero) - np.where(b < 0, ua, zero)
    return np.asarray(high.view(a.dtype))


def _quotient(a: Array, b: Array) -> Array:
    """Rounded towards zero, where NumPy rounds down."""
    if a.dtype.kind == "u":
        return a // b
    bits = np.dtype(f"u{a.dtype.itemsize}")
    sizes = [np.where(x < 0, -x.view(bits), x.view(bits)) for x in (a, b)]
    size = sizes[0] // sizes[1]
    return np.where((a < 0) != (b < 0), -size, size).view(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    rest: Array = a - _quotient(a, b) * b
    return rest


def count_bits(a: Array) -> Array:
    """How many bits of each number are set."""
    x = _unsigned(a).astype(np.uint64)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint32)


def _unsigned(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}")


def _leading_zeros(a: Array) -> Array:
    x = _unsigned(a).astype(np.uint64)
    found = np.zeros(x.shape, np.uint32)
    for step in (32, 16, 8, 4, 2, 1):
        big = x >= np.uint64(1 << step)
        found += np.where(big, np.uint32(step), np.uint32(0))
        x = np.where(big, x >> np.uint64(step), x)
    width = np.uint32(8 * a.dtype.itemsize)
    return np.where(a != 0, width - np.uint32(1) - found, width)


def _reversed(a: Array) -> Array:
    raw = np.ascontiguousarray(a).view(np.uint8).reshape(-1, a.dtype.itemsize)
    flipped = np.packbits(np.unpackbits(raw, axis=1, bitorder="little"), axis=1)
    # The first bit is now the top bit of the first byte: a big-endian number.
    return flipped.view(a.dtype.newbyteorder(">")).reshape(-1).astype(a.dtype)


def _nth(mask: Array, base: Array, offset: Array) -> Array:
    mask, base, offset = np.broadcast_arrays(mask, base, offset)
    bits = (mask[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    place = np.arange(32)
    inside = base[:, None] < 32  # a search from elsewhere finds nothing
    up = (place >= base[:, None]) & (bits == 1)
    down = inside & (place <= base[:, None]) & (bits == 1)
    rank_up = np.cumsum(up, axis=1)
    rank_down = np.cumsum(down[:, ::-1], axis=1)[:, ::-1]
    want = np.where(offset == 0, 1, np.abs(offset.astype(np.int64)))[:, None]
    hit = np.where((offset < 0)[:, None], down & (rank_down == want), up & (rank_up == want))
    hit &= (offset != 0)[:, None] | (place == base[:, None])
    return np.where(hit.any(axis=1), hit.argmax(axis=1), 0xFFFFFFFF).astype(np.uint32)


_OPERATIONS: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "mulhi": high_product,
    "div": _quotient, "rem": _remainder, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "neg": np.negative, "min": np.minimum,
    "max": np.maximum, "eq": np.equal, "lt": np.less, "le": np.less_equal, "select": np.where,
    "popc": count_bits, "clz": _leading_zeros, "brev": _reversed, "nth": _nth,
    "rint": np.rint, "trunc": np.trunc, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip


def _operation(node: Value) -> Function:
    dtype = dtype_of(node.type)
    match node.op:
        case "shl" | "shr":
            return _shift(node, np.left_shift if node.op == "shl" else np.right_shift, dtype)
        case "to":
            return lambda a: a.astype(dtype)
        case "bits":
            return lambda a: a.view(dtype)
        case "half":
            return lambda bits: bits.view(np.float16).astype(dtype)
        case "narrow":
            return lambda x: rounding.narrow(x, dtype, str(node.number))
        case "encode":
            return _encoder(node)
        case _:
            return _OPERATIONS[node.op]


def _shift(node: Value, fn: Function, dtype: np.dtype[Any]) -> Function:
    amount = node.args[1].constant
    if amount is None:
        return lambda a, n: fn(a, n.astype(dtype))
    fixed = dtype.type(amount)
    return lambda a, _: fn(a, fixed)


def _encoder(node: Value) -> Function:
    """A number as the bits of a format; halves and bf16 have functions that are faster."""
    name, mode, *finite = str(node.number).split()
    if name == "f16" and mode != "rs" and not finite:
        return lambda x: _half(x, mode)
    if name == "bf16" and mode != "rs" and not finite:
        return lambda x: _brain(x, mode).astype(np.uint32)
    form = FORMATS[name]
    return lambda x, *random: encode(
        x.astype(np.float64),
        form,
        mode,
        bool(finite),
        *([random[0].astype(np.float64)] if random else [None]),
    )


def _half(x: Array, mode: str) -> Array:
    made = rounding.narrow(x.astype(np.float64), np.dtype(np.float16), mode)
    return rounding.clean_half(np.array(made)).view(np.uint16).astype(np.uint32)


def _brain(x: Array, mode: str) -> Array:
    if x.dtype == np.float32:
        return rounding.single_to_bf16(x, mode)
    return rounding.double_to_bf16(x, mode)
