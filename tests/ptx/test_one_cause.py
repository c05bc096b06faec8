"""One finding for one cause: a fence that is missing before several copies."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.ptx import load
from warploom.ptx.findings import RaceFinding, race_findings

HEAD = """.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 128 .b8 s[1024];
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
mov.u32 %r2, s;
mad.lo.u32 %r3, %r1, 4, %r2;
"""
WRITES = [f"st.shared.u32 [%r3+{at}], %r1;\n" for at in (0, 128, 256)]
COPIES = [
    f"@!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1+{at}], [%r2+{at}], 128;\n"
    .replace("%r2+", "s+") for at in (0, 128, 256)
]  # fmt: skip
DONE = "@!%p1 cp.async.bulk.commit_group;\n@!%p1 cp.async.bulk.wait_group 0;\n"
MEET, FENCE = "bar.sync 0;\n", "fence.proxy.async;\n"


def findings(body: str) -> list[RaceFinding]:
    module = load(HEAD + body + DONE + "ret;\n}\n", "k.ptx")
    report = module.kernel("k").launch(1, 32, [np.zeros(1024, np.uint8)], races="all")
    return race_findings(module, report.races)


def test_copies_that_lack_one_fence() -> None:
    """Of three tiles, each written and copied by lines of its own."""
    (found,) = findings("".join(WRITES) + MEET + "".join(COPIES))
    assert found.pairs == 3
    assert "fence.proxy.async is missing" in found.error.message
    assert findings("".join(WRITES) + FENCE + MEET + "".join(COPIES)) == []


@pytest.mark.parametrize("fenced", [0, 1, 2])
def test_what_no_one_fence_mends(fenced: int) -> None:
    """Tiles that are written when the copy before has begun."""
    parts = [WRITES[at] + (FENCE if at < fenced else "") + MEET + COPIES[at] for at in range(3)]
    assert len(findings("".join(parts))) == 3 - fenced
