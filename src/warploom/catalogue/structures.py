"""Arrays of structures and structures of arrays, and the sum of each structure.

    aos_to_soa   y[f*n + i] = x[i*fields + f]
    soa_to_aos   y[i*fields + f] = x[f*n + i]
    aos_sum      y[i] = Σ_f x[i*fields + f]

In registers, a warp moves 32 lanes' shares at a time with coalesced accesses only; what each lane
needs it gets from other lanes by the steps of a synthesised fill (crc), or by loading and storing
for another lane (rcr), which takes no shuffle. The other strategies, through shared memory and
directly, are in staged.py; which one is used is for rule.py to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.catalogue import rule
from warploom.catalogue.entry import Array, Arrays, Entry, Parameter, Parameters, Values
from warploom.catalogue.fill import sketch, sum_sketch, summing, transposing
from warploom.catalogue.layout import (
    ACCESS_BYTES,
    MOST_WORDS,
    WARP,
    WORDS_IN_FLIGHT,
    Layout,
    is_streaming,
    layout,
    widest,
)
from warploom.catalogue.mover import Mover
from warploom.catalogue.rule import AUTO
from warploom.catalogue.shape import (
    arrays_to_structures,
    structures_to_arrays,
    sums_of_structures,
)
from warploom.catalogue.staged import (
    direct,
    direct_sums,
    shared_sums,
    shared_to_arrays,
    shared_to_structures,
    stage,
)
from warploom.errors import CheckError
from warploom.index.laws import simplify
from warploom.kernel.build import Builder
from warploom.kernel.ir import Kernel
from warploom.sketch.code.exchange import Tiles, count, exchange
from warploom.sketch.code.move import LANE, at_place
from warploom.sketch.term.ir import Program


def _move(name: str, what: str, plan: Layout, order: str, streaming: bool, back: bool) -> Kernel:
    if order == "rcr" and plan.pack > 1:
        raise CheckError("rcr moves one structure per lane", advice="use pack=1, or order=crc")
    fill = transposing(WARP, plan.columns, order, back=back)
    mover = Mover(name, what, plan, fill, streaming)
    k = mover.k
    x = k.array("x", plan.dtype, mover.n * plan.fields, const=True)
    y = k.array("y", plan.dtype, mover.n * plan.fields)
    mover.grid()
    tiles = mover.tiles("a")
    load_lane, store_lane, steps = fill.ways
    mover.access(x, tiles, load_lane, load=True, soa=back)
    tiles = exchange(k, tiles, fill.moves(steps))
    mover.access(y, tiles, store_lane, load=False, soa=not back)
    return k.done()


def _moving(back: bool) -> Callable[..., Kernel]:
    """What builds kernels from structures to arrays, or back."""

    def build(
        fields: int,
        strategy: str,
        order: str,
        dtype: str,
        block: int,
        tiles: int,
        pack: int,
        width: int,
        streaming: int,
    ) -> Kernel:
        if back:
            name = f"soa_to_aos_{fields}"
            says = f"y[i*{fields} + f] = x[f*n + i]"
            what = f"{fields} arrays of n {dtype} become n structures: {says}."
        else:
            name = f"aos_to_soa_{fields}"
            says = f"y[f*n + i] = x[i*{fields} + f]"
            what = f"n structures of {fields} {dtype} become {fields} arrays: {says}."
        if strategy == "registers":
            plan = layout(fields, dtype, block, tiles, pack, width)
            return _move(name, what, plan, order, is_streaming(streaming), back)
        _check_plain(strategy, streaming)
        staged = stage(fields, dtype, block, tiles, width)
        if strategy == "direct":
            return direct(name, what, staged, back=back)
        write = shared_to_structures if back else shared_to_arrays
        return write(name, what, staged)

    return build


def _check_plain(strategy: str, streaming: int) -> None:
    if is_streaming(streaming):
        raise CheckError(
            f"streaming accesses of '{strategy}'", advice="only strategy=registers has them"
        )


aos_to_soa, soa_to_aos = _moving(back=False), _moving(back=True)


def aos_sum(
    fields: int, strategy: str, dtype: str, block: int, tiles: int, width: int, streaming: int
) -> Kernel:
    name = f"aos_sum_{fields}"
    what = f"The sum of each of n structures of {fields} {dtype}: y[i] = x[i*{fields}] + …"
    if strategy == "registers":
        return _sum(
            name, what, layout(fields, dtype, block, tiles, 1, width), is_streaming(streaming)
        )
    _check_plain(strategy, streaming)
    write = direct_sums if strategy == "direct" else shared_sums
    return write(name, what, stage(fields, dtype, block, tiles, width))


def _sum(name: str, what: str, plan: Layout, streaming: bool) -> Kernel:
    """The words of one access belong to one structure and are summed before any exchange."""
    fields, fill = plan.fields, summing(WARP, plan.columns)
    mover = Mover(name, what, plan, fill, streaming)
    k = mover.k
    x = k.array("x", plan.dtype, mover.n * fields, const=True)
    y = k.array("y", plan.dtype, mover.n)
    mover.grid()
    held = mover.tiles("a")
    mover.access(x, held, LANE, load=True, soa=False)
    parts = _partial_sums(k, held)
    within, across = fill.steps
    parts = exchange(k, parts, fill.moves((within,)))
    total, got = k.registers("total", plan.dtype, plan.tiles, 0), k.register("got", plan.dtype)
    with count(k, "tile", plan.tiles) as tile:
        with count(k, "j", plan.columns) as j:
            if across.idle:
                k.set(got, parts.at(tile, j))
            else:
                other = at_place(across.source, k.lane, j)
                k.set(got, k.shuffle(parts.at(tile, j), other))
            total[tile] = total[tile] + got
        i = k.let("i", simplify(mover.first + tile * WARP + k.lane))
        y.put(i, total[tile], when=i.lt(mover.n), streaming=streaming)
    return k.done()


def _partial_sums(k: Builder, tiles: Tiles) -> Tiles:
    if tiles.width == 1:
        return tiles
    sums = Tiles(k, "b", tiles.dtype, tiles.columns, 1, tiles.count).declare()
    with count(k, "tile", tiles.count) as tile, count(k, "j", tiles.columns) as j:
        value: Any = tiles.at(tile, j, 0)
        for word in range(1, tiles.width):
            value = value + tiles.at(tile, j, word)
        k.set(sums.at(tile, j), value)
    return sums


# -- what they must compute ----------------------------------------------------------------------


def _some_structures(
    size: dict[str, int], random: np.random.Generator, **parameters: Any
) -> Values:
    n = size["n"]
    words = random.permutation(n * int(parameters["fields"]))
    return {"n": n, "x": words.astype(str(parameters["dtype"]))}


def _some_summands(size: dict[str, int], random: np.random.Generator, **parameters: Any) -> Values:
    n = size["n"]
    words = random.integers(0, 100, n * int(parameters["fields"]))
    return {"n": n, "x": words.astype(str(parameters["dtype"]))}


def _soa_of(values: Values, **parameters: Any) -> Arrays:
    x = _array(values)
    return {"y": x.reshape(-1, int(parameters["fields"])).T.copy()}


def _aos_of(values: Values, **parameters: Any) -> Arrays:
    x = _array(values)
    return {"y": x.reshape(int(parameters["fields"]), -1).T.copy()}


def _sums_of(values: Values, **parameters: Any) -> Arrays:
    x = _array(values)
    return {"y": x.reshape(-1, int(parameters["fields"])).sum(axis=1, dtype=x.dtype)}


def _array(values: Values) -> Array:
    x = values["x"]
    assert isinstance(x, np.ndarray)
    return x


def _sizes(**parameters: Any) -> list[dict[str, int]]:
    """Around warps, tiles and blocks, and some that nothing divides."""
    tile = WARP * (parameters.get("pack") or 1) * parameters["tiles"]
    block = parameters["block"] // WARP * tile
    edges = [1, 2, 3, 4, 5, 7, 31, 32, 33, 37, 61, 64, 100, 127, 128, 129, 200, 250, 255]
    edges += [tile, tile + 1, tile - 1]
    edges += [block - 1, block, block + 1, block + 2, block + 37, 2 * block + 64]
    return [{"n": n} for n in sorted({n for n in edges if n > 0})]


def _plan_of(parameters: dict[str, Any]) -> Layout:
    names = ("fields", "dtype", "block", "tiles", "pack", "width")
    return layout(**{name: parameters[name] for name in names if name in parameters})


def _sketch_to(back: bool) -> Callable[..., Program | None]:
    def make(**parameters: Any) -> Program | None:
        if parameters["strategy"] != "registers":
            return None
        return sketch(WARP, _plan_of(parameters).columns, str(parameters["order"]), back)

    return make


def _sketch_of_sum(**parameters: Any) -> Program | None:
    if parameters["strategy"] != "registers":
        return None
    return sum_sketch(WARP, _plan_of(parameters).columns)


def tuned(fields: int, dtype: str = "float32") -> list[dict[str, Parameter]]:
    """Exchanges in registers worth measuring: the likely best, then around it."""
    kind = layout(fields, dtype, 256, 1).dtype
    settings: list[dict[str, Parameter]] = []
    for order, pack in (("crc", 1), ("rcr", 1), ("crc", 2), ("crc", 4)):
        share = pack * fields
        if pack * kind.bytes > ACCESS_BYTES or share > MOST_WORDS // 2:
            continue
        full, wide = max(1, WORDS_IN_FLIGHT // share), widest(share, kind)
        fewer, more = max(1, full // 2), max(1, min(2 * full, 2 * WORDS_IN_FLIGHT // share))
        ways = [(full, wide, 256, 1), (more, wide, 256, 1), (fewer, wide, 256, 1)]
        if pack == 1:
            ways += [(full, wide, 128, 1), (full, wide, 256, 0), (full, 1, 256, 1)]
        settings += [
            {"strategy": "registers", "order": order, "pack": pack, "tiles": tiles,
             "width": width, "block": block, "streaming": streaming}
            for tiles, width, block, streaming in dict.fromkeys(ways)
        ]  # fmt: skip
    return settings


def _tuned_moves(given: Parameters) -> list[dict[str, Parameter]]:
    """All strategies: in registers, through shared memory, each thread on its own."""
    fields, dtype = given["fields"], str(given["dtype"])
    assert isinstance(fields, int)
    staged: list[dict[str, Parameter]] = [
        {"strategy": strategy, "block": block, "tiles": tiles}
        for strategy in ("shared", "direct")
        for block in (64, 128, 256)
        for tiles in (1, 2, 4)
    ]
    return tuned(fields, dtype) + staged


def _tuned_sums(given: Parameters) -> list[dict[str, Parameter]]:
    fields = given["fields"]
    assert isinstance(fields, int)
    some = sorted({max(1, words // fields) for words in (8, 16, 32)})
    return [
        {"strategy": strategy, "block": block, "tiles": tiles}
        for strategy in ("registers", "shared", "direct")
        for block in (128, 256)
        for tiles in some
    ]


# What is 0 or auto is chosen by rule.
_COMMON: dict[str, Parameter] = {
    "fields": 3, "strategy": AUTO, "order": AUTO, "dtype": "float32", "block": 0, "tiles": 0,
    "pack": 0, "width": 0, "streaming": 0,
}  # fmt: skip
_SUM = {name: value for name, value in _COMMON.items() if name not in ("order", "pack")}
_FIELDS: tuple[dict[str, Parameter], ...] = tuple(
    {"fields": fields} for fields in (1, 2, 4, 5, 6, 7, 8, 12, 16)
)
_VARIANTS: tuple[dict[str, Parameter], ...] = (
    {},
    *_FIELDS,
    *({"fields": fields, "order": "rcr"} for fields in (2, 3, 5, 6, 8, 16)),
    {"fields": 6, "width": 1},
    {"fields": 12, "order": "rcr", "width": 1},
    {"fields": 3, "pack": 4},
    {"fields": 6, "pack": 2, "block": 64},
    {"fields": 5, "dtype": "int64", "pack": 2},
    {"fields": 7, "dtype": "uint8", "tiles": 1},
    {"fields": 2, "strategy": "shared"},
    {"fields": 5, "strategy": "shared"},
    {"fields": 24, "strategy": "shared", "block": 64},
    {"fields": 3, "strategy": "shared", "dtype": "float64"},
    {"fields": 4, "strategy": "direct"},
    {"fields": 5, "strategy": "direct", "tiles": 2},
)
_SUM_VARIANTS: tuple[dict[str, Parameter], ...] = (
    {},
    *_FIELDS,
    {"fields": 6, "width": 1},
    {"fields": 5, "dtype": "int32", "block": 64},
    {"fields": 3, "dtype": "float64", "tiles": 1},
    {"fields": 3, "strategy": "shared"},
    {"fields": 8, "strategy": "direct"},
)

ENTRIES = (
    Entry(
        name="aos-to-soa",
        doc="an array of structures becomes a structure of arrays",
        parameters=_COMMON,
        build=aos_to_soa,
        inputs=_some_structures,
        specification=_soa_of,
        sizes=_sizes,
        sketch=_sketch_to(back=False),
        fit=structures_to_arrays,
        choose=rule.to_arrays,
        tune=_tuned_moves,
        variants=_VARIANTS,
    ),
    Entry(
        name="soa-to-aos",
        doc="a structure of arrays becomes an array of structures",
        parameters=_COMMON,
        build=soa_to_aos,
        inputs=_some_structures,
        specification=_aos_of,
        sizes=_sizes,
        sketch=_sketch_to(back=True),
        fit=arrays_to_structures,
        choose=rule.to_structures,
        tune=_tuned_moves,
        variants=_VARIANTS,
    ),
    Entry(
        name="aos-sum",
        doc="the sum of each structure of an array of structures",
        parameters=_SUM,
        build=aos_sum,
        inputs=_some_summands,
        specification=_sums_of,
        sizes=_sizes,
        sketch=_sketch_of_sum,
        fit=sums_of_structures,
        inner={"x": 1, "y": 0},
        choose=rule.sums,
        tune=_tuned_sums,
        variants=_SUM_VARIANTS,
        tolerance=1e-5,
        computes=True,
    ),
)
