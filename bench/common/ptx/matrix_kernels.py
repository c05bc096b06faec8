"""Kernels of matrix instructions, with hard inputs: for the tests, and for `bench/ptx/mma_device.py` on
a GPU.

Each warp multiplies its own matrices: register r of thread i is word i * registers + r of its
array.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
         "f64": 64, "s32": 32}  # fmt: skip
FIELDS = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "tf32": (8, 23),
    "f32": (8, 23),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
    "f64": (11, 52),
}
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


@dataclass(frozen=True)
class Product:
    """One form of mma: shape, types and counts of registers of d, a and b."""

    shape: str
    layout: str
    kinds: tuple[str, str, str]  # of d and c, a, b
    counts: tuple[int, int, int]
    extra: str = ""

    @property
    def instruction(self) -> str:
        d, a, b = self.kinds
        return f"mma.sync.aligned.{self.shape}.{self.layout}{self.extra}.{d}.{a}.{b}.{d}"

    @property
    def name(self) -> str:
        return self.instruction.replace(".", "_")

    @property
    def sizes(self) -> tuple[int, int, int]:
        found = re.match(r"m(\d+)n(\d+)k(\d+)", self.shape)
        assert found
        return int(found[1]), int(found[2]), int(found[3])

    @property
    def word(self) -> int:
        return 64 if self.kinds[0] == "f64" else 32

    def text(self) -> str:
        d, a, b = self.counts
        step = self.word // 8
        declare = f".reg .b{self.word} %a<9>, %b<9>, %c<9>, %d<9>;"
        lines = [f".visible .entry {self.name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)",
                 f"{{ {declare} .reg .b32 %r<5>; .reg .b64 %p<5>;",
                 "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;"]  # fmt: skip
        for letter, count in (("a", a), ("b", b), ("c", d)):
            lines.append(
                f"ld.param.u64 %p1, [p{letter}]; mad.wide.u32 %p2, %r4, {count * step}, %p1;"
            )
            lines += [
                f"ld.global.b{self.word} %{letter}{i}, [%p2+{i * step}];" for i in range(count)
            ]
        lists = [
            "{" + ", ".join(f"%{x}{i}" for i in range(n)) + "}"
            for x, n in zip("dabc", (d, a, b, d), strict=True)
        ]
        lines.append(f"{self.instruction} {', '.join(lists)};")
        lines.append(f"ld.param.u64 %p1, [pd]; mad.wide.u32 %p2, %r4, {d * step}, %p1;")
        lines += [f"st.global.b{self.word} [%p2+{i * step}], %d{i};" for i in range(d)]
        return "\n".join([*lines, "ret; }", ""])

    def inputs(self, warps: int, seed: int) -> list[np.ndarray]:
        """a, b, c and room for d, as words; every regime gets some of the warps."""
        rng = np.random.default_rng(seed)
        m, n, k = self.sizes
        # Of halves, m8n8k4 is four products of eight by eight.
        times = 4 if self.kinds[1] == "f16" and self.shape == "m8n8k4" else 1
        counts = (times * m * k, times * n * k, times * m * n)
        out = []
        for kind, count in zip((*self.kinds[1:3], self.kinds[0]), counts, strict=True):
            codes = hard_codes(kind, (warps, count), rng, far=kind == self.kinds[0])
            out.append(packed(codes, kind))
        if self.kinds[1] in FIELDS:
            cancel(out, self, warps)
        word = np.uint64 if self.word == 64 else np.uint32
        return [*out, np.zeros(warps * 32 * self.counts[0], word)]


def hard_codes(
    kind: str, shape: tuple[int, int], rng: np.random.Generator, far: bool
) -> np.ndarray:
    """Codes of numbers, a regime for each row: bits at random, narrow, subnormal, special, near ties, zeros, far off."""
    width = WIDTH[kind]
    codes = rng.integers(0, 1 << 63, shape, dtype=np.uint64) * 2 + rng.integers(
        0, 2, shape, dtype=np.uint64
    )
    codes &= np.uint64((1 << width) - 1)
    if kind not in FIELDS:
        edge = rng.integers(0, 3, shape)
        return np.where(
            edge == 0,
            codes & np.uint64(1 << width - 1)
            | np.where(codes & np.uint64(1), (1 << width - 1) - 1, 0).astype(np.uint64),
            codes,
        )
    bits, fraction = FIELDS[kind]
    bias = (1 << bits - 1) - 1
    regime = np.arange(shape[0])[:, None] % 8

    def with_exponent(low: int, high: int) -> np.ndarray:
        field = rng.integers(max(low, 0), min(high, (1 << bits) - 1), shape).astype(np.uint64)
        return codes & ~np.uint64(((1 << bits) - 1) << fraction) | field << np.uint64(fraction)

    narrow, medium = with_exponent(bias - 2, bias + 2), with_exponent(bias - 10, bias + 10)
    sign = np.uint64(1 << width - 1)
    small = codes & (sign | np.uint64((2 << fraction) - 1))
    special = np.uint64(((1 << bits) - 1) << fraction)
    wild = np.where(rng.random(shape) < 0.04, codes | special, medium)
    wild = np.where(rng.random(shape) < 0.02, codes & sign | special, wild)
    even = narrow & ~np.uint64((1 << max(fraction - 2, 1)) - 1) if fraction < 30 else narrow
    zeros = np.where(rng.random(shape) < 0.6, codes & sign, medium)
    distant = with_exponent(bias + 5, bias + 40) if far else narrow
    out = codes
    for number, values in enumerate((narrow, medium, small, wild, even, zeros, distant)):
        out = np.where(regime == number + 1, values, out)
    return out


def packed(codes: np.ndarray, kind: str) -> np.ndarray:
    """Codes as words, the first in the lowest bits."""
    width = WIDTH[kind]
    if width == 64:
        return codes.reshape(-1)
    rows = codes.reshape(-1, 32 // width).astype(np.uint64)
    shifts = np.arange(32 // width, dtype=np.uint64) * np.uint64(width)
    return (rows << shifts).sum(axis=1).astype(np.uint32)


def cancel(arrays: list[np.ndarray], form: Product, warps: int) -> None:
    """In some warps b's first half of registers is its second with the sign bits turned: sums that cancel."""
    b = arrays[1].reshape(warps, 32, -1)
    if b.shape[2] >= 2:
        width = WIDTH[form.kinds[2]]
        turned = sum(1 << width * (i + 1) - 1 for i in range(form.word // width))
        half = b.shape[2] // 2
        b[::8, :, half:] = b[::8, :, :half] ^ b.dtype.type(turned)


def products() -> list[Product]:
    out = []
    for shape, a, b in (("m16n8k8", 2, 1), ("m16n8k16", 4, 2)):
        out += [Product(shape, "row.col", ("f32", "f16", "f16"), (4, a, b)), Product(shape, "row.col", ("f16", "f16", "f16"), (2, a, b)),
                Product(shape, "row.col", ("f32", "bf16", "bf16"), (4, a, b))]  # fmt: skip
    out += [
        Product(shape, "row.col", ("f32", "tf32", "tf32"), (4, a, b))
        for shape, a, b in (("m16n8k4", 2, 1), ("m16n8k8", 4, 2))
    ]
    for shape, a, b in (("m16n8k16", 2, 1), ("m16n8k32", 4, 2)):
        for x in ("e4m3", "e5m2"):
            for y in ("e4m3", "e5m2"):
                out += [
                    Product(shape, "row.col", ("f32", x, y), (4, a, b)),
                    Product(shape, "row.col", ("f16", x, y), (2, a, b)),
                ]
    for bits, shapes in ((8, (("m8n8k16", 2, 1, 1), ("m16n8k16", 4, 2, 1), ("m16n8k32", 4, 4, 2))),
                         (4, (("m8n8k32", 2, 1, 1), ("m16n8k32", 4, 2, 1), ("m16n8k64", 4, 4, 2)))):  # fmt: skip
        for shape, d, a, b in shapes:
            out += [Product(shape, "row.col", ("s32", f"{x}{bits}", f"{y}{bits}"), (d, a, b), extra)
                    for x, y, extra in (("s", "s", ""), ("u", "s", ""), ("s", "u", ".satfinite"), ("u", "u", ".satfinite"))]  # fmt: skip
    out += [Product(shape, "row.col", ("f64", "f64", "f64"), (d, a, b))
            for shape, d, a, b in (("m8n8k4", 2, 1, 1), ("m16n8k4", 4, 2, 1), ("m16n8k8", 4, 4, 2), ("m16n8k16", 4, 8, 4))]  # fmt: skip
    for layout in ("row.col", "col.col", "row.row", "col.row"):
        out += [
            Product("m8n8k4", layout, ("f32", "f16", "f16"), (8, 2, 2)),
            Product("m8n8k4", layout, ("f16", "f16", "f16"), (4, 2, 2)),
        ]
    return out


PRODUCTS = products()


def module_text(forms: list[Product]) -> str:
    return HEAD + "\n".join(form.text() for form in forms)


MOVES = """
.visible .entry {name}(.param .u64 pa, .param .u64 pb)
{{ .reg .b32 %r<9>, %t, %s, %x; .reg .b64 %p<5>; .shared .align 16 .b8 tile[1024];
mov.u32 %t, %tid.x; ld.param.u64 %p1, [pa]; ld.param.u64 %p3, [pb];
mov.u32 %x, %ctaid.x; mad.wide.u32 %p1, %x, 1024, %p1; mad.wide.u32 %p3, %x, 1024, %p3;
mad.wide.u32 %p2, %t, 32, %p1; mad.wide.u32 %p4, %t, 32, %p3; mov.u32 %s, tile; shl.b32 %x, %t, 5; add.u32 %x, %x, %s;
{body}
bar.sync 0;
{end}
ret; }}
"""
# The address of a lane's row: 7 of every 8 rows change places, so that no order is taken for granted.
ROW = "mul.lo.u32 %r8, %t, 5; and.b32 %r8, %r8, 31; shl.b32 %r8, %r8, 5; add.u32 %r8, %r8, %s; "


def moves() -> dict[str, str]:
    """ldmatrix, stmatrix and movmatrix: 1024 bytes of a block in, 1024 out."""
    fill = "".join(
        f"ld.global.b32 %r0, [%p2+{4 * i}]; st.shared.b32 [%x+{4 * i}], %r0; " for i in range(8)
    )
    clear = "".join(f"st.shared.b32 [%x+{4 * i}], 0; " for i in range(8))
    drain = "".join(
        f"ld.shared.b32 %r0, [%x+{4 * i}]; st.global.b32 [%p4+{4 * i}], %r0; " for i in range(8)
    )
    out = {}
    for count in (1, 2, 4):
        some = "{" + ", ".join(f"%r{i + 1}" for i in range(count)) + "}"
        for trans in ("", ".trans"):
            name = f"ldmatrix_x{count}{trans.replace('.', '_')}"
            end = ROW + f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {some}, [%r8];"
            end += "".join(f" st.global.b32 [%p4+{4 * i}], %r{i + 1};" for i in range(count))
            out[name] = MOVES.format(name=name, body=fill, end=end)
            name = f"stmatrix_x{count}{trans.replace('.', '_')}"
            body = (
                clear
                + "".join(f"ld.global.b32 %r{i + 1}, [%p2+{4 * i}]; " for i in range(count))
                + "bar.sync 0; "
            )
            body += ROW + f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r8], {some};"
            out[name] = MOVES.format(name=name, body=body, end=drain)
    body = "ld.global.b32 %r1, [%p2]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; st.global.b32 [%p4], %r2;"
    out["movmatrix"] = MOVES.format(name="movmatrix", body=body, end="")
    return out
