"""What a call costs on the host: ours beside Triton, PyTorch, CuPy and Python operators.

    python -m bench.catalogue.calls_device  with a GPU, PyTorch and CuPy

One run measures calls (1,000 at a time, medians; the clock stops before the GPU is waited for, and
the work is so small that the GPU is never behind), the parts they are made of, 1,000 launches in a
CUDA graph, and tries every operator: results, `opcheck`, gradients, `torch.compile`. The record is
written after every section, and a run picks up where an earlier one stopped. `--only` selects.
"""

from __future__ import annotations

import ctypes
import gc
import json
import platform
import shutil
import statistics
import sysconfig
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from bench.harness import arguments, attempted, command, earlier, save

import warploom
from warploom.catalogue.operators import OPERATORS, operators
from warploom.runtime.callable import load as load_kernel
from warploom.runtime.driver import Table, open_driver
from warploom.runtime.gpu import load_function
from warploom.runtime.library import read_torch

FIELDS, STRUCTURES = 5, 1024
CALLS, SAMPLES = 1000, 15
GOALS = {"ours: call": 10.0, "ours: prepared": 5.0, "ours: operator": 15.0}

Record = dict[str, Any]


def cost(call: Callable[[], object], calls: int = CALLS, samples: int = SAMPLES) -> Record:
    """Microseconds of host time per call."""
    import torch

    for _ in range(3):
        call()
    times = []
    gc.disable()
    try:
        for _ in range(samples):
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(calls):
                call()
            times.append((time.perf_counter() - started) / calls * 1e6)
    finally:
        gc.enable()
    torch.cuda.synchronize()
    return {"us": round(statistics.median(times), 3), "best": round(min(times), 3)}


def costs(calls: dict[str, Callable[[], object]]) -> Record:
    found: Record = {}
    for name, call in calls.items():
        took, failed = attempted(cost, call)
        found[name] = took or {"error": failed[:300]}
        print(f"  {name:<44}" + (f"{took['us']:8.2f} µs" if took else failed[:300]), flush=True)
    return found


# -- sections --------------------------------------------------------------------------------------


def machine() -> Record:
    import torch

    modules = {}
    for name in ("cupy", "triton", "cuda.core", "cuda.bindings", "numpy"):
        try:
            modules[name] = str(getattr(__import__(name, fromlist=["x"]), "__version__", "there"))
        except ImportError:
            modules[name] = "absent"
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if "model name" in line), "")
    return {
        "gpu": open_driver().name(0),
        "host": model or platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "modules": modules,
        "compilers": {name: bool(shutil.which(name)) for name in ("gcc", "g++", "nvcc", "ptxas")},
        "python_headers": header.exists(),
        "date": date.today().isoformat(),
        "command": command(),
    }


def calls() -> Record:
    import cupy
    import torch
    from bench.catalogue import calls_baselines as baselines

    x = torch.rand(STRUCTURES, FIELDS, device="cuda")
    y = torch.empty(FIELDS, STRUCTURES, device="cuda")
    flat, there = x.reshape(-1), torch.empty_like(x)
    cx, cy = cupy.asarray(x), cupy.empty((FIELDS, STRUCTURES), "float32")
    ours = warploom.load("aos-to-soa", fields=FIELDS)
    kernel = load_kernel(ours.kernel)
    ops = operators()
    tracked = x.clone().requires_grad_()
    assert torch.equal(ours(x), x.t())
    assert torch.equal(ops.aos_to_soa(x), x.t())

    def identity(t: Any) -> Any:
        return ours(t)

    library = torch.library.Library("warploom_bench", "FRAGMENT")
    made = {
        f"operator: Library, {gradient}": baselines.by_library(
            library, ours, f"by_{gradient.replace('-', '_')}", gradient
        )
        for gradient in ("none", "register", "own", "own-keyset")
    }
    found = costs(
        {
            "ours: call": lambda: ours(x),
            "ours: call on a flat array": lambda: ours(flat),
            "ours: call, output given": lambda: ours(x, y),
            "ours: kernel, output given": lambda: kernel(x, y),
            "ours: prepared": ours.prepare(x, y),
            "ours: prepared on a stream": ours.prepare(x, y, stream=0),
            "ours: operator": lambda: ops.aos_to_soa(x),
            "ours: operator.default": _called(ops.aos_to_soa.default, x),
            "ours: operator, gradient recorded": lambda: ops.aos_to_soa(tracked),
            "ours: operator under no_grad": _no_grad(lambda: ops.aos_to_soa(tracked)),
            "ours: call on CuPy": lambda: ours(cx),
            "ours: call on CuPy, output given": lambda: ours(cx, cy),
            "torch: copy_": lambda: there.copy_(x),
            "torch: clone": lambda: x.clone(),
            "torch: t().contiguous()": lambda: x.t().contiguous(),
            "torch: add": lambda: x + x,
            "triton: call": baselines.triton_call(x),
            "triton: launch": baselines.triton_launch(x, there),
            "cupy: RawKernel call": baselines.raw_kernel_call(cupy, cx),
            "cupy: RawKernel launch": baselines.raw_kernel_launch(cupy, cx, cy),
            "operator: custom_op alone": _called(
                baselines.custom_op(lambda t: torch.empty_like(t), "empty", False), x
            ),
            "operator: custom_op": _called(baselines.custom_op(identity, "moved", False), x),
            "operator: custom_op, gradient": _called(
                baselines.custom_op(identity, "moved_back", True), x
            ),
            **{name: _called(each, x) for name, each in made.items()},
        }
    )
    for name, each in made.items():
        if not torch.equal(each(x), x.t()):
            found[name]["error"] = "wrong result"
    goals = {name: found[name].get("us", 1e9) <= goal for name, goal in GOALS.items()}
    return {"costs": found, "goals": goals}


def _called(function: Callable[[Any], Any], x: Any) -> Callable[[], object]:
    return lambda: function(x)


def _no_grad(call: Callable[[], object]) -> Callable[[], object]:
    import torch

    def quiet() -> object:
        with torch.no_grad():
            return call()

    return quiet


def parts() -> Record:
    """What a call is made of."""
    import cupy
    import torch

    x = torch.rand(STRUCTURES, FIELDS, device="cuda")
    shape, kind, device = (FIELDS, STRUCTURES), torch.float32, torch.device("cuda:0")
    raw = torch._C._cuda_getCurrentRawStream
    key = read_torch(x)[0]
    table = {(key,): 1}
    strided: Any = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)
    cell = ctypes.c_uint64(4096)
    launches = _launches()
    cx = cupy.asarray(x)

    def set_cell() -> None:
        cell.value = 4096

    return {
        "costs": costs(
            {
                "nothing": lambda: None,
                "x.shape": lambda: x.shape,
                "x.dtype": lambda: x.dtype,
                "x.device": lambda: x.device,
                "x.get_device()": lambda: x.get_device(),
                "x.stride()": lambda: x.stride(),
                "x.is_contiguous()": lambda: x.is_contiguous(),
                "x.requires_grad": lambda: x.requires_grad,
                "x.is_neg()": lambda: x.is_neg(),
                "x.data_ptr()": lambda: x.data_ptr(),
                "read_torch": lambda: read_torch(x),
                "look up": lambda: table.get((key,)),
                "torch.empty": lambda: torch.empty(shape, dtype=kind, device=device),
                "torch.empty, device by number": lambda: torch.empty(shape, dtype=kind, device=0),
                "torch.empty_like": lambda: torch.empty_like(x),
                "x.new_empty": lambda: x.new_empty(shape),
                "torch.empty_strided": lambda: torch.empty_strided(
                    shape, (STRUCTURES, 1), dtype=kind, device=device
                ),
                "_empty_strided_cuda": lambda: strided(shape, (STRUCTURES, 1), kind),
                "aten.empty": lambda: torch.ops.aten.empty.memory_format(
                    shape, dtype=kind, device=device
                ),
                "raw stream": lambda: raw(0),
                "torch.cuda.current_stream": lambda: torch.cuda.current_stream().cuda_stream,
                "torch.is_grad_enabled": torch.is_grad_enabled,
                "cell.value = pointer": set_cell,
                "cupy.empty": lambda: cupy.empty(shape, "float32"),
                "cupy pointer": lambda: cx.data.ptr,
                "cupy stream": lambda: cupy.cuda.get_current_stream().ptr,
                **launches,
            }
        )
    }


EMPTY = 'extern "C" __global__ void nothing(const float* x, float* y) {}'


def _launches() -> dict[str, Callable[[], object]]:
    """Ways to call the driver."""
    loaded = load_function(EMPTY, "nothing")
    function, library = loaded.function, open_driver().library
    prepared = loaded.bind((4, 1, 1), (256, 1, 1), [4096, 8192])
    held = Table([4096, 8192])
    plain, holding = library.cuLaunchKernel, ctypes.PyDLL("libcuda.so.1")
    typed = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    typed.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    numbers = [ctypes.c_uint(each) for each in (4, 1, 1, 256, 1, 1, 0)]
    handle, table = function.handle, held.reference
    from warploom.runtime.driver import Configurations

    config = Configurations((4, 1, 1), (256, 1, 1)).reference(0)
    expanded, quick = library.cuLaunchKernelEx, holding.cuLaunchKernelEx
    found: dict[str, Callable[[], object]] = {
        "launch: prepared": prepared,
        "launch: cuLaunchKernelEx": lambda: expanded(config, handle, table, None),
        "launch: cuLaunchKernelEx, lock held": lambda: quick(config, handle, table, None),
        "launch: cuLaunchKernel": lambda: plain(handle, 4, 1, 1, 256, 1, 1, 0, None, table, None),
        "launch: cuLaunchKernel, made numbers": lambda: plain(handle, *numbers, None, table, None),
        "launch: cuLaunchKernel, types told": lambda: typed(
            handle, 4, 1, 1, 256, 1, 1, 0, None, table, None
        ),
    }
    try:
        from cuda.bindings import driver

        value = int(repr(handle).rpartition("(")[2].rstrip(")>"), 16)
        f, s = driver.CUfunction(value), driver.CUstream(0)
        where = ctypes.addressof(table._obj)  # type: ignore[attr-defined]
        found["launch: cuda.bindings"] = lambda: driver.cuLaunchKernel(
            f, 4, 1, 1, 256, 1, 1, 0, s, where, 0
        )
    except ImportError:
        pass
    return found


def graph() -> Record:
    """1,000 launches captured, and replayed on other numbers."""
    import torch

    ours = warploom.load("aos-to-soa", fields=FIELDS)
    back = warploom.load("soa-to-aos", fields=FIELDS)
    x = torch.rand(STRUCTURES, FIELDS, device="cuda")
    y, z = torch.empty(FIELDS, STRUCTURES, device="cuda"), torch.empty_like(x)
    prepared = back.prepare(y, z)
    for call in (lambda: ours(x, y), prepared, lambda: ours(x)):
        call()
    torch.cuda.synchronize()
    found: Record = {}
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(500):
            ours(x, y)
            prepared()
        fresh = ours(x)
    x.copy_(torch.rand_like(x))
    y.fill_(float("nan"))
    z.fill_(float("nan"))
    captured.replay()
    torch.cuda.synchronize()
    right = torch.equal(y, x.t()) and torch.equal(z, x) and torch.equal(fresh, x.t())
    found["launches"], found["right"] = 1001, bool(right)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(10):
        captured.replay()
    end.record()
    end.synchronize()
    found["us_per_launch"] = start.elapsed_time(end) * 1e3 / 10 / 1001
    print(f"  {found}")
    return found


def manners() -> Record:
    """Streams, threads, refusals, many threads at once."""
    import numpy as np
    import torch

    ours = warploom.load("aos-to-soa", fields=FIELDS)
    found: Record = {}
    side = torch.cuda.Stream()
    x = torch.rand(1 << 20, FIELDS, device="cuda")
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        torch.cuda._sleep(20_000_000)
        late = x * 2  # on the side stream, after the sleep
        moved = ours(late)
    side.synchronize()
    found["side stream"] = bool(torch.equal(moved, (x * 2).t()))
    fresh = warploom.load("aos-to-soa", fields=FIELDS)
    results: list[bool] = []

    def work(seed: int) -> None:
        own = torch.rand(1000 + seed % 3, FIELDS, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            for _ in range(300):
                got = fresh(own)
            results.append(bool(torch.equal(got, own.t())))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found["threads"] = len(results) == 8 and all(results)
    odd = x.reshape(-1)[1:1001]  # a slice that begins between two vectors
    found["a slice"] = bool(torch.equal(ours(odd), odd.view(-1, FIELDS).t()))
    found["refused"] = {}
    for name, bad in {
        "wrong fields": x[:, :4].contiguous(),
        "not contiguous": x.t(),
        "float64": x.double(),
        "wants a gradient": x.clone().requires_grad_(),
        "empty": x[:0],
        "host": np.zeros((0, 5), np.float32),
    }.items():
        try:
            ours(bad)
            found["refused"][name] = "accepted"
        except warploom.WarploomError as error:
            found["refused"][name] = str(error.message)
    print("  " + json.dumps(found, indent=1).replace("\n", "\n  "))
    return found


def _cases(torch: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Arguments of every operator."""

    def rand(*shape: int) -> Any:
        return torch.rand(*shape, device="cuda", dtype=torch.float32)

    def words(*shape: int) -> Any:
        return torch.randint(-(2**31), 2**31 - 1, shape, device="cuda", dtype=torch.int32)

    return {
        "aos_to_soa": [(rand(1000, 5),), (rand(33, 7, 3),), (rand(1001, 12),)],
        "soa_to_aos": [(rand(5, 1000),), (rand(3, 7, 33),)],
        "aos_sum": [(rand(1000, 5),), (rand(7, 13, 3),)],
        "transposition": [(rand(7, 16, 6),), (rand(3, 4, 32, 8),)],
        "stencil_1d": [(rand(1000),), (rand(517), 9)],
        "convolution_1d": [
            (rand(1000), torch.rand(5)),
            (rand(1000), rand(9)),
        ],
        "convolution_2d": [(rand(40, 70), torch.rand(3, 3)), (rand(64, 128), torch.rand(25))],
        **{
            name: [(words(17, 64), words(17, 64))]
            for name in ("product_registers", "product_shared", "product_pieces")
        },
    }


def right() -> Record:
    """Every operator: results, gradients, `opcheck`, `torch.compile`."""
    import torch

    ops, found = operators(), {}
    known = {each.name: each for each in OPERATORS}
    for name, cases in _cases(torch).items():
        record: Record = {"cases": len(cases)}
        for what, test in (
            ("results", _results),
            ("gradients", _gradients),
            ("opcheck", _opcheck),
            ("compiled", _compiled),
        ):
            if what == "gradients" and not known[name].gradients:
                continue
            same, failed = attempted(_all_right, test, torch, ops, known[name], cases)
            record[what] = failed[:600] if failed else same
        found[name] = record
        print(f"  {name}: {record}", flush=True)
    return found


def _all_right(test: Any, torch: Any, ops: Any, operator: Any, cases: list[Any]) -> bool:
    return all(test(torch, ops, operator, case) for case in cases)


def _close(torch: Any, one: Any, other: Any) -> bool:
    if one.dtype.is_floating_point:
        return bool(torch.allclose(one, other, rtol=1e-4, atol=1e-5))
    return bool(torch.equal(one, other))


def _results(torch: Any, ops: Any, operator: Any, case: tuple[Any, ...]) -> bool:
    got = getattr(ops, operator.name)(*case)
    on_host = [each.cpu() if isinstance(each, torch.Tensor) else each for each in case]
    same = _close(torch, got.cpu(), getattr(ops, operator.name)(*on_host))
    return same and _close(torch, got, operator.plain(*case))


def _gradients(torch: Any, ops: Any, operator: Any, case: tuple[Any, ...]) -> bool:
    def gradients(function: Callable[..., Any]) -> list[Any]:
        given = [
            each.clone().requires_grad_() if isinstance(each, torch.Tensor) else each
            for each in case
        ]
        out = function(*given)
        weights = torch.linspace(0, 1, out.numel(), device=out.device).reshape(out.shape)
        (out * weights).sum().backward()
        return [each.grad for each in given if isinstance(each, torch.Tensor)]

    ours, theirs = gradients(getattr(ops, operator.name)), gradients(operator.plain)
    return all(_close(torch, a, b) for a, b in zip(ours, theirs, strict=True))


def _opcheck(torch: Any, ops: Any, operator: Any, case: tuple[Any, ...]) -> bool:
    given = tuple(
        each.clone().requires_grad_()
        if isinstance(each, torch.Tensor) and operator.gradients
        else each
        for each in case
    )
    torch.library.opcheck(getattr(ops, operator.name).default, given)
    return True


def _compiled(torch: Any, ops: Any, operator: Any, case: tuple[Any, ...]) -> bool:
    def function(*given: Any) -> Any:
        return getattr(ops, operator.name)(*given) * 1

    torch._dynamo.reset()
    got, failed = attempted(lambda: torch.compile(function, fullgraph=True)(*case))
    if failed:  # without a compiler for the host, what is traced at least
        got = torch.compile(function, fullgraph=True, backend="aot_eager")(*case)
    return _close(torch, got, function(*case))


SECTIONS: dict[str, Callable[[], Record]] = {
    "machine": machine,
    "calls": calls,
    "parts": parts,
    "graph": graph,
    "manners": manners,
    "right": right,
}


def main() -> int:
    parser = arguments(__doc__, "calls_device.json", resumes=True)
    parser.add_argument("--only", nargs="*", default=list(SECTIONS), choices=list(SECTIONS))
    options = parser.parse_args()
    records: Record = earlier(options.out, again=options.again)
    failed = 0
    for name in options.only:
        if name in records and "error" not in records[name]:
            continue
        print(name, flush=True)
        started = time.monotonic()
        found, error = attempted(SECTIONS[name])
        if found is None:
            print(error)
            failed += 1
        records[name] = found or {"error": error[-3000:]}
        records[name]["wall_seconds"] = round(time.monotonic() - started, 1)
        save(options.out, records, default=str)
    print(json.dumps({key: value for key, value in records.items() if key != "parts"}, default=str))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
