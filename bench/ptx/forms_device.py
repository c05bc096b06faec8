"""Every form of every pure opcode in the table, on a GPU and on the emulator, compared bit for bit.

    python -m bench.ptx.forms_device prepare FOLDER          needs ptxas; no GPU
    python -m bench.ptx.forms_device run FOLDER              needs a GPU and cupy; seconds

`prepare` assembles the kernels for sm_90a and keeps what the emulator gives for each. `run` launches
them, and goes on where an earlier run of the same folder stopped. Forms that ptxas does not assemble
for sm_90a are counted as newer. Approximate instructions may differ as the manual allows; NaNs count
as equal whatever their bits where the manual leaves those open. Also a few kernels of several
instructions: masks of members, guarded indirect branches, carries, sums in memory.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.ptx.spelling import (
    THREADS,
    inputs,
    instruction,
    parts,
    program,
    spelled,
    variants,
)
from bench.harness import arguments, earlier, environment, save

from warploom import ptx
from warploom.ptx.table import OPCODES

Array = np.ndarray[Any, Any]
TOGETHER = 50  # forms in a kernel: with more the registers of its threads do not suffice
# Largest errors of approximations, relative and absolute, as the manual has them or a little more.
APPROXIMATE = {
    "div": (2.0**-21, 0.0), "rcp": (2.0**-22, 0.0), "sqrt": (2.0**-21, 0.0), "rsqrt": (2.0**-21, 0.0),
    "sin": (0.0, 2.0**-19), "cos": (0.0, 2.0**-19), "lg2": (2.0**-21, 2.0**-21), "ex2": (2.0**-21, 0.0),
    "tanh": (2.0**-10, 2.0**-10),
}  # fmt: skip
COARSE = {2: 2.0**-7, 8: 2.0**-19}  # relative, of approximations in 16 bits and in 64
OPEN_NAN = ("abs", "neg")
SMALLEST = 2.0**-120  # of a single; below it approximations are compared no more
# ex2 of halves: among subnormals a relative error means nothing, since they lie 2⁻²⁴ apart. An H200
# rounds the other way for 5 of the 1,024 inputs here.
SMALLEST_HALF = 2.0**-24
LANES = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 h, .param .u64 r, .param .u64 l, .param .u64 out)
{ .reg .pred %p<4>; .reg .b32 %t, %n, %m, %v, %w, %x<9>; .reg .b64 %o, %b; .reg .f32 %f<9>; .shared .align 4 .b8 s[4096];
mov.u32 %t, %tid.x; ld.param.u64 %b, [r]; mad.wide.u32 %b, %t, 4, %b; ld.global.u32 %v, [%b]; ld.global.u32 %w, [%b+4096];
ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 8, %o; and.b32 %n, %t, 31; shr.u32 %x0, %n, SHIFT; mov.b32 %f1, %v; mov.b32 %f2, %w;
mov.u32 %m, ONES; shl.b32 %x0, %x0, SHIFT; shl.b32 %m, %m, %x0; and.b32 %x1, %v, 3; setp.lt.s32 %p1, %v, 0; mov.u32 %x2, 0;
BODY
st.global.u32 [%o], %x2; ret; }
"""
MASKED = {
    "vote.ballot": "vote.sync.ballot.b32 %x2, %p1, %m;",
    "vote.all": "vote.sync.all.pred %p2, %p1, %m; selp.u32 %x2, 1, 0, %p2;",
    "vote.any": "vote.sync.any.pred %p2, %p1, %m; selp.u32 %x2, 1, 0, %p2;",
    "vote.uni": "vote.sync.uni.pred %p2, %p1, %m; selp.u32 %x2, 1, 0, %p2;",
    "match.any": "match.any.sync.b32 %x2, %x1, %m;",
    "match.all": "match.all.sync.b32 %x2|%p2, %x1, %m;",
    "redux.add": "redux.sync.add.u32 %x2, %v, %m;",
    "redux.min": "redux.sync.min.s32 %x2, %v, %m;",
    "redux.xor": "redux.sync.xor.b32 %x2, %v, %m;",
    "elect": "elect.sync %x2|%p2, %m;",
}
ALONE = {
    "brx": "mov.u32 %x2, 9; L: .branchtargets A, B, C, D; @%p1 brx.idx %x1, L; mov.u32 %x2, 8; bra E;\n"
    "A: mov.u32 %x2, 0; bra E; B: mov.u32 %x2, 1; bra E; C: mov.u32 %x2, 2; bra E; D: mov.u32 %x2, 3; E:",
    "sub.cc addc": "sub.cc.u32 %x3, %v, %w; addc.u32 %x2, %v, 0;",
    "sub.cc subc": "sub.cc.u32 %x3, %v, %w; subc.cc.u32 %x2, %v, %w; subc.u32 %x2, %x2, 0;",
    "add.cc subc": "add.cc.u32 %x3, %v, %w; subc.u32 %x2, %v, 0;",
    "mad.cc subc": "mad.lo.cc.u32 %x3, %v, %w, %t; subc.u32 %x2, %v, 0;",
    "red.global.add.f32": "st.global.f32 [%o], %f1; red.global.add.f32 [%o], %f2; membar.gl; ld.volatile.global.u32 %x2, [%o];",
    "atom.shared.add.f32": "shl.b32 %x4, %t, 2; mov.u32 %x5, s; add.u32 %x4, %x4, %x5; st.shared.f32 [%x4], %f1; atom.shared.add.f32 %f3, [%x4], %f2; ld.shared.u32 %x2, [%x4];",
    "bar.red.popc, 40 threads": "setp.gt.u32 %p3, %t, 39; @%p3 st.global.u32 [%o], %x2; @%p3 exit; bar.red.popc.u32 %x2, 0, %p1;",
}


# -- without a GPU ----------------------------------------------------------------------------------


def forms(name: str) -> list[str]:
    record = OPCODES[name]
    every = [
        instruction(record, form, parts(row), variant)
        for form in record.forms
        for row in spelled(form)
        for variant in variants(record)
    ]
    return list(dict.fromkeys(every))


def assembled(texts: list[str], folder: Path) -> list[str]:
    """Those that ptxas takes for sm_90a; an error at the end keeps it from compiling."""
    text = program([*texts, "add.nothing %r0, %r0, %r0;"], "sm_90a")
    rows = {row.strip(): number for number, row in enumerate(text.split("\n"), 1)}
    (folder / "try.ptx").write_text(text)
    command = ["ptxas", "-arch=sm_90a", "-o", str(folder / "out"), str(folder / "try.ptx")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    bad = {int(row) for row in re.findall(r"line (\d+); error", said)}
    return [text for text in texts if rows[text] not in bad]


def kept(name: str, texts: list[str], text: str, folder: Path) -> dict[str, Any]:
    """A kernel as the device needs it, and what the emulator gives."""
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    source, cubin = folder / f"{key}.ptx", folder / f"{key}.cubin"
    if not cubin.exists():
        source.write_text(text)
        command = [
            "ptxas",
            "-arch=sm_90a",
            "-O1",
            "-maxrregcount=64",
            "-o",
            str(cubin),
            str(source),
        ]
        subprocess.run(command, check=True)
        source.unlink()
    out = np.zeros((len(texts), THREADS), np.uint64)
    ptx.load(text).kernel("k").launch(1, THREADS, [*inputs(), out])
    np.save(folder / f"{key}.npy", out)
    return {"opcode": name, "key": key, "texts": texts}


def prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    jobs, newer = [], {}
    for record in OPCODES.values():
        if not record.pure or record.name in ("mov", "cvta", "isspacep"):
            continue
        every = forms(record.name)
        texts = assembled(every, folder)
        newer[record.name] = len(every) - len(texts)
        for first in range(0, len(texts), TOGETHER):
            some = texts[first : first + TOGETHER]
            jobs.append(kept(record.name, some, program(some, "sm_90a"), folder))
    for case, body in MASKED.items():
        for shift in (5, 4, 3, 1):
            text = LANES.replace("BODY", body).replace("SHIFT", str(shift))
            text = text.replace("ONES", hex((1 << (1 << shift)) - 1))
            jobs.append(kept(f"{case}/{1 << shift}", [case], text, folder))
    for case, body in ALONE.items():
        text = LANES.replace("BODY", body).replace("SHIFT", "5").replace("ONES", "-1")
        jobs.append(kept(case, [case], text, folder))
    (folder / "jobs.json").write_text(json.dumps({"jobs": jobs, "newer": newer}))
    size = sum(file.stat().st_size for file in folder.iterdir()) >> 20
    print(f"{sum(len(job['texts']) for job in jobs)} forms in {len(jobs)} kernels, {size} MiB; "
          f"{sum(newer.values())} forms are newer than sm_90a")  # fmt: skip


# -- with a GPU -------------------------------------------------------------------------------------


def on_device(cubin: Path, rows: int) -> Array:
    import cupy  # only on a machine with a GPU

    kernel = cupy.RawModule(path=str(cubin)).get_function("k")
    given = [cupy.asarray(np.ascontiguousarray(x).view(np.uint8).reshape(-1)) for x in inputs()]
    out = cupy.zeros((rows, THREADS), cupy.uint64)
    kernel((1,), (THREADS,), (*given, out))
    cupy.cuda.runtime.deviceSynchronize()
    found: Array = cupy.asnumpy(out)
    return found


def numbers(bits: Array, size: int) -> Array:
    """Results of one type as doubles."""
    kind = {2: np.float16, 4: np.float32, 8: np.float64}[size]
    raw = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 8)[:, :size]
    values: Array = np.ascontiguousarray(raw).view(kind).reshape(-1).astype(np.float64)
    return values


def halves_close(a: Array, b: Array) -> Array:
    """Packed halves that differ in their last bits only."""
    x, y = (np.ascontiguousarray(v).view(np.uint16).reshape(-1, 4)[:, :2] for v in (a, b))
    close: Array = (np.abs(x.astype(np.int64) - y) <= 8).all(axis=1)
    return close


def left_open(opcode: str) -> Array:
    """Threads whose inputs the manual gives no result for: fns with a base outside of 0 to 31, or
    with the one offset that has no opposite."""
    if opcode != "fns":
        return np.zeros(THREADS, bool)
    _, base, offset, *_ = inputs()[1]
    return np.asarray((base > 31) | (offset == 1 << 31))


def same(text: str, a: Array, b: Array) -> Array:
    """Element by element, as exact as the manual is."""
    equal = a == b
    if "%" not in text:  # a kernel of several instructions
        return equal
    name, target = text.split()[:2]
    opcode, kind = name.split(".")[0], name.split(".")[-1]
    equal |= left_open(opcode)
    approximate = ".approx" in name or ".full" in name
    size = {"%d": 8, "%f": 4, "%h": 2}.get(target[:2], 0)
    if not size or kind not in ("f16", "bf16", "f32", "f64"):
        return equal | halves_close(a, b) if approximate else equal
    with np.errstate(all="ignore"):
        x, y = numbers(a, size), numbers(b, size)
        if kind == "bf16":
            x, y = (numbers(v << np.uint64(16), 4) for v in (a, b))
        if size == 8 or opcode in OPEN_NAN or approximate:
            equal |= np.isnan(x) & np.isnan(y)
        if approximate:
            relative, absolute = APPROXIMATE[opcode]
            relative = max(relative, COARSE.get(size, 0.0))
            if (opcode, kind) == ("ex2", "f16"):
                absolute = SMALLEST_HALF
            allowed = relative * np.maximum(np.abs(x), np.abs(y)) + absolute
            equal |= np.abs(x - y) <= allowed + (SMALLEST if size == 4 else 0.0)
    return equal


def compare(job: dict[str, Any], folder: Path) -> dict[str, list[Any]]:
    """Per form that differs: how often, and the first time with both results."""
    texts = job["texts"]
    here: Array = np.load(folder / f"{job['key']}.npy")
    there = on_device(folder / f"{job['key']}.cubin", len(texts))
    different: dict[str, list[Any]] = {}
    for row, line in enumerate(texts):
        bad = np.flatnonzero(~same(line, there[row], here[row]))
        if bad.size:
            given = [
                [hex(int(column[at])) for bank in inputs() for column in bank[:4]] for at in bad[:1]
            ]
            different[line] = [
                int(bad.size),
                int(bad[0]),
                hex(int(there[row, bad[0]])),
                hex(int(here[row, bad[0]])),
                given[0],
            ]
    return different


def run(folder: Path, path: Path) -> None:
    started = time.monotonic()
    plan = json.loads((folder / "jobs.json").read_text())
    done_file = folder / "done.json"
    done: dict[str, dict[str, list[Any]]] = earlier(done_file)
    for job in plan["jobs"]:
        expected = hashlib.sha256((folder / f"{job['key']}.npy").read_bytes()).hexdigest()[:16]
        mark = f"{job['key']} {expected}"
        if mark not in done:
            done[mark] = compare(job, folder)
            done_file.write_text(json.dumps(done))
        job["different"] = done[mark]
    records: dict[str, dict[str, Any]] = {}
    for job in plan["jobs"]:
        entry = records.setdefault(
            job["opcode"],
            {"forms": 0, "newer": plan["newer"].get(job["opcode"], 0), "different": {}},
        )
        entry["forms"] += len(job["texts"])
        entry["different"] |= job["different"]
    for name, entry in records.items():
        for line, what in entry["different"].items():
            print(
                f"{name}: {line} differs {what[0]} times: {what[2]} on the GPU, {what[3]} here, given {what[4]}"
            )
    total = sum(entry["forms"] for entry in records.values())
    bad = sum(len(entry["different"]) for entry in records.values())
    seconds = time.monotonic() - started
    print(f"{total - bad} of {total} forms agree on {THREADS} threads each, {seconds:.0f} s")
    record = {"threads": THREADS, "equal": total - bad, "forms": total, "opcodes": records}
    save(path, environment("NVIDIA H200") | record)


def main() -> None:
    parser = arguments(__doc__, "ptx_forms_device.json")
    parser.add_argument("step", choices=["prepare", "run"])
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    if asked.step == "prepare":
        prepare(asked.folder)
    else:
        run(asked.folder, asked.out)


if __name__ == "__main__":
    main()
