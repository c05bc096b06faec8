# ruff: noqa: E501 - programs read better with a line each
"""mbarriers, bulk copies, tensor maps and wgmma: what they compute and what they order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.ptx.litmus import Litmus, in_line
from tests.tools import is_here

from warploom import ptx
from warploom.errors import DeviceError
from warploom.ptx.emulate.asked import EngineName
from warploom.ptx.findings import race_findings

HEAD = """.version 8.4
.target sm_90a
.address_size 64
.visible .entry k({parameters})
{{ .reg .pred %p<6>; .reg .b32 %t, %r<20>, %s, %m; .reg .b64 %l<20>; .reg .f32 %f<130>; .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; mov.u32 %s, tile; mov.u32 %m, bar; setp.eq.u32 %p1, %t, 0;
{body}
ret; }}
"""
WAIT = "W{n}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], {parity}; @!%p2 bra W{n};"


def run(body: str, args: list[Any], threads: int = 32, **options: Any) -> ptx.Report:
    kinds = ", ".join(
        f".param .align 64 .b8 p{i}[128]" if isinstance(a, ptx.TensorMap) else f".param .u64 p{i}"
        for i, a in enumerate(args)
    )
    kernel = ptx.load(HEAD.format(parameters=kinds, body=body), "k.ptx").kernel("k")
    return kernel.launch(1, threads, args, **options)


def test_phases_of_a_barrier() -> None:
    """What was seen on an H200: arrivals, bytes before and after they are expected."""
    steps = [
        "mbarrier.init.shared.b64 [bar], 3;",
        "mbarrier.arrive.shared.b64 %l1, [bar]; mbarrier.pending_count.b64 %r1, %l1;",
    ]
    body = "ld.param.u64 %l9, [p0];\n" + "\n".join(steps)
    body += "\nst.global.u32 [%l9], %r1;\n"
    checks = [
        ("", "%l1"), ("mbarrier.arrive.noComplete.shared.b64 %l2, [bar], 1;", "%l1"), ("mbarrier.arrive.shared.b64 %l2, [bar];", "%l1"),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 100; mbarrier.arrive.shared.b64 %l3, [bar], 3;", "%l3"),
        ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 60;", "%l3"), ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 40;", "%l3"),
    ]  # fmt: skip
    for number, (text, token) in enumerate(checks):
        body += f"{text} mbarrier.test_wait.shared.b64 %p2, [bar], {token}; selp.u32 %r2, 1, 0, %p2; st.global.u32 [%l9+{4 + 4 * number}], %r2;\n"
    out = np.full(8, 9, np.uint32)
    run(body, [out], threads=1)
    assert out.tolist()[:7] == [3, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mbarrier.arrive.shared.b64 %l1, [bar];", "nobody initialised it"),
        ("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 %l1, [bar], 2;", "1 arrivals more"),
        ("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.noComplete.shared.b64 %l1, [bar], 1;", "completes the phase"),
        ("mbarrier.init.shared.b64 [bar], 0;", "for 0 arrivals"),
    ],
)  # fmt: skip
def test_what_a_barrier_refuses(body: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        run(body, [], threads=1)


BEGIN = "@%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;\n"


def test_bulk_copies_in_and_out() -> None:
    source, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    body = BEGIN + (
        "ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1];\n"
        "@!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 512;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%l1], 512, [bar];\nJ:\n" + WAIT.format(n=0, parity=0) + "\n"
        "mul.lo.u32 %r1, %t, 16; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1]; add.u32 %r2, %r2, 1000; st.shared.u32 [%r1], %r2;\n"
        "fence.proxy.async.shared::cta; bar.sync 0;\n"
        "@!%p1 bra E; cp.async.bulk.global.shared::cta.bulk_group [%l2], [tile], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nE:"
    )  # fmt: skip
    report = run(body, [source, out], races="all")
    assert not report.races
    want = source[:128] + np.where(np.arange(128) % 4 == 0, 1000, 0)
    assert np.array_equal(out[:128], want)
    assert not out[128:].any()
    unfenced = run(body.replace("fence.proxy.async.shared::cta; ", ""), [source, out], races="all")
    assert {race.second.words for race in unfenced.races} == {"asynchronous read"}


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_boxes_of_a_tensor(swizzle: int) -> None:
    """A box inside, across every edge and outside; rows are swizzled, what is outside is zero."""
    array = np.arange(40 * 72, dtype=np.uint16).reshape(40, 72).view(np.float16)
    side = min(64, swizzle // 2) if swizzle else 24
    box = (16, side)
    for x, y in ((0, 0), (8, 3), (64, 30), (-8, -3), (72, 39), (-104, 0)):
        out = np.zeros(16 * side, np.uint16)
        body = BEGIN + (
            "ld.param.u64 %l2, [p1]; mov.b64 %l4, p0; cvta.param.u64 %l5, %l4;\n"
            f"@!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], {32 * side};\n"
            f"mov.u32 %r4, {x}; mov.u32 %r5, {y}; cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%l5, {{%r4, %r5}}], [bar];\nJ:\n"
            + WAIT.format(n=0, parity=0)
            + f"\nmov.u32 %r1, %t;\nL: shl.b32 %r2, %r1, 1; add.u32 %r3, %s, %r2; ld.shared.u16 %r6, [%r3]; cvt.u64.u32 %l6, %r2; add.u64 %l6, %l2, %l6; st.global.u16 [%l6], %r6;\n"
            f"add.u32 %r1, %r1, 32; setp.lt.u32 %p3, %r1, {16 * side}; @%p3 bra L;"
        )  # fmt: skip
        body = (
            body.replace("ld.shared.u16 %r6", "ld.shared.u16 %h1")
            .replace("[%l6], %r6", "[%l6], %h1")
            .replace("mov.u32 %r1, %t;\nL", ".reg .b16 %h1; mov.u32 %r1, %t;\nL")
        )
        report = run(body, [ptx.tensor_map(array, box, swizzle), out], races="all")
        assert not report.races
        wide = np.zeros((40 + 400, 72 + 400), np.uint16)
        wide[200:240, 200:272] = array.view(np.uint16)
        want = wide[200 + y : 216 + y, 200 + x : 200 + x + side].reshape(-1)
        place = np.arange(16 * side) * 2
        if swizzle:
            place ^= ((place >> 7) & (swizzle // 16 - 1)) << 4
        assert np.array_equal(out[place // 2], want), (x, y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_lies_outside_is_a_half_of_one_kind(dtype: type) -> None:
    """As an H200 fills it: 0x7ff7 again and again, in floats and doubles too."""
    out = np.zeros(128, np.uint16)
    body = BEGIN + (
        "ld.param.u64 %l2, [p1]; mov.b64 %l4, p0; cvta.param.u64 %l5, %l4;\n"
        "@!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 256;\n"
        "mov.u32 %r4, 0; mov.u32 %r5, -1; cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%l5, {%r4, %r5}], [bar];\nJ:\n"
        + WAIT.format(n=0, parity=0)
        + "\nshl.b32 %r1, %t, 3; add.u32 %r2, %s, %r1; ld.shared.u64 %l6, [%r2]; cvt.u64.u32 %l7, %r1; add.u64 %l7, %l2, %l7; st.global.u64 [%l7], %l6;"
    )  # fmt: skip
    side = 128 // np.dtype(dtype).itemsize
    array: npt.NDArray[Any] = np.ones((4, side), dtype)
    run(body, [ptx.tensor_map(array, (2, side), nan_outside=True), out])
    assert (out[:64] == 0x7FF7).all()
    assert out[64:].view(dtype).tolist() == [1] * side


STORE = """mov.b64 %l4, p0; cvta.param.u64 %l5, %l4; add.u32 %r1, %t, 1; mad.lo.u32 %r2, %t, 4, %s; st.shared.u32 [%r2], %r1;
fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %r4, {x}; mov.u32 %r5, {y};
@!%p1 bra E; cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%l5, {{%r4, %r5}}], [tile]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
E:"""


def test_stores_of_boxes_end_at_the_array_and_do_not_begin_before_it() -> None:
    """An H200 takes the one and ends the kernel at the other (bench/ptx/tensor_store_device.py)."""
    for x, y in ((0, 0), (4, 3), (8, 5), (0, 7)):
        array, wide = np.zeros((6, 12), np.uint32), np.zeros((20, 30), np.uint32)
        run(STORE.format(x=x, y=y), [ptx.tensor_map(array, (4, 8))])
        wide[y : y + 4, x : x + 8] = np.arange(1, 33).reshape(4, 8)
        assert np.array_equal(array, wide[:6, :12])
    for x, y in ((-4, 0), (0, -1), (-8, -4)):
        with pytest.raises(DeviceError, match="begins before the array"):
            run(STORE.format(x=x, y=y), [ptx.tensor_map(np.zeros((6, 12), np.uint32), (4, 8))])


# -- wgmma ------------------------------------------------------------------------------------


def product(
    kind: str, columns: int, mode: int, scale: str = "1, 1", turned: tuple[int, int] = (0, 0),
    engine: EngineName = "numpy",
) -> np.ndarray:  # fmt: skip
    """D - A·B of one warpgroup on small whole numbers: zero where all is right."""
    rng = np.random.default_rng(1)
    size = {"f16": 2, "tf32": 4, "s8": 1}[kind]
    depth = 32 // size
    dtype = {"f16": np.float16, "tf32": np.float32, "s8": np.int8}[kind]
    a, b = rng.integers(-3, 4, (64, depth)), rng.integers(-3, 4, (columns, depth))
    span = {0: 16, 1: 128, 2: 64, 3: 32}[mode]
    memory = np.zeros(16384, np.uint8)
    strides = []
    for start, matrix, trans in ((0, a, turned[0]), (8192, b, turned[1])):
        rows = matrix.shape[0]
        lead, stride = (128, 256) if mode == 0 else (0, 8 * span)
        if trans:
            lead, stride = (
                (rows * 16, 128) if mode == 0 else (1024 if span == 128 else 16 * span, 8 * span)
            )
            if mode:
                lead, stride = 2 * 8 * span, 8 * span
        strides.append((lead, stride))
        for r in range(rows):
            for k in range(depth):
                if trans and mode == 0:
                    at = r * size // 16 * stride + k // 8 * lead + k % 8 * 16 + r * size % 16
                elif trans:
                    at = r * size // span * lead + k // 8 * stride + k % 8 * span + r * size % span
                elif mode == 0:
                    at = r // 8 * stride + k * size // 16 * lead + r % 8 * 16 + k * size % 16
                else:
                    at = r // 8 * stride + r % 8 * span + k * size
                at += start
                at ^= (at >> 7 & span // 16 - 1) << 4
                memory[at : at + size] = np.array([matrix[r, k]], dtype).view(np.uint8)
    descriptors = [
        (start >> 4) | (lead >> 4) << 16 | (stride >> 4) << 32 | mode << 62
        for start, (lead, stride) in zip((0, 8192), strides, strict=True)
    ]
    result = "s32" if kind == "s8" else "f32"
    bank = "r" if kind == "s8" else "f"
    many = "{" + ", ".join(f"%{bank}{20 + i}" for i in range(columns // 2)) + "}"
    tail = {"f16": f", {scale}, {turned[0]}, {turned[1]}", "tf32": f", {scale}", "s8": ""}[kind]
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{result}.{kind}.{kind}"
    body = ".reg .b32 %r<160>;\n" if kind == "s8" else ""
    body = (
        "ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1];\nmov.u32 %r1, %t;\n"
        "L: shl.b32 %r2, %r1, 4; cvt.u64.u32 %l3, %r2; add.u64 %l4, %l1, %l3; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%l4]; add.u32 %r7, %s, %r2; st.shared.v4.u32 [%r7], {%r3, %r4, %r5, %r6};\n"
        "add.u32 %r1, %r1, 128; setp.lt.u32 %p3, %r1, 1024; @%p3 bra L;\nfence.proxy.async.shared::cta; bar.sync 0;\n"
        f"cvt.u64.u32 %l5, %s; shr.u64 %l5, %l5, 4; add.u64 %l6, %l5, {descriptors[0]}; add.u64 %l7, %l5, {descriptors[1]}; setp.ne.u32 %p4, 0, 0;\n"
        f"wgmma.fence.sync.aligned; {name} {many}, %l6, %l7, %p4{tail}; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
        f"mad.wide.u32 %l8, %t, {columns * 2}, %l2;\n"
        + "".join(f"st.global.b32 [%l8+{4 * i}], %{bank}{20 + i};\n" for i in range(columns // 2))
    )  # fmt: skip
    out = np.zeros((128, columns // 2), np.int32 if kind == "s8" else np.float32)
    text = HEAD.replace("%r<20>", "%r<160>").replace("%f<130>", "%f<160>")
    kernel = ptx.load(
        text.format(parameters=".param .u64 p0, .param .u64 p1", body=body), "k.ptx"
    ).kernel("k")
    report = kernel.launch(
        1, 128, [memory, out], races="all" if engine == "numpy" else False, engine=engine
    )
    assert not report.races
    assert report.engine == engine
    made = np.zeros((64, columns))
    for thread in range(128):
        for i in range(columns // 2):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
            made[row, 8 * (i // 4) + 2 * (thread % 4) + i % 2] = out[thread, i]
    sign = -1 if scale.startswith("-1") else 1
    return made - sign * (a @ b.T)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_products_of_a_warpgroup(mode: int) -> None:
    for kind, columns in (("f16", 8), ("f16", 64), ("tf32", 16), ("s8", 32)):
        assert not product(kind, columns, mode).any(), (kind, columns)
    assert not product("f16", 16, mode, scale="-1, 1").any()


def test_transposed_operands() -> None:
    assert not product("f16", 64, 1, turned=(1, 1)).any()
    assert not product("f16", 16, 0, turned=(1, 1)).any()


@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
def test_products_of_a_warpgroup_as_c() -> None:
    assert not product("f16", 8, 1, turned=(1, 1), engine="c").any()
    assert not product("tf32", 8, 3, scale="-1, 1", engine="c").any()


@pytest.mark.slow
@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_more_products_of_a_warpgroup_as_c(mode: int) -> None:
    for kind, columns in (("f16", 8), ("f16", 64), ("tf32", 16)):
        assert not product(kind, columns, mode, engine="c").any(), (kind, columns)
    assert not product("f16", 16, mode, scale="-1, 1", engine="c").any()
    assert not product("f16", 16, 0, turned=(1, 1), engine="c").any()


def test_results_that_nobody_waited_for() -> None:
    text = HEAD.format(
        parameters=".param .u64 p0",
        body="ld.param.u64 %l1, [p0]; mov.u64 %l2, 0; setp.ne.u32 %p4, 0, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %l2, %l2, %p4, 1, 1, 0, 0;\n"
        "wgmma.commit_group.sync.aligned; st.global.f32 [%l1], %f0;",
    )
    zero = (
        "mul.lo.u32 %r1, %t, 128; add.u32 %r1, %r1, %s;"
        + "".join(f" st.shared.u64 [%r1+{8 * i}], 0;" for i in range(16))
        + "\nfence.proxy.async.shared::cta; bar.sync 0;\nld.param.u64 %l1"
    )
    text = text.replace("ld.param.u64 %l1", zero, 1)
    kernel = ptx.load(text, "k.ptx").kernel("k")
    with pytest.raises(DeviceError, match="has not been waited for"):
        kernel.launch(1, 128, [np.zeros(4, np.float32)])
    assert "may not have been waited for" in kernel.why_not_fast()
    text = text.replace(
        "commit_group.sync.aligned;", "commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    )
    kernel = ptx.load(text, "k.ptx").kernel("k")
    kernel.launch(1, 128, [np.zeros(4, np.float32)])
    assert not kernel.why_not_fast()
    newer = text.replace("wgmma.wait_group.sync.aligned 0", "wgmma.wait_group.sync.aligned 1")
    assert "may not have been waited for" in ptx.load(newer, "k.ptx").kernel("k").why_not_fast()


def test_a_base_offset_is_refused() -> None:
    """The field of a descriptor that nothing here follows."""
    text = HEAD.format(
        parameters="",
        body="mov.u64 %l2, 0x2000000000000; setp.ne.u32 %p4, 0, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %l2, %l2, %p4, 1, 1, 0, 0;",
    )
    with pytest.raises(DeviceError, match="base offset"):
        ptx.load(text, "k.ptx").kernel("k").launch(1, 128, [])


# -- order: numbers of the list of verdicts that need these ---------------------------------------

INIT = "@%p1 mbarrier.init.shared.b64 [s+128], 1; bar.sync 0;\n"
ASK = "M{n}: mbarrier.test_wait.parity{how}.shared.b64 %p4, [s+128], 0; @!%p4 bra M{n};"


def asked(text: str) -> str:
    return f"@!%p2 bra Q;\n{text}\nQ:"


ORDER = [
    (36, INIT + "@%p1 st.shared.u32 [%D], %v; @%p1 mbarrier.arrive.shared.b64 %x1, [s+128];\n" + asked(ASK.format(n=0, how="") + " ld.shared.u32 %r2, [%D];"), ""),
    (360, INIT + "@%p1 st.shared.u32 [%D], %v; @%p1 mbarrier.arrive.relaxed.cluster.shared.b64 %x1, [s+128];\n" + asked(ASK.format(n=0, how="") + " ld.shared.u32 %r2, [%D];"), "D"),
    (37, INIT + "@%p1 mbarrier.arrive.shared.b64 %x1, [s+128]; @%p1 st.shared.u32 [%D], %v;\n" + asked(ASK.format(n=0, how="") + " ld.shared.u32 %r2, [%D];"), "D"),
    (41, INIT + "ld.param.u64 %x0, [a]; add.u64 %x0, %x0, 128;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 %x1, [s+128], 16; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%x0], 16, [s+128];\n" + asked(ASK.format(n=0, how="") + " ld.shared.u32 %r2, [%D];"), ""),
    (410, INIT + "ld.param.u64 %x0, [a]; add.u64 %x0, %x0, 128;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 %x1, [s+128], 32; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%x0], 16, [s+128];\n@%p2 ld.shared.u32 %r2, [%D];", "D"),
    (42, "ld.param.u64 %x0, [a]; add.u64 %x0, %x0, 128;\n" + in_line("st.shared.v4.u32 [%D], {%v, %v, %v, %v};", "bar.sync 0;", "cp.async.bulk.global.shared::cta.bulk_group [%x0], [s], 16;"), "D"),
    (43, "ld.param.u64 %x0, [a]; add.u64 %x0, %x0, 128;\n" + in_line("st.shared.v4.u32 [%D], {%v, %v, %v, %v};", "fence.proxy.async.shared::cta; bar.sync 0;", "cp.async.bulk.global.shared::cta.bulk_group [%x0], [s], 16;"), ""),
    # A strict reading of 44 wants a fence between the ways; what everybody writes relies on the barrier alone.
    (44, INIT + "ld.param.u64 %x0, [a]; add.u64 %x0, %x0, 128;\n@%p2 ld.shared.u32 %r2, [%D];\nbar.sync 0;\n" + "@%p1 mbarrier.arrive.expect_tx.shared.b64 %x1, [s+128], 16; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%x0], 16, [s+128];\n", ""),
    (440, INIT + "ld.param.u64 %x0, [a]; add.u64 %x0, %x0, 128;\n@%p2 ld.shared.u32 %r2, [%D];\n" + "@%p1 mbarrier.arrive.expect_tx.shared.b64 %x1, [s+128], 16; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%x0], 16, [s+128];\n", "D"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "body", "races"), ORDER, ids=[str(each[0]) for each in ORDER])
def test_verdicts(number: int, body: str, races: str) -> None:
    assert Litmus(number, "B", "shared", body, frozenset(races), "").found() == set(races)


@pytest.mark.parametrize(("wait", "races"), [("wait_group.read 0", {"D"}), ("wait_group 0", set())])
def test_a_bulk_store_is_seen_after_a_full_wait(wait: str, races: set[str]) -> None:
    """Number 50: with .read only the source is free again."""
    body = (
        "@%p1 bra A; @%p2 bra B; bra E;\n"
        "A: st.shared.v4.u32 [s], {%v, %v, %v, %v}; fence.proxy.async.shared::cta; cp.async.bulk.global.shared::cta.bulk_group [%D], [s], 16; cp.async.bulk.commit_group;\n"
        f"cp.async.bulk.{wait}; st.release.gpu.global.u32 [%F], 1; bra E;\n"
        "B: ld.acquire.gpu.global.u32 %r1, [%F]; setp.ne.u32 %p4, %r1, 1; @%p4 bra B; ld.global.u32 %r2, [%D]; bra E;"
    )
    assert Litmus(50, "G", "global", body, frozenset(), "").found() == races


GROUP = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %l2, %l2, %p4, "


@pytest.mark.parametrize("tail", ["2, 1, 0, 0", "1, 0, 0, 0", "1, 1, 2, 0"])
def test_signs_and_transpositions_of_a_product_are_read(tail: str) -> None:
    """ptxas takes no others."""
    body = f"mov.u64 %l2, 0; setp.ne.u32 %p4, 0, 0;\n{GROUP}{tail};"
    text = HEAD.format(parameters="", body=body)
    with pytest.raises(DeviceError, match="signs are 1 or -1, and transpositions 0 or 1"):
        ptx.load(text, "k.ptx").kernel("k").launch(1, 128, [])


@pytest.mark.parametrize("threads", [96, 160])
def test_a_warpgroup_has_four_warps(threads: int) -> None:
    zero = "".join(f" st.shared.u64 [%r1+{8 * i}], 0;" for i in range(16))
    body = (
        f"mul.lo.u32 %r1, %t, 8; add.u32 %r1, %r1, %s; {zero}\nfence.proxy.async.shared::cta; "
        f"bar.sync 0; mov.u64 %l2, 0; setp.ne.u32 %p4, 0, 0;\n{GROUP}1, 1, 0, 0;"
    )
    kernel = ptx.load(HEAD.format(parameters="", body=body), "k.ptx").kernel("k")
    kernel.launch(1, 128, [])
    for engine in ("numpy", "c") if is_here("c") else ("numpy",):
        with pytest.raises(DeviceError, match=f"block of {threads} threads has no whole warpgroup"):
            kernel.launch(1, threads, [], engine=engine)


# -- what is said of a missing fence ---------------------------------------------------------------

STORE_TILE = """ld.param.u64 %l1, [p0]; mul.lo.u32 %r1, %t, 4; add.u32 %r1, %r1, %s;
st.shared.u32 [%r1], %t;
st.shared.u32 [%r1+128], %t;
// FENCE
bar.sync 0;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%l1], [tile], 256;
@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"""


def test_a_missing_fence_is_one_finding() -> None:
    """Two stores and one copy lack one fence: one finding, which names it, both lines and the
    array. Without the barrier it is a race, which a fence would not mend."""
    text = HEAD.format(parameters=".param .u64 p0", body=STORE_TILE)
    module = ptx.load(text, "k.ptx")
    report = module.kernel("k").launch(1, 32, [np.zeros(64, np.uint32)], races="all")
    (found,) = race_findings(module, report.races)
    assert found.error.message == (
        "missing fence: generic-proxy write at line 8, async-proxy read at line 12: "
        "fence.proxy.async is missing between them (2 pairs of instructions of these lines)"
    )
    assert found.error.advice.startswith("both touch byte 0 of shared array 'tile'; put fence")
    assert (found.error.span and found.error.span.line, found.other and found.other.line) == (12, 8)
    fenced = ptx.load(text.replace("// FENCE", "fence.proxy.async;"), "k.ptx").kernel("k")
    assert fenced.launch(1, 32, [np.zeros(64, np.uint32)], races="all").races == []
    bare = ptx.load(
        text.replace("// FENCE", "fence.proxy.async;").replace("bar.sync 0;", ""), "k.ptx"
    )
    races = bare.kernel("k").launch(1, 32, [np.zeros(64, np.uint32)], races="all").races
    assert races
    assert all("nothing orders them" in each.error.message for each in race_findings(bare, races))


def test_an_arrival_after_copies_comes_when_somebody_waits() -> None:
    """Until then the phase may be incomplete, however soon the copies are done."""
    body = (
        "@%p1 mbarrier.init.shared.b64 [bar], 33; bar.sync 0; ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1];\n"
        "shl.b32 %r1, %t, 2; cvt.u64.u32 %l3, %r1; add.u64 %l4, %l1, %l3; add.u32 %r2, %s, %r1; cp.async.ca.shared.global [%r2], [%l4], 4;\n"
        "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; bar.sync 0;\n"
        "@%p1 mbarrier.arrive.shared.b64 %l5, [bar]; mbarrier.pending_count.b64 %r3, %l5; @%p1 st.global.u32 [%l2+128], %r3;\n"
        + WAIT.format(n=0, parity=0)
        + "\nld.shared.u32 %r4, [%r2]; add.u64 %l6, %l2, %l3; st.global.u32 [%l6], %r4;"
    )
    source, out = np.arange(32, dtype=np.uint32), np.zeros(33, np.uint32)
    assert not run(body, [source, out], races="all").races
    assert out.tolist() == [*range(32), 33]
