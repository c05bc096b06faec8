"""Every kernel of the catalogue on a GPU against its specification, on all of its sizes.

    python -m bench.catalogue.device --out RESULTS.json    on a machine with a GPU and CuPy
    python -m bench.catalogue.device --dry                 the simulator instead

Integers must agree bit for bit, floats within the entry's tolerance. One record per kernel and
variant; registers and spills come from the driver's own compiler where ptxas is there.
"""

from __future__ import annotations

import shutil
from typing import Any

from bench.harness import arguments, environment, save

from warploom.catalogue import entries
from warploom.catalogue.entry import Case, Entry, Parameter
from warploom.catalogue.timing import arguments_on_gpu
from warploom.emit import emit
from warploom.errors import WarploomError
from warploom.kernel.ir import Kernel
from warploom.runtime.callable import load
from warploom.runtime.compile import usage
from warploom.runtime.rig import on_host


def run_case(function: Any, kernel: Kernel, case: Case, dry: bool) -> list[Any]:
    """The arguments after a run, back on the host."""
    if dry:
        arguments = case.fresh()
        function(*arguments)
        return arguments
    there = arguments_on_gpu(kernel, case)
    function(*there)
    return [on_host(each) for each in there]


def check(entry: Entry, variant: dict[str, Parameter], dry: bool) -> dict[str, Any]:
    kernel: Kernel = entry.kernel(**variant)
    function = load(kernel, "simulator" if dry else "cuda")
    sizes = entry.sizes(**entry.settings(variant))
    wrong = []
    for seed, size in enumerate(sizes):
        case = entry.case(kernel, size, seed, **variant)
        try:
            after = run_case(function, kernel, case, dry)
            if not entry.agrees(kernel, case, after):
                wrong.append({"size": dict(size), "why": "a wrong result"})
        except WarploomError as error:
            wrong.append({"size": dict(size), "why": error.message})
    record: dict[str, Any] = {"sizes": len(sizes), "wrong": wrong}
    if shutil.which("ptxas"):
        used = usage(emit(kernel, "cuda"), "sm_90")
        record["registers"] = {name: u.registers for name, u in used.items()}
        record["stays_in_registers"] = all(u.stays_in_registers for u in used.values())
    return record


def machine(dry: bool) -> str:
    if dry:
        return "simulator"
    import cupy as cp

    return str(cp.cuda.runtime.getDeviceProperties(0)["name"].decode())


def main() -> int:
    parser = arguments(
        __doc__,
        "catalogue_device.json",
        dry="the simulator instead of a GPU",
        only="names that contain this text",
    )
    options = parser.parse_args()
    record: dict[str, Any] = {
        **environment(machine(options.dry)),
        "kernels": {},
    }
    bad = 0
    for name, entry in entries().items():
        for variant in entry.variants if options.only in name else ():
            label = " ".join([name, *(f"{k}={v}" for k, v in variant.items())])
            result = check(entry, variant, options.dry)
            record["kernels"][label] = result
            bad += bool(result["wrong"]) or not result.get("stays_in_registers", True)
            print(f"{label}: {result['sizes']} sizes, {len(result['wrong'])} wrong", flush=True)
    if not options.dry:
        save(options.out, record)
    print(f"{len(record['kernels'])} kernels, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
