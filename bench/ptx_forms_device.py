# ruff: noqa: E501 - instructions read better with a line each
"""Every form of every pure opcode in the table, on a GPU and on the emulator, compared bit for bit.

    python bench/ptx_forms_device.py [OUT.json]     on a machine with a GPU, ptxas and cupy

Forms that ptxas does not assemble for sm_90a are counted as such. Approximate instructions may
differ by a few units in the last place; NaNs of 64-bit results count as equal whatever their bits.
Also a few kernels for masks of members and guarded indirect branches.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.ptx.spelling import (  # noqa: E402 - the checkout is used without being installed
    THREADS,
    inputs,
    instruction,
    parts,
    program,
    spelled,
)

from warploom import ptx  # noqa: E402
from warploom.ptx.table import OPCODES  # noqa: E402

TOGETHER = 50
APPROXIMATE = 2.0**-19  # relative; of results of normal size
LANES = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 h, .param .u64 r, .param .u64 l, .param .u64 out)
{ .reg .pred %p<4>; .reg .b32 %t, %n, %m, %v, %x<9>; .reg .b64 %o, %b;
mov.u32 %t, %tid.x; ld.param.u64 %b, [r]; mad.wide.u32 %b, %t, 4, %b; ld.global.u32 %v, [%b];
ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 8, %o; and.b32 %n, %t, 31; shr.u32 %x0, %n, SHIFT;
mov.u32 %m, ONES; shl.b32 %x0, %x0, SHIFT; shl.b32 %m, %m, %x0; and.b32 %x1, %v, 3; setp.lt.s32 %p1, %v, 0;
BODY
st.global.u32 [%o], %x2; ret; }
"""
BODIES = {
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
    "brx": "mov.u32 %x2, 9; L: .branchtargets A, B, C, D; @%p1 brx.idx %x1, L; mov.u32 %x2, 8; bra E;\n"
    "A: mov.u32 %x2, 0; bra E; B: mov.u32 %x2, 1; bra E; C: mov.u32 %x2, 2; bra E; D: mov.u32 %x2, 3; E:",
}


def assembled(texts: list[str], folder: Path) -> list[str]:
    """Those that ptxas takes for sm_90a; an error at the end keeps it from compiling."""
    text = program([*texts, "add.nothing %r0, %r0, %r0;"])
    rows = {row.strip(): number for number, row in enumerate(text.split("\n"), 1)}
    (folder / "try.ptx").write_text(text)
    command = ["ptxas", "-arch=sm_90a", "-o", str(folder / "out"), str(folder / "try.ptx")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    bad = {int(row) for row in re.findall(r"line (\d+); error", said)}
    return [text for text in texts if rows[text] not in bad]


def on_device(text: str, rows: int, folder: Path) -> np.ndarray[Any, Any]:
    import cupy

    # A name of its own for each: CuPy remembers modules by their path.
    file = folder / f"run{len(list(folder.iterdir()))}.ptx"
    file.write_text(text)
    cubin = file.with_suffix(".cubin")
    subprocess.run(
        ["ptxas", "-arch=sm_90a", "-O1", "-maxrregcount=64", "-o", str(cubin), str(file)],
        check=True,
    )
    kernel = cupy.RawModule(path=str(cubin)).get_function("k")
    given = [cupy.asarray(np.ascontiguousarray(x).view(np.uint8).reshape(-1)) for x in inputs()]
    out = cupy.zeros((rows, THREADS), cupy.uint64)
    kernel((1,), (THREADS,), (*given, out))
    cupy.cuda.runtime.deviceSynchronize()
    return cupy.asnumpy(out)


def on_emulator(text: str, rows: int) -> np.ndarray[Any, Any]:
    out = np.zeros((rows, THREADS), np.uint64)
    ptx.load(text).kernel("k").launch(1, THREADS, [*inputs(), out])
    return out


def same(text: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Element by element; NaNs of doubles are alike, approximations may differ a little."""
    equal = a == b
    target = text.split()[1][:2]
    if target == "%d":
        x, y = a.view(np.float64), b.view(np.float64)
        equal |= np.isnan(x) & np.isnan(y)
    if ".approx" in text or ".full" in text:
        kind = {"%d": np.float64, "%f": np.float32}.get(target)
        if kind is None:
            return np.ones_like(equal)  # halves and pairs: judged by ulps elsewhere
        x = a.astype(np.uint64).view(np.uint8).reshape(-1, 8)[:, : np.dtype(kind).itemsize]
        y = b.astype(np.uint64).view(np.uint8).reshape(-1, 8)[:, : np.dtype(kind).itemsize]
        x, y = (np.ascontiguousarray(v).view(kind).reshape(-1).astype(np.float64) for v in (x, y))
        with np.errstate(all="ignore"):
            close = np.abs(x - y) <= APPROXIMATE * np.maximum(np.abs(x), np.abs(y)) + 2.0**-120
        equal |= close | (np.isnan(x) & np.isnan(y))
    return equal


def compare(name: str, texts: list[str], folder: Path) -> dict[str, Any]:
    """`TOGETHER` forms in a kernel: with more the registers of its threads do not suffice."""
    different: dict[str, list[Any]] = {}
    for first in range(0, len(texts), TOGETHER):
        different |= _different(texts[first : first + TOGETHER], folder)
    return {"opcode": name, "forms": len(texts), "different": different}


def _different(texts: list[str], folder: Path) -> dict[str, list[Any]]:
    text = program(texts)
    there, here = on_device(text, len(texts), folder), on_emulator(text, len(texts))
    different: dict[str, list[Any]] = {}
    for row, line in enumerate(texts):
        bad = np.flatnonzero(~same(line, there[row], here[row]))
        if bad.size:
            at = int(bad[0])
            different[line] = [int(bad.size), at, hex(int(there[row, at])), hex(int(here[row, at]))]
    return different


def main(path: Path) -> None:
    started = time.monotonic()
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for record in OPCODES.values():
            if not record.pure or record.name in ("mov", "cvta", "isspacep"):
                continue
            every = [
                instruction(record, form, parts(row))
                for form in record.forms
                for row in spelled(form)
            ]
            every = list(dict.fromkeys(every))
            texts = assembled(every, folder)
            entry = compare(record.name, texts, folder)
            entry["newer"] = len(every) - len(texts)
            records.append(entry)
            print(
                record.name,
                len(texts),
                len(every) - len(texts),
                len(entry["different"]),
                flush=True,
            )
        for case, body in BODIES.items():
            for shift in (5, 4, 3, 1):
                text = LANES.replace("BODY", body).replace("SHIFT", str(shift))
                text = text.replace("ONES", hex((1 << (1 << shift)) - 1))
                there, here = on_device(text, 1, folder), on_emulator(text, 1)
                bad = np.flatnonzero((there != here)[0])
                records.append({"opcode": f"{case}/{1 << shift}", "forms": 1, "different": {
                    case: [int(bad.size), int(bad[0]), hex(int(there[0, bad[0]])), hex(int(here[0, bad[0]]))]
                } if bad.size else {}})  # fmt: skip
    for entry in records:
        if entry["different"]:
            print(
                entry["opcode"],
                len(entry["different"]),
                "of",
                entry["forms"],
                dict(list(entry["different"].items())[:6]),
            )
    total = sum(entry["forms"] for entry in records)
    bad = sum(len(entry["different"]) for entry in records)
    print(
        f"{total - bad} of {total} forms agree on {THREADS} threads, {time.monotonic() - started:.0f} s"
    )
    path.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "bench/results/ptx_forms_device.json")
