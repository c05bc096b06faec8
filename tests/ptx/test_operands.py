# ruff: noqa: E501 - programs read better with a line each
"""What an instruction reads and writes: constants, one register as source and result, copies."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError, ParseError
from warploom.ptx import ir
from warploom.ptx.parse import parse

ENGINES: tuple[Literal["numpy", "c"], ...] = ("numpy", "c")
THREADS = 64
TEXT = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{{ .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %i, %o; .reg .b32 %t;
mov.u32 %t, %tid.x; ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mad.wide.u32 %i, %t, 8, %i; mad.wide.u32 %o, %t, 8, %o;
ld.global.b64 %l1, [%i]; cvt.u32.u64 %r1, %l1; shr.u64 %l2, %l1, 32; cvt.u32.u64 %r2, %l2; mov.b32 %f1, %r1; mov.b32 %f2, %r2;
{body}
ret; }}
"""


def given() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 1 << 62, THREADS).astype(np.uint64)


def ran(body: str, engine: Literal["numpy", "c"]) -> np.ndarray:
    out = np.zeros(THREADS, np.uint64)
    kernel = ptx.load(TEXT.format(body=body)).kernel("k")
    kernel.launch(1, THREADS, [given(), out], engine=engine)
    return out


# -- constants ------------------------------------------------------------------------------------

WRITTEN = ("1.5", "0f3FC00000", "0d3FF8000000000000")  # one number, in the ways that ptxas takes
WITH_CONSTANTS = {
    "mov.f32 %f0, {}; st.global.f32 [%o], %f0;": 1.5,
    "mov.f32 %f0, 0f3F800000; add.f32 %f0, %f0, {}; st.global.f32 [%o], %f0;": 2.5,
    "mov.f32 %f0, 0f3F800000; fma.rz.f32 %f0, %f0, {}, {}; st.global.f32 [%o], %f0;": 3.0,
    "mov.f32 %f0, 0f40400000; div.rn.f32 %f0, %f0, {}; st.global.f32 [%o], %f0;": 2.0,
    "mov.f32 %f0, 0f40400000; min.f32 %f0, %f0, {}; st.global.f32 [%o], %f0;": 1.5,
    "mov.f32 %f0, 0fC0400000; copysign.f32 %f0, %f0, {}; st.global.f32 [%o], %f0;": -1.5,
    "setp.gt.f32 %p1, {}, 0f3F800000; selp.f32 %f0, {}, 0f00000000, %p1; st.global.f32 [%o], %f0;": 1.5,
    "slct.f32.f32 %f0, {}, 0f00000000, {}; st.global.f32 [%o], %f0;": 1.5,
    "cvt.f32.f32 %f0, {}; st.global.f32 [%o], %f0;": 1.5,
    "cvt.rpi.f32.f32 %f0, {}; st.global.f32 [%o], %f0;": 2.0,
    "st.global.f32 [%o], {};": 1.5,
    "redux.sync.max.f32 %f0, {}, -1; st.global.f32 [%o], %f0;": 1.5,
    "mov.f64 %d0, {}; cvt.rn.f32.f64 %f0, %d0; st.global.f32 [%o], %f0;": 1.5,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_constant_is_one_of_the_type_however_it_is_written(engine: Literal["numpy", "c"]) -> None:
    body, want = [], []
    for text, number in WITH_CONSTANTS.items():
        for written in WRITTEN:
            body.append(text.replace("{}", written) + " add.u64 %o, %o, 4;")
            want.append(number)
    out = np.zeros(len(want), np.float32)
    kernel = ptx.load(TEXT.format(body="\n".join(body))).kernel("k")
    report = kernel.launch(1, 1, [given(), out], engine=engine)
    assert out[: len(want)].tolist() == want
    assert report.engine == engine


@pytest.mark.parametrize(
    "line",
    [
        "mov.u32 %r0, 1.5;", "add.s32 %r0, %r1, 1.5;", "mov.b16 %h0, 0f3FC00000;", "add.bf16 %h0, %h0, 1.5;",
        "add.f16x2 %r0, %r1, 1.5;", "mov.b32 %r0, 0d3FF8000000000000;", "mov.b64 %l0, 0f3FC00000;", "mov.pred %p0, 1.5;",
    ],
)  # fmt: skip
@pytest.mark.parametrize("engine", ENGINES)
def test_floating_constants_of_other_types_are_refused(
    line: str, engine: Literal["numpy", "c"]
) -> None:
    with pytest.raises(DeviceError, match="a floating constant cannot be read as"):
        ran(line, engine)


# -- one register, read and written ---------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_two_results_of_which_one_was_a_source(engine: Literal["numpy", "c"]) -> None:
    """The upper comparison is joined with what the predicate was, not with what it has become."""
    body = """setp.lt.s32 %p1, %t, 32; mov.b32 %r3, 0; mov.b32 %r4, 0x3C000000;
        setp.lt.and.f16x2 %p1|%p2, %r3, %r4, %p1;
        selp.b64 %l3, 1, 0, %p1; selp.b64 %l4, 2, 0, %p2; or.b64 %l3, %l3, %l4; st.global.b64 [%o], %l3;"""
    assert ran(body, engine).tolist() == [2] * 32 + [0] * 32


@pytest.mark.parametrize("engine", ENGINES)
def test_vectors_that_are_added_and_read_back_at_once(engine: Literal["numpy", "c"]) -> None:
    body = """mov.f32 %f3, 0f41200000; mov.f32 %f4, 0f42000000; mov.f32 %f5, 0f3F800000; mov.f32 %f6, 0f40000000;
        st.global.v2.f32 [%o], {%f3, %f4};
        atom.global.add.v2.f32 {%f5, %f6}, [%o], {%f6, %f5};"""
    assert ran(body, engine).view(np.float32)[:2].tolist() == [12.0, 33.0]


COPIES = ("cvta.to.global.u64 %l4, %l3;", "cvta.global.u64 %l4, %l3;", "mov.b64 %l4, %l3;")


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_copy_stays_when_few_lanes_change_the_register(
    copy: str, engine: Literal["numpy", "c"]
) -> None:
    body = f"""add.u64 %l3, %l1, 0; setp.lt.u32 %p1, %t, 3;
        @%p1 add.u64 %l3, %l3, 1; {copy} @%p1 add.u64 %l3, %l3, 5; @%p1 add.u64 %l3, %l3, 5;
        st.global.b64 [%o], %l4;"""
    want = given() + (np.arange(THREADS) < 3)
    assert np.array_equal(ran(body, engine), want)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copied_single_stays_when_few_lanes_change_the_register(
    engine: Literal["numpy", "c"],
) -> None:
    body = """mov.f32 %f3, 0f3F800000; cvt.rn.f32.u32 %f4, %t; add.f32 %f3, %f3, %f4; setp.lt.u32 %p1, %t, 3;
        @%p1 add.f32 %f3, %f3, 1.0; cvt.f32.f32 %f4, %f3; @%p1 add.f32 %f3, %f3, 5.0; @%p1 add.f32 %f3, %f3, 5.0;
        cvt.rzi.u64.f32 %l3, %f4; st.global.b64 [%o], %l3;"""
    want = [i + 2 if i < 3 else i + 1 for i in range(THREADS)]
    assert ran(body, engine).tolist() == want


@pytest.mark.parametrize("engine", ENGINES)
def test_a_vector_register_is_loaded_and_stored_whole(engine: Literal["numpy", "c"]) -> None:
    body = """.reg .v2 .b32 %v; ld.global.v2.b32 %v, [%i]; mov.b32 %r3, %v.x; mov.b32 %v.x, %v.y; mov.b32 %v.y, %r3;
        st.global.v2.b32 [%o], %v;"""
    want = given() >> np.uint64(32) | given() << np.uint64(32)
    assert np.array_equal(ran(body, engine), want)


def test_a_vector_register_of_another_size_is_refused() -> None:
    with pytest.raises(DeviceError, match="the number of its registers"):
        ran(".reg .v4 .b32 %v; ld.global.v2.b32 %v, [%i];", "numpy")


# -- constant expressions --------------------------------------------------------------------------

CONSTANTS = {
    "(3+4)*2": 14, "1<<4": 16, "5+3*2-1": 10, "-(2)": -2, "~0": -1, "!5": 0, "7 % 4": 3,
    "-7 / 2": -3, "-7 % 2": -1, "(7 > 3) ? 10 : 11": 10, "1 ? 2 ? 3 : 4 : 5": 3, "6 & 3 | 8": 10,
    "6 ^ 3": 5, "1 == 1 && 0 != 0": 0, "1 || 0": 1, "-1 >> 1": -1, "0xFFFFFFFFFFFFFFFF >> 60": 15,
    "-1 < 1": 1, "-1 < 1U": 0, "(.u64)-1 > 1": 1, "(.s64)1U - 2 < 0": 1, "10 - 3 - 2": 5,
    "((((2))))": 2, "2*-3": -6, "1 <= 0": 0, "- -4": 4,
}  # fmt: skip


@pytest.mark.parametrize("text", CONSTANTS)
def test_constant_expressions(text: str) -> None:
    """As C has them, on 64 bits; the whole text stays that of the operand."""
    ((_, value),) = [step.operands for step in read_one(f"mov.s64 %l1, {text};")]
    assert isinstance(value, ir.Immediate)
    assert (value.value, value.text, value.spelling) == (CONSTANTS[text], text, ir.Spelling.INTEGER)


def read_one(line: str) -> list[ir.Instruction]:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{ .reg .b64 %l<4>; .reg .b32 %r<4>; .shared .b8 s[64];\n"
    return list(parse(f"{head}{line}\nret; }}", "k.ptx").functions[0].instructions())[:1]


def test_constant_expressions_of_addresses() -> None:
    for line, offset in (
        ("ld.shared.u32 %r1, [s+4*(2+1)];", 12), ("ld.shared.u32 %r1, [%r2+(1<<3)-4];", 4),
        ("ld.shared.u32 %r1, [%r2+-8];", -8), ("ld.shared.u32 %r1, [%r2-4+4];", 0),
    ):  # fmt: skip
        (step,) = read_one(line)
        address = step.operands[1]
        assert isinstance(address, ir.Address)
        assert address.offset == offset, line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1/0", "division by zero"), ("1<<64", "shift by 64"), ("1.5+2", "whole numbers"),
        ("(1+2", "expected '\\)'"), ("1 ? 2", "expected ':'"), ("5%3", "expected ';'"),
        ("(" * 40 + "1" + ")" * 40, "nested too deeply|expected"), ("3 +", "expected a number"),
    ],
)  # fmt: skip
def test_what_is_no_constant_expression(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        read_one(f"mov.s64 %l1, {text};")


@pytest.mark.parametrize("target", ["sm_77", "sm_90b", "sm_9000", "sm_89a", "sm_90f"])
def test_a_target_that_does_not_exist(target: str) -> None:
    with pytest.raises(ParseError, match=f"there is no target '{target}'") as caught:
        parse(f".version 8.0\n.target {target}\n.address_size 64\n", "k.ptx")
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 9)
    parse(".version 8.0\n.target sm_90a, texmode_unified, debug\n.address_size 64\n", "k.ptx")
