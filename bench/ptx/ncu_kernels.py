"""Kernels whose traffic a profiler and the emulator both count: patterns, and what people wrote.

Patterns are a few instructions each, in two blocks of 64 threads; the others are texts that the
tests keep (nvcc, Triton, Numba, CUB) and kernels of the catalogue, compiled here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from bench.common.ptx.programs import PROGRAMS
from bench.common.without_gpu.cases import NUMBA, TRITON
from bench.common.without_gpu.collectives import BLOCK, COLLECTIVES, TYPES
from bench.harness import ROOT
from bench.ptx.launches import Job

from warploom.catalogue import entries
from warploom.emit.spell import function_name
from warploom.kernel.arguments import bind, describe_numpy
from warploom.kernel.ir import ArrayParam
from warploom.runtime.emulated import EmulatedFunction

TESTS = ROOT / "tests"
KEPT = TESTS / "without_gpu" / "kept"
BLOCKS, THREADS, ROOM = 2, 64, 16384
HEAD = """.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{ .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %d<20>;
.shared .align 128 .b8 s[16384]; .local .align 16 .b8 own[64];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r0, %r1, %r2, %r3;
ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c]; mov.u32 %r9, s;
mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, 0; mov.u64 %d10, 0; mov.u64 %d11, 0;
"""
# What a kernel read goes to b, one word a thread: nothing is left out by an assembler.
DONE = """
xor.b32 %r20, %r20, %r21; xor.b32 %r22, %r22, %r23; xor.b32 %r20, %r20, %r22;
xor.b64 %d10, %d10, %d11; cvt.u32.u64 %r21, %d10; xor.b32 %r20, %r20, %r21;
mul.wide.u32 %d5, %r0, 4; add.u64 %d5, %d1, %d5; st.global.b32 [%d5], %r20; ret; }
"""
# Element number of a thread in %r4; %r0 counts threads of the grid, %r3 of the block.
GLOBAL_PLACES = {
    "in line": "mov.u32 %r4, %r0;",
    "shifted by one": "add.u32 %r4, %r0, 1;",
    "two apart": "shl.b32 %r4, %r0, 1;",
    "three apart": "mul.lo.u32 %r4, %r0, 3;",
    "a row apart": "shl.b32 %r4, %r0, 5;",
    "backwards": "sub.u32 %r4, 127, %r0;",
    "one for all": "mov.u32 %r4, 5;",
    "gathered": "mul.wide.u32 %d5, %r0, 4; add.u64 %d5, %d2, %d5; ld.global.b32 %r4, [%d5];",
}
SHARED_PLACES = {
    "in line": "mov.u32 %r4, %r3;",
    "two apart": "shl.b32 %r4, %r3, 1;",
    "three apart": "mul.lo.u32 %r4, %r3, 3;",
    "a row apart": "shl.b32 %r4, %r3, 5;",
    "a row and one apart": "mul.lo.u32 %r4, %r3, 33;",
    "one for all": "mov.u32 %r4, 5;",
    "gathered": "mul.wide.u32 %d5, %r0, 4; add.u64 %d5, %d2, %d5; ld.global.b32 %r4, [%d5];",
}
REGISTERS = {
    "b8": "%h1", "b16": "%h1", "b32": "%r20", "v2.b32": "{%r20, %r21}",
    "v4.b32": "{%r20, %r21, %r22, %r23}", "b64": "%d10", "v2.b64": "{%d10, %d11}",
}  # fmt: skip
WIDTHS = {"b8": 1, "b16": 2, "b32": 4, "v2.b32": 8, "v4.b32": 16, "b64": 8, "v2.b64": 16}
FILL = "\n".join(
    f"shl.b32 %r5, %r3, 4; add.u32 %r5, %r5, %r9; "
    f"st.shared.v4.b32 [%r5+{at * 1024}], {{%r0, %r3, %r0, %r3}};"
    for at in range(16)
) + "\nbar.sync 0;\n"  # fmt: skip


def _accesses() -> Iterator[tuple[str, str]]:
    for place, index in GLOBAL_PLACES.items():
        kinds: tuple[str, ...] = (
            ("b32",) if place in ("backwards", "three apart") else ("b32", "v4.b32")
        )
        if place in ("in line", "shifted by one"):
            kinds = tuple(WIDTHS)
        for kind in kinds:
            width, value = WIDTHS[kind], REGISTERS[kind]
            where = f"{index} mul.wide.u32 %d5, %r4, {width}; add.u64 %d6, %d0, %d5;"
            held = "cvt.u32.u16 %r20, %h1;" if value == "%h1" else ""
            yield f"load {kind} {place}", f"{where} ld.global.{kind} {value}, [%d6]; {held}"
            given = "cvt.u16.u32 %h1, %r0;" if value == "%h1" else "mov.u32 %r20, %r0;"
            yield f"store {kind} {place}", f"{where} {given} st.global.{kind} [%d6], {value};"
    for place, index in SHARED_PLACES.items():
        for kind in ("b8", "b16", "b32", "v2.b32", "v4.b32") if place != "gathered" else ("b32",):
            width, value = WIDTHS[kind], REGISTERS[kind]
            where = f"{index} mul.lo.u32 %r5, %r4, {width}; and.b32 %r5, %r5, 16383; add.u32 %r5, %r5, %r9;"
            held = "cvt.u32.u16 %r20, %h1;" if value == "%h1" else ""
            yield (
                f"shared load {kind} {place}",
                f"{FILL}{where} ld.shared.{kind} {value}, [%r5]; {held}",
            )
            given = "cvt.u16.u32 %h1, %r0;" if value == "%h1" else "mov.u32 %r20, %r0;"
            back = "bar.sync 0; ld.shared.b32 %r20, [%r9];"
            yield (
                f"shared store {kind} {place}",
                f"{FILL}{where} {given} st.shared.{kind} [%r5], {value}; {back}",
            )


def _others() -> Iterator[tuple[str, str]]:
    line = "mul.wide.u32 %d5, %r0, 4; add.u64 %d6, %d0, %d5;"
    yield "load b32 in line, read-only", f"{line} ld.global.nc.b32 %r20, [%d6];"
    yield "load b32 in line, generic", f"{line} ld.b32 %r20, [%d6];"
    yield (
        "load b32 in line, half of the lanes",
        (f"{line} and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 0; @%p1 ld.global.b32 %r20, [%d6];"),
    )
    yield (
        "load b32 in line, one warp of two",
        (f"{line} setp.lt.u32 %p1, %r3, 32; @%p1 ld.global.b32 %r20, [%d6];"),
    )
    yield "load past the first cache", f"{line} ld.global.cg.b32 %r20, [%d6];"
    yield "volatile load", f"{line} ld.volatile.global.b32 %r20, [%d6];"
    places = {"in line": "%r0", "one for all": "5", "a row apart": None}
    for name, index in places.items():
        where = "shl.b32 %r4, %r0, 5;" if index is None else f"mov.u32 %r4, {index};"
        where += " mul.wide.u32 %d5, %r4, 4; add.u64 %d6, %d0, %d5;"
        yield f"red add u32 {name}", f"{where} red.global.add.u32 [%d6], %r0;"
        yield f"atom add u32 {name}", f"{where} atom.global.add.u32 %r20, [%d6], %r0;"
        yield f"red add f32 {name}", f"{where} red.global.add.f32 [%d6], 0f3F800000;"
        yield f"atom cas b32 {name}", f"{where} atom.global.cas.b32 %r20, [%d6], 0, %r0;"
        inner = (
            "shl.b32 %r4, %r3, 5;" if index is None else f"mov.u32 %r4, {index.replace('0', '3')};"
        )
        inner += " shl.b32 %r5, %r4, 2; and.b32 %r5, %r5, 16383; add.u32 %r5, %r5, %r9;"
        yield (
            f"shared red add u32 {name}",
            (
                f"{FILL}{inner} red.shared.add.u32 [%r5], %r0; bar.sync 0; ld.shared.b32 %r20, [%r9];"
            ),
        )
        yield f"shared atom add u32 {name}", f"{FILL}{inner} atom.shared.add.u32 %r20, [%r5], %r0;"
    for count in (1, 2, 4):
        held = "{" + ", ".join(f"%r{20 + at}" for at in range(count)) + "}"
        for stride in (16, 80, 128):
            row = f"and.b32 %r5, %r3, 31; mul.lo.u32 %r5, %r5, {stride}; add.u32 %r5, %r5, %r9;"
            ending = f".x{count}.shared.b16"
            yield (
                f"ldmatrix x{count}, rows {stride} bytes apart",
                (f"{FILL}{row} ldmatrix.sync.aligned.m8n8{ending} {held}, [%r5];"),
            )
            yield (
                f"stmatrix x{count}, rows {stride} bytes apart",
                (
                    f"{FILL}{row} stmatrix.sync.aligned.m8n8{ending} [%r5], {held}; bar.sync 0; "
                    "ld.shared.b32 %r20, [%r9];"
                ),
            )
    copy = "mul.wide.u32 %d5, %r0, 16; add.u64 %d6, %d0, %d5; shl.b32 %r5, %r3, 4; add.u32 %r5, %r5, %r9;"
    for way, size in (("cg", 16), ("ca", 16), ("ca", 4)):
        yield (
            f"cp.async.{way} {size}",
            (
                f"{copy} cp.async.{way}.shared.global [%r5], [%d6], {size}; cp.async.wait_all; "
                "bar.sync 0; ld.shared.b32 %r20, [%r5];"
            ),
        )
    yield (
        "local memory, a place that differs by lane",
        (
            "mov.u32 %r5, own; and.b32 %r6, %r0, 3; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r5; "
            "st.local.v4.b32 [%r5], {%r0, %r3, %r0, %r3}; st.local.b32 [%r6], %r1; "
            "xor.b32 %r7, %r6, 4; ld.local.b32 %r20, [%r7];"
        ),
    )


def patterns() -> Iterator[Job]:
    rng = np.random.default_rng(9)
    places = rng.permutation(ROOM // 4)[: BLOCKS * THREADS].astype(np.uint32)
    for name, body in (*_accesses(), *_others()):
        data = rng.integers(0, 1 << 32, ROOM, np.uint32)
        args = [data, np.zeros(BLOCKS * THREADS, np.uint32), places]
        yield Job(name, f"{HEAD}{body}{DONE}", "k", (BLOCKS,), (THREADS,), args)


# Counts of these depend on who comes first.
BY_CHANCE = ("spin", "compare_and_swap", "volatile_flags")


def programs() -> Iterator[Job]:
    return (job for job in all_programs() if job.kernel not in BY_CHANCE)


def all_programs() -> Iterator[Job]:
    for program in PROGRAMS:
        text = (TESTS / "ptx" / "golden" / "nvcc" / f"{program.file}.ptx").read_text()
        yield Job(f"nvcc {program.name}", text, program.name, program.grid, program.block,
                  program.make(), program.shared_bytes)  # fmt: skip


def collectives(kind: str = "int") -> Iterator[Job]:
    text = (KEPT / f"cub_{kind}.ptx").read_text()
    for each in COLLECTIVES:
        blocks, args, _, _ = each.make(kind, 3 * each.items - 7)
        name = f"CUB {each.name}" + (f" {kind}" if kind != "int" else "")
        yield Job(name, text, each.name, (blocks,), (BLOCK,), args)


def all_collectives() -> Iterator[Job]:
    return (job for kind in TYPES for job in collectives(kind))


def tritons() -> Iterator[Job]:
    return (job for job in all_tritons() if job.name.endswith("sm_90"))


def all_tritons() -> Iterator[Job]:
    cases = {case.name: case for case in TRITON}
    for path in sorted(KEPT.glob("triton_*.ptx")):
        _, name, dtype, arch = path.stem.split("_", 3)
        case = cases[name]
        record = json.loads(path.read_text().partition("\n")[0][2:])
        args, _, _ = case.make(np.random.default_rng(1), dtype, case.sizes[1])
        passed = [args[each] for each in record["args"]] + [None] * record["scratch"]
        yield Job(f"Triton {name} {dtype} {arch}", path.read_text(), name, case.grid(args),
                  (record["threads"],), passed, record["shared"])  # fmt: skip


def numbas() -> Iterator[Job]:
    for name, case in NUMBA.items():
        args, _, _ = case.make(np.random.default_rng(5), case.dtype)
        passed: list[Any] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                passed += [None, None, arg.size, arg.itemsize, arg, *arg.shape, *arg.strides]
            else:
                passed.append(arg)
        text = (KEPT / f"numba_{name}_sm_90.ptx").read_text()
        grid, block = (each if isinstance(each, tuple) else (each,) for each in case.shape)
        yield Job(f"Numba {name}", text, "", grid, block, passed)


# Settings of the catalogue: a size that is no multiple of anything.
SIZES = {
    "n": 5001, "height": 37, "columns": 301, "batch": 70, "count": 70, "n0": 3, "n1": 37, "n2": 70,
}  # fmt: skip


def catalogued() -> Iterator[Job]:
    for name, entry in entries().items():
        kernel = entry.kernel()
        size = {key: SIZES[key] for key in entry.sizes(**entry.settings({}))[0]}
        case = entry.case(kernel, size, 1)
        described = [
            describe_numpy(each) if isinstance(each, np.ndarray) else each
            for each in case.arguments
        ]
        made = EmulatedFunction(kernel)
        grid = bind(kernel, described, {}).grid
        args = [
            param.dtype.numpy.type(given) if not isinstance(param, ArrayParam)
            else np.ascontiguousarray(given).tobytes() if param.space == "constant" else given
            for param, given in zip(kernel.params, case.arguments, strict=True)
        ]  # fmt: skip
        yield Job(f"catalogue {name}", made.ptx, function_name(kernel, "cuda"), grid,
                  kernel.block, args)  # fmt: skip


def jobs() -> list[Job]:
    makers = (patterns, programs, collectives, tritons, numbas, catalogued)
    return [job for maker in makers for job in maker()]
