"""Cuts of the default space: what it has that another implementation is never worse than.

Each cut is data: a name, what it says, its sentence, and a *witness*: what to decide otherwise, so
that a removed implementation becomes one that computes the same and is no worse in any count of the
time model. That one may be removed by another cut, whose witness is better again; the last one is
kept. `bench/loopnest/cuts.py` tries that on all implementations of small programs. Published spaces
have no cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING, TypeAlias

from warploom.kernel.ir import walk_value
from warploom.loopnest import ir
from warploom.loopnest.choices import Choices
from warploom.loopnest.target import Target
from warploom.search.space.ir import Sentence, Value, Variable, some

if TYPE_CHECKING:
    from warploom.loopnest.decided import Implementation

SECTORS = 8  # elements of a sector that several blocks may load again
LANES = 32

# What is decided otherwise: the name of a choice and its objects.
Changes: TypeAlias = Mapping[tuple[str, tuple[object, ...]], Value]
# From the outside: where each kind of loop stands in a nest of one instruction.
RANKS = {"BLOCK": 0, "LOOP": 1, "THREAD": 2, "UNROLL": 3, "OUTER_VECTOR": 4, "VECTOR": 5}


@dataclass(frozen=True, slots=True)
class Dominated:
    """`require` adds the sentence to a space; `witness` says what else to decide of a removed
    implementation, and nothing of what this cut keeps."""

    name: str
    says: str
    require: Callable[[Choices], None]
    witness: Callable[[Implementation], Changes | None]


def declare_cuts(c: Choices) -> None:
    if c.target.cuts:
        c.own = c.space.objects("instructions of the program", c.program.instructions)
        folded = dict.fromkeys(dim for i in c.insts for dim in i.over)
        c.all_folded = c.space.objects("folded dimensions", folded)
    for name in c.target.cuts:
        CUTS[name].require(c)


def _is_folded_by_threads(c: Choices) -> Sentence:
    """How threads put their parts together, and with how many barriers, depends on what is around
    it and on where shared arrays lie: nothing is said of the rest, then."""
    f = c.all_folded.one("f")
    return some(f, c.is_kind(f, "THREAD"))


# -- rows of temporary arrays ----------------------------------------------------------------------


def _plain_rows(c: Choices) -> None:
    """Whoever asks at once is in one row, then: where rows begin makes no difference to banks."""
    rows = [(array, own) for array in c.program.temporaries for own, _ in array.pairs]
    beside = [(own, x) for array in c.program.temporaries for own, _ in array.pairs
              for pair in array.pairs if own not in pair for x in pair]  # fmt: skip
    if not rows:
        return
    t, s = c.space.relation("may have its row along", rows, arity=2).row("t", "s")
    across = c.space.relation("is stored or loaded across", beside, arity=2)
    x = c.dimensions.one("x")
    threads = some(x, across(s, x) & c.is_kind(x, *c.target.threaded))
    other = c.layout(s).is_not("0") | threads | _is_folded_by_threads(c)
    c.space.require(other | c.padding(t).eq(0), "rows are padded for threads")
    c.space.require(other | c.swizzle(t).is_("PLAIN"), "rows are swizzled for threads")


def _unpadded(made: Implementation) -> Changes | None:
    changes: dict[tuple[str, tuple[object, ...]], Value] = {}
    for t in made.lowered if not made.shared_folds else ():
        across = made.array_dims(t)[1:]
        if not any(made.kind[d] in made.target.threaded for pair in across for d in pair):
            if made.padding[t]:
                changes["padding", (t,)] = 0
            if made.swizzle[t] != "PLAIN":
                changes["swizzle", (t,)] = "PLAIN"
    return changes or None


# -- processors that have nothing to do ------------------------------------------------------------


def _idle_processors(c: Choices) -> None:
    """Each iteration of a loop around everything may be a block, where there are so few blocks that
    no processor gets more to do than it had."""
    dims = [d for d in c.dims if d.tile is None and _is_shared_out(c.program, d)]
    if not dims:
        return
    d = c.space.objects("loops that may be blocks", dims).one("d")
    many = c.space.objects("loops that are many blocks", _many(c)).one("many")
    inner = ~c.is_kind(d, "LOOP") | _is_beside_some(c, d)
    others = some(many, c.is_kind(many, "BLOCK")) | _is_folded_by_threads(c)
    c.space.require(others | inner, "processors have work")


def _many(c: Choices) -> list[ir.Dim]:
    """The loops of a store (all blocks are among these) that make many blocks by themselves."""
    store = next(i for i in c.insts if isinstance(i.action, ir.Store))
    most = _few_blocks(c.target)
    tiles = sorted((max(d.tile.sizes), at) for at, d in enumerate(store.dims) if d.tile is not None)
    found, blocks = [d for d in store.dims if d.tile is None], 1
    for number, (size, at) in enumerate(tiles):
        blocks *= size
        if blocks > most or number >= c.target.block_dims - 1:  # or no side of the grid is left
            found.append(store.dims[at])
    return found


def _few_blocks(target: Target) -> int:
    return max(1, target.machine.multiprocessors // SECTORS)


def _is_beside_some(c: Choices, d: Variable) -> Sentence:
    """Some instruction is not in the loop. (Temporary arrays are where these are.)"""
    i = c.own.one("i")
    return some(i, c.order(d, i).is_("BEFORE", "AFTER"))


def _is_shared_out(program: ir.Program, dim: ir.Dim) -> bool:
    """Whether nothing is folded along the axis, and iterations along it load no more of what all of
    them load than of their own."""
    axis = dim.axis
    if any(dim in each.over for each in program.instructions):
        return False
    own, common = 0, 0
    for access in accesses(program):
        if not access.is_linear:
            return False
        others = 1
        for each in access.axes:
            others *= 1 if each is axis else each.size
        if axis in access.axes:
            own += others
        else:
            common += others
    return common <= own


def accesses(program: ir.Program) -> Iterator[ir.Access]:
    """Every access to memory, also those in values."""
    for inst in program.instructions:
        if isinstance(inst.action, ir.Load | ir.Store):
            yield inst.action.access
        if inst.value is not None:
            yield from (e.access for e in walk_value(inst.value) if isinstance(e, ir.Element))


def _is_around_all(made: Implementation, d: ir.Dim) -> bool:
    return all(made.order(d, i) == "OUTER" for i in made.instructions)


def _more_blocks(made: Implementation) -> Changes | None:
    blocks = [own[0] for own in dict.fromkeys(made.merged.values()) if made.kind[own[0]] == "BLOCK"]
    few = math.prod(made.size_of(own) for own in blocks) <= _few_blocks(made.target)
    if any(own.tile is None for own in blocks) or made.shared_folds or not few:
        return None
    for d in made.dims:
        loop = d.tile is None and made.kind[d] == "LOOP" and _is_shared_out(made.program, d)
        if loop and _is_around_all(made, d):
            changes: dict[tuple[str, tuple[object, ...]], Value] = {("dim_kind", (d,)): "BLOCK"}
            return changes | {("order", (d, e)): "OUTER" for e in made.dims if e is not d}
    return None


# -- threads that have nothing to do ---------------------------------------------------------------


def _idle_lanes(c: Choices) -> None:
    """A block of one thread, whose values stay in registers, in a loop: its iterations may be lanes
    of the warp that is there anyway."""
    dims = _to_be_lanes(c)
    if not dims:
        return
    d, tile = c.space.relation("may be lanes", [(d, d.tile) for d in dims], arity=2).row("d", "t")
    inner = ~c.is_kind(d, "LOOP", "UNROLL") | (c.size(tile) >= LANES + 1) | _is_beside_some(c, d)
    c.space.require(_through_memory(c, inner) | (c.num_threads() >= 2), "a block has threads")


def _through_memory(c: Choices, otherwise: Sentence) -> Sentence:
    if not c.program.temporaries:
        return otherwise
    t = c.temporaries.one("t")
    return some(t, c.lowered(t).is_("TRUE")) | otherwise


def _to_be_lanes(c: Choices) -> list[ir.Dim]:
    folded = {dim for i in c.insts for dim in i.over}
    return [d for d in c.program.dims
            if d.tile is not None and d not in folded and min(d.tile.sizes) <= LANES]  # fmt: skip


def _threads(made: Implementation) -> int:
    return math.prod(made.levels)


def _lanes(made: Implementation) -> Changes | None:
    if made.lowered or _threads(made) > 1:
        return None
    for d in made.dims:
        loop = made.kind[d] in ("LOOP", "UNROLL") and d.tile is not None
        if loop and made.size_of(d) <= LANES and _is_around_all(made, d):
            own = made.merged[d]
            changes: dict[tuple[str, tuple[object, ...]], Value]
            changes = {("dim_kind", (e,)): "THREAD" for e in own}
            changes |= {("thread_mapping", pair): "MAPPED" for pair in combinations(own, 2)}
            for e in made.dims:
                if made.kind[e] == "UNROLL" and e not in own and made.order(e, d) == "OUTER":
                    changes |= {("order", (each, e)): "OUTER" for each in own}
            return changes
    return None


# -- nests of one instruction ----------------------------------------------------------------------


def _one_order(c: Choices) -> None:
    """Unrolled loops of one instruction, which nothing else is in, in the order of its declaration:
    all of them are written out, and a compiler orders arithmetic by itself. What accesses memory it
    leaves in the order that it is given, and caches tell orders apart."""
    rows = [(i, a, b) for i in c.insts if _is_arithmetic(i)
            for a, b in combinations([d for d in i.dims if d.tile is not None], 2)]  # fmt: skip
    if not rows:
        return
    i, a, b = c.space.relation("is unrolled along", rows, arity=3).row("i", "a", "b")
    j = c.instructions.one("j")
    both = ~c.is_kind(a, "UNROLL") | ~c.is_kind(b, "UNROLL")
    other = c.space.relation("is another than", permutations(c.insts, 2), arity=2)
    more = some(j, other(i, j) & c.order(b, j).is_("OUTER"))
    c.space.require(both | more | c.order(a, b).is_not("INNER"), "unrolled loops in one order")


def _is_arithmetic(i: ir.Instruction) -> bool:
    """It folds nothing, and accesses no array."""
    if i.over or not isinstance(i.action, ir.Compute):
        return False
    return i.value is None or not any(isinstance(e, ir.Element) for e in walk_value(i.value))


def _reordered(made: Implementation) -> Changes | None:
    for i in made.instructions:
        if not _is_arithmetic(i):
            continue
        own = [d for d in i.dims if d.tile is not None and made.kind[d] == "UNROLL"]
        alone = [d for d in own if not any(made.order(d, j) == "OUTER"
                                           for j in made.instructions if j is not i)]  # fmt: skip
        inner = [(a, b) for a, b in combinations(own, 2)
                 if b in alone and made.order(a, b) == "INNER"]  # fmt: skip
        if inner:
            # All that is in the outermost of them is of this instruction, so it is one nest.
            nest = [d for d in own if d in alone]
            return {("order", pair): "OUTER" for pair in combinations(nest, 2)}
    return None


def _loops_outside(c: Choices) -> None:
    """In a nest of one instruction a loop inside a thread is the same as one outside."""
    if len(c.insts) > 1:
        return
    x, e = c.dimensions.each("x", "e")
    inside = ~c.is_kind(x, "THREAD") | ~c.is_kind(e, "LOOP")
    c.space.require(inside | c.order(x, e).is_not("OUTER"), "loops are outside threads")


def _nested(made: Implementation, kinds: Mapping[ir.Dim, str]) -> Changes:
    """The one nest, its loops in the order of their kinds, else as they were."""
    dims = sorted(made.dims, key=lambda d: sum(made.order(e, d) == "OUTER" for e in made.dims
                                               if e is not d))  # fmt: skip
    dims.sort(key=lambda d: RANKS[kinds[d]])
    return {("order", pair): "OUTER" for pair in combinations(dims, 2)}


def _moved_outside(made: Implementation) -> Changes | None:
    if len(made.program.instructions) > 1 or made.lowered:
        return None
    loops = [d for d in made.dims if made.kind[d] == "LOOP"]
    threads = [d for d in made.dims if made.kind[d] == "THREAD"]
    if any(made.order(x, e) == "OUTER" for x in threads for e in loops):
        return _nested(made, made.kind)
    return None


def _full_warps(c: Choices) -> None:
    """In a nest of one instruction, iterations of a loop that are lanes with the threads there are:
    the warp is there anyway."""
    if len(c.insts) > 1:
        return
    rows = [(d, d.tile) for d in _to_be_lanes(c)]
    if not rows:
        return
    d, tile = c.space.relation("may be lanes of", rows, arity=2).row("d", "tile")
    full = c.num_levels() >= c.target.thread_levels
    for size in sorted({n for each, _ in rows if each.tile for n in each.tile.sizes if n <= LANES}):
        enough = c.num_threads() >= LANES // size + 1
        other = c.size(tile).is_not(size) | ~c.is_kind(d, "LOOP", "UNROLL")
        c.space.require(full | enough | other, f"warps have room for {size}")


def _warps_filled(made: Implementation) -> Changes | None:
    if len(made.program.instructions) > 1 or made.lowered:
        return None
    if len(made.levels) >= made.target.thread_levels:
        return None
    for d in made.dims:
        loop = made.kind[d] in ("LOOP", "UNROLL") and d.tile is not None
        if loop and _threads(made) * made.size_of(d) <= LANES:
            kinds = {**made.kind, d: "THREAD"}
            changes = dict(_nested(made, kinds))
            inside = [e for e in made.dims if made.kind[e] == "THREAD"]
            changes |= {("order", (e, d)): "OUTER" for e in inside}
            changes |= {("thread_mapping", (e, d)): "MAPPED_OUT" for e in inside}
            changes["dim_kind", (d,)] = "THREAD"
            return changes
    return None


def _finer_inside(c: Choices) -> None:
    """In a nest of one instruction with two levels of threads along one axis, the finer tile is on
    the inner one: a warp then accesses neighbours."""
    if len(c.insts) > 1:
        return
    rows = _finer(c.insts[0].dims)
    if not rows:
        return
    x, y = c.space.relation("is a coarser tile than", rows, arity=2).row("x", "y")
    inside = c.threads(x, y).is_not("MAPPED_IN")
    c.space.require((c.num_levels() >= 3) | inside, "neighbours are on the inner level")


def _finer(dims: Sequence[ir.Dim]) -> list[tuple[ir.Dim, ir.Dim]]:
    return [(x, y) for x in dims for y in dims if x.tile is not None and y.tile is not None
            and x.axis is y.axis and x.tile.level < y.tile.level]  # fmt: skip


def _levels_exchanged(made: Implementation) -> Changes | None:
    if len(made.program.instructions) > 1 or len(made.levels) != 2:
        return None
    for x, y in _finer(made.dims):
        if made.kind[x] == made.kind[y] == "THREAD" and made.level[x] < made.level[y]:
            return {("order", (x, y)): "OUTER", ("thread_mapping", (x, y)): "MAPPED_OUT"}
    return None


CUTS: Mapping[str, Dominated] = {
    cut.name: cut
    for cut in (
        Dominated(
            "plain-rows",
            "rows of a temporary array are padded or swizzled only where threads go across them",
            _plain_rows,
            _unpadded,
        ),
        Dominated(
            "idle-processors",
            "a loop around everything is blocks, where there are fewer of these than processors",
            _idle_processors,
            _more_blocks,
        ),
        Dominated(
            "idle-lanes",
            "a block of one thread without temporary arrays has no loop around everything",
            _idle_lanes,
            _lanes,
        ),
        Dominated(
            "one-order",
            "unrolled loops around arithmetic alone are in the order of their declaration",
            _one_order,
            _reordered,
        ),
        Dominated(
            "loops-outside",
            "loops around one instruction are outside its threads",
            _loops_outside,
            _moved_outside,
        ),
        Dominated(
            "full-warps",
            "a loop around one instruction is no loop where a warp has room for its iterations",
            _full_warps,
            _warps_filled,
        ),
        Dominated(
            "neighbours-inside",
            "of two levels of threads along one axis, that of neighbours is the inner one",
            _finer_inside,
            _levels_exchanged,
        ),
    )
}
