"""The line of fidelity: from instructions that were executed, and from no others."""

from __future__ import annotations

import numpy as np
import pytest

from warploom import ptx
from warploom.ptx.fidelity import EXACT

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{ .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %l<4>; .reg .f32 %f<4>;
ld.param.u64 %l1, [p]; mov.u32 %r1, %tid.x; mov.f32 %f1, 1.0; setp.gt.u32 %p, %r1, 99;
"""


def told(body: str) -> str:
    kernel = ptx.load(f"{HEAD}{body}\nret; }}").kernel("k")
    return kernel.launch(1, 32, [np.zeros(4, np.float32)]).fidelity


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "ex2.approx.f32 %f2, %f1;",
            ["approximate: ex2.approx", "all other"],
        ),
        ("setmaxnreg.inc.sync.aligned.u32 64;", ["all instructions are exact"]),
        ("griddepcontrol.wait;", ["griddepcontrol (one launch runs at a time)"]),
        ("mov.u32 %r2, %clock;", ["clocks"]),
        ("lg2.approx.f32 %f2, %f1; ex2.approx.f32 %f2, %f1;", ["ex2.approx, lg2.approx"]),
    ],
)
def test_what_is_not_exact(body: str, words: list[str]) -> None:
    assert told("add.u32 %r2, %r1, 1;") == EXACT
    assert all(word in told(body) for word in words), told(body)
    skipped = f"@%p bra DO; bra PAST;\nDO: {body}\nPAST:"
    assert told(skipped) == EXACT
