# ruff: noqa: E501 - tables and programs read better with a line each
"""The records of opcodes: real PTX, handled in every form, no word without a meaning or a reason."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.ptx.isa import ISA
from bench.common.ptx.spelling import (
    HEADER,
    THREADS,
    TYPE,
    covering,
    inputs,
    instruction,
    parts,
    program,
    spelled,
)

from warploom import ptx
from warploom.errors import DeviceError, UnsupportedError
from warploom.ptx import known
from warploom.ptx.emulate import compile as compiler
from warploom.ptx.emulate import floats
from warploom.ptx.emulate.context import Step
from warploom.ptx.opcode import Control, MemoryEffect, Opcode, OpcodeForm, Slot
from warploom.ptx.shuffle import rewrite
from warploom.ptx.symbolic.form import Form as Value
from warploom.ptx.symbolic.memory import accesses
from warploom.ptx.symbolic.walk import read
from warploom.ptx.table import OPCODES, WITHOUT_EFFECT

RUN = list(OPCODES.values())
FORMS = [(record, form) for record in RUN for form in record.forms]
# Operands of these are labels, functions or nothing: tests of control flow use them.
FLOW = ("bra", "brx", "call", "ret", "exit", "trap", "brkpt")
NO_LONGER = ("shfl", "vote")  # without .sync they are of machines that ptxas has forgotten


@lru_cache
def lines(most: int | None = None) -> list[tuple[Opcode, str]]:
    """Every word of every form in an instruction, as text; or so many spellings of each form."""
    found = {
        instruction(record, form, words): record
        for record, form in FORMS
        if record.name not in FLOW
        for words in islice(covering(form), most)
    }
    return [(record, text) for text, record in found.items()]


def refused_by_ptxas(texts: list[str], target: str, folder: Path) -> set[str]:
    """One error is planted at the end, so that ptxas reads everything and compiles nothing."""
    head = HEADER.format(version="9.0", target=target)
    file = folder / "forms.ptx"
    file.write_text(head + "\n".join(texts) + "\nadd.nothing %r0;\nret;\n}\n")
    command = ["ptxas", f"-arch={target}", "-o", str(folder / "out"), str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    rows = {int(row) - head.count("\n") - 1 for row in re.findall(r"line (\d+); error", said)}
    assert len(texts) in rows, said[:500]  # the planted one
    return {texts[row] for row in rows if 0 <= row < len(texts)}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
def test_every_form_is_one_that_ptxas_assembles(tmp_path: Path) -> None:
    texts = [text for _, text in lines()]
    assert len(texts) > 5000
    left = sorted(refused_by_ptxas(texts, "sm_90a", tmp_path))
    left = sorted(refused_by_ptxas(left, "sm_100a", tmp_path))
    assert [text for text in left if not text.startswith(NO_LONGER) or ".sync" in text] == []


@pytest.mark.parametrize("most", [1, pytest.param(None, marks=pytest.mark.slow)])
def test_every_form_is_handled(most: int | None) -> None:
    """No form is refused when it is compiled; whether it computes the right thing is for others."""
    text = (
        HEADER.format(version="9.0", target="sm_90a")
        + "\n".join(t for _, t in lines(most))
        + "\nret;\n}"
    )
    module = ptx.parse(text)
    refused: list[str] = []

    def note(error: Exception) -> Step:
        refused.append(str(error))
        return lambda _: None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_raising", note)
        patch.setattr(compiler, "refuse_absent", lambda *_: None)  # no target has all of them
        compiler.compile_function(
            module, module.functions[0], {"tile": 0}, lambda _, __: lambda _: None
        )
    assert refused[:5] == []


def test_every_handler_has_a_record() -> None:
    handled = {*compiler.TABLE, *floats.TABLE, *FLOW, "bar", "barrier", "setmaxnreg"}
    assert handled == {record.name for record in RUN}


def test_every_silent_word_has_a_reason() -> None:
    silent = {
        word for _, form in FORMS for slot in form.slots if slot.silent for word in slot.words
    }
    assert silent - set(WITHOUT_EFFECT) == set()
    assert set(WITHOUT_EFFECT) - silent - {"noftz"} == set()  # add.noftz is one word of a form


# -- words that are not silent matter ----------------------------------------------------------

# Words that mean the same: approximations are computed exactly, at least as well as the hardware
# does it; rn is what is meant without it; a root is not negative.
ALIKE = {"": ({"approx", "full", "rn"}, {"rn", ""}), "sqrt": ({"rz", "rm"}, {"approx", "rn"})}


def results(record: Opcode, texts: list[str]) -> np.ndarray:
    """What each instruction gives for each thread, as bits."""
    out = np.zeros((len(texts), THREADS), np.uint64)
    module = ptx.load(program(texts), f"{record.name}.ptx")
    module.kernel("k").launch(1, THREADS, [*inputs(), out])
    return out


def matters(slot: Slot) -> bool:
    types = all(TYPE.fullmatch(part) for word in slot.words for part in word.split("."))
    return not slot.silent and not types


def differ(
    form: OpcodeForm, given: dict[tuple[str, ...], np.ndarray], place: int, words: tuple[str, str]
) -> bool:
    """Whether there is a spelling in which one word gives something else than the other."""
    return any(
        not np.array_equal(values, given[(*row[:place], words[1], *row[place + 1 :])])
        for row, values in given.items()
        if row[place] == words[0]
    )


PURE = [record for record in RUN if record.pure and record.name not in ("mov", "cvta", "isspacep")]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("record", PURE, ids=lambda record: record.name)
def test_words_that_are_not_silent_matter(record: Opcode) -> None:
    for form in record.forms:
        if not any(matters(slot) for slot in form.slots):
            continue
        rows = spelled(form)
        texts = [instruction(record, form, parts(row)) for row in rows]
        given = dict(zip(rows, results(record, texts), strict=True))
        for place, slot in enumerate(form.slots):
            words = slot.words + (("",) if slot.optional else ())
            for pair in combinations(words, 2) if matters(slot) else ():
                if not any(set(pair) <= alike for alike in ALIKE.get(record.name, ALIKE[""])):
                    assert differ(form, given, place, pair), (record.name, form, pair)


# -- what is not listed is refused -------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["fma.rn.oob.f16 %h0, %h1, %h2, %h3;", "fma.rz.bf16 %h0, %h1, %h2, %h3;", "add.sat.f32x2 %l0, %l1, %l2;", "add.ftz.f32.f16 %f0, %h1, %f2;",
     "mul.f32.f16 %f0, %h1, %f2;", "add.ftz.f64 %d0, %d1, %d2;", "cvt.rn.e4m3x2.f32 %h0, %f1, %f2;", "cvt.rn.satfinite.e4m3x2.bf16x2 %h0, %r1;",
     "cvt.rs.f16.f32 %h0, %f1, %r3;", "cvt.rs.e4m3x4.f32 %r0, {%f1, %f2, %f3, %f4}, %r3;", "cvt.pack.sat.u4.s32 %r0, %r1, %r2;",
     "cvt.rm.satfinite.f16.f32 %h0, %f1;", "cvt.rna.relu.tf32.f32 %r0, %f1;", "redux.sync.add.f32 %f0, %f1, -1;", "lop3.xor.b32 %r0|%p0, %r1, %r2, %r3, 1, %p1;",
     "ld.global.sometimes.u32 %r0, [%l8];", "ld.volatile.local.u32 %r0, [own];", "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r1], {%l1, %l2, %l3, %l4}, [%r3];",
     "atom.global.exch.b128 %q0, [%l8], %q1;", "atom.global.min.noftz.bf16x2 %r0, [%l8], %r1;",
     "bra.sometimes L;", "barrier.cluster.arrive.acquire;", "mov.v2.u32 %r0, %r1;",
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.mul.u32 [%l8], [tile], 16;", "mul.lo.f32 %f0, %f1, %f2;", "setp.lo.s32 %p0, %r1, %r2;", "min.relu.u32 %r0, %r1, %r2;",
     "add.s32.sat %r0, %r1, %r2;", "shl.u32 %r0, %r1, %r2;"],
)  # fmt: skip
def test_what_no_form_lists_is_refused(line: str) -> None:
    text = HEADER.format(version="9.0", target="sm_100a") + f"\n{line}\nL: ret;\n}}"
    with pytest.raises(UnsupportedError, match="does not know") as caught:
        ptx.load(text, "k.ptx").kernel("k").launch(1, 32, [])
    assert caught.value.span is not None
    assert line.split()[0].rstrip(";") in caught.value.message


def test_the_number_of_operands_is_part_of_a_form() -> None:
    for line in (
        "add.u32 %r0, %r1;",
        "add.u32 %r0, %r1, %r2, %r3;",
        "ret %r1;",
        "ld.global.u32 %r0, [%l8], %l1;",
    ):
        text = HEADER.format(version="9.0", target="sm_90a") + f"\n{line}\nret;\n}}"
        with pytest.raises(DeviceError, match="takes the operands"):
            ptx.load(text, "k.ptx").kernel("k").launch(1, 32, [])


# -- there is no other table -------------------------------------------------------------------

ROOT = Path(ptx.__file__).parent


def listed(node: ast.AST) -> list[str]:
    """The opcodes that a literal lists; a dictionary of handlers says what to call, and no more."""
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            keys: list[ast.expr | None] = [*elements]
        case ast.Dict(keys=keys, values=values):
            if all(isinstance(value, ast.Name | ast.Attribute | ast.Lambda) for value in values):
                return []
        case _:
            return []
    return [k.value for k in keys if isinstance(k, ast.Constant) and k.value in OPCODES]


def test_no_other_place_lists_opcodes() -> None:
    found = [
        (path.name, names)
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        # Of proofs: what is not listed there counts as decided by all of its operands. Of floats as
        # elements of fields: what is not listed there is not known.
        if len(names := listed(node)) > 2
        and path.name not in ("table.py", "taint.py")
        and path.parent.name != "field"
    ]
    # Operations of atomics, of reductions and of joined comparisons: words after an opcode.
    words = {"add", "and", "or", "xor", "min", "max"}
    assert [names for _, names in found if not set(names) <= words] == []
    rooms = {"atomics.py", "warp.py", "lanes.py", "compare.py", "bits.py", "arithmetic.py"}
    assert {name for name, _ in found} <= {*rooms, "known.py", "memory.py", "video.py"}


def test_lists_of_opcodes_are_noticed() -> None:
    for text in ("{'ld', 'st', 'bar'}", "{'ld': 1, 'st': 2, 'bar': f}", "('ld', 'st', 'bar')"):
        assert listed(ast.parse(text, mode="eval").body) == ["ld", "st", "bar"]
    assert listed(ast.parse("{'ld': load, 'st': m.store}", mode="eval").body) == []


PAIR = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{ .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
ld.global.f32 %f1, [%rd3]; popc.b32 %r2, %r1; ld.global.f32 %f2, [%rd3+4];
st.global.f32 [%rd3+4096], %f2; ret; }
"""


def shuffles() -> int:
    return rewrite(PAIR, select="all").kernels[0].shuffles


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Changes a record for one test."""

    def changed(name: str, **fields: Any) -> None:
        monkeypatch.setitem(OPCODES, name, replace(OPCODES[name], **fields))
        known.form_with.cache_clear()

    yield changed
    monkeypatch.undo()
    known.form_with.cache_clear()


def test_the_emulator_the_walk_and_the_rewriter_read_one_record(
    change: Callable[..., None],
) -> None:
    def launch() -> None:
        ptx.load(PAIR, "k.ptx").kernel("k").launch(1, 32, [np.zeros(2048, np.float32)])

    launch()
    assert shuffles() == 1
    change("popc", forms=())  # not known any more: not run, and not looked past
    with pytest.raises(UnsupportedError, match="popc"):
        launch()
    assert shuffles() == 0


@pytest.mark.parametrize(
    ("effect", "left"),
    [("nothing", 1), ("reads", 1), ("meets", 0), ("updates", 0), ("anything", 0)],
)
def test_what_the_record_says_of_memory_is_believed(
    effect: str, left: int, change: Callable[..., None]
) -> None:
    change("popc", memory=MemoryEffect(effect))
    assert shuffles() == left


def test_what_the_record_says_of_purity_is_believed(change: Callable[..., None]) -> None:
    def address() -> Value | None:
        text = PAIR.replace("[%rd3+4];", "[%rd4];").replace(
            "popc.b32 %r2, %r1;", "popc.b32 %r2, 7; mad.wide.u32 %rd4, %r2, 4, %rd3;"
        )
        module = ptx.parse(text)
        reading = read(module, module.functions[0])
        form = accesses(reading)[-1].address
        return form if form is not None and reading.pool.known(form) else None

    assert address() is not None
    change("popc", pure=False)
    assert address() is None


def test_what_the_record_says_of_control_is_believed(change: Callable[..., None]) -> None:
    leaving = tuple(replace(form, control=Control.LEAVE) for form in OPCODES["popc"].forms)
    change("popc", forms=leaving)
    assert shuffles() == 0  # the second load is not reached


def test_the_list_of_the_isa_has_every_form() -> None:
    """What `bench/ptx/isa.py` asks ptxas about contains everything that the table runs."""
    missing = {
        ".".join((record.name, *words))
        for record, form in FORMS
        if record.name not in FLOW
        for words in covering(form)
        if not any(other.matches(words) for other in ISA[record.name].forms)
    }
    assert {name for name in missing if not name.startswith(NO_LONGER) or ".sync" in name} == set()
