"""A toy of loop nests: the choices and constraints of the paper's listings 6, 7, 9 and 13, over
instructions and dimensions, to prove that the declarations are strong enough for them.

Not the loop nests of Warploom: no memory, no temporaries, no communication between dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.search.space.build import Space, amount
from warploom.search.space.ir import Choice, Counter, implies, some

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

THREAD_MAPPING = "NOT_THREADS MAPPED MAPPED_OUT MAPPED_IN"
COMPOSED_THREADS = {
    #               NOT_THREADS     MAPPED         MAPPED_OUT                       MAPPED_IN
    "NOT_THREADS": ("*",           "NOT_THREADS", "NOT_THREADS",                   "NOT_THREADS"),
    "MAPPED":      ("NOT_THREADS", "MAPPED",      "MAPPED_OUT",                    "MAPPED_IN"),
    "MAPPED_OUT":  ("NOT_THREADS", "MAPPED_OUT",  "MAPPED_OUT",    "MAPPED MAPPED_OUT MAPPED_IN"),
    "MAPPED_IN":   ("NOT_THREADS", "MAPPED_IN",   "MAPPED MAPPED_OUT MAPPED_IN",   "MAPPED_IN"),
}  # fmt: skip

KINDS = "LOOP UNROLL INNER_VECTOR OUTER_VECTOR BLOCK THREAD"
VECTOR = ("INNER_VECTOR", "OUTER_VECTOR")


@dataclass(frozen=True)
class Dim:
    """Without sizes: a dimension whose size is a parameter."""

    name: str
    sizes: tuple[int, ...] = ()
    parallel: bool = True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Inst:
    name: str
    dims: tuple[Dim, ...]
    side_effects: bool = False
    vector_dims: tuple[Dim, ...] = ()  # along which it may be vectorised
    reduces: tuple[Dim, ...] = ()
    init: str = ""  # of the reduction

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Device:
    """The fake device of the published assertions."""

    threads: int = 1024
    unroll: int = 256
    inner_vector: int = 8
    outer_vector: int = 4


@dataclass
class Nest:
    space: Space
    order: Choice
    kind: Choice
    size: Choice
    threads: Choice
    iterates: Choice
    is_thread: Choice
    counters: dict[str, Counter] = field(default_factory=dict)


def order_space(dims: int, instructions: int) -> tuple[Space, Choice]:
    """The choice of listing 7 alone."""
    space = Space("orders")
    inner = [f"i{n}" for n in range(instructions)]
    statements = space.objects("statements", [f"d{n}" for n in range(dims)] + inner)
    order = declare_order(space, statements)
    inst, other = space.objects("instructions", inner).one("inst"), statements.one("other")
    space.require(order(inst, other).is_("INNER", "BEFORE", "AFTER"))
    return space, order


def declare_order(space, statements) -> Choice:
    order = space.choice(
        "order",
        statements,
        statements,
        values=ORDER,
        antisymmetric={"BEFORE": "AFTER", "INNER": "OUTER"},
    )
    space.compose(order, COMPOSED_ORDER)
    return order


FAKE = Device()


def nest_space(dims: list[Dim], insts: list[Inst], device: Device = FAKE) -> Nest:
    space = Space("loop nest")
    statements = space.objects("statements", [*dims, *insts])
    dimensions = space.objects("dimensions", dims)
    instructions = space.objects("instructions", insts)
    static = space.objects("static", [d for d in dims if d.sizes])
    parallel = space.objects("parallelisable", [d for d in dims if d.parallel])
    effects = space.objects("with side effects", [i for i in insts if i.side_effects])
    declared = space.relation("declared", [(i, d) for i in insts for d in i.dims], arity=2)
    vectorisable = space.relation(
        "vectorisable", [(i, d) for i in insts for d in i.vector_dims], arity=2
    )

    kind = space.choice("dim_kind", dimensions, values=KINDS)
    size = space.integer("size", static, values={d: d.sizes for d in dims if d.sizes})
    threads = space.choice(
        "thread_mapping",
        static,
        static,
        values=THREAD_MAPPING,
        antisymmetric={"MAPPED_OUT": "MAPPED_IN"},
    )
    space.compose(threads, COMPOSED_THREADS)
    order = declare_order(space, statements)

    d, e, f = dimensions.each("d", "e", "f")
    s, t = static.each("s", "t")
    i, stmt = instructions.one("i"), statements.one("stmt")
    is_kind = lambda dim, *kinds: kind(dim).is_(*kinds)  # noqa: E731
    is_thread = is_kind(d, "THREAD")

    # What a dimension may be.
    space.require(static(d) | is_kind(d, "LOOP", "BLOCK"))
    space.require(parallel(d) | is_kind(d, "LOOP", "UNROLL"))
    nested = order(d, e).is_("OUTER")
    space.require(implies(is_kind(d, "UNROLL") & nested, is_kind(e, "UNROLL", *VECTOR)))
    space.require(implies(is_kind(d, "INNER_VECTOR") & nested, is_kind(e, "INNER_VECTOR")))
    space.require(implies(is_kind(d, *VECTOR) & nested, is_kind(e, *VECTOR)))
    space.require(implies(is_kind(d, "BLOCK"), is_kind(e, "BLOCK") | order(e, d).is_("INNER")))
    space.require(implies(is_kind(d, "BLOCK"), order(d, stmt).is_("INNER", "OUTER", "MERGED")))

    # Instructions hold nothing; a store is not repeated; operands are in their dimensions.
    space.require(order(i, stmt).is_("INNER", "BEFORE", "AFTER"))
    space.require(implies(declared(i, d), order(d, i).is_("OUTER")))
    space.require(implies(declared(i, d) & declared(i, e), order(d, e).is_not("MERGED")))
    merged = some(e, declared(i, e) & order(d, e).is_("MERGED"))
    space.require(
        implies(effects(i) & ~declared(i, d), order(d, i).is_not("OUTER") | merged),
        "side effects are not repeated",
    )

    # Merging.
    space.require(implies(order(d, e).is_("MERGED"), kind(d).eq(kind(e))))
    space.require(implies(static(d) & ~static(e), order(d, e).is_not("MERGED")))
    space.require(implies(order(s, t).is_("MERGED"), size(s).eq(size(t))))

    # Threads.
    both = is_kind(s, "THREAD") & is_kind(t, "THREAD")
    space.require(implies(both, threads(s, t).is_not("NOT_THREADS")))
    space.require(implies(threads(s, t).is_not("NOT_THREADS"), is_kind(s, "THREAD")))
    space.require(
        implies(threads(s, t).is_("MAPPED"), order(s, t).is_("MERGED", "BEFORE", "AFTER"))
    )
    space.require(
        implies(threads(s, t).is_("MAPPED_OUT"), order(s, t).is_("OUTER", "BEFORE", "AFTER"))
    )
    space.require(implies(threads(s, t).is_("MAPPED"), size(s).eq(size(t))))
    between = order(d, e).is_("OUTER") & order(e, f).is_("OUTER")
    space.require(
        implies(between & is_kind(d, "THREAD") & is_kind(f, "THREAD"), is_kind(e, "THREAD"))
    )
    space.require(
        implies(
            is_thread & is_kind(e, "THREAD") & order(d, e).is_("OUTER", "INNER"),
            order(d, f).is_("BEFORE", "AFTER", "MERGED")
            | order(e, f).is_("INNER", "OUTER", "MERGED")
            | is_kind(f, "THREAD"),
        )
    )

    # Representatives, and what is counted with them.
    iterates = space.quotient(
        "is_iteration_dim",
        d,
        per=i,
        when=order(d, i).is_("OUTER"),
        same=order(e, d).is_("MERGED"),
    )
    thread = space.quotient(
        "is_thread_dim", s, when=is_kind(s, "THREAD"), same=threads(t, s).is_("MAPPED")
    )
    inside = iterates(i, s).is_("TRUE")
    counters = {
        "unroll": space.product(
            "unroll_factor", amount(size(s), inside & is_kind(s, "UNROLL")), per=i
        ),
        "inner": space.product(
            "inner_vector_factor", amount(size(s), inside & is_kind(s, "INNER_VECTOR")), per=i
        ),
        "outer": space.product(
            "outer_vector_factor", amount(size(s), inside & is_kind(s, "OUTER_VECTOR")), per=i
        ),
        "blocks": space.total(
            "num_block_dims", amount(1, iterates(i, d).is_("TRUE") & is_kind(d, "BLOCK")), per=i
        ),
        "nested": space.total("num_nested_inst", amount(1, order(d, i).is_("OUTER")), per=d),
        "threads": space.product("num_threads", amount(size(s), thread(s).is_("TRUE"))),
        "levels": space.total("num_thread_dims", amount(1, thread(s).is_("TRUE"))),
    }
    space.require(counters["unroll"](i) <= device.unroll)
    space.require(counters["inner"](i) <= device.inner_vector)
    space.require(counters["outer"](i) <= device.outer_vector)
    space.require(counters["blocks"](i) <= 3)
    space.require(counters["threads"]() <= device.threads)
    space.require(counters["levels"]() <= 3)
    space.require(implies(is_kind(d, *VECTOR), counters["nested"](d) <= 1))
    space.require(implies(is_kind(d, *VECTOR) & ~vectorisable(i, d), order(d, i).is_not("OUTER")))

    # Reductions.
    by_name = {each.name: each for each in insts}
    inits = [(each, by_name[each.init]) for each in insts if each.init]
    reduced = [(each, dim) for each in insts for dim in each.reduces]
    if inits:
        inst, init = space.relation("initialised by", inits).row("inst", "init")
        over = space.relation("reduced over", reduced)
        space.require(order(init, inst).is_("BEFORE"))
        space.require(implies(over(inst, d), order(init, d).is_("BEFORE")))
        space.require(implies(over(inst, d), is_kind(d, "LOOP", "UNROLL")))
        space.require(
            implies(iterates(inst, d).is_("TRUE"), over(inst, d) | order(d, init).is_("OUTER"))
        )
    return Nest(space, order, kind, size, threads, iterates, thread, counters)


def matmul(tiles: bool = True) -> tuple[list[Dim], list[Inst]]:
    """Loads of A and B, an initialisation, products added up and a store, each in a nest of its
    own: 11 dimensions, or 22 with tiles."""

    def dims(name: str, axes: str) -> tuple[Dim, ...]:
        found = []
        for axis in axes:
            found.append(Dim(f"{name}.{axis}", (), axis != "k"))
            if tiles:
                found.append(Dim(f"{name}.{axis}1", (2, 4, 8, 16, 32), axis != "k"))
        return tuple(found)

    a, b, init, mad, store = (
        dims(name, axes)
        for name, axes in (("a", "mk"), ("b", "kn"), ("c", "mn"), ("m", "mnk"), ("s", "mn"))
    )
    reduces = tuple(dim for dim in mad if ".k" in dim.name)
    insts = [
        Inst("load_a", a, vector_dims=a[-1:]),
        Inst("load_b", b, vector_dims=b[-1:]),
        Inst("init", init),
        Inst("mad", mad, reduces=reduces, init="init"),
        Inst("store", store, side_effects=True, vector_dims=store[-1:]),
    ]
    return [*a, *b, *init, *mad, *store], insts
