"""Loop nests by the user's call on a GPU, each from an empty store, beside PyTorch in the same run.

    python -m bench.loopnest.command_device --out FOLDER [--seconds 60] [--only matmul-1000 …]
    python -m bench.loopnest.command_device --dry --seconds 20 --only matvec-5000     no GPU

Each row is `warploom.explore(...)` with nothing fixed: a name with sizes, or a loop nest without
tiles. What is kept of a row: `command_device.json` has a record, `command_measured/ROW.json.xz` all
that was measured with its decisions, `command_texts/ROW.cu` the text of the best. Rows that
have a record are left out, so that the same command goes on where it was stopped; `--again` does
all. References are timed in CUDA graphs like kernels, before the search and after it; the shorter
time counts. "copy" moves as many bytes as the row has to.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.loopnest.pretended import PretendedQuick
from bench.harness import RESULTS, arguments, attempted, save

import warploom
from warploom.loopnest.build import LoopNest
from warploom.loopnest.ir import Program
from warploom.pipeline import exploring
from warploom.pipeline.nest import Explored
from warploom.runtime.quick import replayed
from warploom.search.storage.store import Store

RECORDS, MEASURED, TEXTS = "command_device.json", "command_measured", "command_texts"
Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """`nest` is a name with sizes or a loop nest; `reference(torch)` gives what is called in
    comparison, and `wanted` how many times faster than that we want to be (0: only reported)."""

    name: str
    nest: tuple[str, dict[str, int]] | Callable[[], LoopNest | Program]
    what: str
    wanted: float
    reference: Callable[[Any], Call]

    @property
    def program(self) -> Program:
        """What is stated, of a row that has no name for it."""
        assert callable(self.nest)
        stated = self.nest()
        return stated if isinstance(stated, Program) else stated.done()


# -- loop nests as a user would write them ---------------------------------------------------------


def row_sum(m: int, n: int) -> LoopNest:
    nest = LoopNest("row_sum")
    i, j = nest.axis("m", m), nest.axis("n", n)
    A, y = nest.array("A", i, j), nest.array("y", i)
    y[i] = nest.sum(A[i, j], over=j)
    return nest


def column_sum(m: int, n: int) -> LoopNest:
    nest = LoopNest("column_sum")
    i, j = nest.axis("m", m), nest.axis("n", n)
    A, y = nest.array("A", i, j), nest.array("y", j)
    y[j] = nest.sum(A[i, j], over=i)
    return nest


def transposed_matvec(m: int, n: int) -> LoopNest:
    """y = Aᵀ·x"""
    nest = LoopNest("transposed_matvec")
    i, j = nest.axis("m", m), nest.axis("n", n)
    A, x, y = nest.array("A", i, j), nest.array("x", i), nest.array("y", j)
    y[j] = nest.sum(A[i, j] * x[i], over=i)
    return nest


def stencil(m: int, n: int) -> LoopNest:
    """Five points, of the inner elements."""
    nest = LoopNest("stencil")
    i, j = nest.axis("m", m - 2), nest.axis("n", n - 2)
    A, B = nest.array("A", m, n), nest.array("B", m, n)
    around = A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2]
    B[i + 1, j + 1] = 0.5 * A[i + 1, j + 1] + 0.125 * around
    return nest


# -- references ------------------------------------------------------------------------------------


def random(torch: Any, *shape: int) -> Any:
    return torch.randn(*shape, device="cuda")


def product(m: int, n: int, k: int, torch: Any) -> Call:
    out = torch.empty(m, n, device="cuda")
    return partial(torch.mm, random(torch, m, k), random(torch, k, n), out=out)


def batch(b: int, m: int, n: int, k: int, torch: Any) -> Call:
    out = torch.empty(b, m, n, device="cuda")
    return partial(torch.bmm, random(torch, b, m, k), random(torch, b, k, n), out=out)


def vector(m: int, n: int, torch: Any) -> Call:
    out = torch.empty(m, device="cuda")
    return partial(torch.mv, random(torch, m, n), random(torch, n), out=out)


def added_rows(m: int, n: int, torch: Any) -> Call:
    out = torch.empty(m, device="cuda")
    return partial(torch.sum, random(torch, m, n), 1, out=out)


def copy(moved: int, torch: Any) -> Call:
    """Half of the bytes read, half written."""
    source, target = (torch.empty(moved // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
    return partial(target.copy_, source)


def scaled(n: int, torch: Any) -> Call:
    out = torch.empty(n, device="cuda")
    return partial(torch.add, random(torch, n), random(torch, n), alpha=0.5, out=out)


def two_vectors(m: int, n: int, torch: Any) -> Call:
    A, B, x = random(torch, m, n), random(torch, m, n), random(torch, n)
    y = torch.empty(m, device="cuda")

    def twice() -> None:
        torch.mv(B, x, out=y)
        torch.addmv(y, A, x, beta=1.5, alpha=0.5, out=y)

    return twice


def last_axis(r: int, q: int, s: int, torch: Any) -> Call:
    out = torch.empty(r, q, s, device="cuda")
    return partial(torch.matmul, random(torch, r, q, s), random(torch, s, s), out=out)


def matmul(m: int, n: int, k: int, wanted: float, name: str = "", **more: int) -> Row:
    sizes = {"m": m, "n": n, "k": k, **more}
    said = "torch.mm (cuBLAS), float32" + (", A without its stride" if more else "")
    return Row(name or f"matmul-{m}", ("matmul", sizes), said, wanted, partial(product, m, n, k))


ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        matmul(1000, 1000, 1000, 0.95),
        matmul(1536, 384, 4096, 0.95, "matmul-1536x384x4096"),
        Row("batched-64x128", ("batched-matmul", {"batch": 64, "m": 128, "n": 128, "k": 128}),
            "torch.bmm (cuBLAS), float32", 1.2, partial(batch, 64, 128, 128, 128)),
        Row("matvec-5000", ("matvec", {"m": 5000, "n": 7000}),
            "torch.mv (cuBLAS), float32", 1.2, partial(vector, 5000, 7000)),
        Row("row-sum", partial(row_sum, 8192, 1000),
            "torch.sum of rows", 1.0, partial(added_rows, 8192, 1000)),
        Row("column-sum", partial(column_sum, 8192, 4096),
            "copy", 0.9, partial(copy, 4 * (8192 * 4096 + 4096))),
        Row("transposed-matvec", partial(transposed_matvec, 7000, 5000),
            "copy", 0.9, partial(copy, 4 * (7000 * 5000 + 12000))),
        Row("stencil", partial(stencil, 4096, 4096), "copy", 0.9, partial(copy, 8 * 4096 * 4096)),
        matmul(1024, 1024, 1024, 0.99),
        matmul(2048, 2048, 2048, 0.90),
        matmul(512, 512, 512, 1.26),
        matmul(256, 256, 32, 4.0),
        Row("matvec-8192", ("matvec", {"m": 8192, "n": 8192}),
            "torch.mv (cuBLAS), float32", 1.41, partial(vector, 8192, 8192)),
        Row("axpy", ("axpy", {"n": 1 << 26}),
            "torch.add with alpha", 0.96, partial(scaled, 1 << 26)),
        Row("gesummv", ("gesummv", {"m": 8192, "n": 8192}),
            "two torch.mv (cuBLAS), float32", 1.42, partial(two_vectors, 8192, 8192)),
        Row("batched-512x32", ("batched-matmul", {"batch": 512, "m": 32, "n": 32, "k": 64}),
            "torch.bmm (cuBLAS), float32", 1.61, partial(batch, 512, 32, 32, 64)),
        matmul(1024, 1024, 1024, 0.0, "matmul-strided", stride=32),
        Row("doitgen", ("doitgen", {"r": 128, "q": 128, "s": 128}),
            "torch.matmul (cuBLAS), float32", 1.12, partial(last_axis, 128, 128, 128)),
    )
}  # fmt: skip


# -- one row ---------------------------------------------------------------------------------------


def timed(call: Call, torch: Any, repeats: int = 7) -> float:
    """Nanoseconds of a call, in a graph of many."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once(what: Call) -> float:
        first.record()
        what()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) * 1e6

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    count = max(1, min(50, int(5e5 / max(once(call) - 1e4, 2e3))))
    replay = replayed(lambda: call, count)
    replay()
    return float(np.median([once(replay) for _ in range(repeats)])) / count


def explored(row: Row, seconds: float, store: Store) -> Explored:
    """The user's call."""
    if isinstance(row.nest, tuple):
        return warploom.explore(*row.nest, seconds=seconds, store=store)
    return warploom.explore(row.nest(), seconds=seconds, store=store)


def search(row: Row, given: argparse.Namespace, torch: Any) -> dict[str, Any]:
    before = [] if torch is None else [_reference(row, torch)]
    since = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = explored(row, given.seconds, Store(Path(folder) / "store.sqlite"))
    taken = time.monotonic() - since
    after = [] if torch is None else [_reference(row, torch)]
    reference = min([*before, *after], default=0.0)
    record = _record(row, found, reference, taken) | {"asked_seconds": given.seconds}
    _write(given.out / MEASURED / f"{row.name}.json.xz", _measured(found))
    if found.candidate is not None:
        _write(given.out / TEXTS / f"{row.name}.cu", found.text("cuda").encode())
    return record


def _reference(row: Row, torch: Any) -> float:
    found = timed(row.reference(torch), torch)
    torch.cuda.empty_cache()
    return found


def _record(row: Row, found: Explored, reference: float, taken: float) -> dict[str, Any]:
    race, best = found.race, found.nanoseconds
    times = list(race.measured.values())
    record = {
        "name": row.name,
        "date": date.today().isoformat(),
        "device": found.device,
        "reference": row.what,
        "reference_us": reference / 1e3,
        "wanted_times_faster": row.wanted,
        "seconds": round(taken, 2),
        "measured": len(times),
        "timed_in_graphs": sum(each.is_sure for each in times),
        "drawn": race.drawn,
        "wrong": race.wrong,
        "failed": race.failed,
        "complaint": race.complaint,
        "refused": [[name, leaf.hex()] for name, leaf in race.refused],
        "violations": race.violations,
        "least_measured_over_bound": min((t.nanoseconds / t.bound for t in times), default=None),
        "device_seconds": round(race.device_seconds, 2),
        "bound_us": found.bound / 1e3,
    }
    if found.candidate is None or found.history is None or found.nest is None:
        return record
    curve = [[round(p.seconds, 2), p.found, p.best] for p in found.history.improvements]
    return record | {
        "best_us": best / 1e3,
        "times_faster": reference / best,
        "holds": bool(reference / best >= row.wanted),
        "strategy": found.strategy,
        "schedule": found.nest.schedule(found.candidate),
        "trial": str(found.trial),
        "curve": curve,
    }


def _measured(found: Explored) -> bytes:
    """All that was measured, with its decisions as `pipeline/drawn.py` packs them."""
    rows = [
        [e.entry, e.key, e.leaf.hex(), round(e.bound, 2), round(e.nanoseconds, 2), int(e.is_sure)]
        for e in found.race.measured.values()
    ]
    return lzma.compress(json.dumps(rows).encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# -- the whole -------------------------------------------------------------------------------------

SHORT = ("name", "reference_us", "best_us", "times_faster", "wanted_times_faster", "holds",
         "measured", "timed_in_graphs", "wrong", "failed", "violations", "seconds",
         "device_seconds", "strategy", "bound_us", "complaint", "schedule")  # fmt: skip


def main(
    parser: argparse.ArgumentParser, rows: Mapping[str, Row] = ROWS, records_file: str = RECORDS
) -> None:
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each row")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--again", action="store_true", help="also rows that have a record")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch: Any = None
    if given.dry:
        exploring.quick_for = lambda *_: PretendedQuick()
    else:
        torch = import_module("torch")
        torch.backends.cuda.matmul.allow_tf32 = False
    file = given.out / records_file
    records: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    names: Sequence[str] = given.only or list(rows)
    for name in names:
        if not given.again and any(each["name"] == name for each in records):
            continue
        record, failed = attempted(search, rows[name], given, torch)
        if record is None:
            print(f"{name}: {failed}", flush=True)
            continue
        records = [each for each in records if each["name"] != name] + [record]
        save(file, records, indent=None)
        print(json.dumps({key: record[key] for key in SHORT if key in record},
                         ensure_ascii=False), flush=True)  # fmt: skip


if __name__ == "__main__":
    main(arguments(__doc__, dry="no GPU"))
    sys.stdout.flush()
    os._exit(0)  # threads that hand out tasks may wait for workers that were ended
