# ruff: noqa: E501 - programs read better with a line each
"""st.async, red.async and cp.reduce.async.bulk: what they compute, and when it is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import KernelError
from warploom.ptx.findings import race_findings

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k({parameters})
{{ .reg .pred %p<6>; .reg .b32 %t, %c, %r<20>; .reg .b64 %l<9>; .shared .align 128 .b8 s[512]; .shared .align 8 .b64 bar;
ld.param.u64 %l1, [p0]; mov.u32 %t, %tid.x; mov.u32 %c, %cluster_ctarank; setp.eq.u32 %p1, %t, 0; mov.u32 %r1, s; mov.u32 %r2, bar;
{body}
ret; }}
"""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
# Each block of two sends to the other one, whose mbarrier counts 128 bytes.
SEND = f"""mul.lo.u32 %r3, %t, 4; add.u32 %r4, %r1, %r3; st.shared.u32 [%r4], 5;
@%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; {MEET}
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
xor.b32 %r5, %c, 1; mapa.shared::cluster.u32 %r6, %r4, %r5; mapa.shared::cluster.u32 %r7, %r2, %r5; add.u32 %r8, %t, 100;
SENDING
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
ld.shared.u32 %r9, [%r4];
mad.lo.u32 %r10, %c, 128, %r3; cvt.u64.u32 %l2, %r10; add.u64 %l2, %l2, %l1; st.global.u32 [%l2], %r9; {MEET}"""
END = "shared::cluster.mbarrier::complete_tx::bytes"


def launched(body: str, args: list[Any], threads: int, **options: Any) -> tuple[Any, ptx.Report]:
    kinds = ", ".join(
        f".param .align 64 .b8 p{i}[128]" if isinstance(a, ptx.TensorMap) else f".param .u64 p{i}"
        for i, a in enumerate(args)
    )
    module = ptx.load(HEAD.format(parameters=kinds, body=body), "k.ptx")
    report = module.kernel("k").launch(
        options.pop("grid", 1), threads, args, races="all", **options
    )
    return module, report


@pytest.mark.parametrize(
    ("sending", "want"),
    [
        (f"st.async.weak.{END}.u32 [%r6], %r8, [%r7];", lambda t: 100 + t),
        (f"red.async.relaxed.cluster.{END}.add.u32 [%r6], %r8, [%r7];", lambda t: 105 + t),
        (f"red.async.relaxed.cluster.{END}.max.s32 [%r6], %t, [%r7];", lambda t: np.maximum(t, 5)),
        (f"red.async.relaxed.cluster.{END}.inc.u32 [%r6], %t, [%r7];", lambda t: np.where(t <= 5, 0, 6)),
        (f"red.async.relaxed.cluster.{END}.xor.b32 [%r6], %t, [%r7];", lambda t: t ^ 5),
    ],
)  # fmt: skip
def test_what_is_sent_to_the_other_block(sending: str, want: Any) -> None:
    out = np.zeros(64, np.uint32)
    _, report = launched(SEND.replace("SENDING", sending), [out], 32, grid=2, cluster=2)
    assert np.array_equal(out, np.tile(want(np.arange(32)), 2))
    assert report.races == []


def test_a_store_that_nobody_waited_for() -> None:
    body = SEND.replace("SENDING", f"st.async.weak.{END}.u32 [%r6], %r8, [%r7];")
    body = body.replace("W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\n", "")
    module, report = launched(body, [np.zeros(64, np.uint32)], 32, grid=2, cluster=2)
    found = race_findings(module, report.races)
    assert {each.error.span.line for each in found if each.error.span} == {12}
    assert all("'s'" in each.error.advice for each in found)


FILL = "mul.lo.u32 %r3, %t, 4; add.u32 %r4, %r1, %r3; st.shared.u32 [%r4], VALUE; fence.proxy.async; bar.sync 0;\n"
OUT = "cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%l1], [s], 128;"
DONE = "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"


@pytest.mark.parametrize(
    ("op", "dtype", "reduce"),
    [
        ("add.u32", np.uint32, lambda a, b: a + b), ("min.s32", np.int32, np.minimum),
        ("max.u32", np.uint32, np.maximum), ("and.b32", np.uint32, np.bitwise_and),
        ("add.u64", np.uint64, lambda a, b: a + b), ("add.f32", np.float32, lambda a, b: a + b),
        ("add.noftz.f16", np.float16, lambda a, b: a + b),
        ("dec.u32", np.uint32, lambda a, b: np.where((a == 0) | (a > b), b, a - 1)),
    ],
)  # fmt: skip
def test_bulk_reductions_of_both_blocks(op: str, dtype: Any, reduce: Any) -> None:
    """Reductions of two blocks meet at one place, which is no race."""
    start = np.arange(64, dtype=np.float32).view(dtype).copy()[: 128 // np.dtype(dtype).itemsize]
    given = np.full(32, 0x40400000, np.uint32).view(dtype)  # 3.0
    out = start.copy()
    body = FILL.replace("VALUE", str(0x40400000)) + "@%p1 " + OUT.format(op=op) + DONE
    _, report = launched(body, [out], 32, grid=2)
    with np.errstate(all="ignore"):
        want = reduce(reduce(start, given), given).astype(dtype)
    assert out.tobytes() == want.tobytes()
    assert report.races == []


def test_sums_flush_subnormal_numbers() -> None:
    out = np.array([1e-40] * 32, np.float32)
    launched(FILL.replace("VALUE", "0") + "@%p1 " + OUT.format(op="add.f32") + DONE, [out], 32)
    assert not out.any()


def test_a_reduction_is_no_plain_access() -> None:
    """With a plain read of another block it races; what a fence lacks is said so."""
    out = np.zeros(32, np.uint32)
    read = "setp.eq.u32 %p3, %ctaid.x, 1; @%p3 ld.global.u32 %r9, [%l1]; @%p3 st.shared.u32 [s], %r9;\n"
    body = FILL.replace("VALUE", "77") + "@%p1 " + OUT.format(op="add.u32") + DONE
    assert launched(read + body, [out], 32, grid=2)[1].races != []
    module, report = launched(body.replace("fence.proxy.async; ", ""), [out], 32)
    assert "fence.proxy.async is missing" in race_findings(module, report.races)[0].error.message


@pytest.mark.parametrize("kind", ["", "bf16"])
def test_reductions_by_a_tensor_map(kind: str) -> None:
    """The type of the elements is the map's; what lies outside stays as it is."""
    array = np.full((4, 40), 0x4000 if kind else 3, np.uint16 if kind else np.int32)  # 2.0
    value = str(0x40404040) if kind else "4"  # 3.0 twice
    box = (4, 16) if kind else (4, 8)
    body = "ld.param.u64 %l2, [p1];\n" + FILL.replace("VALUE", value) + (
        "mov.b64 %l3, p0; mov.u32 %r5, 32; mov.u32 %r6, 0;\n"
        "@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%l3, {%r5, %r6}], [s];" + DONE
    )  # fmt: skip
    text = body.replace("ld.param.u64 %l1, [p0];", "")
    args = [ptx.tensor_map(array, box, kind=kind), np.zeros(4, np.uint32)]
    before = array.copy()
    head = HEAD.replace("ld.param.u64 %l1, [p0];", "")
    kinds = ".param .align 64 .b8 p0[128], .param .u64 p1"
    ptx.load(head.format(parameters=kinds, body=text), "k.ptx").kernel("k").launch(1, 32, args)
    assert np.array_equal(array[:, :32], before[:, :32])
    assert (array[:, 32:40] == (0x40A0 if kind else 7)).all()  # 5.0


def test_reductions_that_no_element_has() -> None:
    array = np.zeros((4, 40), np.float32)
    body = FILL.replace("VALUE", "0") + (
        "mov.b64 %l3, p0; mov.u32 %r6, 0;\n"
        "@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group [%l3, {%r6, %r6}], [s];"
    )
    head = HEAD.replace("ld.param.u64 %l1, [p0];", "")
    text = head.format(parameters=".param .align 64 .b8 p0[128]", body=body)
    with pytest.raises(KernelError, match="elements of type f32 have no reduction 'xor'"):
        ptx.load(text, "k.ptx").kernel("k").launch(1, 32, [ptx.tensor_map(array, (4, 8))])
