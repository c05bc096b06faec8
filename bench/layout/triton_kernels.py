"""Conversions between register layouts as Triton compiles them, in a loop, as PTX for sm_90.

    python -m bench.layout.triton_kernels     needs triton; no GPU

The loop is that of `warploom.catalogue.conversion.looped_text`: in turn t every byte of what is
held is changed by exclusive or with t, then converted, and the results are put together by
exclusive or; both on whole words. `layout_convert_device.py` measures the two side by side.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import triton
import triton.experimental.gluon._runtime as gluon_runtime
from bench.harness import arguments, environment, save
from bench.layout.cases import LOOPED  # names alone, which need nothing of ours
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as ttgl

TYPES = {1: ("i8", ttgl.int8), 2: ("i16", ttgl.int16), 4: ("i32", ttgl.int32)}


@gluon.jit
def loop(
    x, y, iterations,
    rows: ttgl.constexpr, columns: ttgl.constexpr, source: ttgl.constexpr, target: ttgl.constexpr,
    kind: ttgl.constexpr, pack: ttgl.constexpr, splat: ttgl.constexpr,
):  # fmt: skip
    row = ttgl.arange(0, rows, layout=ttgl.SliceLayout(1, source))
    column = ttgl.arange(0, columns, layout=ttgl.SliceLayout(0, source))
    held = ttgl.load(x + row[:, None] * columns + column[None, :])
    total = ttgl.full([rows, columns], 0, kind, target)
    for iteration in range(iterations):
        changed = ((iteration % 256) * splat).to(kind)
        held = ttgl.inline_asm_elementwise(
            "xor.b32 $0, $1, $2;", "=r,r,r", [held, changed],
            dtype=held.dtype, is_pure=True, pack=pack,
        )  # fmt: skip
        got = ttgl.convert_layout(held, target)
        total = ttgl.inline_asm_elementwise(
            "xor.b32 $0, $1, $2;", "=r,r,r", [total, got],
            dtype=held.dtype, is_pure=True, pack=pack,
        )  # fmt: skip
    row = ttgl.arange(0, rows, layout=ttgl.SliceLayout(1, target))
    column = ttgl.arange(0, columns, layout=ttgl.SliceLayout(0, target))
    ttgl.store(
        y + ttgl.program_id(0) * (rows * columns) + row[:, None] * columns + column[None, :], total
    )


def layout(text: str) -> Any:
    """A register layout as our own texts name it: `blocked(…)`, `mma_c(…)`, `mma_a(k, …)`."""
    name, rest = text.split("(", 1)
    given = ast.literal_eval(f"[{rest[:-1]}]")

    def mma(warps: list[int]) -> Any:
        return ttgl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=warps, instr_shape=[16, 8])

    if name == "blocked":
        return ttgl.BlockedLayout(*given)
    if name == "mma_c":
        return mma(given[0] if given else [1, 1])
    warps = given[1] if len(given) > 1 else [1, 1]
    return ttgl.DotOperandLayout(operand_index=0, parent=mma(warps), k_width=given[0])


def compiled(source: str, target: str, size: int, shape: tuple[int, int], warps: int) -> Any:
    name, dtype = TYPES[size]
    names = ("rows", "columns", "source", "target", "kind", "pack", "splat")
    given = (*shape, layout(source), layout(target), dtype, 4 // size, ((1 << 8 * size) - 1) // 255)
    types = {
        "x": f"*{name}",
        "y": f"*{name}",
        "iterations": "i32",
        **dict.fromkeys(names, "constexpr"),
    }
    aligned = [["tt.divisibility", 16]]
    made = gluon_runtime.GluonASTSource(
        loop, signature=types, constexprs=dict(zip(names, given, strict=True)),
        attrs={(0,): aligned, (1,): aligned},
    )  # fmt: skip
    return triton.compile(made, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})


def plain(ptx: str, shared: int) -> str:
    """Without the lines for debuggers; shared memory declared, not asked for at launch; and of a
    version that drivers of CUDA 13.0 read, as nothing newer is in it."""
    lines = [
        line for line in ptx.split(".section", 1)[0].splitlines()
        if line.strip() and not re.match(r"\s*(\.loc|\.file|//|\$L__tmp|\$L__func|\$L__info)", line)
    ]  # fmt: skip
    text = "\n".join(lines)
    text = re.sub(r"\.version \d+\.\d+", ".version 8.8", text, count=1)
    memory = r"\.extern \.shared \.align 16 \.b8 global_smem\[\];"
    return re.sub(memory, f".shared .align 16 .b8 global_smem[{max(shared, 16)}];", text) + "\n"


def main() -> None:
    asked = arguments(__doc__, "layout_triton.json").parse_args()
    found: dict[str, Any] = {**environment(), "triton": triton.__version__, "kernels": {}}
    for name, source, target, size, shape, warps in LOOPED:
        kernel = compiled(source, target, size, shape, warps)
        text = plain(kernel.asm["ptx"], kernel.metadata.shared)
        found["kernels"][name] = {"ptx": text, "shared": kernel.metadata.shared}
        print(f"{name}: {len(text)} letters, {kernel.metadata.shared} bytes of shared memory")
    save(asked.out, found)


if __name__ == "__main__":
    main()
