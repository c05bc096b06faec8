"""The emulator against a GPU: small kernels compiled by nvcc, compared bit for bit.

    python -m bench.ptx.device            on a machine with a GPU, nvcc and cupy
    python -m bench.ptx.device --dry      the emulator alone, against the bits of the record

Writes a JSON record with one entry per kernel and picks up where an earlier run stopped.
Approximate instructions may differ within their documented error; NaNs of 64-bit results count as
equal whatever their bits, since the documentation does not fix them.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.ptx import device_kernels as kernels
from bench.common.ptx import programs
from bench.harness import ROOT, arguments, earlier, environment, save

from warploom import ptx
from warploom.errors import WarploomError

KERNELS = ROOT / "tests" / "ptx"


class Job:
    """One launch: a name, the module it is in, and fresh arguments."""

    def __init__(self, name: str, group: str, case: Any, program: Any) -> None:
        self.name, self.group, self.case, self.program = name, group, case, program

    def arguments(self) -> list[Any]:
        if self.case is None:
            return list(self.program.make())
        return [*kernels.inputs(self.case), *kernels.outputs(self.case)]

    @property
    def shape(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        if self.case is None:
            return self.program.grid, self.program.block, self.program.shared_bytes
        return (kernels.SIZE // kernels.BLOCK,), (kernels.BLOCK,), 0

    def instructions(self) -> str:
        return self.case.asm if self.case is not None else f"cuda/{self.program.file}.cu"


def jobs() -> list[Job]:
    small = [Job(case.name, "instructions", case, None) for case in kernels.cases()]
    return small + [Job(p.name, p.file, None, p) for p in programs.PROGRAMS]


def compile_ptx(group: str, arch: str, folder: Path) -> str:
    """PTX of a group of kernels by nvcc."""
    folder.mkdir(parents=True, exist_ok=True)
    if group == "instructions":
        source = folder / "instructions.cu"
        source.write_text(kernels.all_source())
    else:
        source = KERNELS / "cuda" / f"{group}.cu"
    target = folder / f"{group}.ptx"
    command = ["nvcc", "-ptx", f"-arch={arch}", "-o", str(target), str(source)]
    subprocess.run(command, check=True)
    return target.read_text()


def run_emulator(module: ptx.LoadedModule, job: Job) -> list[Any]:
    grid, block, shared = job.shape
    args = job.arguments()
    module.kernel(job.name).launch(grid, block, args, shared_bytes=shared)
    return args


@lru_cache
def device_module(path: Path) -> Any:
    import cupy

    return cupy.RawModule(path=str(path))


def run_device(path: Path, job: Job) -> list[Any]:
    import cupy  # only on a machine with a GPU

    module = device_module(path)
    grid, block, shared = job.shape
    args = job.arguments()
    there: list[Any] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            # cupy has no float16 trouble, but bits travel more safely as bytes.
            there.append(cupy.asarray(arg.reshape(-1).view(np.uint8)))
        elif isinstance(arg, bytes):
            there.append(np.frombuffer(arg, np.dtype(f"V{len(arg)}"))[0])
        else:
            there.append(np.int32(arg) if isinstance(arg, int) else arg)

    def full(sizes: tuple[int, ...]) -> tuple[int, ...]:
        return (*sizes, *[1] * (3 - len(sizes)))

    module.get_function(job.name)(full(grid), full(block), tuple(there), shared_mem=shared)
    cupy.cuda.runtime.deviceSynchronize()
    out: list[Any] = []
    for arg, moved in zip(args, there, strict=True):
        if isinstance(arg, np.ndarray):
            out.append(moved.get().view(arg.dtype).reshape(arg.shape))
        else:
            out.append(arg)
    return out


def compare(job: Job, here: list[Any], there: list[Any]) -> dict[str, Any]:
    """Counts of equal, close and different elements over all array arguments."""
    record: dict[str, Any] = {"elements": 0, "different": 0, "close": 0, "examples": []}
    for number, (mine, theirs) in enumerate(zip(here, there, strict=True)):
        if not isinstance(mine, np.ndarray):
            continue
        a, b = mine.reshape(-1), theirs.reshape(-1)
        bits = np.dtype(f"u{a.dtype.itemsize}")
        differ = a.view(bits) != b.view(bits)
        if a.dtype == np.float64:
            differ &= ~(np.isnan(a) & np.isnan(b))
        close = differ & _close(job, a, b)
        record["elements"] += int(a.size)
        record["close"] += int(close.sum())
        wrong = np.flatnonzero(differ & ~close)
        record["different"] += int(wrong.size)
        for at in wrong[:3].tolist():
            sources = [
                hex(int(x.reshape(-1).view(np.dtype(f"u{x.dtype.itemsize}"))[at]))
                for x in job.arguments()
                if isinstance(x, np.ndarray) and x.size == a.size
            ]
            record["examples"].append(
                {"argument": number, "element": at, "emulator": hex(int(a.view(bits)[at])),
                 "device": hex(int(b.view(bits)[at])), "inputs": sources}
            )  # fmt: skip
    record["status"] = "different" if record["different"] else "equal"
    return record


def _close(job: Job, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if job.case is None or not (job.case.tolerance or job.case.absolute) or a.dtype.kind != "f":
        return np.zeros(a.shape, bool)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        allowed = job.case.absolute + job.case.tolerance * np.abs(x)
        # Approximate instructions flush what is subnormal.
        tiny = float(np.finfo(a.dtype).tiny)
        flushed = (np.abs(x) < 2 * tiny) & (np.abs(y) < 2 * tiny)
        same = (np.isnan(x) & np.isnan(y)) | (x == y)
        near: np.ndarray = same | (np.abs(x - y) <= allowed) | flushed
    return near


def main() -> int:
    parser = arguments(
        __doc__,
        "ptx_device.json",
        dry="run the emulator only",
        only="names that contain this text",
        resumes=True,
    )
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "ptx_device")
    options = parser.parse_args()
    done: dict[str, Any] = earlier(options.out, again=options.again).get("kernels", {})
    started = time.monotonic()
    chosen = [job for job in jobs() if options.only in job.name]
    texts = {g: compile_ptx(g, options.arch, options.work) for g in {j.group for j in chosen}}
    modules = {group: ptx.load(text, f"{group}.ptx") for group, text in texts.items()}
    failures = known = 0
    for job in chosen:
        body = modules[job.group].module
        function = body.function(job.name)
        assert function is not None
        digest = hashlib.sha256(body.source_of(function).encode()).hexdigest()[:16]
        before = done.get(job.name, {})
        if before.get("ptx") == digest and before.get("status") == "equal" and not options.dry:
            continue
        record = _one(job, modules[job.group], options.work / f"{job.group}.ptx", options.dry)
        record |= {"ptx": digest, "instructions": job.instructions()}
        if options.dry and before.get("ptx") == digest and "bits" in before:
            known += 1
            record["status"] = "equal" if record.get("bits") == before["bits"] else "different"
        failures += record["status"] in ("different", "error")
        if record["status"] in ("different", "error"):
            print(f"{job.name}: {record}")
        if not options.dry:
            done[job.name] = record
            _save(options.out, done, options.arch)
    total = len(chosen)
    seconds = time.monotonic() - started
    of_record = f", {known} held to the bits of the record" if options.dry else ""
    print(f"{total} kernels, {failures} differ, {seconds:.1f} s{of_record}")
    return 1 if failures else 0


def _one(job: Job, module: ptx.LoadedModule, path: Path, dry: bool) -> dict[str, Any]:
    try:
        here = run_emulator(module, job)
    except WarploomError as error:
        return {"status": "error", "message": str(error)}
    arrays = [each.tobytes() for each in here if isinstance(each, np.ndarray)]
    bits = {"bits": hashlib.sha256(b"".join(arrays)).hexdigest()[:16]}
    if dry:
        return {"status": "not compared"} | bits
    return compare(job, here, run_device(path, job)) | bits


def _machine() -> str:
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


def _save(path: Path, done: dict[str, Any], arch: str) -> None:
    equal = sum(1 for record in done.values() if record["status"] == "equal")
    text = {
        **environment(_machine()),
        "arch": arch,
        "equal": equal,
        "kernels": done,
    }
    save(path, text, sort_keys=True)


if __name__ == "__main__":
    raise SystemExit(main())
