"""A mapping in words: which loops run on blocks and threads, what goes through shared memory."""

from __future__ import annotations

from warploom.array.code.program import Compiled
from warploom.array.code.spread import Spread
from warploom.array.mapping.constraint import FUSED, GLOBAL, GROUP, LANE, SEQUENTIAL, VECTOR, WARP
from warploom.array.plan.loops import Buffer, Loop, Plan, Read, loops_in, sites
from warploom.array.types import shape
from warploom.index.ir import Const
from warploom.index.show import show
from warploom.kernel.ir import Kernel, Load, Store, walk
from warploom.kernel.schedule import Staged, and_words, schedule_text

_AXES = "xyz"
_IN_GROUPS = {LANE: "the lanes of a warp", WARP: "warps"}
_SERIAL = (SEQUENTIAL, FUSED)


def mapping_schedules(made: Compiled) -> list[str]:
    """The schedule of each kernel of a candidate."""
    return [
        _schedule(made.plan, at, spread, kernel)
        for at, (kernel, spread) in enumerate(zip(made.kernels, made.spreads, strict=True))
    ]


def _schedule(plan: Plan, at: int, spread: Spread, kernel: Kernel) -> str:
    stage = plan.stages[at]
    found: dict[str, dict[str, None]] = {}
    for loop in loops_in(stage.body):
        if loop.size is not Const(1):  # a loop of one iteration is none
            found.setdefault(where(loop, spread, kernel), {})[show(loop.size)] = None
    words = [
        place.format(and_words(sizes), "loops" if len(sizes) > 1 else "loop")
        for place, sizes in found.items()
    ]
    staged = [
        Staged(_source(plan, at, each), _shape(each))
        for each in plan.buffers
        if each.role == "temporary" and each.stage == at and each.space == "local"
    ]
    return schedule_text(kernel, words, staged)


def where(loop: Loop, spread: Spread, kernel: Kernel) -> str:
    """Where the iterations of a loop run, with places for their number and for what it is of."""
    if loop.lanes:
        return "vectors of {}"
    if loop.map is None:
        return "reductions of {}"
    run = spread.runs[loop.map.number]
    if run in _IN_GROUPS:
        return f"{{1}} of {{0}} over {_IN_GROUPS[run]}"
    if run == VECTOR:
        return f"{{1}} of {{0}} in {_vector_words(kernel)}"
    if run in _SERIAL:
        return "{1} of {0} in each thread"
    axis = _AXES[int(run[1:])]
    if run in GROUP:
        return f"{{1}} of {{0}} over blockIdx.{axis}"
    every = f"blockIdx.{axis} × " if run in GLOBAL else ""
    return f"{{1}} of {{0}} over {every}threadIdx.{axis}"


def _vector_words(kernel: Kernel) -> str:
    """How many elements the wide accesses of a kernel have; where none is wide, a thread's loop."""
    accesses = [each for each in walk(kernel.body) if isinstance(each, Load | Store)]
    widths = sorted({each.width for each in accesses if each.width > 1})
    return f"vectors of {and_words(map(str, widths))}" if widths else "each thread"


def _source(plan: Plan, at: int, buffer: Buffer) -> str:
    """The array that a buffer has a part of, or its own name if something is computed for it."""
    writes = [s.write for s in sites(plan.stages[at].body) if s.write.memory is buffer.memory]
    read = [each.value.memory.name for each in writes if isinstance(each.value, Read)]
    return and_words(read) if read and len(read) == len(writes) else buffer.memory.name


def _shape(buffer: Buffer) -> tuple[str, ...]:
    sizes = [show(size) for size in shape(buffer.memory.type) if size is not Const(1)]
    return tuple(sizes)
