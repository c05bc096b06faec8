"""`warploom.explore`: a loop nest in, the best implementation that is found out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from warploom.errors import CheckError, located, one_of
from warploom.index.ir import whole_number
from warploom.loopnest.build import LoopNest
from warploom.loopnest.ir import Program
from warploom.machine.record import machine_named
from warploom.pipeline.modelled import modelled
from warploom.pipeline.named_nest import check_number, named_nest, own_nest, target_for
from warploom.pipeline.nest import ENGINES, FREE, Explored, Nest
from warploom.pipeline.raced import Wanted, quick_gpu, raced
from warploom.pipeline.strategic import check_alone, nest_for, strategies_of
from warploom.pipeline.timed_nest import far_nest_bench
from warploom.runtime.gpu import gpu_name
from warploom.runtime.quick import Quick
from warploom.runtime.rig import Bench, Built
from warploom.search.budget import Budget, peak_megabytes
from warploom.search.outcome import Impossible
from warploom.search.statistics import Statistics
from warploom.search.storage.store import Store, users_store
from warploom.search.workers.cluster import Cluster

EVALUATIONS = 500  # where nothing is measured and nothing is said
NONE_LEFT = "no implementation fulfils all constraints"


@located
def explored(
    kernel: str | LoopNest | Program,
    size: Mapping[str, int] | None = None,
    *,
    type: str | None = None,  # noqa: A002 - as the option of the command is called
    machine: str = "h200",
    space: str = "default",
    fix: Sequence[str] = (),
    strategy: str | None = None,
    engine: str = "tree",
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    model: bool = False,
    store: Store | bool = True,
    memory: int | None = None,
) -> Explored:
    """Searches all implementations of a loop nest: orders, fusions, tiles, threads, memories.

    `kernel` is a name that `warploom explore` knows, with its `size` and the `type` of its factors,
    or a `LoopNest`. The other arguments are the options of that command. On a machine with a GPU
    implementations are measured, unless `model` says otherwise, and the store of this user keeps
    what was measured. Without a GPU the lower bound of the model is minimised. Strategies that a
    program has come first, unless `strategy` is "none" or names one. Of `memory` kernels use at
    most so many bytes beside their arguments. The best implementation was run on the simulator.

    >>> import numpy as np, warploom
    >>> found = warploom.explore("axpy", {"n": 256}, evaluations=1, model=True, space="paper")
    >>> found.nanoseconds >= found.bound
    True
    >>> x = np.arange(256, dtype=np.float32)
    >>> z = warploom.compile(found)(x, x, alpha=2.0)
    >>> bool((z == 3 * x).all())
    True
    """
    check_engine(engine)
    for name, value, least in (
        ("evaluations", evaluations, 1), ("seed", seed, 0), ("memory", memory, 0),
    ):  # fmt: skip
        if value is None and name != "seed":
            continue
        if (whole_number(value) or 0) < least or whole_number(value) is None:
            raise CheckError(f"{name}={value!r:.40}", advice=f"a whole number from {least} on")
    budget = Budget(seconds)
    with budget.interruptible(), budget.governing():  # the space takes a while to be built
        fixes = (fix,) if isinstance(fix, str) else tuple(fix)
        nest = nest_of(kernel, size, machine, space, fixes, memory, type, strategy)
    if not nest.is_possible:
        return impossible(nest)
    if engine == "exact":
        check_alone(nest, "branch and bound")
    kept = users_store() if store is True else store or None
    first = strategies_of(nest, strategy, space, free=isinstance(kernel, str))
    quick = quick_for(nest, model, engine)
    if quick is not None:
        asked = Wanted(seed, evaluations, free=strategy in (None, FREE))
        with budget.interruptible():
            return raced(nest, first.variants, quick, budget, asked, kept)
    with budget.interruptible():
        some = () if engine == "exact" else first.variants
        is_free = strategy in (None, FREE)
        return modelled(nest, some, engine, evaluations or EVALUATIONS, budget, seed, is_free)


def nest_of(
    kernel: str | LoopNest | Program,
    size: Mapping[str, int] | None = None,
    machine: str = "h200",
    space: str = "default",
    fixes: Sequence[str] = (),
    memory: int | None = None,
    of_type: str | None = None,
    strategy: str | None = None,
) -> Nest:
    """The space of a loop nest, as `explored` has it."""
    program = _program(kernel, dict(size or {}), space, of_type)
    own = machine_named(machine)
    target, free = replace(target_for(own, space), between=memory), isinstance(kernel, str)
    return nest_for(program, own.rates, target, fixes, strategy, free)


def check_engine(engine: str) -> None:
    known = (*ENGINES, "exact")
    if engine not in known:
        raise CheckError(f"there is no engine '{engine!s:.40}'", advice=one_of(str(engine), known))


def impossible(nest: Nest) -> Explored:
    """What is said where decisions of the user leave nothing."""
    nothing = Statistics({}, {}, 0.0, 0.0, peak_megabytes())
    return Explored(Impossible(NONE_LEFT), None, math.inf, math.inf, 0, None, nothing, nest)


def bench_for(nest: Nest, model: bool, engine: str, crew: object = None) -> Bench[Built] | None:
    """The GPU of a cluster, where that measures."""
    if model or engine == "exact" or not isinstance(crew, Cluster) or not crew.measures:
        return None
    return far_nest_bench(nest.program, nest.target.tensor, crew)


def quick_for(nest: Nest, model: bool, engine: str) -> Quick | None:
    """The GPU of this machine; None where only the bound is known. Branch and bound proves
    something of the bound, and of nothing else."""
    if model or engine == "exact" or gpu_name() is None:
        return None
    return quick_gpu(nest.program, nest.target.tensor)


def _program(kernel: Any, sizes: dict[str, Any], space: str, of_type: str | None) -> Program:
    if not isinstance(kernel, str):
        if sizes:
            raise CheckError(
                "a loop nest of your own says its sizes itself", advice="leave size out"
            )
        return own_nest(kernel, "what is explored", space, of_type=of_type)
    given = {name: _number(value) for name, value in sizes.items()}
    for value in given.values():
        check_number(value, 0)
    return named_nest(kernel, given, space, of_type=of_type)


def _number(value: Any) -> Any:
    whole = whole_number(value)
    return value if whole is None or isinstance(value, bool) else whole
