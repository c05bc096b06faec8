"""One draw of `drawn_matrix.py`: a program, a tiling of its space, its kernel looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from warploom.kernel.dtype import DType, bf16, e4m3, e5m2, f16, f32, i8, i32, u8
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel, Value
from warploom.loopnest.build import LoopNest, cast, choose, exp, maximum
from warploom.loopnest.evaluate import Numbers
from warploom.loopnest.ir import Axis, Program
from warploom.loopnest.strategies.form import ATTENTION, MATRIX, TURNED, WARPS
from warploom.loopnest.target import everything
from warploom.loopnest.trial import Sample
from warploom.machine.record import H200
from warploom.pipeline.attention_nest import AttentionNest
from warploom.pipeline.matrix_nest import MatrixNest, Short
from warploom.pipeline.spaces import SPACES
from warploom.pipeline.warp_nest import WarpNest
from warploom.runtime.emulated import EmulatedFunction
from warploom.search.branching.descent import descended, seeds
from warploom.search.engine import Watch

Row = dict[str, Any]
Random = np.random.Generator
TYPES = (bf16, f16, e4m3, e5m2, i8, u8)
MAJORS = ("mk-kn", "mk-nk", "km-kn", "km-nk")  # of sixteen bits; fewer are dense along the sum
AFTER = ("", "bias, relu and residual", "batch")


@dataclass(frozen=True, slots=True)
class Family:
    """`fixes` of which one is taken; results have `least` to `most` rows and columns."""

    fixes: tuple[tuple[str, ...], ...]
    least: int = 200
    most: int = 3000
    space: str = MATRIX
    archs: tuple[str, ...] = ("sm_90",)


# A GPU that multiplies by warps, with the sizes of an A100.
OLDER = H200.but(
    warp_group_products=False, tensor_copies=False, shared_bytes_most=166912, multiprocessors=108
)
FAMILIES: Mapping[str, Family] = {
    "cooperative": Family((("cluster=1", "ping_pong=0"),)),
    "ping-pong": Family((("ping_pong=1", "cluster=1"), ("ping_pong=1",)), 2200, 4400),
    "cluster below": Family((("cluster=2", "beside=0"), ("cluster=4", "beside=0"))),
    "cluster beside": Family((("cluster=2", "beside=1"), ("cluster=4", "beside=1"))),
    "boxes": Family((("boxes=1",), ("boxes=2",))),
    "straight": Family((("boxes=0",),)),
    "few rows": Family(((),), 200, 3000, TURNED),
    "warps": Family(((),), 16, 3000, WARPS, ("sm_80", "sm_90", "sm_100")),
    "attention": Family(((), ("turns=1",), ("ahead=1",)), 200, 3000, ATTENTION),
}
Drawn = tuple[Program, str]


def looked_at(family: str, number: int, dry: bool = False) -> Row:
    """One draw, of which family and number decide all."""
    random = np.random.default_rng([sorted(FAMILIES).index(family), number])
    own = FAMILIES[family]
    # A program may have no tiling such as is asked for: another is drawn then.
    for _ in range(100):
        program, said = (_attention if own.space == ATTENTION else _product)(own, random)
        fixes = own.fixes[int(random.integers(len(own.fixes)))]
        nest = _nest(own, program, fixes)
        if nest is not None:
            many = len(own.archs)
            arch = own.archs[int(random.integers(many)) if many > 1 else 0]
            return {"program": said} | _looked_at(nest, random, arch, dry)
    raise ValueError(f"no program has a tiling with {own.fixes}")


def _nest(own: Family, program: Program, fixes: tuple[str, ...]) -> MatrixNest | None:
    """The space, if it has such tilings."""
    made: Callable[..., Any] = SPACES[own.space]
    machine = OLDER if own.space == WARPS else H200
    whole = made(program, machine.rates, everything(machine))
    for fix in fixes:
        name, value = fix.split("=")
        if int(value) not in whole.space.choices[name].values:
            return None
    found: MatrixNest = made(program, machine.rates, everything(machine), fixes)
    return found if found.is_possible else None


def _looked_at(nest: MatrixNest, random: Random, arch: str, dry: bool) -> Row:
    start = nest.root.take(np.zeros(1, np.int64))
    found = descended(nest.problem, start, seeds(1, random), lambda some: np.ones(len(some)),
                      Watch())  # fmt: skip
    tiling: Any = nest.tiling(found.leaves.take(slice(0, 1)))
    short = nest.short(tiling, _sizes(nest, tiling, random))
    row: Row = {"tiling": asdict(tiling), "sizes": {a.name: n for a, n in short.sizes.items()}}
    clock = _Clock()
    sample = Sample.of(nest.program, short.sizes, int(random.integers(1 << 30)), part=short.part)
    row["meant"] = clock.lap()
    meant = sample.given()
    row["arch"] = arch

    def evaluated(kernel: Kernel, given: list[Any]) -> Sequence[object]:
        return run(kernel, given, machine=int(arch[3:])).races

    races = sample.run(short.kernels, meant, evaluated)
    row["evaluated"] = clock.lap()
    row["wrong"] = races or sample.wrong(meant)
    if not dry and not row["wrong"]:
        row |= _emulated(short, sample, meant, arch)
        row["emulated and proved"] = clock.lap()
    return row | {"seconds": clock.whole()}


def _emulated(short: Short, sample: Sample, meant: Mapping[str, Numbers], arch: str) -> Row:
    """On the emulator: are bits the same as on the simulator, and in every schedule?"""
    proofs: list[Any] = []

    def launched(kernel: Kernel, given: list[Any]) -> Sequence[object]:
        function = EmulatedFunction(kernel, arch)
        x, y, z = (int(each.value) for each in kernel.grid)  # type: ignore[union-attr]
        told = function.launch((x, y, z), function.packed(given), races=True, prove=True)
        proofs.append(told.proof)
        return told.races

    given = sample.given()
    races = sample.run(short.kernels, given, launched)
    apart = [n for n in given if (given[n].view(np.uint8) != meant[n].view(np.uint8)).any()]
    reach = ", ".join("none" if each is None else each.reach.name for each in proofs)
    row: Row = {"same": not apart, "reach": reach}
    failed = ["no proof" if p is None else p.failed[0] for p in proofs if p is None or p.failed]
    if races or apart:
        return row | {"wrong": races or f"bits of {apart} differ"}
    if failed:
        return row | {"wrong": f"not proved: {failed[0]}"}
    return row | {"assumed": [line for each in proofs for line in each.assumed]}


class _Clock:
    def __init__(self) -> None:
        self.begin = self.last = time.perf_counter()

    def lap(self) -> float:
        before, self.last = self.last, time.perf_counter()
        return round(self.last - before, 2)

    def whole(self) -> float:
        return round(time.perf_counter() - self.begin, 2)


# -- sizes -----------------------------------------------------------------------------------------


def _sizes(nest: MatrixNest, tiling: Any, random: Random) -> dict[Axis, int] | None:
    """Two tiles along one side, of which the last is partial, and a partial one along the other;
    the stages are filled once, and again. Attention says its own."""
    if isinstance(nest, AttentionNest):
        return None
    p = nest.product
    sides = [(p.rows, tiling.rows * tiling.down), (p.columns, tiling.columns * tiling.across)]
    long = int(random.integers(2))
    found = {}
    for number, (axis, tile) in enumerate(sides):
        part = int(random.integers(1, tile + 1))
        found[axis] = min(axis.size, part + tile * (number == long))
    found[p.over] = min(p.over.size, tiling.deep * tiling.stages + p.over.size % tiling.deep)
    if isinstance(nest, WarpNest):  # whole units of sixteen bytes
        for factor, axis in ((p.a, p.rows), (p.b, p.columns)):
            if factor.dense == "mn":
                found[axis] = -(-found[axis] // 8) * 8
    return found | ({} if p.batch is None else {p.batch: min(2, p.batches)})


def _size(random: Random, least: int, most: int, multiple: int) -> int:
    """Small sizes as often as large ones."""
    drawn = int(np.exp(random.uniform(np.log(least), np.log(most))))
    return max(multiple, drawn // multiple * multiple)


# -- programs --------------------------------------------------------------------------------------


def _product(own: Family, random: Random) -> Drawn:
    """C = f(A·B) along axes of any size, where rows of factors begin at multiples of 16 bytes."""
    by_warps = own.space == WARPS
    dtype = TYPES[int(random.choice(6, p=(0.3, 0.3, 0.1, 0.1, 0.1, 0.1)))]
    if by_warps:
        dtype = TYPES[int(random.integers(2))]
    after = AFTER[int(random.integers(3))]
    turned = own.space == TURNED
    majors = MAJORS[int(random.integers(4))] if dtype.bytes == 2 else "mk-nk"
    unit = 16 // dtype.bytes
    units = {axis: unit if axis in majors[1] + majors[4] else 1 for axis in "mnk"}
    if after == "batch":  # a matrix begins at such a multiple, too
        units = dict.fromkeys("mnk", unit)
    elif random.integers(2):  # results may leave by tensor copies
        units["n"] = 8
    rows = (own.least, own.most) if not turned else (1, 128)
    m = _size(random, *rows, units["m"])
    n = _size(random, own.least, own.most, units["n"])
    k = _size(random, 64, 2000, units["k"])
    out = dtype if dtype.bytes == 2 else bf16 if dtype.is_real else i32
    said = f"{m}×{n}×{k}, {dtype!r}, {majors}{', ' if after else ''}{after}"
    return _stated((m, n, k), dtype, majors, out, after), said


def _stated(
    sizes: tuple[int, int, int], dtype: DType, majors: str, out: DType, after: str
) -> Program:
    nest, (m, n, k) = LoopNest("stated"), sizes
    axes = {"m": nest.axis("m", m), "n": nest.axis("n", n), "k": nest.axis("k", k)}
    outer = (nest.axis("b", 3),) if after == "batch" else ()
    first, second = ((*outer, *(axes[each] for each in side)) for side in majors.split("-"))
    A, B = nest.array("A", *first, dtype=dtype), nest.array("B", *second, dtype=dtype)
    sums = f32 if dtype.is_real else i32
    C = nest.array("C", *outer, axes["m"], axes["n"], dtype=out)
    value: Value = nest.sum(cast(A[first], sums) * cast(B[second], sums), over=axes["k"])
    if after and not outer:
        bias = nest.array("bias", axes["n"], dtype=sums)
        residual = nest.array("residual", axes["m"], axes["n"], dtype=sums)
        value = maximum(value + bias[axes["n"]], 0) + residual[(axes["m"], axes["n"])]
    C[(*outer, axes["m"], axes["n"])] = value if out is sums else cast(value, out)
    return nest.done()


def _attention(own: Family, random: Random) -> Drawn:
    heads, dtype = int(random.integers(1, 5)), (bf16, f16)[int(random.integers(2))]
    head = int(random.choice((64, 96, 128, 192, 256)))
    causal, groups = bool(random.integers(2)), int(random.choice((1, 1, 2)))
    queries = _size(random, own.least, own.most, 1)
    keys = queries + int(random.integers(0, 300)) if causal else _size(random, 64, own.most, 1)
    sees = ", causal" if causal else ""
    said = f"{heads}×{groups} heads, {queries} queries, {keys} keys of {head}, {dtype!r}{sees}"
    return softmaxed(heads, groups, queries, keys, head, dtype, causal), said


def softmaxed(
    heads: int, groups: int, queries: int, keys: int, head: int, dtype: DType, causal: bool
) -> Program:
    """softmax(c·Q·Kᵀ)·V, as `stated.py` reads it."""
    nest = LoopNest("attention")
    h, g = nest.axis("h", heads), nest.axis("g", groups)
    i, j = nest.axis("i", queries), nest.axis("j", keys)
    d, e = nest.axis("d", head), nest.axis("e", head)
    outer = (h, g) if groups > 1 else (h,)
    Q, K = nest.array("Q", *outer, i, d, dtype=dtype), nest.array("K", h, j, d, dtype=dtype)
    V, out = nest.array("V", h, j, e, dtype=dtype), nest.array("O", *outer, i, e, dtype=dtype)
    products = cast(Q[(*outer, i, d)], f32) * cast(K[h, j, d], f32)
    scores: Any = nest.value(nest.sum(products, over=d) * head**-0.5)
    if causal:
        scores = nest.value(choose(j.expr.le(i.expr + (keys - queries)), scores, -np.inf))
    weights = nest.value(exp(scores - nest.fold("max", scores, over=j, start=-np.inf)))
    rounded = cast(cast(weights, dtype), f32)
    result = nest.sum(rounded * cast(V[h, j, e], f32), over=j)
    out[(*outer, i, e)] = cast(result / nest.sum(weights, over=j), dtype)
    return nest.done()
