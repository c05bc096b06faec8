"""Words packed of parts that nobody wrote: what is taken out of them is a value if its part is."""

from __future__ import annotations

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import UninitialisedError
from warploom.ptx.emulate.asked import EngineName

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .b16 %h<9>;
  .reg .b32 %r<9>;
  .reg .b64 %d<9>;
  .reg .pred %p;
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d1, %d1, %d2;
  add.u32 %r1, %r1, 5;
  setp.lt.u32 %p, %r1, 9;
"""
# %r1 is a value and %r2 is none; %r3 is stored.
RIGHT = {
    "the lower half": "mov.b64 %d3, {%r1, %r2}; cvt.u32.u64 %r3, %d3;",
    "the upper half": "mov.b64 %d3, {%r2, %r1}; mov.b64 {%r4, %r3}, %d3;",
    "beside nothing": "mov.b64 %d3, {%r2, %r1}; mov.b64 {_, %r3}, %d3;",
    "a quarter": "cvt.u16.u32 %h1, %r1; mov.b64 %d3, {%h1, %h2, %h3, %h4};"
    " cvt.u16.u64 %h5, %d3; cvt.u32.u16 %r3, %h5;",
    "two quarters": "mov.b32 {%h1, %h2}, %r1; mov.b64 %d3, {%h3, %h4, %h1, %h2};"
    " mov.b64 {%r4, %r3}, %d3;",
    "a part written later": "mov.b64 %d3, {%r1, %r2}; mov.u32 %r1, %r2; cvt.u32.u64 %r3, %d3;",
    "of some threads": "mov.b64 %d3, {%r1, %r1}; @%p mov.b64 %d3, {%r1, %r2};"
    " cvt.u32.u64 %r3, %d3;",
}
WRONG = {
    "the other half": "mov.b64 %d3, {%r1, %r2}; mov.b64 {%r4, %r3}, %d3;",
    "the lower half": "mov.b64 %d3, {%r2, %r1}; cvt.u32.u64 %r3, %d3;",
    "more than a part": "mov.b32 {%h1, %h2}, %r1; mov.b64 %d3, {%h1, %h3, %h4, %h5};"
    " cvt.u32.u64 %r3, %d3;",
    "by its size": "mov.b64 %d3, {%r1, %r2}; cvt.sat.u32.u64 %r3, %d3;",
    "computed with": "mov.b64 %d3, {%r1, %r2}; add.u64 %d3, %d3, 1; cvt.u32.u64 %r3, %d3;",
    "of some threads": "mov.b64 %d3, {%r1, %r1}; @%p mov.b64 %d3, {%r2, %r1};"
    " cvt.u32.u64 %r3, %d3;",
    "of other threads": "mov.b64 %d3, {%r2, %r1}; @%p mov.b64 %d3, {%r1, %r1};"
    " cvt.u32.u64 %r3, %d3;",
    "a part that had been one": "mov.b64 %d3, {%r1, %r2}; mov.b64 %d3, {%r2, %r1};"
    " cvt.u32.u64 %r3, %d3;",
}


def stored(body: str, engine: EngineName = "numpy") -> np.ndarray:
    out = np.zeros(8, np.uint32)
    text = f"{HEAD}{body}\n st.global.u32 [%d1], %r3;\n ret;\n}}\n"
    ptx.load(text).kernel("k").launch(1, 8, [out], engine=engine)
    return out


@pytest.mark.parametrize("name", RIGHT)
def test_a_part_that_is_a_value_is_one(name: str) -> None:
    assert (stored(RIGHT[name]) == np.arange(5, 13)).all()
    assert (stored(RIGHT[name], "c") == np.arange(5, 13)).all()


@pytest.mark.parametrize("name", WRONG)
def test_a_part_that_is_none_is_none(name: str) -> None:
    with pytest.raises(UninitialisedError, match="nobody wrote"):
        stored(WRONG[name])
