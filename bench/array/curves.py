"""How fast a search finds a fast convolution: the best so far against the candidates looked at.

    python -m bench.array.curves --out FILE [--layer conv4_2] [--candidates 48]  with a GPU, PyTorch
    python -m bench.array.curves --dry --candidates 2                            no GPU: compiled

Ways to draw candidates: uniformly from what the solver leaves, with the fusion rule as it was
meant, as it was coded and without it; and the most promising by the time model. Drawing runs,
tiles and threads without a solver is no curve: `valid_at_random` says how many mappings of so many
obey the rules. A candidate is checked against PyTorch in float64. One that cannot be faster than
the best so far is not launched: a thread does one product in a cycle.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from typing import Any

from bench.array.draw import BY_MODEL, WAYS, drawn, valid_at_random
from bench.array.gpu import Device
from bench.array.prepare import Prepared, prepare_candidate
from bench.harness import arguments, environment, save

from warploom.array.workload import VGG_16, Convolution
from warploom.errors import DeviceError, WarploomError
from warploom.machine.record import H200
from warploom.search.workers.farm import Farm

SLOW = 0.02  # seconds: one launch is enough
PIECE = 500  # mappings without a solver, of one task


def submitted(farm: Farm, layer: Convolution, count: int) -> dict[str, list[Future[Prepared]]]:
    """What each way looks at, in its order, on its way to machine code."""
    lists = {way: farm.submit(drawn, way, layer, count) for way in (*WAYS, BY_MODEL)}
    return {
        way: [
            farm.submit(prepare_candidate, f"{way} {at}", each)
            for at, each in enumerate(listed.result())
        ]
        for way, listed in lists.items()
    }


def least_seconds(layer: Convolution, prepared: Prepared) -> float:
    """Of the kernel with most threads: each does at most one product in a cycle."""
    products = layer.rows * layer.columns * layer.kernels
    products *= layer.kernel_height * layer.kernel_width * layer.channels
    threads = max(math.prod(each.grid) * math.prod(each.block) for each in prepared.kernels)
    cycles = products / min(threads, H200.rates.processors * H200.rates.processor_threads)
    return H200.rates.nanoseconds(cycles) * 1e-9


def curve(device: Device, layer: Convolution, tasks: list[Future[Prepared]]) -> dict[str, Any]:
    arrays = device.arrays(layer)
    wanted = device.wanted(layer, arrays)
    best, points, errors, skipped = math.inf, [], list[str](), 0
    start, spent = time.monotonic(), 0.0
    for at, task in enumerate(tasks):
        try:
            prepared = task.result()
            if least_seconds(layer, prepared) > best:
                skipped += 1
                continue
            began = time.monotonic()
            took = measured(device, prepared, arrays, wanted)
            spent += time.monotonic() - began
        except (WarploomError, RuntimeError) as error:
            errors.append(str(error)[:200])
            continue
        if took < best:
            best = took
            points.append([at + 1, took, prepared.text, prepared.temporary_bytes])
    return {"best": best, "looked_at": len(tasks), "not_launched": skipped, "errors": errors,
            "curve": points, "device_seconds": spent,
            "seconds": time.monotonic() - start}  # fmt: skip


def measured(device: Device, prepared: Prepared, arrays: dict[str, Any], wanted: Any) -> float:
    launch = device.ours(prepared, arrays)
    start, stop = (device.torch.cuda.Event(enable_timing=True) for _ in range(2))
    arrays["out"].fill_(float("nan"))
    start.record()
    launch()
    stop.record()
    stop.synchronize()
    out = arrays["out"].reshape(wanted.shape)
    error = float((out.double() - wanted).abs().max() / wanted.abs().max())
    if not error < 2e-4:
        raise DeviceError(f"{prepared.text}: wrong by {error:.2g} of the largest result")
    once = float(start.elapsed_time(stop)) * 1e-3
    return once if once > SLOW else device.time(launch, times=3, count=5)


def main() -> None:
    parser = arguments(__doc__, "array_curves.json", dry="candidates are compiled, not run")
    parser.add_argument("--layer", default="conv4_2", choices=list(VGG_16))
    parser.add_argument("--candidates", type=int, default=48)
    parser.add_argument("--random", type=int, default=20_000, help="mappings without a solver")
    parser.add_argument("--processes", type=int, default=None)
    given = parser.parse_args()
    layer, farm = VGG_16[given.layer], Farm(given.processes)
    try:
        tasks = submitted(farm, layer, given.candidates)
        pieces = range(given.random // PIECE)
        chance = [farm.submit(valid_at_random, seed, PIECE) for seed in pieces]
        record: dict[str, Any] = {"layer": given.layer, "ways": {}}
        device = None if given.dry else Device()
        for way, own in tasks.items():
            if device is None:
                done = [each.result() for each in own]
                print(f"{way}: {[each.text for each in done]}", flush=True)
                continue
            found = curve(device, layer, own)
            record["ways"][way] = found
            print(
                f"{way}: best {found['best'] * 1e6:.1f} us, {len(found['errors'])} errors, "
                f"{found['not_launched']} not launched, {found['seconds']:.1f} s",
                flush=True,
            )
            save(given.out, record)
        valid = sum(each.result() for each in chance)
        record["valid_at_random"] = {"drawn": len(pieces) * PIECE, "valid": valid}
        print(f"without a solver: {record['valid_at_random']}", flush=True)
        if device is not None:
            about = {"device": device.name} | environment(device.name)
            save(given.out, about | record)
    finally:
        farm.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
