# ruff: noqa: E501 - tables and programs read better with a line each
"""Reading and printing: byte-identical round trips, resolved operands, edits, and bad text."""

from __future__ import annotations

import random
import time
import tracemalloc
from pathlib import Path

import pytest
from bench.common.narrowed import of, present
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import ParseError
from warploom.ptx import ir, lex, parse, show
from warploom.ptx.show import (
    Edit,
    insert_after,
    insert_at_top,
    insert_before,
    replace,
    show_instruction,
)

HERE = Path(__file__).parent
GOLDEN = sorted((HERE / "golden").rglob("*.ptx"))
HEADER = ".version 8.0\n.target sm_80, debug\n.address_size 64\n"
OPEN = HEADER + ".visible .entry f(.param .u64 p)\n{\n  .reg .b32 %r<4>;\n"


def read(path: Path) -> str:
    return path.read_bytes().decode()


def body(text: str) -> list[ir.Instruction]:
    module = parse(f"{OPEN}{text}\n}}\n")
    return list(module.functions[0].instructions())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_round_trip(path: Path) -> None:
    text = read(path)
    module = parse(text, path.name)
    assert show(module) == text
    assert module.functions
    for function in module.functions:
        for instruction in function.instructions():
            source = module.source_of(instruction)
            assert source.endswith(";")
            # The printed form reads as the same instruction again.
            (again,) = _reread(show_instruction(instruction), function, module)
            assert (again.opcode, again.modifiers) == (instruction.opcode, instruction.modifiers)
            assert show_instruction(again) == show_instruction(instruction)


def _reread(line: str, function: ir.Function, module: ir.Module) -> list[ir.Instruction]:
    names = {}
    for s in function.flat():
        if isinstance(s, ir.RegisterDeclaration):
            for name, count in s.names:
                names[name, count] = f".reg {f'.v{s.vector} ' if s.vector > 1 else ''}.{s.type} {name}" + (
                    f"<{count}>;" if count else ";")  # fmt: skip
    inside = "".join(names.values())
    text = f"{HEADER}.func g()\n{{ {inside}\n{line}\n}}\n"
    return list(parse(text).functions[0].instructions())


def test_module() -> None:
    text = HEADER + (
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
        ".const .align 8 .f64 table[2][2] = {{1.5, 0d4000000000000000}, {3}};\n"
        ".global .attribute(.managed) .v4 .f32 vec;\n"
        ".visible .entry f(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24])\n"
        ".maxntid 256, 1, 1\n.minnctapersm 2\n{ ret; }\n"
    )
    module = parse(text)
    assert (module.version, module.target, module.address_size) == ((8, 0), ("sm_80", "debug"), 64)
    table, vec = module.variables
    assert (table.space, table.sizes, table.align) == ("const", (2, 2), 8)
    assert [of(ir.Immediate, v).value for v in present(table.initial)][-2:] == [
        3,
        0,
    ]  # a short row is filled up
    assert (vec.vector, vec.attributes) == (4, ("(.managed)",))
    declared, function = module.functions
    assert declared.body is None
    assert len(declared.parameters) == 2
    assert function.parameters[0].attributes == ("ptr", "global")
    assert function.parameters[1].sizes == (24,)
    assert [d.name for d in function.directives] == ["maxntid", "minnctapersm"]


def test_operands() -> None:
    text = """
      .reg .v4 .f32 %v; .reg .pred p, q; .reg .b64 %rd<3>; .reg .b128 %q<2>; .reg .bf16x2 h; .reg .f16 e;
      @!p ld.global.L1::no_allocate.L2::128B.v2.u32 {%r1, _}, [%rd1+-8];
      setp.lt.and.s32 p|q, %r1, -0x10, !q;
      mov.f32 %v.y, 0f3F800000; mov.u32 %r2, %tid.x; mov.u64 %rd2, table+16;
      tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [tex, {%r1, %r2}];
      call.uni (retval0), fun, (param0, param1);
      some.new::thing /* a comment */ %r1, 1.5e3, 017, 0b101, WARP_SZ;
      st.shared::cta.b32 [0x20], %r1;
    """
    ld, setp, mov, tid, address, tex, call, new, store = body(text)
    assert (present(ld.predicate).name, ld.negated, ld.modifiers[1]) == (
        "p",
        True,
        "L1::no_allocate",
    )
    assert of(ir.Vector, ld.operands[0]).elements[1] == ir.Symbol("_")
    assert ld.operands[1] == ir.Address(ir.Register("%rd1", "b64", "%rd1"), -8)
    assert setp.operands[0] == ir.Pair(ir.Register("p", "pred", "p"), ir.Register("q", "pred", "q"))
    assert of(ir.Immediate, setp.operands[2]).value == -16
    assert isinstance(setp.operands[3], ir.Negated)
    assert mov.operands[0] == ir.Component(ir.Register("%v", "f32", "%v", 4), 1)
    assert of(ir.Immediate, mov.operands[1]).spelling is ir.Spelling.SINGLE
    assert tid.operands[1] == ir.Special("%tid.x")
    assert address.operands[1] == ir.Offset(ir.Symbol("table"), 16)
    assert isinstance(of(ir.Address, tex.operands[1]).more[0], ir.Vector)
    assert [type(o).__name__ for o in call.operands] == ["Arguments", "Symbol", "Arguments"]
    assert new.name == "some.new::thing"
    assert [of(ir.Immediate, o).value for o in new.operands[2:]] == [15, 5, 32]
    assert of(ir.Immediate, of(ir.Address, store.operands[0]).base).value == 32


def test_scopes_have_their_own_registers() -> None:
    outer, inner, second, after = body(
        ".reg .b32 x; mov.u32 x, 1;\n{ .reg .b64 x; mov.u64 x, 2; }\n{ .reg .b64 x; mov.u64 x, 3; }\nmov.u32 x, 4;"
    )
    keys = [of(ir.Register, i.operands[0]).key for i in (outer, inner, second, after)]
    assert keys[0] == keys[3] == "x"
    assert len(set(keys)) == 3
    assert of(ir.Register, inner.operands[0]).type == "b64"


def test_other_statements() -> None:
    text = OPEN + (
        '  .loc 1 5 3, function_name $L__info_string0, inlined_at 1 30 5\n  .pragma "nounroll";\n'
        "L0: .branchtargets A, B;\nP: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
        "A: B: brx.idx %r1, L0;\n}\n"
        '.file 1 "a.cu"\n.section .debug_str\n{\n$L__info_string0: .b8 95, 0\n}\n.alias f2, f;\n'
    )
    module = parse(text)
    names = [s.name for s in module.functions[0].flat() if isinstance(s, ir.Directive)]
    assert names == ["loc", "pragma", "branchtargets", "callprototype"]
    assert [d.name for d in module.directives] == ["file", "section", "alias"]
    assert show(module) == text


def test_edits() -> None:
    text = f"{OPEN}  add.s32 %r1, %r2, %r3; // sum\n  ret;\n}}\n"
    module = parse(text)
    add, ret = module.functions[0].instructions()
    edits = [
        insert_after(add, " X;"), replace(ret, "exit;"), insert_before(add, "A;"), insert_before(add, "B;"),
        insert_at_top(module.functions[0], "\n  top;"),
    ]  # fmt: skip
    want = text.replace("{\n  .reg", "{\n  top;\n  .reg").replace(
        "  add.s32 %r1, %r2, %r3;", "  A;B;add.s32 %r1, %r2, %r3; X;"
    )
    assert show(module, edits) == want.replace("ret;", "exit;")
    with pytest.raises(Exception, match="overlap"):
        show(module, [Edit(add.start, add.end, ""), Edit(add.start + 2, add.end, "")])


RANDOM = random.Random(1)
HOSTILE = {
    "empty": "", "truncated": OPEN, "only header": ".version", "labels": OPEN + "L" + ":\nL".join(map(str, range(10**6))) + ":",
    "top labels": HEADER + "L1:\n" * 10**6, "same label": OPEN + "L: L:\n}", "open braces": OPEN + "{" * 10**6,
    "closed braces": OPEN + "}" * 10**6, "parentheses": HEADER + ".func f" + "(" * 10**6,
    "deep operand": OPEN + "add.s32 " + "{" * 10**6 + ";}", "bangs": OPEN + "add.s32 " + "!" * 10**6 + ";}",
    "initialiser": HEADER + ".global .b32 x[4] = " + "{" * 10**5,
    "random": RANDOM.randbytes(10**5).decode("latin-1"),
    "random body": OPEN + RANDOM.randbytes(10**5).decode("latin-1"),
    "comment": OPEN + "/* " + "*" * 10**6, "no semicolon": OPEN + "add " * 10**6, "zeros": OPEN + " " * 10**6 + "\0",
    "string": OPEN + '.pragma "' + "a" * 10**6, "digits": OPEN + "add.s32 %r1, " + "9" * 10**6 + ";}",
    "modifiers": OPEN + "a" + ".b" * 10**6, "dots": "." * 10**6, "pipes": OPEN + "add.s32 %r1" + "|a" * 10**6 + ";}",
    "registers": OPEN + ".reg .b32 " + "a," * 10**6, "sizes": HEADER + ".global .b32 x" + "[9999999999]" * 1000 + ";",
    "predicate": OPEN + "@nobody ret;\n}", "huge count": OPEN + ".reg .b32 %r<99999999999999999999>;",
    "comments": OPEN + "/* " * 10**6, "strings": OPEN + '"' + '\\"' * 10**6, "long vector": OPEN + "mov {" + "a," * 10**5 + "a};}",
    "attribute": HEADER + ".global .attribute(" + "(" * 10**5,
    "short location": OPEN + ".loc 1 2\nret;\n}", "named location": OPEN + ".loc 1 2, function_name $a, inlined_at 1 2 3\nret;\n}",
    "location put nowhere": OPEN + ".loc 1 2 3, function_name $a, inlined_at 1 2\nret;\n}",
    "long location": OPEN + ".loc 1 " + "9" * 5000 + " 3\nret;\n}", "empty vector": OPEN + "mov.b32 %tid, {};\n}",
}  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", HOSTILE)
def test_bad_text_gives_one_located_error_soon(name: str) -> None:
    started = time.process_time()
    with pytest.raises(ParseError) as caught:
        parse(HOSTILE[name], "bad.ptx")
    assert time.process_time() - started < 30
    assert caught.value.span is not None
    assert str(caught.value).startswith("bad.ptx:")
    assert len(str(caught.value)) < 1000


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "name", [n for n in HOSTILE if HOSTILE[n].startswith(OPEN) and "{" * 99 not in HOSTILE[n]]
)
def test_bad_text_with_matching_braces(name: str) -> None:
    """The braces are in order: the rest of the reader has to cope."""
    started = time.process_time()
    try:
        parse(HOSTILE[name].rstrip("}") + "\n}\n")
    except ParseError as error:
        assert error.span is not None  # noqa: PT017 - some of these are valid when closed
    assert time.process_time() - started < 30


def test_a_long_string_takes_the_room_of_its_letters() -> None:
    text = OPEN + '.pragma "' + "a" * 10**6 + '";\nret;\n}\n'
    tracemalloc.start()
    try:
        parse(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 * len(text)


@examples(150)
@given(st.data())
def test_damaged_text_parses_or_is_refused(data: st.DataObject) -> None:
    text = read(HERE / "golden" / "nvcc" / "memory.ptx")[:6000]
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    text = text[:start] + data.draw(st.text(max_size=8)) + text[start + length :]
    try:
        shown = show(parse(text))
    except ParseError as error:
        shown = text if error.span else ""
    assert shown == text


@given(st.integers(0, 2**64 - 1))
def test_integers_in_every_base(value: int) -> None:
    spellings = [
        str(value),
        hex(value),
        bin(value),
        f"0{value:o}" if value else "0",
        f"{value}U",
    ]
    assert {present(lex.number(s)).value for s in spellings} == {value}


@pytest.mark.slow
def test_ten_megabytes() -> None:
    text = read(HERE / "golden" / "nvcc" / "memory.ptx")
    start = text.index(".visible .entry branches")
    kernel = text[start : text.index("\n}\n", start) + 3]
    text = HEADER + "".join(
        kernel.replace("branches", f"k{i}") for i in range(10**7 // len(kernel))
    )
    assert len(text) > 9_500_000
    started = time.process_time()
    module = parse(text)
    assert time.process_time() - started < 60
    assert show(module) == text
