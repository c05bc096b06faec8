"""An implementation of a loop nest in words: the tiles of its results, what goes through shared
memory, its loops, and what limits its time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from warploom.kernel.ir import Kernel, Registers, Shared, Store, walk
from warploom.kernel.schedule import Staged, and_words, schedule_text, tile_words
from warploom.loopnest import ir
from warploom.loopnest.bound import Reason
from warploom.loopnest.decided import Implementation, Loop, Node
from warploom.machine.times import time_words

# The resources of a bound, as an engineer calls them.
LIMITS = {
    "issue": "instruction issue",
    "alu": "arithmetic (FMA)",
    "access": "load and store units",
    "lines": "L1 lines",
    "l2_read": "L2 reads",
    "l2_store": "L2 writes",
    "shared": "shared memory bandwidth",
    "dram": "DRAM bandwidth",
    "issue of a thread": "the instructions of one thread",
    "issue of a block": "the instructions of one block",
    "accesses of a thread": "the loads and stores of one thread",
    "iterations of a loop": "loop overhead",
    "a fold": "the latency of one chain of sums",
}


OWN = ("LOOP", "UNROLL", "VECTOR")  # loops that a thread runs itself


def nest_schedule(made: Implementation, kernel: Kernel) -> str:
    """The schedule of an implementation, whose kernel this is."""
    words = [*_results(made, kernel), *_steps(made)]
    direct = _direct(made)
    words += [f"{and_words(direct)} straight from global memory"] if direct else []
    return schedule_text(kernel, words, _staged(made, kernel))


def limit_words(reasons: Sequence[Reason]) -> str:
    """What limits the time, given all terms of a bound."""
    return resource_words(max(reasons, key=lambda each: each.nanoseconds))


def resource_words(reason: Reason) -> str:
    return LIMITS.get(reason.resource, reason.resource)


def bound_words(
    program: ir.Program, nanoseconds: float, fixed: bool = False, others: bool = False
) -> str:
    """A lower bound, and of which implementations it holds: tiles that nobody gave, nobody tried.
    `fixed`: decisions of the user leave out others, too. `others`: strategies have more tiles."""
    bare = [str(axis) for axis in program.axes if not axis.tiles]
    tiles = f"with the tile sizes given (none for {and_words(bare)})" if bare else (
        "with the tile sizes given"
    )  # fmt: skip
    also = " and the decisions fixed" if fixed else ""
    more = "; strategies have tiles of their own" if bare and others else ""
    return f"{tiles}{also}, no implementation takes less than {time_words(nanoseconds)}{more}"


# -- results ---------------------------------------------------------------------------------------


def _results(made: Implementation, kernel: Kernel) -> Iterator[str]:
    """For each store: what of its array a block makes, and what one of its threads."""
    for inst in made.program.instructions:
        if isinstance(inst.action, ir.Store):
            axes = _axes(inst.action.access)
            lengths = [made.length(axis) for axis in axes]
            every = [_extent(made, inst, axis, made.kind.values()) for axis in axes]
            own = _within(lengths, [_extent(made, inst, axis, OWN) for axis in axes])
            threads = _extent(made, inst, None, ("THREAD",))
            whole = _within(lengths, [_extent(made, inst, a, (*OWN, "THREAD")) for a in axes])
            held = _held(inst.action.value, kernel)
            less = _is_partial(lengths, every, whole), _is_partial(lengths, every, own)
            yield tile_words(inst.action.access.array.name, whole, threads, own, held, less)


def _within(lengths: Sequence[int], tiles: Sequence[int]) -> list[int]:
    """Nothing computes more than there is, though a tile is longer."""
    return [min(length, tile) for length, tile in zip(lengths, tiles, strict=True)]


def _is_partial(lengths: Sequence[int], every: Sequence[int], tiles: Sequence[int]) -> bool:
    """Whether the tiles go beyond the end of an axis, of which one is not all."""
    sides = zip(lengths, every, tiles, strict=True)
    return any(all_of_them > length > tile for length, all_of_them, tile in sides)


def _axes(access: ir.Access) -> list[ir.Axis]:
    """The axes of an access, in the order of the array's dimensions."""
    return list(dict.fromkeys(axis for each in access.subscripts for axis in each.axes))


def _extent(
    made: Implementation, inst: ir.Instruction, axis: ir.Axis | None, kinds: Iterable[str]
) -> int:
    """Iterations of an instruction over dimensions of these kinds, along an axis or all."""
    sizes = [made.size_of(d) for d in inst.dims if made.kind[d] in kinds and axis in (None, d.axis)]
    return math.prod(sizes)


def _held(value: ir.Operand, kernel: Kernel) -> int:
    """How many results a thread has in registers at once."""
    if not isinstance(value, ir.Result):
        return 1
    name = _plain(value.instruction.name)
    found = [s for s in walk(kernel.body) if isinstance(s, Registers) and s.name == name]
    return (found[0].size or 1) if found else 1


# -- memory ----------------------------------------------------------------------------------------


def _staged(made: Implementation, kernel: Kernel) -> list[Staged]:
    return [
        Staged(
            source_of(each),
            _shape(made, each),
            _stages(each, kernel),
            made.swizzle_of(each) is not None,
            made.padding[each],
            _is_asynchronous(each, kernel),
            tuple(made.size_of(put) for put, _ in reversed(made.array_dims(each))),
        )
        for each in made.lowered
    ]


def source_of(temporary: ir.Temporary) -> str:
    """The array that it has a part of, or whose results it holds."""
    inst = _sender(temporary)
    return inst.action.access.array.name if isinstance(inst.action, ir.Load) else inst.name


def _sender(temporary: ir.Temporary) -> ir.Instruction:
    assert isinstance(temporary.put.action, ir.Put)
    return temporary.put.action.value.instruction


def _shape(made: Implementation, temporary: ir.Temporary) -> tuple[int, ...]:
    """The part that is in shared memory at once, as the array's own dimensions have it."""
    there = [put for put, _ in made.array_dims(temporary)]
    action = _sender(temporary).action
    listed = _axes(action.access) if isinstance(action, ir.Load) else []
    axes = dict.fromkeys([*listed, *(dim.axis for dim in there)])
    sizes = [math.prod(made.size_of(d) for d in there if d.axis is axis) for axis in axes]
    return tuple(sizes)


def _stages(temporary: ir.Temporary, kernel: Kernel) -> int:
    """How many arrays the kernel has for it."""
    names = [each.name for each in kernel.body if isinstance(each, Shared)]
    return sum(_is_of(temporary, name) for name in names)


def _is_asynchronous(temporary: ir.Temporary, kernel: Kernel) -> bool:
    """Whether asynchronous copies fill it, as they do where a loop has them ahead of their use."""
    ahead = (each.array for each in walk(kernel.body) if isinstance(each, Store) and each.ahead)
    return any(_is_of(temporary, name) for name in ahead)


def _is_of(temporary: ir.Temporary, name: str) -> bool:
    """Whether a shared array of the kernel is the temporary's, or a further stage of it."""
    return re.fullmatch(rf"{re.escape(_plain(temporary.name))}(_other\d*)?", name) is not None


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


def _direct(made: Implementation) -> list[str]:
    """Arrays that are loaded to where they are used."""
    through = {_sender(each) for each in made.lowered}
    others = (each.action for each in made.program.instructions if each not in through)
    return list(dict.fromkeys(a.access.array.name for a in others if isinstance(a, ir.Load)))


# -- loops -----------------------------------------------------------------------------------------


def _steps(made: Implementation) -> list[str]:
    """Loops over axes that no result has: sums, by how many iterations of what length."""
    stored = {d.axis for i in made.program.instructions if isinstance(i.action, ir.Store)
              for d in i.dims}  # fmt: skip
    found: dict[ir.Axis, str] = {}
    for loop in _loops(made.nests):
        first = loop.dims[0]
        if loop.kind == "LOOP" and loop.size > 1 and first.axis not in stored:
            length = made.stride_of(first)
            found.setdefault(first.axis, f"{first.axis.name} in {loop.size} steps of {length}")
    return list(found.values())


def _loops(nodes: Iterable[Node]) -> Iterator[Loop]:
    for each in nodes:
        if isinstance(each, Loop):
            yield each
            yield from _loops(each.body)
