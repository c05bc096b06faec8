"""A toy of loop nests: the choices and constraints of the paper's listings 6, 7, 9 and 13, over
instructions and dimensions, to prove that the declarations are strong enough for them.

Not the loop nests of Warploom: no memory, no temporaries, no communication between dimensions.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from warploom.search.space.build import Space, amount
from warploom.search.space.ir import Choice, Is, Property, Sentence, Variable, implies, some

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


def order_space(dims: int, instructions: int) -> tuple[Space, Choice]:
    """The choice of listing 7 alone."""
    space = Space("orders")
    inner = [f"i{n}" for n in range(instructions)]
    statements = space.objects("statements", [f"d{n}" for n in range(dims)] + inner)
    order = declare_order(space, statements)
    inst, other = space.objects("instructions", inner).one("inst"), statements.one("other")
    space.require(order(inst, other).is_("INNER", "BEFORE", "AFTER"))
    return space, order


def declare_order(space: Space, statements: Property) -> Choice:
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


class Nest:
    """The space of a nest, with its choices and counters by name."""

    def __init__(self, dims: list[Dim], insts: list[Inst], device: Device = FAKE) -> None:
        space = self.space = Space("loop nest")
        self.statements = space.objects("statements", [*dims, *insts])
        self.dimensions = space.objects("dimensions", dims)
        self.instructions = space.objects("instructions", insts)
        self.static = space.objects("static", [d for d in dims if d.sizes])
        self.declared = space.relation("declared", [(i, d) for i in insts for d in i.dims], 2)
        self.kind = space.choice("dim_kind", self.dimensions, values=KINDS)
        sizes: dict[Hashable, tuple[int, ...]] = {d: d.sizes for d in dims if d.sizes}
        self.size = space.integer("size", self.static, values=sizes)
        self.threads = space.choice(
            "thread_mapping",
            self.static,
            self.static,
            values=THREAD_MAPPING,
            antisymmetric={"MAPPED_OUT": "MAPPED_IN"},
        )
        space.compose(self.threads, COMPOSED_THREADS)
        self.order = declare_order(space, self.statements)
        self.d, self.e, self.f = self.dimensions.each("d", "e", "f")
        self.s, self.t = self.static.each("s", "t")
        self.i, self.stmt = self.instructions.one("i"), self.statements.one("stmt")
        self.kinds(dims)
        self.instructions_in_dimensions(insts)
        self.merging()
        self.thread_nests()
        self.representatives()
        self.limits(insts, device)
        self.reductions(insts)

    def is_kind(self, dim: Variable, *kinds: str) -> Is:
        return self.kind(dim).is_(*kinds)

    def kinds(self, dims: list[Dim]) -> None:
        """What a dimension may be, and what may be in it."""
        space, order, is_kind, d, e = self.space, self.order, self.is_kind, self.d, self.e
        parallel = space.objects("parallelisable", [dim for dim in dims if dim.parallel])
        space.require(self.static(d) | is_kind(d, "LOOP", "BLOCK"))
        space.require(parallel(d) | is_kind(d, "LOOP", "UNROLL"))
        nested = order(d, e).is_("OUTER")
        space.require(implies(is_kind(d, "UNROLL") & nested, is_kind(e, "UNROLL", *VECTOR)))
        space.require(implies(is_kind(d, "INNER_VECTOR") & nested, is_kind(e, "INNER_VECTOR")))
        space.require(implies(is_kind(d, *VECTOR) & nested, is_kind(e, *VECTOR)))
        around = order(d, self.stmt).is_("INNER", "OUTER", "MERGED")
        space.require(implies(is_kind(d, "BLOCK"), is_kind(e, "BLOCK") | order(e, d).is_("INNER")))
        space.require(implies(is_kind(d, "BLOCK"), around))

    def instructions_in_dimensions(self, insts: list[Inst]) -> None:
        """Instructions hold nothing; they are in their dimensions; a store is not repeated."""
        space, order, declared = self.space, self.order, self.declared
        i, d, e = self.i, self.d, self.e
        effects = space.objects("with side effects", [each for each in insts if each.side_effects])
        space.require(order(i, self.stmt).is_("INNER", "BEFORE", "AFTER"))
        space.require(implies(declared(i, d), order(d, i).is_("OUTER")))
        space.require(implies(declared(i, d) & declared(i, e), order(d, e).is_not("MERGED")))
        merged = some(e, declared(i, e) & order(d, e).is_("MERGED"))
        space.require(
            implies(effects(i) & ~declared(i, d), order(d, i).is_not("OUTER") | merged),
            "side effects are not repeated",
        )

    def merging(self) -> None:
        space, order, d, e, s, t = self.space, self.order, self.d, self.e, self.s, self.t
        space.require(implies(order(d, e).is_("MERGED"), self.kind(d).eq(self.kind(e))))
        space.require(implies(self.static(d) & ~self.static(e), order(d, e).is_not("MERGED")))
        space.require(implies(order(s, t).is_("MERGED"), self.size(s).eq(self.size(t))))

    def thread_nests(self) -> None:
        """Thread dimensions are mapped to levels; nests of them are contiguous."""
        space, order, threads, s, t = self.space, self.order, self.threads, self.s, self.t
        thread = {v: self.is_kind(v, "THREAD") for v in (self.d, self.e, self.f, s, t)}
        space.require(implies(thread[s] & thread[t], threads(s, t).is_not("NOT_THREADS")))
        space.require(implies(threads(s, t).is_not("NOT_THREADS"), thread[s]))
        for level, relation in (("MAPPED", "MERGED"), ("MAPPED_OUT", "OUTER")):
            apart = order(s, t).is_(relation, "BEFORE", "AFTER")
            space.require(implies(threads(s, t).is_(level), apart))
        space.require(implies(threads(s, t).is_("MAPPED"), self.size(s).eq(self.size(t))))
        d, e, f = self.d, self.e, self.f
        between = order(d, e).is_("OUTER") & order(e, f).is_("OUTER")
        space.require(implies(between & thread[d] & thread[f], thread[e]))
        nested = thread[d] & thread[e] & order(d, e).is_("OUTER", "INNER")
        with_both: Sentence = order(d, f).is_("BEFORE", "AFTER", "MERGED")
        with_both |= order(e, f).is_("INNER", "OUTER", "MERGED")
        space.require(implies(nested, with_both | thread[f]))

    def representatives(self) -> None:
        order, threads, d, e, s, t = self.order, self.threads, self.d, self.e, self.s, self.t
        self.iterates = self.space.quotient(
            "is_iteration_dim",
            d,
            per=self.i,
            when=order(d, self.i).is_("OUTER"),
            same=order(e, d).is_("MERGED"),
        )
        self.is_thread = self.space.quotient(
            "is_thread_dim", s, when=self.is_kind(s, "THREAD"), same=threads(t, s).is_("MAPPED")
        )

    def limits(self, insts: list[Inst], device: Device) -> None:
        """What is counted, and how much of it the device has."""
        space, is_kind, i, d, s = self.space, self.is_kind, self.i, self.d, self.s
        inside, is_thread = self.iterates(i, s).is_("TRUE"), self.is_thread(s).is_("TRUE")
        for kind, limit in (
            ("UNROLL", device.unroll),
            ("INNER_VECTOR", device.inner_vector),
            ("OUTER_VECTOR", device.outer_vector),
        ):
            counted = amount(self.size(s), inside & is_kind(s, kind))
            space.require(space.product(f"{kind.lower()}_factor", counted, per=i)(i) <= limit)
        blocks = amount(1, self.iterates(i, d).is_("TRUE") & is_kind(d, "BLOCK"))
        space.require(space.total("num_block_dims", blocks, per=i)(i) <= 3)
        counted = amount(self.size(s), is_thread)
        space.require(space.product("num_threads", counted)() <= device.threads)
        space.require(space.total("num_thread_dims", amount(1, is_thread))() <= 3)
        nested = space.total("num_nested_inst", amount(1, self.order(d, i).is_("OUTER")), per=d)
        space.require(implies(is_kind(d, *VECTOR), nested(d) <= 1))
        along = [(each, dim) for each in insts for dim in each.vector_dims]
        vectorisable = space.relation("vectorisable", along, arity=2)
        outside = self.order(d, i).is_not("OUTER")
        space.require(implies(is_kind(d, *VECTOR) & ~vectorisable(i, d), outside))

    def reductions(self, insts: list[Inst]) -> None:
        by_name = {each.name: each for each in insts}
        inits = [(each, by_name[each.init]) for each in insts if each.init]
        if not inits:
            return
        space, order, d = self.space, self.order, self.d
        inst, init = space.relation("initialised by", inits).row("inst", "init")
        reduced = [(each, dim) for each in insts for dim in each.reduces]
        over = space.relation("reduced over", reduced)
        space.require(order(init, inst).is_("BEFORE"))
        space.require(implies(over(inst, d), order(init, d).is_("BEFORE")))
        space.require(implies(over(inst, d), self.is_kind(d, "LOOP", "UNROLL")))
        around = order(d, init).is_("OUTER")
        space.require(implies(self.iterates(inst, d).is_("TRUE"), over(inst, d) | around))


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
