# ruff: noqa: E501 - tables and programs read better with a line each
"""Random structured kernels: many threads together compute what each computes alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom import ptx

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = 5
register = st.integers(0, REGISTERS - 1).map(lambda n: f"%r{n}")
operand = st.one_of(register, st.integers(-9, 99).map(str))
arithmetic = st.tuples(
    st.just("op"), st.sampled_from(["add.u32", "sub.u32", "xor.b32", "mul.lo.u32", "min.s32", "shr.u32"]),
    register, register, operand,
)  # fmt: skip
predicated = st.tuples(st.just("when"), register, st.integers(0, 31), register, operand)
leave = st.tuples(st.just("leave"), register, st.integers(0, 15))
simple = st.one_of(arithmetic, arithmetic, predicated, leave)


def _blocks(inner: st.SearchStrategy) -> st.SearchStrategy:
    body = st.lists(inner, max_size=4)
    return st.one_of(
        simple,
        st.tuples(st.just("if"), register, st.integers(0, 7), body, body),
        st.tuples(st.just("loop"), register, st.integers(0, 5), body),
    )


program = st.lists(st.recursive(simple, _blocks, max_leaves=14), min_size=1, max_size=7)


class Writer:
    """PTX text of a program; `depth` counters make every loop end."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.labels = 0
        self.deepest = 0

    def write(self, statements: list[Any], depth: int = 0, out: str = "") -> None:
        self.deepest = max(self.deepest, depth)
        for statement in statements:
            match statement:
                case ("op", op, d, a, b):
                    b = str(int(b) & 31) if op == "shr.u32" and not b.startswith("%") else b
                    self.lines.append(f"{op} {d}, {a}, {b};")
                case ("when", a, bit, d, b):
                    self._test(a, bit)
                    self.lines.append(f"@%p1 mov.u32 {d}, {b};")
                case ("leave", a, value):
                    self.lines += [f"and.b32 %t, {a}, 63;", f"setp.eq.u32 %p1, %t, {value};"]
                    self.lines.append(f"@%p1 bra {out};" if out else "@%p1 bra END;")
                case ("if", a, bit, yes, no):
                    other, end = self._label(), self._label()
                    self._test(a, bit)
                    self.lines.append(f"@!%p1 bra {other};")
                    self.write(yes, depth, out)
                    self.lines += [f"bra {end};", f"{other}:"]
                    self.write(no, depth, out)
                    self.lines.append(f"{end}:")
                case ("loop", a, most, body):
                    head, end = self._label(), self._label()
                    self.lines += [f"and.b32 %n{depth}, {a}, {most};", f"{head}:",
                                   f"setp.eq.u32 %p1, %n{depth}, 0;", f"@%p1 bra {end};",
                                   f"sub.u32 %n{depth}, %n{depth}, 1;"]  # fmt: skip
                    self.write(body, depth + 1, end)
                    self.lines += [f"bra {head};", f"{end}:"]

    def _test(self, a: str, bit: int) -> None:
        self.lines += [f"bfe.u32 %t, {a}, {bit}, 1;", "setp.ne.u32 %p1, %t, 0;"]

    def _label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"


def kernel(statements: list[Any]) -> str:
    writer = Writer()
    writer.write(statements)
    load = "".join(f"mad.lo.u32 %r{n}, %r{n - 1}, 2654435761, {n};" for n in range(1, REGISTERS))
    store = "".join(f"st.global.u32 [%rd1+{4 * n}], %r{n};" for n in range(REGISTERS))
    counters = "".join(f".reg .b32 %n{d};" for d in range(writer.deepest + 1))
    return (
        f"{HEADER}.entry k(.param .u64 out)\n{{ .reg .b32 %r<{REGISTERS}>, %t, %i, %b, %w; .reg .b64 %rd<2>;\n"
        f".reg .pred %p<2>; {counters}\nmov.u32 %i, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %w, %ntid.x;\n"
        "mad.lo.u32 %i, %b, %w, %i; mov.u32 %r0, %i;" + load + "\n" + "\n".join(writer.lines)
        + f"\nEND: ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %i, {4 * REGISTERS}, %rd1;\n{store}\nret;\n}}\n"
    )  # fmt: skip


@examples(20)
@given(program)
def test_together_as_alone(statements: list[Any]) -> None:
    loaded = ptx.load(kernel(statements)).kernel("k")
    threads = 48
    alone, blocks, batches = (np.zeros((threads, REGISTERS), np.uint32) for _ in range(3))
    loaded.launch(threads, 1, [alone], batch_threads=1)
    loaded.launch(2, 24, [blocks])
    loaded.launch(3, 16, [batches], batch_threads=16, races=True, counters=True)
    np.testing.assert_array_equal(alone, blocks)
    np.testing.assert_array_equal(alone, batches)
