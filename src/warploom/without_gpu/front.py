"""The way in: somebody's kernel, launched as its own package launches it, on arrays of the host.

emulate(triton_kernel)[grid](x, y, n, BLOCK=128)
emulate(numba_kernel)[blocks, threads](x, y)
emulate(cupy_kernel)((blocks,), (threads,), (x, y, n))
emulate("extern \\"C\\" __global__ void k(…) {…}")[blocks, threads](x, y, n)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from warploom.errors import DeviceError, RaceError, located
from warploom.ptx.emulate.asked import Model, Volatile
from warploom.ptx.findings import race_findings
from warploom.ptx.launch import LoadedModule, Report
from warploom.without_gpu.cuda_kernel import CudaKernel, is_cupy, is_text
from warploom.without_gpu.numba_kernel import NumbaKernel, is_numba
from warploom.without_gpu.prepared import Prepared
from warploom.without_gpu.triton_kernel import TritonKernel, is_triton
from warploom.without_gpu.watching import current_watch

SECONDS = 60.0
DEFAULT_ARCH = "sm_90a"  # as of `warploom ptx run`: with wgmma and TMA
_SUCH = {"grid": "(4,)", "grid, block": "4, 256"}


class Emulated:
    """A kernel that runs without a GPU; `emulated[…](…)` launches it and gives the report."""

    def __init__(
        self, kernel: TritonKernel | NumbaKernel | CudaKernel, options: dict[str, Any]
    ) -> None:
        self._kernel = kernel
        self._options = options

    def __getitem__(self, launch: Any) -> Callable[..., Report]:
        @located
        def call(*args: Any, **named: Any) -> Report:
            return self._run(self._kernel.prepare(launch, args, dict(named)))

        return call

    @located
    def __call__(
        self, grid: Any = None, block: Any = None, args: Any = None, *more: Any,
        shared_mem: int = 0, **named: Any,
    ) -> Report:  # fmt: skip
        """As CuPy launches a `RawKernel`: `kernel(grid, block, arguments)`."""
        in_brackets = isinstance(self._kernel, TritonKernel | NumbaKernel)
        if in_brackets or named or more or args is None:
            form = "grid" if isinstance(self._kernel, TritonKernel) else "grid, block"
            also = "" if in_brackets else "; kernel(grid, block, arguments) is CuPy's form"
            raise DeviceError(
                "the call has no launch configuration",
                advice=f"write kernel[{form}](arguments…), such as kernel[{_SUCH[form]}](x){also}",
            )
        if not isinstance(args, tuple | list):
            raise DeviceError(
                f"arguments are a tuple, not a {type(args).__name__}",
                advice="write kernel[grid, block](arguments…), or kernel(grid, block, (x, y))",
            )
        return self[grid, block, shared_mem](*args)

    def set_variable(self, name: str, value: Any) -> None:
        """Writes a `__constant__` or `__device__` variable, as `cudaMemcpyToSymbol` does."""
        if not isinstance(self._kernel, CudaKernel):
            raise DeviceError("only CUDA text has variables", advice="pass arrays as arguments")
        self._kernel.kernel.owner.set_variable(name, value)

    def _run(self, job: Prepared) -> Report:
        watch = current_watch()
        options = dict(self._options)
        options["races"] = "all" if options["races"] else False
        if watch is not None:
            options |= watch.options
            return watch.launch(job.kernel, lambda: self._launch(job, options))
        report = self._launch(job, options)
        if report.races:
            raise _racing(job.kernel.owner, report)
        return report

    def _launch(self, job: Prepared, options: dict[str, Any]) -> Report:
        if job.cluster is not None:
            options = {**options, "cluster": job.cluster}
        return job.kernel.launch(
            job.grid, job.block, job.args, shared_bytes=job.shared_bytes, **options
        )


def _racing(module: LoadedModule, report: Report) -> RaceError:
    faults = [each.error for each in race_findings(module, report.races)]
    if len(faults) == 1:
        error = faults[0]
    else:
        error = RaceError("\n".join([f"{len(faults)} data races", *map(str, faults)]))
    error.output = tuple(report.output)
    return error


@located
def emulate(
    kernel: Any,
    name: str | None = None,
    *,
    arch: str = DEFAULT_ARCH,
    races: bool = True,
    benign: bool = True,
    check: bool = True,
    counters: bool = False,
    seconds: float | None = SECONDS,
    cores: int | None = None,
    heap_bytes: int | None = None,
    volatile: Volatile = "relaxed",
    cluster: int | Sequence[int] | None = None,
    prove: bool = False,
    model: Model = "practice",
    explore: float | None = None,
    dependents: bool = False,
    after: Report | None = None,
) -> Emulated:
    """Somebody's kernel, to be launched without a GPU on NumPy arrays or CPU tensors.

    `kernel` is a `triton.jit` function, a `numba.cuda.jit` function, a CuPy `RawKernel`, or CUDA or
    PTX text (or a file of it), of which `name` chooses a kernel. It is compiled for `arch` by its
    own compiler. A launch is written as that package writes it and gives a report. What the kernel
    does wrong is an error in the words of its source: accesses out of bounds, values that nobody
    wrote, barriers that never complete, and with `races` all data races of the launch. By
    default, harmless races that Triton creates are not reported; `benign=False` reports them:
    writes of one value, also where it
    differs by the rounding of a fused product, and loads of no use. With `volatile="weak"` volatile
    accesses race as plain ones do. A launch is stopped after `seconds`. Large ones are compiled,
    and without `races` and `counters` they use as many `cores` as there are, or as are said.
    `heap_bytes` are for device malloc (8 MiB). `cluster`: how many blocks are one, if the kernel
    does not say it. With `prove` a report's `proof` says whether all schedules do the same.
    With `explore` other schedules are run for so many seconds, unless such a proof covers them all.
    `model="ptx"` reports all races that PTX's manual forbids, also those that seldom show on GPUs.
    With `dependents` the next launch, given this one's report as `after`, may overlap this one.

    `warploom ptx run` runs the same launch. It looks for races with `--races` alone, and leaves
    benign ones out with `--benign`, since it also runs what is only to be timed or printed.

    >>> import numpy as np, warploom
    >>> text = '''
    ... .version 7.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry twice(.param .u64 p) {
    ...   .reg .b32 %r1; .reg .f32 %f1; .reg .b64 %rd<4>;
    ...   ld.param.u64 %rd1, [p];
    ...   cvta.to.global.u64 %rd1, %rd1;
    ...   mov.u32 %r1, %tid.x;
    ...   mul.wide.u32 %rd2, %r1, 4;
    ...   add.s64 %rd3, %rd1, %rd2;
    ...   ld.global.f32 %f1, [%rd3];
    ...   add.f32 %f1, %f1, %f1;
    ...   st.global.f32 [%rd3], %f1;
    ...   ret;
    ... }'''
    >>> x = np.arange(4, dtype=np.float32)
    >>> _ = warploom.emulate(text)[1, 4](x)  # one block of four threads
    >>> x.tolist()
    [0.0, 2.0, 4.0, 6.0]
    >>> try:
    ...     warploom.emulate(text)[1, 8](x)  # four threads too many
    ... except warploom.WarploomError as error:
    ...     print(error.message[:74])
    ld.global.f32: out-of-bounds access of 4 bytes, 16 bytes into argument 0 (
    """
    options = {
        "races": races, "benign": benign, "check": check, "counters": counters, "seconds": seconds,
        "cores": cores, "heap_bytes": heap_bytes, "volatile": volatile, "cluster": cluster,
        "prove": prove, "model": model, "explore": explore, "dependents": dependents,
        "after": after,
    }  # fmt: skip
    for what in ("races", "benign", "counters", "prove", "dependents"):
        if not isinstance(options[what], bool):
            raise DeviceError(f"{what}={options[what]!r}", advice="write True or False")
    if not isinstance(arch, str):
        raise DeviceError(f"{arch!r} is no GPU architecture", advice="use sm_80, sm_90, …")
    return Emulated(_kernel_of(kernel, name, arch, seconds), options)


def _kernel_of(
    kernel: Any, name: str | None, arch: str, seconds: float | None
) -> TritonKernel | NumbaKernel | CudaKernel:
    """As its own package compiles it."""
    if is_triton(kernel):
        return TritonKernel(kernel, arch)
    if is_numba(kernel):
        return NumbaKernel(kernel, arch)
    if is_cupy(kernel) or is_text(kernel):
        return CudaKernel(kernel, name, arch, seconds)
    raise DeviceError(
        f"a {type(kernel).__name__} is no kernel that can be emulated",
        advice="give a triton.jit or numba.cuda.jit function, a CuPy RawKernel, or CUDA text",
    )
