"""ld.global.nc and ldu: of memory that the kernel never writes."""

from __future__ import annotations

import pytest
from tests.ptx.test_prove_ends import conditions, proved

from warploom.machine.proof import Reach

WHERE = "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
LOADS = ("ld.global.nc.u32 %r9, [{}];", "ldu.global.u32 %r9, [{}];",
         "ld.global.nc.L1::no_allocate.u32 %r9, [{}];")  # fmt: skip
KEPT = "st.global.u32 [%rd4+256], %r9;"
BULK = """
st.shared.v4.u32 [data], {1, 1, 1, 1};
fence.proxy.async;
@!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 16;
@!%p1 cp.async.bulk.commit_group;
@!%p1 cp.async.bulk.wait_group 0;
fence.proxy.async;
"""


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(
    "store",
    ["st.global.u32 [%rd4], 1;", "st.global.u16 [%rd4+2], 1;", "red.global.add.u32 [%rd4], 1;"],
)
def test_what_the_launch_wrote_is_not_read_so(load: str, store: str) -> None:
    proof = proved(WHERE + "\n".join((store, load.format("%rd4"), KEPT)))
    assert conditions(proof) == {"memory"}
    (failed,) = proof.failed
    assert failed.span is not None
    assert "may not see what the launch wrote" in failed.message
    beside = proved(WHERE + "\n".join((store, load.format("%rd4+128"), KEPT)))
    assert beside.reach is Reach.ALL_DATA
    assert not beside.assumed


def test_nor_behind_a_barrier_or_a_copy() -> None:
    first = "@%p1 st.global.u32 [%rd1+4], 1;\nbar.sync 0;\n"
    load = "ld.global.nc.u32 %r9, [%rd1+{}];\n"
    assert conditions(proved("setp.ne.u32 %p1, %r1, 1;\n" + first + load.format(4))) >= {"memory"}
    single = "@%p1 ret;\n" + BULK
    assert conditions(proved(single + load.format(12))) == {"memory"}
    assert proved(single + load.format(16)).reach is Reach.ALL_DATA


@pytest.mark.parametrize("load", LOADS)
def test_what_is_written_later_is_assumed_or_refused(load: str) -> None:
    body = WHERE + load.format("%rd4") + "\nst.global.u32 [%rd4], %r9;"
    proof = proved(body)
    assert proof.reach is Reach.ALL_DATA
    assert any(each.startswith("what ld.global.nc") for each in proof.assumed)
    assert conditions(proved(body, model="ptx")) == {"memory"}
