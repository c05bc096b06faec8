"""Many kernels for the same permutation, timed on a GPU: what the rule of choice is fitted to.

    python -m bench.catalogue.permute_probe --out P.json                all rows that are missing
    python -m bench.catalogue.permute_probe --only random --out P.json  some of them
    python -m bench.catalogue.permute_probe --dry                       small shapes, emulated

A row is tried with launches of each kind of kernel (`@bands` of an axis are another order of their
blocks), each in a CUDA graph of many, beside a copy of as many bytes and PyTorch in graphs as well.
So times are the GPU's alone. What a row found is told as a line of JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from statistics import median
from typing import Any

import numpy as np
from bench.catalogue.permute_device import Bench, Variant, bits, compiled
from bench.catalogue.permute_rows import Row, movement_of, rows
from bench.harness import arguments, earlier, environment, save

import warploom
from warploom.catalogue.permute.cuts import cut
from warploom.catalogue.permute.launch import Candidate, Part, Place, Spec, kernel_of
from warploom.catalogue.permute.launched import Launch
from warploom.catalogue.permute.launched import arguments as passed
from warploom.catalogue.permute.problem import Movement, banded
from warploom.catalogue.permute.rule import candidates
from warploom.catalogue.permute.tiles import vector_part
from warploom.catalogue.permute.vector import Vectors
from warploom.emit.spell import function_name
from warploom.kernel.evaluate import run as simulate

RANKS = (0, 1, 2, 4, 8, 16)  # of the launches of a kind, the cheapest first
GRAPH_MS = 1.0
BANDS = (256, 512, 1024, 2048, 4096)
MANY = 1 << 24  # bytes, fewer than caches have room for
SIDES = (32, 64, 128, 256, 512)
SLOW = (
 0, 3, 13, 29, 35, 53, 55, 56, 59, 63, 67, 69, 74, 75, 90, 94, 95, 96, 100, 111, 112, 116,
 127,         131, 139, 145, 146, 148, 153, 154, 161, 167, 182, 187, 197, 198,
)  # fmt: skip
LARGE = tuple(f"square/16384/{kind}" for kind in ("float64", "float32", "float16", "int8"))
CACHED = {
    "cached/2048x2048/int8": Row((2048, 2048), (1, 0), "int8"),
    "cached/1024x1024/int8": Row((1024, 1024), (1, 0), "int8"),
    "cached/2048x4096/float16": Row((2048, 4096), (1, 0), "float16"),
    "cached/1024x2048/float16": Row((1024, 2048), (1, 0), "float16"),
    "cached/2048x2048/float32": Row((2048, 2048), (1, 0), "float32"),
    "cached/1024x1024/float32": Row((1024, 1024), (1, 0), "float32"),
    "cached/1024x2048/float64": Row((1024, 2048), (1, 0), "float64"),
}
VECTORS = ("square/4096/int8", "square/8192/int8", *CACHED)

Tried = tuple[str, str, Part, dict[str, Any]]  # row, variant, launch, what the rule knew of it


def probed() -> dict[str, Row]:
    known = rows()
    names = (*LARGE, *VECTORS[:2], *(f"random/{each}" for each in SLOW))
    return {name: known[name] for name in names} | CACHED


def varied(name: str, moved: Movement) -> Iterator[tuple[str, Part, dict[str, Any]]]:
    """Launches of a row."""
    for each in ranked(candidates(moved)):
        yield named(each)
    if name in VECTORS:
        yield from vectors(moved)
    if name not in LARGE:
        return
    for steps in BANDS:
        bands = banded(moved, steps)
        for each in ranked(candidates(bands), kinds=("tile", "vector"), ranks=(0, 1, 2)):
            key, part, says = named(each)
            yield f"{key}@{steps}", part, says


def named(each: Candidate) -> tuple[str, Part, dict[str, Any]]:
    part = each.part()
    return part.spec.name, part, {"cost": round(each.cost, 4), "blocks": part.blocks}


def ranked(
    found: Sequence[Candidate], kinds: Sequence[str] = (), ranks: Sequence[int] = RANKS
) -> Iterator[Candidate]:
    """Some launches of each kind, not only the cheapest."""
    seen: dict[str, int] = {}
    for each in found:
        if each.work is None or (kinds and each.work.kernel not in kinds):
            continue
        rank = seen.setdefault(each.work.kernel, 0)
        seen[each.work.kernel] += 1
        if rank in ranks:
            yield each


def vectors(moved: Movement) -> Iterator[tuple[str, Part, dict[str, Any]]]:
    """All tiles of 16 bytes at a time that fit, and some that let caches keep x or y."""
    q, p = moved.axes
    for sides in product(SIDES, SIDES, (64, 128, 256, 512), (4, 8, 16)):
        across, down, threads, beside = sides
        spec = Vectors(moved.bytes, across, down, threads, beside, whole=moved.bytes == 4)
        bytes = across * down * moved.bytes
        least = min(spec.p, spec.q) * moved.bytes
        if not spec.fits or least < 32 or bytes > 32 << 10 or not 16 <= bytes // threads <= 128:
            continue
        kept = (
            ((False, False), (False, True))
            if moved.count * moved.bytes <= MANY and beside == 4
            else ()
        )
        for streaming in ((True, True), *kept):
            each = replace(spec, streaming=streaming)
            p_cut, q_cut = cut((p,), across, spec.wide), cut((q,), down, spec.wide)
            if p_cut is not None and q_cut is not None:
                part = vector_part(each, Place(moved), p_cut, q_cut)
                yield part.spec.name, part, {"blocks": part.blocks}


def tried(given: tuple[str, Row]) -> list[Tried]:
    name, row = given
    found: dict[str, Tried] = {}
    for key, part, says in varied(name, movement_of(row)):
        found.setdefault(key, (name, key, part, says))
    return list(found.values())


@dataclass(frozen=True)
class Probe:
    """Times in graphs."""

    bench: Bench

    def graphed(self, call: Callable[[], Any]) -> tuple[Callable[[], None], int]:
        """A graph of so many calls, about a millisecond of them."""
        torch = self.bench.torch
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        call()
        first.record()
        call()
        last.record()
        last.synchronize()
        times = max(1, min(100, round(GRAPH_MS / max(1e-3, first.elapsed_time(last)))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(times):
                call()
        return graph.replay, times

    def row(self, row: Row, found: Sequence[Variant]) -> dict[str, Any]:
        torch = self.bench.torch
        x = self.bench.tensor(row)
        wanted = x.permute(row.axes).contiguous()
        y = torch.empty_like(wanted)
        flat, held = (
            x.reshape(-1).view(torch.uint8),
            torch.empty_like(x.reshape(-1).view(torch.uint8)),
        )
        calls: dict[str, Callable[[], Any]] = {
            "torch": lambda: x.permute(row.axes).contiguous(),
            "copy": lambda: held.copy_(flat),
            "copy16": lambda: self.bench.copying(flat, held)(),
        }
        right = {}
        for each in found:
            call = calls[each.name] = self.launch(each, x, y)
            y.zero_()
            call()
            right[each.name] = torch.equal(bits(y), bits(wanted))
        graphs = {name: self.graphed(call) for name, call in calls.items()}
        taken = self.bench.seconds({name: graph for name, (graph, _) in graphs.items()})
        us = {name: taken[name] * 1e6 / graphs[name][1] for name in calls}
        best = min(us["copy"], us["copy16"])
        made = {
            each.name: {
                "us": round(us[each.name], 2), "fraction": round(best / us[each.name], 4),
                "says": each.says, "right": right[each.name],
            } for each in found
        }  # fmt: skip
        return {
            "shape": row.shape, "axes": row.axes, "dtype": row.dtype,
            "us": {name: round(us[name], 2) for name in ("copy", "copy16", "torch")},
            "wrong": [name for name, each in right.items() if not each], "tried": made,
        }  # fmt: skip

    def launch(self, each: Variant, x: Any, y: Any) -> Callable[[], None]:
        from warploom.runtime.driver import open_driver

        function = open_driver().load(each.code, function_name(each.kernel, "cuda"), 0)
        run, current = Launch(each.part, each.kernel, function), self.bench.torch.cuda
        return lambda: run(x.data_ptr(), y.data_ptr(), current.current_stream().cuda_stream)


def hosted(bench: Bench) -> dict[str, Any]:
    """What calls take where the GPU's part is short: host time alone, and in batches."""
    torch = bench.torch
    x = torch.randint(0, 100, (4096, 4096), dtype=torch.int8, device="cuda")
    out = torch.empty_like(x)
    calls = {
        "ours": lambda: warploom.permute(x, (1, 0)),
        "given": lambda: warploom.permute(x, (1, 0), out),
        "empty": lambda: torch.empty_like(x),
        "copy": lambda: out.copy_(x),
        "copy16": bench.copying(x.view(torch.uint8), out.view(torch.uint8)),
    }
    taken = bench.seconds(calls)
    found = {}
    for name, call in calls.items():
        several = []
        for _ in range(9):
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(200):
                call()
            several.append((time.perf_counter() - began) / 200)
        host = round(median(several) * 1e6, 2)
        found[name] = {"host_us": host, "batch_us": round(taken[name] * 1e6, 2)}
    return found


def told(name: str, row: dict[str, Any]) -> None:
    """A row in a line: the fastest launches, and the one that the rule would take."""
    times = sorted((each["us"], key) for key, each in row["tried"].items())
    costs = [(each["says"]["cost"], key) for key, each in row["tried"].items()
             if "cost" in each["says"] and "@" not in key]  # fmt: skip
    chosen = min(costs)[1]
    line = {"row": name, **row["us"], "chosen": [chosen, row["tried"][chosen]["us"]],
            "best": times[:6], "wrong": row["wrong"]}  # fmt: skip
    print(json.dumps(line), flush=True)


def measure(left: dict[str, Row], record: dict[str, Any], out: Any, seconds: float) -> None:
    from multiprocessing import get_context

    began = time.monotonic()
    with get_context("fork").Pool() as pool:  # it is there before CUDA is begun
        all_tried = [each for several in pool.imap(tried, left.items()) for each in several]
        print(len(all_tried), "kernels", flush=True)
        specs = {each[2].spec: each for each in all_tried}
        made = {spec: pool.apply_async(compiled, (each,)) for spec, each in specs.items()}
        probe = Probe(Bench())
        for name, several in groupby(all_tried, key=lambda each: each[0]):
            probe.bench.torch.cuda.empty_cache()
            row = probe.row(left[name], list(variants(several, made)))
            record["rows"][name] = row
            told(name, row)
            save(out, record | environment("NVIDIA H200"))
            if time.monotonic() - began > seconds:
                pool.terminate()
                print("the time is over: the same command goes on", flush=True)
                return
    record["host"] = hosted(probe.bench)
    print(json.dumps(record["host"]), flush=True)
    save(out, record | environment("NVIDIA H200"))


def variants(several: Iterable[Tried], made: dict[Spec, Any]) -> Iterator[Variant]:
    """Launches with the machine code of their kernels, which rows share."""
    for _, key, part, says in several:
        _, found = made[part.spec].get()
        if found is not None:
            yield replace(found, name=key, part=part, says=says)


def dry() -> int:
    """Rows whose sides are cut short, in the simulator: all launches, also those of bands."""
    bad = 0
    for name, row in [*probed().items()][::7]:
        most = 128 if name in VECTORS else 96 if len(row.shape) == 2 else 12
        shape = tuple(min(size, most) for size in row.shape)
        short = replace(row, shape=shape)
        x = np.random.default_rng(0).integers(0, 100, shape).astype(row.dtype)
        wanted = np.ascontiguousarray(x.transpose(row.axes))
        moved = movement_of(short)
        several = [*varied("", moved), *(varied(name, moved) if name in VECTORS else ())]
        for steps in (16, 32) if name in LARGE else ():
            several += [named(each) for each in ranked(candidates(banded(moved, steps)))]
        for key, part, _ in several:
            y = np.zeros_like(wanted)
            simulate(kernel_of(part.spec), passed(part, x.ctypes.data, y.ctypes.data))
            if y.tobytes() != wanted.tobytes():
                bad += 1
                print(name, shape, key, "WRONG", flush=True)
        print(name, shape, len(several), "launches", flush=True)
    return bad


def main() -> int:
    parser = arguments(
        __doc__, "permute/probe_3.json", dry="the simulator instead of a GPU",
        only="rows whose name has this word", resumes=True,
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=180, help="no row is begun later")
    given = parser.parse_args()
    if given.dry:
        return 1 if dry() else 0
    record = earlier(given.out, {"rows": {}}, again=given.again)
    left = {name: row for name, row in probed().items()
            if given.only in name and name not in record["rows"]}  # fmt: skip
    measure(left, record, given.out, given.seconds)
    return int(any(row["wrong"] for row in record["rows"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
