"""Which ways to move structures are worth having: hand-written ones beside ours, to learn from.

    python -m bench.catalogue.structures_probe        with a GPU and PyTorch
    python -m bench.catalogue.structures_probe --dry  small, on the emulator: are they right?

AoS→SoA and back, float32, numbers of structures that are a multiple of 4096 and that are odd, so
that planes begin within a sector. All texts are compiled first, on all cores; each is checked, then
timed by device events. The record is kept as it comes, and a second run goes on from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, earlier, save

from warploom import ptx
from warploom.catalogue import find
from warploom.emit.cuda import cuda
from warploom.errors import WarploomError
from warploom.runtime.compile import compile_cuda, parse_usage
from warploom.runtime.driver import open_driver
from warploom.runtime.gpu import Loaded
from warploom.runtime.measure import copy_ceiling, measure

FIELDS = (2, 3, 4, 5, 7, 8, 12, 16, 24, 32)
SHARED = 48 << 10
HINTS = {
    "plain": "",
    "stream": "#define LD(p) __ldcs(p)\n#define ST(p, v) __stcs(p, v)\n",
    "stores": "#define ST(p, v) __stcs(p, v)\n",
    "loads": "#define LD(p) __ldcs(p)\n",
}


@dataclass(frozen=True)
class Way:
    """One kernel of the file with its numbers, or one of ours with its settings."""

    kernel: str
    fields: int
    block: int = 256
    per: int = 1
    align: int = 8
    rows: int = 8
    hint: str = "plain"
    ours: str = ""

    @property
    def label(self) -> str:
        return (
            self.ours
            or f"{self.kernel} block={self.block} per={self.per} align={self.align} "
            f"rows={self.rows} {self.hint}"
        )

    @property
    def back(self) -> bool:
        return self.kernel.startswith("back") or self.kernel == "soa-to-aos"

    @property
    def structures(self) -> int:
        return self.block // 32 * 32 * self.rows if self.kernel == "turned" else (
            self.block * self.per
        )  # fmt: skip

    def grid(self, n: int) -> int:
        more = self.align if self.kernel.startswith("aligned") else 0
        return -(-(n + more) // self.structures)

    @property
    def text(self) -> str:
        values = {"S": self.fields, "BLOCK": self.block, "PER": self.per, "A": self.align,
                  "ROWS": self.rows}  # fmt: skip
        head = "".join(f"#define {name} {value}\n" for name, value in values.items())
        whole = (ROOT / "bench" / "catalogue" / "structures_probe.cu").read_text()
        start, *kernels = whole.split('extern "C"')
        helpers = whole[whole.index("__host__") :].split('extern "C"')[0]
        own = next(each for each in kernels if f"\n{self.kernel}(" in each)
        own = own.split("__host__")[0]
        return head + HINTS[self.hint] + start + helpers + 'extern "C"' + own

    @property
    def bytes_shared(self) -> int:
        halo = {"aligned": 1, "aligned_wide": 1, "back_aligned": 2}.get(self.kernel, 0) * self.align
        row = 4 * ((self.fields | 1) if self.kernel != "aligned_wide" else self.fields)
        return (self.structures + halo + (8 if "wide" in self.kernel else 0)) * row


def ways(fields: int) -> Iterator[Way]:
    for per in (1, 2, 4):
        for hint in ("plain", "stream") if per == 1 else ("plain",):
            yield Way("direct", fields, per=per, hint=hint)
            yield Way("back_direct", fields, per=per, hint=hint)
    staged = [
        Way(kernel, fields, block, per, align, hint=hint)
        for kernel in ("staged", "aligned", "aligned_wide", "back_staged", "back_aligned")
        for block, per in ((128, 1), (256, 1), (256, 2), (256, 4), (512, 1))
        for align in ((8, 32) if "aligned" in kernel else (8,))
        for hint in HINTS
        if hint == "plain" or (block, per, align) == (256, 1, 8)
    ]
    yield from (way for way in staged if way.bytes_shared <= SHARED and way.per * fields <= 64)
    if fields <= 24:
        for align in (8, 32):
            for rows in (4, 16):
                yield Way("turned", fields, align=align, rows=rows)
        yield Way("turned", fields, rows=16, hint="stream")
    for name in ("aos-to-soa", "soa-to-aos"):
        for setting in ({}, {"streaming": 1}, {"pack": 2}, {"pack": 4}, {"order": "rcr"}):
            words = " ".join(f"{k}={v}" for k, v in setting.items()) or "default"
            yield Way(name, fields, ours=f"ours {words}")


def settings(way: Way) -> dict[str, Any]:
    parts = [each.split("=") for each in way.ours.split()[1:] if "=" in each]
    return {"fields": way.fields, **{k: int(v) if v.isdigit() else v for k, v in parts}}


def built(way: Way) -> tuple[Way, dict[str, Any]]:
    """In a process of its own: machine code, the function's name, registers."""
    try:
        kernel = find(way.kernel).kernel(**settings(way)) if way.ours else None
        text = cuda(kernel) if kernel else way.text
        made = compile_cuda(text, "sm_90", kind="cubin", options=("--ptxas-options=-v",))
        name = kernel.name if kernel else way.kernel
        used = parse_usage(made.log).get(name)
    except WarploomError as error:
        return way, {"error": str(error)[:300]}
    shape: dict[str, Any] = {"block": way.block}
    if kernel:
        from warploom.index.evaluate import evaluate

        shape = {"block": kernel.block[0], "per_block": _per_block(kernel, evaluate)}
    return way, {
        "code": made.code,
        "name": name,
        "registers": used.registers if used else None,
        "stack": used.stack_bytes if used else None,
        **shape,
    }


def _per_block(kernel: Any, evaluate: Any) -> int:
    """Structures of a block: the largest number for which one block is enough."""
    low = 1
    while int(evaluate(kernel.grid[0], {"n": 2 * low})) == 1:
        low *= 2
    high = 2 * low
    while low + 1 < high:
        middle = (low + high) // 2
        if int(evaluate(kernel.grid[0], {"n": middle})) == 1:
            low = middle
        else:
            high = middle
    return low


def on_gpu(options: Any) -> int:
    import torch

    records: dict[str, Any] = earlier(options.out, again=options.again)
    started = time.monotonic()
    all_ways = [way for fields in options.fields for way in ways(fields)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(built, all_ways, chunksize=4))
    print(f"{len(made)} texts compiled in {time.monotonic() - started:.0f} s", flush=True)
    driver = open_driver()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    for fields in options.fields:
        even = options.bytes // (4 * fields) // 4096 * 4096
        for n in (even, even - 4095):
            key = f"{fields}/{n}"
            if key in records:
                continue
            records[key] = row(torch, driver, [m for m in made if m[0].fields == fields], fields, n)
            save(options.out, records)
            show(key, records[key])
            if time.monotonic() - started > options.seconds:
                print("out of time; run again to go on")
                return 3
    return 0


def row(torch: Any, driver: Any, made: list[Any], fields: int, n: int) -> dict[str, Any]:
    x = torch.rand(n * fields, device="cuda")
    y = torch.empty_like(x)
    ceiling, _ = copy_ceiling(8 * n * fields, library="torch", samples=15)
    there, back = x.view(n, fields).t().contiguous(), x.view(fields, n).t().contiguous()
    found: dict[str, Any] = {"ceiling": ceiling, "ways": {}}
    for way, code in made:
        if "error" in code:
            found["ways"][way.label] = {"error": code["error"]}
            continue
        function = Loaded(driver.load(code["code"], code["name"], 0))
        grid = -(-n // code["per_block"]) if way.ours else way.grid(n)
        arguments = [np.int32(n), x.data_ptr(), y.data_ptr()]
        launch = function.bind((grid, 1, 1), (code["block"], 1, 1), arguments)
        y.fill_(float("nan"))
        launch()
        wanted = back if way.back else there
        if not torch.equal(y, wanted.reshape(-1)):
            found["ways"][("back " if way.back else "") + way.label] = {"error": "wrong result"}
            continue
        timing = measure([launch], samples=7, warmup=2)
        found["ways"][("back " if way.back else "") + way.label] = {
            "fraction": round(timing.rate(8 * n * fields) / ceiling, 4),
            "registers": code["registers"],
            "stack": code["stack"],
        }
    del there, back
    for name, call in {
        "torch": lambda: x.view(n, fields).t().contiguous(),
        "back torch": lambda: x.view(fields, n).t().contiguous(),
    }.items():
        timing = measure([call], samples=5, warmup=1)
        found["ways"][name] = {"fraction": round(timing.rate(8 * n * fields) / ceiling, 4)}
    return found


def show(key: str, record: dict[str, Any]) -> None:
    for back in (False, True):
        rows = {
            name: each["fraction"]
            for name, each in record["ways"].items()
            if "fraction" in each and name.startswith("back") == back
        }
        best: dict[str, tuple[float, str]] = {}
        for name, fraction in rows.items():
            kind = name.removeprefix("back ").split()[0]
            best[kind] = max(best.get(kind, (0.0, "")), (fraction, name.partition(kind)[2]))
        print(f"{key} {'back' if back else 'to soa'} ({record['ceiling'] / 1e12:.2f} TB/s)")
        for kind, (fraction, name) in sorted(best.items(), key=lambda item: -item[1][0]):
            print(f"    {fraction:.3f} {kind}{name}", flush=True)
    wrong = {k: v["error"] for k, v in record["ways"].items() if "error" in v}
    for name, error in wrong.items():
        print(f"    FAILED {name}: {error.splitlines()[0]}")


def dry(options: Any) -> int:
    failures = 0
    for fields in options.fields:
        seen = set()
        for way in ways(fields):
            kind = way.kernel, way.align, way.per
            if way.ours or kind in seen or way.hint != "plain":
                continue
            seen.add(kind)
            module = ptx.load(compile_cuda(way.text).text)
            for n in (300, 1021):
                x = np.random.default_rng(n).permutation(n * fields).astype(np.float32)
                y = np.full(n * fields, np.nan, np.float32)
                module.kernel(way.kernel).launch(
                    (way.grid(n), 1, 1), (way.block, 1, 1), [np.int32(n), x, y]
                )
                shape = (fields, n) if way.back else (n, fields)
                if not np.array_equal(y, x.reshape(shape).T.reshape(-1)):
                    failures += 1
                    print(f"wrong: {asdict(way)} n={n}")
        print(f"{fields} fields: {len(seen)} ways, {failures} failures so far", flush=True)
    return 1 if failures else 0


def main() -> int:
    parser = arguments(__doc__, "structures_probe.json", dry="small, on the emulator", resumes=True)
    parser.add_argument("--fields", type=int, nargs="*", default=list(FIELDS))
    parser.add_argument("--bytes", type=int, default=10**9, help="size of the input array")
    parser.add_argument("--seconds", type=float, default=400.0)
    options = parser.parse_args()
    return dry(options) if options.dry else on_gpu(options)


if __name__ == "__main__":
    raise SystemExit(main())
