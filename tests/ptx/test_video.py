# ruff: noqa: E501 - instructions read better with a line each
"""Video instructions: the manual's pseudo-code on integers, selectors, and what is refused."""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bench.common.ptx.spelling import (
    HEADER,
    THREADS,
    VIDEO,
    instruction,
    parts,
    program,
    spelled,
    variants,
)
from tests.ptx import video_exact
from tests.ptx.test_opcodes import refused_by_ptxas
from tests.sampled import rounds
from tests.tools import is_here

from warploom import ptx
from warploom.errors import DeviceError, UnsupportedError, WarploomError
from warploom.ptx.emulate.asked import EngineName
from warploom.ptx.known import form_of, keys_of, registers_in, split_operands
from warploom.ptx.show import show_instruction
from warploom.ptx.symbolic.walk import read
from warploom.ptx.table import OPCODES

NAMES = [name for name in OPCODES if VIDEO.fullmatch(name)]
LANES = 48
EDGES = (0, 1, 7, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
         0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0xFFFF0000, 0x80007FFF)  # fmt: skip


@lru_cache
def lines(name: str) -> tuple[str, ...]:
    """Every form, with whole registers and with parts of them."""
    record = OPCODES[name]
    found = {
        instruction(record, form, parts(row), variant): None
        for form in record.forms
        for row in spelled(form)
        for variant in variants(record)[:3]
    }
    return tuple(found)


def words() -> npt.NDArray[np.uint32]:
    chance = Random(17)
    return np.array(
        [[chance.choice(EDGES) if chance.random() < 0.6 else chance.getrandbits(32)
          for _ in range(THREADS)] for _ in range(5)], np.uint32)  # fmt: skip


def launched(texts: tuple[str, ...], engine: EngineName = "numpy") -> npt.NDArray[Any]:
    given = words()
    others = [np.zeros((5, THREADS), dtype) for dtype in (np.uint16, np.uint64)]
    out = np.zeros((len(texts), THREADS), np.uint64)
    kernel = ptx.load(program(list(texts)), "video.ptx").kernel("k")
    report = kernel.launch(1, LANES, [others[0], given, others[1], out], engine=engine)
    assert report.engine == engine, kernel.fast.why_not
    return out[:, :LANES]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_manual(name: str) -> None:
    texts, given = lines(name), words()
    found = launched(texts)
    for text, row in zip(texts, found, strict=True):
        for lane in range(LANES):
            registers = {f"%r{n}": int(given[n - 1, lane]) for n in range(1, 6)}
            expected = video_exact.result(text, registers)
            assert int(row[lane]) == expected, (text, registers, hex(int(row[lane])))


def test_the_manual_is_read_right() -> None:
    """By hand: a few lines of each kind, so that not only model and emulator are compared."""
    registers = {"%r1": 0x80FF7F01, "%r2": 0x01020304, "%r3": 0x11223344}
    for line, expected in (
        ("vadd.s32.u32.s32 %r0, %r1.b3, %r2.b0;", 0x84),
        ("vadd.s32.s32.s32 %r0, %r1.b3, %r2.b0;", 0xFFFFFF84),
        ("vsub.u32.s32.u32.sat %r0, %r1.b2, %r2.h0;", 0),
        ("vabsdiff.u32.s32.u32.add %r0, %r1.b3, %r2.b0, %r3;", 0x11223344 + 132),
        ("vmax.s32.s32.s32.min %r0, %r1.b2, %r2.b3, %r3;", 1),
        ("vadd.u32.u32.u32.sat %r0.b2, %r1.b2, %r2.b0, %r3;", 0x11FF3344),
        ("vmin.s32.s32.s32 %r0.h0, %r1.b3, %r2.b0, %r3;", 0x1122FF80),
        ("vshl.u32.u32.u32.wrap %r0, %r2.b0, %r1.h0;", 8),
        ("vshr.u32.s32.u32.clamp %r0, %r1, %r2;", 0xFFFFFFFF),
        ("vset.s32.u32.lt.add %r0, %r1.b3, %r2.b0, %r3;", 0x11223345),
        ("vmad.s32.s32.u32.shr7 %r0, %r1.b3, %r2.b0, -%r3;", (-(128 * 4) - 0x11223344 >> 7) & 0xFFFFFFFF),
        ("vmad.u32.u32.u32.po %r0, %r1.b3, %r2.b0, %r3;", 0x11223344 + 513),
        ("vadd4.u32.u32.u32.sat %r0, %r1, %r2, %r3;", 0x81FF8205),
        ("vadd2.s32.s32.s32 %r0.h1, %r1.h01, %r2, %r3;", 0x80033344),
        ("vavrg4.s32.s32.s32 %r0, %r1, %r2, %r3;", 0xC0014103),
        ("vabsdiff4.u32.u32.u32.add %r0.b30, %r1, %r2, %r3;", 0x11223344 + 127 + 3),
        ("vset4.u32.u32.gt %r0, %r1, %r2.b5555, %r3;", 0x01010100),
    ):  # fmt: skip
        assert video_exact.result(line, registers) == expected, line


@pytest.mark.slow
@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
def test_the_engine_in_c_gives_the_same() -> None:
    texts = tuple(line for name in NAMES for line in Random(name).sample(lines(name), rounds(6)))
    assert (launched(texts, "c") == launched(texts)).all()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
def test_ptxas_assembles_every_line(tmp_path: Path) -> None:
    every = [line for name in NAMES for line in lines(name)]
    assert len(every) > 2500
    assert refused_by_ptxas(every, "sm_90a", tmp_path) == set()


# -- what is refused --------------------------------------------------------------------------


def launch(line: str) -> None:
    text = HEADER.format(version="9.0", target="sm_90a") + f"\n{line}\nret;\n}}"
    ptx.load(text, "k.ptx").kernel("k").launch(1, 32, [])


@pytest.mark.parametrize(
    "line",
    ["vadd.u32.u32.u32 %r0, %r1.b4, %r2;", "vadd.u32.u32.u32 %r0, %r1.h2, %r2;",
     "vadd.u32.u32.u32 %r0, %r1.h10, %r2;", "vadd.u32.u32.u32 %r0.b0, %r1, %r2;",
     "vadd.u32.u32.u32 %r0, %r1, %r2, %r3;", "vadd.u32.u32.u32.add %r0.b0, %r1, %r2, %r3;",
     "vadd.u32.u32.u32.add %r0, %r1, %r2, %r3.b0;", "vadd.u32.u32.u32 %r0, -%r1, %r2;",
     "vadd.u32.u32.u32 %r0, %h1, %r2;", "vadd.u32.u32.u32 %l0, %r1, %r2;",
     "vadd.u32.u32.u32 %r0, %f1, %r2;", "vadd.u32.u32.u32 %r0, %tid.x, %r2;",
     "vadd.u32.u32.u32 7, %r1, %r2;", "vmad.s32.u32.u32 %r0, -%r1, %r2, -%r3;",
     "vmad.u32.u32.u32.po %r0, -%r1, %r2, %r3;", "vmad.u32.u32.u32 %r0, %r1, %r2, %r3.b0;",
     "vmad.u32.u32.u32 %r0.h0, %r1, %r2, %r3;", "vadd2.u32.u32.u32 %r0.h01, %r1, %r2, %r3;",
     "vadd2.u32.u32.u32 %r0, %r1.h3, %r2, %r3;", "vadd2.u32.u32.u32 %r0, %r1.h45, %r2, %r3;",
     "vadd2.u32.u32.u32 %r0, %r1, 5, %r3;", "vadd2.u32.u32.u32 %r0, %r1, %r2, %r3.h10;",
     "vadd4.u32.u32.u32 %r0.b13, %r1, %r2, %r3;", "vadd4.u32.u32.u32 %r0, %r1.b8654, %r2, %r3;",
     "vadd4.u32.u32.u32 %r0, %r1.h10, %r2, %r3;", "add.u32 %r0, %r1.b0, %r2;",
     "add.u32 %r0.b0, %r1, %r2;", "add.u32 %r0, -%r1, %r2;", "vadd4.u32.u32.u32 %r0, %r1, %r2;"],
)  # fmt: skip
def test_operands_that_are_none_are_one_error_with_a_place(line: str, tmp_path: Path) -> None:
    with pytest.raises(WarploomError) as caught:
        launch(line)
    assert caught.value.span is not None
    assert isinstance(caught.value, DeviceError | UnsupportedError)
    if shutil.which("ptxas") is not None and line.count("%r") < 4:
        assert refused_by_ptxas([line], "sm_90a", tmp_path) == {line}


@pytest.mark.parametrize(
    "line",
    ["vadd.u32.u32.u32.sat %r0, %r1, %r2;", "vadd.u32.u32.u32 %r0.h1, %r1.b0, %r2.b0, %r3;",
     "vsub.s32.u32.u32.sat %r0.b0, %r1.b0, %r2.b0, %r3;", "vadd.s32.s32.s32.min %r0, %r1, %r2, %r3;",
     "vsub.u32.u32.u32.max %r0, %r1.b0, %r2.b0, %r3;", "vset.s32.u32.lt.max %r0, %r1, %r2, %r3;",
     "vshl.u32.u32.u32.sat.clamp %r0, %r1.b0, %r2.b0;", "vshr.u32.u32.u32.sat.wrap %r0.b0, %r1, %r2, %r3;",
     "vmad.u32.u32.u32.sat %r0, %r1.b0, %r2.b0, %r3;", "vmad.s32.s32.u32.shr7 %r0, %r1, %r2, %r3;",
     "vset.u32.u32.lo %r0, %r1, %r2;"],  # ptxas takes it or not by what stands before it
)  # fmt: skip
def test_what_ptxas_makes_otherwise_than_the_manual_is_refused(line: str) -> None:
    with pytest.raises(UnsupportedError, match="does not know") as caught:
        launch(line)
    assert caught.value.span is not None


# -- operands ---------------------------------------------------------------------------------


def test_parts_and_signs_are_read_and_shown() -> None:
    line = "vmad.s32.s32.u32.shr7 %r0, -%r1.h1, %r2.b3, -%r3;"
    text = HEADER.format(version="9.0", target="sm_90a") + f"{line}\nret;\n}}"
    found = next(ptx.parse(text).functions[0].instructions())
    assert show_instruction(found) == line
    assert form_of(found) is not None


def test_a_part_that_is_written_is_its_register() -> None:
    text = HEADER.format(version="9.0", target="sm_90a")
    text += "vadd.u32.u32.u32 %r0.b1, %r1.b0, %r2, %r3;\nret;\n}"
    module = ptx.parse(text)
    found = next(module.functions[0].instructions())
    (target,), _ = split_operands(found)
    assert [key for each in registers_in(target) for key in keys_of(each)] == ["%r0"]


def test_two_parts_of_a_register_are_not_one_value() -> None:
    """The walk on symbols must not take one selector for another."""
    body = "mov.u32 %r1, %tid.x; vadd.u32.u32.u32 %r2, %r1.b0, 1; vadd.u32.u32.u32 %r3, %r1.b1, 1;"
    text = HEADER.format(version="9.0", target="sm_90a") + f"{body}\nret;\n}}"
    module = ptx.parse(text)
    made = read(module, module.functions[0]).made_at
    assert made["%r2"][1] != made["%r3"][1]
