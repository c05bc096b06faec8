"""Permutations of tensors on a GPU: the default call, beside a copy of as many bytes and PyTorch.

    python -m bench.catalogue.permute_device --out RESULTS.json      all rows that are missing
    python -m bench.catalogue.permute_device --only square           some of them
    python -m bench.catalogue.permute_device --dry                   small shapes, emulated

A row is `warploom.permute(x, axes)` on a PyTorch tensor, output made by the call, nothing tuned.
The copy is the faster of PyTorch's and of a kernel with accesses of 16 bytes. Times are medians of
batches that take turns; results are compared with PyTorch's before a row counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

import numpy as np
from bench.catalogue.permute_moves import MOVES, both, rights
from bench.catalogue.permute_rows import Row, movement_of, rows
from bench.harness import arguments, earlier, environment, measured, save

import warploom
from warploom.catalogue.permute.launch import Part, kernel_of
from warploom.catalogue.permute.launched import ready
from warploom.catalogue.permute.rule import parts
from warploom.errors import WarploomError

BATCH_MS, BATCHES = 4.0, 7
COPY = (
    'extern "C" __global__ void copy(const uint4* x, uint4* y, long long n) {\n'
    "  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) __stcs(y + i, __ldcs(x + i));\n}\n"
)


# -- on a GPU --------------------------------------------------------------------------------------


class Bench:
    def __init__(self) -> None:
        import torch

        from warploom.runtime.gpu import load_function

        self.torch = torch
        self.copy_kernel = load_function(COPY, "copy")

    def tensor(self, row: Row) -> Any:
        torch = self.torch
        raw = torch.randint(0, 256, (row.bytes,), dtype=torch.uint8, device="cuda")
        return raw.view(getattr(torch, row.dtype)).view(row.shape)

    def seconds(self, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
        """The median time of each call, on the GPU, in batches that take turns."""
        torch = self.torch
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def batch(call: Callable[[], Any], times: int) -> float:
            first.record()
            for _ in range(times):
                call()
            last.record()
            last.synchronize()
            return float(first.elapsed_time(last)) / times

        times: dict[str, int] = {}
        for name, call in calls.items():
            batch(call, 2)
            times[name] = max(2, min(200, round(BATCH_MS / max(1e-3, batch(call, 3)))))
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(BATCHES):
            for name, call in calls.items():
                taken[name].append(batch(call, times[name]))
        return {name: median(each) / 1e3 for name, each in taken.items()}

    def copies(self, x: Any) -> dict[str, Callable[[], Any]]:
        flat = x.reshape(-1).view(self.torch.uint8)
        held = (flat, self.torch.empty_like(flat))
        return {"copy": lambda: held[1].copy_(held[0]), "copy16": self.copying(*held)}

    def copying(self, x: Any, y: Any) -> Callable[[], Any]:
        """A copy of bytes, 16 at a time, on the stream that is the current one now."""
        count = x.numel() // 16
        return self.copy_kernel.bind(
            (-(-count // 256), 1, 1), (256, 1, 1), [x.data_ptr(), y.data_ptr(), np.int64(count)],
            self.torch.cuda.current_stream().cuda_stream,
        )  # fmt: skip

    def row(self, row: Row) -> dict[str, Any]:
        torch, axes = self.torch, row.axes
        x = self.tensor(row)
        began = time.perf_counter()
        y = warploom.permute(x, axes)
        torch.cuda.synchronize()
        first = time.perf_counter() - began
        right = torch.equal(bits(y), bits(x.permute(axes).contiguous()))
        del y
        calls = {
            "ours": lambda: warploom.permute(x, axes),
            "torch": lambda: x.permute(axes).contiguous(),
            **self.copies(x),
        }
        times = self.seconds(calls)
        copy = min(times["copy"], times["copy16"])
        return {
            "shape": row.shape, "axes": axes, "dtype": row.dtype, "right": right,
            "us": {name: round(value * 1e6, 2) for name, value in times.items()},
            "fraction": round(copy / times["ours"], 4), "torch": round(copy / times["torch"], 4),
            "kernels": kernels_of(row), "first_s": round(first, 2),
        }  # fmt: skip

    def move(self, name: str) -> dict[str, Any]:
        """Another movement, beside a copy of half the bytes that it reads and writes."""
        torch, row = self.torch, both(self.torch, name)
        found, wanted = row.ours(), row.torch()
        several = zip(*([each] if torch.is_tensor(each) else each for each in (found, wanted)),
                      strict=True)  # fmt: skip
        right = all(
            torch.equal(one, other) if row.exact
            else torch.allclose(one.float(), other.float(), rtol=2e-3, atol=2e-3)
            for one, other in several
        )  # fmt: skip
        del found, wanted
        copied = torch.empty(row.bytes // 32 * 16, dtype=torch.uint8, device="cuda")
        times = self.seconds({"ours": row.ours, "torch": row.torch, **self.copies(copied)})
        copy = min(times["copy"], times["copy16"])
        return {
            "bytes": row.bytes, "right": right,
            "us": {name: round(value * 1e6, 2) for name, value in times.items()},
            "fraction": round(copy / times["ours"], 4), "torch": round(copy / times["torch"], 4),
        }  # fmt: skip

    def small(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> dict[str, Any]:
        """Host cost of a call, and times of graphs of a hundred."""
        torch = self.torch
        x = torch.rand(shape, device="cuda")
        calls = {
            "ours": lambda: warploom.permute(x, axes),
            "torch": lambda: x.permute(axes).contiguous(),
        }
        found: dict[str, Any] = {"shape": shape, "axes": axes}
        found["right"] = torch.equal(calls["ours"](), calls["torch"]())
        for name, call in calls.items():
            torch.cuda.synchronize()
            host = []
            for _ in range(9):
                began = time.perf_counter()
                for _ in range(200):
                    call()
                host.append((time.perf_counter() - began) / 200)
                torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(100):
                    call()
            taken = self.seconds({"graph": graph.replay})["graph"] / 100
            found[name] = {"host_us": round(median(host) * 1e6, 2), "gpu_us": round(taken * 1e6, 3)}
        return found

    def large(self) -> dict[str, Any]:
        """More than 2³¹ elements."""
        torch, found = self.torch, {}
        for shape, axes in (((50001, 50003), (1, 0)), ((3, 40000, 20000), (2, 0, 1))):
            x = torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")
            y = warploom.permute(x, axes)
            found["x".join(map(str, shape))] = torch.equal(y, x.permute(axes))
            del x, y
        return found


def bits(x: Any) -> Any:
    import torch

    return x.view(
        {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    )


# -- compiled ahead -----------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A launch that does a row, compiled."""

    name: str
    part: Part
    says: dict[str, Any]  # what the rule knew of it
    kernel: Any
    code: bytes


Tried = tuple[str, str, Part, dict[str, Any]]  # row, variant, launch, what the rule knew of it


def compiled(given: Tried) -> tuple[str, Variant | None]:
    """A variant of a row, in a process of its own."""
    from warploom.emit.cuda import cuda
    from warploom.runtime.compile import compile_cuda

    row, key, part, says = given
    try:
        kernel = kernel_of(part.spec)
        code = compile_cuda(cuda(kernel), "sm_90", kind="cubin", contract=False).code
    except WarploomError as error:
        print(row, key, error, flush=True)
        return row, None
    return row, Variant(key, part, says, kernel, code)


def kernels_of(row: Row) -> list[str]:
    return [part.spec.name for part in parts(movement_of(row))]


SMALL = {
    "small/128x128": ((128, 128), (1, 0)),
    "small/8x16x16x8": ((8, 16, 16, 8), (0, 2, 3, 1)),
    "small/16x1000": ((16, 1000), (1, 0)),
    "small/4x64x64": ((4, 64, 64), (2, 1, 0)),
    "small/32x32": ((32, 32), (1, 0)),
    "small/7x11x13": ((7, 11, 13), (2, 0, 1)),
    "small/64x4x64": ((64, 4, 64), (1, 0, 2)),
}


def dry() -> int:
    """Rows with sides that are cut short, on the emulator."""
    bad = 0
    for name, row in list(rows().items())[:-200:3]:
        shape = tuple(min(size, 40 if len(row.shape) < 4 else 9) for size in row.shape)
        kind = np.dtype({"bfloat16": "int16"}.get(row.dtype, row.dtype))
        x = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
        right = np.array_equal(warploom.permute(x, row.axes, device="ptx"), x.transpose(row.axes))
        bad += not right
        said = "right" if right else "WRONG"
        print(f"{name} {shape}: {said}; there by {', '.join(kernels_of(row))}", flush=True)
    return bad


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Medians and extremes of the rows of each kind."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for name, row in found.items():
        if "fraction" in row:
            kinds.setdefault(name.split("/")[0], []).append(row)
    return {
        kind: {
            "rows": len(each), "median": median(row["fraction"] for row in each),
            "least": min(row["fraction"] for row in each),
            "slower_than_torch": sum(row["us"]["ours"] > row["us"]["torch"] for row in each),
            "wrong": sum(not row["right"] for row in each),
        }
        for kind, each in kinds.items()
    }  # fmt: skip


def chosen(given: tuple[str, Row]) -> list[tuple[str, str, Part, dict[str, Any]]]:
    """The launches of the rule for a row."""
    name, row = given
    return [(name, part.spec.name, part, {}) for part in parts(movement_of(row))]


class Ahead:
    """Kernels of rows, compiled by a pool of processes before any is measured."""

    def __init__(self, names: Sequence[str], known: dict[str, Row]) -> None:
        from multiprocessing import get_context

        self._pool = get_context("fork").Pool()  # it is there before CUDA is begun
        asked = [(name, known[name]) for name in names]
        several = [each for found in self._pool.map(chosen, asked) for each in found]
        self._waiting = {
            name: list(group) for name, group in groupby(several, key=lambda each: each[0])
        }
        self._made = {
            name: [self._pool.apply_async(compiled, (each,)) for each in group]
            for name, group in self._waiting.items()
        }

    def wait(self) -> None:
        """Until all are compiled: beside a busy pool, calls take longer on the host."""
        for several in self._made.values():
            for each in several:
                each.wait()

    def take(self, name: str) -> None:
        """Hands the kernels of a row to the call."""
        from warploom.emit.spell import function_name
        from warploom.runtime.driver import open_driver

        for made in self._made.get(name, []):
            _, variant = made.get()
            if variant is not None:
                entry = function_name(variant.kernel, "cuda")
                function = open_driver().load(variant.code, entry, 0)
                ready(variant.part.spec, variant.kernel, function, 0)


def main() -> int:
    parser = arguments(
        __doc__, "permute_device.json", dry="the emulator instead of a GPU",
        only="rows whose name has this word", resumes=True,
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=math.inf, help="no row is begun later")
    given = parser.parse_args()
    if given.dry:
        return 1 if dry() else 0
    began = time.monotonic()
    record = earlier(given.out, {"rows": {}}, again=given.again)
    found, known = record["rows"], rows()
    left = [name for name in known if given.only in name and name not in found]
    ahead = Ahead(left, known)
    ahead.wait()
    bench = Bench()

    def keep(name: str) -> None:
        row = found[name]
        print(name, row.get("fraction", row), row.get("torch", ""), flush=True)
        save(given.out, record | {"summary": summary(found)} | environment("NVIDIA H200"))
        if time.monotonic() - began > given.seconds:
            raise SystemExit("the time is over: the same command goes on")

    def make(name: str) -> dict[str, Any]:
        bench.torch.cuda.empty_cache()
        if name in SMALL:
            return bench.small(*SMALL[name])
        if name == "large":
            return bench.large()
        if name in MOVES:
            return bench.move(name)
        if name == "right":
            return rights(bench.torch)
        ahead.take(name)
        return bench.row(known[name])

    last = [name for name in known if name.startswith(("random", "aside"))]
    first = [name for name in known if name not in last]
    wanted = [*SMALL, *first, *MOVES, "large", *last, "right"]
    measured(found, wanted, make, keep, only=given.only)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
