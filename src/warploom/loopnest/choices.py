"""The choices of an implementation, declared beside the listings of the paper.

In come a program and a target; out goes a space with its sets of objects and its choices, open and
without constraints: those are in `constraints.py`. What a lowering adds is declared at once; the
flag `lowered` says of a temporary array whether it, its store, its load and their dimensions exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from warploom.loopnest import ir
from warploom.loopnest.target import Target
from warploom.search.space.build import Space
from warploom.search.space.ir import Choice, Counter, Is, Property, Variable

ORDER = "BEFORE AFTER INNER OUTER MERGED"
# Row: a to b. Column: b to c. Entry: a to c.
COMPOSED_ORDER = {
    #          BEFORE          AFTER          INNER                 OUTER     MERGED
    "BEFORE": ("BEFORE",       "*",           "BEFORE INNER",       "BEFORE", "BEFORE"),
    "AFTER":  ("*",            "AFTER",       "AFTER INNER",        "AFTER",  "AFTER"),
    "INNER":  ("BEFORE",       "AFTER",       "INNER",              "*",      "INNER"),
    "OUTER":  ("BEFORE OUTER", "AFTER OUTER", "INNER OUTER MERGED", "OUTER",  "OUTER"),
    "MERGED": ("BEFORE",       "AFTER",       "INNER",              "OUTER",  "MERGED"),
}  # fmt: skip

THREADS = "NOT_THREADS MAPPED MAPPED_OUT MAPPED_IN"
COMPOSED_THREADS = {
    #               NOT_THREADS     MAPPED         MAPPED_OUT                       MAPPED_IN
    "NOT_THREADS": ("*",           "NOT_THREADS", "NOT_THREADS",                   "NOT_THREADS"),
    "MAPPED":      ("NOT_THREADS", "MAPPED",      "MAPPED_OUT",                    "MAPPED_IN"),
    "MAPPED_OUT":  ("NOT_THREADS", "MAPPED_OUT",  "MAPPED_OUT",    "MAPPED MAPPED_OUT MAPPED_IN"),
    "MAPPED_IN":   ("NOT_THREADS", "MAPPED_IN",   "MAPPED MAPPED_OUT MAPPED_IN",   "MAPPED_IN"),
}  # fmt: skip

NESTING = "THREADS_OUT THREADS_IN OUT IN APART"
# Only two of its entries say more than those above: OUT to OUT is not THREADS_OUT.
COMPOSED_NESTING = {
    #               THREADS_OUT    THREADS_IN    OUT    IN    APART
    "THREADS_OUT": ("THREADS_OUT", "*",          "OUT", "*",  "*"),
    "THREADS_IN":  ("*",           "THREADS_IN", "*",   "IN", "*"),
    "OUT":         ("OUT",         "*",          "OUT", "*",  "*"),
    "IN":          ("*",           "IN",         "*",   "IN", "*"),
    "APART":       ("*",           "*",          "*",   "*",  "*"),
}  # fmt: skip


def declare_order(space: Space, statements: Property) -> Choice:
    """Listing 7: what comes first, what is inside what, and which loops are one."""
    order = space.choice(                                    # choice enum order($lhs, $rhs):
        "order", statements, statements, values=ORDER,       #   value BEFORE: … value MERGED:
        antisymmetric={"BEFORE": "AFTER", "INNER": "OUTER"}, #   antisymmetric: BEFORE -> AFTER …
    )  # fmt: skip
    space.compose(order, COMPOSED_ORDER)
    return order


T = TypeVar("T")


class Choices:
    """The sets and choices of one program; `space` holds them all."""

    def __init__(self, program: ir.Program, target: Target) -> None:
        self.program, self.target = program, target
        self.space = Space(f"implementations of {program.name}")
        self._declare_objects()
        self._declare_relations()
        self._declare_choices()
        self._declare_memory()

    # What constraints.py and cuts.py count and name.
    own: Property
    all_folded: Property
    axis_tiles: Property
    iterates: Choice
    several_vectors: bool
    is_thread: Choice
    tiling_factor: Counter
    num_block_dims: Counter
    num_threads: Counter
    num_levels: Counter
    mem_size: Counter
    shared_mem_used: Counter
    result_registers: Counter
    registers: Counter

    # -- sets (listings 1, 7, 10 and 11) -----------------------------------------------------------

    def _declare_objects(self) -> None:
        program, space = self.program, self.space
        made = program.temporaries
        self.temporaries = space.objects("temporaries", made)
        self.lowered = space.flag(
            "lowered",
            self.temporaries,
            space.relation("made for", [(t, x) for t in made for x in _optional(t)], arity=2),
            derived=True,
        )
        dims = [*program.dims, *(dim for each in made for dim in each.dims)]
        insts = [*program.instructions, *(i for each in made for i in (each.put, each.get))]
        self.insts, self.dims = insts, dims
        self.statements = space.objects("statements", [*dims, *insts])
        self.dimensions = space.objects("dimensions", dims)
        self.instructions = space.objects("instructions", insts)
        self.static = space.objects("static dimensions", [d for d in dims if d.tile is not None])
        self.tiles = space.objects("tiles", program.tiles)
        self.accesses = space.objects(
            "accesses",
            [i for i in program.instructions if isinstance(i.action, ir.Load | ir.Store)],
        )

    def _declare_relations(self) -> None:
        space, insts = self.space, self.insts
        self.declared = space.relation("is around", [(d, i) for i in insts for d in i.dims], 2)
        rows = [(d, d.tile) for d in self.dims if d.tile is not None]
        self.tile_of = space.relation("is along", rows, arity=2)
        self.feeds = space.relation("feeds", _distinct(self._feeds()), arity=2)
        self.paired = _distinct(self._pairs())
        self.pairs = space.relation("is paired with", self.paired, arity=2)
        self.ended = space.relation("ends before", _distinct(self._ended()), arity=2)
        folds = [(i, i.running.start) for i in insts if i.running is not None]
        self.starts = space.relation("starts with", folds, arity=2)
        over = [(i, d) for i in insts for d in i.over]
        self.folded = space.relation("folds over", over, arity=2)
        of_arrays = [(t, s, g) for t in self.program.temporaries for s, g in t.pairs]
        self.array_dims = space.relation("may be in the array", of_arrays, arity=3)

    def _feeds(self) -> list[tuple[ir.Instruction, ir.Instruction]]:
        """A value goes from the first to the second."""
        found = [(each.producer, each.consumer) for each in self.program.communications]
        found += [(i.running.start, i) for i in self.insts if i.running is not None]
        for each in self.program.communications:
            if (t := each.temporary) is not None:
                found += [(each.producer, t.put), (t.put, t.get), (t.get, each.consumer)]
        return found

    def _pairs(self) -> list[tuple[ir.Dim, ir.Dim]]:
        """Along which a value goes in registers, if it does."""
        found = [pair for each in self.program.communications for pair in each.pairs]
        found += [p for i in self.insts if i.running is not None for p in i.running.pairs]
        for each in self.program.communications:
            if each.temporary is not None:
                found += local_pairs(each, each.temporary)
        return found

    def _ended(self) -> list[tuple[ir.Dim, ir.Instruction]]:
        """A fold is at its end, along these dimensions, before the instruction."""
        found = [(dim, each.consumer) for each in self.program.communications
                 for dim in each.producer.over]  # fmt: skip
        found += [(dim, each.temporary.put) for each in self.program.communications
                  if each.temporary is not None for dim in each.producer.over]  # fmt: skip
        # A scan is at its end in one tile before it is used there.
        for each in self.program.communications:
            users = [each.consumer, *([each.temporary.put] if each.temporary is not None else [])]
            tiles = [dim for dim in each.producer.scanned if dim.tile is not None]
            found += [(dim, user) for user in users for dim in tiles]
        return found

    # -- choices (listings 7, 9, 10 and 13) --------------------------------------------------------

    def _declare_choices(self) -> None:
        space, target = self.space, self.target
        self.size = space.integer(                             # choice integer size($tile):
            "size", self.tiles,                                #   "$tile.possible_sizes()"
            values={tile: tile.sizes for tile in self.program.tiles},
        )  # fmt: skip
        self.kind = space.choice(                              # choice enum dim_kind($dim):
            "dim_kind", self.dimensions, values=target.kinds,  #   value LOOP: … value THREAD:
        )  # fmt: skip
        self.threads = space.choice(                           # choice enum thread_level($x, $y):
            "thread_mapping", self.static, self.static,
            values=THREADS, antisymmetric={"MAPPED_OUT": "MAPPED_IN"},
        )  # fmt: skip
        space.compose(self.threads, COMPOSED_THREADS)
        self.order = declare_order(space, self.statements)
        # What `order` and `thread_mapping` say together of one dimension inside another.
        self.nesting = space.choice(
            "nesting", self.dimensions, self.dimensions, values=NESTING, derived=True,
            antisymmetric={"THREADS_OUT": "THREADS_IN", "OUT": "IN"},
        )  # fmt: skip
        space.compose(self.nesting, COMPOSED_NESTING)
        self.mapping = space.choice(  # how a value goes along a pair: follows from the others
            "dim_mapping", self.pairs, values="NOT_MAPPED UNROLL_MAP THREAD_MAP", derived=True
        )

    # -- memory (listing 11) -----------------------------------------------------------------------

    def _declare_memory(self) -> None:
        space, target, program = self.space, self.target, self.program
        self.mem_space = space.choice("mem_space", self.temporaries, values="SHARED GLOBAL")
        self.cache = space.choice("cache", self.accesses, values=target.caches)
        put_dims = [put for each in program.temporaries for put, _ in each.pairs]
        self.put_dims = space.objects("dimensions of temporaries", put_dims)
        self.in_array = space.boolean("in_array", self.put_dims, derived=True)
        ranks = max((len(each.pairs) for each in program.temporaries), default=1)
        self.ranks = tuple(str(rank) for rank in range(ranks))
        # Where a dimension is in the layout of its array: 0 counts neighbours.
        self.layout = space.choice("layout", self.put_dims, values=("NONE", *self.ranks))
        self.padding = space.integer("padding", self.temporaries, values=target.paddings)
        self.swizzle = space.choice("swizzle", self.temporaries, values=target.swizzles)
        self.stages = space.integer("stages", self.temporaries, values=target.stages)
        self.fill = space.choice("fill", self.temporaries, values=target.fills)
        self.length = space.integer(  # of a dimension in memory: its size, padded if it is a row
            "length", self.put_dims, values={d: self._lengths(d) for d in put_dims}, derived=True
        )
        producers = [
            i for i in self.insts if isinstance(i.action, ir.Load | ir.Compute | ir.Scan | ir.Get)
        ]
        self.varying = [
            (i, d) for i in producers for d in i.dims if d.tile is not None and d not in i.over
        ]
        along = space.objects("dimensions of results", dict.fromkeys(d for _, d in self.varying))
        self.spread = space.boolean("spread", along, derived=True)  # over several registers

    def _lengths(self, dim: ir.Dim) -> list[int]:
        assert dim.tile is not None
        return sorted({n + padding for n in dim.tile.sizes for padding in self.target.paddings})

    # -- words -------------------------------------------------------------------------------------

    def is_kind(self, dim: Variable, *kinds: str) -> Is:
        return self.kind(dim).is_(*kinds)


def _optional(temporary: ir.Temporary) -> tuple[object, ...]:
    return (temporary, temporary.put, temporary.get, *temporary.dims)


def local_pairs(
    communication: ir.Communication, temporary: ir.Temporary
) -> list[tuple[ir.Dim, ir.Dim]]:
    """From the producer to the store of a temporary, and from its load to the consumer."""
    both = zip(communication.pairs, temporary.pairs, strict=True)
    return [pair for (p, c), (s, g) in both for pair in ((p, s), (g, c))]


def _distinct(rows: Sequence[T]) -> list[T]:
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(rows))
