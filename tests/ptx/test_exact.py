"""Floating forms of the table against fractions, bit for bit; those of sm_100 among them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from bench.common.ptx.spelling import THREADS, inputs, instruction, parts, program, spelled
from tests.ptx.exact import meaning

from warploom import ptx
from warploom.ptx.table import OPCODES

BANKS = {"h": 0, "r": 1, "f": 1, "l": 2, "d": 2, "c": 0}


def texts(name: str) -> list[str]:
    record = OPCODES[name]
    every = [
        instruction(record, form, parts(row)) for form in record.forms for row in spelled(form)
    ]
    return [text for text in dict.fromkeys(every) if meaning(text.split(" ")[0]) is not None]


def operands(text: str, given: list[np.ndarray]) -> list[np.ndarray]:
    """The sources of an instruction: registers that the kernel has filled."""
    found = re.findall(r"%([a-z])(\d+)", text)[1:]
    columns = [given[BANKS[bank]][int(number) - 1] for bank, number in found]
    return [c & 0xFF if bank == "c" else c for (bank, _), c in zip(found, columns, strict=True)]


def compare(name: str, picked: np.ndarray) -> int:
    lines, given = texts(name), inputs()
    out = np.zeros((len(lines), THREADS), np.uint64)
    ptx.load(program(lines), f"{name}.ptx").kernel("k").launch(1, THREADS, [*given, out])
    checked = 0
    for line, got in zip(lines, out, strict=True):
        says = meaning(line.split(" ")[0])
        assert says is not None
        sources = operands(line, given)
        for thread in picked.tolist():
            row = [int(column[thread]) for column in sources]
            want = says(*row)
            if want is not None:
                checked += 1
                assert int(got[thread]) == want, (line, list(map(hex, row)), hex(want))
    return checked


NAMES = ("add", "sub", "mul", "fma", "mad", "div", "rcp", "neg", "min", "max", "cvt")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_forms_equal_fractions(name: str) -> None:
    picked = np.random.default_rng([7, len(name)]).permutation(THREADS)[
        : 12 if name == "cvt" else 24
    ]
    assert compare(name, picked) > 200


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_forms_equal_fractions_everywhere(name: str) -> None:
    assert compare(name, np.arange(THREADS)) > 5000


NEW = [
    "add.rz.f32x2", "fma.rm.ftz.f32x2", "sub.rp.sat.f32.bf16", "fma.rn.f32.f16",
    "cvt.rs.relu.bf16x2.f32", "cvt.rs.satfinite.e2m1x4.f32", "cvt.rn.satfinite.relu.e4m3x2.f16x2",
    "cvt.rp.ue8m0x2.bf16x2", "cvt.rn.f16x2.e3m2x2", "cvt.rz.satfinite.relu.tf32.f32",
]  # fmt: skip


def test_new_forms_are_among_them() -> None:
    names = {text.split(" ")[0] for name in NAMES for text in texts(name)}
    assert set(NEW) <= names
