"""`warploom.load("attention", tune=…)`: tilings that are expected to be fast, measured on the GPU.

The arrays of the call are what is computed with. A sample of rows in double precision says whether
the first tiling is right, and all others have to agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from warploom.catalogue.attention.asked import AttentionCall, Options
from warploom.catalogue.attention.plan import Plan, functions_of, planned_kernels
from warploom.emit.cuda import cuda
from warploom.errors import DeviceError
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.machine.record import Machine
from warploom.runtime import driver, rig
from warploom.runtime.view import library_of
from warploom.search.budget import Budget
from warploom.search.outcome import Found
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Task, tune

MOST = 72  # tilings that are tried for a call
NEAR = 2e-2  # of the largest number of a result
ROWS = 16  # of a head that are computed in double precision


@dataclass(frozen=True, slots=True)
class TriedTiling:
    """A tiling, and its kernels with machine code."""

    tiling: AttentionTiling
    built: tuple[rig.Built, ...]


def tuned(
    bench: AttentionRig, ranked: Sequence[AttentionTiling], seconds: float, store: Store | None
) -> AttentionTiling:
    """The fastest; the one that is expected to be, where time was too short for any."""
    task: Task[AttentionTiling, TriedTiling] = Task(
        "attention", bench.content, bench.device, list(ranked[:MOST]), _said,
        partial(prepared, bench.arch, bench.made, bench.machine), bench.measure,
    )  # fmt: skip
    found = tune(task, Budget(seconds), store=store)
    return found.answer.best.candidate if isinstance(found, Found) else ranked[0]


def _said(tiling: AttentionTiling) -> str:
    return tiling.name


def prepared(
    arch: str, made: AttentionCall, machine: Machine, tiling: AttentionTiling
) -> TriedTiling:
    """Run in processes of their own: kernels and machine code."""
    kernels = planned_kernels(made, tiling, machine)
    return TriedTiling(tiling, tuple(rig.built(each, cuda(each), arch) for each in kernels))


class AttentionRig(rig.GpuRig[TriedTiling]):
    """A GPU, and the arrays of a call."""

    def __init__(
        self,
        made: AttentionCall,
        options: Options,
        machine: Machine,
        arrays: Mapping[str, Any],
        gpu: int,
    ) -> None:
        super().__init__(gpu)
        self.made, self.options, self.machine, self.arrays = made, options, machine, arrays
        self.first: Any = None

    @property
    def content(self) -> dict[str, Any]:
        """All that decides how long it takes."""
        shapes = {name: list(each.shape) for name, each in self.arrays.items()}
        steps = {name: list(each) for name, each in self.made.steps.items()}
        kind = self.made.attention.kind
        return {"shapes": shapes, "steps": steps, "kind": kind, "options": asdict(self.options)}

    def launches(self, prepared: TriedTiling) -> Sequence[driver.Launch]:
        kernels = tuple(each.kernel for each in prepared.built)
        functions = functions_of(kernels, self.made, "cuda")
        for function, each in zip(functions, prepared.built, strict=True):
            function.adopt(each.code, self.gpu)
        plan = Plan(self.made, prepared.tiling, kernels, functions)
        (result, *_), launch = plan.prepare(self.arrays)
        found = _single(result)
        if self.first is None:
            self._check(found)
            self.first = found
        elif not bool((abs(found - self.first) <= NEAR * abs(self.first).max()).all()):
            raise DeviceError(f"'{prepared.tiling.name}' computes a wrong result on this GPU")
        return [launch]

    def _check(self, found: Any) -> None:
        """Rows of the first head and of the last, beside double precision."""
        a, options = self.made.attention, self.options
        q, k, v = (self.arrays[name] for name in "qkv")
        rows = np.unique(np.linspace(0, a.queries - 1, ROWS).astype(int))
        for b, h in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
            own = h // a.groups
            arrays = _host(q[b, h]), _host(k[b, own]), _host(v[b, own])
            bias = self.arrays.get("bias")
            added = None if bias is None else _host(_broadcast(bias)[_at(bias, b, h)])
            wanted = sampled(*arrays, rows, options, added)
            if not np.abs(_host(found[b, h])[rows] - wanted).max() <= NEAR * np.abs(wanted).max():
                raise DeviceError("attention computes a wrong result on this GPU")


def sampled(q: Any, k: Any, v: Any, rows: Any, options: Options, bias: Any = None) -> Any:
    """Some rows of one head, in double precision."""
    scale = q.shape[1] ** -0.5 if options.scale is None else options.scale
    s = q[rows] @ k.T * scale
    if options.soft_cap is not None:
        s = np.tanh(s / options.soft_cap) * options.soft_cap
    if bias is not None:
        s = s + (bias[rows] if len(bias) > 1 else bias)
    last, key = rows[:, None] + (len(k) - len(q)), np.arange(len(k))[None]
    if options.causal:
        s = np.where(key <= last, s, -np.inf)
    if options.window is not None:
        s = np.where(key > last - options.window, s, -np.inf)
    most = s.max(1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(most), most, 0.0))
    total = p.sum(1, keepdims=True)
    return p @ v / np.where(total > 0, total, 1.0)


def _broadcast(bias: Any) -> Any:
    while len(bias.shape) < 4:
        bias = bias[None]
    return bias


def _at(bias: Any, b: int, h: int) -> tuple[int, int]:
    shape = _broadcast(bias).shape
    return (b if shape[0] > 1 else 0), (h if shape[1] > 1 else 0)


def _single(array: Any) -> Any:
    return array.float() if library_of(array) == "torch" else array.astype("float32")


def _host(array: Any) -> Any:
    return rig.on_host(_single(array)).astype(np.float64)
