"""The fast engine against the evaluator: the same bits, the same counts, the same errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ptx.test_instructions import CASES, kernels
from tests.ptx.test_kernels import PROGRAMS, kept
from tests.tools import is_here

from warploom import ptx
from warploom.errors import DeviceError
from warploom.native import kept_library

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")

# What the evaluator keeps for itself, by what it meets there first.
LEFT = {
    "functions": "call", "generic": "call", "spin": "order", "compare_and_swap": "order",
    "atomics32": "inc", "copy_async": "cp.async", "wide_product": ".cc", "divide128": ".cc",
    "volatile_flags": "order of memory", "partial_warps": "redux",
}  # fmt: skip


def same_bits(some: list[Any], others: list[Any]) -> bool:
    pairs = zip(some, others, strict=True)
    return all(a.tobytes() == b.tobytes() for a, b in pairs if isinstance(a, np.ndarray))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs(program) -> None:
    kernel = kept(program.file).kernel(program.name)
    reports, results = [], []
    for engine in ("numpy", "c"):
        args = program.make()
        shared = program.shared_bytes
        report = kernel.launch(
            program.grid, program.block, args, shared_bytes=shared, engine=engine
        )
        reports.append(report)
        results.append(args)
    assert same_bits(*results)
    assert reports[0].mix == reports[1].mix
    assert [report.engine for report in reports] == (
        ["numpy", "numpy"] if program.name in LEFT else ["numpy", "c"]
    )
    assert LEFT.get(program.name, "") in kernel.fast.why_not


def check_instruction(name: str) -> bool:
    """Whether the engine takes it; then its bits are the evaluator's."""
    case = CASES[name]
    module = ptx.load(kernels.PTX_HEADER + kernels.ptx_source(case), f"{name}.ptx")
    kernel = module.kernel(name)
    grid = kernels.SIZE // kernels.BLOCK
    results = []
    for engine in ("c", "numpy"):
        args = [*kernels.inputs(case), *kernels.outputs(case)]
        ran = kernel.launch(grid, kernels.BLOCK, args, engine=engine)
        if engine == "c" and ran.engine == "numpy":
            assert kernel.fast.why_not, name  # it gave up before it ran
            return False
        results.append(args)
    assert same_bits(*results), name
    return True


SAMPLE = (
    "div_s32", "rem_s64", "mul_hi_s64", "mad_wide_s32", "shr_s32", "bfe_s32", "min_f32",
    "fma_rn_ftz_f32", "add_rn_f64", "fma_rn_f64", "rsqrt_approx_f32", "cvt_rni_s32_f32",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_instructions(name: str) -> None:
    assert check_instruction(name)


@pytest.mark.slow
def test_all_instructions() -> None:
    assert sum(check_instruction(name) for name in CASES) > len(CASES) // 2


HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel_of(body: str, parameters: str = ".param .u64 p") -> ptx.Kernel:
    return ptx.load(f"{HEAD}.visible .entry k({parameters}) {{\n{body}\n}}\n").kernel("k")


def test_what_is_left_is_known_before_a_launch() -> None:
    assert kernel_of("ret;").why_not_fast() == ""
    assert "membar" not in kernel_of("membar.gl; ret;").why_not_fast()
    half = ".reg .b16 %h<3>; mov.b16 %h1, 0; add.f16 %h2, %h1, %h1; ret;"
    assert "add.f16" in kernel_of(half).why_not_fast()


READS = """
.reg .b64 %a<4>; .reg .b32 %r<9>; .reg .pred %q;
ld.param.u64 %a0, [p];
mov.u32 %r0, %tid.x;
mul.wide.u32 %a1, %r0, 4;
add.u64 %a2, %a0, %a1;
"""
WRONG = {
    "out of bounds": READS + "ld.global.u32 %r1, [%a2+128]; st.global.u32 [%a2], %r1; ret;",
    "misaligned": READS + "ld.global.u32 %r1, [%a2+1]; st.global.u32 [%a2], %r1; ret;",
    "shared memory that nobody wrote": ".shared .align 4 .b8 s[128];"
    + READS
    + "mov.u32 %r2, s; ld.shared.u32 %r1, [%r2]; st.global.u32 [%a2], %r1; ret;",
    "a barrier that not all reach": READS
    + "setp.lt.u32 %q, %r0, 7; @%q bra SKIP; bar.sync 0; SKIP: st.global.u32 [%a2], %r0; ret;",
    "a lane that gives nothing": READS + "setp.lt.u32 %q, %r0, 7; @%q bra SKIP;\n"
    "shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xffffff80; st.global.u32 [%a2], %r1; SKIP: ret;",
}


@pytest.mark.parametrize("body", WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_is_said_by_the_evaluator(body: str) -> None:
    said = []
    for engine in ("numpy", "c"):
        data = np.zeros(32, np.uint32)
        kernel = kernel_of(body)
        with pytest.raises(DeviceError) as error:
            kernel.launch(1, 32, [data], engine=engine)
        assert not kernel.fast.why_not
        said.append((error.value.message, str(error.value.span)))
    assert said[0] == said[1]


def test_a_loop_without_end_ends() -> None:
    kernel = kernel_of(READS + "L: add.u32 %r0, %r0, 1; bra L;")
    data = np.zeros(32, np.uint32)
    with pytest.raises(DeviceError, match="'k' did not end in the time"):
        kernel.launch(1, 32, [data], engine="c", seconds=0.3)


def test_lanes_part_and_meet_again() -> None:
    """Turns that depend on the lane, nested, with writes that only some lanes make."""
    body = (
        READS
        + """
    and.b32 %r1, %r0, 7;
    mov.u32 %r2, 0;
    OUTER: mov.u32 %r3, %r1;
    INNER: add.u32 %r2, %r2, %r3;
    setp.gt.u32 %q, %r3, 2;
    sub.u32 %r3, %r3, 1;
    @%q bra INNER;
    setp.gt.u32 %q, %r1, 1;
    @%q xor.b32 %r2, %r2, 21;
    sub.u32 %r1, %r1, 1;
    @%q bra OUTER;
    st.global.u32 [%a2], %r2;
    ret;
    """
    )
    found = [np.zeros(64, np.uint32) for _ in range(2)]
    kernel = kernel_of(body)
    mixes = [
        kernel.launch(1, 45, [data], engine=engine).mix
        for data, engine in zip(found, ("numpy", "c"), strict=True)
    ]
    assert found[0].tolist() == found[1].tolist()
    assert found[0].any()
    assert mixes[0] == mixes[1]


def test_large_launches_are_compiled_by_themselves() -> None:
    kernel = kernel_of(READS + "st.global.u32 [%a2], %r0; ret;")
    data = np.zeros(1024, np.uint32)
    assert kernel.launch(1, 1024, [data]).engine == "numpy"
    assert kernel.launch(64, 1024, [data]).engine == "c"
    assert kernel.launch(1, 1024, [data]).engine == "c"  # as it is there
    assert kernel.launch(64, 1024, [data], races=False, counters=True).engine == "numpy"


def test_compiled_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, flags = "int f(void) { return 7; }\n", ("-fPIC", "-shared")
    folder = tmp_path / "new" / "cache"
    first = kept_library(text, flags, folder)
    assert [path.suffix for path in folder.iterdir()] == [".so"]
    monkeypatch.setenv("PATH", os.devnull)  # no compiler any more
    assert kept_library(text, flags, folder) == first
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    monkeypatch.undo()
    assert kept_library(text, flags, nowhere / "below")  # no place to keep it
