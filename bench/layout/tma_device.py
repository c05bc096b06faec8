"""Where tensor copies put the elements of a tile: on a GPU, and as the layouts of class tma say.

    python -m bench.layout.tma_device                  on an H200, with cupy
    python -m bench.layout.tma_device --dry            the emulator alone

Every box and mode of each tile, also those whose rows are shorter than the swizzle: they take as
much room as the swizzle has.
"""

from __future__ import annotations

import json
from itertools import product

import numpy as np
from bench.harness import RESULTS, arguments, environment, save
from bench.ptx.launches import Job, on_device, on_emulator

from warploom import ptx
from warploom.layout.formats.tma import Box, boxes
from warploom.layout.language.evaluate import evaluate
from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.certificate import SPANS

OUT = RESULTS / "layout_tma_device.json"
TILES = (
    "64x64:f16", "64x128:f16", "64x80:f16", "128x48:f16", "32x24:f16", "24x32:f32", "64x96:f32",
    "64x64:e4m3", "16x176:e4m3", "8x16:f64",
)  # fmt: skip
TEXT = """.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{{ .reg .pred %p<4>; .reg .b32 %t, %r<9>; .reg .b64 %d<9>;
.shared .align 1024 .b8 tile[32768]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %p1, %t, 0; ld.param.u64 %d0, [out];
mov.b64 %d1, map; cvta.param.u64 %d1, %d1;
@%p1 mbarrier.init.shared.b64 [bar], 1; mov.u32 %r1, %t; mov.u32 %r0, tile;
Z: shl.b32 %r2, %r1, 2; add.u32 %r3, %r0, %r2; st.shared.u32 [%r3], 0;
add.u32 %r1, %r1, 32; setp.lt.u32 %p3, %r1, {words}; @%p3 bra Z;
fence.proxy.async.shared::cta; bar.sync 0;
@!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %d2, [bar], {bytes};
{copies}
J: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra J;
mov.u32 %r1, %t; mov.u32 %r0, tile;
L: shl.b32 %r2, %r1, 2; add.u32 %r3, %r0, %r2; ld.shared.u32 %r6, [%r3];
cvt.u64.u32 %d3, %r2; add.u64 %d3, %d0, %d3; st.global.u32 [%d3], %r6;
add.u32 %r1, %r1, 32; setp.lt.u32 %p3, %r1, {words}; @%p3 bra L;
ret; }}
"""
COPY = (
    "mov.u32 %r0, tile; add.u32 %r0, %r0, {at}; mov.u32 %r4, {x}; mov.u32 %r5, {y}; "
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[%r0], [%d1, {{%r4, %r5}}], [bar];"
)


ROOM = 32768  # bytes of the text's tile


def room_of(problem: Problem, box: Box) -> int:
    return box.start(problem, problem.size // (box.height * box.width))


def copied(problem: Problem) -> list[Box]:
    """The boxes whose tiles have room."""
    return [box for box in boxes(problem) if room_of(problem, box) <= ROOM]


def copy_job(problem: Problem, box: Box) -> Job:
    """Fills the tile box by box, each element with its number, and writes the memory out."""
    size = problem.element_bytes
    array = np.arange(problem.size).astype(f"u{size}").reshape(problem.rows, problem.columns)
    starts = product(range(0, problem.columns, box.width), range(0, problem.rows, box.height))
    copies = "\n".join(
        COPY.format(at=box.start(problem, number), x=x, y=y) for number, (x, y) in enumerate(starts)
    )
    room = room_of(problem, box)
    text = TEXT.format(bytes=problem.size * size, copies=copies, words=room // 4)
    made = ptx.tensor_map(array, (box.height, box.width), SPANS[box.mode.name])
    return Job(f"{box}", text, "k", (1,), (32,), [made, np.zeros(room // 4, np.uint32)])


def is_where_it_says(problem: Problem, box: Box, memory: np.ndarray) -> bool:
    numbers = np.arange(problem.size, dtype=np.int64)
    dtype = np.dtype(f"u{problem.element_bytes}")
    places = evaluate(box.layout(problem), numbers)
    return np.array_equal(memory.view(dtype)[places], numbers.astype(dtype))


def main() -> None:
    asked = arguments(__doc__, OUT.name, dry="the emulator alone").parse_args()
    rows = []
    for tile in TILES:
        problem = pattern(f"ldmatrix-tma:{tile}")
        for box in copied(problem):
            job = copy_job(problem, box)
            memory = (on_emulator(job)[2] if asked.dry else on_device(job))[1]
            right = is_where_it_says(problem, box, np.asarray(memory))
            rows.append({"tile": tile, "box": str(box), "right": right})
    wrong = [row for row in rows if not row["right"]]
    print(f"{len(rows)} boxes, {len(wrong)} wrong", *wrong[:20], sep="\n")
    if not asked.dry:
        kept = json.loads(OUT.read_text())  # short_rows was seen once, and a test reads it
        record = kept | environment("NVIDIA H200") | {"boxes": rows}
        save(asked.out, record)


if __name__ == "__main__":
    main()
