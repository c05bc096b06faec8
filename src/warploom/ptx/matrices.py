"""The forms of instructions on matrices: rows for the table of opcodes.

An operand such as `d4f` is a vector of four registers, of singles; `r` stands for 32 bits, `d`
for doubles.
"""

from __future__ import annotations


def products() -> str:
    """mma: for each shape the types, and how many registers hold a, b, c and d."""
    rows = []
    for shape, kinds, a, b in (
        ("m16n8k8", "f16", 2, 1), ("m16n8k16", "f16", 4, 2), ("m16n8k16", "e4m3|e5m2", 2, 1),
        ("m16n8k32", "e4m3|e5m2", 4, 2),
    ):  # fmt: skip
        each = _mixed(kinds)
        rows.append(f"sync ~aligned {shape} row col f32 {each} f32 = d4f a{a}r b{b}r c4f")
        rows.append(f"sync ~aligned {shape} row col f16 {each} f16 = d2r a{a}r b{b}r c2r")
    for shape, kind, a, b in (
        ("m16n8k8", "bf16", 2, 1), ("m16n8k16", "bf16", 4, 2), ("m16n8k4", "tf32", 2, 1),
        ("m16n8k8", "tf32", 4, 2),
    ):  # fmt: skip
        rows.append(f"sync ~aligned {shape} row col f32 {kind}.{kind} f32 = d4f a{a}r b{b}r c4f")
    for shape, kinds, d, a, b in (
        ("m8n8k16", "s8|u8", 2, 1, 1), ("m16n8k16", "s8|u8", 4, 2, 1),
        ("m16n8k32", "s8|u8", 4, 4, 2), ("m8n8k32", "s4|u4", 2, 1, 1),
        ("m16n8k32", "s4|u4", 4, 2, 1), ("m16n8k64", "s4|u4", 4, 4, 2),
    ):  # fmt: skip
        each = f"satfinite? s32 {_mixed(kinds)} s32"
        rows.append(f"sync ~aligned {shape} row col {each} = d{d}r a{a}r b{b}r c{d}r")
    for shape, d, a, b in (
        ("m8n8k4", 2, 1, 1), ("m16n8k4", 4, 2, 1), ("m16n8k8", 4, 4, 2), ("m16n8k16", 4, 8, 4),
    ):  # fmt: skip
        rows.append(f"sync ~aligned {shape} row col rn? f64 f64 f64 f64 = d{d}d a{a}d b{b}d c{d}d")
    rows.append("sync ~aligned m8n8k4 row|col row|col f32 f16 f16 f32 = d8f a2r b2r c8f")
    rows.append("sync ~aligned m8n8k4 row|col row|col f16 f16 f16 f16 = d4r a2r b2r c4r")
    return "\n".join(rows)


def _mixed(kinds: str) -> str:
    each = kinds.split("|")
    return "|".join(f"{one}.{other}" for one in each for other in each)


MOVED = "\n".join(
    f"sync ~aligned m8n8 x{count} trans? shared|shared::cta? b16 = d{count}r [a]"
    for count in (1, 2, 4)
)
STORED = "\n".join(
    f"sync ~aligned m8n8 x{count} trans? shared|shared::cta? b16 = [a] b{count}r"
    for count in (1, 2, 4)
)
