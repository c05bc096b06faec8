"""Tiles of tensor cores: which products of a program may be made of them, and when they are.

    acc[i, j] = fma(a[i, k], b[k, j], acc[i, j])      eight iterations of k are one product of
    matrices

A dimension of the kind TENSOR is a fold over eight elements (of bf16, sixteen) that the lanes of a
warp do together. The sums are where they are without it: four threads beside each other along the
columns, eight rows of them, an even number of sums of each thread along both. Only the factors are
shared out anew, so they come from temporary arrays, and nothing else is in such a loop. Rows and
columns of a product may be any that its sums are of: which index of an axis they have is left to
other decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.kernel.dtype import DType
from warploom.kernel.tensor import DEPTH
from warploom.loopnest import ir
from warploom.loopnest.choices import Choices
from warploom.loopnest.neutral import unchanged_outside
from warploom.schedule.product import GROUPS, LANES
from warploom.search.space.ir import implies, some


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A fold of products of two loaded numbers: `factors` are where these come from, the first one
    that of the rows."""

    fold: ir.Instruction
    factors: tuple[ir.Communication, ir.Communication]

    @property
    def temporaries(self) -> tuple[ir.Temporary, ...]:
        return tuple(each.temporary for each in self.factors if each.temporary is not None)

    @property
    def deep(self) -> tuple[ir.Dim, ...]:
        """Tiles of what is folded over."""
        return tuple(dim for dim in self.fold.over if dim.tile is not None)

    def across(self, which: int) -> tuple[ir.Dim, ...]:
        """Tiles along the rows (0) or columns (1): one factor varies along them, the other not."""
        own, other = (each.producer.axes for each in (self.factors[which], self.factors[1 - which]))
        return tuple(
            dim for dim in self.fold.dims
            if dim.tile is not None and dim not in self.fold.over
            and dim.axis in own and dim.axis not in other
        )  # fmt: skip

    def gets(self, dim: ir.Dim) -> list[ir.Dim]:
        """The dimensions of loads from temporary arrays that go with one of the fold."""
        found = []
        for each in self.factors:
            assert each.temporary is not None
            both = zip(each.pairs, each.temporary.pairs, strict=True)
            found += [get for (_, own), (_, get) in both if own is dim]
        return found

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        return (self.fold, *(each.get for each in self.temporaries))


def products(program: ir.Program) -> Iterator[Product]:
    """What tensor cores may do: sums in single precision of products, whose factors are loaded and
    may both go through temporary arrays; beyond the end of an axis nothing is added. Factors that
    are computed would lose bits there, which no trial could tell from a wrong kernel."""
    for fold in program.instructions:
        match fold.action:
            case ir.Compute("fma", (ir.Result() as first, ir.Result() as second, ir.Running())):
                incoming = {
                    each.producer: each for each in program.communications
                    if each.consumer is fold and each.temporary is not None
                }  # fmt: skip
                made = [incoming.get(each.instruction) for each in (first, second)]
                if made[0] is None or made[1] is None or made[0] is made[1]:
                    continue
                found = Product(fold, (made[0], made[1]))
                if _is_able(found):
                    yield found


def _is_able(product: Product) -> bool:
    whole = all(
        not dim.axis.tail or unchanged_outside(product.fold, dim.axis) for dim in product.fold.over
    )
    single = all(
        each.dtype is DType.F32
        for each in (product.fold, *(factor.producer for factor in product.factors))
    )
    loaded = all(isinstance(factor.producer.action, ir.Load) for factor in product.factors)
    sides = product.deep and product.across(0) and product.across(1)
    both = all(dim.axis in each.producer.axes for dim in product.deep for each in product.factors)
    return bool(whole and single and loaded and sides and both)


def tensor_tiles(c: Choices) -> None:
    """A tile is as deep as the instruction, its factors are in memory, and nothing else is in it;
    it is one for all threads of a warp, which are arranged as its sums are."""
    space, is_kind, order = c.space, c.is_kind, c.order
    found = list(products(c.program))
    folds = [(p, k) for p in found for k in p.deep]
    if not folds:
        space.require(~is_kind(c.dimensions.one("d"), "TENSOR"), "nothing is of tiles")
        return
    groups = {dim: (p, k) for p, k in folds for dim in (k, *p.gets(k))}
    d, e, i = c.dimensions.one("d"), c.dimensions.one("e"), c.instructions.one("i")
    tensor = is_kind(d, "TENSOR")
    able = space.objects("may be tiles of tensor cores", list(groups))
    space.require(able(d) | ~tensor, "only products are of tiles")
    rows = space.relation("is as deep as a tile", [(x, x.tile) for x in groups], arity=2)
    x, a = rows.row("x", "a")
    depth = DEPTH[c.target.tensor or "tf32"]
    deep = [size for size in c.size.values if size == depth]
    space.require(implies(is_kind(x, "TENSOR"), c.size(a).is_(*deep)), "tiles are so deep")
    pairs = [(k, get) for p, k in folds for get in p.gets(k)]
    k, g = space.relation("is multiplied beside", pairs, arity=2).row("k", "g")
    for one in (k, g):
        together = implies(is_kind(one, "TENSOR"), order(k, g).is_("MERGED"))
        space.require(together, f"factors beside products: {one.name}")
    through = [(k, t) for p, k in folds for t in p.temporaries]
    k, t = space.relation("multiplies what is in", through, arity=2).row("k", "t")
    space.require(implies(is_kind(k, "TENSOR"), c.lowered(t).is_("TRUE")), "factors in memory")
    several = [(k, m) for p, k in folds for m in p.deep if m is not k]
    k, m = space.relation("is folded beside", several, arity=2).row("k", "m")
    space.require(~(is_kind(k, "TENSOR") & is_kind(m, "TENSOR")), "one tile at a time")
    same = [(x, y) for x in groups for y in groups if x is not y and groups[x] == groups[y]]
    beside = space.relation("is one tile with", same, arity=2)
    space.require(implies(tensor & order(d, e).is_("MERGED"), beside(d, e)), "tiles are alone")
    inside = [(x, y) for x, (p, _) in groups.items() for y in _inside(p)]
    within = space.relation("may be around sums", inside, arity=2)
    unrolled = is_kind(e, "UNROLL") & within(d, e)
    space.require(implies(tensor & order(d, e).is_("OUTER"), unrolled), "sums inside tiles")
    x, y = within.row("x", "y")
    around = implies(is_kind(y, "UNROLL"), order(y, x).is_not("OUTER"))
    space.require(implies(is_kind(x, "TENSOR"), around), "all sums of a thread inside")
    held = [(x, inst) for x, (p, _) in groups.items() for inst in p.instructions]
    member = space.relation("is around a product", held, arity=2)
    space.require(implies(tensor & order(d, i).is_("OUTER"), member(d, i)), "products in tiles")
    _warps(c, folds)


def _inside(product: Product) -> Iterator[ir.Dim]:
    for which in (0, 1):
        for dim in product.across(which):
            yield dim
            yield from product.gets(dim)


def _warps(c: Choices, folds: list[tuple[Product, ir.Dim]]) -> None:
    """The innermost level of threads are four along the columns, the next one a multiple of eight
    along the rows; each thread has an even number of sums along both."""
    space, is_kind, threads = c.space, c.is_kind, c.threads
    sides = {dim: which for p, _ in folds for which in (0, 1) for dim in p.across(which)}
    role = space.choice(
        "tensor_role",
        space.objects("sides of tiles", list(sides)),
        values="NONE ROWS COLUMNS PAIRS",
    )
    sizes = [int(size) for size in c.size.values]
    wanted = (("ROWS", [n for n in sizes if n % GROUPS == 0]),
              ("COLUMNS", [n for n in sizes if n == LANES]))  # fmt: skip
    even = [n for n in sizes if n % 2 == 0]
    for which, (name, fitting) in enumerate(wanted):
        own = [(dim, dim.tile) for dim, side in sides.items() if side == which]
        others = [(dim, dim.tile) for dim, side in sides.items() if side != which]
        s, a = space.relation(f"may be {name}", own, arity=2).row("s", "a")
        taken = role(s).is_(name)
        space.require(
            implies(taken, is_kind(s, "THREAD")) & implies(taken, c.size(a).is_(*fitting)),
            f"threads along {name}",
        )
        o, _ = space.relation(f"are not {name}", others, arity=2).row("o", "b")
        space.require(role(o).is_not(name), f"no others along {name}")
        listed = [(k, dim, dim.tile) for p, k in folds for dim in p.across(which)]
        of = space.relation(f"has {name} along", listed, arity=3)
        k, s, a = of.row("k", "s", "a")
        tensor = is_kind(k, "TENSOR")
        space.require(
            implies(tensor, some((s, a), of(k, s, a) & role(s).is_(name))), f"{name} of threads"
        )
        paired = role(s).is_("PAIRS")
        space.require(implies(tensor, some((s, a), of(k, s, a) & paired)), f"{name} in pairs")
        sums = is_kind(s, "UNROLL") & c.size(a).is_(*even)
        space.require(implies(tensor & sums, paired), f"{name} that are pairs")
        space.require(implies(paired, is_kind(s, "UNROLL")) & implies(paired, c.size(a).is_(*even)))
    needed = [(dim, k) for p, k in folds for which in (0, 1) for dim in p.across(which)]
    used = space.relation("is a side of", needed, arity=2)
    s, k = used.row("s", "k")
    anywhere = some(k, used(s, k) & is_kind(k, "TENSOR"))
    space.require(role(s).is_("NONE") | anywhere, "roles are in tiles")
    static = [dim for dim in c.dims if dim.tile is not None]
    inner = [(dim, e) for dim, which in sides.items() if which for e in static if e is not dim]
    s, e = space.relation("is beside a column", inner, arity=2).row("s", "e")
    least = implies(role(s).is_("COLUMNS"), threads(s, e).is_not("MAPPED_OUT"))
    space.require(least, "columns are the innermost threads")
    triples = [
        (r, s, e) for r, w in sides.items() if not w for s, v in sides.items() if v
        for e in static if e not in (r, s)
    ]  # fmt: skip
    r, s, e = space.relation("is beside a row", triples, arity=3).row("r", "s", "e")
    both = role(r).is_("ROWS") & role(s).is_("COLUMNS") & threads(r, e).is_("MAPPED_OUT")
    space.require(implies(both, threads(s, e).is_("MAPPED")), "rows are next to them")
