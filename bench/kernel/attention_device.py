"""Attention as a user has it on an H200, beside PyTorch's by cuDNN and FlashAttention.

    python -m bench.kernel.attention_device --seconds 60        rows, and errors on hard inputs
    python -m bench.kernel.attention_device --dry               what is searched, and compiles

A row is a shape. What it measures is found by `warploom.explore` on the stated nest, from an empty
store, or by `warploom.load("attention", tune=…)` where arrays have more elements than a nest may
have; beside that is `warploom.load("attention")` without a search. Each agrees with a sample of
rows in double precision. All are timed in CUDA graphs, in turn with PyTorch's: medians in
microseconds. Rows of errors compare results on hard inputs with double precision, ours and
FlashAttention's. A run that was stopped goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from bench.harness import RESULTS, arguments, attempted, earlier, environment, save
from bench.kernel.hopper_device import Timed

import warploom
from warploom.catalogue.attention.asked import Options
from warploom.catalogue.attention.chosen import tilings
from warploom.catalogue.attention.tuned import ROWS, sampled
from warploom.emit.cuda import cuda
from warploom.loopnest.attention.bound import memory_time
from warploom.loopnest.attention.kernel import kernel_of
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.program import attention_nest
from warploom.machine.record import H200
from warploom.runtime.compile import compile_cuda

RECORD = "attention_device.json"
# An earlier form of this script tried sizes without a search: `kernel_attention_device.json`.
TURNS = 12
NEAR = 2e-2  # of the largest number of a result
LARGE = 1 << 31  # elements of an array of a nest, and more


@dataclass(frozen=True)
class Work:
    batch: int
    heads: int
    queries: int
    keys: int
    head: int
    groups: int = 1
    causal: bool = False
    window: int | None = None
    cap: float | None = None

    @property
    def attention(self) -> Attention:
        return Attention(
            self.batch, self.heads, self.queries, self.keys, self.head, self.causal,
            groups=self.groups, window=self.window,
        )  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        return {"causal": self.causal, "window": self.window, "soft_cap": self.cap}

    @property
    def pairs(self) -> float:
        """Queries with the keys that they see."""
        a, some = self.attention, 0
        for query in range(a.queries):
            begin, end = a.blocks(query, query, 1)
            some += end - begin
        return float(some * a.all_heads)


def _square(batch: int, heads: int, length: int, head: int, **more: Any) -> Work:
    return Work(batch, heads, length, length, head, **more)


PLAIN = {
    f"{'x'.join(map(str, each))}{' causal' * causal}": _square(*each, causal=causal)
    for each in ((4, 16, 2048, 64), (4, 16, 2048, 128), (2, 16, 8192, 128))
    for causal in (False, True)
}
WORKS: Mapping[str, Work] = {
    **PLAIN,
    "decoding 64x32x8192x128": Work(64, 32, 1, 8192, 128),
    "decoding grouped 64x32/8x8192x128": Work(64, 32, 1, 8192, 128, groups=4),
    "grouped 4x32/8x2048x128": _square(4, 32, 2048, 128, groups=4),
    "grouped 4x32/8x2048x128 causal": _square(4, 32, 2048, 128, groups=4, causal=True),
    "ragged 4x16x1000x128": _square(4, 16, 1000, 128),
    "ragged 4x16x3001x128": _square(4, 16, 3001, 128),
    "soft cap 4x16x2048x128 causal": _square(4, 16, 2048, 128, causal=True, cap=30.0),
    "window 4x16x2048x128 causal": _square(4, 16, 2048, 128, causal=True, window=512),
    "window 2x16x8192x128 causal": _square(2, 16, 8192, 128, causal=True, window=1024),
}
BESIDE = {  # the plain one of each variant
    "soft cap 4x16x2048x128 causal": "4x16x2048x128 causal",
    "window 4x16x2048x128 causal": "4x16x2048x128 causal",
    "window 2x16x8192x128 causal": "2x16x8192x128 causal",
}
LIBRARIES = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION"}


def nest_of(work: Work) -> Any:
    """The stated nest; None where it would have too many elements."""
    if work.batch * (work.heads // work.groups) * work.keys * work.head >= LARGE:
        return None
    return attention_nest(
        work.batch, work.heads, work.queries, work.keys, work.head,
        groups=work.groups, causal=work.causal, window=work.window, cap=work.cap,
    )  # fmt: skip


# -- on a GPU --------------------------------------------------------------------------------------


class Bench:
    """The arrays of one row."""

    def __init__(self, work: Work, torch: Any) -> None:
        self.work, self.torch = work, torch
        made = torch.Generator(device="cuda").manual_seed(1)
        wide = (work.batch, work.heads, work.queries, work.head)
        kept = (work.batch, work.heads // work.groups, work.keys, work.head)
        self.q, self.k, self.v = (
            torch.empty(shape, device="cuda", dtype=torch.bfloat16).normal_(generator=made)
            for shape in (wide, kept, kept)
        )

    def library(self, backend: str) -> Callable[[], Any]:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        functional, work = self.torch.nn.functional, self.work
        how: dict[str, Any] = {"is_causal": work.causal}
        if work.groups > 1:  # which older versions do not have
            how["enable_gqa"] = True

        def run() -> Any:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return functional.scaled_dot_product_attention(self.q, self.k, self.v, **how)

        return run

    def found(self, seconds: float) -> tuple[Callable[[], Any], dict[str, Any]]:
        """What a search finds, and how it is called."""
        nest, work = nest_of(self.work), self.work
        if nest is None:
            f = warploom.load("attention", tune=seconds, store=False)
            f(self.q, self.k, self.v, **work.options)
            return lambda: f(self.q, self.k, self.v, **work.options), {"by": "load", "as": f.said}
        found = warploom.explore(nest, seconds=seconds, store=False)
        call = warploom.compile(found)
        shape = (work.batch, work.heads // work.groups, work.groups, work.queries, work.head)
        q = self.q.view(shape)
        race = {
            "by": "explore", "as": str(found).partition("schedule: ")[2].partition("\n")[0],
            "said_us": found.nanoseconds / 1e3, "looked_at": found.evaluated,
            "wrong": found.race.wrong, "failed": found.race.failed,
            "complaint": found.race.complaint[:300], "trial": str(found.trial)[:200],
        }  # fmt: skip
        return lambda: call(q, self.k, self.v).view(self.q.shape), race

    def plain(self) -> Callable[[], Any]:
        f = warploom.load("attention", **self.work.options)
        return lambda: f(self.q, self.k, self.v)

    def off(self, result: Any) -> float:
        """How far a sample is from what it has to be, of the largest number there."""
        import numpy as np

        work, worst = self.work, 0.0
        options = Options(**work.options)
        rows = np.unique(np.linspace(0, work.queries - 1, 4 * ROWS).astype(int))
        for b, h in ((0, 0), (work.batch - 1, work.heads - 1)):
            own = h // work.groups
            arrays = self.q[b, h], self.k[b, own], self.v[b, own]
            q, k, v = (each.double().cpu().numpy() for each in arrays)
            wanted = sampled(q, k, v, rows, options)
            got = result[b, h].double().cpu().numpy()[rows]
            worst = max(worst, float(np.abs(got - wanted).max() / np.abs(wanted).max()))
        return worst

    def read(self) -> Callable[[], Any]:
        """Keys and values read once, by a sum of words."""
        k, v = (each.view(self.torch.float32) for each in (self.k, self.v))
        return lambda: (k.sum(), v.sum())


def row(name: str, seconds: float, rows: Mapping[str, Any], torch: Any) -> dict[str, Any]:
    work = WORKS[name]
    bench, timed = Bench(work, torch), Timed(torch)
    since = time.monotonic()
    ours, told = bench.found(seconds)
    told["searched_s"] = round(time.monotonic() - since, 1)
    calls: dict[str, Callable[[], Any]] = {"found": ours, "load": bench.plain()}
    if work.window is None and work.cap is None:
        calls |= {each: bench.library(backend) for each, backend in LIBRARIES.items()}
    few = work.queries == 1
    if few:
        calls["read"] = bench.read()
    graphs: dict[str, Any] = {}
    failed: dict[str, str] = {}
    off: dict[str, float] = {}
    for each, call in calls.items():
        if each != "read":
            made, why = attempted(lambda call=call: bench.off(call()))
            if made is None or not made < NEAR:
                failed[each] = why[:300] or f"off by {made}"
                continue
            off[each] = round(made, 6)
        graph, why = attempted(timed.graph, call)
        if graph is None:
            failed[each] = why[:300]
        else:
            graphs[each] = graph
    times = timed.turns(graphs, TURNS)
    best = min((each for each in ("found", "load") if each in times), key=times.__getitem__)
    flops = 4.0 * work.pairs * work.head
    made_row = {
        **told, "us": times, "off": off, "failed_calls": failed, "best": best,
        "teraflops": {n: round(flops / us * 1e-6, 1) for n, us in times.items() if n != "read"},
        "of": {n: round(us / times["found"], 3) for n, us in times.items() if "found" in times},
    }  # fmt: skip
    if few:
        bytes_ = memory_time(work.attention, H200.rates) * H200.rates.device.dram
        made_row["gigabytes_per_second"] = {n: round(bytes_ / us * 1e-3) for n, us in times.items()}
    plain = rows.get(BESIDE.get(name, ""), {}).get("us", {})
    if plain and "found" in times:
        made_row["beside_plain"] = round(min(plain["found"], plain["load"]) / times[best], 3)
    return made_row


# -- errors on hard inputs -------------------------------------------------------------------------

HARD: Mapping[str, Callable[[Any, Any, Any], tuple[Any, Any, Any]]] = {
    "usual": lambda q, k, v: (q, k, v),
    "large logits": lambda q, k, v: (q * 30, k, v),
    "very large logits": lambda q, k, v: (q * 3000, k * 30, v),
    "one key alone": lambda _, k, v: (k * 100, k, v),
    "equal scores": lambda q, k, v: (q * 0, k, v),
    "small values": lambda q, k, v: (q, k, v * 2.0**-120),
    "values below the normal ones": lambda q, k, v: (q, k, v * 2.0**-130),
    "far from zero": lambda q, k, v: (q, k, v + 100),
}


def errors(head: int, causal: bool, torch: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ours and the libraries' beside double precision, on the same inputs."""
    bench = Bench(_square(1, 4, 1024, head, causal=causal), torch)
    plain = bench.q, bench.k, bench.v
    for name, change in HARD.items():
        bench.q, bench.k, bench.v = (each.to(torch.bfloat16) for each in change(*plain))
        q, k, v = (each.double() for each in (bench.q, bench.k, bench.v))
        scores = q @ k.mT * head**-0.5
        if causal:
            mask = torch.ones(1024, 1024, device="cuda", dtype=torch.bool).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
        wanted = scores.softmax(-1) @ v
        found: dict[str, Any] = {}
        calls = {"ours": bench.plain(), **{n: bench.library(b) for n, b in LIBRARIES.items()}}
        for each, call in calls.items():
            result, why = attempted(call)
            if result is None:
                found[each] = why[:200]
                continue
            off = (result.double() - wanted).abs()
            found[each] = {"most": float(off.max()), "mean": float(off.mean())}
        ours, flash = found["ours"], found["flash"]
        if isinstance(ours, dict) and isinstance(flash, dict):
            # Both round the same number: the last place of a result is not held against either.
            found["no_larger"] = ours["mean"] <= flash["mean"] * 1.02 + 1e-45
        yield f"{name}, {head}{' causal' * causal}", found


def gradients(head: int, causal: bool, torch: Any) -> dict[str, Any]:
    """Gradients of q, k and v, ours and FlashAttention's, beside double precision."""
    bench = Bench(_square(1, 4, 512, head, causal=causal), torch)
    arrays = [bench.q, bench.k, bench.v]
    weights = torch.randn_like(bench.q)

    def of(call: Callable[..., Any], kind: Any) -> list[Any]:
        leaves = [each.detach().to(kind).requires_grad_() for each in arrays]
        found = torch.autograd.grad(call(*leaves), leaves, weights.to(kind))
        return [each.double() for each in found]

    def exact(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.mT * head**-0.5
        if causal:
            mask = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
        return scores.softmax(-1) @ v

    def flash(q: Any, k: Any, v: Any) -> Any:
        bench.q, bench.k, bench.v = q, k, v
        return bench.library("FLASH_ATTENTION")()

    wanted = of(exact, torch.float64)
    made: dict[str, Any] = {}
    for name, call in (("ours", warploom.load("attention", causal=causal)), ("flash", flash)):
        found, why = attempted(of, call, torch.bfloat16)
        made[name] = why[:200] or {
            each: round(float((a - b).abs().max() / b.abs().max()), 6)
            for each, a, b in zip("qkv", found or (), wanted, strict=False)
        }
    return made


# -- without one -----------------------------------------------------------------------------------


def dry(name: str) -> dict[str, Any]:
    """What a row searches, and what ptxas says of the first tiling."""
    work, nest = WORKS[name], nest_of(WORKS[name])
    made: dict[str, Any] = {"work": asdict(work)}
    if nest is not None:
        found = warploom.explore(nest, evaluations=1, model=True)
        made |= {"strategy": found.strategy, "trial": str(found.trial)[:200]}
    ranked = tilings(work.attention, H200)
    options = ("--ptxas-options=-v",)
    text = cuda(kernel_of(work.attention, ranked[0], H200))
    log = compile_cuda(text, "sm_90a", kind="cubin", contract=False, options=options).log
    spills = "bytes spill stores" in log and " 0 bytes spill stores" not in log
    return made | {
        "tilings": len(ranked), "first": ranked[0].name,
        "spills": spills, "serialized": "serialized" in log,
    }  # fmt: skip


def main() -> None:
    parser = arguments(
        __doc__, RECORD, dry="only compile", only="rows with this in their name", resumes=True
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of the search of each row")
    parser.add_argument("--limit", type=float, default=1e9, help="begin no row after these seconds")
    given = parser.parse_args()
    begun = time.monotonic()
    if given.dry:
        for name in WORKS:
            if given.only in name:
                print(f"{name}: {dry(name)}", flush=True)
        return
    found = given.out if given.out.exists() else RESULTS / RECORD
    record: dict[str, Any] = earlier(found, again=given.again)
    torch: Any = import_module("torch")
    torch.zeros(1, device="cuda")
    record |= {"environment": environment(), "device": torch.cuda.get_device_name(0)}
    record["seconds"] = given.seconds
    off = record.setdefault("errors", {})
    for head in (64, 128):
        for causal in (False, True):
            if f"usual, {head}{' causal' * causal}" not in off and not given.only:
                off |= dict(errors(head, causal, torch))
                name = f"gradients, {head}{' causal' * causal}"
                made, failed = attempted(gradients, head, causal, torch)
                off[name] = made or {"failed": failed[:300]}
                save(given.out, record)
    rows = record.setdefault("rows", {})
    for name in WORKS:
        late = time.monotonic() - begun > given.limit
        if given.only not in name or "failed" not in rows.get(name, {"failed": ""}) or late:
            continue
        made, failed = attempted(row, name, given.seconds, rows, torch)
        torch.cuda.synchronize()  # where it cannot go on, neither can this process
        torch.cuda.empty_cache()
        rows[name] = made or {"failed": failed[:1000]}
        said = f"{made['us']}, {made['as'][:120]}" if made else failed[:300]
        print(f"{name}: {said} after {time.monotonic() - begun:.0f} s", flush=True)
        save(given.out, record)
    save(given.out, record)


if __name__ == "__main__":
    main()
