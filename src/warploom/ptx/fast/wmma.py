"""wmma in C: elements of a fragment lie in the order of the matrix, as in the evaluator."""

from __future__ import annotations

from warploom.machine.semantics import Kind
from warploom.ptx.emulate.product import vector
from warploom.ptx.emulate.wmma import BITS, TF32_STEP, in_order, shape_of, sides_of
from warploom.ptx.fast.matrix import multiplied
from warploom.ptx.fast.memory import SPACES
from warploom.ptx.fast.operand import LANES, NotTaken, Spell, Writer
from warploom.ptx.ir import Instruction
from warploom.ptx.known import space_of


def _places(w: Writer, ins: Instruction, at: int) -> list[str]:
    """The address of each of a lane's elements, as arrays."""
    if w.guard or space_of(ins) not in ("global", "generic"):
        raise NotTaken(ins.name)
    rows, columns = sides_of(ins)
    by_row, size = "row" in ins.modifiers, BITS[ins.modifiers[-1]] // 8
    share = rows * columns // LANES
    base = w.filled(64, w.address(ins.operands[at]))
    far = w.filled(64, w.read(ins.operands[2], "u32") if len(ins.operands) > 2 else
                   f"{columns if by_row else rows}ull")  # fmt: skip
    w.must(f"one_address({base}, @)")
    places = []
    for number in range(share):
        element = f"((uint64_t)l * {share} + {number})"
        row, column = f"{element} / {columns}", f"{element} % {columns}"
        line, inside = (row, column) if by_row else (column, row)
        places.append(w.filled(64, f"{base}[l] + ({line} * {far}[l] + {inside}) * {size}"))
    return places


def _load(w: Writer, ins: Instruction) -> None:
    bits = BITS[ins.modifiers[-1]]
    values = []
    for place in _places(w, ins, 1):
        values.append(w.array(bits))
        w.must(f"load_{bits}(L, S, {place}, @, {SPACES[space_of(ins)]}, {values[-1]})")
        w.note(ins, space_of(ins), place, bits // 8, Kind.READ)
    word, each = (64, 1) if bits == 64 else (32, 32 // bits)
    words = [values[n : n + each] for n in range(0, len(values), each)]
    for number, target in enumerate(vector(ins.operands[0])):
        parts = words[number % len(words)]
        text = " | ".join(f"(uint{word}_t){x}[l] << {bits * n}" for n, x in enumerate(parts))
        w.write(target, f"u{word}", text)


def _store(w: Writer, ins: Instruction) -> None:
    bits = BITS[ins.modifiers[-1]]
    word, each = (64, 1) if bits == 64 else (32, 32 // bits)
    held = [w.filled(word, w.read(x, f"u{word}")) for x in vector(ins.operands[1])]
    for number, place in enumerate(_places(w, ins, 0)):
        value = w.filled(bits, f"{held[number // each]}[l] >> {bits * (number % each)}")
        w.must(f"store_{bits}(L, S, {place}, @, {SPACES[space_of(ins)]}, {value})")
        w.note(ins, space_of(ins), place, bits // 8, Kind.WRITE)


def _mma(w: Writer, ins: Instruction) -> None:
    m, n, k = shape_of(ins)
    kinds = [word for word in ins.modifiers if word in BITS]
    result, kind = kinds[0], kinds[1] if len(kinds) == 4 else "f16"
    if kinds[-1] != result:
        raise NotTaken(ins.name)
    right = in_order(k, n)
    places = (in_order(m, k), (right[0].T, right[1].T), in_order(m, n))
    step = TF32_STEP if kind == "tf32" else k
    multiplied(w, ins, (m, n, k), places, (kind, kind), result, step)


def wmma(w: Writer, ins: Instruction) -> None:
    {"load": _load, "store": _store, "mma": _mma}[ins.modifiers[0]](w, ins)


TABLE: dict[str, Spell] = {"wmma": wmma}
