"""Matrices of a warp in C: ldmatrix, stmatrix, movmatrix and the products of mma."""

from __future__ import annotations

import re

from warploom.machine.fused import rule_for
from warploom.machine.semantics import Kind
from warploom.ptx.emulate import fragment
from warploom.ptx.emulate.product import BITS, machine_of, vector
from warploom.ptx.fast.operand import LANES, NotTaken, Spell, Writer
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.known import space_of

FLOATS = {
    "f16": "OF_F16", "bf16": "OF_BF16", "tf32": "OF_TF32", "e4m3": "OF_E4M3", "e5m2": "OF_E5M2"
}  # fmt: skip
WHOLE = ("s8", "u8", "s4", "u4")


def _rows(w: Writer, ins: Instruction, address: Operand, count: int, writes: bool) -> str:
    if w.guard or space_of(ins) not in ("shared", "shared::cta"):
        raise NotTaken(ins.name)
    where = w.filled(64, w.address(address))
    w.must(f"row_parts(L, {where}, @, {count}, {int(writes)})")
    _note(w, ins, where, count, Kind.WRITE if writes else Kind.READ)
    return where


def _note(w: Writer, ins: Instruction, where: str, count: int, kind: Kind) -> None:
    """Counted are rows, whose addresses the first lanes give; races are of each lane's part."""
    if w.noted.notes.counts:
        site, giving = w.site(ins, 16, kind, rows=True), f"m & {(1 << 8 * count) - 1:#x}u"
        w.put(f"if (!noted_shared(L, S, {site}, {where}, 0, {giving})) return FAULT;")
    if not w.noted.notes.races:
        return
    for number in range(count):
        row, part = f"{8 * number} + (l >> 2)", "4 * (l & 3)"
        pieces = [(f"{where}[{row}] + {part}", 4)]
        if "trans" in ins.modifiers:
            pieces = [
                (f"{where}[{8 * number} + 2 * (l & 3) + {n}] + 2 * (l >> 2)", 2) for n in (0, 1)
            ]
        for text, width in pieces:
            w.note(ins, "shared", w.filled(64, text), width, kind, part=True)


def ldmatrix(w: Writer, ins: Instruction) -> None:
    targets = vector(ins.operands[0])
    where = _rows(w, ins, ins.operands[1], len(targets), False)
    turned = int("trans" in ins.modifiers)
    found = [w.array(LANES) for _ in targets]
    for number, out in enumerate(found):
        w.put(f"matrix_load(L, {where}, {number}, {turned}, {out});")
    for target, out in zip(targets, found, strict=True):
        w.write(target, "u32", f"{out}[l]")


def stmatrix(w: Writer, ins: Instruction) -> None:
    values = [w.filled(LANES, w.read(each, "u32")) for each in vector(ins.operands[1])]
    where = _rows(w, ins, ins.operands[0], len(values), True)
    turned = int("trans" in ins.modifiers)
    for number, value in enumerate(values):
        w.put(f"matrix_store(L, {where}, {number}, {turned}, {value});")


def movmatrix(w: Writer, ins: Instruction) -> None:
    if w.guard:
        raise NotTaken(ins.name)
    given, out = w.filled(LANES, w.read(ins.operands[1], "u32")), w.array(LANES)
    w.put("if (m != ALL) return FAULT;")
    w.put(f"matrix_turned({given}, {out});")
    w.write(ins.operands[0], "u32", f"{out}[l]")


def mma(w: Writer, ins: Instruction) -> None:
    words = ins.modifiers
    shape = re.match(r"m(\d+)n(\d+)k(\d+)", next(x for x in words if re.match(r"m\d+n", x)))
    assert shape is not None
    rows, depth = int(shape[1]), int(shape[3])
    kinds, result = (words[-3], words[-2]), words[-4]
    if (rows, depth) == (8, 4) and result != "f64":
        _quads(w, ins, result)
        return
    each = max(1, 32 // BITS[kinds[0]])
    places = (
        fragment.left(rows, depth, each), fragment.right(depth, each), fragment.result(rows, 8)
    )  # fmt: skip
    multiplied(w, ins, (rows, 8, depth), places, kinds, result, depth)


def multiplied(
    w: Writer, ins: Instruction, shape: tuple[int, int, int],
    places: tuple[fragment.Places, fragment.Places, fragment.Places], kinds: tuple[str, str],
    result: str, step: int,
) -> None:  # fmt: skip
    """d = a·b + c of matrices in registers; `step` is how many terms the rule is asked for."""
    word = 64 if result == "f64" else 32
    lists, made = _registers(w, ins, word)
    tables = ", ".join(places_table(w, each) for each in places)
    common = f"{lists}, @, {tables}, {', '.join(map(str, shape))}"
    machine, (a, b) = machine_of(w.module), kinds
    half = int(result == "f16")
    if result == "f64":
        w.must(f"mma_double({common})")
    elif a in WHOLE:
        signs = f"{int(a[0] == 's')}, {int(b[0] == 's')}, {int('satfinite' in ins.modifiers)}"
        w.must(f"mma_whole({common}, {BITS[a]}, {signs})")
    elif a not in FLOATS:
        raise NotTaken(ins.name)
    elif a in ("e4m3", "e5m2") and machine >= 90:
        w.must(f"mma_small({common}, {FLOATS[a]}, {FLOATS[b]}, {half})")
    else:
        rule = rule_for(machine, a, step)
        numbers = f"{FLOATS[a]}, {FLOATS[b]}, {rule.group}, {rule.below}, {rule.kept}, {half}"
        w.must(f"mma({common}, {numbers})")
    _results(w, ins, word, made)


def _registers(w: Writer, ins: Instruction, word: int) -> tuple[str, list[str]]:
    """Lists of the registers of a, b, c and d as arguments; the arrays that d is put into."""
    if w.guard:
        raise NotTaken(ins.name)
    operands = [vector(each) for each in ins.operands[:4]]
    read = [[w.filled(word, w.read(each, f"u{word}")) for each in part] for part in operands[1:]]
    made = [w.array(word) for _ in operands[0]]
    return ", ".join(f"(uint{word}_t *[]){{{', '.join(part)}}}" for part in (*read, made)), made


def _results(w: Writer, ins: Instruction, word: int, made: list[str]) -> None:
    for target, out in zip(vector(ins.operands[0]), made, strict=True):
        w.write(target, f"u{word}", f"{out}[l]")


def _quads(w: Writer, ins: Instruction, result: str) -> None:
    """m8n8k4 of halves: four products of eight lanes each, which newer machines do by fma."""
    by_row = [word == "row" for word in ins.modifiers if word in ("row", "col")]
    half = int(result == "f16")
    places = (
        fragment.quads("a", by_row[0]), fragment.quads("b", by_row[1]),
        fragment.quads("c16" if half else "c32", True),
    )  # fmt: skip
    lists, made = _registers(w, ins, 32)
    tables = [places_table(w, each) for each in places]
    if machine_of(w.module) >= 80:
        w.must(f"mma_quads({lists}, @, {', '.join(tables)}, {half})")
    else:
        rule = rule_for(machine_of(w.module), "f16", 4)
        numbers = f"OF_F16, OF_F16, {rule.group}, {rule.below}, {rule.kept}, {half}"
        for quad in range(4):
            parts = [f"{table} + {quad * n}" for table, n in zip(tables, (32, 32, 64), strict=True)]
            w.must(f"mma({lists}, @, {', '.join(parts)}, 8, 8, 4, {numbers})")
    _results(w, ins, 32, made)


def places_table(w: Writer, places: fragment.Places) -> str:
    """Lane and number of each element, row by row, as a table of the text."""
    flat = ", ".join(str(x) for x in (places[0] * 256 + places[1]).reshape(-1).tolist())
    return w.tables.setdefault(flat, f"places{len(w.tables)}")


TABLE: dict[str, Spell] = {
    "ldmatrix": ldmatrix, "stmatrix": stmatrix, "movmatrix": movmatrix, "mma": mma,
}  # fmt: skip
