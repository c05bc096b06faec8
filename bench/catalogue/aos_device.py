"""AoS→SoA and AoS-sum on a GPU: our kernels, PyTorch, and three hand-written kernels side by side.

    python -m bench.catalogue.aos_device        with a GPU, PyTorch and NVRTC
    python -m bench.catalogue.aos_device --dry  tiny sizes, no GPU: simulator and emulator

For each structure size an array of about 2 GB, far beyond the cache: every setting of the
catalogue's tune space, checked on poisoned outputs, timed by device events after a warm-up; medians
count. The copy ceiling is measured in the same run with the same clock. Results are kept as they
come; a second run goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, command, earlier, save

from warploom import ptx
from warploom.catalogue import find
from warploom.catalogue.verify import verify
from warploom.errors import WarploomError
from warploom.runtime.callable import load
from warploom.runtime.compile import compile_cuda
from warploom.runtime.gpu import load_function
from warploom.runtime.measure import copy_ceiling, measure

BASELINES = ("direct", "shared_memory", "in_register")
FIELDS = (2, 3, 4, 5, 6, 7, 8, 12, 16)
BLOCK = 256
GOAL = 0.90


@dataclass
class Run:
    """Options, the file of records, and what is known of this run."""

    options: Any
    records: dict[str, dict[str, Any]]
    ceiling: float = 0.0

    def keep(self, key: str, record: dict[str, Any]) -> None:
        self.records[key] = record
        self.save()

    def save(self) -> None:
        save(self.options.out, self.records, sort_keys=True)

    def wanted(self, key: str) -> bool:
        return self.options.again or "seconds" not in self.records.get(key, {})


def baseline_text(fields: int) -> str:
    return f"#define S {fields}\n" + (ROOT / "bench" / "catalogue" / "aos_baselines.cu").read_text()


# -- on a GPU ------------------------------------------------------------------------------------


def on_gpu(run: Run) -> None:
    import torch

    started = time.monotonic()
    run.ceiling, timing = copy_ceiling(2 * run.options.bytes, library="torch")
    run.keep(
        "machine",
        {
            "gpu": torch.cuda.get_device_name(),
            "date": date.today().isoformat(),
            "command": command(),
            "torch": torch.__version__,
            "copy_bytes_per_second": run.ceiling,
            "copy_spread": timing.spread,
        },
    )
    print(f"copy ceiling {run.ceiling / 1e12:.3f} TB/s on {torch.cuda.get_device_name()}")
    for fields in run.options.fields:
        n = run.options.bytes // (4 * fields) // 256 * 256
        x = torch.rand(n * fields, device="cuda")
        y = torch.empty_like(x)
        for key, bytes_moved, setting, make in work(fields, n, x, y, torch):
            if run.wanted(key):
                run.keep(key, timed(run, bytes_moved, setting, make))
        del x, y
        print(f"{fields} fields done after {time.monotonic() - started:.0f} s", flush=True)
    again, _ = copy_ceiling(2 * run.options.bytes, library="torch")
    run.records["machine"]["copy_bytes_per_second_at_end"] = again
    run.records["machine"]["wall_seconds"] = time.monotonic() - started
    run.save()


Make = Callable[[], tuple[Callable[[], object], Callable[[], bool]]]


def work(
    fields: int, n: int, x: Any, y: Any, torch: Any
) -> Iterator[tuple[str, int, dict[str, Any], Make]]:
    """What is measured for a size: key, bytes, setting, and how to make launch and test."""
    moved, summed = 8 * n * fields, 4 * n * (fields + 1)
    structures = x.view(n, fields)
    totals = y[:n]

    def moved_right() -> bool:
        return bool(torch.equal(y.view(fields, n), structures.t()))

    def summed_right() -> bool:
        wanted = structures.double().sum(dim=1)
        return bool(((totals.double() - wanted).abs() <= 1e-5 * wanted.abs()).all())

    for number, setting in enumerate(settings_of("aos-to-soa", fields)):
        make = ours("aos-to-soa", setting, (x, y), moved_right)
        yield f"aos-to-soa/{fields}/ours/{number}", moved, setting, make
    for name in BASELINES:
        make = by_hand(name, fields, n, x, y, moved_right)
        yield f"aos-to-soa/{fields}/{name}", moved, {}, make

    def transposed() -> Any:
        return structures.t().contiguous()

    def right() -> bool:
        return bool(torch.equal(transposed(), structures.t()))

    yield f"aos-to-soa/{fields}/torch", moved, {}, lambda: (transposed, right)
    for number, setting in enumerate(settings_of("aos-sum", fields)):
        make = ours("aos-sum", setting, (x, totals), summed_right)
        yield f"aos-sum/{fields}/ours/{number}", summed, setting, make

    def add() -> Any:
        return torch.sum(structures, dim=1, out=totals)

    def added() -> bool:
        return add() is not None and summed_right()

    yield f"aos-sum/{fields}/torch", summed, {}, lambda: (add, added)


def settings_of(name: str, fields: int) -> list[dict[str, Any]]:
    """The exchanges in registers of the tune space."""
    entry = find(name)
    space = entry.tune(entry.settings({"fields": fields}))
    return [{"fields": fields, **each} for each in space if each["strategy"] == "registers"]


def ours(name: str, setting: dict[str, Any], arrays: tuple[Any, Any], right: Any) -> Make:
    def make() -> tuple[Callable[[], object], Callable[[], bool]]:
        launch = load(find(name).kernel(**setting), "cuda").prepare(*arrays)

        def test() -> bool:
            arrays[1].fill_(float("nan"))
            launch()
            return bool(right())

        return launch, test

    return make


def by_hand(name: str, fields: int, n: int, x: Any, y: Any, right: Any) -> Make:
    def make() -> tuple[Callable[[], object], Callable[[], bool]]:
        function = load_function(baseline_text(fields), name)
        grid = (-(-n // BLOCK), 1, 1)
        arguments = [np.int32(n), x.data_ptr(), y.data_ptr()]
        launch = function.bind(grid, (BLOCK, 1, 1), arguments, 0)

        def test() -> bool:
            y.fill_(float("nan"))
            launch()
            return bool(right())

        return launch, test

    return make


def timed(run: Run, bytes_moved: int, setting: dict[str, Any], make: Make) -> dict[str, Any]:
    """One record: seconds and the fraction of the copy ceiling, or what went wrong."""
    record: dict[str, Any] = {"setting": setting, "bytes": bytes_moved}
    try:
        launch, test = make()
        if not test():
            return {**record, "error": "wrong result"}
        timing = measure([launch], samples=run.options.samples)
    except (WarploomError, RuntimeError) as error:
        return {**record, "error": str(error)[:400]}
    return {
        **record,
        "seconds": timing.median,
        "spread": timing.spread,
        "bytes_per_second": timing.rate(bytes_moved),
        "fraction": timing.rate(bytes_moved) / run.ceiling,
    }


# -- without a GPU -------------------------------------------------------------------------------


def dry(run: Run) -> int:
    """Every setting on the simulator and every hand-written kernel on the emulator; failures."""
    failures = 0
    for fields in run.options.fields:
        for name in ("aos-to-soa", "aos-sum"):
            for setting in settings_of(name, fields):
                sizes = [{"n": 77}, {"n": 2048}]
                wrong = [each for each in verify(find(name), setting, sizes=sizes) if each.wrong]
                failures += len(wrong)
                for each in wrong:
                    print(f"{name} {setting}: {each}")
        failures += sum(not dry_baseline(name, fields) for name in BASELINES)
        print(f"{fields} fields: {failures} failures so far", flush=True)
    return failures


def dry_baseline(name: str, fields: int, n: int = 300) -> bool:
    module = ptx.load(compile_cuda(baseline_text(fields)).text)
    x = np.random.default_rng(fields).permutation(n * fields).astype(np.float32)
    y = np.full(n * fields, np.nan, np.float32)
    grid = (-(-n // BLOCK), 1, 1)
    module.kernel(name).launch(grid, (BLOCK, 1, 1), [np.int32(n), x, y])
    return bool(np.array_equal(y.reshape(fields, n), x.reshape(n, fields).T))


# -- the table -----------------------------------------------------------------------------------


def best(run: Run, prefix: str) -> dict[str, Any] | None:
    found = [
        record
        for key, record in run.records.items()
        if (key == prefix or key.startswith(prefix + "/")) and "seconds" in record
    ]
    return min(found, key=lambda record: record["seconds"], default=None)


def table(run: Run) -> bool:
    """Fractions of the copy ceiling; whether ours reach the goal everywhere."""
    columns = ("ours", "torch", *BASELINES)
    header = [*columns, "sum ours", "sum torch"]
    print("fields " + "".join(f"{name:>15}" for name in header))
    reached = True
    for fields in run.options.fields:
        found = [best(run, f"aos-to-soa/{fields}/{name}") for name in columns]
        found += [best(run, f"aos-sum/{fields}/{name}") for name in ("ours", "torch")]
        shown = [f"{each['fraction']:.3f}" if each else "-" for each in found]
        print(f"{fields:>6} " + "".join(f"{text:>15}" for text in shown))
        for each in (found[0], found[-2]):
            reached &= each is not None and each["fraction"] >= GOAL
        if found[0]:
            chosen = {k: v for k, v in found[0]["setting"].items() if k not in ("fields", "dtype")}
            print("       " + " ".join(f"{key}={value}" for key, value in chosen.items()))
    errors = {key: record["error"] for key, record in run.records.items() if "error" in record}
    for key, error in errors.items():
        print(f"{key}: {error.splitlines()[0]}")
    print(f"goal {GOAL} of the copy ceiling: {'reached' if reached else 'not reached'} everywhere")
    return reached and not errors


def main() -> int:
    parser = arguments(__doc__, "aos_device.json", dry="tiny sizes, no GPU", resumes=True)
    parser.add_argument("--bytes", type=int, default=2 * 10**9, help="size of the input array")
    parser.add_argument("--fields", type=int, nargs="*", default=list(FIELDS))
    parser.add_argument("--samples", type=int, default=15)
    options = parser.parse_args()
    if options.dry:
        return 1 if dry(Run(options, {})) else 0
    records: dict[str, Any] = earlier(options.out, again=options.again)
    run = Run(options, records)
    on_gpu(run)
    return 0 if table(run) else 1


if __name__ == "__main__":
    raise SystemExit(main())
