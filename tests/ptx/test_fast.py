"""The fast engine against the evaluator: the same bits, the same counts, the same errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.ptx import device_kernels as kernels
from bench.common.ptx.programs import PROGRAMS, Program
from bench.common.ptx.spelling import THREADS, inputs, instruction, parts, program, spelled
from tests.ptx.test_instructions import CASES
from tests.ptx.test_kernels import kept
from tests.tools import is_here

from warploom import ptx
from warploom.errors import DeviceError, WarploomError
from warploom.ptx.emulate.asked import EngineName
from warploom.ptx.fast import cores as cores_module
from warploom.ptx.fast import engine as engine_module
from warploom.ptx.table import OPCODES

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")

# What is no C as a whole and is run in pieces, by what is met there first.
LEFT = {
    "functions": "call", "generic": "call", "spin": "order", "compare_and_swap": "order",
    "atomics32": "inc", "volatile_flags": "order of memory",
}  # fmt: skip


ENGINES: tuple[EngineName, ...] = ("numpy", "c")


def same_bits(some: list[Any], others: list[Any]) -> bool:
    pairs = zip(some, others, strict=True)
    return all(a.tobytes() == b.tobytes() for a, b in pairs if isinstance(a, np.ndarray))


LONG = ("divide128",)  # a text that takes a C compiler seconds


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "run",
    [pytest.param(p, marks=[pytest.mark.slow] if p.name in LONG else []) for p in PROGRAMS],
    ids=lambda p: p.name,
)
def test_programs(run: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kept(run.file).kernel(run.name)
    reports, results = [], []
    ways: list[tuple[EngineName, int]] = [("numpy", 1), ("c", 1), ("c", 3)]
    for engine, cores in ways:
        args = run.make()
        if cores > 1:  # from the beginning, however soon it ends
            monkeypatch.setattr(cores_module, "FIRST_SLICE", 1)
        report = kernel.launch(
            run.grid, run.block, args, shared_bytes=run.shared_bytes, engine=engine, cores=cores
        )
        reports.append(report)
        results.append(args)
    assert same_bits(results[0], results[1])
    assert same_bits(results[0], results[2])
    assert reports[0].mix == reports[1].mix == reports[2].mix
    fast = "c" if run.name not in LEFT else "numpy"
    assert [report.engine for report in reports] == ["numpy", fast, fast]
    assert LEFT.get(run.name, "") in kernel.fast.why_not


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


SAMPLE = ("div_s32", "mul_hi_s64", "fma_rn_ftz_f32", "fma_rn_f64", "cvt_rni_s32_f32")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SAMPLE)
def test_instructions(name: str) -> None:
    assert check_instruction(name)


# One of each kind of arithmetic in one kernel, which is one compilation; every form of every
# instruction is in `bench/ptx/engine.py`.
FORMS = (
    "rem.s64", "shr.s32", "bfe.s32", "min.f32", "add.rp.f64", "sub.rz.f64", "fma.rm.f64",
    "sqrt.rz.f64", "rsqrt.approx.f32", "add.rm.f32", "div.rz.f32", "sqrt.rp.f32",
    "mul.rn.ftz.f16x2", "fma.rn.relu.bf16x2", "sub.rn.bf16", "max.NaN.xorsign.abs.f16",
    "sin.approx.f32", "ex2.approx.ftz.f32", "cvt.rz.relu.bf16x2.f32", "cvt.rn.f16.u32",
    "cvt.sat.s16.u64", "set.neu.ftz.f32.f32", "mad.hi.sat.s32", "dp2a.hi.s32.u32",
    "prmt.b32.rc16", "szext.clamp.s32", "testp.subnormal.f64", "mad24.hi.u32", "add.rz.f32.bf16",
)  # fmt: skip


def test_forms_of_instructions() -> None:
    every = {
        ".".join((record.name, *parts(row))): instruction(record, form, parts(row))
        for record in OPCODES.values() if record.name in {name.split(".")[0] for name in FORMS}
        for form in record.forms for row in spelled(form)
    }  # fmt: skip
    kernel = ptx.load(program([every[name] for name in FORMS]), "forms.ptx").kernel("k")
    found = []
    for engine in ("numpy", "c"):
        out = np.zeros((len(FORMS), THREADS), np.uint64)
        assert kernel.launch(1, THREADS, [*inputs(), out], engine=engine).engine == engine
        found.append(out)
    same = (found[0] == found[1]).all(axis=1)
    assert [name for name, good in zip(FORMS, same, strict=True) if not good] == []


LANES = """
.reg .b64 %a<4>; .reg .b32 %r<40>; .reg .pred %q<9>;
ld.param.u64 %a0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.u64 %a2, %a0, %a1;
ld.global.u32 %r1, [%a2]; and.b32 %r3, %r0, 24; shl.b32 %r2, 0xFF, %r3;
setp.lt.s32 %q1, %r1, 0; and.b32 %r4, %r1, 1;
vote.sync.ballot.b32 %r10, %q1, %r2; vote.sync.all.pred %q2, %q1, %r2; selp.u32 %r11, 1, 0, %q2;
vote.sync.uni.pred %q3, %q1, %r2; selp.u32 %r12, 1, 0, %q3; match.any.sync.b32 %r13, %r4, %r2;
match.all.sync.b32 %r14|%q4, %r4, %r2; selp.u32 %r15, 1, 0, %q4; redux.sync.add.s32 %r16, %r1, %r2;
redux.sync.min.s32 %r17, %r1, %r2; redux.sync.max.u32 %r18, %r1, %r2; elect.sync %r19|%q5, %r2;
selp.u32 %r20, 1, 0, %q5; shfl.sync.bfly.b32 %r21, %r1, 5, 31, %r2;
"""


def test_loads_from_one_register_at_several_distances() -> None:
    """In rows, all at one place, anyhow, under a predicate, after the register has changed."""
    body = (
        ".shared .align 16 .b8 s[1024];"
        + LANES.split("vote", 1)[0]
        + """mov.u32 %r30, s; mad.lo.u32 %r5, %r0, 4, %r30; st.shared.u32 [%r5], %r1;
    st.shared.u32 [%r5+256], %r0; bar.sync 0; ld.shared.u32 %r10, [%r5];
    ld.shared.u32 %r11, [%r5+256];
    xor.b32 %r6, %r5, 4; ld.shared.u32 %r12, [%r6]; ld.shared.u32 %r13, [%r6+256];
    mov.u32 %r5, %r30; ld.shared.u32 %r14, [%r5+4]; ld.shared.u16 %r15, [%r5+2]; mov.u32 %r16, 7;
    @%q1 ld.shared.u32 %r16, [%r6]; ld.shared.v2.u32 {%r17, %r18}, [%r5+8];
    @%q1 add.u32 %r5, %r5, 12;
    ld.shared.u32 %r19, [%r5]; ld.shared.u8 %r20, [%r5+3]; mov.u32 %r21, 0;
    """
    )
    stores = "".join(f"st.global.u32 [%a2+{1024 * (n - 9)}], %r{n};\n" for n in range(10, 22))
    kernel, found = kernel_of(body + stores + "ret;"), []
    given = np.random.default_rng(4).integers(0, 1 << 32, 256 * 13, np.uint32)
    for engine in ("numpy", "c"):
        data = given.copy()
        assert kernel.launch(1, 64, [data], engine=engine).engine == engine
        found.append(data)
    assert found[0].tolist() == found[1].tolist()


def test_lanes_that_name_each_other() -> None:
    """Groups of eight lanes, each with its own mask of members, at one instruction."""
    results = range(10, 22)
    stores = "".join(f"st.global.u32 [%a2+{1024 * (n - 9)}], %r{n};\n" for n in results)
    kernel, found = kernel_of(LANES + stores + "ret;"), []
    given = np.random.default_rng(3).integers(0, 1 << 32, 256 * 13, np.uint32)
    given[8:16] = 0x80000001
    for engine in ("numpy", "c"):
        data = given.copy()
        assert kernel.launch(1, 64, [data], engine=engine).engine == engine
        found.append(data)
    assert found[0].tolist() == found[1].tolist()


def test_a_compiler_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "COMPILE_SECONDS", 0.0)
    kernel = kernel_of(READS + "add.u32 %r0, %r0, 12345; st.global.u32 [%a2], %r0; ret;")
    data = np.zeros(32, np.uint32)
    monkeypatch.setattr(engine_module, "cache_folder", lambda: None)
    assert kernel.launch(1, 32, [data], engine="c").engine == "numpy"
    assert "took more than 0 s" in kernel.fast.why_not
    assert data.tolist() == list(range(12345, 12345 + 32))


@pytest.mark.slow
def test_all_instructions() -> None:
    assert sum(check_instruction(name) for name in CASES) > 0.9 * len(CASES)


HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def kernel_of(body: str, parameters: str = ".param .u64 p") -> ptx.Kernel:
    return ptx.load(f"{HEAD}.visible .entry k({parameters}) {{\n{body}\n}}\n").kernel("k")


def test_what_is_left_is_known_before_a_launch() -> None:
    assert kernel_of("ret;").why_not_fast() == ""
    assert "membar" not in kernel_of("membar.gl; ret;").why_not_fast()
    waits = ".shared .align 8 .b64 s; mbarrier.init.shared.b64 [s], 1; ret;"
    assert "mbarrier.init" in kernel_of(waits).why_not_fast()


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


@pytest.mark.sampled(2)
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


TRAPS = {
    "a trap": "@%q bra E; griddepcontrol.wait; bra D; E: trap; D:",
    "a trap under a predicate": "@%q trap;",
    "an assertion": """@!%q bra D; { .param .b64 m; st.param.b64 [m], %a0; .param .b64 f;
st.param.b64 [f], %a0; .param .b32 l; st.param.b32 [l], 7; .param .b64 n; st.param.b64 [n], %a0;
.param .b64 c; st.param.b64 [c], 1; call.uni __assertfail, (m, f, l, n, c); } D:""",
}
ASSERTFAIL = """.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c,
.param .b64 d, .param .b64 e);
"""


@pytest.mark.parametrize("body", TRAPS.values(), ids=list(TRAPS))
def test_what_ends_a_launch_if_it_is_reached(body: str) -> None:
    """Compiled as long as no thread comes there."""
    text = READS + "ld.global.u32 %r1, [%a2]; setp.eq.u32 %q, %r1, 9;\n" + body
    text += "add.u32 %r1, %r1, 1; st.global.u32 [%a2], %r1; ret;"
    whole = f"{HEAD}{ASSERTFAIL}.visible .entry k(.param .u64 p) {{\n{text}\n}}\n"
    kernel = ptx.load(whole).kernel("k")
    data = np.zeros(32, np.uint32)
    assert kernel.launch(1, 32, [data], engine="c").engine == "c"
    assert data.tolist() == [1] * 32
    said = []
    for engine in ENGINES:
        data = np.arange(32, dtype=np.uint32)
        with pytest.raises(DeviceError, match=r"trap was reached|assertion") as error:
            kernel.launch(1, 32, [data], engine=engine)
        assert "thread (9,0,0)" in error.value.message
        said.append(str(error.value))
    assert said[0] == said[1]


def test_a_loop_without_end_ends() -> None:
    kernel = kernel_of(
        READS + "ld.global.u32 %r1, [%a2]; setp.eq.u32 %q, %r1, 0; @%q ret; L: bra L;"
    )
    kernel.launch(1, 32, [np.zeros(32, np.uint32)], engine="c")  # compiled, however long it takes
    data = np.ones(32, np.uint32)
    with pytest.raises(DeviceError, match="'k' did not end in the time") as error:
        kernel.launch(1, 32, [data], engine="c", seconds=0.4)
    assert "block (0,0,0), thread (0,0,0)" in error.value.message
    assert error.value.span is not None


def test_lanes_part_and_meet_again() -> None:
    """Iterations that depend on the lane, nested, with writes that only some lanes make."""
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
        for data, engine in zip(found, ENGINES, strict=True)
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
    assert kernel.launch(64, 1024, [data], counters=True).engine == "c"
    assert kernel.launch(64, 1024, [data], schedule=1).engine == "numpy"


LOOP = READS + """
ld.global.u32 %r1, [%a2]; mov.u32 %r2, 0;
L: mad.lo.u32 %r1, %r1, 1664525, 1013904223; add.u32 %r2, %r2, 1;
setp.lt.u32 %q, %r2, 1000; @%q bra L;
st.global.u32 [%a2], %r1; EXTRA ret;
"""  # fmt: skip


@pytest.mark.parametrize("extra", ["", "ld.volatile.global.u32 %r3, [%a2];"])
def test_few_threads_with_much_work_are_compiled(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the evaluator has done enough of them; from the same memory, so nothing is done twice.

    What cannot be compiled is not begun again.
    """
    wanted = np.arange(32, dtype=np.uint32)
    kernel_of(LOOP.replace("EXTRA", "")).launch(1, 32, [wanted], engine="numpy")
    for options in ({}, {"races": "all"}, {"counters": True}):
        kernel = kernel_of(LOOP.replace("EXTRA", extra))
        data = np.arange(32, dtype=np.uint32)
        assert kernel.launch(1, 32, [data], **options).engine == "numpy"
        assert np.array_equal(data, wanted)
        with monkeypatch.context() as patch:
            patch.setattr(engine_module, "MUCH_WORK", 1 << 18)
            data = np.arange(32, dtype=np.uint32)
            report = kernel.launch(1, 32, [data], **options)
        assert report.engine == ("numpy" if extra else "c")
        assert np.array_equal(data, wanted)
        assert report.mix["mad"] == 32 * 1000


def test_a_compiler_that_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "cc"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("WARPLOOM_CACHE", "")
    run = PROGRAMS[0]
    kernel = ptx.load(kept(run.file).module.text.source.text).kernel(run.name)
    assert kernel.launch(run.grid, run.block, run.make(), engine="c").engine == "numpy"
    assert "writes nothing" in kernel.fast.why_not


# -- what cannot be run ---------------------------------------------------------------------------

REFUSED = {
    "bar.sync 16;": "there is no barrier 16",
    "ld.global.v2.u32 {%r1, %r2, %r3, %r4}, [%o];": "the number of its registers do not fit",
    "ld.global.v4.u32 {%r1, %r2}, [%o];": "the number of its registers do not fit",
    "ld.global.u32 {%r1, %r2}, [%o];": "the number of its registers do not fit",
    "st.global.v2.u32 [%o], {1, 2, 3, 4};": "the number of its registers do not fit",
    "mov.b64 {%r1, %r2, %r3}, %o;": "does not know mov.b64",
}


@pytest.mark.parametrize("engine", ["numpy", "c"])
@pytest.mark.parametrize("line", REFUSED)
def test_what_one_engine_refuses_the_other_does_not_run(line: str, engine: Any) -> None:
    text = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
.reg .b32 %r<5>; .reg .b64 %o;
ld.param.u64 %o, [out];
{line}
ret;
}}
"""
    kernel = ptx.load(text, "k.ptx").kernel("k")
    out = np.zeros(8, np.uint32)
    with pytest.raises(WarploomError, match=REFUSED[line]):
        kernel.launch(1, 32, [out], engine=engine)
    assert not out.any()
    assert REFUSED[line] in kernel.why_not_fast()


def test_a_compiler_leaves_time_to_the_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes all that it is given has not used up the launch."""
    given = []

    def slow(_text: str, _options: object, _folder: object, seconds: float) -> bytes:
        given.append(seconds)
        raise DeviceError("the compiler took too long")

    monkeypatch.setattr(engine_module, "kept_library", slow)
    run = PROGRAMS[0]
    kernel = ptx.load(kept(run.file).module.text.source.text).kernel(run.name)
    args = run.make()
    report = kernel.launch(run.grid, run.block, args, engine="c", seconds=600)
    assert report.engine == "numpy"
    assert given
    assert max(given) <= engine_module.COMPILE_SECONDS
    kernel = ptx.load(kept(run.file).module.text.source.text).kernel(run.name)
    kernel.launch(run.grid, run.block, run.make(), engine="c", seconds=80)
    assert given[-1] <= 40


NANS = [0x7FF8000000000001, 0xFFF0000000012345, 0x7FF4000000000777, 0x7FF0 << 48, 0xFFF0 << 48, 0]


@pytest.mark.parametrize("mode", ["rn", "rp"])
def test_of_nans_the_first_is_kept(mode: str) -> None:
    """As bits, of registers and of numbers in the text; quiet, and one of the machine's own."""
    number = "0dFFF0000000012345"
    steps = [f"{op}.{mode}.f64 %d3, {x}, {y};" for op in ("add", "sub", "mul", "div")
             for x, y in (("%d1", "%d2"), ("%d1", number), (number, "%d2"))]  # fmt: skip
    steps += [f"fma.{mode}.f64 %d3, %d1, {rest};" for rest in (f"%d2, {number}", f"{number}, %d2")]
    steps += [f"{op}.{mode}.f64 %d3, %d1;" for op in ("rcp", "sqrt")]
    body = "".join(f"{s} st.global.f64 [%o+{8 * i}], %d3;\n" for i, s in enumerate(steps))
    text = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 o)
{{ .reg .f64 %d<5>; .reg .b64 %a, %b, %o, %x; .reg .b32 %t;
ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %o, [o]; mov.u32 %t, %tid.x;
mul.wide.u32 %x, %t, 8; add.u64 %a, %a, %x; add.u64 %b, %b, %x;
mul.wide.u32 %x, %t, {8 * len(steps)}; add.u64 %o, %o, %x;
ld.global.f64 %d1, [%a]; ld.global.f64 %d2, [%b];
{body}ret; }}"""
    x, y = (each.reshape(-1) for each in np.meshgrid(*[np.array(NANS, np.uint64)] * 2))
    kernel = ptx.load(text, "nans.ptx").kernel("k")
    results = []
    for engine in ("numpy", "c"):
        out = np.zeros((x.size, len(steps)), np.uint64)
        report = kernel.launch(1, x.size, [x.copy(), y.copy(), out], engine=engine)
        assert report.engine == engine
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    quiet = np.uint64(1 << 51)
    value = x.view(np.float64)
    first = np.isnan(value)
    assert (results[0][first][:, 0] == x[first] | quiet).all()
    infinite = np.isinf(value) & (x ^ y == np.uint64(1 << 63))
    assert (results[0][infinite][:, 0] == np.uint64(0xFFF8 << 48)).all()
    assert infinite.any()


def test_a_copy_of_more_bytes_than_it_has() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{ .reg .b64 %a; .reg .b32 %n; .shared .align 16 .b8 s[16];
ld.param.u64 %a, [a]; ld.param.u32 %n, [n];
cp.async.ca.shared.global [s], [%a], 8, %n;
ret; }"""
    kernel = ptx.load(text, "copy.ptx").kernel("k")
    for engine in ("numpy", "c"):
        assert kernel.launch(1, 1, [np.zeros(4), np.uint32(8)], engine=engine).engine == engine
        with pytest.raises(DeviceError, match="9 bytes of a copy that has 8"):
            kernel.launch(1, 1, [np.zeros(4), np.uint32(9)], engine=engine)


@pytest.mark.parametrize("ignored", ["%p", "!%p"])
def test_a_copy_whose_source_a_predicate_ignores(ignored: str) -> None:
    text = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{{ .reg .b64 %a<3>; .reg .b32 %r<4>; .reg .pred %p; .shared .align 16 .b8 s[64];
ld.param.u64 %a0, [a]; ld.param.u64 %a1, [b]; mov.u32 %r0, %tid.x; mul.wide.u32 %a2, %r0, 4;
add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2; setp.lt.u32 %p, %r0, 3;
mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, %r1;
cp.async.ca.shared.global [%r1], [%a0], 4, {ignored}; cp.async.wait_all;
ld.shared.u32 %r2, [%r1]; st.global.u32 [%a1], %r2; ret; }}"""
    first = np.arange(8) < 3
    given = np.arange(1, 9, dtype=np.uint32)
    for engine in ("numpy", "c"):
        out = np.full(8, 99, np.uint32)
        report = ptx.load(text, "copy.ptx").kernel("k").launch(1, 8, [given, out], engine=engine)
        assert report.engine == engine
        assert (out == np.where(first if ignored == "%p" else ~first, 0, given)).all()
