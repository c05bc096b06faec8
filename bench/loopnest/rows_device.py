"""Softmax, norms and losses by the user's call on a GPU, from an empty store, beside PyTorch.

    python -m bench.loopnest.rows_device --out FOLDER [--seconds 60] [--only softmax-bf16 …]
    python -m bench.loopnest.rows_device --dry --only softmax-bf16       predicted times, no GPU

Each row is a call of `warploom.load(name)` on tensors: as it is found at once, and with
`tune=SECONDS`. Both are timed in CUDA graphs, the reference before and after them. Gradients are
called as functions of their own. "copy" moves as many bytes as the row has to, "read" reads them.
Errors are beside double precision, those of PyTorch on the same numbers, too. Rows that have a
record in `rows_device.json` are left out; `rows_texts/ROW.cu` has the text of the best.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.harness import RESULTS, arguments, attempted, save
from bench.loopnest.command_device import Call, copy, timed

import warploom
from warploom.kernel.dtype import DType, bf16, f16, f32
from warploom.pipeline.rows.function import RowFunction
from warploom.pipeline.rows.stated import STATED, types_wanted
from warploom.search.storage.store import Store

RECORDS, TEXTS = "rows_device.json", "rows_texts"
Options = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """`wanted` is how many times faster than the reference we want to be (0: only reported), or
    which part of the rate of a copy or a read."""

    name: str
    program: str
    m: int
    n: int
    dtype: DType
    wanted: float
    reference: str  # "torch", "copy" or "read"
    options: Options = field(default_factory=dict)

    @property
    def function(self) -> RowFunction:
        return RowFunction(STATED[self.program], self.options)

    @property
    def bytes(self) -> int:
        """What has to be read and written."""
        function = self.function
        shapes = function.shapes((self.m, self.n))
        return sum(math.prod(shapes[each]) * self.type_of(each).bytes for each in shapes)

    def type_of(self, name: str) -> DType:
        if name in ("loss", "g") and self.program.startswith("cross-entropy"):
            return f32
        if name in ("dscale", "dshift"):
            return f32
        return (types_wanted(name) or (self.dtype,))[0]


def usual(program: str, wanted: float, dtype: DType = bf16, reference: str = "torch",
          **options: Any) -> Row:  # fmt: skip
    return Row(f"{program}-{dtype!r}", program, 8192, 4096, dtype, wanted, reference, options)


def of_length(program: str, n: int, m: int, dtype: DType = bf16, reference: str = "copy",
              wanted: float = 0.8, **options: Any) -> Row:  # fmt: skip
    end = "" if dtype is bf16 else f"-{dtype!r}"
    return Row(f"{program}-{n}{end}", program, m, n, dtype, wanted, reference, options)


ROWS: dict[str, Row] = {
    each.name: each
    for each in (
        usual("softmax", 107 / 36),
        usual("layer-norm", 55 / 36),
        usual("rms-norm", 43 / 36),
        of_length("cross-entropy", 50257, 4096, reference="read", wanted=0.85),
        usual("softmax", 107 / 36, f16),
        usual("softmax", 1.0, f32),
        usual("layer-norm", 1.0, f16),
        usual("layer-norm", 1.0, f32),
        usual("rms-norm", 1.0, f32),
        usual("log-softmax", 1.0),
        *(of_length(each, n, m) for each in ("softmax", "rms-norm")
          for n, m in ((1000, 32768), (4097, 8192), (100003, 512))),
        of_length("layer-norm", 4097, 8192),
        of_length("layer-norm", 100003, 512),
        of_length("softmax", 100003, 512, f32),
        of_length("softmax", 4097, 8192, f16),
        usual("softmax-gradient", 1.0),
        usual("log-softmax-gradient", 0.8, reference="copy"),
        usual("layer-norm-gradient", 1.0),
        usual("rms-norm-gradient", 0.8, reference="copy"),
        of_length("cross-entropy-gradient", 50257, 4096, wanted=0.8),
        of_length("softmax-gradient", 4097, 8192),
        usual("scale-gradient", 0.8, reference="read"),
        usual("shift-gradient", 0.8, reference="read"),
        Row("layer-norm-residual", "layer-norm", 8192, 4096, bf16, 0.8, "copy",
            {"residual": True}),
    )
}  # fmt: skip


# -- tensors ---------------------------------------------------------------------------------------

TORCH = {f32: "float32", f16: "float16", bf16: "bfloat16"}


def drawn(row: Row, torch: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    function, made = row.function, {}
    shapes = function.shapes((row.m, row.n))
    for name in function.inputs:
        shape = shapes[name]
        if name == "label":
            made[name] = torch.randint(row.n, shape, device="cuda", dtype=torch.int32)
        else:
            kind = getattr(torch, TORCH[row.type_of(name)])
            made[name] = torch.randn(*shape, device="cuda").to(kind)
    return made


def of_torch(row: Row, given: dict[str, Any], torch: Any) -> Any:
    """What PyTorch has for it, on the same tensors."""
    functional, n = torch.nn.functional, (row.n,)
    x: Any = given.get("x")
    match row.program:
        case "softmax":
            return partial(torch.softmax, x, 1)
        case "log-softmax":
            return partial(torch.log_softmax, x, 1)
        case "layer-norm" if not row.options:
            return partial(functional.layer_norm, x, n, given["scale"], given["shift"])
        case "rms-norm":
            return partial(functional.rms_norm, x, n, given["scale"], 1e-5)
        case "cross-entropy":
            label = given["label"].long()
            return partial(functional.cross_entropy, x, label, reduction="none")
        case "softmax-gradient":
            y = torch.softmax(x, 1)
            return partial(torch.ops.aten._softmax_backward_data, given["g"], y, 1, x.dtype)
        case "layer-norm-gradient":
            scale = given["scale"]
            _, mean, by = torch.native_layer_norm(x, n, scale, scale, 1e-5)
            back = torch.ops.aten.native_layer_norm_backward
            call = partial(back, given["g"], x, n, mean, by, scale, scale, [True, False, False])
            return lambda: call()[0]
    return None


def exact(row: Row, given: dict[str, Any], torch: Any) -> Any:
    """In double precision, of some rows; None where sums over rows are left to tests."""
    if row.program in ("scale-gradient", "shift-gradient"):
        return None
    some = {name: each.double() if name != "label" else each for name, each in given.items()}
    x, g = some["x"].requires_grad_(), some.get("g")
    functional, n = torch.nn.functional, (row.n,)
    name = row.program.removesuffix("-gradient")
    match name:
        case "softmax":
            y = torch.softmax(x, 1)
        case "log-softmax":
            y = torch.log_softmax(x, 1)
        case "cross-entropy":
            y = functional.cross_entropy(x, some["label"].long(), reduction="none")
        case "layer-norm":
            own = x + some["residual"] if "residual" in some else x
            y = functional.layer_norm(own, n, some["scale"], some.get("shift"))
        case _:
            y = x * (x.square().mean(1, keepdim=True) + 1e-5).rsqrt() * some["scale"]
    return y.detach() if g is None else torch.autograd.grad(y, x, g)[0]


def far(made: Any, wanted: Any) -> float:
    """The greatest error, of the greatest number."""
    return float((made.double() - wanted).abs().max() / wanted.abs().max())


def errors(row: Row, made: Any, given: dict[str, Any], torch: Any) -> dict[str, float]:
    at = slice(0, max(1, 2**22 // row.n))  # so many rows

    def some(name: str, each: Any) -> Any:
        along = {**row.function.inputs, **row.function.outputs}[name]
        return each if along == "column" else each[at]

    less = {name: some(name, each) for name, each in given.items()}
    wanted = exact(row, less, torch)
    if wanted is None:
        return {}
    first = made[0] if isinstance(made, tuple) else made
    found = {"error": far(first[at], wanted)}
    call = of_torch(row, less, torch)
    return found if call is None else found | {"error_of_torch": far(call(), wanted)}


# -- one row ---------------------------------------------------------------------------------------


def reference_of(row: Row, given: dict[str, Any], torch: Any) -> Call:
    match row.reference:
        case "torch":
            call = of_torch(row, given, torch)
            assert call is not None
            found: Call = call
            return found
        case "copy":
            return copy(row.bytes, torch)
    x = torch.randn(row.bytes // 4 // 4096, 4096, device="cuda")
    return partial(torch.sum, x, 1, out=torch.empty(x.shape[0], device="cuda"))


def search(row: Row, given: argparse.Namespace, torch: Any) -> dict[str, Any]:
    if torch is None:
        return predicted(row)
    tensors = drawn(row, torch)
    reference = reference_of(row, tensors, torch)
    before = timed(reference, torch)
    at_once = warploom.load(row.program, **row.options)
    first, first_seconds, _ = called(at_once, tensors, torch)
    with tempfile.TemporaryDirectory() as folder:
        kept = Store(Path(folder) / "store.sqlite")
        call = warploom.load(row.program, tune=given.seconds, store=kept, **row.options)
        best, seconds, made = called(call, tensors, torch)
    taken = min(before, timed(reference, torch))
    write(given.out / TEXTS / f"{row.name}.cu", call.text())
    return record_of(row, (first, best, taken), (first_seconds, seconds), call) | errors(
        row, made, tensors, torch
    )


def called(call: Any, tensors: dict[str, Any], torch: Any) -> tuple[float, float, Any]:
    """Nanoseconds of a call, with outputs that are given; seconds of the first; its result."""
    since = time.monotonic()
    made = call(*tensors.values())
    torch.cuda.synchronize()
    seconds = time.monotonic() - since
    outputs = made if isinstance(made, tuple) else (made,)
    return timed(partial(call, *tensors.values(), *outputs), torch), seconds, made


def record_of(
    row: Row, times: tuple[float, float, float], seconds: tuple[float, float], call: Any
) -> dict[str, Any]:
    first, best, reference = times
    found = next(reversed(call.found.values()))
    race = found.race
    record = {
        "name": row.name,
        "date": date.today().isoformat(),
        "device": found.device,
        "reference": row.reference,
        "reference_us": reference / 1e3,
        "wanted_times_faster": row.wanted,
        "at_once_us": first / 1e3,
        "at_once_seconds": round(seconds[0], 2),
        "best_us": best / 1e3,
        "times_faster": reference / best,
        "holds": bool(reference / best >= row.wanted),
        "terabytes_per_second": round(row.bytes / best / 1e3, 3),
        "seconds": round(seconds[1], 2),
        "strategy": found.strategy,
        "schedule": found.nest.schedule(found.candidate),
        "trial": str(found.trial),
    }
    if race is None:
        return record
    return record | {"measured": len(race.measured), "wrong": race.wrong, "failed": race.failed,
                     "violations": race.violations, "complaint": race.complaint}  # fmt: skip


def predicted(row: Row) -> dict[str, Any]:
    """Without a GPU: what a first call takes, by the time model."""
    since = time.monotonic()
    found = row.function.prepare(row.m, row.n, row.dtype)
    return {
        "name": row.name,
        "predicted_us": found.nanoseconds / 1e3,
        "terabytes_per_second": round(row.bytes / found.nanoseconds / 1e3, 3),
        "seconds": round(time.monotonic() - since, 2),
        "strategy": found.strategy,
    }


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


# -- the whole -------------------------------------------------------------------------------------


def main(parser: argparse.ArgumentParser, load_torch: Callable[[], Any]) -> None:
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each row")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--again", action="store_true", help="also rows that have a record")
    given = parser.parse_args()
    torch = None if given.dry else load_torch()
    file = given.out / RECORDS
    records: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    known = set() if given.again or given.dry else {each["name"] for each in records}
    for name in given.only or list(ROWS):
        if name in known:
            continue
        record, failed = attempted(search, ROWS[name], given, torch)
        if record is None:
            print(f"{name}: {failed}", flush=True)
            continue
        if not given.dry:
            given.out.mkdir(parents=True, exist_ok=True)
            records = [each for each in records if each["name"] != name] + [record]
            save(file, records, indent=None)
        print(json.dumps(record, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(arguments(__doc__, dry="no GPU"), lambda: import_module("torch"))
    sys.stdout.flush()
    os._exit(0)  # threads that hand out tasks may wait for workers that were ended
