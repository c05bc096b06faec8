"""What the choices of an implementation have to fulfil, each sentence for all objects.

In come declared choices; their space gets the sentences. They say that the control flow is a tree,
that values reach who uses them, and that the machine has room. Numbers in brackets are those of the
list that was drawn from the published system; docs/loopnests.md says where we differ from it.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations, permutations, product

from warploom.loopnest import ir
from warploom.loopnest.choices import Choices, local_pairs
from warploom.loopnest.communicate import copies
from warploom.loopnest.cuts import declare_cuts
from warploom.loopnest.neutral import folded_by
from warploom.loopnest.target import WIDTHS
from warploom.loopnest.tile import tensor_tiles
from warploom.loopnest.tiling import tilings
from warploom.search.space.build import amount
from warploom.search.space.ir import Sentence, Variable, iff, implies, some

REGISTER_BYTES = 4
AROUND = ("INNER", "OUTER", "MERGED")


def declare_constraints(c: Choices) -> None:
    control_flow(c)
    kinds(c)
    tiles(c)
    blocks(c)
    vectors(c)
    merging(c)
    thread_nests(c)
    representatives(c)
    folds(c)
    scans(c)
    communication(c)
    if c.program.temporaries:
        arrays(c)
    if c.target.cooperative_copies:
        cooperative_copies(c)
    if c.target.tensor:
        tensor_tiles(c)
    limits(c)
    shared_memory(c)
    registers(c)
    declare_cuts(c)


# -- control flow ----------------------------------------------------------------------------------


def control_flow(c: Choices) -> None:
    """[12-18] `order` composes by its table. Instructions hold nothing; they are inside their
    dimensions; nothing is stored twice."""
    space, order = c.space, c.order
    i, s = c.instructions.one("i"), c.statements.one("s")
    space.require(order(i, s).is_("INNER", "BEFORE", "AFTER"), "instructions hold nothing")
    own, inst = c.declared.row("own", "inst")
    space.require(order(own, inst).is_("OUTER"), "declared nesting")
    together = dict.fromkeys(pair for i in c.insts for pair in permutations(i.dims, 2))
    a, b = space.relation("are around one instruction", together, arity=2).row("a", "b")
    space.require(order(a, b).is_("INNER", "OUTER"), "dimensions of one instruction are nested")
    stores = space.objects("stores", [i for i in c.insts if isinstance(i.action, ir.Store)])
    d, e, store = c.dimensions.one("d"), c.dimensions.one("e"), stores.one("store")
    merged = some(e, c.declared(e, store) & order(d, e).is_("MERGED"))
    space.require(
        c.declared(d, store) | order(d, store).is_not("OUTER") | merged, "nothing is stored twice"
    )


def kinds(c: Choices) -> None:
    """[1-5, 8, 9] What a dimension may be by itself, and what may be in it."""
    space, order, is_kind, vectors = c.space, c.order, c.is_kind, c.target.vectors
    d, e = c.dimensions.each("d", "e")
    folded = {dim for i in c.insts for dim in i.over}
    parallel = space.objects("parallel dimensions", [dim for dim in c.dims if dim not in folded])
    space.require(c.static(d) | is_kind(d, "LOOP", "BLOCK"), "only tiles have known sizes")
    tensor = tuple(kind for kind in c.target.kinds if kind == "TENSOR")
    by_threads = ("THREAD",) if c.target.folds_by_threads else ()
    space.require(
        parallel(d) | is_kind(d, "LOOP", "UNROLL", *tensor, *by_threads), "folds are sequential"
    )
    if by_threads:
        in_order = space.objects("dimensions folded in order", _in_order(c))
        space.require(~in_order(d) | ~is_kind(d, *by_threads), "folds by one thread")
    nested = order(d, e).is_("OUTER")
    space.require(
        implies(is_kind(d, "UNROLL") & nested, is_kind(e, "UNROLL", *vectors, *tensor)),
        "only the innermost are unrolled",
    )
    for kind in vectors:
        inside = ("VECTOR",) if kind == "VECTOR" else vectors
        space.require(implies(is_kind(d, kind) & nested, is_kind(e, *inside)), f"inside {kind}")


def _in_order(c: Choices) -> list[ir.Dim]:
    """Dimensions along which something is folded whose parts cannot be put together later."""
    return list(dict.fromkeys(d for i in c.insts if folded_by(i) is None for d in i.over))


def blocks(c: Choices) -> None:
    """[6, 7, 10, 11] Blocks are around everything; only the outermost side of a grid is long."""
    space, order, is_kind = c.space, c.order, c.is_kind
    d, e = c.dimensions.each("d", "e")
    block = is_kind(d, "BLOCK")
    space.require(implies(block, is_kind(e, "BLOCK") | order(e, d).is_("INNER")), "blocks outside")
    s = c.statements.one("s")
    space.require(implies(block, order(d, s).is_(*AROUND)), "blocks span all")
    longest, short, _ = c.target.machine.grid_sides
    inner, outer = c.dimensions.each("inner", "outer")
    beside = is_kind(outer, "BLOCK") & order(inner, outer).is_("INNER")
    _sides(c, "the outermost side", longest, inner, is_kind(inner, "BLOCK"))
    _sides(c, "the other sides", short, inner, is_kind(inner, "BLOCK") & beside)


def _sides(c: Choices, name: str, most: int, dim: Variable, used: Sentence) -> None:
    """Where a dimension that counts tiles is such a side of the grid, there are not too many."""
    space = c.space
    long = [dim for dim in c.dims if dim.tile is None and dim.axis.size > most]
    if not long:
        return
    whole = space.objects(f"too long for {name}", [d for d in long if not d.axis.tiles])
    space.require(implies(used, ~whole(dim)), f"{name} of the grid, untiled")
    axis = space.relation(f"long for {name}", [(d, d.axis) for d in long if d.axis.tiles], arity=2)
    need = space.number(f"least tiling for {name}", {d.axis: -(-d.axis.size // most) for d in long})
    its = c.axis_tiles.row("t", "axis")[1]
    few = c.tiling_factor(its) >= need(its)
    space.require(implies(used & axis(dim, its), few), f"{name} of the grid")


def vectors(c: Choices) -> None:
    """[32, 33] A vector is one access of neighbours: nothing else is in it, and it is aligned."""
    space, order, is_kind = c.space, c.order, c.is_kind
    names = c.target.vectors
    widths: dict[tuple[int, ...], list[tuple[ir.Dim, object]]] = {}
    along = []
    for inst in c.insts:
        for dim in inst.dims:
            alone = all(dim not in other.dims for other in c.insts if other is not inst)
            sizes = c.target.vectorises(inst, dim) if alone and dim.tile is not None else ()
            if sizes:
                widths.setdefault(sizes, []).append((dim, dim.tile))
                along.append((inst, dim))
    able = space.relation("is vectorised along", along, arity=2)
    several = [
        i for i, _ in along if not isinstance(i.action, ir.Put | ir.Get)
    ]  # those have one row
    c.several_vectors = len(set(several)) < len(several)
    d, i = c.dimensions.one("d"), c.instructions.one("i")
    space.require(
        implies(is_kind(d, *names) & order(d, i).is_("OUTER"), able(i, d)),
        "vectors hold one access",
    )
    possible = space.objects("vector dimensions", dict.fromkeys(dim for _, dim in along))
    space.require(possible(d) | ~is_kind(d, *names), "vectors are of accesses")
    for sizes, rows in widths.items():
        v, tile = space.relation(f"as wide as {sizes}", rows).row("v", "tile")
        known = [size for size in c.size.values if size in sizes]
        space.require(implies(is_kind(v, *names), c.size(tile).is_(*known)), f"widths {sizes}")


def merging(c: Choices) -> None:
    """[19-23] Loops that are one have one kind and one size; what counts tiles of different axes
    stays apart."""
    space, order = c.space, c.order
    d, e = c.dimensions.each("d", "e")
    merged = order(d, e).is_("MERGED")
    space.require(implies(merged, c.kind(d).eq(c.kind(e))), "merged kinds")
    space.require(implies(merged, c.static(d)), "only tiles merge")
    (s, a), (t, b) = c.tile_of.row("s", "a"), c.tile_of.row("t", "b")
    space.require(implies(order(s, t).is_("MERGED"), c.size(a).eq(c.size(b))), "merged sizes")


def thread_nests(c: Choices) -> None:
    """[25-27, 35-41, 43] Thread dimensions are mapped to levels of the hardware. Nests of them are
    contiguous: nothing stands between two of them."""
    space, order, threads = c.space, c.order, c.threads
    s, t = c.static.each("s", "t")
    is_thread = {v: c.is_kind(v, "THREAD") for v in (s, t)}
    both = threads(s, t).is_not("NOT_THREADS")
    space.require(implies(is_thread[s] & is_thread[t], both), "threads have levels")
    space.require(implies(both, is_thread[s]), "levels are of threads")
    for level, relation in (("MAPPED", "MERGED"), ("MAPPED_OUT", "OUTER")):
        apart = order(s, t).is_(relation, "BEFORE", "AFTER")
        space.require(implies(threads(s, t).is_(level), apart), f"{level} order")
    (x, a), (y, b) = c.tile_of.row("x", "a"), c.tile_of.row("y", "b")
    equal = c.size(a).eq(c.size(b))
    space.require(implies(threads(x, y).is_("MAPPED"), equal), "levels have one size")
    contiguous_threads(c)


def contiguous_threads(c: Choices) -> None:
    """[41, 43] What is inside one thread dimension and outside another is a thread dimension; an
    instruction inside one of a nest is inside all. (What holds for instructions holds for the
    dimensions around them, because `order` composes.)"""
    space, order, nesting = c.space, c.order, c.nesting
    d, e = c.dimensions.each("d", "e")
    s, t = c.static.each("s", "t")
    i = c.instructions.one("i")
    nested, threads = order(d, e).is_("OUTER"), c.threads(s, t).is_not("NOT_THREADS")
    space.require(iff(nested, nesting(d, e).is_("OUT", "THREADS_OUT")), "nested dimensions")
    within = nesting(s, t).is_("THREADS_OUT", "THREADS_IN")
    space.require(implies(within, threads), "nested threads")
    space.require(implies(nesting(s, t).is_("OUT"), ~threads), "other nested dimensions")
    tiles = c.static(d) & c.static(e)
    space.require(tiles | nesting(d, e).is_("OUT", "IN", "APART"), "nested around tiles")
    inside = nesting(s, t).is_("THREADS_OUT") & order(s, i).is_("OUTER")
    space.require(implies(inside, order(t, i).is_("OUTER")), "nests are entered whole")


def tiles(c: Choices) -> None:
    """[46] The sizes of an axis' tiles together make it up: as a set of rows, not as a range."""
    space = c.space
    c.axis_tiles = space.relation("is a tile of", [(t, t.axis) for t in c.program.tiles], arity=2)
    tile, axis = c.axis_tiles.row("tile", "axis")
    c.tiling_factor = space.product("tiling_factor", amount(c.size(tile)), per=axis)
    for each in c.program.axes:
        own = tuple(tile for tile in c.program.tiles if tile.axis is each)
        if own:
            row = space.relation(f"tiles of {each}", [own]).row(*map(str, own))
            space.table([c.size(tile) for tile in row], tilings(each), f"tilings of {each}")


def representatives(c: Choices) -> None:
    """Listings 6, 7 and 13: of merged dimensions around an instruction one counts, its own if it
    has one; of thread dimensions on one level the first."""
    space, order = c.space, c.order
    d, e, i = c.dimensions.one("d"), c.dimensions.one("e"), c.instructions.one("i")
    c.iterates = space.quotient(
        "is_iteration_dim",
        d,
        per=i,
        when=order(d, i).is_("OUTER"),
        same=order(e, d).is_("MERGED"),
        earlier=space.relation("counts before", _earlier(c), arity=3),
        agreed=True,  # `order` composes
    )
    s, t = c.static.each("s", "t")
    c.is_thread = space.quotient(
        "is_thread_dim",
        s,
        when=c.is_kind(s, "THREAD"),
        same=c.threads(t, s).is_("MAPPED"),
        agreed=True,  # levels are of threads
    )


def _earlier(c: Choices) -> list[tuple[object, object, object]]:
    found: list[tuple[object, object, object]] = []
    for inst in c.insts:
        ranked = [*inst.dims, *(dim for dim in c.dims if dim not in inst.dims)]
        found += [(inst, e, d) for at, d in enumerate(ranked) for e in ranked[:at]]
    return found


# -- values reach who uses them --------------------------------------------------------------------


def folds(c: Choices) -> None:
    """[34] A fold begins after its start and is done once from there: what else is around it is
    around its start, too."""
    space, order = c.space, c.order
    inst, start = c.starts.row("inst", "start")
    d = c.dimensions.one("d")
    space.require(implies(c.folded(inst, d), order(start, d).is_("BEFORE")), "starts come first")
    paired = [(i, own) for i in c.insts if i.running is not None for _, own in i.running.pairs]
    along = space.relation("starts along", paired, arity=2)
    own = c.folded(inst, d) | along(inst, d)
    around = order(d, start).is_("OUTER")
    space.require(own | implies(c.iterates(inst, d).is_("TRUE"), around), "folds are done once")


def scans(c: Choices) -> None:
    """A scan goes on from tile to tile in one loop, and is done once in each. In a tile its parts
    are in registers, and beside each other on one level of threads. What else is around it is
    around all of its loops, or threads."""
    made = [i for i in c.insts if i.scanned]
    if not made:
        return
    space, order, is_kind = c.space, c.order, c.is_kind
    by_threads = ("THREAD",) if c.target.folds_by_threads else ()
    every = list(dict.fromkeys(dim for i in made for dim in i.scanned))
    tile = space.objects("tiles of scans", [d for d in every if d.tile is not None]).one("tile")
    space.require(is_kind(tile, "UNROLL", *by_threads), "scans within a tile")
    beside = [(a, b) for i in made for a, b in combinations(i.scanned, 2) if a.tile and b.tile]
    a, b = space.relation("are tiles of one scan", beside, arity=2).row("a", "b")
    space.require(~is_kind(a, "THREAD") | ~is_kind(b, "THREAD"), "scans on one level of threads")
    rows = [(own, other) for i in made for own in i.scanned for other in i.dims
            if other not in i.scanned]  # fmt: skip
    own, other = space.relation("scans beside", _distinct(rows), arity=2).row("own", "other")
    outside = order(other, own).is_("OUTER")
    space.require(is_kind(other, "THREAD") | outside, "rows are around scans")
    going = [(i, dim) for i in made for dim in i.scanned if dim.tile is None]
    inst, loop = space.relation("goes on in", going, arity=2).row("inst", "loop")
    space.require(is_kind(loop, "LOOP"), "scans go on in order")
    nested = [(dim, t) for i, dim in going for t in i.scanned if t.tile is not None]
    loop_of, inner = space.relation("goes on around", nested, arity=2).row("loop_of", "inner")
    space.require(order(loop_of, inner).is_("OUTER"), "scans go on around tiles")
    d = c.dimensions.one("d")
    around = is_kind(d, "THREAD") | order(d, loop).is_("OUTER", "MERGED") | c.declared(d, inst)
    space.require(around | c.iterates(inst, d).is_not("TRUE"), "scans are done once")


def communication(c: Choices) -> None:
    """[24-26, 53, 54] A value goes along a pair of dimensions in registers if they are one loop, if
    both are unrolled, or if they are on one level of threads; else through a temporary array, where
    its scope allows that."""
    space, order, mapping = c.space, c.order, c.mapping
    producer, consumer = c.feeds.row("producer", "consumer")
    space.require(order(producer, consumer).is_("BEFORE"), "producers come first")
    over, later = c.ended.row("over", "later")
    space.require(order(over, later).is_("BEFORE"), "folds end before they are used")
    p, q = c.pairs.row("p", "q")
    space.require(order(p, q).is_("BEFORE", "MERGED"), "pairs in order")
    merged = order(p, q).is_("MERGED")
    spread = [c.is_kind(v, "UNROLL", *c.target.vectors) for v in (p, q)]
    level = c.threads(p, q).is_("MAPPED")
    unroll, thread = mapping(p, q).is_("UNROLL_MAP"), mapping(p, q).is_("THREAD_MAP")
    space.require(implies(merged | spread[0] & spread[1], unroll), "registers suffice")
    space.require(implies(unroll, merged | spread[0]) & implies(unroll, merged | spread[1]))
    space.require(iff(level & ~merged, thread), "threads keep their registers")
    for scope, allowed in (
        (ir.Scope.LOCAL, ("UNROLL_MAP",)),
        (ir.Scope.THREAD, ("UNROLL_MAP", "THREAD_MAP")),
    ):
        rows = dict.fromkeys(_pairs_within(c, scope))
        a, b = space.relation(f"{scope.value} pairs", rows, arity=2).row("a", "b")
        space.require(mapping(a, b).is_(*allowed), f"{scope.value} values")
    lowering(c)


def _pairs_within(c: Choices, scope: ir.Scope) -> list[tuple[ir.Dim, ir.Dim]]:
    """A start is in the registers of its fold; the ends of a temporary are local."""
    every = c.program.communications
    found = [pair for each in every if each.scope is scope for pair in each.pairs]
    if scope is ir.Scope.THREAD:
        found += [pair for i in c.insts if i.running is not None for pair in i.running.pairs]
    else:
        found += [pair for each, t in lowerable(c) for pair in local_pairs(each, t)]
    return found


def lowerable(c: Choices) -> list[tuple[ir.Communication, ir.Temporary]]:
    every = c.program.communications
    return [(each, each.temporary) for each in every if each.temporary is not None]


def lowering(c: Choices) -> None:
    """Trigger 1: a temporary is there exactly if some pair of its communication is not mapped."""
    space, lowered = c.space, c.lowered
    rows = [(t, p, q) for each, t in lowerable(c) for p, q in each.pairs]
    of = space.relation("communicates by", rows, arity=3)
    t, p, q = of.row("t", "p", "q")
    missing = c.mapping(p, q).is_("NOT_MAPPED")
    space.require(implies(missing, lowered(t).is_("TRUE")), "lowered where needed")
    space.require(
        lowered(t).is_("FALSE") | some((p, q), of(t, p, q) & missing), "lowered only where needed"
    )


# -- memory ----------------------------------------------------------------------------------------


def arrays(c: Choices) -> None:
    """[47-49] Which dimensions a temporary array has (triggers 2 and 3), in which layout, how long
    its rows are. Threads have cells of their own even where they are merged."""
    space, order, layout, is_kind = c.space, c.order, c.layout, c.is_kind
    _, s, g = c.array_dims.row("t", "s", "g")
    space.require(order(s, g).is_("BEFORE", "MERGED"), "stored before loaded")
    inside = c.in_array(s).is_("TRUE")
    apart = order(s, g).is_not("MERGED") | is_kind(s, "THREAD")
    space.require(iff(inside, apart), "dimensions of an array")
    space.require(iff(inside, layout(s).is_not("NONE")), "dimensions have a place")
    for place in ("s", "g"):
        dim = {"s": s, "g": g}[place]
        vector = is_kind(dim, *c.target.vectors)
        space.require(implies(vector, layout(s).is_("0")), f"vectors are rows: {place}")
    _layouts(c)
    _paddings(c)
    space.require(c.mem_space(c.temporaries.one("t")).is_(*c.target.spaces), "known spaces")


def _layouts(c: Choices) -> None:
    """The places are different, and none is left out."""
    space, layout = c.space, c.layout
    pairs = [(a, b) for each in c.program.temporaries
             for a, b in permutations([put for put, _ in each.pairs], 2)]  # fmt: skip
    beside = space.relation("is in one array with", pairs, arity=2)
    a, b = beside.row("a", "b")
    space.require(layout(a).ne(layout(b)) | layout(a).is_("NONE"), "places differ")
    s, other = c.put_dims.each("s", "other")
    for below, rank in zip(c.ranks, c.ranks[1:], strict=False):
        there = some(other, beside(s, other) & layout(other).is_(below))
        space.require(implies(layout(s).is_(rank), there), f"place {below} before {rank}")
    for each in c.program.temporaries:
        if len(each.pairs) < len(c.ranks):
            dims = space.objects(f"dimensions of {each}", [put for put, _ in each.pairs])
            allowed = ("NONE", *c.ranks[: len(each.pairs)])
            space.require(layout(dims.one("s")).is_(*allowed), f"places in {each}")


def _paddings(c: Choices) -> None:
    """A row may be followed by some elements that nobody uses; vectors stay aligned. An array of
    one row has nothing to follow."""
    space, is_kind = c.space, c.is_kind
    rows = [(t, s, g, s.tile) for t in c.program.temporaries for s, g in t.pairs]
    t, s, g, a = space.relation("has rows along", rows, arity=4).row("t", "s", "g", "a")
    sizes = [int(size) for size in c.size.values]
    listed = [
        (size, rank, padding, size + padding * (rank == "0"))
        for size, rank, padding in product(sizes, c.layout.values, c.target.paddings)
        if size + padding * (rank == "0") in c.length.values
    ]
    space.table([c.size(a), c.layout(s), c.padding(t), c.length(s)], listed, "lengths of rows")
    for width in WIDTHS:
        aligned = [padding for padding in c.target.paddings if padding % width == 0]
        for dim in (s, g):
            wide = is_kind(dim, *c.target.vectors) & (c.size(a) >= width)
            space.require(implies(wide, c.padding(t).is_(*aligned)))
    plain = [padding for padding in c.target.paddings if not padding]
    own, dim = space.relation("is laid out along", [row[:2] for row in rows], arity=2).row("o", "d")
    second = some(dim, c.layout(dim).is_(*c.ranks[1:2]))
    space.require(c.padding(own).is_(*plain) | second, "rows that something follows")
    if "XOR" in c.target.swizzles:
        swizzled = c.swizzle(t).is_("XOR")
        powers = [size for size in sizes if size & (size - 1) == 0]
        space.require(implies(swizzled, c.padding(t).is_(*plain)), "padded or swizzled")
        inside = c.in_array(s).is_("TRUE")
        space.require(implies(swizzled & inside, c.size(a).is_(*powers)), "swizzles are of bits")
        several = c.swizzle(own).is_("PLAIN") | second
        space.require(several, "swizzled by what is further out")


def cooperative_copies(c: Choices) -> None:
    """A copy to a temporary array may be done by all threads of the block: then its loops are in
    the order of global memory (in any, where no two elements share a sector), nothing else is in
    them, and no threads are around them. Such a copy may be an iteration ahead of who uses it."""
    space, order, is_kind = c.space, c.order, c.is_kind
    groups = copies(c.program)
    members = {d: g for g in groups for d in g.dims}
    d, e, i = c.dimensions.one("d"), c.dimensions.one("e"), c.instructions.one("i")
    shared = is_kind(d, "DEAL")
    able = space.objects("dimensions of copies", list(members))
    space.require(able(d) | ~shared, "only copies are cooperative")
    together = [(a, b) for g in groups for a, b in permutations(g.load_dims, 2)]
    x, y = space.relation("are loops of one copy", together, arity=2).row("x", "y")
    space.require(implies(is_kind(x, "DEAL"), is_kind(y, "DEAL")), "a copy is so as a whole")
    sector = c.target.machine.sector_bytes
    nested = [pair for g in groups for pair in combinations(g.load_dims, 2)
              if g.is_near(*pair, sector)]  # fmt: skip
    x, y = space.relation("is further out in memory than", nested, arity=2).row("x", "y")
    space.require(implies(is_kind(x, "DEAL"), order(x, y).is_("OUTER")), "in the order of memory")
    stored = [pair for g in groups for pair in g.pairs]
    x, y = space.relation("is stored along", stored, arity=2).row("x", "y")
    space.require(iff(is_kind(x, "DEAL"), is_kind(y, "DEAL")), "loads are so with their stores")
    space.require(implies(is_kind(x, "DEAL"), order(x, y).is_("MERGED")), "loads beside stores")
    beside = [(a, b) for a, b in permutations(members, 2) if members[a] is members[b]]
    same = space.relation("is in one copy with", beside, arity=2)
    inside = [(a, i) for a, g in members.items() for i in g.insts]
    copied = space.relation("is around a copy", inside, arity=2)
    within = shared & order(d, e).is_("OUTER", "MERGED")
    space.require(implies(within, same(d, e)), "cooperative copies are alone")
    space.require(implies(shared & order(d, i).is_("OUTER"), copied(d, i)), "copies alone are so")
    around = is_kind(e, "LOOP", "BLOCK", "DEAL")
    space.require(implies(shared & order(e, d).is_("OUTER"), around), "no threads around them")
    if c.program.temporaries and max(c.target.stages) > 1:
        of = [(t, s) for t in c.program.temporaries for s, _ in t.pairs]
        t, s = space.relation("is filled along", of, arity=2).row("t", "s")
        single = c.stages(t).is_(*(n for n in c.target.stages if n == 1))
        space.require(single | is_kind(s, "DEAL"), "a cooperative copy may be ahead")
        fills(c)


def fills(c: Choices) -> None:
    """Copies ahead go by way of registers into two arrays, or past them into two or more; all of
    them the same way, so that a loop is written out for all."""
    space, stages, fill = c.space, c.stages, c.fill
    t, u = c.temporaries.each("t", "u")
    few = [n for n in c.target.stages if n <= 2]
    several = [n for n in c.target.stages if n > 1]
    by_registers = fill(t).is_("REGISTERS")
    space.require(implies(by_registers, stages(t).is_(*few)), "two arrays by way of registers")
    if "COPY" in c.target.fills:
        space.require(by_registers | stages(t).is_(*several), "asynchronous copies are ahead")
        same = fill(u).is_("COPY") & stages(u).eq(stages(t))
        space.require(by_registers | stages(u).is_not(*several) | same, "one way to be ahead")


# -- room ------------------------------------------------------------------------------------------


def limits(c: Choices) -> None:
    """[28-31, 44, 45, 48] What is counted, and how much of it the target has."""
    space, is_kind, target, machine = c.space, c.is_kind, c.target, c.target.machine
    s, a = c.tile_of.row("s", "a")
    i, d = c.instructions.one("i"), c.dimensions.one("d")
    inside, is_thread = c.iterates(i, s).is_("TRUE"), c.is_thread(s).is_("TRUE")
    outer, inner = target.vector
    limits = {"UNROLL": target.unroll}
    if c.several_vectors:  # else widths are limits enough
        limits |= {"VECTOR": inner, "OUTER_VECTOR": outer}
    for kind, most in limits.items():
        if kind in target.kinds:
            counted = amount(c.size(a), inside & is_kind(s, kind))
            factor = space.product(f"{kind.lower()}_factor", counted, per=i)
            space.require(factor(i) <= most, f"{kind} limit")
    first = space.objects("the first instruction", c.insts[:1]).one("first")
    block = amount(1, c.iterates(first, d).is_("TRUE") & is_kind(d, "BLOCK"))
    c.num_block_dims = space.total("num_block_dims", block)  # blocks are around every instruction
    space.require(c.num_block_dims() <= target.block_dims, "sides of a grid")
    c.num_threads = space.product("num_threads", amount(c.size(a), is_thread))
    space.require(c.num_threads() <= machine.block_threads, "threads of a block")
    c.num_levels = space.total("num_thread_dims", amount(1, is_thread))
    space.require(c.num_levels() <= target.thread_levels, "levels of threads")


def shared_memory(c: Choices) -> None:
    """[48] The arrays have room beside each other, rows padded."""
    space = c.space
    t, put, _ = c.array_dims.row("t", "put", "get")
    if not c.program.temporaries:
        c.mem_size = space.product("mem_size", per=t)
        c.shared_mem_used = space.total("shared_mem_used")
        return
    element = space.number("element bytes", {t: t.dtype.bytes for t in c.program.temporaries})
    there = c.in_array(put).is_("TRUE")
    c.mem_size = space.product("mem_size", amount(c.length(put), there), per=t, base=element(t))
    shared = c.mem_space(t).is_("SHARED")
    used = [amount(c.mem_size(t), shared)]
    for number in range(2, max(c.target.stages) + 1):  # as often as there are stages
        more = [n for n in c.target.stages if n >= number]
        used.append(amount(c.mem_size(t), shared & c.stages(t).is_(*more)))
    c.shared_mem_used = space.total("shared_mem_used", *used)
    space.require(c.shared_mem_used() <= c.target.shared_bytes, "shared memory")


def registers(c: Choices) -> None:
    """Results are spread over registers along unrolled dimensions, except where all who use them
    are in the same loop. All of them together fit a thread, and those of all threads a block."""
    space, machine = c.space, c.target.machine
    d, other = c.spread.sets[0].one("d"), c.static.one("other")
    beside = space.relation("is used along", _partners(c), arity=2)
    several = some(other, beside(d, other) & c.order(d, other).is_not("MERGED"))
    unrolled, spread = c.is_kind(d, "UNROLL", *c.target.vectors), c.spread(d).is_("TRUE")
    space.require(implies(spread, unrolled) & implies(spread, several), "results are spread")
    space.require(spread | ~unrolled | ~several, "others are not spread")
    words = _words(c)
    if not words:  # what is stored is given, or is the index: one for an address
        c.registers = space.total("registers", base=1)
        return
    rows = [(i, d, d.tile) for i, d in c.varying if i in words]
    i, along, tile = space.relation("takes registers along", rows, arity=3).row("i", "d", "t")
    width = space.number("words", words)
    own = amount(c.size(tile), c.spread(along).is_("TRUE"))
    c.result_registers = space.product("result_registers", own, per=i, base=width(i))
    single = sum(words.values()) - sum(words[i] for i in {row[0] for row in rows})
    c.registers = space.total(  # and one for an address
        "registers", amount(c.result_registers(i)), base=single + 1
    )
    if not c.target.limits_registers:
        return
    space.require(c.registers() <= machine.thread_registers, "registers of a thread")
    block = space.product("block_registers", amount(c.registers()), amount(c.num_threads()))
    space.require(block() <= machine.block_registers, "registers of a block")


def _words(c: Choices) -> dict[Hashable, int]:
    """What one result takes, of the instructions with registers of their own."""
    starts = {i.running.start for i in c.insts if i.running is not None}
    owners = [i for i in c.insts if not isinstance(i.action, ir.Store | ir.Put) and i not in starts]
    return {i: max(1, i.dtype.bytes // REGISTER_BYTES) for i in owners}


def _distinct(rows: list[tuple[ir.Dim, ir.Dim]]) -> list[tuple[ir.Dim, ir.Dim]]:
    return list(dict.fromkeys(rows))


def _partners(c: Choices) -> list[tuple[ir.Dim, ir.Dim]]:
    """A result is used along the dimensions that its own are paired with; the registers of a fold
    are those of its start, too."""
    starts = [
        (own, first) for i in c.insts if i.running is not None for first, own in i.running.pairs
    ]
    return list(dict.fromkeys([*c.paired, *starts]))
