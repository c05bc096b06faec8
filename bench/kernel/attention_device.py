"""Attention as one kernel (`loopnest/attention`) on an H200, beside PyTorch's by cuDNN and
FlashAttention.

    python -m bench.kernel.attention_device --seconds 60     an H200, with PyTorch
    python -m bench.kernel.attention_device --dry            what compiles, and how

Every setting is compiled first, in as many processes as there are cores. Each has to agree with a
sample of rows in single precision; then all are timed in CUDA graphs, in turn with PyTorch's, and
the best few once more, for longer. A row is a shape: medians in microseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from bench.harness import arguments, attempted, environment, save
from bench.kernel.hopper_device import Timed

from warploom.emit.cuda import cuda
from warploom.kernel.descriptor import view_of
from warploom.kernel.ir import Kernel
from warploom.loopnest.attention.kernel import kernel_of
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.machine.record import H200
from warploom.runtime.compile import compile_cuda
from warploom.runtime.driver import open_driver
from warploom.runtime.gpu import Loaded
from warploom.runtime.tensor import encoder

RECORD = "kernel_attention_device.json"
WANTED = 0.75  # of cuDNN
SHORT, LONG, BEST = 3, 12, 5
NEAR = 2e-2  # of the largest number of a result
SAMPLE = 64  # rows of a head that are computed in single precision

SHAPES = ((4, 16, 2048, 64), (4, 16, 2048, 128), (2, 16, 8192, 128))
WORKS = {
    f"{'x'.join(map(str, each))}{' causal' if causal else ''}": Attention(
        each[0], each[1], each[2], each[2], each[3], causal
    )
    for each in SHAPES
    for causal in (False, True)
}
KEYS = {  # by the size of a head and the warp groups that consume
    (64, 2): (128, 160, 192), (64, 3): (96, 128),
    (128, 2): (128, 160, 176), (128, 3): (80, 96),
}  # fmt: skip
WAYS = ((False, False), (True, False), (True, True))  # ahead, in turns
BLOCKS = {  # of heads together, and whether blocks make several tiles
    False: ((1, True), (1, False)), True: ((1, True), (8, False), (16, False)),
}  # fmt: skip


def tilings(attention: Attention) -> Iterator[AttentionTiling]:
    """Two stages: a third made no difference."""
    most = H200.shared_bytes_most
    for consumers, (some, persistent), (ahead, turns) in product(
        (2, 3), BLOCKS[attention.causal], WAYS
    ):
        for keys in KEYS[attention.head, consumers]:
            made = AttentionTiling(
                consumers, keys, 2, some, persistent, 1 + persistent, ahead, turns
            )
            if not made.is_possible(attention, most):
                made = replace(made, resident=1)
            if made.is_possible(attention, most):
                yield made


# -- what is compiled ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ready:
    attention: Attention
    tiling: AttentionTiling
    kernel: Kernel
    code: bytes
    log: str


def ready(attention: Attention, tiling: AttentionTiling) -> Ready:
    kernel = kernel_of(attention, tiling, H200)
    options = ("--ptxas-options=-v",)
    made = compile_cuda(cuda(kernel), "sm_90a", kind="cubin", contract=False, options=options)
    return Ready(attention, tiling, kernel, made.code, made.log)


def slow(made: Ready) -> bool:
    """Whether ptxas lets products wait for each other, as where registers are short."""
    return "serialized" in made.log


def _tried(attention: Attention, tiling: AttentionTiling) -> tuple[Ready | None, str]:
    return attempted(ready, attention, tiling)


# -- on a GPU --------------------------------------------------------------------------------------


class Bench:
    """The arrays of one shape, and a sample of what has to come out."""

    def __init__(self, attention: Attention, torch: Any) -> None:
        self.attention, self.torch = attention, torch
        made = torch.Generator(device="cuda").manual_seed(1)
        kind = torch.bfloat16 if attention.kind == "bf16" else torch.float16
        self.arrays = {
            name: torch.randn(attention.sizes(name), device="cuda", generator=made).to(kind)
            for name in "qkv"
        }
        self.arrays["o"] = torch.empty(attention.sizes("o"), device="cuda", dtype=kind)
        self.heads = [(0, 0), (attention.batch - 1, attention.heads - 1)]
        step = max(1, attention.queries // SAMPLE)
        self.rows = torch.arange(0, attention.queries, step, device="cuda") + step - 1
        self.expected = [self._expected(*each) for each in self.heads]

    def _expected(self, batch: int, head: int) -> Any:
        a, torch = self.attention, self.torch
        q, k, v = (
            self.arrays[n][batch, head // (a.groups if n != "q" else 1)].double() for n in "qkv"
        )
        scores = q[self.rows] @ k.t() * a.factor
        if a.causal:
            number = torch.arange(a.keys, device="cuda")
            unseen = number[None] > self.rows[:, None] + a.shift
            scores = scores.masked_fill(unseen, float("-inf"))
        return scores.softmax(-1) @ v

    def wrong(self) -> float:
        """How far the sample is from what it has to be, of the largest number there."""
        off = 0.0
        for (batch, head), wanted in zip(self.heads, self.expected, strict=True):
            found = self.arrays["o"][batch, head][self.rows].double()
            off = max(off, float((found - wanted).abs().max() / wanted.abs().max()))
        return off

    def library(self, backend: str) -> Callable[[], object]:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q, k, v = (self.arrays[each] for each in "qkv")
        causal, functional = self.attention.causal, self.torch.nn.functional

        def run() -> object:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        return run

    def launch(self, each: Ready, loaded: Loaded) -> Callable[[], object]:
        """On the stream that is current when it is called."""
        kernel = each.kernel
        maps = []
        for map in kernel.maps:
            held = next(one for one in kernel.arrays if one.name == map.array)
            there = self.arrays[map.array]
            flat = np.broadcast_to(np.zeros(1, held.dtype.storage), there.numel())
            encoded = encoder(view_of(map, flat, {}), map.box, map.swizzle)
            maps.append(np.frombuffer(encoded(there.data_ptr()), np.uint8))
        given = [*(self.arrays[one.name].data_ptr() for one in kernel.arrays), *maps]
        grid = (int(kernel.grid[0].value), 1, 1)  # type: ignore[union-attr]

        def run() -> None:
            stream = self.torch.cuda.current_stream().cuda_stream
            loaded.bind(grid, kernel.launched, given, stream)()

        return run


LIBRARIES = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION"}


def flops(attention: Attention) -> float:
    part = 0.5 if attention.causal else 1.0
    pairs = attention.all_heads * attention.queries * attention.keys
    return 4.0 * pairs * attention.head * part


def row(name: str, prepared: Sequence[Ready], torch: Any, end: float) -> dict[str, Any]:
    bench, timed, driver = Bench(WORKS[name], torch), Timed(torch), open_driver()
    graphs: dict[str, Any] = {}
    for library, backend in LIBRARIES.items():
        made, failed = attempted(lambda backend=backend: timed.graph(bench.library(backend)))
        if made is None:
            print(f"{name}: no {library}: {failed[:200]}", flush=True)
        else:
            graphs[library] = made
    wrong: dict[str, Any] = {}
    for each in prepared:
        if time.monotonic() > end:
            break
        loaded = Loaded(driver.load(each.code, each.kernel.name, 0))
        launch = bench.launch(each, loaded)
        bench.arrays["o"].fill_(float("nan"))
        print(f"{name}: {each.tiling.name}", end="\r", flush=True)  # where it may stay
        launch()
        torch.cuda.synchronize()
        off = bench.wrong()
        if not off < NEAR:
            wrong[each.tiling.name] = off
            continue
        graphs[each.tiling.name] = timed.graph(launch)
    short = timed.turns(graphs, SHORT)
    own = sorted((each for each in short if each not in LIBRARIES), key=short.__getitem__)
    chosen = [*(each for each in LIBRARIES if each in graphs), *own[:BEST]]
    long = timed.turns({each: graphs[each] for each in chosen}, LONG)
    best = min(own[:BEST], key=long.__getitem__)
    rate = {each: round(flops(WORKS[name]) / us * 1e-6, 1) for each, us in long.items()}
    return {
        "best": best, "best_us": long[best], "teraflops": rate,
        "of": {each: round(long[each] / long[best], 3) for each in LIBRARIES if each in long},
        "long": long, "short": short, "wrong": wrong,
        "slow": [each.tiling.name for each in prepared if slow(each)],
    }  # fmt: skip


def compiled(works: Sequence[str], dry: bool) -> Iterator[tuple[str, list[Ready]]]:
    """Shape by shape, while later ones are still compiled."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        asked = {
            name: [pool.submit(_tried, WORKS[name], each) for each in tilings(WORKS[name])]
            for name in works
        }
        for name, futures in asked.items():
            made = []
            for future in as_completed(futures):
                found, failed = future.result()
                if found is None:
                    print(f"{name}: {failed[:300]}", flush=True)
                else:
                    made.append(found)
            # Those that wait are not worth the time, unless there is nothing else.
            quick = [each for each in made if dry or not slow(each)]
            yield name, sorted(quick or made, key=lambda each: each.tiling.name)


def main() -> None:
    parser = arguments(__doc__, RECORD, dry="only compile", only="shapes with this in their name")
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no shape after these")
    given = parser.parse_args()
    begun = time.monotonic()
    works = [each for each in WORKS if given.only in each]
    record: dict[str, Any] = {"environment": environment(), "rows": {}}
    torch: Any = None
    for name, made in compiled(works, given.dry):
        print(f"{name}: {len(made)} compiled after {time.monotonic() - begun:.1f} s", flush=True)
        if given.dry:
            record["rows"][name] = {each.tiling.name: slow(each) for each in made}
            continue
        if torch is None:
            torch = import_module("torch")

            torch.zeros(1, device="cuda")
            record["device"] = torch.cuda.get_device_name(0)
        if time.monotonic() - begun > given.seconds:
            record["stopped"] = name
            break
        found, failed = attempted(row, name, made, torch, begun + given.seconds)
        torch.cuda.synchronize()  # where it cannot go on, neither can this process
        record["rows"][name] = found or {"failed": failed[:1000]}
        said = f"{found['of']} by {found['best']}, {found['teraflops']}" if found else failed[:300]
        print(f"{name}: {said}", flush=True)
        save(given.out, record)
    save(given.out, record)


if __name__ == "__main__":
    main()
