"""Kernels of what came with Hopper, for a GPU and the emulator: wmma and wgmma on hard inputs,
tensor maps, bulk copies, mbarriers, clusters. Everything that they compute is in their arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from bench.common.ptx.matrix_kernels import HEAD, WIDTH, hard_codes, packed
from bench.ptx.launches import Job

from warploom import ptx

# -- wmma -------------------------------------------------------------------------------------------

# shape, type of factors, of results, registers of a, b, c, warps of a kernel
WMMA = (
    ((16, 16, 16), "f16", "f32", 8, 8, 8, 256), ((8, 32, 16), "f16", "f32", 8, 8, 8, 256),
    ((32, 8, 16), "f16", "f16", 8, 8, 4, 256), ((16, 16, 16), "f16", "f16", 8, 8, 4, 256),
    ((16, 16, 16), "bf16", "f32", 4, 4, 8, 256), ((8, 32, 16), "bf16", "f32", 2, 8, 8, 128),
    ((32, 8, 16), "bf16", "f32", 8, 2, 8, 128), ((16, 16, 8), "tf32", "f32", 4, 4, 8, 512),
    ((16, 16, 16), "s8", "s32", 2, 2, 8, 256), ((32, 8, 16), "s8", "s32", 4, 1, 8, 256),
    ((16, 16, 16), "u8", "s32", 2, 2, 8, 256), ((8, 32, 16), "u8", "s32", 1, 4, 8, 256),
    ((8, 8, 4), "f64", "f64", 1, 1, 2, 2080),
)  # fmt: skip


def wmma() -> Iterator[Job]:
    for number, ((m, n, k), kind, total, held_a, held_b, held_c, warps) in enumerate(WMMA):
        rng = np.random.default_rng(100 + number)
        bits = WIDTH[kind], WIDTH[total]
        sizes = (m * k, k * n, m * n)
        codes = [
            hard_codes(kind, (warps, m * k), rng, far=False),
            hard_codes(kind, (warps, k * n), rng, far=False),
            hard_codes(total, (warps, m * n), rng, far=True),
        ]
        half = k // 2  # sums that cancel, in an eighth of the warps
        a, b = codes[0].reshape(warps, m, k), codes[1].reshape(warps, k, n)
        a[::8, :, half:] = a[::8, :, :half] ^ np.uint64(1 << bits[0] - 1)
        b[::8, half:] = b[::8, :half]
        arrays = [packed(each, t) for each, t in zip(codes, (kind, kind, total), strict=True)]
        apart = [
            size * width // 8 for size, width in zip(sizes, (*bits[:1] * 2, bits[1]), strict=True)
        ]
        types = f"{total}.{total}" if kind == "f16" else f"{total}.{kind}.{kind}.{total}"
        bank = "g" if kind == "f64" else "r"
        sums = {"f32": "f", "f64": "g"}.get(total, "r")
        lists = [
            "{" + ", ".join(f"%{which}{first + i}" for i in range(count)) + "}"
            for which, first, count in (
                (bank, 4, held_a),
                (bank, 4 + held_a, held_b),
                (sums, 20, held_c),
            )
        ]
        for la, lb, lc in product(("row", "col"), repeat=3):
            shape = f"m{m}n{n}k{k}"
            strides = (k if la == "row" else m, n if lb == "row" else k, n if lc == "row" else m)
            name = f"wmma_{shape}_{kind}_{total}_{la}_{lb}_{lc}"
            more = ".satfinite" if kind[1:] == "8" and la == "col" else ""
            text = f"""{HEAD}.visible .entry {name}(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{{ .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .f64 %g<40>; .reg .b64 %p<9>; .reg .b32 %w<9>;
mov.u32 %w0, %ctaid.x; mov.u32 %w1, %ntid.x; mov.u32 %w2, %tid.x; mad.lo.u32 %w0, %w0, %w1, %w2; shr.u32 %w0, %w0, 5;
ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c]; ld.param.u64 %p3, [d];
mad.wide.u32 %p0, %w0, {apart[0]}, %p0; mad.wide.u32 %p1, %w0, {apart[1]}, %p1; mad.wide.u32 %p2, %w0, {apart[2]}, %p2; mad.wide.u32 %p3, %w0, {apart[2]}, %p3;
wmma.load.a.sync.aligned.{la}.{shape}.global.{kind} {lists[0]}, [%p0], {strides[0]};
wmma.load.b.sync.aligned.{lb}.{shape}.global.{kind} {lists[1]}, [%p1], {strides[1]};
wmma.load.c.sync.aligned.{lc}.{shape}.global.{total} {lists[2]}, [%p2], {strides[2]};
wmma.mma.sync.aligned.{la}.{lb}.{shape}.{types}{more} {lists[2]}, {lists[0]}, {lists[1]}, {lists[2]};
wmma.store.d.sync.aligned.{lc}.{shape}.global.{total} [%p3], {lists[2]}, {strides[2]};
ret; }}
"""
            args = [*arrays, np.zeros_like(arrays[2])]
            yield Job(name, text, name, (warps // 4,), (128,), args,
                      products=(f"wmma {kind}", warps * m * n))  # fmt: skip


# -- wgmma ------------------------------------------------------------------------------------------

_PAIRS = ("e4m3", "e5m2")
FORMS = (
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
    *((total, a, b) for total in ("f32", "f16") for a in _PAIRS for b in _PAIRS),
    *(("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
)  # fmt: skip
# swizzle of descriptors, columns, whether a is in registers, whether each factor is transposed
VARIANTS = (
    (0, 64, False, (0, 0)), (1, 128, False, (0, 0)), (2, 64, True, (0, 0)), (3, 32, False, (0, 0)),
    (1, 64, False, (1, 1)), (0, 32, False, (1, 0)), (2, 64, True, (0, 1)), (1, 256, True, (0, 0)),
    (3, 8, True, (0, 0)),
)  # fmt: skip
ROOM_A, ROOM_B = 8192, 32768
RESULTS = {"f16": 262144, "bf16": 262144, "tf32": 262144}
SPAN = {0: 16, 1: 128, 2: 64, 3: 32}


def descriptor(mode: int, rows: int, turned: int) -> int:
    """How parts of a matrix of `rows` rows lie: distances in units of sixteen bytes."""
    span = SPAN[mode]
    lead, stride = (128, 256) if mode == 0 else (16, 8 * span)
    if turned:
        lead, stride = (rows * 16, 128) if mode == 0 else (16 * span, 8 * span)
    return lead >> 4 << 16 | (stride >> 4) << 32 | mode << 62


def wgmma() -> Iterator[Job]:
    for number, (form, variant) in enumerate(product(FORMS, VARIANTS)):
        (total, a, b), (mode, columns, held, turned) = form, variant
        size = WIDTH[a] // 8
        if (turned != (0, 0) and size != 2) or (
            size == 2 and mode == 0 and turned == (0, 0) and held
        ):
            continue
        blocks = max(16, RESULTS.get(a, 131072) // (64 * columns))
        yield _wgmma(number, total, a, b, mode, columns, held, turned, blocks)


def _wgmma(
    number: int, total: str, a: str, b: str, mode: int, columns: int, held: bool,
    turned: tuple[int, int], blocks: int,
) -> Job:  # fmt: skip
    rng = np.random.default_rng(500 + number)
    size = WIDTH[a] // 8
    words = (ROOM_A + ROOM_B) // 4
    memory = np.concatenate(
        [packed(_cancelling(kind, hard_codes(kind, (blocks, room // size), rng, far=False), rng), kind).reshape(blocks, -1)
         for kind, room in ((a, ROOM_A), (b, ROOM_B))], axis=1)  # fmt: skip
    given = packed(hard_codes(a, (blocks, 128 * 4 * 4 // size), rng, far=False), a)
    sums = packed(hard_codes(total, (blocks, 64 * columns), rng, far=True), total)
    count = columns // (4 if total == "f16" else 2)
    depth = 32 // size
    whole = total == "s32"
    bank = "f" if total == "f32" else "r"
    many = "{" + ", ".join(f"%{bank}{20 + i}" for i in range(count)) + "}"
    left = "{%r10, %r11, %r12, %r13}" if held else "%l6"
    signs = ("1, 1", "-1, 1", "1, -1")[number % 3]
    iterations = f", {turned[1]}" if held else f", {turned[0]}, {turned[1]}"
    tail = "" if whole else f", {signs}" + (iterations if size == 2 else "")
    more = ".satfinite" if whole and number % 2 else ""
    name = f"wgmma_m64n{columns}k{depth}_{total}_{a}_{b}_mode{mode}{'_registers' if held else ''}_{turned[0]}{turned[1]}"
    ours = f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{total}.{a}.{b}{more}"
    text = f"""{HEAD}.visible .entry {name}(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
{{ .reg .pred %p<6>; .reg .b32 %t, %s, %r<160>; .reg .b64 %l<20>; .reg .f32 %f<160>; .shared .align 1024 .b8 tile[{ROOM_A + ROOM_B}];
mov.u32 %t, %tid.x; mov.u32 %s, tile; mov.u32 %r0, %ctaid.x;
ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1]; ld.param.u64 %l3, [p2]; ld.param.u64 %l4, [p3];
mad.wide.u32 %l1, %r0, {words * 4}, %l1; mov.u32 %r1, %t;
L: shl.b32 %r2, %r1, 4; cvt.u64.u32 %l5, %r2; add.u64 %l5, %l1, %l5; ld.global.v4.u32 {{%r3, %r4, %r5, %r6}}, [%l5]; add.u32 %r7, %s, %r2; st.shared.v4.u32 [%r7], {{%r3, %r4, %r5, %r6}};
add.u32 %r1, %r1, 128; setp.lt.u32 %p3, %r1, {words // 4}; @%p3 bra L;
mad.lo.u32 %r1, %r0, 128, %t; mad.wide.u32 %l2, %r1, 16, %l2; ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%l2];
mad.wide.u32 %l3, %r1, {4 * count}, %l3; mad.wide.u32 %l4, %r1, {4 * count}, %l4;
{" ".join(f"ld.global.b32 %{bank}{20 + i}, [%l3+{4 * i}];" for i in range(count))}
fence.proxy.async.shared::cta; bar.sync 0;
cvt.u64.u32 %l5, %s; shr.u64 %l5, %l5, 4; mov.u64 %l6, {descriptor(mode, 64, turned[0])}; mov.u64 %l7, {descriptor(mode, columns, turned[1])};
add.u64 %l6, %l6, %l5; add.u64 %l7, %l7, %l5; add.u64 %l7, %l7, {ROOM_A >> 4}; setp.eq.u32 %p4, 0, 0;
wgmma.fence.sync.aligned; {ours} {many}, {left}, %l7, %p4{tail}; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
{" ".join(f"st.global.b32 [%l4+{4 * i}], %{bank}{20 + i};" for i in range(count))}
ret; }}
"""
    args = [memory.reshape(-1), given, sums, np.zeros_like(sums)]
    return Job(name, text, name, (blocks,), (128,), args,
               products=(f"wgmma {a}", blocks * 64 * columns))  # fmt: skip


def _cancelling(kind: str, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """In an eighth of the blocks all numbers are one but for the sign: most of a sum cancels."""
    chosen = codes[::8]
    sign = np.uint64(1 << WIDTH[kind] - 1)
    turned = rng.integers(0, 2, chosen.shape).astype(np.uint64) * sign
    chosen[:] = (chosen[:, :1] & ~sign) ^ turned
    return codes


# -- tensor maps ------------------------------------------------------------------------------------

TOP = """.visible .entry {name}({parameters}) {cluster}
{{ .reg .pred %p<9>; .reg .b16 %h<4>; .reg .b32 %t, %s, %m, %r<40>; .reg .b64 %l<20>; .shared .align 1024 .b8 tile[{room}]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; mov.u32 %s, tile; mov.u32 %m, bar; setp.eq.u32 %p1, %t, 0; mov.u32 %r0, %ctaid.x;
"""
WAIT = "W{n}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], {parity}; @!%p2 bra W{n};"
MAP, POINTER = ".param .align 64 .b8 p{at}[128]", ".param .u64 p{at}"
# shape, box, type, swizzle, whether outside is NaN
TENSORS: tuple[tuple[tuple[int, ...], tuple[int, ...], str, int, bool], ...] = (
    ((1000,), (64,), "u4", 0, False), ((40, 72), (16, 64), "f2", 128, False),
    ((40, 72), (16, 32), "f2", 64, False), ((40, 72), (16, 16), "f2", 32, False),
    ((40, 72), (16, 24), "f2", 0, True), ((40, 80), (9, 16), "u1", 0, False),
    ((40, 128), (13, 128), "u1", 128, False), ((33, 36), (8, 32), "f4", 128, True),
    ((33, 36), (7, 8), "f4", 32, False), ((12, 10), (5, 6), "f8", 0, False),
    ((12, 32), (6, 16), "f8", 128, True), ((9, 11, 24), (3, 4, 16), "f2", 32, False),
    ((5, 6, 7, 16), (2, 3, 2, 8), "u4", 0, False), ((5, 6, 7, 32), (2, 3, 2, 32), "u4", 128, False),
    ((3, 4, 5, 3, 16), (2, 2, 3, 2, 16), "u2", 32, False),
)  # fmt: skip


def _starts(
    shape: tuple[int, ...], box: tuple[int, ...], size: int, rng: np.random.Generator
) -> np.ndarray:
    """Where boxes begin, innermost first: inside, across every edge, outside.

    Along the innermost axis they begin at multiples of 16 bytes, as the machine demands.
    """
    rows = [[0] * len(shape), [s - 1 for s in shape], [-b for b in box], [1 - b for b in box]]
    rows += [
        [int(rng.integers(-b, s + 2)) for s, b in zip(shape, box, strict=True)] for _ in range(12)
    ]
    out = np.array(rows, np.int32)[:, ::-1].copy()
    out[:, 0] -= out[:, 0] % (16 // size)
    return out


def _top(what: str, number: int, rank: int, total: int) -> str:
    """Registers and parameters of a kernel that copies boxes: coordinates are in %r10 and on."""
    loads = " ".join(f"ld.global.u32 %r{10 + at}, [%l3+{4 * at}];" for at in range(rank))
    parameters = f"{MAP.format(at=0)}, {POINTER.format(at=1)}, {POINTER.format(at=2)}"
    top = TOP.format(
        name=f"{what}_{number}",
        parameters=parameters,
        cluster="",
        room=-(-total // 1024) * 1024,
    )
    return f"""{HEAD}{top}ld.param.u64 %l1, [p1]; ld.param.u64 %l2, [p2]; mov.b64 %l4, p0; cvta.param.u64 %l5, %l4; mad.wide.u32 %l3, %r0, {4 * rank}, %l1; {loads}
mad.wide.u32 %l2, %r0, {total}, %l2; mov.u32 %r1, %t;
"""


def _coordinates(rank: int) -> str:
    return ", ".join(f"%r{10 + at}" for at in range(rank))


def _load_text(number: int, rank: int, total: int) -> str:
    return f"""{_top("load", number, rank, total)}@%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
@!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %l6, [bar], {total};
cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%l5, {{{_coordinates(rank)}}}], [bar];
J: {WAIT.format(n=0, parity=0)}
L: cvt.u64.u32 %l7, %r1; add.u64 %l7, %l2, %l7; add.u32 %r2, %s, %r1; ld.shared.u8 %h1, [%r2]; st.global.u8 [%l7], %h1;
add.u32 %r1, %r1, 32; setp.lt.u32 %p3, %r1, {total}; @%p3 bra L;
ret; }}
"""


def _store_text(number: int, rank: int, total: int) -> str:
    return f"""{_top("store", number, rank, total)}L: cvt.u64.u32 %l7, %r1; add.u64 %l7, %l2, %l7; add.u32 %r2, %s, %r1; ld.global.u8 %h1, [%l7]; st.shared.u8 [%r2], %h1;
add.u32 %r1, %r1, 32; setp.lt.u32 %p3, %r1, {total}; @%p3 bra L;
fence.proxy.async.shared::cta; bar.sync 0;
@!%p1 bra E; cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%l5, {{{_coordinates(rank)}}}], [tile];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
E: ret; }}
"""


def tensors() -> Iterator[Job]:
    for number, (shape, box, kind, swizzle, nan) in enumerate(TENSORS):
        rng = np.random.default_rng(900 + number)
        size, rank, total = int(kind[1]), len(shape), int(np.prod(box)) * int(kind[1])
        array = rng.integers(0, 255, (*shape[:-1], shape[-1] * size), np.uint8).view(kind)
        starts = _starts(shape, box, size, rng)
        made = ptx.tensor_map(array, box, swizzle, nan_outside=nan)
        out = np.zeros((len(starts), total), np.uint8)
        about = f"tensor load {rank}d {kind} box {'x'.join(map(str, box))} swizzle {swizzle}{' nan' if nan else ''}"
        yield Job(about, _load_text(number, rank, total), f"load_{number}", (len(starts),), (32,),
                  [made, starts, out])  # fmt: skip
        if nan:
            continue
        for which in (1, 5):  # one box each, as boxes may overlap; nothing before the array
            at = np.maximum(starts[which : which + 1], 0)
            given = rng.integers(0, 255, (1, total), np.uint8)
            yield Job(about.replace("load", "store") + f", start {which}",
                      _store_text(number, rank, total), f"store_{number}", (1,), (32,),
                      [made, at, given])  # fmt: skip


# Where stores of a box of 16 x 32 halves begin in an array of 40 x 72, innermost first.
STORES = (
    (0, 0), (8, -3), (8, -15), (8, -16), (8, -40), (-8, 3), (-24, 3), (-32, 3), (-32, 16), (-104, 3),
    (-8, -3), (-32, -16), (64, 3), (72, 3), (104, 3), (8, 30), (8, 39), (8, 40), (64, 39), (-32, 40),
)  # fmt: skip


def store_at(at: tuple[int, int], swizzle: int) -> tuple[Job, np.ndarray]:
    """A store of one box, and the array afterwards if what lies outside is not written."""
    rng = np.random.default_rng(77)
    array = rng.integers(0, 1 << 15, (40, 72), np.uint16).view("f2")
    given = rng.integers(0, 255, 16 * 64, np.uint8)
    made = ptx.tensor_map(array, (16, 32), swizzle)
    place = np.arange(16 * 32) * 2
    place ^= (place >> 7 & max(1, swizzle // 16) - 1) << 4
    wide = np.zeros((340, 372), np.uint16)
    wide[150:190, 150:222] = array.view(np.uint16)
    x, y = at
    wide[150 + y : 166 + y, 150 + x : 182 + x] = given.view(np.uint16)[place // 2].reshape(16, 32)
    job = Job(f"store at {at}, swizzle {swizzle}", _store_text(0, 2, 1024), "store_0", (1,), (32,),
              [made, np.array([at], np.int32), given])  # fmt: skip
    return job, wide[150:190, 150:222]


# -- mbarriers, bulk copies, clusters ---------------------------------------------------------------

CLUSTER_TOP = """.visible .entry k(.param .u64 out, .param .u64 in) .reqnctapercluster {cluster}
{{ .reg .pred %p<9>; .reg .b16 %h<3>; .reg .b32 %r<40>; .reg .b64 %d<20>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %cluster_nctarank;
ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in];
mad.lo.u32 %r4, %r2, 32, %r0; mul.wide.u32 %d2, %r4, 4; add.u64 %d2, %d0, %d2;
mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 4, %r5; add.u32 %r7, %r1, 1; rem.u32 %r7, %r7, %r3;
"""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
NEIGHBOUR = "mapa.shared::cluster.u32 %r8, %r6, %r7;"
OUTPUT = "st.global.u32 [%d2], %r9;"
BARRIER = f"setp.eq.u32 %p1, %r0, 0; mov.u32 %r10, bar; @%p1 mbarrier.init.shared.b64 [%r10], COUNT; fence.mbarrier_init.release.cluster; {MEET}"
AT_HOME = "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r10], 0; @!%p2 bra W;"
CLUSTERED = {
    "load": f"st.shared.u32 [%r6], %r4; {MEET} {NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; {OUTPUT} {MEET}",
    "generic load": f"st.shared.u32 [%r6], %r4; {MEET} cvt.u64.u32 %d5, %r6; cvta.shared.u64 %d5, %d5; mapa.u64 %d6, %d5, %r7; ld.u32 %r9, [%d6]; {OUTPUT} {MEET}",
    "store": f"{MEET} {NEIGHBOUR} st.shared::cluster.u32 [%r8], %r4; {MEET} ld.shared.u32 %r9, [%r6]; {OUTPUT}",
    "atomics": f"st.shared.u32 [%r6], 0; {MEET} mapa.shared::cluster.u32 %r8, %r5, 0; red.shared::cluster.add.u32 [%r8], %r4; {MEET} ld.shared.u32 %r9, [%r5]; {OUTPUT}",
    "atomics in turn": f"st.shared.u32 [%r6], %r4; {MEET} {NEIGHBOUR} atom.shared::cluster.max.u32 %r9, [%r8], 70; {OUTPUT} {MEET}",
    "ranks": f"{NEIGHBOUR} getctarank.shared::cluster.u32 %r9, %r8; getctarank.shared::cluster.u32 %r10, %r6; mad.lo.u32 %r9, %r9, 16, %r10; {OUTPUT} {MEET}",
    "registers": "mov.u32 %r10, %clusterid.x; mov.u32 %r11, %nclusterid.x; mov.u32 %r12, %cluster_ctaid.x; mov.u32 %r13, %cluster_nctaid.x; mad.lo.u32 %r9, %r10, 256, %r11; mad.lo.u32 %r9, %r9, 256, %r12; mad.lo.u32 %r9, %r9, 256, %r13; " + OUTPUT,
    "arrivals far away": BARRIER.replace("COUNT", "32") + f" {NEIGHBOUR} st.shared::cluster.u32 [%r8], %r4; mapa.shared::cluster.u32 %r11, %r10, %r7; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; {AT_HOME} ld.shared.u32 %r9, [%r6]; {OUTPUT} {MEET}",
    "multicast": BARRIER.replace("COUNT", "1") + f""" @%p1 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r10], 128; {MEET}
setp.eq.and.u32 %p3, %r1, 0, %p1; mov.u32 %r14, 1; shl.b32 %r14, %r14, %r3; sub.u32 %r14, %r14, 1; cvt.u16.u32 %h0, %r14; mul.wide.u32 %d6, %r2, 128; add.u64 %d6, %d1, %d6;
@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d6], 128, [%r10], %h0;
{AT_HOME} ld.shared.u32 %r9, [%r6]; {OUTPUT} {MEET}""",
    "copies from block to block": BARRIER.replace("COUNT", "1") + f""" add.u32 %r12, %r6, 512; st.shared.u32 [%r12], %r4; fence.proxy.async; @%p1 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r10], 128; {MEET}
add.u32 %r12, %r5, 512; mapa.shared::cluster.u32 %r8, %r5, %r7; mapa.shared::cluster.u32 %r11, %r10, %r7;
@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r12], 128, [%r11];
{AT_HOME} ld.shared.u32 %r9, [%r6]; {OUTPUT} {MEET}""",
}  # fmt: skip


def clusters() -> Iterator[Job]:
    for name, body in CLUSTERED.items():
        for cluster in (1, 2, 4, 8):
            text = f"{HEAD}{CLUSTER_TOP.format(cluster=f'{cluster}, 1, 1')}{body}\nret; }}\n"
            args = [np.zeros(16 * 32, np.uint32), np.arange(1024, dtype=np.uint32) * 7]
            yield Job(f"cluster of {cluster}: {name}", text, "k", (16,), (32,), args)


ASK = "mbarrier.test_wait.shared.b64 %p2, [bar], {token}; selp.u32 %r2, 1, 0, %p2; st.global.u32 [%l9+{at}], %r2;\n"
COUNT = "mbarrier.pending_count.b64 %r3, {token}; st.global.u32 [%l9+{at}], %r3;\n"
# Steps of one thread at one mbarrier, and the token whose phase is asked for after each.
PHASES = {
    "arrivals": ("3", [("mbarrier.arrive.shared.b64 %l1, [bar];", "%l1"), ("mbarrier.arrive.noComplete.shared.b64 %l2, [bar], 1;", "%l1"), ("mbarrier.arrive.shared.b64 %l3, [bar];", "%l1"), ("mbarrier.arrive.shared.b64 %l4, [bar], 2;", "%l4"), ("mbarrier.arrive.shared.b64 %l5, [bar];", "%l4")]),
    "dropped": ("4", [("mbarrier.arrive_drop.shared.b64 %l1, [bar];", "%l1"), ("mbarrier.arrive.shared.b64 %l2, [bar], 3;", "%l1"), ("mbarrier.arrive.shared.b64 %l3, [bar], 3;", "%l3"), ("mbarrier.arrive_drop.shared.b64 %l4, [bar], 2;", "%l4"), ("mbarrier.arrive.shared.b64 %l5, [bar];", "%l4")]),
    "bytes": ("1", [("mbarrier.arrive.expect_tx.shared.b64 %l1, [bar], 100;", "%l1"), ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 60;", "%l1"), ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 40;", "%l1"), ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16; mbarrier.arrive.shared.b64 %l2, [bar];", "%l2"), ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;", "%l2")]),
    "again": ("2", [("mbarrier.arrive.shared.b64 %l1, [bar], 2;", "%l1"), ("mbarrier.inval.shared.b64 [bar]; mbarrier.init.shared.b64 [bar], 5; mbarrier.arrive.shared.b64 %l2, [bar], 4;", "%l2"), ("mbarrier.arrive.shared.b64 %l3, [bar];", "%l2")]),
}  # fmt: skip


def barriers() -> Iterator[Job]:
    for number, (name, (count, steps)) in enumerate(PHASES.items()):
        body = f"ld.param.u64 %l9, [p0]; mbarrier.init.shared.b64 [bar], {count};\n"
        for at, (step, token) in enumerate(steps):
            body += f"{step} {ASK.format(token=token, at=8 * at)}{COUNT.format(token=token, at=8 * at + 4)}"
        top = TOP.format(
            name=f"phases_{number}", parameters=POINTER.format(at=0), cluster="", room=64
        )
        yield Job(f"mbarrier: {name}", f"{HEAD}{top}{body}ret; }}\n", f"phases_{number}", (1,), (1,),
                  [np.full(16, 9, np.uint32)])  # fmt: skip
    parameters = f"{POINTER.format(at=0)}, {POINTER.format(at=1)}"
    top = TOP.format(name="pipeline", parameters=parameters, cluster="", room=4096)
    iterations = "\n".join(
        f"""@!%p1 bra J{iteration}; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%l1], 512, [bar];
J{iteration}: {WAIT.format(n=iteration, parity=iteration % 2)}
ld.shared.u32 %r2, [%r1]; add.u32 %r2, %r2, {1000 * iteration}; bar.sync 0; st.shared.u32 [%r1], %r2; fence.proxy.async.shared::cta; bar.sync 0;
@!%p1 bra K{iteration}; cp.async.bulk.global.shared::cta.bulk_group [%l2], [tile], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
K{iteration}: add.u64 %l1, %l1, 512; add.u64 %l2, %l2, 512; bar.sync 0;"""
        for iteration in range(4)
    )
    body = f"""@%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1];
shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s;
{iterations}
@%p1 cp.async.bulk.wait_group 0;
"""
    source = np.arange(512, dtype=np.uint32) * 3
    yield Job("mbarrier: a pipeline of bulk copies", f"{HEAD}{top}{body}ret; }}\n", "pipeline", (1,), (128,),
              [source, np.zeros_like(source)])  # fmt: skip


def jobs() -> list[Job]:
    makers: Any = (wmma, wgmma, barriers, clusters, tensors)
    return [job for maker in makers for job in maker()]
