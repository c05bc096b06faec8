# ruff: noqa: E501 - tables and programs read better with a line each
"""The records of opcodes: real PTX, handled in every form, no word without a meaning or a reason."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.ptx.spelling import HEADER, TYPE, covering, instruction

from warploom import ptx
from warploom.errors import DeviceError, UnsupportedError
from warploom.ptx.emulate import compile as compiler
from warploom.ptx.emulate import floats
from warploom.ptx.opcode import Form, Opcode, Slot
from warploom.ptx.table import OPCODES, WITHOUT_EFFECT

RUN = [record for record in OPCODES.values() if record.forms]
FORMS = [(record, form) for record in RUN for form in record.forms]
# Operands of these are labels, functions or nothing: tests of control flow use them.
FLOW = ("bra", "brx", "call", "ret", "exit", "trap", "brkpt")
NO_LONGER = ("shfl", "vote")  # without .sync they are of machines that ptxas has forgotten


@lru_cache
def lines() -> list[tuple[Opcode, str]]:
    """Every word of every form in an instruction, as text."""
    found = {
        instruction(record, form, words): record
        for record, form in FORMS
        if record.name not in FLOW
        for words in covering(form)
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


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
def test_every_form_is_one_that_ptxas_assembles(tmp_path: Path) -> None:
    texts = [text for _, text in lines()]
    assert len(texts) > 5000
    left = sorted(refused_by_ptxas(texts, "sm_90a", tmp_path))
    left = sorted(refused_by_ptxas(left, "sm_100a", tmp_path))
    assert [text for text in left if not text.startswith(NO_LONGER) or ".sync" in text] == []


def test_every_form_is_handled() -> None:
    """No form is refused when it is compiled; whether it computes the right thing is for others."""
    text = (
        HEADER.format(version="9.0", target="sm_90a")
        + "\n".join(t for _, t in lines())
        + "\nret;\n}"
    )
    module = ptx.parse(text)
    refused: list[str] = []

    def note(error: Exception) -> compiler.Step:
        refused.append(str(error))
        return lambda _: None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_raising", note)
        compiler.compile_function(
            module, module.functions[0], {"tile": 0}, lambda _, __: lambda _: None
        )
    assert refused[:5] == []


def test_every_handler_has_a_record() -> None:
    handled = {*compiler.TABLE, *floats.TABLE, *FLOW, "bar", "barrier"}
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
EDGES16 = [0, 1, 2, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7E01, 0x3C00, 0x3E00, 0x4100, 0x8000, 0x8001, 0x83FF, 0xBC00, 0xC100,
           0xFC00, 0x0080, 0x007F, 0x3F80, 0x3F81, 0xBF80, 0x7F80, 0x7FFF, 0xFFFF, 31, 32, 0x42FF]  # fmt: skip
EDGES32 = [0, 1, 3, 17, 31, 33, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F000000, 0x3FC00000, 0x40200000, 0x477FF000, 0x4B000001,
           0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x80000000, 0x80000001, 0x807FFFFF, 0xBF800000, 0xC0200000, 0xFF800000,
           0xFFFFFFFF, 0x33000001, 0x387FE000, 0xCF000000, 0x4F800000, 0xC3020000, 0x3F801000]  # fmt: skip
EDGES64 = [0, 1, 31, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x3FF0000000000000, 0x3FE0000000000000, 0x3FF8000000000000,
           0x4004000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000001, 0x8000000000000000,
           0x8000000000000001, 0x800FFFFFFFFFFFFF, 0xBFF0000000000000, 0xC004000000000000, 0xFFF0000000000000,
           0xFFFFFFFFFFFFFFFF, 0x3810000000000000, 0x36A0000000000001, 0x41F0000000000001, 0x40F0000000000000,
           0x3FF0000010000000, 0x3FF0000030000000, 0x3E60000000000001, 0x8000000100000000, 0xFFFFFFFF80000000]  # fmt: skip
THREADS = 1024
STORES = {"%p": "selp.u64 %l0, 1, 0, {r}; st.global.u64 [%o], %l0;", "%h": "st.global.b16 [%o], {r};",
          "%r": "st.global.b32 [%o], {r};", "%f": "st.global.f32 [%o], {r};", "%l": "st.global.b64 [%o], {r};",
          "%d": "st.global.f64 [%o], {r};"}  # fmt: skip


def inputs() -> list[np.ndarray]:
    """Five columns of each width: edges that meet each other, then random bits."""
    rng = np.random.default_rng(5)
    found = []
    for dtype, edges in ((np.uint16, EDGES16), (np.uint32, EDGES32), (np.uint64, EDGES64)):
        columns = (
            np.frombuffer(rng.bytes(5 * THREADS * np.dtype(dtype).itemsize), dtype)
            .reshape(5, -1)
            .copy()
        )
        square = np.arange(len(edges) ** 2)
        for column in range(5):
            pick = square // len(edges) ** (column % 2) + column * (square // 7)
            columns[column, : square.size] = np.array(edges, dtype)[pick % len(edges)]
        found.append(columns)
    return found


def results(record: Opcode, texts: list[str]) -> np.ndarray:
    """What each instruction gives for each thread, as bits."""
    body = [HEADER.format(version="9.0", target="sm_90a").replace("k()", "k(.param .u64 h, .param .u64 r, .param .u64 l, .param .u64 out)")
            + ".reg .b64 %o, %b; .reg .b32 %t; mov.u32 %t, %tid.x;"]  # fmt: skip
    for bank, size in (("h", 2), ("r", 4), ("l", 8)):
        body.append(f"ld.param.u64 %b, [{bank}]; mad.wide.u32 %b, %t, {size}, %b;")
        body += [
            f"ld.global.b{8 * size} %{bank}{n}, [%b+{(n - 1) * size * THREADS}];"
            for n in range(1, 6)
        ]
    body += [
        f"mov.b32 %f{n}, %r{n}; mov.b64 %d{n}, %l{n}; setp.lt.s32 %p{n}, %r{n}, 0;"
        for n in range(1, 6)
    ]
    body.append("ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 8, %o;")
    for text in texts:
        target = text.split()[1].rstrip(",").split("|")[0]
        body += [text, STORES[target[:2]].format(r=target), f"add.u64 %o, %o, {8 * THREADS};"]
    module = ptx.load("\n".join(body) + "\nret;\n}\n", f"{record.name}.ptx")
    out = np.zeros((len(texts), THREADS), np.uint64)
    module.kernel("k").launch(1, THREADS, [*inputs(), out])
    return out


def matters(slot: Slot) -> bool:
    types = all(TYPE.fullmatch(part) for word in slot.words for part in word.split("."))
    return not slot.silent and not types


def differ(
    form: Form, given: dict[tuple[str, ...], np.ndarray], place: int, words: tuple[str, str]
) -> bool:
    """Whether there is a spelling in which one word gives something else than the other."""
    return any(
        not np.array_equal(values, given[(*row[:place], words[1], *row[place + 1 :])])
        for row, values in given.items()
        if row[place] == words[0]
    )


PURE = [record for record in RUN if record.pure and record.name not in ("mov", "cvta", "isspacep")]


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


def spelled(form: Form) -> list[tuple[str, ...]]:
    """Rows with one word or none for each slot."""
    rows: list[tuple[str, ...]] = [()]
    for slot in form.slots:
        words = slot.words + (("",) if slot.optional else ())
        rows = [(*row, word) for row in rows for word in words]
    return rows


def parts(row: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for word in row for part in word.split(".") if part)


# -- what is not listed is refused -------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["add.rn.f32x2 %l0, %l1, %l2;", "fma.rn.f32x2 %l0, %l1, %l2, %l3;", "add.f32.f16 %f0, %h1, %f2;", "add.ftz.f64 %d0, %d1, %d2;",
     "cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2;", "cvt.rna.satfinite.tf32.f32 %r0, %f1;", "cvt.rn.relu.tf32.f32 %r0, %f1;",
     "cvt.rn.satfinite.f16.f32 %h0, %f1;", "cvt.rs.f16x2.f32 %r0, %f1, %f2, %r3;", "cvt.pack.sat.u4.s32.b32 %r0, %r1, %r2, %r3;",
     "ld.global.sometimes.u32 %r0, [%l8];", "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
     "redux.sync.min.f32 %f0, %f1, -1;", "atom.global.exch.b128 %q0, [%l8], %q1;", "atom.global.min.noftz.bf16x2 %r0, [%l8], %r1;",
     "lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 1, %p1;", "bra.sometimes L;", "barrier.cluster.arrive;", "mov.v2.u32 %r0, %r1;",
     "cp.async.mbarrier.arrive.shared.b64 [tile];", "mul.lo.f32 %f0, %f1, %f2;", "setp.lo.s32 %p0, %r1, %r2;", "min.relu.u32 %r0, %r1, %r2;",
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
