"""Attention's kernels drawn at random, run on the emulator: races, results, all schedules.

    python -m bench.kernel.attention_drawn                    100 of each program, results and races
    python -m bench.kernel.attention_drawn --prove            winners, proved for every schedule

Programs are stated nests, with sizes as they are used; kernels are run along shorter axes: two
tiles of queries by one block, the second with few rows, and so many blocks of keys that a stage of
every ring is filled again. Results are compared with what the nest means. A row is a program; a run
that was stopped goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from bench.harness import arguments, earlier, environment, save

from warploom.index.ir import Const
from warploom.kernel.dtype import f16
from warploom.kernel.ir import Kernel
from warploom.loopnest.attention.program import attention_nest
from warploom.loopnest.attention.space import packed_possible, possible
from warploom.loopnest.attention.tiling import AttentionTiling as Cut
from warploom.loopnest.ir import Axis, Program
from warploom.loopnest.target import Target
from warploom.loopnest.trial import tried_kernels
from warploom.machine.record import H200
from warploom.pipeline.attention_nest import AttentionNest, PackedNest
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.strategic import strategies_of
from warploom.runtime.emulated import EmulatedFunction

RECORD = "kernel_attention_drawn.json"
LONG = {"batch": 1, "heads": 8, "queries": 1928, "keys": 1928}
PROGRAMS: Mapping[str, Mapping[str, Any]] = {
    "full, 64": {**LONG, "head": 64},
    "causal, 128": {**LONG, "head": 128, "causal": True},
    "window, 64": {**LONG, "head": 64, "causal": True, "window": 100},
    "soft cap, causal, 64": {**LONG, "head": 64, "causal": True, "cap": 20.0},
    "grouped, f16, 96": {**LONG, "head": 96, "groups": 2, "dtype": f16},
    "bias, logarithms, 64": {**LONG, "head": 64, "bias": (False, True, True), "sums": True},
    "few queries, 64": {
        "batch": 1, "heads": 4, "queries": 3, "keys": 4101, "head": 64, "groups": 4, "causal": True,
        "sums": True,
    },
}  # fmt: skip
# What is fastest on an H200, and settings that were not measured yet.
WINNERS: Mapping[str, Sequence[Cut]] = {
    "full, 64": (Cut(3, 128, 2, 1, True, 2), Cut(2, 128, 2, 1, True, 2, True, True)),
    "causal, 128": (Cut(3, 96, 2, 8, False), Cut(2, 128, 2, 8, False, 1, True, True)),
    "window, 64": (Cut(3, 128, 2, 8, False),),
    "soft cap, causal, 64": (Cut(3, 128, 2, 8, False), Cut(2, 128, 2, 8, False, 1, True)),
    "few queries, 64": (
        Cut(1, 64, 3, 1, True, 1, False, False, True, 4),
        Cut(1, 64, 2, 1, False, 1, True, False, True, 2),
    ),
}


def nest_for(program: Program) -> AttentionNest:
    """The space of the strategy that a program has."""
    nest = Nest(program, H200.rates, Target(machine=H200))
    (variant, *_) = [
        each
        for each in strategies_of(nest, None, "default", True).variants
        if each.strategy in ("split-attention", "fused-attention")
    ][::-1]
    found = nest_by(recipe_of(variant, nest))
    assert isinstance(found, AttentionNest)
    return found


def drawn(nest: AttentionNest, count: int, seed: int) -> Iterator[Cut]:
    """So many tilings of a space, or all."""
    some = packed_possible if isinstance(nest, PackedNest) else possible
    every = list(some(nest.stated.attention, H200))
    picked = np.random.default_rng(seed).permutation(len(every))[:count]
    return (every[at] for at in picked)


def tried(nest: AttentionNest, tiling: Cut, prove: bool = False) -> dict[str, Any]:
    """A tiling on the emulator: what is wrong, what was proved."""
    sizes, reach = _short(nest, tiling), list[str]()

    def launched(kernel: Kernel, given: list[Any]) -> Sequence[object]:
        function = EmulatedFunction(kernel)
        x, y, z = (side.value for side in kernel.grid if isinstance(side, Const))
        report = function.launch((x, y, z), function.packed(given), races=True, prove=prove)
        if report.proof is not None:
            reach.append(report.proof.reach.value)
        return report.races

    part = 2 * nest.stated.attention.dtype.rounding[0]
    kernels = nest.kernels_of(tiling, sizes, blocks=1)
    found = tried_kernels(nest.program, kernels, sizes, part=part, launch=launched)
    return {"wrong": found.wrong, **({"reach": reach} if prove else {})}


def _short(nest: AttentionNest, tiling: Cut) -> Mapping[Axis, int]:
    """Two tiles of queries, of one head, or of one that others share keys with."""
    stated = nest.stated
    own = stated.heads[: len(stated.heads) - stated.shared]
    most = 2 if tiling.packed else 1
    return {**nest.shortened(tiling), **{each: min(each.size, most) for each in own}}


def main() -> None:
    parser = arguments(__doc__, RECORD, only="programs with this in their name", resumes=True)
    parser.add_argument("--count", type=int, default=100, help="tilings of each program")
    parser.add_argument("--prove", action="store_true", help="winners, for every schedule")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after these")
    given = parser.parse_args()
    begun = time.monotonic()
    record = earlier(given.out, again=given.again)
    record["environment"] = environment()
    part = record.setdefault("proved" if given.prove else "drawn", {})
    names = [name for name in PROGRAMS if given.only in name]
    nests = {name: nest_for(attention_nest(**PROGRAMS[name]).done()) for name in names}
    tilings = {
        name: list(WINNERS.get(name, ()) if given.prove else drawn(nest, given.count, 1))
        for name, nest in nests.items()
    }
    for at, name in product(range(given.count), names):  # programs by turns
        rows = part.setdefault(name, {})
        own = tilings[name][at : at + 1]
        if not own or own[0].name in rows or time.monotonic() - begun > given.seconds:
            continue
        since = time.monotonic()
        rows[own[0].name] = tried(nests[name], own[0], given.prove)
        taken = time.monotonic() - since
        print(f"{name}: {own[0].name}: {rows[own[0].name]} in {taken:.1f} s", flush=True)
        save(given.out, record)
    for name in names:
        wrong = sum(bool(each["wrong"]) for each in part[name].values())
        print(f"{name}: {len(part[name])} tilings, {wrong} wrong", flush=True)


if __name__ == "__main__":
    main()
